//! What is asked for.

use bytes::BytesMut;

use super::{BY_ID, FLEXIBLE};
use crate::protocol::reader::{Malformed, Reader};
use crate::protocol::writer::{TaggedField, Writer};
use crate::types::TopicId;

/// Least bytes of a topic, to fetch or to forget: an empty name, no partition, no tagged field.
const TOPIC_BYTES_MIN: usize = 1 + 1 + 1;

/// Least bytes of a partition: number, offset, bytes.
const PARTITION_BYTES_MIN: usize = 4 + 8 + 4;

/// Partitions to read from. Borrows from the frame it was decoded from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchRequest<'a> {
    /// v12+: the cluster the sender believes in, or null.
    pub(crate) cluster_id: Option<&'a str>,
    /// The follower that asks, −1 for a consumer. From v15 it travels in `replica_state`.
    pub(crate) replica_id: i32,
    /// v15+: the follower's epoch (KIP-903); −1 if not known.
    pub(crate) replica_epoch: i64,
    /// How long to wait for `min_bytes`, in milliseconds.
    pub(crate) max_wait_ms: i32,
    /// Bytes worth answering at once.
    pub(crate) min_bytes: i32,
    /// Bytes of records at most, save that a first batch larger than this is sent whole (KIP-74).
    pub(crate) max_bytes: i32,
    /// 0: read uncommitted; 1: read committed.
    pub(crate) isolation: i8,
    /// v7+: the session (KIP-227); 0 for none.
    pub(crate) session_id: i32,
    /// v7+: 0 asks for a session, −1 for none or its end; −1 before v7.
    pub(crate) session_epoch: i32,
    /// In the order of the request, which is the order of service.
    pub(crate) topics: Vec<FetchTopic<'a>>,
    /// v7+: what the session shall no longer hold.
    pub(crate) forgotten: Vec<ForgottenTopic<'a>>,
    /// v11+: where the consumer is (KIP-392); empty if it does not say.
    pub(crate) rack: &'a str,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchTopic<'a> {
    /// Its name up to v12; empty from v13.
    pub(crate) name: &'a str,
    /// Its id from v13; nil before.
    pub(crate) id: TopicId,
    /// In the order of the request.
    pub(crate) partitions: Vec<FetchPartition>,
}

/// Where to read in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FetchPartition {
    /// The partition's number.
    pub(crate) index: i32,
    /// v9+: the leader epoch the reader knows (KIP-320); −1 for none.
    pub(crate) current_leader_epoch: i32,
    /// The first offset wanted.
    pub(crate) fetch_offset: i64,
    /// v12+: the epoch of the follower's last record, to find where it diverges; −1 for none.
    pub(crate) last_fetched_epoch: i32,
    /// v5+: where a follower's log begins; −1 from consumers.
    pub(crate) log_start_offset: i64,
    /// Bytes of records at most from this partition.
    pub(crate) max_bytes: i32,
    /// v17+: the follower's log directory (KIP-853); nil if it does not say.
    pub(crate) replica_directory_id: TopicId,
    /// v18+: the high watermark the replica knows (KIP-1166); −1 if it knows none,
    /// [`FetchPartition::NO_HIGH_WATERMARK`] if it does not say.
    pub(crate) high_watermark: i64,
}

impl FetchPartition {
    /// The high watermark of a replica that does not report it.
    pub(crate) const NO_HIGH_WATERMARK: i64 = i64::MAX;
}

/// Partitions that leave a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForgottenTopic<'a> {
    /// Its name up to v12; empty from v13.
    pub(crate) name: &'a str,
    /// Its id from v13; nil before.
    pub(crate) id: TopicId,
    /// The partitions' numbers.
    pub(crate) partitions: Vec<i32>,
}

