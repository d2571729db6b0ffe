//! Brokers in this process and clients that speak bytes, for the tests of whole requests.
#![allow(clippy::disallowed_methods, reason = "tests have clocks of their own")]
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part of this")]

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_protocol::records::{
    Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use ottla::config::{Sources, load};
use ottla::server::Server;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A broker with a directory of its own.
pub struct Broker {
    runtime: Runtime,
    server: Option<Server>,
    pub dir: TempDir,
    overrides: Vec<String>,
    pub port: u16,
}

impl Broker {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// With settings as on the command line.
    pub fn with(settings: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let mut overrides = vec![
            format!("log.dirs={}", dir.path().join("logs").display()),
            "listeners=PLAINTEXT://127.0.0.1:0".to_owned(),
            "ottla.http.listener=127.0.0.1:0".to_owned(),
            "group.initial.rebalance.delay.ms=0".to_owned(),
        ];
        overrides.extend(settings.iter().map(|(key, value)| format!("{key}={value}")));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("runtime");
        let mut broker = Self { runtime, server: None, dir, overrides, port: 0 };
        broker.launch();
        broker
    }

    fn launch(&mut self) {
        let sources = Sources { overrides: self.overrides.clone(), ..Sources::default() };
        let loaded = load(sources).expect("settings");
        let server = self.runtime.block_on(Server::start(loaded)).expect("start");
        self.port = server.listeners()[0].port;
        self.server = Some(server);
    }

    /// Stops as on SIGTERM.
    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
    }

    /// Stops cleanly and starts again, on another port.
    pub fn restart(&mut self) {
        self.stop();
        self.launch();
    }

    /// A connection to it, or to the broker at `AGAINST=host:port`: what these tests expect is
    /// what Apache Kafka answers, and can be shown so where no setting or restart is part of it.
    pub fn client(&self) -> Client {
        match std::env::var("AGAINST") {
            Ok(address) => Client::connect(&address),
            Err(_) => Client::connect(&format!("127.0.0.1:{}", self.port)),
        }
    }

    /// The ports of all listeners, in the order of `listeners`.
    pub fn ports(&self) -> Vec<u16> {
        let server = self.server.as_ref().expect("running");
        server.listeners().iter().map(|listener| listener.port).collect()
    }

    /// Where metrics and health are served.
    pub fn http(&self) -> std::net::SocketAddr {
        self.server.as_ref().and_then(Server::http).expect("http")
    }
}

impl Broker {
    /// The body of a page of the broker's HTTP listener.
    pub fn page(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.http()).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("write");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("read");
        page
    }

    /// The value of a metric, labels and all.
    pub fn metric(&self, name: &str) -> f64 {
        let page = self.page("/metrics");
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.trim().parse().expect("a number"))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A connection.
pub struct Client {
    pub stream: TcpStream,
    correlation_id: i32,
}

/// How long anything may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

/// Asks again until `done` gives something.
pub fn wait_for<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

impl Client {
    pub fn connect(address: &str) -> Self {
        Self::try_connect(address).expect("connect")
    }

