//! The guard knows every request Kafka 4.1 has, and lets no false length through.

use super::golden;
use crate::protocol::frame_guard::check_request;
use crate::protocol::shapes;

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
fn unknown_apis_and_versions_are_refused() {
    for (key, version) in [(-1, 0), (4, 0), (7, 3), (93, 0), (1000, 0)] {
        assert_eq!(check_request(key, version, &[]).expect_err("refused").what, "unknown API");
    }
    for api in shapes::all() {
        for version in [i16::MIN, api.first - 1, api.last + 1, i16::MAX] {
            let fault = check_request(api.key, version, &[0; 64]).expect_err("refused");
            assert_eq!((fault.what, fault.field), ("unknown version", api.name));
        }
    }
}

#[test]
fn a_nullable_struct_is_there_or_is_null() {
    // DescribeTopicPartitions 0: no topics, a limit, then the cursor.
    let body = |cursor: &[u8]| [&[1, 0, 0, 0, 9], cursor, &[0]].concat();
    assert_eq!(check_request(75, 0, &body(&[0xff])), Ok(7));
    assert_eq!(check_request(75, 0, &body(&[1, 2, b'a', 0, 0, 0, 0, 0])), Ok(14));
    for marker in [0, 2, 0x80, 0xfe] {
        let fault = check_request(75, 0, &body(&[marker])).expect_err("refused");
        assert_eq!((fault.what, fault.field), ("neither null nor a struct", "cursor"));
    }
}

#[test]
fn a_known_tagged_field_fills_its_size() {
    // Fetch 12, nothing asked, then the cluster's id as tag 0 with the size given.
    let head = [0_u8; 4 + 4 + 4 + 4 + 1 + 4 + 4];
    let body = |size: u8| [&head[..], &[1, 1, 1], &[1, 0, size, 3, b'i', b'd', 0]].concat();
    assert_eq!(check_request(1, 12, &body(3)), Ok(head.len() + 9));
    for (size, what) in [(2, "cut short"), (4, "bytes after the message")] {
        let fault = check_request(1, 12, &body(size)).expect_err("refused");
        assert_eq!((fault.what, fault.field), (what, "cluster_id"));
    }
}

#[test]
fn a_tag_of_another_version_is_refused_as_kafka_does() {
    // Fetch 13 with a consumer's state of the replica, which v15 brought as tag 1.
    let head = [0_u8; 4 + 4 + 4 + 4 + 1 + 4 + 4];
    let body = [&head[..], &[1, 1, 1], &[1, 1, 0]].concat();
    let fault = check_request(1, 13, &body).expect_err("refused");
    assert_eq!((fault.what, fault.field), ("tag of another version", "replica_state"));
}

#[test]
fn a_fault_names_the_innermost_field_and_the_byte() {
    // Metadata 0 with one topic whose name is not UTF-8.
    let fault = check_request(3, 0, &[0, 0, 0, 1, 0, 1, 0xff]).expect_err("refused");
    assert_eq!(fault.to_string(), "string not UTF-8 at byte 4 (name)");
}
