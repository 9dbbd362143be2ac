//! Locks that are held only while no Python code can run.
//!
//! What a lock guards is whole after each statement, so a poisoned lock is used. Test: `tests/unit/test_locks.py`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, whether or not the lock is poisoned.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A flag.
#[derive(Debug, Default)]
pub struct Flag(AtomicBool);

impl Flag {
    /// Sets it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Takes it back.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
