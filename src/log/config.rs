//! The settings of one log, already resolved from the topic and the broker.

/// Kafka's topic settings that concern the log itself; sizes in bytes, times in milliseconds,
/// −1 where Kafka says −1 for "no limit".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogConfig {
    /// `segment.bytes`
    pub(crate) segment_bytes: u64,
    /// `segment.ms`
    pub(crate) segment_ms: i64,
    /// `segment.jitter.ms`
    pub(crate) segment_jitter_ms: i64,
    /// `segment.index.bytes`
    pub(crate) segment_index_bytes: usize,
    /// `index.interval.bytes`
    pub(crate) index_interval_bytes: u64,
    /// `retention.ms`, only with `cleanup.policy=delete`
    pub(crate) retention_ms: i64,
    /// `retention.bytes`, only with `cleanup.policy=delete`
    pub(crate) retention_bytes: i64,
    /// Whether `cleanup.policy` has `delete`.
    pub(crate) deletes: bool,
    /// Whether `cleanup.policy` has `compact`: offsets may then be missing between batches.
    pub(crate) compacts: bool,
    /// `file.delete.delay.ms`
    pub(crate) file_delete_delay_ms: u64,
    /// `flush.messages`
    pub(crate) flush_messages: u64,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 604_800_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: 604_800_000,
            retention_bytes: -1,
            deletes: true,
            compacts: false,
            file_delete_delay_ms: 60_000,
            flush_messages: i64::MAX.cast_unsigned(),
        }
    }
}
