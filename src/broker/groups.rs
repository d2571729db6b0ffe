//! All group coordinators of this broker: one for each partition of `__consumer_offsets` it leads.

use super::Broker;
use super::coordinator::{Coordinator, Event, Timing};
use super::partition::Partition;
use crate::config::Config;
use crate::machine::controller::{NewTopic, Topic};
use crate::machine::group::{self, GroupMachine, Response, Ticket, partition_for_group};
use crate::protocol::ErrorCode;
use arc_swap::ArcSwap;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The topic that keeps groups and their offsets.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";
/// Coordinators by partition.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    coordinators: ArcSwap<HashMap<i32, Coordinator>>,
    /// Partitions of the offsets topic, also those that are offline: groups are spread over all.
    partition_count: AtomicI32,
    tickets: AtomicU64,
}

impl Groups {
    /// Begins a coordinator for each of these partitions, of `count` that the topic has.
    pub(crate) fn start(&self, partitions: &[Arc<Partition>], count: i32, config: &Config) {
        let mut all = HashMap::clone(&self.coordinators.load());
        for partition in partitions {
            let machine = GroupMachine::new(machine_config(config));
            let timing = Timing {
                expire_every: config.offsets_retention_check_interval,
                commit_timeout: config.offsets_commit_timeout,
            };
            let coordinator = Coordinator::start(partition.clone(), machine, timing);
            all.insert(partition.name.partition, coordinator);
        }
        self.coordinators.store(Arc::new(all));
        self.partition_count.store(count, Ordering::Release);
    }

    /// Ends all coordinators, each after what it is at.
    pub(crate) fn stop(&self) {
        self.coordinators.store(Arc::default());
    }

    /// Asks the coordinator of `group`, as soon as there is one.
    pub(crate) async fn ask(
        &self,
        group: &str,
        event: impl FnOnce(Ticket) -> Event,
    ) -> Result<Response, ErrorCode> {
        let coordinator = {
            let all = self.coordinators.load();
            let count = self.partition_count.load(Ordering::Acquire);
            if count == 0 {
                return Err(ErrorCode::NotCoordinator);
            }
            all.get(&partition_for_group(group, count)).cloned()
        };
        let coordinator = coordinator.ok_or(ErrorCode::NotCoordinator)?;
        let ticket = self.next_ticket();
        coordinator.ask(ticket, event(ticket)).await
    }

    /// Asks every coordinator the same.
    pub(crate) async fn ask_all(
        &self,
        event: impl Fn(Ticket) -> Event,
    ) -> Result<Vec<Response>, ErrorCode> {
        let all = self.coordinators.load_full();
        let mut responses = Vec::new();
        for coordinator in all.values() {
            let ticket = self.next_ticket();
            responses.push(coordinator.ask(ticket, event(ticket)).await?);
        }
        Ok(responses)
    }

    /// Has every group forget its offsets in topics that are gone.
    pub(crate) async fn topics_deleted(&self, topics: &BTreeSet<Arc<str>>) {
        for coordinator in self.coordinators.load_full().values() {
            coordinator.tell(Event::TopicsDeleted(topics.clone())).await;
        }
    }

    fn next_ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed))
    }
}

fn machine_config(config: &Config) -> group::Config {
    group::Config {
        group_min_session_timeout: config.group_min_session_timeout,
        group_max_session_timeout: config.group_max_session_timeout,
        group_max_size: config.group_size_max,
        initial_rebalance_delay: config.group_initial_rebalance_delay,
        offsets_retention: config.offsets_retention,
        offset_metadata_max_bytes: config.offset_metadata_bytes_max,
    }
}

impl Broker {
    /// Makes the offsets topic when there is none yet.
    pub(crate) async fn ensure_offsets_topic(&self) -> Result<(), ErrorCode> {
        if self.metadata.look().topics.contains_key(OFFSETS_TOPIC) {
            return Ok(());
        }
        let overrides = BTreeMap::from(
            [
                ("cleanup.policy", "compact".to_owned()),
                ("compression.type", "producer".to_owned()),
                ("segment.bytes", self.config.offsets_topic_segment_bytes.to_string()),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        );
        let new = NewTopic {
            name: OFFSETS_TOPIC.to_owned(),
            id: self.fresh_id(),
            partitions: self.config.offsets_topic_partitions,
            replication_factor: self.config.offsets_topic_replication_factor,
            assignment: BTreeMap::new(),
            overrides,
        };
        let config = self.topic_config(&new.overrides).map_err(|refusal| refusal.code)?;
        match self.controller.create_topic(new, config, false).await {
            Ok(topic) => self.start_coordinators(&topic),
            // Another request made it, and starts its coordinators.
            Err(refusal) if refusal.code == ErrorCode::TopicAlreadyExists => {}
            Err(_) => return Err(ErrorCode::CoordinatorNotAvailable),
        }
        Ok(())
    }

    /// Begins the coordinators of the offsets topic's partitions that are open here.
    pub(super) fn start_coordinators(&self, topic: &Topic) {
        let count = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        let open = (0..count).filter_map(|index| self.partitions.get(OFFSETS_TOPIC, index));
        self.groups.start(&open.collect::<Vec<_>>(), count, &self.config);
    }
}
