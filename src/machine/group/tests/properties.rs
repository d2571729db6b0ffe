//! Random events: nothing panics, and what [`super::World::check`] asks holds after each.

use super::{Seen, World, compacted, config};
use crate::machine::group::saved::Saved;
use crate::machine::group::*;
use crate::protocol::ErrorCode;
use crate::types::{LeaderEpoch, Offset, TopicPartition};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Few names, so that events meet.
const GROUPS: [&str; 2] = ["g", "h"];
const CLIENTS: usize = 4;

#[derive(Clone, Debug)]
enum Op {
    Join { who: Who, protocols: u8, old_client: bool },
    Sync { who: Who, names_all: bool },
    Beat(Who),
    Leave(Who),
    Commit { who: Who, partition: i32, simple: bool, retention: bool },
    Forget { group: usize, partition: i32 },
    Delete { group: usize },
    TopicDeleted(i32),
    Expire,
    Look { group: usize },
    Pass { millis: u64 },
    RefuseNext,
    FailOver,
}

/// Who asks, and whether it goes by what it was told last.
#[derive(Clone, Debug)]
struct Who {
    group: usize,
    client: usize,
    knows_id: bool,
    is_static: bool,
    borrows_id: bool,
    generation_off: i32,
}

fn who() -> impl Strategy<Value = Who> {
    let flag = |odds| prop::bool::weighted(odds);
    (0..2_usize, 0..CLIENTS, flag(0.9), flag(0.3), flag(0.05), -1..12_i32).prop_map(
        |(group, client, knows_id, is_static, borrows_id, off)| Who {
            group,
            client,
            knows_id,
            is_static,
            borrows_id,
            // Most tell the truth.
            generation_off: if off > 1 { 0 } else { off },
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (who(), 1..8_u8, prop::bool::ANY)
            .prop_map(|(who, protocols, old_client)| Op::Join { who, protocols, old_client }),
        6 => (who(), prop::bool::ANY).prop_map(|(who, names_all)| Op::Sync { who, names_all }),
        2 => who().prop_map(Op::Beat),
        1 => who().prop_map(Op::Leave),
        2 => (who(), 0..3_i32, prop::bool::ANY, prop::bool::ANY).prop_map(
            |(who, partition, simple, retention)| {
                Op::Commit { who, partition, simple, retention }
            }
        ),
        1 => (0..2_usize, 0..3_i32).prop_map(|(group, partition)| Op::Forget { group, partition }),
        1 => (0..2_usize).prop_map(|group| Op::Delete { group }),
        1 => (0..3_i32).prop_map(Op::TopicDeleted),
        1 => Just(Op::Expire),
        1 => (0..2_usize).prop_map(|group| Op::Look { group }),
        4 => (0..20_000_u64).prop_map(|millis| Op::Pass { millis }),
        1 => Just(Op::RefuseNext),
        1 => Just(Op::FailOver),
    ]
}

/// What clients remember of the answers.
#[derive(Default)]
struct Memory {
    waiting: BTreeMap<Ticket, usize>,
    told: BTreeMap<usize, (MemberId, Generation)>,
    members: Vec<MemberId>,
}

impl Memory {
    fn learn(&mut self, seen: &[Seen]) {
        for seen in seen {
            let Seen::Replied(ticket, Response::JoinGroup(joined)) = seen else { continue };
            let Some(client) = self.waiting.remove(ticket) else { continue };
            let generation = Generation(joined.generation.0.max(0));
            self.told.insert(client, (joined.member_id.clone(), generation));
            if !joined.members.is_empty() {
                self.members = joined.members.iter().map(|m| m.member_id.clone()).collect();
            }
        }
    }

    fn claim(&self, who: &Who) -> MemberClaim {
        let client = if who.borrows_id { (who.client + 1) % CLIENTS } else { who.client };
        let (id, generation) = self.told.get(&client).cloned().unwrap_or_default();
        MemberClaim {
            member_id: if who.knows_id { id } else { MemberId::default() },
            instance_id: who.is_static.then(|| format!("i{}", who.client).into()),
            generation: Generation(generation.0 + who.generation_off),
        }
    }
}

fn run(world: &mut World, memory: &mut Memory, op: Op) {
    let seen = match op {
        Op::Join { who, protocols, old_client } => {
            let join = join(world.ticket(), memory.claim(&who), (&who, protocols, old_client));
            memory.waiting.insert(join.ticket, who.client);
            world.event(|m, at, effects| m.handle_join_group(at, join, effects))
        }
        Op::Sync { who, names_all } => {
            let named = memory.members.iter().filter(|_| names_all);
            let sync = SyncGroup {
                ticket: world.ticket(),
                group: GROUPS[who.group].into(),
                member: memory.claim(&who),
                protocol_type: None,
                protocol: None,
                assignments: named.map(|id| (id.clone(), id.as_bytes().into())).collect(),
            };
            world.event(|m, at, effects| m.handle_sync_group(at, sync, effects))
        }
        Op::Beat(who) => {
            let (ticket, group) = (world.ticket(), GROUPS[who.group].into());
            let beat = Heartbeat { ticket, group, member: memory.claim(&who) };
            world.event(|m, at, effects| m.handle_heartbeat(at, &beat, effects))
        }
        Op::Leave(who) => {
            let MemberClaim { member_id, instance_id, .. } = memory.claim(&who);
            let members = vec![Leaver { member_id, instance_id }];
            let leave =
                LeaveGroup { ticket: world.ticket(), group: GROUPS[who.group].into(), members };
            world.event(|m, at, effects| m.handle_leave_group(at, leave, effects))
        }
        Op::Pass { millis } => world.pass(Duration::from_millis(millis)),
        Op::RefuseNext => {
            world.refuse_next = Some(ErrorCode::NotEnoughReplicas);
            Vec::new()
        }
        Op::FailOver => {
            memory.waiting.clear();
            world.fail_over()
        }
        other => offsets(world, memory, other),
    };
    memory.learn(&seen);
}

fn offsets(world: &mut World, memory: &Memory, op: Op) -> Vec<Seen> {
    match op {
        Op::Commit { who, partition, simple, retention } => {
            let mut member = memory.claim(&who);
            if simple {
                member.member_id = MemberId::default();
                member.generation = Generation::NONE;
            }
            let row = OffsetToCommit {
                partition: topic(partition),
                offset: Offset(1),
                leader_epoch: LeaderEpoch(3),
                metadata: None,
            };
            let commit = OffsetCommit {
                ticket: world.ticket(),
                group: GROUPS[who.group].into(),
                member,
                retention: retention.then_some(Duration::from_secs(30)),
                knows_group_id_not_found: true,
                rows: vec![row],
            };
            world.event(|m, at, effects| m.handle_offset_commit(at, commit, effects))
        }
        Op::Forget { group, partition } => {
            let (ticket, group) = (world.ticket(), GROUPS[group].into());
            let delete = OffsetDelete { ticket, group, partitions: vec![topic(partition)] };
            world.event(|m, at, effects| m.handle_offset_delete(at, delete, effects))
        }
        Op::Delete { group } => {
            let delete = DeleteGroup { ticket: world.ticket(), group: GROUPS[group].into() };
            world.event(|m, at, effects| m.handle_delete_group(at, delete, effects))
        }
        Op::TopicDeleted(partition) => {
            let topics = [topic(partition).topic].into();
            world.event(|m, at, effects| m.handle_topics_deleted(at, &topics, effects))
        }
        Op::Expire => world.event(|m, at, effects| m.handle_expire_offsets(at, effects)),
        Op::Look { group } => {
            let (first, second, third) = (world.ticket(), world.ticket(), world.ticket());
            let group: GroupId = GROUPS[group].into();
            world.event(|m, at, effects| {
                let describe = DescribeGroup { ticket: first, group: group.clone() };
                m.handle_describe_group(at, &describe, effects);
                let list = ListGroups { ticket: second, states: vec![], types: vec![] };
                m.handle_list_groups(at, &list, effects);
                let fetch = OffsetFetch { ticket: third, group, partitions: None };
                m.handle_offset_fetch(at, fetch, effects);
            })
        }
        other => panic!("{other:?} is not about offsets"),
    }
}

fn topic(number: i32) -> TopicPartition {
    TopicPartition::new(format!("t{number}"), number)
}

fn join(
    ticket: Ticket,
    claim: MemberClaim,
    (who, bits, old_client): (&Who, u8, bool),
) -> JoinGroup {
    let offered = ["a", "b", "c"].iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
    let protocols = offered.map(|(_, name)| Protocol {
        name: (*name).into(),
        metadata: b"\0\0\0\0\0\x01\0\x02t1"[..].into(),
    });
    JoinGroup {
        ticket,
        group: GROUPS[who.group].into(),
        member_id: claim.member_id,
        instance_id: claim.instance_id,
        client_id: format!("c{}", who.client).into(),
        client_host: "/h".into(),
        unique: ticket.0.to_string().into(),
        session_timeout: Duration::from_secs(10),
        rebalance_timeout: (!old_client).then_some(Duration::from_secs(15)),
        protocol_type: "consumer".into(),
        protocols: protocols.collect(),
        takes_member_id_first: !old_client,
        can_skip_assignment: !old_client,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400 * crate::times(), ..ProptestConfig::default() })]

    #[test]
    fn no_events_break_what_must_hold(ops in vec(op(), 1..120), size in 1..5_usize) {
        let mut config = config();
        config.group_max_size = size;
        config.offsets_retention = Duration::from_secs(60);
        config.initial_rebalance_delay = Duration::from_secs(1);
        let mut world = World::new(config);
        let mut memory = Memory::default();
        for op in ops {
            run(&mut world, &mut memory, op);
        }
        // Whatever still waits is answered in the end.
        world.pass(Duration::from_secs(3_600));
        prop_assert!(world.open.is_empty(), "{:?} are never answered", world.open);
    }

    /// KAFKA-17306, KAFKA-19862: loading takes whatever compaction has left.
    #[test]
    fn a_compacted_log_gives_the_same_state(
        ops in vec(op(), 1..120), cleaned in prop::sample::select(vec![25, 50, 75, 100]),
    ) {
        let mut config = config();
        config.offsets_retention = Duration::from_secs(60);
        config.initial_rebalance_delay = Duration::ZERO;
        let mut world = World::new(config);
        let mut memory = Memory::default();
        for op in ops {
            run(&mut world, &mut memory, op);
        }
        let mut loaded = Saved::default();
        for record in compacted(&world.log, world.log.len() * cleaned / 100) {
            loaded.apply(&record);
        }
        prop_assert_eq!(loaded, world.copy);
    }
}
