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
/// Different lines within [`WINDOW`] that are told apart; beyond them none is written.
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
        if *event.metadata().level() > Level::WARN {
            return true;
        }
        let mut line = Line::default();
        event.metadata().callsite().hash(&mut line.0);
        event.record(&mut line);
        let (written, left_out) = self.lock().admit(line.0.finish(), clock::now());
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
    /// Whether a line is written, and how many were not in a window that is over.
    fn admit(&mut self, line: u64, now: Instant) -> (bool, u64) {
        let mut left_out = 0;
        if now.saturating_since(self.began) >= WINDOW {
            left_out = std::mem::take(&mut self.left_out);
            self.seen.clear();
            self.began = now;
        }
        let is_known = self.seen.contains_key(&line);
        let written = if is_known || self.seen.len() < DIFFERENT_MAX {
            let count = self.seen.entry(line).or_default();
            *count += 1;
            *count <= EQUAL_MAX
        } else {
            false
        };
        self.left_out += u64::from(!written);
        (written, left_out)
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
        let written = (0..10).filter(|_| window.admit(1, at(11)).0).count();
        assert_eq!(written, 3);
        assert_eq!(window.admit(2, at(12)), (true, 0));
        assert_eq!(window.admit(1, at(21)), (true, 7));
        assert_eq!(window.admit(1, at(22)), (true, 0));
    }

    #[test]
    fn however_many_different_lines_come_a_bound_holds() {
        let mut window = Window::default();
        let now = Instant::ZERO + WINDOW;
        let written = (0..10_000).filter(|line| window.admit(*line, now).0).count();
        assert_eq!((written, window.seen.len()), (DIFFERENT_MAX, DIFFERENT_MAX));
    }
}
