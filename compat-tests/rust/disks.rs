//! Disks that lose power and disks that are full, where this machine permits mounting them.
//! `ROUNDS` says how often the power goes; `REQUIRE_POWER_LOSS=1` and `REQUIRE_DISK_FULL=1` make
//! it a failure when a test cannot run.

mod chaos;
mod support;

use chaos::load::{Found, Load, STORAGE_ERROR};
use chaos::mounts::{Mount, permitted};
use chaos::process::{Process, commit, committed, delete, find_coordinator, try_ask};
use chaos::{Dice, times};
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::{
    ApiKey, CreatePartitionsRequest, CreatePartitionsResponse, DescribeLogDirsRequest,
    DescribeLogDirsResponse, ProduceResponse,
};
use std::collections::BTreeMap;
use std::path::Path;
use support::*;

const POWER_LOSS: &str = "REQUIRE_POWER_LOSS";
const DISK_FULL: &str = "REQUIRE_DISK_FULL";

/// A disk whose power can be cut here, tried out.
fn frail_disk(dir: &Path) -> Option<Mount> {
    let mut mount = permitted(POWER_LOSS, Mount::ext4(dir, 256))?;
    std::fs::write(mount.path.join("unsynced"), [1; 100_000]).expect("write");
    permitted(POWER_LOSS, mount.cut_power())?;
    mount.restore();
    let there = mount.path.join("unsynced").exists();
    assert!(!there, "what was not synced survived: this cuts no power");
    Some(mount)
}

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    let dir = tempfile::tempdir().expect("directory");
    let Some(mut mount) = frail_disk(dir.path()) else { return };
    let settings = [
        ("log.segment.bytes", "40000"),
        ("log.flush.offset.checkpoint.interval.ms", "50"),
        ("offsets.topic.num.partitions", "3"),
    ];
    let mut broker = Process::new(&mount.path.join("logs"), dir.path(), &settings);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    assert_eq!(client.create("load", 1, &[]), 0);
    find_coordinator(&mut client, "group").expect("an answer");
    // The producers go on over every loss, and send again what was not answered.
    let load = Load::start(broker.port, "load", 2, 300);
    let mut dice = Dice(times("SEED", 11));
    for round in 0..times("ROUNDS", 2) {
        let offset = i64::try_from(round).expect("small");
        wait_for("a commit", || {
            let mut client = broker.connect()?;
            (commit(&mut client, "group", "load", offset).ok()? == 0).then_some(())
        });
        let topic = format!("made-{round}");
        let mut client = broker.connect().expect("a connection");
        assert_eq!(client.create(&topic, 1, &[]), 0);
        assert_eq!(client.produce(&topic, 0, -1, batch(now_ms(), &[b"x"])).error_code, 0);
        load.wait_for(1 + dice.below(80));
        // A sync that meets the shutdown of ext4 half-way can succeed although it did nothing,
        // which no loss of power could make it do.
        broker.pause();
        mount.cut_power().expect("power cut");
        let acknowledged = load.acknowledgements();
        broker.kill();
        mount.restore();
        broker.start();
        let mut client = broker.connect().expect("a connection");
        let found = Found::read(&mut client, "load", 0);
        assert_eq!(found.missing(&acknowledged), [], "round {round}");
        assert_eq!(client.offset(&topic, 0, -1).2, 1, "round {round}");
        wait_for("the group's offset", || match committed(&mut client, "group", "load") {
            Ok(Ok(found)) => {
                assert_eq!(found, offset, "round {round}");
                Some(())
            }
            Ok(Err(code)) => {
                assert!([14, 15, 16].contains(&code), "error {code}");
                None
            }
            Err(error) => panic!("{error}"),
        });
    }
    let acknowledged = load.finish();
    let mut client = broker.connect().expect("a connection");
    assert_eq!(Found::read(&mut client, "load", 0).missing(&acknowledged), []);
    assert!(broker.stop(), "a clean stop");
}

