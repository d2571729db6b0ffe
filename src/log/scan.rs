//! Reads batch heads one behind the other.

use super::LogError;
use crate::disk::DiskFile;
use crate::records::{BatchHeader, HEADER_BYTES};
use crate::types::Offset;

/// A window large enough for the heads of small batches up to the next index entry.
const WINDOW_BYTES: usize = 4 * 1024;

/// Walks the heads in a segment's bytes.
pub(crate) struct HeadScanner<'a> {
    file: &'a dyn DiskFile,
    segment: Offset,
    position: u64,
    end: u64,
    window: [u8; WINDOW_BYTES],
    window_at: u64,
    window_filled: usize,
}

impl<'a> HeadScanner<'a> {
    /// Begins at `position`, where a batch begins, and stops before `end`.
    pub(crate) fn new(file: &'a dyn DiskFile, segment: Offset, position: u64, end: u64) -> Self {
        Self {
            file,
            segment,
            position,
            end,
            window: [0; WINDOW_BYTES],
            window_at: position,
            window_filled: 0,
        }
    }

    /// The next batch's position and head; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, BatchHeader)>, LogError> {
        if self.position >= self.end {
            return Ok(None);
        }
        let (at, segment) = (self.position, self.segment);
        let corrupt = |what| LogError::Corrupt { segment, position: at, what };
        let head = self.head()?;
        let header = BatchHeader::parse(head).map_err(corrupt)?;
        self.position = at + header.size as u64;
        if self.position > self.end {
            return Err(corrupt(crate::records::BatchError::Short));
        }
        Ok(Some((at, header)))
    }

    fn head(&mut self) -> Result<&[u8], LogError> {
        let inside = |at: u64, filled: usize, position: u64| {
            let skip = usize::try_from(position.checked_sub(at)?).ok()?;
            (skip + HEADER_BYTES <= filled).then_some(skip)
        };
        let skip = match inside(self.window_at, self.window_filled, self.position) {
            Some(skip) => skip,
            None => {
                let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
                let wanted = left.min(WINDOW_BYTES);
                self.window_filled =
                    self.file.read_at(&mut self.window[..wanted], self.position)?;
                self.window_at = self.position;
                0
            }
        };
        Ok(&self.window[skip..self.window_filled])
    }
}
