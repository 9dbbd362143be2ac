//! Where a session looks names up, as far as its statements say: a statement means something else behind another
//! `search_path`, so it is prepared once for each.
//!
//! In: statements and scripts in the order in which they are sent. Out: a number, 0 for what the session had when it was
//! connected. The same statement with the same parameters gives the same number. What cannot be told gives a new one.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use citius_pg::{Change, change_of};

#[derive(Clone, Copy, Default)]
pub(crate) struct Path {
    now: u64,
    /// What it is when the transaction is rolled back, and when it is committed.
    rolled_back: u64,
    committed: u64,
}

impl Path {
    #[inline]
    pub(crate) fn number(self) -> u64 {
        self.now
    }

    /// A statement is sent that changes it; `None`: with parameters that cannot be told apart.
    #[cold]
    pub(crate) fn set(
        &mut self,
        change: Change,
        id: u32,
        parameters: Option<&[u8]>,
        is_in_transaction: bool,
    ) {
        self.now = parameters.map_or_else(unique, |parameters| {
            let mut hasher = DefaultHasher::new();
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
    pub(crate) fn follow(&mut self, sql: &str) {
        if (self.now | self.rolled_back | self.committed) != 0 {
            self.end(sql);
        }
    }

    #[cold]
    fn end(&mut self, sql: &str) {
        let is_rollback = citius_pg::first_word(sql).eq_ignore_ascii_case("ROLLBACK");
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

fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
