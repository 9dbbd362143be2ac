//! What `receive` and `send` return: awaitables that end at once when there is nothing to wait for.
//!
//! One that has to wait yields a future of the loop's, as a coroutine does that awaits one, and looks
//! again whenever that is done: whoever wakes it up says nothing but "look".

use pyo3::exceptions::{PyStopIteration, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::answer::is_coroutine;
use crate::awaited::{Look, Looking, awaited_by_looking, hasten, hasten_done};
use crate::gateway::asgi::Conversation;

/// Returned by a `send` that has nothing to wait for; there is one.
#[pyclass(frozen, module = "citius._core", name = "_Done")]
pub(crate) struct Done;

impl Done {
    pub(crate) fn get(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static ONE: PyOnceLock<Py<Done>> = PyOnceLock::new();
        let one = ONE.get_or_try_init(py, || Py::new(py, Self))?;
        Ok(one.bind(py).clone().into_any())
    }
}

/// A future, marked as awaited.
fn wait(py: Python<'_>, future: Py<PyAny>) -> PyResult<Look> {
    let mark = intern!(py, "_asyncio_future_blocking");
    future.bind(py).setattr(mark, true)?;
    Ok(Look::Wait(future))
}

#[pymethods]
#[expect(clippy::unused_self, reason = "the coroutine protocol's methods")]
impl Done {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self) -> Option<Py<PyAny>> {
        None
    }

    fn send(&self, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Err(PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (error, *_rest))]
    fn throw(&self, error: Bound<'_, PyAny>, _rest: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        Err(PyErr::from_value(error))
    }

    fn close(&self) {}
}

/// Returned by `receive`.
#[pyclass(frozen, module = "citius._core", name = "_Receive")]
pub(crate) struct Receive(pub(crate) Py<Conversation>);

impl Looking for Receive {
    fn look(&self, py: Python<'_>) -> PyResult<Look> {
        let conversation = self.0.bind(py).get();
        match conversation.next_message(py)? {
            Some(message) => Ok(Look::Over(message.into_any().unbind())),
            None => wait(py, conversation.await_message(py)?),
        }
    }
}

awaited_by_looking!(Receive);

/// Returned by a `send` whose bytes are queued and which has to wait for room before the next.
#[pyclass(frozen, module = "citius._core", name = "_Room")]
pub(crate) struct Room(pub(crate) Py<Conversation>);

impl Looking for Room {
    fn look(&self, py: Python<'_>) -> PyResult<Look> {
        let conversation = self.0.bind(py).get();
        match conversation.await_room(py)? {
            None => Ok(Look::Over(py.None())),
            Some(future) => wait(py, future),
        }
    }
}

awaited_by_looking!(Room);

/// Makes awaiting cheap. Once, before there are any of these objects.
pub(crate) fn hasten_all(py: Python<'_>) {
    hasten_done::<Done>(py);
    hasten::<Receive>(py);
    hasten::<Room>(py);
}

/// What can be stepped, of what an application has returned.
pub(crate) fn coroutine_of(awaitable: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if is_coroutine(awaitable) {
        return Ok(awaitable.clone().unbind());
    }
    let py = awaitable.py();
    match awaitable.getattr_opt(intern!(py, "__await__"))? {
        Some(made) => Ok(made.call0()?.unbind()),
        None => Err(PyTypeError::new_err(format!(
            "an ASGI application is a coroutine function, app(scope, receive, send), but this one \
             returned {}; if it is a WSGI application or a factory, say so with --interface wsgi or \
             --factory",
            awaitable.get_type().name()?
        ))),
    }
}
