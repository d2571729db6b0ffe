//! One partition on this broker: the bytes, and how far they are committed.

use super::waiters::Waiters;
use crate::clock;
use crate::config::{CompressionType, FlushBeforeAck, TimestampKind, TopicConfig};
use crate::disk::DiskError;
use crate::limits;
use crate::log::{
    AppendError, Appended, Log, LogConfig, LogDir, LogError, LogSlice, ReadError, TimeFound, UpTo,
};
use crate::machine::replica::{Effect, Replica};
use crate::protocol::ErrorCode;
use crate::records::{self, Compression, Levels, Refusal, Rules, TimestampType, validate};
use crate::types::{Instant, LeaderEpoch, Offset, Timestamp, TopicPartition};
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::RuntimeFlavor;

/// A partition that this broker leads.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) name: TopicPartition,
    pub(crate) log: Log,
    pub(crate) dir: Arc<LogDir>,
    pub(crate) waiters: Waiters,
    pub(crate) traffic: Traffic,
    /// Guards the decisions; held for one of them, never with the log's lock.
    replica: Mutex<Replica>,
    settings: ArcSwap<Settings>,
    /// Flushes asked for and not finished: none, one under way, or one more behind it.
    flushes: AtomicU8,
    /// Runs flushes, on threads that may block.
    runtime: tokio::runtime::Handle,
    /// Only a runtime with several workers has another thread to take over.
    may_give_worker_away: bool,
    appending: Busy,
    flushing: Busy,
    /// It is durable which topic the directory belongs to.
    identified: AtomicBool,
}

/// Whether the disk gets on with what was asked of it, for the watchdog.
#[derive(Debug, Default)]
struct Busy {
    /// Operations under way, those that wait for another included.
    under_way: AtomicU64,
    /// When one began with none before it, or ended: milliseconds on the monotonic clock.
    progress: AtomicU64,
}

impl Busy {
    fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.under_way.load(Ordering::Acquire) == 0 {
            self.note_progress();
        }
        self.under_way.fetch_add(1, Ordering::AcqRel);
        let done = work();
        self.note_progress();
        self.under_way.fetch_sub(1, Ordering::AcqRel);
        done
    }

    fn note_progress(&self) {
        let now = clock::now().saturating_since(Instant::ZERO).as_millis();
        self.progress.store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// How long nothing has come of what is under way.
    fn stalled(&self, now: Instant) -> Duration {
        let progress = Duration::from_millis(self.progress.load(Ordering::Acquire));
        if self.under_way.load(Ordering::Acquire) == 0 {
            return Duration::ZERO;
        }
        now.saturating_since(Instant::ZERO + progress)
    }

    fn is_stuck(&self, now: Instant) -> bool {
        self.stalled(now) > limits::DISK_STALL
    }
}

/// A topic's settings, and what they demand of a batch.
#[derive(Debug)]
struct Settings {
    config: TopicConfig,
    rules: Rules,
}

/// Counters that a scrape reads; nothing here allocates.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) bytes_in: AtomicU64,
    pub(crate) records_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) produce_requests: AtomicU64,
    pub(crate) fetch_requests: AtomicU64,
    pub(crate) failed_produces: AtomicU64,
}

impl Traffic {
    /// Adds to one of the counters.
    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

/// What a reader gets of a partition.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) slice: Option<LogSlice>,
    pub(crate) high_watermark: Offset,
    pub(crate) log_start: Offset,
}

/// How to build a partition, besides its log.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: TopicPartition,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) config: TopicConfig,
    pub(crate) runtime: tokio::runtime::Handle,
}

impl Partition {
    /// Leads a partition on an opened log, all of which counts as committed: it is the only copy.
    pub(crate) fn lead(setup: Setup, log: Log, dir: Arc<LogDir>) -> Self {
        let durably = setup.config.flush_before_ack == FlushBeforeAck::AcksAll;
        let end = log.view().end.offset;
        Self {
            name: setup.name,
            replica: Mutex::new(Replica::leader(setup.epoch, durably, end)),
            log,
            dir,
            waiters: Waiters::default(),
            traffic: Traffic::default(),
            settings: ArcSwap::from_pointee(Settings::new(setup.config)),
            flushes: AtomicU8::new(0),
            may_give_worker_away: setup.runtime.runtime_flavor() == RuntimeFlavor::MultiThread,
            runtime: setup.runtime,
            appending: Busy::default(),
            flushing: Busy::default(),
            identified: AtomicBool::new(false),
        }
    }

