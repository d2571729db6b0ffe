//! A segment's sparse indexes: in memory while it grows, mapped once it is sealed.
//!
//! The bytes are Kafka's: `.index` holds (relative offset u32, position u32), `.timeindex` holds
//! (timestamp i64, relative offset u32), all big-endian and ascending. An index is a hint: what
//! does not look sane is made again from the log.

use super::LogError;
use super::scan::HeadScanner;
use crate::disk::{self, Disk, DiskError, DiskFile, Open};
use crate::records::BatchHeader;
use crate::types::{Offset, Timestamp};
use std::path::Path;

/// Entries of `N` bytes.
#[derive(Debug)]
pub(crate) enum Entries<const N: usize> {
    /// Of the active segment.
    Growing(Vec<u8>),
    /// Of a sealed one.
    Mapped(memmap2::Mmap),
}

impl<const N: usize> Entries<N> {
    /// No entries yet.
    pub(crate) fn new() -> Self {
        Self::Growing(Vec::new())
    }

    /// All entries in order.
    pub(crate) fn all(&self) -> &[[u8; N]] {
        let bytes = match self {
            Self::Growing(bytes) => bytes.as_slice(),
            Self::Mapped(map) => map,
        };
        bytes.as_chunks().0
    }

    /// Adds one; a mapped index never grows.
    pub(crate) fn push(&mut self, entry: [u8; N]) {
        match self {
            Self::Growing(bytes) => bytes.extend_from_slice(&entry),
            Self::Mapped(_) => unreachable!("a sealed segment's index does not grow"),
        }
    }

    /// Reads a whole index file to be grown further; `None` when it is missing or has a torn end.
    pub(crate) fn load(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, DiskError> {
        match disk::read_file(disk, path) {
            Ok(bytes) if bytes.len() % N == 0 => Ok(Some(Self::Growing(bytes))),
            Ok(_) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Maps a sealed segment's index file; `None` when it is missing or has a torn end.
    pub(crate) fn map(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, DiskError> {
        let file = match disk.open(path, Open::Read) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.len()?;
        let Some(descriptor) = file.descriptor().filter(|_| length > 0) else {
            return Self::load(disk, path);
        };
        if length % N as u64 != 0 {
            return Ok(None);
        }
        // SAFETY: sealed index files are never written nor cut again by Ottla: they are replaced
        // by rename and removed by unlink, which leave the mapped file as it was. Another program
        // that cuts one ends the process with SIGBUS, as a failing disk page does (ARCHITECTURE).
        #[allow(unsafe_code, reason = "the one place that maps files")]
        let map = unsafe { memmap2::Mmap::map(&*descriptor) };
        map.map(|map| Some(Self::Mapped(map))).map_err(|cause| DiskError {
            operation: "map",
            path: path.to_owned(),
            cause,
        })
    }

    /// Writes all entries into a file that replaces the old one; not synced, it is a hint.
    pub(crate) fn write(&self, disk: &dyn Disk, path: &Path) -> Result<(), DiskError> {
        disk::replace_hint(disk, path, self.all().as_flattened())
    }
}

/// An entry of the offset index: the batch whose last offset this is lies at `position`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    /// The batch's last offset, relative to the segment's base.
    pub(crate) relative: u32,
    /// The batch's first byte in the segment.
    pub(crate) position: u32,
}

impl OffsetEntry {
    pub(crate) fn encode(self) -> [u8; 8] {
        (u64::from(self.relative) << 32 | u64::from(self.position)).to_be_bytes()
    }

    pub(crate) fn decode(bytes: [u8; 8]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self {
            relative: u32::from_be_bytes([a, b, c, d]),
            position: u32::from_be_bytes([e, f, g, h]),
        }
    }
}

/// An entry of the time index: no record before `relative` is later than `timestamp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    /// The largest timestamp so far, in milliseconds since 1970.
    pub(crate) timestamp: i64,
    /// The last offset of the batch that has it, relative to the segment's base.
    pub(crate) relative: u32,
}

impl TimeEntry {
    pub(crate) fn encode(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..].copy_from_slice(&self.relative.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: [u8; 12]) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, t7, a, b, c, d] = bytes;
        Self {
            timestamp: i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            relative: u32::from_be_bytes([a, b, c, d]),
        }
    }
}

