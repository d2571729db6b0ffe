//! Why keys have no effect, or are refused.

pub(super) const ALONE: &str = "a broker that stands alone has no other to talk to";
pub(super) const TUNING: &str = "Ottla sizes its threads, queues and buffers itself";
pub(super) const NOT_YET: &str = "not built yet";
pub(super) const COMPACT: &str = "compaction is not built yet";
pub(super) const TXN: &str = "transactions are not built yet";
pub(super) const GROUPS: &str = "of the group protocols only `classic` is built yet";
pub(super) const SHARE: &str = "share groups are not built yet";
pub(super) const REMOTE: &str = "tiered storage is not built yet";
pub(super) const QUOTA: &str = "quotas are not built yet";
pub(super) const TLS: &str = "TLS and SASL are not built yet";
pub(super) const TOKENS: &str = "delegation tokens are not built yet";
pub(super) const TELEMETRY: &str = "clients' telemetry is not taken";
pub(super) const ACL: &str =
    "ACLs are not built yet, and without them every client may do everything";
pub(super) const METRICS: &str = "metrics are served on `ottla.http.listener`";
pub(super) const JAVA: &str = "Ottla runs no Java classes";
pub(super) const KRAFT: &str = "Ottla has no KRaft quorum";
pub(super) const ZK: &str =
    "clusters are not built yet; without this key Ottla stands alone on a store of its own";
pub(super) const OLD: &str = "Kafka 4 has removed it";
pub(super) const LZ4: &str = "Ottla's lz4 has one level";
pub(super) const PREALLOCATE: &str = "Ottla never preallocates";
pub(super) const CHECKPOINT: &str = "Ottla notes it with `log.flush.offset.checkpoint.interval.ms`";
pub(super) const DECOMPRESS: &str = "Ottla never decompresses a batch beyond 64 MiB";