    /// A connection, when somebody takes one.
    pub fn try_connect(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, correlation_id: 0 })
    }

    /// The whole frame of a request, with its length.
    pub fn frame<Q: Encodable>(&mut self, key: ApiKey, version: i16, request: &Q) -> Bytes {
        self.correlation_id += 1;
        let header = RequestHeader::default()
            .with_request_api_key(key as i16)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation_id)
            .with_client_id(Some(text("test")));
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        header.encode(&mut frame, key.request_header_version(version)).expect("header");
        request.encode(&mut frame, version).expect("body");
        let length = i32::try_from(frame.len() - 4).expect("length");
        frame[..4].copy_from_slice(&length.to_be_bytes());
        frame.freeze()
    }

    pub fn send<Q: Encodable>(&mut self, key: ApiKey, version: i16, request: &Q) {
        let frame = self.frame(key, version, request);
        self.write(&frame);
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("write");
    }

    /// The next frame without its length; `None` when the broker closed the connection.
    pub fn read_frame(&mut self) -> Option<Bytes> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ) =>
            {
                return None;
            }
            Err(error) => panic!("read: {error}"),
        }
        let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).expect("length")];
        self.stream.read_exact(&mut frame).expect("frame");
        Some(Bytes::from(frame))
    }

    pub fn receive<A: Decodable>(&mut self, key: ApiKey, version: i16) -> A {
        let mut frame = self.read_frame().expect("an answer");
        ResponseHeader::decode(&mut frame, key.response_header_version(version)).expect("header");
        let answer = A::decode(&mut frame, version).expect("body");
        assert!(!frame.has_remaining(), "{} bytes follow the answer", frame.remaining());
        answer
    }

    pub fn ask<Q: Encodable, A: Decodable>(&mut self, key: ApiKey, version: i16, request: &Q) -> A {
        self.send(key, version, request);
        self.receive(key, version)
    }

    /// Whether the broker closed the connection, within the patience.
    pub fn is_closed(&mut self) -> bool {
        self.read_frame().is_none()
    }

    /// Makes a topic and gives the error code.
    pub fn create(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> i16 {
        let configs = configs
            .iter()
            .map(|(key, value)| {
                CreatableTopicConfig::default().with_name(text(key)).with_value(Some(text(value)))
            })
            .collect();
        let topic = CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(partitions)
            .with_replication_factor(1)
            .with_configs(configs);
        let request =
            CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
        let answer: CreateTopicsResponse = self.ask(ApiKey::CreateTopics, 7, &request);
        answer.topics[0].error_code
    }

    /// Produces one batch to a partition with Produce version 9.
    pub fn produce(
        &mut self,
        topic: &str,
        partition: i32,
        acks: i16,
        batch: Bytes,
    ) -> PartitionProduceResponse {
        self.send(ApiKey::Produce, 9, &produce_request(topic, partition, acks, batch));
        let answer: ProduceResponse = self.receive(ApiKey::Produce, 9);
        answer.responses[0].partition_responses[0].clone()
    }

    /// One partition's offset for a timestamp: (error, timestamp, offset).
    pub fn offset(&mut self, topic: &str, partition: i32, timestamp: i64) -> (i16, i64, i64) {
        let partition = ListOffsetsPartition::default()
            .with_partition_index(partition)
            .with_current_leader_epoch(-1)
            .with_timestamp(timestamp);
        let topic = ListOffsetsTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(vec![partition]);
        let request =
            ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
        let answer: ListOffsetsResponse = self.ask(ApiKey::ListOffsets, 7, &request);
        let row = &answer.topics[0].partitions[0];
        (row.error_code, row.timestamp, row.offset)
    }

    /// Fetches one partition once with Fetch version 12, without waiting.
    pub fn fetch(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> fetch_response::PartitionData {
        let request = fetch_request(&[(topic, partition, offset)], 1 << 20, 1 << 20);
        let answer: FetchResponse = self.ask(ApiKey::Fetch, 12, &request);
        assert_eq!(answer.error_code, 0);
        answer.responses[0].partitions[0].clone()
    }
}

pub fn produce_request(topic: &str, partition: i32, acks: i16, batch: Bytes) -> ProduceRequest {
    let partition = PartitionProduceData::default().with_index(partition).with_records(Some(batch));
    let topic = TopicProduceData::default()
        .with_name(topic_name(topic))
        .with_partition_data(vec![partition]);
    ProduceRequest::default().with_acks(acks).with_timeout_ms(10_000).with_topic_data(vec![topic])
}

pub fn fetch_request(rows: &[(&str, i32, i64)], bytes: i32, partition_bytes: i32) -> FetchRequest {
    let mut topics: Vec<FetchTopic> = Vec::new();
    for (topic, partition, offset) in rows {
        let row = FetchPartition::default()
            .with_partition(*partition)
            .with_current_leader_epoch(-1)
            .with_last_fetched_epoch(-1)
            .with_log_start_offset(-1)
            .with_fetch_offset(*offset)
            .with_partition_max_bytes(partition_bytes);
        match topics.last_mut() {
            Some(last) if last.topic == topic_name(topic) => last.partitions.push(row),
            _ => topics.push(
                FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![row]),
            ),
        }
    }
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(0)
        .with_min_bytes(0)
        .with_max_bytes(bytes)
        .with_session_epoch(-1)
        .with_topics(topics)
}

/// A record as tests write it.
pub fn record(offset: i64, timestamp: i64, key: Option<&str>, value: &[u8]) -> Record {
    Record {
        transactional: false,
        control: false,
        partition_leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset,
        sequence: i32::try_from(offset).expect("small") - 1,
        timestamp,
        key: key.map(|key| Bytes::copy_from_slice(key.as_bytes())),
        value: Some(Bytes::copy_from_slice(value)),
        headers: Default::default(),
        delete_horizon: false,
    }
}

/// One batch of these records, offsets counted from 0.
pub fn encode(records: &[Record], compression: Compression) -> Bytes {
    let mut out = BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression };
    RecordBatchEncoder::encode(&mut out, records, &options).expect("batch");
    out.freeze()
}

/// One uncompressed batch of values, all at `timestamp`.
pub fn batch(timestamp: i64, values: &[&[u8]]) -> Bytes {
    let records: Vec<_> =
        (0..).zip(values).map(|(offset, value)| record(offset, timestamp, None, value)).collect();
    encode(&records, Compression::None)
}

/// The wall clock in milliseconds.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.expect("after 1970").as_millis()).expect("small")
}
