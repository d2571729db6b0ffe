//! Opening a log: after a clean stop what the directory says is believed, after any other every
//! batch from the recovery point on is checked.

use super::check::{self, remove_segments, remove_states};
use super::replay::Replay;
use super::scan::HeadScanner;
use super::segment::Segment;
use super::{ConditionCell, Files, Log, LogConfig, LogError, LogPosition, Tail, View};
use crate::disk::{Disk, DiskFile};
use crate::records::BatchError;
use crate::types::{Offset, Timestamp};
use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What the log directory knows of a log before it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenHow {
    /// `None` after a clean stop; else everything before it was synced, and the rest is checked.
    pub(crate) recovery_point: Option<Offset>,
    /// The first offset that may be read; records before it were deleted.
    pub(crate) log_start: Offset,
}

impl OpenHow {
    /// For a directory that is made now.
    pub(crate) const NEW: Self =
        Self { recovery_point: Some(Offset::ZERO), log_start: Offset::ZERO };
}

/// Segments on disk, and which of them may not be durable.
struct Found {
    segments: Vec<Arc<Segment>>,
    /// The first one that may not be.
    unsynced_from: usize,
    /// Whether a file was made.
    is_new: bool,
}

impl Log {
    /// Opens the log in `directory`, making it when it is not there. `jitter` in 0..1 spreads
    /// rolls over `segment.jitter.ms`.
    pub(crate) fn open(
        directory: &Path,
        files: Arc<Files>,
        config: LogConfig,
        how: OpenHow,
        (now, jitter): (Timestamp, f64),
    ) -> Result<Self, LogError> {
        files.disk().create_dir(directory)?;
        let mut found = find(directory, &files, &config, how)?;
        let mut active = found.active();
        let mut file = active.file_for_append()?;
        if how.recovery_point.is_none() {
            active.load_growing(config.index_interval_bytes)?;
        }
        let mut replay = Replay::run(files.disk(), directory, &found.segments)?;
        if replay.end.max(active.base()) < how.log_start {
            // Deleted was more than became durable: the log goes on where it was to begin. After a
            // clean stop all was durable, so that the checkpoint is wrong and nothing is removed.
            if how.recovery_point.is_none() {
                return Err(LogError::Corrupt {
                    segment: active.base(),
                    position: active.size(),
                    what: BatchError::Inconsistent("the log ends before its start"),
                });
            }
            found.begin_at(directory, &files, how.log_start)?;
            active = found.active();
            file = active.file_for_append()?;
            replay = Replay::default();
        }
        let end = LogPosition {
            offset: replay.end.max(active.base()),
            segment: active.base(),
            position: active.size(),
        };
        let start = how.log_start.max(found.segments.first().map_or(end.offset, |s| s.base()));
        #[allow(clippy::cast_possible_truncation, reason = "a fraction of a millisecond")]
        let jitter_ms = (config.segment_jitter_ms as f64 * jitter) as i64;
        let tail = Tail {
            rolling_from: first_timestamp(&*file, &active)?,
            active,
            file,
            producers: replay.producers,
            epochs: replay.epochs,
            created: now,
            jitter_ms,
            unsynced: Vec::new(),
            // Whoever made the directory may not have lived to sync it; a clean stop did.
            directory_unsynced: found.is_new || how.recovery_point.is_some(),
            durable: end,
            unflushed_records: 0,
        };
        let segments = Arc::new(found.segments);
        let view = View { segments, start, end, high_watermark: end };
        let log = Self {
            directory: directory.to_owned(),
            files,
            config: ArcSwap::from_pointee(config),
            view: ArcSwap::from_pointee(view),
            tail: Mutex::new(tail),
            flushing: Mutex::new(()),
            condition: ConditionCell::default(),
        };
        if how.recovery_point.is_some_and(|point| point < end.offset) {
            log.make_recovered_durable(found.unsynced_from)?;
        }
        Ok(log)
    }

