//! A log directory over a loss of power: whose it is, what its checkpoints and its marker say.

use super::super::dir::{Found, LogDir};
use super::*;
use crate::disk::Disk;
use crate::disk::sim::SimDisk;
use crate::types::{TopicId, TopicPartition};
use std::collections::BTreeMap;

const ID: TopicId = TopicId::from_u128(77);
const OTHER: TopicId = TopicId::from_u128(78);

/// The lock is a real file, so the path is one; all else is on the crashing disk.
fn open(disk: &SimDisk, root: &Path) -> LogDir {
    LogDir::open(Arc::new(disk.clone()), root).expect("open")
}

fn offsets(offset: i64) -> BTreeMap<TopicPartition, Offset> {
    ["a", "b"].map(|topic| (TopicPartition::new(topic, 0), Offset(offset))).into()
}

fn found(disk: &SimDisk, root: &Path) -> Vec<Found> {
    open(disk, root).partitions().expect("list")
}

#[test]
fn a_directory_and_a_partitions_identity_survive_a_loss_of_power() {
    let root = tempfile::tempdir().expect("directory");
    let partition = TopicPartition::new("a", 0);
    for seed in 0..50 {
        let disk = SimDisk::default();
        let dir = open(&disk, root.path());
        dir.claim("cluster", 1, OTHER).expect("claim");
        dir.create_partition(&partition, ID).expect("create");
        let path = dir.partition_path(&partition);
        let files = Arc::new(Files::new(Arc::new(disk.clone()), 10));
        let log = Log::open(&path, files, small(), OpenHow::NEW, (NOW, 0.0)).expect("open");
        // As the first flush does, before anything in the log counts as durable.
        dir.sync_identity(&partition).expect("sync");
        log.flush().expect("flush");
        drop(dir);
        let disk = disk.crash(seed);
        let expected = Found { partition: partition.clone(), topic_id: Some(ID) };
        assert_eq!(found(&disk, root.path()), [expected], "seed {seed}");
        assert_eq!(open(&disk, root.path()).meta().cluster_id.as_deref(), Some("cluster"));
    }
}

/// KAFKA-10471: after a crash while loading, the marker of the last stop was believed.
#[test]
fn the_marker_is_gone_for_good_once_a_directory_is_claimed() {
    let root = tempfile::tempdir().expect("directory");
    let disk = SimDisk::default();
    let dir = open(&disk, root.path());
    dir.claim("cluster", 1, ID).expect("claim");
    dir.mark_clean().expect("mark");
    drop(dir);
    let disk = disk.crash_keeping(0);
    for seed in 0..50 {
        let disk = disk.crash(0);
        let dir = open(&disk, root.path());
        assert!(dir.was_clean());
        dir.claim("cluster", 1, ID).expect("claim");
        drop(dir);
        assert!(!open(&disk.crash(seed), root.path()).was_clean(), "seed {seed}");
    }
}

/// Whatever operation the power fails at, checkpoints are whole, old or new, and where the marker
/// stands they are those that were written before it.
#[test]
fn checkpoints_are_old_or_new_and_the_marker_comes_last() {
    let root = tempfile::tempdir().expect("directory");
    let begin = || {
        let disk = SimDisk::default();
        let dir = open(&disk, root.path());
        dir.claim("cluster", 1, ID).expect("claim");
        dir.write_checkpoints(&offsets(5), &offsets(2)).expect("write");
        (disk, dir)
    };
    let stop = |dir: &LogDir| {
        dir.write_checkpoints(&offsets(9), &offsets(4))?;
        dir.mark_clean()
    };
    let (disk, dir) = begin();
    let first = disk.operations();
    stop(&dir).expect("stop");
    let last = disk.operations();
    drop(dir);
    for operation in first..=last {
        for seed in 0..40 {
            let (disk, dir) = begin();
            disk.power_off_at(operation, seed % 2 == 0);
            let stopped = stop(&dir).is_ok();
            drop(dir);
            let dir = open(&disk.crash(seed), root.path());
            let how = dir.how_to_open(&TopicPartition::new("b", 0));
            let (point, start) = (how.recovery_point.unwrap_or(Offset(9)), how.log_start);
            assert!([5, 9].contains(&point.0) && [2, 4].contains(&start.0), "{operation} {seed}");
            if dir.was_clean() {
                assert_eq!(start, Offset(4), "{operation} {seed}");
            }
            assert!(dir.was_clean() || !stopped, "{operation} {seed}");
        }
    }
}

