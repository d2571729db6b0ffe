//! Writes the protocol's primitives; the counterpart of [`super::reader`] for our own values.
//!
//! A value too long for its length field is our own mistake, hence an assertion.

use bytes::{BufMut as _, BytesMut};

use crate::limits;
use crate::types::TopicId;

/// Appends to a buffer. `flexible` chooses compact lengths and tagged fields (KIP-482).
#[derive(Debug)]
pub(crate) struct Writer<'b> {
    out: &'b mut BytesMut,
    flexible: bool,
}

impl<'b> Writer<'b> {
    /// Appends to `out`, whatever it already holds.
    pub(crate) fn new(out: &'b mut BytesMut, flexible: bool) -> Self {
        Self { out, flexible }
    }

    /// Where the next byte goes, counted from the buffer's start.
    pub(crate) fn at(&self) -> usize {
        self.out.len()
    }

    /// One signed byte.
    pub(crate) fn i8(&mut self, value: i8) {
        self.out.put_i8(value);
    }

    /// A big-endian number of two bytes.
    pub(crate) fn i16(&mut self, value: i16) {
        self.out.put_i16(value);
    }

    /// A big-endian number of four bytes.
    pub(crate) fn i32(&mut self, value: i32) {
        self.out.put_i32(value);
    }

    /// A big-endian number of eight bytes.
    pub(crate) fn i64(&mut self, value: i64) {
        self.out.put_i64(value);
    }

    /// Sixteen bytes of identity.
    pub(crate) fn uuid(&mut self, value: TopicId) {
        self.out.put_slice(value.as_bytes());
    }

    /// An unsigned varint in its shortest spelling.
    pub(crate) fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.put_u8(low_byte(value) | 0x80);
            value >>= 7;
        }
        self.out.put_u8(low_byte(value));
    }

    /// A string that is there.
    pub(crate) fn string(&mut self, value: &str) {
        self.nullable_string(Some(value));
    }

    /// A string or null. Whoever puts foreign text into a message cuts it to the limit first.
    pub(crate) fn nullable_string(&mut self, value: Option<&str>) {
        assert!(value.is_none_or(|text| text.len() <= limits::STRING_BYTES_MAX));
        let length = value.map(|text| Self::count(text.len()));
        if self.flexible {
            self.compact_length(length);
        } else {
            let length = length.map(|length| i16::try_from(length).expect("strings are short"));
            self.i16(length.unwrap_or(-1));
        }
        self.out.put_slice(value.unwrap_or_default().as_bytes());
    }

    /// What names a topic: its id in versions that go `by_id`, else its name.
    pub(crate) fn topic_key(&mut self, by_id: bool, name: &str, id: TopicId) {
        if by_id {
            self.uuid(id);
        } else {
            self.string(name);
        }
    }

    /// Bytes or null.
    pub(crate) fn nullable_bytes(&mut self, value: Option<&[u8]>) {
        self.length(value.map(|bytes| Self::count(bytes.len())));
        self.out.put_slice(value.unwrap_or_default());
    }

    /// The count of an array that is there.
    pub(crate) fn array_len(&mut self, count: usize) {
        self.length(Some(Self::count(count)));
    }

    /// A length in the width the wire has for it.
    pub(crate) fn count(length: usize) -> u32 {
        u32::try_from(length).expect("frames are bounded")
    }

    /// The length of bytes, or the count of an array, that the caller writes; `None` is null.
    pub(crate) fn length(&mut self, length: Option<u32>) {
        let classic = length.map(|length| i32::try_from(length).expect("frames are bounded"));
        if self.flexible {
            self.compact_length(length);
        } else {
            self.i32(classic.unwrap_or(-1));
        }
    }

    fn compact_length(&mut self, length: Option<u32>) {
        self.varint(length.map_or(0, |length| length + 1));
    }

    /// Ends a struct that has no tagged field to send; nothing in a classic message.
    pub(crate) fn no_tags(&mut self) {
        if self.flexible {
            self.varint(0);
        }
    }

    /// Ends a struct with tagged fields, each written by its function in the order of their tags.
    /// A tagged field begins with its size, so it is written aside and then copied.
    pub(crate) fn tags(&mut self, fields: &[Option<(u32, TaggedField<'_>)>]) {
        if !self.flexible {
            return;
        }
        self.varint(Self::count(fields.iter().flatten().count()));
        let mut aside = BytesMut::new();
        for (tag, write) in fields.iter().flatten() {
            aside.clear();
            write(&mut Writer::new(&mut aside, true));
            self.varint(*tag);
            self.varint(Self::count(aside.len()));
            self.out.put_slice(&aside);
        }
    }
}

/// Writes one tagged field's value.
pub(crate) type TaggedField<'f> = &'f dyn Fn(&mut Writer<'_>);

fn low_byte(value: u32) -> u8 {
    let [low, ..] = value.to_le_bytes();
    low
}
