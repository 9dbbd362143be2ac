//! What the sessions of one pool have in common, and find out for each other.

use alloc::string::String;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The state of a pool that its sessions share.
#[derive(Debug)]
pub struct PoolState {
    /// What names of statements begin with: no other pool's do. Behind a pooler two pools can come to the same server
    /// process, where a name must not mean another's statement.
    pub(super) prefix: String,
    /// Sessions are reset behind each statement.
    pub(super) resets: bool,
    /// How often it was seen that plans or types are not what they were: statements of before are prepared anew.
    schema: AtomicU32,
    /// Statements have no names, because they get lost; see `lose_names`.
    is_nameless: AtomicBool,
    /// A pooler has been found that changes the server process from one transaction to the next; see `set_pooled`.
    is_pooled: AtomicBool,
}

impl PoolState {
    /// That of a pool whose statements have names that begin with `prefix`, or none.
    pub fn new(prefix: String, has_names: bool, resets: bool) -> Self {
        Self {
            prefix,
            resets,
            schema: AtomicU32::new(0),
            is_nameless: AtomicBool::new(!has_names),
            is_pooled: AtomicBool::new(false),
        }
    }

    /// The number of changes of the schema that were seen.
    #[inline]
    pub(super) fn schema(&self) -> u32 {
        self.schema.load(Ordering::Relaxed)
    }

    /// Has all sessions prepare their statements anew: the server has changed plans or types under one of them.
    pub(super) fn change_schema(&self, seen: u32) {
        // Statements of before that are under way on other sessions say the same.
        let next = seen.wrapping_add(1);
        let _ = self
            .schema
            .compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether statements are sent with their text each time.
    #[inline]
    pub(super) fn is_nameless(&self) -> bool {
        self.is_nameless.load(Ordering::Relaxed)
    }

    /// Whether what a transaction changes of its session may be out of reach behind it.
    pub(super) fn is_pooled(&self) -> bool {
        self.is_nameless() || self.is_pooled.load(Ordering::Relaxed)
    }

    /// A transaction of a session may have another server process than the one before.
    pub fn set_pooled(&self) {
        self.is_pooled.store(true, Ordering::Relaxed);
    }

    /// Names of statements are not known where they should be, or known where they should not: something between here and
    /// the server changes the server process from one transaction to the next. Whether that is new.
    pub(super) fn lose_names(&self) -> bool {
        !self.is_nameless.swap(true, Ordering::Relaxed)
    }
}
