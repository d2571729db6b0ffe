//! A rebalance's way: gather the members, agree on a protocol, name a leader, wait for it.

use super::classic::{Group, InitialDelay, Phase, dismiss};
use super::record::{GroupMetadata, MemberId};
use super::response::Synced;
use super::timers::Timer;
use super::turn::{Purpose, Turn};
use crate::protocol::ErrorCode;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What a rebalance that nobody joined waits at least before it looks again.
const JOIN_RETRY_MIN: Duration = Duration::from_secs(1);

impl Group {
    /// Something has changed that concerns all: begin a rebalance, or go on with the one under way.
    pub(super) fn rebalance_or_go_on(&mut self, turn: &mut Turn<'_>) {
        match self.phase {
            Phase::Empty | Phase::Completing { .. } | Phase::Stable { .. } => {
                self.prepare_rebalance(turn);
            }
            Phase::Preparing { .. } => self.complete_join_if_ready(turn),
        }
    }

    /// Calls all members to join. Those that wait for an assignment are sent back to do so.
    pub(super) fn prepare_rebalance(&mut self, turn: &mut Turn<'_>) {
        if matches!(self.phase, Phase::Completing { .. }) {
            self.reset_assignment(ErrorCode::RebalanceInProgress, turn);
        }
        turn.stop(&Timer::Sync(self.id.clone()));
        if matches!(self.phase, Phase::Empty) {
            let waited = turn.config.initial_rebalance_delay;
            let remaining = self.members.rebalance_timeout().saturating_sub(waited);
            let initial = Some(InitialDelay { waited, remaining, joined_meanwhile: false });
            turn.start(Timer::Join(self.id.clone()), waited);
            self.enter(Phase::Preparing { initial }, turn);
        } else {
            self.enter(Phase::Preparing { initial: None }, turn);
            turn.start(Timer::Join(self.id.clone()), self.members.rebalance_timeout());
            self.complete_join_if_ready(turn);
        }
    }

    /// Takes every assignment back and answers those that wait for one with `error`.
    pub(super) fn reset_assignment(&mut self, error: ErrorCode, turn: &mut Turn<'_>) {
        self.members.assign(|_| None);
        for id in self.members.ids(|_| true) {
            self.answer_sync(&id, Synced::refused(error), turn);
        }
    }

    /// Ends the gathering once all are here: a member that leaves may be the last that was waited
    /// for. New groups wait out their delay, unless nobody is left to wait for.
    pub(super) fn complete_join_if_ready(&mut self, turn: &mut Turn<'_>) {
        let Phase::Preparing { initial } = &self.phase else { return };
        let gathers = initial.is_some() && !self.members.is_empty();
        let all_here = self.members.awaiting_join() == self.members.len();
        if !gathers && all_here && self.pending.is_empty() {
            self.complete_join(turn);
        }
    }

    /// The time to gather is over.
    pub(super) fn join_time_is_up(&mut self, turn: &mut Turn<'_>) {
        let Phase::Preparing { initial } = &mut self.phase else { return };
        let Some(delay) = initial else { return self.complete_join(turn) };
        if !delay.joined_meanwhile || delay.remaining.is_zero() {
            return self.complete_join(turn);
        }
        let next = turn.config.initial_rebalance_delay.min(delay.remaining);
        delay.remaining = delay.remaining.saturating_sub(delay.waited);
        delay.waited = next;
        delay.joined_meanwhile = false;
        turn.start(Timer::Join(self.id.clone()), next);
    }

    /// Goes on with whoever has joined. Dynamic members that have not are out; static ones stay
    /// until their session ends, however long the rebalance took (KAFKA-8220).
    fn complete_join(&mut self, turn: &mut Turn<'_>) {
        turn.stop(&Timer::Join(self.id.clone()));
        for id in self.members.ids(|member| !member.awaits_join() && member.instance_id.is_none()) {
            self.expel(&id, ErrorCode::UnknownMemberId, turn);
        }
        if self.members.is_empty() {
            return self.become_empty(turn);
        }
        if !self.elect_leader() {
            // Only absent static members are left: look again until they come or expire.
            let again = self.members.rebalance_timeout().max(JOIN_RETRY_MIN);
            turn.start(Timer::Join(self.id.clone()), again);
            return;
        }
        self.generation = self.generation.next();
        self.protocol = self.members.elect_protocol();
        assert!(self.protocol.is_some(), "members were let in that share no protocol");
        let told = self.members.ids(|member| member.awaits_join());
        // Absent static members are not told, so they are not expected to ask either.
        self.enter(Phase::Completing { unsynced: told.iter().cloned().collect() }, turn);
        for id in &told {
            let joined = self.joined(id);
            self.answer_join(id, joined, turn);
        }
        turn.start(Timer::Sync(self.id.clone()), self.members.rebalance_timeout());
    }

