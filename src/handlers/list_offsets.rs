//! ListOffsets, v1–10. Where a partition begins and ends, or where a time is in it (KIP-79).
//! v2: isolation. v4: leader epochs (KIP-320). v6: flexible. v7: −3 is the latest time (KIP-734).
//! v8: −4 is the earliest on local disk. v9: −5 is the latest in tiered storage. v10: a timeout.
//! No record as late as asked is offset −1 and time −1, no error. A partition named twice is
//! refused in both places.
//! Order of refusal: named twice, existence, leadership, leader epoch, storage.

use super::{Client, Request};
use crate::broker::partition::Partition;
use crate::protocol::ErrorCode;
use crate::types::{LeaderEpoch, Offset, Timestamp};
use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};
use std::collections::HashMap;
use std::sync::Arc;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const LATEST_TIME: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;

/// An offset with the time and epoch of its record, where there is a record.
type Found = (Timestamp, Offset, Option<LeaderEpoch>);

pub(super) async fn handle(
    client: &Arc<Client>,
    request: &Request,
    body: ListOffsetsRequest,
) -> ListOffsetsResponse {
    let client = client.clone();
    let version = request.version;
    // Finding a time may read from a disk.
    let answered = tokio::task::spawn_blocking(move || answer(&client, version, &body));
    answered.await.unwrap_or_default()
}

fn answer(client: &Client, version: i16, body: &ListOffsetsRequest) -> ListOffsetsResponse {
    let mut times: HashMap<(&str, i32), usize> = HashMap::new();
    for topic in &body.topics {
        for partition in &topic.partitions {
            *times.entry((topic.name.as_str(), partition.partition_index)).or_default() += 1;
        }
    }
    let topics = body.topics.iter().map(|topic| {
        let rows = topic.partitions.iter().map(|asked| {
            let twice = times.get(&(topic.name.as_str(), asked.partition_index)) > Some(&1);
            let found = if twice {
                Err(ErrorCode::InvalidRequest)
            } else {
                find(client, version, &topic.name, asked)
            };
            row(version, asked.partition_index, found)
        });
        ListOffsetsTopicResponse::default()
            .with_name(topic.name.clone())
            .with_partitions(rows.collect())
    });
    ListOffsetsResponse::default().with_topics(topics.collect())
}

fn find(
    client: &Client,
    version: i16,
    topic: &str,
    asked: &ListOffsetsPartition,
) -> Result<Option<Found>, ErrorCode> {
    let broker = &client.context.broker;
    let picture = broker.metadata.look();
    let partition = broker.partitions.led(&picture, topic, asked.partition_index)?;
    partition.check_epoch(asked.current_leader_epoch)?;
    match asked.timestamp {
        LATEST => {
            let end = partition.high_watermark();
            Ok(Some((Timestamp::NONE, end, Some(partition.epoch()))))
        }
        EARLIEST => Ok(Some(earliest(&partition))),
        EARLIEST_LOCAL if version >= 8 => Ok(Some(earliest(&partition))),
        LATEST_TIME if version >= 7 => {
            let found = partition.find_latest_time()?;
            Ok(found.map(|found| (found.timestamp, found.offset, Some(found.leader_epoch))))
        }
        // Nothing is tiered, so there is no such offset.
        LATEST_TIERED if version >= 9 => Ok(None),
        timestamp if timestamp < 0 => Err(ErrorCode::UnsupportedVersion),
        timestamp => {
            let found = partition.find_time(Timestamp(timestamp))?;
            Ok(found.map(|found| (found.timestamp, found.offset, Some(found.leader_epoch))))
        }
    }
}

fn earliest(partition: &Partition) -> Found {
    let start = partition.log.view().start;
    (Timestamp::NONE, start, partition.log.epoch_at(start))
}

fn row(
    version: i16,
    index: i32,
    found: Result<Option<Found>, ErrorCode>,
) -> ListOffsetsPartitionResponse {
    let mut row = ListOffsetsPartitionResponse::default()
        .with_partition_index(index)
        .with_timestamp(-1)
        .with_offset(-1);
    match found {
        Err(code) => row.error_code = code.code(),
        Ok(None) => {}
        Ok(Some((timestamp, offset, epoch))) => {
            (row.timestamp, row.offset) = (timestamp.0, offset.0);
            if version >= 4 {
                row.leader_epoch = epoch.map_or(-1, |epoch| epoch.0);
            }
        }
    }
    row
}
