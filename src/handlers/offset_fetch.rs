//! OffsetFetch, v1–9. How far a group has read. No commit is offset −1, never an error.
//! v2: null asks for everything, and an error for the whole. v5: leader epochs. v6: flexible.
//! v7: require_stable (KIP-447), which changes nothing without transactions.
//! v8: several groups (KIP-709). v9: member epochs (KIP-848).

use super::group::{by_topic, group, text, topic, wire};
use super::{Client, Request};
use crate::broker::coordinator::Event;
use crate::machine::group::{FetchedOffset, GroupId, OffsetFetch, Response};
use crate::protocol::ErrorCode;
use crate::types::TopicPartition;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

type Rows = Vec<(TopicPartition, Option<FetchedOffset>)>;

/// One group's part of a request.
struct Asked {
    group: GroupId,
    partitions: Option<Vec<TopicPartition>>,
}

pub(super) async fn handle(
    client: &Client,
    request: &Request,
    body: OffsetFetchRequest,
) -> OffsetFetchResponse {
    if request.version >= 8 {
        let asked: Vec<_> = body.groups.iter().map(several).collect();
        drop(body);
        let mut response = OffsetFetchResponse::default();
        for asked in asked {
            let group = asked.group.clone();
            let fetched = fetch(client, asked).await;
            response.groups.push(group_row(&group, fetched));
        }
        return response;
    }
    let asked = single(request.version, &body);
    drop(body);
    let partitions = asked.partitions.clone().unwrap_or_default();
    match fetch(client, asked).await {
        Ok(rows) => whole(request.version, rows, ErrorCode::None),
        Err(code) => {
            // Version 1 has no place for the error but the rows.
            let rows: Rows = partitions.into_iter().map(|partition| (partition, None)).collect();
            whole(request.version, rows, code)
        }
    }
}

fn single(version: i16, body: &OffsetFetchRequest) -> Asked {
    let partitions = body.topics.as_ref().map(|topics| {
        partitions(topics.iter().map(|topic| (&topic.name, topic.partition_indexes.as_slice())))
    });
    // Null means everything since version 2.
    let partitions = if version < 2 { partitions.or(Some(Vec::new())) } else { partitions };
    Asked { group: group(&body.group_id), partitions }
}

fn several(asked: &OffsetFetchRequestGroup) -> Asked {
    let partitions = asked.topics.as_ref().map(|topics| {
        partitions(topics.iter().map(|topic| (&topic.name, topic.partition_indexes.as_slice())))
    });
    Asked { group: group(&asked.group_id), partitions }
}

fn partitions<'a>(topics: impl Iterator<Item = (&'a TopicName, &'a [i32])>) -> Vec<TopicPartition> {
    let mut partitions = Vec::new();
    for (name, indexes) in topics {
        let name = text(&name.0);
        partitions.extend(indexes.iter().map(|index| TopicPartition::new(name.clone(), *index)));
    }
    partitions
}

async fn fetch(client: &Client, asked: Asked) -> Result<Rows, ErrorCode> {
    let id = asked.group.clone();
    let event = |ticket| {
        let (group, partitions) = (asked.group, asked.partitions);
        Event::Fetch(OffsetFetch { ticket, group, partitions })
    };
    match client.context.broker.groups.ask(&id, event).await? {
        Response::OffsetFetch(rows) => Ok(rows),
        _ => Err(ErrorCode::UnknownServerError),
    }
}

/// Offset, leader epoch and metadata as they are told; −1, −1 and nothing where there is no commit.
fn told(fetched: Option<FetchedOffset>) -> (i64, i32, Option<StrBytes>) {
    match fetched {
        Some(fetched) => (fetched.offset.0, fetched.leader_epoch.0, Some(wire(&fetched.metadata))),
        None => (-1, -1, Some(wire(""))),
    }
}

fn whole(version: i16, rows: Rows, code: ErrorCode) -> OffsetFetchResponse {
    let row_code = if version < 2 { code.code() } else { 0 };
    let topics = by_topic(rows).into_iter().map(|(name, rows)| {
        let rows = rows.into_iter().map(|(index, fetched)| {
            let (offset, epoch, metadata) = told(fetched);
            let mut row = OffsetFetchResponsePartition::default()
                .with_partition_index(index)
                .with_committed_offset(offset)
                .with_metadata(metadata)
                .with_error_code(row_code);
            if version >= 5 {
                row.committed_leader_epoch = epoch;
            }
            row
        });
        OffsetFetchResponseTopic::default().with_name(topic(&name)).with_partitions(rows.collect())
    });
    let mut response = OffsetFetchResponse::default().with_topics(topics.collect());
    if version >= 2 {
        response.error_code = code.code();
    }
    response
}

fn group_row(group: &str, fetched: Result<Rows, ErrorCode>) -> OffsetFetchResponseGroup {
    let answer = OffsetFetchResponseGroup::default()
        .with_group_id(kafka_protocol::messages::GroupId(wire(group)));
    let rows = match fetched {
        Ok(rows) => rows,
        Err(code) => return answer.with_error_code(code.code()),
    };
    let topics = by_topic(rows).into_iter().map(|(name, rows)| {
        let rows = rows.into_iter().map(|(index, fetched)| {
            let (offset, epoch, metadata) = told(fetched);
            OffsetFetchResponsePartitions::default()
                .with_partition_index(index)
                .with_committed_offset(offset)
                .with_committed_leader_epoch(epoch)
                .with_metadata(metadata)
        });
        OffsetFetchResponseTopics::default().with_name(topic(&name)).with_partitions(rows.collect())
    });
    answer.with_topics(topics.collect())
}
