//! What a partition of `__consumer_offsets` says: the records, as the machine speaks of them.
//! Their bytes are drawn in `codec`.

use crate::types::{LeaderEpoch, Offset, Timestamp, TopicPartition};
use std::sync::Arc;
use std::time::Duration;

/// A group's name, as its members give it.
pub(crate) type GroupId = Arc<str>;

/// A member's name, made by the coordinator; a member that comes back may get a new one.
pub(crate) type MemberId = Arc<str>;

/// A static member's own name, which stays over restarts (KIP-345).
pub(crate) type InstanceId = Arc<str>;

/// The number of a group's rebalance; a request that carries an older one is fenced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Generation(pub(crate) i32);

impl Generation {
    /// What a consumer sends that uses the group only to keep its offsets.
    pub(crate) const NONE: Self = Self(-1);

    /// The generation after this one. It starts again at 0 rather than become negative, because
    /// negative generations mean "none" to the offset commit.
    #[must_use]
    pub(crate) fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(0))
    }

    /// Whether the sender claims no membership.
    #[must_use]
    pub(crate) fn is_none(self) -> bool {
        self.0 < 0
    }
}

/// One record of the partition. Key and value together; a tombstone has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// The group as of a finished rebalance, or as of its last member's leave.
    GroupMetadata {
        /// The group it describes.
        group: GroupId,
        /// All there is to know of it.
        metadata: GroupMetadata,
    },
    /// The group is no more. Its offsets have tombstones of their own.
    GroupTombstone {
        /// The group that ends.
        group: GroupId,
    },
    /// A position was committed.
    OffsetCommit {
        /// The group that committed.
        group: GroupId,
        /// The partition it reads.
        partition: TopicPartition,
        /// How far it has read.
        committed: CommittedOffset,
    },
    /// A committed position was deleted, or has expired.
    OffsetTombstone {
        /// The group that had committed.
        group: GroupId,
        /// The partition it read.
        partition: TopicPartition,
    },
}

/// A committed position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommittedOffset {
    /// The next offset the group wants.
    pub(crate) offset: Offset,
    /// The leader epoch of the record read last, or [`LeaderEpoch::UNKNOWN`] (KIP-320).
    pub(crate) leader_epoch: LeaderEpoch,
    /// The client's own note; empty when it gave none.
    pub(crate) metadata: Arc<str>,
    /// Wall time of the commit; retention counts from here for groups without members (KIP-211).
    pub(crate) committed_at: Timestamp,
    /// An end the client itself has set, as OffsetCommit v2–v4 could.
    pub(crate) expires_at: Option<Timestamp>,
}

/// A group at rest: after its leader's assignment was taken, or without members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupMetadata {
    /// "consumer", "connect", …; empty when no member ever gave one.
    pub(crate) protocol_type: Arc<str>,
    /// The rebalance this state came from.
    pub(crate) generation: Generation,
    /// The assignor all members agreed on; none without members.
    pub(crate) protocol: Option<Arc<str>>,
    /// Who made the assignment; none without members.
    pub(crate) leader: Option<MemberId>,
    /// Wall time since when the group is as it is; unknown in records before version 2.
    pub(crate) state_since: Option<Timestamp>,
    /// The members with what they were assigned, ordered by id.
    pub(crate) members: Vec<SavedMember>,
}

/// A member as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedMember {
    /// The coordinator's name for it.
    pub(crate) member_id: MemberId,
    /// Its own name, if it is static.
    pub(crate) instance_id: Option<InstanceId>,
    /// The client id its requests carry.
    pub(crate) client_id: Arc<str>,
    /// Where it connects from.
    pub(crate) client_host: Arc<str>,
    /// How long a rebalance waits for it; whole milliseconds.
    pub(crate) rebalance_timeout: Duration,
    /// How long it may be silent; whole milliseconds.
    pub(crate) session_timeout: Duration,
    /// What it said of itself for the protocol agreed on.
    pub(crate) subscription: Arc<[u8]>,
    /// What the leader gave it.
    pub(crate) assignment: Arc<[u8]>,
}

/// The partition of `__consumer_offsets` that keeps `group`: Java's `String.hashCode` over UTF-16,
/// its sign bit cleared, modulo the number of partitions. Every client and tool computes the same.
#[must_use]
pub(crate) fn partition_for_group(group: &str, partitions: i32) -> i32 {
    let hash = group
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    (hash & i32::MAX) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_fall_where_kafka_puts_them() {
        // Java: (s.hashCode() & 0x7fffffff) % 50.
        for (group, partition) in EXPECTED {
            assert_eq!(partition_for_group(group, 50), *partition, "{group}");
        }
        assert_eq!(partition_for_group("", 50), 0);
    }

    const EXPECTED: &[(&str, i32)] = &[
        ("a", 47),
        ("my-group", 36),
        ("grüppe", 36),
        ("console-consumer-12345", 6),
        ("connect-cluster", 13),
        ("😀 emoji", 47),
        // Its hash is the smallest int, which has no positive twin.
        ("polygenelubricants", 0),
        ("the quick brown fox jumps over", 4),
    ];

    #[test]
    fn a_generation_never_becomes_none() {
        assert_eq!(Generation(i32::MAX).next(), Generation(0));
        assert!(Generation::NONE.is_none());
    }
}
