//! The exceptions of clients as codes, reasons and texts of the header.

use std::ffi::c_int;

use pyo3::exceptions::{
    PyBaseException, PyConnectionError, PyOverflowError, PyTypeError, PyValueError,
};
use pyo3::intern;
use pyo3::prelude::*;

use citius_native::codes::{FAILED, MISUSE, UNAVAILABLE, UNREACHABLE};
use citius_native::net::error::{NetError, Reason};

/// What a call has failed with.
#[cold]
pub(super) fn failure_of(py: Python<'_>, error: &PyErr) -> NetError {
    let value = error.value(py);
    let text = value.str().map_or_else(
        |_| "a failure without a text".into(),
        |text| text.to_string(),
    );
    let (code, reason) = class_of(error, value);
    let attribute = |name: &Bound<'_, pyo3::types::PyString>| {
        let found = value.getattr_opt(name).ok().flatten();
        found.and_then(|found| found.extract::<String>().ok())
    };
    if let Some(sqlstate) = attribute(intern!(py, "sqlstate")) {
        let message = attribute(intern!(py, "message")).unwrap_or(text);
        return NetError {
            code: FAILED,
            reason: Reason::Server,
            text: format!("{sqlstate} {message}"),
        };
    }
    if attribute(intern!(py, "code")).is_some() {
        let reason = Reason::Server;
        let code = if code == UNAVAILABLE { code } else { FAILED };
        return NetError { code, reason, text };
    }
    NetError { code, reason, text }
}

fn class_of(error: &PyErr, value: &Bound<'_, PyBaseException>) -> (c_int, Reason) {
    let py = value.py();
    let name = value.get_type().name().map(|name| name.to_string());
    if matches!(name.as_deref(), Ok("PoolClosed" | "ClientClosed")) {
        return (UNREACHABLE, Reason::NotOpen);
    }
    let is_unavailable = py
        .import(intern!(py, "citius.errors"))
        .and_then(|errors| errors.getattr(intern!(py, "ServiceUnavailable")))
        .is_ok_and(|unavailable| value.is_instance(&unavailable).unwrap_or(false));
    if is_unavailable {
        (UNAVAILABLE, Reason::Overloaded)
    } else if error.is_instance_of::<PyConnectionError>(py) {
        (UNREACHABLE, Reason::Reset)
    } else if error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyOverflowError>(py)
    {
        (MISUSE, Reason::Misuse)
    } else if matches!(name.as_deref(), Ok("RuntimeError")) {
        // The event loop of the client is closed.
        (UNREACHABLE, Reason::NotOpen)
    } else {
        (UNREACHABLE, Reason::Protocol)
    }
}
