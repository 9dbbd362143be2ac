//! What native code has done wrong where no request is concerned: a line of the logger `citius.go`.

use pyo3::intern;
use pyo3::prelude::*;

/// Logs an error. To be called on a thread's own stack.
#[cold]
pub(crate) fn error(message: &str) {
    Python::attach(|py| {
        // There may be an exception of the code that was running.
        let raised = PyErr::take(py);
        let logged = py
            .import(intern!(py, "logging"))
            .and_then(|logging| logging.call_method1(intern!(py, "getLogger"), ("citius.go",)))
            .and_then(|logger| logger.call_method1(intern!(py, "error"), (message,)));
        if let Err(error) = logged {
            error.write_unraisable(py, None);
        }
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}

/// Logs an exception that native code has left behind in its thread, with its traceback. `false`: there is none.
pub fn exception(py: Python<'_>, message: &str) -> bool {
    let Some(raised) = PyErr::take(py) else {
        return false;
    };
    let logged = py.import(intern!(py, "citius.go")).and_then(|module| {
        module.call_method1(intern!(py, "_report"), (message, raised.value(py)))
    });
    if let Err(error) = logged {
        error.write_unraisable(py, None);
    }
    true
}
