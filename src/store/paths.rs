//! The only place that knows what the paths in the store look like.

use crate::types::TopicId;

/// The cluster's id.
pub(crate) const CLUSTER_ID: &str = "/cluster/id";
/// How far producer ids are handed out.
pub(crate) const PRODUCER_IDS: &str = "/producer_ids";
/// Below it, a node for each topic's name.
pub(crate) const TOPIC_NAMES: &str = "/topics/names/";
/// Below it, a node for each topic's id.
pub(crate) const TOPIC_IDS: &str = "/topics/ids/";
/// Below it, the partitions of each topic.
pub(crate) const STATES: &str = "/state/";
/// Below it, the settings of each topic.
pub(crate) const TOPIC_CONFIGS: &str = "/config/topics/";
/// Below it, the dynamic settings of each broker; the empty name is for all.
pub(crate) const BROKER_CONFIGS: &str = "/config/brokers/";
/// Below it, what marks a topic's data for deletion.
pub(crate) const DELETED: &str = "/deleted/";
/// Partitions in one node below [`STATES`].
pub(crate) const PARTITIONS_PER_CHUNK: usize = 64;

/// The node that keeps a topic's name taken.
pub(crate) fn topic_name(name: &str) -> String {
    format!("{TOPIC_NAMES}{name}")
}

/// The node of the topic itself.
pub(crate) fn topic(id: TopicId) -> String {
    format!("{TOPIC_IDS}{}", id.simple())
}

/// The node of up to [`PARTITIONS_PER_CHUNK`] partitions.
pub(crate) fn state(id: TopicId, chunk: usize) -> String {
    format!("{STATES}{}/{chunk:06}", id.simple())
}

/// The node of a topic's settings.
pub(crate) fn topic_config(name: &str) -> String {
    format!("{TOPIC_CONFIGS}{name}")
}

/// The node of a broker's dynamic settings.
pub(crate) fn broker_config(name: &str) -> String {
    format!("{BROKER_CONFIGS}{name}")
}

/// The node that says a topic's data is to be deleted.
pub(crate) fn deleted(id: TopicId) -> String {
    format!("{DELETED}{}", id.simple())
}

/// The topic id in a path made by [`topic`], [`state`] or [`deleted`].
pub(crate) fn topic_id_in(path: &str, prefix: &str) -> Option<TopicId> {
    let rest = path.strip_prefix(prefix)?;
    TopicId::parse_str(rest.split('/').next()?).ok()
}
