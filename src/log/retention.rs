//! Forgetting from the front: by age, by size, and on a client's word (DeleteRecords).

use super::segment::Segment;
use super::{AppendError, Condition, Log, LogError, Tail, View};
use crate::disk::DiskError;
use crate::types::{Offset, Timestamp};
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Files that have their last name and wait to be removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Full paths, ending in `.deleted`.
    pub(crate) files: Vec<PathBuf>,
    /// How many segments they were.
    pub(crate) segments: usize,
    /// Bytes of batches in them.
    pub(crate) bytes: u64,
}

impl Log {
    /// Takes out of the log what is older or larger than the settings allow. The caller removes
    /// the files after `file.delete.delay.ms`.
    pub(crate) fn retain(&self, now: Timestamp) -> Result<Removed, LogError> {
        let config = self.config.load_full();
        let mut removed = Removed::default();
        if config.deletes {
            let age = config.retention_ms;
            if age >= 0 {
                self.remove_while(now, &mut removed, |segment, _| {
                    let (latest, _) = segment.latest()?;
                    Ok(latest != Timestamp::NONE && now.0.saturating_sub(latest.0) > age)
                })?;
            }
            if let Ok(most) = u64::try_from(config.retention_bytes) {
                self.remove_while(now, &mut removed, |segment, view| {
                    let size: u64 = view.segments.iter().map(|segment| segment.size()).sum();
                    Ok(size.saturating_sub(segment.size()) >= most && size > most)
                })?;
            }
        }
        self.remove_while(now, &mut removed, |segment, view| {
            Ok(view.next_base(segment).is_some_and(|next| next <= view.start))
        })?;
        Ok(removed)
    }

    /// Removes segments from the front as long as `goes` says so, all of them below the high
    /// watermark (KAFKA-5634). When even the active one goes, a new one is begun first.
    fn remove_while(
        &self,
        now: Timestamp,
        removed: &mut Removed,
        goes: impl Fn(&Segment, &View) -> Result<bool, LogError>,
    ) -> Result<(), LogError> {
        loop {
            let mut tail = self.lock();
            if self.condition.get() != Condition::Open {
                return Ok(());
            }
            let view = self.view.load_full();
            let Some(first) = view.segments.first().cloned() else { return Ok(()) };
            let end = view.next_base(&first).unwrap_or(view.end.offset);
            let empty = first.size() == 0;
            if empty || end > view.high_watermark.offset || !goes(&first, &view)? {
                return Ok(());
            }
            if view.segments.len() == 1 {
                self.roll(&mut tail, now)?;
            }
            if tail.directory_unsynced {
                // Were the names of later segments lost, offsets would begin again at 0.
                drop(tail);
                match self.flush() {
                    Ok(_) => continue,
                    Err(AppendError::Disk(error)) => return Err(error.into()),
                    Err(_) => return Ok(()),
                }
            }
            self.remove_first(tail, (&first, end), removed)?;
        }
    }

    fn remove_first(
        &self,
        tail: MutexGuard<'_, Tail>,
        (first, end): (&Segment, Offset),
        removed: &mut Removed,
    ) -> Result<(), LogError> {
        let place = self.view.load().end;
        self.publish(&tail, |view| {
            view.segments = Arc::new(view.segments[1..].to_vec());
            view.start = view.start.max(end);
            if view.high_watermark.offset == place.offset {
                view.high_watermark = place;
            }
        });
        removed.segments += 1;
        removed.bytes += first.size();
        // Renamed under the lock, so that the directory is not renamed meanwhile.
        removed.files.extend(first.mark_deleted(self.files.disk())?);
        drop(tail);
        // One by one: a later name that is gone while an earlier one is back leaves a hole.
        let synced = self.files.disk().sync_dir(&self.directory);
        let mut tail = self.lock();
        match synced {
            Ok(()) => {}
            Err(_) if self.condition.get() == Condition::GivenUp => return Ok(()),
            Err(error) => {
                self.condition.set(Condition::Failed);
                return Err(error.into());
            }
        }
        // Only now: until here the segment may come back, and its epochs must be known.
        tail.epochs.truncate_start(end);
        self.write_epochs(&tail);
        Ok(())
    }

    /// Moves the log's start up to `to`, at most to the high watermark, and says where it is now.
    /// `None` when `to` is above the high watermark. Segments wholly before it go with the next
    /// [`Self::retain`].
    pub(crate) fn delete_before(&self, to: Offset) -> Option<Offset> {
        let tail = self.lock();
        let view = self.view.load_full();
        if to > view.high_watermark.offset {
            return None;
        }
        if to > view.start {
            self.publish(&tail, |view| view.start = to);
        }
        Some(self.view.load().start)
    }

    /// Gives every file of the directory's log up: renames the directory, which the caller then
    /// removes. Nothing may be appended any more.
    pub(crate) fn rename_for_deletion(&self, to: &std::path::Path) -> Result<(), DiskError> {
        // A flush under way ends first: it would miss the directory and take that for a fault.
        let _no_flush = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let _no_append = self.lock();
        self.condition.set(Condition::GivenUp);
        let renamed = self.files.disk().rename(&self.directory, to);
        for segment in self.view.load().segments.iter() {
            self.files.forget(segment.path());
        }
        renamed
    }
}

impl View {
    /// The base offset of the segment behind `segment`.
    fn next_base(&self, segment: &Segment) -> Option<Offset> {
        let at = self.segments.partition_point(|other| other.base() <= segment.base());
        self.segments.get(at).map(|next| next.base())
    }
}
