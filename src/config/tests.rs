//! What loads, what warns, what is refused.

use super::*;
use std::fmt::Write as _;
use std::io::Write as _;

/// Loads a file with this text.
fn file(text: &str) -> Result<Loaded, ConfigError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    load(Sources { file: Some(file.path().to_owned()), ..Sources::default() })
}

fn overridden(overrides: &[&str]) -> Result<Loaded, ConfigError> {
    let overrides = overrides.iter().map(ToString::to_string).collect();
    load(Sources { overrides, ..Sources::default() })
}

fn config(overrides: &[&str]) -> Config {
    overridden(overrides).unwrap().config
}

fn faults(overrides: &[&str]) -> String {
    overridden(overrides).unwrap_err().to_string()
}

fn listener(name: &str, host: &str, port: u16) -> Listener {
    Listener { name: name.to_owned(), host: host.to_owned(), port }
}

fn shipped(name: &str) -> Result<Loaded, ConfigError> {
    let path = format!("{}/compat-tests/config/{name}", env!("CARGO_MANIFEST_DIR"));
    load(Sources { file: Some(path.into()), ..Sources::default() })
}

#[test]
fn nothing_set_is_enough() {
    let loaded = load(Sources::default()).unwrap();
    assert_eq!(loaded.warnings, [""; 0]);
    let config = loaded.config;
    assert_eq!(config, Config::default());
    assert_eq!(config.node_id, 1);
    assert_eq!(config.listeners, [listener("PLAINTEXT", "", 9092)]);
    assert_eq!(config.advertised_listeners, [listener("PLAINTEXT", "localhost", 9092)]);
    assert_eq!(config.log_dirs, [PathBuf::from("data")]);
    assert_eq!(config.http_listener.as_deref(), Some("127.0.0.1:9404"));
    assert_eq!(config.queued_request_bytes_max, 512 << 20);
    assert_eq!(config.topic, TopicConfig::default());
    assert_eq!(config.log_dir_reserve, None);
}

#[test]
fn the_command_line_goes_before_the_environment_before_the_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "num.partitions=2\nnode.id=2\nlog.segment.bytes=2000\n").unwrap();
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let loaded = load(Sources {
        file: Some(file.path().to_owned()),
        environment: vec![
            variable("KAFKA_NUM_PARTITIONS", "3"),
            variable("KAFKA_NODE_ID", "3"),
            variable("PATH", "/bin"),
        ],
        overrides: vec!["node.id=4".to_owned()],
    });
    let loaded = loaded.unwrap();
    assert_eq!(loaded.config.node_id, 4);
    assert_eq!(loaded.config.default_partitions, 3);
    assert_eq!(loaded.config.topic.segment_bytes, 2000);
    assert_eq!(loaded.warnings, [""; 0]);
}

#[test]
fn variables_of_the_image_and_of_kubernetes_are_ignored_in_one_line() {
    let names = ["KAFKA_HEAP_OPTS", "KAFKA_JMX_PORT", "KAFKA_LOG4J_LOGGERS", "KAFKA_PORT_9092_TCP"];
    let environment = names.map(|name| (name.to_owned(), "x".to_owned())).to_vec();
    let loaded = load(Sources { environment, ..Sources::default() }).unwrap();
    let said = format!("no settings of a broker: {}", names.join(", "));
    assert_eq!(loaded.warnings, [said]);
}

#[test]
fn all_faults_are_told_at_once_with_key_value_reason_and_place() {
    let text = "num.partitions=none\nlog.segment.bytes=3\ncompression.type=rar\n\
                ssl.key.password=secret\nlog.retention.ms=0\n";
    let said = file(text).unwrap_err().to_string();
    let lines: Vec<_> = said.lines().collect();
    let [compression, retention, segment, partitions] = lines[..] else { panic!("{said}") };
    assert!(
        compression.starts_with(
            "compression.type=rar: String must be one of: uncompressed, zstd, lz4, snappy, gzip, \
             producer ("
        ),
        "{compression}"
    );
    assert!(compression.ends_with(":3)"), "{compression}");
    let unlimited = "log.retention.ms must be unlimited (-1) or, greater than or equal to 1";
    assert!(retention.starts_with(&format!("log.retention.ms=0: {unlimited}")), "{retention}");
    assert!(segment.starts_with("log.segment.bytes=3: Value must be at least 14"), "{segment}");
    assert!(
        partitions.starts_with("num.partitions=none: Not a number of type INT"),
        "{partitions}"
    );
}

#[test]
fn files_that_are_no_properties_are_refused() {
    let missing = load(Sources { file: Some("/nowhere/x".into()), ..Sources::default() });
    assert!(matches!(missing, Err(ConfigError::Unreadable { .. })));
    assert!(matches!(file("a=\\u12"), Err(ConfigError::Malformed { .. })));
    assert_eq!(faults(&["node.id"]), "--override=node.id: it wants key=value");
}