/// The next checkpoint left a damaged partition out, and the start after it cut the damage off
/// as a torn end; or a clean stop of all the others had it served unchecked.
#[test]
fn a_partition_set_aside_keeps_its_recovery_point_and_no_stop_counts_as_clean() {
    let root = tempfile::tempdir().expect("directory");
    let disk = SimDisk::default();
    let dir = open(&disk, root.path());
    dir.claim("cluster", 1, ID).expect("claim");
    dir.write_checkpoints(&offsets(5), &offsets(2)).expect("write");
    drop(dir);
    let damaged = TopicPartition::new("a", 0);
    for _ in 0..2 {
        let dir = open(&disk, root.path());
        dir.claim("cluster", 1, ID).expect("claim");
        dir.set_aside(&damaged, false);
        let mut others = offsets(7);
        others.remove(&damaged);
        dir.write_checkpoints(&others, &others).expect("write");
        dir.mark_clean().expect("not marked");
        drop(dir);
        let dir = open(&disk, root.path());
        let how = dir.how_to_open(&damaged);
        assert_eq!((how.recovery_point, how.log_start), (Some(Offset(5)), Offset(2)));
        let how = dir.how_to_open(&TopicPartition::new("b", 0));
        assert_eq!(how.recovery_point, Some(Offset(7)));
    }
    let dir = open(&disk, root.path());
    dir.set_aside(&damaged, false);
    assert_eq!(dir.forget_set_aside("a"), [damaged]);
    dir.mark_clean().expect("mark");
    drop(dir);
    assert!(open(&disk, root.path()).was_clean());
}

/// A directory that lay there under a new topic's name became the topic's, records and all.
#[test]
fn a_stray_directory_is_moved_out_of_a_new_partitions_way() {
    let root = tempfile::tempdir().expect("directory");
    let disk = SimDisk::default();
    let dir = open(&disk, root.path());
    let partition = TopicPartition::new("a", 0);
    dir.create_partition(&partition, OTHER).expect("create");
    let path = dir.partition_path(&partition);
    disk.open(&path.join("precious"), crate::disk::Open::Create).expect("a file");
    dir.create_partition(&partition, OTHER).expect("the same again");
    assert!(disk.contents().contains_key(&path.join("precious")));
    dir.create_partition(&partition, ID).expect("another");
    assert!(!disk.contents().contains_key(&path.join("precious")));
    let kept = disk.contents().keys().any(|path| path.ends_with("precious"));
    assert!(kept, "{:?}", disk.contents().keys());
    drop(dir);
    let expected = Found { partition, topic_id: Some(ID) };
    assert_eq!(found(&disk, root.path()), [expected]);
}

/// Space was looked at once a second: a fast producer ate the reserve before anybody looked, and
/// offset commits failed too.
#[test]
fn the_reserve_is_kept_also_between_two_looks() {
    let root = tempfile::tempdir().expect("directory");
    let disk = SimDisk::default();
    let dir = open(&disk, root.path());
    disk.set_room(Some(1_000));
    dir.look_at_space(Some(300)).expect("look");
    dir.note_written(600);
    assert!(!dir.is_nearly_full());
    dir.note_written(100);
    assert!(dir.is_nearly_full());
    dir.look_at_space(Some(300)).expect("look");
    assert!(!dir.is_nearly_full());
    dir.note_full();
    assert!(dir.is_nearly_full());
    disk.set_room(Some(300));
    dir.look_at_space(Some(300)).expect("look");
    assert!(dir.is_nearly_full());
}
