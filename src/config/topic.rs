//! What may be set for each topic.

use super::table::{self, Effect};
use std::collections::BTreeMap;

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
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
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
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            flush_before_ack: FlushBeforeAck::AcksAll,
            strict_validation: false,
        }
    }
}

impl TopicConfig {
    /// These settings with a topic's own over them.
    ///
    /// # Errors
    /// What is wrong with one of those, in Kafka's words.
    pub fn with_overrides(&self, overrides: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut config = self.clone();
        for (name, value) in overrides {
            let Some(key) = table::topic_key(name) else {
                return Err(format!("Unknown topic config name: {name}"));
            };
            let printed = key.shape.canonical(name, value)?;
            match key.effect {
                Effect::Refused(reason) if key.shape.default != Some(&printed) => {
                    return Err(format!(
                        "Invalid value {value} for configuration {name}: {reason}"
                    ));
                }
                Effect::Honoured | Effect::Ignored(_) | Effect::Refused(_) => {}
            }
            config.set(name, &printed);
        }
        config.check_together()?;
        Ok(config)
    }

    /// Checks what each value by itself does not show.
    pub(super) fn check_together(&self) -> Result<(), String> {
        let (min, max) = (self.min_compaction_lag_ms, self.max_compaction_lag_ms);
        if min > max {
            return Err(format!(
                "conflict topic config setting min.compaction.lag.ms ({min}) > \
                 max.compaction.lag.ms ({max})"
            ));
        }
        Ok(())
    }

    /// Sets one setting to a value that the table has checked and printed.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        match name {
            "cleanup.policy" => {
                let policies = super::shape::split_list(value);
                self.deletes = policies.contains(&"delete");
                self.compacts = policies.contains(&"compact");
            }
            "compression.type" => self.compression = compression(value),
            "compression.gzip.level" => self.gzip_level = number(name, value),
            "compression.zstd.level" => self.zstd_level = number(name, value),
            "file.delete.delay.ms" => self.file_delete_delay_ms = number(name, value),
            "flush.messages" => self.flush_messages = number(name, value),
            "flush.ms" => self.flush_ms = number(name, value),
            "index.interval.bytes" => self.index_interval_bytes = number(name, value),
            "max.message.bytes" => self.message_bytes_max = number(name, value),
            "message.timestamp.type" => self.timestamp_type = timestamp_kind(value),
            "message.timestamp.before.max.ms" => {
                self.timestamp_before_max_ms = number(name, value);
            }
            "message.timestamp.after.max.ms" => self.timestamp_after_max_ms = number(name, value),
            "min.insync.replicas" => self.min_insync_replicas = number(name, value),
            "min.compaction.lag.ms" => self.min_compaction_lag_ms = number(name, value),
            "max.compaction.lag.ms" => self.max_compaction_lag_ms = number(name, value),
            "retention.bytes" => self.retention_bytes = number(name, value),
            "retention.ms" => self.retention_ms = number(name, value),
            "segment.bytes" => self.segment_bytes = number(name, value),
            "segment.index.bytes" => self.segment_index_bytes = number(name, value),
            "segment.jitter.ms" => self.segment_jitter_ms = number(name, value),
            "segment.ms" => self.segment_ms = number(name, value),
            "ottla.flush.before.ack" => self.flush_before_ack = flush_before_ack(value),
            "ottla.record.validation" => self.strict_validation = value == "strict",
            // The rest of the table has no effect yet.
            _ => {}
        }
    }
}

/// A number that the table has checked.
fn number<T: std::str::FromStr>(name: &str, value: &str) -> T {
    value.parse().unwrap_or_else(|_| panic!("the table bounds {name}"))
}

fn compression(word: &str) -> CompressionType {
    match word {
        "uncompressed" => CompressionType::None,
        "gzip" => CompressionType::Gzip,
        "snappy" => CompressionType::Snappy,
        "lz4" => CompressionType::Lz4,
        "zstd" => CompressionType::Zstd,
        _ => CompressionType::Producer,
    }
}

fn timestamp_kind(word: &str) -> TimestampKind {
    if word == "LogAppendTime" { TimestampKind::LogAppendTime } else { TimestampKind::CreateTime }
}