/// Both indexes of a segment, and its latest time.
#[derive(Debug)]
pub(crate) struct Indexes {
    base: Offset,
    offsets: Entries<8>,
    times: Entries<12>,
    /// The latest timestamp and the last offset of the batch that has it; `None` as long as the
    /// time index was read from a file and not checked against the log.
    latest: Option<(Timestamp, Offset)>,
    /// Bytes since the last entry of the offset index.
    unindexed: u64,
}

impl Indexes {
    /// Of an empty segment.
    pub(crate) fn new(base: Offset) -> Self {
        let (offsets, times) = (Entries::new(), Entries::new());
        Self { base, offsets, times, latest: Some((Timestamp::NONE, base)), unindexed: 0 }
    }

    /// Takes over what index files hold, when it is sane. An offset that is looked up is compared
    /// with the log each time; the times have to be checked as a whole first, see
    /// [`Self::find_latest`].
    pub(crate) fn adopt(
        (base, size): (Offset, u64),
        offsets: Entries<8>,
        times: Entries<12>,
    ) -> Option<Self> {
        if !offsets_are_sane(offsets.all(), size) || !times_are_sane(times.all()) {
            return None;
        }
        let last = offsets.all().last().map_or(0, |entry| OffsetEntry::decode(*entry).position);
        let unindexed = size - u64::from(last);
        Some(Self { base, offsets, times, latest: None, unindexed })
    }

