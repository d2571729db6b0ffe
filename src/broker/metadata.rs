//! The cluster's metadata on this broker: read from the store at the start, replaced whole after
//! every change.

use crate::machine::controller::{Change, PartitionState, Picture, Topic};
use crate::store::{MetadataStore, Op, StoreError, paths};
use crate::types::{BrokerId, LeaderEpoch, TopicId};
use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Settings by key, as a topic or broker overrides them.
type Overrides = BTreeMap<String, String>;

/// The picture in force. Readers see one whole; the controller alone replaces it.
#[derive(Debug)]
pub(crate) struct Metadata {
    picture: ArcSwap<Picture>,
}

/// What `/topics/ids/<id>` holds.
#[derive(Debug, Serialize, Deserialize)]
struct TopicNode {
    name: String,
    partitions: usize,
}

/// One partition of what `/state/<id>/<chunk>` holds.
#[derive(Debug, Serialize, Deserialize)]
struct StateNode {
    replicas: Vec<i32>,
    leader: i32,
    leader_epoch: i32,
    partition_epoch: i32,
    isr: Vec<i32>,
}

impl Metadata {
    /// Reads all of it.
    pub(crate) fn load(
        store: &dyn MetadataStore,
        brokers: Vec<BrokerId>,
    ) -> Result<Self, StoreError> {
        let mut picture = Picture { brokers, ..Picture::default() };
        let mut states: BTreeMap<TopicId, Vec<PartitionState>> = BTreeMap::new();
        for (path, node) in store.subtree(paths::STATES)? {
            let Some(id) = paths::topic_id_in(&path, paths::STATES) else { continue };
            let chunk: Vec<StateNode> = parse(&path, &node.data)?;
            states.entry(id).or_default().extend(chunk.into_iter().map(PartitionState::from));
        }
        let mut configs: BTreeMap<String, Overrides> = named(store, paths::TOPIC_CONFIGS)?;
        for (path, node) in store.subtree(paths::TOPIC_IDS)? {
            let Some(id) = paths::topic_id_in(&path, paths::TOPIC_IDS) else { continue };
            let topic: TopicNode = parse(&path, &node.data)?;
            let partitions = states.remove(&id).unwrap_or_default();
            if partitions.len() != topic.partitions {
                let message = format!("{path}: {} partitions have a state", partitions.len());
                return Err(StoreError::Failed(message));
            }
            let overrides = configs.remove(&topic.name).unwrap_or_default();
            picture.put(Arc::new(Topic { name: topic.name.into(), id, partitions, overrides }));
        }
        picture.broker_configs = named(store, paths::BROKER_CONFIGS)?;
        Ok(Self { picture: ArcSwap::from_pointee(picture) })
    }

    /// The picture now.
    pub(crate) fn picture(&self) -> Arc<Picture> {
        self.picture.load_full()
    }

    /// The picture now, for a look that ends before anything else is done.
    pub(crate) fn look(&self) -> arc_swap::Guard<Arc<Picture>> {
        self.picture.load()
    }

    /// Takes over changes that the store has. Only the controller calls it, one at a time.
    pub(super) fn apply(&self, changes: &[Change]) -> Arc<Picture> {
        let mut picture = Picture::clone(&self.picture.load());
        for change in changes {
            apply(&mut picture, change);
        }
        let picture = Arc::new(picture);
        self.picture.store(picture.clone());
        picture
    }
}

fn named(
    store: &dyn MetadataStore,
    prefix: &str,
) -> Result<BTreeMap<String, Overrides>, StoreError> {
    let mut all = BTreeMap::new();
    for (path, node) in store.subtree(prefix)? {
        let name = path.strip_prefix(prefix).unwrap_or_default().to_owned();
        all.insert(name, parse(&path, &node.data)?);
    }
    Ok(all)
}

fn parse<'a, T: Deserialize<'a>>(path: &str, data: &'a [u8]) -> Result<T, StoreError> {
    serde_json::from_slice(data).map_err(|error| StoreError::Failed(format!("{path}: {error}")))
}

fn apply(picture: &mut Picture, change: &Change) {
    match change {
        Change::CreateTopic(topic) => picture.put(topic.clone()),
        Change::DeleteTopic(topic) => picture.remove(topic.id),
        Change::AddPartitions { topic, added } => {
            let mut more = Topic::clone(topic);
            more.partitions.extend(added.iter().cloned());
            picture.put(Arc::new(more));
        }
        Change::SetTopicConfig { name, overrides } => {
            if let Some(topic) = picture.topics.get(name) {
                let overrides = overrides.clone();
                picture.put(Arc::new(Topic { overrides, ..Topic::clone(topic) }));
            }
        }
        Change::SetBrokerConfig { broker, overrides } => {
            picture.broker_configs.insert(broker.clone(), overrides.clone());
        }
        Change::SetPartitions { topic, partitions } => {
            if let Some(topic) = picture.by_id.get(topic) {
                let partitions = partitions.clone();
                picture.put(Arc::new(Topic { partitions, ..Topic::clone(topic) }));
            }
        }
    }
}

