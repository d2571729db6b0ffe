//! Kafka's wire protocol: headers, the guard in front of every decoder, the hot codecs, errors.
//!
//! A frame is read in this order: [`header::leading`], the caller's version table,
//! [`header::parse`], [`frame_guard::check_request`], and only then a decoder, ours or
//! kafka-protocol's.

// Hostile bytes must never panic.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

#[expect(dead_code, reason = "all of Kafka's codes, also those no answer has yet")]
mod error;
// What peers of this broker will send and read; the tests do already.
#[cfg_attr(not(test), expect(dead_code, reason = "only peers and tests use this half"))]
pub(crate) mod fetch;
pub(crate) mod frame_guard;
pub(crate) mod header;
mod node_endpoint;
#[cfg_attr(not(test), expect(dead_code, reason = "only peers and tests use this half"))]
pub(crate) mod produce;
mod reader;
mod shapes;
mod writer;

pub(crate) use error::ErrorCode;
pub(crate) use reader::Malformed;

#[cfg(test)]
mod tests;
