//! Exceptions of `citius.redis.errors`, by its functions.

use citius_redis::Fault;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

/// An exception of `citius.redis.errors`, by one of its functions.
#[cold]
pub(crate) fn error_of(
    py: Python<'_>,
    function: &str,
    argument: impl for<'py> IntoPyObject<'py>,
) -> PyErr {
    let made = argument.into_py_any(py).and_then(|argument| {
        let module = py.import("citius.redis.errors")?;
        module.getattr(function)?.call1((argument,))
    });
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The error that the server has sent in place of a value.
#[cold]
pub(crate) fn server_error(py: Python<'_>, text: &[u8]) -> PyErr {
    error_of(py, "server_error", String::from_utf8_lossy(text).as_ref())
}

/// The error of a command that no node of a cluster has served in time: what the last one has said.
#[cold]
pub(crate) fn not_served(py: Python<'_>, text: &[u8]) -> PyErr {
    error_of(py, "not_served", String::from_utf8_lossy(text).as_ref())
}

#[cold]
pub(crate) fn fault_error(py: Python<'_>, fault: &Fault) -> PyErr {
    match fault {
        Fault::Refused(text) => error_of(py, "login_refused", text.as_str()),
        fault => error_of(py, "protocol_error", fault.to_string()),
    }
}
