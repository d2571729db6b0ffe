//! Checks what was set, says what has no effect, and makes the typed settings of it.

use super::layers::{Layers, NONE};
use super::listeners::{Listeners, split_address};
use super::load::{ConfigError, Fault, Gathered, Setting, Source};
use super::shape::{Kind, split_list};
use super::table::{self, Change, Effect, Key};
use super::{Config, Listener, Loaded, TopicConfig};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Longer than any broker runs: what `-1` means for a time that Kafka then does not watch.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Makes a configuration of everything that was set, or says everything that is wrong with it.
pub(super) fn resolve(gathered: Gathered) -> Result<Loaded, ConfigError> {
    let Gathered { mut set, mut warnings, mut faults } = gathered;
    name_the_node(&mut set, &mut faults);
    let mut without_effect: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, setting) in &set {
        match check(name, setting) {
            Ok(Noted::Nothing) => {}
            Ok(Noted::WithoutEffect(reason)) => {
                without_effect.entry(reason).or_default().push(name);
            }
            Ok(Noted::Unknown(warning)) => warnings.push(warning),
            Err(fault) => faults.push(fault),
        }
    }
    for (reason, names) in without_effect {
        warnings.push(format!("no effect: {} ({reason})", names.join(", ")));
    }
    let layers = Layers { broker: NONE, cluster: NONE, set: &set };
    let listeners = Listeners::resolve(&layers);
    warnings.extend(listeners.warnings.iter().cloned());
    let crossed = listeners.faults.iter().cloned().chain(cross_check(&layers));
    faults.extend(crossed.map(|(key, reason)| fault(&layers, key, reason)));
    warnings.extend(clamped(&layers));
    if !faults.is_empty() {
        faults.sort_by(|one, other| one.key.cmp(&other.key));
        return Err(ConfigError::Faults(faults));
    }
    let config = build(&layers, listeners.opened, listeners.advertised);
    Ok(Loaded { config, warnings, set })
}

/// `node.id` and `broker.id` are one setting; Kafka 3 writes −1 for none.
fn name_the_node(set: &mut BTreeMap<String, Setting>, faults: &mut Vec<Fault>) {
    if set.get("broker.id").is_some_and(|setting| setting.value.trim() == "-1") {
        set.remove("broker.id");
    }
    let values = ["node.id", "broker.id"].map(|name| set.get(name).map(|at| at.value.clone()));
    let copy = |of: &'static str, value| Setting { value, source: Source::Synonym(of) };
    match values {
        [Some(node), None] => drop(set.insert("broker.id".to_owned(), copy("node.id", node))),
        [None, Some(broker)] => drop(set.insert("node.id".to_owned(), copy("broker.id", broker))),
        [Some(node), Some(broker)] if node.trim() != broker.trim() => {
            let place = set.get("node.id").map(|at| at.source.clone());
            let reason = format!("broker.id={broker} says otherwise");
            faults.push(Fault { key: "node.id".to_owned(), value: node, reason, place });
        }
        [Some(_), Some(_)] | [None, None] => {}
    }
}

enum Noted<'a> {
    Nothing,
    WithoutEffect(&'a str),
    Unknown(String),
}

/// Checks one setting by itself.
fn check(name: &str, setting: &Setting) -> Result<Noted<'static>, Fault> {
    let Some(key) = table::broker_key(name) else { return check_unknown(name, setting) };
    let printed = check_value(key, name, setting)?;
    let is_default = key.shape.default == Some(&printed);
    let unset = is_default || (printed.is_empty() && key.shape.default.is_none());
    match key.effect {
        Effect::Honoured => Ok(Noted::Nothing),
        Effect::Ignored(_) | Effect::Refused(_) if unset => Ok(Noted::Nothing),
        Effect::Ignored(reason) => Ok(Noted::WithoutEffect(reason)),
        Effect::Refused(reason) => Err(refused(key, name, setting, reason.to_owned())),
    }
}

fn check_value(key: &Key, name: &str, setting: &Setting) -> Result<String, Fault> {
    let checked = key.shape.check(name, &setting.value);
    checked.map_err(|reason| refused(key, name, setting, reason))
}

