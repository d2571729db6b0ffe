//! One file for each of Kafka's APIs. Handlers translate, check and ask the broker; they touch
//! neither sockets nor files.

mod alter_configs;
mod alter_partition_reassignments;
mod api_versions;
mod configs;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_topic_partitions;
mod elect_leaders;
mod fetch;
mod find_coordinator;
mod group;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_groups;
mod list_offsets;
mod list_partition_reassignments;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod operations;
mod produce;
mod respond;
mod sync_group;
mod table;

pub(crate) use respond::Response;

use crate::broker::Broker;
use crate::clock;
use crate::metrics;
use crate::protocol::{frame_guard, header};
use crate::types::Instant;
use bytes::Bytes;
use kafka_protocol::messages::{ApiKey, RequestKind};
use respond::Answer;
use std::cell::Cell;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// What all connections of a listener share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) broker: Arc<Broker>,
    /// The listener's name: clients are told the endpoints of the listener they came through.
    pub(crate) listener: String,
    /// Lets through a few log lines of refused connections.
    pub(crate) refusals: RateLimit,
    /// True once the broker stops: nothing waits any more.
    stopping: watch::Receiver<bool>,
}

/// Who is at the other end.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) context: Arc<Context>,
    pub(crate) peer: SocketAddr,
}

/// How a request is answered.
pub(crate) enum Reply {
    /// The answer is there.
    Now(Response),
    /// The answer comes, or why the connection is to be closed; the future keeps nothing of the
    /// frame.
    Later(Pin<Box<dyn Future<Output = Result<Response, String>> + Send>>),
    /// No answer is expected (acks=0).
    Nothing,
    /// The connection is to be closed, for this reason.
    Close(String),
}

impl From<Result<Response, String>> for Reply {
    fn from(answer: Result<Response, String>) -> Self {
        answer.map_or_else(Self::Close, Self::Now)
    }
}

/// A request's header, owned.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) key: i16,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    pub(crate) client_id: Option<String>,
}

impl Context {
    /// For connections through the listener `listener`.
    pub(crate) fn new(
        broker: Arc<Broker>,
        listener: String,
        stopping: watch::Receiver<bool>,
    ) -> Arc<Self> {
        Arc::new(Self { broker, listener, refusals: RateLimit::default(), stopping })
    }

    /// Waits until the broker stops.
    pub(crate) async fn stopping(&self) {
        let _ = self.stopping.clone().wait_for(|stop| *stop).await;
    }

    /// A connection's own.
    pub(crate) fn of_client(self: &Arc<Self>, peer: SocketAddr) -> Arc<Client> {
        Arc::new(Client { context: self.clone(), peer })
    }
}

/// Whether a frame is a Produce, which alone may begin before earlier requests are answered.
pub(crate) fn is_produce(frame: &[u8]) -> bool {
    header::leading(frame).is_some_and(|(key, _, _)| key == ApiKey::Produce as i16)
}

/// Keys and names of all APIs that are offered.
pub(crate) fn offered() -> impl Iterator<Item = (i16, String)> {
    table::APIS.iter().map(|api| (api.key as i16, format!("{:?}", api.key)))
}

/// Begins a request; the second value says whether it is a Produce.
pub(crate) fn handle(client: &Arc<Client>, frame: Bytes) -> (Reply, bool) {
    let produce = is_produce(&frame);
    if let Some((key, _, _)) = header::leading(&frame) {
        metrics::request_begun(key);
    }
    (begin(client, &frame).unwrap_or_else(Reply::Close), produce)
}

fn begin(client: &Arc<Client>, frame: &Bytes) -> Result<Reply, String> {
    let (key, version, correlation_id) =
        header::leading(frame).ok_or("a request is shorter than its header")?;
    let Some(api) = table::find(key) else {
        return Err(format!("API {key} version {version} is not offered"));
    };
    if !api.versions.contains(&version) {
        if key == ApiKey::ApiVersions as i16 {
            // Answered in version 0 on an open connection, so that clients step down (KIP-511).
            return api_versions::unsupported(correlation_id).map(Reply::Now);
        }
        return Err(format!("API {key} version {version} is not offered"));
    }
    let flexible = header::request_is_flexible(key, version).unwrap_or(false);
    let malformed = |error| format!("API {key} version {version}: {error}");
    let parsed = header::parse(frame, flexible).map_err(malformed)?;
    let body = frame.slice(parsed.body_at..);
    frame_guard::check_request(key, version, &body).map_err(malformed)?;
    let request =
        Request { key, version, correlation_id, client_id: parsed.client_id.map(str::to_owned) };
    match api.key {
        ApiKey::Produce => produce::handle(client, &request, &body).map_err(malformed),
        ApiKey::Fetch => fetch::handle(client, request, &body).map_err(malformed),
        _ => {
            let decoded = decode(api.key, version, body);
            let decoded =
                decoded.map_err(|error| format!("API {key} version {version}: {error}"))?;
            let client = client.clone();
            let broker = client.context.broker.clone();
            let changes = table::changes_metadata(api.key);
            let answered = async move {
                let answer = dispatch(&client, &request, decoded).await;
                answer.encode(&request)
            };
            if changes {
                return Ok(Reply::Later(Box::pin(async move {
                    let answered = broker.to_the_end(answered).await;
                    answered.unwrap_or_else(|| Err("the broker stops".to_owned()))
                })));
            }
            Ok(Reply::Later(Box::pin(answered)))
        }
    }
}

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread decodes a request: a panic then closes one connection, not the process.
pub(crate) fn is_decoding() -> bool {
    DECODING.get()
}

