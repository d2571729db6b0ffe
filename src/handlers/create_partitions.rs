//! CreatePartitions, v0–3. Topics get more partitions. v2: flexible. v3: mutation quotas.
//! One row a topic, always; validate_only makes every check and nothing else (sarama#1955).
//! Order of refusal, per topic: named twice, existence, count, assignment.

use super::{Client, respond};
use crate::broker::groups::OFFSETS_TOPIC;
use crate::machine::controller::Refusal;
use crate::protocol::ErrorCode;
use crate::types::BrokerId;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse};

pub(super) async fn handle(
    client: &Client,
    body: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let mut response = CreatePartitionsResponse::default();
    for (topic, twice) in respond::each_once(&body.topics, |topic| topic.name.clone()) {
        let result = if twice {
            Err(Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name."))
        } else {
            create(client, topic, body.validate_only).await
        };
        let row = CreatePartitionsTopicResult::default().with_name(topic.name.clone());
        response.results.push(match result {
            Ok(()) => row,
            Err(refusal) => row
                .with_error_code(refusal.code.code())
                .with_error_message(respond::message(refusal.message)),
        });
    }
    response
}

async fn create(client: &Client, topic: &CreatePartitionsTopic, dry: bool) -> Result<(), Refusal> {
    let broker = &client.context.broker;
    // A group's coordinator is told from the number of partitions: its offsets would be lost.
    if topic.name.as_str() == OFFSETS_TOPIC {
        let message = "the partitions of this internal topic cannot be added to";
        return Err(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    let overrides =
        broker.metadata.look().topics.get(topic.name.as_str()).map(|topic| topic.overrides.clone());
    let config = broker.topic_config(&overrides.unwrap_or_default())?;
    let assignment = topic.assignments.as_ref().map(|rows| {
        let replicas = rows.iter().map(|row| row.broker_ids.iter().map(|id| BrokerId(id.0)));
        replicas.map(Iterator::collect).collect()
    });
    broker.controller.create_partitions(&topic.name, topic.count, assignment, (config, dry)).await
}
