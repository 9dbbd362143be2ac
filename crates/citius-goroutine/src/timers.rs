//! Times at which goroutines are to be woken.
//!
//! A timer that is not needed any more is only counted, and removed when it is due or when such timers are the majority: most
//! waits with a time limit end before it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nanoseconds of the monotonic clock.
pub type Nanos = u64;

/// Timers that are due within the same span of this length may fire together, at its end: as much as the kernel's own
/// `timerslack_ns` by default. A timer never fires early.
pub const TIMER_GRANULARITY_NS: Nanos = 50_000;

/// A heap of timers, each of a goroutine `K`.
#[derive(Debug)]
pub(crate) struct Timers<K> {
    heap: BinaryHeap<Reverse<Entry<K>>>,
    next: u64,
    stale: usize,
}

#[derive(Clone, Debug)]
struct Entry<K> {
    at: Nanos,
    id: u64,
    key: K,
}

impl<K> PartialEq for Entry<K> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl<K> Eq for Entry<K> {}

impl<K> PartialOrd for Entry<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Entry<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.id).cmp(&(other.at, other.id))
    }
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            next: 1,
            stale: 0,
        }
    }
}

/// Timers that are not needed any more are removed beyond this number.
const STALE_MAX: usize = 64;

impl<K> Timers<K> {
    /// Adds a timer; its number, which is not 0.
    pub(crate) fn add(&mut self, at: Nanos, key: K) -> u64 {
        let id = self.next;
        self.next += 1;
        self.heap.push(Reverse(Entry { at, id, key }));
        id
    }

    /// A timer is not needed any more. `is_needed` tells which of the others are.
    pub(crate) fn note_stale(&mut self, is_needed: impl Fn(&K, u64) -> bool) {
        self.stale += 1;
        if self.stale > STALE_MAX && self.stale > self.heap.len() / 2 {
            self.heap
                .retain(|Reverse(entry)| is_needed(&entry.key, entry.id));
            self.stale = 0;
        }
    }

    /// The next timer that is due at `now`, with its number. It may be one that is not needed.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(K, u64)> {
        if self.heap.peek()?.0.at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.key, entry.id))
    }

    /// One that was popped was not needed.
    pub(crate) fn forget_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }

    /// When the next is due, rounded up to the granularity.
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        let at = self.heap.peek()?.0.at;
        Some(
            at.checked_next_multiple_of(TIMER_GRANULARITY_NS)
                .unwrap_or(at),
        )
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_in_their_order() {
        let mut timers = Timers::default();
        for at in [30, 10, 20, 10] {
            timers.add(at, at);
        }
        assert_eq!(timers.next_at(), Some(TIMER_GRANULARITY_NS));
        assert_eq!(timers.pop_due(9), None);
        let due: Vec<_> = std::iter::from_fn(|| timers.pop_due(20)).collect();
        assert_eq!(due, [(10, 2), (10, 4), (20, 3)]);
    }

    #[test]
    fn those_that_are_not_needed_do_not_pile_up() {
        let mut timers = Timers::default();
        for n in 0..100_000_u64 {
            let id = timers.add(u64::MAX, n);
            timers.note_stale(|_, other| other > id);
        }
        assert!(timers.len() <= 2 * STALE_MAX, "{}", timers.len());
    }
}
