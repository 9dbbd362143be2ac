//! How a coroutine waits for its exchange: a future by asyncio's protocol between tasks and futures.
//!
//! In: a wake-up from the exchange. Out: a call of the task's step, within the turn if the wake-up may step, else by the event
//! loop. A wake-up has no value: the coroutine polls again, and waits again if it finds nothing. Tests: `tests/asgi/`,
//! `tests/server/test_websocket.py`.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::awaitable::Poll;
use crate::context::{enter_context, exit_context};
use crate::reactor_handle::ReactorHandle;
use crate::sync::lock;
use crate::task::call_done_callback;

/// A future that is done when there may be something to see.
#[pyclass(frozen, module = "citius._core", name = "_Waiter")]
pub struct Waiter {
    event_loop: Py<PyAny>,
    state: Mutex<WaiterState>,
}

#[derive(Default)]
struct WaiterState {
    is_done: bool,
    /// asyncio's mark of a future that is being awaited.
    is_blocking: bool,
    /// The message of a cancellation.
    cancelled: Option<Py<PyAny>>,
    /// What is to be called, and in which context.
    callback: Option<(Py<PyAny>, Option<Py<PyAny>>)>,
    /// Claims what is waited for, so that it does not come after a cancellation; `false`: it has come already, and the
    /// cancellation is refused.
    claim: Option<Claim>,
}

/// Runs no Python code.
type Claim = Arc<dyn Fn() -> bool + Send + Sync>;

impl Waiter {
    /// One that waits, by the loop of this reactor.
    pub fn new(py: Python<'_>, handle: &ReactorHandle) -> PyResult<Py<Self>> {
        let event_loop = handle.event_loop.ask(py)?.ok_or_else(|| {
            PyRuntimeError::new_err(
                "there is no event loop here to wait on; use citius.SerialWebSocket",
            )
        })?;
        Self::on_loop(py, event_loop.clone_ref(py), None)
    }

    /// A future of `event_loop`.
    pub fn on_loop(
        py: Python<'_>,
        event_loop: Py<PyAny>,
        claim: Option<Claim>,
    ) -> PyResult<Py<Self>> {
        let state = Mutex::new(WaiterState {
            claim,
            ..WaiterState::default()
        });
        Py::new(py, Self { event_loop, state })
    }

    /// What a coroutine that waits for it yields: a future marked as awaited.
    pub(crate) fn awaited(waiter: Py<Self>) -> Py<PyAny> {
        lock(&waiter.get().state).is_blocking = true;
        waiter.into_any()
    }

    /// What an awaitable returns that waits by it.
    pub fn pending(waiter: Py<Self>) -> Poll {
        Poll::Pending(Self::awaited(waiter))
    }

    /// Whether it was woken.
    pub fn is_done(&self) -> bool {
        lock(&self.state).is_done
    }

    /// Wakes the task that waits: within the turn if `may_step`, otherwise by the event loop.
    pub fn wake(slf: &Bound<'_, Self>, may_step: bool) {
        if let Err(error) = Self::complete(slf, may_step) {
            error.write_unraisable(slf.py(), Some(slf.as_any()));
        }
    }

    /// Wakes the task that waits, and gives what comes out of its step.
    ///
    /// # Errors
    /// What comes out of a step of the task: exceptions that end the event loop.
    pub(crate) fn complete(slf: &Bound<'_, Self>, may_step: bool) -> PyResult<()> {
        let py = slf.py();
        let callback = {
            let mut state = lock(&slf.get().state);
            if std::mem::replace(&mut state.is_done, true) {
                return Ok(());
            }
            state.callback.take()
        };
        let Some((callback, context)) = callback else {
            return Ok(());
        };
        match context {
            Some(context) if may_step => enter_context(py, &context).and_then(|()| {
                let called = call_done_callback(callback.bind(py), slf.as_any());
                exit_context(py, &context);
                called
            }),
            context => Self::call_soon(slf, &callback, context.as_ref()),
        }
    }

