//! Ottla, a broker that speaks Kafka's wire protocol.

mod broker;
mod clock;
pub mod config;
mod disk;
mod limits;
mod log;
mod machine;
mod protocol;
mod records;
mod store;
mod types;
mod wire;
