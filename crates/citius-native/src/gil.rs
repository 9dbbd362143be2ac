//! Whether the thread that runs native code may use the interpreter, and whether a goroutine is inside `with gil`.
//!
//! Goroutines of a reactor run while its thread has the GIL, so that having it does not tell. What `with gil` calls counts its calls in
//! the thread's state; the count when goroutines began to run is compared with that of the moment.

use std::ffi::c_int;
use std::marker::PhantomData;

use citius_goroutine::Pool;

use super::interpreter::interpreter;
use super::mistake::Mistake;
use super::thread_state::THREAD_STATE;

/// In a block that other code of the interpreter must not run in the middle of.
const WITH_GIL: Mistake = c"it waits inside `with gil`: another goroutine would run in the middle of this one's Python code; leave the block before you wait";

/// Whether this thread is one of the pool's.
fn is_pool_thread() -> bool {
    Pool::here().is_some()
}

/// A thread that is attached to the interpreter, and the place where that counts how often its lock was taken here.
#[derive(Clone, Copy)]
pub struct Attached<'a> {
    counter: *const c_int,
    thread: PhantomData<&'a ()>,
}

impl Attached<'_> {
    /// A thread whose counter is at `counter`; null, if that is not known.
    ///
    /// # Safety
    /// The place may be read on this thread as long as this value, and what is made of it, lives.
    #[inline]
    pub unsafe fn new(counter: *const c_int) -> Self {
        Self {
            counter,
            thread: PhantomData,
        }
    }
}

/// The counter of a thread's state, and what it was when goroutines began to run here.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    address: *const c_int,
    base: i32,
}

impl Counter {
    pub(super) const NONE: Self = Self {
        address: std::ptr::null(),
        base: 0,
    };

    #[inline]
    fn read(self) -> i32 {
        if self.address.is_null() {
            return 0;
        }
        // SAFETY: it is in the state of this thread, which lives while the thread is attached ([`Attached::new`]).
        unsafe { self.address.read_volatile() }
    }
}

/// Goroutines run on this thread, which has the GIL, until what is returned is dropped.
pub(crate) struct GoroutinesRun(Counter);

impl GoroutinesRun {
    #[inline]
    pub(crate) fn begin(attached: Attached<'_>) -> Self {
        let mut counter = Counter {
            address: attached.counter,
            base: 0,
        };
        counter.base = counter.read();
        Self(THREAD_STATE.with(|thread| thread.gil_counter.replace(counter)))
    }
}

impl Drop for GoroutinesRun {
    fn drop(&mut self) {
        THREAD_STATE.with(|thread| thread.gil_counter.set(self.0));
    }
}

/// Why the goroutine that calls it must not wait now.
#[inline(never)]
pub(crate) fn refusal() -> Option<Mistake> {
    refusal_by(THREAD_STATE.with(|thread| thread.gil_counter.get()))
}

/// Why the goroutine that calls it must not wait now, by the counter of this thread.
#[inline]
pub(super) fn refusal_by(counter: Counter) -> Option<Mistake> {
    if counter.address.is_null() {
        // A thread of the pool has the GIL only inside `with gil`; a reactor's has no counter if none was found.
        return (is_pool_thread() && interpreter().is_attached()).then_some(WITH_GIL);
    }
    (counter.read() != counter.base).then_some(WITH_GIL)
}
