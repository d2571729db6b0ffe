//! The hard state: what replaying the partition gives, and nothing else.

use super::record::{CommittedOffset, GroupId, GroupMetadata, Record};
use crate::types::TopicPartition;
use std::collections::BTreeMap;

/// Every group of the partition, as far as the log knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    groups: BTreeMap<GroupId, SavedGroup>,
}

/// One group: never both without metadata and without offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SavedGroup {
    /// None for groups that only keep offsets.
    pub(super) metadata: Option<GroupMetadata>,
    /// Its committed positions.
    pub(super) offsets: BTreeMap<TopicPartition, CommittedOffset>,
}

impl Saved {
    /// The only door to the hard state, live and at replay. Each record stands for its key alone,
    /// so records of other keys may be missing: compaction can leave any suffix (KAFKA-17306).
    pub(super) fn apply(&mut self, record: &Record) {
        match record {
            Record::GroupMetadata { group, metadata } => {
                self.entry(group).metadata = Some(metadata.clone());
            }
            Record::OffsetCommit { group, partition, committed } => {
                self.entry(group).offsets.insert(partition.clone(), committed.clone());
            }
            Record::GroupTombstone { group } => self.shrink(group, |saved| saved.metadata = None),
            Record::OffsetTombstone { group, partition } => {
                self.shrink(group, |saved| drop(saved.offsets.remove(partition)));
            }
        }
    }

    /// What is known of `group`.
    pub(super) fn get(&self, group: &str) -> Option<&SavedGroup> {
        self.groups.get(group)
    }

    /// All groups, ordered by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&GroupId, &SavedGroup)> {
        self.groups.iter()
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    fn entry(&mut self, group: &GroupId) -> &mut SavedGroup {
        self.groups.entry(group.clone()).or_default()
    }

    fn shrink(&mut self, group: &GroupId, change: impl FnOnce(&mut SavedGroup)) {
        let Some(saved) = self.groups.get_mut(group) else { return };
        change(saved);
        if saved.metadata.is_none() && saved.offsets.is_empty() {
            self.groups.remove(group);
        }
    }
}
