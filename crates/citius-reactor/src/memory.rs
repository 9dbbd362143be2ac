//! Connections in memory: bytes in and out by method calls instead of a socket, for Python's test client.
//!
//! Tests: `tests/turn.rs`, and every test that uses `citius.testing`.

use crate::conn::{Conn, Memory, Transport};
use crate::id::{ConnectionId, Peer};
use crate::reactor::Reactor;
use crate::service::Service;
use crate::wire::Wire;

impl Reactor {
    /// Opens a connection that lives in memory.
    pub fn open_memory(&mut self) -> ConnectionId {
        let transport = Transport::Memory(Memory::default());
        let id = self.table.reserve();
        let now = self.tools.clock.now;
        let wire = Wire::new(now, self.protocols);
        let mut conn = Conn::new(id, transport, Peer::Local, wire, now);
        conn.protocols = self.protocols;
        conn.is_trusted = self.proxies.trusts(None);
        self.table.put(Box::new(conn));
        id
    }

    /// Bytes from the peer of a connection in memory, or its end if there are none.
    pub fn feed_memory<S: Service>(&mut self, id: ConnectionId, bytes: &[u8], service: &mut S) {
        self.tools.refresh_clock();
        if let Some(Conn {
            transport: Transport::Memory(memory),
            ..
        }) = self.table.get_mut(id)
        {
            memory.incoming.extend_from_slice(bytes);
            memory.incoming_ended |= bytes.is_empty();
        }
        self.again.push(id);
        self.turn(service);
    }

    /// Bytes for the peer of a connection in memory; `None` once it is closed.
    pub fn take_memory(&mut self, id: ConnectionId) -> Option<Vec<u8>> {
        match self.table.get_mut(id)? {
            Conn {
                transport: Transport::Memory(memory),
                ..
            } => Some(std::mem::take(&mut memory.outgoing)),
            Conn { .. } => None,
        }
    }
}
