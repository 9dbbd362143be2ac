//! PostgreSQL's protocol 3, client side: bytes in, rows out; statements in, bytes out.
//!
//! A [`Connection`] is a value: it opens no socket, reads no clock and starts nothing. Statements are prepared once and
//! executed by name; each request ends with a Sync of its own, so that several can be under way and the error of one
//! is no error of the next. Parameters travel beside the text of a statement, never in it.
//!
//! A [`Session`] stands on a connection: it has the calls of one, which statements are prepared for them, and what errors
//! mean for them. What a call's arguments and rows are in its caller's language, the trait [`Call`] has.
//!
//! Messages that come once per connection or statement are read by the crate `postgres-protocol`, as is SCRAM; those that
//! come once per row or execution are read here, from the bytes as they came.
//!
//! Invariants:
//! - parse(whole) == parse(any cut): how the bytes were split up never shows.
//! - A length that a server announces allocates nothing.
//! - After a fault nothing more is read: what the server meant is unknown from there on.
//! - A row belongs to the request that has waited longest; a message that no request waits for is a fault.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod array_text;
mod authentication;
mod bind;
mod calendar;
mod change;
mod connection;
mod description;
mod fault;
mod footprint;
mod guard;
mod json;
mod left;
mod names;
mod numeric;
mod range_text;
mod row;
mod session;
mod type_table;
mod types;
mod value;

#[cfg(test)]
mod tests;

pub use array_text::{Piece, TextArray};
pub use authentication::{ChannelBinding, Login};
pub use bind::{PARAMETERS_MAX, Parameters};
pub use calendar::{Civil, civil_of_days};
pub use change::{
    Change, RESET, RESET_NAMES, change_of, changes_of, first_word, is_copy, is_from_client,
    is_temporary,
};
pub use connection::{Connection, Event, MESSAGE_BYTES_MAX, TransactionStatus, cancel_request};
pub use description::{Column, Description};
pub use fault::{Fault, ServerError};
pub use footprint::{NAMED_TEXT_BYTES_MAX, SERVER_BYTES_MAX, STATEMENTS_MAX, footprint};
pub use guard::Guard;
pub use json::JsonRows;
pub use left::Left;
pub use names::Names;
pub use row::{Row, Values};
pub use session::{
    Call, Ended, Heard, Host, Lost, Misfit, Over, PoolState, Portal, Scope, Session, Standing,
    Statement, StatementId, Trouble, Unfit, Unsent, Work,
};
pub use type_table::TypeTable;
pub use types::{Definition, NESTING_MAX, Types};
pub use value::{Array, Composite, Interval, Kind, Multirange, Range, Value};
