//! The bytes of `__consumer_offsets`, as Apache Kafka writes them. Each key and each value begins
//! with its version (int16); the key's version also says what the record is.
//!
//! ```text
//! key 0, 1  OffsetCommit   group string, topic string, partition int32
//! key 2     GroupMetadata  group string
//!
//! OffsetCommit   0, 2 (read)  offset int64, metadata string, commit time int64
//!                1            … and expire time int64
//!                3            offset int64, leader epoch int32, metadata string, commit time int64
//!                4 (read)     as 3 in the flexible encoding
//! GroupMetadata  0–2 (read)   the same with fewer fields
//!                3            type string, generation int32, protocol nullable string,
//!                             leader nullable string, state time int64, members array of
//!                             { id string, instance nullable string, client id string,
//!                               host string, rebalance int32, session int32,
//!                               subscription bytes, assignment bytes }
//!                4 (read)     as 3 in the flexible encoding
//! ```
//!
//! Written: version 3, which every Kafka since 2.1 reads, and OffsetCommit 1 where the client has
//! set an end of its own, because only that version has the field. An empty value is a tombstone.

use super::record::{CommittedOffset, Generation, GroupMetadata, Record, SavedMember};
use crate::types::{LeaderEpoch, Offset, Timestamp, TopicPartition};
use std::sync::Arc;
use std::time::Duration;

/// The partition's own log holds something no Kafka would have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// A field reaches beyond the end.
    #[error("the record ends inside a field")]
    Short,
    /// A length below −1, an absurd one, or null where it may not be.
    #[error("a length in the record is impossible")]
    Length,
    /// A string is no string.
    #[error("a string in the record is not UTF-8")]
    Utf8,
    /// A newer writer's value, which cannot be skipped without losing state.
    #[error("value version {0} is unknown")]
    ValueVersion(i16),
    /// The record has no key.
    #[error("the record has no key")]
    NoKey,
}

const KEY_OFFSET_COMMIT: i16 = 1;
const KEY_GROUP_METADATA: i16 = 2;
const VALUE_WITH_EXPIRE_TIME: i16 = 1;
const VALUE_WRITTEN: i16 = 3;
const VALUE_FLEXIBLE: i16 = 4;

/// The record's key. Texts longer than an int16 can say were refused when they came in.
#[must_use]
pub(crate) fn encode_key(record: &Record) -> Vec<u8> {
    let mut out = Writer::default();
    match record {
        Record::OffsetCommit { group, partition, .. }
        | Record::OffsetTombstone { group, partition } => {
            out.i16(KEY_OFFSET_COMMIT);
            out.string(group);
            out.string(&partition.topic);
            out.i32(partition.partition);
        }
        Record::GroupMetadata { group, .. } | Record::GroupTombstone { group } => {
            out.i16(KEY_GROUP_METADATA);
            out.string(group);
        }
    }
    out.bytes
}

/// The record's value; `None` for a tombstone.
#[must_use]
pub(crate) fn encode_value(record: &Record) -> Option<Vec<u8>> {
    let mut out = Writer::default();
    match record {
        Record::OffsetCommit { committed, .. } => encode_offset(&mut out, committed),
        Record::GroupMetadata { metadata, .. } => encode_group(&mut out, metadata),
        Record::GroupTombstone { .. } | Record::OffsetTombstone { .. } => return None,
    }
    Some(out.bytes)
}

fn encode_offset(out: &mut Writer, committed: &CommittedOffset) {
    out.i16(if committed.expires_at.is_some() { VALUE_WITH_EXPIRE_TIME } else { VALUE_WRITTEN });
    out.i64(committed.offset.0);
    if committed.expires_at.is_none() {
        out.i32(committed.leader_epoch.0);
    }
    out.string(&committed.metadata);
    out.i64(committed.committed_at.0);
    if let Some(at) = committed.expires_at {
        out.i64(at.0);
    }
}

