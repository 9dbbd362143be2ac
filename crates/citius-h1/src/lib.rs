//! HTTP/1.1 and HTTP/1.0 (RFC 9110, RFC 9112): bytes in, events out; actions in, bytes out. This is the server side, and
//! [`client`] the other one; they share one grammar of lines, chunks and framing (`lines`, `chunked`, `framing`).
//!
//! A [`Connection`] is a value: it opens no socket, reads no clock and starts nothing. The reactor
//! offers it input with [`Connection::receive`], the application's wishes with [`Connection::send`],
//! and the passing of time with [`Connection::expire`]; what is to be written appears in an
//! [`Output`](citius_http::Output).
//!
//! Invariants, each with its vectors under `vectors/h1/`:
//! - A head or a chunk with more than one reading is refused, never interpreted (`framing`, `chunked`).
//! - After a peer's fault no further byte of the connection is read (`pipelining`).
//! - Responses are written in the order of the requests, also if the application completes them in another order.
//! - parse(whole) == parse(any cut): how the bytes were split up never shows.
//! - No byte of an application can end a line of a response early, nor make its body longer or shorter
//!   than its head announced (`responses`).
//! - Nothing grows without a limit of [`Limits`](citius_http::Limits) (`limits`).
#![no_std]
#![forbid(unsafe_code)]
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

extern crate alloc;

mod chunked;
pub mod client;
mod connection;
mod encode;
mod exchange;
mod framing;
mod head;
mod host;
mod lines;
mod scan;

pub use citius_http::Closing;
pub use connection::{Connection, Context, Request};
pub use encode::Template;
