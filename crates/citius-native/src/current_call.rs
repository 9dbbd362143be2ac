//! The call of a compiled handler that a thread is in, which a goroutine takes with it when it parks.
//!
//! The server enters it and gives its pointers their types.

use std::ffi::c_void;
use std::ptr;

use super::gil;
use super::mistake::Mistake;
use super::thread_state::THREAD_STATE;

/// What a handler was given.
#[derive(Clone, Copy)]
pub struct CurrentCall {
    /// The struct with the request.
    pub request: *const c_void,
    /// The struct for the response.
    pub response: *mut c_void,
    /// Notes a mistake of the handler.
    pub note_mistake: fn(&'static str),
}

impl CurrentCall {
    pub(super) const NONE: Self = Self {
        request: ptr::null(),
        response: ptr::null_mut(),
        note_mistake: |_| (),
    };

    /// Whether there is one.
    #[inline]
    pub fn is_one(self) -> bool {
        !self.response.is_null()
    }

    /// That of this thread.
    pub fn get() -> Self {
        THREAD_STATE.with(|thread| thread.call.get())
    }

    /// Makes it the thread's until what is returned is dropped.
    pub fn enter(self) -> PreviousCall {
        PreviousCall(THREAD_STATE.with(|thread| thread.call.replace(self)))
    }

    /// Makes it the thread's while `act` runs, which stays on this thread and does not unwind: the thread's variable is looked up
    /// once. In goroutines of several threads [`enter`](Self::enter) does it.
    #[inline]
    pub fn hold<R>(self, act: impl FnOnce() -> R) -> R {
        THREAD_STATE.with(|thread| {
            let outer = thread.call.replace(self);
            let result = act();
            thread.call.set(outer);
            result
        })
    }

    /// The thread is in no call until it returns to one.
    #[inline(never)]
    pub fn leave() -> Self {
        THREAD_STATE.with(|thread| thread.call.replace(Self::NONE))
    }

    /// Leaves the call of a goroutine that is about to wait; it is in that call again when it [returns](Self::return_to) to it.
    ///
    /// # Errors
    /// It must not wait now; the thread is still in the call.
    #[inline(never)]
    pub fn leave_to_wait() -> Result<Self, Mistake> {
        THREAD_STATE.with(|thread| {
            if let Some(mistake) = gil::refusal_by(thread.gil_counter.get()) {
                return Err(mistake);
            }
            let call = thread.call.get();
            if call.is_one() {
                thread.call.set(Self::NONE);
            }
            Ok(call)
        })
    }

    /// The thread is in this call again.
    #[inline(never)]
    pub fn return_to(self) {
        THREAD_STATE.with(|thread| thread.call.set(self));
    }
}

/// The call that a thread was in before, which it will be in again.
pub struct PreviousCall(CurrentCall);

impl Drop for PreviousCall {
    fn drop(&mut self) {
        self.0.return_to();
    }
}
