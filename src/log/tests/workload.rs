//! A log on a crashing disk that is given work as a seed says.

use super::history::{History, Written};
use super::*;
use crate::disk::Disk;
use crate::disk::sim::{Dice, SimDisk};
use crate::records::Validated;

/// What the log directory's checkpoints held at some moment.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    recovery_point: Offset,
    log_start: Offset,
}

/// A log, its disk, and what it was told.
pub(super) struct Workload {
    pub(super) disk: SimDisk,
    pub(super) history: History,
    log: Option<Log>,
    dice: Dice,
    epoch: LeaderEpoch,
    /// Of each of three producers.
    next_sequence: [i32; 3],
    /// The latest one last; recovery may begin from any of them.
    checkpoints: Vec<Checkpoint>,
    /// Whether consumers may see only what is durable.
    durably: bool,
    now: i64,
    /// The directory was closed, and nothing was done since.
    clean: bool,
}

const DIRECTORY: &str = "/logs/topic-0";

fn settings(dice: &mut Dice) -> LogConfig {
    LogConfig {
        segment_bytes: *dice.pick(&[500, 1_500, 4_000]),
        index_interval_bytes: *dice.pick(&[0, 200, 1_000]),
        retention_ms: -1,
        ..LogConfig::default()
    }
}

impl Workload {
    pub(super) fn new(seed: u64) -> Self {
        let disk = SimDisk::default();
        disk.create_dir(Path::new("/logs")).expect("directory");
        disk.sync_dir(Path::new("/")).expect("synced");
        let mut dice = Dice::new(seed);
        let durably = dice.chance(70);
        let none = Checkpoint { recovery_point: Offset::ZERO, log_start: Offset::ZERO };
        Self {
            disk,
            history: History::default(),
            log: None,
            dice,
            epoch: LeaderEpoch(0),
            next_sequence: [0; 3],
            checkpoints: vec![none],
            durably,
            now: 1_000,
            clean: false,
        }
    }

    /// Opens the log from what some checkpoint says; `None` when the power goes meanwhile.
    pub(super) fn open(&mut self) -> Option<()> {
        let checkpoint = *self.dice.pick(&self.checkpoints);
        let log_start = checkpoint.log_start;
        let recovery_point = (!self.clean).then_some(checkpoint.recovery_point);
        let how = OpenHow { recovery_point, log_start };
        let files = Arc::new(Files::new(Arc::new(self.disk.clone()), 3));
        let config = settings(&mut self.dice);
        let opened =
            Log::open(Path::new(DIRECTORY), files, config, how, (Timestamp(self.now), 0.0));
        let log = match opened {
            Ok(log) => log,
            Err(LogError::Disk(_)) => return None,
            Err(error) => panic!("not opened: {error}, {how:?}"),
        };
        self.history.check(&log, how);
        self.history.start = log.view().start;
        self.clean = false;
        self.epoch = LeaderEpoch(self.epoch.0 + 1);
        self.next_sequence = [0, 1, 2].map(|id| {
            let known = log.producers().into_iter().find(|(known, _)| known.0 == id);
            let last = known.and_then(|(_, producer)| producer.batches.back().copied());
            last.map_or(0, |last| last.last_sequence + 1)
        });
        self.log = Some(log);
        Some(())
    }

    /// The disk loses power; the next [`Self::open`] meets what is left.
    pub(super) fn crash(&mut self) {
        self.log = None;
        let seed = self.dice.roll();
        self.disk = self.disk.crash(seed);
    }

    /// Does `steps` things; `None` when the power went.
    pub(super) fn run(&mut self, steps: u64) -> Option<()> {
        for _ in 0..steps {
            match self.dice.below(20) {
                0..8 => self.append(None)?,
                8..13 => self.append_as_producer()?,
                13..16 => self.flush()?,
                16 => self.retain()?,
                17 => self.delete_before(),
                18 => self.checkpoint(),
                _ => self.other()?,
            }
        }
        Some(())
    }

    fn log(&self) -> &Log {
        self.log.as_ref().expect("an open log")
    }

    fn other(&mut self) -> Option<()> {
        match self.dice.below(5) {
            0 => self.epoch = LeaderEpoch(self.epoch.0 + 1),
            1 => {
                let config = settings(&mut self.dice);
                self.log().configure(config);
            }
            2 => self.repeat(),
            3 => {
                // The process is killed; the disk keeps running.
                self.log = None;
                self.open()?;
            }
            _ => {
                self.log().close().ok()?;
                self.history.flushed = self.log().view().end.offset;
                self.checkpoint();
                let last = *self.checkpoints.last().expect("one");
                self.log = None;
                // After the marker there is nothing but the checkpoint that was written with it.
                let before = std::mem::replace(&mut self.checkpoints, vec![last]);
                self.clean = true;
                self.open()?;
                self.checkpoints = before;
            }
        }
        Some(())
    }

