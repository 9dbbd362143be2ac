//! The coroutine that the task of a request runs, and the future that the task waits for while it is a spare.
//!
//! In: a suspended coroutine of a request. Out: its next steps, one for each step of the task. The spare's future cannot be a
//! [`Waiter`](crate::waiter::Waiter): its `cancel` must have no effect on the current task, which has not suspended, and a second
//! object would have to be checked for each request. Tests: `tests/eager/`.

use std::sync::{Arc, Mutex};

use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::SpareTask;
use super::coroutine::{LateStep, Progress, Resume, StepInput};
use super::future::finished_future;
use super::parked::Parked;
use crate::reuse::Known;
use crate::sync::lock;

/// A coroutine that has suspended, and what its result is for.
pub(super) struct SuspendedCoroutine {
    pub(super) coroutine: Py<PyAny>,
    pub(super) resume: Box<dyn Resume>,
}

/// The coroutine that a request's task runs, and the future it is parked on while it is a spare.
#[pyclass(frozen, module = "citius._core", name = "_Driver", weakref)]
pub(crate) struct Driver {
    pub(super) event_loop: Py<PyAny>,
    parked: Arc<Parked>,
    pub(super) state: Mutex<DriverState>,
}

/// How the driver of a spare is found.
pub(super) enum ParkState {
    /// Its task has not made its first step.
    Unstarted,
    /// Its task waits for it, and nothing else knows what wakes that up.
    Parked,
    /// Something has been done to it.
    Disturbed,
}

#[derive(Default)]
pub(super) struct DriverState {
    /// asyncio's mark of a future that is being awaited.
    pub(super) is_blocking: bool,
    /// What the parked task wants to be called with.
    pub(super) wakeup: Option<Py<PyAny>>,
    /// What the coroutine waits for and the task does not know of yet.
    pub(super) awaited: Option<Py<PyAny>>,
    pub(super) suspended: Option<SuspendedCoroutine>,
    /// The task itself, while its coroutine goes on: asyncio knows its tasks by weak references alone,
    /// and nothing else may refer to one whose response is complete. Hidden from the collector of garbage.
    pub(super) task: Option<SpareTask>,
    pub(super) is_retired: bool,
    /// The parked task was cancelled and is on its way to its end.
    pub(super) is_cancelled: bool,
}

impl Driver {
    pub(super) fn new(event_loop: Py<PyAny>, parked: Arc<Parked>) -> Self {
        Self {
            event_loop,
            parked,
            state: Mutex::default(),
        }
    }

    /// `task` drives `suspended` from here on; it waits for `awaited`.
    ///
    /// # Errors
    /// The task cannot be woken. The work is dropped: it would wait for ever.
    pub(super) fn take_over(
        py: Python<'_>,
        suspended: SuspendedCoroutine,
        awaited: Py<PyAny>,
        task: SpareTask,
    ) -> PyResult<()> {
        let driver = task.driver.clone_ref(py);
        let this = driver.get();
        let wakeup = {
            let mut state = lock(&this.state);
            state.suspended = Some(suspended);
            state.task = Some(task);
            state.awaited = Some(awaited);
            state.wakeup.take()
        };
        let woken = Self::wake(py, wakeup);
        if woken.is_err() {
            let dropped = std::mem::take(&mut *lock(&this.state));
            drop(dropped);
        }
        woken
    }

    /// How the driver of a spare is found.
    #[inline]
    pub(super) fn park_state(&self, py: Python<'_>) -> ParkState {
        let state = lock(&self.state);
        match &state.wakeup {
            _ if state.is_blocking || state.is_cancelled => ParkState::Disturbed,
            Some(wakeup) if Known::TASK_WAKEUP.are_all(py, wakeup, 0) => ParkState::Parked,
            Some(_) => ParkState::Disturbed,
            None => ParkState::Unstarted,
        }
    }

    /// Ends the task of a spare that other code has kept.
    pub(super) fn retire(&self, py: Python<'_>) {
        let wakeup = {
            let mut state = lock(&self.state);
            state.is_retired = true;
            state.wakeup.take()
        };
        if let Err(error) = Self::wake(py, wakeup) {
            error.write_unraisable(py, None);
        }
    }

    /// Without a wake-up the task has not been started yet; its first step comes by itself.
    pub(super) fn wake(py: Python<'_>, wakeup: Option<Py<PyAny>>) -> PyResult<()> {
        let Some(wakeup) = wakeup else {
            return Ok(());
        };
        wakeup.bind(py).call1((finished_future(py)?,)).map(drop)
    }

    /// Goes on with the coroutine. Returns what it waits for, or the driver if its task waits for another one.
    fn advance(slf: &Bound<'_, Self>, input: StepInput) -> PyResult<Option<Py<PyAny>>> {
        let (py, this) = (slf.py(), slf.get());
        let Some(mut suspended) = lock(&this.state).suspended.take() else {
            return Ok(None);
        };
        let step = LateStep {
            coroutine: &mut suspended.coroutine,
            input,
        };
        let progress = suspended.resume.resume(py, step);
        let outcome = match progress {
            Progress::Suspended(awaited) => {
                let replaced = lock(&this.state).suspended.replace(suspended);
                drop(replaced);
                return Ok(Some(awaited));
            }
            Progress::Done(error) => error,
        };
        drop(suspended);
        let task = lock(&this.state).task.take();
        match outcome {
            None if this.parked.keep(task) => {
                lock(&this.state).is_blocking = true;
                Ok(Some(slf.clone().into_any().unbind()))
            }
            None => Ok(None),
            Some(error) => Err(error),
        }
    }
}

