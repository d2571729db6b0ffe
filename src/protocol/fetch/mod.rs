//! Fetch, v4–18: records for consumers and followers. By hand, since it is a hot path.
//!
//! v5: log_start_offset. v7: sessions (KIP-227). v9: current_leader_epoch (KIP-320). v11: rack and
//! preferred_read_replica (KIP-392). v12: flexible, last_fetched_epoch, diverging_epoch (KIP-595).
//! v13: topics by id (KIP-516). v15: replica_state in place of replica_id (KIP-903). v16:
//! node_endpoints (KIP-951). v17: replica_directory_id (KIP-853). v18: high_watermark (KIP-1166).
//!
//! A response is encoded without its records: their bytes stay in files, and the encoder says where
//! in the head each row's records belong.

mod request;
mod response;

pub(crate) use request::{FetchPartition, FetchRequest};
pub(crate) use response::{Encoded, FetchPartitionResponse, FetchResponse, FetchTopicResponse};

/// The first version with compact lengths and tagged fields.
const FLEXIBLE: i16 = 12;

/// The first version that names a topic by its id alone.
const BY_ID: i16 = 13;
