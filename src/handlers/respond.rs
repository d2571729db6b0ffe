//! Answers as they go to the socket.

use super::Request;
use crate::limits;
use crate::protocol::header;
use crate::wire::Chunk;
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages;
use kafka_protocol::messages::ResponseKind;
use kafka_protocol::protocol::StrBytes;
use std::collections::BTreeSet;

/// A whole frame.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) chunks: Vec<Chunk>,
}

/// Each thing that a request names, where it is named first, and whether it is named again.
pub(super) fn each_once<T, K: Ord>(
    asked: &[T],
    name: impl Fn(&T) -> K,
) -> impl Iterator<Item = (&T, bool)> {
    let repeated = repeated(asked.iter().map(&name));
    let mut told = BTreeSet::new();
    asked.iter().filter_map(move |one| {
        let twice = repeated.contains(&name(one));
        (!twice || told.insert(name(one))).then_some((one, twice))
    })
}

/// What a request names more than once. A request may name a million things, so that nothing is
/// looked for among all others.
pub(super) fn repeated<T: Ord>(named: impl Iterator<Item = T>) -> BTreeSet<T> {
    let (mut once, mut repeated) = (BTreeSet::new(), BTreeSet::new());
    for name in named {
        if let Some(name) = once.replace(name) {
            repeated.insert(name);
        }
    }
    repeated
}

/// Bytes of the frame's length.
pub(super) const LENGTH_BYTES: usize = 4;

/// Begins a response frame: room for the length, then the header.
pub(super) fn begin(request: &Request) -> BytesMut {
    let mut frame = BytesMut::with_capacity(128);
    frame.put_i32(0);
    frame.put_i32(request.correlation_id);
    if header::response_header_is_flexible(request.key, request.version) {
        frame.put_u8(0);
    }
    frame
}

/// Writes the length of a frame whose other parts are `elsewhere` bytes long. An answer longer than
/// a length can say costs the connection: nothing shorter would be true.
pub(super) fn set_length(frame: &mut BytesMut, elsewhere: u64) -> Result<(), String> {
    let length = (frame.len() - LENGTH_BYTES) as u64 + elsewhere;
    let length = i32::try_from(length)
        .map_err(|_| format!("an answer of {length} bytes does not fit a frame"))?;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

impl Response {
    /// A frame that lies whole in memory.
    pub(super) fn of(mut frame: BytesMut) -> Result<Self, String> {
        set_length(&mut frame, 0)?;
        Ok(Self { chunks: vec![Chunk::Bytes(frame.freeze())] })
    }
}

/// An answer before it is encoded.
#[derive(Debug)]
pub(crate) struct Answer(ResponseKind);

impl Answer {
    /// Encodes it in the request's version. What the codec cannot say is our own mistake, but one
    /// that a client may have provoked: it costs this connection, not the process.
    pub(super) fn encode(&self, request: &Request) -> Result<Response, String> {
        let mut frame = begin(request);
        match self.0.encode(&mut frame, request.version) {
            Ok(()) => Response::of(frame),
            Err(error) => {
                let (key, version) = (request.key, request.version);
                tracing::error!(key, version, %error, "an answer cannot be encoded");
                Err(format!("API {key} version {version}: the answer cannot be encoded"))
            }
        }
    }
}

macro_rules! answers {
    ($($response:ident => $kind:ident),* $(,)?) => {
        $(impl From<messages::$response> for Answer {
            fn from(response: messages::$response) -> Self {
                Self(ResponseKind::$kind(response))
            }
        })*
    };
}

answers! {
    AlterConfigsResponse => AlterConfigs,
    AlterPartitionReassignmentsResponse => AlterPartitionReassignments,
    ApiVersionsResponse => ApiVersions,
    CreatePartitionsResponse => CreatePartitions,
    CreateTopicsResponse => CreateTopics,
    DeleteGroupsResponse => DeleteGroups,
    DeleteRecordsResponse => DeleteRecords,
    DeleteTopicsResponse => DeleteTopics,
    DescribeClusterResponse => DescribeCluster,
    DescribeConfigsResponse => DescribeConfigs,
    DescribeGroupsResponse => DescribeGroups,
    DescribeLogDirsResponse => DescribeLogDirs,
    DescribeProducersResponse => DescribeProducers,
    DescribeTopicPartitionsResponse => DescribeTopicPartitions,
    ElectLeadersResponse => ElectLeaders,
    FindCoordinatorResponse => FindCoordinator,
    HeartbeatResponse => Heartbeat,
    IncrementalAlterConfigsResponse => IncrementalAlterConfigs,
    InitProducerIdResponse => InitProducerId,
    JoinGroupResponse => JoinGroup,
    LeaveGroupResponse => LeaveGroup,
    ListGroupsResponse => ListGroups,
    ListOffsetsResponse => ListOffsets,
    ListPartitionReassignmentsResponse => ListPartitionReassignments,
    MetadataResponse => Metadata,
    OffsetCommitResponse => OffsetCommit,
    OffsetDeleteResponse => OffsetDelete,
    OffsetFetchResponse => OffsetFetch,
    OffsetForLeaderEpochResponse => OffsetForLeaderEpoch,
    SyncGroupResponse => SyncGroup,
}

/// An error message, cut to what a response may carry: it may repeat what the client sent.
pub(super) fn message(text: impl Into<String>) -> Option<StrBytes> {
    let mut text = text.into();
    text.truncate(text.floor_char_boundary(limits::MESSAGE_BYTES_MAX));
    Some(StrBytes::from_string(text))
}

/// Bytes that are sent as they are.
pub(super) fn chunk(bytes: Bytes) -> Chunk {
    Chunk::Bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_true_or_refused() {
        let mut frame = BytesMut::from(&b"\0\0\0\0head"[..]);
        assert_eq!(set_length(&mut frame, 1_000), Ok(()));
        assert_eq!(&frame[..], &b"\0\0\x03\xechead"[..]);
        let most = u64::from(i32::MAX.unsigned_abs()) - 4;
        assert_eq!(set_length(&mut frame, most), Ok(()));
        assert!(set_length(&mut frame, most + 1).is_err());
        assert_eq!(&frame[..4], i32::MAX.to_be_bytes());
    }
}
