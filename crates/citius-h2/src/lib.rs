//! HTTP/2 (RFC 9113, RFC 7541, RFC 9218, RFC 8441): bytes in, events out; actions in, bytes out.
//!
//! A [`Connection`] is a value with the verbs of HTTP/1's: it opens no socket, reads no clock and starts
//! nothing. Requests come out as the same [`Head`](citius_http::Head), responses go in as the same
//! [`Action`](citius_http::Action); what differs is that responses leave in the order in which they are ready.
//!
//! Invariants:
//! - A message with more than one reading is refused, never interpreted (`citius_http::multiplexed`).
//! - parse(whole) == parse(any cut): how the bytes were split up never shows.
//! - A request body is copied only if it arrives before the application reads it; a response body only if it is
//!   shorter than a few pages.
//! - What a peer may cost without getting on is counted in one place (`budget`).
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
pub mod client;
mod connection;
mod frame;
mod hpack;
mod receive;
mod response;
mod settings;
mod stream;
mod write;

#[cfg(test)]
mod tests;

pub use citius_http::Closing;
pub use connection::{Connection, Context, Options};
