//! Connections in memory: bytes in and out by method calls instead of a socket. `stream.rs` has the buffers.
//!
//! Their owners are Python's test client, and servers and clients that call an application without a socket of ours
//! (`python/citius/web/interop/`). An owner that is told of news (`tell_memories`) takes what is outgoing before
//! much more of it is written, as a socket's peer does; any other owner looks by itself.
//!
//! Tests: `tests/turn.rs`, and every test that uses `citius.testing`.

use citius_http::Origin;

use crate::conn::{Conn, Transport};
use crate::id::{ConnectionId, Peer};
use crate::reactor::Reactor;
use crate::service::Service;
use crate::stream::{Memory, Stream};
use crate::wire::Wire;

impl Reactor {
    /// Has connections in memory that are opened from now on noted in `memory_news`.
    pub fn tell_memories(&mut self) {
        self.memories.tell();
    }

    /// Opens a connection that lives in memory.
    ///
    /// With an `origin` its requests come from there, whatever their header sections say.
    pub fn open_memory(&mut self, peer: Peer, origin: Option<Box<Origin>>) -> ConnectionId {
        let is_trusted = origin.is_none() && self.proxies.trusts(None);
        let transport = Transport::Plain(Stream::Memory(Memory {
            origin,
            is_told: self.memories.are_told(),
            ..Memory::default()
        }));
        let id = self.table.reserve();
        let now = self.tools.clock.now;
        let wire = Wire::new(now, self.protocols);
        let mut conn = Conn::new(id, transport, peer, wire, now);
        conn.protocols = self.protocols;
        conn.is_trusted = is_trusted;
        self.table.put(Box::new(conn));
        id
    }

    /// Bytes from the peer of a connection in memory, or its end if there are none.
    pub fn feed_memory<S: Service>(&mut self, id: ConnectionId, bytes: &[u8], service: &mut S) {
        self.put_memory(id, bytes);
        self.turn(service);
    }

    /// Bytes from the peer of a connection in memory, for the next turn to serve.
    pub fn put_memory(&mut self, id: ConnectionId, bytes: &[u8]) {
        if let Some(memory) = self.memory_of(id) {
            memory.incoming.extend_from_slice(bytes);
            memory.incoming_ended |= bytes.is_empty();
        }
        self.again.push(id);
    }

    /// Bytes from the peer that the connection has not read yet.
    pub fn unread_memory(&mut self, id: ConnectionId) -> usize {
        self.memory_of(id).map_or(0, |memory| memory.incoming.len())
    }

    /// Bytes for the peer of a connection in memory; `None` once it is closed and all are taken.
    pub fn take_memory(&mut self, id: ConnectionId) -> Option<Vec<u8>> {
        if let Some(left) = self.memories.take_left(id) {
            return Some(left.outgoing);
        }
        let conn = self.table.get_mut(id)?;
        let memory = conn.memory_mut()?;
        let taken = std::mem::take(&mut memory.outgoing);
        if memory.is_told && !taken.is_empty() && conn.wants_write() {
            // It waits for room, of which no kernel will tell.
            if !std::mem::replace(&mut conn.comes_again, true) {
                self.again.push(id);
            }
            self.mailbox.wake();
        }
        Some(taken)
    }

    /// Whether `memory_news` has any.
    pub fn has_memory_news(&self) -> bool {
        self.memories.has_news()
    }

    /// The connections in memory about which there is something new: bytes to take, bytes read, or the end.
    pub fn memory_news(&mut self) -> Vec<ConnectionId> {
        self.memories.take_news()
    }

    pub(crate) fn memory_of(&mut self, id: ConnectionId) -> Option<&mut Memory> {
        self.table.get_mut(id)?.memory_mut()
    }
}
