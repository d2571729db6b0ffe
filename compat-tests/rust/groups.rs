//! Faults that users met in other brokers, of groups: each test states the right value and names
//! the report. The rules themselves are scripts beside the machine; here they pass through sockets,
//! the log and a restart.

#![allow(clippy::disallowed_methods, reason = "tests have clocks of their own")]

mod support;

use bytes::Bytes;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::StrBytes;
use std::time::{Duration, Instant};
use support::*;

const NONE: i16 = 0;
const UNKNOWN_TOPIC: i16 = 3;
const ILLEGAL_GENERATION: i16 = 22;
const UNKNOWN_MEMBER: i16 = 25;
const REBALANCE: i16 = 27;
const INVALID_REQUEST: i16 = 42;
const MEMBER_ID_REQUIRED: i16 = 79;

fn group_id(id: &str) -> GroupId {
    GroupId(text(id))
}

/// Finds the coordinator, which makes the offsets topic.
fn ready(broker: &Broker) -> Client {
    let mut client = broker.client();
    let request = FindCoordinatorRequest::default().with_key(text("any"));
    let answer: FindCoordinatorResponse = client.ask(ApiKey::FindCoordinator, 2, &request);
    assert_eq!(answer.error_code, NONE);
    wait_for("the coordinators", || {
        let listed: ListGroupsResponse =
            client.ask(ApiKey::ListGroups, 4, &ListGroupsRequest::default());
        (listed.error_code == NONE).then_some(())
    });
    client
}

fn join_request(group: &str, member: &StrBytes, session: i32, rebalance: i32) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(b"subscription"));
    JoinGroupRequest::default()
        .with_group_id(group_id(group))
        .with_session_timeout_ms(session)
        .with_rebalance_timeout_ms(rebalance)
        .with_member_id(member.clone())
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

fn sync(client: &mut Client, group: &str, joined: &JoinGroupResponse) -> SyncGroupResponse {
    let assignments = joined.members.iter().map(|member| {
        SyncGroupRequestAssignment::default()
            .with_member_id(member.member_id.clone())
            .with_assignment(Bytes::from_static(b"assignment"))
    });
    let request = SyncGroupRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id.clone())
        .with_assignments(assignments.collect());
    client.ask(ApiKey::SyncGroup, 3, &request)
}

/// A member with a connection of its own, in the group and stable.
struct Member {
    client: Client,
    id: StrBytes,
    generation: i32,
}

/// Waits until the member's heartbeat tells of a rebalance.
fn wait_for_rebalance(group: &str, member: &mut Member) {
    let request = HeartbeatRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(member.id.clone())
        .with_generation_id(member.generation);
    wait_for("the rebalance", || {
        let answer: HeartbeatResponse = member.client.ask(ApiKey::Heartbeat, 3, &request);
        assert!([NONE, REBALANCE].contains(&answer.error_code), "{}", answer.error_code);
        (answer.error_code == REBALANCE).then_some(())
    });
}

/// Takes members in one by one; the others join again when they hear of it.
fn join_stable(broker: &Broker, group: &str, count: usize, timeouts: (i32, i32)) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    for _ in 0..count {
        let mut client = broker.client();
        let request = join_request(group, &text(""), timeouts.0, timeouts.1);
        let answer: JoinGroupResponse = client.ask(ApiKey::JoinGroup, 5, &request);
        assert_eq!(answer.error_code, MEMBER_ID_REQUIRED);
        let request = join_request(group, &answer.member_id, timeouts.0, timeouts.1);
        client.send(ApiKey::JoinGroup, 5, &request);
        for member in &mut members {
            wait_for_rebalance(group, member);
            let request = join_request(group, &member.id, timeouts.0, timeouts.1);
            member.client.send(ApiKey::JoinGroup, 5, &request);
        }
        members.push(Member { client, id: answer.member_id, generation: 0 });
        assign(group, &mut members);
    }
    members
}

