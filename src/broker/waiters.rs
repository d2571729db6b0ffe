//! Who waits for a partition to be committed up to an offset.

use crate::types::Offset;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Something that several partitions may wake.
pub(crate) type Signal = Arc<Notify>;

/// The waiters of one partition.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// Lets an append that nobody waits for pass without the lock.
    count: AtomicUsize,
    /// Guards the list; held for adding, removing, or taking out who is woken.
    list: Mutex<Vec<Waiter>>,
}

#[derive(Debug)]
struct Waiter {
    /// Woken once everything before it is committed.
    offset: Offset,
    signal: Signal,
}

impl Waiters {
    /// Wakes `signal` once everything before `offset` is committed. Whoever registers looks at
    /// the high watermark once more afterwards: it may have moved meanwhile.
    pub(crate) fn register(&self, offset: Offset, signal: &Signal) {
        let mut list = self.lock();
        list.push(Waiter { offset, signal: signal.clone() });
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Takes the signal's waiters out when it is dropped, also with the future that holds it.
    pub(crate) fn guard<'a>(&'a self, signal: &'a Signal) -> Registered<'a> {
        Registered { waiters: self, signal }
    }

    /// Takes a signal's waiters out, woken or not.
    fn remove(&self, signal: &Signal) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut list = self.lock();
        list.retain(|waiter| !Arc::ptr_eq(&waiter.signal, signal));
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Wakes all who wait for nothing beyond `committed`. Signals are given outside the lock.
    pub(crate) fn wake_to(&self, committed: Offset) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut list = self.lock();
        let woken: Vec<_> = list.extract_if(.., |waiter| waiter.offset <= committed).collect();
        self.count.store(list.len(), Ordering::SeqCst);
        drop(list);
        woken.iter().for_each(|waiter| waiter.signal.notify_one());
    }

    /// Wakes everyone, for there is nothing more to wait for here.
    pub(crate) fn wake_all(&self) {
        self.wake_to(Offset(i64::MAX));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waiter>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Waiters::guard`].
#[derive(Debug)]
pub(crate) struct Registered<'a> {
    waiters: &'a Waiters,
    signal: &'a Signal,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.waiters.remove(self.signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_are_woken_whose_offset_is_committed() {
        let waiters = Waiters::default();
        let (early, late) = (Signal::default(), Signal::default());
        waiters.register(Offset(5), &early);
        waiters.register(Offset(9), &late);
        waiters.wake_to(Offset(4));
        assert_eq!(waiters.count.load(Ordering::SeqCst), 2);
        waiters.wake_to(Offset(8));
        early.notified().await;
        assert_eq!(waiters.count.load(Ordering::SeqCst), 1);
        waiters.remove(&late);
        assert_eq!(waiters.count.load(Ordering::SeqCst), 0);
    }
}
