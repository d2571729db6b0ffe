//! The vectors are what Kafka 4.1's own generated classes write.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn commit(leader_epoch: i32, expires_at: Option<i64>) -> Record {
    Record::OffsetCommit {
        group: "grüppe".into(),
        partition: TopicPartition::new("t", 7),
        committed: CommittedOffset {
            offset: Offset(42),
            leader_epoch: LeaderEpoch(leader_epoch),
            metadata: "note".into(),
            committed_at: Timestamp(1_700_000_000_000),
            expires_at: expires_at.map(Timestamp),
        },
    }
}

/// The group of the vectors, with what the version can say.
fn group(version: i16) -> Record {
    let member = |id: &str, client: &str, host: &str| SavedMember {
        member_id: id.into(),
        instance_id: None,
        client_id: client.into(),
        client_host: host.into(),
        rebalance_timeout: Duration::from_millis(10_000),
        session_timeout: Duration::from_millis(10_000),
        subscription: Arc::from([]),
        assignment: Arc::from([]),
    };
    let mut first = member("m-1", "c", "/127.0.0.1");
    first.subscription = Arc::from([1, 2, 3]);
    first.assignment = Arc::from([9]);
    let mut second = member("m-2", "", "/::1");
    second.session_timeout = Duration::from_millis(45_000);
    second.rebalance_timeout = second.session_timeout;
    if version >= 1 {
        first.rebalance_timeout = Duration::from_millis(30_000);
        second.rebalance_timeout = Duration::from_millis(300_000);
    }
    second.instance_id = (version >= 3).then(|| "i".into());
    metadata(version, |metadata| {
        metadata.protocol_type = "consumer".into();
        metadata.generation = Generation(3);
        metadata.protocol = Some("range".into());
        metadata.leader = Some("m-1".into());
        metadata.members = vec![first, second];
    })
}

fn empty_group(version: i16) -> Record {
    metadata(version, |_| ())
}

fn metadata(version: i16, fill: impl FnOnce(&mut GroupMetadata)) -> Record {
    let mut metadata = GroupMetadata {
        protocol_type: "".into(),
        generation: Generation(0),
        protocol: None,
        leader: None,
        state_since: (version >= 2).then_some(Timestamp(1_700_000_000_000)),
        members: Vec::new(),
    };
    fill(&mut metadata);
    Record::GroupMetadata { group: "g".into(), metadata }
}

const OFFSET_KEY_0: &str = "000000076772c3bc70706500017400000007";
const OFFSET_KEY_1: &str = "000100076772c3bc70706500017400000007";
const OFFSET_VALUES: [(i32, Option<i64>, &str); 6] = [
    (-1, None, "0000000000000000002a00046e6f74650000018bcfe56800"),
    (
        -1,
        Some(1_700_000_060_000),
        "0001000000000000002a00046e6f74650000018bcfe568000000018bcfe65260",
    ),
    (-1, None, "0002000000000000002a00046e6f74650000018bcfe56800"),
    (5, None, "0003000000000000002a0000000500046e6f74650000018bcfe56800"),
    (5, None, "0004000000000000002a00000005056e6f74650000018bcfe5680000"),
    // With the topic's id as a tagged field.
    (
        5,
        None,
        "0004000000000000002a00000005056e6f74650000018bcfe56800\
         01001000000000000000010000000000000002",
    ),
];
const GROUP_KEY: &str = "0002000167";
const GROUP_VALUES: [&str; 5] = [
    "00000008636f6e73756d657200000003000572616e676500036d2d310000000200036d2d31000163000a2f3132\
     372e302e302e310000271000000003010203000000010900036d2d32000000042f3a3a310000afc800000000000\
     00000",
    "00010008636f6e73756d657200000003000572616e676500036d2d310000000200036d2d31000163000a2f3132\
     372e302e302e31000075300000271000000003010203000000010900036d2d32000000042f3a3a31000493e0000\
     0afc80000000000000000",
    "00020008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000200036d2d31\
     000163000a2f3132372e302e302e31000075300000271000000003010203000000010900036d2d32000000042f3\
     a3a31000493e00000afc80000000000000000",
    "00030008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000200036d2d31\
     ffff000163000a2f3132372e302e302e31000075300000271000000003010203000000010900036d2d320001690\
     00000042f3a3a31000493e00000afc80000000000000000",
    "000409636f6e73756d6572000000030672616e6765046d2d310000018bcfe5680003046d2d310002630b2f3132\
     372e302e302e31000075300000271004010203020900046d2d32026901052f3a3a31000493e00000afc80101000\
     0",
];
const EMPTY_GROUP_VALUES: [&str; 5] = [
    "0000000000000000ffffffff00000000",
    "0001000000000000ffffffff00000000",
    "0002000000000000ffffffff0000018bcfe5680000000000",
    "0003000000000000ffffffff0000018bcfe5680000000000",
    "0004010000000000000000018bcfe568000100",
];

