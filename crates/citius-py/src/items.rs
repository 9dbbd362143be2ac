//! Iteration over a dictionary without a Python iterator object.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyDict;

/// Hands keys and values to `act` until it says `false`; whether it never did. `act` must not run Python code: what
/// it is handed lives as long as the dictionary is not changed.
#[inline]
pub(crate) fn for_each_item<'py>(
    dict: &Bound<'py, PyDict>,
    mut act: impl FnMut(Borrowed<'_, 'py, PyAny>, Borrowed<'_, 'py, PyAny>) -> bool,
) -> bool {
    let py = dict.py();
    with_critical_section(dict, || {
        let mut place = 0;
        let (mut key, mut value) = (ptr::null_mut(), ptr::null_mut());
        // By count: the call that finds the end costs as much as those that find an item.
        (0..dict.len()).all(|_| {
            // SAFETY: a live dictionary, which is not changed meanwhile, and three places of ours.
            let found = unsafe {
                ffi::PyDict_Next(dict.as_ptr(), &raw mut place, &raw mut key, &raw mut value)
            };
            if found == 0 {
                return true;
            }
            // SAFETY: the dictionary keeps its key alive.
            let key = unsafe { Borrowed::from_ptr(py, key) };
            // SAFETY: and its value.
            let value = unsafe { Borrowed::from_ptr(py, value) };
            act(key, value)
        })
    })
}
