//! What the coordinator is asked. One group an event: the groups of one request may live in
//! different partitions, so whoever takes the request apart also puts the answer together.
//! Times come as spans; a negative number of milliseconds on the wire is no time at all.

use super::record::{Generation, GroupId, InstanceId, MemberId};
use crate::types::{Instant, LeaderEpoch, Offset, Timestamp, TopicPartition};
use std::sync::Arc;
use std::time::Duration;

/// Names the request that waits for an answer. Each is answered exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(pub(crate) u64);

/// When an event happens: deadlines go by the first clock, records carry the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The monotonic time.
    pub(crate) now: Instant,
    /// The wall clock's time.
    pub(crate) wall: Timestamp,
}

/// JoinGroup, one attempt of one client.
#[derive(Clone, Debug)]
pub(crate) struct JoinGroup {
    /// Who waits.
    pub(crate) ticket: Ticket,
    /// The group to join.
    pub(crate) group: GroupId,
    /// The id the client was given before; empty when it has none.
    pub(crate) member_id: MemberId,
    /// Set by static members (v5+).
    pub(crate) instance_id: Option<InstanceId>,
    /// The client id of the request's header; empty when it has none.
    pub(crate) client_id: Arc<str>,
    /// Where the client connects from.
    pub(crate) client_host: Arc<str>,
    /// A text no other join ever gets, from which a member id is made (a random UUID).
    pub(crate) unique: Arc<str>,
    /// Silence after which the member is removed.
    pub(crate) session_timeout: Duration,
    /// How long a rebalance waits for it; `None` in v0, which means the session timeout
    /// (KAFKA-8653).
    pub(crate) rebalance_timeout: Option<Duration>,
    /// "consumer", "connect", …
    pub(crate) protocol_type: Arc<str>,
    /// What the client can do, best first.
    pub(crate) protocols: Vec<Protocol>,
    /// v4+: a newcomer is first given an id, to come again with it (KIP-394).
    pub(crate) takes_member_id_first: bool,
    /// v9+: a static leader that comes back may be told not to assign anew (KIP-814).
    pub(crate) can_skip_assignment: bool,
}

/// One assignor a client offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Protocol {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// What the client tells the leader under it: for consumers, the subscription.
    pub(crate) metadata: Arc<[u8]>,
}

/// SyncGroup: a member asks for its assignment, the leader brings them all.
#[derive(Clone, Debug)]
pub(crate) struct SyncGroup {
    /// Who waits.
    pub(crate) ticket: Ticket,
    /// The group.
    pub(crate) group: GroupId,
    /// The member and the rebalance it believes in.
    pub(crate) member: MemberClaim,
    /// v5+: must be the group's, if given.
    pub(crate) protocol_type: Option<Arc<str>>,
    /// v5+: must be the one agreed on, if given.
    pub(crate) protocol: Option<Arc<str>>,
    /// The leader's decision; empty from all others.
    pub(crate) assignments: Vec<(MemberId, Arc<[u8]>)>,
}

/// Who a request says it comes from.
#[derive(Clone, Debug)]
pub(crate) struct MemberClaim {
    /// The coordinator's name for it; empty when it claims none.
    pub(crate) member_id: MemberId,
    /// Its own name, if it is static.
    pub(crate) instance_id: Option<InstanceId>,
    /// The rebalance it took part in.
    pub(crate) generation: Generation,
}

/// Heartbeat.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeat {
    /// Who waits.
    pub(crate) ticket: Ticket,
    /// The group.
    pub(crate) group: GroupId,
    /// The member and the rebalance it believes in.
    pub(crate) member: MemberClaim,
}

/// LeaveGroup. Before v3 it names one member, without an instance id.
#[derive(Clone, Debug)]
pub(crate) struct LeaveGroup {
    /// Who waits.
    pub(crate) ticket: Ticket,
    /// The group.
    pub(crate) group: GroupId,
    /// Who goes.
    pub(crate) members: Vec<Leaver>,
}

/// A member that leaves, or that an administrator removes by its instance id alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaver {
    /// Empty when an administrator removes a static member.
    pub(crate) member_id: MemberId,
    /// The static member's own name.
    pub(crate) instance_id: Option<InstanceId>,
}

/// OffsetCommit. Rows of topics the broker does not know are refused before they come here.
#[derive(Clone, Debug)]
pub(crate) struct OffsetCommit {
    /// Who waits.
    pub(crate) ticket: Ticket,
    /// The group; may be empty, as old clients without a group commit so.
    pub(crate) group: GroupId,
    /// Generation −1 and an empty id from consumers outside any membership.
    pub(crate) member: MemberClaim,
    /// v2–v4: how long the client wants the offsets kept; `None` for the broker's retention.
    pub(crate) retention: Option<Duration>,
    /// v9+: an unknown group is GROUP_ID_NOT_FOUND; older clients expect ILLEGAL_GENERATION.
    pub(crate) knows_group_id_not_found: bool,
    /// What to keep.
    pub(crate) rows: Vec<OffsetToCommit>,
}

/// One position to keep.
#[derive(Clone, Debug)]
pub(crate) struct OffsetToCommit {
    /// The partition read.
    pub(crate) partition: TopicPartition,
    /// The next offset wanted.
    pub(crate) offset: Offset,
    /// v6+: of the record read last.
    pub(crate) leader_epoch: LeaderEpoch,
    /// The client's note.
    pub(crate) metadata: Option<Arc<str>>,
}

/// OffsetFetch, of one group.
#[derive(Clone, Debug)]
pub(crate) struct OffsetFetch {
    /// Who waits.
    pub(crate) ticket: Ticket,
    /// The group.
    pub(crate) group: GroupId,
    /// Which partitions; `None` for all the group has committed.
    pub(crate) partitions: Option<Vec<TopicPartition>>,
}

/// OffsetDelete.
#[derive(Clone, Debug)]
pub(crate) struct OffsetDelete {
    /// Who waits.
    pub(crate) ticket: Ticket,
    /// The group.
    pub(crate) group: GroupId,
    /// Which positions to forget.
    pub(crate) partitions: Vec<TopicPartition>,
}

/// ListGroups, as far as this partition's groups go.
#[derive(Clone, Debug)]
pub(crate) struct ListGroups {
    /// Who waits.
    pub(crate) ticket: Ticket,
    /// v4+: names of states, in any case; empty for all.
    pub(crate) states: Vec<String>,
    /// v5+: names of group types, in any case; empty for all.
    pub(crate) types: Vec<String>,
}

/// DescribeGroups, one group of it.
#[derive(Clone, Debug)]
pub(crate) struct DescribeGroup {
    /// Who waits.
    pub(crate) ticket: Ticket,
    /// The group.
    pub(crate) group: GroupId,
}

/// DeleteGroups, one group of it.
#[derive(Clone, Debug)]
pub(crate) struct DeleteGroup {
    /// Who waits.
    pub(crate) ticket: Ticket,
    /// The group.
    pub(crate) group: GroupId,
}
