//! Produce, v3–13: batches to append, and where they went. By hand, since it is a hot path.
//!
//! v5: log_start_offset in the response. v8: record_errors, error_message (KIP-467). v9: flexible.
//! v10: current_leader, node_endpoints (KIP-951). v12: may add a partition to a transaction
//! (KIP-890). v13: topics by id (KIP-516). Other versions differ only in which errors they may see.

use bytes::BytesMut;

use super::node_endpoint::NodeEndpoint;
use super::reader::{Malformed, Reader};
use super::writer::{TaggedField, Writer};
use crate::types::TopicId;

/// The first version with compact lengths and tagged fields.
const FLEXIBLE: i16 = 9;

/// The first version that names a topic by its id alone.
const BY_ID: i16 = 13;

/// Least bytes of a topic: an empty name, no partition, no tagged field.
const TOPIC_BYTES_MIN: usize = 1 + 1 + 1;

/// Least bytes of a partition to append to: its number, null records, no tagged field.
const PARTITION_BYTES_MIN: usize = 4 + 1 + 1;

/// Least bytes of a partition's answer: number, error, offset, time.
const ANSWER_BYTES_MIN: usize = 4 + 2 + 8 + 8;

/// Least bytes of a record's error: its place, a null message, no tagged field.
const RECORD_ERROR_BYTES_MIN: usize = 4 + 1 + 1;

/// Batches for partitions of one or more topics. Borrows from the frame it was decoded from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProduceRequest<'a> {
    /// Set by a transactional producer.
    pub(crate) transactional_id: Option<&'a str>,
    /// 0: no answer; 1: the leader's append; −1: every in-sync replica's.
    pub(crate) acks: i16,
    /// How long to wait for the replicas, in milliseconds.
    pub(crate) timeout_ms: i32,
    /// In the order of the request.
    pub(crate) topics: Vec<ProduceTopic<'a>>,
}

/// What goes to one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProduceTopic<'a> {
    /// Its name up to v12; empty from v13.
    pub(crate) name: &'a str,
    /// Its id from v13; nil before.
    pub(crate) id: TopicId,
    /// In the order of the request.
    pub(crate) partitions: Vec<ProducePartition<'a>>,
}

/// What goes to one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProducePartition<'a> {
    /// The partition's number.
    pub(crate) index: i32,
    /// Record batches, unchecked. The protocol allows null.
    pub(crate) records: Option<&'a [u8]>,
}

impl<'a> ProduceRequest<'a> {
    /// Reads a request's body, to its last byte.
    pub(crate) fn decode(version: i16, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, version >= FLEXIBLE);
        let transactional_id = reader.nullable_string()?;
        let acks = reader.i16()?;
        let timeout_ms = reader.i32()?;
        let count = reader.array_len(TOPIC_BYTES_MIN)?;
        let mut topics = Vec::with_capacity(count);
        for _ in 0..count {
            topics.push(ProduceTopic::decode(version, &mut reader)?);
        }
        reader.skip_tags()?;
        reader.finish()?;
        Ok(Self { transactional_id, acks, timeout_ms, topics })
    }

    /// Appends the body to `out`.
    pub(crate) fn encode(&self, version: i16, out: &mut BytesMut) {
        let mut out = Writer::new(out, version >= FLEXIBLE);
        out.nullable_string(self.transactional_id);
        out.i16(self.acks);
        out.i32(self.timeout_ms);
        out.array_len(self.topics.len());
        for topic in &self.topics {
            out.topic_key(version >= BY_ID, topic.name, topic.id);
            out.array_len(topic.partitions.len());
            for partition in &topic.partitions {
                out.i32(partition.index);
                out.nullable_bytes(partition.records);
                out.no_tags();
            }
            out.no_tags();
        }
        out.no_tags();
    }
}

impl<'a> ProduceTopic<'a> {
    fn decode(version: i16, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (name, id) = reader.topic_key(version >= BY_ID)?;
        let count = reader.array_len(PARTITION_BYTES_MIN)?;
        let mut partitions = Vec::with_capacity(count);
        for _ in 0..count {
            let index = reader.i32()?;
            let records = reader.nullable_bytes()?;
            reader.skip_tags()?;
            partitions.push(ProducePartition { index, records });
        }
        reader.skip_tags()?;
        Ok(Self { name, id, partitions })
    }
}

/// What became of a Produce request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProduceResponse<'a> {
    /// In the order of the request.
    pub(crate) topics: Vec<ProduceTopicResponse<'a>>,
    /// How long the client is asked to pause, in milliseconds.
    pub(crate) throttle_time_ms: i32,
    /// v10+: where the leaders named in the rows listen (KIP-951). Sent if there are any.
    pub(crate) node_endpoints: Vec<NodeEndpoint<'a>>,
}

/// What became of one topic's batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProduceTopicResponse<'a> {
    /// Its name up to v12; not sent from v13.
    pub(crate) name: &'a str,
    /// Its id from v13; not sent before.
    pub(crate) id: TopicId,
    /// In the order of the request.
    pub(crate) partitions: Vec<ProducePartitionResponse>,
}

