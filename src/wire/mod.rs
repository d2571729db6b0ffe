//! Bytes on a socket: frames in, chunks out. It knows nothing of what they mean.

mod budget;
mod frame;
mod writer;

pub(crate) use budget::{Budget, Charge};
pub(crate) use frame::{FrameBuffer, FrameError};
pub(crate) use writer::{Chunk, Output};
