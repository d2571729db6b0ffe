//! Faults that users met in other brokers, of records and logs: each test states the right value
//! and names the report.

mod support;

use bytes::Bytes;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::*;
use kafka_protocol::records::{Compression, RecordBatchDecoder};
use support::*;

const NONE: i16 = 0;
const OUT_OF_RANGE: i16 = 1;
const TOO_LARGE: i16 = 10;
const INVALID_TIMESTAMP: i16 = 32;
const STORAGE_ERROR: i16 = 56;
const OUT_OF_ORDER: i16 = 45;
const INVALID_RECORD: i16 = 87;

const EARLIEST: i64 = -2;
const LATEST: i64 = -1;

fn delete_records(client: &mut Client, topic: &str, to: i64) -> (i16, i64) {
    let row = DeleteRecordsPartition::default().with_partition_index(0).with_offset(to);
    let topic =
        DeleteRecordsTopic::default().with_name(topic_name(topic)).with_partitions(vec![row]);
    let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(5_000);
    let answer: DeleteRecordsResponse = client.ask(ApiKey::DeleteRecords, 2, &request);
    let row = &answer.topics[0].partitions[0];
    (row.error_code, row.low_watermark)
}

/// redpanda#1184 and #725: a new topic's end was 1, or −1.
#[test]
fn a_new_partition_begins_and_ends_at_0_and_restarts_add_nothing() {
    let mut broker = Broker::start();
    broker.client().create("new", 1, &[]);
    for _ in 0..3 {
        let mut client = broker.client();
        assert_eq!(client.offset("new", 0, EARLIEST), (NONE, -1, 0));
        assert_eq!(client.offset("new", 0, LATEST), (NONE, -1, 0));
        let row = client.fetch("new", 0, 0);
        assert_eq!((row.error_code, row.high_watermark, row.last_stable_offset), (NONE, 0, 0));
        assert_eq!(row.log_start_offset, 0);
        assert!(row.records.is_none_or(|records| records.is_empty()));
        broker.restart();
    }
    let appended = broker.client().produce("new", 0, -1, batch(now_ms(), &[b"x"]));
    assert_eq!((appended.error_code, appended.base_offset), (NONE, 0));
}

/// redpanda#4308, kop#334: the end offset came back where there is no record that late.
#[test]
fn times_are_found_or_there_is_no_offset() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("times", 1, &[]);
    assert_eq!(client.offset("times", 0, 5), (NONE, -1, -1));
    for time in [2, 4, 6, 8] {
        client.produce("times", 0, -1, batch(time, &[b"x"]));
    }
    let mut find = |time| {
        let (_, timestamp, offset) = client.offset("times", 0, time);
        (offset, timestamp)
    };
    let found = [1, 2, 3, 7, 8, 9].map(&mut find);
    assert_eq!(found, [(0, 2), (0, 2), (1, 4), (3, 8), (3, 8), (-1, -1)]);
    assert_eq!(find(-3), (3, 8));
    assert_eq!(delete_records(&mut client, "times", 2), (NONE, 2));
    assert_eq!(client.offset("times", 0, 1), (NONE, 6, 2));
}