/// The same without flushing must show a loss, or the test above proves nothing.
#[test]
fn without_flushing_the_loss_of_power_shows() {
    let dir = tempfile::tempdir().expect("directory");
    let Some(mut mount) = frail_disk(dir.path()) else { return };
    let settings = [("ottla.flush.before.ack", "never")];
    let mut broker = Process::new(&mount.path.join("logs"), dir.path(), &settings);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    assert_eq!(client.create("load", 1, &[]), 0);
    let load = Load::start(broker.port, "load", 2, 300);
    load.wait_for(50);
    mount.cut_power().expect("power cut");
    broker.kill();
    let acknowledged = load.abandon();
    mount.restore();
    broker.start();
    let mut client = broker.connect().expect("a connection");
    let missing = Found::read(&mut client, "load", 0).missing(&acknowledged);
    assert!(!missing.is_empty(), "everything survived without a sync");
}

/// Produces until the broker refuses; gives how many were taken.
fn fill(client: &mut Client, topic: &str) -> i64 {
    let mut taken = 0;
    loop {
        let mut value = taken.to_string().into_bytes();
        value.resize(100_000, b'.');
        let answer = client.produce(topic, 0, -1, batch(now_ms(), &[&value]));
        match answer.error_code {
            0 => assert_eq!(answer.base_offset, taken),
            STORAGE_ERROR => return taken,
            code => panic!("error {code}"),
        }
        taken += 1;
        assert!(taken < 5_000, "the disk is never full");
    }
}

/// Everything that was taken can be read.
fn read_back(client: &mut Client, topic: &str, taken: i64) {
    assert_eq!(client.offset(topic, 0, -1).2, taken);
    for offset in 0..taken {
        let row = client.fetch(topic, 0, offset);
        assert_eq!(row.error_code, 0, "at {offset}");
        let mut records = row.records.expect("records");
        let first = kafka_protocol::records::RecordBatchDecoder::decode(&mut records);
        let value = first.expect("a sound batch").records[0].value.clone().expect("a value");
        assert!(value.starts_with(format!("{offset}.").as_bytes()), "at {offset}");
    }
}

fn resume(broker: &Process, topic: &str, taken: i64) {
    let answer = wait_for("space to be noticed", || {
        let answer = broker.connect()?.produce(topic, 0, -1, batch(now_ms(), &[b"back"]));
        (answer.error_code == 0).then_some(answer)
    });
    assert_eq!(answer.base_offset, taken);
}

/// operate-first/apps#676, strimzi#7484.
#[test]
fn a_full_disk_refuses_producers_serves_readers_and_heals() {
    for reserve in ["0", "3000000"] {
        let dir = tempfile::tempdir().expect("directory");
        let Some(mount) = permitted(DISK_FULL, Mount::tmpfs(dir.path(), 32)) else { return };
        let settings = [
            ("ottla.log.dir.reserve", reserve),
            ("log.segment.bytes", "1000000"),
            ("offsets.topic.num.partitions", "1"),
        ];
        let mut broker = Process::new(&mount.path.join("logs"), dir.path(), &settings);
        broker.start();
        let mut client = broker.connect().expect("a connection");
        client.create("full", 1, &[]);
        client.create("ballast", 1, &[]);
        find_coordinator(&mut client, "group").expect("an answer");
        for _ in 0..50 {
            client.produce("ballast", 0, -1, batch(now_ms(), &[&[1; 100_000]]));
        }
        let taken = fill(&mut client, "full");
        assert!(taken > 50, "{taken}");
        read_back(&mut client, "full", taken);
        broker.assert_running();
        if reserve != "0" {
            // The reserve is for what must go on.
            wait_for("the commit", || {
                (commit(&mut client, "group", "full", 7).expect("an answer") == 0).then_some(())
            });
            assert_eq!(committed(&mut client, "group", "full").expect("an answer"), Ok(7));
        }
        // It stops, and starts, and serves on a full disk.
        broker.stop();
        broker.start();
        let mut client = broker.connect().expect("a connection");
        read_back(&mut client, "full", taken);
        broker.kill();
        broker.start();
        let mut client = broker.connect().expect("a connection");
        read_back(&mut client, "full", taken);
        assert_eq!(fill_none(&mut client, "full"), STORAGE_ERROR);
        // What is deleted makes room.
        delete(&mut client, "ballast");
        resume(&broker, "full", taken);
        let more = 1 + fill_more(&mut client, "full", taken + 1);
        let brim = fill_to_the_brim(&mount.path);
        let refused = (0..50).any(|n| client.create(&format!("more-{n}"), 1, &[]) != 0);
        assert!(refused, "topics on a full disk");
        std::fs::remove_file(brim).expect("removed");
        mount.enlarge(48);
        assert_eq!(client.create("again", 1, &[]), 0);
        resume(&broker, "full", taken + more);
        broker.assert_running();
        assert!(broker.stop(), "a clean stop");
        broker.start();
        let mut client = broker.connect().expect("a connection");
        assert_eq!(client.offset("full", 0, -1).2, taken + more + 1);
    }
}

