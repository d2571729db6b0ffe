//! State machines: they decide, the shell performs. No I/O, no clock, no lock, no async.

pub(crate) mod controller;
pub(crate) mod fetch_session;
pub(crate) mod group;
pub(crate) mod replica;
