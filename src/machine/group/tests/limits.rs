//! The bounds of `limits`, and work that is done in parts because of them.

use super::{Seen, World, config};
use crate::limits;
use crate::machine::group::codec::{encode_key, encode_value};
use crate::machine::group::*;
use crate::protocol::ErrorCode;
use crate::types::{LeaderEpoch, Offset, TopicPartition};

fn newcomer(ticket: Ticket) -> JoinGroup {
    JoinGroup {
        ticket,
        group: "g".into(),
        member_id: MemberId::default(),
        instance_id: None,
        client_id: "c".into(),
        client_host: "/h".into(),
        unique: ticket.0.to_string().into(),
        session_timeout: Duration::from_secs(10),
        rebalance_timeout: None,
        protocol_type: "consumer".into(),
        protocols: vec![Protocol { name: "range".into(), metadata: [][..].into() }],
        takes_member_id_first: true,
        can_skip_assignment: true,
    }
}

/// The answer to a newcomer whose join was changed a little.
fn join(world: &mut World, change: impl FnOnce(&mut JoinGroup)) -> ErrorCode {
    let mut join = newcomer(world.ticket());
    change(&mut join);
    let seen = world.event(|m, at, effects| m.handle_join_group(at, join, effects));
    match seen.as_slice() {
        [Seen::Replied(_, Response::JoinGroup(joined))] => joined.error,
        _more => panic!("a newcomer is answered at once"),
    }
}

#[test]
fn a_join_that_is_too_large_is_refused() {
    let mut world = World::new(config());
    let long: std::sync::Arc<str> = "x".repeat(limits::GROUP_TEXT_BYTES_MAX).into();
    let longer: std::sync::Arc<str> = "x".repeat(limits::GROUP_TEXT_BYTES_MAX + 1).into();
    let offer = |name: usize, bytes: usize| Protocol {
        name: name.to_string().into(),
        metadata: vec![0; bytes].into(),
    };
    let refused = ErrorCode::InvalidRequest;
    let taken = ErrorCode::MemberIdRequired;
    let most = limits::GROUP_PROTOCOLS_PER_MEMBER_MAX;
    let bytes = limits::GROUP_MEMBER_METADATA_BYTES_MAX;
    let offers = |count| (0..count).map(|name| offer(name, 0)).collect();
    assert_eq!(join(&mut world, |j| j.protocols = offers(most)), taken);
    assert_eq!(join(&mut world, |j| j.protocols = offers(most + 1)), refused);
    assert_eq!(join(&mut world, |j| j.protocols = vec![offer(0, bytes)]), taken);
    assert_eq!(join(&mut world, |j| j.protocols = vec![offer(0, bytes), offer(1, 1)]), refused);
    assert_eq!(join(&mut world, |j| j.group = long.clone()), taken);
    assert_eq!(join(&mut world, |j| j.group = longer.clone()), ErrorCode::InvalidGroupId);
    assert_eq!(join(&mut world, |j| j.protocol_type = longer.clone()), refused);
    // The member's id would be longer than its record can say.
    assert_eq!(join(&mut world, |j| j.client_id = long.clone()), refused);
    assert_eq!(join(&mut world, |j| j.instance_id = Some(long.clone())), refused);
    assert_eq!(join(&mut world, |j| j.instance_id = Some("".into())), refused);
}

#[test]
fn ids_given_out_are_bounded() {
    let mut world = World::new(config());
    let mut effects = Vec::new();
    for _ in 0..=limits::GROUP_MEMBERS_MAX {
        // Without the checks after each event, which would take their time.
        let join = newcomer(world.ticket());
        world.machine.handle_join_group(world.at, join, &mut effects);
    }
    let answers = effects.iter().map(|effect| match effect {
        Effect::Reply { response: Response::JoinGroup(joined), .. } => joined.error,
        other => panic!("{other:?}"),
    });
    let answers: Vec<_> = answers.collect();
    let (last, rest) = answers.split_last().unwrap();
    assert!(rest.iter().all(|error| *error == ErrorCode::MemberIdRequired));
    assert_eq!(*last, ErrorCode::GroupMaxSizeReached);
}

