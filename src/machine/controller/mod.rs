//! What the controller decides: whether a change of topics is allowed, and what it changes.
//! It takes the picture and returns changes; the shell writes them to the store.

mod picture;
mod topics;

pub(crate) use picture::{PartitionState, Picture, Topic};
pub(crate) use topics::{NewTopic, Refusal, plan_partitions, plan_topic};

use crate::types::TopicId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A change of the cluster's metadata, to be written whole.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// A topic is there from now on.
    CreateTopic(Arc<Topic>),
    /// A topic has partitions more: these, from `first` on.
    AddPartitions { topic: Arc<Topic>, added: Vec<PartitionState> },
    /// A topic and its data go.
    DeleteTopic(Arc<Topic>),
    /// A topic's settings are these from now on.
    SetTopicConfig { name: Arc<str>, overrides: BTreeMap<String, String> },
    /// A broker's dynamic settings are these from now on; the empty name is for all brokers.
    SetBrokerConfig { broker: String, overrides: BTreeMap<String, String> },
    /// Partitions have new leader epochs.
    SetPartitions { topic: TopicId, partitions: Vec<PartitionState> },
}
