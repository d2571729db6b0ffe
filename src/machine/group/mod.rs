//! The coordinator of one partition of `__consumer_offsets`: every classic group whose name falls
//! there, and the offsets its members commit. Pure: it takes events with the time, and says what
//! to write and what to answer.
//!
//! # Contract with the shell
//!
//! **Loading.** [`GroupMachine::new`], then [`GroupMachine::replay`] for every record of the
//! partition in log order (`codec::decode` gives them; skip its `None`s and control batches), then
//! [`GroupMachine::handle_loaded`] once. Until then answer COORDINATOR_LOAD_IN_PROGRESS. Replay
//! takes any suffix that compaction can leave.
//!
//! **Events.** One at a time: `handle_*(at, event, &mut effects)`. Perform all effects of an event,
//! in order, before the next event.
//!
//! **[`Effect::Append`].** Write the records as one batch (acks=all, under the leader epoch the
//! machine was loaded in), then at once
//! - written: [`GroupMachine::handle_appended`] with the same `Append`, which applies each record
//!   in order;
//! - refused before anything was written (too large, not enough replicas):
//!   [`GroupMachine::handle_append_refused`] with the append's code as the produce path gives it;
//!   the machine turns it into what group clients expect, fails the tickets and puts the group
//!   right.
//!
//! Both push further effects to the same list; perform those too. An append that was written but
//! does not commit in time is not refused: fail the tickets that wait for it, keep the machine.
//!
//! **[`Effect::Reply`].** Hold each reply, with the log end as it is when the effect is reached,
//! until the high watermark has come there; also those of read-only events, so that nobody sees
//! state that may be lost. [`Response::waits_for_commit`] tells the one exception. Every ticket is
//! answered exactly once, some much later than their event (a join waits for the others); a client
//! that disconnects is no event: its ticket is answered into the void.
//!
//! **Timers.** After all effects, [`GroupMachine::poll_timeout`] says when to call
//! [`GroupMachine::handle_timeout`] at the latest. Call [`GroupMachine::handle_expire_offsets`]
//! every `offsets.retention.check.interval.ms`, and [`GroupMachine::handle_topics_deleted`] when
//! topics are gone from the metadata; if its append is refused, call it again later.
//!
//! **End.** When leadership or the disk is lost: drop the machine and fail its tickets with
//! NOT_COORDINATOR. A group that is deleted while a member still calls is unknown, never "dead"
//! here, because deletion is one event.
//!
//! # Inside
//!
//! `saved` is the hard state, exactly what replay of the log gives; its one door is
//! [`saved::Saved::apply`]. `groups` holds what needs no log: who waits for whom. A group that
//! only keeps offsets has no entry there.

mod admin;
mod classic;
pub(crate) mod codec;
mod event;
mod expiry;
mod join;
mod leave;
mod member;
mod offsets;
mod rebalance;
mod record;
mod response;
mod saved;
mod subscription;
mod sync;
mod timers;
mod turn;

#[cfg(test)]
mod tests;

pub(crate) use event::*;
pub(crate) use record::*;
pub(crate) use response::*;

use crate::protocol::ErrorCode;
use crate::types::Instant;
use classic::Group;
use saved::Saved;
use std::collections::BTreeMap;
use std::time::Duration;
use timers::{Timer, Timers};
use turn::{Purpose, Turn};

/// The keys of the broker's configuration the coordinator goes by.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// `group.min.session.timeout.ms`
    pub(crate) group_min_session_timeout: Duration,
    /// `group.max.session.timeout.ms`
    pub(crate) group_max_session_timeout: Duration,
    /// `group.max.size`
    pub(crate) group_max_size: usize,
    /// `group.initial.rebalance.delay.ms`
    pub(crate) initial_rebalance_delay: Duration,
    /// `offsets.retention.minutes`
    pub(crate) offsets_retention: Duration,
    /// `offset.metadata.max.bytes`
    pub(crate) offset_metadata_max_bytes: usize,
}

/// The coordinator of one partition's groups.
#[derive(Debug)]
pub(crate) struct GroupMachine {
    config: Config,
    /// What the log says.
    saved: Saved,
    /// Groups that have, had, or may soon have members.
    groups: BTreeMap<GroupId, Group>,
    timers: Timers,
    /// Appends whose fate the shell has yet to tell; none between events.
    in_flight: BTreeMap<AppendId, Purpose>,
    last_append: AppendId,
}

