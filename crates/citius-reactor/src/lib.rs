//! One thread, one poller, many connections.
//!
//! Read [`turn`](Reactor::turn) first: poll → read → parse → dispatch → serialise → write is the
//! life of every request. The reactor knows protocols and sockets; it knows neither Python nor
//! routes. What an application is stands behind the [`Service`] trait.
//!
//! Invariants: only this crate touches sockets, and only [`conn`] reads or writes a client's; responses that
//! come late or from other threads take one way, the [`Mailbox`]. What differs between systems is in `linux/` and
//! `portable/`, and nowhere else; [`poller`] says what is asked of either.
#![forbid(unsafe_code)]

mod accepting;
mod balancer;
mod broadcast;
mod carrier;
mod clock;
mod conn;
mod deadlines;
mod dispatch;
mod draining;
mod file;
mod file_status;
mod handing;
mod hosted;
mod id;
mod inbox;
mod input;
mod leaving;
#[cfg(target_os = "linux")]
mod linux;
mod listener;
mod mailbox;
mod memories;
mod memory;
mod messages;
mod offers;
mod outgoing;
mod output;
mod poller;
#[cfg(not(target_os = "linux"))]
mod portable;
mod protocol;
mod proxied;
mod quic;
mod quic_turn;
mod reactor;
mod readiness;
mod redirect;
mod refusal;
mod remote;
mod secure;
mod service;
mod session_command;
mod session_watch;
mod sessions;
mod shortage;
mod slow;
mod socket;
mod spool;
mod stream;
mod system;
mod timers;
mod tools;
mod turn;
mod upstream;
mod upstream_turn;
mod watch;
mod wire;

pub use balancer::Balancer;
pub use broadcast::{Broadcast, Slow};
pub use citius_compress::{Levels as CompressionLevels, Policy as CompressionPolicy};
pub use citius_forwarded::{Names as ForwardedNames, Network, Proxies};
pub use citius_h3::{SessionEvent, asks_session};
pub use citius_observe::{Client, Observer};
pub use citius_ws as ws;
pub use clock::{coarse_ms, cpu_of, exact_ns, exact_us, note_cpu, wall_us};
pub use file::{File, Files, open, status};
pub use file_status::FileStatus;
pub use hosted::Host;
pub use id::{ConnectionId, Peer, StreamId};
pub use inbox::Inbox;
pub use listener::{ListenerProtocol, ListenerTraits};
pub use mailbox::{Mailbox, ResponseAction, StreamCommand};
pub use outgoing::{OutgoingPoller, OutgoingSocket};
pub use reactor::{Options, Reactor};
pub use readiness::OutgoingReady;
pub use remote::{Outgoing, Then};
pub use service::{Notice, Reply, Service, TlsNotice};
pub use session_command::SessionCommand;
pub use spool::{Pending, Slot, Spool, Spooler, close};
#[cfg(target_os = "linux")]
pub use system::open_flags;
pub use system::{Errno, Socket};
pub use upstream::{Handed, UpstreamId};
pub use wire::Protocols;
