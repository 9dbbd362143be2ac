//! The runtime of compiled handlers and of `citius.go`: channels, goroutines, waits, outgoing calls, and the functions by which native
//! code uses them.
//!
//! `python/citius/include/citius.h` is the other side of the functions. Nothing here knows what interpreter there is: the few things
//! that need one are asked of an [`Interpreter`]. Reading order: `green` (a goroutine), [`wait`] (how it waits), [`local`] (how a
//! turn runs the goroutines of a reactor), [`chan`] and `sync` (functions of the header), [`net`] (outgoing calls). Tests: the files
//! themselves, without an interpreter; `tests/goroutines/` and `tests/go/` with one.
#![allow(
    unsafe_code,
    reason = "the functions of a C interface, and what goroutines keep on their stacks; each place says why it is safe"
)]

pub mod api;
pub mod chan;
mod channel;
mod clock;
pub mod codes;
pub mod context;
mod context_functions;
pub mod current_call;
pub mod gil;
mod go_functions;
pub mod green;
mod group;
mod interpreter;
mod kept_error;
pub mod local;
mod lock;
mod mistake;
pub mod names;
pub mod net;
mod objects;
mod outgoing;
mod packed;
pub mod pool;
mod sync;
#[cfg(test)]
mod tests;
pub mod thread;
mod thread_state;
pub mod wait;

pub use channel::{
    Case, Channel, Element, ForeignWaker, Format, Object, Outcome, RawChannel, Resident, Ticket,
    TypedChannel, Value, Waker,
};
pub use group::{Group, Negative};
pub use interpreter::{Interpreter, Place, install};
pub use mistake::Mistake;
pub use objects::Objects;
pub use outgoing::{Outgoing, WatchedSockets};
pub use packed::Packed;
