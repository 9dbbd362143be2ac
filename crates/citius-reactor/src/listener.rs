//! Listening sockets: a descriptor in, accepted connections out.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, acceptfrom_with};

use crate::id::Peer;
use crate::wire::Protocols;

/// A socket that connections come from.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    pub(crate) speaks: ListenerProtocol,
}

/// What is spoken with those who connect to a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerProtocol {
    /// HTTP in the versions of the reactor's options: over TLS if it is [secured](crate::Reactor::secure).
    Http,
    /// HTTP in these versions, over TLS or in clear text. In a reactor that is not secured, every connection
    /// that should be is closed.
    HttpAs {
        /// The versions.
        protocols: Protocols,
        /// Whether TLS is spoken.
        is_secured: bool,
    },
    /// Procedures are called, in clear text whatever the reactor does elsewhere.
    Rpc,
    /// Procedures are called over TLS. In a reactor that is not secured every connection is closed.
    SecuredRpc,
}

/// What one attempt to accept brought.
pub(crate) enum Accepted {
    /// A connection.
    Connection(OwnedFd, Peer),
    /// None is waiting.
    Nothing,
    /// The process, or the whole system, has no descriptor left.
    OutOfDescriptors,
    /// Not now, for want of memory or for a reason that lasts: try again later.
    Exhausted,
}

impl Listener {
    /// Takes over a socket that listens already.
    ///
    /// `TCP_NODELAY` is set here once: Linux hands it on to accepted sockets.
    pub(crate) fn new(socket: OwnedFd, speaks: ListenerProtocol) -> Result<Self> {
        ioctl_fionbio(&socket, true)?;
        if rustix::net::sockopt::socket_domain(&socket)? != AddressFamily::UNIX {
            rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
        }
        Ok(Self { socket, speaks })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn accept(&self) -> Accepted {
        match acceptfrom_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok((socket, address)) => Accepted::Connection(socket, peer(address)),
            // The peer gave up before we got there, or a signal came: the next event will tell.
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Accepted::Nothing,
            Err(Errno::MFILE | Errno::NFILE) => Accepted::OutOfDescriptors,
            // Out of memory, or an error that lasts: asking at once again would spin.
            Err(_) => Accepted::Exhausted,
        }
    }
}

fn peer(address: Option<SocketAddrAny>) -> Peer {
    address
        .and_then(|address| std::net::SocketAddr::try_from(address).ok())
        .map_or(Peer::Local, Peer::Internet)
}
