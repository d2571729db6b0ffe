//! The task that owns one coordinator's machine: it feeds events, writes what the machine wants
//! written, and holds every answer until what it rests on is committed.

use super::partition::{Partition, replay};
use super::waiters::Signal;
use crate::clock;
use crate::limits;
use crate::machine::group::{
    Append, DeleteGroup, DescribeGroup, Effect, GroupMachine, Heartbeat, JoinGroup, LeaveGroup,
    ListGroups, Moment, OffsetCommit, OffsetDelete, OffsetFetch, Record, Response, SyncGroup,
    Ticket,
    codec::{decode, encode_key, encode_value},
};
use crate::protocol::ErrorCode;
use crate::records::{
    BatchBuilder, BatchHeader, Compression, HEADER_BYTES, NewRecord, Records, decompress,
};
use crate::types::{Instant, LeaderEpoch, Offset};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// What a coordinator is asked.
#[derive(Debug)]
pub(crate) enum Event {
    Join(JoinGroup),
    Sync(SyncGroup),
    Heartbeat(Heartbeat),
    Leave(LeaveGroup),
    Commit(OffsetCommit),
    Fetch(OffsetFetch),
    DeleteOffsets(OffsetDelete),
    List(ListGroups),
    Describe(DescribeGroup),
    Delete(DeleteGroup),
    /// Answered by nobody.
    TopicsDeleted(BTreeSet<Arc<str>>),
}

/// What the tasks go by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// `offsets.retention.check.interval.ms`
    pub(crate) expire_every: Duration,
    /// `offsets.commit.timeout.ms`
    pub(crate) commit_timeout: Duration,
}

type Answer = oneshot::Sender<Result<Response, ErrorCode>>;
/// An event, under which ticket, and who waits for the answer.
type Ask = (Ticket, Event, Option<Answer>);

/// How to reach one coordinator.
#[derive(Clone, Debug)]
pub(crate) struct Coordinator {
    asks: mpsc::Sender<Ask>,
    state: Arc<AtomicU8>,
}

const LOADING: u8 = 0;
const ACTIVE: u8 = 1;
const LOST: u8 = 2;

impl Coordinator {
    /// Begins a task that replays the partition and then serves.
    pub(crate) fn start(partition: Arc<Partition>, machine: GroupMachine, timing: Timing) -> Self {
        let (asks, inbox) = mpsc::channel(limits::COORDINATOR_INBOX);
        let state = Arc::new(AtomicU8::new(LOADING));
        tokio::spawn(run(partition, machine, timing, (inbox, state.clone())));
        Self { asks, state }
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&self, ticket: Ticket, event: Event) -> Result<Response, ErrorCode> {
        match self.state.load(Ordering::Acquire) {
            LOADING => return Err(ErrorCode::CoordinatorLoadInProgress),
            LOST => return Err(ErrorCode::NotCoordinator),
            _active => {}
        }
        let (answer, answered) = oneshot::channel();
        let sent = self.asks.send((ticket, event, Some(answer))).await;
        sent.map_err(|_| ErrorCode::NotCoordinator)?;
        answered.await.unwrap_or(Err(ErrorCode::NotCoordinator))
    }

    /// Tells something that nobody waits for.
    pub(crate) async fn tell(&self, event: Event) {
        let _ = self.asks.send((Ticket(0), event, None)).await;
    }
}

/// A machine with what its shell needs.
struct Shell {
    partition: Arc<Partition>,
    epoch: LeaderEpoch,
    machine: GroupMachine,
    timing: Timing,
    /// Who waits for which ticket.
    waiting: HashMap<Ticket, Answer>,
    /// Answers by the log end they rest on, in order.
    held: VecDeque<Held>,
    effects: Vec<Effect>,
}

struct Held {
    end: Offset,
    until: Instant,
    answer: Answer,
    response: Response,
}

