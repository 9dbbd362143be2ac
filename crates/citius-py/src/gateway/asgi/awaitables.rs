//! What `receive` and `send` return: awaitables that end at once if there is nothing to wait for.
//!
//! An awaitable that has to wait yields a [`Waiter`] and polls again when that is done. Tests: `tests/asgi/`.

use std::sync::atomic::{AtomicBool, Ordering};

use citius_base::awaitable::{Poll, PollAwaitable, impl_awaitable};
use citius_base::waiter::Waiter;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::gateway::asgi::http_cycle::HttpCycle;
use crate::respond::is_coroutine;

/// Returned by `receive`.
#[pyclass(frozen, module = "citius._core", name = "_Receive")]
pub(crate) struct Receive(pub(crate) Py<HttpCycle>);

impl PollAwaitable for Receive {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let cycle = self.0.bind(py).get();
        match cycle.next_message(py)? {
            Some(message) => Ok(Poll::Ready(message.into_any().unbind())),
            None => Ok(Waiter::pending(cycle.await_piece(py)?)),
        }
    }
}

impl_awaitable!(Receive);

/// Returned by a `send` that comes after the client has gone, and does nothing: it gives the event loop one turn, in which what
/// waits for `http.disconnect` hears of it and ends the stream.
#[pyclass(frozen, module = "citius._core", name = "_Ignored")]
#[derive(Default)]
pub(crate) struct Ignored {
    is_over: AtomicBool,
}

impl PollAwaitable for Ignored {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        if self.is_over.swap(true, Ordering::Relaxed) {
            Ok(Poll::Ready(py.None()))
        } else {
            Ok(Poll::Pending(py.None()))
        }
    }
}

impl_awaitable!(Ignored);

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
