//! What an operator may set: Kafka's names and defaults, and Ottla's own beginning with `ottla.`.

mod describe;
#[cfg(test)]
mod describe_tests;
mod dynamic;
mod layers;
mod listeners;
mod load;
mod properties;
mod report;
mod resolve;
mod shape;
mod table;
#[cfg(test)]
mod tests;
mod topic;

pub(crate) use describe::Described;
pub(crate) use dynamic::{Dynamic, Level, why_fixed};
pub(crate) use layers::Overrides;
pub use load::{ConfigError, Fault, Source, Sources, load};
pub use report::report;
pub use topic::{CompressionType, FlushBeforeAck, TimestampKind, TopicConfig};

use load::Setting;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A configuration that was read and found right.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings, with none changed while the broker runs.
    pub config: Config,
    /// What the operator should know: unknown keys, keys without effect, values that count less.
    pub warnings: Vec<String>,
    /// What was set, by key.
    set: BTreeMap<String, Setting>,
}

/// A broker's settings, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `node.id`, or `broker.id`.
    pub node_id: i32,
    /// `listeners`.
    pub listeners: Vec<Listener>,
    /// Where clients are told to connect: `advertised.listeners`, or what `listeners` says with
    /// `localhost` for every address. Port 0 is the port that was bound.
    pub advertised_listeners: Vec<Listener>,
    /// `log.dirs`, or `log.dir`.
    pub log_dirs: Vec<PathBuf>,
    /// `broker.rack`.
    pub rack: Option<String>,
    /// `ottla.http.listener`: where metrics and health are served.
    pub http_listener: Option<String>,
    /// `socket.request.max.bytes`.
    pub request_bytes_max: usize,
    /// `queued.max.request.bytes`: bytes of requests being read at once, over all connections.
    pub queued_request_bytes_max: usize,
    /// `connections.max.idle.ms`.
    pub connections_max_idle: Duration,
    /// `fetch.max.bytes`.
    pub fetch_bytes_max: u32,
    /// `max.incremental.fetch.session.cache.slots`.
    pub fetch_sessions_max: usize,
    /// `max.request.partition.size.limit`.
    pub partitions_per_description_max: usize,
    /// `auto.create.topics.enable`.
    pub auto_create_topics: bool,
    /// `delete.topic.enable`.
    pub delete_topics: bool,
    /// `num.partitions`.
    pub default_partitions: i32,
    /// `default.replication.factor`; 1 where the broker stands alone, whatever the key says.
    pub default_replication_factor: i16,
    /// `offsets.topic.num.partitions`.
    pub offsets_topic_partitions: i32,
    /// `offsets.topic.replication.factor`; 1 where the broker stands alone.
    pub offsets_topic_replication_factor: i16,
    /// `offsets.topic.segment.bytes`.
    pub offsets_topic_segment_bytes: u64,
    /// `offsets.retention.minutes`.
    pub offsets_retention: Duration,
    /// `offsets.retention.check.interval.ms`.
    pub offsets_retention_check_interval: Duration,
    /// `offsets.commit.timeout.ms`.
    pub offsets_commit_timeout: Duration,
    /// `offset.metadata.max.bytes`.
    pub offset_metadata_bytes_max: usize,
    /// `group.initial.rebalance.delay.ms`.
    pub group_initial_rebalance_delay: Duration,
    /// `group.min.session.timeout.ms`.
    pub group_min_session_timeout: Duration,
    /// `group.max.session.timeout.ms`.
    pub group_max_session_timeout: Duration,
    /// `group.max.size`.
    pub group_size_max: usize,
    /// `log.initial.task.delay.ms`.
    pub initial_task_delay: Duration,
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval: Duration,
    /// `log.flush.offset.checkpoint.interval.ms`.
    pub checkpoint_interval: Duration,
    /// `num.recovery.threads.per.data.dir`.
    pub recovery_threads: usize,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
    /// `producer.id.expiration.check.interval.ms`.
    pub producer_id_expiration_check_interval: Duration,
    /// `ottla.log.dir.reserve`: bytes kept free; `None` is the smaller of 5 % and 1 GiB.
    pub log_dir_reserve: Option<u64>,
    /// Topic settings as the broker's keys set them.
    pub topic: TopicConfig,
}

/// A place to listen at, or to be reached at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The name, as in `PLAINTEXT://…`.
    pub name: String,
    /// Empty for every address.
    pub host: String,
    /// 0 takes a free one.
    pub port: u16,
}

impl Default for Config {
    /// What `load` makes of nothing.
    fn default() -> Self {
        let (none, set) = (layers::NONE, BTreeMap::new());
        let layers = layers::Layers { broker: none, cluster: none, set: &set };
        let found = listeners::Listeners::resolve(&layers);
        resolve::build(&layers, found.opened, found.advertised)
    }
}
