//! Queries and forms, `application/x-www-form-urlencoded`, as Python pairs. Read by [`citius_forms::urlencoded`].

use citius_forms::urlencoded::{pairs, text};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The pairs of `raw` in their order; what is not UTF-8 becomes U+FFFD.
#[pyfunction]
pub(crate) fn parse_urlencoded<'py>(py: Python<'py>, raw: &[u8]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (name, value) in pairs(raw) {
        list.append((text(name), text(value)))?;
    }
    Ok(list)
}
