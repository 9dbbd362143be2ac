//! HTTP/2, client side (RFC 9113): bytes of a server in, events out; requests in, bytes out.
//!
//! A [`Connection`] is a value, as the server's half is. The caller appends what has come to what it keeps, and offers all of it to
//! [`Connection::receive`], which takes whole frames. Content comes as it arrives, and is kept nowhere: how much a server may send
//! of it is bounded by windows, which are opened again when the caller says that it has [consumed](Connection::consumed) some.
//!
//! Invariants, with tests beside this file:
//! - A response with more than one reading ends its stream, and what is no HTTP/2 the connection.
//! - Every field section is decoded, also one of a stream that is over: the next depends on it.
//! - What a server may make this half say or keep without getting on is bounded ([`limits`]).

mod connection;
mod fault;
mod head;
pub mod limits;
mod send;

pub use connection::{Connection, Event};
pub use fault::Fault;
pub use head::Pairs;
pub use limits::Limits;
pub use send::{Misuse, Request, ping};

#[cfg(test)]
mod tests;
