//! kafka-protocol, which decodes all but the hot APIs, against Kafka's bytes.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestKind, ResponseKind};

use super::golden::{self, Line};
use super::random::Random;
use crate::protocol::frame_guard::check_request;

/// Whether kafka-protocol 0.18 has this message in this version. It lacks the groups of Streams,
/// and three requests that were unstable in the schemas it was made from.
pub(super) fn is_known_to_crate(line: &Line) -> bool {
    match (line.is_request, line.key, line.version) {
        (_, 88 | 89, _) => false,
        (true, 8, 10) | (true, 9, 10) | (true, 22, 6) => false,
        (_, _, _) => true,
    }
}

/// Decodes `body` and encodes what was understood; `None` if it was refused or not read to its end.
fn back_and_forth(line: &Line, body: &[u8]) -> Option<BytesMut> {
    let key = ApiKey::try_from(line.key).expect("a known key");
    let mut rest = Bytes::copy_from_slice(body);
    let mut again = BytesMut::new();
    if line.is_request {
        let decoded = RequestKind::decode(key, &mut rest, line.version).ok()?;
        decoded.encode(&mut again, line.version).ok()?;
    } else {
        let decoded = ResponseKind::decode(key, &mut rest, line.version).ok()?;
        decoded.encode(&mut again, line.version).ok()?;
    }
    rest.is_empty().then_some(again)
}

#[test]
fn every_line_comes_back() {
    let mut same = 0;
    for line in golden::lines().iter().filter(|line| is_known_to_crate(line)) {
        let again = back_and_forth(line, &line.body);
        assert_eq!(again.as_deref(), Some(&*line.body), "{} {}", line.key, line.version);
        same += 1;
    }
    assert_eq!(same, 11_528);
}

// Requests only: no guard stands before responses, and the crate aborts on a changed count.
#[test]
fn a_changed_byte_of_a_request_is_seen() {
    let mut random = Random::new(1);
    let mut decoded = 0;
    let known = golden::requests().filter(|line| is_known_to_crate(line));
    for line in known.filter(|line| !line.body.is_empty()) {
        let mut changed = line.body.clone();
        let at = random.below(changed.len());
        changed[at] ^= 1;
        // Only bytes that the guard lets through reach the crate.
        if check_request(line.key, line.version, &changed) != Ok(changed.len()) {
            continue;
        }
        let again = back_and_forth(line, &changed).expect("the guard let it through");
        assert_ne!(*again, *line.body, "byte {at} of {} {}", line.key, line.version);
        decoded += 1;
    }
    assert!(decoded > 2_000, "{decoded}");
}
