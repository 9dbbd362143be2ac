//! What a task is told when the future that it waits for is done.
//!
//! A task of asyncio takes the result of asyncio's own futures without a method call, so it gets one that is finished, in place
//! of ours. Tests: `tests/eager/`, `tests/go/`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict};

/// Calls the callback of a done `waiter`. asyncio's tasks are shown a future of asyncio's own.
pub(crate) fn call_done_callback(
    callback: &Bound<'_, PyAny>,
    waiter: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if callback.is_exact_instance_of::<PyCFunction>() {
        callback.call1((finished_future(callback.py())?,))?;
    } else {
        callback.call1((waiter,))?;
    }
    Ok(())
}

/// The finished future that a woken task looks at. It is one of asyncio's own, for of those a task takes the result
/// without looking a method up and calling it, which was a tenth of what a message of a WebSocket cost.
pub(super) fn finished_future(py: Python<'_>) -> PyResult<&'static Py<PyAny>> {
    static FINISHED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FINISHED.get_or_try_init(py, || {
        let keywords = PyDict::new(py);
        keywords.set_item("loop", Py::new(py, NoLoop)?)?;
        let future = py
            .import("asyncio")?
            .getattr("Future")?
            .call((), Some(&keywords))?;
        future.call_method1("set_result", (py.None(),))?;
        Ok(future.unbind())
    })
}

/// The loop of a future that never waits.
#[pyclass(frozen, module = "citius._core", name = "_NoLoop")]
pub(super) struct NoLoop;

#[pymethods]
impl NoLoop {
    #[expect(clippy::unused_self, reason = "asyncio calls it as a method")]
    fn get_debug(&self) -> bool {
        false
    }
}