/// redpanda#29189: the delivery report said CreateTime.
#[test]
fn log_append_time_is_stored_and_reported() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("append", 1, &[("message.timestamp.type", "LogAppendTime")]);
    client.create("create", 1, &[]);
    for codec in [Compression::None, Compression::Gzip] {
        let records: Vec<_> = (0..10).map(|at| record(at, 1, None, b"value")).collect();
        let before = now_ms();
        let appended = client.produce("append", 0, -1, encode(&records, codec));
        assert_eq!(appended.error_code, NONE);
        let time = appended.log_append_time_ms;
        assert!((before..=now_ms()).contains(&time), "{time}");
        let row = client.fetch("append", 0, appended.base_offset);
        let mut stored = row.records.expect("records");
        // The largest timestamp and the bit that says it holds for every record.
        assert_eq!(stored[35..43], time.to_be_bytes());
        assert_eq!(stored[22] & 8, 8);
        assert_eq!(RecordBatchDecoder::decode(&mut stored).expect("sealed").records.len(), 10);
        let plain = client.produce("create", 0, -1, encode(&records, codec));
        assert_eq!((plain.error_code, plain.log_append_time_ms), (NONE, -1));
    }
    assert_eq!(client.offset("create", 0, 1), (NONE, 1, 0));
    // The bit is the broker's to set: refused where its time counts, cleared where it does not.
    let mut own = encode(&[record(0, 7, None, b"value")], Compression::None).to_vec();
    own[22] |= 8;
    let sum = crc32c::crc32c(&own[21..]);
    own[17..21].copy_from_slice(&sum.to_be_bytes());
    let own = Bytes::from(own);
    assert_eq!(client.produce("append", 0, -1, own.clone()).error_code, INVALID_TIMESTAMP);
    let taken = client.produce("create", 0, -1, own);
    assert_eq!((taken.error_code, taken.log_append_time_ms), (NONE, -1));
    let stored = client.fetch("create", 0, taken.base_offset).records.expect("records");
    assert_eq!((stored[22] & 8, &stored[35..43]), (0, &7i64.to_be_bytes()[..]));
}

/// sarama#1045, redpanda PR 31362: which size is compared, and when.
#[test]
fn the_size_limit_counts_the_batch_as_it_is_stored() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("size", 1, &[("max.message.bytes", "10000")]);
    let zeros = encode(&[record(0, now_ms(), None, &[0; 100_000])], Compression::Gzip);
    assert!(zeros.len() < 1_000);
    assert_eq!(client.produce("size", 0, -1, zeros.clone()).error_code, NONE);
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    })
    .take(100_000)
    .collect();
    let noise = encode(&[record(0, now_ms(), None, &noise)], Compression::Gzip);
    assert_eq!(client.produce("size", 0, -1, noise).error_code, TOO_LARGE);
    assert_eq!(client.offset("size", 0, LATEST).2, 1);
    let exact = |size: usize| {
        let overhead = batch(now_ms(), &[&[1; 9_000]]).len() - 9_000;
        batch(now_ms(), &[&vec![1; size - overhead]])
    };
    assert_eq!(exact(10_000).len(), 10_000);
    assert_eq!(client.produce("size", 0, -1, exact(10_000)).error_code, NONE);
    assert_eq!(client.produce("size", 0, -1, exact(10_001)).error_code, TOO_LARGE);
    let plain = [("max.message.bytes", "10000"), ("compression.type", "uncompressed")];
    client.create("plain", 1, &plain);
    assert_eq!(client.produce("plain", 0, -1, zeros).error_code, TOO_LARGE);
    assert_eq!(client.offset("plain", 0, LATEST).2, 0);
}

/// redpanda#22670: a producer idle for ten minutes was refused.
#[test]
fn sequences_are_checked_repeats_known_and_idle_producers_forgotten() {
    let send = |sequence: i32, epoch: i16| {
        let mut record = record(0, now_ms(), None, b"x");
        (record.producer_id, record.producer_epoch, record.sequence) = (77, epoch, sequence);
        encode(&[record], Compression::None)
    };
    let mut broker = Broker::start();
    let mut client = broker.client();
    client.create("idle", 1, &[]);
    // A producer nobody knows may begin anywhere.
    assert_eq!(client.produce("idle", 0, -1, send(7, 0)).error_code, NONE);
    for sequence in 8..12 {
        assert_eq!(client.produce("idle", 0, -1, send(sequence, 0)).error_code, NONE);
    }
    assert_eq!(client.produce("idle", 0, -1, send(13, 0)).error_code, OUT_OF_ORDER);
    for restart in [false, true] {
        if restart {
            broker.restart();
            client = broker.client();
        }
        for (offset, sequence) in (0..).zip(7..12) {
            let again = client.produce("idle", 0, -1, send(sequence, 0));
            assert_eq!((again.error_code, again.base_offset), (NONE, offset), "{sequence}");
        }
    }
    assert_eq!(client.offset("idle", 0, LATEST).2, 5);
    assert_eq!(client.produce("idle", 0, -1, send(0, 1)).error_code, NONE);
    assert_eq!(client.produce("idle", 0, -1, send(12, 0)).error_code, 47);
    // Deleting its records does not make the broker forget the producer.
    assert_eq!(delete_records(&mut client, "idle", -1), (NONE, 6));
    assert_eq!(client.produce("idle", 0, -1, send(2, 1)).error_code, OUT_OF_ORDER);
    let next = client.produce("idle", 0, -1, send(1, 1));
    assert_eq!((next.error_code, next.base_offset), (NONE, 6));

    let quick =
        [("producer.id.expiration.ms", "200"), ("producer.id.expiration.check.interval.ms", "50")];
    let broker = Broker::with(&quick);
    let mut client = broker.client();
    client.create("idle", 1, &[]);
    assert_eq!(client.produce("idle", 0, -1, send(0, 0)).error_code, NONE);
    wait_for("the producer to be forgotten", || {
        (client.produce("idle", 0, -1, send(50, 0)).error_code == NONE).then_some(())
    });
}

