//! One thread, one epoll set, many connections.
//!
//! Read [`turn`](Reactor::turn) first: poll → read → parse → dispatch → serialise → write is the
//! life of every request. The reactor knows protocols and sockets; it knows neither Python nor
//! routes. What an application is stands behind the [`Service`] trait.
//!
//! Invariants: only this crate touches sockets, and only [`conn`] reads or writes one; responses that
//! come late or from other threads take one way, the [`Mailbox`]; the epoll descriptor itself is
//! pollable, so that a host loop can wait for it beside its own descriptors.
#![forbid(unsafe_code)]

mod accepting;
mod broadcast;
mod clock;
mod conn;
mod deadlines;
mod dispatch;
mod draining;
mod file;
mod id;
mod input;
mod leaving;
mod listener;
mod mailbox;
mod memories;
mod memory;
mod messages;
mod output;
mod reactor;
mod refusal;
mod secure;
mod service;
mod shortage;
mod slow;
mod socket;
mod spool;
mod timers;
mod tools;
mod turn;
mod upstream;
mod watch;
mod wire;

pub use broadcast::{Broadcast, Slow};
pub use citius_compress::{Levels as CompressionLevels, Policy as CompressionPolicy};
pub use citius_forwarded::{Names as ForwardedNames, Network, Proxies};
pub use citius_observe::{Client, Observer};
pub use citius_ws as ws;
pub use clock::{coarse_ms, exact_ns, exact_us, wall_us};
pub use file::{File, Files, open_flags};
pub use id::{ConnectionId, Peer, StreamId};
pub use listener::ListenerProtocol;
pub use mailbox::{Mailbox, ResponseAction, StreamCommand};
pub use reactor::{Options, Reactor};
pub use rustix::io::Errno;
pub use rustix::time::Timespec;
pub use service::{Notice, Reply, Service, TlsNotice};
pub use spool::{Pending, Spool, Spooler, close};
pub use upstream::UpstreamId;
pub use wire::Protocols;
