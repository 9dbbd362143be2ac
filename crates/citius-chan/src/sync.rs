//! The primitives of `lock.rs`; `tests/loom.rs` has loom's in their place.

use std::cell::UnsafeCell;

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;

/// What a lock guards.
#[derive(Debug)]
pub(crate) struct Value<T>(UnsafeCell<T>);

impl<T> Value<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[inline]
    pub(crate) const fn get(&self) -> *mut T {
        self.0.get()
    }
}
