//! Request headers v1 and v2, and which header goes with which version.
//!
//! v1: key, version, correlation id, client id. v2 adds tagged fields (KIP-482), none of which is
//! known. The client id keeps its classic length in v2, so that a broker that does not know a
//! version can still read the header. ApiVersions responses always have header v0, so that a client
//! can read the answer to a version the broker does not know (KIP-511).

use super::reader::{Malformed, Reader};
use super::shapes;

/// The number of ApiVersions, the one API whose response header never changes.
const API_VERSIONS: i16 = 18;

/// What comes before every request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHeader<'a> {
    /// Which API.
    pub(crate) api_key: i16,
    /// Which version of it.
    pub(crate) api_version: i16,
    /// Comes back with the response.
    pub(crate) correlation_id: i32,
    /// What the client calls itself, for quotas and logs.
    pub(crate) client_id: Option<&'a str>,
    /// Where in the frame the body begins.
    pub(crate) body_at: usize,
}

/// Key, version and correlation id, from the first eight bytes; `None` if there are fewer. They
/// have the same place in every header, also in those of versions we do not know.
pub(crate) fn leading(frame: &[u8]) -> Option<(i16, i16, i32)> {
    let mut reader = Reader::new(frame, false);
    Some((reader.i16().ok()?, reader.i16().ok()?, reader.i32().ok()?))
}

/// The whole header; `flexible` says that it is a v2, as [`request_is_flexible`] tells.
pub(crate) fn parse(frame: &[u8], flexible: bool) -> Result<RequestHeader<'_>, Malformed> {
    let mut reader = Reader::new(frame, false);
    let api_key = reader.i16()?;
    let api_version = reader.i16()?;
    let correlation_id = reader.i32()?;
    let client_id = reader.nullable_string().map_err(|fault| fault.in_field("client_id"))?;
    if flexible {
        reader.become_flexible();
        reader.skip_tags().map_err(|fault| fault.in_field("header tags"))?;
    }
    Ok(RequestHeader { api_key, api_version, correlation_id, client_id, body_at: reader.at() })
}

/// Whether a request of this version has header v2 and compact fields; `None` for an unknown key.
/// The version is not checked against what exists: the caller's version table does that.
pub(crate) fn request_is_flexible(api_key: i16, version: i16) -> Option<bool> {
    shapes::find(api_key).map(|api| api.is_flexible(version))
}

/// Whether the response of this version has header v1, which ends in tagged fields.
pub(crate) fn response_header_is_flexible(api_key: i16, version: i16) -> bool {
    api_key != API_VERSIONS && request_is_flexible(api_key, version).unwrap_or(false)
}
