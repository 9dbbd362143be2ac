//! Names of connections and requests, and the address of a peer.
//!
//! An id is two or three numbers that stay valid as values after what they name is gone: a lookup then finds nothing.

use std::net::SocketAddr;

/// A connection of one reactor; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// Its place in the reactor's table.
    pub index: u32,
    /// How often that place has been used before.
    pub generation: u32,
}

/// One request of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// The connection.
    pub connection: ConnectionId,
    /// The request's number on it.
    pub stream: u32,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An internet address.
    Internet(SocketAddr),
    /// A Unix socket, or memory.
    Local,
}

impl Peer {
    /// The internet address, if it has one.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Internet(address) => Some(address),
            Self::Local => None,
        }
    }
}
