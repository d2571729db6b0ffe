//! What was appended to a log, and what must be found of it after a crash.

use super::super::epochs::Epochs;
use super::super::producers::Producers;
use super::super::{Log, OpenHow, UpTo};
use crate::records::{BatchHeader, HEADER_BYTES, Records, Validated};
use crate::types::{LeaderEpoch, Offset, ProducerId, Timestamp};
use std::collections::BTreeSet;

/// A batch as it must stand in the log.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) header: BatchHeader,
    pub(super) bytes: Vec<u8>,
    /// Every record's offset and time.
    times: Vec<(Offset, Timestamp)>,
}

impl Written {
    /// The batch with the offset and epoch that the log gives it.
    pub(super) fn new(batch: &Validated<'_>, base: Offset, epoch: LeaderEpoch) -> Self {
        let mut header = batch.header;
        header.base_offset = base;
        header.leader_epoch = epoch;
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(&batch.records);
        let mut times = Vec::new();
        let mut records = Records::new(&bytes[HEADER_BYTES..], header.record_count);
        while let Ok(Some(record)) = records.next() {
            let time = Timestamp(header.base_timestamp.0 + record.timestamp_delta);
            times.push((base + i64::from(record.offset_delta), time));
        }
        Self { header, bytes, times }
    }

    fn end(&self) -> Offset {
        self.header.last_offset() + 1
    }
}

/// All that a log was told, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) written: Vec<Written>,
    /// The append under way when the power went: it may be there.
    pub(super) doubtful: Option<Written>,
    /// Everything before it was reported durable.
    pub(super) flushed: Offset,
    /// The furthest that the log's start ever was.
    pub(super) start: Offset,
}

impl History {
    /// Holds an opened log against it, and goes on from what the log has.
    pub(super) fn check(&mut self, log: &Log, how: OpenHow) {
        let (start, end) = (log.view().start, log.view().end.offset);
        let told = format!("start {start}, end {end}, {how:?}, {}", self.summary());
        assert!(end >= self.flushed, "flushed records are missing: {told}");
        assert!(start >= how.log_start, "deleted records are back: {told}");
        assert!(start <= self.start.max(how.log_start), "records went unasked: {told}");
        self.written.extend(self.doubtful.take());
        // What was deleted past the log's end leaves nothing but the place to go on from.
        if end == how.log_start && start == end && self.written.iter().all(|b| b.end() != end) {
            self.written.clear();
        }
        self.written.retain(|batch| batch.end() <= end);
        let last = self.written.last().map_or(end, Written::end);
        assert_eq!(last, end, "the end is not behind a batch: {told}");
        self.check_batches(log, start, &told);
        self.check_times(log, start);
        self.check_producers(log, &told);
        self.check_epochs(log, start, &told);
        assert_eq!(log.durable(), end, "what was recovered is not durable: {told}");
        self.flushed = end;
    }

    fn summary(&self) -> String {
        let end = self.written.last().map_or(Offset::ZERO, Written::end);
        format!("appended up to {end}, flushed {}, furthest start {}", self.flushed, self.start)
    }

    /// The batches that must be readable.
    fn held(&self, start: Offset) -> impl Iterator<Item = &Written> + Clone {
        self.written.iter().filter(move |batch| batch.end() > start)
    }

    /// Reads from every offset: the same bytes as were written, whole batches, no hole.
    fn check_batches(&self, log: &Log, start: Offset, told: &str) {
        let mut next = start;
        for batch in self.held(start) {
            assert!(batch.header.base_offset <= next, "a hole at {next}: {told}");
            for offset in next.0..batch.end().0 {
                let slice = log.read(Offset(offset), 1, true, UpTo::End).expect("read");
                let slice = slice.unwrap_or_else(|| panic!("nothing at {offset}: {told}"));
                let mut bytes = vec![0; slice.length as usize];
                let read = slice.file.read_at(&mut bytes, slice.position).expect("bytes");
                assert_eq!(read, bytes.len());
                assert!(bytes == batch.bytes, "other bytes at {offset}: {told}");
            }
            next = batch.end();
        }
    }

    /// The indexes find by time what a scan finds.
    fn check_times(&self, log: &Log, start: Offset) {
        let records: Vec<_> = self
            .held(start)
            .flat_map(|batch| batch.times.iter().copied())
            .filter(|(offset, _)| *offset >= start)
            .collect();
        let times: BTreeSet<_> = records.iter().map(|(_, time)| time.0).collect();
        let asked = times.iter().flat_map(|time| [time - 1, *time, time + 1]);
        for time in asked.map(Timestamp) {
            let scanned = records.iter().find(|(_, at)| *at >= time).copied();
            let found = log.find_time(time).expect("found").map(|one| (one.offset, one.timestamp));
            assert_eq!(found, scanned, "asked for {time}");
        }
        let latest = times.last().and_then(|time| records.iter().find(|(_, at)| at.0 == *time));
        let found = log.find_latest_time().expect("found").map(|one| (one.offset, one.timestamp));
        assert_eq!(found, latest.copied(), "the latest time");
    }

    /// Producers are what replaying the log gives, with all of the last five batches that the log
    /// still holds; older knowledge may be there too.
    fn check_producers(&self, log: &Log, told: &str) {
        let first = log.view().segments[0].base();
        let (mut all, mut held) = (Producers::default(), Producers::default());
        for batch in &self.written {
            all.note(&batch.header);
            if batch.header.base_offset >= first {
                held.note(&batch.header);
            }
        }
        let known = log.producers();
        for (id, producer) in &known {
            let expected = all.get(*id).unwrap_or_else(|| panic!("stranger {id}: {told}"));
            let skip = expected.batches.len().checked_sub(producer.batches.len());
            let skip = skip.unwrap_or_else(|| panic!("too many batches of {id}: {told}"));
            assert_eq!(producer.epoch, expected.epoch, "{told}");
            let rest: Vec<_> = expected.batches.iter().skip(skip).collect();
            assert_eq!(producer.batches.iter().collect::<Vec<_>>(), rest, "of {id}: {told}");
        }
        let find = |id: ProducerId| known.iter().find(|(known, _)| *known == id);
        for (id, held) in held.sorted() {
            let (_, producer) = find(id).unwrap_or_else(|| panic!("{id} is unknown: {told}"));
            assert!(producer.batches.len() >= held.batches.len(), "repeats of {id}: {told}");
        }
    }

    fn check_epochs(&self, log: &Log, start: Offset, told: &str) {
        let mut epochs = Epochs::default();
        for batch in &self.written {
            epochs.note(batch.header.leader_epoch, batch.header.base_offset);
        }
        epochs.truncate_start(start);
        // Of an empty log no batch tells the epoch.
        if self.held(start).next().is_some() {
            let mut found = log.lock().epochs.clone();
            found.truncate_start(start);
            assert_eq!(found, epochs, "epochs: {told}");
        }
    }
}