#[test]
fn offset_commits_are_read_in_every_version() {
    for (leader_epoch, expires_at, value) in OFFSET_VALUES {
        for key in [OFFSET_KEY_0, OFFSET_KEY_1] {
            let record = decode(Some(&bytes(key)), Some(&bytes(value)));
            assert_eq!(record, Ok(Some(commit(leader_epoch, expires_at))), "{value}");
        }
    }
}

#[test]
fn offset_commits_are_written_as_kafka_writes_them() {
    assert_eq!(encode_key(&commit(5, None)), bytes(OFFSET_KEY_1));
    assert_eq!(encode_value(&commit(5, None)), Some(bytes(OFFSET_VALUES[3].2)));
    let with_end = commit(-1, Some(1_700_000_060_000));
    assert_eq!(encode_value(&with_end), Some(bytes(OFFSET_VALUES[1].2)));
}

#[test]
fn groups_are_read_in_every_version() {
    let key = bytes(GROUP_KEY);
    for version in 0..=4_i16 {
        let at = usize::try_from(version).unwrap();
        let value = bytes(GROUP_VALUES[at]);
        assert_eq!(decode(Some(&key), Some(&value)), Ok(Some(group(version))), "v{version}");
        let value = bytes(EMPTY_GROUP_VALUES[at]);
        assert_eq!(decode(Some(&key), Some(&value)), Ok(Some(empty_group(version))), "v{version}");
    }
}

#[test]
fn groups_are_written_as_kafka_writes_them() {
    assert_eq!(encode_key(&group(3)), bytes(GROUP_KEY));
    assert_eq!(encode_value(&group(3)), Some(bytes(GROUP_VALUES[3])));
    assert_eq!(encode_value(&empty_group(3)), Some(bytes(EMPTY_GROUP_VALUES[3])));
}

#[test]
fn an_empty_value_is_a_tombstone() {
    let tombstone = Record::GroupTombstone { group: "g".into() };
    assert_eq!(decode(Some(&bytes(GROUP_KEY)), None), Ok(Some(tombstone.clone())));
    assert_eq!(encode_key(&tombstone), bytes(GROUP_KEY));
    assert_eq!(encode_value(&tombstone), None);
    let tombstone =
        Record::OffsetTombstone { group: "grüppe".into(), partition: TopicPartition::new("t", 7) };
    assert_eq!(decode(Some(&bytes(OFFSET_KEY_0)), None), Ok(Some(tombstone.clone())));
    assert_eq!(encode_key(&tombstone), bytes(OFFSET_KEY_1));
    assert_eq!(encode_value(&tombstone), None);
}

/// KAFKA-14869: an older coordinator must be able to load a newer one's partition.
#[test]
fn unknown_kinds_are_skipped_but_unknown_values_are_not() {
    for kind in [3_i16, 8, 15, -1, i16::MAX] {
        assert_eq!(decode(Some(&kind.to_be_bytes()), Some(&[0xff; 9])), Ok(None));
    }
    let newer = decode(Some(&bytes(GROUP_KEY)), Some(&[0, 5]));
    assert_eq!(newer, Err(DecodeError::ValueVersion(5)));
    assert_eq!(decode(None, Some(&[])), Err(DecodeError::NoKey));
}

#[test]
fn a_claim_of_many_members_allocates_nothing() {
    let mut value = bytes(EMPTY_GROUP_VALUES[3]);
    let count_at = value.len() - 4;
    value[count_at..].copy_from_slice(&i32::MAX.to_be_bytes());
    assert_eq!(decode(Some(&bytes(GROUP_KEY)), Some(&value)), Err(DecodeError::Short));
}

#[test]
fn a_record_cut_anywhere_is_an_error() {
    let key = bytes(GROUP_KEY);
    for whole in GROUP_VALUES {
        let whole = bytes(whole);
        for end in 0..whole.len() {
            assert!(decode(Some(&key), Some(&whole[..end])).is_err(), "cut at {end}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(
        kind in 0_i16..4, version in -1_i16..6,
        key in proptest::collection::vec(proptest::num::u8::ANY, 0..40),
        value in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
    ) {
        let key = [&kind.to_be_bytes()[..], &key].concat();
        let value = [&version.to_be_bytes()[..], &value].concat();
        let _ = decode(Some(&key), Some(&value));
        let _ = decode(Some(&bytes(GROUP_KEY)), Some(&value));
        let _ = decode(Some(&bytes(OFFSET_KEY_1)), Some(&value));
    }
}