    /// Under which epoch this broker leads it.
    pub(crate) fn epoch(&self) -> LeaderEpoch {
        self.decide().epoch()
    }

    /// Checks the epoch that a client believes in; −1 when it believes in none (KIP-320).
    pub(crate) fn check_epoch(&self, believed: i32) -> Result<(), ErrorCode> {
        let own = self.epoch().0;
        match believed {
            -1 => Ok(()),
            older if older < own => Err(ErrorCode::FencedLeaderEpoch),
            newer if newer > own => Err(ErrorCode::UnknownLeaderEpoch),
            _ => Ok(()),
        }
    }

    /// The largest leader epoch up to `asked` and where it ended (KIP-320).
    pub(crate) fn end_of_epoch(&self, asked: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        // The epoch in force is not in the log before its first record.
        if asked == self.epoch() {
            return Some((asked, self.log.view().end.offset));
        }
        self.log.end_of_epoch(asked)
    }

    /// Puts a topic's changed settings in force.
    pub(crate) fn configure(self: &Arc<Self>, config: TopicConfig) {
        let durably = config.flush_before_ack == FlushBeforeAck::AcksAll;
        self.log.configure(log_config(&config));
        self.settings.store(Arc::new(Settings::new(config)));
        let mut effects = Vec::new();
        self.decide().handle_durably(durably, &mut effects);
        self.perform(&effects);
    }

    /// Checks a producer's batch and appends it. It is committed once the high watermark reaches
    /// the end of what was appended.
    pub(crate) fn append(
        self: &Arc<Self>,
        bytes: &[u8],
        now: Timestamp,
    ) -> Result<Appended, Refusal> {
        let result = self.append_checked(bytes, now);
        match &result {
            Ok(_) => {
                Traffic::add(&self.traffic.bytes_in, bytes.len() as u64);
                self.dir.note_written(bytes.len());
            }
            Err(_) => Traffic::add(&self.traffic.failed_produces, 1),
        }
        result
    }

    fn append_checked(self: &Arc<Self>, bytes: &[u8], now: Timestamp) -> Result<Appended, Refusal> {
        if self.dir.is_offline() || self.dir.is_nearly_full() {
            return Err(storage_error());
        }
        let settings = self.settings.load();
        let batch = validate(bytes, &settings.rules, now)?;
        Traffic::add(&self.traffic.records_in, batch.header.record_count.unsigned_abs().into());
        let epoch = self.epoch();
        let appended = self.write(|| self.log.append_as_leader(&batch, epoch, now))?;
        self.appended(epoch, &appended);
        Ok(appended)
    }

    /// Appends records that a coordinator made, under the epoch it was loaded under.
    pub(crate) fn append_own(
        self: &Arc<Self>,
        bytes: &[u8],
        epoch: LeaderEpoch,
        now: Timestamp,
    ) -> Result<Appended, Refusal> {
        if self.dir.is_offline() || epoch != self.epoch() {
            return Err(storage_error());
        }
        let batch = validate(bytes, &self.settings.load().rules, now)?;
        let appended = self.write(|| self.log.append_as_leader(&batch, epoch, now))?;
        self.appended(epoch, &appended);
        Ok(appended)
    }

    /// Appends. Where another append takes long the worker is given away meanwhile, and where it
    /// does not end nobody else waits for it: one disk that hangs must not hold up all partitions.
    fn write(
        &self,
        append: impl FnOnce() -> Result<Appended, AppendError>,
    ) -> Result<Appended, Refusal> {
        let mut began = None;
        while self.log.is_busy() {
            let now = clock::now();
            let waited = now.saturating_since(*began.get_or_insert(now));
            let stalled = self.appending.stalled(now).max(waited);
            if stalled > limits::DISK_PATIENCE {
                return Err(storage_error());
            }
            if stalled > limits::DISK_SLOW && self.may_give_worker_away {
                let appended = tokio::task::block_in_place(|| self.appending.during(append));
                return appended.map_err(|error| self.append_failed(error));
            }
            std::thread::yield_now();
        }
        self.appending.during(append).map_err(|error| self.append_failed(error))
    }

