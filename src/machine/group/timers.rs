//! What the groups wait for, ordered by time.

use super::record::{GroupId, MemberId};
use crate::types::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// One thing that happens unless it is put off or called off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The member, pending or full, was silent for too long.
    Session(GroupId, MemberId),
    /// The rebalance has waited long enough for members to join.
    Join(GroupId),
    /// Members that were told the generation have not asked for their assignment (KAFKA-12890).
    Sync(GroupId),
}

/// All timers of the partition; each runs at most once at a time.
#[derive(Debug, Default)]
pub(super) struct Timers {
    by_deadline: BTreeSet<(Instant, Timer)>,
    deadlines: BTreeMap<Timer, Instant>,
}

impl Timers {
    /// Starts `timer`, or puts it off, to `deadline`.
    pub(super) fn set(&mut self, timer: Timer, deadline: Instant) {
        self.cancel(&timer);
        self.by_deadline.insert((deadline, timer.clone()));
        self.deadlines.insert(timer, deadline);
    }

    /// Stops `timer` if it runs.
    pub(super) fn cancel(&mut self, timer: &Timer) {
        if let Some((timer, deadline)) = self.deadlines.remove_entry(timer) {
            self.by_deadline.remove(&(deadline, timer));
        }
    }

    /// When the next one ends.
    pub(super) fn first(&self) -> Option<Instant> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    /// Those that have ended, earliest first; they keep running until [`Timers::take`].
    pub(super) fn due(&self, now: Instant) -> Vec<(Instant, Timer)> {
        self.by_deadline.iter().take_while(|(deadline, _)| *deadline <= now).cloned().collect()
    }

    /// Stops a timer that [`Timers::due`] named; false when it was put off or stopped since.
    pub(super) fn take(&mut self, due: &(Instant, Timer)) -> bool {
        let taken = self.by_deadline.remove(due);
        if taken {
            self.deadlines.remove(&due.1);
        }
        taken
    }

    /// Whether `timer` runs.
    #[cfg(test)]
    pub(super) fn runs(&self, timer: &Timer) -> bool {
        self.deadlines.contains_key(timer)
    }
}
