//! Offsets that nobody will ask for again: expired (KIP-211), or of topics that are gone.
//!
//! Retention counts from the time the group became empty, or from the commit where that is later,
//! or the group never had members, or still reads other topics. It never counts while a group
//! rebalances, nor for what its members read.

use super::classic::{Group, Phase};
use super::event::Moment;
use super::record::{CommittedOffset, Record};
use super::response::Effect;
use super::saved::SavedGroup;
use super::turn::Purpose;
use super::{Config, GroupMachine};
use crate::limits;
use crate::types::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// From when the retention of an offset counts.
enum RetentionFrom {
    Commit,
    Time(Timestamp),
    Never,
}

impl GroupMachine {
    /// The retention check's time has come. Groups without members and offsets end with it.
    pub(crate) fn handle_expire_offsets(&mut self, at: Moment, effects: &mut Vec<Effect>) {
        let mut records = Vec::new();
        for (id, saved) in self.saved.iter() {
            let group = self.groups.get(id);
            let before = records.len();
            let expired = |topic: &str, committed: &CommittedOffset| {
                has_expired(group, topic, committed, (at.wall, &self.config))
            };
            for (partition, committed) in &saved.offsets {
                if expired(&partition.topic, committed) {
                    let (group, partition) = (id.clone(), partition.clone());
                    records.push(Record::OffsetTombstone { group, partition });
                }
            }
            let all_gone = records.len() - before == saved.offsets.len();
            records.extend(self.end_or_mend(group, saved, all_gone));
        }
        self.append_in_parts(at, records, effects);
        for id in self.groups.keys().cloned().collect::<Vec<_>>() {
            self.forget_if_idle(&id);
        }
    }

    /// What the log lacks of a group: its end, or that it became empty, where writing that was
    /// refused.
    fn end_or_mend(
        &self,
        group: Option<&Group>,
        saved: &SavedGroup,
        all_gone: bool,
    ) -> Option<Record> {
        let group = group?;
        if group.is_idle() && all_gone {
            return saved
                .metadata
                .as_ref()
                .map(|_| Record::GroupTombstone { group: group.id.clone() });
        }
        let stale = group.differs_from(saved.metadata.as_ref());
        stale.then(|| group.to_record(|member| member.assignment.clone()))
    }

    /// Topics were deleted: their offsets must not greet a topic made again under the same name.
    pub(crate) fn handle_topics_deleted(
        &mut self,
        at: Moment,
        topics: &BTreeSet<Arc<str>>,
        effects: &mut Vec<Effect>,
    ) {
        let mut records = Vec::new();
        for (id, saved) in self.saved.iter() {
            let of_these = saved.offsets.keys().filter(|of| topics.contains(&of.topic));
            records.extend(of_these.map(|partition| Record::OffsetTombstone {
                group: id.clone(),
                partition: partition.clone(),
            }));
        }
        self.append_in_parts(at, records, effects);
    }

    fn append_in_parts(&mut self, at: Moment, records: Vec<Record>, effects: &mut Vec<Effect>) {
        let (_, mut turn) = self.begin(at, effects);
        for part in records.chunks(limits::GROUP_TOMBSTONES_PER_APPEND) {
            turn.append(part.to_vec(), Purpose::Background);
        }
    }
}

fn has_expired(
    group: Option<&Group>,
    topic: &str,
    committed: &CommittedOffset,
    (wall, config): (Timestamp, &Config),
) -> bool {
    let from = match group.map_or(RetentionFrom::Commit, |group| group.retention_from(topic)) {
        RetentionFrom::Never => return false,
        RetentionFrom::Commit => committed.committed_at,
        // An administrator may set positions of a group that was long empty.
        RetentionFrom::Time(since) => since.max(committed.committed_at),
    };
    if let Some(end) = committed.expires_at {
        return wall >= end;
    }
    let retention = i64::try_from(config.offsets_retention.as_millis()).unwrap_or(i64::MAX);
    wall.0.saturating_sub(from.0) >= retention
}

impl Group {
    fn retention_from(&self, topic: &str) -> RetentionFrom {
        match self.phase {
            // It had members once; before version 2 the log did not keep until when.
            Phase::Empty if self.protocol_type.is_some() => {
                self.state_since.map_or(RetentionFrom::Commit, RetentionFrom::Time)
            }
            Phase::Empty => RetentionFrom::Commit,
            Phase::Stable { .. } if self.knows_subscriptions() && !self.is_subscribed_to(topic) => {
                RetentionFrom::Commit
            }
            Phase::Preparing { .. } | Phase::Completing { .. } | Phase::Stable { .. } => {
                RetentionFrom::Never
            }
        }
    }
}
