//! Walks a request's body by its shape, before any decoder sees it.
//!
//! kafka-protocol sizes its arrays by the counts it reads: as few as seven bytes make it ask for
//! 309 GB. So a body reaches a decoder only if every length in it has been found true here: each
//! array can fit into the bytes that remain, each string is UTF-8 of bounded length, null stands
//! only where the version allows it, each known tagged field fills its size.
//!
//! That alone leaves honest counts of tiny elements: two bytes on the wire can be a struct of a
//! hundred. Therefore the walk also adds up what decoding will take and stops at a multiple of the
//! frame's length. The walk itself allocates nothing.

use super::reader::{Malformed, Reader};
use super::shapes::{self, Field, Kind, Plain};
use crate::limits;

/// Walks the body of a request, without its header, and says how many bytes it has; what may come
/// after them is for the caller to judge. An unknown API or version is refused: its shape is not
/// known.
pub(crate) fn check_request(api_key: i16, version: i16, body: &[u8]) -> Result<usize, Malformed> {
    walk_request(api_key, version, body).map(|walked| walked.bytes)
}

/// What a walk has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walked {
    /// How long the body is.
    pub(crate) bytes: usize,
    /// What decoding it may take besides, in bytes; never less than kafka-protocol takes.
    pub(crate) decoded: usize,
}

/// As [`check_request`], and says also what decoding may take.
pub(crate) fn walk_request(api_key: i16, version: i16, body: &[u8]) -> Result<Walked, Malformed> {
    let mut reader = Reader::new(body, false);
    let Some(api) = shapes::find(api_key) else {
        return Err(reader.malformed("unknown API"));
    };
    if version < api.first || version > api.last {
        return Err(reader.malformed("unknown version").in_field(api.name));
    }
    if api.is_flexible(version) {
        reader.become_flexible();
    }
    let budget = decoded_bytes_max(body.len());
    let mut walk = Walk { version, budget };
    walk.message(api.fields, &mut reader)?;
    Ok(Walked { bytes: reader.at(), decoded: budget - walk.budget })
}

/// What decoding a body of `length` bytes may take, in bytes, besides the body.
pub(crate) fn decoded_bytes_max(length: usize) -> usize {
    length
        .saturating_mul(limits::DECODED_PER_FRAME_BYTE)
        .clamp(limits::DECODED_BYTES_FLOOR, limits::DECODED_BYTES_MAX)
}

/// What a decoder keeps for a string or bytes: a handle on the frame (`bytes::Bytes`).
const HANDLE_BYTES: usize = 32;

/// What a decoder keeps for an array, and for a struct's map of unknown tagged fields, when empty.
const EMPTY_BYTES: usize = 24;

/// What the first unknown tagged field of a struct costs: one node of a `BTreeMap<i32, Bytes>`.
const TAG_NODE_BYTES: usize = 512;

/// A walk through one body.
struct Walk {
    version: i16,
    /// Bytes that decoding may still take.
    budget: usize,
}

impl Walk {
    fn message(&mut self, fields: &[Field], reader: &mut Reader<'_>) -> Result<(), Malformed> {
        for field in self.untagged(fields) {
            self.field(field, reader).map_err(|fault| fault.in_field(field.name))?;
        }
        self.tagged(fields, reader)
    }

