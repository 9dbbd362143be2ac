//! Replies that are kept until the server says that one of their keys has changed (`CLIENT TRACKING`).
//!
//! In: encoded commands and the bytes of their replies. Out: those bytes, from which every caller gets objects of its own. What is
//! kept is bounded by entries and bytes; beyond that what has not been used lately goes first. Without a connection nothing is
//! kept, because changes would not be told.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use citius_redis::{CachedBy, Words, traits_of};

/// What may be kept.
#[derive(Clone, Debug)]
pub(crate) struct CacheLimits {
    pub(crate) entries_max: usize,
    pub(crate) bytes_max: usize,
    pub(crate) age_max_ms: u64,
    /// Keys must begin with one of these; empty: any keys.
    pub(crate) prefixes: Vec<Vec<u8>>,
}

struct Entry {
    reply: Arc<[u8]>,
    since_ms: u64,
    is_used: bool,
}

/// Replies by command.
pub(crate) struct Cache {
    limits: CacheLimits,
    entries: HashMap<Arc<[u8]>, Entry>,
    /// Commands by each of their keys.
    by_key: HashMap<Box<[u8]>, Vec<Arc<[u8]>>>,
    /// The keys of `entries` as they came; those that are gone are passed over.
    order: VecDeque<Arc<[u8]>>,
    bytes: usize,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Hits since the server was last asked.
    hits_in_a_row: u32,
}

/// What an entry takes beside its command and its reply.
const ENTRY_BYTES: usize = 256;
/// After as many hits without a question to the server one is asked although the reply is kept: code that repeats a read until it
/// changes never waits, so that no event loop would ever read that it has.
const HITS_IN_A_ROW_MAX: u32 = 1000;

impl Cache {
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self {
            limits,
            entries: HashMap::new(),
            by_key: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            hits: 0,
            misses: 0,
            hits_in_a_row: 0,
        }
    }

    /// The kept reply to a command; counts whether there is one.
    pub(crate) fn get(&mut self, command: &[u8], now_ms: u64) -> Option<Arc<[u8]>> {
        let is_fresh =
            |entry: &Entry| now_ms.saturating_sub(entry.since_ms) <= self.limits.age_max_ms;
        match self.entries.get_mut(command) {
            Some(entry) if is_fresh(entry) && self.hits_in_a_row < HITS_IN_A_ROW_MAX => {
                entry.is_used = true;
                self.hits += 1;
                self.hits_in_a_row += 1;
                Some(Arc::clone(&entry.reply))
            }
            _ => {
                self.misses += 1;
                self.hits_in_a_row = 0;
                None
            }
        }
    }

    /// Whether the server tells changes of all keys of a command.
    pub(crate) fn is_tracked(&self, command: &[u8]) -> bool {
        let prefixes = &self.limits.prefixes;
        let is_prefixed = |key: &[u8]| prefixes.iter().any(|prefix| key.starts_with(prefix));
        prefixes.is_empty() || keys_of(command).all(is_prefixed)
    }

    /// Keeps a reply.
    pub(crate) fn insert(&mut self, command: &[u8], reply: &[u8], now_ms: u64) {
        let size = command.len() + reply.len() + ENTRY_BYTES;
        if size > self.limits.bytes_max {
            return;
        }
        self.remove(command);
        let command: Arc<[u8]> = command.into();
        for key in keys_of(&command) {
            let commands = self.by_key.entry(key.into()).or_default();
            if !commands.contains(&command) {
                commands.push(Arc::clone(&command));
            }
        }
        self.order.push_back(Arc::clone(&command));
        self.bytes += size;
        let entry = Entry {
            reply: reply.into(),
            since_ms: now_ms,
            is_used: false,
        };
        self.entries.insert(command, entry);
        while self.entries.len() > self.limits.entries_max || self.bytes > self.limits.bytes_max {
            self.evict();
        }
    }

    /// Forgets one that has not been used since it was last looked at.
    fn evict(&mut self) {
        while let Some(command) = self.order.pop_front() {
            if !is_there(&self.entries, &command) {
                continue;
            }
            let entry = self.entries.get_mut(&command);
            if entry.is_some_and(|entry| std::mem::take(&mut entry.is_used)) {
                self.order.push_back(command);
            } else {
                return self.remove(&command);
            }
        }
    }

    fn remove(&mut self, command: &[u8]) {
        let Some((command, entry)) = self.entries.remove_entry(command) else {
            return;
        };
        self.bytes -= command.len() + entry.reply.len() + ENTRY_BYTES;
        for key in keys_of(&command) {
            if let Some(commands) = self.by_key.get_mut(key) {
                commands.retain(|other| *other != command);
                if commands.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        // The list of those that are gone does not outgrow that of those that are there.
        if self.order.len() > 2 * self.entries.len() + 64 {
            self.order.retain(|it| is_there(&self.entries, it));
        }
    }

    /// Forgets what depends on a key.
    pub(crate) fn forget(&mut self, key: &[u8]) {
        for command in self.by_key.remove(key).unwrap_or_default() {
            self.remove(&command);
        }
    }

    /// Forgets what a command that may write has in its words.
    pub(crate) fn forget_words(&mut self, encoded: &[u8]) {
        if self.entries.is_empty() {
            return;
        }
        let mut words = Words::of(encoded);
        loop {
            for word in words.by_ref() {
                self.forget(word);
            }
            if !words.begin() {
                return;
            }
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.by_key.clear();
        self.order.clear();
        self.bytes = 0;
    }

    /// Replies that are kept, and the bytes that they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.entries.len(), self.bytes)
    }
}

/// Whether this very object is a key: a command that came again has another one.
fn is_there(entries: &HashMap<Arc<[u8]>, Entry>, command: &Arc<[u8]>) -> bool {
    let found = entries.get_key_value(command);
    found.is_some_and(|(known, _)| Arc::ptr_eq(known, command))
}

/// How the reply of a command may be kept.
pub(crate) fn cached_by(command: &[u8]) -> CachedBy {
    let name = Words::of(command).next();
    name.map_or(CachedBy::Nothing, |name| traits_of(name).cached_by)
}

/// The keys that the reply of a command depends on; none if it may not be kept.
fn keys_of(command: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut words = Words::of(command);
    words.next();
    let keys = match cached_by(command) {
        CachedBy::Nothing => 0,
        CachedBy::FirstKey => 1,
        CachedBy::AllKeys => usize::MAX,
    };
    words.take(keys)
}
