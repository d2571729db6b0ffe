//! Classic groups and their offsets.

use super::Change::{ClusterWide, Never};
use super::Effect::{Honoured, Ignored};
use super::reasons::{GROUPS, NOT_YET, TUNING};
use super::{Key, row};
use crate::config::shape::{INT, int, list_of, long, short};

#[rustfmt::skip] // one key, two lines: a table to be read as one
pub(super) const KEYS: &[Key] = &[
    row("group.min.session.timeout.ms", int(0).or("6000"), Never, Honoured,
        "The shortest session timeout a member may ask for. Ottla takes any value from 0."),
    row("group.max.session.timeout.ms", int(0).or("1800000"), Never, Honoured,
        "The longest session timeout a member may ask for."),
    row("group.initial.rebalance.delay.ms", int(0).or("3000"), Never, Honoured,
        "How long the first member of an empty group waits for others."),
    row("group.max.size", int(1).or("2147483647"), Never, Honoured,
        "Members one group may have."),
    row("group.coordinator.rebalance.protocols",
        list_of(&["consumer", "classic", "share", "streams"]).or("classic,consumer,streams"),
        Never, Ignored(GROUPS),
        "The group protocols offered. Ottla offers `classic`."),
    row("group.coordinator.threads", int(1).or("4"), Never, Ignored(TUNING),
        "Threads that serve groups."),
    row("group.coordinator.background.threads", int(1).or("2"), Never, Ignored(TUNING),
        "Threads that compute assignments and the like."),
    row("group.coordinator.append.linger.ms", int(-1).or("-1"), Never, Ignored(TUNING),
        "How long a coordinator gathers records before it writes them."),
    row("group.coordinator.cached.buffer.max.bytes",
        int(524288).or("1048588"), ClusterWide, Ignored(TUNING),
        "Bytes of buffers a coordinator keeps."),
    row("offset.metadata.max.bytes", int(0).or("4096"), Never, Honoured,
        "Bytes of the note that may go with a committed offset."),
    row("offsets.commit.timeout.ms", int(1).or("5000"), Never, Honoured,
        "How long a commit may take to be written."),
    row("offsets.load.buffer.size", int(1).or("5242880"), Never, Ignored(TUNING),
        "Bytes read at once when committed offsets are loaded."),
    row("offsets.retention.minutes", int(1).or("10080"), Never, Honoured,
        "How long offsets are kept after their group has become empty."),
    row("offsets.retention.check.interval.ms", long(1).or("600000"), Never, Honoured,
        "How often old offsets are looked for."),
    row("offsets.topic.num.partitions", int(1).or("50"), Never, Honoured,
        "Partitions of `__consumer_offsets`; it counts when the topic is made."),
    row("offsets.topic.replication.factor", short(1).or("3"), Never, Honoured,
        "Replicas of `__consumer_offsets`. A broker that stands alone makes one."),
    row("offsets.topic.segment.bytes", int(1).or("104857600"), Never, Honoured,
        "Bytes of a log file of `__consumer_offsets`."),
    row("offsets.topic.compression.codec", INT.or("0"), Never, Ignored(NOT_YET),
        "How `__consumer_offsets` is compressed: 0 is not at all."),
];
