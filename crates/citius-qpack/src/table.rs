//! The dynamic table (RFC 9204 §3.2).
//!
//! Invariant: `size <= capacity`, counted as §3.2.1 does, 32 bytes an entry on top of its text.

use alloc::collections::VecDeque;

use bytes::Bytes;
use citius_http::multiplexed::entry_bytes;

/// A field. Names and values are shared with other entries, never copied.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Bytes,
    pub(crate) value: Bytes,
}

impl Entry {
    fn bytes(&self) -> usize {
        entry_bytes(&self.name, &self.value)
    }
}

/// The fields that were inserted, oldest first.
#[derive(Debug)]
pub(crate) struct Table {
    entries: VecDeque<Entry>,
    /// Entries that were evicted: the absolute index of the first that is there.
    n_evicted: u64,
    size: usize,
    capacity: usize,
}

impl Table {
    pub(crate) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            n_evicted: 0,
            size: 0,
            capacity: 0,
        }
    }

    /// How many entries were inserted so far.
    #[inline]
    pub(crate) fn insert_count(&self) -> u64 {
        self.n_evicted.saturating_add(self.entries.len() as u64)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sets the capacity, and evicts what does not fit any more.
    pub(crate) fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.evict(0);
    }

    /// Adds a field; `None` if it is larger than the table.
    pub(crate) fn insert(&mut self, entry: Entry) -> Option<()> {
        let cost = entry.bytes();
        if cost > self.capacity {
            return None;
        }
        self.evict(cost);
        self.size = self.size.saturating_add(cost);
        self.entries.push_back(entry);
        Some(())
    }

    /// The entry with this absolute index.
    #[inline]
    pub(crate) fn at(&self, index: u64) -> Option<&Entry> {
        let index = usize::try_from(index.checked_sub(self.n_evicted)?).ok()?;
        self.entries.get(index)
    }

    /// The entry that was inserted `index` entries before the last.
    pub(crate) fn latest(&self, index: u64) -> Option<&Entry> {
        self.at(self.insert_count().checked_sub(index)?.checked_sub(1)?)
    }

    /// Makes room for `cost` bytes.
    fn evict(&mut self, cost: usize) {
        while self.size.saturating_add(cost) > self.capacity {
            let Some(entry) = self.entries.pop_front() else {
                return;
            };
            self.size = self.size.saturating_sub(entry.bytes());
            self.n_evicted = self.n_evicted.saturating_add(1);
        }
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}
