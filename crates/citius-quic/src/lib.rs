//! QUIC, server side (RFC 9000, RFC 9001, RFC 9002), and [`Calls`] as a client: datagrams in, connections and datagrams out.
//!
//! The protocol itself is `quinn-proto`'s. What is ours: TLS by the settings of [`citius_tls`], limits by their names,
//! [`Keys`] that all workers share, connection ids that say which worker a packet is for ([`Origin`]) and the packet filter
//! that steers by them ([`steering_program`]), and when a client has to prove its address ([`Endpoint`]).
//!
//! Nothing here has a socket or reads a clock, but for the wall clock by which tokens expire, which `quinn-proto` reads.
//! Tests: `src/tests.rs`, `tests/http3/`.
#![forbid(unsafe_code)]

mod allowance;
mod calls;
mod cid;
mod endpoint;
mod keys;
mod replays;
mod session;
mod steering;
#[cfg(test)]
mod tests;

pub use allowance::{Allowance, Earned, Elsewhere};
pub use calls::{Calls, CallsEnd};
pub use cid::{CID_BYTES, Origin};
pub use endpoint::{Accepted, Begun, Endpoint, From, Log, Logs, MakeLog, Place, Received};
pub use keys::Keys;
pub use quinn_proto::{
    Connection, ConnectionError, ConnectionEvent, ConnectionHandle as Handle, Dir, EcnCodepoint,
    EndpointEvent, Event, ReadError, ReadableError, SendDatagramError, StreamEvent, StreamId,
    Transmit, VarInt, WriteError,
};
pub use session::{Agreed, agreed};
pub use steering::{Instruction, steering_program};
