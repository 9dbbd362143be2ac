//! How far a call of a client of a database is, from its making to its result: `PgCall` and `RedisCall` alike.
//!
//! What of it is not Python's, the stages and their lock, is in [`citius_chan::Progress`]; here is what waits for a result, and what
//! an exception becomes. Tests: `tests/pg/test_pool.py`, `tests/redis/test_client.py`.

use std::ops::Deref;
use std::sync::Arc;

use citius_chan::Looked;
use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::client_metrics::Operation;
use crate::serial::Signal;
use crate::waiter::Waiter;

/// A call's place between its making and its end.
#[derive(Default)]
pub struct Progress(citius_chan::Progress<PyResult<Py<PyAny>>, Sleeper, Operation>);

/// The stage of a call.
pub type Stage = citius_chan::Stage<PyResult<Py<PyAny>>, Sleeper, Operation>;
/// A call that was started.
pub type Underway = citius_chan::Underway<Sleeper, Operation>;

/// What waits for a result.
pub enum Sleeper {
    /// A task of the client's own event loop.
    Task(Py<Waiter>),
    /// A task of another thread's event loop.
    Elsewhere(Py<Waiter>),
    /// A thread, a greenlet or a goroutine.
    Serial(Arc<Signal>),
    /// Something else, such as a response to which content is passed on.
    Other(Arc<dyn Wakes>),
}

/// What is woken otherwise.
pub trait Wakes: Send + Sync {
    /// There is a result.
    fn wake(self: Arc<Self>, py: Python<'_>);
}

impl Sleeper {
    /// One that a thread, a greenlet or a goroutine waits by, and what is set when it is woken.
    pub fn serial() -> (Self, Arc<Signal>) {
        let signal = Signal::new();
        (Self::Serial(Arc::clone(&signal)), signal)
    }

    /// `may_step`: a task may be stepped here and now.
    pub fn wake(self, py: Python<'_>, may_step: bool) {
        match self {
            Self::Task(waiter) => Waiter::wake(waiter.bind(py), may_step),
            Self::Elsewhere(waiter) => Waiter::wake_from_elsewhere(waiter.bind(py)),
            Self::Serial(signal) => signal.set(py),
            Self::Other(other) => other.wake(py),
        }
    }
}

/// An exception that is raised where a call is awaited: `StopIteration` of a codec or a class would be the call's result there,
/// `StopAsyncIteration` the end of a loop.
fn as_error(error: PyErr) -> PyErr {
    Python::attach(|py| {
        let is_end = error.is_instance_of::<PyStopIteration>(py)
            || error.is_instance_of::<PyStopAsyncIteration>(py);
        if !is_end {
            return error;
        }
        let name = error
            .get_type(py)
            .name()
            .map_or_else(|_| "an exception".into(), |name| name.to_string());
        let raised =
            PyRuntimeError::new_err(format!("a codec, a class or a parameter has raised {name}"));
        raised.set_cause(py, Some(error));
        raised
    })
}

impl Deref for Progress {
    type Target = citius_chan::Progress<PyResult<Py<PyAny>>, Sleeper, Operation>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Progress {
    /// Keeps the result, has `measure` count it, and returns what is to be woken.
    pub fn finish(
        &self,
        result: PyResult<Py<PyAny>>,
        measure: impl FnOnce(Operation, Option<&PyErr>),
    ) -> Option<Sleeper> {
        self.0
            .finish(result.map_err(as_error), |operation, result| {
                measure(operation, result.as_ref().err());
            })
    }

    /// The result, or what `sleep` has made to wait for it; `name` is what messages call it.
    pub fn look<T>(
        &self,
        name: &str,
        start: impl FnMut() -> PyResult<()>,
        sleep: impl FnMut() -> PyResult<(Sleeper, T)>,
    ) -> PyResult<Result<Py<PyAny>, T>> {
        match self.0.look(start, sleep)? {
            Looked::Result(result) => result.map(Ok),
            Looked::Waits(token) => Ok(Err(token)),
            Looked::Over => Err(PyRuntimeError::new_err(format!(
                "this {name} has been awaited already; call the method again for another one"
            ))),
        }
    }

    /// Visits the Python objects in it.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let seen = self.0.peek(|stage| match stage {
            Stage::Started(Underway {
                sleeper: Some(Sleeper::Task(waiter) | Sleeper::Elsewhere(waiter)),
                ..
            }) => visit.call(waiter),
            Stage::Done(Ok(value)) => visit.call(value),
            _ => Ok(()),
        });
        // A lock that is taken means that the call is in use: no garbage.
        seen.unwrap_or(Ok(()))
    }

    /// Lets go of all Python objects.
    pub fn clear(&self) {
        drop(self.0.replace(Stage::New));
    }
}
