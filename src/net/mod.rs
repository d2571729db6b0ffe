//! Sockets: accepting connections, and one task for each.

mod connection;
mod listener;

pub(crate) use listener::{BoundListener, bind};
