//! A session with a server: which calls are under way, what is prepared there, and what is sent when.
//!
//! In: [calls](Call), bytes of the server, and what the pool's other sessions have found out ([`PoolState`]). Out: bytes
//! ([`Session::output`]), calls that have ended with their results, and what else was [`Heard`]. A session opens no socket,
//! reads no clock and calls no listener; what a row becomes, its calls know.
//!
//! A call goes through these steps:
//!
//! ```text
//!  add ──> backlog ──────────────────────────────> requests ──> Ended
//!             │  ^ its statement is not prepared      │  ^         ^
//!             v  │                                    v  │         │ the result, or an error
//!          Prepare ──> Pending ──> Untyped ──> Ready  Execute ─────┘
//!                         │  types are looked up ^       │
//!                         └── nothing is unknown ┘       └──> Heard::repeated: nothing of it was executed, and the
//!                                                             error is one of what was prepared, or of a cancel request
//! ```
//!
//! Calls are sent in the order in which they were added; one whose statement is not prepared holds up those behind it, so
//! that a call sees what those before it did. Nothing is sent while a cancel request is under way (`is_held`), while a reset
//! is, or while the server reads or writes the data of a COPY.
//!
//! Rules: a call of the pool ([`Scope::Pool`]) is repeated if the server cannot have executed it; one of a session never is,
//! because its transaction has failed. An error of a plan has the statement forgotten, in the pool if it is of the schema.
//! Tests: `tests/session/`, without a server; campaigns: `citius_testkit::pg_session`; with a server: `tests/pg/`.

mod backlog;
mod call;
mod changes;
mod end;
mod events;
mod failures;
mod path;
mod pool;
mod portal;
mod prepared;
mod sending;
mod state;
mod statement;

pub use call::{Call, Host, Misfit, Scope, Standing, Trouble, Unfit, Work};
pub use end::{Lost, Unsent};
pub use pool::PoolState;
pub use portal::Portal;
pub use state::{Ended, Heard, Over, Session};
pub use statement::{Statement, StatementId};
