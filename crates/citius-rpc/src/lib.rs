//! Remote procedure calls, server side: bytes in, calls out; responses in, bytes out.
//!
//! Two protocols, told apart by the first byte of a connection: [MessagePack-RPC] and [JSON-RPC 2.0]. A
//! [`Connection`] is a value with the verbs of HTTP/1's: it opens no socket, reads no clock and starts
//! nothing. A call comes out as a [`Call`](citius_http::Call) whose parameters are still bytes; its result
//! goes in as an [`Action::Respond`](citius_http::Action) and is written at once, before the results of earlier calls.
//!
//! [`Responses`] is the other side of MessagePack-RPC, for clients: bytes in, responses out; [`take_request`] divides what they say.
//!
//! Invariants:
//! - parse(whole) == parse(any cut): how the bytes were split up never shows.
//! - No byte is searched for the end of its message twice, however slowly it comes.
//! - A length that a peer announces allocates nothing.
//! - Nothing is recursive, and nothing grows without a limit of [`Limits`](citius_http::Limits).
//! - A client that receives `$/goodbye` knows that calls without a response before it were not executed.
//!
//! [MessagePack-RPC]: https://github.com/msgpack-rpc/msgpack-rpc/blob/master/spec.md
//! [JSON-RPC 2.0]: https://www.jsonrpc.org/specification
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

extern crate alloc;

mod calls;
mod connection;
mod failure;
mod json;
mod msgpack;
mod requests;
mod responses;

#[cfg(test)]
mod tests;

pub use connection::{Connection, Context};

/// What is spoken here, as TLS names protocols (RFC 7301). Peers need not ask for it, but must not insist on others: what a
/// browser can be led to send ends before it is read.
pub const PROTOCOL: &[u8] = b"citius-rpc";

pub use failure::Failure;
pub use msgpack::{encode_bytes, encode_text};
pub use requests::{Request, take_request};
pub use responses::{Incoming, Responses};
