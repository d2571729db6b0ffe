//! What handlers ask of topics: their settings, and making them when they are first used.

use super::Broker;
use crate::config::{Overrides, TopicConfig};
use crate::limits;
use crate::machine::controller::{NewTopic, Refusal, Topic};
use crate::protocol::ErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard, PoisonError};

impl Broker {
    /// Settings of a topic with these overrides, or what is wrong with them.
    pub(crate) fn topic_config(&self, overrides: &Overrides) -> Result<TopicConfig, Refusal> {
        let defaults = &self.settings.in_force().topic;
        defaults
            .with_overrides(overrides)
            .map_err(|fault| Refusal::new(ErrorCode::InvalidConfig, fault))
    }

    /// Makes a topic that a client named and nobody created, without letting the client wait. One
    /// that is being made already, or is one too many, is left to the client's next question.
    pub(crate) fn create_soon(self: &Arc<Self>, name: String) {
        {
            let mut automatic = self.automatic();
            if automatic.len() >= limits::AUTOMATIC_CREATIONS || !automatic.insert(name.clone()) {
                return;
            }
        }
        let broker = self.clone();
        tokio::spawn(async move {
            let (own, new) = (broker.clone(), name.clone());
            broker.to_the_end(async move { own.create_automatically(&new).await }).await;
            broker.automatic().remove(&name);
        });
    }

    fn automatic(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.automatic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn create_automatically(&self, name: &str) {
        match self.create_by_default(name).await {
            Ok(_) => {}
            // Somebody else was faster, which is as good.
            Err(refusal) if refusal.code == ErrorCode::TopicAlreadyExists => {}
            Err(refusal) => {
                tracing::warn!(topic = name, reason = refusal.message, "topic not created");
            }
        }
    }

    async fn create_by_default(&self, name: &str) -> Result<Arc<Topic>, Refusal> {
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
