//! The machine under a shell that only keeps a log in memory.
//!
//! After every event [`World`] checks what must always hold: a copy replayed from the log equals
//! the live hard state, also when compaction has dropped what it may; a stable group is what the
//! log says; every ticket is answered once; whatever waits has a timer.

mod clients;
mod limits;
mod print;
mod properties;
mod script;

use super::classic::Phase;
use super::codec::{decode, encode_key, encode_value};
use super::saved::Saved;
use super::timers::Timer;
use super::*;
use crate::types::Timestamp;
use std::collections::BTreeSet;

/// Wall time at the beginning of every test.
const WALL_START: i64 = 1_700_000_000_000;

/// A partition's log and the coordinator over it.
struct World {
    machine: GroupMachine,
    config: Config,
    at: Moment,
    /// Records as bytes, in order.
    log: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// What a copy has replayed of it.
    copy: Saved,
    /// Requests not answered yet.
    open: BTreeSet<Ticket>,
    next_ticket: u64,
    /// The next append is refused for this reason …
    refuse_next: Option<ErrorCode>,
    /// … or the next after so many.
    refuse_after: usize,
    /// The largest generation each group has had since it was last unknown.
    generations: BTreeMap<GroupId, Generation>,
}

/// What happened, for those who want to see it.
enum Seen {
    Appended(Record),
    Refused(Record, ErrorCode),
    Replied(Ticket, Response),
}

fn config() -> Config {
    Config {
        group_min_session_timeout: Duration::from_secs(6),
        group_max_session_timeout: Duration::from_secs(1_800),
        group_max_size: usize::MAX,
        initial_rebalance_delay: Duration::from_secs(3),
        offsets_retention: Duration::from_secs(7 * 24 * 3_600),
        offset_metadata_max_bytes: 16,
    }
}

impl World {
    fn new(config: Config) -> Self {
        let mut world = Self {
            machine: GroupMachine::new(config.clone()),
            config,
            at: Moment { now: Instant::ZERO, wall: Timestamp(WALL_START) },
            log: Vec::new(),
            copy: Saved::default(),
            open: BTreeSet::new(),
            next_ticket: 1,
            refuse_next: None,
            refuse_after: 0,
            generations: BTreeMap::new(),
        };
        world.event(|machine, at, effects| machine.handle_loaded(at, effects));
        world
    }

    /// A ticket for a new request.
    fn ticket(&mut self) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.open.insert(ticket);
        ticket
    }

    /// Lets an event happen and does what comes of it.
    fn event(
        &mut self,
        event: impl FnOnce(&mut GroupMachine, Moment, &mut Vec<Effect>),
    ) -> Vec<Seen> {
        let mut effects = Vec::new();
        event(&mut self.machine, self.at, &mut effects);
        let mut seen = Vec::new();
        self.perform(effects, &mut seen);
        self.check();
        seen
    }

    fn perform(&mut self, effects: Vec<Effect>, seen: &mut Vec<Seen>) {
        for effect in effects {
            match effect {
                Effect::Reply { ticket, response } => {
                    assert!(self.open.remove(&ticket), "{ticket:?} is answered, but not open");
                    seen.push(Seen::Replied(ticket, response));
                }
                Effect::Append(append) => self.append(&append, seen),
            }
        }
    }

    fn append(&mut self, append: &Append, seen: &mut Vec<Seen>) {
        let mut after = Vec::new();
        let now = self.refuse_after == 0;
        self.refuse_after = self.refuse_after.saturating_sub(1);
        if let Some(error) = self.refuse_next.take_if(|_| now) {
            let records = append.records.iter().cloned();
            seen.extend(records.map(|record| Seen::Refused(record, error)));
            self.machine.handle_append_refused(self.at, append.id, error, &mut after);
        } else {
            for record in &append.records {
                self.log.push((encode_key(record), encode_value(record)));
                self.copy.apply(&read(self.log.last().unwrap()));
                seen.push(Seen::Appended(record.clone()));
            }
            self.machine.handle_appended(self.at, append, &mut after);
        }
        self.perform(after, seen);
    }

    /// Moves both clocks.
    fn advance(&mut self, span: Duration) {
        self.at.now = self.at.now + span;
        self.at.wall.0 += i64::try_from(span.as_millis()).unwrap();
    }

    /// Lets `span` pass, with every timer at its time.
    fn pass(&mut self, span: Duration) -> Vec<Seen> {
        let end = self.at.now + span;
        let mut seen = Vec::new();
        while let Some(due) = self.machine.poll_timeout().filter(|due| *due <= end) {
            self.advance(due.saturating_since(self.at.now));
            seen.extend(self.event(|machine, at, effects| machine.handle_timeout(at, effects)));
            let next = self.machine.poll_timeout();
            assert!(next.is_none_or(|next| next >= self.at.now), "a timer is left behind");
        }
        self.advance(end.saturating_since(self.at.now));
        seen
    }

    /// A new coordinator takes over, from a log that was compacted as far as it may be. The
    /// requests of the old one are failed by its shell.
    fn fail_over(&mut self) -> Vec<Seen> {
        self.open.clear();
        // A generation that was told, but not finished, is unknown to the next coordinator.
        self.generations.clear();
        self.machine = GroupMachine::new(self.config.clone());
        for record in compacted(&self.log, self.log.len()) {
            self.machine.replay(&record);
        }
        self.event(|machine, at, effects| machine.handle_loaded(at, effects))
    }

    fn check(&mut self) {
        assert_eq!(self.machine.saved, self.copy, "the log does not give the hard state");
        assert!(self.machine.in_flight.is_empty());
        for (id, group) in &self.machine.groups {
            check_group(&self.machine, id, group);
            let last = self.generations.entry(id.clone()).or_default();
            assert!(group.generation >= *last, "{id} went back a generation");
            *last = group.generation;
        }
        self.generations.retain(|id, _| self.machine.groups.contains_key(id));
    }
}

