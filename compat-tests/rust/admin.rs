//! Faults that users met in other brokers, of administration: each test states the right value
//! and names the report.

mod support;

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::*;
use support::*;
use uuid::Uuid;

const NONE: i16 = 0;
const UNKNOWN_TOPIC: i16 = 3;
const INVALID_TOPIC: i16 = 17;
const EXISTS: i16 = 36;
const INVALID_PARTITIONS: i16 = 37;
const INVALID_REPLICATION: i16 = 38;
const INVALID_CONFIG: i16 = 40;
const INVALID_REQUEST: i16 = 42;
const UNKNOWN_TOPIC_ID: i16 = 100;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;

fn describe(
    client: &mut Client,
    kind: i8,
    name: &str,
    keys: Option<&[&str]>,
) -> (i16, Vec<DescribeConfigsResourceResult>) {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configuration_keys(keys.map(|keys| keys.iter().map(|key| text(key)).collect()));
    let request = DescribeConfigsRequest::default()
        .with_resources(vec![resource])
        .with_include_synonyms(true);
    let answer: DescribeConfigsResponse = client.ask(ApiKey::DescribeConfigs, 4, &request);
    (answer.results[0].error_code, answer.results[0].configs.clone())
}

/// The value and source of one key.
fn value(client: &mut Client, kind: i8, name: &str, key: &str) -> (String, i8) {
    let (code, rows) = describe(client, kind, name, Some(&[key]));
    assert_eq!((code, rows.len()), (NONE, 1), "{key}");
    (rows[0].value.as_ref().map(ToString::to_string).unwrap_or_default(), rows[0].config_source)
}

fn alter(client: &mut Client, kind: i8, name: &str, changes: &[(&str, i8, &str)]) -> i16 {
    let configs = changes
        .iter()
        .map(|(key, operation, value)| {
            AlterableConfig::default()
                .with_name(text(key))
                .with_config_operation(*operation)
                .with_value((*operation != 1).then(|| text(value)))
        })
        .collect();
    let resource = AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configs(configs);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let answer: IncrementalAlterConfigsResponse =
        client.ask(ApiKey::IncrementalAlterConfigs, 1, &request);
    answer.responses[0].error_code
}

/// redpanda#1108 and #978: asking for one key gave the whole list, or no synonyms.
#[test]
fn settings_are_described_as_asked_with_sources_and_synonyms() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("described", 1, &[("retention.ms", "1000")]);
    let (code, rows) = describe(&mut client, TOPIC, "described", Some(&["cleanup.policy"]));
    assert_eq!((code, rows.len()), (NONE, 1));
    assert_eq!((rows[0].value.as_deref(), rows[0].config_source), (Some("delete"), 5));
    let synonyms: Vec<_> =
        rows[0].synonyms.iter().map(|row| (row.name.to_string(), row.source)).collect();
    assert_eq!(synonyms, [("log.cleanup.policy".to_owned(), 5)]);
    let asked = Some(&["retention.ms", "bogus"][..]);
    let (_, rows) = describe(&mut client, TOPIC, "described", asked);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].value.as_deref(), rows[0].config_source), (Some("1000"), 1));
    assert_eq!((rows[0].config_type, rows[0].synonyms.len()), (5, 1));
    for all in [None, Some(&[][..])] {
        assert!(describe(&mut client, TOPIC, "described", all).1.len() >= 25);
    }
    assert_eq!(describe(&mut client, TOPIC, "nope", None).0, UNKNOWN_TOPIC);
    assert_eq!(describe(&mut client, TOPIC, "a b", None).0, INVALID_TOPIC);
    assert_eq!(describe(&mut client, BROKER, "99", None).0, INVALID_REQUEST);
    assert_eq!(describe(&mut client, BROKER, "x", None).0, INVALID_REQUEST);
    let (code, rows) = describe(&mut client, BROKER, "", None);
    assert_eq!((code, rows.len()), (NONE, 0));
    assert!(describe(&mut client, BROKER, "1", None).1.len() > 100);
    assert_eq!(describe(&mut client, 99, "x", None).0, INVALID_REQUEST);
}

