//! Non-blocking sockets of clients, of listeners, and of other servers. No other file calls the kernel with one.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use citius_http::Output;
use rustix::io::{Errno, Result, ioctl_fionbio};
use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay, socket_domain, socket_error};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType,
    acceptfrom_with, connect, getsockname, recv, send, sendmsg, shutdown, socket_with,
};
use smallvec::SmallVec;

use crate::id::Peer;

/// A socket.
#[derive(Debug)]
pub struct Socket(OwnedFd);

/// Pieces given to the kernel at once; more wait for the next round.
const PIECES_MAX: usize = 64;

impl From<OwnedFd> for Socket {
    /// A socket that does not block.
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl AsFd for Socket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Socket {
    /// A socket that connects to `address` over TCP. When it is writable, [`taken_error`](Self::taken_error) says whether it has.
    pub(crate) fn connecting(address: SocketAddr) -> Result<Self> {
        let family = if address.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        set_tcp_nodelay(&socket, true)?;
        match connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(Self(socket)),
            Err(error) => Err(error),
        }
    }

    /// The error of the connection, once.
    pub(crate) fn taken_error(&self) -> Result<()> {
        socket_error(&self.0)?
    }

    /// Whether there is nothing to read, and the peer has not ended the connection.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut one = [0];
        let peeked = recv(&self.0, &mut one[..], RecvFlags::PEEK);
        peeked.is_err_and(|error| error == Errno::AGAIN)
    }

    /// Reads once. `Ok(0)`: the peer has closed its side.
    #[inline]
    pub(crate) fn recv(&self, buffer: &mut [u8]) -> Result<usize> {
        recv(&self.0, buffer, RecvFlags::empty()).map(|(_, n)| n)
    }

    /// Reads once and leaves it there. `Ok(0)`: the peer has closed its side.
    pub(crate) fn peek(&self, buffer: &mut [u8]) -> Result<usize> {
        recv(&self.0, buffer, RecvFlags::PEEK).map(|(_, n)| n)
    }

    /// Reads once to memory that need not hold values; the result says how many bytes of it do then, from the first on.
    pub(crate) fn recv_to(&self, buffer: &mut [MaybeUninit<u8>]) -> Result<usize> {
        recv(&self.0, buffer, RecvFlags::empty()).map(|(_, n)| n)
    }

    /// Sends what the kernel takes of `bytes`.
    #[inline]
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<usize> {
        send(&self.0, bytes, SendFlags::NOSIGNAL)
    }

    /// Sends bytes gathered from several places, up to the next that are of a file.
    pub(crate) fn send_pieces(&self, output: &Output) -> Result<usize> {
        let pieces: SmallVec<[IoSlice<'_>; 8]> =
            output.pieces().take(PIECES_MAX).map(IoSlice::new).collect();
        let mut flags = SendFlags::NOSIGNAL;
        // The head shall not travel in a packet of its own when the file follows at once.
        flags.set(SendFlags::MORE, output.has_file());
        let mut control = SendAncillaryBuffer::default();
        sendmsg(&self.0, &pieces, &mut control, flags)
    }

    /// Ends the connection in both directions, even if another process holds the socket.
    pub(crate) fn shut_down(&self) {
        // A peer that is gone already needs no telling.
        let _ = shutdown(&self.0, Shutdown::Both);
    }

    /// Tells the peer that nothing more will come.
    pub(crate) fn shut_down_write(&self) {
        // A peer that is gone already needs no telling.
        let _ = shutdown(&self.0, Shutdown::Write);
    }

    /// Makes closing a reset.
    pub(crate) fn reset_on_close(&self) {
        // If it fails the client sees an orderly close in the middle of a message, which is a cut too.
        let _ = set_socket_linger(&self.0, Some(Duration::ZERO));
    }

    /// The address that the client has reached.
    pub(crate) fn local(&self) -> Peer {
        getsockname(&self.0)
            .ok()
            .and_then(|address| SocketAddr::try_from(address).ok())
            .map_or(Peer::Local, Peer::internet)
    }

    /// Makes a socket that listens one of a reactor.
    ///
    /// `TCP_NODELAY` is set here once: Linux hands it on to accepted sockets.
    pub(crate) fn prepare_listener(&self) -> Result<()> {
        ioctl_fionbio(&self.0, true)?;
        if socket_domain(&self.0)? != AddressFamily::UNIX {
            set_tcp_nodelay(&self.0, true)?;
        }
        Ok(())
    }
}

/// Takes the next connection of a listener's queue.
pub(crate) fn accept(listener: &Socket) -> Result<(Socket, Peer)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (socket, address) = acceptfrom_with(&listener.0, flags)?;
    let peer = address
        .and_then(|address| SocketAddr::try_from(address).ok())
        .map_or(Peer::Local, Peer::internet);
    Ok((Socket(socket), peer))
}
