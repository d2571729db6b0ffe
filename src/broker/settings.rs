//! Settings that change while the broker runs: what is in force, and putting changes in force.

use super::Broker;
use crate::config::{Config, Dynamic, Loaded, Overrides, TopicConfig};
use crate::machine::controller::{Picture, Topic};
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name that stands for all brokers.
pub(crate) const ALL_BROKERS: &str = "";

/// What was loaded at the start, and what it has become by dynamic settings.
#[derive(Debug)]
pub(crate) struct Settings {
    loaded: Loaded,
    in_force: ArcSwap<Config>,
}

impl Settings {
    /// The settings as loaded, with those of the picture over them.
    pub(crate) fn new(loaded: Loaded, picture: &Picture) -> Self {
        let node = loaded.config.node_id.to_string();
        let in_force = loaded.with_dynamic(dynamic(picture, &node));
        Self { loaded, in_force: ArcSwap::from_pointee(in_force) }
    }

    /// What was set at the start, for descriptions and checks.
    pub(crate) fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// What holds now.
    pub(crate) fn in_force(&self) -> arc_swap::Guard<Arc<Config>> {
        self.in_force.load()
    }

    /// A topic's settings: its own over the broker's. What the store holds although it is invalid
    /// counts nowhere.
    pub(crate) fn of_topic(&self, topic: &Topic) -> TopicConfig {
        let defaults = &self.in_force.load().topic;
        defaults.with_overrides(&topic.overrides).unwrap_or_else(|fault| {
            tracing::error!(topic = %topic.name, fault, "a stored topic setting is invalid");
            defaults.clone()
        })
    }
}

/// What is set on all brokers and on the one called `node`.
pub(crate) fn dynamic<'a>(picture: &'a Picture, node: &str) -> Dynamic<'a> {
    static NOTHING: Overrides = BTreeMap::new();
    let of = |name: &str| picture.broker_configs.get(name).unwrap_or(&NOTHING);
    Dynamic { cluster: of(ALL_BROKERS), broker: of(node) }
}

impl Broker {
    /// Puts a topic's changed settings in force.
    pub(crate) fn apply_topic_settings(&self, topic: &Topic) {
        let config = self.settings.of_topic(topic);
        for index in 0..i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX) {
            if let Some(partition) = self.partitions.get(&topic.name, index) {
                partition.configure(config.clone());
            }
        }
    }

    /// Puts the brokers' changed settings in force, for every topic.
    pub(crate) fn apply_broker_settings(&self, picture: &Picture) {
        let node = self.node.to_string();
        let config = self.settings.loaded.with_dynamic(dynamic(picture, &node));
        self.settings.in_force.store(Arc::new(config));
        picture.topics.values().for_each(|topic| self.apply_topic_settings(topic));
    }
}