fn check_group(machine: &GroupMachine, id: &GroupId, group: &Group) {
    let members = &group.members;
    let saved = machine.saved.get(id).and_then(|saved| saved.metadata.as_ref());
    assert!(members.iter().all(|member| !group.pending.contains(&member.id)));
    match &group.leader {
        Some(leader) => assert!(members.contains(leader), "{id} is led by a stranger"),
        None => assert!(members.is_empty(), "{id} has members and no leader"),
    }
    for name in members.iter().filter_map(|m| m.instance_id.as_ref().map(|name| (name, m))) {
        assert_eq!(members.by_static(name.0), Some(&name.1.id));
    }
    for member in members.iter() {
        let waits = machine.timers.runs(&group.session_of(&member.id));
        assert!(waits || member.is_proven_alive(), "{} of {id} can never expire", member.id);
    }
    for pending in &group.pending {
        assert!(machine.timers.runs(&group.session_of(pending)), "{pending} can never expire");
    }
    let joins = machine.timers.runs(&Timer::Join(id.clone()));
    let syncs = machine.timers.runs(&Timer::Sync(id.clone()));
    match &group.phase {
        Phase::Empty => {
            assert!(members.is_empty() && !joins && !syncs);
            let worth_keeping = saved.is_some() || !group.pending.is_empty();
            assert!(worth_keeping || group.generation > Generation(0), "{id} is kept for nothing");
        }
        Phase::Preparing { .. } => assert!(joins && !syncs, "{id} may gather for ever"),
        Phase::Completing { unsynced } => {
            assert!(!joins && !members.is_empty() && syncs != unsynced.is_empty());
            assert_eq!(members.awaiting_join(), 0, "{id} lets a join wait beyond the gathering");
        }
        Phase::Stable { unsynced } => {
            assert!(!joins && syncs != unsynced.is_empty());
            assert!(!members.is_empty());
            let mut live = group.to_record(|member| member.assignment.clone());
            if let Record::GroupMetadata { metadata, .. } = &mut live {
                metadata.state_since = saved.and_then(|saved| saved.state_since);
                assert_eq!(Some(&*metadata), saved, "{id} is stable, and not as the log says");
            }
        }
    }
}

fn read((key, value): &(Vec<u8>, Option<Vec<u8>>)) -> Record {
    decode(Some(key), value.as_deref()).unwrap().expect("a record of our own")
}

/// What is left of a log when the cleaner has been at its first `cleaned` records and dropped all
/// that a later record shadows, and every tombstone there.
fn compacted(log: &[(Vec<u8>, Option<Vec<u8>>)], cleaned: usize) -> Vec<Record> {
    let shadowed = |at: usize| log[at + 1..].iter().any(|(key, _)| *key == log[at].0);
    let kept =
        (0..log.len()).filter(|at| *at >= cleaned || (log[*at].1.is_some() && !shadowed(*at)));
    kept.map(|at| read(&log[at])).collect()
}