    /// The last member is gone. Kept in the log, so that a new coordinator does not wake the old
    /// members, and so that the retention of the offsets counts from now (KIP-211).
    fn become_empty(&mut self, turn: &mut Turn<'_>) {
        self.generation = self.generation.next();
        self.protocol = None;
        self.leader = None;
        self.enter(Phase::Empty, turn);
        let record = self.to_record(|_| Arc::from([]));
        turn.append(vec![record], Purpose::Background);
    }

    /// Keeps the leader if it has joined, or names the first that has; false if nobody has.
    fn elect_leader(&mut self) -> bool {
        let leader = self.leader.as_ref().and_then(|leader| self.members.get(leader));
        if leader.is_some_and(|leader| leader.awaits_join()) {
            return true;
        }
        let first = self.members.iter().find(|member| member.awaits_join());
        match first.map(|member| member.id.clone()) {
            Some(first) => {
                self.leader = Some(first);
                true
            }
            None => false,
        }
    }

    /// Takes a member out, answers what it still asked with `error`, and names another leader if
    /// it led. What that means for the others is the caller's to say.
    pub(super) fn expel(&mut self, id: &MemberId, error: ErrorCode, turn: &mut Turn<'_>) {
        turn.stop(&self.session_of(id));
        self.pending.remove(id);
        let Some((_, unanswered)) = self.members.remove(id) else { return };
        dismiss(unanswered, (error, MemberId::default()), turn);
        self.synced(id, turn);
        if self.is_leader(id) {
            self.leader = self.members.iter().next().map(|member| member.id.clone());
        }
    }

    /// `id` has asked for its assignment, or is gone. When none is missing, the wait is over.
    pub(super) fn synced(&mut self, id: &str, turn: &mut Turn<'_>) {
        if let Phase::Completing { unsynced } | Phase::Stable { unsynced } = &mut self.phase {
            unsynced.remove(id);
            if unsynced.is_empty() {
                turn.stop(&Timer::Sync(self.id.clone()));
            }
        }
    }

    /// Some members know the generation but never asked for their part of it: without them
    /// (KAFKA-12890). If it was the leader, the others would wait for ever.
    pub(super) fn sync_time_is_up(&mut self, turn: &mut Turn<'_>) {
        let (Phase::Completing { unsynced } | Phase::Stable { unsynced }) = &mut self.phase else {
            return;
        };
        let silent: BTreeSet<MemberId> = std::mem::take(unsynced);
        if silent.is_empty() {
            return;
        }
        for id in &silent {
            self.expel(id, ErrorCode::UnknownMemberId, turn);
        }
        self.prepare_rebalance(turn);
    }

    /// A session has ended: of an id that never came back, or of a member.
    pub(super) fn session_is_over(&mut self, id: &MemberId, turn: &mut Turn<'_>) {
        if self.pending.remove(id) {
            return self.complete_join_if_ready(turn);
        }
        let Some(member) = self.members.get(id) else { return };
        if member.is_proven_alive() {
            return;
        }
        self.expel(id, ErrorCode::UnknownMemberId, turn);
        self.rebalance_or_go_on(turn);
    }

    /// The group was loaded: its members get a whole session to find this coordinator.
    pub(super) fn wake(&mut self, turn: &mut Turn<'_>) {
        for id in self.members.ids(|_| true) {
            self.touch(&id, turn);
        }
        // The limit was lowered since: those who come again last are left out.
        if self.members.len() > turn.config.group_max_size {
            self.prepare_rebalance(turn);
        }
    }

    /// Whether the log still says what an append that was refused should have changed.
    pub(super) fn differs_from(&self, saved: Option<&GroupMetadata>) -> bool {
        matches!(self.phase, Phase::Empty)
            && saved.is_some_and(|saved| saved.generation != self.generation)
    }
}
