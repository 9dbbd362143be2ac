//! What is left to do when the locks are free again.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::channel::Waiter;
use crate::ticket::{Ticket, Wake};

/// Wake-ups to be called and values to be dropped, both of which may run foreign code.
pub(crate) struct Effects<V, W> {
    pub(crate) woken: SmallVec<[Arc<Ticket<V, W>>; 1]>,
    pub(crate) stale: Vec<Waiter<V, W>>,
}

impl<V, W> Default for Effects<V, W> {
    fn default() -> Self {
        Self {
            woken: SmallVec::new(),
            stale: Vec::new(),
        }
    }
}

impl<V, W: Wake<V>> Effects<V, W> {
    /// Does it. No lock is held.
    pub(crate) fn carry_out(self) {
        for value in self.stale.into_iter().filter_map(|waiter| waiter.value) {
            W::unsent(value);
        }
        for ticket in self.woken {
            W::wake(ticket);
        }
    }
}
