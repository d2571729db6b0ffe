//! The records of an uncompressed batch, read in place.
//!
//! A record: length, attributes i8, timestamp delta, offset delta, key, value, headers; all
//! lengths, deltas and counts are zigzag varints, a length of −1 means null.

use super::BatchError;

/// One record; keys, values and headers lie in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// Milliseconds after the batch's base timestamp.
    pub(crate) timestamp_delta: i64,
    /// Offsets after the batch's base offset.
    pub(crate) offset_delta: i32,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
}

/// Walks the records behind a batch's head.
pub(crate) struct Records<'a> {
    rest: &'a [u8],
    left: i32,
}

impl<'a> Records<'a> {
    /// The `count` records that `bytes` should hold, exactly.
    pub(crate) fn new(bytes: &'a [u8], count: i32) -> Self {
        Self { rest: bytes, left: count }
    }

    /// The next record; `None` when all were read. Bytes left over are an error.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'a>>, BatchError> {
        if self.left <= 0 {
            if self.rest.is_empty() {
                return Ok(None);
            }
            return Err(BatchError::Inconsistent("bytes follow the last record"));
        }
        self.left -= 1;
        let size = self.length()?.ok_or(BatchError::Inconsistent("a record has no length"))?;
        let (mut body, rest) =
            self.rest.split_at_checked(size).ok_or(BatchError::Inconsistent("a record is cut"))?;
        std::mem::swap(&mut self.rest, &mut body);
        let record = self.body()?;
        if !self.rest.is_empty() {
            return Err(BatchError::Inconsistent("a record is shorter than its length"));
        }
        self.rest = rest;
        Ok(Some(record))
    }

    fn body(&mut self) -> Result<Record<'a>, BatchError> {
        self.take(1)?;
        let timestamp_delta = self.varlong()?;
        let offset_delta = self.varint()?;
        let key = self.bytes()?;
        let value = self.bytes()?;
        let headers = self.varint()?;
        // Each header takes two bytes at least, so a count beyond that is a lie told cheaply.
        if headers < 0 || usize::try_from(headers).is_ok_and(|count| count > self.rest.len() / 2) {
            return Err(BatchError::Inconsistent("a record's header count is impossible"));
        }
        for _ in 0..headers {
            self.bytes()?.ok_or(BatchError::Inconsistent("a header's key is null"))?;
            self.bytes()?;
        }
        Ok(Record { timestamp_delta, offset_delta, key, value })
    }

    fn bytes(&mut self) -> Result<Option<&'a [u8]>, BatchError> {
        match self.length()? {
            None => Ok(None),
            Some(length) => self.take(length).map(Some),
        }
    }

    fn length(&mut self) -> Result<Option<usize>, BatchError> {
        match self.varint()? {
            -1 => Ok(None),
            length => usize::try_from(length)
                .map(Some)
                .map_err(|_| BatchError::Inconsistent("a length is negative")),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], BatchError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(BatchError::Inconsistent("a field reaches past its record"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<i32, BatchError> {
        i32::try_from(self.varlong()?)
            .map_err(|_| BatchError::Inconsistent("a varint is too large"))
    }

    fn varlong(&mut self) -> Result<i64, BatchError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let Some((&byte, rest)) = self.rest.split_first() else {
                return Err(BatchError::Inconsistent("a varint is cut"));
            };
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let magnitude = (value >> 1).cast_signed();
                return Ok(magnitude ^ -(value & 1).cast_signed());
            }
        }
        Err(BatchError::Inconsistent("a varint is overlong"))
    }
}

/// Appends `value` as a zigzag varint.
pub(super) fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63).cast_unsigned();
    loop {
        let low = u8::try_from(rest & 0x7f).unwrap_or(0);
        rest >>= 7;
        if rest == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_read_back(value: i64) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            prop_assert_eq!(Records::new(&bytes, 0).varlong(), Ok(value));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>, count in 0i32..100) {
            let mut records = Records::new(&bytes, count);
            while let Ok(Some(_)) = records.next() {}
        }
    }
}
