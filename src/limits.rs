//! Every bound that is not a configuration key, by name, with its unit.

/// Bytes a connection may hold uncharged: a frame up to this size takes nothing from the budget.
pub(crate) const FRAME_EXEMPT_BYTES: usize = 64 * 1024;

/// Produce requests of one connection that may be begun before the first is answered.
pub(crate) const IN_FLIGHT_PER_CONNECTION: usize = 64;

/// Bytes handed to one write call; larger appends fragment the page cache's memory.
pub(crate) const WRITE_SLICE_BYTES: usize = 128 * 1024;

/// A topic's name has at most this many bytes (Kafka's own limit).
pub(crate) const TOPIC_NAME_BYTES_MAX: usize = 249;

/// Bytes that a compressed batch may hold when it has to be opened.
pub(crate) const DECOMPRESSED_BATCH_BYTES_MAX: usize = 64 << 20;