/// KAFKA-6482, redpanda#11922: times far ahead kept data for ever.
#[test]
fn times_too_far_ahead_are_refused_and_size_retention_ignores_time() {
    let settings = [("log.retention.check.interval.ms", "50"), ("log.initial.task.delay.ms", "50")];
    let broker = Broker::with(&settings);
    let mut client = broker.client();
    client.create("default", 1, &[]);
    let micros = now_ms() * 1_000;
    let refused = client.produce("default", 0, -1, batch(micros, &[b"x"]));
    assert_eq!((refused.error_code, refused.record_errors.len()), (INVALID_TIMESTAMP, 1));
    let any = ("message.timestamp.after.max.ms", "9223372036854775807");
    client.create("size", 1, &[any, ("segment.bytes", "200"), ("retention.bytes", "1")]);
    client.create("time", 1, &[any, ("segment.bytes", "200"), ("retention.ms", "100")]);
    let broker_time = ("message.timestamp.type", "LogAppendTime");
    client.create("broker", 1, &[broker_time, ("segment.bytes", "200"), ("retention.ms", "100")]);
    for topic in ["size", "time", "broker"] {
        for _ in 0..5 {
            let appended = client.produce(topic, 0, -1, batch(micros, &[&[1; 60]]));
            assert_eq!(appended.error_code, NONE, "{topic}");
        }
    }
    wait_for("size retention", || (client.offset("size", 0, EARLIEST).2 >= 3).then_some(()));
    wait_for("time retention", || (client.offset("broker", 0, EARLIEST).2 == 5).then_some(()));
    assert_eq!(client.offset("time", 0, EARLIEST).2, 0);
}

#[test]
fn deleted_records_are_out_of_reach_and_the_end_stands() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("gone", 1, &[]);
    for _ in 0..4 {
        client.produce("gone", 0, -1, batch(now_ms(), &[b"a", b"b"]));
    }
    assert_eq!(delete_records(&mut client, "gone", 9), (OUT_OF_RANGE, -1));
    assert_eq!(delete_records(&mut client, "gone", 3), (NONE, 3));
    assert_eq!(delete_records(&mut client, "gone", 1), (NONE, 3));
    assert_eq!(client.fetch("gone", 0, 2).error_code, OUT_OF_RANGE);
    let row = client.fetch("gone", 0, 3);
    assert_eq!((row.error_code, row.log_start_offset), (NONE, 3));
    // A batch is never cut: the reader skips what is before its offset.
    let first = RecordBatchDecoder::decode(&mut row.records.expect("records")).expect("batch");
    assert_eq!(first.records[0].offset, 2);
    assert_eq!(delete_records(&mut client, "gone", -1), (NONE, 8));
    assert_eq!(client.offset("gone", 0, EARLIEST), (NONE, -1, 8));
    assert_eq!(client.produce("gone", 0, -1, batch(now_ms(), &[b"c"])).base_offset, 8);
}