/// What a change writes. `picture` is the one before the change.
pub(super) fn operations(picture: &Picture, change: &Change) -> Vec<Op> {
    match change {
        Change::CreateTopic(topic) => {
            let mut ops = vec![
                Op::Create {
                    path: paths::topic_name(&topic.name),
                    data: topic.id.simple().to_string().into_bytes(),
                },
                Op::Create { path: paths::topic(topic.id), data: topic_node(topic, 0) },
            ];
            ops.extend(
                chunks(&topic.partitions)
                    .map(|(chunk, data)| Op::Create { path: paths::state(topic.id, chunk), data }),
            );
            if !topic.overrides.is_empty() {
                let path = paths::topic_config(&topic.name);
                ops.push(Op::Create { path, data: json(&topic.overrides) });
            }
            ops
        }
        Change::AddPartitions { topic, added } => {
            let mut all = topic.partitions.clone();
            all.extend(added.iter().cloned());
            let mut ops = vec![Op::Set {
                path: paths::topic(topic.id),
                data: topic_node(topic, added.len()),
                version: None,
            }];
            ops.extend(set_chunks(topic.id, topic.partitions.len(), &all));
            ops
        }
        Change::DeleteTopic(topic) => {
            let delete = |path| Op::Delete { path, version: None };
            let mut ops = vec![
                delete(paths::topic_name(&topic.name)),
                delete(paths::topic(topic.id)),
                Op::Create { path: paths::deleted(topic.id), data: topic.name.as_bytes().to_vec() },
            ];
            let states = chunks(&topic.partitions).map(|(chunk, _)| chunk);
            ops.extend(states.map(|chunk| delete(paths::state(topic.id, chunk))));
            if !topic.overrides.is_empty() {
                ops.push(delete(paths::topic_config(&topic.name)));
            }
            ops
        }
        Change::SetTopicConfig { name, overrides } => {
            let before = picture.topics.get(name).map(|topic| &topic.overrides);
            set_overrides(paths::topic_config(name), before, overrides)
        }
        Change::SetBrokerConfig { broker, overrides } => {
            let path = paths::broker_config(broker);
            let data = json(overrides);
            vec![match picture.broker_configs.get(broker) {
                Some(_) => Op::Set { path, data, version: None },
                None => Op::Create { path, data },
            }]
        }
        Change::SetPartitions { topic, partitions } => {
            set_chunks(*topic, partitions.len(), partitions).collect()
        }
    }
}

/// A topic without settings of its own has no node for them.
fn set_overrides(path: String, before: Option<&Overrides>, after: &Overrides) -> Vec<Op> {
    let had = before.is_some_and(|before| !before.is_empty());
    match (had, after.is_empty()) {
        (false, true) => Vec::new(),
        (false, false) => vec![Op::Create { path, data: json(after) }],
        (true, true) => vec![Op::Delete { path, version: None }],
        (true, false) => vec![Op::Set { path, data: json(after), version: None }],
    }
}

fn set_chunks(topic: TopicId, had: usize, all: &[PartitionState]) -> impl Iterator<Item = Op> {
    let known = had.div_ceil(paths::PARTITIONS_PER_CHUNK);
    chunks(all).map(move |(chunk, data)| {
        let path = paths::state(topic, chunk);
        if chunk < known {
            Op::Set { path, data, version: None }
        } else {
            Op::Create { path, data }
        }
    })
}

fn chunks(partitions: &[PartitionState]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    partitions.chunks(paths::PARTITIONS_PER_CHUNK).enumerate().map(|(chunk, states)| {
        let nodes: Vec<StateNode> = states.iter().map(StateNode::from).collect();
        (chunk, json(&nodes))
    })
}

fn topic_node(topic: &Topic, added: usize) -> Vec<u8> {
    let (name, partitions) = (topic.name.to_string(), topic.partitions.len() + added);
    json(&TopicNode { name, partitions })
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|_| unreachable!("maps with text keys are JSON"))
}

impl From<&PartitionState> for StateNode {
    fn from(state: &PartitionState) -> Self {
        Self {
            replicas: state.replicas.iter().map(|id| id.0).collect(),
            leader: state.leader.0,
            leader_epoch: state.leader_epoch.0,
            partition_epoch: state.partition_epoch,
            isr: state.isr.iter().map(|id| id.0).collect(),
        }
    }
}

impl From<StateNode> for PartitionState {
    fn from(node: StateNode) -> Self {
        Self {
            replicas: node.replicas.into_iter().map(BrokerId).collect(),
            leader: BrokerId(node.leader),
            leader_epoch: LeaderEpoch(node.leader_epoch),
            partition_epoch: node.partition_epoch,
            isr: node.isr.into_iter().map(BrokerId).collect(),
        }
    }
}
