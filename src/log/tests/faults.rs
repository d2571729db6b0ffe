//! Disks that fail, fill up, or lie, and files that are damaged or lost: one test a fault.

use super::*;
use crate::disk::Disk;
use crate::disk::sim::SimDisk;

const DIRECTORY: &str = "/logs/topic-0";

/// A disk with an empty log directory.
pub(super) fn disk() -> SimDisk {
    let disk = SimDisk::default();
    disk.create_dir(Path::new("/logs")).expect("directory");
    disk.sync_dir(Path::new("/")).expect("synced");
    disk
}

pub(super) fn try_open(disk: &SimDisk, how: OpenHow) -> Result<Log, LogError> {
    let files = Arc::new(Files::new(Arc::new(disk.clone()), 10));
    Log::open(Path::new(DIRECTORY), files, small(), how, (NOW, 0.0))
}

pub(super) fn open_sim(disk: &SimDisk, how: OpenHow) -> Log {
    try_open(disk, how).expect("open")
}

fn after_crash(recovery_point: i64) -> OpenHow {
    OpenHow { recovery_point: Some(Offset(recovery_point)), log_start: Offset::ZERO }
}

pub(super) fn path(name: &str) -> std::path::PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// The disk as it is found when nothing was written that was not synced.
fn lose_all_unsynced(disk: &SimDisk) -> SimDisk {
    disk.crash_keeping(0)
}

fn wait_for_a_sync(disk: &SimDisk) {
    for _ in 0..20_000 {
        if disk.waiting_syncs() > 0 {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
    panic!("nothing is synced");
}

fn send(log: &Log, producer: i64, sequence: i32) -> Result<Appended, AppendError> {
    let mut builder = BatchBuilder::new(NOW);
    builder.push(NewRecord { value: Some(&[7; 60]), ..NewRecord::default() });
    append(log, &builder.finish_as(ProducerId(producer), 0, sequence))
}

// Failing writes and syncs.

#[test]
fn a_failed_write_leaves_nothing_behind_and_the_log_goes_on() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 2);
    let before = disk.contents();
    disk.fail_operation_after(0);
    let failed = append(&log, &batch(9, &["lost"]));
    assert!(matches!(&failed, Err(AppendError::Disk(error)) if !error.is_full()), "{failed:?}");
    assert_eq!(disk.contents(), before);
    assert_eq!(append(&log, &batch(9, &["next"])).expect("append").base_offset, Offset(4));
    assert_eq!(read_all(&log, Offset(0)), [(0, 1), (2, 3), (4, 4)]);
}

#[test]
fn a_failed_write_that_cannot_be_cut_back_closes_the_log_for_good() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 2);
    log.flush().expect("flush");
    disk.power_off_at(disk.operations(), true);
    assert!(matches!(append(&log, &batch(9, &["doubtful"])), Err(AppendError::Disk(_))));
    assert!(log.is_closed() && !log.is_given_up());
    assert!(matches!(append(&log, &batch(9, &["no"])), Err(AppendError::Failed)));
    assert!(matches!(log.flush(), Err(AppendError::Failed)));
    assert!(matches!(log.close(), Err(AppendError::Failed)));
    assert_eq!(log.durable(), Offset(4));
}

/// fsyncgate: the second sync succeeds although the data never reached the disk.
#[test]
fn a_failed_sync_is_final_and_never_taken_for_success() {
    for skipped in 0..3 {
        let disk = disk();
        let log = open_sim(&disk, OpenHow::NEW);
        fill(&log, 1);
        log.flush().expect("flush");
        fill(&log, 6);
        disk.fail_sync_after(skipped);
        assert!(matches!(log.flush(), Err(AppendError::Disk(_))));
        assert_eq!(log.durable(), Offset(2));
        for _ in 0..3 {
            assert!(matches!(log.flush(), Err(AppendError::Failed)));
            assert!(matches!(append(&log, &batch(9, &["no"])), Err(AppendError::Failed)));
        }
        assert!(matches!(log.close(), Err(AppendError::Failed)));
        assert_eq!(log.durable(), Offset(2));
        let log = open_sim(&lose_all_unsynced(&disk), after_crash(2));
        assert!(log.view().end.offset >= Offset(2));
    }
}

