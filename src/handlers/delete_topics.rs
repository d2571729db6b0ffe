//! DeleteTopics, v1–6. Topics go, with their data and every group's offsets in them.
//! v4: flexible. v5: an error message. v6: topics by id (KIP-516).
//! Order of refusal: deletion disabled, named twice, existence.

use super::{Client, Request, respond};
use crate::machine::controller::{Refusal, Topic};
use crate::protocol::ErrorCode;
use crate::types::TopicId;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A topic as the request names it.
type Named = (Option<TopicName>, TopicId);

pub(super) async fn handle(
    client: &Client,
    request: &Request,
    body: DeleteTopicsRequest,
) -> DeleteTopicsResponse {
    let named: Vec<Named> = if request.version >= 6 {
        body.topics.into_iter().map(|topic| (topic.name, topic.topic_id)).collect()
    } else {
        body.topic_names.into_iter().map(|name| (Some(name), TopicId::nil())).collect()
    };
    let mut deleted = BTreeSet::new();
    let mut response = DeleteTopicsResponse::default();
    for (topic, twice) in respond::each_once(&named, Named::clone) {
        let result = if twice {
            Err(Refusal::new(ErrorCode::InvalidRequest, "The topic is named twice."))
        } else {
            delete(client, request.version, topic).await
        };
        let row = DeletableTopicResult::default().with_name(topic.0.clone()).with_topic_id(topic.1);
        response.responses.push(match result {
            Ok(topic) => {
                let name = TopicName(StrBytes::from_string(topic.name.to_string()));
                deleted.insert(topic.name.clone());
                let id = if request.version >= 6 { topic.id } else { TopicId::nil() };
                row.with_name(Some(name)).with_topic_id(id)
            }
            Err(refusal) => refused(request.version, row, refusal),
        });
    }
    if !deleted.is_empty() {
        client.context.broker.groups.topics_deleted(&deleted).await;
    }
    response
}

fn refused(version: i16, row: DeletableTopicResult, refusal: Refusal) -> DeletableTopicResult {
    let row = row.with_error_code(refusal.code.code());
    if version < 5 {
        return row;
    }
    row.with_error_message(respond::message(refusal.message))
}

async fn delete(client: &Client, version: i16, named: &Named) -> Result<Arc<Topic>, Refusal> {
    let broker = &client.context.broker;
    if !broker.config.delete_topics {
        let code = match version {
            ..3 => ErrorCode::InvalidRequest,
            3.. => ErrorCode::TopicDeletionDisabled,
        };
        return Err(Refusal::new(code, "Topic deletion is disabled."));
    }
    let picture = broker.picture();
    let topic = match named {
        (Some(name), id) if id.is_nil() => picture.topics.get(name.as_str()).ok_or_else(|| {
            let message = "This server does not host this topic-partition.";
            Refusal::new(ErrorCode::UnknownTopicOrPartition, message)
        })?,
        (None, id) => picture.by_id.get(id).ok_or_else(|| {
            Refusal::new(ErrorCode::UnknownTopicId, "This server does not host this topic ID.")
        })?,
        (Some(_), _) => {
            let message = "A topic is named by its name or by its id, not by both.";
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
    };
    broker.controller.delete_topic(topic.id, broker.fresh_id()).await?;
    Ok(topic.clone())
}
