//! What decides: state machines that do no I/O. They take the time and an event, and return
//! effects; they own no socket, file, clock, lock, task or randomness, and keep no frame alive.

pub(crate) mod group;