const OFFSETS: i32 = 2_500;

fn with_many_offsets() -> World {
    let mut world = World::new(config());
    let row = |index| OffsetToCommit {
        partition: TopicPartition::new("t", index),
        offset: Offset(1),
        leader_epoch: LeaderEpoch::UNKNOWN,
        metadata: None,
    };
    let commit = OffsetCommit {
        ticket: world.ticket(),
        group: "g".into(),
        member: MemberClaim {
            member_id: MemberId::default(),
            instance_id: None,
            generation: Generation::NONE,
        },
        retention: None,
        knows_group_id_not_found: true,
        rows: (0..OFFSETS).map(row).collect(),
    };
    world.event(|m, at, effects| m.handle_offset_commit(at, commit, effects));
    world
}

fn delete(world: &mut World) -> Vec<Seen> {
    let delete = DeleteGroup { ticket: world.ticket(), group: "g".into() };
    world.event(|m, at, effects| m.handle_delete_group(at, delete, effects))
}

#[test]
fn a_group_of_many_offsets_is_deleted_in_parts() {
    let mut world = with_many_offsets();
    let mut effects = Vec::new();
    let event = DeleteGroup { ticket: world.ticket(), group: "g".into() };
    world.machine.handle_delete_group(world.at, event, &mut effects);
    let Some(Effect::Append(first)) = effects.first() else { panic!("{effects:?}") };
    assert_eq!(first.records.len(), limits::GROUP_TOMBSTONES_PER_APPEND);
    let mut seen = Vec::new();
    world.perform(effects, &mut seen);
    let appended = seen.iter().filter(|seen| matches!(seen, Seen::Appended(_))).count();
    assert_eq!(i32::try_from(appended), Ok(OFFSETS));
    let done = Response::DeleteGroup(ErrorCode::None);
    assert!(matches!(seen.last(), Some(Seen::Replied(_, response)) if *response == done));
    assert!(world.machine.saved.get("g").is_none());
}

/// Half a deletion is answered with an error; asking again ends it.
#[test]
fn a_deletion_refused_half_way_can_be_repeated() {
    let mut world = with_many_offsets();
    let metadata = GroupMetadata {
        protocol_type: "consumer".into(),
        generation: Generation(1),
        protocol: None,
        leader: None,
        state_since: None,
        members: Vec::new(),
    };
    let record = Record::GroupMetadata { group: "g".into(), metadata };
    world.log.push((encode_key(&record), encode_value(&record)));
    world.copy.apply(&record);
    world.fail_over();
    world.refuse_next = Some(ErrorCode::NotEnoughReplicas);
    world.refuse_after = 1;
    let refused = Response::DeleteGroup(ErrorCode::CoordinatorNotAvailable);
    let seen = delete(&mut world);
    assert!(matches!(seen.last(), Some(Seen::Replied(_, response)) if *response == refused));
    let left = world.machine.saved.get("g").unwrap();
    assert_eq!((left.offsets.len(), left.metadata.is_some()), (1_500, true), "the group goes last");
    let seen = delete(&mut world);
    let done = Response::DeleteGroup(ErrorCode::None);
    assert!(matches!(seen.last(), Some(Seen::Replied(_, response)) if *response == done));
}

#[test]
fn a_large_topic_is_forgotten_in_parts() {
    let mut world = with_many_offsets();
    let mut effects = Vec::new();
    world.machine.handle_topics_deleted(world.at, &["t".into()].into(), &mut effects);
    let sizes: Vec<usize> = effects
        .iter()
        .map(|effect| match effect {
            Effect::Append(append) => append.records.len(),
            Effect::Reply { .. } => panic!("nobody asked"),
        })
        .collect();
    assert_eq!(sizes, [1_000, 1_000, 500]);
    world.perform(effects, &mut Vec::new());
    assert!(world.machine.saved.get("g").is_none());
}
