//! One partition's log: segments of batches in a directory, as Kafka lays them out.
//!
//! The log knows nothing of replicas, groups or topics: it appends at its end, reads ranges,
//! says what is durable, and forgets from its front. Appends are serialised by the tail's lock;
//! readers take none, they see one [`View`] that is replaced whole.

mod append;
mod check;
mod config;
mod dir;
mod epochs;
mod files;
mod index;
mod producers;
mod read;
mod recovery;
mod replay;
mod retention;
mod scan;
mod segment;
mod snapshot;
#[cfg(test)]
mod tests;

pub(crate) use append::{AppendError, Appended};
pub(crate) use config::LogConfig;
pub(crate) use dir::{LogDir, LogDirError};
pub(crate) use files::Files;
pub(crate) use producers::{PastBatch, Producer};
pub(crate) use read::{LogSlice, ReadError, TimeFound, UpTo};
pub(crate) use recovery::OpenHow;

use crate::disk::{DiskError, DiskFile};
use crate::records::BatchError;
use crate::types::{LeaderEpoch, Offset, Timestamp};
use arc_swap::ArcSwap;
use epochs::Epochs;
use producers::Producers;
use segment::Segment;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// What goes wrong with a log's files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// Bytes below the recovery point are not what was written there.
    #[error("segment {segment} is damaged at byte {position}: {what}")]
    Corrupt {
        /// The segment's base offset.
        segment: Offset,
        /// Where the damaged batch begins.
        position: u64,
        /// What is wrong with it.
        what: BatchError,
    },
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl LogError {
    /// Whether it was for want of space, descriptors or memory, which may come back.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::Disk(error) if error.is_full() || error.is_shortage())
    }
}

/// A place between two batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// The offset that the next batch has or will have.
    pub(crate) offset: Offset,
    /// The base offset of the segment it lies in.
    pub(crate) segment: Offset,
    /// The byte in that segment.
    pub(crate) position: u64,
}

/// What readers see; published whole.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// By base offset; the last one is appended to.
    segments: Arc<Vec<Arc<Segment>>>,
    /// The first offset that may be read.
    pub(crate) start: Offset,
    /// Behind the last batch.
    pub(crate) end: LogPosition,
    /// Consumers read below this.
    pub(crate) high_watermark: LogPosition,
}

/// A partition's log. All of it is safe to call from any thread.
#[derive(Debug)]
pub(crate) struct Log {
    directory: PathBuf,
    files: Arc<Files>,
    config: ArcSwap<LogConfig>,
    view: ArcSwap<View>,
    /// Serialises offset assignment with the write; held for one write, no reader takes it.
    tail: Mutex<Tail>,
    /// Lets one flush run at a time; held while files are synced, taken before the tail's lock.
    flushing: Mutex<()>,
    condition: ConditionCell,
}

/// The end of the log, where appends happen.
#[derive(Debug)]
struct Tail {
    active: Arc<Segment>,
    file: Arc<dyn DiskFile>,
    producers: Producers,
    epochs: Epochs,
    /// The first batch's largest timestamp, by which the segment's age is told (KIP-33).
    rolling_from: Option<Timestamp>,
    /// When the active segment was made, for a segment without timestamps.
    created: Timestamp,
    /// How much later than its age a segment may roll, so that not all roll at once.
    jitter_ms: i64,
    /// Files and the directory that must be synced before anything later is durable.
    unsynced: Vec<Arc<dyn DiskFile>>,
    directory_unsynced: bool,
    /// Everything before it survives a loss of power.
    durable: LogPosition,
    /// Appended since the last flush began, for `flush.messages`.
    unflushed_records: u64,
}

/// Whether a log can be appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    /// It can.
    Open,
    /// It was closed, or its topic deleted: its files may be gone, which is no fault of the disk.
    GivenUp,
    /// A write or sync failed and its outcome is unknown: nothing more is appended.
    Failed,
}

/// Changed under the tail's lock; read without it, because a write that hangs holds that lock.
#[derive(Debug, Default)]
struct ConditionCell(AtomicU8);

impl ConditionCell {
    fn get(&self) -> Condition {
        match self.0.load(Ordering::Acquire) {
            0 => Condition::Open,
            1 => Condition::GivenUp,
            _ => Condition::Failed,
        }
    }

    fn set(&self, condition: Condition) {
        self.0.store(condition as u8, Ordering::Release);
    }
}

impl Log {
    /// What readers see now.
    pub(crate) fn view(&self) -> arc_swap::Guard<Arc<View>> {
        self.view.load()
    }

    /// The settings in force.
    pub(crate) fn config(&self) -> arc_swap::Guard<Arc<LogConfig>> {
        self.config.load()
    }

    /// Puts other settings in force, from the next append on.
    pub(crate) fn configure(&self, config: LogConfig) {
        self.config.store(Arc::new(config));
    }

    /// Bytes in all segments.
    pub(crate) fn size(&self) -> u64 {
        self.view.load().segments.iter().map(|segment| segment.size()).sum()
    }

    /// How many segments there are.
    pub(crate) fn segment_count(&self) -> usize {
        self.view.load().segments.len()
    }

    /// Whether somebody holds the end of the log, as a write that hangs does.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.tail.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Whether nothing can be appended any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.condition.get() != Condition::Open
    }

    /// Whether it was closed on purpose.
    pub(crate) fn is_given_up(&self) -> bool {
        self.condition.get() == Condition::GivenUp
    }

    /// The offset before which everything survives a loss of power.
    pub(crate) fn durable(&self) -> Offset {
        self.lock().durable.offset
    }

    /// The largest leader epoch up to `asked` and where it ended (KIP-320).
    pub(crate) fn end_of_epoch(&self, asked: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        let tail = self.lock();
        tail.epochs.end_of(asked, self.view.load().end.offset)
    }

    /// The leader epoch of the record at `offset`.
    pub(crate) fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.lock().epochs.epoch_at(offset)
    }

    /// The largest leader epoch in the log.
    #[cfg(test)]
    pub(crate) fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.lock().epochs.latest()
    }

    /// The producers known here, ordered by id, for DescribeProducers.
    pub(crate) fn producers(&self) -> Vec<(crate::types::ProducerId, Producer)> {
        self.lock().producers.sorted().into_iter().map(|(id, p)| (id, p.clone())).collect()
    }

    /// Forgets producers that wrote nothing for `idle_ms`.
    pub(crate) fn expire_producers(&self, now: Timestamp, idle_ms: i64) {
        self.lock().producers.expire(now, idle_ms);
    }

    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what readers see. The tail's lock makes changes one after the other.
    fn publish(&self, _tail: &Tail, change: impl FnOnce(&mut View)) {
        let mut view = View::clone(&self.view.load());
        change(&mut view);
        assert!(view.start <= view.high_watermark.offset, "log start above the high watermark");
        assert!(view.high_watermark.offset <= view.end.offset, "high watermark above the end");
        self.view.store(Arc::new(view));
    }
}
