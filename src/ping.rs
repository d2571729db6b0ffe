//! A message in and out: shows that a broker works, from the outside.

use crate::records::{BatchBuilder, BatchHeader, HEADER_BYTES, NewRecord, Records};
use crate::types::topic_id_text;
use crate::{clock, limits};
use anyhow::{Context, bail, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    ApiKey, CreateTopicsRequest, CreateTopicsResponse, FetchRequest, FetchResponse,
    MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse, RequestHeader,
    ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// TOPIC_ALREADY_EXISTS
const EXISTS: i16 = 36;
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits for the broker at `bootstrap`, appends `message` to partition 0 of `topic`, which is made
/// if need be, reads it back, and says in one line what happened.
///
/// # Errors
/// When the broker cannot be reached within ten seconds, or does not give the message back.
pub fn ping(bootstrap: &str, topic: &str, message: &str) -> anyhow::Result<String> {
    let mut client = Client { stream: connect(bootstrap)?, correlation_id: 0 };
    let name = TopicName(StrBytes::from_string(topic.to_owned()));
    client.create(&name)?;
    let id = client.topic_id(&name)?;
    let began = clock::now();
    let offset = client.produce(&name, message)?;
    let read = client.fetch(&name, offset)?;
    let took = clock::now().saturating_since(began);
    ensure!(read == message.as_bytes(), "another message came back: {:?}", read.escape_ascii());
    Ok(format!(
        "produced and consumed {message:?} at offset {offset} of {topic}-0 ({id}) in {took:?}"
    ))
}

fn connect(bootstrap: &str) -> anyhow::Result<TcpStream> {
    let until = clock::now() + PATIENCE;
    loop {
        match TcpStream::connect(bootstrap) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) if clock::now() > until => {
                return Err(error).with_context(|| format!("no broker at {bootstrap}"));
            }
            // Refused at once while the broker starts: ask again, but not without a breath.
            Err(_) => std::thread::park_timeout(Duration::from_millis(20)),
        }
    }
}

struct Client {
    stream: TcpStream,
    correlation_id: i32,
}

impl Client {
    fn ask<Q: Encodable, A: Decodable>(
        &mut self,
        key: ApiKey,
        version: i16,
        request: &Q,
    ) -> anyhow::Result<A> {
        self.correlation_id += 1;
        let header = RequestHeader::default()
            .with_request_api_key(key as i16)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation_id)
            .with_client_id(Some(StrBytes::from_static_str("ottla-ping")));
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        header.encode(&mut frame, key.request_header_version(version))?;
        request.encode(&mut frame, version)?;
        let length = i32::try_from(frame.len() - 4)?;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&frame)?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = usize::try_from(i32::from_be_bytes(length))?;
        ensure!(length <= limits::PING_ANSWER_BYTES_MAX, "an answer of {length} bytes");
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        let mut answer = Bytes::from(answer);
        ResponseHeader::decode(&mut answer, key.response_header_version(version))?;
        A::decode(&mut answer, version)
    }

    fn create(&mut self, name: &TopicName) -> anyhow::Result<()> {
        let topic = CreatableTopic::default()
            .with_name(name.clone())
            .with_num_partitions(-1)
            .with_replication_factor(-1);
        let request =
            CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
        let answer: CreateTopicsResponse = self.ask(ApiKey::CreateTopics, 7, &request)?;
        match answer.topics.first().map(|row| row.error_code) {
            Some(0 | EXISTS) => Ok(()),
            other => bail!("the topic was not created: error {other:?}"),
        }
    }

    fn topic_id(&mut self, name: &TopicName) -> anyhow::Result<String> {
        let asked = MetadataRequestTopic::default().with_name(Some(name.clone()));
        let request = MetadataRequest::default().with_topics(Some(vec![asked]));
        let answer: MetadataResponse = self.ask(ApiKey::Metadata, 12, &request)?;
        let topic = answer.topics.first().context("the topic is not in the metadata")?;
        ensure!(topic.error_code == 0, "metadata: error {}", topic.error_code);
        Ok(topic_id_text(topic.topic_id))
    }

    fn produce(&mut self, name: &TopicName, message: &str) -> anyhow::Result<i64> {
        let mut batch = BatchBuilder::new(clock::wall());
        batch.push(NewRecord { value: Some(message.as_bytes()), ..NewRecord::default() });
        let partition =
            PartitionProduceData::default().with_records(Some(Bytes::from(batch.finish())));
        let topic = TopicProduceData::default()
            .with_name(name.clone())
            .with_partition_data(vec![partition]);
        let request = ProduceRequest::default()
            .with_acks(-1)
            .with_timeout_ms(10_000)
            .with_topic_data(vec![topic]);
        let answer: ProduceResponse = self.ask(ApiKey::Produce, 9, &request)?;
        let row = answer.responses.first().and_then(|topic| topic.partition_responses.first());
        let row = row.context("produce: nothing was answered")?;
        ensure!(row.error_code == 0, "produce: error {}", row.error_code);
        Ok(row.base_offset)
    }

    fn fetch(&mut self, name: &TopicName, offset: i64) -> anyhow::Result<Vec<u8>> {
        let partition =
            FetchPartition::default().with_fetch_offset(offset).with_partition_max_bytes(1 << 20);
        let topic = FetchTopic::default().with_topic(name.clone()).with_partitions(vec![partition]);
        let request = FetchRequest::default()
            .with_max_wait_ms(1_000)
            .with_min_bytes(1)
            .with_max_bytes(1 << 20)
            .with_topics(vec![topic]);
        let answer: FetchResponse = self.ask(ApiKey::Fetch, 12, &request)?;
        let row = answer.responses.first().and_then(|topic| topic.partitions.first());
        let row = row.context("fetch: nothing was answered")?;
        ensure!(row.error_code == 0, "fetch: error {}", row.error_code);
        let batch = row.records.clone().unwrap_or_default();
        let header = BatchHeader::parse(&batch)?;
        header.check_crc(&batch)?;
        let records = batch.get(HEADER_BYTES..header.size).unwrap_or_default();
        let first = Records::new(records, header.record_count).next()?;
        let value = first.and_then(|record| record.value).context("the record has no value")?;
        Ok(value.to_vec())
    }
}