    fn appended(self: &Arc<Self>, epoch: LeaderEpoch, appended: &Appended) {
        let mut effects = Vec::new();
        self.decide().handle_appended(epoch, appended.end, &mut effects);
        self.perform(&effects);
        if appended.flush_due {
            self.flush_soon();
        }
    }

    fn append_failed(&self, error: AppendError) -> Refusal {
        match error {
            AppendError::Refused(code) => Refusal {
                code,
                message: format!("{code:?} in partition {}", self.name),
                records: Vec::new(),
            },
            AppendError::LargerThanSegment { .. } => Refusal {
                code: ErrorCode::RecordListTooLarge,
                message: error.to_string(),
                records: Vec::new(),
            },
            AppendError::Failed => storage_error(),
            AppendError::Disk(disk) => {
                self.disk_failed(&disk);
                storage_error()
            }
        }
    }

    /// Where space, descriptors or memory ran out, what was there stands (a partial write was cut
    /// back) and more may come; after any other failure the log directory is out of use.
    fn disk_failed(&self, error: &DiskError) {
        if error.is_full() {
            self.dir.note_full();
            tracing::error!(partition = %self.name, %error, "disk full");
        } else if error.is_shortage() {
            tracing::error!(partition = %self.name, %error, "out of descriptors or memory");
        } else {
            self.storage_failed(error);
        }
    }

    /// Takes the log directory out of use after an error that cannot be undone.
    fn storage_failed(&self, error: &dyn std::fmt::Display) {
        // The files of a deleted topic are missing, and nothing has failed (KAFKA-15391).
        if !self.log.is_given_up() && self.dir.take_offline() {
            let path = self.dir.path().display();
            tracing::error!(directory = %path, %error, "log directory failed, taken offline");
        }
        self.waiters.wake_all();
    }

