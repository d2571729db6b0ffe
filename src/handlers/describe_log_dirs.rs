//! DescribeLogDirs, v1–4. The log directories and what lies in them (KIP-113).
//! v2: flexible. v3: an error for the whole. v4: total and usable bytes (KIP-827).
//! Partitions that are not here are left out. A directory that failed has an error and no rows.

use super::{Client, Request};
use crate::broker::partition::Partition;
use crate::log::LogDir;
use crate::protocol::ErrorCode;
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::sync::Arc;

pub(super) fn handle(
    client: &Client,
    request: &Request,
    body: &DescribeLogDirsRequest,
) -> DescribeLogDirsResponse {
    let broker = &client.context.broker;
    let mut wanted = broker.partitions.all();
    wanted.retain(|partition| is_wanted(body, partition));
    wanted.sort_by(|one, other| one.name.cmp(&other.name));
    let results =
        broker.partitions.dirs().iter().map(|dir| describe(request.version, dir, &wanted));
    DescribeLogDirsResponse::default().with_results(results.collect())
}

fn is_wanted(body: &DescribeLogDirsRequest, partition: &Partition) -> bool {
    body.topics.as_ref().is_none_or(|topics| {
        topics.iter().any(|topic| {
            *topic.topic.0 == *partition.name.topic
                && topic.partitions.contains(&partition.name.partition)
        })
    })
}

fn describe(version: i16, dir: &Arc<LogDir>, wanted: &[Arc<Partition>]) -> DescribeLogDirsResult {
    let path = std::path::absolute(dir.path()).unwrap_or_else(|_| dir.path().to_owned());
    let mut result = DescribeLogDirsResult::default()
        .with_log_dir(StrBytes::from_string(path.display().to_string()));
    if dir.is_offline() {
        return result.with_error_code(ErrorCode::KafkaStorageError.code());
    }
    if version >= 4
        && let Ok(space) = dir.disk().space(dir.path())
    {
        result.total_bytes = i64::try_from(space.total).unwrap_or(i64::MAX);
        result.usable_bytes = i64::try_from(space.free).unwrap_or(i64::MAX);
    }
    for partition in wanted.iter().filter(|partition| Arc::ptr_eq(&partition.dir, dir)) {
        let row = DescribeLogDirsPartition::default()
            .with_partition_index(partition.name.partition)
            .with_partition_size(i64::try_from(partition.log.size()).unwrap_or(i64::MAX));
        match result.topics.last_mut() {
            Some(topic) if *topic.name.0 == *partition.name.topic => topic.partitions.push(row),
            _ => result.topics.push(
                DescribeLogDirsTopic::default()
                    .with_name(TopicName(StrBytes::from_string(partition.name.topic.to_string())))
                    .with_partitions(vec![row]),
            ),
        }
    }
    result
}
