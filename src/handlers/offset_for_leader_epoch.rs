//! OffsetForLeaderEpoch, v2–4. Where a leader epoch ended, so that a client can tell whether what
//! it read is still there (KIP-320). v3: the asking replica. v4: flexible.
//! An epoch that is not known is answered with −1 and −1.
//! Order of refusal: existence, leadership, leader epoch.

use super::Client;
use crate::protocol::ErrorCode;
use crate::types::{LeaderEpoch, Offset};
use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

pub(super) fn handle(
    client: &Client,
    body: &OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let topics = body.topics.iter().map(|topic| {
        let rows = topic.partitions.iter().map(|asked| {
            let row = EpochEndOffset::default()
                .with_partition(asked.partition)
                .with_leader_epoch(-1)
                .with_end_offset(-1);
            match find(client, &topic.topic, asked) {
                Ok(Some((epoch, end))) => row.with_leader_epoch(epoch.0).with_end_offset(end.0),
                Ok(None) => row,
                Err(code) => row.with_error_code(code.code()),
            }
        });
        OffsetForLeaderTopicResult::default()
            .with_topic(topic.topic.clone())
            .with_partitions(rows.collect())
    });
    OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
}

fn find(
    client: &Client,
    topic: &str,
    asked: &OffsetForLeaderPartition,
) -> Result<Option<(LeaderEpoch, Offset)>, ErrorCode> {
    let broker = &client.context.broker;
    let partition = broker.partitions.led(&broker.metadata.look(), topic, asked.partition)?;
    partition.check_epoch(asked.current_leader_epoch)?;
    Ok(partition.end_of_epoch(LeaderEpoch(asked.leader_epoch)))
}
