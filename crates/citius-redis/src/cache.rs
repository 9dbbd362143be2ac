//! Replies that are kept until the server says that one of their keys has changed (`CLIENT TRACKING`), and no longer than the server
//! would keep those keys ([`Lifetime`]).
//!
//! In: encoded commands and the bytes of their replies. Out: those bytes, from which every caller gets objects of its own. What is
//! kept is bounded by entries and bytes; beyond that what has not been used lately goes first. Time is passed in as milliseconds, and
//! the hasher, which is seeded, by its user.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use hashbrown::HashMap;

use crate::{CachedBy, Words, traits_of};

/// What may be kept.
#[derive(Clone, Debug)]
pub struct CacheLimits {
    /// Replies.
    pub entries_max: usize,
    /// Bytes of commands and replies, and what each entry takes beside them.
    pub bytes_max: usize,
    /// Milliseconds after which a reply is not given any more.
    pub age_max_ms: u64,
    /// Keys must begin with one of these; empty: any keys.
    pub prefixes: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Entry {
    reply: Arc<[u8]>,
    /// Until when it is given.
    until_ms: u64,
    is_used: bool,
}

/// Encoded commands.
type Commands = Vec<Arc<[u8]>>;

/// Replies by command.
#[derive(Debug)]
pub struct Cache<S> {
    limits: CacheLimits,
    entries: HashMap<Arc<[u8]>, Entry, S>,
    /// Commands by each of their keys.
    by_key: HashMap<Box<[u8]>, Commands, S>,
    /// The keys of `entries` as they came; those that are gone are passed over.
    order: VecDeque<Arc<[u8]>>,
    bytes: usize,
    /// Replies that were there.
    pub hits: u64,
    /// Replies that were not.
    pub misses: u64,
    /// Hits since the server was last asked.
    hits_in_a_row: u32,
}

/// What an entry takes beside its command and its reply.
const ENTRY_BYTES: usize = 256;
/// After as many hits without a question to the server one is asked although the reply is kept: code that repeats a read until it
/// changes never waits, so that no event loop would ever read that it has.
const HITS_IN_A_ROW_MAX: u32 = 1000;

impl<S: BuildHasher + Clone> Cache<S> {
    /// An empty one.
    pub fn new(limits: CacheLimits, hasher: S) -> Self {
        Self {
            limits,
            entries: HashMap::with_hasher(hasher.clone()),
            by_key: HashMap::with_hasher(hasher),
            order: VecDeque::new(),
            bytes: 0,
            hits: 0,
            misses: 0,
            hits_in_a_row: 0,
        }
    }

