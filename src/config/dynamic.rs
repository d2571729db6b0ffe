//! Settings that change while the broker runs (KIP-226): which may, and what follows from them.

use super::layers::{Layers, Overrides};
use super::table::{self, Change, Effect};
use super::{Config, Loaded, resolve};

/// Whom a dynamic setting is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// All brokers: the resource without a name.
    Cluster,
    /// One broker.
    Broker,
}

/// What is set while the broker runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dynamic<'a> {
    /// For all brokers.
    pub(crate) cluster: &'a Overrides,
    /// For this one; it goes before.
    pub(crate) broker: &'a Overrides,
}

/// Settings of a listener that go for all brokers; any other one names its broker.
const OF_ALL_BROKERS: &[&str] =
    &["max.connections", "max.connection.creation.rate", "num.network.threads"];

/// Whose numbers may only double or halve at a time.
const THREADS: &[&str] = &[
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
];

/// Why a setting cannot change while the broker runs, whatever its value; `None` if it can.
pub(crate) fn why_fixed(name: &str) -> Option<String> {
    if table::of_listener(name).is_some() {
        return None;
    }
    let said = match table::broker_key(name)?.change {
        Change::Never | Change::Topic => "Cannot update these configs dynamically",
        Change::PerListener => {
            "These security configs can be dynamically updated only per-listener using the \
             listener prefix"
        }
        Change::PerBroker | Change::ClusterWide => return None,
    };
    Some(format!("{said}: [{name}]"))
}

/// Checks one dynamic setting by itself; what is wrong is said in Kafka's words. A key nobody
/// knows is taken, as Kafka does.
pub(crate) fn check_broker_override(level: Level, name: &str, value: &str) -> Result<(), String> {
    if let Some(fixed) = why_fixed(name) {
        return Err(fixed);
    }
    let base = table::of_listener(name);
    let Some(key) = table::broker_key(base.unwrap_or(name)) else { return Ok(()) };
    let printed = key.shape.canonical(key.name, value)?;
    if let Effect::Refused(reason) = key.effect
        && key.shape.default != Some(&printed)
    {
        return Err(format!("Invalid value {value} for configuration {name}: {reason}"));
    }
    let names_its_broker = match base {
        Some(base) => !OF_ALL_BROKERS.contains(&base),
        None => key.change == Change::PerBroker,
    };
    if level == Level::Cluster && names_its_broker {
        return Err(format!(
            "Cannot update these configs at default cluster level, broker id must be specified: \
             [{name}]"
        ));
    }
    Ok(())
}

impl Loaded {
    /// The settings with the dynamic ones over them. What the store holds although it is invalid
    /// counts nowhere.
    #[must_use]
    pub(crate) fn with_dynamic(&self, dynamic: Dynamic<'_>) -> Config {
        let (listeners, told) = (&self.config.listeners, &self.config.advertised_listeners);
        resolve::build(&self.layers(dynamic), listeners.clone(), told.clone())
    }

    /// Checks all that `level` would have set, where now there is `dynamic`.
    pub(crate) fn check_dynamic(
        &self,
        dynamic: Dynamic<'_>,
        level: Level,
        proposed: &Overrides,
    ) -> Result<(), String> {
        for (name, value) in proposed {
            check_broker_override(level, name, value)?;
        }
        let then = match level {
            Level::Cluster => Dynamic { cluster: proposed, ..dynamic },
            Level::Broker => Dynamic { broker: proposed, ..dynamic },
        };
        let (now, then) = (self.layers(dynamic), self.layers(then));
        if let Some((_, reason)) = resolve::log_faults(&then).into_iter().next() {
            return Err(reason);
        }
        THREADS.iter().try_for_each(|name| check_threads(name, now.number(name), then.number(name)))
    }

    pub(super) fn layers<'a>(&'a self, dynamic: Dynamic<'a>) -> Layers<'a> {
        Layers { broker: dynamic.broker, cluster: dynamic.cluster, set: &self.set }
    }
}

