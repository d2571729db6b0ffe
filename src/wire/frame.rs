//! Frames: a length of four bytes, then that many bytes.

use crate::limits;
use bytes::{Buf, Bytes, BytesMut};

/// Bytes of the length in front of a frame.
const LENGTH_BYTES: usize = 4;

/// A length that no honest client sends: TLS and HTTP on a plaintext port look like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {length} bytes, at most {most} are taken")]
pub(crate) struct FrameError {
    /// As the first four bytes say.
    pub(crate) length: i32,
    /// `socket.request.max.bytes`.
    pub(crate) most: usize,
}

/// Where a connection's bytes arrive. Its memory grows with what has arrived, never with what a
/// length claims, and is used again for the next frame.
#[derive(Debug)]
pub(crate) struct FrameBuffer {
    bytes: BytesMut,
    frame_max: usize,
}

impl FrameBuffer {
    /// Takes frames of at most `frame_max` bytes.
    pub(crate) fn new(frame_max: usize) -> Self {
        Self { bytes: BytesMut::new(), frame_max }
    }

    /// The length of the frame that is arriving, once it is known.
    fn frame_length(&self) -> Result<Option<usize>, FrameError> {
        let Some(head) = self.bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = i32::from_be_bytes(*head);
        match usize::try_from(length) {
            Ok(size) if size <= self.frame_max => Ok(Some(size)),
            _ => Err(FrameError { length, most: self.frame_max }),
        }
    }

    /// The first frame, if it is whole; it stays in the buffer.
    pub(crate) fn peek(&self) -> Result<Option<&[u8]>, FrameError> {
        let Some(length) = self.frame_length()? else { return Ok(None) };
        Ok(self.bytes.get(LENGTH_BYTES..LENGTH_BYTES + length))
    }

    /// Takes the first frame out, if it is whole.
    pub(crate) fn take(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(length) = self.frame_length()? else { return Ok(None) };
        if self.bytes.len() < LENGTH_BYTES + length {
            return Ok(None);
        }
        self.bytes.advance(LENGTH_BYTES);
        Ok(Some(self.bytes.split_to(length).freeze()))
    }

    /// How large the buffer should be for the next read: what the frame still lacks, but at most
    /// twice what has arrived.
    pub(crate) fn wanted_capacity(&self) -> usize {
        let held = self.bytes.len();
        let lacks = match self.frame_length() {
            Ok(Some(length)) => (LENGTH_BYTES + length).saturating_sub(held),
            Ok(None) | Err(_) => 0,
        };
        let grown = lacks.min(held.max(limits::FRAME_EXEMPT_BYTES / 2));
        held + grown.max(limits::READ_BYTES_MIN)
    }

    /// Makes room for a read. Memory of frames that are done with is used again; where there is not
    /// enough, just what is wanted is taken, for that is what was charged.
    pub(crate) fn room(&mut self) -> &mut BytesMut {
        let wanted = self.wanted_capacity();
        let more = wanted.saturating_sub(self.bytes.len());
        if !self.bytes.try_reclaim(more) {
            let mut larger = BytesMut::with_capacity(wanted);
            larger.extend_from_slice(&self.bytes);
            self.bytes = larger;
        }
        &mut self.bytes
    }

    /// Bytes that have arrived of frames that are not taken.
    pub(crate) fn arrived(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory held.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether nothing has arrived that is not taken.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Gives the memory back; only when nothing is held.
    pub(crate) fn release(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(bytes: &[u8]) -> FrameBuffer {
        let mut buffer = FrameBuffer::new(1 << 20);
        buffer.room();
        buffer.bytes.extend_from_slice(bytes);
        buffer
    }

    #[test]
    fn frames_are_taken_when_they_are_whole() {
        let mut buffer = with(b"\0\0\0\x02ab\0\0\0\x03c");
        assert_eq!(buffer.peek(), Ok(Some(&b"ab"[..])));
        assert_eq!(buffer.take(), Ok(Some(Bytes::from_static(b"ab"))));
        assert_eq!(buffer.take(), Ok(None));
        buffer.bytes.extend_from_slice(b"de");
        assert_eq!(buffer.take(), Ok(Some(Bytes::from_static(b"cde"))));
        assert!(buffer.is_empty());
    }

    #[test]
    fn a_claimed_length_takes_no_memory_before_bytes_arrive() {
        let mut buffer = with(&(1i32 << 20).to_be_bytes());
        assert!(buffer.wanted_capacity() <= limits::FRAME_EXEMPT_BYTES);
        buffer.bytes.extend_from_slice(&[0; 200_000]);
        assert!(buffer.wanted_capacity() <= 400_100, "{}", buffer.wanted_capacity());
    }

    #[test]
    fn as_much_memory_is_taken_as_was_said() {
        let mut buffer = with(&990_000i32.to_be_bytes());
        let mut held = 4;
        while held < 990_004 {
            let said = buffer.wanted_capacity().max(buffer.capacity());
            assert!(buffer.room().capacity() <= said, "{} of {said}", buffer.capacity());
            let arrives = (buffer.capacity() - held).min(990_004 - held);
            buffer.bytes.extend_from_slice(&vec![0; arrives]);
            held += arrives;
        }
        assert_eq!(buffer.take().expect("whole").expect("whole").len(), 990_000);
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for length in [-1, i32::MIN, (1 << 20) + 1, i32::MAX] {
            let mut buffer = with(&length.to_be_bytes());
            assert_eq!(buffer.take(), Err(FrameError { length, most: 1 << 20 }));
        }
        // The first bytes of TLS and of HTTP.
        assert!(with(b"\x16\x03\x01\x02").take().is_err());
        assert!(with(b"GET ").take().is_err());
    }
}
