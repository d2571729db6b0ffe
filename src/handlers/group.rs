//! What the handlers of group APIs share: texts of the wire as the coordinator keeps them.

use crate::machine::group::{Generation, GroupId, InstanceId, MemberClaim, MemberId};
use crate::types::TopicPartition;
use kafka_protocol::messages::{GroupId as WireGroup, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::collections::HashMap;
use std::sync::Arc;

/// An owned copy, so that the frame is not kept.
pub(super) fn text(wire: &StrBytes) -> Arc<str> {
    Arc::from(wire.as_str())
}

/// A text for the wire.
pub(super) fn wire(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// A group's name.
pub(super) fn group(wire: &WireGroup) -> GroupId {
    Arc::from(wire.as_str())
}

/// A topic's name for the wire.
pub(super) fn topic(name: &str) -> TopicName {
    TopicName(wire(name))
}

/// Topics with the numbers of their partitions and what is said of each.
pub(super) type ByTopic<T> = Vec<(Arc<str>, Vec<(i32, T)>)>;

/// Rows put together by topic, in the order in which each topic comes first.
pub(super) fn by_topic<T>(rows: Vec<(TopicPartition, T)>) -> ByTopic<T> {
    let mut topics: ByTopic<T> = Vec::new();
    let mut places = HashMap::new();
    for (partition, row) in rows {
        let place = *places.entry(partition.topic.clone()).or_insert_with(|| {
            topics.push((partition.topic, Vec::new()));
            topics.len() - 1
        });
        topics[place].1.push((partition.partition, row));
    }
    topics
}

/// Who a request says it comes from.
pub(super) fn claim(
    member_id: &StrBytes,
    instance_id: Option<&StrBytes>,
    generation: i32,
) -> MemberClaim {
    let (member_id, instance_id): (MemberId, Option<InstanceId>) =
        (text(member_id), instance_id.map(text));
    MemberClaim { member_id, instance_id, generation: Generation(generation) }
}
