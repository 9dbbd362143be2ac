//! A portal of the server's, from which so many rows are fetched at a time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::rows::{Key, Statement};

/// One portal, as its calls share it.
pub(crate) struct Portal {
    pub(crate) name: String,
    pub(crate) rows_max: u32,
    /// Kept here so that the session does not forget it, which would end the portal.
    statement: OnceLock<(Key, Arc<Statement>)>,
    is_done: AtomicBool,
}

impl Portal {
    /// One with a name that no other has.
    pub(crate) fn new(rows_max: u32) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            name: format!("citius_{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            rows_max,
            statement: OnceLock::new(),
            is_done: AtomicBool::new(false),
        }
    }

    pub(crate) fn set_statement(&self, key: Key, statement: &Arc<Statement>) {
        // A portal is opened once.
        let _ = self.statement.set((key, Arc::clone(statement)));
    }

    pub(crate) fn statement(&self) -> Option<(Key, Arc<Statement>)> {
        let (key, statement) = self.statement.get()?;
        Some((*key, Arc::clone(statement)))
    }

    /// Whether the last row has come.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Relaxed)
    }

    /// The last row has come.
    pub(crate) fn end(&self) {
        self.is_done.store(true, Ordering::Relaxed);
    }
}