#[test]
fn keyless_records_do_not_get_into_a_compacted_topic() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("keyed", 1, &[("cleanup.policy", "compact")]);
    let mixed = [record(0, now_ms(), Some("k"), b"a"), record(1, now_ms(), None, b"b")];
    for codec in [Compression::None, Compression::Gzip] {
        let refused = client.produce("keyed", 0, -1, encode(&mixed, codec));
        assert_eq!(refused.error_code, INVALID_RECORD);
        let blamed: Vec<_> = refused.record_errors.iter().map(|row| row.batch_index).collect();
        assert_eq!(blamed, [1]);
    }
    assert_eq!(client.offset("keyed", 0, LATEST).2, 0);
}

/// kcat#184 and Kafka since 3.7: a minimum above the number of replicas blocks nobody.
#[test]
fn acks_are_checked_and_the_minimum_is_capped_by_the_replicas() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("acks", 1, &[("min.insync.replicas", "2")]);
    assert_eq!(client.produce("acks", 0, -1, batch(now_ms(), &[b"x"])).error_code, NONE);
    assert_eq!(client.produce("acks", 0, 1, batch(now_ms(), &[b"x"])).error_code, NONE);
    assert_eq!(client.produce("acks", 0, 2, batch(now_ms(), &[b"x"])).error_code, 21);
    assert_eq!(client.produce("acks", 7, 1, batch(now_ms(), &[b"x"])).error_code, 3);
    let silent = produce_request("acks", 0, 0, batch(now_ms(), &[b"x"]));
    client.send(ApiKey::Produce, 9, &silent);
    // No answer comes to acks=0: the next answer is the next request's.
    wait_for("the third record", || (client.offset("acks", 0, LATEST).2 == 3).then_some(()));
    let lost = produce_request("acks", 9, 0, batch(now_ms(), &[b"x"]));
    client.send(ApiKey::Produce, 9, &lost);
    assert!(client.is_closed());
}

#[test]
fn damaged_and_lying_batches_are_refused_and_nothing_is_appended() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("lies", 1, &[]);
    let good = batch(now_ms(), &[b"a", b"b"]);
    let with = |at: usize, bytes: &[u8]| {
        let mut lie = good.to_vec();
        lie[at..at + bytes.len()].copy_from_slice(bytes);
        Bytes::from(lie)
    };
    // Kafka answers −1 to the third, where its own arithmetic overflows.
    let refused = [
        (with(70, b"\xff"), 2),
        (with(16, b"\x01"), INVALID_RECORD),
        (with(8, &i32::MAX.to_be_bytes()), INVALID_RECORD),
        (with(8, &(-1i32).to_be_bytes()), 2),
        (good.slice(..good.len() - 1), INVALID_RECORD),
        (good.slice(..20), INVALID_RECORD),
        (Bytes::new(), INVALID_RECORD),
        (Bytes::from([&good[..], &good[..]].concat()), INVALID_RECORD),
    ];
    for (number, (lie, code)) in refused.into_iter().enumerate() {
        assert_eq!(client.produce("lies", 0, -1, lie).error_code, code, "lie {number}");
    }
    assert_eq!(client.offset("lies", 0, LATEST).2, 0);
}

#[test]
fn a_leader_epoch_tells_where_it_ended() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("epochs", 1, &[]);
    client.produce("epochs", 0, -1, batch(now_ms(), &[b"a", b"b"]));
    let mut ask = |current: i32, asked: i32| {
        let row = OffsetForLeaderPartition::default()
            .with_partition(0)
            .with_current_leader_epoch(current)
            .with_leader_epoch(asked);
        let topic = OffsetForLeaderTopic::default()
            .with_topic(topic_name("epochs"))
            .with_partitions(vec![row]);
        let request = OffsetForLeaderEpochRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_topics(vec![topic]);
        let answer: OffsetForLeaderEpochResponse =
            client.ask(ApiKey::OffsetForLeaderEpoch, 4, &request);
        let row = &answer.topics[0].partitions[0];
        (row.error_code, row.leader_epoch, row.end_offset)
    };
    assert_eq!(ask(-1, 0), (NONE, 0, 2));
    assert_eq!(ask(0, 0), (NONE, 0, 2));
    assert_eq!(ask(-1, 5), (NONE, -1, -1));
    assert_eq!(ask(1, 0), (75, -1, -1));
}

