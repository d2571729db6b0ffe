//! Checking a log after an unclean stop: every batch from the recovery point on, and the cut at
//! the first bad one. Nothing is changed before all is judged.

use super::segment::Segment;
use super::{LogConfig, LogError};
use crate::disk::{Disk, DiskFile};
use crate::records::{BatchError, BatchHeader, HEADER_BYTES};
use crate::types::{LeaderEpoch, Offset};
use std::path::Path;
use std::sync::Arc;

/// Bytes checked at a time, unless a batch is larger.
const CHECK_BYTES: usize = 1 << 20;

/// Looks for a segment that somebody took away: of one with others before and behind it only the
/// index is left. Recovery would take the hole for a torn end, and remove what lies behind it.
pub(super) fn check_names(names: &[String], segments: &[Arc<Segment>]) -> Result<(), LogError> {
    let base_of = |segment: Option<&Arc<Segment>>| segment.map(|segment| segment.base());
    let (first, last) = (base_of(segments.first()), base_of(segments.last()));
    for base in names.iter().filter_map(|name| name.strip_suffix(".index")?.parse().ok()) {
        let base = Offset(base);
        let is_between = first < Some(base) && Some(base) < last;
        if is_between && segments.binary_search_by_key(&base, |segment| segment.base()).is_err() {
            let what = BatchError::Inconsistent("its file is missing");
            return Err(LogError::Corrupt { segment: base, position: 0, what });
        }
    }
    Ok(())
}

/// Looks whether each segment ends where the next one begins, without reading what lies before its
/// last batches. Compaction leaves holes.
pub(super) fn check_ends(segments: &[Arc<Segment>], config: &LogConfig) -> Result<(), LogError> {
    if config.compacts {
        return Ok(());
    }
    for (segment, next) in segments.iter().zip(segments.iter().skip(1)) {
        let end = segment.end()?;
        // Its indexes are mapped again when somebody reads it; a process has few maps.
        segment.seal();
        if end != next.base() {
            let what = BatchError::Inconsistent("the next segment does not follow");
            let (segment, position) = (segment.base(), segment.size());
            return Err(LogError::Corrupt { segment, position, what });
        }
    }
    Ok(())
}

/// What the check found.
pub(super) struct Checked {
    /// The first segment that was checked.
    pub(super) from: usize,
    /// The first offset behind what is sound.
    end: Offset,
    /// Where the log is to be cut.
    cut: Option<Cut>,
}

struct Cut {
    /// Which segment.
    at: usize,
    position: u64,
    what: BatchError,
}

/// Checks every batch of the segments from the recovery point on. What is bad at or behind that
/// point is a torn end; before it, it is damage, for that was durable.
pub(super) fn check(
    segments: &[Arc<Segment>],
    (point, log_start): (Offset, Offset),
    config: &LogConfig,
) -> Result<Checked, LogError> {
    let from = segments.partition_point(|segment| segment.base() <= point).saturating_sub(1);
    let mut checked = Checked { from, end: log_start, cut: None };
    let mut last = (log_start, 0);
    for (at, segment) in segments.iter().enumerate().skip(from) {
        let limit = segments.get(at + 1).map(|next| next.base());
        let mut sound = check_segment(segment, limit, config)?;
        checked.end = sound.next_offset;
        last = (segment.base(), sound.position);
        // A segment that ends before the next one begins lost its end. Compaction leaves such
        // holes too.
        if sound.bad.is_none()
            && !config.compacts
            && limit.is_some_and(|next| sound.next_offset < next)
        {
            sound.bad = Some(BatchError::Inconsistent("the next segment does not follow"));
        }
        if let Some(what) = sound.bad {
            checked.cut = Some(Cut { at, position: sound.position, what });
            break;
        }
    }
    if checked.end < point {
        let missing = BatchError::Inconsistent("the log ends before its recovery point");
        let what = checked.cut.map_or(missing, |cut| cut.what);
        return Err(LogError::Corrupt { segment: last.0, position: last.1, what });
    }
    Ok(checked)
}

