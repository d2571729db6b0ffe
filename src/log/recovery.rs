//! Opening a log: after a clean stop what the directory says is believed, after any other every
//! batch from the recovery point on is checked.

use super::epochs::{self, Epochs};
use super::producers::Producers;
use super::scan::HeadScanner;
use super::segment::{Segment, file_name};
use super::{Condition, Files, Log, LogConfig, LogError, LogPosition, Tail, View, snapshot};
use crate::disk::{self, Disk, DiskFile};
use crate::records::{BatchError, BatchHeader, HEADER_BYTES};
use crate::types::{LeaderEpoch, Offset, Timestamp};
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

/// Bytes checked at a time, unless a batch is larger.
const CHECK_BYTES: usize = 1 << 20;

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
        let disk = files.disk();
        disk.create_dir(directory)?;
        let mut segments = list(disk, directory, &files)?;
        let is_new = segments.is_empty();
        if is_new {
            let first = Segment::empty(directory, how.log_start, files.clone());
            first.file_for_append()?;
            segments.push(Arc::new(first));
        }
        let interval = config.index_interval_bytes;
        if let Some(point) = how.recovery_point {
            check(disk, directory, &mut segments, (point, interval))?;
        }
        let active = segments.last().unwrap_or_else(|| unreachable!("never empty")).clone();
        let file = active.file_for_append()?;
        if how.recovery_point.is_none() {
            active.load_growing(disk, interval)?;
        }
        let mut replay = Replay::begin(disk, directory, &segments)?;
        replay.run(&segments)?;
        let end = LogPosition {
            offset: replay.end.max(active.base()),
            segment: active.base(),
            position: active.size(),
        };
        let first = segments.first().map_or(Offset::ZERO, |segment| segment.base());
        let start = how.log_start.max(first).min(end.offset);
        let epochs = replay.epochs(disk, directory, (start, end.offset));
        #[allow(clippy::cast_possible_truncation, reason = "a fraction of a millisecond")]
        let jitter_ms = (config.segment_jitter_ms as f64 * jitter) as i64;
        let tail = Tail {
            rolling_from: first_timestamp(&*file, &active)?,
            active,
            file,
            producers: replay.producers,
            epochs,
            created: now,
            jitter_ms,
            unsynced: Vec::new(),
            directory_unsynced: is_new,
            durable: end,
            unflushed_records: 0,
            condition: Condition::Open,
        };
        let view = View { segments: Arc::new(segments), start, end, high_watermark: end };
        let log = Self {
            directory: directory.to_owned(),
            files: files.clone(),
            config: ArcSwap::from_pointee(config),
            view: ArcSwap::from_pointee(view),
            tail: Mutex::new(tail),
            flushing: Mutex::new(()),
        };
        if let Some(point) = how.recovery_point.filter(|point| *point < end.offset) {
            log.make_durable_from(point)?;
        }
        Ok(log)
    }

    /// What was recovered beyond the recovery point is made durable before it is served: it may
    /// have stood in memory only.
    fn make_durable_from(&self, point: Offset) -> Result<(), LogError> {
        let view = self.view.load();
        let first = view.segments.partition_point(|segment| segment.base() <= point);
        for segment in &view.segments[first.saturating_sub(1)..] {
            segment.file()?.sync()?;
        }
        self.sync_directory()?;
        Ok(())
    }
}

/// The segments in a directory, by base offset; leftovers of deletions are removed.
fn list(
    disk: &dyn Disk,
    directory: &Path,
    files: &Arc<Files>,
) -> Result<Vec<Arc<Segment>>, LogError> {
    let mut segments = Vec::new();
    for name in disk.read_dir(directory)? {
        let path = directory.join(&name);
        match name.rsplit_once('.') {
            Some((_, "deleted" | "tmp")) => disk.remove_file(&path)?,
            Some((base, "log")) => {
                if let Ok(base) = base.parse() {
                    let size = files.open(&path)?.len()?;
                    let segment = Segment::sealed(directory, Offset(base), size, files.clone());
                    segments.push(Arc::new(segment));
                }
            }
            _ => {}
        }
    }
    segments.sort_by_key(|segment| segment.base());
    Ok(segments)
}

