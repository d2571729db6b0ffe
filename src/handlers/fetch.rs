//! Fetch, v4–18. Reads batches from partitions, waiting for more where there is too little.
//! v5: log start offset. v7: sessions (KIP-227). v9: leader epochs (KIP-320). v10: zstd. v11: rack.
//! v12: flexible, last fetched epoch (KIP-595). v13: topics by id (KIP-516). v15–18: replicas.
//! The first batch of the first partition that has one is sent whole, however large (KIP-74).
//! Record bytes are not read here: the answer names file ranges, which the socket sends.
//! Order of refusal: session; per partition: existence, leadership, leader epoch, offset.

use super::{Client, Reply, Request, Response, respond};
use crate::broker::partition::{Partition, Read, Traffic};
use crate::broker::waiters::{Registered, Signal};
use crate::clock;
use crate::log::LogSlice;
use crate::machine::controller::Picture;
use crate::machine::fetch_session::{self, Key, Opened, Told, TopicKey, Wanted};
use crate::protocol::fetch::{
    Encoded, FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse,
    FetchTopicResponse,
};
use crate::protocol::{ErrorCode, Malformed};
use crate::types::{LeaderEpoch, Offset, TopicId};
use crate::wire::Chunk;
use bytes::{Bytes, BytesMut};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// A request, owned, so that it can wait without holding its frame.
struct Fetch {
    client: Arc<Client>,
    request: Request,
    max_wait: Duration,
    bytes_min: u64,
    bytes_max: u64,
    /// 0 without a session.
    session: i32,
    /// Only partitions with news are told.
    incremental: bool,
    read_committed: bool,
    partitions: Vec<(Key, Wanted)>,
}

/// What was read, or the epoch and end up to which the reader's log agrees with ours.
type ReadOrDiverging = Result<Read, (i32, i64)>;

/// One partition's part of the answer.
struct Row {
    key: Key,
    error: ErrorCode,
    partition: Option<Arc<Partition>>,
    read: Option<Read>,
    diverging: Option<(i32, i64)>,
}

pub(super) fn handle(
    client: &Arc<Client>,
    request: Request,
    body: &Bytes,
) -> Result<Reply, Malformed> {
    let fetch = FetchRequest::decode(request.version, body)?;
    if fetch.replica_id >= 0 {
        return Ok(Reply::Close("a replica fetches from a broker that stands alone".to_owned()));
    }
    let opened = {
        let sessions = &client.context.broker.fetch_sessions;
        let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.open(clock::now(), session_request(client, request.version, &fetch))
    };
    let (session, incremental, partitions) = match opened {
        Ok(Opened::Full { session, partitions }) => (session, false, partitions),
        Ok(Opened::Incremental { session, partitions }) => (session, true, partitions),
        Err(code) => return Ok(failed(&request, code).into()),
    };
    let positive = |number: i32| u64::try_from(number).unwrap_or(0);
    let limit = u64::from(client.context.broker.config.fetch_bytes_max);
    let fetch = Fetch {
        client: client.clone(),
        request,
        max_wait: Duration::from_millis(positive(fetch.max_wait_ms)),
        bytes_min: positive(fetch.min_bytes),
        bytes_max: positive(fetch.max_bytes).min(limit),
        session,
        incremental,
        read_committed: fetch.isolation == 1,
        partitions,
    };
    let rows = fetch.read();
    for partition in rows.iter().filter_map(|row| row.partition.as_ref()) {
        Traffic::add(&partition.traffic.fetch_requests, 1);
    }
    if fetch.is_enough(&rows) {
        return Ok(fetch.answer(rows).into());
    }
    Ok(Reply::Later(Box::pin(async move { fetch.wait().await })))
}

fn session_request(
    client: &Client,
    version: i16,
    fetch: &FetchRequest<'_>,
) -> fetch_session::Request {
    let key = |name: &str, id: TopicId| {
        if version >= 13 { TopicKey::Id(id) } else { TopicKey::Name(name.into()) }
    };
    let mut partitions = Vec::new();
    for topic in &fetch.topics {
        let key = key(topic.name, topic.id);
        partitions
            .extend(topic.partitions.iter().map(|row| ((key.clone(), row.index), wanted(row))));
    }
    let mut forgotten = Vec::new();
    for topic in &fetch.forgotten {
        let key = key(topic.name, topic.id);
        forgotten.extend(topic.partitions.iter().map(|index| (key.clone(), *index)));
    }
    let (session, epoch) =
        if version >= 7 { (fetch.session_id, fetch.session_epoch) } else { (0, -1) };
    let random = client.context.broker.fresh_id().as_u128() & 0x7fff_ffff;
    let fresh_id = i32::try_from(random).unwrap_or(1).max(1);
    fetch_session::Request { session, epoch, partitions, forgotten, fresh_id }
}

