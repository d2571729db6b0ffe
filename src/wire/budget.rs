//! How many bytes all connections together may hold of requests that are being read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Shared by all connections. Frames up to [`crate::limits::FRAME_EXEMPT_BYTES`] take nothing.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    taken: AtomicUsize,
    /// How many wait for more than is left.
    waiting: AtomicUsize,
    returned: Notify,
}

/// A connection's part of the budget; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    /// A budget of `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        let (taken, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self(Arc::new(Inner { most, taken, waiting, returned: Notify::new() }))
    }

    /// Nothing taken yet.
    pub(crate) fn charge(&self) -> Charge {
        Charge { budget: self.clone(), bytes: 0 }
    }

    /// Whether more than half is taken, so that buffers should not be kept for reuse.
    pub(crate) fn is_tight(&self) -> bool {
        self.0.taken.load(Ordering::Relaxed) > self.0.most / 2
    }

    /// Bytes that are held.
    pub(crate) fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Whether somebody waits for what others hold.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.waiting.load(Ordering::Acquire) > 0
    }

    fn try_take(&self, bytes: usize) -> bool {
        let took = self.0.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
            // A frame larger than the whole budget passes when nobody else holds anything.
            (taken == 0 || taken + bytes <= self.0.most).then_some(taken + bytes)
        });
        took.is_ok()
    }
}

impl Charge {
    /// Holds `bytes` from now on, once they are to be had.
    pub(crate) async fn set(&mut self, bytes: usize) {
        if bytes <= self.bytes {
            self.shrink(bytes);
            return;
        }
        if !self.budget.try_take(bytes - self.bytes) {
            let _waiting = Waiting::begin(&self.budget.0.waiting);
            loop {
                let returned = self.budget.0.returned.notified();
                if self.budget.try_take(bytes - self.bytes) {
                    break;
                }
                returned.await;
            }
        }
        self.bytes = bytes;
    }

    /// Gives all but `bytes` back.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let back = self.bytes.saturating_sub(bytes);
        if back > 0 {
            self.bytes -= back;
            self.budget.0.taken.fetch_sub(back, Ordering::AcqRel);
            self.budget.0.returned.notify_waiters();
        }
    }
}

/// One that waits, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn who_asks_for_more_than_is_left_waits_until_it_comes_back() {
        let budget = Budget::new(100);
        let (mut one, mut other) = (budget.charge(), budget.charge());
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(std::pin::pin!(one.set(80)).poll(&mut context), Poll::Ready(()));
        assert!(budget.is_tight());
        {
            let mut waiting = std::pin::pin!(other.set(30));
            assert!(!budget.is_wanted());
            assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
            assert!(budget.is_wanted());
            drop(one);
            assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(()));
            assert!(!budget.is_wanted());
        }
        drop(other);
        let mut large = budget.charge();
        assert_eq!(std::pin::pin!(large.set(500)).poll(&mut context), Poll::Ready(()));
    }
}
