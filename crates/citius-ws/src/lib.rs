//! WebSocket, server side (RFC 6455, RFC 7692): bytes in, messages out; messages in, bytes out.
//!
//! A request that asks for a WebSocket is read by [`Opening::read`]; what the server agrees to,
//! [`Opening::accept`] puts into the fields of the response. From then on a [`Connection`] is the
//! protocol as a value: it opens no socket, reads no clock and starts nothing. It does not matter whether
//! the bytes travel over HTTP/1.1 after a 101 or over a stream of HTTP/2 (RFC 8441).
//!
//! Invariants, each with its tests:
//! - How the bytes were cut never shows: frames(whole) == frames(any cut).
//! - A frame or message that breaks a rule ends the connection with the RFC's close code, and no further
//!   byte is parsed.
//! - A text message that leaves here is UTF-8; one that is not is refused with the byte that shows it.
//! - A connection at rest owns no buffer and no compression state: what messages are unmasked, inflated and
//!   deflated with belongs to the [`Tools`] that all connections of a thread share, because neither side
//!   keeps a compression context between messages.
//! - Nothing grows without a limit of [`Limits`](citius_http::Limits), compressed or not.
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
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        reason = "test data is made of the low bytes of counters"
    )
)]

extern crate alloc;

mod close;
mod connection;
mod deflate;
mod fault;
mod frame;
mod handshake;
mod mask;
mod text;
mod tools;

pub use close::{Close, Code};
pub use connection::{Connection, Context, Event};
pub use fault::Fault;
pub use frame::Kind;
pub use handshake::{Agreed, Opening, Refusal, Transport};
pub use tools::Tools;
