//! A pool of stacks of one size.
//!
//! Stacks come from slabs ([`mapping`](super::mapping)) that grow with the demand. A stack that is given back hot is reused first, since its
//! pages are in the cache and need no fault; beyond the number that the caller keeps, the memory of a stack goes back to the kernel and
//! its address range stays.

use std::fmt;
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corosensei::stack::valgrind::ValgrindStackRegistration;

use super::coroutine::Body;
use super::mapping::{GuardKind, Slab, close_guard, discard};
use super::memcheck;
use crate::error::StackError;
use crate::{GUARD_BYTES, STACK_BYTES_MIN};

/// Stacks of the first slab; each further slab has twice as many.
const SLAB_STACKS_FIRST: usize = 16;
/// Stacks of the largest slab.
const SLAB_STACKS_MAX: usize = 1024;

/// A stack that no coroutine runs on. To be given back to its pool; otherwise its address range is lost.
#[derive(Debug)]
pub struct Stack {
    base: NonZeroUsize,
    bytes: usize,
    /// The address of the place for its coroutine's [`Body`]. It is not on the stack itself: all stacks begin at the same place of a
    /// page, so that what lies there is in the same few lines of the cache.
    body: NonZeroUsize,
    kind: GuardKind,
    /// The process runs under memcheck, which is to be told of each coroutine.
    is_watched: bool,
}

/// Bytes at the top of a stack that are not the coroutine's. The first word of them is its [`Stack::mark`].
pub(crate) const MARK_BYTES: usize = 16;

impl Stack {
    /// The address of the word in which a coroutine that is suspended says where on the stack it is, for debuggers; 0 in it: none
    /// is suspended here. `scripts/gdb_goroutines.py` reads it.
    pub(crate) fn mark(&self) -> usize {
        self.base.get() - MARK_BYTES
    }

    /// Has debuggers find no suspended coroutine here. None runs on it.
    pub(crate) fn clear_mark(&self) {
        // SAFETY: the word is writable, is this stack's, and no coroutine runs that could write to it.
        unsafe { *(self.mark() as *mut usize) = 0 };
    }

    /// Has memcheck forget the coroutine that was here before.
    #[inline]
    pub(crate) fn renew(&self) {
        if self.is_watched {
            memcheck::renew(self.low(), self.bytes);
        }
    }

    /// The lowest address that can be written to.
    pub(crate) fn low(&self) -> usize {
        self.base.get() - self.bytes
    }

    pub(crate) fn kind(&self) -> GuardKind {
        self.kind
    }

    /// The place for the body of its coroutine, which is this stack's alone.
    pub(crate) fn body(&self) -> NonNull<Body> {
        NonNull::with_exposed_provenance(self.body)
    }

    /// Closes the guard that an overflow has opened, and forgets what was written.
    pub(crate) fn restore(&self) -> bool {
        discard(self.low(), self.bytes);
        close_guard(self.low() - GUARD_BYTES, GUARD_BYTES, self.kind)
    }
}

// SAFETY: the memory from `limit` to `base` is this stack's alone, writable above the guard, and at least `STACK_BYTES_MIN` long.
unsafe impl corosensei::stack::Stack for Stack {
    #[inline]
    fn base(&self) -> NonZeroUsize {
        // Above zero: a stack is longer than its mark.
        NonZeroUsize::new(self.mark()).unwrap_or(NonZeroUsize::MIN)
    }

    #[inline]
    fn limit(&self) -> NonZeroUsize {
        // Above zero: the guard is below.
        NonZeroUsize::new(self.low() - GUARD_BYTES).unwrap_or(NonZeroUsize::MIN)
    }
}

/// A pool of stacks; clones are the same pool.
#[derive(Clone, Debug)]
pub struct Stacks(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    bytes: usize,
    count_max: usize,
    /// For tests: guards as an older kernel has them.
    force_mapped: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    slabs: Vec<Slab>,
    /// Of each slab.
    bodies: Vec<Bodies>,
    free: Vec<Stack>,
    in_use: usize,
    registrations: Vec<ValgrindStackRegistration>,
}

/// The places for the bodies of a slab's coroutines.
struct Bodies(NonNull<[MaybeUninit<Body>]>);

// SAFETY: it is memory that is freed with the pool, and nothing looks at what is in it.
unsafe impl Send for Bodies {}