    fn perform(self: &Arc<Self>, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::CommittedTo(offset) => {
                    self.log.advance_high_watermark(*offset);
                    self.waiters.wake_to(*offset);
                }
                Effect::Flush => self.flush_soon(),
            }
        }
    }

    /// Has everything that is appended by now made durable, off this thread. However slow the disk
    /// is, a partition takes one thread at a time.
    pub(crate) fn flush_soon(self: &Arc<Self>) {
        let more = |flushes: u8| (flushes < 2).then_some(flushes + 1);
        let before = self.flushes.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        if before != Ok(0) {
            return;
        }
        let partition = self.clone();
        self.runtime.spawn_blocking(move || {
            loop {
                partition.flush();
                if partition.flushes.fetch_sub(1, Ordering::AcqRel) == 1 {
                    break;
                }
            }
        });
    }

    /// Makes everything that is appended durable, on this thread.
    fn flush(self: &Arc<Self>) {
        let epoch = self.epoch();
        if !self.identified.load(Ordering::Acquire) {
            if let Err(error) = self.dir.sync_identity(&self.name) {
                self.disk_failed(&error);
                return;
            }
            self.identified.store(true, Ordering::Release);
        }
        match self.flushing.during(|| self.log.flush()) {
            Ok(durable) => {
                let mut effects = Vec::new();
                self.decide().handle_flushed(epoch, durable.offset, &mut effects);
                self.perform(&effects);
            }
            Err(AppendError::Disk(error)) if error.is_shortage() => self.disk_failed(&error),
            Err(AppendError::Disk(error)) => self.storage_failed(&error),
            Err(_) => self.waiters.wake_all(),
        }
    }

    /// Takes the directory out of use when the disk has not come back for so long that it will
    /// not (KAFKA-15046 and the stalls that no error ends).
    pub(crate) fn watch(&self, now: Instant) {
        if self.appending.is_stuck(now) || self.flushing.is_stuck(now) {
            self.storage_failed(&"the disk does not answer");
        }
    }

    /// Reads from `from` on, below the high watermark.
    pub(crate) fn read(
        &self,
        from: Offset,
        bytes_max: u32,
        at_least_one: bool,
    ) -> Result<Read, ErrorCode> {
        if self.dir.is_offline() {
            return Err(ErrorCode::KafkaStorageError);
        }
        let (high_watermark, log_start) = {
            let view = self.log.view();
            (view.high_watermark.offset, view.start)
        };
        let slice = self
            .log
            .read(from, bytes_max, at_least_one, UpTo::HighWatermark)
            .map_err(|error| self.read_failed(error))?;
        Ok(Read { slice, high_watermark, log_start })
    }

    fn read_failed(&self, error: ReadError) -> ErrorCode {
        match error {
            ReadError::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
            ReadError::Log(error) => self.log_failed(&error),
        }
    }

    /// Takes the directory offline where the disk failed, and gives what to answer.
    pub(crate) fn log_failed(&self, error: &LogError) -> ErrorCode {
        match error {
            LogError::Corrupt { .. } => {
                tracing::error!(partition = %self.name, %error, "log damaged");
                ErrorCode::KafkaStorageError
            }
            // Somebody took a segment away. The others, and the disk, are as good as before.
            LogError::Disk(missing) if missing.is_not_found() => {
                tracing::error!(partition = %self.name, %error, "log damaged, a file is missing");
                ErrorCode::KafkaStorageError
            }
            LogError::Disk(error) => {
                self.disk_failed(error);
                ErrorCode::KafkaStorageError
            }
        }
    }

    /// The first record as late as `timestamp`.
    pub(crate) fn find_time(&self, timestamp: Timestamp) -> Result<Option<TimeFound>, ErrorCode> {
        self.log.find_time(timestamp).map_err(|error| self.log_failed(&error))
    }

    /// The record with the latest timestamp.
    pub(crate) fn find_latest_time(&self) -> Result<Option<TimeFound>, ErrorCode> {
        self.log.find_latest_time().map_err(|error| self.log_failed(&error))
    }

    /// Whether nothing will be committed here any more: the disk failed, or the topic is gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.dir.is_offline() || self.log.is_closed()
    }

    /// Everything before it is committed.
    pub(crate) fn high_watermark(&self) -> Offset {
        self.log.view().high_watermark.offset
    }

    fn decide(&self) -> MutexGuard<'_, Replica> {
        self.replica.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn storage_error() -> Refusal {
    Refusal {
        code: ErrorCode::KafkaStorageError,
        message: "the log directory cannot be written".to_owned(),
        records: Vec::new(),
    }
}

impl Settings {
    fn new(config: TopicConfig) -> Self {
        let rules = Rules {
            batch_bytes_max: config.message_bytes_max,
            timestamp_type: match config.timestamp_type {
                TimestampKind::CreateTime => TimestampType::CreateTime,
                TimestampKind::LogAppendTime => TimestampType::LogAppendTime,
            },
            before_max_ms: config.timestamp_before_max_ms,
            after_max_ms: config.timestamp_after_max_ms,
            needs_keys: config.compacts,
            compression: match config.compression {
                CompressionType::Producer => None,
                CompressionType::None => Some(Compression::None),
                CompressionType::Gzip => Some(Compression::Gzip),
                CompressionType::Snappy => Some(Compression::Snappy),
                CompressionType::Lz4 => Some(Compression::Lz4),
                CompressionType::Zstd => Some(Compression::Zstd),
            },
            levels: Levels {
                gzip: (config.gzip_level >= 0).then_some(config.gzip_level),
                zstd: config.zstd_level,
            },
            strict: config.strict_validation,
        };
        Self { config, rules }
    }
}

impl Partition {
    /// The topic's settings in force.
    pub(crate) fn config(&self) -> TopicConfig {
        self.settings.load().config.clone()
    }
}

/// The part of a topic's settings that the log itself follows.
pub(crate) fn log_config(config: &TopicConfig) -> LogConfig {
    LogConfig {
        segment_bytes: config.segment_bytes,
        segment_ms: config.segment_ms,
        segment_jitter_ms: config.segment_jitter_ms,
        segment_index_bytes: config.segment_index_bytes,
        index_interval_bytes: config.index_interval_bytes,
        retention_ms: config.retention_ms,
        retention_bytes: config.retention_bytes,
        deletes: config.deletes,
        compacts: config.compacts,
        file_delete_delay_ms: config.file_delete_delay_ms,
        flush_messages: config.flush_messages,
    }
}

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A batch is whole, and does not hold what its head says.
    #[error("the batch at offset {offset}: {what}")]
    Batch { offset: Offset, what: String },
}

