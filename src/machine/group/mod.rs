//! The coordinator of one partition of `__consumer_offsets`: every classic group whose name falls
//! there, and the offsets its members commit. Pure: it takes events with the time, and says what
//! to write and what to answer.
//!
//! # Contract with the shell
//!
//! **Loading.** [`GroupMachine::new`], then [`GroupMachine::replay`] for every record of the
//! partition in log order (`codec::decode` gives them; skip its `None`s and control batches), then
//! [`GroupMachine::handle_loaded`] once. Until then answer COORDINATOR_LOAD_IN_PROGRESS. Replay
//! takes any suffix that compaction can leave.
//!
//! **Events.** One at a time: `handle_*(at, event, &mut effects)`. Perform all effects of an event,
//! in order, before the next event.
//!
//! **[`Effect::Append`].** Write the records as one batch (acks=all, under the leader epoch the
//! machine was loaded in), then at once
//! - written: [`GroupMachine::handle_appended`] with the same `Append`, which applies each record
//!   in order;
//! - refused before anything was written (too large, not enough replicas):
//!   [`GroupMachine::handle_append_refused`] with the append's code as the produce path gives it;
//!   the machine turns it into what group clients expect, fails the tickets and puts the group
//!   right.
//!
//! Both push further effects to the same list; perform those too. An append that was written but
//! does not commit in time is not refused: fail the tickets that wait for it, keep the machine.
//!
//! **[`Effect::Reply`].** Hold each reply, with the log end as it is when the effect is reached,
//! until the high watermark has come there; also those of read-only events, so that nobody sees
//! state that may be lost. [`Response::waits_for_commit`] tells the one exception. Every ticket is
//! answered exactly once, some much later than their event (a join waits for the others); a client
//! that disconnects is no event: its ticket is answered into the void.
//!
//! **Timers.** After all effects, [`GroupMachine::poll_timeout`] says when to call
//! [`GroupMachine::handle_timeout`] at the latest. Call [`GroupMachine::handle_expire_offsets`]
//! every `offsets.retention.check.interval.ms`, and [`GroupMachine::handle_topics_deleted`] when
//! topics are gone from the metadata; if its append is refused, call it again later.
//!
//! **End.** When leadership or the disk is lost: drop the machine and fail its tickets with
//! NOT_COORDINATOR. A group that is deleted while a member still calls is unknown, never "dead"
//! here, because deletion is one event.
//!
//! # Inside
//!
//! `saved` is the hard state, exactly what replay of the log gives; its one door is
//! [`saved::Saved::apply`]. `groups` holds what needs no log: who waits for whom. A group that
//! only keeps offsets has no entry there.

mod codec;
mod event;
mod record;
mod response;
