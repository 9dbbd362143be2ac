//! Go's channels without goroutines: operations in, outcomes and wake-ups out; a call with its one result ([`Progress`]), and
//! content that is read while it comes ([`Incoming`]).
//!
//! Nothing here blocks, starts anything, or reads a clock. An operation that cannot be done at once leaves
//! a [`Ticket`] in the queues of its channels; the operation that completes it writes the [`Outcome`] into the
//! ticket and calls its [`Wake`]. The caller decides how to wait (a thread parks, a green thread switches, a
//! coroutine suspends), so that one kind of channel serves all of them.
//!
//! What holds (Go's specification, "Channel types", "Send statements", "Select statements"; checked
//! against a model by `tests/model.rs`, on threads by `tests/threads.rs`):
//!
//! - Values of one channel are received in the order sent. Waiters are served in the order they came.
//! - A ticket has at most one outcome and is woken at most once: parties *claim* it first.
//! - A receiver waits only while the channel is empty and open, a sender only while it is full and open.
//! - No lock is held while a [`Wake`] runs or a value is dropped: both may run foreign code.
//! - A channel that one thread uses often in a row is *confined* to that thread, whose [`Resident`]s then use it without an atomic
//!   operation; another thread's first use ends that. Both ways do the same operations on the same state: `tests/model.rs` plays
//!   them against one model.
//!
//! The unsafe code is in `lock.rs` (with the system's barrier), and the promise of its callers in [`Resident::new`].

#[cfg_attr(target_os = "linux", path = "linux/barrier.rs")]
#[cfg_attr(not(target_os = "linux"), path = "portable/barrier.rs")]
mod barrier;
mod channel;
mod effects;
mod incoming;
mod lock;
mod progress;
mod resident;
mod select;
mod sync;
mod ticket;

pub use channel::{AlreadyClosed, Attempt, Channel};
pub use incoming::{Found, Incoming, Piece, Taken, Trailers, WAITING_BYTES_MAX};
pub use progress::{Looked, Progress, Stage, Underway};
pub use resident::{Begun, Completion, Record, Resident};
pub use select::{Case, select, select_as};
pub use ticket::{Event, Outcome, StillShared, Ticket, Wake};
