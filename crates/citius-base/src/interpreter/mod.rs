//! Python as the runtime of compiled handlers ([`citius_native`]) knows it: the GIL, objects, event loops.
//!
//! [`gil`] is where Python counts who has taken it. Tests: `tests/goroutines/`.

pub mod gil;
pub mod report;

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::time::Instant;

use citius_native::thread::{Parker, Woken};
use citius_native::{Channel, Interpreter, Place};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::go::chan::Chan;
use crate::go::{caller, thread};

/// This Python.
struct Cpython;

/// Tells the runtime which interpreter there is.
pub(crate) fn install() {
    citius_native::install(&Cpython);
}

// SAFETY: `release` gives up the reference that the object had, at once or when this thread has the GIL; memory is from the raw
// allocator of Python, which needs no GIL.
unsafe impl Interpreter for Cpython {
    fn release(&self, object: NonNull<c_void>) {
        if gil::is_attached() {
            // SAFETY: the thread is attached; the reference is one of the runtime's, which gives it up.
            unsafe { ffi::Py_DecRef(object.as_ptr().cast()) };
        } else {
            // SAFETY: an object of the runtime's is one of Python's, and gives up its reference here, when a thread attaches next.
            drop(unsafe { ptr::read((&raw const object).cast::<Py<PyAny>>()) });
        }
    }

    fn share(&self, object: NonNull<c_void>) {
        // SAFETY: the thread is attached, as the runtime has looked, and the object lives.
        unsafe { ffi::Py_IncRef(object.as_ptr().cast()) };
    }

    fn is_attached(&self) -> bool {
        gil::is_attached()
    }

    fn keep_thread_state(&self) {
        gil::keep_thread_state();
    }

    fn release_abandoned(&self) {
        gil::release_abandoned();
    }

    fn log_error(&self, message: &str) {
        report::error(message);
    }

    fn place(&self) -> Option<Place> {
        Python::attach(|py| {
            if caller::running_loop(py).is_ok_and(|running| running.is_some()) {
                return Some(Place::Loop);
            }
            caller::hub(py)
                .is_ok_and(|hub| hub.is_some())
                .then_some(Place::Hub)
        })
    }

    fn wait_attached(&self, parker: &Parker, end: Option<Instant>) -> Woken {
        Python::attach(|py| match thread::wait(py, parker, end) {
            Ok(true) => Woken::Done,
            Ok(false) => Woken::TimedOut,
            Err(error) => {
                error.restore(py);
                Woken::Raised
            }
        })
    }

    fn has_raised(&self) -> bool {
        Python::attach(|py| {
            let raised = py.check_signals().err();
            let has_raised = raised.is_some();
            if let Some(error) = raised {
                error.restore(py);
            }
            has_raised
        })
    }

    fn object_of_channel(&self, channel: Channel) -> *mut c_void {
        Python::attach(|py| match Py::new(py, Chan { channel }) {
            Ok(object) => object.into_ptr().cast(),
            Err(error) => {
                error.restore(py);
                ptr::null_mut()
            }
        })
    }

    fn channel_of_object(&self, object: NonNull<c_void>) -> Option<Channel> {
        Python::attach(|py| {
            // SAFETY: an object, by what the header asks for; the thread is attached, as the runtime has looked.
            let object = unsafe { Bound::from_borrowed_ptr(py, object.as_ptr().cast()) };
            match object.cast::<Chan>() {
                Ok(chan) => Some(chan.get().channel.clone()),
                Err(error) => {
                    PyErr::from(error).restore(py);
                    None
                }
            }
        })
    }

    fn allocate(&self, size: usize) -> *mut c_void {
        // SAFETY: any size may be asked for, without the GIL too.
        unsafe { ffi::PyMem_RawMalloc(size) }
    }

    unsafe fn free(&self, memory: NonNull<c_void>) {
        // SAFETY: the caller's: it is from `allocate`.
        unsafe { ffi::PyMem_RawFree(memory.as_ptr()) };
    }

    fn vital_address(&self) -> usize {
        ffi::Py_IsInitialized as *const () as usize
    }
}