impl Bodies {
    fn new(count: usize) -> Self {
        Self(NonNull::from(Box::leak(Box::new_uninit_slice(count))))
    }

    /// The address of one of them.
    fn place(&self, index: usize) -> NonZeroUsize {
        // SAFETY: `index` is below the count.
        let place = unsafe { self.0.cast::<MaybeUninit<Body>>().add(index) };
        place.expose_provenance()
    }

    /// # Safety
    /// No stack of the slab is in use.
    unsafe fn free(self) {
        // SAFETY: `new` has made it of a box, and this has it alone.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl fmt::Debug for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("State")
            .field("slabs", &self.slabs)
            .field("free", &self.free.len())
            .field("in_use", &self.in_use)
            .finish_non_exhaustive()
    }
}

impl Stacks {
    /// A pool of at most `count_max` stacks of `bytes` each, which are rounded up to whole pages and to [`STACK_BYTES_MIN`].
    pub fn new(bytes: usize, count_max: usize) -> Self {
        Self::with_guards(bytes, count_max, false)
    }

    /// [`Self::new`] with guards that are mappings, as kernels before 6.13 need them; for tests.
    #[doc(hidden)]
    pub fn with_guards(bytes: usize, count_max: usize, force_mapped: bool) -> Self {
        let bytes = bytes.max(STACK_BYTES_MIN).next_multiple_of(PAGE_BYTES_MAX);
        Self(Arc::new(Pool {
            bytes,
            count_max,
            force_mapped,
            state: Mutex::default(),
        }))
    }

    /// Bytes of each stack.
    pub fn stack_bytes(&self) -> usize {
        self.0.bytes
    }

    /// Stacks that were taken and not given back.
    pub fn in_use(&self) -> usize {
        self.0.lock().in_use
    }

    /// A stack.
    ///
    /// # Errors
    /// [`StackError`]: there is none.
    pub fn take(&self) -> Result<Stack, StackError> {
        let mut state = self.0.lock();
        if state.in_use >= self.0.count_max {
            return Err(StackError::Limit(self.0.count_max));
        }
        if state.free.is_empty() {
            self.0.grow(&mut state)?;
        }
        let stack = state.free.pop().ok_or(StackError::NoMemory(0))?;
        state.in_use += 1;
        Ok(stack)
    }

    /// Takes a stack back; its memory goes back to the kernel.
    pub fn give(&self, stack: Stack) {
        discard(stack.low(), stack.bytes);
        self.give_hot(stack);
    }

    /// Takes a stack back with its memory.
    pub fn give_hot(&self, stack: Stack) {
        let mut state = self.0.lock();
        state.in_use -= 1;
        state.free.push(stack);
    }
}

/// The largest page of the architectures that are supported.
const PAGE_BYTES_MAX: usize = if cfg!(target_arch = "x86_64") {
    4096
} else {
    65_536
};

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grow(&self, state: &mut State) -> Result<(), StackError> {
        let wanted = (SLAB_STACKS_FIRST << state.slabs.len().min(16)).min(SLAB_STACKS_MAX);
        let left = self.count_max - state.in_use;
        let count = wanted.min(left).max(1);
        let slab = Slab::new(count, GUARD_BYTES, self.bytes, self.force_mapped)?;
        let bodies = Bodies::new(count);
        for (index, base) in slab.bases().enumerate() {
            let low = base - self.bytes;
            let registration = ValgrindStackRegistration::new(low as *mut u8, self.bytes);
            state.registrations.push(registration);
            if let Some(base) = NonZeroUsize::new(base) {
                state.free.push(Stack {
                    base,
                    bytes: self.bytes,
                    body: bodies.place(index),
                    kind: slab.kind(),
                    is_watched: memcheck::renew(low, self.bytes),
                });
            }
        }
        // The lowest address is taken first.
        let added = state.free.len() - count;
        state.free[added..].reverse();
        state.slabs.push(slab);
        state.bodies.push(bodies);
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.registrations.clear();
        // A stack in use lies somewhere in them, and with it perhaps what other code points to.
        if state.in_use == 0 {
            for slab in state.slabs.drain(..) {
                slab.unmap();
            }
            for bodies in state.bodies.drain(..) {
                // SAFETY: no stack is in use.
                unsafe { bodies.free() };
            }
        }
    }
}
