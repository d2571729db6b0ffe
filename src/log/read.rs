//! Reading: where the bytes are, never the bytes themselves.

use super::scan::HeadScanner;
use super::segment::{Located, Segment};
use super::{Log, LogError, LogPosition, View};
use crate::disk::{DiskError, DiskFile};
use crate::limits;
use crate::records::{Compression, HEADER_BYTES, Records, decompress};
use crate::types::{LeaderEpoch, Offset, Timestamp};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A range of a segment's file. It holds the file: deleting the segment does not hurt it.
#[derive(Clone, Debug)]
pub(crate) struct LogSlice {
    pub(crate) file: Arc<dyn DiskFile>,
    /// The first byte.
    pub(crate) position: u64,
    /// In bytes; it may end within a batch.
    pub(crate) length: u32,
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The offset is not in the log.
    #[error("offset {asked} outside {start}..={end}")]
    OutOfRange {
        /// What the reader wanted.
        asked: Offset,
        /// The first offset there.
        start: Offset,
        /// Behind the last one.
        end: Offset,
    },
    /// Damaged bytes, or a failing disk.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<DiskError> for ReadError {
    fn from(error: DiskError) -> Self {
        Self::Log(error.into())
    }
}

/// How far a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpTo {
    /// Consumers.
    HighWatermark,
    /// Replicas, and the coordinators' own replay.
    End,
}

/// The first record that is as late as was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeFound {
    pub(crate) timestamp: Timestamp,
    pub(crate) offset: Offset,
    pub(crate) leader_epoch: LeaderEpoch,
}

impl View {
    /// The segment that holds `offset`, by its position in the list.
    fn segment_index(&self, offset: Offset) -> usize {
        self.segments.partition_point(|segment| segment.base() <= offset).saturating_sub(1)
    }

    /// The byte of a segment behind which nothing may be read when reading up to `limit`.
    fn end_in(&self, segment: &Segment, limit: LogPosition) -> u64 {
        if segment.base() == limit.segment { limit.position } else { segment.size() }
    }

    /// Where the batch that begins at `offset` lies, or its segment's end when there is none.
    pub(super) fn place_of(&self, offset: Offset) -> Result<LogPosition, LogError> {
        let segment = &self.segments[self.segment_index(offset)];
        let found = segment.locate(offset, segment.size())?;
        let position = found.map_or(segment.size(), |found| found.position);
        Ok(LogPosition { offset, segment: segment.base(), position })
    }

    fn first_base(&self) -> Option<Offset> {
        self.segments.first().map(|segment| segment.base())
    }

    fn limit(&self, up_to: UpTo) -> LogPosition {
        match up_to {
            UpTo::HighWatermark => self.high_watermark,
            UpTo::End => self.end,
        }
    }
}

impl Log {
    /// The bytes from the batch that holds `from` on: at most `bytes_max`, but a whole batch at
    /// least when `at_least_one` (KIP-74). `None` when there is nothing, or not enough room.
    pub(crate) fn read(
        &self,
        from: Offset,
        bytes_max: u32,
        at_least_one: bool,
        up_to: UpTo,
    ) -> Result<Option<LogSlice>, ReadError> {
        self.with_view(|view| {
            if from < view.start || from > view.end.offset {
                let (start, end) = (view.start, view.end.offset);
                return Ok(Err(ReadError::OutOfRange { asked: from, start, end }));
            }
            self.read_view(view, from, (bytes_max, at_least_one), up_to).map(Ok)
        })?
    }

    /// Looks at what there is, and again when a segment was removed meanwhile: its file is then
    /// missing, and nothing has failed.
    fn with_view<T>(&self, look: impl Fn(&View) -> Result<T, LogError>) -> Result<T, LogError> {
        let mut view = self.view.load_full();
        loop {
            match look(&view) {
                Err(LogError::Disk(error)) if error.is_not_found() => {
                    let newer = self.view.load_full();
                    if newer.first_base() == view.first_base() {
                        return Err(error.into());
                    }
                    view = newer;
                }
                other => return other,
            }
        }
    }

    fn read_view(
        &self,
        view: &View,
        from: Offset,
        (bytes_max, at_least_one): (u32, bool),
        up_to: UpTo,
    ) -> Result<Option<LogSlice>, LogError> {
        let limit = view.limit(up_to);
        if from >= limit.offset {
            return Ok(None);
        }
        for segment in &view.segments[view.segment_index(from)..] {
            if segment.base() > limit.segment {
                break;
            }
            let end = view.end_in(segment, limit);
            // Compaction may have taken all from `from` to the segment's end: look in the next.
            let Some(found) = segment.locate(from, end)? else { continue };
            let available = end - found.position;
            let first = found.header.size as u64;
            let length = if u64::from(bytes_max) >= first {
                available.min(u64::from(bytes_max))
            } else if at_least_one {
                first
            } else {
                return Ok(None);
            };
            return Ok(Some(LogSlice {
                file: segment.file()?,
                position: found.position,
                length: u32::try_from(length).unwrap_or(u32::MAX),
            }));
        }
        Ok(None)
    }

