//! Calls of `async def` functions that handlers of a turn have deferred: made at its end, in the spare task of requests.
//!
//! In: what `citius.web.execution.background` puts in the list of a turn. Out: the first step of each call. Most do not suspend and
//! cost no task. One that was deferred outside of a turn, or where a context variable was set, is not taken: it becomes a task
//! of its own. Tests: `tests/server/test_background.py`.

use citius_base::deferrals::Calls;
use citius_base::fork::end_child;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::task::{LateStep, Progress, Resume, Tasks, is_cancellation};
use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::respond::is_coroutine;

/// Makes the calls that a turn has deferred, after its responses were written.
#[inline]
pub(crate) fn call_deferred(py: Python<'_>, handle: &ReactorHandle, tasks: &mut Tasks) {
    if let Some(calls) = handle.deferred.close() {
        call_all(py, handle, tasks, &calls);
    }
}

#[inline(never)]
fn call_all(py: Python<'_>, handle: &ReactorHandle, tasks: &mut Tasks, calls: &Calls) {
    let list = calls.list.bind(py);
    // Taken from the list one by one, which counts those that wait.
    let _ = list.reverse();
    while let Some(last) = list.len().checked_sub(1) {
        let call = list.get_item(last).and_then(|entry| {
            list.del_item(last)?;
            Ok(entry.cast_into::<PyTuple>()?)
        });
        let made = call.and_then(|call| {
            let (function, request) = (call.get_item(0)?, call.get_item(1)?);
            Call {
                of: calls.of.bind(py),
                function,
                request,
            }
            .make(handle, tasks)
        });
        if let Err(error) = made {
            error.write_unraisable(py, None);
        }
    }
    tasks.leave(py);
}

/// One deferred call.
struct Call<'a, 'py> {
    of: &'a Bound<'py, PyAny>,
    /// To be called without arguments.
    function: Bound<'py, PyAny>,
    request: Bound<'py, PyAny>,
}

impl Call<'_, '_> {
    fn make(self, handle: &ReactorHandle, tasks: &mut Tasks) -> PyResult<()> {
        let py = self.of.py();
        let stepped = tasks.step_apart(
            py,
            || {
                let made = self.function.call0()?;
                if is_coroutine(&made) {
                    return Ok(made);
                }
                // Whatever else can be awaited.
                self.of.call_method1(intern!(py, "_await"), (made,))
            },
            |task| {
                let message = self
                    .of
                    .call_method1(intern!(py, "_suspended"), (task, &self.request))?;
                Ok(Box::new(SuspendedCall {
                    of: self.of.clone().unbind(),
                    function: self.function.clone().unbind(),
                    message: message.unbind(),
                }))
            },
        );
        end_child(py, handle);
        let Some(stepped) = stepped else {
            // The loop has a current task: this call gets its own.
            let alone = (&self.function, &self.request);
            return self
                .of
                .call_method1(intern!(py, "_create"), alone)
                .map(drop);
        };
        match stepped {
            Err(error) if is_cancellation(py, &error) => Ok(()),
            Err(error) if error.is_instance_of::<PyException>(py) => {
                let message = self
                    .request
                    .call_method1(intern!(py, "_message"), ("\0",))?;
                let failed = (&self.function, message, error.into_value(py));
                self.of
                    .call_method1(intern!(py, "_failed"), failed)
                    .map(drop)
            }
            // Ends the loop, as it would out of a task.
            Err(error) => {
                let raised = (error.into_value(py),);
                self.of
                    .call_method1(intern!(py, "_raise"), raised)
                    .map(drop)
            }
            Ok(()) => Ok(()),
        }
    }
}

/// A call whose coroutine waits.
struct SuspendedCall {
    of: Py<PyAny>,
    function: Py<PyAny>,
    /// What the log says of its request.
    message: Py<PyAny>,
}

impl Resume for SuspendedCall {
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress {
        let error = match step.run_apart(py) {
            Ok(Some(awaited)) => return Progress::Suspended(awaited),
            Ok(None) => return Progress::Done(None),
            Err(error) => error,
        };
        let is_expected = !is_cancellation(py, &error) && error.is_instance_of::<PyException>(py);
        if !is_expected {
            return Progress::Done(Some(error));
        }
        let failed = (&self.function, &self.message, error.into_value(py));
        let told = self
            .of
            .call_method1(py, intern!(py, "_failed"), failed)
            .map(drop);
        Progress::Done(told.err())
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.of)?;
        visit.call(&self.function)?;
        visit.call(&self.message)
    }
}