/// Leaves not a byte, so that whatever wants to write fails.
fn fill_to_the_brim(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("brim");
    let file = std::fs::File::create(&path).expect("a file");
    while std::io::Write::write_all(&mut &file, &[0; 4096]).is_ok() {}
    path
}

/// Retention begins a new segment where even the last one is too old. On a full disk that fails,
/// and it took the directory offline.
#[test]
fn retention_on_a_full_disk_takes_nothing_offline() {
    let dir = tempfile::tempdir().expect("directory");
    let Some(mount) = permitted(DISK_FULL, Mount::tmpfs(dir.path(), 16)) else { return };
    let settings = [
        ("ottla.log.dir.reserve", "0"),
        ("log.retention.check.interval.ms", "50"),
        ("log.initial.task.delay.ms", "0"),
    ];
    let mut broker = Process::new(&mount.path.join("logs"), dir.path(), &settings);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    client.create("kept", 1, &[]);
    client.create("aging", 1, &[("retention.ms", "1000")]);
    assert_eq!(client.produce("kept", 0, -1, batch(now_ms(), &[b"0."])).error_code, 0);
    assert_eq!(client.produce("aging", 0, -1, batch(now_ms(), &[b"old"])).error_code, 0);
    let brim = fill_to_the_brim(&mount.path);
    wait_for("retention to fail", || broker.printed().contains("disk full").then_some(()));
    read_back(&mut client, "kept", 1);
    std::fs::remove_file(brim).expect("removed");
    wait_for("retention", || (client.offset("aging", 0, -2).2 == 1).then_some(()));
    resume(&broker, "kept", 1);
}

/// A broker on a small disk.
fn on_a_small_disk(dir: &Path, mount: &Mount) -> (Process, Client) {
    let settings = [
        ("ottla.log.dir.reserve", "0"),
        // Only checkpoints that something else than time asks for.
        ("log.flush.offset.checkpoint.interval.ms", "3600000"),
    ];
    let mut broker = Process::new(&mount.path.join("logs"), dir, &settings);
    broker.start();
    let client = broker.connect().expect("a connection");
    (broker, client)
}

/// Has the metadata store grow and need less, so that it can change a little on a full disk.
fn give_the_store_room(client: &mut Client) {
    let names: Vec<_> = (0..40).map(|round| format!("gone-{round}")).collect();
    for name in &names {
        assert_eq!(client.create(name, 1, &[]), 0);
    }
    names.iter().for_each(|name| delete(client, name));
}

