//! ListPartitionReassignments, v0. Which partitions are moving (KIP-455): none, where one broker
//! has everything.

use kafka_protocol::messages::ListPartitionReassignmentsResponse;

pub(super) fn handle() -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse::default()
}