    fn builder(&mut self) -> BatchBuilder {
        self.now += i64::try_from(self.dice.below(50)).expect("small");
        let mut builder = BatchBuilder::new(Timestamp(self.now));
        for _ in 0..=self.dice.below(3) {
            let size = usize::try_from(self.dice.below(300)).expect("small");
            let value = vec![u8::try_from(self.dice.below(256)).expect("small"); size];
            // Some records are from the past.
            let back = i64::try_from(self.dice.below(100)).expect("small");
            let record = NewRecord { value: Some(&value), ..NewRecord::default() };
            builder.push_at(record, Timestamp((self.now - back).max(0)));
        }
        builder
    }

    fn append_as_producer(&mut self) -> Option<()> {
        let which = usize::try_from(self.dice.below(3)).expect("small");
        self.append(Some(which))
    }

    fn append(&mut self, producer: Option<usize>) -> Option<()> {
        let builder = self.builder();
        let bytes = match producer {
            None => builder.finish(),
            Some(which) => {
                let id = ProducerId(i64::try_from(which).expect("small"));
                builder.finish_as(id, 0, self.next_sequence[which])
            }
        };
        let batch = validate(&bytes, &rules(), Timestamp(self.now)).expect("valid");
        if batch.header.size as u64 > self.log().config().segment_bytes {
            return Some(());
        }
        let base = self.log().view().end.offset;
        let written = Written::new(&batch, base, self.epoch);
        match self.log().append_as_leader(&batch, self.epoch, Timestamp(self.now)) {
            Ok(appended) => assert_eq!((appended.base_offset, appended.repeat), (base, None)),
            Err(AppendError::Disk(_) | AppendError::Failed) => {
                self.history.doubtful = Some(written);
                return None;
            }
            Err(error) => panic!("not appended: {error}"),
        }
        self.appended(&batch, producer);
        self.history.written.push(written);
        Some(())
    }

    fn appended(&mut self, batch: &Validated<'_>, producer: Option<usize>) {
        if let Some(which) = producer {
            self.next_sequence[which] += batch.header.record_count;
        }
        if !self.durably {
            let end = self.log().view().end.offset;
            self.log().advance_high_watermark(end);
        }
    }

    /// Sends one of the last five batches of a producer again.
    fn repeat(&mut self) {
        let producers = self.log().producers();
        let Some((id, producer)) = producers.first() else { return };
        let at = usize::try_from(self.dice.below(producer.batches.len() as u64)).expect("small");
        let past = producer.batches[at];
        let mut builder = BatchBuilder::new(Timestamp(self.now));
        for _ in 0..=past.offset_delta {
            builder.push(NewRecord::default());
        }
        let bytes = builder.finish_as(*id, producer.epoch, past.first_sequence);
        let batch = validate(&bytes, &rules(), Timestamp(self.now)).expect("valid");
        let end = self.log().view().end;
        let again = self.log().append_as_leader(&batch, self.epoch, Timestamp(self.now));
        let again = again.expect("known");
        assert_eq!((again.base_offset, again.repeat), (past.base_offset(), Some(past)));
        assert_eq!(self.log().view().end, end);
    }

    fn flush(&mut self) -> Option<()> {
        let end = self.log().view().end.offset;
        let flushed = self.log().flush().ok()?;
        assert_eq!((flushed.offset, self.log().durable()), (end, end));
        self.log().advance_high_watermark(end);
        self.history.flushed = end;
        Some(())
    }

    fn retain(&mut self) -> Option<()> {
        let retention_bytes = i64::try_from(self.dice.below(6_000)).expect("small");
        // Now and then everything is too old.
        let retention_ms = if self.dice.chance(20) { 0 } else { -1 };
        let config = LogConfig::clone(&self.log().config());
        self.log().configure(LogConfig { retention_bytes, retention_ms, ..config });
        let removed = self.log().retain(Timestamp(self.now + 1));
        self.history.start = self.history.start.max(self.log().view().start);
        for path in removed.ok()?.files {
            if self.dice.chance(50) {
                self.disk.remove_file(&path).ok()?;
            }
        }
        Some(())
    }

    fn delete_before(&mut self) {
        let view = self.log().view();
        let (start, to) = (view.start.0, view.high_watermark.offset.0);
        let span = u64::try_from(to - start).expect("start below the high watermark");
        let to = start + i64::try_from(self.dice.below(span + 1)).expect("small");
        let now = self.log().delete_before(Offset(to));
        assert_eq!(now, Some(Offset(to)));
        self.history.start = self.history.start.max(Offset(to));
    }

    /// What the log directory would write now.
    fn checkpoint(&mut self) {
        let recovery_point = self.log().durable().max(Offset::ZERO);
        let log_start = self.log().view().start;
        self.checkpoints.push(Checkpoint { recovery_point, log_start });
    }
}