    /// Wakes the task that waits, from another thread than its event loop's.
    pub(crate) fn wake_from_elsewhere(slf: &Bound<'_, Self>) {
        let py = slf.py();
        let call = || -> PyResult<()> {
            let completion = Bound::new(py, Completion(slf.clone().unbind()))?;
            let event_loop = slf.get().event_loop.bind(py);
            event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (completion,))?;
            Ok(())
        };
        if let Err(error) = call() {
            error.write_unraisable(py, Some(slf.as_any()));
        }
    }

    fn call_soon(
        slf: &Bound<'_, Self>,
        callback: &Py<PyAny>,
        context: Option<&Py<PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let keywords = PyDict::new(py);
        keywords.set_item(intern!(py, "context"), context)?;
        slf.get().event_loop.bind(py).call_method(
            intern!(py, "call_soon"),
            (callback, slf),
            Some(&keywords),
        )?;
        Ok(())
    }
}

/// What an event loop calls on its own thread to complete a waiter.
#[pyclass(frozen, module = "citius._core")]
struct Completion(Py<Waiter>);

#[pymethods]
impl Completion {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        Waiter::complete(self.0.bind(py), false)
    }
}

#[pymethods]
impl Waiter {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        // A lock that is taken means that the waiter is in use: no garbage.
        let Ok(state) = self.state.try_lock() else {
            return Ok(());
        };
        if let Some((callback, context)) = &state.callback {
            visit.call(callback)?;
            visit.call(context)?;
        }
        visit.call(&state.cancelled)
    }

    fn __clear__(&self) {
        let state = std::mem::take(&mut *lock(&self.state));
        drop(state);
    }

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
        slf: &Bound<'_, Self>,
        callback: Py<PyAny>,
        context: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let mut state = lock(&slf.get().state);
        if state.is_done {
            drop(state);
            return Self::call_soon(slf, &callback, context.as_ref());
        }
        let replaced = state.callback.replace((callback, context));
        drop(state);
        drop(replaced);
        Ok(())
    }

    #[pyo3(signature = (_callback))]
    fn remove_done_callback(&self, _callback: &Bound<'_, PyAny>) -> usize {
        let removed = lock(&self.state).callback.take();
        usize::from(removed.is_some())
    }

    #[pyo3(signature = (msg = None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        let py = slf.py();
        let claim = lock(&slf.get().state).claim.clone();
        if claim.is_some_and(|claim| !claim()) {
            return Ok(false);
        }
        let mut state = lock(&slf.get().state);
        if std::mem::replace(&mut state.is_done, true) {
            return Ok(false);
        }
        let replaced = state.cancelled.replace(msg.unwrap_or_else(|| py.None()));
        let callback = state.callback.take();
        drop(state);
        drop(replaced);
        if let Some((callback, context)) = callback {
            Self::call_soon(slf, &callback, context.as_ref())?;
        }
        Ok(true)
    }

    fn done(&self) -> bool {
        self.is_done()
    }

    fn cancelled(&self) -> bool {
        lock(&self.state).cancelled.is_some()
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        let cancelled = lock(&self.state)
            .cancelled
            .as_ref()
            .map(|message| message.clone_ref(py));
        match cancelled {
            None => Ok(()),
            Some(message) => Err(cancellation(py, message.bind(py))),
        }
    }

    fn exception(&self, py: Python<'_>) -> PyResult<()> {
        self.result(py)
    }
}

/// A `CancelledError` with the message that was given to `cancel`.
#[cold]
fn cancellation(py: Python<'_>, message: &Bound<'_, PyAny>) -> PyErr {
    let made = py
        .import("asyncio")
        .and_then(|asyncio| asyncio.getattr(intern!(py, "CancelledError")))
        .and_then(|kind| {
            if message.is_none() {
                kind.call0()
            } else {
                kind.call1((message,))
            }
        });
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
