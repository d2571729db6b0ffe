//! ElectLeaders, v0–2. The preferred replica leads again (KIP-183), or one outside the ISR does
//! (KIP-460). v1: the kind of election. v2: flexible.
//! Where one broker has everything, it leads everything: no election is needed. Null asks for all
//! partitions, of which only those where something was done are told.

use super::{Client, Request};
use crate::protocol::ErrorCode;
use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse};
use kafka_protocol::protocol::StrBytes;

const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;

pub(super) fn handle(
    client: &Client,
    request: &Request,
    body: &ElectLeadersRequest,
) -> ElectLeadersResponse {
    let mut response = ElectLeadersResponse::default();
    if request.version >= 1 && !matches!(body.election_type, PREFERRED | UNCLEAN) {
        response.error_code = ErrorCode::InvalidRequest.code();
        return response;
    }
    let picture = client.context.broker.metadata.look();
    for topic in body.topic_partitions.iter().flatten() {
        let known = picture.topics.get(topic.topic.as_str());
        let rows = topic.partitions.iter().map(|index| {
            let (code, message) = match known.and_then(|topic| topic.partition(*index)) {
                None => (ErrorCode::UnknownTopicOrPartition, "No such topic or partition."),
                Some(_) => (ErrorCode::ElectionNotNeeded, "The preferred replica leads already."),
            };
            PartitionResult::default()
                .with_partition_id(*index)
                .with_error_code(code.code())
                .with_error_message(Some(StrBytes::from_static_str(message)))
        });
        response.replica_election_results.push(
            ReplicaElectionResult::default()
                .with_topic(topic.topic.clone())
                .with_partition_result(rows.collect()),
        );
    }
    response
}