impl Checked {
    /// Makes the cut, and removes what lies behind it: that first, so that a crash meanwhile
    /// leaves the bad batch to be found again.
    pub(super) fn apply(
        self,
        disk: &dyn Disk,
        directory: &Path,
        segments: &mut Vec<Arc<Segment>>,
    ) -> Result<(), LogError> {
        remove_states(disk, directory, |base| base > self.end)?;
        if let Some(cut) = self.cut {
            remove_segments(disk, directory, segments.drain(cut.at + 1..).collect())?;
            disk.sync_dir(directory)?;
            let segment = &segments[cut.at];
            tracing::warn!(
                segment = %segment.path().display(),
                position = cut.position,
                bytes = segment.size() - cut.position,
                reason = %cut.what,
                "torn end cut"
            );
            if cut.position < segment.size() {
                let file = segment.file_for_append()?;
                file.truncate(cut.position)?;
                file.sync()?;
                segment.set_size(cut.position);
            }
        }
        for segment in segments.iter().skip(self.from) {
            // They are in memory anyway, and on a full disk the log opens all the same.
            if let Err(error) = segment.write_indexes(disk) {
                tracing::warn!(%error, "index not written");
            }
        }
        Ok(())
    }
}

/// Removes segments, the last one first. Their indexes go before, and durably: one that outlives
/// its segment would look as if somebody had taken the segment away.
pub(super) fn remove_segments(
    disk: &dyn Disk,
    directory: &Path,
    segments: Vec<Arc<Segment>>,
) -> Result<(), LogError> {
    if segments.is_empty() {
        return Ok(());
    }
    for segment in &segments {
        disk.remove_file(&segment.path().with_extension("index"))?;
    }
    disk.sync_dir(directory)?;
    for segment in segments.into_iter().rev() {
        tracing::warn!(segment = %segment.path().display(), "segment behind the end removed");
        for path in segment.mark_deleted(disk)? {
            disk.remove_file(&path)?;
        }
    }
    Ok(())
}

/// Removes producers' states of offsets that `goes` names.
pub(super) fn remove_states(
    disk: &dyn Disk,
    directory: &Path,
    goes: impl Fn(Offset) -> bool,
) -> Result<(), LogError> {
    for name in disk.read_dir(directory)? {
        if let Some((base, "snapshot" | "sequences")) = name.rsplit_once('.')
            && base.parse().is_ok_and(|base| goes(Offset(base)))
        {
            disk.remove_file(&directory.join(&name))?;
        }
    }
    Ok(())
}

/// The part of a segment that makes sense.
struct Sound {
    /// Where it ends.
    position: u64,
    /// The offset that the next batch should have.
    next_offset: Offset,
    /// What is wrong with that one, if there is one.
    bad: Option<BatchError>,
}

/// Checks all batches of a segment and notes them in fresh indexes.
fn check_segment(
    segment: &Segment,
    limit: Option<Offset>,
    config: &LogConfig,
) -> Result<Sound, LogError> {
    let file = segment.file()?;
    let end = segment.size();
    segment.clear_marks();
    let mut window = Window { file: &*file, bytes: Vec::new(), at: 0, end };
    let mut sound = Sound { position: 0, next_offset: segment.base(), bad: None };
    let mut epoch = LeaderEpoch(-1);
    while sound.position < end {
        let header = match window.batch(sound.position)? {
            Ok(header) => header,
            Err(what) => {
                sound.bad = Some(what);
                break;
            }
        };
        let (base, last) = (header.base_offset, header.last_offset());
        let wrong = if base < sound.next_offset || last < base {
            Some("an offset goes backwards")
        } else if base > sound.next_offset && !config.compacts {
            Some("offsets are missing")
        } else if header.leader_epoch < epoch {
            Some("a leader epoch goes backwards")
        } else if limit.is_some_and(|limit| last >= limit) {
            Some("an offset belongs into the next segment")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            sound.bad = Some(BatchError::Inconsistent(wrong));
            // Base offsets have no checksum: when one jumped ahead, it is the next that shows it.
            sound.next_offset = sound.next_offset.min(base.max(segment.base()));
            break;
        }
        segment.note(sound.position, &header, config.index_interval_bytes);
        sound.position += header.size as u64;
        sound.next_offset = last + 1;
        epoch = header.leader_epoch;
    }
    segment.set_size(end);
    Ok(sound)
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
