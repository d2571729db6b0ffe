//! What is counted, under the names that Kafka's JMX exporter gives.

use std::sync::atomic::{AtomicUsize, Ordering};

static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

/// Counts a connection as open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(());

/// A connection is open from now on.
pub(crate) fn connection_opened() -> OpenConnection {
    CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    OpenConnection(())
}

/// How many connections are open.
pub(crate) fn connections_open() -> usize {
    CONNECTIONS.load(Ordering::Relaxed)
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
    }
}
