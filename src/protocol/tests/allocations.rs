//! Counts what a test's own thread allocates, so that "bounded" is measured, not believed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Runs `work` and says how many bytes more than before it held at most.
pub(super) fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get() - before)
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The system's allocator, with a count of each thread's bytes. What another thread frees is taken
/// from that thread's count, which is never let below zero.
struct Counting;

fn grew(bytes: usize) {
    HELD.set(HELD.get() + bytes);
    PEAK.set(PEAK.get().max(HELD.get()));
}

fn shrank(bytes: usize) {
    HELD.set(HELD.get().saturating_sub(bytes));
}

// SAFETY: each call is passed to `System` with the caller's own arguments, so what holds for it
// holds here; counting touches only thread-local numbers, which need no allocation and no drop.
#[allow(unsafe_code, reason = "a global allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: the caller's promise about `layout`, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: the caller's promise about `layout`, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        shrank(layout.size());
        // SAFETY: `at` came from `System` with this layout, as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks live while one is copied to the other.
        grew(size);
        shrank(layout.size());
        // SAFETY: `at` came from `System` with this layout, as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }
}
