//! Produce by hand against Kafka's bytes and against kafka-protocol's understanding of them.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    TopicProduceResponse,
};
use kafka_protocol::messages::{BrokerId, TopicName, TransactionalId};
use kafka_protocol::messages::{ProduceRequest as TheirRequest, ProduceResponse as TheirResponse};
use kafka_protocol::protocol::{Decodable as _, Encodable as _, StrBytes};

use super::random::Random;
use super::{changes_are_seen, clear_all, count, golden};
use crate::protocol::produce::{ProduceRequest, ProduceResponse};

const KEY: i16 = 0;
/// Golden lines without unknown tagged fields, which our encoder gives back byte for byte.
const REQUESTS_IDENTICAL: usize = 155;
const RESPONSES_IDENTICAL: usize = 152;

const VERSIONS: std::ops::RangeInclusive<i16> = 3..=13;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// What kafka-protocol would have decoded.
fn their_request(ours: &ProduceRequest<'_>) -> TheirRequest {
    let topics = ours.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            PartitionProduceData::default()
                .with_index(partition.index)
                .with_records(partition.records.map(Bytes::copy_from_slice))
        });
        TopicProduceData::default()
            .with_name(TopicName(text(topic.name)))
            .with_topic_id(topic.id)
            .with_partition_data(partitions.collect())
    });
    TheirRequest::default()
        .with_transactional_id(ours.transactional_id.map(|id| TransactionalId(text(id))))
        .with_acks(ours.acks)
        .with_timeout_ms(ours.timeout_ms)
        .with_topic_data(topics.collect())
}

/// What kafka-protocol would have decoded.
fn their_response(ours: &ProduceResponse<'_>) -> TheirResponse {
    let topics = ours.topics.iter().map(|topic| {
        let rows = topic.partitions.iter().map(|row| {
            let errors = row.record_errors.iter().map(|(at, message)| {
                BatchIndexAndErrorMessage::default()
                    .with_batch_index(*at)
                    .with_batch_index_error_message(message.as_deref().map(text))
            });
            let (id, epoch) = row.current_leader.unwrap_or((-1, -1));
            PartitionProduceResponse::default()
                .with_index(row.index)
                .with_error_code(row.error)
                .with_base_offset(row.base_offset)
                .with_log_append_time_ms(row.log_append_time_ms)
                .with_log_start_offset(row.log_start_offset)
                .with_record_errors(errors.collect())
                .with_error_message(row.error_message.as_deref().map(text))
                .with_current_leader(
                    LeaderIdAndEpoch::default()
                        .with_leader_id(BrokerId(id))
                        .with_leader_epoch(epoch),
                )
        });
        TopicProduceResponse::default()
            .with_name(TopicName(text(topic.name)))
            .with_topic_id(topic.id)
            .with_partition_responses(rows.collect())
    });
    let endpoints = ours.node_endpoints.iter().map(|endpoint| {
        NodeEndpoint::default()
            .with_node_id(BrokerId(endpoint.id))
            .with_host(text(endpoint.host))
            .with_port(endpoint.port)
            .with_rack(endpoint.rack.map(text))
    });
    TheirResponse::default()
        .with_responses(topics.collect())
        .with_throttle_time_ms(ours.throttle_time_ms)
        .with_node_endpoints(endpoints.collect())
}

/// Takes out what our decoder passes over, and says whether there was anything.
fn strip_request(theirs: &mut TheirRequest) -> bool {
    let mut sets = vec![&mut theirs.unknown_tagged_fields];
    for topic in &mut theirs.topic_data {
        sets.push(&mut topic.unknown_tagged_fields);
        sets.extend(topic.partition_data.iter_mut().map(|row| &mut row.unknown_tagged_fields));
    }
    clear_all(sets)
}

/// As [`strip_request`].
fn strip_response(theirs: &mut TheirResponse) -> bool {
    let mut sets = vec![&mut theirs.unknown_tagged_fields];
    sets.extend(theirs.node_endpoints.iter_mut().map(|node| &mut node.unknown_tagged_fields));
    for topic in &mut theirs.responses {
        sets.push(&mut topic.unknown_tagged_fields);
        for row in &mut topic.partition_responses {
            sets.push(&mut row.unknown_tagged_fields);
            sets.push(&mut row.current_leader.unknown_tagged_fields);
            sets.extend(row.record_errors.iter_mut().map(|error| &mut error.unknown_tagged_fields));
        }
    }
    clear_all(sets)
}