/// A flush that met the directory of a topic just deleted took the whole log directory offline.
#[test]
fn deleting_topics_under_load_leaves_the_directory_in_service() {
    let settings = [("log.retention.check.interval.ms", "20"), ("log.initial.task.delay.ms", "0")];
    let broker = Broker::with(&settings);
    let mut client = broker.client();
    let mut reader = broker.client();
    for round in 0..30 {
        let name = format!("brief-{round}");
        assert_eq!(client.create(&name, 2, &[("segment.bytes", "300")]), NONE, "{name}");
        for _ in 0..20 {
            let request = produce_request(&name, 0, 1, batch(now_ms(), &[&[1; 100]]));
            client.send(ApiKey::Produce, 9, &request);
        }
        let poll = fetch_request(&[(&name, 0, 0), (&name, 1, 0)], 1 << 20, 1 << 20);
        reader.send(ApiKey::Fetch, 12, &poll.with_max_wait_ms(50).with_min_bytes(1 << 20));
        for _ in 0..20 {
            let _: ProduceResponse = client.receive(ApiKey::Produce, 9);
        }
        let request = DeleteTopicsRequest::default()
            .with_topic_names(vec![topic_name(&name)])
            .with_timeout_ms(5_000);
        let answer: DeleteTopicsResponse = client.ask(ApiKey::DeleteTopics, 5, &request);
        assert_eq!(answer.responses[0].error_code, NONE);
        let _: FetchResponse = reader.receive(ApiKey::Fetch, 12);
    }
    assert!(broker.page("/readyz").contains("200 OK"), "{}", broker.page("/readyz"));
    assert_eq!(client.create("after", 1, &[]), NONE);
}

#[test]
fn partitions_are_spread_over_the_log_directories_and_found_there_again() {
    let more = tempfile::tempdir().expect("directory");
    let dirs = ["one", "two", "three"].map(|name| more.path().join(name).display().to_string());
    let mut broker = Broker::with(&[("log.dirs", &dirs.join(","))]);
    let mut client = broker.client();
    client.create("spread", 9, &[]);
    let held = |dir: &String| {
        let names = std::fs::read_dir(dir).expect("list").map(|entry| entry.expect("entry"));
        names.filter(|entry| entry.file_name().to_string_lossy().starts_with("spread-")).count()
    };
    assert_eq!(dirs.each_ref().map(held), [3, 3, 3]);
    for partition in 0..9 {
        client.produce("spread", partition, -1, batch(now_ms(), &[b"x"]));
    }
    broker.restart();
    let mut client = broker.client();
    for partition in 0..9 {
        assert_eq!(client.offset("spread", partition, LATEST), (NONE, -1, 1), "{partition}");
    }
    assert_eq!(dirs.each_ref().map(held), [3, 3, 3]);
}

/// After a clean stop nobody removed them any more.
#[test]
fn segments_that_wait_to_be_removed_go_with_the_next_start() {
    let settings = [("log.retention.check.interval.ms", "20"), ("log.initial.task.delay.ms", "0")];
    let mut broker = Broker::with(&settings);
    let mut client = broker.client();
    client.create("old", 1, &[("segment.bytes", "200"), ("retention.bytes", "1")]);
    for _ in 0..6 {
        client.produce("old", 0, -1, batch(now_ms(), &[&[1; 100]]));
    }
    wait_for("retention", || (client.offset("old", 0, EARLIEST).2 >= 4).then_some(()));
    let directory = broker.dir.path().join("logs/old-0");
    let waiting = || {
        let entries = std::fs::read_dir(&directory).expect("list");
        let names = entries.map(|entry| entry.expect("entry").file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".deleted")).count()
    };
    assert!(waiting() > 0);
    broker.restart();
    assert_eq!(waiting(), 0);
}

