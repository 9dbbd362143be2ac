//! Where an operation is called: on the thread of an event loop, in a greenlet of gevent or of a serial handler, or on a plain
//! thread.
//!
//! Neither asyncio nor gevent is imported here: a process that has not imported them has none of their loops. Tests: `tests/go/`.

use std::cell::Cell;

use citius_native::Outcome;
use citius_native::thread::is_serving;
use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::host_loop::ask_here;

use super::awaitable::ChannelAwaitable;
use super::operation::{Operation, ResultShape, error};
use super::{greenlet, thread};

/// Does what is asked: at once, or waiting in the way of the place. Awaitable on a loop's thread.
#[inline]
pub(crate) fn perform(
    py: Python<'_>,
    mut operation: Operation,
    shape: ResultShape,
) -> PyResult<Py<PyAny>> {
    if running_loop(py)?.is_some() {
        if IS_SERIAL.get() {
            return park(py, operation, shape);
        }
        return ChannelAwaitable::make(py, operation, shape);
    }
    if let Some(outcome) = operation.attempt() {
        return operation.shape(py, shape, outcome);
    }
    let outcome = block(py, &mut operation)?;
    operation.shape(py, shape, outcome)
}

fn block(py: Python<'_>, operation: &mut Operation) -> PyResult<Outcome> {
    match hub(py)? {
        Some(hub) => greenlet::block(py, &hub, operation),
        None if is_serving() => Err(error(
            py,
            "ChannelMisuse",
            &format!(
                "{} that has to wait, on the server's own thread, would stop all requests: add blocking=True to \
                 the route, make the handler `async def` (with --loop auto), or serve WSGI with --threads",
                operation.name()
            ),
        )),
        None => {
            Ok(thread::block(py, operation, None)?
                .expect("without a timeout it ends with an outcome"))
        }
    }
}

/// In the greenlet of a serial handler: what has to wait is awaited by the task that carries the greenlet.
fn park(py: Python<'_>, mut operation: Operation, shape: ResultShape) -> PyResult<Py<PyAny>> {
    static PARK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Some(outcome) = operation.attempt() {
        return operation.shape(py, shape, outcome);
    }
    let park = PARK.get_or_try_init(py, || {
        let module = py.import(intern!(py, "citius.serial"))?;
        Ok::<_, PyErr>(module.getattr(intern!(py, "park"))?.unbind())
    })?;
    if shape != ResultShape::Item {
        return park.call1(py, (ChannelAwaitable::make(py, operation, shape)?,));
    }
    // A `StopIteration` would be the result of what is awaited, not its error.
    let awaitable = ChannelAwaitable::make(py, operation, ResultShape::AsyncItem)?;
    park.call1(py, (awaitable,)).map_err(|raised| {
        if raised.is_instance_of::<PyStopAsyncIteration>(py) {
            PyStopIteration::new_err(())
        } else {
            raised
        }
    })
}

thread_local! {
    /// This thread is within the greenlet of a serial handler.
    static IS_SERIAL: Cell<bool> = const { Cell::new(false) };
}

/// Whether code may wait here by switching to the task that carries its greenlet.
pub(crate) fn is_serial() -> bool {
    IS_SERIAL.get()
}

/// Says whether this thread is within the greenlet of a serial handler; `citius.serial` calls it around each switch.
#[pyfunction]
#[pyo3(name = "_set_serial")]
pub(crate) fn set_serial(is_serial: bool) {
    IS_SERIAL.set(is_serial);
}

/// Whether waiting here would stop a server: this thread serves, and there is no greenlet to switch to.
pub(crate) fn would_stop_server(py: Python<'_>) -> PyResult<bool> {
    Ok(is_serving() && hub(py)?.is_none())
}

/// `"serial"`, `"loop"`, `"hub"` or `"thread"`: what `go` has to start.
#[pyfunction]
#[pyo3(name = "_whereabouts")]
pub(crate) fn whereabouts(py: Python<'_>) -> PyResult<&'static str> {
    if IS_SERIAL.get() {
        return Ok("serial");
    }
    if running_loop(py)?.is_some() {
        return Ok("loop");
    }
    Ok(if hub(py)?.is_some() { "hub" } else { "thread" })
}

/// The loop that runs on this thread.
#[inline]
pub fn running_loop(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static FUNCTION: LazyFunction = LazyFunction::new("_asyncio", "_get_running_loop");
    let look = || {
        let function = FUNCTION.find(py)?;
        let running = function.map(|function| function.call0()).transpose()?;
        Ok::<_, PyErr>(running.filter(|running| !running.is_none()))
    };
    match look()? {
        None if ask_here(py)? => look(),
        running => Ok(running),
    }
}

/// gevent's hub of this thread.
pub(crate) fn hub(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static FUNCTION: LazyFunction = LazyFunction::new("gevent._hub_local", "get_hub_if_exists");
    let Some(function) = FUNCTION.find(py)? else {
        return Ok(None);
    };
    let hub = function.call0()?;
    Ok((!hub.is_none()).then_some(hub))
}

/// A function of a module that the application may have imported.
struct LazyFunction {
    module: &'static str,
    name: &'static str,
    function: PyOnceLock<Py<PyAny>>,
}

impl LazyFunction {
    const fn new(module: &'static str, name: &'static str) -> Self {
        Self {
            module,
            name,
            function: PyOnceLock::new(),
        }
    }

    #[inline]
    fn find<'py>(&'static self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(function) = self.function.get(py) {
            return Ok(Some(function.bind(py).clone()));
        }
        self.look(py)
    }

    fn look<'py>(&'static self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
        let modules = MODULES.get_or_try_init(py, || {
            let modules = py.import("sys")?.getattr(intern!(py, "modules"))?;
            Ok::<_, PyErr>(modules.cast_into::<PyDict>()?.unbind())
        })?;
        let Some(module) = modules.bind(py).get_item(self.module)? else {
            return Ok(None);
        };
        // A module that is being imported has it in a moment.
        let Some(function) = module.getattr_opt(PyString::new(py, self.name))? else {
            return Ok(None);
        };
        let _ = self.function.set(py, function.clone().unbind());
        Ok(Some(function))
    }
}
