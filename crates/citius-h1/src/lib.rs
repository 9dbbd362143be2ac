//! HTTP/1.1 and HTTP/1.0, server side (RFC 9110, RFC 9112): bytes in, events out; actions in, bytes out.
//!
//! A [`Connection`] is a value: it opens no socket, reads no clock and starts nothing. The reactor
//! offers it input with [`Connection::receive`], the application's wishes with [`Connection::send`],
//! and the passing of time with [`Connection::expire`]; what is to be written appears in an
//! [`Output`](citius_http::Output).
#![no_std]
#![forbid(unsafe_code)]
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

extern crate alloc;

mod connection;

pub use connection::{Closing, Connection, Context};
