//! Transactions.

use super::Change::{ClusterWide, Never};
use super::Effect::Ignored;
use super::reasons::TXN;
use super::{Key, row};
use crate::config::shape::{BOOLEAN, int, short};

#[rustfmt::skip] // one key, two lines: a table to be read as one
pub(super) const KEYS: &[Key] = &[
    row("transactional.id.expiration.ms", int(1).or("604800000"), Never, Ignored(TXN),
        "A transactional id idle for so long is forgotten."),
    row("transaction.max.timeout.ms", int(1).or("900000"), Never, Ignored(TXN),
        "The longest timeout a transaction may ask for."),
    row("transaction.abort.timed.out.transaction.cleanup.interval.ms",
        int(1).or("10000"), Never, Ignored(TXN),
        "How often transactions that take too long are looked for."),
    row("transaction.remove.expired.transaction.cleanup.interval.ms",
        int(1).or("3600000"), Never, Ignored(TXN),
        "How often forgotten transactional ids are looked for."),
    row("transaction.partition.verification.enable", BOOLEAN.or("true"), ClusterWide, Ignored(TXN),
        "Whether a partition is checked to be part of its transaction before an append."),
    row("transaction.two.phase.commit.enable", BOOLEAN.or("false"), Never, Ignored(TXN),
        "Whether transactions of others may be taken part in (KIP-939)."),
    row("transaction.state.log.load.buffer.size", int(1).or("5242880"), Never, Ignored(TXN),
        "Bytes read at once when transactions are loaded."),
    row("transaction.state.log.min.isr", int(1).or("2"), Never, Ignored(TXN),
        "Replicas of the transactions' topic that must be in sync."),
    row("transaction.state.log.num.partitions", int(1).or("50"), Never, Ignored(TXN),
        "Partitions of the transactions' topic."),
    row("transaction.state.log.replication.factor", short(1).or("3"), Never, Ignored(TXN),
        "Replicas of the transactions' topic. A broker that stands alone makes one."),
    row("transaction.state.log.segment.bytes", int(1).or("104857600"), Never, Ignored(TXN),
        "Bytes of a log file of the transactions' topic."),
    row("add.partitions.to.txn.retry.backoff.ms", int(1).or("20"), Never, Ignored(TXN),
        "How long the broker pauses before it asks again whether a partition is in a transaction."),
    row("add.partitions.to.txn.retry.backoff.max.ms", int(0).or("100"), Never, Ignored(TXN),
        "How long it asks in all."),
];
