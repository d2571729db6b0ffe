//! The broker as a process that is killed, stopped and started again, also with damaged files:
//! what was acknowledged is there. `KILLS` says how often it is killed under load, `FAULTS` how
//! often anything happens to it, `PARTITIONS` how many it is started with.
#![allow(clippy::disallowed_methods, reason = "tests have clocks of their own")]

mod chaos;
mod support;

use chaos::load::{Found, Load};
use chaos::process::{Process, commit, committed, delete, expect_dead, find_coordinator};
use chaos::{Dice, times};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};
use support::*;

/// Coordinator loading, not available, not here: what a group may be told while its offsets are
/// not known yet (spring-kafka#435, AutoMQ#163: it was told that there were none).
const NOT_YET: [i16; 3] = [14, 15, 16];
const STORAGE_ERROR: i16 = 56;

/// Segments of a few batches, and recovery points that move.
const SETTINGS: [(&str, &str); 3] = [
    ("log.segment.bytes", "40000"),
    ("log.flush.offset.checkpoint.interval.ms", "50"),
    ("offsets.topic.num.partitions", "5"),
];

/// Groups that commit while the broker is killed, and what they were last told was done.
struct Groups {
    port: u16,
    acked: Vec<AtomicI64>,
    stop: AtomicBool,
}

fn group(number: usize) -> String {
    format!("group-{number}")
}

impl Groups {
    fn commit_until_stopped(&self) {
        let mut next = 0;
        while !self.stop.load(Ordering::Acquire) {
            let address = format!("127.0.0.1:{}", self.port);
            let Ok(mut client) = Client::try_connect(&address) else {
                std::thread::park_timeout(Duration::from_millis(2));
                continue;
            };
            while !self.stop.load(Ordering::Acquire) {
                let at = next % self.acked.len();
                let offset = i64::try_from(next).expect("small");
                match commit(&mut client, &group(at), "load", offset) {
                    Ok(0) => {
                        self.acked[at].store(offset, Ordering::Release);
                        next += 1;
                    }
                    Ok(code) => assert!(NOT_YET.contains(&code), "commit: error {code}"),
                    Err(error) => {
                        expect_dead(&error);
                        break;
                    }
                }
            }
        }
    }

    /// Asks every group from the first accepted connection on.
    fn check(&self, broker: &Process, known: &[i64]) {
        let mut client = wait_for("a connection", || broker.connect());
        for (at, known) in known.iter().enumerate() {
            wait_for("the group's offset", || {
                match committed(&mut client, &group(at), "load").expect("an answer") {
                    // One more may have been written than was answered, or committed since.
                    Ok(offset) => {
                        assert!(offset >= *known, "group {at}: {offset}, {known} was committed");
                        Some(())
                    }
                    Err(code) => {
                        assert!(NOT_YET.contains(&code), "group {at}: error {code}");
                        None
                    }
                }
            });
        }
    }

    /// Has the committing end when the guard goes, also when a test fails.
    fn stop_at_end(&self) -> impl Drop {
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Release);
            }
        }
        Stop(&self.stop)
    }

    fn known(&self) -> Vec<i64> {
        self.acked.iter().map(|acked| acked.load(Ordering::Acquire)).collect()
    }
}

/// What happens to a broker under load.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// `kill -9`, sometimes again while it starts.
    Kill,
    /// SIGTERM.
    Stop,
    /// SIGSTOP for longer than a client waits for a heartbeat, then SIGCONT.
    Pause,
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_when_the_broker_is_killed_under_load() {
    survive(times("KILLS", 3), |_| Fault::Kill);
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_whatever_happens_to_the_process() {
    let all = [Fault::Kill, Fault::Stop, Fault::Pause];
    survive(times("FAULTS", 6), |dice| all[usize::try_from(dice.below(3)).expect("small")]);
}

/// Has producers and groups at work, and faults in between; everything acknowledged is there after
/// each and at the end, once and in order.
fn survive(faults: u64, choose: impl Fn(&mut Dice) -> Fault) {
    let dir = tempfile::tempdir().expect("directory");
    let mut broker = Process::new(&dir.path().join("logs"), dir.path(), &SETTINGS);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    assert_eq!(client.create("load", 1, &[]), 0);
    wait_for("the coordinator", || {
        (find_coordinator(&mut client, "group-0").expect("an answer") == 0).then_some(())
    });
    let acked = (0..8).map(|_| AtomicI64::new(-1)).collect();
    let groups = Groups { port: broker.port, acked, stop: AtomicBool::new(false) };
    let load = Load::start(broker.port, "load", 2, 200);
    let mut dice = Dice(times("SEED", 7));
    let mut starts = Vec::new();
    // Up to here everything was read; at the end all of it is read again.
    let mut verified = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| groups.commit_until_stopped());
        let _stop = groups.stop_at_end();
        wait_for("first commits", || groups.known().iter().all(|at| *at >= 0).then_some(()));
        for _ in 0..faults {
            load.wait_for(1 + dice.below(60));
            let (acknowledged, committed) = (load.acknowledgements(), groups.known());
            let began = strike(&mut broker, choose(&mut dice), &mut dice);
            groups.check(&broker, &committed);
            let mut client = wait_for("a connection", || broker.connect());
            let found = Found::read(&mut client, "load", verified);
            starts.push(began.elapsed());
            assert_eq!(found.missing(&acknowledged), []);
            verified = found.end();
        }
    });
    let acknowledged = load.finish();
    let mut client = broker.connect().expect("a connection");
    let found = Found::read(&mut client, "load", 0);
    assert_eq!(found.missing(&acknowledged), []);
    groups.check(&broker, &groups.known());
    starts.sort();
    println!(
        "{faults} faults, {} records, start to everything read: median {:?}, longest {:?}",
        found.end(),
        starts[starts.len() / 2],
        starts[starts.len() - 1],
    );
    assert!(broker.stop(), "a clean stop");
}