fn flush_before_ack(word: &str) -> FlushBeforeAck {
    if word == "never" { FlushBeforeAck::Never } else { FlushBeforeAck::AcksAll }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<TopicConfig, String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        TopicConfig::default().with_overrides(&pairs.collect())
    }

    /// Each line was tried on Kafka 4.4.0, which says the same.
    #[test]
    fn wrong_settings_are_refused_in_kafkas_words() {
        for (name, value, reason) in [
            ("retention.ms", "abc", "Not a number of type LONG"),
            ("retention.ms", "-2", "Value must be at least -1"),
            ("flush.messages", "0", "Value must be at least 1"),
            ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
            ("compression.zstd.level", "23", "Value must be no more than 22"),
            ("cleanup.policy", "foo", "String must be one of: compact, delete"),
            ("preallocate", "maybe", "Expected value to be either true or false"),
            ("min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
            ("min.compaction.lag.ms", "-1", "Value must be at least 0"),
            ("max.compaction.lag.ms", "0", "Value must be at least 1"),
            (
                "message.timestamp.type",
                "createtime",
                "String must be one of: CreateTime, LogAppendTime",
            ),
            ("max.message.bytes", "3000000000", "Not a number of type INT"),
            ("segment.bytes", "", "Not a number of type INT"),
            ("min.insync.replicas", "0", "Value must be at least 1"),
            ("segment.ms", "0", "Value must be at least 1"),
        ] {
            let said = format!("Invalid value {value} for configuration {name}: {reason}");
            assert_eq!(with(&[(name, value)]), Err(said));
        }
        let said = with(&[("message.timestamp.type", "createtime")]).unwrap_err();
        assert!(said.ends_with("String must be one of: CreateTime, LogAppendTime"), "{said}");
        for unknown in ["no.such.key", "message.format.version", "log.retention.ms"] {
            let said = format!("Unknown topic config name: {unknown}");
            assert_eq!(with(&[(unknown, "1")]), Err(said));
        }
        assert_eq!(
            with(&[("min.compaction.lag.ms", "1000"), ("max.compaction.lag.ms", "10")])
                .unwrap_err(),
            "conflict topic config setting min.compaction.lag.ms (1000) > \
             max.compaction.lag.ms (10)"
        );
    }

    #[test]
    fn tiered_storage_is_refused_and_turning_it_off_is_not() {
        let said = "Invalid value true for configuration remote.storage.enable: tiered storage is \
                    not built yet";
        assert_eq!(with(&[("remote.storage.enable", "true")]).unwrap_err(), said);
        assert_eq!(with(&[("remote.storage.enable", "FALSE")]), Ok(TopicConfig::default()));
    }

    #[test]
    fn policies_are_a_list() {
        let of = |value: &str| {
            let config = with(&[("cleanup.policy", value)]).unwrap();
            (config.deletes, config.compacts)
        };
        assert_eq!(of("delete"), (true, false));
        assert_eq!(of("compact"), (false, true));
        assert_eq!(of(" compact , delete,delete "), (true, true));
        assert_eq!(of(""), (false, false));
    }

    #[test]
    fn every_setting_with_an_effect_takes_it() {
        let base = TopicConfig::default();
        let words = [
            ("cleanup.policy", "compact"),
            ("compression.type", "zstd"),
            ("message.timestamp.type", "LogAppendTime"),
            ("ottla.flush.before.ack", "never"),
            ("ottla.record.validation", "strict"),
        ];
        let honoured = table::topic_keys().filter(|key| key.effect == Effect::Honoured);
        for name in honoured.map(|key| key.name) {
            let word = words.iter().find(|(word, _)| *word == name).map(|(_, value)| *value);
            // 14 is the least that `segment.bytes` takes, 9 the most of `compression.gzip.level`.
            let number = if name == "compression.gzip.level" { "9" } else { "14" };
            let config = with(&[(name, word.unwrap_or(number))]).unwrap();
            assert_ne!(config, base, "{name}");
        }
        assert_eq!(with(&[("segment.bytes", " 14 ")]).unwrap().segment_bytes, 14);
        assert_eq!(with(&[("retention.ms", "-1")]).unwrap().retention_ms, -1);
    }
}