#[test]
fn settings_change_in_force_and_survive_a_restart() {
    let mut broker = Broker::start();
    let mut client = broker.client();
    client.create("changed", 1, &[]);
    let large = batch(now_ms(), &[&[1; 5_000]]);
    assert_eq!(client.produce("changed", 0, -1, large.clone()).error_code, NONE);
    let limit = [("max.message.bytes", 0, "1000")];
    assert_eq!(alter(&mut client, TOPIC, "changed", &limit), NONE);
    assert_eq!(client.produce("changed", 0, -1, large.clone()).error_code, 10);
    assert_eq!(value(&mut client, TOPIC, "changed", "max.message.bytes"), ("1000".to_owned(), 1));
    broker.restart();
    let mut client = broker.client();
    assert_eq!(client.produce("changed", 0, -1, large.clone()).error_code, 10);
    assert_eq!(alter(&mut client, TOPIC, "changed", &[("max.message.bytes", 1, "")]), NONE);
    assert_eq!(client.produce("changed", 0, -1, large.clone()).error_code, NONE);
    // For all brokers, then for this one, which goes before; a topic's own goes before both.
    assert_eq!(alter(&mut client, BROKER, "", &[("message.max.bytes", 0, "2000")]), NONE);
    assert_eq!(value(&mut client, TOPIC, "changed", "max.message.bytes"), ("2000".to_owned(), 3));
    assert_eq!(client.produce("changed", 0, -1, large.clone()).error_code, 10);
    assert_eq!(alter(&mut client, BROKER, "1", &[("message.max.bytes", 0, "9000")]), NONE);
    assert_eq!(value(&mut client, TOPIC, "changed", "max.message.bytes"), ("9000".to_owned(), 2));
    assert_eq!(client.produce("changed", 0, -1, large.clone()).error_code, NONE);
    broker.restart();
    let mut client = broker.client();
    assert_eq!(value(&mut client, BROKER, "1", "message.max.bytes"), ("9000".to_owned(), 2));
}

/// Tansu panicked on lists.
#[test]
fn lists_are_appended_to_and_subtracted_from() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("lists", 1, &[]);
    let policy = |client: &mut Client| value(client, TOPIC, "lists", "cleanup.policy").0;
    let change = |client: &mut Client, operation, value| {
        alter(client, TOPIC, "lists", &[("cleanup.policy", operation, value)])
    };
    assert_eq!(change(&mut client, 2, "compact"), NONE);
    assert_eq!(policy(&mut client), "delete,compact");
    assert_eq!(change(&mut client, 2, "compact"), NONE);
    assert_eq!(policy(&mut client), "delete,compact");
    assert_eq!(change(&mut client, 3, "delete"), NONE);
    assert_eq!(policy(&mut client), "compact");
    assert_eq!(change(&mut client, 0, "sometimes"), INVALID_CONFIG);
    let number = [("retention.ms", 2, "5")];
    assert_eq!(alter(&mut client, TOPIC, "lists", &number), INVALID_CONFIG);
    let twice = [("retention.ms", 0, "5"), ("retention.ms", 0, "6")];
    assert_eq!(alter(&mut client, TOPIC, "lists", &twice), INVALID_REQUEST);
    assert_eq!(alter(&mut client, TOPIC, "lists", &[("bogus", 0, "1")]), INVALID_CONFIG);
    assert_eq!(alter(&mut client, TOPIC, "nope", &[("retention.ms", 0, "5")]), UNKNOWN_TOPIC);
    // What cannot change while the broker runs is refused, what is wrong with one keeps all out.
    let fixed = [("message.max.bytes", 0, "5000"), ("log.dirs", 0, "/elsewhere")];
    assert_eq!(alter(&mut client, BROKER, "1", &fixed), INVALID_REQUEST);
    assert_eq!(value(&mut client, BROKER, "1", "message.max.bytes").1, 5);
}

#[test]
fn loggers_have_levels() {
    let broker = Broker::start();
    let mut client = broker.client();
    let (code, rows) = describe(&mut client, LOGGER, "1", None);
    assert_eq!(code, NONE);
    assert!(rows.iter().any(|row| &*row.name == "root"));
    assert_eq!(alter(&mut client, LOGGER, "1", &[("ottla.net", 0, "DEBUG")]), NONE);
    assert_eq!(alter(&mut client, LOGGER, "1", &[("ottla.net", 0, "LOUD")]), INVALID_CONFIG);
    assert_eq!(alter(&mut client, LOGGER, "1", &[("no.such", 0, "INFO")]), INVALID_CONFIG);
    assert_eq!(alter(&mut client, LOGGER, "1", &[("root", 1, "")]), INVALID_CONFIG);
    assert_eq!(alter(&mut client, LOGGER, "7", &[("root", 0, "INFO")]), INVALID_REQUEST);
}

fn validate(client: &mut Client, topic: CreatableTopic) -> (i16, i32, i16, usize) {
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(5_000)
        .with_validate_only(true);
    let answer: CreateTopicsResponse = client.ask(ApiKey::CreateTopics, 7, &request);
    let row = &answer.topics[0];
    let configs = row.configs.as_ref().map_or(0, Vec::len);
    (row.error_code, row.num_partitions, row.replication_factor, configs)
}

