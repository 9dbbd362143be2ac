//! What carries a connection's bytes: a socket of the kernel's, or two buffers whose owner carries them on.
//!
//! Owners of buffers are the test client, servers that call an application without a socket (`memory.rs`), and an event loop
//! that owns the sockets of clients (`remote.rs`). A buffer reports readiness as a kernel does, so that one turn serves both.

use citius_http::{Origin, Output};

use crate::conn::read_file;
use crate::id::Peer;
use crate::readiness::Readiness;
use crate::system::{Errno, Result, Socket};

/// What carries a connection's bytes.
#[derive(Debug)]
pub(crate) enum Stream {
    /// A non-blocking socket.
    Socket(Socket),
    /// Two buffers, for an owner in the same process.
    Memory(Memory),
}

/// A connection without a kernel.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one connection"
)]
pub(crate) struct Memory {
    pub(crate) incoming: Vec<u8>,
    pub(crate) incoming_ended: bool,
    pub(crate) outgoing: Vec<u8>,
    /// Nothing more will be outgoing, though something may still come in.
    pub(crate) outgoing_ended: bool,
    /// What the owner knows of the client; it counts as a trusted proxy's word.
    pub(crate) origin: Option<Box<Origin>>,
    /// The owner is told of news, and takes what is outgoing before there is much more of it.
    pub(crate) is_told: bool,
    /// Bytes have come out or gone in since the owner was told last.
    pub(crate) has_news: bool,
    /// The owner carries the bytes of a client's socket.
    pub(crate) remote: Option<Remote>,
}

/// What there is to know of a client's socket that an event loop owns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    /// The address that the client has reached.
    pub(crate) local: Peer,
    /// The connection is broken: the peer sends nothing more and takes nothing more.
    pub(crate) is_lost: bool,
}

/// Bytes that an owner has not taken, beyond which no more are written; a socket's buffer is about as large.
const MEMORY_BYTES_MAX: usize = 64 * 1024;

impl Memory {
    /// What is ready, as a kernel would report it.
    pub(crate) fn readiness(&self) -> Readiness {
        let mut ready = Readiness::empty();
        ready.set(
            Readiness::IN,
            !self.incoming.is_empty() || self.incoming_ended,
        );
        ready.set(Readiness::RDHUP, self.incoming_ended);
        ready.set(Readiness::OUT, self.has_room());
        ready
    }

    /// Whether the connection is broken.
    pub(crate) fn is_lost(&self) -> bool {
        self.remote.is_some_and(|remote| remote.is_lost)
    }

    fn has_room(&self) -> bool {
        !self.is_told || self.outgoing.len() < MEMORY_BYTES_MAX
    }

    /// Reads once. `Ok(0)`: the peer has closed its side.
    pub(crate) fn recv(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let n = self.incoming.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.incoming[..n]);
        self.incoming.drain(..n);
        self.has_news |= n > 0;
        if n == 0 && !self.incoming_ended {
            Err(Errno::AGAIN)
        } else {
            Ok(n)
        }
    }

    /// Reads once and leaves it there. `Ok(0)`: the peer has closed its side.
    pub(crate) fn peek(&self, buffer: &mut [u8]) -> Result<usize> {
        let n = self.incoming.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.incoming[..n]);
        if n == 0 && !self.incoming_ended {
            Err(Errno::AGAIN)
        } else {
            Ok(n)
        }
    }

    /// Reads once and drops what comes. `Ok(0)`: the peer has closed its side.
    pub(crate) fn discard(&mut self) -> Result<usize> {
        // Its owner takes the response later, as a socket's peer may.
        if !self.incoming_ended {
            self.has_news |= !self.incoming.is_empty();
            self.incoming.clear();
            return Err(Errno::AGAIN);
        }
        Ok(0)
    }

    /// Takes `bytes` for the owner.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<usize> {
        if !self.has_room() {
            return Err(Errno::AGAIN);
        }
        self.has_news = true;
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Takes what comes next of `output`.
    pub(crate) fn send_output(&mut self, output: &Output) -> Result<usize> {
        if !self.has_room() {
            return Err(Errno::AGAIN);
        }
        let before = self.outgoing.len();
        self.has_news = true;
        for piece in output.pieces() {
            self.outgoing.extend_from_slice(piece);
        }
        if let (Some(range), true) = (output.file(), self.outgoing.len() == before) {
            self.outgoing.extend_from_slice(&read_file(range)?);
        }
        Ok(self.outgoing.len() - before)
    }

    /// Nothing more will be outgoing.
    pub(crate) fn shut_down_write(&mut self) {
        self.outgoing_ended = true;
        self.has_news = true;
    }
}

impl Stream {
    /// Reads once. `Ok(0)`: the peer has closed its side.
    #[inline]
    pub(crate) fn recv(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Self::Socket(socket) => socket.recv(buffer),
            Self::Memory(memory) => memory.recv(buffer),
        }
    }

    /// Reads once and leaves it there. `Ok(0)`: the peer has closed its side.
    pub(crate) fn peek(&self, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Self::Socket(socket) => socket.peek(buffer),
            Self::Memory(memory) => memory.peek(buffer),
        }
    }

    /// Reads once and drops what comes. `Ok(0)`: the peer has closed its side.
    pub(crate) fn discard(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Self::Socket(socket) => socket.recv(buffer),
            Self::Memory(memory) => memory.discard(),
        }
    }

    /// Sends what it takes of `bytes`.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Socket(socket) => socket.send(bytes),
            Self::Memory(memory) => memory.send(bytes),
        }
    }

    /// Tells the peer that nothing more will come.
    pub(crate) fn shut_down_write(&mut self) {
        match self {
            Self::Socket(socket) => socket.shut_down_write(),
            Self::Memory(memory) => memory.shut_down_write(),
        }
    }

    /// The address that the client has reached.
    pub(crate) fn local(&self) -> Peer {
        match self {
            Self::Socket(socket) => socket.local(),
            Self::Memory(memory) => memory.remote.map_or(Peer::Local, |remote| remote.local),
        }
    }
}
