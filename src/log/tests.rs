//! The log as a whole: append, read, roll, forget, and open again.

mod crash;
mod directory;
mod faults;
mod history;
mod threads;
mod workload;

use super::read::UpTo;
use super::*;
use crate::disk::RealDisk;
use crate::records::{BatchBuilder, Levels, NewRecord, Rules, TimestampType, validate};
use crate::types::ProducerId;
use std::path::Path;

const NOW: Timestamp = Timestamp(1_000_000);
const EPOCH: LeaderEpoch = LeaderEpoch(4);

fn small() -> LogConfig {
    LogConfig { segment_bytes: 400, index_interval_bytes: 100, ..LogConfig::default() }
}

fn open(directory: &Path, config: LogConfig, how: OpenHow) -> Log {
    let files = Arc::new(Files::new(Arc::new(RealDisk), 10));
    Log::open(directory, files, config, how, (NOW, 0.0)).expect("open")
}

fn clean() -> OpenHow {
    OpenHow { recovery_point: None, log_start: Offset::ZERO }
}

fn rules() -> Rules {
    Rules {
        batch_bytes_max: 1 << 20,
        timestamp_type: TimestampType::CreateTime,
        before_max_ms: i64::MAX,
        after_max_ms: i64::MAX,
        needs_keys: false,
        compression: None,
        levels: Levels { gzip: None, zstd: 3 },
        strict: false,
    }
}

fn append(log: &Log, batch: &[u8]) -> Result<Appended, AppendError> {
    let batch = validate(batch, &rules(), NOW).expect("valid");
    let appended = log.append_as_leader(&batch, EPOCH, NOW)?;
    log.advance_high_watermark(log.view().end.offset);
    Ok(appended)
}

/// A batch of `values`, all at `timestamp`.
fn batch(timestamp: i64, values: &[&str]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Timestamp(timestamp));
    for value in values {
        builder.push(NewRecord { value: Some(value.as_bytes()), ..NewRecord::default() });
    }
    builder.finish()
}

fn fill(log: &Log, batches: i64) {
    for number in 0..batches {
        append(log, &batch(number, &["first value", "second value"])).expect("append");
    }
}

/// Reads from `from` to the end, a batch at a time, and gives (base, last, values' bytes).
fn read_all(log: &Log, mut from: Offset) -> Vec<(i64, i64)> {
    let mut batches = Vec::new();
    while let Some(slice) = log.read(from, 1, true, UpTo::HighWatermark).expect("read") {
        let mut bytes = vec![0; slice.length as usize];
        slice.file.read_at(&mut bytes, slice.position).expect("bytes");
        let header = crate::records::BatchHeader::parse(&bytes).expect("header");
        header.check_crc(&bytes).expect("whole");
        batches.push((header.base_offset.0, header.last_offset().0));
        from = header.last_offset() + 1;
    }
    batches
}

#[test]
fn batches_get_consecutive_offsets_over_segments_and_survive_a_clean_stop() {
    let dir = tempfile::tempdir().expect("directory");
    let log = open(dir.path(), small(), OpenHow::NEW);
    fill(&log, 20);
    assert!(log.segment_count() > 3);
    let expected: Vec<_> = (0..20).map(|i| (i * 2, i * 2 + 1)).collect();
    assert_eq!(read_all(&log, Offset(0)), expected);
    assert_eq!(log.close().expect("close"), Offset(40));
    let again = open(dir.path(), small(), clean());
    assert_eq!(read_all(&again, Offset(0)), expected);
    assert_eq!(again.latest_epoch(), Some(EPOCH));
    let next = append(&again, &batch(1, &["x"])).expect("append");
    assert_eq!(next.base_offset, Offset(40));
}

