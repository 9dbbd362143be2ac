//! Exceptions of `citius.pg.errors`, by its functions.

use citius_pg::{Fault, ServerError};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub(crate) fn errors(py: Python<'_>, function: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("citius.pg.errors")?.getattr(function)?.unbind())
}

/// An exception of `citius.pg.errors`, by one of its functions.
pub(crate) fn error_of(
    py: Python<'_>,
    function: &str,
    argument: impl for<'py> IntoPyObject<'py>,
) -> PyErr {
    let argument = argument.into_py_any(py);
    match argument.and_then(|argument| errors(py, function)?.call1(py, (argument,))) {
        Ok(error) => PyErr::from_value(error.into_bound(py)),
        Err(error) => error,
    }
}

pub(crate) fn protocol_error(py: Python<'_>, fault: &Fault) -> PyErr {
    error_of(py, "protocol_error", fault.to_string())
}

pub(crate) fn server_error(py: Python<'_>, error: &ServerError) -> PyErr {
    let fields = || -> PyResult<Py<PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("severity", &error.severity)?;
        fields.set_item("sqlstate", &error.code)?;
        fields.set_item("message", &error.message)?;
        fields.set_item("detail", &error.detail)?;
        fields.set_item("hint", &error.hint)?;
        fields.set_item("position", error.position)?;
        fields.set_item("schema", &error.schema)?;
        fields.set_item("table", &error.table)?;
        fields.set_item("column", &error.column)?;
        fields.set_item("constraint", &error.constraint)?;
        Ok(fields.unbind())
    };
    match fields() {
        Ok(fields) => error_of(py, "server_error", fields),
        Err(error) => error,
    }
}