impl<'a> FetchRequest<'a> {
    /// Reads a request's body, to its last byte.
    pub(crate) fn decode(version: i16, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, version >= FLEXIBLE);
        let reader = &mut reader;
        let mut request = Self {
            cluster_id: None,
            replica_id: if version <= 14 { reader.i32()? } else { -1 },
            replica_epoch: -1,
            max_wait_ms: reader.i32()?,
            min_bytes: reader.i32()?,
            max_bytes: reader.i32()?,
            isolation: reader.i8()?,
            session_id: if version >= 7 { reader.i32()? } else { 0 },
            session_epoch: if version >= 7 { reader.i32()? } else { -1 },
            topics: decode_topics(reader, |reader| FetchTopic::decode(version, reader))?,
            forgotten: match version {
                7.. => decode_topics(reader, |reader| ForgottenTopic::decode(version, reader))?,
                _ => Vec::new(),
            },
            rack: if version >= 11 { reader.string()? } else { "" },
        };
        let mut tags = reader.tags()?;
        while let Some((tag, mut field)) = tags.next(reader)? {
            match tag {
                0 => request.cluster_id = field.nullable_string()?,
                1 if version >= 15 => {
                    request.replica_id = field.i32()?;
                    request.replica_epoch = field.i64()?;
                    field.skip_tags()?;
                }
                _ => continue,
            }
            field.finish()?;
        }
        reader.finish()?;
        Ok(request)
    }

    /// Appends the body to `out`. What a version cannot say is left out.
    pub(crate) fn encode(&self, version: i16, out: &mut BytesMut) {
        let mut out = Writer::new(out, version >= FLEXIBLE);
        if version <= 14 {
            out.i32(self.replica_id);
        }
        out.i32(self.max_wait_ms);
        out.i32(self.min_bytes);
        out.i32(self.max_bytes);
        out.i8(self.isolation);
        if version >= 7 {
            out.i32(self.session_id);
            out.i32(self.session_epoch);
        }
        out.array_len(self.topics.len());
        for topic in &self.topics {
            topic.encode(version, &mut out);
        }
        if version >= 7 {
            out.array_len(self.forgotten.len());
            for topic in &self.forgotten {
                topic.encode(version, &mut out);
            }
        }
        if version >= 11 {
            out.string(self.rack);
        }
        let cluster_id = |out: &mut Writer<'_>| out.nullable_string(self.cluster_id);
        let replica_state = |out: &mut Writer<'_>| {
            out.i32(self.replica_id);
            out.i64(self.replica_epoch);
            out.no_tags();
        };
        let is_replica = (self.replica_id, self.replica_epoch) != (-1, -1);
        out.tags(&[
            self.cluster_id.map(|_| (0, &cluster_id as TaggedField<'_>)),
            (version >= 15 && is_replica).then_some((1, &replica_state as TaggedField<'_>)),
        ]);
    }
}

/// Reads an array of topics, each by `one`.
fn decode_topics<'a, T>(
    reader: &mut Reader<'a>,
    one: impl Fn(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = reader.array_len(TOPIC_BYTES_MIN)?;
    let mut topics = Vec::with_capacity(count);
    for _ in 0..count {
        topics.push(one(reader)?);
    }
    Ok(topics)
}

impl<'a> FetchTopic<'a> {
    fn decode(version: i16, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (name, id) = reader.topic_key(version >= BY_ID)?;
        let count = reader.array_len(PARTITION_BYTES_MIN)?;
        let mut partitions = Vec::with_capacity(count);
        for _ in 0..count {
            partitions.push(FetchPartition::decode(version, reader)?);
        }
        reader.skip_tags()?;
        Ok(Self { name, id, partitions })
    }

    fn encode(&self, version: i16, out: &mut Writer<'_>) {
        out.topic_key(version >= BY_ID, self.name, self.id);
        out.array_len(self.partitions.len());
        for partition in &self.partitions {
            partition.encode(version, out);
        }
        out.no_tags();
    }
}

impl FetchPartition {
    fn decode(version: i16, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut partition = Self {
            index: reader.i32()?,
            current_leader_epoch: if version >= 9 { reader.i32()? } else { -1 },
            fetch_offset: reader.i64()?,
            last_fetched_epoch: if version >= 12 { reader.i32()? } else { -1 },
            log_start_offset: if version >= 5 { reader.i64()? } else { -1 },
            max_bytes: reader.i32()?,
            replica_directory_id: TopicId::nil(),
            high_watermark: Self::NO_HIGH_WATERMARK,
        };
        let mut tags = reader.tags()?;
        while let Some((tag, mut field)) = tags.next(reader)? {
            match tag {
                0 if version >= 17 => partition.replica_directory_id = field.uuid()?,
                1 if version >= 18 => partition.high_watermark = field.i64()?,
                _ => continue,
            }
            field.finish()?;
        }
        Ok(partition)
    }

    fn encode(&self, version: i16, out: &mut Writer<'_>) {
        out.i32(self.index);
        if version >= 9 {
            out.i32(self.current_leader_epoch);
        }
        out.i64(self.fetch_offset);
        if version >= 12 {
            out.i32(self.last_fetched_epoch);
        }
        if version >= 5 {
            out.i64(self.log_start_offset);
        }
        out.i32(self.max_bytes);
        let directory = |out: &mut Writer<'_>| out.uuid(self.replica_directory_id);
        let high_watermark = |out: &mut Writer<'_>| out.i64(self.high_watermark);
        let sent_directory = version >= 17 && !self.replica_directory_id.is_nil();
        let sent_watermark = version >= 18 && self.high_watermark != Self::NO_HIGH_WATERMARK;
        out.tags(&[
            sent_directory.then_some((0, &directory as TaggedField<'_>)),
            sent_watermark.then_some((1, &high_watermark as TaggedField<'_>)),
        ]);
    }
}

impl<'a> ForgottenTopic<'a> {
    fn decode(version: i16, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (name, id) = reader.topic_key(version >= BY_ID)?;
        let count = reader.array_len(size_of::<i32>())?;
        let mut partitions = Vec::with_capacity(count);
        for _ in 0..count {
            partitions.push(reader.i32()?);
        }
        reader.skip_tags()?;
        Ok(Self { name, id, partitions })
    }

    fn encode(&self, version: i16, out: &mut Writer<'_>) {
        out.topic_key(version >= BY_ID, self.name, self.id);
        out.array_len(self.partitions.len());
        for partition in &self.partitions {
            out.i32(*partition);
        }
        out.no_tags();
    }
}
