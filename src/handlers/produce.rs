//! Produce, v3–13; advertised from 0. Appends one batch to each partition named.
//! v5: log start offset. v7: zstd. v8: records to blame (KIP-467). v9: flexible. v10: where the
//! leader is (KIP-951). v13: topics by id (KIP-516).
//! acks 0 is not answered, 1 is answered once appended, −1 once committed.
//! Order of refusal: acks; per partition: existence, internal topic, leadership, batch, sequence.

use super::{Client, Reply, Request, Response, respond};
use crate::broker::partition::{Partition, Traffic};
use crate::broker::waiters::Signal;
use crate::clock;
use crate::machine::controller::Picture;
use crate::protocol::produce::{
    ProducePartition, ProducePartitionResponse, ProduceRequest, ProduceResponse, ProduceTopic,
    ProduceTopicResponse,
};
use crate::protocol::{ErrorCode, Malformed};
use crate::records::Refusal;
use crate::types::{Instant, Offset, TopicId};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// zstd came with version 7 (KIP-110); an older client would not be able to read it back.
const ZSTD_SINCE: i16 = 7;
/// Bits 0 to 2 of a batch's attributes, which end at byte 23.
const ATTRIBUTES_LOW_BYTE: usize = 22;
const ZSTD: u8 = 4;

/// What is still to be committed.
struct Uncommitted {
    partition: Arc<Partition>,
    end: Offset,
    /// Where the row stands in the response.
    place: (usize, usize),
}

pub(super) fn handle(
    client: &Arc<Client>,
    request: &Request,
    body: &Bytes,
) -> Result<Reply, Malformed> {
    let produce = ProduceRequest::decode(request.version, body)?;
    let mut waiting = Vec::new();
    let response = append_all(client, request.version, &produce, &mut waiting);
    if produce.acks == 0 {
        let failed = response.topics.iter().flat_map(|topic| &topic.partitions);
        let error = failed.map(|row| row.error).find(|error| *error != 0);
        // Without answers, closing is how a client learns to look for the leader again.
        return Ok(error.map_or(Reply::Nothing, |error| {
            Reply::Close(format!("produce with acks=0 failed with error {error}"))
        }));
    }
    waiting.retain(|waits| waits.partition.high_watermark() < waits.end);
    if produce.acks == 1 || waiting.is_empty() {
        return Ok(encode(request, &response).into());
    }
    let deadline =
        clock::now() + Duration::from_millis(u64::try_from(produce.timeout_ms).unwrap_or(0));
    let owned = Owned::from(response);
    let request = request.clone();
    Ok(Reply::Later(Box::pin(async move { owned.answer(&request, waiting, deadline).await })))
}

fn append_all<'a>(
    client: &Client,
    version: i16,
    produce: &ProduceRequest<'a>,
    waiting: &mut Vec<Uncommitted>,
) -> ProduceResponse<'a> {
    let picture = client.context.broker.metadata.look();
    let valid_acks = matches!(produce.acks, -1..=1);
    let topics = produce.topics.iter().enumerate().map(|(at, topic)| {
        let rows = topic.partitions.iter().enumerate().map(|(row, asked)| {
            let appended = if valid_acks && produce.transactional_id.is_none() {
                append(client, version, &picture, (topic, asked))
            } else if valid_acks {
                Err(refusal(ErrorCode::TransactionalIdAuthorizationFailed))
            } else {
                Err(refusal(ErrorCode::InvalidRequiredAcks))
            };
            match appended {
                Ok((partition, end, response)) => {
                    waiting.push(Uncommitted { partition, end, place: (at, row) });
                    response
                }
                Err(refusal) => refused(asked.index, refusal),
            }
        });
        let partitions = rows.collect();
        ProduceTopicResponse { name: topic.name, id: topic.id, partitions }
    });
    let topics = topics.collect();
    ProduceResponse { topics, throttle_time_ms: 0, node_endpoints: Vec::new() }
}