/// A roll makes the names before it durable; that sync was tried again as if nothing had failed.
#[test]
fn a_failed_sync_while_rolling_is_final_too() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    disk.fail_sync_after(0);
    let failed = (0..9).find_map(|time| append(&log, &batch(time, &["some value"; 4])).err());
    assert!(matches!(failed, Some(AppendError::Disk(_))), "{failed:?}");
    assert!(matches!(append(&log, &batch(9, &["no"])), Err(AppendError::Failed)));
    assert!(matches!(log.flush(), Err(AppendError::Failed)));
}

#[test]
fn appends_go_on_while_a_sync_is_stuck() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 1);
    disk.hold_syncs(true);
    std::thread::scope(|scope| {
        let flushing = scope.spawn(|| log.flush());
        wait_for_a_sync(&disk);
        fill(&log, 5);
        assert_eq!(read_all(&log, Offset(0)).len(), 6);
        disk.hold_syncs(false);
        // What came in meanwhile is not part of it.
        assert_eq!(flushing.join().expect("flush").expect("flush").offset, Offset(2));
        assert_eq!(log.durable(), Offset(2));
    });
}

// A full disk.

#[test]
fn a_full_disk_leaves_no_half_batch_and_heals() {
    let whole = {
        let disk = disk();
        let log = open_sim(&disk, OpenHow::NEW);
        fill(&log, 12);
        log.flush().expect("flush");
        disk.contents().values().map(Vec::len).sum::<usize>()
    };
    for room in (0..whole).step_by(7) {
        let disk = disk();
        let log = open_sim(&disk, OpenHow::NEW);
        disk.set_room(Some(room));
        let mut appended = 0;
        let full = loop {
            match append(&log, &batch(appended, &["first value", "second value"])) {
                Ok(_) => appended += 1,
                Err(AppendError::Disk(error)) => break error,
                Err(error) => panic!("{error}"),
            }
        };
        assert!(full.is_full(), "{full}");
        assert_eq!(read_all(&log, Offset(0)).len() as i64, appended, "room {room}");
        log.flush().expect("flush");
        disk.set_room(None);
        let next = append(&log, &batch(appended, &["a", "b"])).expect("space is back");
        assert_eq!(next.base_offset, Offset(appended * 2));
        log.flush().expect("flush");
        for how in [after_crash(0), after_crash(appended * 2)] {
            let log = open_sim(&lose_all_unsynced(&disk), how);
            assert_eq!(read_all(&log, Offset(0)).len() as i64, appended + 1, "room {room}");
        }
    }
}

/// A roll that failed half-way left the next segment's file, named for an offset that the old one
/// then grew past: after a crash everything from there on was cut as belonging into the next.
#[test]
fn a_roll_that_fails_at_any_point_leaves_nothing_that_hurts() {
    for skipped in 0.. {
        let disk = disk();
        let log = open_sim(&disk, OpenHow::NEW);
        for sequence in 0..2 {
            send(&log, 1, sequence).expect("append");
        }
        // A sync of names that are not durable yet would close the log for good.
        log.flush().expect("flush");
        disk.fail_operation_after(skipped);
        let large = "x".repeat(200);
        if append(&log, &batch(1, &[&large])).is_ok() {
            assert!(skipped > 8, "a roll takes more than {skipped} operations");
            return;
        }
        // A small one still fits into the old segment.
        let small = append(&log, &batch(1, &["x"])).expect("append");
        send(&log, 1, 2).expect("append");
        let next = send(&log, 1, 3).expect("append");
        assert_eq!(small.base_offset, Offset(2), "{skipped}");
        log.flush().expect("flush");
        let end = next.end;
        log.close().expect("close");
        for how in [clean(), after_crash(0), after_crash(end.0)] {
            let log = open_sim(&lose_all_unsynced(&disk), how);
            assert_eq!(log.view().end.offset, end, "{skipped} {how:?}");
            let last = read_all(&log, Offset(0)).last().copied();
            assert_eq!(last, Some((end.0 - 1, end.0 - 1)), "{skipped} {how:?}");
        }
    }
}

