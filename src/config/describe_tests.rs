//! What DescribeConfigs answers, against what Kafka 4.4.0 answered with the same settings.

use super::describe::ConfigSource;
use super::*;
use std::collections::BTreeSet;

fn map(pairs: &[(&str, &str)]) -> Overrides {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn golden(name: &str) -> String {
    format!("{}/compat-tests/config/kafka-4.4.0-describe{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Compares with what Kafka said, but for Ottla's own keys and for those named as `different`,
/// which must be.
fn compare(described: &[Described], file: &str, different: &[&str]) {
    let said = std::fs::read_to_string(golden(file)).unwrap();
    let said: BTreeSet<&str> = said.lines().collect();
    let ours: Vec<_> = described.iter().map(line).collect();
    let ours = ours.iter().map(String::as_str).filter(|line| !line.starts_with("ottla."));
    let ours: BTreeSet<&str> = ours.collect();
    let name = |line: &&&str| line.split('\t').next().unwrap().to_owned();
    let differ: BTreeSet<_> = said.symmetric_difference(&ours).map(|line| name(&line)).collect();
    let different: BTreeSet<_> = different.iter().map(ToString::to_string).collect();
    let lines: Vec<_> = said.symmetric_difference(&ours).collect();
    assert_eq!(differ, different, "{lines:#?}");
}

fn line(described: &Described) -> String {
    let null = || "null".to_owned();
    let synonyms = described.synonyms.iter().map(|synonym| {
        let value = synonym.value.clone().unwrap_or_else(null);
        format!("({},{value},{})", synonym.name, source(synonym.source))
    });
    [
        described.name.clone(),
        described.value.clone().unwrap_or_else(null),
        source(described.source).to_owned(),
        if described.read_only { "ro" } else { "rw" }.to_owned(),
        if described.sensitive { "sens" } else { "-" }.to_owned(),
        config_type(described.config_type).to_owned(),
        format!("[{}]", synonyms.collect::<Vec<_>>().join(" ")),
        if described.documentation.is_some() { "doc" } else { "nodoc" }.to_owned(),
    ]
    .join("\t")
}

fn source(source: ConfigSource) -> &'static str {
    let names = [
        "DYNAMIC_TOPIC_CONFIG",
        "DYNAMIC_BROKER_CONFIG",
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "STATIC_BROKER_CONFIG",
        "DEFAULT_CONFIG",
    ];
    names[usize::try_from(source.code() - 1).unwrap()]
}

fn config_type(code: i8) -> &'static str {
    let names = [
        "UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS",
        "PASSWORD",
    ];
    names[usize::try_from(code).unwrap()]
}

struct Scene {
    loaded: Loaded,
    cluster: Overrides,
    broker: Overrides,
}

impl Scene {
    /// The settings under which Kafka was asked.
    fn new() -> Self {
        let file = Some(golden(".properties").into());
        let loaded = load(Sources { file, ..Sources::default() }).unwrap();
        let cluster = map(&[
            ("leader.replication.throttled.rate", "100"),
            ("log.flush.interval.ms", "8000"),
            ("log.retention.ms", "7000"),
            ("log.roll.ms", "9000"),
            ("log.segment.bytes", "3000000"),
            // Kafka 4 sets it by itself when a cluster is new (KIP-966).
            ("min.insync.replicas", "1"),
            ("no.such.key", "5"),
        ]);
        let broker = map(&[
            ("compression.type", "lz4"),
            ("log.cleanup.policy", "compact, delete"),
            ("log.retention.ms", "6000"),
            ("num.io.threads", "9"),
        ]);
        Self { loaded, cluster, broker }
    }

    fn dynamic(&self) -> Dynamic<'_> {
        Dynamic { cluster: &self.cluster, broker: &self.broker }
    }

    fn topic(&self, overrides: &[(&str, &str)], asked: &[&str]) -> Vec<Described> {
        self.loaded.describe_topic(self.dynamic(), &map(overrides), asked)
    }
}

#[test]
fn topics_are_described_as_by_kafka() {
    let scene = Scene::new();
    compare(&scene.topic(&[], &[]), "-topic-plain.tsv", &[]);
    let tuned = [
        ("cleanup.policy", "compact,delete"),
        ("min.cleanable.dirty.ratio", "1"),
        ("retention.ms", "1000"),
    ];
    compare(&scene.topic(&tuned, &[]), "-topic-tuned.tsv", &[]);
}

#[test]
fn brokers_are_described_as_by_kafka_but_for_what_differs() {
    let scene = Scene::new();
    let described = scene.loaded.describe_broker(scene.dynamic(), &[]);
    let different = [
        // Other defaults.
        "broker.id",
        "log.dir",
        "node.id",
        "queued.max.request.bytes",
        // Ottla documents it, and says that it can be changed, which it can in Kafka too.
        "leader.replication.throttled.rate",
        // Kafka forgets them once another unit of theirs is set while it runs.
        "log.flush.scheduler.interval.ms",
        "log.retention.minutes",
        "log.roll.hours",
        // Not changed while Ottla runs.
        "cordoned.log.dirs",
        "listener.security.protocol.map",
        "listeners",
    ];
    compare(&described, "-broker.tsv", &different);
    let cluster = scene.loaded.describe_cluster(scene.dynamic(), &[]);
    compare(&cluster, "-cluster.tsv", &["leader.replication.throttled.rate"]);
}

/// Redpanda once answered all keys when one was asked for.
#[test]
fn exactly_the_known_keys_asked_for_are_described() {
    let loaded = load(Sources::default()).unwrap();
    let nothing = Overrides::new();
    let dynamic = Dynamic { cluster: &nothing, broker: &nothing };
    let own = map(&[("retention.ms", "1000")]);
    let topic = |asked: &[&str]| loaded.describe_topic(dynamic, &own, asked);
    let lines = |described: &[Described]| described.iter().map(line).collect::<Vec<_>>();
    assert_eq!(
        lines(&topic(&["cleanup.policy"])),
        ["cleanup.policy\tdelete\tDEFAULT_CONFIG\trw\t-\tLIST\t\
          [(log.cleanup.policy,delete,DEFAULT_CONFIG)]\tdoc"]
    );
    assert_eq!(
        lines(&topic(&["retention.ms", "bogus"])),
        ["retention.ms\t1000\tDYNAMIC_TOPIC_CONFIG\trw\t-\tLONG\t\
          [(retention.ms,1000,DYNAMIC_TOPIC_CONFIG)]\tdoc"]
    );
    assert_eq!(topic(&[]).len(), 37 + 2);
    let broker = loaded.describe_broker(dynamic, &["num.partitions", "bogus"]);
    assert_eq!(broker.len(), 1);
    assert_eq!(loaded.describe_broker(dynamic, &["node.id"])[0].value.as_deref(), Some("1"));
    assert!(loaded.describe_cluster(dynamic, &[]).is_empty());
}

#[test]
fn what_is_stored_although_invalid_is_not_described() {
    let loaded = load(Sources::default()).unwrap();
    let cluster = map(&[("log.retention.ms", "soon"), ("num.partitions", "7")]);
    let nothing = Overrides::new();
    let dynamic = Dynamic { cluster: &cluster, broker: &nothing };
    let own = map(&[("segment.bytes", "many")]);
    for described in loaded.describe_topic(dynamic, &own, &["retention.ms", "segment.bytes"]) {
        assert_eq!(described.source, ConfigSource::Default);
    }
    let partitions = &loaded.describe_broker(dynamic, &["num.partitions"])[0];
    assert_eq!(
        (partitions.value.as_deref(), partitions.source),
        (Some("1"), ConfigSource::Default)
    );
}
