//! What each request looks like, in every version that exists: which fields, in which order.
//!
//! The tables are data for [`super::frame_guard`], which walks a body by them before any decoder
//! sees it. They say what is on the wire and nothing of what it means. A field stands where the
//! protocol puts it; one that only some versions have says `since` and `until`, in versions of its
//! API, both inclusive. Golden bytes made by Kafka's own classes prove every table.

mod cluster;
mod groups;
mod records;
mod security;
mod settings;
mod shares;
mod topics;
mod transactions;

use crate::limits;

/// The API of this number, if there is one.
pub(crate) fn find(key: i16) -> Option<&'static Api> {
    all().find(|api| api.key == key)
}

/// Every API. Those with the most traffic come first, since [`find`] walks from the front.
pub(crate) fn all() -> impl Iterator<Item = &'static Api> {
    FAMILIES.into_iter().flatten()
}

const FAMILIES: [&[Api]; 8] = [
    records::RECORDS,
    topics::TOPICS,
    groups::GROUPS,
    transactions::TRANSACTIONS,
    shares::SHARES,
    settings::SETTINGS,
    security::SECURITY,
    cluster::CLUSTER,
];

// The guard recurses as deep as a shape does.
const _: () = assert!(depth_of_all(&FAMILIES) <= limits::NESTING_MAX);

const fn depth_of_all(mut families: &[&[Api]]) -> usize {
    let mut deepest = 0;
    while let [family, more @ ..] = families {
        let mut apis = *family;
        while let [api, more @ ..] = apis {
            deepest = greater(deepest, depth(api.fields));
            apis = more;
        }
        families = more;
    }
    deepest
}

const fn depth(mut fields: &[Field]) -> usize {
    let mut deepest = 0;
    while let [field, more @ ..] = fields {
        let below = match field.kind {
            Kind::One(_) => 0,
            Kind::Many(_) => 1,
            Kind::Struct(fields) | Kind::Structs(fields) => 1 + depth(fields),
        };
        deepest = greater(deepest, below);
        fields = more;
    }
    deepest
}

const fn greater(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// One API's request.
#[derive(Debug)]
pub(crate) struct Api {
    /// Its number.
    pub(crate) key: i16,
    /// Its name, for logs.
    pub(crate) name: &'static str,
    /// The first version that exists.
    pub(crate) first: i16,
    /// The last version that exists.
    pub(crate) last: i16,
    /// The first version with compact lengths and tagged fields (KIP-482), or [`Api::NEVER`].
    pub(crate) flexible: i16,
    /// The body.
    pub(crate) fields: &'static [Field],
}

impl Api {
    /// A version that will not come.
    const NEVER: i16 = i16::MAX;

    /// Whether `version` has compact lengths and tagged fields.
    pub(crate) fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible
    }
}

/// One field of a message or of a struct in it.
#[derive(Debug)]
pub(crate) struct Field {
    /// Kafka's name for it, for logs.
    pub(crate) name: &'static str,
    /// What it holds.
    pub(crate) kind: Kind,
    /// Its number if it is tagged, which makes it optional.
    pub(crate) tag: Option<u32>,
    first: i16,
    last: i16,
    nullable_first: i16,
}

impl Field {
    /// Whether `version` has it.
    pub(crate) fn exists(&self, version: i16) -> bool {
        self.first <= version && version <= self.last
    }

    /// Whether `version` allows null.
    pub(crate) fn is_nullable(&self, version: i16) -> bool {
        version >= self.nullable_first
    }

    /// The first version that has it.
    const fn since(self, first: i16) -> Self {
        Self { first, ..self }
    }

    /// The last version that has it.
    const fn until(self, last: i16) -> Self {
        Self { last, ..self }
    }

    /// It may be null.
    const fn nullable(self) -> Self {
        self.nullable_since(0)
    }

    /// It may be null from this version on.
    const fn nullable_since(self, nullable_first: i16) -> Self {
        Self { nullable_first, ..self }
    }

    /// It is a tagged field.
    const fn tagged(self, tag: u32) -> Self {
        Self { tag: Some(tag), ..self }
    }
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A plain value.
    One(Plain),
    /// An array of plain values.
    Many(Plain),
    /// A struct.
    Struct(&'static [Field]),
    /// An array of structs.
    Structs(&'static [Field]),
}

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    /// So many bytes that can have any value: numbers, booleans, identities.
    Fixed(usize),
    /// UTF-8 text.
    Text,
    /// Bytes, among them record batches.
    Bytes,
}

const BOOL: Kind = Kind::One(Plain::Fixed(1));
const I8: Kind = Kind::One(Plain::Fixed(1));
const I16: Kind = Kind::One(Plain::Fixed(2));
const U16: Kind = Kind::One(Plain::Fixed(2));
const I32: Kind = Kind::One(Plain::Fixed(4));
const I64: Kind = Kind::One(Plain::Fixed(8));
const F64: Kind = Kind::One(Plain::Fixed(8));
const UUID: Kind = Kind::One(Plain::Fixed(16));
const STR: Kind = Kind::One(Plain::Text);
const BYTES: Kind = Kind::One(Plain::Bytes);

/// A field that every version has, never null.
const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, tag: None, first: 0, last: i16::MAX, nullable_first: i16::MAX }
}

/// An array of `kind`, which is plain.
const fn many(kind: Kind) -> Kind {
    match kind {
        Kind::One(plain) => Kind::Many(plain),
        Kind::Many(_) | Kind::Struct(_) | Kind::Structs(_) => panic!("arrays hold plain values"),
    }
}

/// A struct.
const fn one(fields: &'static [Field]) -> Kind {
    Kind::Struct(fields)
}

/// An array of structs.
const fn structs(fields: &'static [Field]) -> Kind {
    Kind::Structs(fields)
}
