//! Clients as they are, under random timing: in the end the group is stable with all that live,
//! and at no time do two hold what only one was given.

use super::{Seen, World, config};
use crate::machine::group::*;
use crate::protocol::ErrorCode;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const GROUP: &str = "g";

/// A client of the classic protocol.
#[derive(Debug, Default)]
struct Client {
    runs: bool,
    is_static: bool,
    member_id: MemberId,
    generation: Generation,
    /// The request it waits for. Answers to others are lost.
    waits_for: Option<Ticket>,
    does: Doing,
}

#[derive(Debug, Default, PartialEq)]
enum Doing {
    #[default]
    Joining,
    /// With the members to assign to, if it leads.
    Syncing(Vec<MemberId>),
    Working(Arc<[u8]>),
}

#[derive(Clone, Debug)]
enum Step {
    Act(usize),
    Crash(usize),
    Leave(usize),
    Start(usize),
    Pass(u64),
    FailOver,
    RefuseNext,
}

const CLIENTS: usize = 5;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..CLIENTS).prop_map(Step::Act),
        1 => (0..CLIENTS).prop_map(Step::Crash),
        1 => (0..CLIENTS).prop_map(Step::Leave),
        3 => (0..CLIENTS).prop_map(Step::Start),
        4 => (0..6_000_u64).prop_map(Step::Pass),
        1 => Just(Step::FailOver),
        1 => Just(Step::RefuseNext),
    ]
}

struct Sim {
    world: World,
    clients: Vec<Client>,
    /// What each leader decided, of the assignments that were kept.
    decided: BTreeMap<(Generation, MemberId), Arc<[u8]>>,
}

impl Sim {
    fn step(&mut self, step: Step) {
        match step {
            Step::Act(who) => self.act(who),
            Step::Start(who) => self.clients[who].runs = true,
            Step::Crash(who) => {
                let is_static = self.clients[who].is_static;
                self.clients[who] = Client { is_static, ..Client::default() };
            }
            Step::Leave(who) => self.leave(who),
            Step::Pass(millis) => {
                let seen = self.world.pass(Duration::from_millis(millis));
                self.deliver(seen);
            }
            Step::RefuseNext => self.world.refuse_next = Some(ErrorCode::NotEnoughReplicas),
            Step::FailOver => {
                let seen = self.world.fail_over();
                // The old coordinator's connections break: ask again.
                for client in &mut self.clients {
                    client.waits_for = None;
                }
                self.deliver(seen);
            }
        }
    }

    fn leave(&mut self, who: usize) {
        let client = &self.clients[who];
        if client.runs && !client.member_id.is_empty() && !client.is_static {
            let members = vec![Leaver { member_id: client.member_id.clone(), instance_id: None }];
            let leave = LeaveGroup { ticket: self.world.ticket(), group: GROUP.into(), members };
            let seen = self.world.event(|m, at, effects| m.handle_leave_group(at, leave, effects));
            self.clients[who] = Client::default();
            self.deliver(seen);
        }
    }

    fn act(&mut self, who: usize) {
        if !self.clients[who].runs || self.clients[who].waits_for.is_some() {
            return;
        }
        let ticket = self.world.ticket();
        let client = &mut self.clients[who];
        client.waits_for = Some(ticket);
        let instance_id: Option<InstanceId> = client.is_static.then(|| format!("i{who}").into());
        let member = MemberClaim {
            member_id: client.member_id.clone(),
            instance_id: instance_id.clone(),
            generation: client.generation,
        };
        let group: GroupId = GROUP.into();
        let seen = match &client.does {
            Doing::Joining => {
                let join = join((who, ticket), member);
                self.world.event(|m, at, effects| m.handle_join_group(at, join, effects))
            }
            Doing::Syncing(members) => {
                let part = |id: &MemberId| format!("{id} in {}", member.generation.0);
                let assignments = members.iter().map(|id| (id.clone(), part(id).as_bytes().into()));
                let (assignments, protocol_type, protocol) = (assignments.collect(), None, None);
                let sync =
                    SyncGroup { ticket, group, member, protocol_type, protocol, assignments };
                self.world.event(|m, at, effects| m.handle_sync_group(at, sync, effects))
            }
            Doing::Working(_) => {
                let beat = Heartbeat { ticket, group, member };
                self.world.event(|m, at, effects| m.handle_heartbeat(at, &beat, effects))
            }
        };
        self.deliver(seen);
    }

