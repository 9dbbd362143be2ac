//! A child that a handler forks ends when its handler returns, because it holds the same sockets as the worker.
//!
//! In: the process that made a reactor. Out: the end of every other process that comes back from application code. The child
//! sends nothing, closes or unlinks no socket, and calls no hook. Children that code in C has forked, without Python's hooks,
//! count too (`descriptor/unix/forks.rs`). Tests: `tests/server/test_forks.py`.

use pyo3::exceptions::PySystemExit;
use pyo3::intern;
use pyo3::prelude::*;

#[cfg(target_os = "linux")]
use crate::descriptor::Fd;
#[cfg(unix)]
use crate::descriptor::unix::forks;
use crate::logging::LEVEL_ERROR;
use crate::process::Process;
use crate::reactor_handle::ReactorHandle;

/// Counts forks from now on.
#[cfg(unix)]
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    forks::prepare()?;
    #[cfg(target_os = "linux")]
    {
        module.add_function(wrap_pyfunction!(keep_from_children, module)?)?;
        crate::descriptor::unix::lifeline::register(module)?;
    }
    let _ = module;
    Ok(())
}

#[cfg(not(unix))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "where there are forks it can fail"
)]
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}

/// Have children of this process, forked by Python or by code in C, close these sockets with all their copies.
#[cfg(target_os = "linux")]
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments of Python are owned"
)]
fn keep_from_children(sockets: Vec<Fd>) -> PyResult<()> {
    Ok(forks::keep(&sockets)?)
}

/// Ends the process if it is not the one that `handle` was made in. To be called when application code comes back.
#[inline]
pub fn end_child(py: Python<'_>, handle: &ReactorHandle) {
    if handle.process != Process::current() {
        end(py, handle, None);
    }
}

/// Ends a forked process in which application code has raised `error`; a `SystemExit` has the exit code.
#[inline]
pub fn end_child_with(py: Python<'_>, handle: &ReactorHandle, error: &PyErr) {
    if handle.process != Process::current() {
        end(py, handle, Some(error));
    }
}

#[cold]
fn end(py: Python<'_>, handle: &ReactorHandle, error: Option<&PyErr>) -> ! {
    let exit = error.filter(|error| error.is_instance_of::<PySystemExit>(py));
    let code = exit.map_or(1, |error| exit_code(py, error));
    if exit.is_none() {
        let what = error.map_or_else(|| "returned".to_owned(), |error| format!("raised {error}"));
        let message = format!(
            "a forked child ended (exit code 1), because it cannot serve: its handler {what}; end a child with \
             os._exit() or sys.exit()"
        );
        handle.log(py, LEVEL_ERROR, &message);
    }
    for name in [intern!(py, "stdout"), intern!(py, "stderr")] {
        let flushed = py
            .import("sys")
            .and_then(|sys| sys.getattr(name)?.call_method0("flush"));
        // There may be none, or one that is closed.
        drop(flushed);
    }
    let exited = py
        .import("os")
        .and_then(|os| os.call_method1("_exit", (code,)));
    drop(exited);
    std::process::abort();
}

/// The code that Python ends with: a number as it is, nothing as 0, anything else as 1.
fn exit_code(py: Python<'_>, error: &PyErr) -> i32 {
    match error.value(py).getattr(intern!(py, "code")) {
        Ok(code) if code.is_none() => 0,
        Ok(code) => code.extract().unwrap_or(1),
        Err(_) => 1,
    }
}