fn wanted(row: &FetchPartition) -> Wanted {
    Wanted {
        fetch_offset: Offset(row.fetch_offset),
        leader_epoch: row.current_leader_epoch,
        last_fetched_epoch: row.last_fetched_epoch,
        bytes_max: row.max_bytes,
    }
}

impl Fetch {
    /// Reads every partition once, within the limits.
    fn read(&self) -> Vec<Row> {
        let picture = self.client.context.broker.metadata.look();
        let mut left = self.bytes_max;
        let mut nothing_yet = true;
        let rows = self.partitions.iter().map(|(key, wanted)| {
            let (partition, result) = self.read_one(&picture, key, wanted, (left, nothing_yet));
            let mut row = Row {
                key: key.clone(),
                error: ErrorCode::None,
                partition,
                read: None,
                diverging: None,
            };
            match result {
                Ok(Ok(read)) => {
                    if let Some(slice) = &read.slice {
                        left = left.saturating_sub(slice.length.into());
                        nothing_yet = false;
                    }
                    row.read = Some(read);
                }
                Ok(Err(diverging)) => row.diverging = Some(diverging),
                Err(code) => row.error = code,
            }
            row
        });
        rows.collect()
    }

    /// The partition if it is here, and what was read, or where the reader's log parts from ours.
    fn read_one(
        &self,
        picture: &Picture,
        (topic, index): &Key,
        wanted: &Wanted,
        (left, nothing_yet): (u64, bool),
    ) -> (Option<Arc<Partition>>, Result<ReadOrDiverging, ErrorCode>) {
        let broker = &self.client.context.broker;
        let name = match topic {
            TopicKey::Name(name) => name,
            TopicKey::Id(id) => match picture.by_id.get(id) {
                Some(topic) => &topic.name,
                None => return (None, Err(ErrorCode::UnknownTopicId)),
            },
        };
        let partition = match broker.partitions.led(picture, name, *index) {
            Ok(partition) => partition,
            Err(code) => return (None, Err(code)),
        };
        let read = || {
            partition.check_epoch(wanted.leader_epoch)?;
            if let Some(diverging) = diverging(&partition, wanted) {
                return Ok(Err(diverging));
            }
            let most = u64::try_from(wanted.bytes_max).unwrap_or(0).min(left);
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            partition.read(wanted.fetch_offset, most, nothing_yet).map(Ok)
        };
        let result = read();
        (Some(partition), result)
    }

    /// Whether there is no reason to wait: enough bytes, an error, or nothing to wait for.
    fn is_enough(&self, rows: &[Row]) -> bool {
        let bytes: u64 = rows.iter().map(Row::bytes).sum();
        bytes >= self.bytes_min
            || self.max_wait.is_zero()
            || self.partitions.is_empty()
            || rows.iter().any(|row| row.error != ErrorCode::None || row.diverging.is_some())
    }

    /// Reads again whenever one of the partitions has more, until it is enough or time is up.
    async fn wait(self) -> Result<Response, String> {
        let deadline = clock::now() + self.max_wait;
        let signal = Signal::default();
        loop {
            let rows = self.read();
            let guards: Vec<_> = rows.iter().filter_map(|row| row.watch(&signal)).collect();
            // What was committed between reading and registering woke nobody.
            let moved = rows.iter().any(Row::has_moved);
            if self.is_enough(&rows) {
                drop(guards);
                return self.answer(rows);
            }
            if moved {
                continue;
            }
            let late = tokio::select! {
                () = signal.notified() => false,
                () = clock::sleep_until(deadline) => true,
                () = self.client.context.stopping() => true,
            };
            if late {
                drop(guards);
                return self.answer(self.read());
            }
        }
    }

    /// Puts the answer together: heads in memory, records as file ranges.
    fn answer(&self, mut rows: Vec<Row>) -> Result<Response, String> {
        if self.session != 0 {
            let sessions = &self.client.context.broker.fetch_sessions;
            let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
            rows.retain(|row| {
                let news = sessions.tell(self.session, &row.key, row.told());
                news || !self.incremental
            });
        }
        let mut topics: Vec<FetchTopicResponse<'_, u32>> = Vec::new();
        let mut last: Option<&TopicKey> = None;
        for row in &rows {
            if last != Some(&row.key.0) {
                let (name, id) = match &row.key.0 {
                    TopicKey::Name(name) => (&**name, TopicId::nil()),
                    TopicKey::Id(id) => ("", *id),
                };
                topics.push(FetchTopicResponse { name, id, partitions: Vec::new() });
                last = Some(&row.key.0);
            }
            if let Some(topic) = topics.last_mut() {
                topic.partitions.push(row.encode(self.read_committed));
                row.count_bytes();
            }
        }
        let response = FetchResponse {
            throttle_time_ms: 0,
            error: 0,
            session_id: self.session,
            topics,
            node_endpoints: Vec::new(),
        };
        let slices = rows.iter().map(|row| row.read.as_ref().and_then(|read| read.slice.as_ref()));
        assemble(&self.request, &response, slices)
    }
}

