//! Bytes that no honest client sends: each closes its own connection or is answered, and costs the
//! broker neither its life nor its memory.

#![allow(clippy::disallowed_methods, reason = "tests have clocks of their own")]

mod support;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::*;

/// One test at a time, because two of them measure this process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// APIs that random values would have make thousands of partitions.
const MAKES_PARTITIONS: [i16; 2] = [19, 37];

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below.max(1) as u64).expect("small")
    }
}

/// Request bodies as Kafka's own classes write them: key, version, body.
fn golden() -> Vec<(i16, i16, Vec<u8>)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/compat-tests/golden/wire-4.1.txt");
    let lines = std::fs::read_to_string(path).expect("golden lines");
    let requests = lines.lines().filter_map(|line| {
        let mut words = line.split(' ');
        (words.next()? == "request").then_some(())?;
        let (key, version) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let hex = words.next().unwrap_or_default();
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
        Some((key, version, (0..hex.len()).step_by(2).map(byte).collect()))
    });
    requests.collect()
}

fn frame(key: i16, version: i16, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_i32(0);
    frame.put_i16(key);
    frame.put_i16(version);
    frame.put_i32(1);
    frame.put_i16(-1);
    if ApiKey::try_from(key).is_ok_and(|key| key.request_header_version(version) >= 2) {
        frame.put_u8(0);
    }
    frame.put_slice(body);
    let length = i32::try_from(frame.len() - 4).expect("length");
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame.freeze()
}

/// Sends bytes, then nothing more, and waits until the broker has closed the connection.
fn throw(port: u16, bytes: &[u8]) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connect");
    stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
    // The broker may have closed already, which is as good.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(length) => length,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
        Err(error) => panic!("neither answered nor closed: {error}"),
    }
}

/// Kilobytes of memory this process holds, or held at most.
fn memory(line: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let found = status.lines().find_map(|row| row.strip_prefix(line)?.strip_prefix(':'));
    let number = found.expect("a row").trim().trim_end_matches(" kB");
    number.parse().expect("a number")
}

