//! Faults that users met in other brokers, of the protocol itself: each test states the right
//! value and names the report.

mod support;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::Decodable;
use std::io::Read;
use support::*;

/// franz-go#1022: a newer client could not connect at all.
#[test]
fn api_versions_of_an_unknown_version_is_answered_in_version_0_on_an_open_connection() {
    let broker = Broker::start();
    let mut client = broker.client();
    let mut frame = BytesMut::new();
    frame.put_i16(18);
    frame.put_i16(99);
    frame.put_i32(7);
    frame.put_i16(-1);
    frame.put_u8(0);
    frame.put_slice(b"junk");
    client.write(&u32::try_from(frame.len()).expect("small").to_be_bytes());
    client.write(&frame);
    let mut answer = client.read_frame().expect("an answer");
    assert_eq!(i32::from_be_bytes(answer[..4].try_into().expect("four")), 7);
    let mut body = answer.split_off(4);
    let answer = ApiVersionsResponse::decode(&mut body, 0).expect("version 0");
    assert_eq!(answer.error_code, 35);
    let own = &answer.api_keys[0];
    assert_eq!((own.api_key, own.min_version, own.max_version), (18, 0, 4));
    let request = ApiVersionsRequest::default()
        .with_client_software_name(text("test"))
        .with_client_software_version(text("1.0"));
    let answer: ApiVersionsResponse = client.ask(ApiKey::ApiVersions, 3, &request);
    assert_eq!(answer.error_code, 0);
    let range = |key: ApiKey| {
        let row = answer.api_keys.iter().find(|row| row.api_key == key as i16).expect("offered");
        (row.min_version, row.max_version)
    };
    assert_eq!(range(ApiKey::Produce), (0, 13));
    assert_eq!(range(ApiKey::Fetch), (4, 18));
    // What is not built is not offered.
    for key in [ApiKey::ConsumerGroupHeartbeat, ApiKey::ShareFetch, ApiKey::AddPartitionsToTxn] {
        assert!(answer.api_keys.iter().all(|row| row.api_key != key as i16), "{key:?}");
    }
}

#[test]
fn other_unknown_versions_and_keys_close_the_connection_and_no_other() {
    let broker = Broker::start();
    let mut bystander = broker.client();
    for (key, version) in [(0i16, 2i16), (0, 99), (1, 3), (1, -1), (3, 99), (68, 1), (999, 0)] {
        let mut client = broker.client();
        let mut frame = BytesMut::new();
        frame.put_i32(10);
        frame.put_i16(key);
        frame.put_i16(version);
        frame.put_i32(1);
        frame.put_i16(-1);
        client.write(&frame);
        assert!(client.is_closed(), "key {key} version {version}");
    }
    assert_eq!(bystander.create("still-served", 1, &[]), 0);
}

/// kop#274: describing a topic that does not exist made it.
#[test]
fn a_topic_is_made_only_where_broker_and_client_both_allow_it() {
    let ask = |client: &mut Client, name: Option<&str>, allow: bool| {
        let topic = |name| MetadataRequestTopic::default().with_name(Some(topic_name(name)));
        let request = MetadataRequest::default()
            .with_topics(name.map(|name| vec![topic(name)]))
            .with_allow_auto_topic_creation(allow);
        let answer: MetadataResponse = client.ask(ApiKey::Metadata, 9, &request);
        let names = answer.topics.iter().map(|row| {
            (row.name.as_ref().expect("named").to_string(), row.error_code, row.partitions.len())
        });
        names.collect::<Vec<_>>()
    };
    let broker = Broker::start();
    let mut client = broker.client();
    assert_eq!(ask(&mut client, Some("nope"), false), [("nope".to_owned(), 3, 0)]);
    assert_eq!(ask(&mut client, Some("a b"), true), [("a b".to_owned(), 17, 0)]);
    assert_eq!(ask(&mut client, None, true), []);
    assert_eq!(ask(&mut client, Some("yes"), true), [("yes".to_owned(), 3, 0)]);
    wait_for("the topic", || {
        (ask(&mut client, Some("yes"), true) == [("yes".to_owned(), 0, 1)]).then_some(())
    });
    let closed = Broker::with(&[("auto.create.topics.enable", "false")]);
    let mut client = closed.client();
    assert_eq!(ask(&mut client, Some("nope"), true), [("nope".to_owned(), 3, 0)]);
    assert_eq!(ask(&mut client, None, true), []);
}