#[test]
fn reading_within_a_batch_gives_the_whole_batch_and_limits_are_kept() {
    let dir = tempfile::tempdir().expect("directory");
    let log = open(dir.path(), LogConfig::default(), OpenHow::NEW);
    fill(&log, 2);
    let size = u32::try_from(batch(0, &["first value", "second value"]).len()).expect("small");
    let read = |from, bytes, one| {
        let slice = log.read(Offset(from), bytes, one, UpTo::HighWatermark).expect("read")?;
        Some((slice.position, slice.length))
    };
    assert_eq!(read(1, 1, true), Some((0, size)));
    assert_eq!(read(1, 1, false), None);
    assert_eq!(read(0, 1 << 20, false), Some((0, size * 2)));
    assert_eq!(read(3, 1 << 20, false), Some((u64::from(size), size)));
    assert_eq!(read(4, 1 << 20, true), None);
    let beyond = log.read(Offset(5), 1, true, UpTo::HighWatermark);
    assert!(matches!(beyond, Err(ReadError::OutOfRange { .. })));
}

#[test]
fn consumers_see_nothing_above_the_high_watermark() {
    let dir = tempfile::tempdir().expect("directory");
    let log = open(dir.path(), LogConfig::default(), OpenHow::NEW);
    fill(&log, 1);
    let bytes = batch(5, &["later"]);
    let more = validate(&bytes, &rules(), NOW).expect("valid");
    log.append_as_leader(&more, EPOCH, NOW).expect("append");
    assert!(log.read(Offset(2), 99, true, UpTo::HighWatermark).expect("read").is_none());
    assert!(log.read(Offset(2), 99, true, UpTo::End).expect("read").is_some());
    assert_eq!(log.find_time(Timestamp(5)).expect("find"), None);
    log.advance_high_watermark(Offset(3));
    assert!(log.read(Offset(2), 99, true, UpTo::HighWatermark).expect("read").is_some());
}

/// Times 2, 4, 6, 8 in batches of their own (a fault of another broker: the end offset instead).
#[test]
fn the_first_record_as_late_as_asked_is_found_or_nothing() {
    let dir = tempfile::tempdir().expect("directory");
    let log = open(dir.path(), small(), OpenHow::NEW);
    assert_eq!(log.find_time(Timestamp(0)).expect("find"), None);
    for time in [2, 4, 6, 8] {
        append(&log, &batch(time, &["value"])).expect("append");
    }
    let find = |time| {
        let found = log.find_time(Timestamp(time)).expect("find")?;
        Some((found.offset.0, found.timestamp.0))
    };
    let found = [1, 2, 3, 7, 8, 9].map(find);
    assert_eq!(found, [Some((0, 2)), Some((0, 2)), Some((1, 4)), Some((3, 8)), Some((3, 8)), None]);
    assert_eq!(log.delete_before(Offset(2)), Some(Offset(2)));
    assert_eq!(find(1), Some((2, 6)));
    let latest = log.find_latest_time().expect("find").expect("there");
    assert_eq!((latest.offset, latest.timestamp), (Offset(3), Timestamp(8)));
}

#[test]
fn times_are_found_within_a_batch_and_through_many_index_entries() {
    let dir = tempfile::tempdir().expect("directory");
    let log = open(dir.path(), small(), OpenHow::NEW);
    for first in (0..200).step_by(2) {
        let mut builder = BatchBuilder::new(Timestamp(first * 10));
        builder.push(NewRecord::default());
        builder.push_at(NewRecord::default(), Timestamp(first * 10 + 10));
        append(&log, &builder.finish()).expect("append");
    }
    for wanted in 0..200 {
        let found = log.find_time(Timestamp(wanted * 10 - 3)).expect("find").expect("there");
        assert_eq!(found.offset, Offset(wanted));
    }
}

#[test]
fn a_torn_end_is_cut_and_everything_before_it_kept() {
    let dir = tempfile::tempdir().expect("directory");
    let log = open(dir.path(), small(), OpenHow::NEW);
    fill(&log, 20);
    let torn = log.view().segments[2].path().to_owned();
    drop(log);
    let whole = std::fs::read(&torn).expect("read");
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&torn, &bytes).expect("write");
    let how = OpenHow { recovery_point: Some(Offset(3)), log_start: Offset(0) };
    let log = open(dir.path(), small(), how);
    let left = read_all(&log, Offset(0));
    assert!(!left.is_empty() && left.len() < 20);
    assert_eq!(left, (0..left.len() as i64).map(|i| (i * 2, i * 2 + 1)).collect::<Vec<_>>());
    assert_eq!(log.durable(), log.view().end.offset);
    let next = append(&log, &batch(1, &["x"])).expect("append");
    assert_eq!(next.base_offset.0, left.len() as i64 * 2);
}

