//! Listening sockets: a socket in, accepted connections out.

use crate::id::Peer;
use crate::system::{Errno, Result, Socket, accept};
use crate::wire::Protocols;

/// A socket that connections come from.
#[derive(Debug)]
pub(crate) struct Listener {
    /// `None`: the event loop that turns the reactor accepts, and passes connections on (`remote.rs`).
    socket: Option<Socket>,
    pub(crate) speaks: ListenerProtocol,
    /// Each connection begins with a header of the PROXY protocol.
    pub(crate) is_proxied: bool,
    /// The port of HTTPS that requests are redirected to; 0: they are served.
    pub(crate) redirect_port: u16,
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

/// What else is particular about a listening socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerTraits {
    /// Each connection begins with a header of the PROXY protocol; peers that are not trusted are turned away.
    pub is_proxied: bool,
    /// Requests are redirected to HTTPS on this port; 0: they are served.
    pub redirect_port: u16,
}

/// What one attempt to accept brought.
pub(crate) enum Accepted {
    /// A connection.
    Connection(Socket, Peer),
    /// None is waiting.
    Nothing,
    /// The process, or the whole system, has no descriptor left.
    OutOfDescriptors,
    /// Not now, for want of memory or for a reason that lasts: try again later.
    Exhausted,
}

impl Listener {
    /// Takes over a socket that listens already.
    pub(crate) fn new(
        socket: Socket,
        speaks: ListenerProtocol,
        traits: ListenerTraits,
    ) -> Result<Self> {
        socket.prepare_listener()?;
        Ok(Self {
            socket: Some(socket),
            speaks,
            is_proxied: traits.is_proxied,
            redirect_port: traits.redirect_port,
        })
    }

    /// One whose connections are passed on.
    pub(crate) fn of_host(speaks: ListenerProtocol, traits: ListenerTraits) -> Self {
        Self {
            socket: None,
            speaks,
            is_proxied: traits.is_proxied,
            redirect_port: traits.redirect_port,
        }
    }

    pub(crate) fn socket(&self) -> Option<&Socket> {
        self.socket.as_ref()
    }

    pub(crate) fn accept(&self) -> Accepted {
        let Some(socket) = &self.socket else {
            return Accepted::Nothing;
        };
        match accept(socket) {
            Ok((socket, peer)) => Accepted::Connection(socket, peer),
            // The peer gave up before we got there, or a signal came: the next event will tell.
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Accepted::Nothing,
            Err(Errno::MFILE | Errno::NFILE) => Accepted::OutOfDescriptors,
            // Out of memory, or an error that lasts: asking at once again would spin.
            Err(_) => Accepted::Exhausted,
        }
    }
}
