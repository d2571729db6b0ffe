//! What is answered; the records themselves are spliced in by whoever sends.

use bytes::BytesMut;

use super::{BY_ID, FLEXIBLE};
use crate::protocol::node_endpoint::NodeEndpoint;
use crate::protocol::reader::{Malformed, Reader};
use crate::protocol::writer::{TaggedField, Writer};
use crate::types::TopicId;

/// Least bytes of a topic: an empty name, no partition, no tagged field.
const TOPIC_BYTES_MIN: usize = 1 + 1 + 1;

/// Least bytes of a row: number, error, two offsets, null lists.
const ROW_BYTES_MIN: usize = 4 + 2 + 8 + 8 + 1 + 1;

/// Bytes of an aborted transaction, without tagged fields.
const ABORTED_BYTES_MIN: usize = 8 + 8;

/// The last field of a row before its tagged ones, in the two forms it has here: `u32`, the length
/// of records that lie in files, when we answer; the bytes themselves when we read an answer.
pub(crate) trait RecordsField {
    /// The length to write, in bytes; `None` is null.
    fn wire_len(&self) -> Option<u32>;
}

impl RecordsField for u32 {
    fn wire_len(&self) -> Option<u32> {
        Some(*self)
    }
}

impl RecordsField for Option<&[u8]> {
    fn wire_len(&self) -> Option<u32> {
        self.map(|records| Writer::count(records.len()))
    }
}

/// Rows for the partitions that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchResponse<'a, R> {
    /// How long the client is asked to pause, in milliseconds.
    pub(crate) throttle_time_ms: i32,
    /// v7+: an [`crate::protocol::ErrorCode`] for the whole request, as it is on the wire.
    pub(crate) error: i16,
    /// v7+: the session (KIP-227); 0 for none.
    pub(crate) session_id: i32,
    /// In a session, only topics with news.
    pub(crate) topics: Vec<FetchTopicResponse<'a, R>>,
    /// v16+: where the leaders named in the rows listen (KIP-951). Sent if there are any.
    pub(crate) node_endpoints: Vec<NodeEndpoint<'a>>,
}

/// Rows of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchTopicResponse<'a, R> {
    /// Its name up to v12; not sent from v13.
    pub(crate) name: &'a str,
    /// Its id from v13; not sent before.
    pub(crate) id: TopicId,
    /// In the order of the request.
    pub(crate) partitions: Vec<FetchPartitionResponse<R>>,
}

/// One partition's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchPartitionResponse<R> {
    /// The partition's number.
    pub(crate) index: i32,
    /// An [`crate::protocol::ErrorCode`] as it is on the wire.
    pub(crate) error: i16,
    /// Records below it are on every in-sync replica; −1 with an error.
    pub(crate) high_watermark: i64,
    /// Every transaction below it is decided; −1 if not known.
    pub(crate) last_stable_offset: i64,
    /// v5+: where the log begins; −1 if not known or not sent.
    pub(crate) log_start_offset: i64,
    /// Producer id and first offset of the aborted transactions among the records; null for who
    /// reads uncommitted.
    pub(crate) aborted: Option<Vec<(i64, i64)>>,
    /// v11+: the replica to turn to (KIP-392); −1 for this one.
    pub(crate) preferred_read_replica: i32,
    /// v12+, to a follower: the epoch up to which logs agree, and its end offset (KIP-595).
    pub(crate) diverging_epoch: Option<(i32, i64)>,
    /// v12+: the leader's id and epoch, where this broker is not it (KIP-951).
    pub(crate) current_leader: Option<(i32, i32)>,
    /// v12+: end offset and epoch of a snapshot to fetch in place of records (KIP-630).
    pub(crate) snapshot_id: Option<(i64, i32)>,
    /// The records, or their length in bytes.
    pub(crate) records: R,
}

/// A response without its records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoded {
    /// All bytes but the records. The caller may have put a frame's header in front.
    pub(crate) head: BytesMut,
    /// For each row in order, the position in `head` before which its records are to be sent; also
    /// for rows whose records are empty or null.
    pub(crate) gaps: Vec<usize>,
}