/// On a full disk the checkpoints kept what they said of a deleted topic, and it held for the next
/// one of that name: acknowledged records were out of reach, or the partition offline.
#[test]
fn a_topic_made_again_after_a_full_disk_inherits_nothing() {
    let dir = tempfile::tempdir().expect("directory");
    let Some(mount) = permitted(DISK_FULL, Mount::tmpfs(dir.path(), 16)) else { return };
    let (mut broker, mut client) = on_a_small_disk(dir.path(), &mount);
    assert_eq!(client.create("again", 1, &[]), 0);
    for _ in 0..10 {
        assert_eq!(put(&mut client, "again"), 0);
    }
    // A clean stop writes the checkpoints.
    assert!(broker.stop());
    broker.start();
    let mut client = broker.connect().expect("a connection");
    give_the_store_room(&mut client);
    let brim = fill_to_the_brim(&mount.path);
    delete(&mut client, "again");
    assert!(broker.printed().contains("checkpoints not written"), "{}", broker.printed());
    std::fs::remove_file(brim).expect("removed");
    assert_eq!(client.create("again", 1, &[]), 0);
    wait_for("space to be noticed", || (put(&mut client, "again") == 0).then_some(()));
    broker.kill();
    broker.start();
    let mut client = broker.connect().expect("a connection");
    assert_eq!(client.offset("again", 0, -2), (0, -1, 0));
    assert_eq!(client.offset("again", 0, -1), (0, -1, 1));
}

/// Partitions that were added on a full disk stayed offline until a restart.
#[test]
fn partitions_that_found_no_room_are_there_when_there_is_some() {
    let dir = tempfile::tempdir().expect("directory");
    let Some(mount) = permitted(DISK_FULL, Mount::tmpfs(dir.path(), 16)) else { return };
    let (mut broker, mut client) = on_a_small_disk(dir.path(), &mount);
    assert_eq!(client.create("grown", 1, &[]), 0);
    give_the_store_room(&mut client);
    let brim = fill_to_the_brim(&mount.path);
    let topic = CreatePartitionsTopic::default().with_name(topic_name("grown")).with_count(3);
    let request = CreatePartitionsRequest::default()
        .with_topics(vec![topic.with_assignments(None)])
        .with_timeout_ms(5_000);
    let answer: CreatePartitionsResponse =
        try_ask(&mut client, ApiKey::CreatePartitions, 3, &request).expect("an answer");
    assert_eq!(answer.results[0].error_code, 0);
    assert_eq!(client.offset("grown", 2, -1).0, STORAGE_ERROR);
    std::fs::remove_file(brim).expect("removed");
    for partition in 0..3 {
        wait_for("the partition", || {
            let answer = client.produce("grown", partition, -1, batch(now_ms(), &[b"x"]));
            (answer.error_code == 0).then_some(())
        });
    }
    assert!(broker.stop(), "a clean stop");
    broker.start();
    let mut client = broker.connect().expect("a connection");
    for partition in 0..3 {
        assert_eq!(client.offset("grown", partition, -1), (0, -1, 1), "{partition}");
    }
    let identity = std::fs::read_to_string(mount.path.join("logs/grown-2/partition.metadata"));
    assert!(identity.expect("there").contains("topic_id: "));
}

fn fill_none(client: &mut Client, topic: &str) -> i16 {
    client.produce(topic, 0, -1, batch(now_ms(), &[&[1; 100_000]])).error_code
}

fn fill_more(client: &mut Client, topic: &str, from: i64) -> i64 {
    let mut next = from;
    loop {
        let answer = client.produce(topic, 0, -1, batch(now_ms(), &[&[1; 100_000]]));
        match answer.error_code {
            0 => next += 1,
            STORAGE_ERROR => return next - from,
            code => panic!("error {code}"),
        }
    }
}

/// Topics `one` and `two`, of one record each and each in a directory of its own; says which lies
/// on the mount, and which does not.
fn in_two_directories(client: &mut Client, on_mount: &Path) -> (&'static str, &'static str) {
    for topic in ["one", "two"] {
        assert_eq!(client.create(topic, 1, &[]), 0);
        assert_eq!(put(client, topic), 0);
    }
    if on_mount.join("one-0").exists() { ("one", "two") } else { ("two", "one") }
}

fn put(client: &mut Client, topic: &str) -> i16 {
    client.produce(topic, 0, -1, batch(now_ms(), &[b"x"])).error_code
}

