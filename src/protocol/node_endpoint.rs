//! The address of a leader that a Produce or Fetch response names (KIP-951).

use super::reader::{Malformed, Reader};
use super::writer::Writer;

/// Where a broker listens, so that a client can turn to a new leader without asking for metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeEndpoint<'a> {
    /// The broker.
    pub(crate) id: i32,
    /// Its host name or address on the listener the request came through.
    pub(crate) host: &'a str,
    /// Its port there.
    pub(crate) port: i32,
    /// Its rack, if it has one.
    pub(crate) rack: Option<&'a str>,
}

/// Least bytes of one endpoint: two numbers, two empty strings, no tagged field.
const ENDPOINT_BYTES_MIN: usize = 4 + 1 + 4 + 1 + 1;

impl<'a> NodeEndpoint<'a> {
    /// Reads the tagged field that holds all endpoints of a response, to its end.
    pub(super) fn decode_all(mut field: Reader<'a>) -> Result<Vec<Self>, Malformed> {
        let count = field.array_len(ENDPOINT_BYTES_MIN)?;
        let mut endpoints = Vec::with_capacity(count);
        for _ in 0..count {
            endpoints.push(Self {
                id: field.i32()?,
                host: field.string()?,
                port: field.i32()?,
                rack: field.nullable_string()?,
            });
            field.skip_tags()?;
        }
        field.finish()?;
        Ok(endpoints)
    }

    /// Writes all endpoints, as the value of their tagged field.
    pub(super) fn encode_all(endpoints: &[Self], out: &mut Writer<'_>) {
        out.array_len(endpoints.len());
        for endpoint in endpoints {
            out.i32(endpoint.id);
            out.string(endpoint.host);
            out.i32(endpoint.port);
            out.nullable_string(endpoint.rack);
            out.no_tags();
        }
    }
}
