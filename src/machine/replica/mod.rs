//! How far a partition is committed, as its leader sees it.
//!
//! The leader's own term in the high watermark is its log's end, or its *durable* end where what
//! is acknowledged must survive a loss of power (`ottla.flush.before.ack=acks-all`).

use crate::types::{LeaderEpoch, Offset};

/// What the shell is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Everything before the offset is committed: publish it, wake who waits for it.
    CommittedTo(Offset),
    /// The high watermark waits for the leader's own disk.
    Flush,
}

/// The leader's view of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replica {
    epoch: LeaderEpoch,
    /// Whether only what is durable counts.
    durably: bool,
    end: Offset,
    durable: Offset,
    high_watermark: Offset,
}

/// The largest offset that every in-sync replica has, never below what was committed before.
pub(crate) fn high_watermark(committed: Offset, ends: impl IntoIterator<Item = Offset>) -> Offset {
    ends.into_iter().min().map_or(committed, |least| least.max(committed))
}

impl Replica {
    /// Leads from `epoch` on a log that ends at `end`, all of it durable and committed.
    pub(crate) fn leader(epoch: LeaderEpoch, durably: bool, end: Offset) -> Self {
        Self { epoch, durably, end, durable: end, high_watermark: end }
    }

    /// Under which epoch it leads.
    pub(crate) fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// The log now ends at `end`. Ends of another epoch, and ends that are old news, say nothing.
    pub(crate) fn handle_appended(
        &mut self,
        epoch: LeaderEpoch,
        end: Offset,
        effects: &mut Vec<Effect>,
    ) {
        if epoch != self.epoch || end <= self.end {
            return;
        }
        self.end = end;
        if self.durably {
            effects.push(Effect::Flush);
        }
        self.advance(effects);
    }

    /// Everything before `end` survives a loss of power.
    pub(crate) fn handle_flushed(
        &mut self,
        epoch: LeaderEpoch,
        end: Offset,
        effects: &mut Vec<Effect>,
    ) {
        if epoch != self.epoch || end <= self.durable {
            return;
        }
        self.durable = end;
        self.end = self.end.max(end);
        self.advance(effects);
    }

    /// Counts what is durable, or what is appended, from now on.
    pub(crate) fn handle_durably(&mut self, durably: bool, effects: &mut Vec<Effect>) {
        self.durably = durably;
        if durably && self.durable < self.end {
            effects.push(Effect::Flush);
        }
        self.advance(effects);
    }

    fn advance(&mut self, effects: &mut Vec<Effect>) {
        let own = if self.durably { self.durable } else { self.end };
        let committed = high_watermark(self.high_watermark, [own]);
        assert!(committed <= self.end, "committed {committed} above the log's end {}", self.end);
        if committed > self.high_watermark {
            self.high_watermark = committed;
            effects.push(Effect::CommittedTo(committed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: LeaderEpoch = LeaderEpoch(2);

    fn effects(
        replica: &mut Replica,
        act: impl FnOnce(&mut Replica, &mut Vec<Effect>),
    ) -> Vec<Effect> {
        let mut effects = Vec::new();
        act(replica, &mut effects);
        effects
    }

    #[test]
    fn without_flushing_what_is_appended_is_committed() {
        let mut replica = Replica::leader(EPOCH, false, Offset(5));
        let seen = effects(&mut replica, |r, e| r.handle_appended(EPOCH, Offset(7), e));
        assert_eq!(seen, [Effect::CommittedTo(Offset(7))]);
    }

    #[test]
    fn flushing_before_the_answer_commits_only_what_is_durable() {
        let mut replica = Replica::leader(EPOCH, true, Offset(5));
        let seen = effects(&mut replica, |r, e| r.handle_appended(EPOCH, Offset(7), e));
        assert_eq!(seen, [Effect::Flush]);
        effects(&mut replica, |r, e| r.handle_appended(EPOCH, Offset(9), e));
        let seen = effects(&mut replica, |r, e| r.handle_flushed(EPOCH, Offset(7), e));
        assert_eq!(seen, [Effect::CommittedTo(Offset(7))]);
        let seen = effects(&mut replica, |r, e| r.handle_durably(false, e));
        assert_eq!(seen, [Effect::CommittedTo(Offset(9))]);
    }

    #[test]
    fn ends_of_another_epoch_and_old_ends_are_ignored() {
        let mut replica = Replica::leader(EPOCH, false, Offset(5));
        for (epoch, end) in [(LeaderEpoch(1), Offset(9)), (EPOCH, Offset(5)), (EPOCH, Offset(3))] {
            assert_eq!(effects(&mut replica, |r, e| r.handle_appended(epoch, end, e)), []);
            assert_eq!(effects(&mut replica, |r, e| r.handle_flushed(epoch, end, e)), []);
        }
    }

    #[test]
    fn the_high_watermark_is_the_smallest_end_and_never_goes_back() {
        let ends = |ends: &[i64]| high_watermark(Offset(4), ends.iter().copied().map(Offset));
        assert_eq!(ends(&[9, 6, 8]), Offset(6));
        assert_eq!(ends(&[9, 3]), Offset(4));
        assert_eq!(ends(&[]), Offset(4));
    }
}
