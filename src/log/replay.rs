//! Producers and epochs at the log's end: from the newest state that was saved, and the batches
//! behind it.

use super::check::remove_states;
use super::epochs::{self, Epochs};
use super::producers::Producers;
use super::scan::HeadScanner;
use super::segment::{Segment, file_name};
use super::{LogError, snapshot};
use crate::disk::{self, Disk};
use crate::types::Offset;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// What is known behind the last batch.
#[derive(Default)]
pub(super) struct Replay {
    pub(super) producers: Producers,
    pub(super) epochs: Epochs,
    pub(super) end: Offset,
}

impl Replay {
    /// Reads the newest sound state and every batch behind it. States that will not be needed
    /// again are removed.
    pub(super) fn run(
        disk: &dyn Disk,
        directory: &Path,
        segments: &[Arc<Segment>],
    ) -> Result<Self, LogError> {
        let first = segments.first().map_or(Offset::ZERO, |segment| segment.base());
        let bases = saved(disk, directory)?;
        let mut replay = Self { end: first, ..Self::default() };
        let read = |base: Offset, extension: &str| {
            disk::read_file(disk, &directory.join(file_name(base, extension))).unwrap_or_default()
        };
        let sound = bases.range(first..).rev().find_map(|base| {
            let state = snapshot::decode(&read(*base, "snapshot"), &read(*base, "sequences"));
            if state.is_none() {
                let directory = directory.display();
                tracing::warn!(%base, %directory, "producers' state damaged or not whole");
            }
            Some((*base, state?))
        });
        match sound {
            Some((base, (producers, epochs))) => {
                (replay.producers, replay.epochs, replay.end) = (producers, epochs, base);
                replay.read(segments)?;
            }
            None => {
                replay.epochs = read_epochs(disk, directory);
                replay.read(segments)?;
                replay.epochs.truncate_end(replay.end);
                // Kafka's own file tells of producers whose batches are gone. One from before the
                // first batch does not: it lacks what was written and removed since.
                let after = bases.range(first..).rev();
                let mut snapshots = after.map(|base| read(*base, "snapshot"));
                if let Some(known) = snapshots.find_map(|s| snapshot::decode_snapshot(&s)) {
                    replay.producers.restore_unknown(known);
                }
            }
        }
        replay.epochs.truncate_start(first);
        let newest = bases.last().copied();
        let needed =
            |base| Some(base) == newest || segments.iter().any(|segment| segment.base() == base);
        remove_states(disk, directory, |base| !needed(base))?;
        Ok(replay)
    }

    fn read(&mut self, segments: &[Arc<Segment>]) -> Result<(), LogError> {
        let from = self.end;
        let at = segments.partition_point(|segment| segment.base() <= from).saturating_sub(1);
        for segment in segments.get(at..).unwrap_or_default() {
            let size = segment.size();
            let Some(found) = segment.locate(from, size)? else { continue };
            let file = segment.file()?;
            let mut scanner = HeadScanner::new(&*file, segment.base(), found.position, size);
            while let Some((_, header)) = scanner.next()? {
                self.producers.note(&header);
                self.epochs.note(header.leader_epoch, header.base_offset);
                self.end = header.last_offset() + 1;
            }
        }
        Ok(())
    }
}

/// The offsets of which a state was saved.
fn saved(disk: &dyn Disk, directory: &Path) -> Result<BTreeSet<Offset>, LogError> {
    let names = disk.read_dir(directory)?;
    let bases = names.iter().filter_map(|name| name.strip_suffix(".snapshot")?.parse().ok());
    Ok(bases.map(Offset).collect())
}

/// What the epochs' file says: it knows more than the batches where compaction took some.
fn read_epochs(disk: &dyn Disk, directory: &Path) -> Epochs {
    let content = disk::read_file(disk, &directory.join(epochs::FILE_NAME)).unwrap_or_default();
    String::from_utf8(content).ok().and_then(|text| Epochs::decode(&text)).unwrap_or_default()
}