/// Recovery wrote index files, and so needed space to give the log back (strimzi#7484).
#[test]
fn a_full_disk_does_not_keep_a_log_from_opening() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 12);
    log.flush().expect("flush");
    drop(log);
    disk.set_room(Some(0));
    let log = open_sim(&disk, after_crash(0));
    assert_eq!(read_all(&log, Offset(0)).len(), 12);
    assert!(matches!(append(&log, &batch(1, &["no"])), Err(AppendError::Disk(_))));
}

// What a crash may leave.

/// The state of producers at offset 40 was believed although the log ended at 30: the log's end
/// became 40, and ten offsets were nowhere.
#[test]
fn a_producer_snapshot_ahead_of_the_log_is_not_believed() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    for sequence in 0..6 {
        send(&log, 1, sequence).expect("append");
    }
    let (second, size) = {
        let view = log.view();
        (view.segments[1].base(), view.segments[0].size())
    };
    drop(log);
    // The second segment's name is lost, and of the first one the last batch.
    disk.remove_file(&path(&segment::file_name(second, "log"))).expect("remove");
    let batch_bytes = size / u64::try_from(second.0).expect("small");
    let first = disk.open(&path(&segment::file_name(Offset(0), "log")), crate::disk::Open::Create);
    first.expect("open").truncate(size - batch_bytes).expect("truncate");
    let log = open_sim(&disk, after_crash(0));
    assert_eq!(log.view().end.offset.0, second.0 - 1);
    let next = i32::try_from(second.0).expect("small") - 1;
    assert_eq!(send(&log, 1, next).expect("append").base_offset, Offset(second.0 - 1));
}

/// Writeback in another order, or a recovery that was itself cut short, leaves a later segment
/// whose predecessor ends too early.
#[test]
fn a_hole_between_segments_is_a_torn_end() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 12);
    assert!(log.segment_count() >= 3);
    let (hole, behind) = {
        let view = log.view();
        (view.segments[1].base(), view.segments[2].base())
    };
    drop(log);
    let middle = path(&segment::file_name(hole, "log"));
    disk.open(&middle, crate::disk::Open::Create).expect("open").truncate(0).expect("truncate");
    let log = open_sim(&disk, after_crash(hole.0));
    assert_eq!((log.view().end.offset, log.segment_count()), (hole, 2));
    assert!(!disk.contents().contains_key(&path(&segment::file_name(behind, "log"))));
    assert_eq!(append(&log, &batch(1, &["x"])).expect("append").base_offset, hole);
}

/// A segment that somebody removed was taken for a torn end, and what lies behind it went too.
#[test]
fn a_segment_that_is_missing_or_cut_is_damage_however_the_broker_stopped() {
    for (is_cut, how) in [(false, clean()), (false, after_crash(0)), (true, clean())] {
        let disk = disk();
        let log = open_sim(&disk, OpenHow::NEW);
        fill(&log, 12);
        let gone = log.view().segments[1].base();
        log.close().expect("close");
        let name = path(&segment::file_name(gone, "log"));
        if is_cut {
            let file = disk.open(&name, crate::disk::Open::Create).expect("open");
            file.truncate(batch(0, &["first value", "second value"]).len() as u64).expect("cut");
        } else {
            disk.remove_file(&name).expect("remove");
        }
        let before = disk.contents();
        let refused = try_open(&disk, how);
        assert!(
            matches!(refused, Err(LogError::Corrupt { segment, .. }) if segment == gone),
            "{is_cut}, {how:?}: {refused:?}"
        );
        let after = disk.contents();
        let logs = |name: &&std::path::PathBuf| name.extension().is_some_and(|e| e == "log");
        assert!(before.keys().filter(logs).eq(after.keys().filter(logs)), "{is_cut}, {how:?}");
    }
}

