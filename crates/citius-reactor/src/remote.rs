//! Clients whose sockets an event loop owns: it accepts, reads and writes, and carries the bytes to and from a connection in memory.
//!
//! In: connections, bytes, ends and losses, as the loop's transports report them. Out: bytes to write, and whether the connection is
//! to be shut, closed or reset behind them. Everything between is the same turn, with the same limits and deadlines, as for a socket
//! of the reactor's own. Tests: `tests/hosted.rs`, and all tests of the server with `--poller asyncio`.

use crate::id::{ConnectionId, Peer};
use crate::listener::{Listener, ListenerProtocol, ListenerTraits};
use crate::reactor::Reactor;
use crate::service::Service;
use crate::stream::{Memory, Remote, Stream};

/// What an event loop has to do with a client's socket.
#[derive(Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Bytes to write.
    pub bytes: Vec<u8>,
    /// What follows them.
    pub then: Then,
    /// Bytes of the client that the connection has not read yet.
    pub unread_bytes: usize,
}

/// What follows the bytes of an [`Outgoing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The connection stays open.
    Open,
    /// Nothing more is written; what the client sends is still read.
    Shut,
    /// The connection is closed.
    Close,
    /// The connection is reset, so that the client sees a cut instead of an end.
    Reset,
}

impl Reactor {
    /// A listening socket of the event loop's; returns its number for [`accept_remote`](Self::accept_remote).
    ///
    /// The arguments are those of [`listen_as`](Self::listen_as).
    pub fn listen_remote(&mut self, speaks: ListenerProtocol, traits: ListenerTraits) -> usize {
        self.listeners.push(Listener::of_host(speaks, traits));
        self.listeners.len() - 1
    }

    /// Takes up a connection that the event loop has accepted from `listener`; a turn has to follow. `None`: too many are
    /// open, or the reactor drains; it is to be closed.
    pub fn accept_remote<S: Service>(
        &mut self,
        listener: usize,
        peer: Peer,
        local: Peer,
        service: &mut S,
    ) -> Option<ConnectionId> {
        self.tools.refresh_clock();
        if listener >= self.listeners.len() || !self.has_place(service) {
            return None;
        }
        let memory = Memory {
            is_told: true,
            remote: Some(Remote {
                local,
                is_lost: false,
            }),
            ..Memory::default()
        };
        let id = self.table.reserve();
        self.begin(listener, id, (Stream::Memory(memory), peer), service);
        Some(id)
    }

    /// The client's socket is broken, which the next turn takes note of: nothing more comes from there, and nothing goes.
    pub fn lose_remote(&mut self, id: ConnectionId) {
        // It may have ended by itself just now.
        self.memories.take_left(id);
        let memory = self.memory_of(id);
        if let Some(remote) = memory.and_then(|memory| memory.remote.as_mut()) {
            remote.is_lost = true;
            self.again.push(id);
        }
    }

    /// The connections about which there is something new, and whether they have ended.
    pub fn remote_news(&mut self) -> Vec<(ConnectionId, bool)> {
        let news = self.memories.take_news();
        let has_ended = |&id: &ConnectionId| (id, self.memories.has_left(id));
        news.iter().map(has_ended).collect()
    }

    /// What is to be done with the client's socket now.
    pub fn take_remote(&mut self, id: ConnectionId) -> Outgoing {
        if let Some(left) = self.memories.take_left(id) {
            return Outgoing {
                bytes: left.outgoing,
                then: if left.resets {
                    Then::Reset
                } else {
                    Then::Close
                },
                unread_bytes: 0,
            };
        }
        let bytes = self.take_memory(id);
        let memory = self.memory_of(id);
        Outgoing {
            then: match &memory {
                Some(memory) if memory.outgoing_ended => Then::Shut,
                Some(_) => Then::Open,
                None => Then::Close,
            },
            unread_bytes: memory.map_or(0, |memory| memory.incoming.len()),
            bytes: bytes.unwrap_or_default(),
        }
    }
}