    /// What was recovered beyond the recovery point is durable before it is served: it may have
    /// stood in memory only.
    fn make_recovered_durable(&self, from: usize) -> Result<(), LogError> {
        for segment in self.view.load().segments.iter().skip(from) {
            segment.file()?.sync()?;
        }
        self.sync_directory()?;
        self.lock().directory_unsynced = false;
        Ok(())
    }
}

/// Lists the segments and checks them: after an unclean stop every batch, after a clean one only
/// that they follow one another. There is one at least.
fn find(
    directory: &Path,
    files: &Arc<Files>,
    config: &LogConfig,
    how: OpenHow,
) -> Result<Found, LogError> {
    let disk = files.disk();
    let names = disk.read_dir(directory)?;
    let mut segments = list(directory, files, &names)?;
    check::check_names(&names, &segments)?;
    let mut unsynced_from = 0;
    match how.recovery_point {
        None => check::check_ends(&segments, config)?,
        Some(point) => {
            let checked = check::check(&segments, (point, how.log_start), config)?;
            unsynced_from = checked.from;
            checked.apply(disk, directory, &mut segments)?;
        }
    }
    remove_leftovers(disk, directory, &names, &segments)?;
    let mut found = Found { segments, unsynced_from, is_new: false };
    if found.segments.is_empty() {
        found.begin_at(directory, files, how.log_start)?;
    }
    Ok(found)
}

impl Found {
    fn active(&self) -> Arc<Segment> {
        self.segments.last().unwrap_or_else(|| unreachable!("never empty")).clone()
    }

    /// Has the log consist of one empty segment.
    fn begin_at(
        &mut self,
        directory: &Path,
        files: &Arc<Files>,
        start: Offset,
    ) -> Result<(), LogError> {
        let disk = files.disk();
        remove_segments(disk, directory, self.segments.drain(..).collect())?;
        remove_states(disk, directory, |_| true)?;
        let first = Segment::empty(directory, start, files.clone());
        first.file_for_append()?;
        self.segments.push(Arc::new(first));
        (self.unsynced_from, self.is_new) = (0, true);
        Ok(())
    }
}

/// The segments in a directory, by base offset.
fn list(
    directory: &Path,
    files: &Arc<Files>,
    names: &[String],
) -> Result<Vec<Arc<Segment>>, LogError> {
    let mut segments = Vec::new();
    for name in names {
        let Some(base) = name.strip_suffix(".log").and_then(|base| base.parse().ok()) else {
            continue;
        };
        let size = files.open(&directory.join(name))?.len()?;
        let segment = Segment::sealed(directory, Offset(base), size, files.clone());
        segments.push(Arc::new(segment));
    }
    segments.sort_by_key(|segment| segment.base());
    Ok(segments)
}

/// Removes what deletions and replacements left, indexes of segments that are gone included.
fn remove_leftovers(
    disk: &dyn Disk,
    directory: &Path,
    names: &[String],
    segments: &[Arc<Segment>],
) -> Result<(), LogError> {
    for name in names {
        let is_left = match name.rsplit_once('.') {
            Some((_, "deleted" | "tmp")) => true,
            Some((base, "index" | "timeindex")) => base.parse().is_ok_and(|base| {
                segments.binary_search_by_key(&Offset(base), |segment| segment.base()).is_err()
            }),
            _ => false,
        };
        if is_left {
            disk.remove_file(&directory.join(name))?;
        }
    }
    Ok(())
}

/// The largest timestamp of the first batch, from which the segment's age counts.
fn first_timestamp(file: &dyn DiskFile, segment: &Segment) -> Result<Option<Timestamp>, LogError> {
    let mut scanner = HeadScanner::new(file, segment.base(), 0, segment.size());
    let first = scanner.next()?.map(|(_, header)| header.max_timestamp);
    Ok(first.filter(|timestamp| *timestamp != Timestamp::NONE))
}
