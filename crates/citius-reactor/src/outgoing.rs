//! Connections to other servers whose bytes native code reads and writes itself, and the poller that says when it may.
//!
//! A poller of these is a set of its own. A reactor can watch it ([`Service::take_outgoing`](crate::Service::take_outgoing)): then
//! the service is called when one of its sockets is ready. Otherwise a thread waits for it. Each change is reported once, so a
//! socket is read or written until it says [`Errno::AGAIN`].

use std::mem::MaybeUninit;
use std::net::SocketAddr;

use crate::readiness::OutgoingReady;
use crate::system::{Errno, OutgoingEpoll, Result, Socket};

/// A TCP connection to another server.
#[derive(Debug)]
pub struct OutgoingSocket(Socket);

impl OutgoingSocket {
    /// Begins to connect. When it is writable, [`connected`](Self::connected) says whether it has.
    ///
    /// # Errors
    /// The kernel has no socket for it, or no route.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        Socket::connecting(address).map(Self)
    }

    /// Whether connecting has ended well.
    ///
    /// # Errors
    /// Why it has not.
    pub fn connected(&self) -> Result<()> {
        self.0.taken_error()
    }

    /// Reads once, to memory that need not hold values: so many bytes of it do then, from the first on. `Ok(0)`: the peer sends no more.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: there is nothing to read.
    pub fn read(&self, buffer: &mut [MaybeUninit<u8>]) -> Result<usize> {
        retried(|| self.0.recv_to(buffer))
    }

    /// Sends what the kernel takes of `bytes`.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: there is no room.
    pub fn write(&self, bytes: &[u8]) -> Result<usize> {
        retried(|| self.0.send(bytes))
    }

    /// Tells the peer that nothing more will come.
    pub fn end(&self) {
        self.0.shut_down_write();
    }

    /// Whether there is nothing to read, and the peer has not ended the connection.
    pub fn is_quiet(&self) -> bool {
        self.0.is_quiet()
    }
}

/// Does it again after a signal.
fn retried<T>(mut work: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match work() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// A set of such connections.
#[derive(Debug)]
pub struct OutgoingPoller(OutgoingEpoll);

impl OutgoingPoller {
    /// An empty one.
    ///
    /// # Errors
    /// The kernel has no descriptor for it, or no such poller.
    pub fn new() -> Result<Self> {
        OutgoingEpoll::new().map(Self)
    }

    /// Reports changes of a connection under `number`, the first of them at once if it is ready.
    ///
    /// # Errors
    /// The kernel refuses to.
    pub fn add(&self, socket: &OutgoingSocket, number: u64) -> Result<()> {
        self.0.add(&socket.0, number)
    }

    /// Reports no more of it. To be called before it is dropped: another process may hold the same socket open.
    pub fn remove(&self, socket: &OutgoingSocket) {
        self.0.remove(&socket.0);
    }

    /// Appends what has changed; with `waits` it waits until something has. Not all may be had by one call.
    ///
    /// # Errors
    /// [`Errno::INTR`]
    pub fn collect(&self, ready: &mut Vec<OutgoingReady>, waits: bool) -> Result<()> {
        self.0.collect(ready, waits)
    }

    pub(crate) fn epoll(&self) -> &OutgoingEpoll {
        &self.0
    }
}