/// Checks every batch from `point` on, cuts at the first bad one, removes what follows it.
fn check(
    disk: &dyn Disk,
    directory: &Path,
    segments: &mut Vec<Arc<Segment>>,
    (point, interval): (Offset, u64),
) -> Result<(), LogError> {
    let from = segments.partition_point(|segment| segment.base() <= point).saturating_sub(1);
    for at in from..segments.len() {
        let segment = segments[at].clone();
        let limit = segments.get(at + 1).map(|next| next.base());
        let checked = check_segment(&segment, limit, interval)?;
        let Some(bad) = checked else {
            // The last one grows on: its indexes stay in memory.
            if at + 1 < segments.len() {
                segment.write_indexes(disk, true)?;
            }
            continue;
        };
        if bad.next_offset < point {
            return Err(LogError::Corrupt {
                segment: segment.base(),
                position: bad.position,
                what: bad.what,
            });
        }
        tracing::warn!(
            segment = %segment.path().display(),
            position = bad.position,
            bytes = segment.size() - bad.position,
            reason = %bad.what,
            "torn end cut"
        );
        let file = segment.file_for_append()?;
        file.truncate(bad.position)?;
        file.sync()?;
        segment.set_size(bad.position);
        for later in segments.drain(at + 1..) {
            tracing::warn!(segment = %later.path().display(), "segment behind a torn end removed");
            for path in later.mark_deleted(disk)? {
                disk.remove_file(&path)?;
            }
        }
        remove_states_behind(disk, directory, bad.next_offset)?;
        return Ok(());
    }
    Ok(())
}

/// Producers' states of offsets that the log no longer reaches would be taken for true.
fn remove_states_behind(disk: &dyn Disk, directory: &Path, end: Offset) -> Result<(), LogError> {
    for name in disk.read_dir(directory)? {
        if let Some((base, "snapshot" | "sequences")) = name.rsplit_once('.')
            && base.parse().is_ok_and(|base: i64| base > end.0)
        {
            disk.remove_file(&directory.join(&name))?;
        }
    }
    Ok(())
}

/// Where a segment stops making sense.
struct Bad {
    position: u64,
    /// The offset the bad batch should have had.
    next_offset: Offset,
    what: BatchError,
}

/// Checks all batches of a segment and notes them in fresh indexes.
fn check_segment(
    segment: &Segment,
    limit: Option<Offset>,
    interval: u64,
) -> Result<Option<Bad>, LogError> {
    let file = segment.file()?;
    let end = segment.size();
    segment.clear_marks();
    let mut window = Window { file: &*file, bytes: Vec::new(), at: 0, end };
    let (mut position, mut next_offset, mut epoch) = (0, segment.base(), LeaderEpoch(-1));
    while position < end {
        match window.batch(position)? {
            Ok(header) => {
                let what = if header.base_offset < next_offset
                    || header.last_offset() < header.base_offset
                {
                    "an offset goes backwards"
                } else if header.leader_epoch < epoch {
                    "a leader epoch goes backwards"
                } else if limit.is_some_and(|limit| header.last_offset() >= limit) {
                    "an offset belongs into the next segment"
                } else {
                    segment.note(position, &header, interval);
                    position += header.size as u64;
                    next_offset = header.last_offset() + 1;
                    epoch = header.leader_epoch;
                    continue;
                };
                let what = BatchError::Inconsistent(what);
                segment.set_size(end);
                return Ok(Some(Bad { position, next_offset, what }));
            }
            Err(what) => {
                segment.set_size(end);
                return Ok(Some(Bad { position, next_offset, what }));
            }
        }
    }
    Ok(None)
}

/// A stretch of a file in memory, moved forward batch by batch.
struct Window<'a> {
    file: &'a dyn DiskFile,
    bytes: Vec<u8>,
    at: u64,
    end: u64,
}

