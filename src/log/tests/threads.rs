//! Appending, flushing, reading and deleting at once, on the disk of this machine.

use super::*;
use crate::disk::sim::Dice;
use crate::disk::{Disk, DiskError, DiskFile, Open, Space};
use crate::records::{BatchHeader, HEADER_BYTES, Records};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The disk of this machine, and what was synced on it.
#[derive(Clone, Debug, Default)]
struct Watched(Arc<Mutex<Synced>>);

#[derive(Debug, Default)]
struct Synced {
    /// Bytes of each file that were there when a sync of it began, which then succeeded.
    lengths: BTreeMap<PathBuf, u64>,
    names: BTreeSet<PathBuf>,
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, Synced> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for Watched {
    fn open(&self, path: &Path, how: Open) -> Result<Arc<dyn DiskFile>, DiskError> {
        let file = RealDisk.open(path, how)?;
        Ok(Arc::new(WatchedFile { file, path: path.to_owned(), disk: self.clone() }))
    }
    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        RealDisk.create_dir(path)
    }
    fn read_dir(&self, path: &Path) -> Result<Vec<String>, DiskError> {
        RealDisk.read_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        RealDisk.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        RealDisk.remove_file(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<(), DiskError> {
        RealDisk.remove_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<(), DiskError> {
        let names = RealDisk.read_dir(path)?;
        RealDisk.sync_dir(path)?;
        self.lock().names.extend(names.into_iter().map(|name| path.join(name)));
        Ok(())
    }
    fn space(&self, path: &Path) -> Result<Space, DiskError> {
        RealDisk.space(path)
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    disk: Watched,
}

impl DiskFile for WatchedFile {
    fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, DiskError> {
        self.file.read_at(buffer, position)
    }
    fn write_at(&self, parts: &[&[u8]], position: u64) -> Result<(), DiskError> {
        self.file.write_at(parts, position)
    }
    fn truncate(&self, len: u64) -> Result<(), DiskError> {
        self.file.truncate(len)
    }
    fn sync(&self) -> Result<(), DiskError> {
        let length = self.file.len()?;
        self.file.sync()?;
        let mut synced = self.disk.lock();
        let known = synced.lengths.entry(self.path.clone()).or_default();
        *known = length.max(*known);
        Ok(())
    }
    fn descriptor(&self) -> Option<Arc<std::fs::File>> {
        self.file.descriptor()
    }
}

/// A log and those who use it.
struct Busy {
    log: Log,
    disk: Watched,
    done: AtomicBool,
    batches_read: AtomicU64,
}

const BATCHES: u64 = 6_000;

/// A record whose value tells its offset.
fn value(offset: i64, dice: &mut Dice) -> Vec<u8> {
    let mut value = offset.to_be_bytes().to_vec();
    value.resize(8 + usize::try_from(dice.below(200)).expect("small"), 0);
    value
}

impl Busy {
    fn append(&self) {
        let mut dice = Dice::new(1);
        let mut next = 0;
        for number in 0..BATCHES {
            let mut builder = BatchBuilder::new(Timestamp(number.cast_signed()));
            let count = 1 + dice.below(3).cast_signed();
            for offset in next..next + count {
                let value = value(offset, &mut dice);
                builder.push(NewRecord { value: Some(&value), ..NewRecord::default() });
            }
            let id = ProducerId(i64::try_from(dice.below(4)).expect("small"));
            let bytes = match self.log.producers().iter().find(|(known, _)| *known == id) {
                _ if id.0 == 0 => builder.finish(),
                None => builder.finish_as(id, 0, 0),
                Some((_, known)) => {
                    let last = known.batches.back().expect("a batch").last_sequence;
                    builder.finish_as(id, 0, last + 1)
                }
            };
            let batch = validate(&bytes, &rules(), NOW).expect("valid");
            let appended = self.log.append_as_leader(&batch, EPOCH, NOW).expect("append");
            assert_eq!(appended.base_offset, Offset(next));
            next += count;
            // Readers get a turn on a machine with few cores.
            if number % 50 == 0 {
                std::thread::yield_now();
            }
        }
        self.done.store(true, Ordering::Release);
    }

    /// Flushes, and looks whether what is said to be durable was synced.
    fn flush(&self) {
        while !self.done.load(Ordering::Acquire) {
            let before = self.log.view().clone();
            let flushed = self.log.flush().expect("flush");
            {
                let synced = self.disk.lock();
                let length = |segment: &Segment| synced.lengths.get(segment.path()).copied();
                for segment in before.segments.iter() {
                    if segment.base() > flushed.segment {
                        break;
                    }
                    let needed = if segment.base() == flushed.segment {
                        flushed.position
                    } else {
                        segment.size()
                    };
                    assert!(needed == 0 || length(segment).is_some_and(|synced| synced >= needed));
                    assert!(synced.names.contains(segment.path()));
                }
            }
            self.log.advance_high_watermark(flushed.offset);
        }
    }

    fn delete(&self) {
        let mut dice = Dice::new(2);
        let mut gone = Vec::new();
        while !self.done.load(Ordering::Acquire) {
            if dice.chance(50) {
                gone.extend(self.log.retain(NOW).expect("retain").files);
            } else {
                let view = self.log.view();
                let span = (view.high_watermark.offset - view.start).cast_unsigned();
                let to = view.start + dice.below(span / 4 + 1).cast_signed();
                self.log.delete_before(to).expect("below the high watermark");
            }
            // Some readers are still at it.
            if gone.len() > 40 {
                for file in gone.drain(..20) {
                    self.disk.remove_file(&file).expect("remove");
                }
            }
            std::thread::yield_now();
        }
    }

    /// Sees whole batches below the high watermark, offsets dense, and nothing go backwards.
    fn read(&self, seed: u64) {
        let mut dice = Dice::new(seed);
        let (mut start, mut watermark) = (Offset::ZERO, Offset::ZERO);
        while !self.done.load(Ordering::Acquire) {
            let view = self.log.view().clone();
            let at = view.high_watermark.offset;
            assert!(start <= view.start && view.start <= at && at <= view.end.offset);
            assert!(watermark <= at, "the high watermark went back");
            (start, watermark) = (view.start, at);
            let from = start + dice.below((at - start).cast_unsigned() + 1).cast_signed();
            let room = u32::try_from(dice.below(20_000)).expect("small");
            match self.log.read(from, room, dice.chance(50), UpTo::HighWatermark) {
                Ok(None) => {}
                Ok(Some(slice)) => self.check_slice(&slice, from, room),
                Err(ReadError::OutOfRange { start, .. }) => assert!(from < start),
                Err(error) => panic!("read: {error}"),
            }
            let found = self.log.find_time(Timestamp(i64::MAX)).expect("find");
            assert_eq!(found, None);
        }
    }

    fn check_slice(&self, slice: &LogSlice, from: Offset, room: u32) {
        let mut bytes = vec![0; slice.length as usize];
        let read = slice.file.read_at(&mut bytes, slice.position).expect("bytes");
        assert_eq!(read, bytes.len(), "the file is shorter than what was promised");
        let committed = self.log.view().high_watermark.offset;
        let (mut rest, mut next) = (bytes.as_slice(), None);
        while let Some((header, batch, behind)) = split(rest) {
            header.check_crc(batch).expect("a whole batch");
            let base = header.base_offset;
            assert!(next.map_or(base <= from && from <= header.last_offset(), |n| n == base));
            assert!(header.last_offset() < committed, "above the high watermark");
            let mut records = Records::new(&batch[HEADER_BYTES..], header.record_count);
            for offset in base.0..=header.last_offset().0 {
                let record = records.next().expect("a record").expect("one more");
                assert_eq!(&record.value.expect("a value")[..8], offset.to_be_bytes());
            }
            next = Some(header.last_offset() + 1);
            rest = behind;
            self.batches_read.fetch_add(1, Ordering::Relaxed);
        }
        assert!(rest.is_empty() || slice.length >= room, "half a batch at the end");
    }
}

/// The first batch of `bytes` when it is whole, and what follows.
fn split(bytes: &[u8]) -> Option<(BatchHeader, &[u8], &[u8])> {
    let header = BatchHeader::parse(bytes).ok()?;
    let (batch, behind) = bytes.split_at_checked(header.size)?;
    Some((header, batch, behind))
}

/// KAFKA-9835, KAFKA-5634, KAFKA-9491.
#[test]
fn readers_see_whole_committed_batches_while_others_append_flush_and_delete() {
    let dir = tempfile::tempdir().expect("directory");
    let config = LogConfig {
        segment_bytes: 6_000,
        index_interval_bytes: 500,
        retention_ms: -1,
        retention_bytes: 40_000,
        ..LogConfig::default()
    };
    let disk = Watched::default();
    let files = Arc::new(Files::new(Arc::new(disk.clone()), 3));
    let path = dir.path().join("topic-0");
    let log = Log::open(&path, files, config, OpenHow::NEW, (NOW, 0.0)).expect("open");
    let (done, batches_read) = (AtomicBool::new(false), AtomicU64::new(0));
    let busy = Busy { log, disk, done, batches_read };
    std::thread::scope(|scope| {
        scope.spawn(|| busy.flush());
        scope.spawn(|| busy.delete());
        for seed in 10..13 {
            let busy = &busy;
            scope.spawn(move || busy.read(seed));
        }
        busy.append();
    });
    assert!(busy.batches_read.load(Ordering::Relaxed) > 100);
    let (end, start) = (busy.log.view().end.offset, busy.log.view().start);
    assert!(start > Offset::ZERO, "nothing was deleted");
    busy.log.close().expect("close");
    let files = Arc::new(Files::new(Arc::new(RealDisk), 3));
    let how = OpenHow { recovery_point: None, log_start: start };
    let log = Log::open(&path, files, small(), how, (NOW, 0.0)).expect("open");
    assert_eq!((log.view().start, log.view().end.offset), (start, end));
    let batches = read_all(&log, start);
    assert!(batches.windows(2).all(|two| two[0].1 + 1 == two[1].0));
    assert_eq!(batches.last().map(|last| last.1 + 1), Some(end.0));
}
