//! Fetch by hand against Kafka's bytes and against kafka-protocol's understanding of them.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{
    FetchPartition, FetchTopic, ForgottenTopic, ReplicaState,
};
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint,
    PartitionData, SnapshotId,
};
use kafka_protocol::messages::{BrokerId, ProducerId, TopicName};
use kafka_protocol::messages::{FetchRequest as TheirRequest, FetchResponse as TheirResponse};
use kafka_protocol::protocol::{Decodable as _, Encodable as _, StrBytes};

use super::random::Random;
use super::{changes_are_seen, clear_all, count, golden};
use crate::protocol::fetch::{
    Encoded, FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse,
};

const KEY: i16 = 1;
/// Golden lines without unknown tagged fields, which our encoder gives back byte for byte.
const REQUESTS_IDENTICAL: usize = 205;
const RESPONSES_IDENTICAL: usize = 202;

const VERSIONS: std::ops::RangeInclusive<i16> = 4..=18;

/// A response whose records lie in the bytes it was read from.
type Read<'a> = FetchResponse<'a, Option<&'a [u8]>>;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// What kafka-protocol would have decoded.
fn their_request(version: i16, ours: &FetchRequest<'_>) -> TheirRequest {
    let topics = ours.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            FetchPartition::default()
                .with_partition(partition.index)
                .with_current_leader_epoch(partition.current_leader_epoch)
                .with_fetch_offset(partition.fetch_offset)
                .with_last_fetched_epoch(partition.last_fetched_epoch)
                .with_log_start_offset(partition.log_start_offset)
                .with_partition_max_bytes(partition.max_bytes)
                .with_replica_directory_id(partition.replica_directory_id)
                .with_high_watermark(partition.high_watermark)
        });
        FetchTopic::default()
            .with_topic(TopicName(text(topic.name)))
            .with_topic_id(topic.id)
            .with_partitions(partitions.collect())
    });
    let forgotten = ours.forgotten.iter().map(|topic| {
        ForgottenTopic::default()
            .with_topic(TopicName(text(topic.name)))
            .with_topic_id(topic.id)
            .with_partitions(topic.partitions.clone())
    });
    let request = TheirRequest::default()
        .with_cluster_id(ours.cluster_id.map(text))
        .with_max_wait_ms(ours.max_wait_ms)
        .with_min_bytes(ours.min_bytes)
        .with_max_bytes(ours.max_bytes)
        .with_isolation_level(ours.isolation)
        .with_session_id(ours.session_id)
        .with_session_epoch(ours.session_epoch)
        .with_topics(topics.collect())
        .with_forgotten_topics_data(forgotten.collect())
        .with_rack_id(text(ours.rack));
    if version <= 14 {
        request.with_replica_id(BrokerId(ours.replica_id))
    } else {
        let state = ReplicaState::default()
            .with_replica_id(BrokerId(ours.replica_id))
            .with_replica_epoch(ours.replica_epoch);
        request.with_replica_state(state)
    }
}

/// What kafka-protocol would have decoded.
fn their_response(ours: &Read<'_>) -> TheirResponse {
    let topics = ours.topics.iter().map(|topic| {
        FetchableTopicResponse::default()
            .with_topic(TopicName(text(topic.name)))
            .with_topic_id(topic.id)
            .with_partitions(topic.partitions.iter().map(their_row).collect())
    });
    let endpoints = ours.node_endpoints.iter().map(|endpoint| {
        NodeEndpoint::default()
            .with_node_id(BrokerId(endpoint.id))
            .with_host(text(endpoint.host))
            .with_port(endpoint.port)
            .with_rack(endpoint.rack.map(text))
    });
    TheirResponse::default()
        .with_throttle_time_ms(ours.throttle_time_ms)
        .with_error_code(ours.error)
        .with_session_id(ours.session_id)
        .with_responses(topics.collect())
        .with_node_endpoints(endpoints.collect())
}

