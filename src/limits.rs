//! Every bound that is not a configuration key, by name, with its unit.

/// Bytes a connection may hold uncharged: a frame up to this size takes nothing from the budget.
pub(crate) const FRAME_EXEMPT_BYTES: usize = 64 * 1024;

/// Produce requests of one connection that may be begun before the first is answered.
pub(crate) const IN_FLIGHT_PER_CONNECTION: usize = 64;

/// Bytes handed to one write call; larger appends fragment the page cache's memory.
pub(crate) const WRITE_SLICE_BYTES: usize = 128 * 1024;

/// A topic's name has at most this many bytes (Kafka's own limit).
pub(crate) const TOPIC_NAME_BYTES_MAX: usize = 249;

/// Bytes of one string on the wire: what a classic length can say, and Kafka's bound on compact ones.
pub(crate) const STRING_BYTES_MAX: usize = i16::MAX as usize;

/// Elements of one array in a message, whatever the frame's length. Kafka has no such bound; the
/// largest honest array is a list of all topics or partitions of a cluster.
pub(crate) const ARRAY_ELEMENTS_MAX: usize = 1 << 20;

/// Tagged fields that end one struct. Kafka's own messages have at most four.
pub(crate) const TAGGED_FIELDS_PER_SET_MAX: u32 = 32;
