//! What the coordinator answers, and what it wants done.

use super::event::{Leaver, Ticket};
use super::record::{Generation, GroupId, InstanceId, MemberId, Record};
use crate::protocol::ErrorCode;
use crate::types::{LeaderEpoch, Offset, TopicPartition};
use std::sync::Arc;

/// What the shell has to do, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Write the records; see the contract at the head of the module.
    Append(Append),
    /// Answer a request; see the contract for when.
    Reply {
        /// Who waits.
        ticket: Ticket,
        /// What to say.
        response: Response,
    },
}

/// Records that go into the log together or not at all.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Append {
    /// Names the append when its fate is told.
    pub(crate) id: AppendId,
    /// At least one.
    pub(crate) records: Vec<Record>,
}

/// Names an append, once in a machine's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AppendId(pub(crate) u64);

/// An answer, by API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// To JoinGroup.
    JoinGroup(Joined),
    /// To SyncGroup.
    SyncGroup(Synced),
    /// To Heartbeat.
    Heartbeat(ErrorCode),
    /// To LeaveGroup.
    LeaveGroup(Left),
    /// To OffsetCommit: a code for each row, in the order asked. The response has no code of its
    /// own, so what fails as a whole fails in every row.
    OffsetCommit(Vec<(TopicPartition, ErrorCode)>),
    /// To OffsetFetch. Partitions without a commit are rows of `None`, never an error.
    OffsetFetch(Vec<(TopicPartition, Option<FetchedOffset>)>),
    /// To OffsetDelete.
    OffsetDelete(OffsetsDeleted),
    /// To ListGroups, ordered by name.
    ListGroups(Vec<ListedGroup>),
    /// To DescribeGroups. `GroupIdNotFound` is an error from v6 on; before, it is a description
    /// with state "Dead" and no error.
    DescribeGroup(Result<DescribedGroup, ErrorCode>),
    /// To DeleteGroups.
    DeleteGroup(ErrorCode),
}

impl Response {
    /// Whether the answer must wait until all records written so far are committed. Only a
    /// heartbeat need not: it tells of no state that could be lost.
    #[must_use]
    pub(crate) fn waits_for_commit(&self) -> bool {
        match self {
            Self::Heartbeat(_) => false,
            Self::JoinGroup(_)
            | Self::SyncGroup(_)
            | Self::LeaveGroup(_)
            | Self::OffsetCommit(_)
            | Self::OffsetFetch(_)
            | Self::OffsetDelete(_)
            | Self::ListGroups(_)
            | Self::DescribeGroup(_)
            | Self::DeleteGroup(_) => true,
        }
    }
}

/// The answer to a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// `None` when the member is in. With an error only `member_id` counts.
    pub(crate) error: ErrorCode,
    /// The rebalance it takes part in; −1 with an error.
    pub(crate) generation: Generation,
    /// The group's; none with an error.
    pub(crate) protocol_type: Option<Arc<str>>,
    /// The assignor agreed on; none with an error (the wire says "" before v7).
    pub(crate) protocol: Option<Arc<str>>,
    /// Who assigns; empty with an error.
    pub(crate) leader: MemberId,
    /// The leader comes back to an assignment that stands (KIP-814).
    pub(crate) skip_assignment: bool,
    /// Its own id from here on; with MEMBER_ID_REQUIRED the one to come again with.
    pub(crate) member_id: MemberId,
    /// All members, to the leader only.
    pub(crate) members: Vec<JoinedMember>,
}

/// A member, as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinedMember {
    /// Its id.
    pub(crate) member_id: MemberId,
    /// Its own name, if it is static.
    pub(crate) instance_id: Option<InstanceId>,
    /// What it said under the protocol agreed on.
    pub(crate) metadata: Arc<[u8]>,
}

/// The answer to a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Synced {
    /// With an error nothing else counts.
    pub(crate) error: ErrorCode,
    /// The group's.
    pub(crate) protocol_type: Option<Arc<str>>,
    /// The assignor agreed on.
    pub(crate) protocol: Option<Arc<str>>,
    /// What the leader gave this member; may be empty.
    pub(crate) assignment: Arc<[u8]>,
}

/// The answer to a leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// What concerns the whole request. Before v3 the wire has this code only: send it, or when it
    /// is `None` the one member's.
    pub(crate) error: ErrorCode,
    /// What became of each, in the order asked.
    pub(crate) members: Vec<(Leaver, ErrorCode)>,
}

/// A committed position, as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchedOffset {
    /// The next offset the group wants.
    pub(crate) offset: Offset,
    /// Of the record read last.
    pub(crate) leader_epoch: LeaderEpoch,
    /// The client's note.
    pub(crate) metadata: Arc<str>,
}

/// The answer to an OffsetDelete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OffsetsDeleted {
    /// What concerns the whole request; the rows are empty then.
    pub(crate) error: ErrorCode,
    /// A code for each, in the order asked.
    pub(crate) rows: Vec<(TopicPartition, ErrorCode)>,
}

/// A group, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedGroup {
    /// Its name.
    pub(crate) group: GroupId,
    /// Empty when it only keeps offsets.
    pub(crate) protocol_type: Arc<str>,
    /// Where it stands (v4+).
    pub(crate) state: GroupState,
    /// How its members are coordinated (v5+).
    pub(crate) kind: GroupKind,
}

/// A group, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedGroup {
    /// Where it stands.
    pub(crate) state: GroupState,
    /// Empty when it only keeps offsets.
    pub(crate) protocol_type: Arc<str>,
    /// The assignor agreed on; empty unless stable.
    pub(crate) protocol: Arc<str>,
    /// Ordered by id. Their bytes are empty unless the group is stable.
    pub(crate) members: Vec<DescribedMember>,
}

/// A member, as an administrator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedMember {
    /// Its id.
    pub(crate) member_id: MemberId,
    /// Its own name, if it is static (v4+).
    pub(crate) instance_id: Option<InstanceId>,
    /// Its client id.
    pub(crate) client_id: Arc<str>,
    /// Where it connects from.
    pub(crate) client_host: Arc<str>,
    /// What it said under the protocol agreed on.
    pub(crate) metadata: Arc<[u8]>,
    /// What the leader gave it.
    pub(crate) assignment: Arc<[u8]>,
}

/// Where a classic group stands. A group that is gone has no state: to clients it is "Dead".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum GroupState {
    /// No members; it may keep offsets.
    Empty,
    /// Waits for all members to join.
    PreparingRebalance,
    /// Waits for the leader's assignment.
    CompletingRebalance,
    /// Every member may work.
    Stable,
}

impl GroupState {
    /// The name on the wire.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// By which protocol a group's members are coordinated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum GroupKind {
    /// JoinGroup and SyncGroup.
    Classic,
}

impl GroupKind {
    /// The name on the wire.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
        }
    }
}
