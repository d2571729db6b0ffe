//! OffsetDelete, v0. A group forgets its offsets in some partitions (KIP-496).

use super::Client;
use super::group::{by_topic, group, text, topic};
use crate::broker::coordinator::Event;
use crate::machine::group::{OffsetDelete, OffsetsDeleted, Response};
use crate::protocol::ErrorCode;
use crate::types::TopicPartition;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};

pub(super) async fn handle(client: &Client, body: OffsetDeleteRequest) -> OffsetDeleteResponse {
    let id = group(&body.group_id);
    let broker = &client.context.broker;
    let (mut refused, mut partitions) = (Vec::new(), Vec::new());
    {
        let picture = broker.metadata.look();
        for row in &body.topics {
            let known = picture.topics.get(row.name.as_str());
            for asked in &row.partitions {
                let index = asked.partition_index;
                let partition = TopicPartition::new(text(&row.name.0), index);
                if known.is_some_and(|topic| topic.partition(index).is_some()) {
                    partitions.push(partition);
                } else {
                    refused.push((partition, ErrorCode::UnknownTopicOrPartition));
                }
            }
        }
    }
    drop(body);
    let event =
        |ticket| Event::DeleteOffsets(OffsetDelete { ticket, group: id.clone(), partitions });
    match broker.groups.ask(&id, event).await {
        Ok(Response::OffsetDelete(OffsetsDeleted { error: ErrorCode::None, rows })) => {
            refused.extend(rows);
            respond(refused)
        }
        Ok(Response::OffsetDelete(deleted)) => failed(deleted.error),
        Ok(_) => failed(ErrorCode::UnknownServerError),
        Err(code) => failed(code),
    }
}

fn failed(code: ErrorCode) -> OffsetDeleteResponse {
    OffsetDeleteResponse::default().with_error_code(code.code())
}

fn respond(rows: Vec<(TopicPartition, ErrorCode)>) -> OffsetDeleteResponse {
    let topics = by_topic(rows).into_iter().map(|(name, rows)| {
        let rows = rows.into_iter().map(|(index, code)| {
            OffsetDeleteResponsePartition::default()
                .with_partition_index(index)
                .with_error_code(code.code())
        });
        OffsetDeleteResponseTopic::default().with_name(topic(&name)).with_partitions(rows.collect())
    });
    OffsetDeleteResponse::default().with_topics(topics.collect())
}
