//! Python functions that Rust calls, imported when they are first used, and how panics and callbacks are handled.
//!
//! Late imports keep msgspec and the parsers out of a process that never needs them. Tests: `tests/unit/test_request_values.py`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use citius_reactor::ws::{Close, Code};
use pyo3::exceptions::{PyConnectionResetError, PyOSError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// Calls `act`, which may call code that is not ours; `None` if it panics. An allocation that fails in Python
/// panics where an object cannot be had, and so may anything else: a thread of ours has to outlive that.
pub fn guarded<R>(py: Python<'_>, act: impl FnOnce() -> R) -> Option<R> {
    let outcome = catch_unwind(AssertUnwindSafe(act));
    if outcome.is_err() {
        clear_exception(py);
    }
    outcome.ok()
}

/// Forgets the exception that a panic has left behind: nothing may be called in Python before.
pub fn clear_exception(py: Python<'_>) {
    // `take` resumes a panic that came through Python code as an exception.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(PyErr::take(py))));
}

/// Field values and methods are bytes; each becomes the character of its number (RFC 9110 §5.5).
pub fn latin<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    if bytes.is_ascii()
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return PyString::new(py, text);
    }
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    PyString::new(py, &text)
}

/// An `OSError` with the number of `error`, if it has one; `what` begins the message.
pub fn os_error(what: &str, error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, format!("{what}: {error}"))),
        None => PyOSError::new_err(format!("{what}: {error}")),
    }
}

/// A function of the package, or a class that is called like one.
pub struct Function {
    module: &'static str,
    name: &'static str,
    cell: PyOnceLock<Py<PyAny>>,
}

impl Function {
    /// Its name in its module.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// `name` of `module`, which is imported when the function is first used.
    pub const fn new(module: &'static str, name: &'static str) -> Self {
        Self {
            module,
            name,
            cell: PyOnceLock::new(),
        }
    }

    /// The function itself.
    pub fn get<'py>(&'static self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let function = self.cell.get_or_try_init(py, || {
            let module = PyModule::import(py, PyString::new(py, self.module))?;
            Ok::<_, PyErr>(module.getattr(PyString::new(py, self.name))?.unbind())
        })?;
        Ok(function.bind(py).clone())
    }

    /// What it returns for `argument`.
    pub fn call1<'py>(
        &'static self,
        py: Python<'py>,
        argument: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.get(py)?.call1((argument,))
    }
}

/// A new `citius.errors.ConnectionClosed`; without a close as after the connection was lost.
pub fn connection_closed(py: Python<'_>, close: Option<&Close>) -> PyErr {
    let code = close.map_or(Code::ABNORMAL, |close| close.code);
    let reason = close.map_or("", |close| close.reason.as_str());
    connection_closed_with(py, code.number().into(), reason)
}

/// A new `citius.errors.ConnectionClosed` with these.
pub fn connection_closed_with(py: Python<'_>, code: u32, reason: &str) -> PyErr {
    static TYPE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = TYPE
        .get_or_try_init(py, || {
            let module = PyModule::import(py, intern!(py, "citius.errors"))?;
            Ok::<_, PyErr>(module.getattr(intern!(py, "ConnectionClosed"))?.unbind())
        })
        .and_then(|kind| kind.bind(py).call1((code, reason)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Whether `error` means that the client is gone.
pub fn is_disconnection(py: Python<'_>, error: &PyErr) -> bool {
    let kind = client_disconnected(py).get_type(py);
    error.is_instance(py, kind.as_any())
}

/// Whether `error`, or what it was raised from, means that the client is gone.
pub fn comes_from_disconnection(py: Python<'_>, error: &PyErr) -> bool {
    const MOST: usize = 16;
    let mut next = Some(error.clone_ref(py));
    for _ in 0..MOST {
        let Some(error) = next else { return false };
        if is_disconnection(py, &error) {
            return true;
        }
        next = error.cause(py);
    }
    false
}

/// The error of an application in a thread that reads from a client who is gone, or writes to it.
pub fn connection_reset(py: Python<'_>, text: &'static str) -> PyErr {
    let error = PyConnectionResetError::new_err(text);
    error.set_cause(py, Some(client_disconnected(py)));
    error
}

/// The error of a handler whose response has begun, and whose request's body is longer than it may be.
pub fn content_too_large(py: Python<'_>) -> PyErr {
    let made = PyModule::import(py, intern!(py, "citius.errors"))
        .and_then(|module| module.getattr(intern!(py, "ContentTooLarge")))
        .and_then(|kind| kind.call1(("the body is longer than it may be",)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// A new `citius.errors.ClientDisconnected`.
pub fn client_disconnected(py: Python<'_>) -> PyErr {
    static TYPE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = TYPE
        .get_or_try_init(py, || {
            let module = PyModule::import(py, intern!(py, "citius.errors"))?;
            Ok::<_, PyErr>(module.getattr(intern!(py, "ClientDisconnected"))?.unbind())
        })
        .and_then(|kind| kind.bind(py).call0());
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Calls a callback that was registered, if there is one. Take it out of its lock first.
pub fn call_back(py: Python<'_>, callback: Option<Py<PyAny>>) {
    if let Some(callback) = callback
        && let Err(error) = callback.bind(py).call0()
    {
        error.write_unraisable(py, Some(callback.bind(py)));
    }
}
