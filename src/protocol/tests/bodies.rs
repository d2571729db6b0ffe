//! Makes request bodies by their shapes, and remembers where each length stands.

use crate::protocol::shapes::{Api, Field, Kind, Plain};

/// A body and where in it lengths stand.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// The body.
    pub(super) bytes: Vec<u8>,
    /// Its lengths, in order. All are one byte in a flexible version.
    pub(super) lengths: Vec<Length>,
    /// Whether lengths are compact.
    pub(super) is_flexible: bool,
    version: i16,
    elements: usize,
    has_unknown_tags: bool,
    /// The array, counted from 0, that gets `1` elements times this many.
    flood: Option<(usize, usize)>,
}

/// A length, a count of elements or a count of tagged fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    /// The field it belongs to.
    pub(super) field: &'static str,
    /// Its first byte.
    pub(super) at: usize,
    /// Where what it counts ends; `None` within a tagged field, whose size depends on it.
    pub(super) end: Option<usize>,
    /// What it counts.
    pub(super) kind: LengthKind,
    /// Whether it may say null.
    pub(super) is_nullable: bool,
}

/// What a length counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LengthKind {
    /// Bytes of text.
    Text,
    /// Bytes.
    Bytes,
    /// Elements.
    Array,
    /// Tagged fields.
    Tags,
}

impl Body {
    /// A body with every field, each known tagged one included, and `elements` in each array.
    pub(super) fn new(api: &Api, version: i16, elements: usize) -> Self {
        let is_flexible = api.is_flexible(version);
        let mut body = Self { is_flexible, version, elements, ..Self::default() };
        body.message(api.fields);
        body
    }

    /// A body whose `nth` array is filled to `length` bytes with the least elements.
    pub(super) fn flooded(api: &Api, version: i16, nth: usize, length: usize) -> Self {
        let is_flexible = api.is_flexible(version);
        let flood = Some((nth, length));
        let mut body = Self { is_flexible, version, elements: 1, flood, ..Self::default() };
        body.message(api.fields);
        body
    }

    /// A body in which each set of tagged fields has all small tags that no version
    /// knows, each with an empty value.
    pub(super) fn with_unknown_tags(api: &Api, version: i16) -> Self {
        let is_flexible = api.is_flexible(version);
        let has_unknown_tags = true;
        let elements = 1;
        let mut body = Self { is_flexible, version, elements, has_unknown_tags, ..Self::default() };
        body.message(api.fields);
        body
    }

    /// How many arrays it has.
    pub(super) fn arrays(&self) -> usize {
        self.lengths.iter().filter(|length| length.kind == LengthKind::Array).count()
    }

    /// The bytes with null in place of what `length` counts, if null may stand there.
    pub(super) fn with_null(&self, length: &Length) -> Option<Vec<u8>> {
        let end = length.end.filter(|_| length.is_nullable)?;
        let null: &[u8] = match length.kind {
            _ if self.is_flexible => &[0],
            LengthKind::Text => &[0xff; 2],
            LengthKind::Bytes | LengthKind::Array => &[0xff; 4],
            LengthKind::Tags => unreachable!("classic messages have no tags"),
        };
        let mut told = self.bytes.clone();
        told.splice(length.at..end, null.iter().copied());
        Some(told)
    }

    /// The bytes with `length` spelled as `lie`.
    pub(super) fn with(&self, length: &Length, lie: &[u8]) -> Vec<u8> {
        let size = match length.kind {
            _ if self.is_flexible => 1,
            LengthKind::Text => 2,
            LengthKind::Bytes | LengthKind::Array => 4,
            LengthKind::Tags => unreachable!("classic messages have no tags"),
        };
        let mut told = self.bytes.clone();
        told.splice(length.at..length.at + size, lie.iter().copied());
        told
    }

