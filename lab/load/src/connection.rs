//! One connection: its socket, its TLS if it has any, its wire, its requests under way. Every
//! syscall on a socket is made here.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
    sockopt,
};

use crate::flight::Flight;
use crate::tls::Tls;
use crate::wire::{Setup, Ticket, Wire};

/// Where in its life a connection is.
///
/// ```text
///  Closed --open--> Connecting [--> Securing] --> Open --> Closed (and again)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Closed,
    Connecting,
    /// TLS shakes hands.
    Securing,
    Open,
}

/// A connection and everything that lives as long as it does.
#[derive(Debug)]
pub(crate) struct Connection<W> {
    /// `Some` exactly when the stage is not `Closed`.
    socket: Option<OwnedFd>,
    pub(crate) stage: Stage,
    /// From `Securing` on, if the plan wants it.
    pub(crate) tls: Option<Box<Tls>>,
    /// Counts openings, so that an event of an earlier socket is recognised.
    pub(crate) generation: u32,
    pub(crate) wire: W,
    setup: Setup,
    /// Whether it asks at all; in a broadcast most connections only listen.
    pub(crate) is_sender: bool,
    pub(crate) flight: Flight,
    /// The request the connection is being opened for; in flight, not yet handed to the wire.
    pub(crate) reserved: Option<Ticket>,
    /// Bytes the socket did not take; while there are any, no request is added.
    unwritten: Vec<u8>,
    /// A write failed: nothing can be sent any more, but there may be something to read.
    is_deaf: bool,
    /// When the opening began.
    pub(crate) opened_ns: u64,
    /// When the handshake began.
    pub(crate) secured_ns: u64,
    /// Complete answers since then.
    pub(crate) n_answers: u64,
    /// Requests that may still be asked on it before another connection takes its place.
    pub(crate) n_asks_left: u64,
    /// Complete answers of earlier openings.
    n_answers_before: u64,
    /// All complete answers when counting began.
    n_answers_uncounted: u64,
    /// Requests that the user of this connection still has to send, the one under way included.
    pub(crate) n_loops_left: u64,
    /// Openings in a row that led to no answer.
    pub(crate) n_failures: u32,
    /// Since when a request could have been sent here; open paces only.
    pub(crate) free_ns: u64,
    /// Whether it waits in the engine's queue of free connections.
    pub(crate) is_queued: bool,
}

/// What reading a socket brought.
pub(crate) enum Received {
    Bytes(usize),
    /// Nothing at the moment.
    Nothing,
    /// The peer sends no more.
    End,
    /// The connection is gone.
    Reset,
}

impl<W: Wire> Connection<W> {
    pub(crate) fn new(depth: Ticket, setup: Setup, is_sender: bool, n_asks_left: u64) -> Self {
        Self {
            socket: None,
            stage: Stage::Closed,
            tls: None,
            generation: 0,
            wire: W::new(setup),
            setup,
            is_sender,
            flight: Flight::new(depth),
            reserved: None,
            unwritten: Vec::new(),
            is_deaf: false,
            opened_ns: 0,
            secured_ns: 0,
            n_answers: 0,
            n_asks_left,
            n_answers_before: 0,
            n_answers_uncounted: 0,
            n_loops_left: 0,
            n_failures: 0,
            free_ns: 0,
            is_queued: false,
        }
    }

