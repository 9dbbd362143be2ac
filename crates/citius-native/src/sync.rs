//! The functions of the header for wait groups, locks and what is done once.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::chan::{receive_value, send_value};
use super::codes::{CLOSED, OK, misuse};
use super::packed::Packed;
use super::wait::Until;
use crate::Channel;
use crate::channel::{Element, Format, Value};
use crate::group::{Group, Negative};

/// A `citius_wait_group *`.
type GroupPointer = *const Group;

pub(crate) unsafe extern "C" fn group_make() -> GroupPointer {
    Arc::into_raw(Arc::new(Group::new()))
}

pub(crate) unsafe extern "C" fn group_retain(group: GroupPointer) -> GroupPointer {
    if !group.is_null() {
        // SAFETY: a reference of the caller's.
        unsafe { Arc::increment_strong_count(group) };
    }
    group
}

pub(crate) unsafe extern "C" fn group_release(group: GroupPointer) {
    // SAFETY: a reference of the caller's, which it has no more.
    drop(unsafe { Arc::from_raw(group) });
}

pub(crate) unsafe extern "C" fn group_add(group: GroupPointer, count: i64) -> c_int {
    citius_goroutine::require_stack(super::wait::STACK_BYTES);
    // SAFETY: a reference of the caller's, or null.
    let Some(group) = (unsafe { group.as_ref() }) else {
        return misuse(c"it adds to a wait group that is NULL");
    };
    match group.add(isize::try_from(count).unwrap_or(isize::MIN)) {
        Ok(()) => OK,
        Err(Negative(_)) => misuse(c"the count of its wait group would be below zero: add before the work starts, and once \
            for each"),
    }
}

pub(crate) unsafe extern "C" fn group_wait(group: GroupPointer) -> c_int {
    // SAFETY: a reference of the caller's, or null.
    let Some(group) = (unsafe { group.as_ref() }) else {
        return misuse(c"it waits for a wait group that is NULL");
    };
    if !group.is_of_this_process() {
        return misuse(c"it uses a wait group that was made before the fork");
    }
    let Some(gate) = group.gate() else {
        return OK;
    };
    match receive_value(&gate, Until::Forever) {
        Ok(_) | Err(CLOSED) => OK,
        Err(code) => code,
    }
}

/// What a mutex or a once points to: made when it is first used.
struct Lock {
    /// Has a value in its buffer while it is locked.
    channel: Channel,
    /// What was to be done once is done.
    is_done: AtomicBool,
}

/// # Safety
/// `state` is the member of a lock, which lives.
unsafe fn lock_of<'a>(state: *mut *mut c_void) -> Option<&'a Lock> {
    if state.is_null() {
        return None;
    }
    // SAFETY: the caller's; nothing else accesses it but by these functions.
    let state = unsafe { AtomicPtr::from_ptr(state) };
    let known = state.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: what was put there below, and lives until the lock is destroyed.
        return Some(unsafe { &*known.cast::<Lock>() });
    }
    let new = Box::into_raw(Box::new(Lock {
        channel: Channel::new(1, Element::fixed(0, Format::Unit)),
        is_done: AtomicBool::new(false),
    }));
    let exchanged = state.compare_exchange(
        ptr::null_mut(),
        new.cast(),
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    match exchanged {
        // SAFETY: a lock that is installed stays until its owner frees it, when nothing uses it any more.
        Ok(_) => Some(unsafe { &*new }),
        Err(other) => {
            // SAFETY: it was made above, and no other code has seen it.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: a lock that is installed stays until its owner frees it, when nothing uses it any more.
            Some(unsafe { &*other.cast::<Lock>() })
        }
    }
}

const NO_LOCK: crate::Mistake = c"it uses a lock that is NULL";

fn token() -> Value {
    Value::Packed(Packed::default())
}

pub(crate) unsafe extern "C" fn mutex_lock(state: *mut *mut c_void, timeout_ns: i64) -> c_int {
    citius_goroutine::require_stack(super::wait::STACK_BYTES);
    // SAFETY: what the header asks handlers for.
    let Some(lock) = (unsafe { lock_of(state) }) else {
        return misuse(NO_LOCK);
    };
    send_value(&lock.channel, token(), Until::within(timeout_ns))
}

pub(crate) unsafe extern "C" fn mutex_unlock(state: *mut *mut c_void) -> c_int {
    citius_goroutine::require_stack(super::wait::STACK_BYTES);
    // SAFETY: what the header asks handlers for.
    let Some(lock) = (unsafe { lock_of(state) }) else {
        return misuse(NO_LOCK);
    };
    match receive_value(&lock.channel, Until::Now) {
        Ok(_) => OK,
        Err(_) => misuse(c"it unlocks a mutex that is not locked"),
    }
}

pub(crate) unsafe extern "C" fn mutex_destroy(state: *mut *mut c_void) {
    if state.is_null() {
        return;
    }
    // SAFETY: what the header asks handlers for: nothing uses the lock any more.
    let lock = unsafe { state.replace(ptr::null_mut()) };
    if !lock.is_null() {
        // SAFETY: `lock_of` has made it.
        drop(unsafe { Box::from_raw(lock.cast::<Lock>()) });
    }
}

/// A token in the buffer of a lock, taken out again when the scope is left: by an exception of C++, too.
struct Held<'a>(&'a Lock);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let _ = receive_value(&self.0.channel, Until::Now);
    }
}

pub(crate) unsafe extern "C-unwind" fn once(
    state: *mut *mut c_void,
    function: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    citius_goroutine::require_stack(super::wait::STACK_BYTES);
    // SAFETY: what the header asks handlers for.
    let (Some(lock), Some(function)) = (unsafe { lock_of(state) }, function) else {
        return misuse(NO_LOCK);
    };
    if lock.is_done.load(Ordering::Acquire) {
        return OK;
    }
    let code = send_value(&lock.channel, token(), Until::Forever);
    if code != OK {
        return code;
    }
    let _held = Held(lock);
    if !lock.is_done.load(Ordering::Acquire) {
        // SAFETY: what the header asks handlers for.
        unsafe { function(argument) };
        lock.is_done.store(true, Ordering::Release);
    }
    OK
}
