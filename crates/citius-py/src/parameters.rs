//! Field values with parameters: `citius_http::parameters` as a Python tuple.

use citius_http::parameters;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The part of `value` before its first `;` and its parameters by name, both in lower case; of several parameters
/// with one name the first.
#[pyfunction]
pub(crate) fn parse_parameters<'py>(
    py: Python<'py>,
    value: &str,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let (head, parameters) = parameters::split(value);
    let by_name = PyDict::new(py);
    for (name, value) in parameters {
        by_name.set_default(name.to_ascii_lowercase(), value)?;
    }
    Ok((head.to_ascii_lowercase(), by_name))
}

/// Whether a client whose `Accept` is this prefers MessagePack to JSON, as responses of values have it.
#[pyfunction]
pub(crate) fn prefers_msgpack(accept: &str) -> bool {
    crate::negotiate::prefers_msgpack(accept.as_bytes())
}