impl Window<'_> {
    /// The head of the batch at `position`, its checksum compared.
    fn batch(&mut self, position: u64) -> Result<Result<BatchHeader, BatchError>, LogError> {
        if self.end - position < HEADER_BYTES as u64 {
            return Ok(Err(BatchError::Short));
        }
        self.cover(position, HEADER_BYTES)?;
        let header = match BatchHeader::parse(self.from(position)) {
            Ok(header) => header,
            Err(error) => return Ok(Err(error)),
        };
        if header.size as u64 > self.end - position {
            return Ok(Err(BatchError::Short));
        }
        self.cover(position, header.size)?;
        Ok(header.check_crc(self.from(position)).map(|()| header))
    }

    fn from(&self, position: u64) -> &[u8] {
        let skip = usize::try_from(position - self.at).unwrap_or(usize::MAX);
        self.bytes.get(skip..).unwrap_or_default()
    }

    fn cover(&mut self, position: u64, length: usize) -> Result<(), LogError> {
        let held = self.at + self.bytes.len() as u64;
        if position >= self.at && position + length as u64 <= held {
            return Ok(());
        }
        let left = usize::try_from(self.end - position).unwrap_or(usize::MAX);
        self.bytes.resize(left.min(length.max(CHECK_BYTES)), 0);
        let read = self.file.read_at(&mut self.bytes, position)?;
        self.bytes.truncate(read);
        self.at = position;
        Ok(())
    }
}

/// The largest timestamp of the first batch, from which the segment's age counts.
fn first_timestamp(file: &dyn DiskFile, segment: &Segment) -> Result<Option<Timestamp>, LogError> {
    let mut scanner = HeadScanner::new(file, segment.base(), 0, segment.size());
    let first = scanner.next()?.map(|(_, header)| header.max_timestamp);
    Ok(first.filter(|timestamp| *timestamp != Timestamp::NONE))
}

/// Brings producers and epochs up to the log's end from the newest snapshot on.
struct Replay {
    producers: Producers,
    found: Epochs,
    from: Offset,
    end: Offset,
}

impl Replay {
    fn begin(
        disk: &dyn Disk,
        directory: &Path,
        segments: &[Arc<Segment>],
    ) -> Result<Self, LogError> {
        let first = segments.first().map_or(Offset::ZERO, |segment| segment.base());
        let mut replay = Self {
            producers: Producers::default(),
            found: Epochs::default(),
            from: first,
            end: first,
        };
        let mut bases: Vec<i64> = disk
            .read_dir(directory)?
            .iter()
            .filter_map(|name| name.strip_suffix(".snapshot")?.parse().ok())
            .collect();
        bases.sort_unstable();
        for base in bases.into_iter().rev().map(Offset) {
            let read =
                |extension| disk::read_file(disk, &directory.join(file_name(base, extension))).ok();
            let Some(content) = read("snapshot") else { continue };
            if let Some(producers) = snapshot::decode(&content, read("sequences").as_deref()) {
                (replay.producers, replay.from, replay.end) = (producers, base, base);
                break;
            }
            tracing::warn!(%base, directory = %directory.display(), "producer snapshot damaged");
        }
        Ok(replay)
    }

    fn run(&mut self, segments: &[Arc<Segment>]) -> Result<(), LogError> {
        // The end is found from the last segment alone when nobody's sequences are kept.
        let at = match segments.last() {
            Some(last) if self.producers.len() == 0 && self.from < last.base() => {
                segments.partition_point(|segment| segment.base() < self.from)
            }
            _ => segments.partition_point(|segment| segment.base() <= self.from).saturating_sub(1),
        };
        for segment in segments.get(at..).unwrap_or_default() {
            self.segment(segment)?;
        }
        Ok(())
    }

    fn segment(&mut self, segment: &Segment) -> Result<(), LogError> {
        let size = segment.size();
        let from = match segment.locate(self.from, size)? {
            Some(found) => found.position,
            None => return Ok(()),
        };
        let file = segment.file()?;
        let mut scanner = HeadScanner::new(&*file, segment.base(), from, size);
        while let Some((_, header)) = scanner.next()? {
            self.producers.note(&header);
            self.found.note(header.leader_epoch, header.base_offset);
            self.end = header.last_offset() + 1;
        }
        Ok(())
    }

    /// The epochs' file, put right by what the batches say.
    fn epochs(&self, disk: &dyn Disk, directory: &Path, (start, end): (Offset, Offset)) -> Epochs {
        let file = disk::read_file(disk, &directory.join(epochs::FILE_NAME)).ok();
        let read = file.and_then(|bytes| Epochs::decode(&String::from_utf8(bytes).ok()?));
        let mut epochs = match read {
            Some(mut epochs) => {
                epochs.truncate_end(end);
                for (epoch, offset) in self.found.entries() {
                    epochs.note(epoch, offset);
                }
                epochs
            }
            None => self.found.clone(),
        };
        epochs.truncate_start(start);
        epochs
    }
}