/// Every member has asked to join: takes the answers, and the leader assigns.
fn assign(group: &str, members: &mut [Member]) {
    let mut joined: Vec<JoinGroupResponse> = Vec::new();
    for member in members.iter_mut() {
        let answer: JoinGroupResponse = member.client.receive(ApiKey::JoinGroup, 5);
        assert_eq!(answer.error_code, NONE);
        member.generation = answer.generation_id;
        joined.push(answer);
    }
    let leader = joined.iter().position(|answer| answer.leader == answer.member_id);
    let leader = leader.expect("one leads");
    assert_eq!(joined[leader].members.len(), members.len());
    assert_eq!(sync(&mut members[leader].client, group, &joined[leader]).error_code, NONE);
    for (at, member) in members.iter_mut().enumerate().filter(|(at, _)| *at != leader) {
        let answer = sync(&mut member.client, group, &joined[at]);
        assert_eq!((answer.error_code, &answer.assignment[..]), (NONE, &b"assignment"[..]));
    }
}

/// kop#380, redpanda#3300: leaving in a rebalance froze the others for half a minute.
#[test]
fn a_leave_or_a_crash_in_a_rebalance_completes_it() {
    let broker = Broker::with(&[("group.min.session.timeout.ms", "100")]);
    ready(&broker);
    for crash in [false, true] {
        let group = if crash { "crash" } else { "leave" };
        let timeouts = (3_000, 60_000);
        let mut members = join_stable(&broker, group, 2, timeouts);
        let mut newcomer = broker.client();
        let request = join_request(group, &text(""), timeouts.0, timeouts.1);
        let answer: JoinGroupResponse = newcomer.ask(ApiKey::JoinGroup, 5, &request);
        let request = join_request(group, &answer.member_id, timeouts.0, timeouts.1);
        newcomer.send(ApiKey::JoinGroup, 5, &request);
        let mut gone = members.pop().expect("two");
        let mut staying = members.pop().expect("one");
        let began = Instant::now();
        wait_for_rebalance(group, &mut staying);
        let request = join_request(group, &staying.id, timeouts.0, timeouts.1);
        staying.client.send(ApiKey::JoinGroup, 5, &request);
        if !crash {
            let identity = MemberIdentity::default().with_member_id(gone.id.clone());
            let request = LeaveGroupRequest::default()
                .with_group_id(group_id(group))
                .with_members(vec![identity]);
            let answer: LeaveGroupResponse = gone.client.ask(ApiKey::LeaveGroup, 3, &request);
            assert_eq!((answer.error_code, answer.members[0].error_code), (NONE, NONE));
        }
        for client in [&mut staying.client, &mut newcomer] {
            let answer: JoinGroupResponse = client.receive(ApiKey::JoinGroup, 5);
            assert_eq!((answer.error_code, answer.generation_id), (NONE, staying.generation + 1));
        }
        // The rebalance timeout is a minute: neither may wait for it.
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        let request = HeartbeatRequest::default()
            .with_group_id(group_id(group))
            .with_member_id(gone.id.clone())
            .with_generation_id(staying.generation);
        let answer: HeartbeatResponse = gone.client.ask(ApiKey::Heartbeat, 3, &request);
        assert_eq!(answer.error_code, UNKNOWN_MEMBER);
    }
}

