//! What is done now and then: retention, checkpoints, flushes by time, space, removals.

use super::{Broker, Partitions};
use crate::clock;
use crate::machine::controller::Topic;
use crate::types::{Instant, TopicPartition};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often deadlines are looked at.
const TURN: Duration = Duration::from_millis(200);
/// How often free space is asked for.
const SPACE_EVERY: Duration = Duration::from_secs(1);
/// How often partitions are tried that could not be opened.
const MISSING_EVERY: Duration = Duration::from_secs(2);
/// How often a worker is woken to look for sockets that are ready.
const NUDGE_EVERY: Duration = Duration::from_millis(20);

/// The task that does it.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    task: tokio::task::JoinHandle<()>,
}

impl Housekeeping {
    /// Begins, and ends once `stopping` says so.
    pub(crate) fn start(broker: Arc<Broker>, stopping: watch::Receiver<bool>) -> Self {
        watch_disks(broker.partitions.clone(), stopping.clone());
        Self { task: tokio::spawn(run(broker, stopping)) }
    }

    /// Waits for the turn under way to end.
    pub(crate) async fn stopped(self) {
        let _ = self.task.await;
    }
}

/// Looks for disks that do not come back. On a thread of its own: those of the runtime may all
/// wait for such a disk.
fn watch_disks(partitions: Arc<Partitions>, stopping: watch::Receiver<bool>) {
    let runtime = tokio::runtime::Handle::current();
    let watching = move || {
        let mut disks = Every::new(SPACE_EVERY, clock::now());
        while !*stopping.borrow() {
            std::thread::park_timeout(NUDGE_EVERY);
            // The worker that waits for sockets and timers for all may hang in a write. What is
            // spawned from outside wakes another, which then waits for them.
            drop(runtime.spawn(async {}));
            if disks.is_due(clock::now()) {
                partitions.all().iter().for_each(|partition| partition.watch(clock::now()));
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("watchdog".to_owned()).spawn(watching) {
        tracing::error!(%error, "no watchdog: a stuck disk will not be noticed");
    }
}

/// Something that comes round.
struct Every {
    span: Duration,
    next: Instant,
}

impl Every {
    fn new(span: Duration, now: Instant) -> Self {
        Self { span, next: now + span }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + self.span;
        }
        due
    }
}

async fn run(broker: Arc<Broker>, mut stopping: watch::Receiver<bool>) {
    let now = clock::now();
    let mut retention = Every::new(broker.config.retention_check_interval, now);
    retention.next = now + broker.config.initial_task_delay;
    let mut checkpoints = Every::new(broker.config.checkpoint_interval, now);
    let mut space = Every::new(SPACE_EVERY, now);
    let mut producers = Every::new(broker.config.producer_id_expiration_check_interval, now);
    let mut missing = Every::new(MISSING_EVERY, now);
    let mut flushes = Flushes::default();
    loop {
        let now = clock::now();
        let due = [
            retention.is_due(now),
            checkpoints.is_due(now),
            space.is_due(now),
            producers.is_due(now),
            missing.is_due(now),
        ];
        let turn = broker.clone();
        let mut times = std::mem::take(&mut flushes);
        let done = tokio::task::spawn_blocking(move || {
            turn.look_after(due);
            turn.flush_by_time(now, &mut times);
            turn.removal.run(now);
            times
        });
        flushes = done.await.unwrap_or_default();
        tokio::select! {
            () = clock::sleep_until(now + TURN) => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}

impl Broker {
    fn look_after(&self, [retention, checkpoints, space, producers, missing]: [bool; 5]) {
        if space {
            for dir in self.partitions.dirs().iter().filter(|dir| !dir.is_offline()) {
                if let Err(error) = dir.look_at_space(self.config.log_dir_reserve) {
                    tracing::warn!(%error, "free space unknown");
                }
            }
        }
        if retention {
            self.retain();
        }
        if producers {
            let idle_ms = self.settings.in_force().producer_id_expiration_ms;
            for partition in self.partitions.all() {
                partition.log.expire_producers(clock::wall(), idle_ms);
            }
        }
        if checkpoints {
            self.partitions.write_checkpoints();
        }
        if missing {
            let resolve = |topic: &Topic| self.settings.of_topic(topic);
            self.partitions.open_missing(&|| self.picture(), &resolve);
        }
    }

    /// Removes what topics no longer keep.
    fn retain(&self) {
        for partition in self.partitions.all().iter().filter(|p| !p.dir.is_offline()) {
            match partition.log.retain(clock::wall()) {
                Ok(removed) if removed.segments > 0 => {
                    tracing::info!(
                        partition = %partition.name,
                        segments = removed.segments,
                        bytes = removed.bytes,
                        "old segments removed"
                    );
                    let delay = partition.log.config().file_delete_delay_ms;
                    self.removal.files(removed.files, Duration::from_millis(delay));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(partition = %partition.name, %error, "retention");
                    partition.log_failed(&error);
                }
            }
        }
    }

    /// Flushes what has waited for its topic's `flush.ms`. Where no topic has one, partitions are
    /// looked through once a second only.
    fn flush_by_time(&self, now: Instant, flushes: &mut Flushes) {
        if !flushes.often && now.saturating_since(flushes.looked) < SPACE_EVERY {
            return;
        }
        (flushes.looked, flushes.often) = (now, false);
        for partition in self.partitions.all() {
            let flush_ms = partition.config().flush_ms;
            if flush_ms == i64::MAX.cast_unsigned() {
                continue;
            }
            flushes.often = true;
            let last = flushes.last.entry(partition.name.clone()).or_insert(now);
            if now.saturating_since(*last) >= Duration::from_millis(flush_ms) {
                *last = now;
                partition.flush_soon();
            }
        }
    }
}

/// When partitions with a `flush.ms` were flushed last.
#[derive(Debug, Default)]
struct Flushes {
    last: HashMap<TopicPartition, Instant>,
    looked: Instant,
    /// Some topic has a `flush.ms`.
    often: bool,
}