/// What a removal that was itself cut short left of the last segments is no sign of damage later.
#[test]
fn indexes_without_a_segment_at_either_end_are_removed() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 12);
    let bases: Vec<_> = log.view().segments.iter().map(|segment| segment.base()).collect();
    log.close().expect("close");
    let last = bases.len() - 1;
    for base in [bases[0], bases[last]] {
        disk.remove_file(&path(&segment::file_name(base, "log"))).expect("remove");
    }
    let how = OpenHow { recovery_point: Some(Offset::ZERO), log_start: bases[1] };
    let log = open_sim(&disk, how);
    assert_eq!(log.view().start, bases[1]);
    for base in [bases[0], bases[last]] {
        assert!(!disk.contents().contains_key(&path(&segment::file_name(base, "index"))));
    }
    fill(&log, 12);
    log.close().expect("close");
    open_sim(&disk, OpenHow { recovery_point: None, ..how });
}

#[test]
fn a_log_that_ends_before_its_recovery_point_is_damaged() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 12);
    let last = log.view().segments.last().expect("one").base();
    log.flush().expect("flush");
    drop(log);
    disk.remove_file(&path(&segment::file_name(last, "log"))).expect("remove");
    let before = disk.contents();
    let refused = try_open(&disk, after_crash(24));
    assert!(matches!(refused, Err(LogError::Corrupt { .. })), "{refused:?}");
    assert_eq!(disk.contents(), before);
    for name in before.keys() {
        disk.remove_file(name).expect("remove");
    }
    let refused = try_open(&disk, after_crash(24));
    assert!(matches!(refused, Err(LogError::Corrupt { .. })), "{refused:?}");
    assert!(disk.contents().is_empty());
}

#[test]
fn damage_below_the_recovery_point_changes_nothing_and_above_it_is_cut() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 12);
    log.flush().expect("flush");
    let (base, position) = {
        let view = log.view();
        (view.segments[2].base(), view.segments[2].size() / 2)
    };
    drop(log);
    let name = path(&segment::file_name(base, "log"));
    disk.damage(&name, usize::try_from(position).expect("small"));
    let before = disk.contents();
    let refused = try_open(&disk, after_crash(24));
    assert!(matches!(refused, Err(LogError::Corrupt { segment, .. }) if segment == base));
    assert_eq!(disk.contents(), before);
    let log = open_sim(&disk, after_crash(base.0));
    assert!(log.view().end.offset >= base && log.view().end.offset < Offset(24));
}

/// With `flush.before.ack=never` records may be deleted that were never durable. The log then
/// began before its start, and what was appended there vanished with the next start.
#[test]
fn a_log_that_ends_before_its_start_goes_on_at_its_start() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 2);
    log.flush().expect("flush");
    fill(&log, 10);
    assert_eq!(log.delete_before(Offset(21)), Some(Offset(21)));
    let how = OpenHow { recovery_point: Some(Offset(4)), log_start: Offset(21) };
    let disk = lose_all_unsynced(&disk);
    let log = open_sim(&disk, how);
    let view = log.view();
    assert_eq!((view.start, view.end.offset), (Offset(21), Offset(21)));
    assert_eq!(append(&log, &batch(1, &["x"])).expect("append").base_offset, Offset(21));
    log.flush().expect("flush");
    let log = open_sim(&lose_all_unsynced(&disk), how);
    assert_eq!(read_all(&log, Offset(21)), [(21, 21)]);
}

