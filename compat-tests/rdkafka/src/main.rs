//! The rdkafka crate (librdkafka built from its own sources) against a broker.
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::process::{Child, Command, exit};
use std::time::{Duration, Instant};

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders, Timestamp};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::util::get_rdkafka_version;
use rdkafka::{Offset, TopicPartitionList};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Failure>;

const LIMIT: Duration = Duration::from_secs(25);
const ASK: Duration = Duration::from_secs(10);

/// Fails the check with what was seen.
macro_rules! require {
    ($holds:expr, $seen:expr) => {
        if !$holds {
            return Err(format!("seen: {:?} (main.rs:{})", $seen, line!()).into());
        }
    };
}

macro_rules! same {
    ($want:expr, $seen:expr) => {
        let (want, seen) = (&$want, &$seen);
        if want != seen {
            return Err(format!("want {want:?}, seen {seen:?} (main.rs:{})", line!()).into());
        }
    };
}

struct Suite {
    bootstrap: String,
    /// Every topic and group of this run begins with this.
    run: String,
    failed: bool,
    admin: AdminClient<DefaultClientContext>,
}

#[tokio::main]
async fn main() {
    let bootstrap = env::var("BOOTSTRAP").expect("BOOTSTRAP is not set");
    let run = env::var("RUN").expect("RUN is not set");
    let arguments: Vec<String> = env::args().collect();
    if let [_, _, topic, group] = arguments.as_slice() {
        member(&bootstrap, topic, group);
    }
    let admin =
        ClientConfig::new().set("bootstrap.servers", &bootstrap).create().expect("no admin client");
    let mut suite = Suite { bootstrap, run, failed: false, admin };
    println!("client rdkafka 0.39 (librdkafka {})", get_rdkafka_version().1);
    suite.run_all().await;
    exit(i32::from(suite.failed));
}

/// Another process's member, to be killed.
fn member(bootstrap: &str, topic: &str, group: &str) -> ! {
    let consumer: BaseConsumer = group_settings(bootstrap, group).create().expect("no consumer");
    consumer.subscribe(&[topic]).expect("no subscription");
    loop {
        let _ = consumer.poll(Duration::from_millis(100));
    }
}

fn group_settings(bootstrap: &str, group: &str) -> ClientConfig {
    let mut settings = ClientConfig::new();
    settings
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group)
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "300")
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false");
    settings
}

fn texts(first: usize, count: usize) -> Vec<String> {
    (first..first + count)
        .map(|i| format!("record {i} of some text, of some text, of some text"))
        .collect()
}

