//! A cursor over bytes that nobody vouches for.
//!
//! Every read is checked against what remains, and a count is checked before anything is sized by
//! it: twenty hostile bytes must never ask for gigabytes. Nothing here panics or allocates.

use crate::limits;
use crate::types::TopicId;

/// Bytes that do not follow the protocol: a client's mistake or an attack, never ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at} ({field})")]
pub(crate) struct Malformed {
    /// What is wrong, in lower case, for the log.
    pub(crate) what: &'static str,
    /// The field it was found in; `?` where the decoder does not keep names.
    pub(crate) field: &'static str,
    /// Where in the bytes that were given, counted from 0.
    pub(crate) at: usize,
}

impl Malformed {
    /// The same fault, with the innermost field's name if none was known.
    pub(crate) fn in_field(self, field: &'static str) -> Self {
        if self.field == "?" { Self { field, ..self } } else { self }
    }
}

/// Reads the protocol's primitives in order. `flexible` decides, for a whole message, between the
/// classic lengths and the compact ones of KIP-482, so that decoders need no branch of their own.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    flexible: bool,
}

impl<'a> Reader<'a> {
    /// Begins at the first byte.
    pub(crate) fn new(bytes: &'a [u8], flexible: bool) -> Self {
        Self { bytes, at: 0, flexible }
    }

    /// The position of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// Whether lengths are compact and structs end in tagged fields.
    pub(crate) fn is_flexible(&self) -> bool {
        self.flexible
    }

    /// Reads on by the rules of flexible messages: a request header's last field is the first.
    pub(crate) fn become_flexible(&mut self) {
        self.flexible = true;
    }

