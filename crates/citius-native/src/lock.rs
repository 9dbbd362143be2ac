//! Locks of which a poisoned one is used: what they guard is whole after each statement.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, whether or not the lock is poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