/// Decodes a body that the guard has walked.
fn decode(key: ApiKey, version: i16, mut body: Bytes) -> Result<RequestKind, String> {
    let decoded = while_decoding(|| RequestKind::decode(key, &mut body, version))?;
    decoded.map_err(|error| error.to_string())
}

/// Runs a decoder, whose panic closes this connection only.
pub(crate) fn while_decoding<T>(decoder: impl FnOnce() -> T) -> Result<T, String> {
    DECODING.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(decoder));
    DECODING.set(false);
    decoded.map_err(|_| "the decoder panicked".to_owned())
}

async fn dispatch(client: &Arc<Client>, request: &Request, body: RequestKind) -> Answer {
    match body {
        RequestKind::AlterConfigs(body) => alter_configs::handle(client, body).await.into(),
        RequestKind::AlterPartitionReassignments(body) => {
            alter_partition_reassignments::handle(client, &body).into()
        }
        RequestKind::ApiVersions(body) => api_versions::handle(request, &body).into(),
        RequestKind::CreatePartitions(body) => create_partitions::handle(client, body).await.into(),
        RequestKind::CreateTopics(body) => {
            create_topics::handle(client, request, body).await.into()
        }
        RequestKind::DeleteGroups(body) => delete_groups::handle(client, body).await.into(),
        RequestKind::DeleteRecords(body) => delete_records::handle(client, &body).into(),
        RequestKind::DeleteTopics(body) => {
            delete_topics::handle(client, request, body).await.into()
        }
        RequestKind::DescribeCluster(body) => {
            describe_cluster::handle(client, request, &body).into()
        }
        RequestKind::DescribeConfigs(body) => {
            describe_configs::handle(client, request, &body).into()
        }
        RequestKind::DescribeGroups(body) => {
            describe_groups::handle(client, request, body).await.into()
        }
        RequestKind::DescribeLogDirs(body) => {
            describe_log_dirs::handle(client, request, &body).into()
        }
        RequestKind::DescribeProducers(body) => describe_producers::handle(client, &body).into(),
        RequestKind::DescribeTopicPartitions(body) => {
            describe_topic_partitions::handle(client, &body).into()
        }
        RequestKind::ElectLeaders(body) => elect_leaders::handle(client, request, &body).into(),
        RequestKind::FindCoordinator(body) => {
            find_coordinator::handle(client, request, body).await.into()
        }
        RequestKind::Heartbeat(body) => heartbeat::handle(client, body).await.into(),
        RequestKind::IncrementalAlterConfigs(body) => {
            incremental_alter_configs::handle(client, body).await.into()
        }
        RequestKind::InitProducerId(body) => init_producer_id::handle(client, &body).await.into(),
        RequestKind::JoinGroup(body) => join_group::handle(client, request, body).await.into(),
        RequestKind::LeaveGroup(body) => leave_group::handle(client, request, body).await.into(),
        RequestKind::ListGroups(body) => list_groups::handle(client, request, body).await.into(),
        RequestKind::ListOffsets(body) => list_offsets::handle(client, request, body).await.into(),
        RequestKind::ListPartitionReassignments(_) => list_partition_reassignments::handle().into(),
        RequestKind::Metadata(body) => metadata::handle(client, request, body).into(),
        RequestKind::OffsetCommit(body) => {
            offset_commit::handle(client, request, body).await.into()
        }
        RequestKind::OffsetDelete(body) => offset_delete::handle(client, body).await.into(),
        RequestKind::OffsetFetch(body) => offset_fetch::handle(client, request, body).await.into(),
        RequestKind::OffsetForLeaderEpoch(body) => {
            offset_for_leader_epoch::handle(client, &body).into()
        }
        RequestKind::SyncGroup(body) => sync_group::handle(client, request, body).await.into(),
        _ => unreachable!("the table holds only what is dispatched here"),
    }
}

/// Lets a few events a second through and counts the rest.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    /// The window's beginning, events in it, events suppressed since the last one let through.
    state: Mutex<(Instant, u32, u64)>,
}

impl RateLimit {
    const PER_WINDOW: u32 = 5;
    const WINDOW: Duration = Duration::from_secs(10);

    /// `Some` with the number suppressed before, if this one may pass.
    pub(crate) fn admit(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (begun, count, suppressed) = &mut *state;
        if now.saturating_since(*begun) > Self::WINDOW {
            (*begun, *count) = (now, 0);
        }
        if *count >= Self::PER_WINDOW {
            *suppressed += 1;
            return None;
        }
        *count += 1;
        Some(std::mem::take(suppressed))
    }
}

/// Topics that only the broker itself writes to.
fn is_internal(topic: &str) -> bool {
    matches!(topic, "__consumer_offsets" | "__transaction_state" | "__share_group_state")
}

/// The wall clock, for handlers.
fn wall() -> crate::types::Timestamp {
    clock::wall()
}