fn topics(client: &mut Client) -> Vec<(String, usize)> {
    let request = MetadataRequest::default().with_topics(None);
    let answer: MetadataResponse = client.ask(ApiKey::Metadata, 9, &request);
    let rows = answer.topics.iter();
    rows.map(|row| (row.name.as_ref().expect("named").to_string(), row.partitions.len())).collect()
}

/// redpanda#7946, KAFKA-13324, kop#244, sarama#1955: a dry run was no run, or a real one.
#[test]
fn a_dry_run_makes_every_check_and_nothing_else() {
    let broker = Broker::start();
    let mut client = broker.client();
    assert_eq!(client.create("a", 1, &[]), NONE);
    let new = |name: &str, partitions, factor| {
        CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(partitions)
            .with_replication_factor(factor)
    };
    let bad =
        CreatableTopicConfig::default().with_name(text("retention.ms")).with_value(Some(text("x")));
    let (code, partitions, factor, configs) = validate(&mut client, new("b", 3, 1));
    assert_eq!((code, partitions, factor), (NONE, 3, 1));
    assert!(configs >= 25);
    let refused = [
        (new("a", 1, 1), EXISTS),
        (new("c", 1, 9), INVALID_REPLICATION),
        (new("c", 1, 0), INVALID_REPLICATION),
        (new("c", 0, 1), INVALID_PARTITIONS),
        (new("c d", 1, 1), INVALID_TOPIC),
        (new("c", 1, 1).with_configs(vec![bad]), INVALID_CONFIG),
    ];
    for (topic, code) in refused {
        assert_eq!(validate(&mut client, topic).0, code);
    }
    let grow = |client: &mut Client, count, dry| {
        let topic = CreatePartitionsTopic::default()
            .with_name(topic_name("a"))
            .with_count(count)
            .with_assignments(None);
        let request = CreatePartitionsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(5_000)
            .with_validate_only(dry);
        let answer: CreatePartitionsResponse = client.ask(ApiKey::CreatePartitions, 3, &request);
        answer.results[0].error_code
    };
    assert_eq!(grow(&mut client, 5, true), NONE);
    assert_eq!(grow(&mut client, 1, true), INVALID_PARTITIONS);
    assert_eq!(topics(&mut client), [("a".to_owned(), 1)]);
    assert_eq!(grow(&mut client, 5, false), NONE);
    assert_eq!(topics(&mut client), [("a".to_owned(), 5)]);
    assert_eq!(client.produce("a", 4, -1, batch(now_ms(), &[b"x"])).error_code, NONE);
}

fn topic_id(client: &mut Client, name: &str) -> Uuid {
    let asked = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
    let request = MetadataRequest::default().with_topics(Some(vec![asked]));
    let answer: MetadataResponse = client.ask(ApiKey::Metadata, 12, &request);
    answer.topics[0].topic_id
}

fn fetch_by_id(client: &mut Client, id: Uuid) -> (i16, i16) {
    let mut request = fetch_request(&[("", 0, 0)], 1 << 20, 1 << 20);
    request.topics[0].topic_id = id;
    let answer: FetchResponse = client.ask(ApiKey::Fetch, 13, &request);
    (answer.error_code, answer.responses[0].partitions[0].error_code)
}

/// kop#530: a topic made again under the same name looked like the old one.
#[test]
fn a_topic_made_again_is_another_topic_also_after_a_restart() {
    let mut broker = Broker::start();
    let mut client = broker.client();
    client.create("again", 1, &[]);
    let old = topic_id(&mut client, "again");
    for _ in 0..10 {
        client.produce("again", 0, -1, batch(now_ms(), &[b"old"]));
    }
    let named = DeleteTopicState::default().with_topic_id(old).with_name(None);
    let request = DeleteTopicsRequest::default().with_topics(vec![named]).with_timeout_ms(5_000);
    let answer: DeleteTopicsResponse = client.ask(ApiKey::DeleteTopics, 6, &request);
    assert_eq!(answer.responses[0].error_code, NONE);
    assert_eq!(
        answer.responses[0].name.as_ref().map(|name| name.to_string()).as_deref(),
        Some("again")
    );
    let answer: DeleteTopicsResponse = client.ask(ApiKey::DeleteTopics, 6, &request);
    assert_eq!(answer.responses[0].error_code, UNKNOWN_TOPIC_ID);
    client.create("again", 1, &[]);
    // Asked by id; the Java client leaves the name empty, not null.
    for (id, code) in [(old, UNKNOWN_TOPIC_ID), (topic_id(&mut client, "again"), NONE)] {
        let asked =
            MetadataRequestTopic::default().with_topic_id(id).with_name(Some(topic_name("")));
        let request = MetadataRequest::default().with_topics(Some(vec![asked]));
        let answer: MetadataResponse = client.ask(ApiKey::Metadata, 12, &request);
        assert_eq!((answer.topics[0].error_code, answer.topics[0].topic_id), (code, id));
    }
    let new = topic_id(&mut client, "again");
    assert_ne!(old, new);
    for _ in 0..5 {
        client.produce("again", 0, -1, batch(now_ms(), &[b"new"]));
    }
    for restart in [false, true] {
        if restart {
            broker.restart();
            client = broker.client();
        }
        assert_eq!(client.offset("again", 0, -1), (NONE, -1, 5));
        assert_eq!(client.fetch("again", 0, 10).error_code, 1);
        assert_eq!(fetch_by_id(&mut client, old), (NONE, UNKNOWN_TOPIC_ID));
        assert_eq!(fetch_by_id(&mut client, new), (NONE, NONE));
    }
}

