//! OffsetCommit, v2–v9, OffsetFetch, v1–v9, and OffsetDelete, v0: the positions a group keeps.
//! v2–v4 of the commit may set an end; v7 of the fetch may ask for stable offsets only.
//! Order of refusal: unknown group, member, generation, rebalance, then each row's note. The group
//! name may be empty: clients older than groups commit so, and still read what they committed.

use super::classic::{Group, Phase};
use super::event::{MemberClaim, Moment, OffsetCommit, OffsetDelete, OffsetFetch, OffsetToCommit};
use super::record::{CommittedOffset, Record};
use super::response::{Effect, FetchedOffset, OffsetsDeleted, Response};
use super::turn::{Purpose, Turn};
use super::{Config, GroupMachine};
use crate::limits;
use crate::protocol::ErrorCode;
use crate::types::{LeaderEpoch, Timestamp, TopicPartition};

impl GroupMachine {
    /// A member, or a consumer outside any membership, commits.
    pub(crate) fn handle_offset_commit(
        &mut self,
        at: Moment,
        commit: OffsetCommit,
        effects: &mut Vec<Effect>,
    ) {
        if let Err(error) = self.check_commit(&commit) {
            let rows = commit.rows.into_iter().map(|row| (row.partition, error)).collect();
            let response = Response::OffsetCommit(rows);
            return effects.push(Effect::Reply { ticket: commit.ticket, response });
        }
        let (groups, mut turn) = self.begin(at, effects);
        if let Some(group) = groups.get(&commit.group) {
            // Whoever may commit is alive.
            group.touch(&commit.member.member_id, &mut turn);
        }
        commit.keep(&mut turn);
    }

    fn check_commit(&self, commit: &OffsetCommit) -> Result<(), ErrorCode> {
        if let Some(group) = self.groups.get(&commit.group) {
            return group.check_commit(&commit.member);
        }
        match (self.saved.get(&commit.group), commit.member.generation.is_none()) {
            (Some(_), true) => Ok(()),
            // It keeps offsets only, so it has no members.
            (Some(_), false) => Err(ErrorCode::UnknownMemberId),
            (None, true) if commit.group.len() > limits::GROUP_TEXT_BYTES_MAX => {
                Err(ErrorCode::InvalidGroupId)
            }
            (None, true) if self.group_count() >= limits::GROUPS_PER_PARTITION_MAX => {
                Err(ErrorCode::PolicyViolation)
            }
            (None, true) => Ok(()),
            (None, false) if commit.knows_group_id_not_found => Err(ErrorCode::GroupIdNotFound),
            (None, false) => Err(ErrorCode::IllegalGeneration),
        }
    }

    /// Somebody asks where a group stands. An unknown group has no positions, which is no error.
    pub(crate) fn handle_offset_fetch(
        &mut self,
        _at: Moment,
        fetch: OffsetFetch,
        effects: &mut Vec<Effect>,
    ) {
        let offsets = self.saved.get(&fetch.group).map(|saved| &saved.offsets);
        let rows = match fetch.partitions {
            Some(partitions) => {
                let read = |partition: TopicPartition| {
                    let committed = offsets.and_then(|offsets| offsets.get(&partition));
                    (partition, committed.map(FetchedOffset::from))
                };
                partitions.into_iter().map(read).collect()
            }
            None => offsets
                .into_iter()
                .flatten()
                .map(|(partition, committed)| (partition.clone(), Some(committed.into())))
                .collect(),
        };
        effects.push(Effect::Reply { ticket: fetch.ticket, response: Response::OffsetFetch(rows) });
    }