#[test]
fn requests_of_every_kind_whole_cut_or_changed_hurt_nobody_else() {
    let _alone = alone();
    let broker = Broker::start();
    let mut bystander = broker.client();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let requests = golden();
    assert!(requests.len() > 5_000);
    let mut thrown = 0;
    let rounds = std::env::var("TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let chosen = (0..rounds).flat_map(|round| requests.iter().skip(round % 4).step_by(4));
    for (key, version, body) in chosen {
        if MAKES_PARTITIONS.contains(key) {
            continue;
        }
        let mut cut = body.clone();
        cut.truncate(numbers.next(body.len()));
        let mut changed = body.clone();
        for _ in 0..3 {
            if !changed.is_empty() {
                let at = numbers.next(changed.len());
                changed[at] = u8::try_from(numbers.next(256)).expect("a byte");
            }
        }
        for body in [body, &cut, &changed] {
            throw(broker.port, &frame(*key, *version, body));
            thrown += 1;
        }
    }
    assert!(thrown > 3_000 * rounds, "{thrown}");
    println!("{thrown} frames");
    assert_eq!(bystander.create("still-served", 1, &[]), 0);
    let appended = bystander.produce("still-served", 0, -1, batch(now_ms(), &[b"x"]));
    assert_eq!((appended.error_code, appended.base_offset), (0, 0));
}

#[test]
fn counts_that_cannot_be_true_take_no_memory() {
    let _alone = alone();
    let broker = Broker::start();
    broker.client();
    // The peak counts from here on.
    std::fs::write("/proc/self/clear_refs", "5").expect("reset");
    let before = memory("VmRSS");
    // Metadata 12: a compact count of 2^32 - 2. Produce 7: 2^31 - 1 topics. JoinGroup 0: 64 Mi.
    let bombs: [(i16, i16, &[u8]); 5] = [
        (3, 12, b"\xff\xff\xff\xff\x0f"),
        (0, 7, b"\xff\xff\x00\x01\x00\x00\x27\x10\x7f\xff\xff\xff"),
        (11, 0, b"\x00\x01g\x00\x00\x27\x10\x00\x00\x00\x01c\x04\x00\x00\x00"),
        (1, 12, b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\x0f"),
        (32, 4, b"\xff\xff\xff\xff\x0f"),
    ];
    for _ in 0..100 {
        for (key, version, body) in bombs {
            assert_eq!(throw(broker.port, &frame(key, version, body)), 0, "key {key}");
        }
    }
    let grown = memory("VmHWM").saturating_sub(before);
    assert!(grown < 60_000, "{grown} kB");
}

#[test]
fn a_claimed_length_and_silence_hold_no_memory() {
    let _alone = alone();
    let broker = Broker::start();
    let before = memory("VmRSS");
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(("127.0.0.1", broker.port)).expect("connect");
        stream.write_all(&100_000_000i32.to_be_bytes()).expect("write");
        stream.write_all(&[0; 100]).expect("write");
        held.push(stream);
    }
    assert_eq!(broker.client().create("still-served", 1, &[]), 0);
    let grown = memory("VmRSS").saturating_sub(before);
    assert!(grown < 60_000, "{grown} kB");
}

/// Half frames held the memory of all connections, and it was the honest newcomer that was closed.
#[test]
fn half_a_frame_gives_its_memory_up_to_who_waits_for_it() {
    let _alone = alone();
    let broker = Broker::with(&SCARCE);
    let mut honest = broker.client();
    assert_eq!(honest.create("honest", 1, &[]), 0);
    let hoarders = hoarders(&broker);
    for hoarder in &hoarders {
        // It is not silent, only slow.
        let mut dripping = hoarder.stream.try_clone().expect("a handle");
        std::thread::spawn(move || {
            while dripping.write_all(&[0]).is_ok() {
                std::thread::park_timeout(Duration::from_millis(100));
            }
        });
    }
    let large = batch(now_ms(), &[&[1; 700_000]]);
    assert_eq!(honest.produce("honest", 0, -1, large).error_code, 0);
    wait_for("one of them to be closed", || {
        hoarders.iter().any(|hoarder| is_closed_now(&hoarder.stream)).then_some(())
    });
}

/// Memory for one large frame.
const SCARCE: [(&str, &str); 2] =
    [("queued.max.request.bytes", "1000000"), ("socket.request.max.bytes", "1000000")];

/// Whether the broker has closed a connection on which it answers nothing.
fn is_closed_now(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    match stream.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// Two that sent 400,000 bytes of 990,000: one holds nearly all [`SCARCE`] memory, the other more
/// than there was, so that a third has to wait.
fn hoarders(broker: &Broker) -> [Client; 2] {
    [600_000.0, 1_200_000.0].map(|then_held| {
        let mut half = broker.client();
        half.write(&990_000i32.to_be_bytes());
        half.write(&[0; 400_000]);
        wait_for("the half frame to be held", || (held(broker) > then_held).then_some(()));
        half
    })
}

/// Bytes of frames that all connections hold.
fn held(broker: &Broker) -> f64 {
    broker.metric("kafka_network_socketserver_memorypoolused")
}

/// Honest frames that together exceed the memory for all waited for each other for half a minute,
/// and were all closed then.
#[test]
fn more_large_frames_than_there_is_memory_for_get_through_one_after_the_other() {
    let _alone = alone();
    let most = [("queued.max.request.bytes", "2000000"), ("socket.request.max.bytes", "1000000")];
    let broker = Broker::with(&most);
    assert_eq!(broker.client().create("busy", 1, &[]), 0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..10 {
            let mut client = broker.client();
            scope.spawn(move || {
                for _ in 0..5 {
                    let large = batch(now_ms(), &[&[1; 900_000]]);
                    assert_eq!(client.produce("busy", 0, -1, large).error_code, 0);
                }
            });
        }
    });
    assert_eq!(broker.client().offset("busy", 0, -1), (0, -1, 50));
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

/// While a frame waits for memory, earlier requests are answered, and whoever goes away lets go.
#[test]
fn waiting_for_memory_holds_up_no_answers_and_keeps_none_for_the_gone() {
    let _alone = alone();
    let broker = Broker::with(&SCARCE);
    let mut client = broker.client();
    assert_eq!(client.create("held", 1, &[]), 0);
    let hoarders = hoarders(&broker);
    let mut pipelined = broker.client();
    let small = produce_request("held", 0, -1, batch(now_ms(), &[b"x"]));
    let frame = pipelined.frame(ApiKey::Produce, 9, &small);
    pipelined.write(&frame);
    pipelined.write(&990_000i32.to_be_bytes());
    // Little enough for the end to arrive behind it, unread as it is.
    pipelined.write(&[0; 100_000]);
    let began = Instant::now();
    let answer: ProduceResponse = pipelined.receive(ApiKey::Produce, 9);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let open = || broker.metric("kafka_server_socketservermetrics_connection_count");
    assert_eq!(open(), 4.0);
    drop(pipelined);
    let began = Instant::now();
    wait_for("the one that waits to be noticed gone", || (open() < 4.0).then_some(()));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    drop(hoarders);
    wait_for("all of it to be given back", || (held(&broker) < 1.0).then_some(()));
}

#[test]
fn bombs_in_compressed_batches_are_refused() {
    use kafka_protocol::records::Compression;
    let _alone = alone();
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("bombs", 1, &[("compression.type", "uncompressed")]);
    let zeros = vec![0; 100 << 20];
    let bomb = encode(&[record(0, now_ms(), None, &zeros)], Compression::Gzip);
    drop(zeros);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(client.produce("bombs", 0, -1, bomb).error_code, 87);
    assert_eq!(client.offset("bombs", 0, -1).2, 0);
}

#[test]
fn ten_thousand_pipelined_requests_are_answered_in_order() {
    let _alone = alone();
    let broker = Broker::start();
    let mut client = broker.client();
    let request = MetadataRequest::default().with_topics(Some(Vec::new()));
    let mut writer = client.stream.try_clone().expect("clone");
    let frames: Vec<Bytes> =
        (0..10_000).map(|_| client.frame(ApiKey::Metadata, 9, &request)).collect();
    let sender = std::thread::spawn(move || {
        frames.iter().for_each(|frame| writer.write_all(frame).expect("write"));
    });
    for number in 1..=10_000 {
        let answer = client.read_frame().expect("an answer");
        assert_eq!(answer[..4], i32::to_be_bytes(number));
    }
    sender.join().expect("sent");
}

/// Whoever leaves in the middle of an answer costs his own connection.
#[test]
fn clients_that_go_away_in_the_middle_of_an_answer_leave_nothing_behind() {
    let _alone = alone();
    let broker = Broker::start();
    let mut client = broker.client();
    assert_eq!(client.create("large", 1, &[]), 0);
    for _ in 0..8 {
        let large = batch(now_ms(), &[&[1; 1_000_000]]);
        assert_eq!(client.produce("large", 0, -1, large).error_code, 0);
    }
    let request = fetch_request(&[("large", 0, 0)], 1 << 24, 1 << 24);
    for read in [0, 1, 5, 1_000, 100_000] {
        for _ in 0..10 {
            let mut leaving = broker.client();
            leaving.send(ApiKey::Fetch, 12, &request);
            leaving.stream.read_exact(&mut vec![0; read]).expect("the beginning of an answer");
        }
    }
    let open = || broker.metric("kafka_server_socketservermetrics_connection_count");
    wait_for("their connections to end", || (open() <= 1.0).then_some(()));
    assert_eq!(client.fetch("large", 0, 0).error_code, 0);
}

/// One request may name a partition twice: each batch is judged and appended for itself.
#[test]
fn a_partition_named_twice_gets_both_batches() {
    let _alone = alone();
    let broker = Broker::start();
    let mut client = broker.client();
    assert_eq!(client.create("twice", 1, &[]), 0);
    let mut request = produce_request("twice", 0, -1, batch(now_ms(), &[b"x"]));
    let rows = &mut request.topic_data[0].partition_data;
    rows.push(rows[0].clone());
    let answer: ProduceResponse = client.ask(ApiKey::Produce, 9, &request);
    let rows = &answer.responses[0].partition_responses;
    let told: Vec<_> = rows.iter().map(|row| (row.error_code, row.base_offset)).collect();
    assert_eq!(told, [(0, 0), (0, 1)]);
    let request = fetch_request(&[("twice", 0, 0), ("twice", 0, 1)], 1 << 20, 1 << 20);
    let answer: FetchResponse = client.ask(ApiKey::Fetch, 12, &request);
    assert_eq!(answer.error_code, 0);
}

#[test]
fn names_that_would_leave_the_directory_are_refused() {
    let _alone = alone();
    let broker = Broker::start();
    let mut client = broker.client();
    for name in ["..", ".", "../x", "a/b", "/etc", "a\0b", "", &"x".repeat(250), "é"] {
        assert_eq!(client.create(name, 1, &[]), 17, "{name:?}");
    }
    let reached = std::fs::read_dir(broker.dir.path()).expect("list").count();
    assert_eq!(reached, 1);
    for partition in [-1, i32::MAX, i32::MIN] {
        assert_eq!(client.produce("t", partition, -1, batch(now_ms(), &[b"x"])).error_code, 3);
        assert_eq!(client.offset("t", partition, -1).0, 3);
    }
    for topic in ["__consumer_offsets", "__transaction_state"] {
        let request = FindCoordinatorRequest::default().with_key(text("g"));
        let _: FindCoordinatorResponse = client.ask(ApiKey::FindCoordinator, 2, &request);
        let code = client.produce(topic, 0, -1, batch(now_ms(), &[b"x"])).error_code;
        assert!(code == 17 || code == 3, "{topic}: {code}");
    }
}

/// An error message that repeats a name of 32,767 bytes is longer than the wire can say: the broker
/// must not fall over it.
#[test]
fn names_as_long_as_the_wire_allows_are_answered() {
    use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
    use kafka_protocol::messages::incremental_alter_configs_request::{
        AlterConfigsResource, AlterableConfig,
    };
    let _alone = alone();
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("t", 1, &[]);
    let long = "x".repeat(32_767);
    for kind in [2, 4, 8, 16, 99] {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(&long))
            .with_configuration_keys(None);
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let answer: DescribeConfigsResponse = client.ask(ApiKey::DescribeConfigs, 1, &request);
        assert_ne!(answer.results[0].error_code, 0);
    }
    for (name, value) in [(&long[..], "1"), ("retention.ms", &long[..])] {
        let config = AlterableConfig::default().with_name(text(name)).with_value(Some(text(value)));
        let resource = AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text("t"))
            .with_configs(vec![config]);
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        let answer: IncrementalAlterConfigsResponse =
            client.ask(ApiKey::IncrementalAlterConfigs, 0, &request);
        assert_eq!(answer.responses[0].error_code, 40);
    }
    assert_eq!(client.create(&long, 1, &[]), 17);
}