    /// The latest timestamp and the last offset of the batch that has it, looked for from the last
    /// time that is noted on: the file may have lost its end. `None` when that time is no batch's.
    pub(crate) fn find_latest(
        &self,
        file: &dyn DiskFile,
        size: u64,
    ) -> Result<Option<(Timestamp, Offset)>, LogError> {
        let noted = self.times.all().last().map(|entry| TimeEntry::decode(*entry));
        let entry = noted.and_then(|noted| self.offset_before(noted.relative));
        let from = entry.map_or(0, |entry| entry.position);
        let mut latest = (Timestamp::NONE, self.base);
        let mut sound = noted.is_none();
        let mut scanner = HeadScanner::new(file, self.base, from.into(), size);
        loop {
            let header = match scanner.next() {
                Ok(Some((_, header))) => header,
                Ok(None) => return Ok(sound.then_some(latest)),
                // Pointed at by the index, not found by walking: the index may be wrong.
                Err(LogError::Corrupt { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            sound |= noted.is_some_and(|noted| {
                header.last_offset() == self.base + i64::from(noted.relative)
                    && header.max_timestamp.0 == noted.timestamp
            });
            if header.max_timestamp > latest.0 {
                latest = (header.max_timestamp, header.last_offset());
            }
        }
    }

    /// Takes over what [`Self::find_latest`] found.
    pub(crate) fn set_latest(&mut self, latest: (Timestamp, Offset)) {
        self.latest = Some(latest);
    }

    /// Notes a batch at `position`; an entry is made every `interval` bytes.
    pub(crate) fn note(&mut self, position: u64, header: &BatchHeader, interval: u64) {
        let last = header.last_offset();
        let size = header.size as u64;
        if self.latest.is_none_or(|(latest, _)| header.max_timestamp > latest) {
            self.latest = Some((header.max_timestamp, last));
        }
        if self.unindexed <= interval {
            self.unindexed += size;
            return;
        }
        if let (Ok(relative), Ok(position)) = (self.relative(last), u32::try_from(position)) {
            self.offsets.push(OffsetEntry { relative, position }.encode());
        }
        self.note_time();
        self.unindexed = size;
    }

    /// Adds the latest timestamp to the time index, unless it stands there already.
    fn note_time(&mut self) {
        let Some((timestamp, offset)) = self.latest else { return };
        let noted = self.times.all().last().map(|entry| TimeEntry::decode(*entry).timestamp);
        if timestamp == Timestamp::NONE || noted.is_some_and(|noted| noted >= timestamp.0) {
            return;
        }
        if let Ok(relative) = self.relative(offset) {
            let entry = TimeEntry { timestamp: timestamp.0, relative };
            self.times.push(entry.encode());
        }
    }

    fn relative(&self, offset: Offset) -> Result<u32, std::num::TryFromIntError> {
        u32::try_from(offset - self.base)
    }

    /// Writes both into the files beside the segment's.
    pub(crate) fn write(&mut self, disk: &dyn Disk, segment: &Path) -> Result<(), DiskError> {
        if matches!(self.times, Entries::Growing(_)) {
            self.note_time();
        }
        self.offsets.write(disk, &segment.with_extension("index"))?;
        self.times.write(disk, &segment.with_extension("timeindex"))
    }

    /// Bytes of the fuller of the two.
    pub(crate) fn bytes(&self) -> usize {
        (self.offsets.all().len() * 8).max(self.times.all().len() * 12)
    }

    /// The latest timestamp and the last offset of the batch that has it, if the times are checked.
    pub(crate) fn latest(&self) -> Option<(Timestamp, Offset)> {
        self.latest
    }

    /// Where to begin looking for the batch with `relative`; byte 0 when there is no entry.
    pub(crate) fn offset_before(&self, relative: u32) -> Option<OffsetEntry> {
        offset_before(self.offsets.all(), relative)
    }

    /// No record up to the entry's is as late as `timestamp`.
    pub(crate) fn time_before(&self, timestamp: i64) -> Option<TimeEntry> {
        let entries = self.times.all();
        let after =
            entries.partition_point(|entry| TimeEntry::decode(*entry).timestamp < timestamp);
        after.checked_sub(1).and_then(|at| entries.get(at)).map(|entry| TimeEntry::decode(*entry))
    }
}

fn offset_before(entries: &[[u8; 8]], relative: u32) -> Option<OffsetEntry> {
    let after = entries.partition_point(|entry| OffsetEntry::decode(*entry).relative <= relative);
    after.checked_sub(1).and_then(|at| entries.get(at)).map(|entry| OffsetEntry::decode(*entry))
}

/// Whether an offset index read from disk can be one of a segment of `size` bytes.
pub(crate) fn offsets_are_sane(entries: &[[u8; 8]], size: u64) -> bool {
    let decoded = || entries.iter().map(|entry| OffsetEntry::decode(*entry));
    decoded()
        .zip(decoded().skip(1))
        .all(|(one, next)| one.relative < next.relative && one.position < next.position)
        && decoded().next_back().is_none_or(|last| u64::from(last.position) < size)
}

/// Whether a time index read from disk ascends.
pub(crate) fn times_are_sane(entries: &[[u8; 12]]) -> bool {
    let decoded = || entries.iter().map(|entry| TimeEntry::decode(*entry));
    decoded().zip(decoded().skip(1)).all(|(one, next)| {
        one.timestamp < next.timestamp && one.relative <= next.relative
            || one.timestamp == next.timestamp && one.relative < next.relative
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    fn offsets(pairs: &[(u32, u32)]) -> Vec<[u8; 8]> {
        pairs
            .iter()
            .map(|(relative, position)| {
                OffsetEntry { relative: *relative, position: *position }.encode()
            })
            .collect()
    }

    #[test]
    fn the_entry_at_or_before_an_offset_is_found() {
        let entries = offsets(&[(10, 4_000), (20, 9_000)]);
        let find = |relative| offset_before(&entries, relative).map(|entry| entry.position);
        let (one, two) = (Some(4_000), Some(9_000));
        assert_eq!([0, 9, 10, 19, 20, 99].map(find), [None, None, one, one, two, two]);
    }

    #[test]
    fn an_index_that_does_not_ascend_or_reaches_past_the_log_is_not_sane() {
        assert!(offsets_are_sane(&offsets(&[(1, 0), (2, 50)]), 51));
        assert!(!offsets_are_sane(&offsets(&[(1, 0), (2, 50)]), 50));
        assert!(!offsets_are_sane(&offsets(&[(2, 0), (1, 50)]), 99));
        let time = |timestamp, relative| TimeEntry { timestamp, relative }.encode();
        assert!(times_are_sane(&[time(1, 1), time(2, 2)]));
        assert!(!times_are_sane(&[time(2, 1), time(1, 2)]));
    }

    #[test]
    fn a_written_index_is_mapped_again_and_a_torn_one_is_refused() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("x.index");
        let mut entries = Entries::<8>::new();
        entries.push(OffsetEntry { relative: 5, position: 70 }.encode());
        entries.write(&RealDisk, &path).expect("write");
        let mapped = Entries::<8>::map(&RealDisk, &path).expect("map").expect("sane");
        assert_eq!(mapped.all(), entries.all());
        assert!(matches!(mapped, Entries::Mapped(_)));
        std::fs::write(&path, [0; 9]).expect("write");
        assert!(Entries::<8>::map(&RealDisk, &path).expect("map").is_none());
    }
}
