//! How a coroutine waits for its socket.
//!
//! [`Waiter`] is what its task is shown: a future by asyncio's documented protocol between tasks and futures, which is how the
//! task tells what it wants to be called with. Called within the turn that brings a message, the task is stepped there and
//! then. Whoever is woken looks again and may wait again: a wake-up says nothing but "look".

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::awaited::{Look, Looking, awaited_by_looking, hasten};
use crate::gateway::ws::Line;
use crate::gateway::ws::line::Taken;
use crate::link::lock;
use crate::support;
use crate::task::{call_back, enter_context, exit_context};

/// A future that is done when there may be something to see.
#[pyclass(frozen, module = "citius._core", name = "_Waiter")]
pub(crate) struct Waiter {
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
}

impl Waiter {
    pub(crate) fn new(event_loop: Py<PyAny>) -> Self {
        Self {
            event_loop,
            state: Mutex::default(),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        lock(&self.state).is_done
    }

    /// Wakes whoever waits: here and now if that may be, otherwise by way of the loop.
    pub(crate) fn wake(slf: &Bound<'_, Self>, may_step: bool) {
        let py = slf.py();
        let callback = {
            let mut state = lock(&slf.get().state);
            if std::mem::replace(&mut state.is_done, true) {
                return;
            }
            state.callback.take()
        };
        let Some((callback, context)) = callback else {
            return;
        };
        let called = match context {
            Some(context) if may_step => enter_context(py, &context).and_then(|()| {
                let called = call_back(callback.bind(py), slf.as_any());
                exit_context(py, &context);
                called
            }),
            context => Self::call_soon(slf, &callback, context.as_ref()),
        };
        if let Err(error) = called {
            error.write_unraisable(py, Some(callback.bind(py)));
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

/// In which form a message is handed to whoever awaits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `str` or `bytes`; the end raises `ConnectionClosed`.
    Plain,
    /// The same; the end ends an iteration.
    Iteration,
    /// ASGI's dictionary.
    Asgi,
}

/// Goes on with whoever awaits: a future marked as awaited.
fn wait(waiter: Py<Waiter>) -> Py<PyAny> {
    lock(&waiter.get().state).is_blocking = true;
    waiter.into_any()
}

/// Returned by whatever receives.
#[pyclass(frozen, module = "citius._core", name = "_Message")]
pub(crate) struct NextMessage {
    pub(crate) line: Arc<Line>,
    pub(crate) shape: Shape,
}

impl Looking for NextMessage {
    fn look(&self, py: Python<'_>) -> PyResult<Look> {
        let value = match (self.line.take(py), self.shape) {
            (Taken::Nothing, _) => return Ok(Look::Wait(wait(self.line.await_message(py)?))),
            (Taken::Message(message), Shape::Asgi) => asgi_message(py, message)?,
            (Taken::Message(message), _) => message,
            (Taken::Over(end), Shape::Plain) => {
                return Err(support::connection_closed(py, Some(&end)));
            }
            (Taken::Over(_), Shape::Iteration) => return Err(PyStopAsyncIteration::new_err(())),
            (Taken::Over(end), Shape::Asgi) => {
                let message = PyDict::new(py);
                message.set_item(intern!(py, "type"), intern!(py, "websocket.disconnect"))?;
                message.set_item(intern!(py, "code"), end.code.number())?;
                message.set_item(intern!(py, "reason"), end.reason)?;
                message.into_any().unbind()
            }
        };
        Ok(Look::Over(value))
    }
}

fn asgi_message(py: Python<'_>, message: Py<PyAny>) -> PyResult<Py<PyAny>> {
    let is_text = message.bind(py).is_instance_of::<pyo3::types::PyString>();
    let told = PyDict::new(py);
    told.set_item(intern!(py, "type"), intern!(py, "websocket.receive"))?;
    let name = if is_text {
        intern!(py, "text")
    } else {
        intern!(py, "bytes")
    };
    told.set_item(name, message)?;
    Ok(told.into_any().unbind())
}

awaited_by_looking!(NextMessage);

/// Returned by a `send` whose message is queued and which has to wait for room before the next.
#[pyclass(frozen, module = "citius._core", name = "_RoomToSend")]
pub(crate) struct RoomToSend(pub(crate) Arc<Line>);

impl Looking for RoomToSend {
    fn look(&self, py: Python<'_>) -> PyResult<Look> {
        Ok(match self.0.await_room(py)? {
            None => Look::Over(py.None()),
            Some(waiter) => Look::Wait(wait(waiter)),
        })
    }
}

awaited_by_looking!(RoomToSend);

/// Makes awaiting cheap. Once, before there are any of these objects.
pub(crate) fn hasten_all(py: Python<'_>) {
    hasten::<NextMessage>(py);
    hasten::<RoomToSend>(py);
}