fn their_row(row: &FetchPartitionResponse<Option<&[u8]>>) -> PartitionData {
    let aborted = row.aborted.as_ref().map(|aborted| {
        let one = |(producer, first): &(i64, i64)| {
            AbortedTransaction::default()
                .with_producer_id(ProducerId(*producer))
                .with_first_offset(*first)
        };
        aborted.iter().map(one).collect()
    });
    let (epoch, end) = row.diverging_epoch.unwrap_or((-1, -1));
    let diverging = EpochEndOffset::default().with_epoch(epoch).with_end_offset(end);
    let (id, epoch) = row.current_leader.unwrap_or((-1, -1));
    let leader = LeaderIdAndEpoch::default().with_leader_id(BrokerId(id)).with_leader_epoch(epoch);
    let (end, epoch) = row.snapshot_id.unwrap_or((-1, -1));
    PartitionData::default()
        .with_partition_index(row.index)
        .with_error_code(row.error)
        .with_high_watermark(row.high_watermark)
        .with_last_stable_offset(row.last_stable_offset)
        .with_log_start_offset(row.log_start_offset)
        .with_diverging_epoch(diverging)
        .with_current_leader(leader)
        .with_snapshot_id(SnapshotId::default().with_end_offset(end).with_epoch(epoch))
        .with_aborted_transactions(aborted)
        .with_preferred_read_replica(BrokerId(row.preferred_read_replica))
        .with_records(row.records.map(Bytes::copy_from_slice))
}

/// Takes out what our decoder passes over, and says whether there was anything.
fn strip_request(theirs: &mut TheirRequest) -> bool {
    let mut sets =
        vec![&mut theirs.unknown_tagged_fields, &mut theirs.replica_state.unknown_tagged_fields];
    for topic in &mut theirs.topics {
        sets.push(&mut topic.unknown_tagged_fields);
        sets.extend(topic.partitions.iter_mut().map(|row| &mut row.unknown_tagged_fields));
    }
    sets.extend(theirs.forgotten_topics_data.iter_mut().map(|t| &mut t.unknown_tagged_fields));
    clear_all(sets)
}

/// As [`strip_request`].
fn strip_response(theirs: &mut TheirResponse) -> bool {
    let mut sets = vec![&mut theirs.unknown_tagged_fields];
    sets.extend(theirs.node_endpoints.iter_mut().map(|node| &mut node.unknown_tagged_fields));
    for topic in &mut theirs.responses {
        sets.push(&mut topic.unknown_tagged_fields);
        for row in &mut topic.partitions {
            sets.push(&mut row.unknown_tagged_fields);
            sets.push(&mut row.diverging_epoch.unknown_tagged_fields);
            sets.push(&mut row.current_leader.unknown_tagged_fields);
            sets.push(&mut row.snapshot_id.unknown_tagged_fields);
            let aborted = row.aborted_transactions.iter_mut().flatten();
            sets.extend(aborted.map(|one| &mut one.unknown_tagged_fields));
        }
    }
    clear_all(sets)
}

/// Our decoder and kafka-protocol's agree on `body`, and our encoder gives it back. Returns the
/// bytes and whether they are those of `body`, which has no unknown tagged field then.
fn check_request(version: i16, body: &[u8]) -> (BytesMut, bool) {
    let ours = FetchRequest::decode(version, body).expect("ours");
    let mut rest = Bytes::copy_from_slice(body);
    let mut theirs = TheirRequest::decode(&mut rest, version).expect("theirs");
    let is_stripped = strip_request(&mut theirs);
    assert_eq!(their_request(version, &ours), theirs, "version {version}");

    let (mut again, mut expected) = (BytesMut::new(), BytesMut::new());
    ours.encode(version, &mut again);
    theirs.encode(&mut expected, version).expect("theirs encodes");
    assert_eq!(again, expected, "version {version}");
    assert_eq!(again == body, !is_stripped, "version {version}");
    (again, !is_stripped)
}

