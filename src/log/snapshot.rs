//! Producer state on disk: Kafka's `.snapshot`, which keeps one batch a producer, and our
//! `.sequences` beside it with the up to five that telling a repeat takes (KIP-98, KAFKA-5829).
//!
//! `.snapshot`: version i16 = 1, checksum u32 (Castagnoli, over all behind it), count i32, then
//! per producer: id i64, epoch i16, last sequence i32, last offset i64, offset delta i32,
//! timestamp i64, coordinator epoch i32, first offset of the open transaction i64.
//!
//! `.sequences`: version i16 = 2, checksum u32, count i32, then per producer: id i64, epoch i16,
//! number of batches i32, and per batch first sequence i32, last sequence i32, last offset i64,
//! offset delta i32, timestamp i64. Then the leader epochs up to there: count i32, then epoch i32,
//! first offset i64. Neither file is synced: both must be sound, or the log is read instead.

use super::epochs::Epochs;
use super::producers::{PastBatch, Producer, Producers};
use crate::types::{LeaderEpoch, Offset, ProducerId, Timestamp};
use std::collections::VecDeque;

const SNAPSHOT_VERSION: i16 = 1;
const SEQUENCES_VERSION: i16 = 2;
const HEADER_BYTES: usize = 6;

/// The content of the `.snapshot` file.
pub(crate) fn encode_snapshot(producers: &Producers) -> Vec<u8> {
    let mut out = begin(SNAPSHOT_VERSION, producers.len());
    for (id, producer) in producers.sorted() {
        let last = producer.batches.back();
        out.extend_from_slice(&id.0.to_be_bytes());
        out.extend_from_slice(&producer.epoch.to_be_bytes());
        out.extend_from_slice(&last.map_or(-1, |last| last.last_sequence).to_be_bytes());
        out.extend_from_slice(&last.map_or(-1, |last| last.last_offset.0).to_be_bytes());
        out.extend_from_slice(&last.map_or(0, |last| last.offset_delta).to_be_bytes());
        out.extend_from_slice(&producer.last_timestamp.0.to_be_bytes());
        out.extend_from_slice(&(-1i32).to_be_bytes());
        out.extend_from_slice(&(-1i64).to_be_bytes());
    }
    seal(out)
}

/// The content of the `.sequences` file.
pub(crate) fn encode_sequences(producers: &Producers, epochs: &Epochs) -> Vec<u8> {
    let mut out = begin(SEQUENCES_VERSION, producers.len());
    for (id, producer) in producers.sorted() {
        out.extend_from_slice(&id.0.to_be_bytes());
        out.extend_from_slice(&producer.epoch.to_be_bytes());
        out.extend_from_slice(&count(producer.batches.len()).to_be_bytes());
        for batch in &producer.batches {
            out.extend_from_slice(&batch.first_sequence.to_be_bytes());
            out.extend_from_slice(&batch.last_sequence.to_be_bytes());
            out.extend_from_slice(&batch.last_offset.0.to_be_bytes());
            out.extend_from_slice(&batch.offset_delta.to_be_bytes());
            out.extend_from_slice(&batch.timestamp.0.to_be_bytes());
        }
    }
    out.extend_from_slice(&count(epochs.entries().count()).to_be_bytes());
    for (epoch, start) in epochs.entries() {
        out.extend_from_slice(&epoch.0.to_be_bytes());
        out.extend_from_slice(&start.0.to_be_bytes());
    }
    seal(out)
}

fn count(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

fn begin(version: i16, producers: usize) -> Vec<u8> {
    let mut out = version.to_be_bytes().to_vec();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&count(producers).to_be_bytes());
    out
}

fn seal(mut out: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&out[HEADER_BYTES..]);
    out[2..HEADER_BYTES].copy_from_slice(&checksum.to_be_bytes());
    out
}

/// Reads both files back; `None` when one is damaged, or they are not of the same moment.
pub(crate) fn decode(snapshot: &[u8], sequences: &[u8]) -> Option<(Producers, Epochs)> {
    let known = decode_snapshot(snapshot)?;
    let mut producers = Producers::default();
    let mut reader = opened(sequences, SEQUENCES_VERSION)?;
    for _ in 0..reader.int()? {
        let (id, epoch) = (ProducerId(reader.long()?), reader.short()?);
        let mut batches = VecDeque::new();
        for _ in 0..reader.int()? {
            batches.push_back(PastBatch {
                first_sequence: reader.int()?,
                last_sequence: reader.int()?,
                last_offset: Offset(reader.long()?),
                offset_delta: reader.int()?,
                timestamp: Timestamp(reader.long()?),
            });
        }
        let one = known.get(id)?;
        if one.epoch != epoch || one.batches.back() != batches.back() {
            return None;
        }
        let last_timestamp = one.last_timestamp;
        producers.restore(id, Producer { epoch, batches, last_timestamp });
    }
    let mut epochs = Epochs::default();
    for _ in 0..reader.int()? {
        epochs.note(LeaderEpoch(reader.int()?), Offset(reader.long()?));
    }
    (producers.len() == known.len()).then_some((producers, epochs))
}

