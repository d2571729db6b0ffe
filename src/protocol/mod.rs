//! Kafka's wire protocol: headers, the guard in front of every decoder, the hot codecs, error codes.

mod error;

pub(crate) use error::ErrorCode;
