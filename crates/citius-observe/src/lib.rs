//! What a server tells about itself: counters, access lines, request ids and trace context.
//!
//! One [`Observer`] per reactor sees each request when its head is complete and again when its response
//! is. It sits below all gateways, so that native, ASGI and WSGI applications are told about alike, and
//! so are requests that never reach one. A reactor without an observer pays one branch a request.
//!
//! - [`slot`]: counters in memory that the supervisor shares with its workers; one writer, no locks.
//! - [`clients`]: what clients of databases count, in the same memory, and their spans.
//! - [`buckets`]: token buckets in such memory, for limits that hold over all workers.
//! - [`format`] and [`line`]: what an access line says. Nothing a client sends can end a line early.
//! - [`rpc`]: codes of remote procedure calls over HTTP.
//! - [`writer`]: the way of the lines to their file, in a thread of its own, bounded.
//! - [`trace`]: W3C trace context, read strictly.
//!
//! No sockets, no Python; time comes in as a value. What differs between systems is in `linux.rs` and `portable.rs`.
#![forbid(unsafe_code)]

pub mod buckets;
pub mod clients;
pub mod format;
pub mod line;
#[cfg(target_os = "linux")]
mod linux;
pub mod observer;
#[cfg(not(target_os = "linux"))]
mod portable;
pub mod rng;
pub mod rpc;
mod sink;
pub mod slot;
pub mod span;
mod system;
pub mod trace;
pub mod writer;

pub use clients::{ClientCells, ClientCounter, ClientGauge, ClientSpan};
pub use format::Format;
pub use observer::{Client, Ending, Note, Observer, Options};
pub use rng::Rng;
pub use sink::Sink;
pub use slot::{Counter, Gauge, MetricsSlot};
pub use span::{Span, Spans};
pub use writer::Lines;
