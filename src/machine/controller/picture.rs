//! The cluster's metadata as one immutable whole.

use crate::types::{BrokerId, LeaderEpoch, PartitionIndex, TopicId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Everything a broker knows of the cluster; replaced whole at each change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    /// By name.
    pub(crate) topics: BTreeMap<Arc<str>, Arc<Topic>>,
    /// The same topics by id.
    pub(crate) by_id: HashMap<TopicId, Arc<Topic>>,
    /// Dynamic settings by broker; the empty name holds those of all.
    pub(crate) broker_configs: BTreeMap<String, BTreeMap<String, String>>,
    /// Live brokers.
    pub(crate) brokers: Vec<BrokerId>,
}

/// A topic and its partitions, by number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    pub(crate) id: TopicId,
    pub(crate) partitions: Vec<PartitionState>,
    /// Settings that differ from the broker's.
    pub(crate) overrides: BTreeMap<String, String>,
}

/// Who has and who leads a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionState {
    /// In order of preference.
    pub(crate) replicas: Vec<BrokerId>,
    pub(crate) leader: BrokerId,
    pub(crate) leader_epoch: LeaderEpoch,
    /// Grows with every change of this entry.
    pub(crate) partition_epoch: i32,
    pub(crate) isr: Vec<BrokerId>,
}

impl Picture {
    /// Puts a topic in, or in place of its former self.
    pub(crate) fn put(&mut self, topic: Arc<Topic>) {
        self.by_id.insert(topic.id, topic.clone());
        self.topics.insert(topic.name.clone(), topic);
    }

    /// Takes a topic out.
    pub(crate) fn remove(&mut self, id: TopicId) {
        if let Some(topic) = self.by_id.remove(&id) {
            self.topics.remove(&topic.name);
        }
    }
}

impl Topic {
    /// A partition's state, if the topic has it.
    pub(crate) fn partition(&self, index: PartitionIndex) -> Option<&PartitionState> {
        self.partitions.get(usize::try_from(index).ok()?)
    }
}