/// redpanda#1847, KAFKA-8653: with JoinGroup v0 every join threw the others out.
#[test]
fn old_joins_wait_as_long_as_the_session() {
    let broker = Broker::with(&[("group.min.session.timeout.ms", "100")]);
    ready(&broker);
    let mut first = broker.client();
    let joined: JoinGroupResponse =
        first.ask(ApiKey::JoinGroup, 0, &join_request("old", &text(""), 1_000, -1));
    assert_eq!((joined.error_code, joined.generation_id), (NONE, 1));
    let request = SyncGroupRequest::default()
        .with_group_id(group_id("old"))
        .with_generation_id(1)
        .with_member_id(joined.member_id.clone());
    let answer: SyncGroupResponse = first.ask(ApiKey::SyncGroup, 0, &request);
    assert_eq!(answer.error_code, NONE);
    let mut second = broker.client();
    second.send(ApiKey::JoinGroup, 0, &join_request("old", &text(""), 1_000, -1));
    // The first learns of it by its heartbeat, and has a second to come again.
    let beat = HeartbeatRequest::default()
        .with_group_id(group_id("old"))
        .with_generation_id(1)
        .with_member_id(joined.member_id.clone());
    wait_for("the rebalance", || {
        let answer: HeartbeatResponse = first.ask(ApiKey::Heartbeat, 0, &beat);
        (answer.error_code == REBALANCE).then_some(())
    });
    let again: JoinGroupResponse =
        first.ask(ApiKey::JoinGroup, 0, &join_request("old", &joined.member_id, 1_000, -1));
    let other: JoinGroupResponse = second.receive(ApiKey::JoinGroup, 0);
    assert_eq!((again.error_code, again.generation_id), (NONE, 2));
    assert_eq!((other.error_code, other.generation_id), (NONE, 2));
    for (client, joined) in [(&mut first, &again), (&mut second, &other)] {
        let mut request = SyncGroupRequest::default()
            .with_group_id(group_id("old"))
            .with_generation_id(2)
            .with_member_id(joined.member_id.clone());
        if joined.leader == joined.member_id {
            let all = joined.members.iter().map(|member| {
                SyncGroupRequestAssignment::default().with_member_id(member.member_id.clone())
            });
            request = request.with_assignments(all.collect());
        }
        client.send(ApiKey::SyncGroup, 0, &request);
    }
    for client in [&mut first, &mut second] {
        let answer: SyncGroupResponse = client.receive(ApiKey::SyncGroup, 0);
        assert_eq!(answer.error_code, NONE);
    }
    // Six sessions long nothing moves, as long as both are heard of.
    let until = Instant::now() + Duration::from_secs(6);
    while Instant::now() < until {
        for (client, joined) in [(&mut first, &again), (&mut second, &other)] {
            let beat = HeartbeatRequest::default()
                .with_group_id(group_id("old"))
                .with_generation_id(2)
                .with_member_id(joined.member_id.clone());
            let answer: HeartbeatResponse = client.ask(ApiKey::Heartbeat, 0, &beat);
            assert_eq!(answer.error_code, NONE);
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

fn commit(
    client: &mut Client,
    group: &str,
    generation: i32,
    rows: &[(&str, i32, i64)],
) -> Vec<(String, i32, i16)> {
    let topics = rows.iter().map(|(topic, partition, offset)| {
        let row = OffsetCommitRequestPartition::default()
            .with_partition_index(*partition)
            .with_committed_offset(*offset)
            .with_committed_metadata(None);
        OffsetCommitRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![row])
    });
    let request = OffsetCommitRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id_or_member_epoch(generation)
        .with_topics(topics.collect());
    let answer: OffsetCommitResponse = client.ask(ApiKey::OffsetCommit, 8, &request);
    let rows = answer.topics.iter().flat_map(|topic| {
        let name = topic.name.to_string();
        topic.partitions.iter().map(move |row| (name.clone(), row.partition_index, row.error_code))
    });
    rows.collect()
}

/// All that a group has committed: (topic, partition, offset, metadata), or the error.
fn committed(client: &mut Client, group: &str) -> Result<Vec<(String, i32, i64, String)>, i16> {
    let request = OffsetFetchRequest::default().with_group_id(group_id(group)).with_topics(None);
    let answer: OffsetFetchResponse = client.ask(ApiKey::OffsetFetch, 7, &request);
    if answer.error_code != NONE {
        return Err(answer.error_code);
    }
    let rows = answer.topics.iter().flat_map(|topic| {
        let name = topic.name.to_string();
        topic.partitions.iter().map(move |row| {
            let metadata = row.metadata.as_ref().map(ToString::to_string).unwrap_or_default();
            (name.clone(), row.partition_index, row.committed_offset, metadata)
        })
    });
    Ok(rows.collect())
}

/// librdkafka#704: committing for a topic that does not exist looked fine.
#[test]
fn commits_for_what_does_not_exist_are_refused_by_row() {
    let broker = Broker::start();
    let mut client = ready(&broker);
    client.create("t", 1, &[]);
    let rows = commit(&mut client, "g", -1, &[("t", 0, 5), ("t", 7, 1), ("gone", 0, 9)]);
    let mut sorted = rows.clone();
    sorted.sort();
    let expected = [("gone", 0, UNKNOWN_TOPIC), ("t", 0, NONE), ("t", 7, UNKNOWN_TOPIC)];
    let expected = expected.map(|(topic, partition, code)| (topic.to_owned(), partition, code));
    assert_eq!(sorted, expected);
    // Those refused come first.
    assert_eq!(rows[0].2, UNKNOWN_TOPIC);
    let only = [("t".to_owned(), 0, 5, String::new())];
    assert_eq!(committed(&mut client, "g").expect("fetched"), only);
    assert_eq!(commit(&mut client, "g", 3, &[("t", 0, 6)])[0].2, UNKNOWN_MEMBER);
    assert_eq!(commit(&mut client, "unknown", 3, &[("t", 0, 6)])[0].2, ILLEGAL_GENERATION);
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name("t")])
        .with_timeout_ms(5_000);
    let _: DeleteTopicsResponse = client.ask(ApiKey::DeleteTopics, 5, &request);
    assert_eq!(commit(&mut client, "g", -1, &[("t", 0, 7)])[0].2, UNKNOWN_TOPIC);
    // kop#530: a topic made again is read from its beginning.
    client.create("t", 1, &[]);
    wait_for("the old offsets to go", || {
        committed(&mut client, "g").expect("fetched").is_empty().then_some(())
    });
}