/// What follows a malformed request on its connection was still served.
#[test]
fn nothing_is_served_behind_a_malformed_request() {
    let _alone = alone();
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("behind", 1, &[]);
    let good = client.frame(
        ApiKey::Produce,
        9,
        &produce_request("behind", 0, -1, batch(now_ms(), &[b"first"])),
    );
    let malformed = frame(0, 9, b"\xff\xff\xff\xff\x0f");
    client.write(&[&good[..], &malformed, &good].concat());
    let answer: ProduceResponse = client.receive(ApiKey::Produce, 9);
    assert_eq!(answer.responses[0].partition_responses[0].base_offset, 0);
    assert!(client.is_closed());
    assert_eq!(broker.client().offset("behind", 0, -1).2, 1);
}

/// Looking for each name among all others would take hours.
#[test]
fn a_request_that_names_very_much_is_answered_soon() {
    use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
    use kafka_protocol::messages::create_topics_request::CreatableTopic;
    let _alone = alone();
    let broker = Broker::start();
    let mut client = broker.client();
    let often = 150_000;
    let name = || topic_name("named-very-often-indeed");
    let topic = CreatableTopic::default().with_name(name()).with_num_partitions(1);
    let request = CreateTopicsRequest::default().with_topics(vec![topic; often]);
    let answer: CreateTopicsResponse = client.ask(ApiKey::CreateTopics, 4, &request);
    assert_eq!(answer.topics.len(), 1);
    let topic = CreatePartitionsTopic::default().with_name(name()).with_count(2);
    let request = CreatePartitionsRequest::default().with_topics(vec![topic; often]);
    let answer: CreatePartitionsResponse = client.ask(ApiKey::CreatePartitions, 1, &request);
    assert_eq!(answer.results.len(), 1);
    let request = DeleteTopicsRequest::default().with_topic_names(vec![name(); often]);
    let answer: DeleteTopicsResponse = client.ask(ApiKey::DeleteTopics, 3, &request);
    assert_eq!(answer.responses.len(), 1);

    use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
    let topic = MetadataRequestTopic::default().with_name(Some(name()));
    let request = MetadataRequest::default().with_topics(Some(vec![topic; often]));
    let answer: MetadataResponse = client.ask(ApiKey::Metadata, 5, &request);
    assert_eq!(answer.topics.len(), 1);

    use kafka_protocol::messages::offset_commit_request::{
        OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    };
    let topics = (0..60_000).map(|number| {
        let partition = OffsetCommitRequestPartition::default().with_committed_offset(1);
        OffsetCommitRequestTopic::default()
            .with_name(topic_name(&format!("a-topic-that-is-not-there-{number}")))
            .with_partitions(vec![partition])
    });
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_topics(topics.collect());
    let answer: OffsetCommitResponse = client.ask(ApiKey::OffsetCommit, 2, &request);
    assert_eq!(answer.topics.len(), 60_000);
}

/// Whoever is in the middle of something does not keep the broker from stopping.
#[test]
fn half_a_request_does_not_hold_up_the_stop() {
    let _alone = alone();
    let mut broker = Broker::start();
    let mut http = TcpStream::connect(broker.http()).expect("connect");
    http.write_all(b"GET /metrics HT").expect("write");
    let mut kafka = TcpStream::connect(("127.0.0.1", broker.port)).expect("connect");
    kafka.write_all(&[0, 0, 1, 0, 0]).expect("write");
    let (send, stopped) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        broker.stop();
        let _ = send.send(());
    });
    stopped.recv_timeout(PATIENCE).expect("a stop");
}
