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
    /// An internet address in its one form: an IPv4 address that a socket for both families, or a proxy, writes as an
    /// IPv6 address (`::ffff:192.0.2.1`, RFC 4291 §2.5.5.2) is the IPv4 address, as in `Forwarded`.
    pub fn internet(address: SocketAddr) -> Self {
        Self::Internet(match address {
            SocketAddr::V6(v6) => v6
                .ip()
                .to_ipv4_mapped()
                .map_or(address, |v4| SocketAddr::new(v4.into(), v6.port())),
            SocketAddr::V4(_) => address,
        })
    }

    /// The internet address, if it has one.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Internet(address) => Some(address),
            Self::Local => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_internet_address_has_one_form() {
        for (given, expected) in [
            ("[::ffff:192.0.2.7]:80", "192.0.2.7:80"),
            ("192.0.2.7:80", "192.0.2.7:80"),
            ("[::192.0.2.7]:80", "[::192.0.2.7]:80"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("[fe80::1%3]:80", "[fe80::1%3]:80"),
        ] {
            let [given, expected] =
                [given, expected].map(|text| text.parse::<SocketAddr>().unwrap());
            assert_eq!(Peer::internet(given), Peer::Internet(expected));
        }
    }
}
