//! What Rust borrows from Python: functions of `citius.web._support`, imported when first used.
//!
//! Late imports keep msgspec and the parsers out of a process that never needs them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use citius_reactor::ws::{Close, Code};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// Calls `act`, which may call code that is not ours; `None` if it panics. An allocation that fails in Python
/// panics where an object cannot be had, and so may anything else: a thread of ours has to outlive that.
pub(crate) fn guarded<R>(py: Python<'_>, act: impl FnOnce() -> R) -> Option<R> {
    let outcome = catch_unwind(AssertUnwindSafe(act));
    if outcome.is_err() {
        clear_exception(py);
    }
    outcome.ok()
}

/// Forgets the exception that a panic has left behind: nothing may be called in Python before.
pub(crate) fn clear_exception(py: Python<'_>) {
    // `take` resumes a panic that came through Python code as an exception.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(PyErr::take(py))));
}

/// A function of `citius.web._support`.
pub(crate) struct Function {
    name: &'static str,
    cell: PyOnceLock<Py<PyAny>>,
}

impl Function {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            cell: PyOnceLock::new(),
        }
    }

    pub(crate) fn get<'py>(&'static self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let function = self.cell.get_or_try_init(py, || {
            let module = PyModule::import(py, intern!(py, "citius.web._support"))?;
            Ok::<_, PyErr>(module.getattr(PyString::new(py, self.name))?.unbind())
        })?;
        Ok(function.bind(py).clone())
    }

    pub(crate) fn call1<'py>(
        &'static self,
        py: Python<'py>,
        argument: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.get(py)?.call1((argument,))
    }
}

pub(crate) static ENCODE_JSON: Function = Function::new("encode_json");
pub(crate) static ENCODE_MSGPACK: Function = Function::new("encode_msgpack");
pub(crate) static DECODE_JSON: Function = Function::new("decode_json");
pub(crate) static DECODE_MSGPACK: Function = Function::new("decode_msgpack");
pub(crate) static REFUSE_STATUS: Function = Function::new("refuse_status");
pub(crate) static QUERY: Function = Function::new("query");
pub(crate) static COOKIES: Function = Function::new("cookies");
pub(crate) static FORM: Function = Function::new("form");
pub(crate) static HEADERS: Function = Function::new("headers");
pub(crate) static MUTABLE_HEADERS: Function = Function::new("mutable_headers");
pub(crate) static STATE: Function = Function::new("state");
pub(crate) static BODY_STREAM: Function = Function::new("body_stream");
pub(crate) static READ: Function = Function::new("read");
pub(crate) static PUMP_ASYNC: Function = Function::new("pump_async");
pub(crate) static RPC_ERROR: Function = Function::new("rpc_error");
pub(crate) static DESCRIBE: Function = Function::new("describe");
pub(crate) static DESCRIBE_APPLICATION: Function = Function::new("describe_application");
pub(crate) static LOG_EXCEPTION: Function = Function::new("log_exception");
pub(crate) static LOG_FAILURE: Function = Function::new("log_failure");
pub(crate) static PUMP_BLOCKING: Function = Function::new("pump_blocking");

/// A new `citius.errors.ConnectionClosed`; without a close as after the connection was lost.
pub(crate) fn connection_closed(py: Python<'_>, close: Option<&Close>) -> PyErr {
    static TYPE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let code = close.map_or(Code::ABNORMAL, |close| close.code);
    let reason = close.map_or("", |close| close.reason.as_str());
    let made = TYPE
        .get_or_try_init(py, || {
            let module = PyModule::import(py, intern!(py, "citius.errors"))?;
            Ok::<_, PyErr>(module.getattr(intern!(py, "ConnectionClosed"))?.unbind())
        })
        .and_then(|kind| kind.bind(py).call1((code.number(), reason)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Whether `error` says that the client is gone.
pub(crate) fn is_disconnection(py: Python<'_>, error: &PyErr) -> bool {
    let kind = client_disconnected(py).get_type(py);
    error.is_instance(py, kind.as_any())
}

/// A new `citius.errors.ClientDisconnected`.
pub(crate) fn client_disconnected(py: Python<'_>) -> PyErr {
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