fn refused(key: &Key, name: &str, setting: &Setting, reason: String) -> Fault {
    let hidden = key.shape.kind == Kind::Password;
    let value = if hidden { "(hidden)".to_owned() } else { setting.value.clone() };
    Fault { key: name.to_owned(), value, reason, place: Some(setting.source.clone()) }
}

fn check_unknown(name: &str, setting: &Setting) -> Result<Noted<'static>, Fault> {
    if let Some(base) = table::of_listener(name) {
        if let Some(key) = table::broker_key(base) {
            check_value(key, name, setting)?;
        }
        return Ok(Noted::WithoutEffect("settings of single listeners are not built yet"));
    }
    let hint = match table::topic_sources(name) {
        [(source, _), ..] => format!("; it is a topic's, the broker's is {source}"),
        [] => String::new(),
    };
    Ok(Noted::Unknown(format!("unknown: {name} ({}){hint}", setting.source)))
}

fn fault(layers: &Layers<'_>, key: &str, reason: String) -> Fault {
    let setting = layers.set.get(key);
    let value = setting.map(|setting| setting.value.clone());
    Fault {
        key: key.to_owned(),
        value: value.unwrap_or_else(|| layers.text(key)),
        reason,
        place: setting.map(|setting| setting.source.clone()),
    }
}

/// What is wrong with values that are right each by itself.
fn cross_check(layers: &Layers<'_>) -> Vec<(&'static str, String)> {
    let mut wrong = log_faults(layers);
    let roles = layers.text("process.roles");
    if !roles.is_empty() && !split_list(&roles).contains(&"broker") {
        wrong.push(("process.roles", "Ottla is a broker, no KRaft controller".to_owned()));
    }
    let (queued, largest) = ("queued.max.request.bytes", "socket.request.max.bytes");
    if layers.whole(queued).is_some_and(|bytes| bytes > 0 && bytes < layers.number(largest)) {
        wrong.push((queued, format!("it must hold a request of {largest}")));
    }
    let dirs = log_dirs(layers);
    let key = if layers.text("log.dirs").is_empty() { "log.dir" } else { "log.dirs" };
    if dirs.is_empty() || dirs.iter().any(|dir| dir.as_os_str().is_empty()) {
        wrong.push((key, "a directory has no name".to_owned()));
    }
    if dirs.iter().enumerate().any(|(index, dir)| dirs[..index].contains(dir)) {
        wrong.push((key, "a directory is there twice".to_owned()));
    }
    let http = layers.text("ottla.http.listener");
    if http != "none" && split_address(&http).is_none() {
        wrong.push(("ottla.http.listener", "it is neither host:port nor `none`".to_owned()));
    }
    wrong
}

/// What Kafka's broker checks of its log's settings, in Kafka's words; also of dynamic ones.
pub(super) fn log_faults(layers: &Layers<'_>) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    for key in ["log.retention.ms", "log.retention.minutes", "log.retention.hours"] {
        if layers.whole(key) == Some(0) {
            let reason = format!("{key} must be unlimited (-1) or, greater than or equal to 1");
            wrong.push((key, reason));
        }
    }
    if layers.whole("log.roll.ms").is_some_and(|ms| ms < 1) {
        wrong.push(("log.roll.ms", "log.roll.ms must be greater than or equal to 1".to_owned()));
    }
    if layers.whole("log.roll.jitter.ms").is_some_and(|ms| ms < 0) {
        let reason = "log.roll.jitter.ms must be greater than or equal to 0";
        wrong.push(("log.roll.jitter.ms", reason.to_owned()));
    }
    if let Err(reason) = topic_defaults(layers).check_together() {
        wrong.push(("log.cleaner.min.compaction.lag.ms", reason));
    }
    wrong
}

/// Numbers of replicas that one broker cannot have.
fn clamped(layers: &Layers<'_>) -> Vec<String> {
    let keys = [
        "default.replication.factor",
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
    ];
    let above = |key: &&str| layers.set.contains_key(*key) && layers.number::<i64>(key) > 1;
    let keys: Vec<_> = keys.into_iter().filter(above).collect();
    if keys.is_empty() {
        return Vec::new();
    }
    vec![format!("{} counts as 1: this broker stands alone", keys.join(", "))]
}

