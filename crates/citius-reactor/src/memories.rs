//! What is new about connections in memory, for owners that are told (`memory.rs`): which of them have bytes to take, have
//! read what they were fed, or are closed, and what closed ones have left. Tests: `tests/turn.rs`, `tests/interop/`.

use std::collections::HashMap;

use crate::conn::Conn;
use crate::id::ConnectionId;

/// What the owners of connections in memory do not know yet.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    are_told: bool,
    news: Vec<ConnectionId>,
    /// What closed connections have left for their owners.
    left: HashMap<ConnectionId, Left>,
}

/// What a closed connection has left.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) outgoing: Vec<u8>,
    /// The peer is to see a cut instead of an end.
    pub(crate) resets: bool,
}

impl Memories {
    /// Notes a connection that bytes have come out of, or gone into.
    #[cold]
    pub(crate) fn note(&mut self, conn: &mut Conn) {
        if let Some(memory) = conn.memory_mut()
            && memory.is_told
            && std::mem::take(&mut memory.has_news)
        {
            self.news.push(conn.id);
        }
    }

    /// Notes a connection that is closed.
    #[cold]
    pub(crate) fn note_end(&mut self, conn: &mut Conn) {
        let resets = conn.resets;
        if let Some(memory) = conn.memory_mut()
            && memory.is_told
            && !memory.is_lost()
        {
            let outgoing = std::mem::take(&mut memory.outgoing);
            if !outgoing.is_empty() || memory.remote.is_some() {
                self.left.insert(conn.id, Left { outgoing, resets });
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

    /// Whether a closed connection has left something, if only its end.
    pub(crate) fn has_left(&self, id: ConnectionId) -> bool {
        self.left.contains_key(&id)
    }

    /// What a closed connection has left.
    pub(crate) fn take_left(&mut self, id: ConnectionId) -> Option<Left> {
        self.left.remove(&id)
    }
}