    fn deliver(&mut self, seen: Vec<Seen>) {
        for seen in seen {
            match seen {
                Seen::Appended(Record::GroupMetadata { metadata, .. }) => self.decide(&metadata),
                Seen::Appended(_) | Seen::Refused(..) => {}
                Seen::Replied(ticket, response) => {
                    let waits = |client: &&mut Client| client.waits_for == Some(ticket);
                    if let Some(client) = self.clients.iter_mut().find(waits) {
                        client.hear(&response);
                    }
                }
            }
        }
    }

    /// Within one generation no member's part changes, except that a static member's successor
    /// takes it over.
    fn decide(&mut self, metadata: &GroupMetadata) {
        let mut owners = BTreeMap::new();
        for member in &metadata.members {
            if !member.assignment.is_empty() {
                let twin = owners.insert(member.assignment.clone(), &member.member_id);
                assert_eq!(twin, None, "one part for two");
            }
            let key = (metadata.generation, member.member_id.clone());
            self.decided.insert(key, member.assignment.clone());
        }
    }

    /// Everybody who lives, works in the same generation on its own part.
    fn check_calm(&self) {
        let live: Vec<&Client> = self.clients.iter().filter(|client| client.runs).collect();
        let Some(group) = self.world.machine.groups.get(GROUP) else {
            return assert!(live.is_empty());
        };
        assert_eq!(group.members.len(), live.len());
        for client in live {
            assert!(group.members.contains(&client.member_id));
            assert_eq!(client.generation, group.generation);
            let Doing::Working(part) = &client.does else { panic!("{client:?} does not work") };
            let key = (client.generation, client.member_id.clone());
            assert_eq!(Some(part), self.decided.get(&key));
        }
    }
}

impl Client {
    fn hear(&mut self, response: &Response) {
        self.waits_for = None;
        match response {
            Response::JoinGroup(joined) => match joined.error {
                ErrorCode::None => {
                    self.member_id = joined.member_id.clone();
                    self.generation = joined.generation;
                    let assigns = joined.leader == joined.member_id && !joined.skip_assignment;
                    let members = joined.members.iter().map(|m| m.member_id.clone());
                    self.does = Doing::Syncing(members.filter(|_| assigns).collect());
                }
                ErrorCode::MemberIdRequired => self.member_id = joined.member_id.clone(),
                ErrorCode::UnknownMemberId => self.member_id = MemberId::default(),
                ErrorCode::CoordinatorNotAvailable | ErrorCode::RebalanceInProgress => {}
                other => panic!("{other:?} for an honest join"),
            },
            Response::SyncGroup(synced) => match synced.error {
                ErrorCode::None => self.does = Doing::Working(synced.assignment.clone()),
                error => self.start_over(error),
            },
            Response::Heartbeat(ErrorCode::None) => {}
            Response::Heartbeat(error) => self.start_over(*error),
            other => panic!("{other:?} was not asked for"),
        }
    }

    fn start_over(&mut self, error: ErrorCode) {
        self.does = Doing::Joining;
        match error {
            ErrorCode::RebalanceInProgress | ErrorCode::CoordinatorNotAvailable => {}
            ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration => {
                self.member_id = MemberId::default();
            }
            other => panic!("{other:?} for an honest request"),
        }
    }
}

fn join((who, ticket): (usize, Ticket), claim: MemberClaim) -> JoinGroup {
    JoinGroup {
        ticket,
        group: GROUP.into(),
        member_id: claim.member_id,
        instance_id: claim.instance_id,
        client_id: format!("c{who}").into(),
        client_host: "/h".into(),
        unique: ticket.0.to_string().into(),
        session_timeout: Duration::from_secs(10),
        rebalance_timeout: Some(Duration::from_secs(15)),
        protocol_type: "consumer".into(),
        protocols: vec![Protocol { name: "range".into(), metadata: [][..].into() }],
        // Clients of both kinds.
        takes_member_id_first: who.is_multiple_of(2),
        can_skip_assignment: who.is_multiple_of(2),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150 * crate::times(), ..ProptestConfig::default() })]

    #[test]
    fn a_group_left_in_peace_is_stable_with_all_that_live(steps in vec(step(), 1..200)) {
        let clients = (0..CLIENTS).map(|who| {
            Client { is_static: who == 3 || who == 4, ..Client::default() }
        });
        let clients = clients.collect();
        let mut sim = Sim { world: World::new(config()), clients, decided: BTreeMap::new() };
        for step in steps {
            sim.step(step);
        }
        sim.world.refuse_next = None;
        // Parked joins of clients that died as newcomers last the longest.
        for _second in 0..600 {
            for who in 0..CLIENTS {
                sim.step(Step::Act(who));
            }
            sim.step(Step::Pass(1_000));
        }
        sim.check_calm();
    }
}
