//! OffsetCommit, v2–9. A group keeps how far it has read.
//! v2–4: a retention time. v6: leader epochs (KIP-320). v7: static members (KIP-345). v8: flexible.
//! v9: GROUP_ID_NOT_FOUND for unknown groups, STALE_MEMBER_EPOCH for KIP-848 members.
//! Topics and partitions that do not exist are refused by row, the others are kept; the refused
//! rows come first.

use super::group::{by_topic, claim, group, text, topic};
use super::{Client, Request};
use crate::broker::coordinator::Event;
use crate::machine::group::{OffsetCommit, OffsetToCommit, Response};
use crate::protocol::ErrorCode;
use crate::types::{LeaderEpoch, Offset, TopicPartition};
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};
use std::sync::Arc;
use std::time::Duration;

type Rows = Vec<(TopicPartition, ErrorCode)>;

pub(super) async fn handle(
    client: &Client,
    request: &Request,
    body: OffsetCommitRequest,
) -> OffsetCommitResponse {
    let (mut answered, wanted) = sort(client, &body);
    if wanted.is_empty() {
        return respond(answered);
    }
    let id = group(&body.group_id);
    let member =
        claim(&body.member_id, body.group_instance_id.as_ref(), body.generation_id_or_member_epoch);
    let retention = u64::try_from(body.retention_time_ms).ok().map(Duration::from_millis);
    drop(body);
    let asked: Vec<_> = wanted.iter().map(|row| row.partition.clone()).collect();
    let event = |ticket| {
        Event::Commit(OffsetCommit {
            ticket,
            group: id.clone(),
            member,
            retention,
            knows_group_id_not_found: request.version >= 9,
            rows: wanted,
        })
    };
    match client.context.broker.groups.ask(&id, event).await {
        Ok(Response::OffsetCommit(rows)) => answered.extend(rows),
        Ok(_) => answered.extend(asked.into_iter().map(|at| (at, ErrorCode::UnknownServerError))),
        Err(code) => answered.extend(asked.into_iter().map(|at| (at, code))),
    }
    respond(answered)
}

/// Rows that are refused at once, and those for the coordinator.
fn sort(client: &Client, body: &OffsetCommitRequest) -> (Rows, Vec<OffsetToCommit>) {
    let picture = client.context.broker.metadata.look();
    let (mut refused, mut wanted) = (Vec::new(), Vec::new());
    for row in &body.topics {
        let known = picture.topics.get(row.name.as_str());
        let name: Arc<str> = known.map_or_else(|| text(&row.name.0), |topic| topic.name.clone());
        for asked in &row.partitions {
            let partition = TopicPartition::new(name.clone(), asked.partition_index);
            let exists =
                known.is_some_and(|topic| topic.partition(asked.partition_index).is_some());
            if !exists {
                refused.push((partition, ErrorCode::UnknownTopicOrPartition));
                continue;
            }
            wanted.push(OffsetToCommit {
                partition,
                offset: Offset(asked.committed_offset),
                leader_epoch: LeaderEpoch(asked.committed_leader_epoch),
                metadata: asked.committed_metadata.as_ref().map(text),
            });
        }
    }
    (refused, wanted)
}

fn respond(rows: Rows) -> OffsetCommitResponse {
    let topics = by_topic(rows).into_iter().map(|(name, rows)| {
        let rows = rows.into_iter().map(|(index, code)| {
            OffsetCommitResponsePartition::default()
                .with_partition_index(index)
                .with_error_code(code.code())
        });
        OffsetCommitResponseTopic::default().with_name(topic(&name)).with_partitions(rows.collect())
    });
    OffsetCommitResponse::default().with_topics(topics.collect())
}