fn log_dirs(layers: &Layers<'_>) -> Vec<PathBuf> {
    let dirs = layers.value("log.dirs").filter(|dirs| !dirs.is_empty());
    let dirs = dirs.unwrap_or_else(|| layers.text("log.dir"));
    split_list(&dirs).into_iter().map(PathBuf::from).collect()
}

/// The typed settings.
pub(super) fn build(
    layers: &Layers<'_>,
    listeners: Vec<Listener>,
    advertised_listeners: Vec<Listener>,
) -> Config {
    let ms = |name: &str| Duration::from_millis(layers.number(name));
    let http = layers.text("ottla.http.listener");
    let minutes: u64 = layers.number("offsets.retention.minutes");
    let queued = layers.whole("queued.max.request.bytes");
    Config {
        node_id: layers.number("node.id"),
        listeners,
        advertised_listeners,
        log_dirs: log_dirs(layers),
        rack: layers.value("broker.rack").filter(|rack| !rack.is_empty()),
        http_listener: (http != "none").then_some(http),
        request_bytes_max: layers.number("socket.request.max.bytes"),
        // Kafka's −1 takes the bound away.
        queued_request_bytes_max: match queued {
            Some(bytes @ 1..) => usize::try_from(bytes).unwrap_or(usize::MAX),
            Some(_) | None => usize::MAX,
        },
        connections_max_idle: match layers.whole("connections.max.idle.ms") {
            Some(ms @ 0..) => Duration::from_millis(ms.unsigned_abs()).min(FOR_EVER),
            Some(_) | None => FOR_EVER,
        },
        fetch_bytes_max: layers.number("fetch.max.bytes"),
        fetch_sessions_max: layers.number("max.incremental.fetch.session.cache.slots"),
        partitions_per_description_max: layers.number("max.request.partition.size.limit"),
        auto_create_topics: layers.is("auto.create.topics.enable"),
        delete_topics: layers.is("delete.topic.enable"),
        default_partitions: layers.number("num.partitions"),
        default_replication_factor: 1,
        offsets_topic_partitions: layers.number("offsets.topic.num.partitions"),
        offsets_topic_replication_factor: 1,
        offsets_topic_segment_bytes: layers.number("offsets.topic.segment.bytes"),
        offsets_retention: Duration::from_secs(minutes * 60),
        offsets_retention_check_interval: ms("offsets.retention.check.interval.ms"),
        offsets_commit_timeout: ms("offsets.commit.timeout.ms"),
        offset_metadata_bytes_max: layers.number("offset.metadata.max.bytes"),
        group_initial_rebalance_delay: ms("group.initial.rebalance.delay.ms"),
        group_min_session_timeout: ms("group.min.session.timeout.ms"),
        group_max_session_timeout: ms("group.max.session.timeout.ms"),
        group_size_max: layers.number("group.max.size"),
        initial_task_delay: ms("log.initial.task.delay.ms"),
        retention_check_interval: ms("log.retention.check.interval.ms"),
        checkpoint_interval: ms("log.flush.offset.checkpoint.interval.ms"),
        recovery_threads: layers.number("num.recovery.threads.per.data.dir"),
        producer_id_expiration_ms: layers.number("producer.id.expiration.ms"),
        producer_id_expiration_check_interval: ms("producer.id.expiration.check.interval.ms"),
        log_dir_reserve: layers
            .whole("ottla.log.dir.reserve")
            .and_then(|bytes| u64::try_from(bytes).ok()),
        topic: topic_defaults(layers),
    }
}

/// What topics without settings of their own have.
fn topic_defaults(layers: &Layers<'_>) -> TopicConfig {
    let mut topic = TopicConfig::default();
    for key in table::topic_keys() {
        debug_assert_eq!(key.change, Change::Topic);
        if let Some(value) = layers.topic_value(key.name) {
            topic.set(key.name, &value);
        }
    }
    topic
}
