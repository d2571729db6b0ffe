//! Record batches as they travel and lie on disk: format version 2 (KIP-98), which Ottla passes
//! on as it came. Nothing in here knows of partitions, files or sockets.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod batch;
mod build;
mod compress;
mod record;
mod validate;

pub(crate) use batch::{BatchError, BatchHeader, Compression, HEADER_BYTES, sequence_after};
pub(crate) use build::{BatchBuilder, NewRecord};
pub(crate) use compress::{CompressError, compress, decompress};
#[cfg(test)]
pub(crate) use record::Record;
pub(crate) use record::Records;
pub(crate) use validate::{Levels, Refusal, Rules, TimestampType, Validated, validate};
