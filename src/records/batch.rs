//! The 61-byte head of a record batch.
//!
//! ```text
//!  0 base offset i64 | 8 length i32 (of what follows it) | 12 leader epoch i32 | 16 magic i8
//! 17 crc u32 (Castagnoli, over all from 21) | 21 attributes i16 | 23 last offset delta i32
//! 27 base timestamp i64 | 35 max timestamp i64 | 43 producer id i64 | 51 producer epoch i16
//! 53 base sequence i32 | 57 record count i32 | 61 records
//! ```
//! attributes: bits 0–2 compression, 3 timestamp type (1 = log append time), 4 transactional,
//! 5 control, 6 delete horizon (KIP-534).

use crate::types::{LeaderEpoch, Offset, ProducerId, Timestamp};

/// Bytes before the first record.
pub(crate) const HEADER_BYTES: usize = 61;
/// Bytes of base offset and length, which the length itself does not count.
const LENGTH_OVERHEAD: usize = 12;
/// Where what the checksum covers begins.
const CHECKED_FROM: usize = 21;

const TIMESTAMP_TYPE_BIT: i16 = 1 << 3;
const TRANSACTIONAL_BIT: i16 = 1 << 4;
const CONTROL_BIT: i16 = 1 << 5;

/// Why bytes are not a record batch of format version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BatchError {
    /// Fewer bytes than the batch's own length says.
    #[error("the batch is cut short")]
    Short,
    /// A length below that of an empty batch, or negative.
    #[error("batch length {0} is impossible")]
    Length(i32),
    /// An older or unknown format.
    #[error("magic {0} is not 2")]
    Magic(i8),
    /// The checksum does not match.
    #[error("checksum {stored:08x} should be {computed:08x}")]
    Checksum {
        /// In the batch.
        stored: u32,
        /// Of its bytes.
        computed: u32,
    },
    /// Bits 0 to 2 of the attributes name no codec.
    #[error("compression code {0} is unknown")]
    Compression(u8),
    /// Counts, deltas or sequences contradict each other.
    #[error("{0}")]
    Inconsistent(&'static str),
}

/// How a batch's records are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Compression {
    None = 0,
    Gzip = 1,
    Snappy = 2,
    Lz4 = 3,
    Zstd = 4,
}

/// The head of a batch, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    pub(crate) base_offset: Offset,
    /// Of the whole batch, in bytes, head included.
    pub(crate) size: usize,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) crc: u32,
    pub(crate) attributes: i16,
    pub(crate) last_offset_delta: i32,
    pub(crate) base_timestamp: Timestamp,
    pub(crate) max_timestamp: Timestamp,
    pub(crate) producer_id: ProducerId,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) record_count: i32,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], BatchError> {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().ok_or(BatchError::Short)
}