impl<R: RecordsField> FetchResponse<'_, R> {
    /// Appends the body to `into`. What a version cannot say is left out.
    pub(crate) fn encode(&self, version: i16, into: &mut Encoded) {
        let Encoded { head, gaps } = into;
        let mut out = Writer::new(head, version >= FLEXIBLE);
        out.i32(self.throttle_time_ms);
        if version >= 7 {
            out.i16(self.error);
            out.i32(self.session_id);
        }
        out.array_len(self.topics.len());
        for topic in &self.topics {
            out.topic_key(version >= BY_ID, topic.name, topic.id);
            out.array_len(topic.partitions.len());
            for partition in &topic.partitions {
                gaps.push(partition.encode(version, &mut out));
            }
            out.no_tags();
        }
        let endpoints = |out: &mut Writer<'_>| {
            NodeEndpoint::encode_all(&self.node_endpoints, out);
        };
        let sent = version >= 16 && !self.node_endpoints.is_empty();
        out.tags(&[sent.then_some((0, &endpoints as TaggedField<'_>))]);
    }
}

impl<R: RecordsField> FetchPartitionResponse<R> {
    /// Appends the row and says where its records belong.
    fn encode(&self, version: i16, out: &mut Writer<'_>) -> usize {
        out.i32(self.index);
        out.i16(self.error);
        out.i64(self.high_watermark);
        out.i64(self.last_stable_offset);
        if version >= 5 {
            out.i64(self.log_start_offset);
        }
        out.length(self.aborted.as_ref().map(|aborted| Writer::count(aborted.len())));
        for (producer, first) in self.aborted.iter().flatten() {
            out.i64(*producer);
            out.i64(*first);
            out.no_tags();
        }
        if version >= 11 {
            out.i32(self.preferred_read_replica);
        }
        out.length(self.records.wire_len());
        let gap = out.at();
        self.encode_tags(out);
        gap
    }

    fn encode_tags(&self, out: &mut Writer<'_>) {
        let (epoch, end) = self.diverging_epoch.unwrap_or((-1, -1));
        let diverging = |out: &mut Writer<'_>| {
            out.i32(epoch);
            out.i64(end);
            out.no_tags();
        };
        let (id, epoch) = self.current_leader.unwrap_or((-1, -1));
        let leader = |out: &mut Writer<'_>| {
            out.i32(id);
            out.i32(epoch);
            out.no_tags();
        };
        let (end, epoch) = self.snapshot_id.unwrap_or((-1, -1));
        let snapshot = |out: &mut Writer<'_>| {
            out.i64(end);
            out.i32(epoch);
            out.no_tags();
        };
        out.tags(&[
            self.diverging_epoch.map(|_| (0, &diverging as TaggedField<'_>)),
            self.current_leader.map(|_| (1, &leader as TaggedField<'_>)),
            self.snapshot_id.map(|_| (2, &snapshot as TaggedField<'_>)),
        ]);
    }
}

impl<'a> FetchResponse<'a, Option<&'a [u8]>> {
    /// Reads a response's body, to its last byte. The records are left where they are.
    pub(crate) fn decode(version: i16, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, version >= FLEXIBLE);
        let throttle_time_ms = reader.i32()?;
        let error = if version >= 7 { reader.i16()? } else { 0 };
        let session_id = if version >= 7 { reader.i32()? } else { 0 };
        let count = reader.array_len(TOPIC_BYTES_MIN)?;
        let mut topics = Vec::with_capacity(count);
        for _ in 0..count {
            let (name, id) = reader.topic_key(version >= BY_ID)?;
            let count = reader.array_len(ROW_BYTES_MIN)?;
            let mut partitions = Vec::with_capacity(count);
            for _ in 0..count {
                partitions.push(FetchPartitionResponse::decode(version, &mut reader)?);
            }
            reader.skip_tags()?;
            topics.push(FetchTopicResponse { name, id, partitions });
        }
        let mut node_endpoints = Vec::new();
        let mut tags = reader.tags()?;
        while let Some((tag, field)) = tags.next(&mut reader)? {
            if tag == 0 && version >= 16 {
                node_endpoints = NodeEndpoint::decode_all(field)?;
            }
        }
        reader.finish()?;
        Ok(Self { throttle_time_ms, error, session_id, topics, node_endpoints })
    }
}

impl<'a> FetchPartitionResponse<Option<&'a [u8]>> {
    fn decode(version: i16, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let mut row = Self {
            index: reader.i32()?,
            error: reader.i16()?,
            high_watermark: reader.i64()?,
            last_stable_offset: reader.i64()?,
            log_start_offset: if version >= 5 { reader.i64()? } else { -1 },
            aborted: decode_aborted(reader)?,
            preferred_read_replica: if version >= 11 { reader.i32()? } else { -1 },
            diverging_epoch: None,
            current_leader: None,
            snapshot_id: None,
            records: reader.nullable_bytes()?,
        };
        let mut tags = reader.tags()?;
        while let Some((tag, mut field)) = tags.next(reader)? {
            match tag {
                0 => row.diverging_epoch = Some((field.i32()?, field.i64()?)),
                1 => row.current_leader = Some((field.i32()?, field.i32()?)),
                2 => row.snapshot_id = Some((field.i64()?, field.i32()?)),
                _ => continue,
            }
            field.skip_tags()?;
            field.finish()?;
        }
        Ok(row)
    }
}

fn decode_aborted(reader: &mut Reader<'_>) -> Result<Option<Vec<(i64, i64)>>, Malformed> {
    let Some(count) = reader.nullable_array_len(ABORTED_BYTES_MIN)? else {
        return Ok(None);
    };
    let mut aborted = Vec::with_capacity(count);
    for _ in 0..count {
        aborted.push((reader.i64()?, reader.i64()?));
        reader.skip_tags()?;
    }
    Ok(Some(aborted))
}
