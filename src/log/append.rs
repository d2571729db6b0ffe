//! The end of the log: appending, rolling, flushing.

use super::producers::Sequence;
use super::segment::Segment;
use super::{Condition, Log, LogConfig, LogPosition, PastBatch, Tail, snapshot};
use crate::disk::{self, DiskError};
use crate::protocol::ErrorCode;
use crate::records::{BatchHeader, Validated};
use crate::types::{LeaderEpoch, Offset, Timestamp};
use std::sync::{Arc, PoisonError};

/// A batch that now stands in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    /// The first record's offset.
    pub(crate) base_offset: Offset,
    /// Behind the last record: what must be committed for the batch to be.
    pub(crate) end: Offset,
    /// The log's first offset, which responses carry.
    pub(crate) log_start: Offset,
    /// The broker's time, where the records carry that.
    pub(crate) log_append_time: Option<Timestamp>,
    /// The batch stood there before and was not appended again.
    pub(crate) repeat: Option<PastBatch>,
    /// A flush is due: a segment was sealed, or `flush.messages` reached.
    pub(crate) flush_due: bool,
}

/// Why a batch was not appended; nothing of it is visible.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppendError {
    /// The batch was refused for what it says.
    #[error("refused: {0:?}")]
    Refused(ErrorCode),
    /// The batch does not fit into a segment.
    #[error("a batch of {size} bytes is larger than a segment of {segment} bytes")]
    LargerThanSegment {
        /// Of the batch.
        size: usize,
        /// `segment.bytes`.
        segment: u64,
    },
    /// The log was closed, or an earlier failure left its file in an unknown state.
    #[error("the log is closed")]
    Failed,
    /// The disk failed, or is full.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

fn header_time(header: &BatchHeader) -> Option<Timestamp> {
    header.is_log_append_time().then_some(header.max_timestamp)
}

impl Log {
    /// Appends one batch of a client as the leader of `epoch`: gives it the next offsets and
    /// writes it. Durability is a matter of [`Log::flush`].
    pub(crate) fn append_as_leader(
        &self,
        batch: &Validated<'_>,
        epoch: LeaderEpoch,
        now: Timestamp,
    ) -> Result<Appended, AppendError> {
        let config = self.config.load();
        let mut tail = self.lock();
        if self.condition.get() != Condition::Open {
            return Err(AppendError::Failed);
        }
        let view = self.view.load();
        let log_start = view.start;
        match tail.producers.check(&batch.header).map_err(AppendError::Refused)? {
            Sequence::New => {}
            Sequence::Repeat(past) => {
                return Ok(Appended {
                    base_offset: past.base_offset(),
                    end: past.last_offset + 1,
                    log_start,
                    log_append_time: header_time(&batch.header),
                    repeat: Some(past),
                    flush_due: false,
                });
            }
        }
        let mut header = batch.header;
        header.base_offset = view.end.offset;
        header.leader_epoch = epoch;
        let rolled = self.roll_if_due(&mut tail, &header, &config, now)?;
        self.write(&mut tail, &header, &batch.records, &config)?;
        tail.unflushed_records += u64::from(header.record_count.unsigned_abs());
        let flush_due = rolled || tail.unflushed_records >= config.flush_messages;
        Ok(Appended {
            base_offset: header.base_offset,
            end: header.last_offset() + 1,
            log_start,
            log_append_time: header_time(&header),
            repeat: None,
            flush_due,
        })
    }

    /// Writes the batch behind the last one and lets readers see it.
    fn write(
        &self,
        tail: &mut Tail,
        header: &BatchHeader,
        records: &[u8],
        config: &LogConfig,
    ) -> Result<(), AppendError> {
        let position = tail.active.size();
        if let Err(error) = tail.file.write_at(&[&header.encode(), records], position) {
            // A partial write is cut back, so that the next batch follows the last whole one.
            if let Err(second) = tail.file.truncate(position) {
                self.condition.set(Condition::Failed);
                return Err(second.into());
            }
            return Err(error.into());
        }
        tail.active.note(position, header, config.index_interval_bytes);
        if tail.rolling_from.is_none() && header.max_timestamp != Timestamp::NONE {
            tail.rolling_from = Some(header.max_timestamp);
        }
        if tail.epochs.note(header.leader_epoch, header.base_offset) {
            self.write_epochs(tail);
        }
        let end = LogPosition {
            offset: header.last_offset() + 1,
            segment: tail.active.base(),
            position: position + header.size as u64,
        };
        self.publish(tail, |view| view.end = end);
        tail.producers.note(header);
        Ok(())
    }

    /// The epochs' file is a hint, made again from the batches: a failure to write it is no fault.
    pub(super) fn write_epochs(&self, tail: &Tail) {
        let path = self.directory.join(super::epochs::FILE_NAME);
        let content = tail.epochs.encode();
        if let Err(error) = disk::replace_hint(self.files.disk(), &path, content.as_bytes()) {
            tracing::warn!(%error, "leader epochs not written");
        }
    }

    fn roll_if_due(
        &self,
        tail: &mut Tail,
        next: &BatchHeader,
        config: &LogConfig,
        now: Timestamp,
    ) -> Result<bool, AppendError> {
        if next.size as u64 > config.segment_bytes {
            return Err(AppendError::LargerThanSegment {
                size: next.size,
                segment: config.segment_bytes,
            });
        }
        let size = tail.active.size();
        let reached = match tail.rolling_from {
            Some(first) => next.max_timestamp.0.saturating_sub(first.0),
            None => now.0.saturating_sub(tail.created.0),
        };
        let due = size + next.size as u64 > config.segment_bytes
            || reached > config.segment_ms.saturating_sub(tail.jitter_ms)
            || tail.active.index_bytes() + 12 > config.segment_index_bytes
            || next.last_offset() - tail.active.base() > i64::from(i32::MAX);
        if size == 0 || !due {
            return Ok(false);
        }
        self.roll(tail, now)?;
        Ok(true)
    }