    /// Begins to connect; an event tells how it went. `index` comes back with every event.
    /// # Errors  The attempt failed at once; the connection is closed as before.
    pub(crate) fn open(
        &mut self,
        epoll: &OwnedFd,
        index: usize,
        address: &SocketAddr,
    ) -> Result<(), Errno> {
        self.n_answers_before += std::mem::take(&mut self.n_answers);
        let family = if address.is_ipv6() {
            AddressFamily::INET6
        } else {
            AddressFamily::INET
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        // A request in two writes, or a second batch, must not wait for an acknowledgement.
        sockopt::set_tcp_nodelay(&socket, true)?;
        match connect(&socket, address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        // Edge-triggered, so that neither the set of events nor the kernel's ready list is touched
        // again while the connection lives; in exchange every edge is followed to its end.
        let interest = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        self.generation = self.generation.wrapping_add(1);
        epoll::add(epoll, &socket, token(index, self.generation), interest)?;
        self.socket = Some(socket);
        self.stage = Stage::Connecting;
        self.wire = W::new(self.setup);
        Ok(())
    }

    /// Closes the socket, which also takes it out of the epoll set. Requests stay in flight.
    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.stage = Stage::Closed;
        self.tls = None;
        self.unwritten.clear();
        self.is_deaf = false;
        self.reserved = None;
    }

    /// What went wrong with a socket, as an event announced.
    pub(crate) fn error(&self) -> Errno {
        let socket = self.socket.as_ref().ok_or(Errno::NOTCONN);
        let error = socket.and_then(sockopt::socket_error);
        error
            .and_then(|error| error.err().ok_or(Errno::CONNRESET))
            .unwrap_or_else(|error| error)
    }

    /// Answers are counted from here on.
    pub(crate) fn begin_counting(&mut self) {
        self.n_answers_uncounted = self.n_answers_before + self.n_answers;
    }

    /// Complete answers since counting began, over all openings.
    pub(crate) fn n_answers_counted(&self) -> u64 {
        self.n_answers_before + self.n_answers - self.n_answers_uncounted
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Whether another request may be under way; what the wire of a closed connection says is
    /// the past.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let wire_has_room = self.wire.has_room() || self.stage == Stage::Closed;
        self.is_sender && self.n_asks_left > 0 && self.flight.has_room() && wire_has_room
    }

    /// Whether another request may be written.
    #[inline]
    pub(crate) fn can_ask(&self) -> bool {
        self.unwritten.is_empty() && !self.is_deaf
    }

    /// Writes `output`, which the socket may take only in part; the rest follows with
    /// [`Connection::flush`]. Returns the bytes taken.
    /// # Errors  The peer takes nothing any more.
    #[inline]
    pub(crate) fn write(&mut self, output: &[u8]) -> Result<usize, Errno> {
        // Behind what waits already, if anything does.
        let n_written = if self.unwritten.is_empty() {
            self.send(output)?
        } else {
            0
        };
        if n_written < output.len() {
            self.unwritten.extend_from_slice(&output[n_written..]);
        }
        Ok(n_written)
    }

    /// Writes what the socket did not take before. Returns the bytes taken.
    /// # Errors  The peer takes nothing any more.
    pub(crate) fn flush(&mut self) -> Result<usize, Errno> {
        let unwritten = std::mem::take(&mut self.unwritten);
        let n_written = self.send(&unwritten)?;
        self.unwritten = unwritten;
        self.unwritten.drain(..n_written);
        Ok(n_written)
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let socket = self.socket.as_ref().ok_or(Errno::NOTCONN)?;
        match send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(n_bytes) => Ok(n_bytes),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => {
                self.is_deaf = true;
                Err(error)
            }
        }
    }

    /// One read.
    #[inline]
    pub(crate) fn receive(&self, input: &mut [u8]) -> Received {
        self.receive_with(input, RecvFlags::empty())
    }

    /// One read whose bytes are dropped in the kernel instead of being copied to `room`, which
    /// only says how many may be.
    pub(crate) fn discard(&self, room: &mut [u8]) -> Received {
        self.receive_with(room, RecvFlags::TRUNC)
    }

    #[inline]
    fn receive_with(&self, input: &mut [u8], flags: RecvFlags) -> Received {
        let Some(socket) = self.socket.as_ref() else {
            return Received::Nothing;
        };
        match recv(socket, input, flags) {
            Ok((_, 0)) => Received::End,
            Ok((_, n_bytes)) => Received::Bytes(n_bytes),
            Err(Errno::AGAIN | Errno::INTR) => Received::Nothing,
            Err(_) => Received::Reset,
        }
    }
}

fn token(index: usize, generation: u32) -> epoll::EventData {
    epoll::EventData::new_u64(u64::from(generation) << 32 | index as u64)
}

/// The index and generation that an event belongs to.
pub(crate) fn parse_token(data: u64) -> (usize, u32) {
    let index = usize::try_from(data & u64::from(u32::MAX)).expect("32 bits");
    (index, u32::try_from(data >> 32).expect("32 bits"))
}
