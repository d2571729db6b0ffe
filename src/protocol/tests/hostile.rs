//! Bytes made to do harm: cut, changed, and with lies at every length of every request.

use bytes::Bytes;
use kafka_protocol::messages::{ApiKey, RequestKind};

use super::allocations::peak;
use super::bodies::{Body, Length, LengthKind};
use super::crate_golden::is_known_to_crate;
use super::golden::{self, Line};
use super::random::Random;
use crate::limits;
use crate::protocol::frame_guard::{decoded_bytes_max, walk_request};
use crate::protocol::shapes::{self, Api};

/// What a decoder takes however small the message, in bytes: the count of a shared frame's handles.
const DECODE_OVERHEAD: usize = 64;

/// The guard judges `body`. It allocates nothing itself; what it lets through, kafka-protocol must
/// decode to the same byte and within what the guard has charged. Says whether it was let through.
fn judge(line: &Line, body: &[u8]) -> bool {
    let (walked, allocated) = peak(|| walk_request(line.key, line.version, body));
    assert_eq!(allocated, 0);
    let Ok(walked) = walked else {
        return false;
    };
    assert!(walked.bytes <= body.len());
    assert!(walked.decoded <= decoded_bytes_max(body.len()));
    if is_known_to_crate(line) {
        let key = ApiKey::try_from(line.key).expect("a known key");
        let mut rest = Bytes::copy_from_slice(body);
        let (decoded, allocated) = peak(|| RequestKind::decode(key, &mut rest, line.version));
        assert!(decoded.is_ok(), "{} {}: {decoded:?} {body:02x?}", line.key, line.version);
        assert_eq!(rest.len(), body.len() - walked.bytes);
        assert!(
            allocated <= walked.decoded + DECODE_OVERHEAD,
            "{} {}: {allocated} > {}",
            line.key,
            line.version,
            walked.decoded
        );
    }
    true
}

#[test]
fn a_request_cut_short_is_refused() {
    for line in golden::requests() {
        // At most 64 cuts a line, and always the last byte.
        let step = line.body.len() / 64 + 1;
        for end in (0..line.body.len()).rev().step_by(step) {
            assert!(!judge(line, &line.body[..end]), "{} {} {end}", line.key, line.version);
        }
    }
}

#[test]
fn changed_requests_are_refused_or_decoded_within_bounds() {
    let mut random = Random::new(2);
    let (mut refused, mut passed) = (0, 0);
    for line in golden::requests().filter(|line| !line.body.is_empty()) {
        for _ in 0..20 {
            let mut body = line.body.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(body.len());
                body[at] = match random.below(4) {
                    0 => 0x00,
                    1 => 0x7f,
                    2 => 0xff,
                    _ => random.i8().cast_unsigned(),
                };
            }
            if judge(line, &body) { passed += 1 } else { refused += 1 }
        }
    }
    assert!(refused > 20_000 && passed > 20_000, "{refused} refused, {passed} passed");
}

/// A line as golden ones are, for a body of our own making.
fn line(api: &Api, version: i16) -> Line {
    Line { is_request: true, key: api.key, version, body: Vec::new() }
}

/// Every version of every request, made by its shape with one element in each array.
fn made() -> impl Iterator<Item = (Line, Body)> {
    shapes::all().flat_map(|api| {
        (api.first..=api.last).map(|version| (line(api, version), Body::new(api, version, 1)))
    })
}

#[test]
fn made_requests_pass() {
    for (line, body) in made() {
        assert!(judge(&line, &body.bytes), "{} {}", line.key, line.version);
    }
}

#[test]
fn a_lie_at_any_length_is_refused() {
    let mut lies = 0;
    for (line, body) in made() {
        for length in &body.lengths {
            for lie in lies_for(length, body.bytes.len(), body.is_flexible) {
                let told = body.with(length, &lie);
                let name = length.field;
                assert!(!judge(&line, &told), "{} {} {name}", line.key, line.version);
                lies += 1;
            }
        }
    }
    assert!(lies > 20_000, "{lies}");
}

/// Spellings of a length that no body of `end` bytes may have at this place.
fn lies_for(length: &Length, end: usize, is_flexible: bool) -> Vec<Vec<u8>> {
    let beyond = u32::try_from(end - length.at + 1).expect("short");
    let mut lies = Vec::new();
    if is_flexible {
        let null = vec![0x00];
        lies.push(vec![0xff, 0xff, 0xff, 0xff, 0x0f]);
        lies.push(vec![0x80, 0x80, 0x80, 0x80, 0x04]);
        // Too long, too large, and padded.
        lies.push(vec![0x81, 0x80, 0x80, 0x80, 0x80, 0x00]);
        lies.push(vec![0xff, 0xff, 0xff, 0xff, 0x1f]);
        lies.push(vec![0x81, 0x00]);
        let low = u8::try_from(beyond % 128).expect("seven bits");
        lies.push(vec![low | 0x80, u8::try_from(beyond / 128 + 1).expect("short")]);
        if !length.is_nullable && length.kind != LengthKind::Tags {
            lies.push(null);
        }
        return lies;
    }
    let classic: &[i32] = &[i32::MAX, 1 << 26, beyond.cast_signed(), -2, i32::MIN, -1];
    for value in classic {
        if *value == -1 && length.is_nullable {
            continue;
        }
        let bytes = value.to_be_bytes();
        match length.kind {
            LengthKind::Text => match i16::try_from(*value) {
                Ok(value) => lies.push(value.to_be_bytes().to_vec()),
                Err(_) => lies.push(bytes[..2].to_vec()),
            },
            LengthKind::Bytes | LengthKind::Array => lies.push(bytes.to_vec()),
            LengthKind::Tags => unreachable!("classic messages have no tags"),
        }
    }
    // The high half of 2^26 is an honest short length of 1024, or so: only beyond the end is a lie.
    lies
}

#[test]
fn arrays_of_the_smallest_elements_stay_within_bounds() {
    let (mut refused, mut passed) = (0, 0);
    for api in shapes::all() {
        let line = line(api, api.last);
        let arrays = Body::new(api, api.last, 1).arrays();
        for nth in 0..arrays {
            let body = Body::flooded(api, api.last, nth, 32 * 1024);
            if judge(&line, &body.bytes) { passed += 1 } else { refused += 1 }
        }
    }
    assert!(refused > 50 && passed > 50, "{refused} refused, {passed} passed");
}

#[test]
fn honest_lists_pass_however_long() {
    let api = shapes::find(3).expect("Metadata");
    let name = "seven77";
    let mut body = Vec::new();
    // Version 9: compact names, each topic with its tags; then two flags and the message's tags.
    let count: u32 = 100_000;
    body.extend([(count + 1) as u8 | 0x80, ((count + 1) >> 7) as u8 | 0x80]);
    body.push(((count + 1) >> 14) as u8);
    for _ in 0..count {
        body.push(name.len() as u8 + 1);
        body.extend(name.as_bytes());
        body.push(0);
    }
    body.extend([0, 0, 0, 0]);
    assert!(judge(&line(api, 9), &body));
}

#[test]
fn a_flood_of_tagged_fields_is_refused() {
    let api = shapes::find(18).expect("ApiVersions");
    let tags = |count: u32| {
        let mut body = vec![0x02, b'a', 0x02, b'1', count as u8];
        for tag in 0..count {
            body.extend([tag as u8 + 10, 0]);
        }
        body
    };
    let most = limits::TAGGED_FIELDS_PER_SET_MAX;
    assert!(judge(&line(api, 3), &tags(most)));
    assert!(!judge(&line(api, 3), &tags(most + 1)));
}