/// Deleting everything and losing the name of the new, empty segment made offsets begin again.
#[test]
fn retention_removes_nothing_before_what_follows_is_durable() {
    for operation in 0..40 {
        for seed in 0..20 {
            let disk = disk();
            let log = open_sim(&disk, OpenHow::NEW);
            fill(&log, 6);
            log.flush().expect("flush");
            log.configure(LogConfig { retention_ms: 0, ..small() });
            disk.power_off_at(disk.operations() + operation, seed % 2 == 0);
            match log.retain(Timestamp(5_000)) {
                Ok(_) => assert_eq!((log.view().start, log.size()), (Offset(12), 0)),
                Err(_) => assert!(operation < 39, "retention takes more operations"),
            }
            let log = open_sim(&disk.crash(seed), after_crash(0));
            assert_eq!(log.view().end.offset, Offset(12), "operation {operation}, seed {seed}");
        }
    }
}

#[test]
fn nothing_above_the_high_watermark_is_deleted() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 2);
    let bytes = batch(1, &["not committed"]);
    let valid = validate(&bytes, &rules(), NOW).expect("valid");
    log.append_as_leader(&valid, EPOCH, NOW).expect("append");
    assert_eq!(log.delete_before(Offset(5)), None);
    assert_eq!(log.delete_before(Offset(4)), Some(Offset(4)));
    assert_eq!(log.view().start, Offset(4));
}

/// After a clean stop nothing is checked; what lies before the damage is served all the same.
#[test]
fn a_flipped_bit_in_a_clean_log_hurts_no_batch_before_it_and_panics_nowhere() {
    let build = || {
        let disk = disk();
        let log = open_sim(&disk, OpenHow::NEW);
        fill(&log, 12);
        log.close().expect("close");
        disk
    };
    let batch_bytes = batch(0, &["first value", "second value"]).len();
    for (base, number) in [(0, 2), (16, 2)] {
        for at in 0..batch_bytes {
            let disk = build();
            let name = path(&segment::file_name(Offset(base), "log"));
            disk.damage(&name, number * batch_bytes + at);
            let log = match try_open(&disk, clean()) {
                Ok(log) => log,
                Err(LogError::Corrupt { segment, .. }) => {
                    assert_eq!(segment, Offset(base));
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let damaged = base + 4;
            for offset in 0..24 {
                match log.read(Offset(offset), 1, true, UpTo::HighWatermark) {
                    Ok(slice) => assert!(slice.is_some() || offset >= damaged),
                    Err(ReadError::Log(LogError::Corrupt { .. })) => assert!(offset >= damaged),
                    Err(error) => panic!("{error}"),
                }
            }
            let _found_or_damaged = log.find_time(Timestamp(3)).is_ok();
            let _closed_or_damaged = log.close().is_ok();
        }
    }
}

// Hints that are lost or wrong.

#[test]
fn all_five_batches_of_a_producer_are_known_when_one_of_its_files_is_lost() {
    for lost in ["snapshot", "sequences"] {
        let disk = disk();
        let log = open_sim(&disk, OpenHow::NEW);
        for sequence in 0..6 {
            send(&log, 1, sequence).expect("append");
        }
        log.close().expect("close");
        for (name, content) in disk.contents() {
            if name.extension().is_some_and(|extension| extension == lost) && content.len() > 20 {
                disk.damage(&name, 20);
            }
        }
        let log = open_sim(&disk, clean());
        for sequence in 1..6 {
            assert!(send(&log, 1, sequence).expect("known").repeat.is_some(), "{lost} {sequence}");
        }
    }
}

/// Where an epoch began was taken from the newest snapshot's offset when the file was lost or old.
#[test]
fn epochs_are_right_when_their_file_is_lost_or_old() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    let mut old = Vec::new();
    for (epoch, batches) in [(1, 5), (2, 5), (5, 5)] {
        for _ in 0..batches {
            let bytes = batch(1, &["first value", "second value"]);
            let valid = validate(&bytes, &rules(), NOW).expect("valid");
            log.append_as_leader(&valid, LeaderEpoch(epoch), NOW).expect("append");
        }
        if epoch == 1 {
            old = disk.contents()[&path(epochs::FILE_NAME)].clone();
        }
    }
    log.close().expect("close");
    for content in [old, Vec::new()] {
        crate::disk::replace_file(&disk, &path(epochs::FILE_NAME), &content).expect("replace");
        for how in [clean(), after_crash(0), after_crash(30)] {
            let log = open_sim(&disk.crash(0), how);
            let ends = [0, 1, 2, 3, 5].map(|epoch| {
                log.end_of_epoch(LeaderEpoch(epoch)).map(|(epoch, end)| (epoch.0, end.0))
            });
            let expected = [(0, 0), (1, 10), (2, 20), (2, 20), (5, 30)].map(Some);
            assert_eq!(ends, expected, "{how:?}");
        }
    }
}

/// The recovery point of a log that nobody wrote to went back to zero with a clean start, and
/// damage anywhere in it was then cut off as if it were a torn end.
#[test]
fn the_recovery_point_stands_over_a_clean_start() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 3);
    log.close().expect("close");
    assert_eq!(open_sim(&disk, clean()).durable(), Offset(6));
}

