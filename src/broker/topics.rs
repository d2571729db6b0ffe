//! What handlers ask of topics: their settings, and making them when they are first used.

use super::Broker;
use super::controller::Overrides;
use crate::config::{Config, TopicConfig};
use crate::machine::controller::{NewTopic, Picture, Refusal, Topic};
use crate::protocol::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A topic's settings: its own over the broker's dynamic ones over the file's.
pub(super) fn resolve(config: &Config, _picture: &Picture, overrides: &Overrides) -> TopicConfig {
    let resolved = config.topic.with_overrides(overrides);
    resolved.unwrap_or_else(|fault| {
        tracing::error!(%fault, "a stored topic setting is invalid, the default holds");
        config.topic.clone()
    })
}

impl Broker {
    /// Settings of a topic with these overrides, or what is wrong with them.
    pub(crate) fn topic_config(&self, overrides: &Overrides) -> Result<TopicConfig, Refusal> {
        self.config
            .topic
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
