//! The functions of the header for contexts.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use super::chan::{self, into_pointer};
use super::codes::{CANCELLED, OK, TIMEOUT, misuse};
use super::context::{Context, Ended};
use super::wait::Until;
use super::{green, local, wait};

/// A `citius_context *`.
type Pointer = *const Context;

fn give(context: Option<Arc<Context>>) -> Pointer {
    context.map_or(ptr::null(), Arc::into_raw)
}

/// A reference of its own to a context of native code's.
///
/// # Safety
/// `pointer` is a reference that native code has, or null.
unsafe fn share(pointer: Pointer) -> Option<Arc<Context>> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    unsafe { Arc::increment_strong_count(pointer) };
    // SAFETY: the reference that was made.
    Some(unsafe { Arc::from_raw(pointer) })
}

pub(crate) unsafe extern "C" fn current() -> Pointer {
    give(green::with_current(green::Green::context).flatten())
}

pub(crate) unsafe extern "C" fn make(parent: Pointer, deadline_ns: i64) -> Pointer {
    // SAFETY: what the header asks handlers for.
    let parent = unsafe { share(parent) };
    Arc::into_raw(Context::new(parent, u64::try_from(deadline_ns).ok()))
}

pub(crate) unsafe extern "C" fn retain(context: Pointer) -> Pointer {
    // SAFETY: a reference of the caller's.
    unsafe { Arc::increment_strong_count(context) };
    context
}

pub(crate) unsafe extern "C" fn release(context: Pointer) {
    // SAFETY: a reference of the caller's, which it has no more.
    drop(unsafe { Arc::from_raw(context) });
}

pub(crate) unsafe extern "C" fn cancel(context: Pointer) {
    citius_goroutine::require_stack(wait::STACK_BYTES);
    // SAFETY: what the header asks handlers for.
    if let Some(context) = unsafe { context.as_ref() } {
        context.cancel();
    }
}

pub(crate) unsafe extern "C" fn error(context: Pointer) -> c_int {
    // SAFETY: what the header asks handlers for.
    match unsafe { context.as_ref() }.and_then(Context::ended) {
        None => OK,
        Some(Ended::Cancelled) => CANCELLED,
        Some(Ended::Expired) => TIMEOUT,
    }
}

pub(crate) unsafe extern "C" fn deadline(context: Pointer) -> i64 {
    // SAFETY: what the header asks handlers for.
    let deadline = unsafe { context.as_ref() }.and_then(Context::deadline);
    deadline.map_or(-1, |deadline| i64::try_from(deadline).unwrap_or(i64::MAX))
}

pub(crate) unsafe extern "C" fn done(context: Pointer) -> chan::Pointer {
    citius_goroutine::require_stack(wait::STACK_BYTES);
    // SAFETY: what the header asks handlers for.
    let Some(context) = (unsafe { share(context) }) else {
        return ptr::null();
    };
    let (done, is_new) = context.done();
    if let (true, Some(deadline)) = (is_new, context.deadline()) {
        // It closes the channel when the deadline has come, and waits no longer than that.
        let (watched, channel) = (Arc::downgrade(&context), done.clone());
        let started = local::start(None, Box::new(|_| {}), move || {
            let _ = chan::receive_value(&channel, Until::At(deadline));
            if let Some(context) = watched.upgrade() {
                let _ = context.ended();
            }
        });
        if started.is_err() {
            let _ = done.close();
        }
    }
    into_pointer(done)
}

pub(crate) unsafe extern "C" fn use_here(context: Pointer) -> c_int {
    // SAFETY: what the header asks handlers for.
    let context = unsafe { share(context) };
    let used = green::with_current(|green| green.set_context(context));
    match used {
        Some(()) => OK,
        None => misuse(c"it sets the context of a goroutine outside of goroutines"),
    }
}
