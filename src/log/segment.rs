//! One segment: a file of batches, its sparse indexes, and what retention asks of it.

use super::index::{self, Entries, OffsetEntry, TimeEntry};
use super::scan::HeadScanner;
use super::{LogError, files::Files};
use crate::disk::{Disk, DiskError, DiskFile, Open};
use crate::records::BatchHeader;
use crate::types::{Offset, Timestamp};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A file of batches whose first offset is its name.
#[derive(Debug)]
pub(crate) struct Segment {
    base: Offset,
    /// The `.log` file; the others stand beside it.
    path: PathBuf,
    files: Arc<Files>,
    /// Bytes that are written whole; readers of a sealed segment stop here.
    size: AtomicU64,
    /// Guards the indexes; held for one look-up or one new entry.
    marks: RwLock<Marks>,
}

/// What is known of a segment's content without reading it.
#[derive(Debug)]
struct Marks {
    /// Both indexes; `None` until a sealed segment is first looked into.
    indexes: Option<Indexes>,
    /// Bytes since the last index entry.
    unindexed: u64,
    /// The descriptor of the segment that is appended to; sealed ones share the cache.
    append: Option<Arc<dyn DiskFile>>,
}

#[derive(Debug)]
struct Indexes {
    offsets: Entries<8>,
    times: Entries<12>,
    /// The latest timestamp and the last offset of the batch that has it.
    latest: (Timestamp, Offset),
}

impl Indexes {
    fn new(base: Offset) -> Self {
        Self { offsets: Entries::new(), times: Entries::new(), latest: (Timestamp::NONE, base) }
    }
}

/// Where a batch lies in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// Its first byte.
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
}

/// The name that Kafka gives a segment's files: the base offset in twenty digits.
pub(crate) fn file_name(base: Offset, extension: &str) -> String {
    format!("{:020}.{extension}", base.0)
}

impl Segment {
    /// A segment whose file has `size` whole bytes; its indexes are read when first needed.
    pub(crate) fn sealed(directory: &Path, base: Offset, size: u64, files: Arc<Files>) -> Self {
        Self {
            base,
            path: directory.join(file_name(base, "log")),
            files,
            size: AtomicU64::new(size),
            marks: RwLock::new(Marks { indexes: None, unindexed: 0, append: None }),
        }
    }

    /// A new, empty segment.
    pub(crate) fn empty(directory: &Path, base: Offset, files: Arc<Files>) -> Self {
        let segment = Self::sealed(directory, base, 0, files);
        segment.write_marks().indexes = Some(Indexes::new(base));
        segment
    }

    /// The first offset it may hold.
    pub(crate) fn base(&self) -> Offset {
        self.base
    }

    /// Whole bytes in it.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// The `.log` file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The open file: the one that is appended to, or one from the bounded cache.
    pub(crate) fn file(&self) -> Result<Arc<dyn DiskFile>, DiskError> {
        if let Some(file) = &self.read_marks().append {
            return Ok(file.clone());
        }
        self.files.open(&self.path)
    }

    /// Opens the file for appending and keeps it open until the segment is sealed.
    pub(crate) fn file_for_append(&self) -> Result<Arc<dyn DiskFile>, DiskError> {
        self.files.forget(&self.path);
        let file = self.files.disk().open(&self.path, Open::Create)?;
        self.write_marks().append = Some(file.clone());
        Ok(file)
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.path.with_extension(extension)
    }

    fn read_marks(&self) -> RwLockReadGuard<'_, Marks> {
        self.marks.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_marks(&self) -> RwLockWriteGuard<'_, Marks> {
        self.marks.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a batch that was written at `position`, and makes it part of the segment.
    pub(crate) fn note(&self, position: u64, header: &BatchHeader, interval: u64) {
        let last = header.last_offset();
        let mut marks = self.write_marks();
        let unindexed = marks.unindexed;
        marks.unindexed += header.size as u64;
        let Some(indexes) = &mut marks.indexes else {
            unreachable!("only a segment with its indexes in memory is appended to")
        };
        if header.max_timestamp > indexes.latest.0 {
            indexes.latest = (header.max_timestamp, last);
        }
        if unindexed > interval {
            if let (Ok(relative), Ok(position)) = (self.relative(last), u32::try_from(position)) {
                indexes.offsets.push(OffsetEntry { relative, position }.encode());
            }
            self.note_time(indexes);
            marks.unindexed = header.size as u64;
        }
        drop(marks);
        self.size.store(position + header.size as u64, Ordering::Release);
    }