#[test]
fn unknown_keys_and_keys_set_twice_warn() {
    let loaded = file("num.partitions=2\nnum.partitions=3\nretention.ms=5\nfoo.bar=1\n").unwrap();
    assert_eq!(loaded.config.default_partitions, 3);
    let [twice, foo, retention] = &loaded.warnings[..] else { panic!("{:?}", loaded.warnings) };
    assert!(twice.starts_with("num.partitions is set twice: ") && twice.contains(":1 does not"));
    assert!(foo.starts_with("unknown: foo.bar ("), "{foo}");
    assert!(retention.ends_with("; it is a topic's, the broker's is log.retention.ms"));
}

#[test]
fn the_files_that_ship_with_kafka_start_ottla_but_for_zookeepers() {
    let refused = shipped("kafka-3.9-zookeeper.properties").unwrap_err().to_string();
    assert!(refused.starts_with("zookeeper.connect=localhost:2181: clusters are not built yet"));
    assert_eq!(refused.lines().count(), 1, "{refused}");

    let mut said = String::new();
    let names =
        ["kafka-3.9-kraft.properties", "kafka-4-server.properties", "kafka-4-broker.properties"];
    for name in names {
        let loaded = shipped(name).unwrap();
        let config = &loaded.config;
        assert_eq!(config.advertised_listeners, [listener("PLAINTEXT", "localhost", 9092)]);
        assert_eq!(config.offsets_topic_replication_factor, 1);
        assert_eq!(config.log_dirs.len(), 1);
        writeln!(said, "{name}: {} {}", config.node_id, config.listeners.len()).unwrap();
        for warning in &loaded.warnings {
            writeln!(said, "  {warning}").unwrap();
        }
    }
    assert_eq!(said, SHIPPED_WARNINGS);
}

const SHIPPED_WARNINGS: &str = "\
kafka-3.9-kraft.properties: 1 1
  no effect: controller.listener.names, controller.quorum.voters, process.roles \
(Ottla has no KRaft quorum)
  no effect: inter.broker.listener.name (a broker that stands alone has no other to talk to)
  no effect: transaction.state.log.min.isr, transaction.state.log.replication.factor \
(transactions are not built yet)
  listener CONTROLLER is not opened: Ottla has no KRaft quorum
kafka-4-server.properties: 1 1
  no effect: controller.listener.names, controller.quorum.bootstrap.servers, process.roles \
(Ottla has no KRaft quorum)
  no effect: inter.broker.listener.name (a broker that stands alone has no other to talk to)
  no effect: share.coordinator.state.topic.min.isr, \
share.coordinator.state.topic.replication.factor (share groups are not built yet)
  no effect: transaction.state.log.min.isr, transaction.state.log.replication.factor \
(transactions are not built yet)
  listener CONTROLLER is not opened: Ottla has no KRaft quorum
kafka-4-broker.properties: 2 1
  no effect: controller.listener.names, controller.quorum.bootstrap.servers, process.roles \
(Ottla has no KRaft quorum)
  no effect: inter.broker.listener.name (a broker that stands alone has no other to talk to)
  no effect: share.coordinator.state.topic.min.isr, \
share.coordinator.state.topic.replication.factor (share groups are not built yet)
  no effect: transaction.state.log.min.isr, transaction.state.log.replication.factor \
(transactions are not built yet)
";

#[test]
fn listeners_are_named_apart_and_speak_plaintext() {
    let map = "listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT,SAFE:SSL";
    let two = config(&[map, "listeners=in://0.0.0.0:9092,OUT://[::1]:0"]);
    assert_eq!(two.listeners, [listener("IN", "0.0.0.0", 9092), listener("OUT", "::1", 0)]);
    let told = [listener("IN", "localhost", 9092), listener("OUT", "::1", 0)];
    assert_eq!(two.advertised_listeners, told);

    let wrong = |value: &str| faults(&[map, &format!("listeners={value}")]);
    assert!(wrong("SAFE://:1").contains("SAFE speaks SSL, and TLS and SASL are not built yet"));
    assert!(wrong("NEW://:1").contains("does not say what NEW speaks"));
    assert!(wrong("IN://:1,IN://:2").contains("each listener has a name of its own, IN has two"));
    assert!(wrong("IN://:1,OUT://a:1").contains("IN and OUT have the same port"));
    assert!(wrong("").contains("there is no listener for clients"));
    for text in ["IN", "IN:9092", "IN://x", "IN://:x", "IN://::1:9092", "IN://[x]:1", "://:1"] {
        assert!(wrong(text).contains("is not NAME://host:port"), "{text}");
    }
}

#[test]
fn what_is_advertised_can_be_connected_to() {
    let told = |value: &str| {
        let advertised = format!("advertised.listeners={value}");
        overridden(&["listeners=PLAINTEXT://0.0.0.0:9092", &advertised])
    };
    let here = told("plaintext://broker-1.example.com:29092").unwrap();
    assert_eq!(
        here.config.advertised_listeners,
        [listener("PLAINTEXT", "broker-1.example.com", 29092)]
    );
    assert_eq!(here.warnings, [""; 0]);
    for wildcard in ["PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://[::]:9092"] {
        let said = told(wildcard).unwrap_err().to_string();
        assert!(said.contains("cannot connect to a wildcard address; name this machine"), "{said}");
    }
    assert!(told("OTHER://x:1").unwrap_err().to_string().contains("`listeners` has no OTHER"));
    let vague = overridden(&["listeners=PLAINTEXT://0.0.0.0:9092"]).unwrap();
    assert!(vague.warnings[0].starts_with("advertised.listeners is not set: "));
}