/// Does it to the broker, has it run again, and says since when.
fn strike(broker: &mut Process, fault: Fault, dice: &mut Dice) -> Instant {
    match fault {
        Fault::Kill => {
            broker.kill();
            // Sometimes it does not get far before it is killed again.
            for _ in 0..dice.below(3) {
                broker.spawn();
                wait_for("a connection", || broker.connect());
                broker.kill();
            }
        }
        Fault::Stop => assert!(broker.stop(), "a clean stop"),
        Fault::Pause => {
            broker.pause();
            std::thread::park_timeout(Duration::from_millis(dice.below(500)));
            broker.resume();
            return Instant::now();
        }
    }
    let began = Instant::now();
    broker.spawn();
    began
}

/// A broker with many partitions is there soon, however it stopped, and has all of them.
#[test]
fn many_partitions_are_made_found_again_and_served() {
    let count = i32::try_from(times("PARTITIONS", 300)).expect("small");
    let dir = tempfile::tempdir().expect("directory");
    let mut broker = Process::new(&dir.path().join("logs"), dir.path(), &[]);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    let mut told = Vec::new();
    let mut timed = |what, began: Instant| told.push(format!("{what} {:?}", began.elapsed()));
    let began = Instant::now();
    for (topic, partitions) in [("many", count / 2), ("more", count - count / 2)] {
        assert_eq!(client.create(topic, partitions, &[]), 0);
    }
    timed("made in", began);
    let each = |client: &mut Client, check: &dyn Fn(&mut Client, &str, i32)| {
        for partition in 0..count {
            match partition - count / 2 {
                behind if behind >= 0 => check(client, "more", behind),
                _ => check(client, "many", partition),
            }
        }
    };
    let began = Instant::now();
    each(&mut client, &|client, topic, partition| {
        let appended = client.produce(topic, partition, -1, batch(now_ms(), &[b"x"]));
        assert_eq!((appended.error_code, appended.base_offset), (0, 0), "{topic}-{partition}");
    });
    timed("a record in each in", began);
    for clean in [false, true] {
        if clean {
            assert!(broker.stop(), "a clean stop")
        } else {
            broker.kill()
        }
        let began = Instant::now();
        broker.start();
        timed(if clean { "clean start in" } else { "start after a kill in" }, began);
        let mut client = broker.connect().expect("a connection");
        each(&mut client, &|client, topic, partition| {
            assert_eq!(client.offset(topic, partition, -1), (0, -1, 1), "{topic}-{partition}");
        });
    }
    println!("{count} partitions: {}", told.join(", "));
}

fn segments(logs: &Path, partition: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(logs.join(partition)).expect("the partition's directory");
    let paths = entries.map(|entry| entry.expect("entry").path());
    let mut logs: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "log")).collect();
    logs.sort();
    logs
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("read");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("write");
}

