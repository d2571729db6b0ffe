//! Headers against kafka-protocol's.

use bytes::BytesMut;
use kafka_protocol::messages::{ApiKey, RequestHeader as Theirs};
use kafka_protocol::protocol::Encodable as _;

use super::random::Random;
use crate::limits;
use crate::protocol::header::{
    RequestHeader, leading, parse, request_is_flexible, response_header_is_flexible,
};
use crate::protocol::shapes;

#[test]
fn header_versions_are_kafkas() {
    let mut compared = 0;
    for api in shapes::all().filter(|api| !matches!(api.key, 88 | 89)) {
        let key = ApiKey::try_from(api.key).expect("a known key");
        for version in api.first..=api.last {
            let flexible = request_is_flexible(api.key, version).expect("a known key");
            assert_eq!(key.request_header_version(version), 1 + i16::from(flexible));
            let flexible = response_header_is_flexible(api.key, version);
            assert_eq!(key.response_header_version(version), i16::from(flexible));
            compared += 1;
        }
    }
    assert_eq!(compared, 290);
    assert_eq!(request_is_flexible(4, 0), None);
    assert!(!response_header_is_flexible(18, 4));
}

#[test]
fn a_header_is_read_as_kafka_protocol_wrote_it() {
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let flexible = random.coin();
        let mut theirs = Theirs::default()
            .with_request_api_key(random.i16())
            .with_request_api_version(random.i16())
            .with_correlation_id(random.i32())
            .with_client_id(random.nullable_text());
        if flexible && random.coin() {
            let value = random.nullable_bytes().unwrap_or_default();
            theirs = theirs.with_unknown_tagged_field(7, value);
        }
        let mut frame = BytesMut::new();
        theirs.encode(&mut frame, 1 + i16::from(flexible)).expect("theirs encodes");
        let body_at = frame.len();
        frame.extend_from_slice(b"body");

        let expected = RequestHeader {
            api_key: theirs.request_api_key,
            api_version: theirs.request_api_version,
            correlation_id: theirs.correlation_id,
            client_id: theirs.client_id.as_deref(),
            body_at,
        };
        assert_eq!(parse(&frame, flexible), Ok(expected));
        let first = (theirs.request_api_key, theirs.request_api_version, theirs.correlation_id);
        assert_eq!(leading(&frame), Some(first));
        for end in 0..body_at {
            assert!(parse(&frame[..end], flexible).is_err());
            assert_eq!(leading(&frame[..end]).is_some(), end >= 8);
        }
    }
}

#[test]
fn a_header_that_lies_is_refused() {
    let leading = [0, 18, 0, 4, 0, 0, 0, 1];
    let refused = |rest: &[u8], what| {
        let frame = [&leading[..], rest].concat();
        let fault = parse(&frame, true).expect_err("refused");
        assert_eq!(fault.what, what);
        assert!(fault.at >= leading.len());
    };
    refused(&[0x7f, 0xff, b'a'], "cut short");
    refused(&[0xff, 0xfe, 0x00], "length below -1");
    refused(&[0x00, 0x01, 0xff, 0x00], "string not UTF-8");
    let most = u8::try_from(limits::TAGGED_FIELDS_PER_SET_MAX).expect("small");
    refused(&[0xff, 0xff, most + 1], "too many tagged fields");
    refused(&[0xff, 0xff, 0x01, 0x00, 0x05], "tagged field cut short");
    refused(&[0xff, 0xff, 0x80, 0x00], "varint padded");
}