fn check_threads(name: &str, now: i64, then: i64) -> Result<(), String> {
    let said = if then < now / 2 {
        "at least half"
    } else if then > now * 2 {
        "not be greater than double"
    } else {
        return Ok(());
    };
    let said = if said.starts_with("not") { said.to_owned() } else { format!("be {said}") };
    Err(format!(
        "Dynamic thread count update validation failed for {name}={then}, value should {said} \
         the current value {now}"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::layers::NONE;
    use super::super::{Sources, load};
    use super::*;

    const NOTHING: Dynamic<'static> = Dynamic { cluster: NONE, broker: NONE };

    fn map(pairs: &[(&str, &str)]) -> Overrides {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn loaded(overrides: &[&str]) -> Loaded {
        let overrides = overrides.iter().map(ToString::to_string).collect();
        load(Sources { overrides, ..Sources::default() }).unwrap()
    }

    /// Each line was tried on Kafka 4.4.0, which says the same.
    #[test]
    fn single_settings_are_refused_in_kafkas_words() {
        use Level::{Broker, Cluster};
        let never = "Cannot update these configs dynamically: ";
        let named = "Cannot update these configs at default cluster level, broker id must be \
                     specified: ";
        let prefix = "These security configs can be dynamically updated only per-listener using \
                      the listener prefix: ";
        for (level, name, value, said) in [
            (Broker, "log.retention.ms", "5000", ""),
            (Broker, "log.retention.ms", "-5", ""),
            (Broker, "log.retention.hours", "5", &format!("{never}[log.retention.hours]")),
            (Cluster, "num.partitions", "5", &format!("{never}[num.partitions]")),
            (Broker, "node.id", "4", &format!("{never}[node.id]")),
            (Cluster, "no.such.key", "5", ""),
            (Broker, "ssl.keystore.type", "JKS", &format!("{prefix}[ssl.keystore.type]")),
            (Broker, "sasl.jaas.config", "x", ""),
            (Cluster, "sasl.jaas.config", "x", &format!("{named}[sasl.jaas.config]")),
            (Cluster, "listener.name.plaintext.max.connections", "5", ""),
            (
                Cluster,
                "listener.name.plaintext.ssl.keystore.type",
                "JKS",
                &format!("{named}[listener.name.plaintext.ssl.keystore.type]"),
            ),
            (
                Broker,
                "listener.name.plaintext.max.connections",
                "x",
                "Invalid value x for configuration max.connections: Not a number of type INT",
            ),
            (
                Cluster,
                "leader.replication.throttled.rate",
                "-5",
                "Invalid value -5 for configuration leader.replication.throttled.rate: Value must \
                 be at least 0",
            ),
            (Cluster, "log.segment.bytes", "1048576", ""),
        ] {
            let found = check_broker_override(level, name, value).err().unwrap_or_default();
            assert_eq!(found, said, "{name}={value}");
        }
    }

    #[test]
    fn listeners_do_not_change_while_the_broker_runs() {
        let refused = check_broker_override(Level::Broker, "listeners", "PLAINTEXT://:1");
        assert_eq!(refused.unwrap_err(), "Cannot update these configs dynamically: [listeners]");
    }

    #[test]
    fn this_brokers_settings_go_before_those_of_all_before_the_file() {
        let loaded = loaded(&["log.retention.minutes=90", "log.segment.bytes=2000"]);
        let cluster = map(&[
            ("log.retention.ms", "7"),
            ("log.segment.bytes", "3000"),
            ("log.index.interval.bytes", "no number"),
            ("num.partitions", "9"),
        ]);
        let broker = map(&[("log.retention.ms", "6"), ("producer.id.expiration.ms", "5")]);
        let config = loaded.with_dynamic(Dynamic { cluster: &cluster, broker: &broker });
        assert_eq!(config.topic.retention_ms, 6);
        assert_eq!(config.topic.segment_bytes, 3000);
        assert_eq!(config.topic.index_interval_bytes, 4096);
        assert_eq!(config.producer_id_expiration_ms, 5);
        assert_eq!(config.default_partitions, 1, "it is read at the start only");
        assert_eq!(loaded.with_dynamic(NOTHING), loaded.config);
        assert_eq!(loaded.config.topic.retention_ms, 5_400_000);
    }

    #[test]
    fn settings_are_checked_together() {
        let loaded = loaded(&["log.cleaner.min.compaction.lag.ms=5"]);
        let check = |pairs: &[(&str, &str)]| {
            loaded.check_dynamic(NOTHING, Level::Cluster, &map(pairs)).err().unwrap_or_default()
        };
        let unlimited = "log.retention.ms must be unlimited (-1) or, greater than or equal to 1";
        assert_eq!(check(&[("log.retention.ms", "0")]), unlimited);
        assert_eq!(
            check(&[("log.cleaner.max.compaction.lag.ms", "4")]),
            "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)"
        );
        let threads = "Dynamic thread count update validation failed for num.io.threads=";
        assert_eq!(
            check(&[("num.io.threads", "17")]),
            format!("{threads}17, value should not be greater than double the current value 8")
        );
        assert_eq!(
            check(&[("num.io.threads", "3")]),
            format!("{threads}3, value should be at least half the current value 8")
        );
        assert_eq!(check(&[("num.io.threads", "16"), ("log.retention.ms", "-1")]), "");
    }
}
