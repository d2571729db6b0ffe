//! Bytes made to do harm: cut, changed, and with lies at every length of every request.

use bytes::Bytes;
use kafka_protocol::messages::{ApiKey, RequestKind};

use super::allocations::peak;
use super::bodies::{Body, Length, LengthKind};
use super::crate_golden::is_known_to_crate;
use super::golden::{self, Line};
use super::random::Random;
use crate::limits;
use crate::protocol::fetch::{FetchRequest, FetchResponse};
use crate::protocol::frame_guard::{decoded_bytes_max, walk_request};
use crate::protocol::produce::{ProduceRequest, ProduceResponse};
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
        for _ in 0..20 * crate::times() {
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
    println!("{refused} changed requests refused, {passed} decoded");
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
fn null_passes_where_the_crate_takes_it() {
    let mut nulls = 0;
    for (line, body) in made() {
        for told in body.lengths.iter().filter_map(|length| body.with_null(length)) {
            assert!(judge(&line, &told), "{} {}", line.key, line.version);
            nulls += 1;
        }
    }
    assert_eq!(nulls, 199);
}

#[test]
fn a_lie_at_any_length_is_refused() {
    let mut lies = 0;
    for (line, body) in made() {
        for length in &body.lengths {
            for lie in lies_for(length, body.bytes.len(), body.is_flexible) {
                let told = body.with(length, &lie);
                let fault = walk_request(line.key, line.version, &told).expect_err(length.field);
                // A false count is refused where it stands, not where the bytes run out.
                assert!(length.kind != LengthKind::Array || fault.at == length.at, "{fault}");
                lies += 1;
            }
        }
    }
    assert!(lies > 10_000, "{lies}");
}

#[test]
fn tags_that_the_shapes_lack_are_unknown_to_the_crate() {
    // kafka-protocol ignores the size of a tagged field it knows, so a shape that lacked one would
    // let its value reach the crate unseen.
    for api in shapes::all() {
        for version in api.first..=api.last {
            let body = Body::with_unknown_tags(api, version);
            assert!(judge(&line(api, version), &body.bytes), "{} {version}", api.name);
        }
    }
}

/// The most a hot decoder takes for a byte: a topic is 56 bytes in memory and 3 or more in a frame.
const HOT_BYTES_PER_BYTE: usize = 20;

/// Our own decoders stand without a guard where peers answer.
fn hot_decode(line: &Line, body: &[u8]) {
    let decode = || match (line.is_request, line.key) {
        (true, 0) => ProduceRequest::decode(line.version, body).is_ok(),
        (false, 0) => ProduceResponse::decode(line.version, body).is_ok(),
        (true, 1) => FetchRequest::decode(line.version, body).is_ok(),
        (false, 1) => FetchResponse::decode(line.version, body).is_ok(),
        (_, _) => unreachable!("only Produce and Fetch are decoded by hand"),
    };
    let (_, allocated) = peak(decode);
    assert!(allocated <= body.len() * HOT_BYTES_PER_BYTE, "{allocated} for {}", body.len());
}

#[test]
fn hot_decoders_take_little_for_changed_bytes() {
    let mut random = Random::new(4);
    for line in golden::lines().iter().filter(|line| matches!(line.key, 0 | 1)) {
        for _ in 0..50 * crate::times() {
            let mut body = line.body.clone();
            let at = random.below(body.len());
            let end = body.len().min(at + 1 + random.below(4));
            let value = [0x00, 0x7f, 0xff, random.i8().cast_unsigned()][random.below(4)];
            body[at..end].fill(value);
            hot_decode(line, &body);
        }
    }
}

#[test]
fn hot_decoders_take_little_for_lies() {
    for (line, body) in made().filter(|(line, _)| matches!(line.key, 0 | 1)) {
        for length in &body.lengths {
            for lie in lies_for(length, body.bytes.len(), body.is_flexible) {
                hot_decode(&line, &body.with(length, &lie));
            }
        }
    }
}

#[test]
fn endpoints_take_little_for_a_lie() {
    // Produce 10: no topics, no throttling, then as many endpoints as there are bytes.
    let endpoints = [&[0x80, 0x10][..], &[0; 2048]].concat();
    let size = [0x82, 0x10];
    let body = [&[1, 0, 0, 0, 0, 1, 0][..], &size, &endpoints].concat();
    let line = Line { is_request: false, key: 0, version: 10, body: Vec::new() };
    hot_decode(&line, &body);
}

/// Spellings that a length of this kind may not have, at this place in a body of `end` bytes.
fn lies_for(length: &Length, end: usize, is_flexible: bool) -> Vec<Vec<u8>> {
    // More than all that follows, even if each element takes but a byte.
    let beyond = i16::try_from(end - length.at + 1).expect("short");
    let mut lies = match length.kind {
        _ if is_flexible => compact_lies(beyond.cast_unsigned()),
        LengthKind::Text => {
            [i16::MAX, beyond, -2, i16::MIN].map(|lie| lie.to_be_bytes().to_vec()).to_vec()
        }
        LengthKind::Bytes | LengthKind::Array => {
            let lies = [i32::MAX, 1 << 26, 1 << 20, beyond.into(), -2, i32::MIN];
            lies.map(|lie| lie.to_be_bytes().to_vec()).to_vec()
        }
        LengthKind::Tags => unreachable!("classic messages have no tags"),
    };
    if !length.is_nullable && length.kind != LengthKind::Tags {
        lies.push(match length.kind {
            _ if is_flexible => vec![0],
            LengthKind::Text => vec![0xff; 2],
            LengthKind::Bytes | LengthKind::Array | LengthKind::Tags => vec![0xff; 4],
        });
    }
    lies
}

/// As [`lies_for`], in a flexible version.
fn compact_lies(beyond: u16) -> Vec<Vec<u8>> {
    let [high, low] = (beyond << 1).to_be_bytes();
    vec![
        vec![0xff, 0xff, 0xff, 0xff, 0x0f],
        vec![0xff, 0xff, 0xff, 0xff, 0x07],
        vec![0x80, 0x80, 0x80, 0x20],
        vec![0x80, 0x80, 0x40],
        // `beyond` or a little more; the high byte is never 0.
        vec![low >> 1 | 0x80, high + 1],
        // Six bytes; five that hold more than 32 bits; a zero that pads.
        vec![0x81, 0x80, 0x80, 0x80, 0x80, 0x00],
        vec![0xff, 0xff, 0xff, 0xff, 0x1f],
        vec![0x81, 0x00],
    ]
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

#[test]
fn unknown_tagged_fields_are_charged() {
    let api = shapes::find(3).expect("Metadata");
    for tags in 1..=limits::TAGGED_FIELDS_PER_SET_MAX as u8 {
        // Version 9: three topics named "a", then two flags and the message's own tags.
        let mut body = vec![4];
        for _ in 0..3 {
            body.extend([2, b'a', tags]);
            body.extend((0..tags).flat_map(|tag| [tag, 0]));
        }
        body.extend([0, 0, 0, 0]);
        assert!(judge(&line(api, 9), &body));
    }
}