fn encode_group(out: &mut Writer, metadata: &GroupMetadata) {
    out.i16(VALUE_WRITTEN);
    out.string(&metadata.protocol_type);
    out.i32(metadata.generation.0);
    out.nullable_string(metadata.protocol.as_deref());
    out.nullable_string(metadata.leader.as_deref());
    out.i64(metadata.state_since.unwrap_or(Timestamp::NONE).0);
    out.i32(length_i32(metadata.members.len()));
    for member in &metadata.members {
        out.string(&member.member_id);
        out.nullable_string(member.instance_id.as_deref());
        out.string(&member.client_id);
        out.string(&member.client_host);
        out.i32(millis(member.rebalance_timeout));
        out.i32(millis(member.session_timeout));
        out.blob(&member.subscription);
        out.blob(&member.assignment);
    }
}

fn millis(span: Duration) -> i32 {
    i32::try_from(span.as_millis()).unwrap_or(i32::MAX)
}

/// Reads a record back; `Ok(None)` for kinds this version does not know, which a newer or another
/// coordinator may have written (KAFKA-14869).
pub(crate) fn decode(
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<Option<Record>, DecodeError> {
    let mut key = Reader { rest: key.ok_or(DecodeError::NoKey)?, flexible: false };
    let record = match key.i16()? {
        0 | KEY_OFFSET_COMMIT => {
            let group = key.string()?;
            let topic = key.string()?;
            let partition = TopicPartition::new(topic, key.i32()?);
            match value {
                Some(value) => {
                    let committed = decode_offset(value)?;
                    Record::OffsetCommit { group, partition, committed }
                }
                None => Record::OffsetTombstone { group, partition },
            }
        }
        KEY_GROUP_METADATA => {
            let group = key.string()?;
            match value {
                Some(value) => Record::GroupMetadata { group, metadata: decode_group(value)? },
                None => Record::GroupTombstone { group },
            }
        }
        // Not ours: a KIP-848 or share group's record, or a later kind.
        _unknown => return Ok(None),
    };
    Ok(Some(record))
}

fn decode_offset(value: &[u8]) -> Result<CommittedOffset, DecodeError> {
    let (version, mut from) = Reader::versioned(value)?;
    let offset = Offset(from.i64()?);
    let leader_epoch = if version >= VALUE_WRITTEN { from.i32()? } else { -1 };
    let metadata = from.string()?;
    let committed_at = Timestamp(from.i64()?);
    let expires_at = if version == VALUE_WITH_EXPIRE_TIME { from.i64()? } else { -1 };
    // Version 4 may carry the topic's id as a tag; positions are kept by name.
    from.tags()?;
    Ok(CommittedOffset {
        offset,
        leader_epoch: LeaderEpoch(leader_epoch),
        metadata,
        committed_at,
        expires_at: (expires_at != -1).then_some(Timestamp(expires_at)),
    })
}

fn decode_group(value: &[u8]) -> Result<GroupMetadata, DecodeError> {
    let (version, mut from) = Reader::versioned(value)?;
    let protocol_type = from.string()?;
    let generation = Generation(from.i32()?);
    let protocol = from.nullable_string()?;
    let leader = from.nullable_string()?;
    let state_since = if version >= 2 { from.i64()? } else { -1 };
    let count = from.array_len()?;
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        members.push(decode_member(&mut from, version)?);
    }
    from.tags()?;
    Ok(GroupMetadata {
        protocol_type,
        generation,
        protocol,
        leader,
        state_since: (state_since != -1).then_some(Timestamp(state_since)),
        members,
    })
}