/// As [`check_request`]; and once more as a broker encodes, which knows only lengths.
fn check_response(version: i16, body: &[u8]) -> (BytesMut, bool) {
    let ours = Read::decode(version, body).expect("ours");
    let mut rest = Bytes::copy_from_slice(body);
    let mut theirs = TheirResponse::decode(&mut rest, version).expect("theirs");
    let is_stripped = strip_response(&mut theirs);
    assert_eq!(their_response(&ours), theirs, "version {version}");

    let rows = || ours.topics.iter().flat_map(|topic| &topic.partitions);
    let records: Vec<&[u8]> = rows().map(|row| row.records.unwrap_or_default()).collect();
    let mut encoded = Encoded::default();
    ours.encode(version, &mut encoded);
    let again = splice(&encoded, &records);
    let mut expected = BytesMut::new();
    theirs.encode(&mut expected, version).expect("theirs encodes");
    assert_eq!(again, expected, "version {version}");
    assert_eq!(again == body, !is_stripped, "version {version}");

    if rows().all(|row| row.records.is_some()) {
        let mut framed = Encoded { head: BytesMut::from(&b"frame header"[..]), gaps: Vec::new() };
        with_lengths(&ours).encode(version, &mut framed);
        assert_eq!(splice(&framed, &records)[b"frame header".len()..], again);
    }
    (again, !is_stripped)
}

/// What goes to the socket: the head, with each row's records in its gap.
fn splice(encoded: &Encoded, records: &[&[u8]]) -> BytesMut {
    assert_eq!(encoded.gaps.len(), records.len());
    let mut sent = BytesMut::new();
    let mut from = 0;
    for (gap, records) in encoded.gaps.iter().zip(records) {
        sent.extend_from_slice(&encoded.head[from..*gap]);
        sent.extend_from_slice(records);
        from = *gap;
    }
    sent.extend_from_slice(&encoded.head[from..]);
    sent
}

/// The same response with records known only by their length.
fn with_lengths<'a>(ours: &Read<'a>) -> FetchResponse<'a, u32> {
    let topics = ours.topics.iter().map(|topic| FetchTopicResponse {
        name: topic.name,
        id: topic.id,
        partitions: topic.partitions.iter().map(row_with_length).collect(),
    });
    FetchResponse {
        throttle_time_ms: ours.throttle_time_ms,
        error: ours.error,
        session_id: ours.session_id,
        topics: topics.collect(),
        node_endpoints: ours.node_endpoints.clone(),
    }
}

fn row_with_length(row: &FetchPartitionResponse<Option<&[u8]>>) -> FetchPartitionResponse<u32> {
    FetchPartitionResponse {
        index: row.index,
        error: row.error,
        high_watermark: row.high_watermark,
        last_stable_offset: row.last_stable_offset,
        log_start_offset: row.log_start_offset,
        aborted: row.aborted.clone(),
        preferred_read_replica: row.preferred_read_replica,
        diverging_epoch: row.diverging_epoch,
        current_leader: row.current_leader,
        snapshot_id: row.snapshot_id,
        records: u32::try_from(row.records.unwrap_or_default().len()).expect("short records"),
    }
}

#[test]
fn golden_requests_come_back() {
    let checked = golden::of(true, KEY).map(|line| check_request(line.version, &line.body).1);
    assert_eq!(count(checked), (300, REQUESTS_IDENTICAL));
}

#[test]
fn golden_responses_come_back() {
    let checked = golden::of(false, KEY).map(|line| check_response(line.version, &line.body).1);
    assert_eq!(count(checked), (300, RESPONSES_IDENTICAL));
}

#[test]
fn a_changed_byte_is_seen() {
    for line in golden::of(true, KEY) {
        let (body, _) = check_request(line.version, &line.body);
        changes_are_seen(&body, |a, b| {
            match (FetchRequest::decode(line.version, a), FetchRequest::decode(line.version, b)) {
                (Ok(a), Ok(b)) => a == b,
                (Err(_), _) | (_, Err(_)) => false,
            }
        });
    }
    for line in golden::of(false, KEY) {
        let (body, _) = check_response(line.version, &line.body);
        changes_are_seen(&body, |a, b| {
            match (Read::decode(line.version, a), Read::decode(line.version, b)) {
                (Ok(a), Ok(b)) => a == b,
                (Err(_), _) | (_, Err(_)) => false,
            }
        });
    }
}

#[test]
fn any_request_of_any_version_comes_back() {
    for version in VERSIONS {
        for seed in 0..100 {
            let mut body = BytesMut::new();
            let request = random_request(version, &mut Random::new(seed));
            request.encode(&mut body, version).expect("theirs encodes");
            check_request(version, &body);
        }
    }
}

#[test]
fn any_response_of_any_version_comes_back() {
    for version in VERSIONS {
        for seed in 0..100 {
            let mut body = BytesMut::new();
            let response = random_response(version, &mut Random::new(seed));
            response.encode(&mut body, version).expect("theirs encodes");
            check_response(version, &body);
        }
    }
}

