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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    /// A flush was asked for and has not begun.
    flush_wanted: AtomicBool,
    /// Runs flushes, on threads that may block.
    runtime: tokio::runtime::Handle,
    appending: Busy,
    flushing: Busy,
    /// It is durable which topic the directory belongs to.
    identified: AtomicBool,
}

/// Since when the disk has been at one operation, for the watchdog.
#[derive(Debug, Default)]
struct Busy {
    /// Milliseconds on the monotonic clock, plus one; 0 while nothing is under way.
    since: AtomicU64,
}

impl Busy {
    fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let now = clock::now().saturating_since(Instant::ZERO).as_millis();
        self.since.store(u64::try_from(now).unwrap_or(u64::MAX - 1) + 1, Ordering::Relaxed);
        let done = work();
        self.since.store(0, Ordering::Relaxed);
        done
    }

    fn is_stuck(&self, now: Instant) -> bool {
        match self.since.load(Ordering::Relaxed) {
            0 => false,
            since => now > Instant::ZERO + Duration::from_millis(since) + limits::DISK_STALL,
        }
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
            flush_wanted: AtomicBool::new(false),
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
        let appended = self.appending.during(|| self.log.append_as_leader(&batch, epoch, now));
        let appended = appended.map_err(|error| self.append_failed(error))?;
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
        let appended = self.appending.during(|| self.log.append_as_leader(&batch, epoch, now));
        let appended = appended.map_err(|error| self.append_failed(error))?;
        self.appended(epoch, &appended);
        Ok(appended)
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

    /// Has everything that is appended by now made durable, off this thread.
    pub(crate) fn flush_soon(self: &Arc<Self>) {
        if self.flush_wanted.swap(true, Ordering::AcqRel) {
            return;
        }
        let partition = self.clone();
        self.runtime.spawn_blocking(move || {
            // Cleared first: what is appended from here on asks for a flush of its own.
            partition.flush_wanted.store(false, Ordering::Release);
            partition.flush();
        });
    }

    /// Makes everything that is appended durable, on this thread.
    pub(crate) fn flush(self: &Arc<Self>) {
        let epoch = self.epoch();
        if !self.identified.swap(true, Ordering::AcqRel)
            && let Err(error) = self.dir.sync_identity(&self.name)
        {
            self.storage_failed(&error);
        }
        match self.flushing.during(|| self.log.flush()) {
            Ok(durable) => {
                let mut effects = Vec::new();
                self.decide().handle_flushed(epoch, durable.offset, &mut effects);
                self.perform(&effects);
            }
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
        if let Some(slice) = &slice {
            Traffic::add(&self.traffic.bytes_out, slice.length.into());
        }
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

/// Reads every batch between two offsets, for a coordinator that replays its log.
pub(crate) fn replay(
    partition: &Partition,
    from: Offset,
    mut each: impl FnMut(records::BatchHeader, &[u8]),
) -> Result<Offset, LogError> {
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
            Err(ReadError::Log(error)) => return Err(error),
        };
        let mut bytes = vec![0; slice.length as usize];
        let read = slice.file.read_at(&mut bytes, slice.position)?;
        bytes.truncate(read);
        let mut rest = bytes.as_slice();
        while let Ok(header) = records::BatchHeader::parse(rest) {
            let Some((batch, behind)) = rest.split_at_checked(header.size) else { break };
            if header.last_offset() >= next {
                each(header, batch);
                next = header.last_offset() + 1;
            }
            rest = behind;
        }
    }
}
