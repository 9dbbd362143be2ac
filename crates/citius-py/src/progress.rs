//! How far a call of a client of a database is, from its making to its result: `PgCall` and `RedisCall` alike.
//!
//! In: that it is started, what waits for it, its result. Out: the result, once, and what is to be woken. The lock is never
//! held while Python code can run. Tests: `tests/pg/test_pool.py`, `tests/redis/test_client.py`.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::client_metrics::Operation;
use crate::serial::Signal;
use crate::sync::lock;
use crate::waiter::Waiter;

/// A call's place between its making and its end.
#[derive(Default)]
pub(crate) struct Progress(Mutex<Stage>);

#[derive(Default)]
pub(crate) enum Stage {
    #[default]
    New,
    /// Part of a transaction that has not ended.
    Held,
    /// The client or a connection has it.
    Started(Underway),
    Done(PyResult<Py<PyAny>>),
    /// The result has been taken, or no code waits for it any more.
    Over,
}

#[derive(Default)]
pub(crate) struct Underway {
    /// What to wake when the result is there.
    pub(crate) sleeper: Option<Sleeper>,
    /// What is measured of it, if anything is.
    pub(crate) operation: Option<Box<Operation>>,
}

/// What waits for a result.
pub(crate) enum Sleeper {
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
pub(crate) trait Wakes: Send + Sync {
    fn wake(self: Arc<Self>, py: Python<'_>);
}

impl Sleeper {
    /// One that a thread, a greenlet or a goroutine waits by, and what is set when it is woken.
    pub(crate) fn serial() -> (Self, Arc<Signal>) {
        let signal = Signal::new();
        (Self::Serial(Arc::clone(&signal)), signal)
    }

    /// `may_step`: a task may be stepped here and now.
    pub(crate) fn wake(self, py: Python<'_>, may_step: bool) {
        match self {
            Self::Task(waiter) => Waiter::wake(waiter.bind(py), may_step),
            Self::Elsewhere(waiter) => Waiter::wake_from_elsewhere(waiter.bind(py)),
            Self::Serial(signal) => signal.set(py),
            Self::Other(other) => other.wake(py),
        }
    }
}

/// What a look has found.
enum Found {
    ToBeStarted,
    Waiting,
    Result(PyResult<Py<PyAny>>),
    Over,
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

impl Progress {
    /// No code waits for it.
    pub(crate) fn is_over(&self) -> bool {
        matches!(*lock(&self.0), Stage::Over | Stage::Done(_))
    }

    pub(crate) fn is_started(&self) -> bool {
        matches!(*lock(&self.0), Stage::Started(_))
    }

    /// Starts it, if it is new; whether it was. `None`: it is held.
    pub(crate) fn start(&self) -> Option<bool> {
        let mut stage = lock(&self.0);
        match *stage {
            Stage::New => *stage = Stage::Started(Underway::default()),
            Stage::Held => return None,
            _ => return Some(false),
        }
        Some(true)
    }

    /// Starts one that is new, with what is to be woken when the result is there.
    pub(crate) fn start_for(&self, sleeper: Sleeper) {
        drop(self.replace(Stage::Started(Underway {
            sleeper: Some(sleeper),
            operation: None,
        })));
    }

    /// Changes the stage. What is returned must be dropped outside of any lock.
    pub(crate) fn replace(&self, stage: Stage) -> Stage {
        std::mem::replace(&mut *lock(&self.0), stage)
    }

    /// Notes what is measured of one that has been started.
    pub(crate) fn set_operation(&self, operation: Box<Operation>) {
        if let Stage::Started(underway) = &mut *lock(&self.0) {
            underway.operation = Some(operation);
        }
    }

    pub(crate) fn take_operation(&self) -> Option<Box<Operation>> {
        match &mut *lock(&self.0) {
            Stage::Started(underway) => underway.operation.take(),
            _ => None,
        }
    }

    /// Keeps the result, has `measure` count it, and returns what is to be woken.
    pub(crate) fn finish(
        &self,
        result: PyResult<Py<PyAny>>,
        measure: impl FnOnce(Operation, Option<&PyErr>),
    ) -> Option<Sleeper> {
        let result = result.map_err(as_error);
        let mut stage = lock(&self.0);
        if let Stage::Started(Underway { operation, .. }) = &mut *stage
            && let Some(operation) = operation.take()
        {
            drop(stage);
            measure(*operation, result.as_ref().err());
            stage = lock(&self.0);
        }
        match &mut *stage {
            Stage::Started(underway) => {
                // One that came while the operation was measured is among those to be woken, too.
                let sleeper = underway.sleeper.take();
                *stage = Stage::Done(result);
                sleeper
            }
            Stage::New | Stage::Held => {
                *stage = Stage::Done(result);
                None
            }
            Stage::Done(_) | Stage::Over => {
                drop(stage);
                drop(result);
                None
            }
        }
    }

    fn find(&self) -> Found {
        let mut stage = lock(&self.0);
        match &*stage {
            Stage::New | Stage::Held => return Found::ToBeStarted,
            Stage::Started(_) => return Found::Waiting,
            Stage::Over => return Found::Over,
            Stage::Done(_) => {}
        }
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Done(result) => Found::Result(result),
            _ => Found::Over,
        }
    }

    /// The result, if it is there.
    pub(crate) fn take_result(&self) -> Option<PyResult<Py<PyAny>>> {
        match self.find() {
            Found::Result(result) => Some(result),
            _ => None,
        }
    }

    /// The result, or what `sleep` has made to wait for it; `name` is what messages call it.
    pub(crate) fn look<T>(
        &self,
        name: &str,
        mut start: impl FnMut() -> PyResult<()>,
        mut sleep: impl FnMut() -> PyResult<(Sleeper, T)>,
    ) -> PyResult<Result<Py<PyAny>, T>> {
        loop {
            match self.find() {
                Found::ToBeStarted => start()?,
                Found::Result(result) => return result.map(Ok),
                Found::Over => {
                    return Err(PyRuntimeError::new_err(format!(
                        "this {name} has been awaited already; call the method again for another one"
                    )));
                }
                Found::Waiting => {
                    let (sleeper, token) = sleep()?;
                    let replaced = match &mut *lock(&self.0) {
                        Stage::Started(underway) => underway.sleeper.replace(sleeper),
                        // The result has come meanwhile.
                        _ => continue,
                    };
                    drop(replaced);
                    return Ok(Err(token));
                }
            }
        }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is taken means that the call is in use: no garbage.
        let Ok(stage) = self.0.try_lock() else {
            return Ok(());
        };
        match &*stage {
            Stage::Started(Underway {
                sleeper: Some(Sleeper::Task(waiter) | Sleeper::Elsewhere(waiter)),
                ..
            }) => visit.call(waiter),
            Stage::Done(Ok(value)) => visit.call(value),
            _ => Ok(()),
        }
    }

    /// Lets go of all Python objects.
    pub(crate) fn clear(&self) {
        drop(self.replace(Stage::New));
    }
}