async fn run(
    partition: Arc<Partition>,
    machine: GroupMachine,
    timing: Timing,
    (mut inbox, state): (mpsc::Receiver<Ask>, Arc<AtomicU8>),
) {
    let epoch = partition.epoch();
    let load = partition.clone();
    let loaded = tokio::task::spawn_blocking(move || loaded(&load, machine)).await;
    let Ok(Some(machine)) = loaded else {
        state.store(LOST, Ordering::Release);
        return;
    };
    let mut shell = Shell {
        partition,
        epoch,
        machine,
        timing,
        waiting: HashMap::new(),
        held: VecDeque::new(),
        effects: Vec::new(),
    };
    shell.machine.handle_loaded(moment(), &mut shell.effects);
    shell.perform();
    state.store(ACTIVE, Ordering::Release);
    let mut expire_at = clock::now() + timing.expire_every;
    let committed = Signal::default();
    while !shell.partition.is_lost() {
        let wake_at = shell.next_deadline(expire_at);
        let partition = shell.partition.clone();
        let watched = shell.held.front().map(|held| {
            partition.waiters.register(held.end, &committed);
            partition.waiters.guard(&committed)
        });
        if shell.release() {
            continue;
        }
        tokio::select! {
            ask = inbox.recv() => {
                drop(watched);
                let Some((ticket, event, answer)) = ask else { break };
                shell.waiting.extend(answer.map(|answer| (ticket, answer)));
                shell.handle(event);
            }
            () = committed.notified() => {}
            () = clock::sleep_until(wake_at) => {
                let at = moment();
                shell.machine.handle_timeout(at, &mut shell.effects);
                shell.perform();
                if at.now >= expire_at {
                    expire_at = at.now + timing.expire_every;
                    shell.machine.handle_expire_offsets(at, &mut shell.effects);
                    shell.perform();
                }
            }
        }
    }
    state.store(LOST, Ordering::Release);
}

fn moment() -> Moment {
    Moment { now: clock::now(), wall: clock::wall() }
}

/// Replays the partition; `None` when it cannot be read.
fn loaded(partition: &Partition, mut machine: GroupMachine) -> Option<GroupMachine> {
    let started = clock::now();
    let mut records = 0u64;
    let from = partition.log.view().start;
    let end = replay(partition, from, |header, batch| {
        if !header.is_control() {
            records += each_record(header, batch, |record| machine.replay(record))?;
        }
        Ok(())
    });
    match end {
        Ok(_) => {
            let took = clock::now().saturating_since(started);
            if records > 0 {
                tracing::info!(partition = %partition.name, records, ?took, "coordinator loaded");
            }
            Some(machine)
        }
        Err(error) => {
            tracing::error!(partition = %partition.name, %error, "coordinator not loaded");
            None
        }
    }
}

/// Hands over a batch's records and counts them. A batch that cannot be opened is an error: without
/// it, groups would be served offsets that are older than what they committed.
fn each_record(
    header: &BatchHeader,
    batch: &[u8],
    mut each: impl FnMut(&Record),
) -> Result<u64, String> {
    let records = batch.get(HEADER_BYTES..).unwrap_or_default();
    let plain = match header.compression().map_err(|error| error.to_string())? {
        Compression::None => None,
        codec => {
            let plain = decompress(codec, records, limits::DECOMPRESSED_BATCH_BYTES_MAX);
            Some(plain.map_err(|error| error.to_string())?)
        }
    };
    let mut walker = Records::new(plain.as_deref().unwrap_or(records), header.record_count);
    let mut count = 0;
    while let Some(record) = walker.next().map_err(|error| error.to_string())? {
        match decode(record.key, record.value) {
            Ok(Some(record)) => {
                each(&record);
                count += 1;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "record of the coordinator's log skipped"),
        }
    }
    Ok(count)
}

impl Shell {
    fn next_deadline(&self, expire_at: Instant) -> Instant {
        let held = self.held.front().map(|held| held.until);
        let machine = self.machine.poll_timeout();
        [held, machine].into_iter().flatten().fold(expire_at, Instant::min)
    }

