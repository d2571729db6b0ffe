//! What handlers ask of topics: their settings, and making them when they are first used.

use super::Broker;
use crate::config::{Overrides, TopicConfig};
use crate::machine::controller::{NewTopic, Refusal, Topic};
use crate::protocol::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Broker {
    /// Settings of a topic with these overrides, or what is wrong with them.
    pub(crate) fn topic_config(&self, overrides: &Overrides) -> Result<TopicConfig, Refusal> {
        let defaults = &self.settings.in_force().topic;
        defaults
            .with_overrides(overrides)
            .map_err(|fault| Refusal::new(ErrorCode::InvalidConfig, fault))
    }

    /// Makes a topic that a client named and nobody created, without letting the client wait.
    pub(crate) fn create_soon(self: &Arc<Self>, name: String) {
        let broker = self.clone();
        tokio::spawn(async move {
            match broker.create_automatically(&name).await {
                Ok(_) => {}
                // Somebody else was faster, which is as good.
                Err(refusal) if refusal.code == ErrorCode::TopicAlreadyExists => {}
                Err(refusal) => {
                    tracing::warn!(topic = name, reason = refusal.message, "topic not created");
                }
            }
        });
    }

    async fn create_automatically(&self, name: &str) -> Result<Arc<Topic>, Refusal> {
        let (partitions, overrides) = (-1, BTreeMap::new());
        let new = NewTopic {
            name: name.to_owned(),
            id: self.fresh_id(),
            partitions,
            replication_factor: -1,
            assignment: BTreeMap::new(),
            overrides,
        };
        let config = self.topic_config(&new.overrides)?;
        self.controller.create_topic(new, config, false).await
    }
}