#[test]
fn a_flipped_bit_in_an_index_changes_no_answer() {
    let build = || {
        let disk = disk();
        let log = open_sim(&disk, OpenHow::NEW);
        log.configure(LogConfig { segment_bytes: 1 << 20, ..small() });
        for number in 0..40 {
            let time = if number == 20 { 5_000 } else { number * 10 };
            append(&log, &batch(time, &["some value", "other value"])).expect("append");
        }
        log.close().expect("close");
        disk
    };
    for extension in ["index", "timeindex"] {
        let name = path(&segment::file_name(Offset(0), extension));
        for at in 0..build().contents()[&name].len() {
            let disk = build();
            disk.damage(&name, at);
            let log = open_sim(&disk, clean());
            assert_eq!(read_all(&log, Offset(0)).len(), 40, "{extension} {at}");
            for number in 0..40i64 {
                let found = log.find_time(Timestamp(number * 10 - 3)).expect("find");
                let found = found.map(|found| found.offset);
                assert_eq!(found, Some(Offset(number.min(20) * 2)), "{extension} {at}");
            }
            let log = open_sim(&disk, clean());
            let latest = log.find_latest_time().expect("find").map(|found| found.timestamp);
            assert_eq!(latest, Some(Timestamp(5_000)), "{extension} {at}");
            let latest = log.view().segments[0].latest().expect("latest").0;
            assert_eq!(latest, Timestamp(5_000), "{extension} {at}");
            assert_eq!(log.find_time(Timestamp(5_001)).expect("find"), None, "{extension} {at}");
        }
    }
}

/// The segment's latest time came from a time index that had lost its end: retention by age
/// would have removed records too early.
#[test]
fn a_segments_latest_time_is_right_when_its_time_index_is_cut_short() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    for time in [10, 20, 900, 30, 40, 50, 60, 70] {
        append(&log, &batch(time, &["x"])).expect("append");
    }
    log.close().expect("close");
    for (name, content) in disk.contents() {
        if name.extension().is_some_and(|extension| extension == "timeindex") {
            for length in [0, 12.min(content.len() as u64)] {
                let file = disk.open(&name, crate::disk::Open::Create).expect("open");
                file.truncate(length).expect("truncate");
                let log = open_sim(&disk.crash_keeping(100), clean());
                let latest = log.find_latest_time().expect("find").expect("there");
                assert_eq!((latest.offset, latest.timestamp), (Offset(2), Timestamp(900)));
                let first = log.view().segments[0].latest().expect("latest").0;
                assert_eq!(first, Timestamp(900));
            }
        }
    }
}

// Other things that were wrong.