/// What became of one partition's batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProducePartitionResponse {
    /// The partition's number.
    pub(crate) index: i32,
    /// An [`super::ErrorCode`] as it is on the wire: a peer may know codes that we do not.
    pub(crate) error: i16,
    /// The first record's offset; −1 with an error.
    pub(crate) base_offset: i64,
    /// The broker's time in milliseconds if the topic uses it, else −1.
    pub(crate) log_append_time_ms: i64,
    /// v5+: where the log begins; −1 if not known or not sent.
    pub(crate) log_start_offset: i64,
    /// v8+: places of records that spoiled their batch, with a reason (KIP-467).
    pub(crate) record_errors: Vec<(i32, Option<String>)>,
    /// v8+: what to tell the user.
    pub(crate) error_message: Option<String>,
    /// v10+: the leader's id and epoch, where this broker is not it (KIP-951).
    pub(crate) current_leader: Option<(i32, i32)>,
}

impl<'a> ProduceResponse<'a> {
    /// Appends the body to `out`. What a version cannot say is left out.
    pub(crate) fn encode(&self, version: i16, out: &mut BytesMut) {
        let mut out = Writer::new(out, version >= FLEXIBLE);
        out.array_len(self.topics.len());
        for topic in &self.topics {
            out.topic_key(version >= BY_ID, topic.name, topic.id);
            out.array_len(topic.partitions.len());
            for partition in &topic.partitions {
                partition.encode(version, &mut out);
            }
            out.no_tags();
        }
        out.i32(self.throttle_time_ms);
        let endpoints = |out: &mut Writer<'_>| {
            NodeEndpoint::encode_all(&self.node_endpoints, out);
        };
        let sent = version >= 10 && !self.node_endpoints.is_empty();
        out.tags(&[sent.then_some((0, &endpoints as TaggedField<'_>))]);
    }

    /// Reads a response's body, to its last byte.
    pub(crate) fn decode(version: i16, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, version >= FLEXIBLE);
        let count = reader.array_len(TOPIC_BYTES_MIN)?;
        let mut topics = Vec::with_capacity(count);
        for _ in 0..count {
            let (name, id) = reader.topic_key(version >= BY_ID)?;
            let count = reader.array_len(ANSWER_BYTES_MIN)?;
            let mut partitions = Vec::with_capacity(count);
            for _ in 0..count {
                partitions.push(ProducePartitionResponse::decode(version, &mut reader)?);
            }
            reader.skip_tags()?;
            topics.push(ProduceTopicResponse { name, id, partitions });
        }
        let throttle_time_ms = reader.i32()?;
        let mut node_endpoints = Vec::new();
        let mut tags = reader.tags()?;
        while let Some((tag, field)) = tags.next(&mut reader)? {
            if tag == 0 && version >= 10 {
                node_endpoints = NodeEndpoint::decode_all(field)?;
            }
        }
        reader.finish()?;
        Ok(Self { topics, throttle_time_ms, node_endpoints })
    }
}

impl ProducePartitionResponse {
    fn encode(&self, version: i16, out: &mut Writer<'_>) {
        out.i32(self.index);
        out.i16(self.error);
        out.i64(self.base_offset);
        out.i64(self.log_append_time_ms);
        if version >= 5 {
            out.i64(self.log_start_offset);
        }
        if version >= 8 {
            out.array_len(self.record_errors.len());
            for (at, message) in &self.record_errors {
                out.i32(*at);
                out.nullable_string(message.as_deref());
                out.no_tags();
            }
            out.nullable_string(self.error_message.as_deref());
        }
        let (id, epoch) = self.current_leader.unwrap_or((-1, -1));
        let leader = |out: &mut Writer<'_>| {
            out.i32(id);
            out.i32(epoch);
            out.no_tags();
        };
        let sent = version >= 10 && self.current_leader.is_some();
        out.tags(&[sent.then_some((0, &leader as TaggedField<'_>))]);
    }

    fn decode(version: i16, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut row = Self {
            index: reader.i32()?,
            error: reader.i16()?,
            base_offset: reader.i64()?,
            log_append_time_ms: reader.i64()?,
            log_start_offset: if version >= 5 { reader.i64()? } else { -1 },
            record_errors: Vec::new(),
            error_message: None,
            current_leader: None,
        };
        if version >= 8 {
            let count = reader.array_len(RECORD_ERROR_BYTES_MIN)?;
            row.record_errors = Vec::with_capacity(count);
            for _ in 0..count {
                let at = reader.i32()?;
                let message = reader.nullable_string()?.map(str::to_owned);
                reader.skip_tags()?;
                row.record_errors.push((at, message));
            }
            row.error_message = reader.nullable_string()?.map(str::to_owned);
        }
        let mut tags = reader.tags()?;
        while let Some((tag, mut field)) = tags.next(reader)? {
            if tag == 0 && version >= 10 {
                row.current_leader = Some((field.i32()?, field.i32()?));
                field.skip_tags()?;
                field.finish()?;
            }
        }
        Ok(row)
    }
}
