//! Ottla, a broker that speaks Kafka's wire protocol.

mod broker;
mod clock;
pub mod config;
mod disk;
mod handlers;
mod http;
mod limits;
mod log;
mod machine;
mod metrics;
mod net;
mod protocol;
mod records;
pub mod server;
mod store;
mod types;
mod wire;