/// Reads Kafka's file alone, with one batch a producer; `None` when it is damaged.
pub(crate) fn decode_snapshot(snapshot: &[u8]) -> Option<Producers> {
    let mut producers = Producers::default();
    let mut reader = opened(snapshot, SNAPSHOT_VERSION)?;
    for _ in 0..reader.int()? {
        let id = ProducerId(reader.long()?);
        let (epoch, last_sequence) = (reader.short()?, reader.int()?);
        let (last_offset, offset_delta) = (Offset(reader.long()?), reader.int()?);
        let timestamp = Timestamp(reader.long()?);
        reader.int()?;
        reader.long()?;
        let mut batches = VecDeque::new();
        if last_sequence >= 0 {
            let first_sequence = match last_sequence.checked_sub(offset_delta)? {
                first if first >= 0 => first,
                wrapped => wrapped.checked_add(i32::MAX)?.checked_add(1)?,
            };
            batches.push_back(PastBatch {
                first_sequence,
                last_sequence,
                last_offset,
                offset_delta,
                timestamp,
            });
        }
        producers.restore(id, Producer { epoch, batches, last_timestamp: timestamp });
    }
    Some(producers)
}

fn opened(content: &[u8], version: i16) -> Option<Reader<'_>> {
    let (header, body) = content.split_first_chunk::<HEADER_BYTES>()?;
    let [v0, v1, c0, c1, c2, c3] = *header;
    let sound = i16::from_be_bytes([v0, v1]) == version
        && u32::from_be_bytes([c0, c1, c2, c3]) == crc32c::crc32c(body);
    sound.then_some(Reader(body))
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn short(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    fn int(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    fn long(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::BatchHeader;
    use crate::types::LeaderEpoch;

    fn some() -> Producers {
        let mut producers = Producers::default();
        for number in 0..7 {
            producers.note(&BatchHeader {
                base_offset: Offset(i64::from(number) * 3),
                size: 100,
                leader_epoch: LeaderEpoch(0),
                crc: 0,
                attributes: 0,
                last_offset_delta: 2,
                base_timestamp: Timestamp(1),
                max_timestamp: Timestamp(i64::from(number)),
                producer_id: ProducerId(40 + i64::from(number % 2)),
                producer_epoch: 1,
                base_sequence: number / 2 * 3,
                record_count: 3,
            });
        }
        producers
    }

    #[test]
    fn all_five_batches_and_the_epochs_come_back_from_both_files_and_one_each_from_kafkas() {
        let producers = some();
        let mut epochs = Epochs::default();
        epochs.note(LeaderEpoch(2), Offset(0));
        epochs.note(LeaderEpoch(5), Offset(12));
        let snapshot = encode_snapshot(&producers);
        let sequences = encode_sequences(&producers, &epochs);
        assert_eq!(decode(&snapshot, &sequences), Some((producers.clone(), epochs)));
        let alone = decode_snapshot(&snapshot).expect("sound");
        for (id, producer) in producers.sorted() {
            let known = alone.get(id).expect("known");
            assert_eq!(known.batches.len(), 1);
            assert_eq!(known.batches.back(), producer.batches.back());
        }
    }

    #[test]
    fn damage_is_noticed_and_files_of_different_moments_are_not_taken_together() {
        let producers = some();
        let mut snapshot = encode_snapshot(&producers);
        let mut sequences = encode_sequences(&producers, &Epochs::default());
        for at in [0, 3, 12, snapshot.len() - 1] {
            snapshot[at] ^= 1;
            assert_eq!(decode(&snapshot, &sequences), None, "byte {at}");
            snapshot[at] ^= 1;
            sequences[at] ^= 1;
            assert_eq!(decode(&snapshot, &sequences), None, "byte {at}");
            sequences[at] ^= 1;
        }
        assert_eq!(decode(&snapshot[..snapshot.len() - 1], &sequences), None);
        assert_eq!(decode(&encode_snapshot(&Producers::default()), &sequences), None);
        let none = encode_sequences(&Producers::default(), &Epochs::default());
        assert_eq!(decode(&snapshot, &none), None);
    }
}