    fn untagged<'f>(&self, fields: &'f [Field]) -> impl Iterator<Item = &'f Field> + use<'f> {
        let version = self.version;
        fields.iter().filter(move |field| field.tag.is_none() && field.exists(version))
    }

    fn tagged(&mut self, fields: &[Field], reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let mut tags = reader.tags()?;
        let mut is_first_unknown = true;
        while let Some((tag, mut value)) = tags.next(reader)? {
            if let Some(field) = fields.iter().find(|field| field.tag == Some(tag)) {
                if !field.exists(self.version) {
                    return Err(value.malformed("tag of another version").in_field(field.name));
                }
                self.field(field, &mut value)
                    .and_then(|()| value.finish())
                    .map_err(|fault| fault.in_field(field.name))?;
            } else {
                // The tree splits its nodes in half, so each holds at least five entries.
                let node = if is_first_unknown { TAG_NODE_BYTES } else { TAG_NODE_BYTES / 5 };
                self.charge(node, 1, reader)?;
                is_first_unknown = false;
            }
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let nullable = field.is_nullable(self.version);
        match field.kind {
            Kind::One(plain) => plain_value(plain, nullable, reader),
            Kind::Many(plain) => {
                let least = plain_least(plain, reader.is_flexible());
                let count = array_len(nullable, least, reader)?;
                self.charge(plain_decoded(plain), count, reader)?;
                if let Plain::Fixed(size) = plain {
                    return reader.take(count.saturating_mul(size)).map(drop);
                }
                (0..count).try_for_each(|_| plain_value(plain, false, reader))
            }
            Kind::Struct(fields) => {
                if nullable {
                    match reader.i8()? {
                        -1 => return Ok(()),
                        1 => {}
                        _ => return Err(reader.malformed("neither null nor a struct")),
                    }
                }
                self.message(fields, reader)
            }
            Kind::Structs(fields) => {
                let least = self.least(fields, reader.is_flexible());
                let count = array_len(nullable, least, reader)?;
                self.charge(struct_decoded(fields), count, reader)?;
                (0..count).try_for_each(|_| self.message(fields, reader))
            }
        }
    }

    /// The least bytes that a struct of this shape takes on the wire.
    fn least(&self, fields: &[Field], is_flexible: bool) -> usize {
        let length = if is_flexible { 1 } else { 4 };
        let tags = usize::from(is_flexible);
        let of = |field: &Field| match field.kind {
            Kind::One(plain) => plain_least(plain, is_flexible),
            Kind::Many(_) | Kind::Structs(_) => length,
            Kind::Struct(_) if field.is_nullable(self.version) => 1,
            Kind::Struct(fields) => self.least(fields, is_flexible),
        };
        self.untagged(fields).map(of).sum::<usize>() + tags
    }

    fn charge(&mut self, each: usize, count: usize, at: &Reader<'_>) -> Result<(), Malformed> {
        match self.budget.checked_sub(each.saturating_mul(count)) {
            Some(left) => self.budget = left,
            None => return Err(at.malformed("too many small elements for its length")),
        }
        Ok(())
    }
}

/// The count of an array, 0 for null.
fn array_len(nullable: bool, least: usize, reader: &mut Reader<'_>) -> Result<usize, Malformed> {
    if nullable {
        Ok(reader.nullable_array_len(least)?.unwrap_or(0))
    } else {
        reader.array_len(least)
    }
}

fn plain_value(plain: Plain, nullable: bool, reader: &mut Reader<'_>) -> Result<(), Malformed> {
    match plain {
        Plain::Fixed(size) => reader.take(size).map(drop),
        Plain::Text if nullable => reader.nullable_string().map(drop),
        Plain::Text => reader.string().map(drop),
        Plain::Bytes if nullable => reader.nullable_bytes().map(drop),
        Plain::Bytes => reader.bytes().map(drop),
    }
}

/// The least bytes that a plain value takes on the wire.
fn plain_least(plain: Plain, is_flexible: bool) -> usize {
    match plain {
        Plain::Fixed(size) => size,
        Plain::Text | Plain::Bytes if is_flexible => 1,
        Plain::Text => 2,
        Plain::Bytes => 4,
    }
}

/// What a decoder's struct holds in place for a plain value, in bytes.
fn plain_decoded(plain: Plain) -> usize {
    match plain {
        Plain::Fixed(size) => size,
        Plain::Text | Plain::Bytes => HANDLE_BYTES,
    }
}

/// What a decoder's struct of this shape takes, in bytes. It has the fields of every version.
fn struct_decoded(fields: &[Field]) -> usize {
    let of = |field: &Field| match field.kind {
        Kind::One(plain) => plain_decoded(plain),
        Kind::Many(_) | Kind::Structs(_) => EMPTY_BYTES,
        Kind::Struct(fields) => struct_decoded(fields),
    };
    // The map of unknown tagged fields comes last, then what alignment adds.
    (fields.iter().map(of).sum::<usize>() + EMPTY_BYTES).next_multiple_of(8)
}
