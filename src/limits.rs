//! Every bound that is not a configuration key, by name, with its unit.

/// Bytes a connection may hold uncharged: a frame up to this size takes nothing from the budget.
pub(crate) const FRAME_EXEMPT_BYTES: usize = 64 * 1024;

/// Produce requests of one connection that may be begun before the first is answered.
pub(crate) const IN_FLIGHT_PER_CONNECTION: usize = 64;

/// Bytes handed to one write call; larger appends fragment the page cache's memory.
pub(crate) const WRITE_SLICE_BYTES: usize = 128 * 1024;

/// Bytes that a compressed batch may hold when it has to be opened.
pub(crate) const DECOMPRESSED_BATCH_BYTES_MAX: usize = 64 << 20;

/// Bytes of one string on the wire: what a classic length can say; Kafka bounds compact ones alike.
pub(crate) const STRING_BYTES_MAX: usize = i16::MAX as usize;

/// Elements of one array in a message, whatever the frame's length. Kafka has no such bound; the
/// largest honest array is a list of all topics or partitions of a cluster.
pub(crate) const ARRAY_ELEMENTS_MAX: usize = 1 << 20;

/// Tagged fields that end one struct. Kafka's own messages have at most four.
pub(crate) const TAGGED_FIELDS_PER_SET_MAX: u32 = 32;

/// Structs within structs, arrays included, that a request's shape may have. The shapes are ours,
/// so this bounds the guard's recursion, not what a client can send.
pub(crate) const NESTING_MAX: usize = 4;

/// Bytes that decoding may take for what is not in the frame itself (structs, arrays, tags), for
/// each byte of the frame. Two bytes on the wire can become a hundred in memory, but a name of
/// seven letters or a partition stays below 8, so that honest lists of any length pass.
pub(crate) const DECODED_PER_FRAME_BYTE: usize = 8;

/// What decoding may take however short the frame: no honest small request comes near.
pub(crate) const DECODED_BYTES_FLOOR: usize = 256 * 1024;

/// What decoding may take however long the frame, so that a frame of the greatest size costs less
/// than twice its length. It is room for 800,000 partitions or names.
pub(crate) const DECODED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An offset no log comes to; a checkpoint that says a larger one is damaged.
pub(crate) const OFFSET_MAX: i64 = 1 << 62;

/// Topics that are made at one time because clients named them; more are made when they ask again.
pub(crate) const AUTOMATIC_CREATIONS: usize = 100;

/// Partitions one topic may have.
pub(crate) const PARTITIONS_PER_TOPIC_MAX: i32 = 100_000;

/// Bytes that a coordinator reads at a time when it replays its log.
pub(crate) const REPLAY_READ_BYTES: u32 = 1 << 20;

/// Files of sealed segments that are open at once, where the process may open many more.
const SEALED_FILES_MAX: u64 = 4_096;

/// How the descriptors of the process are shared out. The rest is for what is open shortly, so that
/// no number of clients or topics keeps a log from being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptors {
    /// Connections of all listeners: a fifth.
    pub(crate) connections: usize,
    /// Files of sealed segments that readers hold open: an eighth at most.
    pub(crate) sealed: usize,
    /// Partitions, each of which holds its active segment open: five eighths.
    pub(crate) partitions: usize,
}

impl Descriptors {
    /// What the process may open now.
    pub(crate) fn of_process() -> Self {
        let soft = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let all = soft.unwrap_or(1 << 30);
        let count = |share| usize::try_from(share).unwrap_or(usize::MAX);
        Self {
            connections: count(all / 5),
            sealed: count((all / 8).min(SEALED_FILES_MAX)),
            partitions: count(all / 8 * 5),
        }
    }
}

/// Connections of the metrics listener; a scraper and a health check need one each.
pub(crate) const HTTP_CONNECTIONS_MAX: usize = 64;

/// How long such a connection may be silent.
pub(crate) const HTTP_PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Bytes a connection makes room for before it knows how much is coming.
pub(crate) const READ_BYTES_MIN: usize = 8 * 1024;

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

/// Requests that wait for one coordinator; a sender beyond that waits for room.
pub(crate) const COORDINATOR_INBOX: usize = 1_024;

/// Bytes of an answer that `ottla ping` takes.
pub(crate) const PING_ANSWER_BYTES_MAX: usize = 16 << 20;

/// How long an append may take before others that wait for it give their worker away.
pub(crate) const DISK_SLOW: std::time::Duration = std::time::Duration::from_millis(20);

/// How long an append may take before others are refused instead of waiting for it.
pub(crate) const DISK_PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// How long one write or sync may take before its directory counts as failed.
pub(crate) const DISK_STALL: std::time::Duration = std::time::Duration::from_secs(60);

/// Descriptors below which a warning is logged at the start.
pub(crate) const DESCRIPTORS_FEW: u64 = 10_000;

/// Bytes of an error message in a response.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1_000;

/// How long a frame may wait for memory before its connection is closed.
pub(crate) const BUDGET_PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// How often a connection is looked at that holds memory of all, or waits for some.
pub(crate) const MEMORY_LOOK: std::time::Duration = std::time::Duration::from_secs(1);

/// How long a frame may take to arrive, however slowly, while others wait for the memory it holds.
pub(crate) const FRAME_GRACE: std::time::Duration = std::time::Duration::from_secs(5);

/// Bytes a second that a frame must arrive with to be waited for longer than that.
pub(crate) const FRAME_RATE_MIN: u64 = 64 * 1024;
