//! Whether anybody else knows or has changed an object of ours: only if nobody has may it serve another request.
//!
//! What is said of references can only be spoilt towards "yes" by another thread: whoever is to make a new one needs
//! one first, and there is none but ours.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
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
/// It is another one whenever a weak reference has been added: the interpreter puts new ones in front, and behind the
/// first one only if that is a plain `weakref.ref` or a proxy, which then had been put in front itself.
#[inline]
pub(crate) fn first_weak_reference<T>(_py: Python<'_>, object: &Py<T>) -> usize {
    let object = object.as_ptr();
    // SAFETY: a live object has a type.
    let kind = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: and that lives as long.
    let offset = unsafe { (*kind).tp_weaklistoffset };
    let Some(offset) = usize::try_from(offset).ok().filter(|&offset| offset > 0) else {
        return 0;
    };
    // SAFETY: that is within every object of this type.
    let list = unsafe { object.byte_add(offset) };
    // SAFETY: the pointer to the first weak reference lies there, as long as the object lives.
    let list = unsafe { AtomicPtr::from_ptr(list.cast::<*mut c_void>()) };
    list.load(Ordering::Relaxed).addr()
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
