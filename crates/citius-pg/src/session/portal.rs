//! A portal of the server's, from which so many rows are fetched at a time.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use once_cell::race::OnceBox;

use super::statement::{Found, Key, Statement};

/// One portal, as its calls share it.
#[derive(Debug)]
pub struct Portal<Codec, Made> {
    name: String,
    rows_max: u32,
    /// Kept here so that the session does not forget it, which would end the portal.
    statement: OnceBox<Found<Codec, Made>>,
    is_done: AtomicBool,
}

impl<Codec, Made> Portal<Codec, Made> {
    /// One with a name that no other has.
    pub fn new(rows_max: u32) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            name: format!("citius_{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            rows_max,
            statement: OnceBox::new(),
            is_done: AtomicBool::new(false),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rows are fetched at a time.
    pub(super) fn rows_max(&self) -> u32 {
        self.rows_max
    }

    pub(super) fn set_statement(&self, key: Key, statement: &Arc<Statement<Codec, Made>>) {
        // A portal is opened once.
        let _ = self.statement.set(Box::new((key, Arc::clone(statement))));
    }

    pub(super) fn statement(&self) -> Option<Found<Codec, Made>> {
        let (key, statement) = self.statement.get()?;
        Some((*key, Arc::clone(statement)))
    }

    /// Whether the last row has come.
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Relaxed)
    }

    /// The last row has come.
    pub(super) fn end(&self) {
        self.is_done.store(true, Ordering::Relaxed);
    }
}
