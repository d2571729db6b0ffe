//! Which leader epoch began at which offset (KIP-101), kept beside the segments.
//!
//! The file `leader-epoch-checkpoint` is Kafka's: a line `0`, a line with the number of entries,
//! then `epoch offset` lines. It is written unsynced, since batches carry their epochs too.

use crate::types::{LeaderEpoch, Offset};

/// The file's name.
pub(crate) const FILE_NAME: &str = "leader-epoch-checkpoint";

/// Ascending in both numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epochs {
    entries: Vec<(LeaderEpoch, Offset)>,
}

impl Epochs {
    /// Notes that a batch of `epoch` begins at `offset`; says whether that was news.
    pub(crate) fn note(&mut self, epoch: LeaderEpoch, offset: Offset) -> bool {
        if epoch < LeaderEpoch(0) || self.latest().is_some_and(|latest| latest >= epoch) {
            return false;
        }
        // An epoch that began where this one begins has no records.
        self.entries.retain(|(_, start)| *start < offset);
        self.entries.push((epoch, offset));
        true
    }

    /// All entries, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (LeaderEpoch, Offset)> {
        self.entries.iter().copied()
    }

    /// The largest epoch noted.
    pub(crate) fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|(epoch, _)| *epoch)
    }

    /// The largest epoch up to `asked` and where it ended, `log_end` for the latest (KIP-320).
    /// `None` when `asked` is later than any noted, or earlier than all of them.
    pub(crate) fn end_of(
        &self,
        asked: LeaderEpoch,
        log_end: Offset,
    ) -> Option<(LeaderEpoch, Offset)> {
        if self.latest().is_none_or(|latest| asked > latest) {
            return None;
        }
        let after = self.entries.partition_point(|(epoch, _)| *epoch <= asked);
        let end = self.entries.get(after).map_or(log_end, |(_, start)| *start);
        let epoch = match after.checked_sub(1).and_then(|at| self.entries.get(at)) {
            Some((epoch, _)) => *epoch,
            // Everything of `asked` is gone; the oldest entry's start is where it must have ended.
            None => asked,
        };
        Some((epoch, end))
    }

    /// The epoch of the record at `offset`.
    pub(crate) fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.entries.partition_point(|(_, start)| *start <= offset);
        after.checked_sub(1).and_then(|at| self.entries.get(at)).map(|(epoch, _)| *epoch)
    }

    /// Forgets epochs that begin at `end` or later.
    pub(crate) fn truncate_end(&mut self, end: Offset) {
        self.entries.retain(|(_, start)| *start < end);
    }

    /// Forgets what lies wholly before `start`; the epoch in force there now begins there.
    pub(crate) fn truncate_start(&mut self, start: Offset) {
        let after = self.entries.partition_point(|(_, begin)| *begin <= start);
        self.entries.drain(..after.saturating_sub(1));
        if let Some((_, first)) = self.entries.first_mut() {
            *first = start.max(*first);
        }
    }

    /// The file's content.
    pub(crate) fn encode(&self) -> String {
        let mut text = format!("0\n{}\n", self.entries.len());
        for (epoch, start) in &self.entries {
            text.push_str(&format!("{epoch} {start}\n"));
        }
        text
    }

    /// Reads the file's content; `None` when it is not what [`Self::encode`] writes.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != "0" {
            return None;
        }
        let count: usize = lines.next()?.trim().parse().ok()?;
        let mut epochs = Self::default();
        for line in lines.by_ref().take(count) {
            let (epoch, start) = line.trim().split_once(' ')?;
            epochs.entries.push((LeaderEpoch(epoch.parse().ok()?), Offset(start.parse().ok()?)));
        }
        let ascends = epochs.entries.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1);
        (epochs.entries.len() == count && ascends).then_some(epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> Epochs {
        let mut epochs = Epochs::default();
        for (epoch, start) in entries {
            epochs.note(LeaderEpoch(*epoch), Offset(*start));
        }
        epochs
    }

    #[test]
    fn an_epochs_end_is_the_start_of_the_next_larger_one() {
        let epochs = epochs(&[(1, 0), (3, 10), (4, 20)]);
        let end = |epoch| {
            epochs.end_of(LeaderEpoch(epoch), Offset(25)).map(|(epoch, end)| (epoch.0, end.0))
        };
        assert_eq!(end(0), Some((0, 0)));
        assert_eq!(end(1), Some((1, 10)));
        assert_eq!(end(2), Some((1, 10)));
        assert_eq!(end(4), Some((4, 25)));
        assert_eq!(end(5), None);
        assert_eq!(epochs.epoch_at(Offset(19)), Some(LeaderEpoch(3)));
    }

    #[test]
    fn an_epoch_without_records_is_replaced() {
        assert_eq!(epochs(&[(1, 0), (2, 5), (3, 5)]), epochs(&[(1, 0), (3, 5)]));
    }

    #[test]
    fn truncation_keeps_the_epoch_in_force() {
        let mut cut = epochs(&[(1, 0), (3, 10), (4, 20)]);
        cut.truncate_start(Offset(15));
        assert_eq!(cut, epochs(&[(3, 15), (4, 20)]));
        cut.truncate_end(Offset(20));
        assert_eq!(cut, epochs(&[(3, 15)]));
    }

    #[test]
    fn the_file_reads_back_and_a_damaged_one_is_refused() {
        let some = epochs(&[(1, 0), (3, 10)]);
        assert_eq!(Epochs::decode(&some.encode()), Some(some.clone()));
        for damaged in ["", "1\n0\n", "0\n2\n1 0\n", "0\n2\n3 0\n1 5\n", "0\n1\n1\n"] {
            assert_eq!(Epochs::decode(damaged), None, "{damaged:?}");
        }
    }
}
