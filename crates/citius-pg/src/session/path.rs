//! Where a session looks names up, as far as its statements say: a statement means something else behind another
//! `search_path`, so it is prepared once for each.
//!
//! In: statements and scripts in the order in which they are sent. Out: a number, 0 for what the session had when it was
//! connected. The same statement with the same parameters gives the same number. What cannot be told gives a new one.

use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicU64, Ordering};

use crate::change::{Change, change_of, first_word};

/// Where a session looks names up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    now: u64,
    /// What it is when the transaction is rolled back, and when it is committed.
    rolled_back: u64,
    committed: u64,
}

impl Path {
    /// The number of where it looks them up now.
    #[inline]
    pub(super) fn number(self) -> u64 {
        self.now
    }

    /// A statement is sent that changes it; `None`: with parameters that cannot be told apart.
    #[cold]
    pub(super) fn set(
        &mut self,
        change: Change,
        id: u32,
        parameters: Option<&[u8]>,
        is_in_transaction: bool,
    ) {
        self.now = parameters.map_or_else(unique, |parameters| {
            let mut hasher = hasher();
            (id, parameters).hash(&mut hasher);
            hasher.finish()
        });
        if change == Change::SessionPath {
            self.committed = self.now;
            if !is_in_transaction {
                self.rolled_back = self.now;
            }
        }
    }

    /// A statement or script is sent that may end a transaction or a savepoint.
    #[inline]
    pub(super) fn follow(&mut self, sql: &str) {
        if (self.now | self.rolled_back | self.committed) != 0 {
            self.end(sql);
        }
    }

    #[cold]
    fn end(&mut self, sql: &str) {
        let is_rollback = first_word(sql).eq_ignore_ascii_case("ROLLBACK");
        match change_of(sql) {
            Change::Transaction if is_rollback => {
                self.now = self.rolled_back;
                self.committed = self.rolled_back;
            }
            Change::Transaction => {
                self.now = self.committed;
                self.rolled_back = self.committed;
            }
            // It may have been set within.
            Change::Savepoint if is_rollback => {
                self.now = unique();
                self.committed = self.now;
            }
            _ => {}
        }
    }
}

/// The same in every session, because behind a pooler two of them can meet in one server process.
#[expect(
    deprecated,
    reason = "what stands in its place is in `std`; parameters are a client's, so that a weaker hash would not do"
)]
fn hasher() -> impl Hasher {
    core::hash::SipHasher::new()
}

fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
