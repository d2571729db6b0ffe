//! DeleteRecords, v0–2. A partition forgets what is before an offset (KIP-107); −1 is its end.
//! v2: flexible.
//! Order of refusal: internal topic, existence, leadership, policy, offset.

use super::Client;
use crate::protocol::ErrorCode;
use crate::types::Offset;
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

/// Stands for the high watermark.
const TO_END: i64 = -1;

pub(super) fn handle(client: &Client, body: &DeleteRecordsRequest) -> DeleteRecordsResponse {
    let topics = body.topics.iter().map(|topic| {
        let rows = topic.partitions.iter().map(|asked| {
            let result = delete(client, &topic.name, asked.partition_index, asked.offset);
            let row =
                DeleteRecordsPartitionResult::default().with_partition_index(asked.partition_index);
            match result {
                Ok(start) => row.with_low_watermark(start.0),
                Err(code) => row.with_low_watermark(-1).with_error_code(code.code()),
            }
        });
        DeleteRecordsTopicResult::default()
            .with_name(topic.name.clone())
            .with_partitions(rows.collect())
    });
    DeleteRecordsResponse::default().with_topics(topics.collect())
}

fn delete(client: &Client, topic: &str, index: i32, to: i64) -> Result<Offset, ErrorCode> {
    if super::is_internal(topic) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let broker = &client.context.broker;
    let partition = broker.partitions.led(&broker.metadata.look(), topic, index)?;
    // What is only compacted is kept by key, not by age: its front is not to be cut.
    if !partition.config().deletes {
        return Err(ErrorCode::PolicyViolation);
    }
    let to = match to {
        TO_END => partition.high_watermark(),
        to if to < 0 => return Err(ErrorCode::OffsetOutOfRange),
        to => Offset(to),
    };
    partition.log.delete_before(to).ok_or(ErrorCode::OffsetOutOfRange)
}
