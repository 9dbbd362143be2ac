//! Connections to other servers: what every one has ([`Upstream`]), and what a reactor knows of those that it watches
//! ([`crate::upstreams`]).

mod carrier;
mod connection;
mod place;
pub(crate) mod tls;
mod transport;

pub(crate) use carrier::Carrier;
pub(crate) use connection::{CLOSED, Protocol, TlsArguments, Upstream};
pub(crate) use place::Place;
