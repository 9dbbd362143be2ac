//! What a reactor knows of the connections that compiled code has opened ([`net`](crate::net)).

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use citius_reactor::OutgoingPoller;

use crate::lock::lock;

/// Sockets that a reactor's turn is to look after.
pub trait WatchedSockets: Any + Send + Sync {
    /// Wakes what waits for those that are ready.
    fn collect(&self);

    /// Nothing says any more that one is ready.
    fn close(&self);
}

/// Those of one reactor.
#[derive(Default)]
pub struct Outgoing {
    /// The reactor's poller watches no descriptors.
    is_by_thread: AtomicBool,
    sockets: Mutex<Option<Arc<dyn WatchedSockets>>>,
    is_in_use: AtomicBool,
    /// Their poller, until the reactor watches it.
    unwatched: Mutex<Option<Arc<OutgoingPoller>>>,
}

impl Outgoing {
    /// The reactor's poller watches no descriptors.
    pub fn watch_by_thread(&self) {
        self.is_by_thread.store(true, Ordering::Relaxed);
    }

    /// Whether a thread of its own watches them.
    pub fn is_by_thread(&self) -> bool {
        self.is_by_thread.load(Ordering::Relaxed)
    }

    /// Those that the reactor looks after, if there are any.
    pub fn sockets(&self) -> Option<Arc<dyn WatchedSockets>> {
        lock(&self.sockets).as_ref().map(Arc::clone)
    }

    /// Has the reactor watch them from its next turn on. Its own thread asks for it, once.
    pub fn watch(&self, sockets: Arc<dyn WatchedSockets>, poller: Arc<OutgoingPoller>) {
        let _earlier = lock(&self.sockets).replace(sockets);
        self.is_in_use.store(true, Ordering::Relaxed);
        let _earlier = lock(&self.unwatched).replace(poller);
    }

    /// The poller that the reactor does not watch yet.
    pub fn take_unwatched(&self) -> Option<Arc<OutgoingPoller>> {
        lock(&self.unwatched).take()
    }

    /// Wakes what waits for sockets that are ready.
    #[inline]
    pub fn collect(&self) {
        if self.is_in_use.load(Ordering::Relaxed)
            && let Some(sockets) = self.sockets()
        {
            sockets.collect();
        }
    }

    /// The reactor has ended, or cannot watch them.
    pub fn close(&self) {
        let sockets = lock(&self.sockets).take();
        if let Some(sockets) = sockets {
            sockets.close();
        }
    }
}
