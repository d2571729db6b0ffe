//! What a partition remembers of idempotent producers (KIP-98): the epoch and the last five
//! batches of each, so that a batch sent again is answered and not appended twice.

use crate::protocol::ErrorCode;
use crate::records::{BatchHeader, sequence_after};
use crate::types::{Offset, ProducerId, Timestamp};
use std::collections::{HashMap, VecDeque};

/// A producer has at most five requests in flight, so a repeat is one of its last five batches.
const BATCHES_KEPT: usize = 5;

/// An appended batch, as far as telling its repeat takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PastBatch {
    pub(crate) first_sequence: i32,
    pub(crate) last_sequence: i32,
    pub(crate) last_offset: Offset,
    /// Last offset less base offset.
    pub(crate) offset_delta: i32,
    pub(crate) timestamp: Timestamp,
}

impl PastBatch {
    /// The batch's first offset.
    pub(crate) fn base_offset(&self) -> Offset {
        self.last_offset + -i64::from(self.offset_delta)
    }
}

/// One producer's state in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    pub(crate) epoch: i16,
    /// Oldest first, at most five; empty after the epoch changed by a marker.
    pub(crate) batches: VecDeque<PastBatch>,
    /// The largest timestamp of its last batch; idle producers expire by it.
    pub(crate) last_timestamp: Timestamp,
}

impl Producer {
    fn last(&self) -> Option<&PastBatch> {
        self.batches.back()
    }
}

/// What a batch is to the partition it wants into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// To be appended.
    New,
    /// Appended before: answer with where it lies.
    Repeat(PastBatch),
}

/// All producers of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Producers {
    by_id: HashMap<ProducerId, Producer>,
}

impl Producers {
    /// Judges a batch of a client. Nothing is changed.
    pub(crate) fn check(&self, header: &BatchHeader) -> Result<Sequence, ErrorCode> {
        if !header.has_producer() {
            return Ok(Sequence::New);
        }
        // When nothing is known of a producer any sequence is taken: its state may have expired.
        let Some(producer) = self.by_id.get(&header.producer_id) else {
            return Ok(Sequence::New);
        };
        if header.producer_epoch == producer.epoch
            && let Some(past) = producer.batches.iter().find(|past| {
                past.first_sequence == header.base_sequence
                    && past.last_sequence == header.last_sequence()
            })
        {
            return Ok(Sequence::Repeat(*past));
        }
        if header.producer_epoch < producer.epoch {
            return Err(ErrorCode::InvalidProducerEpoch);
        }
        let expected = match producer.last() {
            Some(last) if header.producer_epoch == producer.epoch => {
                sequence_after(last.last_sequence, 1)
            }
            Some(_) => 0,
            None => return Ok(Sequence::New),
        };
        if header.base_sequence == expected {
            Ok(Sequence::New)
        } else {
            Err(ErrorCode::OutOfOrderSequenceNumber)
        }
    }

    /// Notes a batch that is in the log, on any replica and in recovery: whatever stands there
    /// was checked by a leader (KAFKA-6003).
    pub(crate) fn note(&mut self, header: &BatchHeader) {
        if !header.has_producer() || header.is_control() {
            return;
        }
        let producer = self.by_id.entry(header.producer_id).or_insert_with(|| Producer {
            epoch: header.producer_epoch,
            batches: VecDeque::with_capacity(BATCHES_KEPT),
            last_timestamp: header.max_timestamp,
        });
        if header.producer_epoch != producer.epoch {
            producer.epoch = header.producer_epoch;
            producer.batches.clear();
        }
        if producer.batches.len() == BATCHES_KEPT {
            producer.batches.pop_front();
        }
        producer.batches.push_back(PastBatch {
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        });
        producer.last_timestamp = header.max_timestamp;
    }

    /// Forgets producers whose last batch is `idle_ms` old or older.
    pub(crate) fn expire(&mut self, now: Timestamp, idle_ms: i64) {
        self.by_id.retain(|_, producer| now.0.saturating_sub(producer.last_timestamp.0) < idle_ms);
    }

    /// All producers, ordered by id.
    pub(crate) fn sorted(&self) -> Vec<(ProducerId, &Producer)> {
        let mut all: Vec<_> = self.by_id.iter().map(|(id, producer)| (*id, producer)).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    /// Puts a producer back that a snapshot held.
    pub(crate) fn restore(&mut self, id: ProducerId, producer: Producer) {
        self.by_id.insert(id, producer);
    }

    /// Puts back those of a snapshot that are not known otherwise.
    pub(crate) fn restore_unknown(&mut self, others: Self) {
        for (id, producer) in others.by_id {
            self.by_id.entry(id).or_insert(producer);
        }
    }

    /// The producer's state, if any.
    pub(crate) fn get(&self, id: ProducerId) -> Option<&Producer> {
        self.by_id.get(&id)
    }

    /// How many producers are known.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::LeaderEpoch;

    fn batch(epoch: i16, sequence: i32, count: i32, base: i64) -> BatchHeader {
        BatchHeader {
            base_offset: Offset(base),
            size: 100,
            leader_epoch: LeaderEpoch(0),
            crc: 0,
            attributes: 0,
            last_offset_delta: count - 1,
            base_timestamp: Timestamp(10),
            max_timestamp: Timestamp(10),
            producer_id: ProducerId(1),
            producer_epoch: epoch,
            base_sequence: sequence,
            record_count: count,
        }
    }

    fn with(batches: &[BatchHeader]) -> Producers {
        let mut producers = Producers::default();
        batches.iter().for_each(|batch| producers.note(batch));
        producers
    }

    #[test]
    fn the_last_five_batches_are_known_again_and_the_sixth_is_out_of_order() {
        let sent: Vec<_> = (0..6).map(|i| batch(0, i * 2, 2, i64::from(i) * 2)).collect();
        let producers = with(&sent);
        for past in &sent[1..] {
            let Ok(Sequence::Repeat(known)) = producers.check(past) else { panic!("not known") };
            assert_eq!(known.base_offset(), past.base_offset);
        }
        assert_eq!(producers.check(&sent[0]), Err(ErrorCode::OutOfOrderSequenceNumber));
        assert_eq!(producers.check(&batch(0, 12, 1, 0)), Ok(Sequence::New));
        assert_eq!(producers.check(&batch(0, 13, 1, 0)), Err(ErrorCode::OutOfOrderSequenceNumber));
    }

    #[test]
    fn epochs_fence_and_a_new_one_begins_at_zero() {
        let producers = with(&[batch(3, 0, 1, 0)]);
        assert_eq!(producers.check(&batch(2, 1, 1, 1)), Err(ErrorCode::InvalidProducerEpoch));
        assert_eq!(producers.check(&batch(4, 0, 1, 1)), Ok(Sequence::New));
        assert_eq!(producers.check(&batch(4, 1, 1, 1)), Err(ErrorCode::OutOfOrderSequenceNumber));
    }

    #[test]
    fn sequences_wrap_and_an_unknown_producer_may_begin_anywhere() {
        let producers = with(&[batch(0, i32::MAX - 1, 2, 0)]);
        assert_eq!(producers.check(&batch(0, 0, 1, 2)), Ok(Sequence::New));
        assert_eq!(Producers::default().check(&batch(0, 50, 1, 2)), Ok(Sequence::New));
    }

    #[test]
    fn idle_producers_expire_by_their_last_timestamp() {
        let mut producers = with(&[batch(0, 0, 1, 0)]);
        producers.expire(Timestamp(109), 100);
        assert_eq!(producers.len(), 1);
        producers.expire(Timestamp(110), 100);
        assert_eq!(producers.len(), 0);
    }
}
