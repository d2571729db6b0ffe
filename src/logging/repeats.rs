//! Lets a fault that repeats be said a few times and counts the rest, so that a client or a disk
//! that fails a thousand times a second does not fill the log.

use crate::clock;
use crate::types::Instant;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Equal lines within [`WINDOW`] that are written.
const EQUAL_MAX: u32 = 3;
/// Different lines that are remembered; beyond them the count begins anew, so that none is left out
/// for being one too many.
const DIFFERENT_MAX: usize = 2_000;
const WINDOW: Duration = Duration::from_secs(10);

/// Leaves out warnings and errors that were written a few times within the last seconds.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// Guards the counts; held for one look-up.
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    began: Instant,
    /// How often each line came, by its place in the code and its fields.
    seen: HashMap<u64, u32>,
    left_out: u64,
}

impl<S: Subscriber> Layer<S> for Repeats {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let mut line = Line::default();
        let is_fault = *event.metadata().level() <= Level::WARN;
        if is_fault {
            event.metadata().callsite().hash(&mut line.0);
            event.record(&mut line);
        }
        let (written, left_out) = {
            let mut window = self.lock();
            let left_out = window.end(clock::now());
            (!is_fault || window.admit(line.0.finish()), left_out)
        };
        if left_out > 0 {
            tracing::warn!(left_out, "faults repeated and were not logged");
        }
        written
    }
}

impl Repeats {
    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    /// Ends the window when it is over, and says how many lines were not written in it.
    fn end(&mut self, now: Instant) -> u64 {
        if now.saturating_since(self.began) < WINDOW {
            return 0;
        }
        (self.began, self.seen) = (now, HashMap::new());
        std::mem::take(&mut self.left_out)
    }

    /// Whether a line is written.
    fn admit(&mut self, line: u64) -> bool {
        if self.seen.len() >= DIFFERENT_MAX {
            self.seen.clear();
        }
        let count = self.seen.entry(line).or_default();
        *count += 1;
        let written = *count <= EQUAL_MAX;
        self.left_out += u64::from(!written);
        written
    }
}

/// The hash of a line's fields.
#[derive(Default)]
struct Line(DefaultHasher);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        field.name().hash(&mut self.0);
        format!("{value:?}").hash(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_are_written_a_few_times_a_window_and_then_counted() {
        let mut window = Window::default();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert_eq!(window.end(at(11)), 0);
        assert_eq!((0..10).filter(|_| window.admit(1)).count(), 3);
        assert!(window.admit(2));
        assert_eq!(window.end(at(20)), 0);
        assert_eq!(window.end(at(21)), 7);
        assert!(window.admit(1));
    }

    #[test]
    fn every_line_that_is_said_once_is_written_and_little_is_remembered() {
        let mut window = Window::default();
        assert!((0..10_000).all(|line| window.admit(line)));
        assert!(window.seen.len() <= DIFFERENT_MAX);
    }
}
