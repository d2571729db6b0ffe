//! What is counted. Hot paths add to plain atomics; a scrape reads them (`http/page`).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// API keys that are counted one by one; larger ones are not offered.
pub(crate) const KEYS: usize = 96;

static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
static REQUESTS: [AtomicU64; KEYS] = [const { AtomicU64::new(0) }; KEYS];
static REFUSED: AtomicU64 = AtomicU64::new(0);

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

/// A request of the API `key` has begun.
pub(crate) fn request_begun(key: i16) {
    if let Some(counter) = usize::try_from(key).ok().and_then(|key| REQUESTS.get(key)) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// How many requests of the API `key` have begun.
pub(crate) fn requests(key: i16) -> u64 {
    let counter = usize::try_from(key).ok().and_then(|key| REQUESTS.get(key));
    counter.map_or(0, |counter| counter.load(Ordering::Relaxed))
}

/// A connection was closed for what its client sent.
pub(crate) fn connection_refused() {
    REFUSED.fetch_add(1, Ordering::Relaxed);
}

/// How many connections were closed for what their clients sent.
pub(crate) fn connections_refused() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}
