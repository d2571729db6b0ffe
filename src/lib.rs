//! Ottla, a broker that speaks Kafka's wire protocol.

pub(crate) mod clock;
pub(crate) mod limits;
pub(crate) mod machine;
pub(crate) mod protocol;
pub(crate) mod types;
