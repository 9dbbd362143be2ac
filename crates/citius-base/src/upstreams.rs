//! Connections to other servers as the reactor knows them: what each belongs to, and which have something to send.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use citius_reactor::{Socket, UpstreamId};
use pyo3::prelude::*;

use crate::sync::lock;

/// A connection to another server as the reactor knows it.
pub trait Carried: Send + Sync {
    /// Bytes have come. `may_step`: coroutines may be stepped here and now.
    fn on_bytes(&self, py: Python<'_>, bytes: &[u8], may_step: bool);

    /// The connection has ended.
    fn on_end(&self, py: Python<'_>, why: &str);

    /// The server sends no more; whether something may still go to it. Otherwise the connection has ended.
    fn on_finished(&self, py: Python<'_>) -> bool;

    /// Appends what is to be sent; whether nothing follows it.
    fn take_output(&self, py: Python<'_>, bytes: &mut Vec<u8>) -> bool;

    /// Whether what has come is to be read before something is sent.
    fn looks_first(&self) -> bool;

    /// Whether more bytes are wanted now.
    fn wants_input(&self) -> bool;

    /// Takes back what was not sent.
    fn put_back(&self, py: Python<'_>, bytes: &[u8]);
}

/// What a reactor is told to do with one of them, by Python code that may run within a turn.
pub enum UpstreamCommand {
    /// Carry the bytes of the socket of this connection.
    Attach(UpstreamId, Socket),
    /// Carry them no longer; what was not sent is given back.
    Detach(UpstreamId, Arc<dyn Carried>),
}

/// All of one reactor.
#[derive(Default)]
pub struct Upstreams {
    next: AtomicU32,
    /// By identity.
    table: Mutex<Vec<(UpstreamId, Arc<dyn Carried>)>>,
    /// Those that have something to send.
    unsent: Mutex<Vec<UpstreamId>>,
    has_unsent: AtomicBool,
}

impl Upstreams {
    pub(crate) fn enter(&self, connection: Arc<dyn Carried>) -> UpstreamId {
        let mut table = lock(&self.table);
        // Within the lock, so that they are in order.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        table.push((id, connection));
        id
    }

    /// What is returned must be dropped outside of any lock.
    pub fn remove(&self, id: UpstreamId) -> Option<Arc<dyn Carried>> {
        let mut table = lock(&self.table);
        let at = table.binary_search_by_key(&id, |(other, _)| *other).ok()?;
        Some(table.remove(at).1)
    }

    /// The connection of this identity.
    pub fn get(&self, id: UpstreamId) -> Option<Arc<dyn Carried>> {
        let table = lock(&self.table);
        let at = table.binary_search_by_key(&id, |(other, _)| *other).ok()?;
        table.get(at).map(|(_, connection)| Arc::clone(connection))
    }

    /// Notes that a connection has something to send.
    pub(crate) fn note_unsent(&self, id: UpstreamId) {
        lock(&self.unsent).push(id);
        self.has_unsent.store(true, Ordering::Relaxed);
    }

    /// One that has.
    #[inline]
    pub fn take_unsent(&self) -> Option<UpstreamId> {
        if !self.has_unsent.load(Ordering::Relaxed) {
            return None;
        }
        let id = lock(&self.unsent).pop();
        if id.is_none() {
            self.has_unsent.store(false, Ordering::Relaxed);
        }
        id
    }
}
