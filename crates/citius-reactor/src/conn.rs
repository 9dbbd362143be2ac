//! One connection: its socket, its protocol, and what waits to be parsed or written.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use citius_http::{Millis, Output};
use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, Result};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use smallvec::SmallVec;

use crate::service::{ConnectionId, Peer};

/// Where bytes come from and go to.
#[derive(Debug)]
pub(crate) enum Transport {
    /// A non-blocking socket.
    Socket(OwnedFd),
    /// Two buffers, for tests that need no socket.
    Memory(Memory),
}

/// A connection without a kernel.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) incoming: Vec<u8>,
    pub(crate) incoming_ended: bool,
    pub(crate) outgoing: Vec<u8>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Requests come and answers go.
    Open,
    /// The last answer is on its way; no more is read.
    Flushing,
    /// Our side is shut; what still comes is dropped until the peer closes or this moment.
    Lingering { until: Millis },
}

/// One connection.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one connection"
)]
pub(crate) struct Conn {
    pub(crate) id: ConnectionId,
    pub(crate) transport: Transport,
    pub(crate) peer: Peer,
    pub(crate) wire: citius_h1::Connection,
    pub(crate) phase: Phase,
    /// Bytes that are read but not understood yet: an unfinished head, or what is held back.
    pub(crate) input: Vec<u8>,
    /// `input` waits for the protocol or for the write queue, not for more bytes.
    pub(crate) is_held_back: bool,
    /// Bytes that the socket has not taken yet.
    pub(crate) output: Output,
    /// Since when the socket takes nothing; meaningful while `output` is not empty.
    pub(crate) stalled_since: Millis,
    /// Streams that wait for room in `output`.
    pub(crate) rooms: SmallVec<[u32; 2]>,
    /// It is on the list of those that go on in the next turn.
    pub(crate) comes_again: bool,
    /// Closing it is a reset.
    pub(crate) resets: bool,
    /// The peer has closed its sending side.
    pub(crate) peer_closed: bool,
    /// It has sent a request.
    pub(crate) has_asked: bool,
    /// When it is drained although it has not; `Millis::MAX`: not at all.
    pub(crate) drain_at: Millis,
    /// What epoll watches for.
    pub(crate) interest: EventFlags,
    /// When the heap entry of this connection is due; `Millis::MAX`: there is none.
    pub(crate) timer_at: Millis,
}

impl Conn {
    pub(crate) fn new(id: ConnectionId, transport: Transport, peer: Peer, now: Millis) -> Self {
        Self {
            id,
            transport,
            peer,
            wire: citius_h1::Connection::new(now),
            phase: Phase::Open,
            input: Vec::new(),
            is_held_back: false,
            output: Output::default(),
            stalled_since: now,
            rooms: SmallVec::new(),
            comes_again: false,
            resets: false,
            peer_closed: false,
            has_asked: false,
            drain_at: Millis::MAX,
            interest: EventFlags::IN,
            timer_at: Millis::MAX,
        }
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.transport {
            Transport::Socket(descriptor) => Some(descriptor.as_fd()),
            Transport::Memory(_) => None,
        }
    }

    /// Whether it lives in memory and its peer has sent what has not been read.
    #[inline]
    pub(crate) fn has_unread_memory(&self) -> bool {
        match &self.transport {
            Transport::Socket(_) => false,
            Transport::Memory(memory) => self.phase == Phase::Open && !memory.incoming.is_empty(),
        }
    }

    /// Reads once. `Ok(0)`: the peer has closed its side.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match &mut self.transport {
            Transport::Socket(socket) => {
                rustix::net::recv(socket, buffer, RecvFlags::empty()).map(|(_, n)| n)
            }
            Transport::Memory(memory) => {
                let n = memory.incoming.len().min(buffer.len());
                buffer[..n].copy_from_slice(&memory.incoming[..n]);
                memory.incoming.drain(..n);
                if n == 0 && !memory.incoming_ended {
                    Err(Errno::AGAIN)
                } else {
                    Ok(n)
                }
            }
        }
    }

    /// Writes what the socket takes. `Ok(true)`: everything is out.
    #[inline]
    pub(crate) fn flush(&mut self, now: Millis) -> Result<bool> {
        while !self.output.is_empty() {
            match self.write_once() {
                Ok(n) => {
                    self.output.advance(n);
                    self.stalled_since = now;
                }
                Err(Errno::AGAIN) => {
                    // The wait begins now, not with the last write that went through.
                    if !self.interest.contains(EventFlags::OUT) {
                        self.stalled_since = now;
                    }
                    return Ok(false);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn write_once(&mut self) -> Result<usize> {
        /// Pieces given to the kernel at once; more wait for the next round.
        const PIECES_MAX: usize = 64;
        match (&mut self.transport, self.output.single()) {
            (Transport::Socket(socket), Some(bytes)) => {
                rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
            }
            (Transport::Socket(socket), None) => {
                let pieces: SmallVec<[IoSlice<'_>; 8]> = self
                    .output
                    .pieces()
                    .take(PIECES_MAX)
                    .map(IoSlice::new)
                    .collect();
                let mut control = SendAncillaryBuffer::default();
                rustix::net::sendmsg(socket, &pieces, &mut control, SendFlags::NOSIGNAL)
            }
            (Transport::Memory(memory), _) => {
                for piece in self.output.pieces() {
                    memory.outgoing.extend_from_slice(piece);
                }
                Ok(self.output.len())
            }
        }
    }

    /// Ends the connection in both directions, whoever else may hold its socket.
    pub(crate) fn shut_down(&self) {
        if let Transport::Socket(socket) = &self.transport {
            // A peer that is gone already needs no telling.
            let _ = rustix::net::shutdown(socket, Shutdown::Both);
        }
    }

    /// Tells the peer that nothing more will come.
    pub(crate) fn shut_down_write(&self) {
        if let Transport::Socket(socket) = &self.transport {
            // A peer that is gone already needs no telling.
            let _ = rustix::net::shutdown(socket, Shutdown::Write);
        }
    }

    /// Makes closing a reset, so that a client sees the cut instead of an end.
    pub(crate) fn reset_on_close(&mut self) {
        self.resets = true;
        if let Transport::Socket(socket) = &self.transport {
            let at_once = Some(std::time::Duration::ZERO);
            // If it fails the client sees an orderly close in the middle of a message, which is a cut too.
            let _ = rustix::net::sockopt::set_socket_linger(socket, at_once);
        }
    }
}
