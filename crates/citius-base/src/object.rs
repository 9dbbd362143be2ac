//! Python's objects as the runtime holds them.

use std::ptr::{self, NonNull};

use citius_native::{Object, Value};
use pyo3::prelude::*;

/// The object for the runtime.
#[inline]
pub(crate) fn object(object: Py<PyAny>) -> Object {
    let pointer = NonNull::new(object.into_ptr()).expect("an object has an address");
    // SAFETY: the reference was `object`'s, which is gone; Python is the installed interpreter.
    unsafe { Object::from_raw(pointer.cast()) }
}

/// The object from the runtime.
#[inline]
pub(crate) fn from_object(py: Python<'_>, object: Object) -> Py<PyAny> {
    let pointer = object.into_raw().as_ptr();
    // SAFETY: every object of the runtime's is one of Python's, and the reference is given to this function.
    unsafe { Bound::from_owned_ptr(py, pointer.cast()) }.unbind()
}

/// The object while the runtime has it.
#[inline]
pub(crate) fn borrowed(object: &Object) -> &Py<PyAny> {
    // SAFETY: both are nothing but the address of an object of Python's (`repr(transparent)`) and own a reference to it.
    unsafe { &*ptr::from_ref(object).cast::<Py<PyAny>>() }
}

/// An object as a value of a channel.
#[inline]
pub fn value(value: Py<PyAny>) -> Value {
    Value::Object(object(value))
}

const _: () = assert!(size_of::<Py<PyAny>>() == size_of::<Object>());
