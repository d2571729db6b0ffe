//! CreateTopics, v2–7. v4: −1 takes the broker's numbers. v5: flexible, and tells the topic's
//! numbers and settings. v7: its id (KIP-516).
//! Every check is made with validate_only too; then nothing is made (KAFKA-13324).
//! Order of refusal, per topic: named twice, name, existence, numbers, assignment, settings.

use super::{Client, Request, respond};
use crate::broker::settings::dynamic;
use crate::machine::controller::{NewTopic, Refusal, Topic};
use crate::protocol::ErrorCode;
use crate::types::BrokerId;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use kafka_protocol::protocol::StrBytes;
use std::collections::BTreeMap;

pub(super) async fn handle(
    client: &Client,
    request: &Request,
    body: CreateTopicsRequest,
) -> CreateTopicsResponse {
    let mut response = CreateTopicsResponse::default();
    for (topic, twice) in respond::each_once(&body.topics, |topic| topic.name.clone()) {
        if twice {
            let refusal = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
            response.topics.push(refused(topic, refusal));
            continue;
        }
        let row = match create(client, topic, body.validate_only).await {
            Ok(made) => created(client, request.version, topic, &made),
            Err(refusal) => refused(topic, refusal),
        };
        response.topics.push(row);
    }
    response
}

async fn create(
    client: &Client,
    topic: &CreatableTopic,
    dry: bool,
) -> Result<std::sync::Arc<Topic>, Refusal> {
    let broker = &client.context.broker;
    let mut assignment = BTreeMap::new();
    for row in &topic.assignments {
        let replicas = row.broker_ids.iter().map(|id| BrokerId(id.0)).collect();
        if assignment.insert(row.partition_index, replicas).is_some() {
            let message = "a partition is assigned twice";
            return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        }
    }
    let mut overrides = BTreeMap::new();
    for config in &topic.configs {
        if let Some(value) = &config.value {
            overrides.insert(config.name.to_string(), value.to_string());
        }
    }
    let config = broker.topic_config(&overrides);
    let new = NewTopic {
        name: topic.name.to_string(),
        id: broker.fresh_id(),
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignment,
        overrides,
    };
    match config {
        Ok(config) => broker.controller.create_topic(new, config, dry).await,
        // What is wrong with the topic itself is said before what is wrong with its settings.
        Err(refusal) => {
            let default = broker.settings.in_force().topic.clone();
            broker.controller.create_topic(new, default, true).await?;
            Err(refusal)
        }
    }
}

fn created(
    client: &Client,
    version: i16,
    asked: &CreatableTopic,
    topic: &Topic,
) -> CreatableTopicResult {
    let row = CreatableTopicResult::default().with_name(asked.name.clone());
    if version < 5 {
        return row;
    }
    let broker = &client.context.broker;
    let (picture, node) = (broker.picture(), broker.node.to_string());
    let described =
        broker.settings.loaded().describe_topic(dynamic(&picture, &node), &topic.overrides, &[]);
    let configs = described.into_iter().map(|described| {
        CreatableTopicConfigs::default()
            .with_name(StrBytes::from_string(described.name))
            .with_value(described.value.map(StrBytes::from_string))
            .with_read_only(described.read_only)
            .with_config_source(described.source.code())
            .with_is_sensitive(described.sensitive)
    });
    let factor = topic.partitions.first().map_or(0, |first| first.replicas.len());
    row.with_topic_id(topic.id)
        .with_num_partitions(i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX))
        .with_replication_factor(i16::try_from(factor).unwrap_or(i16::MAX))
        .with_configs(Some(configs.collect()))
}

fn refused(asked: &CreatableTopic, refusal: Refusal) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(asked.name.clone())
        .with_error_code(refusal.code.code())
        .with_error_message(respond::message(refusal.message))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_configs(None)
}
