//! Every key there is: one table, in files by area.

mod broker;
mod groups;
mod kraft;
mod log;
mod network;
mod new_groups;
mod reasons;
mod remote;
mod security;
mod topic;
mod transactions;

use super::shape::Shape;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Values of `ottla.flush.before.ack`.
const ACKS: &[&str] = &["never", "acks-all"];
/// Values of `ottla.record.validation`.
const CARE: &[&str] = &["fast", "strict"];

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) change: Change,
    pub(crate) effect: Effect,
    pub(crate) documentation: &'static str,
    /// Whether it is described where it is not set; Kafka leaves some out.
    pub(crate) listed: bool,
}

/// Where and when a key may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// On the broker, before it starts.
    Never,
    /// On one broker, also while it runs (KIP-226).
    PerBroker,
    /// On one broker, while it runs only for one listener.
    PerListener,
    /// On one broker or for all of them, also while they run.
    ClusterWide,
    /// On a topic.
    Topic,
}

/// Whether Ottla goes by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It does.
    Honoured,
    /// Any valid value is taken and does nothing, for this reason.
    Ignored(&'static str),
    /// Nothing but the default is taken, for this reason.
    Refused(&'static str),
}

const fn row(
    name: &'static str,
    shape: Shape,
    change: Change,
    effect: Effect,
    documentation: &'static str,
) -> Key {
    Key { name, shape, change, effect, documentation, listed: true }
}

impl Key {
    const fn unlisted(self) -> Self {
        Self { listed: false, ..self }
    }
}

const BROKER: &[&[Key]] = &[
    network::KEYS,
    broker::KEYS,
    log::KEYS,
    groups::KEYS,
    new_groups::KEYS,
    transactions::KEYS,
    kraft::KEYS,
    remote::KEYS,
    security::KEYS,
];

/// The broker's keys, in no order that matters.
pub(crate) fn broker_keys() -> impl Iterator<Item = &'static Key> {
    BROKER.iter().copied().flatten()
}

/// The topics' keys.
pub(crate) fn topic_keys() -> impl Iterator<Item = &'static Key> {
    topic::KEYS.iter()
}

/// A broker's key by its name.
pub(crate) fn broker_key(name: &str) -> Option<&'static Key> {
    static BY_NAME: LazyLock<HashMap<&str, &Key>> =
        LazyLock::new(|| broker_keys().map(|key| (key.name, key)).collect());
    BY_NAME.get(name).copied()
}

/// A topic's key by its name.
pub(crate) fn topic_key(name: &str) -> Option<&'static Key> {
    topic_keys().find(|key| key.name == name)
}

/// The name without `listener.name.<listener>.`, for settings of one listener.
pub(crate) fn of_listener(name: &str) -> Option<&str> {
    let (listener, base) = name.strip_prefix("listener.name.")?.split_once('.')?;
    if listener.is_empty() { None } else { Some(base) }
}

/// The broker's keys that a topic's key takes its value from, the first one set going before the
/// others, each with the milliseconds its unit has.
pub(crate) fn topic_sources(name: &str) -> &'static [(&'static str, i64)] {
    topic::SOURCES.iter().find(|(topic, _)| *topic == name).map_or(&[], |(_, sources)| *sources)
}

/// A broker's key and those that say the same in another unit, in the order in which they count.
pub(crate) fn same_setting(name: &str) -> Vec<&str> {
    const CHAINS: &[&[&str]] = &[
        &["log.roll.ms", "log.roll.hours"],
        &["log.roll.jitter.ms", "log.roll.jitter.hours"],
        &["log.retention.ms", "log.retention.minutes", "log.retention.hours"],
    ];
    if let Some(chain) = CHAINS.iter().find(|chain| chain.contains(&name)) {
        return chain.to_vec();
    }
    // The other way round it is not: the scheduler's interval has a meaning of its own in Kafka.
    if name == "log.flush.interval.ms" {
        return vec![name, "log.flush.scheduler.interval.ms"];
    }
    match of_listener(name) {
        Some(base) => vec![name, base],
        None => vec![name],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_key_is_there_once_and_its_default_is_valid() {
        for keys in [broker_keys().collect::<Vec<_>>(), topic_keys().collect()] {
            let mut seen = HashSet::new();
            for key in keys {
                assert!(seen.insert(key.name), "{} is there twice", key.name);
                assert!(key.documentation.ends_with('.'), "{}", key.name);
                if let Some(default) = key.shape.default {
                    let printed = key.shape.canonical(key.name, default);
                    assert_eq!(printed.as_deref(), Ok(default), "{}", key.name);
                }
            }
        }
    }

    #[test]
    fn topics_take_their_values_from_keys_that_exist() {
        for key in topic_keys() {
            for (source, _) in topic_sources(key.name) {
                let source = broker_key(source).unwrap();
                assert_eq!(source.shape.kind.is_whole(), key.shape.kind.is_whole(), "{}", key.name);
            }
        }
        for (topic, _) in topic::SOURCES {
            assert!(topic_key(topic).is_some(), "{topic}");
        }
    }
}
