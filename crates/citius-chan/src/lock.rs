//! The lock of a channel, which one thread may take without an atomic operation while no other thread wants it.
//!
//! A lock is *shared* (a mutex) or *confined* to a thread. The thread of a confined lock says that it is inside, with a plain
//! store, and then looks whether the lock is still confined to it. Another thread that wants the lock makes it shared first: it
//! takes the mutex, takes the confinement away, has every thread of the process pass a memory barrier, and waits until the first
//! thread is no longer inside. Only one side pays for the order of its store and its load (`membarrier(2)`), the one that comes
//! once.
//!
//! Invariant: of the threads between [`Lock::lock_as`] or [`Lock::lock`] and the end of the guard there is one at a time.
//! - Two that share: the mutex.
//! - Two of the confined kind: they are the same thread, which [`Lock::enter`] refuses the second time. Only the first thread that
//!   a lock was confined to is ever its owner again: `is_inside` has one writer. With a second owner, the first one's delayed
//!   store could say "not inside" while the second is.
//! - One of each: the barrier falls, on the thread inside, either before its store of `is_inside` or after it. Before: its load
//!   comes after the barrier too, finds the confinement gone, and it takes the mutex. After: the store is seen by the other thread,
//!   which waits for its end.
//!
//! `tests/loom.rs` compiles this file with loom's primitives in the place of [`crate::sync`] and runs it through the interleavings
//! of two threads that both confine; `tests/confined.rs` has a model of the barrier, and real threads.
#![allow(
    unsafe_code,
    reason = "one value behind two kinds of exclusion; the guard is safe to use"
)]

use std::num::NonZeroU64;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

use crate::barrier;
use crate::sync::{
    AtomicBool, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, Value, compiler_fence,
    spin_loop, yield_now,
};

#[derive(Debug)]
pub(crate) struct Lock<T> {
    /// The thread that it is confined to, or `SHARED`. It changes while the mutex is held.
    owner: AtomicU64,
    /// The only thread that it is ever confined to; `SHARED`: it was not confined yet. It changes while the mutex is held.
    first_owner: AtomicU64,
    /// The thread that it is confined to has it. No other thread writes it.
    is_inside: AtomicBool,
    mutex: Mutex<()>,
    /// The thread that has used it last, and how often in a row. A guess: no exclusion rests on it.
    last_user: AtomicU64,
    uses: AtomicU32,
    /// So many uses in a row confine it; `NEVER`: none do.
    patience: AtomicU32,
    value: Value<T>,
}

// SAFETY: a guard gives `&mut T` to one thread at a time, as of a mutex.
unsafe impl<T: Send> Sync for Lock<T> {}

const SHARED: u64 = 0;
/// To take a confinement away costs as much as some dozens of uses gain.
const PATIENCE: u32 = 64;
const PATIENCE_MAX: u32 = 1 << 20;
const NEVER: u32 = u32::MAX;

pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// `None`: confined. A mutex's guard does not leave its thread, and so neither does this.
    mutex: Option<MutexGuard<'a, ()>>,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T, is_confinable: bool) -> Self {
        Self {
            owner: AtomicU64::new(SHARED),
            first_owner: AtomicU64::new(SHARED),
            is_inside: AtomicBool::new(false),
            mutex: Mutex::new(()),
            last_user: AtomicU64::new(SHARED),
            uses: AtomicU32::new(0),
            patience: AtomicU32::new(if is_confinable { PATIENCE } else { NEVER }),
            value: Value::new(value),
        }
    }

    /// Takes it as any thread. It is shared afterwards; `unconfined` is told if it was not before.
    pub(crate) fn lock(&self, unconfined: impl FnOnce(&mut T)) -> Guard<'_, T> {
        self.last_user.store(SHARED, Ordering::Relaxed);
        self.lock_shared(unconfined)
    }

    /// Takes it as `thread`, of which a number can be given by that thread only.
    #[inline]
    pub(crate) fn lock_as(
        &self,
        thread: NonZeroU64,
        unconfined: impl FnOnce(&mut T),
    ) -> Guard<'_, T> {
        self.enter(thread)
            .unwrap_or_else(|| self.lock_shared(unconfined))
    }

    /// Takes it if it is confined to `thread`.
    #[inline]
    pub(crate) fn enter(&self, thread: NonZeroU64) -> Option<Guard<'_, T>> {
        if self.owner.load(Ordering::Relaxed) != thread.get() {
            return None;
        }
        assert!(
            !self.is_inside.load(Ordering::Relaxed),
            "a thread takes the lock of a channel once"
        );
        self.is_inside.store(true, Ordering::Relaxed);
        // The other half of it is `barrier` on the thread that takes the confinement away.
        compiler_fence(Ordering::SeqCst);
        if self.owner.load(Ordering::Acquire) != thread.get() {
            self.is_inside.store(false, Ordering::Release);
            return None;
        }
        Some(Guard {
            lock: self,
            mutex: None,
        })
    }

    #[inline(never)]
    fn lock_shared(&self, unconfined: impl FnOnce(&mut T)) -> Guard<'_, T> {
        let mutex = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let was_confined = self.owner.load(Ordering::Relaxed) != SHARED;
        if was_confined {
            self.owner.store(SHARED, Ordering::Relaxed);
            barrier::pass_on_all_threads();
            // It is inside for some dozens of instructions, unless the system has stopped it there.
            for round in 0_u32.. {
                if !self.is_inside.load(Ordering::Acquire) {
                    break;
                }
                if round < 64 {
                    spin_loop();
                } else {
                    yield_now();
                }
            }
            let patience = self.patience.load(Ordering::Relaxed);
            self.patience
                .store((patience * 2).min(PATIENCE_MAX), Ordering::Relaxed);
            self.uses.store(0, Ordering::Relaxed);
        }
        let mut guard = Guard {
            lock: self,
            mutex: Some(mutex),
        };
        if was_confined {
            unconfined(&mut guard);
        }
        guard
    }

    /// Notes a use by `thread`; true when it has used it so often in a row that it should be confined to it.
    #[inline]
    pub(crate) fn note_use(&self, thread: NonZeroU64) -> bool {
        if self.last_user.load(Ordering::Relaxed) != thread.get() {
            self.last_user.store(thread.get(), Ordering::Relaxed);
            self.uses.store(0, Ordering::Relaxed);
            return false;
        }
        let patience = self.patience.load(Ordering::Relaxed);
        let uses = self.uses.load(Ordering::Relaxed).saturating_add(1);
        self.uses.store(uses, Ordering::Relaxed);
        uses >= patience && patience != NEVER
    }

    /// Confines it to `thread`, which calls this, where the system has the barrier and `agrees` returns true.
    #[cold]
    pub(crate) fn confine(
        &self,
        thread: NonZeroU64,
        unconfined: impl FnOnce(&mut T),
        agrees: impl FnOnce(&mut T) -> bool,
    ) {
        self.uses.store(0, Ordering::Relaxed);
        if !self.may_be_owner(thread) || !barrier::is_there() {
            return;
        }
        let mut guard = self.lock_shared(unconfined);
        if self.may_be_owner(thread) && agrees(&mut guard) {
            self.first_owner.store(thread.get(), Ordering::Relaxed);
            self.owner.store(thread.get(), Ordering::Relaxed);
        }
    }

    fn may_be_owner(&self, thread: NonZeroU64) -> bool {
        let first = self.first_owner.load(Ordering::Relaxed);
        first == SHARED || first == thread.get()
    }

    pub(crate) fn is_confined(&self) -> bool {
        self.owner.load(Ordering::Relaxed) != SHARED
    }

    /// Takes it if it is free and shared.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        let mutex = match self.mutex.try_lock() {
            Ok(mutex) => mutex,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        (self.owner.load(Ordering::Relaxed) == SHARED).then_some(Guard {
            lock: self,
            mutex: Some(mutex),
        })
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the invariant of this module.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one that there is, so nothing else refers to the value.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.mutex.is_none() {
            self.lock.is_inside.store(false, Ordering::Release);
        }
    }
}