fn text(message: &BorrowedMessage<'_>) -> String {
    message.payload().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

/// Ends the other process also when the check fails before it does.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Suite {
    async fn run_all(&mut self) {
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
            let outcome = self.compression(codec).await;
            self.report("compression", codec, outcome);
        }
        for level in ["0", "1", "all"] {
            let outcome = self.acks(level).await;
            self.report("acks", level, outcome);
        }
        let outcome = self.idempotence().await;
        self.report("idempotence", "in batches of seven", outcome);
        let outcome = self.keys().await;
        self.report("keys", "null, empty, tombstone", outcome);
        let outcome = self.partitioner().await;
        self.report("keys", "partitioner", outcome);
        let outcome = self.headers().await;
        self.report("headers", "repeated, empty, null", outcome);
        let outcome = self.offsets().await;
        self.report("offsets", "beginning, absolute, from the tail, seek, position", outcome);
        let outcome = self.timestamps().await;
        self.report("timestamps", "create time, offsets for times", outcome);
        for strategy in ["range", "roundrobin", "cooperative-sticky"] {
            let outcome = self.groups(strategy).await;
            self.report("groups", &format!("join, leave, commit ({strategy})"), outcome);
        }
        let outcome = self.crash().await;
        self.report("groups", "crash", outcome);
        let outcome = self.commits().await;
        self.report("groups", "commits, list", outcome);
        let outcome = self.topics().await;
        self.report("topics", "create, refuse, grow, delete", outcome);
        let outcome = self.delete_records().await;
        self.report("topics", "delete records", outcome);
        let outcome = self.configs().await;
        self.report("configs", "topic", outcome);
        let outcome = self.cluster();
        self.report("cluster", "metadata", outcome);
    }

    fn report(&mut self, feature: &str, detail: &str, outcome: Outcome) {
        match outcome {
            Ok(()) => println!("PASS {feature} {detail}"),
            Err(wrong) => {
                self.failed = true;
                let wrong = wrong.to_string().replace('\n', "|");
                println!(
                    "FAIL {feature} {detail}: {}",
                    wrong.chars().take(500).collect::<String>()
                );
            }
        }
    }

    async fn compression(&self, codec: &str) -> Outcome {
        let topic = self.topic(&format!("compression-{codec}"), 1).await?;
        self.send(&topic, 0, &texts(0, 500), &[("compression.type", codec)]).await?;
        same!(texts(0, 500), self.read(&topic, 0, Offset::Beginning, 500)?);
        Ok(())
    }

    async fn acks(&self, level: &str) -> Outcome {
        let topic = self.topic(&format!("acks-{level}"), 1).await?;
        self.send(&topic, 0, &texts(0, 300), &[("acks", level)]).await?;
        same!(texts(0, 300), self.read(&topic, 0, Offset::Beginning, 300)?);
        Ok(())
    }

    async fn idempotence(&self) -> Outcome {
        let topic = self.topic("idempotence", 1).await?;
        let settings = [("enable.idempotence", "true"), ("batch.num.messages", "7")];
        let acked = self.send(&topic, 0, &texts(0, 1000), &settings).await?;
        same!((0..1000).collect::<Vec<i64>>(), acked);
        same!(texts(0, 1000), self.read(&topic, 0, Offset::Beginning, 1000)?);
        Ok(())
    }

    async fn keys(&self) -> Outcome {
        let topic = self.topic("keys", 1).await?;
        let producer = self.producer(&[])?;
        let choices = [Some("x"), Some(""), None];
        for key in choices {
            for value in choices {
                let mut record: FutureRecord<'_, str, str> = FutureRecord::to(&topic);
                record.key = key;
                record.payload = value;
                producer.send(record, ASK).await.map_err(|(wrong, _)| wrong)?;
            }
        }
        let consumer = self.at(&topic, 0, Offset::Beginning)?;
        let mut seen = Vec::new();
        self.take(&consumer, 9, |message| {
            seen.push((message.key().map(<[u8]>::to_vec), message.payload().map(<[u8]>::to_vec)));
        })?;
        let bytes = |choice: Option<&str>| choice.map(|text| text.as_bytes().to_vec());
        let want: Vec<_> =
            choices.iter().flat_map(|k| choices.iter().map(|v| (bytes(*k), bytes(*v)))).collect();
        same!(want, seen);
        Ok(())
    }

    async fn partitioner(&self) -> Outcome {
        let topic = self.topic("partitioner", 5).await?;
        let producer = self.producer(&[("partitioner", "murmur2_random")])?;
        let mut places = BTreeMap::new();
        for round in 0..2 {
            for key in ["alpha", "beta", "gamma", "delta"] {
                let sent = producer.send(FutureRecord::to(&topic).key(key).payload("v"), ASK).await;
                let partition = sent.map_err(|(wrong, _)| wrong)?.partition;
                if round == 1 {
                    same!(places[key], partition);
                }
                places.insert(key, partition);
            }
        }
        Ok(())
    }

    async fn headers(&self) -> Outcome {
        let topic = self.topic("headers", 1).await?;
        let sent = [("a", Some("1")), ("b", Some("")), ("a", Some("2")), ("none", None)];
        let mut headers = OwnedHeaders::new();
        for (key, value) in sent {
            headers = headers.insert(Header { key, value });
        }
        let record = FutureRecord::to(&topic).key("k").payload("v").headers(headers);
        self.producer(&[])?.send(record, ASK).await.map_err(|(wrong, _)| wrong)?;
        let consumer = self.at(&topic, 0, Offset::Beginning)?;
        let mut seen = Vec::new();
        self.take(&consumer, 1, |message| {
            if let Some(headers) = message.headers() {
                seen = headers
                    .iter()
                    .map(|one| (one.key.to_owned(), one.value.map(<[u8]>::to_vec)))
                    .collect();
            }
        })?;
        let want: Vec<_> =
            sent.iter().map(|(k, v)| ((*k).to_owned(), v.map(|v| v.as_bytes().to_vec()))).collect();
        same!(want, seen);
        Ok(())
    }

    async fn offsets(&self) -> Outcome {
        let topic = self.topic("offsets", 2).await?;
        same!((0..100).collect::<Vec<i64>>(), self.send(&topic, 0, &texts(0, 100), &[]).await?);
        let consumer = self.at(&topic, 0, Offset::Offset(60))?;
        same!((0, 100), consumer.fetch_watermarks(&topic, 0, ASK)?);
        same!((0, 0), consumer.fetch_watermarks(&topic, 1, ASK)?);
        same!(texts(60, 40), self.texts_of(&consumer, 40)?);
        same!(
            Some(Offset::Offset(100)),
            consumer.position()?.find_partition(&topic, 0).map(|one| one.offset())
        );
        consumer.seek(&topic, 0, Offset::Offset(7), ASK)?;
        same!(texts(7, 93), self.texts_of(&consumer, 93)?);
        same!(texts(90, 10), self.read(&topic, 0, Offset::OffsetTail(10), 10)?);
        // Beyond the end the consumer's own rule decides.
        same!(texts(0, 100), self.read(&topic, 0, Offset::Offset(500), 100)?);
        Ok(())
    }

    async fn timestamps(&self) -> Outcome {
        let topic = self.topic("timestamps", 1).await?;
        let producer = self.producer(&[])?;
        for time in [2000, 4000, 6000, 8000] {
            let record = FutureRecord::to(&topic).key("k").payload("v").timestamp(time);
            producer.send(record, ASK).await.map_err(|(wrong, _)| wrong)?;
        }
        let consumer = self.at(&topic, 0, Offset::Beginning)?;
        let mut seen = Vec::new();
        self.take(&consumer, 4, |message| seen.push(message.timestamp()))?;
        same!([2000, 4000, 6000, 8000].map(Timestamp::CreateTime).to_vec(), seen);
        for (time, want) in [
            (1, Offset::Offset(0)),
            (2001, Offset::Offset(1)),
            (8000, Offset::Offset(3)),
            (8001, Offset::End),
        ] {
            let mut ask = TopicPartitionList::new();
            ask.add_partition_offset(&topic, 0, Offset::Offset(time))?;
            let found = consumer.offsets_for_times(ask, ASK)?;
            same!(
                (time, Some(want)),
                (time, found.find_partition(&topic, 0).map(|one| one.offset()))
            );
        }
        Ok(())
    }

    async fn groups(&self, strategy: &str) -> Outcome {
        let topic = self.topic(&format!("group-{strategy}"), 4).await?;
        let group = format!("{}-g-{strategy}", self.run);
        let mut settings = group_settings(&self.bootstrap, &group);
        settings.set("partition.assignment.strategy", strategy);
        let first: BaseConsumer = settings.create()?;
        let second: BaseConsumer = settings.create()?;
        first.subscribe(&[&topic])?;
        balance(&[&first], &[4])?;
        second.subscribe(&[&topic])?;
        balance(&[&first, &second], &[2, 2])?;
        for partition in 0..4 {
            self.send(&topic, partition, &texts(partition as usize * 25, 25), &[]).await?;
        }
        let mut seen = BTreeSet::new();
        let mut count = 0;
        let end = Instant::now() + LIMIT;
        while count < 100 {
            require!(Instant::now() < end, count);
            for one in [&first, &second] {
                if let Some(message) = one.poll(Duration::from_millis(20)) {
                    seen.insert(text(&message?));
                    count += 1;
                }
            }
        }
        same!(texts(0, 100).into_iter().collect::<BTreeSet<_>>(), seen);
        first.commit_consumer_state(CommitMode::Sync)?;
        second.commit_consumer_state(CommitMode::Sync)?;
        drop(first);
        balance(&[&second], &[4])?;
        self.send(&topic, 3, &["after".to_owned()], &[]).await?;
        // The one that left had committed, so nothing comes twice.
        same!(vec!["after".to_owned()], self.texts_of(&second, 1)?);
        Ok(())
    }

    async fn crash(&self) -> Outcome {
        let topic = self.topic("crash", 4).await?;
        let group = format!("{}-g-crash", self.run);
        let ours: BaseConsumer = group_settings(&self.bootstrap, &group).create()?;
        ours.subscribe(&[&topic])?;
        balance(&[&ours], &[4])?;
        let mut other =
            Killed(Command::new(env::current_exe()?).args(["member", &topic, &group]).spawn()?);
        balance(&[&ours], &[2])?;
        other.0.kill()?;
        balance(&[&ours], &[4])
    }

    async fn commits(&self) -> Outcome {
        let topic = self.topic("commits", 1).await?;
        let group = format!("{}-g-commits", self.run);
        let consumer: BaseConsumer = group_settings(&self.bootstrap, &group).create()?;
        let mut list = TopicPartitionList::new();
        list.add_partition(&topic, 0);
        let committed = consumer.committed_offsets(list.clone(), ASK)?;
        same!(Some(Offset::Invalid), committed.find_partition(&topic, 0).map(|one| one.offset()));
        list.set_partition_offset(&topic, 0, Offset::Offset(42))?;
        consumer.commit(&list, CommitMode::Sync)?;
        let committed = consumer.committed_offsets(list, ASK)?;
        same!(
            Some(Offset::Offset(42)),
            committed.find_partition(&topic, 0).map(|one| one.offset())
        );
        let all = consumer.fetch_group_list(None, ASK)?;
        require!(all.groups().iter().any(|one| one.name() == group), all.groups().len());
        let deleted = self.admin.delete_groups(&[&group], &AdminOptions::new()).await?;
        require!(deleted.iter().all(Result::is_ok), deleted);
        Ok(())
    }

    async fn topics(&self) -> Outcome {
        let name = self.topic("created", 3).await?;
        for (topic, partitions, factor, want) in [
            (name.clone(), 1, 1, RDKafkaErrorCode::TopicAlreadyExists),
            (format!("{name} x"), 1, 1, RDKafkaErrorCode::InvalidTopic),
            (format!("{name}-rf"), 1, 9, RDKafkaErrorCode::InvalidReplicationFactor),
        ] {
            let new = NewTopic::new(&topic, partitions, TopicReplication::Fixed(factor));
            let refused = self.admin.create_topics(&[new], &AdminOptions::new()).await?;
            same!(vec![Err((topic.clone(), want))], refused);
        }
        let grown = self
            .admin
            .create_partitions(&[NewPartitions::new(&name, 5)], &AdminOptions::new())
            .await?;
        same!(vec![Ok(name.clone())], grown);
        let end = Instant::now() + LIMIT;
        while self.partitions(&name)? != 5 {
            require!(Instant::now() < end, self.partitions(&name)?);
        }
        same!(
            vec![Ok(name.clone())],
            self.admin.delete_topics(&[&name], &AdminOptions::new()).await?
        );
        let again = self.admin.delete_topics(&[&name], &AdminOptions::new()).await?;
        same!(vec![Err((name, RDKafkaErrorCode::UnknownTopicOrPartition))], again);
        Ok(())
    }

    async fn delete_records(&self) -> Outcome {
        let topic = self.topic("trimmed", 1).await?;
        self.send(&topic, 0, &texts(0, 20), &[]).await?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&topic, 0, Offset::Offset(8))?;
        let seen = self.admin.delete_records(&list, &AdminOptions::new()).await?;
        same!(Some(Offset::Offset(8)), seen.find_partition(&topic, 0).map(|one| one.offset()));
        same!(texts(8, 12), self.read(&topic, 0, Offset::Beginning, 12)?);
        Ok(())
    }

    async fn configs(&self) -> Outcome {
        let topic = self.topic("configs", 1).await?;
        let change =
            AlterConfig::new(ResourceSpecifier::Topic(&topic)).set("retention.ms", "86400000");
        let altered = self.admin.alter_configs(&[change], &AdminOptions::new()).await?;
        require!(altered.iter().all(Result::is_ok), altered);
        let end = Instant::now() + LIMIT;
        loop {
            let resource = ResourceSpecifier::Topic(&topic);
            let seen = self.admin.describe_configs([&resource], &AdminOptions::new()).await?;
            let Some(Ok(seen)) = seen.first() else { return Err("no configs".into()) };
            let value = |key: &str| seen.get(key).and_then(|entry| entry.value.clone());
            same!(Some("delete".to_owned()), value("cleanup.policy"));
            if value("retention.ms").as_deref() == Some("86400000") {
                return Ok(());
            }
            require!(Instant::now() < end, value("retention.ms"));
        }
    }

    fn cluster(&self) -> Outcome {
        let seen = self.admin.inner().fetch_metadata(None, ASK)?;
        let port: i32 = self.bootstrap.rsplit(':').next().unwrap_or_default().parse()?;
        same!(port, seen.brokers()[0].port());
        require!(self.admin.inner().fetch_cluster_id(ASK).is_some(), "no cluster id");
        Ok(())
    }

    async fn topic(&self, name: &str, partitions: i32) -> Result<String, Failure> {
        let name = format!("{}-{name}", self.run);
        let new = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
        let made = self.admin.create_topics(&[new], &AdminOptions::new()).await?;
        same!(vec![Ok(name.clone())], made);
        // A created topic may be without a leader for a moment.
        let consumer: BaseConsumer = group_settings(&self.bootstrap, "none").create()?;
        let end = Instant::now() + LIMIT;
        for partition in 0..partitions {
            while consumer.fetch_watermarks(&name, partition, ASK).ok() != Some((0, 0)) {
                require!(Instant::now() < end, (name, partition));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(name)
    }

    fn partitions(&self, topic: &str) -> Result<usize, Failure> {
        Ok(self.admin.inner().fetch_metadata(Some(topic), ASK)?.topics()[0].partitions().len())
    }

    fn producer(&self, settings: &[(&str, &str)]) -> Result<FutureProducer, Failure> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.bootstrap)
            .set("linger.ms", "20")
            .set("message.timeout.ms", "20000");
        for (key, value) in settings {
            config.set(*key, *value);
        }
        Ok(config.create()?)
    }

    /// Sends the values and returns the offset that each was given.
    async fn send(
        &self,
        topic: &str,
        partition: i32,
        values: &[String],
        settings: &[(&str, &str)],
    ) -> Result<Vec<i64>, Failure> {
        let producer = self.producer(settings)?;
        let mut sent = Vec::new();
        for value in values {
            let record: FutureRecord<'_, str, String> =
                FutureRecord::to(topic).partition(partition).payload(value);
            sent.push(producer.send_result(record).map_err(|(wrong, _)| wrong)?);
        }
        let mut offsets = Vec::new();
        for one in sent {
            offsets.push(one.await?.map_err(|(wrong, _)| wrong)?.offset);
        }
        Ok(offsets)
    }

    fn at(&self, topic: &str, partition: i32, offset: Offset) -> Result<BaseConsumer, Failure> {
        let consumer: BaseConsumer = group_settings(&self.bootstrap, "none").create()?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, offset)?;
        consumer.assign(&list)?;
        Ok(consumer)
    }

    fn take(
        &self,
        consumer: &BaseConsumer,
        count: usize,
        mut each: impl FnMut(&BorrowedMessage<'_>),
    ) -> Outcome {
        let end = Instant::now() + LIMIT;
        let mut came = 0;
        while came < count {
            if Instant::now() > end {
                return Err(format!("{came} of {count} records came").into());
            }
            if let Some(message) = consumer.poll(Duration::from_millis(200)) {
                each(&message?);
                came += 1;
            }
        }
        Ok(())
    }

    fn texts_of(&self, consumer: &BaseConsumer, count: usize) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        self.take(consumer, count, |message| found.push(text(message)))?;
        require!(
            consumer.poll(Duration::from_millis(200)).is_none(),
            "more records than were sent"
        );
        Ok(found)
    }

    fn read(
        &self,
        topic: &str,
        partition: i32,
        offset: Offset,
        count: usize,
    ) -> Result<Vec<String>, Failure> {
        self.texts_of(&self.at(topic, partition, offset)?, count)
    }
}

/// Polls all members until each owns as many partitions as wanted.
fn balance(members: &[&BaseConsumer], want: &[usize]) -> Outcome {
    let end = Instant::now() + LIMIT;
    loop {
        let mut seen = Vec::new();
        for member in members {
            if let Some(Err(wrong)) = member.poll(Duration::from_millis(30)) {
                return Err(wrong.into());
            }
            seen.push(member.assignment()?.count());
        }
        if seen == want {
            return Ok(());
        }
        require!(Instant::now() < end, (seen, want));
    }
}