/// Our decoder and kafka-protocol's agree on `body`, and our encoder gives it back. Returns the
/// bytes and whether they are those of `body`, which has no unknown tagged field then.
fn check_request(version: i16, body: &[u8]) -> (BytesMut, bool) {
    let ours = ProduceRequest::decode(version, body).expect("ours");
    let mut rest = Bytes::copy_from_slice(body);
    let mut theirs = TheirRequest::decode(&mut rest, version).expect("theirs");
    let is_stripped = strip_request(&mut theirs);
    assert_eq!(their_request(&ours), theirs, "version {version}");

    let (mut again, mut expected) = (BytesMut::new(), BytesMut::new());
    ours.encode(version, &mut again);
    theirs.encode(&mut expected, version).expect("theirs encodes");
    assert_eq!(again, expected, "version {version}");
    assert_eq!(again == body, !is_stripped, "version {version}");
    (again, !is_stripped)
}

/// As [`check_request`].
fn check_response(version: i16, body: &[u8]) -> (BytesMut, bool) {
    let ours = ProduceResponse::decode(version, body).expect("ours");
    let mut rest = Bytes::copy_from_slice(body);
    let mut theirs = TheirResponse::decode(&mut rest, version).expect("theirs");
    let is_stripped = strip_response(&mut theirs);
    assert_eq!(their_response(&ours), theirs, "version {version}");

    let (mut again, mut expected) = (BytesMut::new(), BytesMut::new());
    ours.encode(version, &mut again);
    theirs.encode(&mut expected, version).expect("theirs encodes");
    assert_eq!(again, expected, "version {version}");
    assert_eq!(again == body, !is_stripped, "version {version}");
    (again, !is_stripped)
}

#[test]
fn golden_requests_come_back() {
    let checked = golden::of(true, KEY).map(|line| check_request(line.version, &line.body).1);
    assert_eq!(count(checked), (220, REQUESTS_IDENTICAL));
}

#[test]
fn golden_responses_come_back() {
    let checked = golden::of(false, KEY).map(|line| check_response(line.version, &line.body).1);
    assert_eq!(count(checked), (220, RESPONSES_IDENTICAL));
}

#[test]
fn a_changed_byte_is_seen() {
    for line in golden::of(true, KEY) {
        let (body, _) = check_request(line.version, &line.body);
        changes_are_seen(&body, |a, b| {
            match (ProduceRequest::decode(line.version, a), ProduceRequest::decode(line.version, b))
            {
                (Ok(a), Ok(b)) => a == b,
                (Err(_), _) | (_, Err(_)) => false,
            }
        });
    }
    for line in golden::of(false, KEY) {
        let (body, _) = check_response(line.version, &line.body);
        changes_are_seen(&body, |a, b| {
            match (
                ProduceResponse::decode(line.version, a),
                ProduceResponse::decode(line.version, b),
            ) {
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
    let topics = random.several(|random| {
        let partitions = random.several(|random| {
            PartitionProduceData::default()
                .with_index(random.i32())
                .with_records(random.nullable_bytes())
        });
        let topic = TopicProduceData::default().with_partition_data(partitions);
        match version {
            13.. => topic.with_topic_id(random.uuid()),
            _ => topic.with_name(TopicName(random.text())),
        }
    });
    TheirRequest::default()
        .with_transactional_id(random.nullable_text().map(TransactionalId))
        .with_acks(random.i16())
        .with_timeout_ms(random.i32())
        .with_topic_data(topics)
}

fn random_response(version: i16, random: &mut Random) -> TheirResponse {
    let topics = random.several(|random| {
        let rows = random.several(|random| random_row(version, random));
        let topic = TopicProduceResponse::default().with_partition_responses(rows);
        match version {
            13.. => topic.with_topic_id(random.uuid()),
            _ => topic.with_name(TopicName(random.text())),
        }
    });
    let mut response =
        TheirResponse::default().with_responses(topics).with_throttle_time_ms(random.i32());
    if version >= 10 {
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

fn random_row(version: i16, random: &mut Random) -> PartitionProduceResponse {
    let mut row = PartitionProduceResponse::default()
        .with_index(random.i32())
        .with_error_code(random.i16())
        .with_base_offset(random.i64())
        .with_log_append_time_ms(random.i64());
    if version >= 5 {
        row.log_start_offset = random.i64();
    }
    if version >= 8 {
        row.error_message = random.nullable_text();
        row.record_errors = random.several(|random| {
            BatchIndexAndErrorMessage::default()
                .with_batch_index(random.i32())
                .with_batch_index_error_message(random.nullable_text())
        });
    }
    if version >= 10 && random.coin() {
        row.current_leader = LeaderIdAndEpoch::default()
            .with_leader_id(BrokerId(random.i32()))
            .with_leader_epoch(random.i32());
    }
    row
}
