//! The one place that reads the operating system's clocks.

use crate::types::{Instant, Timestamp};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

static STARTED: OnceLock<std::time::Instant> = OnceLock::new();

/// The monotonic time since the first call in this process.
#[must_use]
#[allow(clippy::disallowed_methods, reason = "this module is the only reader of the clocks")]
pub(crate) fn now() -> Instant {
    Instant::ZERO + STARTED.get_or_init(std::time::Instant::now).elapsed()
}

/// The wall clock, in milliseconds since 1970; a clock set before that reads 0.
#[must_use]
#[allow(clippy::disallowed_methods, reason = "this module is the only reader of the clocks")]
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Waits until `deadline` on the monotonic clock.
#[allow(clippy::disallowed_methods, reason = "this module is the only one that sleeps")]
pub(crate) async fn sleep_until(deadline: Instant) {
    tokio::time::sleep(deadline.saturating_since(now())).await;
}