    /// The kept reply to a command; counts whether there is one.
    pub fn get(&mut self, command: &[u8], now_ms: u64) -> Option<Arc<[u8]>> {
        match self.entries.get_mut(command) {
            Some(entry) if now_ms <= entry.until_ms && self.hits_in_a_row < HITS_IN_A_ROW_MAX => {
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
    pub fn is_tracked(&self, command: &[u8]) -> bool {
        let prefixes = &self.limits.prefixes;
        let is_prefixed = |key: &[u8]| prefixes.iter().any(|prefix| key.starts_with(prefix));
        prefixes.is_empty() || keys_of(command).all(is_prefixed)
    }

    /// Keeps a reply that is good until then.
    pub fn insert(&mut self, command: &[u8], reply: &[u8], now_ms: u64, until_ms: u64) {
        let size = command.len() + reply.len() + ENTRY_BYTES;
        self.remove(command);
        if size > self.limits.bytes_max || until_ms < now_ms {
            return;
        }
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
            until_ms: until_ms.min(now_ms.saturating_add(self.limits.age_max_ms)),
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
            if entry.is_some_and(|entry| core::mem::take(&mut entry.is_used)) {
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
    pub fn forget(&mut self, key: &[u8]) {
        for command in self.by_key.remove(key).unwrap_or_default() {
            self.remove(&command);
        }
    }

    /// Forgets what a command that may write has in its words.
    pub fn forget_words(&mut self, encoded: &[u8]) {
        if self.entries.is_empty() {
            return;
        }
        let mut words = Words::of(encoded);
        loop {
            // The keys of another database: the server tells of no change.
            if (words.clone().next()).is_some_and(|name| name.eq_ignore_ascii_case(b"SWAPDB")) {
                return self.clear();
            }
            for word in words.by_ref() {
                self.forget(word);
            }
            if !words.begin() {
                return;
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.by_key.clear();
        self.order.clear();
        self.bytes = 0;
    }

    /// Replies that are kept, and the bytes that they take.
    pub fn size(&self) -> (usize, usize) {
        (self.entries.len(), self.bytes)
    }
}

/// Whether this very object is a key: a command that came again has another one.
fn is_there<S: BuildHasher>(entries: &HashMap<Arc<[u8]>, Entry, S>, command: &Arc<[u8]>) -> bool {
    let found = entries.get_key_value(command);
    found.is_some_and(|(known, _)| Arc::ptr_eq(known, command))
}

/// How the reply of a command may be kept.
pub fn cached_by(command: &[u8]) -> CachedBy {
    let name = Words::of(command).next();
    name.map_or(CachedBy::Nothing, |name| traits_of(name).cached_by)
}

/// The keys that the reply of a command depends on; none if it may not be kept.
pub(crate) fn keys_of(command: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut words = Words::of(command);
    words.next();
    let keys = match cached_by(command) {
        CachedBy::Nothing => 0,
        CachedBy::FirstKey => 1,
        CachedBy::AllKeys => usize::MAX,
    };
    words.take(keys)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::hash::RandomState;

    use alloc::format;
    use alloc::vec;

    use super::*;
    use crate::append_command;

    fn cache(entries_max: usize, bytes_max: usize) -> Cache<RandomState> {
        let limits = CacheLimits {
            entries_max,
            bytes_max,
            age_max_ms: 1000,
            prefixes: Vec::new(),
        };
        Cache::new(limits, RandomState::new())
    }

    fn command(words: &[&str]) -> Vec<u8> {
        let mut encoded = Vec::new();
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        append_command(&mut encoded, &words);
        encoded
    }

    #[test]
    fn a_reply_is_kept_until_one_of_its_keys_changes() {
        let mut cache = cache(10, 10_000);
        let (one, two) = (command(&["GET", "a"]), command(&["MGET", "a", "b"]));
        assert_eq!(cache.get(&one, 0), None);
        cache.insert(&one, b"+1\r\n", 0, u64::MAX);
        cache.insert(&two, b"*2\r\n+1\r\n+2\r\n", 0, u64::MAX);
        assert_eq!(cache.get(&one, 1).as_deref(), Some(&b"+1\r\n"[..]));
        cache.forget(b"b");
        assert!(cache.get(&one, 1).is_some());
        assert!(cache.get(&two, 1).is_none());
        cache.forget(b"a");
        assert!(cache.get(&one, 1).is_none());
        assert_eq!((cache.size(), cache.hits, cache.misses), ((0, 0), 2, 3));
    }

    #[test]
    fn a_write_ends_what_is_kept_of_each_of_its_words() {
        let mut cache = cache(10, 10_000);
        for key in ["a", "b", "c"] {
            cache.insert(&command(&["GET", key]), b"+1\r\n", 0, u64::MAX);
        }
        cache.forget_words(&[command(&["SET", "a", "1"]), command(&["DEL", "c"])].concat());
        let kept = ["a", "b", "c"].map(|key| cache.get(&command(&["GET", key]), 0).is_some());
        assert_eq!(kept, [false, true, false]);
    }

    #[test]
    fn a_reply_grows_old() {
        let mut cache = cache(10, 10_000);
        let get = command(&["GET", "a"]);
        cache.insert(&get, b"+1\r\n", 500, u64::MAX);
        assert!(cache.get(&get, 1500).is_some());
        assert!(cache.get(&get, 1501).is_none());
    }

    #[test]
    fn a_reply_is_not_given_behind_its_time() {
        let mut cache = cache(10, 10_000);
        let get = command(&["GET", "a"]);
        cache.insert(&get, b"+1\r\n", 500, 600);
        assert!(cache.get(&get, 600).is_some());
        assert!(cache.get(&get, 601).is_none());
        cache.insert(&get, b"+1\r\n", 500, u64::MAX);
        cache.insert(&get, b"+2\r\n", 700, 699);
        assert_eq!(cache.size().0, 0, "the one before is not given either");
    }

    #[test]
    fn databases_that_are_swapped_end_all() {
        let mut cache = cache(10, 10_000);
        cache.insert(&command(&["GET", "a"]), b"+1\r\n", 0, u64::MAX);
        cache.forget_words(&command(&["swapdb", "0", "1"]));
        assert_eq!(cache.size(), (0, 0));
    }

    #[test]
    fn the_server_is_asked_though_a_reply_is_kept_now_and_then() {
        let mut cache = cache(10, 10_000);
        let get = command(&["GET", "a"]);
        cache.insert(&get, b"+1\r\n", 0, u64::MAX);
        let hits = (0..=HITS_IN_A_ROW_MAX).filter(|_| cache.get(&get, 0).is_some());
        assert_eq!(hits.count(), HITS_IN_A_ROW_MAX as usize);
        assert!(cache.get(&get, 0).is_some(), "counting starts anew");
    }

    #[test]
    fn what_is_used_stays_and_nothing_exceeds_the_limits() {
        let mut cache = cache(3, 100_000);
        let get = |number: usize| command(&["GET", &format!("key{number}")]);
        cache.insert(&get(0), b"+0\r\n", 0, u64::MAX);
        for number in 1..100 {
            assert!(cache.get(&get(0), 0).is_some(), "{number}");
            cache.insert(&get(number), b"+1\r\n", 0, u64::MAX);
            assert!(cache.size().0 <= 3);
            assert!(cache.order.len() <= 2 * 3 + 65);
        }
        let mut cache = self::cache(100, 3 * (ENTRY_BYTES + 100));
        for number in 0..100 {
            cache.insert(&get(number), &[b'x'; 60], 0, u64::MAX);
            assert!(cache.size().1 <= 3 * (ENTRY_BYTES + 100));
        }
        assert!(cache.size().0 >= 2);
        cache.insert(&get(1), &[b'x'; 10_000], 0, u64::MAX);
        assert!(cache.get(&get(1), 0).is_none(), "longer than all that fits");
        cache.clear();
        assert_eq!(cache.size(), (0, 0));
    }

    #[test]
    fn only_what_the_server_tells_changes_of_is_tracked() {
        let mut cache = cache(10, 10_000);
        cache.limits.prefixes = vec![b"user:".to_vec()];
        assert!(cache.is_tracked(&command(&["MGET", "user:1", "user:2"])));
        assert!(!cache.is_tracked(&command(&["MGET", "user:1", "job:2"])));
        assert_eq!(cached_by(&command(&["SET", "a", "b"])), CachedBy::Nothing);
    }
}
