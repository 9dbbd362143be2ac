//! Whether the thread that runs native code may use Python, and whether a goroutine is inside `with gil`.
//!
//! Goroutines of a reactor run while its thread has the GIL, so that having it does not tell. `PyGILState_Ensure`, which `with gil`
//! calls, counts its calls in the thread's state; the count when goroutines began to run is compared with that of the moment. The place
//! of the counter in the state is found by looking for what changes when the function is called: no header is needed, and a
//! version of Python that hides it switches the check off.

use std::sync::OnceLock;

use citius_goroutine::Pool;
use pyo3::ffi;
use pyo3::prelude::*;

use super::report::Mistake;
use super::thread_state::THREAD_STATE;

/// In a block that other Python code must not run in the middle of.
const WITH_GIL: Mistake = c"it waits inside `with gil`: another goroutine would run in the middle of this one's Python code; leave the block \
     before you wait";

/// Whether this thread is one of the pool's.
fn is_pool_thread() -> bool {
    Pool::here().is_some()
}

/// Whether this thread has the GIL; without a GIL, whether it is attached to the interpreter.
#[inline]
pub(crate) fn is_attached() -> bool {
    // SAFETY: it may be called on any thread once Python is initialized, and an extension is loaded by it.
    unsafe { ffi::PyGILState_Check() == 1 }
}

/// Gives a thread that Python does not know a state for good: an exception that native code sets in it lasts until it is looked at,
/// although the GIL is given back in between.
pub(crate) fn keep_thread_state() {
    // SAFETY: Python is initialized. The state is never given back.
    let _ = unsafe { ffi::PyGILState_Ensure() };
    // SAFETY: this thread has the GIL.
    let _ = unsafe { ffi::PyEval_SaveThread() };
}

/// Takes the GIL from a goroutine of the pool that has ended inside `with gil`.
pub(crate) fn release_abandoned() {
    if !is_pool_thread() {
        return;
    }
    while is_attached() {
        // SAFETY: this thread has the GIL by `PyGILState_Ensure`, whose caller is gone.
        unsafe { ffi::PyGILState_Release(ffi::PyGILState_STATE::PyGILState_UNLOCKED) };
    }
}

/// The counter of a thread's state, and what it was when goroutines began to run here.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    address: *const i32,
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
        // SAFETY: it is in the state of this thread, which lives while the thread runs Python's turn.
        unsafe { self.address.read_volatile() }
    }
}

/// Goroutines run on this thread, which has the GIL, until what is returned is dropped.
pub(crate) struct GoroutinesRun(Counter);

impl GoroutinesRun {
    #[inline]
    pub(crate) fn begin(py: Python<'_>) -> Self {
        let address = address_here(py);
        let mut counter = Counter { address, base: 0 };
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

/// The same, by the counter of this thread.
#[inline]
pub(super) fn refusal_by(counter: Counter) -> Option<Mistake> {
    if counter.address.is_null() {
        // A thread of the pool has the GIL only inside `with gil`; a reactor's has no counter if none was found.
        return (is_pool_thread() && is_attached()).then_some(WITH_GIL);
    }
    (counter.read() != counter.base).then_some(WITH_GIL)
}

/// Bytes at the beginning of a thread's state among which the counter is looked for: fewer than any version's state has.
const SEARCHED_BYTES: usize = 256;

fn address_here(py: Python<'_>) -> *const i32 {
    static OFFSET: OnceLock<Option<usize>> = OnceLock::new();
    let offset = *OFFSET.get_or_init(|| find_offset(py));
    let Some(offset) = offset else {
        return std::ptr::null();
    };
    // SAFETY: this thread has the GIL, and so a state.
    let state = unsafe { ffi::PyThreadState_Get() };
    // SAFETY: the offset is within the state.
    unsafe { state.cast::<i32>().add(offset) }
}

/// Which of the 32-bit numbers of the state is the counter, if exactly one number of the state behaves as it does.
#[cold]
fn find_offset(_py: Python<'_>) -> Option<usize> {
    // SAFETY: this thread has the GIL, and so a state.
    let state = unsafe { ffi::PyThreadState_Get() }.cast::<i32>();
    let read = || -> [i32; SEARCHED_BYTES / 4] {
        std::array::from_fn(|index| {
            // SAFETY: a state is larger than what is searched, and made of aligned members.
            let place = unsafe { state.add(index) };
            // SAFETY: as above; other threads may change some of it, which is why it is read so.
            unsafe { place.read_volatile() }
        })
    };
    let before = read();
    // SAFETY: this thread has the GIL.
    let first = unsafe { ffi::PyGILState_Ensure() };
    let inside = read();
    // SAFETY: as above.
    let second = unsafe { ffi::PyGILState_Ensure() };
    let twice_inside = read();
    // SAFETY: in the order in which they were taken.
    unsafe { ffi::PyGILState_Release(second) };
    // SAFETY: as above.
    unsafe { ffi::PyGILState_Release(first) };
    let after = read();
    let mut found = (0..before.len()).filter(|&at| {
        inside[at] == before[at].wrapping_add(1)
            && twice_inside[at] == before[at].wrapping_add(2)
            && after[at] == before[at]
    });
    match (found.next(), found.next()) {
        (Some(at), None) => Some(at),
        _ => None,
    }
}
