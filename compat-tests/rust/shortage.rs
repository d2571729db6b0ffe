//! A process that may open no more files: what was there goes on, nothing is half made, and all is
//! well once descriptors are back. In a process of its own, because the limit is the process's.

mod support;

use kafka_protocol::messages::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::sync::{Mutex, PoisonError};
use support::*;

static ALONE: Mutex<()> = Mutex::new(());

/// Lets the process open `more` files until it is dropped.
struct Limit(Rlimit);

impl Limit {
    fn to(more: usize) -> Self {
        let before = getrlimit(Resource::Nofile);
        let is_open = |number: &u64| fs::exists(format!("/proc/self/fd/{number}")).expect("known");
        let current = (0..).filter(|number| !is_open(number)).nth(more);
        setrlimit(Resource::Nofile, Rlimit { current, ..before }).expect("limit");
        Self(before)
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.0).expect("limit");
    }
}

fn directories(broker: &Broker, topic: &str) -> usize {
    let listed = fs::read_dir(broker.dir.path().join("logs")).expect("logs");
    let names = listed.map(|entry| entry.expect("entry").file_name());
    names.filter(|name| name.to_string_lossy().starts_with(topic)).count()
}

#[test]
fn a_segment_that_cannot_be_begun_costs_one_answer_and_not_the_directory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for flush in ["acks-all", "never"] {
        let broker = Broker::start();
        let mut client = broker.client();
        let configs = [("segment.bytes", "2000"), ("ottla.flush.before.ack", flush)];
        assert_eq!(client.create("rolls", 1, &configs), 0);
        let value = vec![7; 700];
        let mut put = || client.produce("rolls", 0, -1, batch(now_ms(), &[&value])).error_code;
        for _ in 0..5 {
            assert_eq!(put(), 0);
        }
        // A file that the broker held shortly may give its descriptor back: then once more.
        wait_for("a refusal", || {
            let _limit = Limit::to(0);
            let code = put();
            assert!([0, 56].contains(&code), "{code}");
            (code == 56).then_some(())
        });
        for _ in 0..5 {
            assert_eq!(put(), 0);
        }
        let (code, _, end) = client.offset("rolls", 0, -1);
        assert_eq!(code, 0);
        assert_eq!(client.fetch("rolls", 0, end - 1).error_code, 0);
    }
}

#[test]
fn a_topic_whose_partitions_do_not_all_open_is_taken_back() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = Broker::start();
    let mut client = broker.client();
    {
        let _limit = Limit::to(12);
        assert_eq!(client.create("half", 50, &[]), 56);
        let request = MetadataRequest::default().with_topics(None);
        let answer: MetadataResponse = client.ask(ApiKey::Metadata, 12, &request);
        assert!(answer.topics.is_empty(), "{answer:?}");
    }
    wait_for("removal", || (directories(&broker, "half-") == 0).then_some(()));
    assert_eq!(client.create("half", 50, &[]), 0);
    assert_eq!(client.produce("half", 49, -1, batch(now_ms(), &[b"x"])).error_code, 0);
}

#[test]
fn partitions_and_connections_leave_descriptors_for_the_logs() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // For good: the broker raises the limit to the hard one.
    let few = Some(4_096);
    setrlimit(Resource::Nofile, Rlimit { current: few, maximum: few }).expect("limit");
    let broker = Broker::start();
    let mut client = broker.client();
    assert_eq!(client.create("wide", 2_561, &[]), 37);
    assert_eq!(directories(&broker, "wide-"), 0);

    assert_eq!(client.create("rolls", 1, &[("segment.bytes", "2000")]), 0);
    // This process holds the other ends too.
    let mut crowd: Vec<Client> = (0..900).map(|_| broker.client()).collect();
    let value = vec![7; 1_500];
    for _ in 0..20 {
        let answer = client.produce("rolls", 0, -1, batch(now_ms(), &[&value]));
        assert_eq!(answer.error_code, 0);
    }
    // Who came last is served once there is room.
    let mut last = crowd.pop().expect("client");
    drop(crowd);
    assert_eq!(last.offset("rolls", 0, -1), (0, -1, 20));
}
