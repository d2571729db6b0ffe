//! The guard knows every request Kafka 4.1 has, and lets no false length through.

use super::golden;
use crate::limits;
use crate::protocol::frame_guard::check_request;
use crate::protocol::shapes::{self, Field, Kind};

#[test]
fn walks_every_golden_request_to_its_last_byte() {
    let mut walked = 0;
    for line in golden::requests() {
        let end = check_request(line.key, line.version, &line.body);
        assert_eq!(end, Ok(line.body.len()), "key {} version {}", line.key, line.version);
        walked += 1;
    }
    assert_eq!(walked, 5_840);
}

#[test]
fn every_version_of_every_shape_is_in_the_golden_lines() {
    for api in shapes::all() {
        for version in api.first..=api.last {
            let is_known = golden::of(true, api.key).any(|line| line.version == version);
            assert!(is_known, "{} version {version}", api.name);
        }
    }
}

#[test]
fn shapes_nest_no_deeper_than_the_limit() {
    fn depth(fields: &[Field]) -> usize {
        let of = |field: &Field| match field.kind {
            Kind::One(_) => 0,
            Kind::Many(_) => 1,
            Kind::Struct(fields) | Kind::Structs(fields) => 1 + depth(fields),
        };
        fields.iter().map(of).max().unwrap_or(0)
    }
    let deepest = shapes::all().map(|api| depth(api.fields)).max();
    assert_eq!(deepest, Some(limits::NESTING_MAX));
}
