//! Producer state on disk: Kafka's `.snapshot`, which keeps one batch a producer, and our
//! `.sequences` beside it with the up to five that telling a repeat takes (KIP-98, KAFKA-5829).
//!
//! `.snapshot`: version i16 = 1, checksum u32 (Castagnoli, over all behind it), count i32, then
//! per producer: id i64, epoch i16, last sequence i32, last offset i64, offset delta i32,
//! timestamp i64, coordinator epoch i32, first offset of the open transaction i64.
//!
//! `.sequences`: version i16 = 1, checksum u32, count i32, then per producer: id i64, epoch i16,
//! number of batches i32, and per batch first sequence i32, last sequence i32, last offset i64,
//! offset delta i32, timestamp i64. When it is missing or damaged, one batch a producer is known.

use super::producers::{PastBatch, Producer, Producers};
use crate::types::{Offset, ProducerId, Timestamp};
use std::collections::VecDeque;

const VERSION: i16 = 1;
const HEADER_BYTES: usize = 6;

/// The content of the `.snapshot` file.
pub(crate) fn encode_snapshot(producers: &Producers) -> Vec<u8> {
    sealed(producers, |out, id, producer| {
        let last = producer.batches.back();
        out.extend_from_slice(&id.0.to_be_bytes());
        out.extend_from_slice(&producer.epoch.to_be_bytes());
        out.extend_from_slice(&last.map_or(-1, |last| last.last_sequence).to_be_bytes());
        out.extend_from_slice(&last.map_or(-1, |last| last.last_offset.0).to_be_bytes());
        out.extend_from_slice(&last.map_or(0, |last| last.offset_delta).to_be_bytes());
        out.extend_from_slice(&producer.last_timestamp.0.to_be_bytes());
        out.extend_from_slice(&(-1i32).to_be_bytes());
        out.extend_from_slice(&(-1i64).to_be_bytes());
    })
}

/// The content of the `.sequences` file.
pub(crate) fn encode_sequences(producers: &Producers) -> Vec<u8> {
    sealed(producers, |out, id, producer| {
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
    })
}

fn count(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

fn sealed(producers: &Producers, entry: impl Fn(&mut Vec<u8>, ProducerId, &Producer)) -> Vec<u8> {
    let mut out = VERSION.to_be_bytes().to_vec();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&count(producers.len()).to_be_bytes());
    for (id, producer) in producers.sorted() {
        entry(&mut out, id, producer);
    }
    let checksum = crc32c::crc32c(&out[HEADER_BYTES..]);
    out[2..HEADER_BYTES].copy_from_slice(&checksum.to_be_bytes());
    out
}

/// Reads producers back from both files; `None` when the snapshot is damaged.
pub(crate) fn decode(snapshot: &[u8], sequences: Option<&[u8]>) -> Option<Producers> {
    let mut producers = Producers::default();
    let mut reader = opened(snapshot)?;
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
    if let Some(mut reader) = sequences.and_then(opened) {
        restore_sequences(&mut producers, &mut reader)?;
    }
    Some(producers)
}

/// Replaces the single batch of each producer by the five, where they end in the same batch.
fn restore_sequences(producers: &mut Producers, reader: &mut Reader<'_>) -> Option<()> {
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
        let Some(known) = producers.get(id) else { continue };
        if known.epoch == epoch && known.batches.back() == batches.back() {
            let last_timestamp = known.last_timestamp;
            producers.restore(id, Producer { epoch, batches, last_timestamp });
        }
    }
    Some(())
}

fn opened(content: &[u8]) -> Option<Reader<'_>> {
    let (header, body) = content.split_first_chunk::<HEADER_BYTES>()?;
    let [v0, v1, c0, c1, c2, c3] = *header;
    let sound = i16::from_be_bytes([v0, v1]) == VERSION
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
    fn all_five_batches_come_back_and_one_each_without_the_second_file() {
        let producers = some();
        let (snapshot, sequences) = (encode_snapshot(&producers), encode_sequences(&producers));
        assert_eq!(decode(&snapshot, Some(&sequences)).as_ref(), Some(&producers));
        let alone = decode(&snapshot, None).expect("sound");
        for (id, producer) in producers.sorted() {
            let known = alone.get(id).expect("known");
            assert_eq!(known.batches.len(), 1);
            assert_eq!(known.batches.back(), producer.batches.back());
        }
    }

    #[test]
    fn damage_is_noticed() {
        let mut snapshot = encode_snapshot(&some());
        for at in [0, 3, 12, snapshot.len() - 1] {
            snapshot[at] ^= 1;
            assert_eq!(decode(&snapshot, None), None, "byte {at}");
            snapshot[at] ^= 1;
        }
        assert_eq!(decode(&snapshot[..snapshot.len() - 1], None), None);
    }
}
