//! Metadata, v0–13. Brokers, topics, and who leads their partitions.
//! v1: null asks for all topics (v0: the empty list). v4: allow_auto_topic_creation. v5: offline
//! replicas. v7: leader epochs. v9: flexible. v10: topic ids. v12: topics asked for by id.
//! v8–10: authorized operations of the cluster; topics' until 13. v13: an error for the whole.
//! A topic that may be created automatically is, and is answered UNKNOWN_TOPIC_OR_PARTITION this
//! time; the client asks again.

use super::{Client, Request, operations, respond};
use crate::machine::controller::{Picture, Topic};
use crate::protocol::ErrorCode;
use crate::types::topic_name_fault;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{self, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::sync::Arc;

pub(super) fn handle(
    client: &Arc<Client>,
    request: &Request,
    body: MetadataRequest,
) -> MetadataResponse {
    let broker = &client.context.broker;
    let picture = broker.picture();
    let asked = match body.topics {
        Some(topics) if request.version > 0 || !topics.is_empty() => Some(topics),
        Some(_) | None => None,
    };
    let operations = operations::of_topic(body.include_topic_authorized_operations);
    let topics = match asked {
        None => picture.topics.values().map(|topic| row(topic, operations)).collect(),
        Some(asked) => {
            let create = request.version < 4 || body.allow_auto_topic_creation;
            // Each once, as in Kafka: an answer is far longer than a question.
            respond::each_once(&asked, |topic| (topic.name.clone(), topic.topic_id))
                .map(|(topic, _)| answer(client, &picture, topic, (create, operations)))
                .collect()
        }
    };
    let node = messages::BrokerId(broker.node.0);
    let mut response = MetadataResponse::default().with_topics(topics);
    response.cluster_authorized_operations =
        operations::of_cluster(body.include_cluster_authorized_operations);
    if let Some(endpoint) = broker.endpoint(&client.context.listener) {
        let mut row = MetadataResponseBroker::default()
            .with_node_id(node)
            .with_host(StrBytes::from_string(endpoint.host.clone()))
            .with_port(i32::from(endpoint.port));
        if request.version >= 1 {
            row.rack = broker.config.rack.clone().map(StrBytes::from_string);
        }
        response.brokers.push(row);
    }
    if request.version >= 1 {
        response.controller_id = node;
    }
    if request.version >= 2 {
        response.cluster_id = Some(StrBytes::from_string(broker.cluster_id.clone()));
    }
    response
}

fn answer(
    client: &Arc<Client>,
    picture: &Picture,
    asked: &MetadataRequestTopic,
    (create, operations): (bool, i32),
) -> MetadataResponseTopic {
    // Clients that ask by id send no name or an empty one.
    let name = match &asked.name {
        Some(name) if asked.topic_id.is_nil() => name,
        Some(_) | None => {
            return match picture.by_id.get(&asked.topic_id) {
                Some(topic) => row(topic, operations),
                None => failed(None, ErrorCode::UnknownTopicId).with_topic_id(asked.topic_id),
            };
        }
    };
    if let Some(topic) = picture.topics.get(name.as_str()) {
        return row(topic, operations);
    }
    if topic_name_fault(name).is_some() {
        return failed(Some(name.clone()), ErrorCode::InvalidTopicException);
    }
    if create && client.context.broker.config.auto_create_topics {
        client.context.broker.create_soon(name.to_string());
    }
    failed(Some(name.clone()), ErrorCode::UnknownTopicOrPartition)
}

fn failed(name: Option<TopicName>, code: ErrorCode) -> MetadataResponseTopic {
    MetadataResponseTopic::default()
        .with_error_code(code.code())
        .with_name(name)
        .with_topic_authorized_operations(operations::NOT_ASKED)
}

fn row(topic: &Topic, operations: i32) -> MetadataResponseTopic {
    let partitions = (0..).zip(&topic.partitions).map(|(index, state)| {
        let ids = |ids: &[crate::types::BrokerId]| {
            ids.iter().map(|id| messages::BrokerId(id.0)).collect()
        };
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(messages::BrokerId(state.leader.0))
            .with_leader_epoch(state.leader_epoch.0)
            .with_replica_nodes(ids(&state.replicas))
            .with_isr_nodes(ids(&state.isr))
    });
    MetadataResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_string(topic.name.to_string()))))
        .with_topic_id(topic.id)
        .with_is_internal(super::is_internal(&topic.name))
        .with_partitions(partitions.collect())
        .with_topic_authorized_operations(operations)
}