    /// An administrator has a group forget positions.
    pub(crate) fn handle_offset_delete(
        &mut self,
        at: Moment,
        delete: OffsetDelete,
        effects: &mut Vec<Effect>,
    ) {
        let OffsetDelete { ticket, group: id, partitions } = delete;
        let group = self.groups.get(&id);
        let saved = self.saved.get(&id);
        // Consumers say what they read, so the rest may go; of others nothing is known.
        let busy = group.is_some_and(|g| !matches!(g.phase, Phase::Empty) && !g.is_of_consumers());
        let refused = match (group.is_none() && saved.is_none(), busy) {
            (true, _) => Some(ErrorCode::GroupIdNotFound),
            (false, true) => Some(ErrorCode::NonEmptyGroup),
            (false, false) => None,
        };
        if let Some(error) = refused {
            let response = Response::OffsetDelete(OffsetsDeleted { error, rows: Vec::new() });
            return effects.push(Effect::Reply { ticket, response });
        }
        let mut records = Vec::new();
        let mut rows = Vec::with_capacity(partitions.len());
        for partition in partitions {
            if group.is_some_and(|group| group.is_subscribed_to(&partition.topic)) {
                rows.push((partition, ErrorCode::GroupSubscribedToTopic));
                continue;
            }
            if saved.is_some_and(|saved| saved.offsets.contains_key(&partition)) {
                let group = id.clone();
                records.push(Record::OffsetTombstone { group, partition: partition.clone() });
            }
            rows.push((partition, ErrorCode::None));
        }
        let (_, mut turn) = self.begin(at, effects);
        if records.is_empty() {
            let done = OffsetsDeleted { error: ErrorCode::None, rows };
            return turn.reply(ticket, Response::OffsetDelete(done));
        }
        turn.append(records, Purpose::Forget { ticket, rows });
    }
}

impl OffsetCommit {
    /// Has the rows written that can be kept.
    fn keep(self, turn: &mut Turn<'_>) {
        let expires_at = self.retention.map(|span| {
            let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
            Timestamp(turn.at.wall.0.saturating_add(millis))
        });
        let mut records = Vec::with_capacity(self.rows.len());
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in self.rows {
            let error = row.check(turn.config);
            if error == ErrorCode::None {
                records.push(Record::OffsetCommit {
                    group: self.group.clone(),
                    partition: row.partition.clone(),
                    committed: CommittedOffset {
                        offset: row.offset,
                        // No version of the record has room for both.
                        leader_epoch: match expires_at {
                            Some(_) => LeaderEpoch::UNKNOWN,
                            None => row.leader_epoch,
                        },
                        metadata: row.metadata.unwrap_or_default(),
                        committed_at: turn.at.wall,
                        expires_at,
                    },
                });
            }
            rows.push((row.partition, error));
        }
        if records.is_empty() {
            return turn.reply(self.ticket, Response::OffsetCommit(rows));
        }
        turn.append(records, Purpose::Commit { ticket: self.ticket, rows });
    }
}

impl OffsetToCommit {
    /// The note's limit counts as Java counts, in UTF-16 units.
    fn check(&self, config: &Config) -> ErrorCode {
        let note = self.metadata.as_deref().unwrap_or_default();
        let units = note.encode_utf16().count();
        let fits =
            units <= config.offset_metadata_max_bytes && note.len() <= limits::GROUP_TEXT_BYTES_MAX;
        if fits { ErrorCode::None } else { ErrorCode::OffsetMetadataTooLarge }
    }
}

impl Group {
    /// Whether the sender may commit. During a rebalance the last generation may still commit what
    /// it has read, until the next has begun; then it is told to join again rather than that it is
    /// unknown (KAFKA-8487).
    fn check_commit(&self, claim: &MemberClaim) -> Result<(), ErrorCode> {
        if matches!(self.phase, Phase::Empty) && claim.generation.is_none() {
            return Ok(());
        }
        // The empty id of a consumer outside the group is nobody's (KAFKA-14201).
        self.members.check(&claim.member_id, claim.instance_id.as_deref())?;
        if claim.generation != self.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        match self.phase {
            Phase::Completing { .. } => Err(ErrorCode::RebalanceInProgress),
            Phase::Empty | Phase::Preparing { .. } | Phase::Stable { .. } => Ok(()),
        }
    }
}

impl From<&CommittedOffset> for FetchedOffset {
    fn from(committed: &CommittedOffset) -> Self {
        Self {
            offset: committed.offset,
            leader_epoch: committed.leader_epoch,
            metadata: committed.metadata.clone(),
        }
    }
}