/// One directory fails: what lies in it is out of reach and the rest goes on. A topic deleted
/// meanwhile does not come back with the directory.
#[test]
fn a_failed_directory_is_out_of_use_and_the_others_go_on() {
    let dir = tempfile::tempdir().expect("directory");
    let Some(mut mount) = frail_disk(dir.path()) else { return };
    let logs = [dir.path().join("logs"), mount.path.join("logs")];
    let both = format!("{},{}", logs[0].display(), logs[1].display());
    let mut broker = Process::new(Path::new(&both), dir.path(), &[]);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    let (ill, well) = in_two_directories(&mut client, &logs[1]);
    let states = |client: &mut Client| -> BTreeMap<String, i16> {
        let request = DescribeLogDirsRequest::default();
        let answer: DescribeLogDirsResponse =
            try_ask(client, ApiKey::DescribeLogDirs, 4, &request).expect("an answer");
        let rows = answer.results.iter().map(|row| (row.log_dir.to_string(), row.error_code));
        rows.collect()
    };
    assert!(states(&mut client).values().all(|code| *code == 0));
    mount.cut_power().expect("tried before");
    assert_eq!(put(&mut client, ill), STORAGE_ERROR);
    assert_eq!(client.fetch(ill, 0, 0).error_code, STORAGE_ERROR);
    assert_eq!(client.offset(ill, 0, -1).0, STORAGE_ERROR);
    for _ in 0..3 {
        assert_eq!(put(&mut client, well), 0);
    }
    assert_eq!(client.fetch(well, 0, 0).error_code, 0);
    let expected = logs.iter().zip([0, STORAGE_ERROR]);
    let expected = expected.map(|(dir, code)| (dir.display().to_string(), code)).collect();
    assert_eq!(states(&mut client), expected);
    // A partition that lies in it could be made again elsewhere, empty (KAFKA-16234).
    assert_eq!(client.create("new", 1, &[]), STORAGE_ERROR);
    delete(&mut client, ill);
    broker.stop();
    mount.restore();
    assert!(logs[1].join(format!("{ill}-0")).exists(), "what was deleted comes back with the disk");
    broker.start();
    assert!(!logs[1].join(format!("{ill}-0")).exists(), "{}", broker.printed());
    let mut client = broker.connect().expect("a connection");
    assert_eq!(client.offset(ill, 0, -1).0, 3);
    assert_eq!(client.offset(well, 0, -1), (0, -1, 4));
    assert_eq!(client.create(ill, 1, &[]), 0);
    assert_eq!(client.offset(ill, 0, -1), (0, -1, 0));
}

/// Writes that hang hold up those who wait for them, and nobody else.
#[test]
fn a_disk_that_hangs_holds_up_nobody_elses_partitions() {
    let dir = tempfile::tempdir().expect("directory");
    let Some(mount) = permitted(POWER_LOSS, Mount::ext4(dir.path(), 64)) else { return };
    let logs = [dir.path().join("logs"), mount.path.join("logs")];
    let both = format!("{},{}", logs[0].display(), logs[1].display());
    let mut broker = Process::new(Path::new(&both), dir.path(), &[]);
    broker.start();
    let mut client = broker.connect().expect("a connection");
    let (ill, well) = in_two_directories(&mut client, &logs[1]);
    let mut waiting: Vec<Client> =
        (0..12).map(|_| broker.connect().expect("a connection")).collect();
    let mut others: Vec<Client> = (0..4).map(|_| broker.connect().expect("a connection")).collect();
    {
        let Some(_frozen) = permitted(POWER_LOSS, mount.freeze()) else { return };
        for client in &mut waiting {
            let request = produce_request(ill, 0, -1, batch(now_ms(), &[b"x"]));
            client.send(ApiKey::Produce, 9, &request);
        }
        for _ in 0..5 {
            for client in &mut others {
                assert_eq!(put(client, well), 0);
                assert_eq!(client.fetch(well, 0, 0).error_code, 0);
            }
        }
        assert_eq!(broker.connect().expect("a connection").offset(well, 0, -1), (0, -1, 21));
    }
    for client in &mut waiting {
        let answer: ProduceResponse = client.receive(ApiKey::Produce, 9);
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    }
    assert!(broker.stop(), "a clean stop");
}