    /// The first record below the high watermark that is as late as `timestamp` (KIP-79).
    pub(crate) fn find_time(&self, timestamp: Timestamp) -> Result<Option<TimeFound>, LogError> {
        self.with_view(|view| view.find_time(timestamp))
    }

    /// The first record with the latest timestamp below the high watermark (KIP-734).
    pub(crate) fn find_latest_time(&self) -> Result<Option<TimeFound>, LogError> {
        self.with_view(View::find_latest_time)
    }
}

impl View {
    fn find_time(&self, timestamp: Timestamp) -> Result<Option<TimeFound>, LogError> {
        for segment in self.segments.iter() {
            if segment.base() > self.high_watermark.segment {
                break;
            }
            let end = self.end_in(segment, self.high_watermark);
            let behind = self.segments.get(self.segment_index(segment.base()) + 1);
            if behind.is_some_and(|next| next.base() <= self.start) {
                continue;
            }
            let mut from = self.start;
            while let Some(found) = segment.locate_time(timestamp, from, end)? {
                if let Some(record) = first_as_late(segment, found, timestamp, self.start)? {
                    return Ok(Some(record));
                }
                from = found.header.last_offset() + 1;
            }
        }
        Ok(None)
    }

    fn find_latest_time(&self) -> Result<Option<TimeFound>, LogError> {
        let mut latest = Timestamp::NONE;
        for segment in self.segments.iter() {
            latest = latest.max(segment.latest()?.0);
        }
        if latest == Timestamp::NONE {
            return Ok(None);
        }
        if let Some(found) = self.find_time(latest)? {
            return Ok(Some(found));
        }
        // That record is deleted, or not committed yet.
        match self.latest_in_sight()? {
            Timestamp::NONE => Ok(None),
            latest => self.find_time(latest),
        }
    }

    /// The latest timestamp of all records between the log's start and the high watermark.
    fn latest_in_sight(&self) -> Result<Timestamp, LogError> {
        let mut latest = Timestamp::NONE;
        for segment in &self.segments[self.segment_index(self.start)..] {
            if segment.base() > self.high_watermark.segment {
                break;
            }
            let end = self.end_in(segment, self.high_watermark);
            let Some(first) = segment.locate(self.start, end)? else { continue };
            let file = segment.file()?;
            let mut scanner = HeadScanner::new(&*file, segment.base(), first.position, end);
            while let Some((position, header)) = scanner.next()? {
                if header.base_offset >= self.start {
                    latest = latest.max(header.max_timestamp);
                    continue;
                }
                // The latest of its records may be a deleted one.
                each_record(segment, Located { position, header }, &mut |offset, time| {
                    if offset >= self.start {
                        latest = latest.max(time);
                    }
                    ControlFlow::Continue(())
                })?;
            }
        }
        Ok(latest)
    }
}

/// Opens one batch to find the record.
fn first_as_late(
    segment: &Segment,
    found: Located,
    timestamp: Timestamp,
    start: Offset,
) -> Result<Option<TimeFound>, LogError> {
    let mut first = None;
    each_record(segment, found, &mut |offset, time| {
        if time < timestamp || offset < start {
            return ControlFlow::Continue(());
        }
        let leader_epoch = found.header.leader_epoch;
        first = Some(TimeFound { timestamp: time, offset, leader_epoch });
        ControlFlow::Break(())
    })?;
    Ok(first)
}

/// Calls `each` with every record's offset and time, until it breaks off. Where the broker's time
/// counts all records have it; so it is taken to be where a batch cannot be opened, too: it was
/// accepted unopened, and a client may have put anything there.
fn each_record(
    segment: &Segment,
    found: Located,
    each: &mut dyn FnMut(Offset, Timestamp) -> ControlFlow<()>,
) -> Result<(), LogError> {
    let header = found.header;
    let base = header.base_offset;
    let all_at_once = |each: &mut dyn FnMut(Offset, Timestamp) -> ControlFlow<()>| {
        let deltas = 0..=i64::from(header.last_offset_delta);
        let _ = deltas.into_iter().try_for_each(|delta| each(base + delta, header.max_timestamp));
    };
    if header.is_log_append_time() {
        all_at_once(each);
        return Ok(());
    }
    let corrupt =
        |what| LogError::Corrupt { segment: segment.base(), position: found.position, what };
    let mut batch = vec![0; header.size];
    let read = segment.file()?.read_at(&mut batch, found.position)?;
    batch.truncate(read);
    header.check_crc(&batch).map_err(corrupt)?;
    let records = &batch[HEADER_BYTES..];
    let codec = header.compression().map_err(corrupt)?;
    let plain = match codec {
        Compression::None => None,
        _ => match decompress(codec, records, limits::DECOMPRESSED_BATCH_BYTES_MAX) {
            Ok(plain) => Some(plain),
            Err(_) => {
                all_at_once(each);
                return Ok(());
            }
        },
    };
    let mut walker = Records::new(plain.as_deref().unwrap_or(records), header.record_count);
    while let Ok(Some(record)) = walker.next() {
        let offset = base + i64::from(record.offset_delta);
        let time = Timestamp(header.base_timestamp.0.wrapping_add(record.timestamp_delta));
        if each(offset, time).is_break() {
            break;
        }
    }
    Ok(())
}
