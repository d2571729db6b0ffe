//! How many bytes all connections together may hold of requests that are being read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    /// Somebody holds more than was left. There is one at a time, and it can always finish: half
    /// frames that hold all there is never wait for each other for ever.
    beyond: AtomicBool,
    returned: Notify,
}

/// A connection's part of the budget; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Budget,
    bytes: usize,
    /// It is the one that went beyond what was left.
    is_beyond: bool,
}

impl Budget {
    /// A budget of `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        let (taken, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (beyond, returned) = (AtomicBool::new(false), Notify::new());
        Self(Arc::new(Inner { most, taken, waiting, beyond, returned }))
    }

    /// Nothing taken yet.
    pub(crate) fn charge(&self) -> Charge {
        Charge { budget: self.clone(), bytes: 0, is_beyond: false }
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
            (taken + bytes <= self.0.most).then_some(taken + bytes)
        });
        took.is_ok()
    }
}

impl Charge {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn try_take(&mut self, bytes: usize) -> bool {
        if self.budget.try_take(bytes) {
            return true;
        }
        self.is_beyond |= !self.budget.0.beyond.swap(true, Ordering::AcqRel);
        if self.is_beyond {
            self.budget.0.taken.fetch_add(bytes, Ordering::AcqRel);
        }
        self.is_beyond
    }

    /// Holds `bytes` from now on, once they are to be had.
    pub(crate) async fn set(&mut self, bytes: usize) {
        if bytes <= self.bytes {
            self.shrink(bytes);
            return;
        }
        let more = bytes - self.bytes;
        if !self.try_take(more) {
            let shared = self.budget.0.clone();
            let _waiting = Waiting::begin(&shared.waiting);
            loop {
                let returned = shared.returned.notified();
                if self.try_take(more) {
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
            let shared = &self.budget.0;
            shared.taken.fetch_sub(back, Ordering::AcqRel);
            if std::mem::take(&mut self.is_beyond) {
                shared.beyond.store(false, Ordering::Release);
            }
            shared.returned.notify_waiters();
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

    /// Asks once for `bytes`; says whether they are held.
    fn ask(charge: &mut Charge, bytes: usize) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        std::pin::pin!(charge.set(bytes)).poll(&mut context).is_ready()
    }

    #[test]
    fn who_asks_for_more_than_is_left_waits_until_it_comes_back() {
        let budget = Budget::new(100);
        let (mut one, mut beyond, mut other) = (budget.charge(), budget.charge(), budget.charge());
        assert!(ask(&mut one, 80));
        assert!(budget.is_tight());
        assert!(ask(&mut beyond, 30), "one may go beyond");
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut waiting = std::pin::pin!(other.set(30));
            assert!(!budget.is_wanted());
            assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
            assert!(budget.is_wanted());
            drop(one);
            assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(()));
            assert!(!budget.is_wanted());
        }
        drop((beyond, other));
        assert_eq!(budget.taken(), 0);
        assert!(ask(&mut budget.charge(), 500));
    }

    /// Half frames that held everything waited for each other, and all were closed in the end.
    #[test]
    fn half_frames_that_hold_everything_finish_one_after_the_other() {
        let budget = Budget::new(100);
        let mut halves: Vec<_> = (0..4).map(|_| budget.charge()).collect();
        assert!(halves.iter_mut().all(|half| ask(half, 25)));
        while !halves.is_empty() {
            let finishing = halves.iter_mut().position(|half| ask(half, 50)).expect("one goes on");
            drop(halves.remove(finishing));
        }
        assert_eq!(budget.taken(), 0);
    }
}