/// A file that somebody removed took the whole log directory offline.
#[test]
fn a_missing_segment_hurts_nothing_but_what_was_in_it() {
    let mut broker = Broker::start();
    let mut client = broker.client();
    for topic in ["holed", "other"] {
        assert_eq!(client.create(topic, 1, &[("segment.bytes", "200")]), NONE);
        for _ in 0..6 {
            let appended = client.produce(topic, 0, -1, batch(now_ms(), &[&[1; 100]]));
            assert_eq!(appended.error_code, NONE);
        }
    }
    let segment = |base: i64| broker.dir.path().join(format!("logs/holed-0/{base:020}.log"));
    std::fs::remove_file(segment(2)).expect("a segment of one record");
    assert_eq!(client.fetch("holed", 0, 2).error_code, STORAGE_ERROR);
    for offset in [0, 1, 3, 5] {
        assert_eq!(client.fetch("holed", 0, offset).error_code, NONE, "{offset}");
    }
    assert_eq!(client.produce("holed", 0, -1, batch(now_ms(), &[b"x"])).error_code, NONE);
    assert_eq!(client.produce("other", 0, -1, batch(now_ms(), &[b"x"])).error_code, NONE);
    assert!(broker.page("/readyz").contains("200 OK"), "{}", broker.page("/readyz"));
    let behind = segment(4);
    broker.restart();
    let mut client = broker.client();
    assert_eq!(client.fetch("holed", 0, 0).error_code, STORAGE_ERROR);
    assert_eq!(client.fetch("other", 0, 2).error_code, NONE);
    assert!(behind.exists(), "what lies behind the hole was removed");
}

/// Bytes were counted when they were read, also for polls that then waited for more.
#[test]
fn bytes_are_counted_when_they_are_sent() {
    let broker = Broker::start();
    let (mut producer, mut consumer) = (broker.client(), broker.client());
    producer.create("counted", 1, &[]);
    let poll = fetch_request(&[("counted", 0, 0)], 1 << 20, 1 << 20);
    consumer.send(ApiKey::Fetch, 12, &poll.with_max_wait_ms(20_000).with_min_bytes(1_000));
    let mut sent = 0;
    while sent < 1_000 {
        let one = batch(now_ms(), &[&[1; 100]]);
        sent += one.len();
        assert_eq!(producer.produce("counted", 0, -1, one).error_code, NONE);
    }
    let _: FetchResponse = consumer.receive(ApiKey::Fetch, 12);
    let name = "kafka_server_brokertopicmetrics_bytesout_total{topic=\"counted\"}";
    assert_eq!(broker.metric(name), f64::from(u32::try_from(sent).expect("small")));
}

/// A digit that flipped in a checkpoint is no reason to remove what was acknowledged.
#[test]
fn a_start_behind_the_end_of_a_log_that_was_closed_removes_nothing() {
    let mut broker = Broker::start();
    let mut client = broker.client();
    assert_eq!(client.create("a", 1, &[]), 0);
    for _ in 0..5 {
        assert_eq!(client.produce("a", 0, -1, batch(now_ms(), &[b"x"])).error_code, 0);
    }
    let logs = broker.dir.path().join("logs");
    for wrong in ["900", "9223372036854775807", "-5"] {
        broker.stop();
        let starts = logs.join("log-start-offset-checkpoint");
        std::fs::write(&starts, format!("0\n1\na 0 {wrong}\n")).expect("written");
        broker.restart();
        let mut client = broker.client();
        let code = client.produce("a", 0, -1, batch(now_ms(), &[b"x"])).error_code;
        assert_eq!(code, if wrong == "900" { 56 } else { 0 }, "{wrong}");
        let size = std::fs::metadata(logs.join("a-0/00000000000000000000.log")).expect("there");
        assert!(size.len() > 300, "{wrong}");
        if wrong == "900" {
            broker.stop();
            std::fs::write(&starts, "0\n0\n").expect("written");
            broker.restart();
            assert_eq!(broker.client().offset("a", 0, -1), (0, -1, 5));
        }
    }
    assert_eq!(broker.client().offset("a", 0, -1), (0, -1, 7));
}