    /// Adds the latest timestamp to the time index, unless it stands there already.
    fn note_time(&self, indexes: &mut Indexes) {
        let (timestamp, offset) = indexes.latest;
        let noted = indexes.times.all().last().map(|entry| TimeEntry::decode(*entry).timestamp);
        if timestamp == Timestamp::NONE || noted.is_some_and(|noted| noted >= timestamp.0) {
            return;
        }
        if let Ok(relative) = self.relative(offset) {
            let entry = TimeEntry { timestamp: timestamp.0, relative };
            indexes.times.push(entry.encode());
        }
    }

    fn relative(&self, offset: Offset) -> Result<u32, std::num::TryFromIntError> {
        u32::try_from(offset - self.base)
    }

    /// Entries in the fuller of the two indexes, in bytes, for the roll by index size.
    pub(crate) fn index_bytes(&self) -> usize {
        self.read_marks().indexes.as_ref().map_or(0, |indexes| {
            (indexes.offsets.all().len() * 8).max(indexes.times.all().len() * 12)
        })
    }

    /// Writes both indexes into their files; a sealed segment then maps them when next needed.
    pub(crate) fn write_indexes(&self, disk: &dyn Disk, seal: bool) -> Result<(), DiskError> {
        let mut marks = self.write_marks();
        // An empty segment has nothing to find; ten thousand of them are closed without a file.
        if let Some(indexes) = marks.indexes.as_mut().filter(|_| self.size() > 0) {
            if matches!(indexes.times, Entries::Growing(_)) {
                self.note_time(indexes);
            }
            indexes.offsets.write(disk, &self.beside("index"))?;
            indexes.times.write(disk, &self.beside("timeindex"))?;
        }
        if seal {
            marks.indexes = None;
            marks.append = None;
        }
        Ok(())
    }

    /// Reads the index files of the segment that will be appended to, or makes them again.
    pub(crate) fn load_growing(&self, disk: &dyn Disk, interval: u64) -> Result<(), LogError> {
        if self.size() == 0 {
            self.clear_marks();
            return Ok(());
        }
        let offsets = Entries::<8>::load(disk, &self.beside("index"))?;
        let times = Entries::<12>::load(disk, &self.beside("timeindex"))?;
        if self.adopt(offsets, times)? { Ok(()) } else { self.rebuild(disk, interval) }
    }

    /// Takes indexes over when they are sane; finds the latest timestamp from them and the rest.
    fn adopt(
        &self,
        offsets: Option<Entries<8>>,
        times: Option<Entries<12>>,
    ) -> Result<bool, LogError> {
        let size = self.size();
        let (Some(offsets), Some(times)) = (offsets, times) else { return Ok(false) };
        if !index::offsets_are_sane(offsets.all(), size) || !index::times_are_sane(times.all()) {
            return Ok(false);
        }
        let mut latest = match times.all().last() {
            Some(entry) => {
                let entry = TimeEntry::decode(*entry);
                (Timestamp(entry.timestamp), self.base + i64::from(entry.relative))
            }
            None => (Timestamp::NONE, self.base),
        };
        let from =
            offsets.all().last().map_or(0, |entry| u64::from(OffsetEntry::decode(*entry).position));
        let file = self.file()?;
        let mut scanner = HeadScanner::new(&*file, self.base, from, size);
        while let Some((_, header)) = scanner.next()? {
            if header.max_timestamp > latest.0 {
                latest = (header.max_timestamp, header.last_offset());
            }
        }
        let mut marks = self.write_marks();
        marks.indexes = Some(Indexes { offsets, times, latest });
        marks.unindexed = size - from;
        Ok(true)
    }

