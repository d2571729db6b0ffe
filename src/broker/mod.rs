//! The shell: it joins what decides (`machine`) with what does (`log`, `store`), and is the only
//! place that knows both. It owns tasks, locks and waiting.

pub(crate) mod controller;
pub(crate) mod coordinator;
pub(crate) mod groups;
mod housekeeping;
mod metadata;
pub(crate) mod partition;
mod partitions;
mod removal;
pub(crate) mod settings;
mod start;
mod topics;
pub(crate) mod waiters;

pub(crate) use housekeeping::Housekeeping;
pub(crate) use metadata::Metadata;
pub(crate) use partitions::Partitions;
pub(crate) use start::start;

use crate::config::{Config, Listener};
use crate::machine::controller::Picture;
use crate::machine::fetch_session::FetchSessions;
use crate::types::{BrokerId, TopicId};
use controller::Controller;
use groups::Groups;
use removal::Removal;
use settings::Settings;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

/// Everything that handlers ask.
#[derive(Debug)]
pub(crate) struct Broker {
    /// What cannot change while the broker runs.
    pub(crate) config: Arc<Config>,
    pub(crate) settings: Settings,
    pub(crate) node: BrokerId,
    pub(crate) cluster_id: String,
    pub(crate) metadata: Arc<Metadata>,
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) controller: Controller,
    pub(crate) groups: Groups,
    removal: Arc<Removal>,
    /// Guards the sessions; held for one look-up or one answer's news.
    pub(crate) fetch_sessions: Mutex<FetchSessions>,
    /// Where clients reach this broker, by listener name; known once the sockets are bound.
    endpoints: OnceLock<HashMap<String, Listener>>,
    ids: FreshIds,
    changes: Changes,
    /// Topics that are being made because a client named them.
    automatic: Mutex<BTreeSet<String>>,
}

impl Broker {
    /// The cluster's metadata now.
    pub(crate) fn picture(&self) -> Arc<Picture> {
        self.metadata.picture()
    }

    /// Where clients of a listener reach this broker.
    pub(crate) fn endpoint(&self, listener: &str) -> Option<&Listener> {
        self.endpoints.get()?.get(listener)
    }

    /// Says where clients reach this broker; the first call counts.
    pub(crate) fn set_endpoints(&self, endpoints: HashMap<String, Listener>) {
        let _ = self.endpoints.set(endpoints);
    }

    /// How many fetch sessions there are.
    pub(crate) fn fetch_session_count(&self) -> usize {
        self.fetch_sessions.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// An id that is new with overwhelming likelihood.
    pub(crate) fn fresh_id(&self) -> TopicId {
        self.ids.next()
    }
}

/// Changes under way that must not be left half made. Each holds the lock for reading; who stops
/// the broker takes it for writing, and so waits for them and lets no other begin.
#[derive(Debug, Default)]
struct Changes(Arc<RwLock<()>>);

impl Broker {
    /// Does all of `work` even when nobody waits for it any more, as when its client goes away.
    /// `None` when the broker stops first.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let under_way = self.changes.0.clone().try_read_owned().ok()?;
        let whole = async move {
            let done = work.await;
            drop(under_way);
            done
        };
        tokio::spawn(whole).await.ok()
    }

    /// Waits for every change under way; while what it gives is held no other begins.
    pub(crate) async fn finish_changes(&self) -> OwnedRwLockWriteGuard<()> {
        self.changes.0.clone().write_owned().await
    }
}

/// Makes ids from the operating system's randomness, which the hash state was seeded with.
#[derive(Debug, Default)]
struct FreshIds {
    state: [RandomState; 2],
    count: AtomicU64,
}

impl FreshIds {
    fn next(&self) -> TopicId {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let wall = crate::clock::wall().0;
        let [high, low] = &self.state;
        let (high, low) = (high.hash_one((count, wall)), low.hash_one((wall, count)));
        uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
            .into_uuid()
    }
}