impl From<DiskError> for ReplayError {
    fn from(error: DiskError) -> Self {
        Self::Log(error.into())
    }
}

/// Reads every batch from an offset on, for a coordinator that replays its log, as long as `each`
/// can make sense of them.
pub(crate) fn replay(
    partition: &Partition,
    from: Offset,
    mut each: impl FnMut(&records::BatchHeader, &[u8]) -> Result<(), String>,
) -> Result<Offset, ReplayError> {
    let mut next = from;
    loop {
        let slice = match partition.log.read(next, limits::REPLAY_READ_BYTES, true, UpTo::End) {
            Ok(Some(slice)) => slice,
            Ok(None) => return Ok(next),
            Err(ReadError::OutOfRange { start, .. }) if next < start => {
                next = start;
                continue;
            }
            Err(ReadError::OutOfRange { .. }) => return Ok(next),
            Err(ReadError::Log(error)) => return Err(error.into()),
        };
        let mut bytes = vec![0; slice.length as usize];
        let read = slice.file.read_at(&mut bytes, slice.position)?;
        bytes.truncate(read);
        let mut rest = bytes.as_slice();
        while let Ok(header) = records::BatchHeader::parse(rest) {
            let Some((batch, behind)) = rest.split_at_checked(header.size) else { break };
            if header.last_offset() >= next {
                each(&header, batch)
                    .map_err(|what| ReplayError::Batch { offset: header.base_offset, what })?;
                next = header.last_offset() + 1;
            }
            rest = behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::SimDisk;

    #[test]
    fn a_disk_is_stuck_when_nothing_comes_of_it_for_a_minute() {
        let busy = Busy::default();
        let later = |seconds| clock::now() + Duration::from_secs(seconds);
        busy.during(|| ());
        assert!(!busy.is_stuck(later(3_600)), "nothing is under way");
        let (began, is_under_way) = std::sync::mpsc::channel();
        let (end, may_end) = std::sync::mpsc::channel::<()>();
        let stuck = std::thread::scope(|scope| {
            let busy = &busy;
            scope.spawn(move || {
                busy.during(|| {
                    began.send(()).expect("heard");
                    may_end.recv().expect("told");
                });
            });
            is_under_way.recv().expect("begun");
            let stuck = [50, 61].map(|seconds| busy.is_stuck(later(seconds)));
            end.send(()).expect("heard");
            stuck
        });
        assert_eq!(stuck, [false, true]);
        assert!(!busy.is_stuck(later(3_600)));
    }

    /// Each flush asked for took a thread, and a slow disk took them all.
    #[test]
    fn however_many_flushes_are_asked_for_one_thread_waits_for_the_disk() {
        let root = tempfile::tempdir().expect("directory");
        let disk = SimDisk::default();
        let dir = Arc::new(LogDir::open(Arc::new(disk.clone()), root.path()).expect("open"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_time()
            .max_blocking_threads(2)
            .build();
        let runtime = runtime.expect("runtime");
        let name = TopicPartition::new("a", 0);
        dir.create_partition(&name, crate::types::TopicId::nil()).expect("made");
        let path = dir.partition_path(&name);
        let files = Arc::new(crate::log::Files::new(dir.disk().clone(), 10));
        let at = (Timestamp(0), 0.0);
        let log = Log::open(&path, files, LogConfig::default(), crate::log::OpenHow::NEW, at);
        let setup = Setup {
            name,
            epoch: LeaderEpoch(0),
            config: TopicConfig::default(),
            runtime: runtime.handle().clone(),
        };
        let partition = Arc::new(Partition::lead(setup, log.expect("opened"), dir));
        disk.hold_syncs(true);
        for _ in 0..100 {
            partition.flush_soon();
        }
        let other = runtime.block_on(async {
            let other = tokio::task::spawn_blocking(|| ());
            tokio::select! {
                done = other => done.is_ok(),
                () = clock::sleep_until(clock::now() + Duration::from_secs(10)) => false,
            }
        });
        disk.hold_syncs(false);
        assert!(other, "no thread was left");
    }
}
