//! Whether anybody else knows or has changed an object of ours: only if nobody has may it serve another request.
//!
//! What is said of references can only be spoilt towards "yes" by another thread: whoever is to make a new one needs
//! one first, and there is none but ours.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// How many references there are to an object.
#[inline]
pub(crate) fn references<T>(_py: Python<'_>, object: &Py<T>) -> ffi::Py_ssize_t {
    // SAFETY: `object` is a live reference, and the thread is attached, as `_py` says.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

/// The address of the first of the weak references to an object; 0 if there are none, or none are possible.
///
/// Whether it is another one when a weak reference has been added, [`shows_new_weak_references`] says.
#[inline]
pub(crate) fn first_weak_reference<T>(py: Python<'_>, object: &Py<T>) -> usize {
    weak_references(py, object).addr()
}

/// Whether each weak reference that is added from now on becomes the first one.
///
/// The interpreter puts them in front, but those with a callback behind a plain `weakref.ref` or proxy.
pub(crate) fn shows_new_weak_references<T>(py: Python<'_>, object: &Py<T>) -> bool {
    let first = weak_references(py, object);
    if first.is_null() {
        return true;
    }
    // Without a GIL it may be going just now.
    if cfg!(Py_GIL_DISABLED) {
        return false;
    }
    // SAFETY: what is in the list is alive, and the GIL is held, so that it stays so.
    let first = unsafe { Bound::from_borrowed_ptr(py, first.cast()) };
    let callback = first.getattr(intern!(py, "__callback__"));
    callback.is_ok_and(|callback| !callback.is_none())
}

/// The list of the weak references to an object; null if there are none, or none are possible.
#[inline]
fn weak_references<T>(_py: Python<'_>, object: &Py<T>) -> *mut c_void {
    let object = object.as_ptr();
    // SAFETY: a live object has a type.
    let kind = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: and that lives as long.
    let offset = unsafe { (*kind).tp_weaklistoffset };
    if offset == 0 {
        return ptr::null_mut();
    }
    // SAFETY: that is within every object of this type, or just before it where the interpreter manages them (3.13).
    let list = unsafe { object.byte_offset(offset) };
    // SAFETY: the pointer to the first weak reference lies there, as long as the object lives.
    let list = unsafe { AtomicPtr::from_ptr(list.cast::<*mut c_void>()) };
    list.load(Ordering::Relaxed)
}

/// The number that every change of the contents of `dict` makes another, and that no other content of any dict has had
/// (PEP 509); `None` where Python counts no longer, or several threads may at once.
#[allow(
    deprecated,
    clippy::unnecessary_wraps,
    reason = "it is there until Python 3.13; where it has gone nothing is lent"
)]
#[inline]
pub(crate) fn version(dict: &Bound<'_, PyDict>) -> Option<u64> {
    #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
    {
        let dict = dict.as_ptr().cast::<ffi::PyDictObject>();
        // SAFETY: a dict is a `PyDictObject`, and the GIL is held, so that nobody changes it meanwhile.
        Some(unsafe { (*dict).ma_version_tag })
    }
    #[cfg(any(Py_3_14, Py_GIL_DISABLED))]
    {
        let _ = dict;
        None
    }
}
