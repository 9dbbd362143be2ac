//! The nouns every layer of Citius shares.
//!
//! A protocol crate turns bytes into [`Event`]s and [`Action`]s into bytes; a gateway turns events
//! into application calls and responses into actions. Because both sides speak these words, gateways
//! and protocols add up (n + m) instead of multiplying (n × m).
//!
//! No sockets, no clock, no environment: time comes in as a [`Millis`] value. Every limit lives in
//! [`limits`], every rule a peer or an application can break in [`fault`].
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]

extern crate alloc;

pub mod call;
pub mod coding;
pub mod content;
pub mod date;
pub mod event;
pub mod fault;
pub mod fields;
pub mod file;
pub mod head;
pub mod limits;
pub mod multiplexed;
pub mod origin;
pub mod output;
pub mod parameters;
pub mod status;
pub mod tls;

pub use call::{Form, ProcedureCall};
pub use content::Declared;
pub use event::{Action, Closing, Event, Metadata, Payload, PlainResponse, ResponseHead, TEXT};
pub use fault::{Blame, Fault};
pub use fields::Fields;
pub use file::FileRange;
pub use head::{BodyLength, Head, HeadPool, Method, RefusedHead, Version};
pub use limits::Limits;
pub use origin::Origin;
pub use output::Output;
pub use status::Status;
pub use tls::Tls;

/// Whether requests take the fast paths: shortcuts for common requests and responses, and reuse of what an earlier
/// request has left (head cache, last-header-block cache, response templates; in the binding: scopes, environs, spare
/// tasks, response header caches).
///
/// False in builds with the feature `slow-paths`. Both builds give the same responses to the same requests:
/// `make test-slow-paths`. A constant, so that it costs no instruction either way.
pub const FAST_PATHS: bool = !cfg!(feature = "slow-paths");

/// Milliseconds on the reactor's monotonic clock; only differences mean anything.
pub type Millis = u64;

/// Milliseconds after the begin of a drain in which one more request is taken of a connection between two requests, or
/// behind a response that does not say `connection: close`: its client may have sent it already.
pub const DRAIN_IDLE_MS: Millis = 250;
