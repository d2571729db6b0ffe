//! What may be set for group coordinators.

use std::time::Duration;

/// Keys beginning with `group.` and `offsets.`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.min.session.timeout.ms`.
    pub min_session_timeout: Duration,
    /// `group.max.session.timeout.ms`.
    pub max_session_timeout: Duration,
    /// `group.max.size`.
    pub max_size: usize,
    /// `group.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay: Duration,
    /// `offsets.retention.minutes`.
    pub offsets_retention: Duration,
    /// `offsets.retention.check.interval.ms`.
    pub offsets_retention_check_interval: Duration,
    /// `offsets.commit.timeout.ms`.
    pub offsets_commit_timeout: Duration,
    /// `offset.metadata.max.bytes`.
    pub offset_metadata_max_bytes: usize,
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self {
            min_session_timeout: Duration::from_secs(6),
            max_session_timeout: Duration::from_secs(1_800),
            max_size: i32::MAX as usize,
            initial_rebalance_delay: Duration::from_secs(3),
            offsets_retention: Duration::from_secs(10_080 * 60),
            offsets_retention_check_interval: Duration::from_secs(600),
            offsets_commit_timeout: Duration::from_secs(5),
            offset_metadata_max_bytes: 4_096,
        }
    }
}
