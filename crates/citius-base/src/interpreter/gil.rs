//! Whether a thread has the GIL, and where Python counts how often it was taken there.
//!
//! `PyGILState_Ensure`, which `with gil` calls, counts its calls in the thread's state ([`citius_native::gil`] compares). The place of the
//! counter is that of the version's header, and it is tried once whether the number there behaves as the counter does: a
//! version of Python that has it elsewhere switches the check off. No other place of the state is read, for other threads may
//! write there.

use std::ffi::c_int;
use std::sync::OnceLock;

use citius_goroutine::Pool;
use citius_native::gil::Attached;
use pyo3::ffi;
use pyo3::prelude::*;

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

/// This thread as the runtime knows it: attached, and with the counter of `with gil`.
#[inline]
pub fn attached(py: Python<'_>) -> Attached<'_> {
    // SAFETY: the counter is in the state of this thread, which lives while the thread is attached.
    unsafe { Attached::new(address_here(py)) }
}

/// The beginning of `PyThreadState` (`Include/cpython/pystate.h`), as far as the counter. Within a version it stays as it is.
#[repr(C)]
struct ThreadState {
    links: [*const (); 3],
    #[cfg(Py_3_13)]
    eval_breaker: usize,
    #[cfg(Py_3_14)]
    numbers: [c_int; 8],
    #[cfg(all(Py_3_13, not(Py_3_14)))]
    numbers: [c_int; 9],
    #[cfg(not(Py_3_13))]
    numbers: [c_int; 7],
    frame: *const (),
    profile_and_trace: [*const (); 4],
    #[cfg(Py_3_12)]
    exception: *const (),
    #[cfg(not(Py_3_12))]
    exception: [*const (); 3],
    exc_info: *const (),
    dict: *const (),
    gilstate_counter: c_int,
}

fn address_here(py: Python<'_>) -> *const c_int {
    static IS_COUNTER: OnceLock<bool> = OnceLock::new();
    // SAFETY: this thread has the GIL, and so a state.
    let state = unsafe { ffi::PyThreadState_Get() }.cast::<ThreadState>();
    // SAFETY: every version's state is larger. The place is not read through a reference, but as a number that only this
    // thread changes.
    let place = unsafe { &raw const (*state).gilstate_counter };
    if *IS_COUNTER.get_or_init(|| is_counter(py, place)) {
        place
    } else {
        std::ptr::null()
    }
}

/// Whether the number at `place`, in the state of this thread, counts calls of `PyGILState_Ensure`.
#[cold]
fn is_counter(_py: Python<'_>, place: *const c_int) -> bool {
    // SAFETY: it is a member of this thread's state, aligned, and no other thread writes it.
    let read = || unsafe { place.read_volatile() };
    let before = read();
    // SAFETY: this thread has the GIL.
    let first = unsafe { ffi::PyGILState_Ensure() };
    let inside = read();
    // SAFETY: this thread has the GIL.
    let second = unsafe { ffi::PyGILState_Ensure() };
    let twice_inside = read();
    // SAFETY: in the order in which they were taken.
    unsafe { ffi::PyGILState_Release(second) };
    // SAFETY: the state that was taken first is released last.
    unsafe { ffi::PyGILState_Release(first) };
    inside == before.wrapping_add(1) && twice_inside == before.wrapping_add(2) && read() == before
}