/// kafka-ui#3261, redpanda#903: no sizes to show.
#[test]
fn log_directories_tell_what_lies_in_them() {
    let broker = Broker::start();
    let mut client = broker.client();
    for (name, partitions) in [("t", 2), ("u", 1), ("v", 1)] {
        client.create(name, partitions, &[]);
    }
    for _ in 0..10 {
        client.produce("t", 0, -1, batch(now_ms(), &[&[9; 100_000]]));
    }
    let ask = |client: &mut Client, topics: Option<Vec<DescribableLogDirTopic>>| {
        let request = DescribeLogDirsRequest::default().with_topics(topics);
        let answer: DescribeLogDirsResponse = client.ask(ApiKey::DescribeLogDirs, 4, &request);
        assert_eq!((answer.error_code, answer.results.len()), (NONE, 1));
        answer.results[0].clone()
    };
    let dir = ask(&mut client, None);
    assert!(std::path::Path::new(&*dir.log_dir).is_absolute());
    assert!(std::path::Path::new(&*dir.log_dir).is_dir());
    assert!(dir.usable_bytes > 0 && dir.total_bytes >= dir.usable_bytes);
    let rows: Vec<_> = dir
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|row| (topic.name.to_string(), row.clone())))
        .collect();
    assert_eq!(rows.len(), 4);
    let (_, first) =
        rows.iter().find(|(name, row)| name == "t" && row.partition_index == 0).expect("there");
    assert!((1_000_000..1_200_000).contains(&first.partition_size), "{}", first.partition_size);
    assert!(rows.iter().all(|(_, row)| row.offset_lag == 0 && !row.is_future_key));
    let one =
        DescribableLogDirTopic::default().with_topic(topic_name("t")).with_partitions(vec![0, 77]);
    let some = ask(&mut client, Some(vec![one]));
    assert_eq!((some.topics.len(), some.topics[0].partitions.len()), (1, 1));
}

/// A client that went away while its topic was made left it half made, and nobody could use it.
#[test]
fn a_change_is_made_whole_although_its_client_goes_away() {
    let broker = Broker::start();
    for round in 0..60 {
        let mut client = broker.client();
        let topic = CreatableTopic::default()
            .with_name(topic_name(&format!("left-{round}")))
            .with_num_partitions(3)
            .with_replication_factor(1);
        let request = CreateTopicsRequest::default().with_topics(vec![topic]);
        client.send(ApiKey::CreateTopics, 7, &request);
        let mut other = broker.client();
        let request = FindCoordinatorRequest::default().with_key(text("g"));
        other.send(ApiKey::FindCoordinator, 2, &request);
    }
    let mut client = broker.client();
    for round in 0..60 {
        let name = format!("left-{round}");
        wait_for("the topic to be there and usable", || {
            let code = client.create(&name, 3, &[]);
            assert!([NONE, EXISTS].contains(&code), "{name}: {code}");
            let code = client.produce(&name, 2, -1, batch(now_ms(), &[b"x"])).error_code;
            (code == NONE).then_some(())
        });
    }
    wait_for("the coordinators", || {
        let listed: ListGroupsResponse =
            client.ask(ApiKey::ListGroups, 4, &ListGroupsRequest::default());
        let request = HeartbeatRequest::default().with_group_id(GroupId(text("g")));
        let beat: HeartbeatResponse = client.ask(ApiKey::Heartbeat, 3, &request);
        // Loaded and asked, the group is unknown: no longer "not coordinator".
        (listed.error_code == NONE && beat.error_code == 25).then_some(())
    });
}
