//! What the runtime asks of the interpreter whose server it is part of.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::time::Instant;

use crate::Channel;
use crate::thread::{Parker, Woken};

/// Why a thread must not block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It runs an event loop.
    Loop,
    /// It runs gevent's hub.
    Hub,
}

/// The interpreter.
///
/// # Safety
/// `release` and `share` count references to the objects whose addresses an [`Object`](crate::Object) was made of, and may be called
/// on any thread. `allocate` returns memory for so many bytes that `free` takes, or null.
pub unsafe trait Interpreter: Sync {
    /// A reference to an object is given up.
    fn release(&self, object: NonNull<c_void>);

    /// There is one more reference to an object. The thread is attached.
    fn share(&self, object: NonNull<c_void>);

    /// Whether this thread has the interpreter's lock; without one, whether it is attached.
    fn is_attached(&self) -> bool;

    /// Gives a thread that the interpreter does not know a state for good.
    fn keep_thread_state(&self);

    /// Takes the lock from a thread of the pool whose goroutine has ended with it.
    fn release_abandoned(&self);

    /// Logs an error that concerns no request.
    fn log_error(&self, message: &str);

    /// What this thread runs that must not be blocked, if anything.
    fn place(&self) -> Option<Place>;

    /// Waits on this thread, which is attached, and lets others have the lock meanwhile.
    fn wait_attached(&self, parker: &Parker, end: Option<Instant>) -> Woken;

    /// Runs what signals have asked for on this thread; whether it has raised, in which case the exception is set.
    fn has_raised(&self) -> bool;

    /// An object for a channel, or null and an exception that is set. The thread is attached.
    fn object_of_channel(&self, channel: Channel) -> *mut c_void;

    /// The channel of an object, or `None` and an exception that is set. The thread is attached.
    fn channel_of_object(&self, object: NonNull<c_void>) -> Option<Channel>;

    /// Memory that native code gives back with `citius_free`.
    fn allocate(&self, size: usize) -> *mut c_void;

    /// Frees what was allocated.
    ///
    /// # Safety
    /// `memory` is from `allocate`, and is not used again.
    unsafe fn free(&self, memory: NonNull<c_void>);

    /// The address of one of its functions. Code near it is not cut off by a stack overflow: it may hold locks.
    fn vital_address(&self) -> usize;
}

static INTERPRETER: OnceLock<&'static dyn Interpreter> = OnceLock::new();

/// Says which interpreter there is. The first one stays.
pub fn install(interpreter: &'static dyn Interpreter) {
    let _ = INTERPRETER.set(interpreter);
}

#[inline]
pub(crate) fn interpreter() -> &'static dyn Interpreter {
    INTERPRETER.get().copied().unwrap_or(&Absent)
}

/// There is none, as in the tests of this crate: nothing is attached, and there are no objects.
struct Absent;

// SAFETY: there are no objects, so that none are counted; there is no memory, so that none is freed.
unsafe impl Interpreter for Absent {
    fn release(&self, _object: NonNull<c_void>) {}

    fn share(&self, _object: NonNull<c_void>) {}

    fn is_attached(&self) -> bool {
        false
    }

    fn keep_thread_state(&self) {}

    fn release_abandoned(&self) {}

    fn log_error(&self, _message: &str) {}

    fn place(&self) -> Option<Place> {
        None
    }

    fn wait_attached(&self, _parker: &Parker, _end: Option<Instant>) -> Woken {
        Woken::TimedOut
    }

    fn has_raised(&self) -> bool {
        false
    }

    fn object_of_channel(&self, _channel: Channel) -> *mut c_void {
        ptr::null_mut()
    }

    fn channel_of_object(&self, _object: NonNull<c_void>) -> Option<Channel> {
        None
    }

    fn allocate(&self, _size: usize) -> *mut c_void {
        ptr::null_mut()
    }

    unsafe fn free(&self, _memory: NonNull<c_void>) {}

    fn vital_address(&self) -> usize {
        0
    }
}

/// Code of the interpreter is not cut off by a stack overflow: it may hold its locks.
pub(crate) fn protect() {
    use citius_goroutine::{Protection, trap};

    let address = interpreter().vital_address();
    if address != 0 {
        trap::protect(address, Protection::Vital);
    }
}