/// However many a client names at once, they are made; some only when it asks again.
#[test]
fn many_topics_named_at_once_are_made_by_and_by() {
    let broker = Broker::start();
    let mut client = broker.client();
    let topic = |number| {
        MetadataRequestTopic::default().with_name(Some(topic_name(&format!("named-{number}"))))
    };
    let request = MetadataRequest::default()
        .with_topics(Some((0..250).map(topic).collect()))
        .with_allow_auto_topic_creation(true);
    wait_for("all of them", || {
        let answer: MetadataResponse = client.ask(ApiKey::Metadata, 9, &request);
        assert!(answer.topics.iter().all(|row| [0, 3].contains(&row.error_code)));
        answer.topics.iter().all(|row| row.error_code == 0).then_some(())
    });
}

/// redpanda#1532: a record larger than the consumer's limits was never delivered.
#[test]
fn the_first_batch_is_sent_whole_however_small_the_limits() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("large", 2, &[]);
    let large = batch(now_ms(), &[&[7; 500_000]]);
    for partition in 0..2 {
        assert_eq!(client.produce("large", partition, -1, large.clone()).error_code, 0);
    }
    let request = fetch_request(&[("large", 0, 0), ("large", 1, 0)], 1_000, 1_000);
    let answer: FetchResponse = client.ask(ApiKey::Fetch, 11, &request);
    let rows = &answer.responses[0].partitions;
    let sizes: Vec<_> = rows.iter().map(|row| row.records.as_ref().map_or(0, Bytes::len)).collect();
    assert_eq!(sizes, [large.len(), 0]);
    assert_eq!((rows[1].error_code, rows[1].high_watermark), (0, 1));
}

/// kafkajs#1643: TLS on a plaintext port looked like a message of 369 MB.
#[test]
fn tls_and_http_on_the_port_are_closed_at_once() {
    let broker = Broker::start();
    let mut bystander = broker.client();
    for bytes in
        [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"GET / HTTP/1.1\r\n\r\n", b"\x7f\xff\xff\xff"]
    {
        for _ in 0..200 {
            let mut client = broker.client();
            client.write(bytes);
            assert!(client.is_closed());
        }
    }
    assert_eq!(bystander.create("still-served", 1, &[]), 0);
}

#[test]
fn requests_of_a_connection_are_answered_in_order_however_they_are_mixed() {
    let broker = Broker::start();
    let mut client = broker.client();
    client.create("mixed", 1, &[]);
    let mut all = Vec::new();
    for number in 0..20 {
        let value = format!("value {number}");
        let request = produce_request("mixed", 0, -1, batch(now_ms(), &[value.as_bytes()]));
        all.extend_from_slice(&client.frame(ApiKey::Produce, 9, &request));
        if number % 3 == 0 {
            let request = MetadataRequest::default().with_topics(Some(Vec::new()));
            all.extend_from_slice(&client.frame(ApiKey::Metadata, 9, &request));
        }
    }
    client.write(&all);
    for number in 0..20 {
        let answer: ProduceResponse = client.receive(ApiKey::Produce, 9);
        assert_eq!(answer.responses[0].partition_responses[0].base_offset, number);
        if number % 3 == 0 {
            let _: MetadataResponse = client.receive(ApiKey::Metadata, 9);
        }
    }
}

