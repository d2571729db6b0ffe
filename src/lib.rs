//! Ottla, a broker that speaks Kafka's wire protocol.

mod clock;
mod disk;
mod limits;
mod log;
mod protocol;
mod records;
mod types;
