//! What is done now and then: retention, checkpoints, flushes by time, space, removals.

use super::Broker;
use crate::clock;
use crate::types::Instant;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often deadlines are looked at.
const TURN: Duration = Duration::from_millis(200);
/// How often free space is asked for.
const SPACE_EVERY: Duration = Duration::from_secs(1);

/// The task that does it, until it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    task: tokio::task::JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Housekeeping {
    /// Begins.
    pub(crate) fn start(broker: Arc<Broker>) -> Self {
        let (stop, stopping) = watch::channel(false);
        Self { task: tokio::spawn(run(broker, stopping)), stop }
    }

    /// Ends after the turn under way: a checkpoint must not be written over the last one.
    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        let _ = self.task.await;
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
    let mut flushed: HashMap<usize, Instant> = HashMap::new();
    loop {
        let now = clock::now();
        let due = [
            retention.is_due(now),
            checkpoints.is_due(now),
            space.is_due(now),
            producers.is_due(now),
        ];
        let turn = broker.clone();
        let mut times = std::mem::take(&mut flushed);
        let done = tokio::task::spawn_blocking(move || {
            turn.look_after(due);
            turn.flush_by_time(now, &mut times);
            turn.removal.run(now);
            times
        });
        flushed = done.await.unwrap_or_default();
        tokio::select! {
            () = clock::sleep_until(now + TURN) => {}
            _ = stopping.changed() => return,
        }
    }
}

impl Broker {
    fn look_after(&self, [retention, checkpoints, space, producers]: [bool; 4]) {
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

    /// Flushes what has waited for its topic's `flush.ms`.
    fn flush_by_time(&self, now: Instant, flushed: &mut HashMap<usize, Instant>) {
        for partition in self.partitions.all() {
            let flush_ms = partition.config().flush_ms;
            if flush_ms == i64::MAX.cast_unsigned() {
                continue;
            }
            let key = Arc::as_ptr(&partition).addr();
            let last = flushed.entry(key).or_insert(now);
            if now.saturating_since(*last) >= Duration::from_millis(flush_ms) {
                *last = now;
                partition.flush_soon();
            }
        }
    }
}