#[test]
fn a_long_poll_ends_when_a_record_arrives_or_the_broker_stops() {
    let mut broker = Broker::start();
    let mut client = broker.client();
    client.create("poll", 1, &[]);
    let waiting = fetch_request(&[("poll", 0, 0)], 1 << 20, 1 << 20)
        .with_max_wait_ms(60_000)
        .with_min_bytes(1);
    let mut consumer = broker.client();
    consumer.send(ApiKey::Fetch, 12, &waiting);
    assert_eq!(client.produce("poll", 0, 1, batch(now_ms(), &[b"x"])).error_code, 0);
    let answer: FetchResponse = consumer.receive(ApiKey::Fetch, 12);
    assert!(answer.responses[0].partitions[0].records.as_ref().is_some_and(|r| !r.is_empty()));
    let at_end = fetch_request(&[("poll", 0, 1)], 1 << 20, 1 << 20)
        .with_max_wait_ms(60_000)
        .with_min_bytes(1);
    consumer.send(ApiKey::Fetch, 12, &at_end);
    wait_for("the second fetch", || {
        let name = "kafka_server_brokertopicmetrics_totalfetchrequests_total{topic=\"poll\"}";
        (broker.metric(name) >= 2.0).then_some(())
    });
    broker.stop();
    let answer: FetchResponse = consumer.receive(ApiKey::Fetch, 12);
    assert_eq!(answer.error_code, 0);
}

#[test]
fn clients_are_told_the_endpoint_of_the_listener_they_came_through() {
    let mut broker = Broker::with(&[
        ("listeners", "INSIDE://127.0.0.1:0,OUTSIDE://[::1]:0"),
        ("listener.security.protocol.map", "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"),
        ("inter.broker.listener.name", "INSIDE"),
        ("advertised.listeners", "INSIDE://127.0.0.1:0,OUTSIDE://broker.example:9999"),
    ]);
    let ports = broker.ports();
    let ask = |address: String| {
        let mut client = Client::connect(&address);
        let request = MetadataRequest::default().with_topics(Some(Vec::new()));
        let answer: MetadataResponse = client.ask(ApiKey::Metadata, 9, &request);
        let row = &answer.brokers[0];
        (row.host.to_string(), row.port)
    };
    let inside = i32::from(ports[0]);
    assert_eq!(ask(format!("127.0.0.1:{}", ports[0])), ("127.0.0.1".to_owned(), inside));
    assert_eq!(ask(format!("[::1]:{}", ports[1])), ("broker.example".to_owned(), 9999));
    broker.stop();
}

/// A reader that was slow, but read, was closed in the middle of every large answer.
#[test]
fn who_reads_slowly_gets_the_whole_answer() {
    let broker = Broker::with(&[("connections.max.idle.ms", "300")]);
    let mut client = broker.client();
    client.create("large", 1, &[]);
    for _ in 0..16 {
        let large = batch(now_ms(), &[&[1; 1_000_000]]);
        assert_eq!(client.produce("large", 0, -1, large).error_code, 0);
    }
    let mut slow = broker.client();
    let request = fetch_request(&[("large", 0, 0)], 1 << 25, 1 << 25);
    slow.send(ApiKey::Fetch, 12, &request);
    let mut length = [0; 4];
    slow.stream.read_exact(&mut length).expect("an answer");
    let mut answer = vec![0; usize::try_from(i32::from_be_bytes(length)).expect("length")];
    assert!(answer.len() > 16_000_000);
    for piece in answer.chunks_mut(400_000) {
        slow.stream.read_exact(piece).expect("the next piece");
        std::thread::park_timeout(std::time::Duration::from_millis(40));
    }
}

#[test]
fn idle_connections_and_those_that_never_read_are_closed() {
    let broker = Broker::with(&[("connections.max.idle.ms", "300")]);
    let mut idle = broker.client();
    let mut deaf = broker.client();
    deaf.create("deaf", 1, &[]);
    let large = batch(now_ms(), &[&[1; 1_000_000]]);
    assert_eq!(deaf.produce("deaf", 0, -1, large).error_code, 0);
    // More answers than the sockets between hold, none of them read.
    let request = fetch_request(&[("deaf", 0, 0)], 1 << 24, 1 << 24);
    let frame = deaf.frame(ApiKey::Fetch, 12, &request);
    for _ in 0..40 {
        deaf.write(&frame);
    }
    assert!(idle.is_closed());
    let open = || broker.metric("kafka_server_socketservermetrics_connection_count");
    wait_for("the deaf connection to be closed", || (open() < 1.0).then_some(()));
}
