#![doc = include_str!("ARCHITECTURE.md")]

mod broker;
mod clock;
pub mod config;
mod disk;
mod handlers;
mod http;
mod limits;
mod log;
pub mod logging;
mod machine;
mod metrics;
mod net;
pub mod ping;
mod protocol;
mod records;
pub mod server;
mod store;
mod types;
mod wire;

/// How many times longer than usual the randomised tests run: `TIMES`, for the long runs.
#[cfg(test)]
fn times() -> u32 {
    std::env::var("TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}
