//! AlterPartitionReassignments, v0. Moves partitions between brokers (KIP-455).
//! Where one broker has everything, the only assignment there can be holds already: asking for it
//! succeeds, and any other names an unknown broker.
//! Order of refusal: existence, what is cancelled, assignment.

use super::Client;
use crate::machine::controller::Picture;
use crate::protocol::ErrorCode;
use kafka_protocol::messages::alter_partition_reassignments_request::ReassignablePartition;
use kafka_protocol::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
};
use kafka_protocol::protocol::StrBytes;

pub(super) fn handle(
    client: &Client,
    body: &AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse {
    let picture = client.context.broker.metadata.look();
    let topics = body.topics.iter().map(|topic| {
        let rows = topic.partitions.iter().map(|asked| {
            let row = ReassignablePartitionResponse::default()
                .with_partition_index(asked.partition_index);
            match check(&picture, &topic.name, asked) {
                Ok(()) => row,
                Err((code, message)) => row
                    .with_error_code(code.code())
                    .with_error_message(Some(StrBytes::from_static_str(message))),
            }
        });
        ReassignableTopicResponse::default()
            .with_name(topic.name.clone())
            .with_partitions(rows.collect())
    });
    AlterPartitionReassignmentsResponse::default().with_responses(topics.collect())
}

fn check(
    picture: &Picture,
    topic: &str,
    asked: &ReassignablePartition,
) -> Result<(), (ErrorCode, &'static str)> {
    let known = picture.topics.get(topic).and_then(|topic| topic.partition(asked.partition_index));
    if known.is_none() {
        return Err((ErrorCode::UnknownTopicOrPartition, "No such topic or partition."));
    }
    let Some(replicas) = &asked.replicas else {
        return Err((ErrorCode::NoReassignmentInProgress, "No reassignment is in progress."));
    };
    let known = |id: i32| picture.brokers.iter().any(|broker| broker.0 == id);
    let mut distinct: Vec<i32> = replicas.iter().map(|id| id.0).collect();
    distinct.sort_unstable();
    distinct.dedup();
    if replicas.is_empty() || distinct.len() != replicas.len() {
        return Err((
            ErrorCode::InvalidReplicaAssignment,
            "A partition needs replicas on different brokers.",
        ));
    }
    if !distinct.into_iter().all(known) {
        return Err((
            ErrorCode::InvalidReplicaAssignment,
            "A replica is assigned to an unknown broker.",
        ));
    }
    Ok(())
}