#[test]
fn what_is_appended_while_the_log_closes_is_durable_or_refused() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    fill(&log, 1);
    disk.hold_syncs(true);
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| log.close());
        wait_for_a_sync(&disk);
        fill(&log, 1);
        disk.hold_syncs(false);
        assert_eq!(closing.join().expect("close").expect("close"), Offset(4));
    });
    let log = open_sim(&lose_all_unsynced(&disk), clean());
    assert_eq!(read_all(&log, Offset(0)), [(0, 1), (2, 3)]);
}

#[test]
fn the_latest_time_is_that_of_the_records_in_sight() {
    let disk = disk();
    let log = open_sim(&disk, OpenHow::NEW);
    for time in [50, 10, 20, 30] {
        append(&log, &batch(time, &["x"])).expect("append");
    }
    let bytes = batch(99, &["not committed"]);
    let valid = validate(&bytes, &rules(), NOW).expect("valid");
    log.append_as_leader(&valid, EPOCH, NOW).expect("append");
    let latest = || log.find_latest_time().expect("find").map(|found| found.timestamp.0);
    assert_eq!(latest(), Some(50));
    log.delete_before(Offset(1));
    assert_eq!(latest(), Some(30));
    log.delete_before(Offset(4));
    assert_eq!(latest(), None);
}

#[test]
fn snapshots_of_stops_do_not_pile_up() {
    let disk = disk();
    let mut log = open_sim(&disk, OpenHow::NEW);
    for sequence in 0..20 {
        send(&log, 1, sequence).expect("append");
        log.close().expect("close");
        log = open_sim(&disk, clean());
    }
    let ends_in = |extension: &str| {
        let names = disk.contents();
        names.keys().filter(|name| name.extension().is_some_and(|e| e == extension)).count()
    };
    assert!(ends_in("snapshot") <= log.segment_count() + 1, "{:?}", disk.contents().keys());
    assert_eq!(ends_in("snapshot"), ends_in("sequences"));
}

/// Without producers there was no snapshot, and every head of every batch was read at each start.
/// What is read is where each segment ends.
#[test]
fn a_clean_start_does_not_read_the_whole_log() {
    let disk = disk();
    let files = Arc::new(Files::new(Arc::new(disk.clone()), 10));
    let config = LogConfig { segment_bytes: 40_000, ..small() };
    let at = (NOW, 0.0);
    let open = |how| Log::open(Path::new(DIRECTORY), files.clone(), config.clone(), how, at);
    let log = open(OpenHow::NEW).expect("open");
    fill(&log, 5_000);
    let segments = log.segment_count() as u64;
    log.close().expect("close");
    let before = disk.reads();
    open(clean()).expect("open");
    let reads = disk.reads() - before;
    assert!(segments > 10 && reads < 20 + 8 * segments, "{reads} reads, {segments} segments");
}

/// Where the latest time stands at a segment's beginning, the first reader read every head of it.
#[test]
fn an_offset_is_found_with_few_reads_whatever_the_times() {
    let disk = disk();
    let files = Arc::new(Files::new(Arc::new(disk.clone()), 10));
    let config = LogConfig { segment_bytes: 400_000, ..small() };
    let log = Log::open(Path::new(DIRECTORY), files, config, OpenHow::NEW, (NOW, 0.0));
    let log = log.expect("open");
    for _ in 0..8_000 {
        append(&log, &batch(5, &["first value", "second value"])).expect("append");
    }
    assert!(log.segment_count() > 1);
    let before = disk.reads();
    for offset in [0, 1_000, 3_000] {
        assert!(log.read(Offset(offset), 1, true, UpTo::HighWatermark).expect("read").is_some());
    }
    assert!(disk.reads() - before < 20, "{} reads", disk.reads() - before);
    assert_eq!(log.find_time(Timestamp(5)).expect("found").expect("one").offset, Offset(0));
    assert_eq!(log.find_latest_time().expect("found").expect("one").offset, Offset(0));
}
