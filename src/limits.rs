//! Every bound that is not a configuration key, by name, with its unit.

/// Bytes a connection may hold uncharged: a frame up to this size takes nothing from the budget.
pub(crate) const FRAME_EXEMPT_BYTES: usize = 64 * 1024;

/// Produce requests of one connection that may be begun before the first is answered.
pub(crate) const IN_FLIGHT_PER_CONNECTION: usize = 64;

/// Bytes handed to one write call; larger appends fragment the page cache's memory.
pub(crate) const WRITE_SLICE_BYTES: usize = 128 * 1024;

/// A topic's name has at most this many bytes (Kafka's own limit).
pub(crate) const TOPIC_NAME_BYTES_MAX: usize = 249;

/// Groups one partition of the offsets topic may hold; above it, new names are refused.
pub(crate) const GROUPS_PER_PARTITION_MAX: usize = 100_000;

/// Members of one group, ids given out included, whatever `group.max.size` allows.
pub(crate) const GROUP_MEMBERS_MAX: usize = 20_000;

/// Assignors one member of a group may offer.
pub(crate) const GROUP_PROTOCOLS_PER_MEMBER_MAX: usize = 64;

/// Bytes one member of a group may say of itself, over all the assignors it offers.
pub(crate) const GROUP_MEMBER_METADATA_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a name in a group's records (group, member, protocol …): their length is an int16.
pub(crate) const GROUP_TEXT_BYTES_MAX: usize = 32_767;

/// Tombstones written at once when offsets expire or their topics are deleted.
pub(crate) const GROUP_TOMBSTONES_PER_APPEND: usize = 1_000;
