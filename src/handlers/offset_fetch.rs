//! OffsetFetch, v1–9. How far a group has read. No commit is offset −1, never an error.
//! v2: null asks for everything, and an error for the whole. v5: leader epochs. v6: flexible.
//! v7: require_stable (KIP-447), which changes nothing without transactions.
//! v8: several groups (KIP-709). v9: member epochs (KIP-848).

use super::group::{group, text, topic, wire};
use super::{Client, Request};
use crate::broker::coordinator::Event;
use crate::machine::group::{FetchedOffset, GroupId, OffsetFetch, Response};
use crate::protocol::ErrorCode;
use crate::types::TopicPartition;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse};

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
        Ok(rows) => whole(request.version, &rows, ErrorCode::None),
        Err(code) => {
            // Version 1 has no place for the error but the rows.
            let rows: Rows = partitions.into_iter().map(|partition| (partition, None)).collect();
            whole(request.version, &rows, code)
        }
    }
}

fn single(version: i16, body: &OffsetFetchRequest) -> Asked {
    let partitions = body.topics.as_ref().map(|topics| {
        let rows = topics.iter().flat_map(|topic| {
            let name = text(&topic.name.0);
            topic
                .partition_indexes
                .iter()
                .map(move |index| TopicPartition::new(name.clone(), *index))
        });
        rows.collect()
    });
    // Null means everything since version 2.
    let partitions = if version < 2 { partitions.or(Some(Vec::new())) } else { partitions };
    Asked { group: group(&body.group_id), partitions }
}

fn several(
    asked: &kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup,
) -> Asked {
    let partitions = asked.topics.as_ref().map(|topics| {
        let rows = topics.iter().flat_map(|topic| {
            let name = text(&topic.name.0);
            topic
                .partition_indexes
                .iter()
                .map(move |index| TopicPartition::new(name.clone(), *index))
        });
        rows.collect()
    });
    Asked { group: group(&asked.group_id), partitions }
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

fn whole(version: i16, rows: &Rows, code: ErrorCode) -> OffsetFetchResponse {
    let mut response = OffsetFetchResponse::default();
    if version >= 2 {
        response.error_code = code.code();
    }
    for (partition, fetched) in rows {
        let mut row = OffsetFetchResponsePartition::default()
            .with_partition_index(partition.partition)
            .with_committed_offset(-1)
            .with_metadata(Some(wire("")))
            .with_error_code(if version < 2 { code.code() } else { 0 });
        if let Some(fetched) = fetched {
            row.committed_offset = fetched.offset.0;
            row.metadata = Some(wire(&fetched.metadata));
        }
        if version >= 5 {
            row.committed_leader_epoch = fetched.as_ref().map_or(-1, |f| f.leader_epoch.0);
        }
        match response.topics.iter_mut().find(|place| *place.name.0 == *partition.topic) {
            Some(place) => place.partitions.push(row),
            None => response.topics.push(
                OffsetFetchResponseTopic::default()
                    .with_name(topic(&partition.topic))
                    .with_partitions(vec![row]),
            ),
        }
    }
    response
}

fn group_row(group: &str, fetched: Result<Rows, ErrorCode>) -> OffsetFetchResponseGroup {
    let mut answer = OffsetFetchResponseGroup::default()
        .with_group_id(kafka_protocol::messages::GroupId(wire(group)));
    let rows = match fetched {
        Ok(rows) => rows,
        Err(code) => return answer.with_error_code(code.code()),
    };
    for (partition, fetched) in rows {
        let row = OffsetFetchResponsePartitions::default()
            .with_partition_index(partition.partition)
            .with_committed_offset(fetched.as_ref().map_or(-1, |fetched| fetched.offset.0))
            .with_committed_leader_epoch(fetched.as_ref().map_or(-1, |f| f.leader_epoch.0))
            .with_metadata(Some(wire(fetched.as_ref().map_or("", |fetched| &fetched.metadata))));
        match answer.topics.iter_mut().find(|place| *place.name.0 == *partition.topic) {
            Some(place) => place.partitions.push(row),
            None => answer.topics.push(
                OffsetFetchResponseTopics::default()
                    .with_name(topic(&partition.topic))
                    .with_partitions(vec![row]),
            ),
        }
    }
    answer
}
