//! Connections to other servers: what every one has ([`Upstream`]), and what a reactor knows of those that it watches
//! ([`crate::upstreams`]).

mod carrier;
mod connection;
mod place;
pub mod tls;
mod transport;

pub use carrier::Carrier;
pub use connection::{CLOSED, Protocol, TlsArguments, Upstream};
pub use place::Place;
