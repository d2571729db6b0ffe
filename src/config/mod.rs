//! What an operator may set: Kafka's names and defaults, and Ottla's own beginning with `ottla.`.

mod group;
mod topic;

pub use group::GroupConfig;
pub use topic::{CompressionType, FlushBeforeAck, TimestampKind, TopicConfig};

use std::path::PathBuf;
use std::time::Duration;

/// A broker's settings, resolved.
#[derive(Clone, Debug)]
pub struct Config {
    /// `node.id`, or `broker.id`.
    pub node_id: i32,
    /// `listeners`.
    pub listeners: Vec<Listener>,
    /// `advertised.listeners`, or what `listeners` says.
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
    /// `auto.create.topics.enable`.
    pub auto_create_topics: bool,
    /// `delete.topic.enable`.
    pub delete_topics: bool,
    /// `num.partitions`.
    pub default_partitions: i32,
    /// `default.replication.factor`.
    pub default_replication_factor: i16,
    /// `offsets.topic.num.partitions`.
    pub offsets_topic_partitions: i32,
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval: Duration,
    /// `log.flush.offset.checkpoint.interval.ms`.
    pub checkpoint_interval: Duration,
    /// `num.recovery.threads.per.data.dir`.
    pub recovery_threads: usize,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
    /// `ottla.log.dir.reserve`: bytes kept free; `None` is the smaller of 5 % and 1 GiB.
    pub log_dir_reserve: Option<u64>,
    /// Keys of group coordinators.
    pub groups: GroupConfig,
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
    fn default() -> Self {
        let listener = Listener { name: "PLAINTEXT".to_owned(), host: String::new(), port: 9092 };
        Self {
            node_id: 1,
            listeners: vec![listener],
            advertised_listeners: Vec::new(),
            log_dirs: vec![PathBuf::from("data")],
            rack: None,
            http_listener: Some("127.0.0.1:9404".to_owned()),
            request_bytes_max: 104_857_600,
            queued_request_bytes_max: 512 << 20,
            connections_max_idle: Duration::from_secs(600),
            fetch_bytes_max: 57_671_680,
            fetch_sessions_max: 1_000,
            auto_create_topics: true,
            delete_topics: true,
            default_partitions: 1,
            default_replication_factor: 1,
            offsets_topic_partitions: 50,
            retention_check_interval: Duration::from_secs(300),
            checkpoint_interval: Duration::from_secs(60),
            recovery_threads: 2,
            producer_id_expiration_ms: 86_400_000,
            log_dir_reserve: None,
            groups: GroupConfig::default(),
            topic: TopicConfig::default(),
        }
    }
}