fn random_request(version: i16, random: &mut Random) -> TheirRequest {
    let mut request = TheirRequest::default()
        .with_max_wait_ms(random.i32())
        .with_min_bytes(random.i32())
        .with_max_bytes(random.i32())
        .with_isolation_level(random.i8())
        .with_topics(random.several(|random| {
            let partitions = random.several(|random| random_partition(version, random));
            let topic = FetchTopic::default().with_partitions(partitions);
            match version {
                13.. => topic.with_topic_id(random.uuid()),
                _ => topic.with_topic(TopicName(random.text())),
            }
        }));
    if version >= 7 {
        request.session_id = random.i32();
        request.session_epoch = random.i32();
        request.forgotten_topics_data = random.several(|random| {
            let topic = ForgottenTopic::default().with_partitions(random.several(Random::i32));
            match version {
                13.. => topic.with_topic_id(random.uuid()),
                _ => topic.with_topic(TopicName(random.text())),
            }
        });
    }
    if version >= 11 {
        request.rack_id = random.text();
    }
    if version >= 12 {
        request.cluster_id = random.nullable_text();
    }
    if version >= 15 {
        request.replica_state = ReplicaState::default()
            .with_replica_id(BrokerId(random.i32()))
            .with_replica_epoch(random.i64());
    } else {
        request.replica_id = BrokerId(random.i32());
    }
    request
}

fn random_partition(version: i16, random: &mut Random) -> FetchPartition {
    let mut partition = FetchPartition::default()
        .with_partition(random.i32())
        .with_fetch_offset(random.i64())
        .with_partition_max_bytes(random.i32());
    if version >= 5 {
        partition.log_start_offset = random.i64();
    }
    if version >= 9 {
        partition.current_leader_epoch = random.i32();
    }
    if version >= 12 {
        partition.last_fetched_epoch = random.i32();
    }
    if version >= 17 && random.coin() {
        partition.replica_directory_id = random.uuid();
    }
    if version >= 18 && random.coin() {
        partition.high_watermark = random.i64();
    }
    partition
}

fn random_response(version: i16, random: &mut Random) -> TheirResponse {
    let topics = random.several(|random| {
        let rows = random.several(|random| random_row(version, random));
        let topic = FetchableTopicResponse::default().with_partitions(rows);
        match version {
            13.. => topic.with_topic_id(random.uuid()),
            _ => topic.with_topic(TopicName(random.text())),
        }
    });
    let mut response =
        TheirResponse::default().with_responses(topics).with_throttle_time_ms(random.i32());
    if version >= 7 {
        response.error_code = random.i16();
        response.session_id = random.i32();
    }
    if version >= 16 {
        response.node_endpoints = random.several(|random| {
            NodeEndpoint::default()
                .with_node_id(BrokerId(random.i32()))
                .with_host(random.text())
                .with_port(random.i32())
                .with_rack(random.nullable_text())
        });
    }
    response
}

fn random_row(version: i16, random: &mut Random) -> PartitionData {
    let aborted = |random: &mut Random| {
        AbortedTransaction::default()
            .with_producer_id(ProducerId(random.i64()))
            .with_first_offset(random.i64())
    };
    let mut row = PartitionData::default()
        .with_partition_index(random.i32())
        .with_error_code(random.i16())
        .with_high_watermark(random.i64())
        .with_last_stable_offset(random.i64())
        .with_aborted_transactions(random.coin().then(|| random.several(aborted)))
        .with_records(random.nullable_bytes());
    if version >= 5 {
        row.log_start_offset = random.i64();
    }
    if version >= 11 {
        row.preferred_read_replica = BrokerId(random.i32());
    }
    if version >= 12 {
        row.diverging_epoch =
            EpochEndOffset::default().with_epoch(random.i32()).with_end_offset(random.i64());
        row.current_leader = LeaderIdAndEpoch::default()
            .with_leader_id(BrokerId(random.i32()))
            .with_leader_epoch(random.i32());
        row.snapshot_id =
            SnapshotId::default().with_end_offset(random.i64()).with_epoch(random.i32());
    }
    row
}