#[test]
fn kraft_controllers_are_left_alone() {
    let kraft = ["process.roles=broker,controller", "listeners=PLAINTEXT://:1,CONTROLLER://:2"];
    let loaded = overridden(&kraft).unwrap();
    assert_eq!(loaded.config.listeners, [listener("PLAINTEXT", "", 1)]);
    let closed = "listener CONTROLLER is not opened: Ottla has no KRaft quorum";
    assert!(loaded.warnings.contains(&closed.to_owned()));
    assert!(faults(&["process.roles=controller"]).contains("Ottla is a broker"));
}

#[test]
fn nodes_have_one_number() {
    assert_eq!(config(&["broker.id=0"]).node_id, 0);
    assert_eq!(config(&["broker.id=-1"]).node_id, 1);
    assert_eq!(config(&["node.id=7", "broker.id=7"]).node_id, 7);
    assert_eq!(
        faults(&["node.id=7", "broker.id=8"]),
        "node.id=7: broker.id=8 says otherwise (--override)"
    );
    assert!(faults(&["node.id=-1"]).contains("Value must be at least 0"));
}

#[test]
fn smaller_units_go_before_larger_ones() {
    let hour = 3_600_000;
    let retention = |set: &[&str]| config(set).topic.retention_ms;
    assert_eq!(retention(&["log.retention.hours=2"]), 2 * hour);
    assert_eq!(retention(&["log.retention.hours=2", "log.retention.minutes=3"]), 180_000);
    assert_eq!(retention(&["log.retention.minutes=3", "log.retention.ms=4"]), 4);
    assert_eq!(retention(&["log.retention.hours=-5"]), -1);
    let roll = config(&["log.roll.hours=1", "log.roll.ms=5", "log.roll.jitter.hours=1"]).topic;
    assert_eq!((roll.segment_ms, roll.segment_jitter_ms), (5, hour));
    assert_eq!(config(&["log.flush.scheduler.interval.ms=9"]).topic.flush_ms, 9);
    assert_eq!(config(&["log.dir=a", "log.dirs=b, c"]).log_dirs, ["b", "c"].map(PathBuf::from));
    assert_eq!(config(&["log.dir=a"]).log_dirs, [PathBuf::from("a")]);
    assert!(faults(&["log.dirs=a,a"]).contains("a directory is there twice"));
    assert!(faults(&["log.dirs=a,,b"]).contains("a directory has no name"));
    assert!(faults(&["log.roll.ms=0"]).contains("log.roll.ms must be greater than or equal to 1"));
}

#[test]
fn replicas_count_as_one_where_a_broker_stands_alone() {
    let loaded = overridden(&["default.replication.factor=3"]).unwrap();
    assert_eq!(loaded.config.default_replication_factor, 1);
    let said = "default.replication.factor counts as 1: this broker stands alone";
    assert_eq!(loaded.warnings, [said]);
}

#[test]
fn what_would_be_a_false_promise_is_refused() {
    for (set, said) in [
        ("authorizer.class.name=x", "every client may do everything"),
        ("create.topic.policy.class.name=x", "Ottla runs no Java classes"),
        ("remote.log.storage.system.enable=true", "tiered storage is not built yet"),
        ("security.inter.broker.protocol=SSL", "TLS and SASL are not built yet"),
    ] {
        assert!(faults(&[set]).contains(said), "{set}");
    }
    let default = ["authorizer.class.name=", "remote.log.storage.system.enable=false"];
    assert_eq!(overridden(&default).unwrap().warnings, [""; 0]);
}

#[test]
fn own_keys() {
    let own = config(&[
        "ottla.flush.before.ack=never",
        "ottla.record.validation=strict",
        "ottla.http.listener=none",
        "ottla.log.dir.reserve=5",
    ]);
    assert_eq!(own.topic.flush_before_ack, FlushBeforeAck::Never);
    assert!(own.topic.strict_validation);
    assert_eq!((own.http_listener, own.log_dir_reserve), (None, Some(5)));
    assert!(faults(&["ottla.http.listener=9404"]).contains("neither host:port nor `none`"));
}

#[test]
fn bounds_that_kafka_takes_away() {
    let unbound = config(&["queued.max.request.bytes=-1", "connections.max.idle.ms=-1"]);
    assert_eq!(unbound.queued_request_bytes_max, usize::MAX);
    assert!(unbound.connections_max_idle > Duration::from_secs(1 << 31));
    assert!(faults(&["queued.max.request.bytes=5"]).contains("it must hold a request of"));
}

#[test]
fn settings_of_one_listener_are_checked_and_do_nothing() {
    let loaded = overridden(&["listener.name.plaintext.max.connections=5"]).unwrap();
    assert!(loaded.warnings[0].starts_with("no effect: listener.name.plaintext.max.connections ("));
    assert!(faults(&["listener.name.plaintext.max.connections=x"]).contains("Not a number"));
}
