//! DescribeTopicPartitions, v0. Topics in pages of partitions (KIP-966), by name. An empty list
//! asks for all topics. A page ends at the limit, and the cursor says where the next one begins.

use super::{Client, operations};
use crate::machine::controller::{PartitionState, Picture, Topic};
use crate::protocol::ErrorCode;
use crate::types::topic_name_fault;
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::{
    BrokerId, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

pub(super) fn handle(
    client: &Client,
    body: &DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let picture = client.context.broker.picture();
    let mut names: Vec<String> = if body.topics.is_empty() {
        picture.topics.keys().map(ToString::to_string).collect()
    } else {
        body.topics.iter().map(|topic| topic.name.to_string()).collect()
    };
    names.sort_unstable();
    names.dedup();
    let (from, mut first) = match &body.cursor {
        Some(cursor) => (cursor.topic_name.to_string(), cursor.partition_index),
        None => (String::new(), 0),
    };
    names.retain(|name| *name >= from);
    let most = client.context.broker.config.partitions_per_description_max;
    let asked = usize::try_from(body.response_partition_limit).unwrap_or(0);
    let mut left = asked.clamp(1, most.max(1));
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names {
        let begin = if name == from { std::mem::take(&mut first) } else { 0 };
        if left == 0 {
            response.next_cursor = Some(cursor(&name, begin));
            break;
        }
        let (row, next) = page(&picture, &name, begin, &mut left);
        response.topics.push(row);
        if let Some(next) = next {
            response.next_cursor = Some(cursor(&name, next));
            break;
        }
    }
    response
}

fn cursor(name: &str, partition: i32) -> Cursor {
    Cursor::default()
        .with_topic_name(TopicName(StrBytes::from_string(name.to_owned())))
        .with_partition_index(partition)
}

/// A topic's partitions from `begin` on, as many as are `left`, and which is the next if any.
fn page(
    picture: &Picture,
    name: &str,
    begin: i32,
    left: &mut usize,
) -> (DescribeTopicPartitionsResponseTopic, Option<i32>) {
    let row = DescribeTopicPartitionsResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_string(name.to_owned()))))
        .with_topic_authorized_operations(operations::of_topic(true));
    let Some(topic) = picture.topics.get(name) else {
        let code = match topic_name_fault(name) {
            Some(_) => ErrorCode::InvalidTopicException,
            None => ErrorCode::UnknownTopicOrPartition,
        };
        return (row.with_error_code(code.code()), None);
    };
    let all = (0..).zip(&topic.partitions).filter(|(index, _)| *index >= begin);
    let rows: Vec<_> = all.take(*left).map(|(index, state)| partition(index, state)).collect();
    *left -= rows.len();
    let next = next_after(topic, &rows);
    let row = row
        .with_topic_id(topic.id)
        .with_is_internal(super::is_internal(name))
        .with_partitions(rows);
    (row, next)
}

fn next_after(topic: &Topic, rows: &[DescribeTopicPartitionsResponsePartition]) -> Option<i32> {
    let next = rows.last()?.partition_index + 1;
    topic.partition(next).map(|_| next)
}

fn partition(index: i32, state: &PartitionState) -> DescribeTopicPartitionsResponsePartition {
    let ids = |ids: &[crate::types::BrokerId]| ids.iter().map(|id| BrokerId(id.0)).collect();
    DescribeTopicPartitionsResponsePartition::default()
        .with_partition_index(index)
        .with_leader_id(BrokerId(state.leader.0))
        .with_leader_epoch(state.leader_epoch.0)
        .with_replica_nodes(ids(&state.replicas))
        .with_isr_nodes(ids(&state.isr))
        .with_eligible_leader_replicas(Some(Vec::new()))
        .with_last_known_elr(Some(Vec::new()))
}
