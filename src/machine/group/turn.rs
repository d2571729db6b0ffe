//! What one event may use beside the group it concerns.

use super::Config;
use super::event::{JoinGroup, Moment, Ticket};
use super::record::{Generation, GroupId, MemberId, Record};
use super::response::{Append, AppendId, Effect, Response};
use super::saved::Saved;
use super::timers::{Timer, Timers};
use crate::protocol::ErrorCode;
use crate::types::TopicPartition;
use std::collections::BTreeMap;
use std::time::Duration;

/// What an append was for: what is still to be done once its fate is known.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Nothing waits for it: expired offsets, deleted topics, a group that became empty. What is
    /// lost by a refusal is tried again by the next expiry.
    Background,
    /// The leader's assignment: it counts, and is told to the members, only once it is kept.
    Assign {
        /// The group.
        group: GroupId,
        /// The rebalance it belongs to.
        generation: Generation,
    },
    /// A static member's new id. Another coordinator must fence the old one too, and must not
    /// fence the new one, which would end an honest client (KAFKA-10284).
    Succeed(Box<Succession>),
    /// Offsets: what to answer for each row if they are kept.
    Commit {
        /// Who waits.
        ticket: Ticket,
        /// The answer.
        rows: Vec<(TopicPartition, ErrorCode)>,
    },
    /// Offsets an administrator forgets: what to answer for each row once they are gone.
    Forget {
        /// Who waits.
        ticket: Ticket,
        /// The answer.
        rows: Vec<(TopicPartition, ErrorCode)>,
    },
    /// Part of a group that an administrator deletes; the rest follows.
    Delete {
        /// Who waits.
        ticket: Ticket,
        /// The group.
        group: GroupId,
    },
}

/// A static member that came back without an id.
#[derive(Debug)]
pub(super) struct Succession {
    /// What it asks.
    pub(super) join: JoinGroup,
    /// The id it gets.
    pub(super) new: MemberId,
    /// The id it has here; none if its session has ended, and only the log still knows it.
    pub(super) old: Option<MemberId>,
}

/// One event's time and means.
pub(super) struct Turn<'a> {
    /// When it happens.
    pub(super) at: Moment,
    /// The settings.
    pub(super) config: &'a Config,
    /// What the log says.
    pub(super) saved: &'a Saved,
    /// What is waited for.
    pub(super) timers: &'a mut Timers,
    /// Appends whose fate is not known yet; none between events.
    pub(super) in_flight: &'a mut BTreeMap<AppendId, Purpose>,
    /// The last append's number.
    pub(super) last_append: &'a mut AppendId,
    /// What the shell will do.
    pub(super) effects: &'a mut Vec<Effect>,
}

impl Turn<'_> {
    /// Answers a request.
    pub(super) fn reply(&mut self, ticket: Ticket, response: Response) {
        self.effects.push(Effect::Reply { ticket, response });
    }

    /// Has `records` written.
    pub(super) fn append(&mut self, records: Vec<Record>, purpose: Purpose) {
        assert!(!records.is_empty(), "an append of nothing");
        self.last_append.0 += 1;
        let id = *self.last_append;
        self.in_flight.insert(id, purpose);
        self.effects.push(Effect::Append(Append { id, records }));
    }

    /// Starts `timer`, or puts it off, to end after `span`.
    pub(super) fn start(&mut self, timer: Timer, span: Duration) {
        self.timers.set(timer, self.at.now + span);
    }

    /// Stops `timer`.
    pub(super) fn stop(&mut self, timer: &Timer) {
        self.timers.cancel(timer);
    }
}
