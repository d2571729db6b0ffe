//! DescribeProducers, v0. Which idempotent producers a partition remembers (KIP-664).
//! Order of refusal: existence, leadership.

use super::Client;
use crate::protocol::ErrorCode;
use kafka_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use kafka_protocol::messages::{DescribeProducersRequest, DescribeProducersResponse, ProducerId};
use kafka_protocol::protocol::StrBytes;

pub(super) fn handle(
    client: &Client,
    body: &DescribeProducersRequest,
) -> DescribeProducersResponse {
    let topics = body.topics.iter().map(|topic| {
        let rows = topic.partition_indexes.iter().map(|index| {
            let row = PartitionResponse::default().with_partition_index(*index);
            match producers(client, &topic.name, *index) {
                Ok(producers) => row.with_active_producers(producers),
                Err(code) => row
                    .with_error_code(code.code())
                    .with_error_message(Some(StrBytes::from_string(format!("{code:?}")))),
            }
        });
        TopicResponse::default().with_name(topic.name.clone()).with_partitions(rows.collect())
    });
    DescribeProducersResponse::default().with_topics(topics.collect())
}

fn producers(client: &Client, topic: &str, index: i32) -> Result<Vec<ProducerState>, ErrorCode> {
    let broker = &client.context.broker;
    let partition = broker.partitions.led(&broker.metadata.look(), topic, index)?;
    let rows = partition.log.producers().into_iter().map(|(id, producer)| {
        let last_sequence = producer.batches.back().map_or(-1, |last| last.last_sequence);
        ProducerState::default()
            .with_producer_id(ProducerId(id.0))
            .with_producer_epoch(i32::from(producer.epoch))
            .with_last_sequence(last_sequence)
            .with_last_timestamp(producer.last_timestamp.0)
            .with_coordinator_epoch(-1)
            .with_current_txn_start_offset(-1)
    });
    Ok(rows.collect())
}