impl BatchHeader {
    /// Decodes the head at the front of `bytes`, which need not hold the records.
    /// The checksum is not looked at.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let head: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(BatchError::Short)?;
        let magic = i8::from_be_bytes(array(head, 16)?);
        if magic != 2 {
            return Err(BatchError::Magic(magic));
        }
        let length = i32::from_be_bytes(array(head, 8)?);
        let size = usize::try_from(length)
            .ok()
            .map(|length| length + LENGTH_OVERHEAD)
            .filter(|size| *size >= HEADER_BYTES)
            .ok_or(BatchError::Length(length))?;
        Ok(Self {
            base_offset: Offset(i64::from_be_bytes(array(head, 0)?)),
            size,
            leader_epoch: LeaderEpoch(i32::from_be_bytes(array(head, 12)?)),
            crc: u32::from_be_bytes(array(head, 17)?),
            attributes: i16::from_be_bytes(array(head, 21)?),
            last_offset_delta: i32::from_be_bytes(array(head, 23)?),
            base_timestamp: Timestamp(i64::from_be_bytes(array(head, 27)?)),
            max_timestamp: Timestamp(i64::from_be_bytes(array(head, 35)?)),
            producer_id: ProducerId(i64::from_be_bytes(array(head, 43)?)),
            producer_epoch: i16::from_be_bytes(array(head, 51)?),
            base_sequence: i32::from_be_bytes(array(head, 53)?),
            record_count: i32::from_be_bytes(array(head, 57)?),
        })
    }

    /// Writes the head; the caller has put the right checksum into `crc`.
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut head = [0; HEADER_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            if let Some(place) = head.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
            at += bytes.len();
        };
        put(&self.base_offset.0.to_be_bytes());
        put(&self.length().to_be_bytes());
        put(&self.leader_epoch.0.to_be_bytes());
        put(&[2]);
        put(&self.crc.to_be_bytes());
        put(&self.attributes.to_be_bytes());
        put(&self.last_offset_delta.to_be_bytes());
        put(&self.base_timestamp.0.to_be_bytes());
        put(&self.max_timestamp.0.to_be_bytes());
        put(&self.producer_id.0.to_be_bytes());
        put(&self.producer_epoch.to_be_bytes());
        put(&self.base_sequence.to_be_bytes());
        put(&self.record_count.to_be_bytes());
        head
    }

    /// The length field: the batch without base offset and length.
    fn length(&self) -> i32 {
        i32::try_from(self.size - LENGTH_OVERHEAD).unwrap_or(i32::MAX)
    }

    /// Compares the checksum with the bytes of the whole batch.
    pub(crate) fn check_crc(&self, batch: &[u8]) -> Result<(), BatchError> {
        let checked = batch.get(CHECKED_FROM..self.size).ok_or(BatchError::Short)?;
        let computed = crc32c::crc32c(checked);
        if computed == self.crc {
            Ok(())
        } else {
            Err(BatchError::Checksum { stored: self.crc, computed })
        }
    }

    /// Sets `crc` for this head in front of `records`.
    pub(crate) fn seal(&mut self, records: &[u8]) {
        let head = self.encode();
        let crc = crc32c::crc32c(head.get(CHECKED_FROM..).unwrap_or_default());
        self.crc = crc32c::crc32c_append(crc, records);
    }

    /// The last record's offset.
    pub(crate) fn last_offset(&self) -> Offset {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// The codec of the records.
    pub(crate) fn compression(&self) -> Result<Compression, BatchError> {
        match self.attributes & 0b111 {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Gzip),
            2 => Ok(Compression::Snappy),
            3 => Ok(Compression::Lz4),
            4 => Ok(Compression::Zstd),
            code => Err(BatchError::Compression(u8::try_from(code).unwrap_or(u8::MAX))),
        }
    }

    /// Whether all records carry the broker's time, which is then `max_timestamp`.
    pub(crate) fn is_log_append_time(&self) -> bool {
        self.attributes & TIMESTAMP_TYPE_BIT != 0
    }

    /// Sets or clears the bit that says whose time the records carry.
    pub(crate) fn set_log_append_time(&mut self, on: bool) {
        if on {
            self.attributes |= TIMESTAMP_TYPE_BIT;
        } else {
            self.attributes &= !TIMESTAMP_TYPE_BIT;
        }
    }

    /// Whether the batch belongs to a transaction (KIP-98).
    pub(crate) fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_BIT != 0
    }

    /// Whether the batch holds a marker rather than records.
    pub(crate) fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// Whether the batch carries a producer's id and sequence.
    pub(crate) fn has_producer(&self) -> bool {
        self.producer_id.0 >= 0
    }

    /// The last record's sequence; sequences wrap from the largest `i32` to 0.
    pub(crate) fn last_sequence(&self) -> i32 {
        sequence_after(self.base_sequence, self.last_offset_delta)
    }
}

/// The sequence `steps` after `sequence`, wrapping from the largest `i32` to 0 (KAFKA-7692).
pub(crate) fn sequence_after(sequence: i32, steps: i32) -> i32 {
    let sum = i64::from(sequence) + i64::from(steps);
    i32::try_from(sum % (i64::from(i32::MAX) + 1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn sample() -> BatchHeader {
        BatchHeader {
            base_offset: Offset(7),
            size: HEADER_BYTES + 5,
            leader_epoch: LeaderEpoch(3),
            crc: 0,
            attributes: TRANSACTIONAL_BIT | 4,
            last_offset_delta: 2,
            base_timestamp: Timestamp(1_000),
            max_timestamp: Timestamp(2_000),
            producer_id: ProducerId(9),
            producer_epoch: 1,
            base_sequence: i32::MAX,
            record_count: 3,
        }
    }

    #[test]
    fn a_head_reads_back_as_it_was_written_and_its_checksum_covers_the_records() {
        let mut header = sample();
        header.seal(b"hello");
        let mut batch = header.encode().to_vec();
        batch.extend_from_slice(b"hello");
        assert_eq!(BatchHeader::parse(&batch), Ok(header));
        assert_eq!(header.check_crc(&batch), Ok(()));
        batch[64] ^= 1;
        assert!(matches!(header.check_crc(&batch), Err(BatchError::Checksum { .. })));
        assert_eq!(header.check_crc(&batch[..60]), Err(BatchError::Short));
    }

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sample().last_sequence(), 1);
    }

    #[test]
    fn impossible_heads_are_refused() {
        let mut bytes = sample().encode();
        assert_eq!(BatchHeader::parse(&bytes[..60]), Err(BatchError::Short));
        bytes[8..12].copy_from_slice(&48i32.to_be_bytes());
        assert_eq!(BatchHeader::parse(&bytes), Err(BatchError::Length(48)));
        bytes[16] = 1;
        assert_eq!(BatchHeader::parse(&bytes), Err(BatchError::Magic(1)));
    }
}
