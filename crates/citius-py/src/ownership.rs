//! Whether anybody else knows an object of ours: only then may it serve another request.
//!
//! Both answers are hints that another thread can only spoil towards "yes": whoever is to make a new reference
//! needs one first, and there is none but ours.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

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