    fn handle(&mut self, event: Event) {
        let (at, machine, effects) = (moment(), &mut self.machine, &mut self.effects);
        match event {
            Event::Join(join) => machine.handle_join_group(at, join, effects),
            Event::Sync(sync) => machine.handle_sync_group(at, sync, effects),
            Event::Heartbeat(beat) => machine.handle_heartbeat(at, &beat, effects),
            Event::Leave(leave) => machine.handle_leave_group(at, leave, effects),
            Event::Commit(commit) => machine.handle_offset_commit(at, commit, effects),
            Event::Fetch(fetch) => machine.handle_offset_fetch(at, fetch, effects),
            Event::DeleteOffsets(delete) => machine.handle_offset_delete(at, delete, effects),
            Event::List(list) => machine.handle_list_groups(at, &list, effects),
            Event::Describe(describe) => machine.handle_describe_group(at, &describe, effects),
            Event::Delete(delete) => machine.handle_delete_group(at, delete, effects),
            Event::TopicsDeleted(topics) => {
                machine.handle_topics_deleted(at, &topics, effects);
            }
        }
        self.perform();
    }

    /// Performs effects in order, those too that performing brings about.
    fn perform(&mut self) {
        while !self.effects.is_empty() {
            for effect in std::mem::take(&mut self.effects) {
                match effect {
                    Effect::Append(append) => self.append(&append),
                    Effect::Reply { ticket, response } => self.reply(ticket, response),
                }
            }
        }
    }

    fn append(&mut self, append: &Append) {
        let at = moment();
        let batch = batch_of(&append.records, at);
        match self.partition.append_own(&batch, self.epoch, at.wall) {
            Ok(_) => self.machine.handle_appended(at, append, &mut self.effects),
            Err(refusal) => {
                let code = refusal.code;
                tracing::warn!(partition = %self.partition.name, ?code, "group not written");
                self.machine.handle_append_refused(at, append.id, code, &mut self.effects);
            }
        }
        // What the append brings about comes before what follows it.
        let mut behind = std::mem::take(&mut self.effects);
        for effect in behind.drain(..) {
            match effect {
                Effect::Append(append) => self.append(&append),
                Effect::Reply { ticket, response } => self.reply(ticket, response),
            }
        }
    }

    fn reply(&mut self, ticket: Ticket, response: Response) {
        let Some(answer) = self.waiting.remove(&ticket) else { return };
        let end = self.partition.log.view().end.offset;
        if !response.waits_for_commit() || self.partition.high_watermark() >= end {
            // The client may be gone; then nobody minds.
            let _ = answer.send(Ok(response));
            return;
        }
        let until = clock::now() + self.timing.commit_timeout;
        self.held.push_back(Held { end, until, answer, response });
    }

    /// Lets go what is committed, and fails what waited too long; says whether there was any.
    fn release(&mut self) -> bool {
        let committed = self.partition.high_watermark();
        let now = clock::now();
        let mut any = false;
        while let Some(held) = self.held.pop_front_if(|h| h.end <= committed || h.until <= now) {
            any = true;
            let result = if held.end <= committed {
                Ok(held.response)
            } else {
                Err(ErrorCode::CoordinatorNotAvailable)
            };
            let _ = held.answer.send(result);
        }
        any
    }
}

fn batch_of(records: &[Record], at: Moment) -> Vec<u8> {
    let mut builder = BatchBuilder::new(at.wall);
    for record in records {
        let (key, value) = (encode_key(record), encode_value(record));
        let (key, value) = (Some(key.as_slice()), value.as_deref());
        builder.push(NewRecord { key, value, headers: &[] });
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch that could not be opened was passed over, and groups went back to older offsets.
    #[test]
    fn a_batch_that_cannot_be_opened_is_an_error() {
        let at = moment();
        let none = |_: &Record| {};
        let whole = batch_of(&[], at);
        let header = BatchHeader::parse(&whole).expect("header");
        assert_eq!(each_record(&header, &whole, none), Ok(0));
        let cut = BatchHeader { record_count: 1, ..header };
        assert!(each_record(&cut, &whole, none).is_err());
        let zstd = BatchHeader { attributes: 4, ..header };
        // No bytes are a batch of no records, and no zstd.
        assert!(each_record(&zstd, &whole, none).is_err());
        let unknown = BatchHeader { attributes: 7, ..header };
        assert!(each_record(&unknown, &[0; HEADER_BYTES], none).is_err());
    }
}
