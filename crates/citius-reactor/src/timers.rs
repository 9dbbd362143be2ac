//! Deadlines of connections, lazily: a heap entry per connection, not per change.
//!
//! A connection's deadline moves with every request, nearly always later. So an entry stays in the
//! heap until it is due and is then compared with the deadline of that moment; only a deadline that
//! moves *earlier* than its entry costs a push. A busy keep-alive connection costs nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use citius_http::Millis;

use crate::id::ConnectionId;
use crate::poller::Poller;

/// The heap, and when the poller reports that its first entry is due.
#[derive(Debug)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Millis, ConnectionId)>>,
    /// For which entry the poller's timer is set; `Millis::MAX`: it is not.
    armed_for: Millis,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            armed_for: Millis::MAX,
        }
    }
}

impl Timers {
    pub(crate) fn push(&mut self, at: Millis, connection: ConnectionId) {
        self.heap.push(Reverse((at, connection)));
    }

    /// The next entry that is due.
    pub(crate) fn pop_due(&mut self, now: Millis) -> Option<(Millis, ConnectionId)> {
        if self.heap.peek()?.0.0 > now {
            return None;
        }
        self.heap.pop().map(|entry| entry.0)
    }

    /// Takes note that the timer was reported.
    pub(crate) fn fired(&mut self, poller: &mut Poller) {
        poller.timer_fired();
        self.armed_for = Millis::MAX;
    }

    /// Sets the timer for the first entry, if it is not set for it or for earlier.
    pub(crate) fn arm(&mut self, now: Millis, poller: &mut Poller) {
        let Some(&Reverse((at, _))) = self.heap.peek() else {
            return;
        };
        if at >= self.armed_for {
            return;
        }
        // One coarse tick later, so that the coarse clock has passed `at` when we look at it again.
        let wait_ms = at.saturating_sub(now) + 4;
        if poller.set_timer(wait_ms) {
            self.armed_for = at;
        }
    }
}