impl GroupMachine {
    /// A coordinator that knows nothing yet.
    #[must_use]
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            saved: Saved::default(),
            groups: BTreeMap::new(),
            timers: Timers::default(),
            in_flight: BTreeMap::new(),
            last_append: AppendId(0),
        }
    }

    /// Takes one record of the log, while loading.
    pub(crate) fn replay(&mut self, record: &Record) {
        assert!(self.groups.is_empty(), "a record replayed after loading");
        self.saved.apply(record);
    }

    /// The log was read to its end. The members of loaded groups go on as if nothing had happened,
    /// with a whole session each to find this coordinator.
    pub(crate) fn handle_loaded(&mut self, at: Moment, effects: &mut Vec<Effect>) {
        for (id, saved) in self.saved.iter() {
            if let Some(metadata) = &saved.metadata {
                self.groups.insert(id.clone(), Group::loaded(id.clone(), metadata));
            }
        }
        let (groups, mut turn) = self.begin(at, effects);
        for group in groups.values_mut() {
            group.wake(&mut turn);
        }
    }

    /// The records of `append` are in the log: they count, and those who waited for them learn it.
    pub(crate) fn handle_appended(
        &mut self,
        at: Moment,
        append: &Append,
        effects: &mut Vec<Effect>,
    ) {
        let purpose = self.in_flight.remove(&append.id);
        for record in &append.records {
            self.apply(record);
        }
        let (ticket, response) = match purpose.expect("an append of this machine, told once") {
            Purpose::Background => return,
            Purpose::Assign { group, generation } => {
                return self.assigned(at, (&group, generation), &append.records, effects);
            }
            Purpose::Succeed(succession) => return self.succeeded(at, *succession, effects),
            Purpose::Delete { ticket, group } => {
                return self.delete_next(at, ticket, group, effects);
            }
            Purpose::Commit { ticket, rows } => (ticket, Response::OffsetCommit(rows)),
            Purpose::Forget { ticket, rows } => {
                let done = OffsetsDeleted { error: ErrorCode::None, rows };
                (ticket, Response::OffsetDelete(done))
            }
        };
        effects.push(Effect::Reply { ticket, response });
    }

    /// The records of append `id` were not written, for the reason `error` of the produce path.
    pub(crate) fn handle_append_refused(
        &mut self,
        at: Moment,
        id: AppendId,
        error: ErrorCode,
        effects: &mut Vec<Effect>,
    ) {
        let error = as_coordinator(error);
        let purpose = self.in_flight.remove(&id).expect("an append of this machine, told once");
        let all = |rows: Vec<_>| rows.into_iter().map(|(row, _)| (row, error)).collect();
        let (ticket, response) = match purpose {
            Purpose::Background => return,
            Purpose::Assign { group, generation } => {
                return self.not_assigned(at, (&group, generation), error, effects);
            }
            Purpose::Succeed(succession) => (
                succession.join.ticket,
                Response::JoinGroup(Joined::refused(error, MemberId::default())),
            ),
            Purpose::Delete { ticket, .. } => (ticket, Response::DeleteGroup(error)),
            Purpose::Commit { ticket, rows } => (ticket, Response::OffsetCommit(all(rows))),
            Purpose::Forget { ticket, .. } => {
                let failed = OffsetsDeleted { error, rows: Vec::new() };
                (ticket, Response::OffsetDelete(failed))
            }
        };
        effects.push(Effect::Reply { ticket, response });
    }

    /// When [`GroupMachine::handle_timeout`] has something to do, if nothing happens before.
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first()
    }

    /// Does what is due by `at`: sessions end, rebalances stop waiting. May be called early.
    pub(crate) fn handle_timeout(&mut self, at: Moment, effects: &mut Vec<Effect>) {
        for due in self.timers.due(at.now) {
            // What ran out first may have stopped this one, or begun it anew.
            if self.timers.take(&due) {
                self.time_is_up(at, &due.1, effects);
            }
        }
    }

    fn time_is_up(&mut self, at: Moment, timer: &Timer, effects: &mut Vec<Effect>) {
        let (groups, mut turn) = self.resume(at, effects);
        let (Timer::Session(id, _) | Timer::Join(id) | Timer::Sync(id)) = timer;
        let Some(group) = groups.get_mut(id) else { return };
        match timer {
            Timer::Session(_, member) => group.session_is_over(member, &mut turn),
            Timer::Join(_) => group.join_time_is_up(&mut turn),
            Timer::Sync(_) => group.sync_time_is_up(&mut turn),
        }
        self.forget_if_idle(id);
    }

    /// The groups, and all else an event may use.
    fn begin<'a>(
        &'a mut self,
        at: Moment,
        effects: &'a mut Vec<Effect>,
    ) -> (&'a mut BTreeMap<GroupId, Group>, Turn<'a>) {
        assert!(self.in_flight.is_empty(), "an event before the fate of an append was told");
        self.resume(at, effects)
    }

    /// The same, in the course of an event.
    fn resume<'a>(
        &'a mut self,
        at: Moment,
        effects: &'a mut Vec<Effect>,
    ) -> (&'a mut BTreeMap<GroupId, Group>, Turn<'a>) {
        let turn = Turn {
            at,
            config: &self.config,
            saved: &self.saved,
            timers: &mut self.timers,
            in_flight: &mut self.in_flight,
            last_append: &mut self.last_append,
            effects,
        };
        (&mut self.groups, turn)
    }

    /// Changes the hard state; a group that ends takes its waiting along.
    fn apply(&mut self, record: &Record) {
        self.saved.apply(record);
        if let Record::GroupTombstone { group } = record {
            self.forget(group);
        }
    }

    /// Ends a group that nobody is in.
    fn forget(&mut self, id: &GroupId) {
        let Some(group) = self.groups.remove(id) else { return };
        assert!(group.members.is_empty(), "a group was deleted under its members");
        for pending in &group.pending {
            self.timers.cancel(&group.session_of(pending));
        }
    }

    /// A group that was only ever asked for need not be remembered, unless the record of its first
    /// members' leave is still under way.
    fn forget_if_idle(&mut self, id: &GroupId) {
        let Some(group) = self.groups.get(id) else { return };
        let unknown = self.saved.get(id).is_none_or(|saved| saved.metadata.is_none());
        let settled = group.generation == Generation::default() || self.in_flight.is_empty();
        if unknown && settled && group.is_idle() {
            self.forget(id);
        }
    }

    /// How many names there are, near enough for a limit: a name may be in either map or in both.
    fn group_count(&self) -> usize {
        self.saved.len().max(self.groups.len())
    }
}

/// What clients of groups expect to hear of a refused write: whether to look for the coordinator
/// elsewhere, to wait, or to give up.
fn as_coordinator(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge
        | ErrorCode::RecordListTooLarge
        | ErrorCode::InvalidFetchSize => ErrorCode::UnknownServerError,
        other => other,
    }
}
