//! HTTP/3, server side (RFC 9114, RFC 9204, RFC 9218, RFC 9220, RFC 9297), and the streams and datagrams of WebTransport.
//!
//! A [`Connection`] is a value between a QUIC connection and an application, with the methods of HTTP/2's: it opens no
//! socket, reads no clock and starts nothing. Bytes of streams go in, requests come out as the same
//! [`Head`](citius_http::Head); responses go in as the same [`Action`](citius_http::Action), and come out as bytes of
//! streams. It knows no implementation of QUIC.
//!
//! Invariants:
//! - A message with more than one reading is refused, never interpreted (`citius_http::multiplexed`).
//! - parse(whole) == parse(any cut): how the bytes of a stream were split up never shows.
//! - A request body is copied only if it arrives before the application reads it; a response body only if it is
//!   shorter than a few pages.
//! - What a client may cost without getting on is counted in one place (`budget`).
//! - Nothing grows without a limit of [`Limits`](citius_http::Limits).
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

mod budget;
mod capsule;
mod code;
mod connection;
mod critical;
mod direct;
mod frame;
mod last_sections;
mod receive;
mod response;
mod seam;
mod session;
mod settings;
mod stream;
mod varint;
mod write;

#[cfg(test)]
mod tests;

pub use citius_http::Closing;
pub use connection::Connection;
pub use receive::asks_session;
pub use seam::{Context, Control, Incoming, Options, Outgoing, SessionEvent, Taken, Token};