fn append(
    client: &Client,
    version: i16,
    picture: &Picture,
    (topic, asked): (&ProduceTopic<'_>, &ProducePartition<'_>),
) -> Result<(Arc<Partition>, Offset, ProducePartitionResponse), Refusal> {
    let name = if version >= 13 {
        let found = picture.by_id.get(&topic.id);
        &*found.ok_or_else(|| refusal(ErrorCode::UnknownTopicId))?.name
    } else {
        topic.name
    };
    let broker = &client.context.broker;
    let partition = broker.partitions.led(picture, name, asked.index).map_err(refusal)?;
    if super::is_internal(name) {
        return Err(refusal(ErrorCode::InvalidTopicException));
    }
    Traffic::add(&partition.traffic.produce_requests, 1);
    let records = asked.records.unwrap_or_default();
    if version < ZSTD_SINCE
        && records.get(ATTRIBUTES_LOW_BYTE).is_some_and(|low| low & 0b111 == ZSTD)
    {
        return Err(refusal(ErrorCode::UnsupportedCompressionType));
    }
    let now = super::wall();
    let appended = partition.append(records, now)?;
    let response = ProducePartitionResponse {
        index: asked.index,
        error: 0,
        base_offset: appended.base_offset.0,
        log_append_time_ms: appended.log_append_time.map_or(-1, |time| time.0),
        log_start_offset: appended.log_start.0,
        record_errors: Vec::new(),
        error_message: None,
        current_leader: None,
    };
    Ok((partition, appended.end, response))
}

fn refusal(code: ErrorCode) -> Refusal {
    Refusal { code, message: String::new(), records: Vec::new() }
}

fn refused(index: i32, refusal: Refusal) -> ProducePartitionResponse {
    ProducePartitionResponse {
        index,
        error: refusal.code.code(),
        base_offset: -1,
        log_append_time_ms: -1,
        log_start_offset: -1,
        record_errors: refusal.records.into_iter().map(|(at, why)| (at, Some(why))).collect(),
        error_message: (!refusal.message.is_empty()).then_some(refusal.message),
        current_leader: None,
    }
}

fn encode(request: &Request, response: &ProduceResponse<'_>) -> Result<Response, String> {
    let mut frame = respond::begin(request);
    response.encode(request.version, &mut frame);
    Response::of(frame)
}

/// A response that keeps nothing of the request's frame.
struct Owned {
    topics: Vec<(String, TopicId, Vec<ProducePartitionResponse>)>,
}

impl From<ProduceResponse<'_>> for Owned {
    fn from(response: ProduceResponse<'_>) -> Self {
        let topics = response.topics.into_iter();
        let owned = topics.map(|topic| (topic.name.to_owned(), topic.id, topic.partitions));
        Self { topics: owned.collect() }
    }
}

impl Owned {
    /// Waits until all is committed, or time is up: then the rows still waiting say so.
    async fn answer(
        mut self,
        request: &Request,
        mut waiting: Vec<Uncommitted>,
        deadline: Instant,
    ) -> Result<Response, String> {
        let late = tokio::select! {
            () = wait_for_all(&mut waiting) => ErrorCode::KafkaStorageError,
            () = clock::sleep_until(deadline) => ErrorCode::RequestTimedOut,
        };
        for waits in waiting {
            if waits.partition.high_watermark() < waits.end {
                let (topic, row) = waits.place;
                if let Some(row) = self.topics.get_mut(topic).and_then(|topic| topic.2.get_mut(row))
                {
                    *row = refused(row.index, refusal(late));
                }
            }
        }
        let topics = self.topics.iter_mut().map(|(name, id, partitions)| ProduceTopicResponse {
            name,
            id: *id,
            partitions: std::mem::take(partitions),
        });
        let topics = topics.collect();
        let response = ProduceResponse { topics, throttle_time_ms: 0, node_endpoints: Vec::new() };
        encode(request, &response)
    }
}

/// Waits until everything is committed or can no longer be.
async fn wait_for_all(waiting: &mut [Uncommitted]) {
    for waits in waiting {
        let signal = Signal::default();
        waits.partition.waiters.register(waits.end, &signal);
        let _registered = waits.partition.waiters.guard(&signal);
        while waits.partition.high_watermark() < waits.end && !waits.partition.is_lost() {
            signal.notified().await;
        }
    }
}