#[test]
fn damage_below_the_recovery_point_is_an_error_and_nothing_is_cut() {
    let dir = tempfile::tempdir().expect("directory");
    let log = open(dir.path(), LogConfig::default(), OpenHow::NEW);
    fill(&log, 20);
    let path = log.view().segments[0].path().to_owned();
    drop(log);
    let mut bytes = std::fs::read(&path).expect("read");
    bytes[70] ^= 1;
    std::fs::write(&path, &bytes).expect("write");
    let files = Arc::new(Files::new(Arc::new(RealDisk), 10));
    let how = OpenHow { recovery_point: Some(Offset(30)), log_start: Offset(0) };
    let refused = Log::open(dir.path(), files, LogConfig::default(), how, (NOW, 0.0));
    assert!(matches!(refused, Err(LogError::Corrupt { position: 0, .. })), "{refused:?}");
    assert_eq!(std::fs::read(&path).expect("read"), bytes);
}

#[test]
fn old_and_surplus_segments_go_from_the_front_but_never_above_the_high_watermark() {
    let dir = tempfile::tempdir().expect("directory");
    let log = open(dir.path(), small(), OpenHow::NEW);
    fill(&log, 20);
    let before = log.segment_count();
    log.configure(LogConfig { retention_bytes: 800, ..small() });
    let removed = log.retain(Timestamp(0)).expect("retain");
    assert!(removed.segments > 0 && log.segment_count() == before - removed.segments);
    assert!(log.size() >= 800, "{}", log.size());
    let start = log.view().start;
    assert_eq!(read_all(&log, start).first().map(|(base, _)| *base), Some(start.0));
    log.configure(LogConfig { retention_ms: 10, ..small() });
    log.retain(Timestamp(1_000)).expect("retain");
    assert_eq!((log.view().start, log.segment_count(), log.size()), (Offset(40), 1, 0));
    let next = append(&log, &batch(1, &["x"])).expect("append");
    assert_eq!(next.base_offset, Offset(40));
    assert_eq!(read_all(&log, Offset(40)), [(40, 40)]);
}

#[test]
fn a_repeated_batch_is_answered_and_not_appended_also_after_a_restart() {
    let dir = tempfile::tempdir().expect("directory");
    let log = open(dir.path(), small(), OpenHow::NEW);
    let send = |sequence: i32| {
        let mut builder = BatchBuilder::new(NOW);
        builder.push(NewRecord { value: Some(b"value"), ..NewRecord::default() });
        builder.finish_as(ProducerId(7), 0, sequence)
    };
    for sequence in 0..20 {
        append(&log, &send(sequence)).expect("append");
    }
    let check = |log: &Log| {
        for sequence in 15..20 {
            let again = append(log, &send(sequence)).expect("known");
            assert!(again.repeat.is_some());
            assert_eq!((again.base_offset.0, again.end.0), (sequence.into(), sequence as i64 + 1));
        }
        assert!(matches!(append(log, &send(14)), Err(AppendError::Refused(_))));
        assert_eq!(log.view().end.offset, Offset(20));
    };
    check(&log);
    log.close().expect("close");
    check(&open(dir.path(), small(), clean()));
    let how = OpenHow { recovery_point: Some(Offset(0)), log_start: Offset(0) };
    check(&open(dir.path(), small(), how));
}

#[test]
fn a_damaged_index_is_made_again() {
    let dir = tempfile::tempdir().expect("directory");
    let log = open(dir.path(), small(), OpenHow::NEW);
    fill(&log, 20);
    log.close().expect("close");
    drop(log);
    for entry in std::fs::read_dir(dir.path()).expect("list") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|extension| extension.to_string_lossy().contains("index")) {
            std::fs::write(path, [0xff; 24]).expect("write");
        }
    }
    let log = open(dir.path(), small(), clean());
    assert_eq!(read_all(&log, Offset(0)).len(), 20);
    let found = log.find_time(Timestamp(7)).expect("find").expect("there");
    assert_eq!(found.offset, Offset(14));
}