/// Where the reader's log ends with its last epoch, if ours ends that epoch earlier (KIP-595).
fn diverging(partition: &Partition, wanted: &Wanted) -> Option<(i32, i64)> {
    if wanted.last_fetched_epoch < 0 {
        return None;
    }
    let (epoch, end) = partition.log.end_of_epoch(LeaderEpoch(wanted.last_fetched_epoch))?;
    let parts = epoch.0 < wanted.last_fetched_epoch || end < wanted.fetch_offset;
    parts.then_some((epoch.0, end.0))
}

impl Row {
    fn count_bytes(&self) {
        if let Some(partition) = &self.partition {
            Traffic::add(&partition.traffic.bytes_out, self.bytes());
        }
    }

    fn bytes(&self) -> u64 {
        self.length().into()
    }

    fn length(&self) -> u32 {
        let slice = self.read.as_ref().and_then(|read| read.slice.as_ref());
        slice.map_or(0, |slice| slice.length)
    }

    /// Wakes `signal` once there is more than was read.
    fn watch<'a>(&'a self, signal: &'a Signal) -> Option<Registered<'a>> {
        let (partition, read) = (self.partition.as_ref()?, self.read.as_ref()?);
        partition.waiters.register(read.high_watermark + 1, signal);
        Some(partition.waiters.guard(signal))
    }

    fn has_moved(&self) -> bool {
        match (&self.partition, &self.read) {
            (Some(partition), Some(read)) => partition.high_watermark() > read.high_watermark,
            _ => false,
        }
    }

    fn told(&self) -> Told {
        let (high_watermark, log_start) = match &self.read {
            Some(read) => (read.high_watermark.0, read.log_start.0),
            None => (-1, -1),
        };
        let has_records = self.length() > 0 || self.diverging.is_some();
        Told { error: self.error, high_watermark, log_start, has_records }
    }

    fn encode(&self, read_committed: bool) -> FetchPartitionResponse<u32> {
        let told = self.told();
        FetchPartitionResponse {
            index: self.key.1,
            error: self.error.code(),
            high_watermark: told.high_watermark,
            // Without transactions everything committed is stable.
            last_stable_offset: told.high_watermark,
            log_start_offset: told.log_start,
            aborted: read_committed.then(Vec::new),
            preferred_read_replica: -1,
            diverging_epoch: self.diverging,
            current_leader: None,
            snapshot_id: None,
            records: self.length(),
        }
    }
}

fn failed(request: &Request, code: ErrorCode) -> Result<Response, String> {
    let response = FetchResponse {
        throttle_time_ms: 0,
        error: code.code(),
        session_id: 0,
        topics: Vec::new(),
        node_endpoints: Vec::new(),
    };
    assemble(request, &response, std::iter::empty())
}

/// Cuts the encoded heads at the gaps and puts the file ranges there.
fn assemble<'a>(
    request: &Request,
    response: &FetchResponse<'_, u32>,
    slices: impl Iterator<Item = Option<&'a LogSlice>> + Clone,
) -> Result<Response, String> {
    let mut encoded = Encoded { head: respond::begin(request), gaps: Vec::new() };
    response.encode(request.version, &mut encoded);
    let records: u64 = slices.clone().flatten().map(|slice| u64::from(slice.length)).sum();
    let mut head: BytesMut = encoded.head;
    respond::set_length(&mut head, records)?;
    let head = head.freeze();
    let mut chunks = Vec::with_capacity(encoded.gaps.len() * 2 + 1);
    let mut from = 0;
    for (gap, slice) in encoded.gaps.into_iter().zip(slices) {
        if let Some(slice) = slice {
            chunks.push(respond::chunk(head.slice(from..gap)));
            chunks.push(file_chunk(slice));
            from = gap;
        }
    }
    chunks.push(respond::chunk(head.slice(from..)));
    Ok(Response { chunks })
}

fn file_chunk(slice: &LogSlice) -> Chunk {
    match slice.file.descriptor() {
        Some(file) => Chunk::File { file, position: slice.position, length: slice.length.into() },
        None => {
            let mut bytes = vec![0; slice.length as usize];
            let read = slice.file.read_at(&mut bytes, slice.position).unwrap_or(0);
            bytes.truncate(read);
            respond::chunk(Bytes::from(bytes))
        }
    }
}
