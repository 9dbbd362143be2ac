//! HTTP/1.1 and HTTP/1.0, client side: bytes of a server in, events out; requests in, bytes out.
//!
//! A [`Connection`] is a value, as the server's half is. For each request it is told what was [asked](Asked); bytes go to
//! [`Connection::receive`]. Bodies come as they arrive and are kept nowhere, so a caller that wants to wait does not call
//! `receive`. Requests are not pipelined.
//!
//! Invariants, with vectors under `vectors/h1-client/`:
//! - A response with more than one reading is refused, never interpreted: what is behind it would be taken for the response to
//!   another request (`framing`, `fields`, `chunked`).
//! - After a fault, and after a response that ends the connection, no further byte is read (`connection`).
//! - parse(whole) == parse(any cut).
//! - Nothing grows without a limit of [`Limits`] (`limits`).

mod connection;
mod encode;
mod fault;
mod head;
pub mod limits;

pub use connection::{Asked, Connection, Event};
pub use encode::{
    Content, Misuse, Request, check_field, check_trailer, encode_chunk, encode_last_chunk, is_owned,
};
pub use fault::Fault;
pub use head::ResponseHead;
pub use limits::Limits;
