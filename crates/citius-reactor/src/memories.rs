//! What is new about connections in memory, for owners that are told (`memory.rs`): which of them have bytes to take, have
//! read what they were fed, or are closed, and what closed ones have left. Tests: `tests/turn.rs`, `tests/interop/`.

use crate::conn::{Conn, Transport};
use crate::id::ConnectionId;

/// What the owners of connections in memory do not know yet.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    are_told: bool,
    news: Vec<ConnectionId>,
    /// What closed connections have left for their owners.
    left: Vec<(ConnectionId, Vec<u8>)>,
}

impl Memories {
    /// Notes a connection that bytes have come out of, or gone into.
    #[cold]
    pub(crate) fn note(&mut self, conn: &mut Conn) {
        if let Transport::Memory(memory) = &mut conn.transport
            && memory.is_told
            && std::mem::take(&mut memory.has_news)
        {
            self.news.push(conn.id);
        }
    }

    /// Notes a connection that is closed.
    #[cold]
    pub(crate) fn note_end(&mut self, conn: &mut Conn) {
        if let Transport::Memory(memory) = &mut conn.transport
            && memory.is_told
        {
            let outgoing = std::mem::take(&mut memory.outgoing);
            if !outgoing.is_empty() {
                self.left.push((conn.id, outgoing));
            }
            self.news.push(conn.id);
        }
    }

    /// Has the connections that are opened from now on noted.
    pub(crate) fn tell(&mut self) {
        self.are_told = true;
    }

    pub(crate) fn are_told(&self) -> bool {
        self.are_told
    }

    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    pub(crate) fn take_news(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.news)
    }

    /// What a closed connection has left.
    pub(crate) fn take_left(&mut self, id: ConnectionId) -> Option<Vec<u8>> {
        let index = self.left.iter().position(|(left, _)| *left == id)?;
        Some(self.left.swap_remove(index).1)
    }
}