fn decode_member(from: &mut Reader<'_>, version: i16) -> Result<SavedMember, DecodeError> {
    let member_id = from.string()?;
    let instance_id = if version >= 3 { from.nullable_string()? } else { None };
    let client_id = from.string()?;
    let client_host = from.string()?;
    let rebalance = if version >= 1 { from.i32()? } else { -1 };
    let session = from.i32()?;
    let subscription = from.blob()?;
    let assignment = from.blob()?;
    from.tags()?;
    let session_timeout = Duration::from_millis(u64::try_from(session).unwrap_or(0));
    Ok(SavedMember {
        member_id,
        instance_id,
        client_id,
        client_host,
        rebalance_timeout: u64::try_from(rebalance).map_or(session_timeout, Duration::from_millis),
        session_timeout,
        subscription,
        assignment,
    })
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn i16(&mut self, value: i16) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    fn string(&mut self, text: &str) {
        let length = i16::try_from(text.len());
        assert!(length.is_ok(), "a text of {} bytes passed the door", text.len());
        self.i16(length.unwrap_or(0));
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn nullable_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.i16(-1),
        }
    }

    fn blob(&mut self, blob: &[u8]) {
        self.i32(length_i32(blob.len()));
        self.bytes.extend_from_slice(blob);
    }
}

/// No frame is as large as 2 GiB, so no count or blob taken from one is.
fn length_i32(length: usize) -> i32 {
    let length = i32::try_from(length);
    assert!(length.is_ok(), "a length above 2 GiB");
    length.unwrap_or(0)
}

struct Reader<'a> {
    rest: &'a [u8],
    flexible: bool,
}

impl<'a> Reader<'a> {
    /// A value's version, and its fields in that version's encoding.
    fn versioned(value: &'a [u8]) -> Result<(i16, Self), DecodeError> {
        let mut from = Self { rest: value, flexible: false };
        let version = from.i16()?;
        if !(0..=VALUE_FLEXIBLE).contains(&version) {
            return Err(DecodeError::ValueVersion(version));
        }
        from.flexible = version >= VALUE_FLEXIBLE;
        Ok((version, from))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn i16(&mut self) -> Result<i16, DecodeError> {
        self.fixed().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Result<i32, DecodeError> {
        self.fixed().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, DecodeError> {
        self.fixed().map(i64::from_be_bytes)
    }

    fn varint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.fixed()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| DecodeError::Length);
            }
        }
        Err(DecodeError::Length)
    }

    /// A compact length is one more than what it counts, and 0 for null.
    fn compact_length(&mut self) -> Result<Option<usize>, DecodeError> {
        let Some(length) = self.varint()?.checked_sub(1) else { return Ok(None) };
        usize::try_from(length).map(Some).map_err(|_| DecodeError::Length)
    }

    fn signed_length(length: i64) -> Result<Option<usize>, DecodeError> {
        if length == -1 {
            return Ok(None);
        }
        usize::try_from(length).map(Some).map_err(|_| DecodeError::Length)
    }

    fn nullable_string(&mut self) -> Result<Option<Arc<str>>, DecodeError> {
        let length = if self.flexible {
            self.compact_length()?
        } else {
            Self::signed_length(i64::from(self.i16()?))?
        };
        let Some(length) = length else { return Ok(None) };
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| DecodeError::Utf8)?;
        Ok(Some(Arc::from(text)))
    }

    fn string(&mut self) -> Result<Arc<str>, DecodeError> {
        self.nullable_string()?.ok_or(DecodeError::Length)
    }

    fn long_length(&mut self) -> Result<usize, DecodeError> {
        let length = if self.flexible {
            self.compact_length()?
        } else {
            Self::signed_length(i64::from(self.i32()?))?
        };
        length.ok_or(DecodeError::Length)
    }

    fn blob(&mut self) -> Result<Arc<[u8]>, DecodeError> {
        let length = self.long_length()?;
        self.take(length).map(Arc::from)
    }

    /// A count of members, checked against the bytes that remain before anything is allocated.
    fn array_len(&mut self) -> Result<usize, DecodeError> {
        /// The fewest bytes a member takes in any version: six empty fields and a timeout.
        const MEMBER_BYTES_MIN: usize = 10;
        let count = self.long_length()?;
        if count > self.rest.len() / MEMBER_BYTES_MIN {
            return Err(DecodeError::Short);
        }
        Ok(count)
    }

    /// Skips the tagged fields that end each structure of the flexible encoding.
    fn tags(&mut self) -> Result<(), DecodeError> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.varint()? {
            self.varint()?;
            let size = usize::try_from(self.varint()?).map_err(|_| DecodeError::Length)?;
            self.take(size)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
