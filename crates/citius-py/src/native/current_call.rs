//! The call of a compiled handler that a thread is in, which a goroutine takes with it when it parks.
//!
//! `gateway/compiled/abi.rs` enters it and gives its pointers their types.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

/// What a handler was given.
#[derive(Clone, Copy)]
pub(crate) struct CurrentCall {
    pub(crate) request: *const c_void,
    pub(crate) response: *mut c_void,
    /// Notes a mistake of the handler.
    pub(crate) note_mistake: fn(&'static str),
}

thread_local! {
    static CURRENT_CALL: Cell<CurrentCall> = const { Cell::new(CurrentCall::NONE) };
}

impl CurrentCall {
    const NONE: Self = Self {
        request: ptr::null(),
        response: ptr::null_mut(),
        note_mistake: |_| (),
    };

    /// Whether there is one.
    #[inline]
    pub(crate) fn is_one(self) -> bool {
        !self.response.is_null()
    }

    /// That of this thread.
    pub(crate) fn get() -> Self {
        CURRENT_CALL.get()
    }

    /// Makes it the thread's until what is returned is dropped.
    pub(crate) fn enter(self) -> PreviousCall {
        PreviousCall(CURRENT_CALL.replace(self))
    }

    /// The thread is in no call until it returns to one.
    #[inline(never)]
    pub(crate) fn leave() -> Self {
        CURRENT_CALL.replace(Self::NONE)
    }

    /// The thread is in this call again.
    #[inline(never)]
    pub(crate) fn return_to(self) {
        CURRENT_CALL.set(self);
    }
}

/// The call that a thread was in before, which it will be in again.
pub(crate) struct PreviousCall(CurrentCall);

impl Drop for PreviousCall {
    fn drop(&mut self) {
        self.0.return_to();
    }
}
