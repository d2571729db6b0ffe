//! Sparse index entries of a fixed width: in memory while a segment grows, mapped once sealed.
//!
//! The bytes are Kafka's: `.index` holds (relative offset u32, position u32), `.timeindex` holds
//! (timestamp i64, relative offset u32), all big-endian and ascending. An index is a hint: what
//! does not look sane is made again from the log.

use crate::disk::{self, Disk, DiskError, Open};
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
        map.map(|map| Some(Self::Mapped(map))).map_err(|source| DiskError {
            operation: "map",
            path: path.to_owned(),
            source,
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

/// Where to begin looking for the batch with `relative`: an entry at or before it, or byte 0.
pub(crate) fn position_before(entries: &[[u8; 8]], relative: u32) -> u64 {
    let after = entries.partition_point(|entry| OffsetEntry::decode(*entry).relative <= relative);
    match after.checked_sub(1).and_then(|at| entries.get(at)) {
        Some(entry) => u64::from(OffsetEntry::decode(*entry).position),
        None => 0,
    }
}

/// The relative offset from which on records may be as late as `timestamp`.
pub(crate) fn relative_before_time(entries: &[[u8; 12]], timestamp: i64) -> u32 {
    let after = entries.partition_point(|entry| TimeEntry::decode(*entry).timestamp < timestamp);
    match after.checked_sub(1).and_then(|at| entries.get(at)) {
        Some(entry) => TimeEntry::decode(*entry).relative,
        None => 0,
    }
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
        let found: Vec<u64> =
            [0, 9, 10, 19, 20, 99].map(|relative| position_before(&entries, relative)).into();
        assert_eq!(found, [0, 0, 4_000, 4_000, 9_000, 9_000]);
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
