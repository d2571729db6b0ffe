//! What the handlers of group APIs share: texts of the wire as the coordinator keeps them.

use crate::machine::group::Generation;
use crate::machine::group::{GroupId, InstanceId, MemberClaim, MemberId};
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
