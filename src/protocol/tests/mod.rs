//! The codecs and the guard against bytes that Kafka's own classes made, and against bytes nobody
//! would.

#![allow(clippy::cast_possible_truncation, reason = "random numbers are cut to their width")]

mod allocations;
mod bodies;
mod crate_golden;
mod fetch;
mod golden;
mod guard;
mod header;
mod hostile;
mod produce;
mod random;
mod reader;

use std::collections::BTreeMap;

use bytes::Bytes;

/// Changes every byte of `body` in turn, in two ways. `read_alike` decodes both and says whether it
/// got the same value twice: then the decoder has lost something.
fn changes_are_seen(body: &[u8], read_alike: impl Fn(&[u8], &[u8]) -> bool) {
    assert!(read_alike(body, body));
    for at in 0..body.len() {
        for flip in [0x01, 0x80] {
            let mut changed = body.to_vec();
            changed[at] ^= flip;
            assert!(!read_alike(body, &changed), "byte {at} of {body:02x?}");
        }
    }
}

/// Empties all these tagged fields, and says whether there were any.
fn clear_all(sets: Vec<&mut BTreeMap<i32, Bytes>>) -> bool {
    let mut any = false;
    for set in sets {
        any |= !set.is_empty();
        set.clear();
    }
    any
}

/// How many there are, and how many of them are true.
fn count(checked: impl Iterator<Item = bool>) -> (usize, usize) {
    checked.fold((0, 0), |(all, held), holds| (all + 1, held + usize::from(holds)))
}
