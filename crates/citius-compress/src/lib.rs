//! Responses compressed on their way from an application to the protocol.
//!
//! One place for all interfaces: an [`Action`](citius_http::Action) goes in, and the same or a smaller one
//! comes out. [`policy`] says which responses are worth it and how their fields change, [`encoder`] does the
//! work, [`streams`] remembers per request what its client accepts and how far its response is.
//!
//! No I/O, no clock. Compressing takes time on the reactor's thread: whole responses above
//! `compress_bytes_max` pass as they are, and of streamed ones at most `compress_streams_max` at once, for each
//! holds a window of memory. What leaks through the length of a compressed response (BREACH) is the
//! application's to weigh: docs/guides/responses.md#compression.
#![forbid(unsafe_code)]

mod brotli_stream;
mod encoder;
mod policy;
mod streams;

pub use encoder::Levels;
pub use policy::Policy;
pub use streams::{Compressor, Sink, Streams};
