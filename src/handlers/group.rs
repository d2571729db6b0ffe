//! What the handlers of group APIs share: texts of the wire as the coordinator keeps them.

use crate::machine::group::{Generation, GroupId, InstanceId, MemberClaim, MemberId};
use crate::types::TopicPartition;
use kafka_protocol::messages::{GroupId as WireGroup, TopicName};
use kafka_protocol::protocol::StrBytes;
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
    for (partition, row) in rows {
        let row = (partition.partition, row);
        match topics.iter_mut().find(|(name, _)| *name == partition.topic) {
            Some((_, rows)) => rows.push(row),
            None => topics.push((partition.topic, vec![row])),
        }
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
