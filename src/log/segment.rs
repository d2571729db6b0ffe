//! One segment: a file of batches, its sparse indexes, and what retention asks of it.

use super::index::{Entries, Indexes, OffsetEntry};
use super::scan::HeadScanner;
use super::{LogError, files::Files};
use crate::disk::{Disk, DiskError, DiskFile, Open};
use crate::records::{BatchError, BatchHeader};
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
    /// Guards the indexes; held for one look-up or one new entry, and while an index of a sealed
    /// segment that proved wrong is made again.
    marks: RwLock<Marks>,
}

/// What is known of a segment's content without reading it.
#[derive(Debug)]
struct Marks {
    /// Both indexes; `None` until a sealed segment is first looked into.
    indexes: Option<Indexes>,
    /// Where the indexes had to stop, and why.
    damage: Option<(u64, BatchError)>,
    /// The descriptor of the segment that is appended to; sealed ones share the cache.
    append: Option<Arc<dyn DiskFile>>,
}

/// What following an index gave.
enum Hint<T> {
    Right(T),
    /// What the index pointed at is not there.
    Wrong,
}

/// Where a batch lies in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// Its first byte.
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
}

/// Bytes between entries of an index that has to be made again for reading.
const REBUILD_INTERVAL_BYTES: u64 = 4096;

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
            marks: RwLock::new(Marks { indexes: None, damage: None, append: None }),
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
        let mut marks = self.write_marks();
        let Some(indexes) = &mut marks.indexes else {
            unreachable!("only a segment with its indexes in memory is appended to")
        };
        indexes.note(position, header, interval);
        // Under the lock, so that who makes the indexes again misses no batch.
        self.size.store(position + header.size as u64, Ordering::Release);
    }

    fn relative(&self, offset: Offset) -> Result<u32, std::num::TryFromIntError> {
        u32::try_from(offset - self.base)
    }

    /// Entries in the fuller of the two indexes, in bytes, for the roll by index size.
    pub(crate) fn index_bytes(&self) -> usize {
        self.read_marks().indexes.as_ref().map_or(0, Indexes::bytes)
    }

    /// Writes both indexes into their files.
    pub(crate) fn write_indexes(&self, disk: &dyn Disk) -> Result<(), DiskError> {
        match &mut self.write_marks().indexes {
            // An empty segment has nothing to find; ten thousand of them are closed without a file.
            Some(indexes) if self.size() > 0 => indexes.write(disk, &self.path),
            Some(_) | None => Ok(()),
        }
    }

    /// Ends appending: the indexes, which were written, are mapped when next needed.
    pub(crate) fn seal(&self) {
        let mut marks = self.write_marks();
        (marks.indexes, marks.append) = (None, None);
    }

    /// Reads the index files of the segment that will be appended to, or makes them again.
    pub(crate) fn load_growing(&self, interval: u64) -> Result<(), LogError> {
        if self.size() == 0 {
            self.clear_marks();
            return Ok(());
        }
        let disk = self.files.disk();
        let offsets = Entries::load(disk, &self.beside("index"))?;
        let times = Entries::load(disk, &self.beside("timeindex"))?;
        self.adopt(offsets, times, interval)?;
        self.check_times(interval)
    }

    /// Takes index files over where they are sound, and makes the indexes again where not.
    fn adopt(
        &self,
        offsets: Option<Entries<8>>,
        times: Option<Entries<12>>,
        interval: u64,
    ) -> Result<(), LogError> {
        let whole = offsets.zip(times);
        let adopted = whole
            .and_then(|(offsets, times)| Indexes::adopt((self.base, self.size()), offsets, times));
        match adopted {
            Some(indexes) => {
                self.write_marks().indexes = Some(indexes);
                Ok(())
            }
            None => self.rebuild(interval),
        }
    }

    /// Checks the times of an adopted index, and makes it again where they are wrong. That may read
    /// every head: whoever only looks for an offset does not pay for it.
    fn check_times(&self, interval: u64) -> Result<(), LogError> {
        let file = self.file()?;
        let found = match &self.read_marks().indexes {
            Some(indexes) if indexes.latest().is_none() => {
                indexes.find_latest(&*file, self.size())?
            }
            Some(_) | None => return Ok(()),
        };
        let Some(latest) = found else { return self.rebuild(interval) };
        if let Some(indexes) = &mut self.write_marks().indexes {
            indexes.set_latest(latest);
        }
        Ok(())
    }

    /// Makes both indexes again from the batches, and writes them where there is room.
    fn rebuild(&self, interval: u64) -> Result<(), LogError> {
        let disk = self.files.disk();
        // The lock is held over the scan, so that no batch is noted meanwhile.
        let mut marks = self.write_marks();
        let file = match &marks.append {
            Some(file) => file.clone(),
            None => self.files.open(&self.path)?,
        };
        let mut indexes = Indexes::new(self.base);
        let mut scanner = HeadScanner::new(&*file, self.base, 0, self.size());
        marks.damage = loop {
            match scanner.next() {
                Ok(Some((position, header))) => indexes.note(position, &header, interval),
                Ok(None) => break None,
                // What lies before the damage can be read all the same.
                Err(LogError::Corrupt { position, what, .. }) if marks.append.is_none() => {
                    break Some((position, what));
                }
                Err(error) => return Err(error),
            }
        };
        if marks.damage.is_none()
            && let Err(error) = indexes.write(disk, &self.path)
        {
            tracing::warn!(%error, "index not written");
        }
        marks.indexes = Some(indexes);
        Ok(())
    }

    /// Forgets the indexes, to be noted anew from an empty segment.
    pub(crate) fn clear_marks(&self) {
        self.write_marks().indexes = Some(Indexes::new(self.base));
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
        let offsets = Entries::map(disk, &self.beside("index"))?;
        let times = Entries::map(disk, &self.beside("timeindex"))?;
        self.adopt(offsets, times, REBUILD_INTERVAL_BYTES)?;
        match &self.read_marks().indexes {
            Some(indexes) => Ok(look(indexes)),
            None => unreachable!("indexes were just loaded and are never dropped once sealed"),
        }
    }

    /// As [`Self::with_indexes`], with times that are checked.
    fn with_times<T>(&self, look: impl Fn(&Indexes) -> T) -> Result<T, LogError> {
        loop {
            self.with_indexes(|_| ())?;
            self.check_times(REBUILD_INTERVAL_BYTES)?;
            // A roll may have put an index in place meanwhile that is not checked.
            match &self.read_marks().indexes {
                Some(indexes) if indexes.latest().is_some() => return Ok(look(indexes)),
                Some(_) | None => {}
            }
        }
    }

    /// Looks by an index, and once more when that led astray: an index is a hint.
    fn by_index<T>(&self, look: impl Fn() -> Result<Hint<T>, LogError>) -> Result<T, LogError> {
        if let Hint::Right(found) = look()? {
            return Ok(found);
        }
        tracing::warn!(segment = %self.path.display(), "index is damaged, made again");
        self.rebuild(REBUILD_INTERVAL_BYTES)?;
        match look()? {
            Hint::Right(found) => Ok(found),
            Hint::Wrong => {
                let what = BatchError::Inconsistent("its batches moved while they were read");
                Err(LogError::Corrupt { segment: self.base, position: 0, what })
            }
        }
    }

    /// The first batch whose last offset is `offset` or more, before byte `end`.
    pub(crate) fn locate(&self, offset: Offset, end: u64) -> Result<Option<Located>, LogError> {
        self.by_index(|| {
            let relative = self.relative(offset.max(self.base)).unwrap_or(u32::MAX);
            let entry = self.with_indexes(|indexes| indexes.offset_before(relative))?;
            let from = entry.map_or(0, |entry| u64::from(entry.position));
            let file = self.file()?;
            let mut scanner = HeadScanner::new(&*file, self.base, from, end);
            let mut expected = entry;
            loop {
                let (position, header) = match scanner.next() {
                    Ok(Some(next)) => next,
                    Ok(None) => return Ok(Hint::Right(None)),
                    Err(LogError::Corrupt { .. }) if expected.is_some() => return Ok(Hint::Wrong),
                    Err(error) => return Err(error),
                };
                if expected.take().is_some_and(|entry| !self.is_at(entry, &header)) {
                    return Ok(Hint::Wrong);
                }
                if header.last_offset() >= offset {
                    return Ok(Hint::Right(Some(Located { position, header })));
                }
            }
        })
    }

    /// Behind its last batch.
    pub(crate) fn end(&self) -> Result<Offset, LogError> {
        self.by_index(|| {
            let entry = self.with_indexes(|indexes| indexes.offset_before(u32::MAX))?;
            let from = entry.map_or(0, |entry| u64::from(entry.position));
            let file = self.file()?;
            let mut scanner = HeadScanner::new(&*file, self.base, from, self.size());
            let (mut end, mut expected) = (self.base, entry);
            loop {
                match scanner.next() {
                    Ok(Some((_, header))) => {
                        if expected.take().is_some_and(|entry| !self.is_at(entry, &header)) {
                            return Ok(Hint::Wrong);
                        }
                        end = header.last_offset() + 1;
                    }
                    Ok(None) if expected.is_some() => return Ok(Hint::Wrong),
                    Ok(None) => return Ok(Hint::Right(end)),
                    Err(LogError::Corrupt { .. }) if expected.is_some() => return Ok(Hint::Wrong),
                    Err(error) => return Err(error),
                }
            }
        })
    }

    fn is_at(&self, entry: OffsetEntry, header: &BatchHeader) -> bool {
        header.last_offset() == self.base + i64::from(entry.relative)
    }

    /// The first batch from `from` on that has a record as late as `timestamp`, before byte `end`.
    pub(crate) fn locate_time(
        &self,
        timestamp: Timestamp,
        from: Offset,
        end: u64,
    ) -> Result<Option<Located>, LogError> {
        self.by_index(|| {
            let entry = self.with_times(|indexes| indexes.time_before(timestamp.0))?;
            let noted = entry.map_or(self.base, |entry| self.base + i64::from(entry.relative));
            let Some(first) = self.locate(from.max(noted), end)? else {
                return Ok(Hint::Right(None));
            };
            if let Some(entry) = entry
                && noted >= from
                && (first.header.last_offset() != noted
                    || first.header.max_timestamp.0 != entry.timestamp)
            {
                return Ok(Hint::Wrong);
            }
            let file = self.file()?;
            let mut scanner = HeadScanner::new(&*file, self.base, first.position, end);
            while let Some((position, header)) = scanner.next()? {
                if header.max_timestamp >= timestamp {
                    return Ok(Hint::Right(Some(Located { position, header })));
                }
            }
            Ok(Hint::Right(None))
        })
    }

    /// The latest timestamp and the last offset of the batch that has it.
    pub(crate) fn latest(&self) -> Result<(Timestamp, Offset), LogError> {
        let latest = self.with_times(Indexes::latest)?;
        match self.read_marks().damage {
            None => Ok(latest.unwrap_or((Timestamp::NONE, self.base))),
            // There may be a later one, and retention must not take this one's word.
            Some((position, what)) => Err(LogError::Corrupt { segment: self.base, position, what }),
        }
    }

    /// Gives all of the segment's files the name they have until they are removed.
    pub(crate) fn mark_deleted(&self, disk: &dyn Disk) -> Result<Vec<PathBuf>, DiskError> {
        let mut renamed = Vec::new();
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
        self.files.forget(&self.path);
        Ok(renamed)
    }
}