/// The message that a task was cancelled with, as arguments to `cancel`.
pub(super) fn cancel_arguments<'py>(error: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let arguments = error.getattr(intern!(error.py(), "args"))?;
    let arguments = arguments.cast_into::<PyTuple>()?;
    Ok(arguments.get_slice(0, 1))
}

#[pymethods]
impl Driver {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        // A lock that is taken means that the driver is in use: no garbage.
        let Ok(state) = self.state.try_lock() else {
            return Ok(());
        };
        visit.call(&state.wakeup)?;
        visit.call(&state.awaited)?;
        match &state.suspended {
            Some(suspended) => {
                visit.call(&suspended.coroutine)?;
                suspended.resume.traverse(&visit)
            }
            None => Ok(()),
        }
    }

    fn __clear__(&self) {
        let state = std::mem::take(&mut *lock(&self.state));
        drop(state);
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        let py = slf.py();
        let this = slf.get();
        {
            let mut state = lock(&this.state);
            if let Some(awaited) = state.awaited.take() {
                return Ok(Some(awaited));
            }
            if state.is_retired {
                return Ok(None);
            }
            if state.suspended.is_none() {
                state.is_blocking = true;
                drop(state);
                return Ok(Some(slf.clone().into_py_any(py)?));
            }
        }
        Self::advance(slf, StepInput::Send)
    }

    fn send(slf: &Bound<'_, Self>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Self::__next__(slf)?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (error, *_rest))]
    fn throw(
        slf: &Bound<'_, Self>,
        error: Bound<'_, PyAny>,
        _rest: &Bound<'_, PyTuple>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let (awaited, is_suspended) = {
            let mut state = lock(&this.state);
            (state.awaited.take(), state.suspended.is_some())
        };
        // The task was cancelled between the coroutine's suspension and its own first look at what
        // it waits for: as a task does, cancel that first and wait for it to tell.
        if let Some(awaited) = awaited
            && let Some(cancel) = awaited.bind(py).getattr_opt(intern!(py, "cancel"))?
            // With the message of the cancellation: anyio recognises its own by that.
            && cancel.call1(cancel_arguments(&error)?)?.is_truthy()?
        {
            return Ok(awaited);
        }
        // A bare yield waits for nothing that could be cancelled: the coroutine gets the exception at once.
        if !is_suspended {
            return Err(PyErr::from_value(error));
        }
        Self::advance(slf, StepInput::Throw(error.unbind()))?
            .ok_or_else(|| PyStopIteration::new_err(()))
    }

    fn close(&self, py: Python<'_>) {
        let (suspended, task) = {
            let mut state = lock(&self.state);
            (state.suspended.take(), state.task.take())
        };
        drop(task);
        if let Some(suspended) = suspended {
            // No caller handles what a coroutine raises while it is closed.
            let _ = suspended
                .coroutine
                .bind(py)
                .call_method0(intern!(py, "close"));
        }
    }

    // asyncio's future protocol, as far as a task uses it on what its coroutine yields.

    #[getter(_asyncio_future_blocking)]
    fn is_blocking(&self) -> bool {
        lock(&self.state).is_blocking
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, value: bool) {
        lock(&self.state).is_blocking = value;
    }

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    #[pyo3(signature = (callback, *, context = None))]
    fn add_done_callback(
        &self,
        callback: Py<PyAny>,
        context: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = context;
        let mut state = lock(&self.state);
        if state.wakeup.is_some() {
            drop(state);
            return Err(PyRuntimeError::new_err(
                "the coroutine of a request's task wakes up that task alone",
            ));
        }
        state.wakeup = Some(callback);
        Ok(())
    }

    /// A parked task cannot be cancelled by way of what it waits for: it remembers instead and is told at its next
    /// step. That is soon, unless the task is the current one: then a handler has cancelled itself, and goes on.
    #[pyo3(signature = (msg = None))]
    fn cancel(&self, py: Python<'_>, msg: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let _ = msg;
        let Some(wakeup) = lock(&self.state)
            .wakeup
            .as_ref()
            .map(|wakeup| wakeup.clone_ref(py))
        else {
            return Ok(false);
        };
        let current = py
            .import(intern!(py, "asyncio"))?
            .call_method1(intern!(py, "current_task"), (&self.event_loop,))?;
        if current.is(wakeup.getattr(py, intern!(py, "__self__"))?) {
            return Ok(false);
        }
        {
            let mut state = lock(&self.state);
            state.is_cancelled = true;
            // `wakeup` is another reference to it: nothing is dropped here.
            state.wakeup = None;
        }
        let call_soon = intern!(py, "call_soon");
        self.event_loop
            .call_method1(py, call_soon, (wakeup, finished_future(py)?))?;
        Ok(false)
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        let py = slf.py();
        let coroutine = lock(&slf.get().state)
            .suspended
            .as_ref()
            .map(|suspended| suspended.coroutine.clone_ref(py));
        match coroutine {
            Some(coroutine) => coroutine.bind(py).repr(),
            None => Ok(PyString::new(py, "a spare request")),
        }
    }
}
