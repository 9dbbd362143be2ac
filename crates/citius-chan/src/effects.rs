//! What is left to do when the locks are free again.

use std::sync::Arc;

use crate::channel::Waiter;
use crate::resident::Resident;
use crate::ticket::{Ticket, Wake};

/// Wake-ups to be called and values to be dropped, both of which may run foreign code.
pub(crate) struct Effects<V, W: Wake<V>> {
    /// Most operations wake one party at most.
    first: Option<Woken<V, W>>,
    more: Vec<Woken<V, W>>,
    pub(crate) stale: Vec<Waiter<V, W>>,
}

pub(crate) enum Woken<V, W: Wake<V>> {
    Ticket(Arc<Ticket<V, W>>),
    /// A resident of the caller's own thread.
    Here(u64),
    /// A resident of another home.
    There(W::Home, u64),
}

impl<V, W: Wake<V>> Default for Effects<V, W> {
    #[inline]
    fn default() -> Self {
        Self {
            first: None,
            more: Vec::new(),
            stale: Vec::new(),
        }
    }
}

impl<V, W: Wake<V>> Effects<V, W> {
    #[inline]
    pub(crate) fn wake(&mut self, woken: Woken<V, W>) {
        if self.first.is_none() {
            self.first = Some(woken);
        } else {
            self.more.push(woken);
        }
    }

    /// Does it, for `resident` if a resident has done the operation. No lock is held.
    #[inline]
    pub(crate) fn carry_out(self, resident: Option<&Resident<V, W>>) {
        let Self { first, more, stale } = self;
        if let Some(first) = first {
            first.ring(resident);
        }
        if !more.is_empty() {
            for woken in more {
                woken.ring(resident);
            }
        }
        for value in stale.into_iter().filter_map(|waiter| waiter.value) {
            W::unsent(value);
        }
    }
}

impl<V, W: Wake<V>> Woken<V, W> {
    #[inline]
    fn ring(self, resident: Option<&Resident<V, W>>) {
        match (self, resident) {
            (Self::Ticket(ticket), _) => W::wake(ticket),
            (Self::Here(key), Some(resident)) => W::wake_here(resident.here(), key),
            (Self::Here(_), None) => unreachable!("only residents are inside confined channels"),
            (Self::There(home, key), _) => W::wake_resident(&home, key),
        }
    }
}