    /// The fault `what`, here.
    pub(crate) fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { what, field: "?", at: self.at }
    }

    /// Refuses bytes after the message: whoever sent them meant something we did not read.
    pub(crate) fn finish(&self) -> Result<(), Malformed> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.malformed("bytes after the message")) }
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(taken) = rest.get(..count) else {
            return Err(self.malformed("cut short"));
        };
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(taken) = rest.first_chunk::<N>() else {
            return Err(self.malformed("cut short"));
        };
        self.at += N;
        Ok(*taken)
    }

    /// One signed byte.
    pub(crate) fn i8(&mut self) -> Result<i8, Malformed> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    /// A big-endian number of two bytes.
    pub(crate) fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// A big-endian number of four bytes.
    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// A big-endian number of eight bytes.
    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Sixteen bytes of identity (KIP-516).
    pub(crate) fn uuid(&mut self) -> Result<TopicId, Malformed> {
        Ok(TopicId::from_bytes(self.array()?))
    }

    /// An unsigned varint of at most five bytes. A longer or padded spelling is refused: one
    /// number has one spelling, so that no two readers of a frame can disagree on its length.
    pub(crate) fn varint(&mut self) -> Result<u32, Malformed> {
        let start = self.clone();
        let mut value: u32 = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array::<1>()?;
            let bits = u32::from(byte & 0x7f);
            let shifted = bits << shift;
            if shifted >> shift != bits {
                return Err(start.malformed("varint too large"));
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                let padded = byte == 0 && shift > 0;
                return if padded { Err(start.malformed("varint padded")) } else { Ok(value) };
            }
        }
        Err(start.malformed("varint too long"))
    }

    /// A string's or byte field's length; `None` is null.
    fn length(&mut self, classic: fn(&mut Self) -> Result<i32, Malformed>) -> LengthResult {
        if self.flexible {
            let coded = self.varint()?;
            return Ok(coded.checked_sub(1).and_then(|length| usize::try_from(length).ok()));
        }
        let start = self.clone();
        match classic(self)? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => Ok(Some(length)),
                Err(_) => Err(start.malformed("length below -1")),
            },
        }
    }

    /// A string that may be null, checked to be UTF-8.
    pub(crate) fn nullable_string(&mut self) -> Result<Option<&'a str>, Malformed> {
        let start = self.clone();
        let Some(length) = self.length(|reader| reader.i16().map(i32::from))? else {
            return Ok(None);
        };
        if length > limits::STRING_BYTES_MAX {
            return Err(start.malformed("string too long"));
        }
        match std::str::from_utf8(self.take(length)?) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(start.malformed("string not UTF-8")),
        }
    }

    /// A string that must be there, checked to be UTF-8.
    pub(crate) fn string(&mut self) -> Result<&'a str, Malformed> {
        let start = self.clone();
        self.nullable_string()?.ok_or_else(|| start.malformed("null where a string must be"))
    }

    /// Bytes that may be null; record batches are sent so.
    pub(crate) fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.length(Self::i32)? {
            Some(length) => self.take(length).map(Some),
            None => Ok(None),
        }
    }

    /// Bytes that must be there.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let start = self.clone();
        self.nullable_bytes()?.ok_or_else(|| start.malformed("null where bytes must be"))
    }

    /// An array's count; `None` is null. `element_min` is the least an element takes on the wire,
    /// in bytes: a count that cannot fit into what remains is refused here, before any allocation.
    pub(crate) fn nullable_array_len(
        &mut self,
        element_min: usize,
    ) -> Result<Option<usize>, Malformed> {
        let start = self.clone();
        let Some(count) = self.length(Self::i32)? else {
            return Ok(None);
        };
        if count > limits::ARRAY_ELEMENTS_MAX {
            return Err(start.malformed("array too long"));
        }
        if count.saturating_mul(element_min.max(1)) > self.remaining() {
            return Err(start.malformed("count beyond the bytes that remain"));
        }
        Ok(Some(count))
    }

    /// The count of an array that must be there; see [`Self::nullable_array_len`].
    pub(crate) fn array_len(&mut self, element_min: usize) -> Result<usize, Malformed> {
        let start = self.clone();
        self.nullable_array_len(element_min)?
            .ok_or_else(|| start.malformed("null where an array must be"))
    }

    /// What names a topic: its id in versions that go `by_id` (KIP-516), else its name. The other
    /// is nil or empty.
    pub(crate) fn topic_key(&mut self, by_id: bool) -> Result<(&'a str, TopicId), Malformed> {
        if by_id { Ok(("", self.uuid()?)) } else { Ok((self.string()?, TopicId::nil())) }
    }

    /// Begins the tagged fields that end a struct (KIP-482); none in a classic message.
    pub(crate) fn tags(&mut self) -> Result<Tags, Malformed> {
        if !self.flexible {
            return Ok(Tags { left: 0 });
        }
        let start = self.clone();
        let count = self.varint()?;
        if count > limits::TAGGED_FIELDS_PER_SET_MAX {
            return Err(start.malformed("too many tagged fields"));
        }
        Ok(Tags { left: count })
    }

    /// Passes over tagged fields none of which is known.
    pub(crate) fn skip_tags(&mut self) -> Result<(), Malformed> {
        let mut tags = self.tags()?;
        while tags.next(self)?.is_some() {}
        Ok(())
    }
}

type LengthResult = Result<Option<usize>, Malformed>;

/// The tagged fields of one struct that are still to be read. The reader is not held, since the
/// decoder of the struct reads on with it.
#[derive(Debug)]
pub(crate) struct Tags {
    left: u32,
}

impl Tags {
    /// The next field: its tag and a reader that ends where the field ends. A field of an unknown
    /// tag is skipped by dropping its reader; one that is known should be read to its end.
    pub(crate) fn next<'a>(
        &mut self,
        reader: &mut Reader<'a>,
    ) -> Result<Option<(u32, Reader<'a>)>, Malformed> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        let tag = reader.varint()?;
        let start = reader.clone();
        let size = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
        let from = reader.at;
        let Ok(_) = reader.take(size) else {
            return Err(start.malformed("tagged field cut short"));
        };
        // Positions stay those of the whole message: only the end moves.
        let bytes = reader.bytes.get(..reader.at).unwrap_or_default();
        Ok(Some((tag, Reader { bytes, at: from, flexible: reader.flexible })))
    }
}