/// The first checkpoint after the start left the damaged partition out, and the next start, which
/// found no recovery point, cut the log at the damage.
#[test]
fn a_damaged_partition_stays_offline_and_is_not_cut_by_a_later_start() {
    let dir = tempfile::tempdir().expect("directory");
    let logs = dir.path().join("logs");
    let mut broker = Process::new(&logs, dir.path(), &SETTINGS);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    client.create("damaged", 1, &[]);
    client.create("sound", 1, &[]);
    for _ in 0..3 {
        assert_eq!(client.produce("damaged", 0, -1, batch(now_ms(), &[&[1; 100]])).error_code, 0);
    }
    let checkpoint = logs.join("recovery-point-offset-checkpoint");
    wait_for("a checkpoint", || {
        fs::read_to_string(&checkpoint).ok()?.contains("damaged 0 3").then_some(())
    });
    broker.kill();
    let segment = segments(&logs, "damaged-0").remove(0);
    flip(&segment, 90);
    let before = fs::read(&segment).expect("read");
    for round in 0..4 {
        broker.start();
        let mut client = broker.connect().expect("a connection");
        let refused = client.produce("damaged", 0, -1, batch(now_ms(), &[b"x"]));
        assert_eq!(refused.error_code, STORAGE_ERROR, "round {round}");
        assert_eq!(client.produce("sound", 0, -1, batch(now_ms(), &[b"x"])).error_code, 0);
        let written = fs::metadata(&checkpoint).and_then(|at| at.modified()).expect("a checkpoint");
        wait_for("another checkpoint", || {
            let now = fs::metadata(&checkpoint).and_then(|at| at.modified()).ok()?;
            (now > written).then_some(())
        });
        if round % 2 == 0 {
            broker.kill()
        } else {
            assert!(broker.stop())
        }
        assert_eq!(fs::read(&segment).expect("read"), before, "round {round}");
    }
    broker.start();
    let mut client = broker.connect().expect("a connection");
    delete(&mut client, "damaged");
    assert_eq!(client.create("damaged", 1, &[]), 0);
    assert_eq!(client.offset("damaged", 0, -1).2, 0);
    assert_eq!(client.produce("damaged", 0, -1, batch(now_ms(), &[b"x"])).base_offset, 0);
    // The damaged data went with its topic.
    wait_for("the removal", || {
        let entries = fs::read_dir(&logs).expect("the log directory");
        let names = entries.map(|entry| entry.expect("entry").file_name().into_string());
        let left = names.filter(|name| name.as_ref().is_ok_and(|name| name.contains("damaged")));
        (left.count() == 1).then_some(())
    });
}

/// The checkpoints still told of the topic before it: its log start hid the new one's records,
/// and its recovery point made a torn end damage.
#[test]
fn a_topic_made_again_under_its_name_inherits_nothing() {
    let dir = tempfile::tempdir().expect("directory");
    let logs = dir.path().join("logs");
    // Only checkpoints that something else than time asks for.
    let settings = [("log.flush.offset.checkpoint.interval.ms", "3600000")];
    let mut broker = Process::new(&logs, dir.path(), &settings);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    client.create("again", 1, &[]);
    for _ in 0..9 {
        client.produce("again", 0, -1, batch(now_ms(), &[b"old"]));
    }
    // A clean stop writes the checkpoints.
    assert!(broker.stop());
    broker.start();
    let mut client = broker.connect().expect("a connection");
    delete(&mut client, "again");
    client.create("again", 1, &[]);
    for _ in 0..2 {
        assert_eq!(client.produce("again", 0, -1, batch(now_ms(), &[b"new"])).error_code, 0);
    }
    broker.kill();
    broker.start();
    let mut client = broker.connect().expect("a connection");
    assert_eq!((client.offset("again", 0, -2).2, client.offset("again", 0, -1).2), (0, 2));
    assert_eq!(client.produce("again", 0, -1, batch(now_ms(), &[b"new"])).base_offset, 2);
}

/// With one partition of the offsets topic damaged, every group was looked for in another
/// partition than it was written to.
#[test]
fn groups_elsewhere_keep_their_offsets_when_one_offsets_partition_is_damaged() {
    let dir = tempfile::tempdir().expect("directory");
    let logs = dir.path().join("logs");
    let mut broker = Process::new(&logs, dir.path(), &SETTINGS);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    client.create("load", 1, &[]);
    find_coordinator(&mut client, "group-0").expect("an answer");
    for at in 0..20 {
        wait_for("the commit", || {
            (commit(&mut client, &group(at), "load", 5).expect("an answer") == 0).then_some(())
        });
    }
    let partitions = (0..5).map(|number| format!("__consumer_offsets-{number}"));
    let used: BTreeMap<_, _> = partitions
        .map(|name| (name.clone(), segments(&logs, &name).remove(0)))
        .filter(|(_, segment)| fs::metadata(segment).expect("a segment").len() > 0)
        .collect();
    assert!(used.len() > 1, "all groups in one partition");
    assert!(broker.stop());
    let (name, segment) = used.iter().next().expect("one");
    // Its head is not that of a batch any more.
    flip(segment, 16);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    let mut lost = 0;
    for at in 0..20 {
        wait_for("the group's offset", || {
            match committed(&mut client, &group(at), "load").expect("an answer") {
                Ok(offset) => {
                    assert_eq!(offset, 5, "group {at}, damaged {name}");
                    Some(())
                }
                Err(14) => None,
                Err(code) => {
                    assert!(NOT_YET.contains(&code), "group {at}: error {code}");
                    lost += 1;
                    Some(())
                }
            }
        });
    }
    assert!((1..20).contains(&lost), "{lost} of 20 groups have no coordinator");
}