    fn message(&mut self, fields: &[Field]) {
        let version = self.version;
        let exists = |field: &&Field| field.exists(version);
        for field in fields.iter().filter(exists).filter(|field| field.tag.is_none()) {
            self.field(field);
        }
        if !self.is_flexible {
            return;
        }
        let tagged: Vec<_> =
            fields.iter().filter(exists).filter_map(|f| f.tag.map(|tag| (tag, f))).collect();
        let tagged = if self.elements == 0 { Vec::new() } else { tagged };
        let is_unknown = |tag: &u32| fields.iter().all(|field| field.tag != Some(*tag));
        let small = if self.has_unknown_tags { 0..8 } else { 0..0 };
        let unknown: Vec<u32> = small.filter(is_unknown).collect();
        self.length("tags", LengthKind::Tags, false, tagged.len() + unknown.len());
        for tag in unknown {
            self.varint(tag as usize);
            self.varint(0);
        }
        for (tag, field) in tagged {
            // The size is written after the value is known; all are short here.
            let mut value =
                Self { version, is_flexible: true, elements: self.elements, ..Self::default() };
            value.field(field);
            self.varint(tag as usize);
            self.varint(value.bytes.len());
            let at = self.bytes.len();
            let moved = value.lengths.into_iter().map(|length| Length {
                at: at + length.at,
                end: None,
                ..length
            });
            self.lengths.extend(moved);
            self.bytes.extend(value.bytes);
        }
    }

    fn field(&mut self, field: &Field) {
        let nth = self.lengths.len();
        self.value(field);
        if let (Some(length), None) = (self.lengths.get_mut(nth), field.tag) {
            length.end.get_or_insert(self.bytes.len());
        }
    }

    fn value(&mut self, field: &Field) {
        let is_nullable = field.is_nullable(self.version);
        match field.kind {
            Kind::One(plain) => self.plain(field.name, plain, is_nullable),
            Kind::Many(plain) => self.array(field, |body| body.plain(field.name, plain, false)),
            Kind::Struct(fields) => {
                if is_nullable {
                    self.bytes.push(1);
                }
                self.message(fields);
            }
            Kind::Structs(fields) => self.array(field, |body| body.message(fields)),
        }
    }

    fn array(&mut self, field: &Field, one: impl Fn(&mut Self)) {
        let is_nullable = field.is_nullable(self.version);
        let nth = self.arrays();
        match self.flood {
            Some((flooded, length)) if flooded == nth => {
                let mut least = Self {
                    version: self.version,
                    is_flexible: self.is_flexible,
                    ..Self::default()
                };
                one(&mut least);
                let count = length / least.bytes.len();
                self.length(field.name, LengthKind::Array, is_nullable, count);
                self.bytes.extend(least.bytes.repeat(count));
                // What comes after needs no lengths: they count as arrays already seen.
                self.flood = None;
            }
            Some(_) | None => {
                self.length(field.name, LengthKind::Array, is_nullable, self.elements);
                (0..self.elements).for_each(|_| one(self));
            }
        }
    }

    fn plain(&mut self, field: &'static str, plain: Plain, is_nullable: bool) {
        let length = self.elements;
        match plain {
            Plain::Fixed(size) => self.bytes.extend(std::iter::repeat_n(0, size)),
            Plain::Text => {
                self.length(field, LengthKind::Text, is_nullable, length);
                self.bytes.extend(std::iter::repeat_n(b'a', length));
            }
            Plain::Bytes => {
                self.length(field, LengthKind::Bytes, is_nullable, length);
                self.bytes.extend(std::iter::repeat_n(0, length));
            }
        }
    }

    fn length(&mut self, field: &'static str, kind: LengthKind, is_nullable: bool, count: usize) {
        self.lengths.push(Length { field, at: self.bytes.len(), end: None, kind, is_nullable });
        match kind {
            LengthKind::Tags => self.varint(count),
            _ if self.is_flexible => self.varint(count + 1),
            LengthKind::Text => {
                let count = i16::try_from(count).expect("short");
                self.bytes.extend(count.to_be_bytes());
            }
            LengthKind::Bytes | LengthKind::Array => {
                let count = i32::try_from(count).expect("short");
                self.bytes.extend(count.to_be_bytes());
            }
        }
    }

    fn varint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}