    /// Seals the active segment and begins the next one. The next one's file comes last of all
    /// that can fail: left behind, it would cut a segment that grew past its name.
    pub(super) fn roll(&self, tail: &mut Tail, now: Timestamp) -> Result<(), DiskError> {
        let disk = self.files.disk();
        let base = self.view.load().end.offset;
        // Names become durable in order: a later segment alone would look like deleted records.
        if tail.directory_unsynced {
            if let Err(error) = self.sync_directory() {
                // What could not even be opened for want of descriptors can be later.
                if !error.is_shortage() {
                    self.condition.set(Condition::Failed);
                }
                return Err(error);
            }
            tail.directory_unsynced = false;
        }
        self.write_producers(tail, base)?;
        tail.active.write_indexes(disk)?;
        let next = Arc::new(Segment::empty(&self.directory, base, self.files.clone()));
        let file = match next.file_for_append() {
            Ok(file) => file,
            Err(error) => {
                // It may have been made all the same.
                if disk.remove_file(next.path()).is_err() {
                    self.condition.set(Condition::Failed);
                }
                return Err(error);
            }
        };
        tail.active.seal();
        tail.unsynced.push(std::mem::replace(&mut tail.file, file));
        tail.directory_unsynced = true;
        tail.active = next.clone();
        (tail.rolling_from, tail.created) = (None, now);
        let end = LogPosition { offset: base, segment: base, position: 0 };
        self.publish(tail, |view| {
            let mut segments = Vec::clone(&view.segments);
            segments.push(next);
            view.segments = Arc::new(segments);
            view.end = end;
        });
        Ok(())
    }

    /// Writes both files of the producers' state as of `offset`, also when there is none: the
    /// next start then need not look for producers before it.
    pub(super) fn write_producers(&self, tail: &Tail, offset: Offset) -> Result<(), DiskError> {
        let path = |extension| self.directory.join(super::segment::file_name(offset, extension));
        let disk = self.files.disk();
        let sequences = snapshot::encode_sequences(&tail.producers, &tail.epochs);
        disk::replace_hint(disk, &path("sequences"), &sequences)?;
        disk::replace_hint(disk, &path("snapshot"), &snapshot::encode_snapshot(&tail.producers))
    }

    /// Makes everything that is appended now durable, and says up to where. Appends go on
    /// meanwhile: the sync happens outside the lock (KAFKA-15046), and all who wait share it.
    pub(crate) fn flush(&self) -> Result<LogPosition, AppendError> {
        let _one_at_a_time = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, files, directory) = {
            let mut tail = self.lock();
            if self.condition.get() != Condition::Open {
                return Err(AppendError::Failed);
            }
            tail.unflushed_records = 0;
            let end = self.view.load().end;
            if tail.durable == end && !tail.directory_unsynced && tail.unsynced.is_empty() {
                return Ok(end);
            }
            let mut files = std::mem::take(&mut tail.unsynced);
            files.push(tail.file.clone());
            (end, files, tail.directory_unsynced)
        };
        let synced = files.iter().try_for_each(|file| file.sync());
        let named = if directory { self.sync_directory() } else { Ok(()) };
        let mut tail = self.lock();
        if let Err(error) = synced {
            // Pages may be marked clean although they never reached the disk: trying again lies.
            self.condition.set(Condition::Failed);
            return Err(error.into());
        }
        if let Err(error) = named {
            // A directory that could not even be opened for want of descriptors can be later.
            if !error.is_shortage() {
                self.condition.set(Condition::Failed);
            }
            return Err(error.into());
        }
        // A segment that was begun meanwhile has a name that is not durable yet.
        if directory && tail.active.base() == end.segment {
            tail.directory_unsynced = false;
        }
        if tail.durable.offset <= end.offset {
            tail.durable = end;
        }
        Ok(end)
    }

    /// Makes the names of new files durable, and that of the directory itself.
    pub(super) fn sync_directory(&self) -> Result<(), DiskError> {
        let disk = self.files.disk();
        disk.sync_dir(&self.directory)?;
        self.directory.parent().map_or(Ok(()), |parent| disk.sync_dir(parent))
    }

    /// Raises what consumers may read to `offset`, where a batch ends.
    pub(crate) fn advance_high_watermark(&self, offset: Offset) {
        let tail = self.lock();
        let view = self.view.load();
        if offset <= view.high_watermark.offset {
            return;
        }
        let place = if offset == view.end.offset {
            view.end
        } else if offset == tail.durable.offset {
            tail.durable
        } else {
            match view.place_of(offset) {
                Ok(place) => place,
                Err(error) => {
                    tracing::warn!(directory = %self.directory.display(), %error, "not located");
                    return;
                }
            }
        };
        self.publish(&tail, |view| view.high_watermark = place);
    }

    /// Flushes all, writes indexes and producers, so that the next start needs no recovery.
    pub(crate) fn close(&self) -> Result<Offset, AppendError> {
        loop {
            let end = self.flush()?;
            let tail = self.lock();
            if self.condition.get() != Condition::Open {
                return Err(AppendError::Failed);
            }
            // What was appended since the flush began is not durable yet.
            if self.view.load().end != end {
                continue;
            }
            tail.active.write_indexes(self.files.disk())?;
            // Of a log that never had a batch there is nothing to know.
            if end.offset > Offset::ZERO {
                self.write_producers(&tail, end.offset)?;
            }
            if tail.epochs.latest().is_some() {
                self.write_epochs(&tail);
            }
            self.condition.set(Condition::GivenUp);
            return Ok(end.offset);
        }
    }
}