/// AutoMQ#163, spring-kafka#435: after a restart a group began again from zero.
#[test]
fn groups_and_offsets_survive_a_restart_and_are_never_answered_before_they_are_loaded() {
    let mut broker = Broker::start();
    let mut client = ready(&broker);
    client.create("kept", 1, &[]);
    for number in 0..1_000 {
        let group = format!("group-{number}");
        assert_eq!(commit(&mut client, &group, -1, &[("kept", 0, 100 + number)])[0].2, NONE);
    }
    let members = join_stable(&broker, "stable", 2, (30_000, 30_000));
    broker.restart();
    let mut client = broker.client();
    for number in [0, 499, 999] {
        let group = format!("group-{number}");
        let rows = wait_for("the group to be loaded", || match committed(&mut client, &group) {
            Ok(rows) => Some(rows),
            Err(code) => {
                assert!([14, 15, 16].contains(&code), "{code}");
                None
            }
        });
        assert_eq!(rows, [("kept".to_owned(), 0, 100 + number, String::new())]);
    }
    let listed: ListGroupsResponse = wait_for("all groups", || {
        let listed: ListGroupsResponse =
            client.ask(ApiKey::ListGroups, 4, &ListGroupsRequest::default());
        (listed.error_code == NONE).then_some(listed)
    });
    assert_eq!(listed.groups.len(), 1_001);
    // Members go on as if nothing had happened.
    for member in &members {
        let request = HeartbeatRequest::default()
            .with_group_id(group_id("stable"))
            .with_member_id(member.id.clone())
            .with_generation_id(member.generation);
        let answer: HeartbeatResponse = client.ask(ApiKey::Heartbeat, 3, &request);
        assert_eq!(answer.error_code, NONE);
    }
    let request = DescribeGroupsRequest::default().with_groups(vec![group_id("stable")]);
    let answer: DescribeGroupsResponse = client.ask(ApiKey::DescribeGroups, 5, &request);
    let group = &answer.groups[0];
    assert_eq!((&*group.group_state, group.members.len()), ("Stable", 2));
    assert_eq!(&group.members[0].member_assignment[..], b"assignment");
}

#[test]
fn groups_are_deleted_when_nobody_is_in_them() {
    let broker = Broker::start();
    let mut client = ready(&broker);
    client.create("d", 1, &[]);
    commit(&mut client, "idle", -1, &[("d", 0, 1)]);
    let _members = join_stable(&broker, "busy", 1, (30_000, 30_000));
    let groups = ["idle", "busy", "none"].map(group_id).to_vec();
    let request = DeleteGroupsRequest::default().with_groups_names(groups);
    let answer: DeleteGroupsResponse = client.ask(ApiKey::DeleteGroups, 2, &request);
    let codes: Vec<_> = answer.results.iter().map(|row| row.error_code).collect();
    assert_eq!(codes, [NONE, 68, 69]);
    assert!(committed(&mut client, "idle").expect("fetched").is_empty());
}

/// Which partition keeps a group follows from their number: adding some lost every group's offsets.
#[test]
fn the_offsets_topic_keeps_its_number_of_partitions() {
    let broker = Broker::start();
    let mut client = ready(&broker);
    client.create("kept", 1, &[]);
    assert_eq!(commit(&mut client, "group", -1, &[("kept", 0, 7)])[0].2, NONE);
    let topic =
        CreatePartitionsTopic::default().with_name(topic_name("__consumer_offsets")).with_count(60);
    let request = CreatePartitionsRequest::default().with_topics(vec![topic]);
    let answer: CreatePartitionsResponse = client.ask(ApiKey::CreatePartitions, 3, &request);
    assert_eq!(answer.results[0].error_code, INVALID_REQUEST);
    let rows = committed(&mut client, "group").expect("fetched");
    assert_eq!(rows, [("kept".to_owned(), 0, 7, String::new())]);
}