    /// Makes both indexes again from the batches, and writes them.
    pub(crate) fn rebuild(&self, disk: &dyn Disk, interval: u64) -> Result<(), LogError> {
        let end = self.size();
        self.clear_marks();
        let file = self.file()?;
        let mut scanner = HeadScanner::new(&*file, self.base, 0, end);
        while let Some((position, header)) = scanner.next()? {
            self.note(position, &header, interval);
        }
        self.write_indexes(disk, false)?;
        Ok(())
    }

    /// Forgets the indexes, to be noted anew from an empty segment.
    pub(crate) fn clear_marks(&self) {
        let mut marks = self.write_marks();
        marks.indexes = Some(Indexes::new(self.base));
        marks.unindexed = 0;
    }

    /// Sets the whole bytes, after a truncation.
    pub(crate) fn set_size(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// Runs `look` over the indexes, reading or making them first where they are not in memory.
    fn with_indexes<T>(&self, look: impl Fn(&Indexes) -> T) -> Result<T, LogError> {
        if let Some(indexes) = &self.read_marks().indexes {
            return Ok(look(indexes));
        }
        let disk = self.files.disk();
        let offsets = Entries::<8>::map(disk, &self.beside("index"))?;
        let times = Entries::<12>::map(disk, &self.beside("timeindex"))?;
        if !self.adopt(offsets, times)? {
            tracing::warn!(segment = %self.path.display(), "index is damaged, made again");
            self.rebuild(disk, 4096)?;
        }
        match &self.read_marks().indexes {
            Some(indexes) => Ok(look(indexes)),
            None => unreachable!("indexes were just loaded and are never dropped once sealed"),
        }
    }

    /// The first batch whose last offset is `offset` or more, before byte `end`.
    pub(crate) fn locate(&self, offset: Offset, end: u64) -> Result<Option<Located>, LogError> {
        let relative = self.relative(offset.max(self.base)).unwrap_or(u32::MAX);
        let from =
            self.with_indexes(|indexes| index::position_before(indexes.offsets.all(), relative))?;
        let file = self.file()?;
        let mut scanner = HeadScanner::new(&*file, self.base, from, end);
        while let Some((position, header)) = scanner.next()? {
            if header.last_offset() >= offset {
                return Ok(Some(Located { position, header }));
            }
        }
        Ok(None)
    }

    /// The first batch from `from` on that has a record as late as `timestamp`, before byte `end`.
    pub(crate) fn locate_time(
        &self,
        timestamp: Timestamp,
        from: Offset,
        end: u64,
    ) -> Result<Option<Located>, LogError> {
        let relative = self.with_indexes(|indexes| {
            index::relative_before_time(indexes.times.all(), timestamp.0)
        })?;
        let begin = from.max(self.base + i64::from(relative));
        let Some(first) = self.locate(begin, end)? else { return Ok(None) };
        let file = self.file()?;
        let mut scanner = HeadScanner::new(&*file, self.base, first.position, end);
        while let Some((position, header)) = scanner.next()? {
            if header.max_timestamp >= timestamp {
                return Ok(Some(Located { position, header }));
            }
        }
        Ok(None)
    }

    /// The latest timestamp and the last offset of the batch that has it.
    pub(crate) fn latest(&self) -> Result<(Timestamp, Offset), LogError> {
        self.with_indexes(|indexes| indexes.latest)
    }

    /// Gives all of the segment's files the name they have until they are removed.
    pub(crate) fn mark_deleted(&self, disk: &dyn Disk) -> Result<Vec<PathBuf>, DiskError> {
        let mut renamed = Vec::new();
        self.files.forget(&self.path);
        for extension in ["log", "index", "timeindex", "txnindex", "snapshot", "sequences"] {
            let path = self.beside(extension);
            let mut to = path.clone().into_os_string();
            to.push(".deleted");
            match disk.rename(&path, Path::new(&to)) {
                Ok(()) => renamed.push(PathBuf::from(to)),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(renamed)
    }
}
