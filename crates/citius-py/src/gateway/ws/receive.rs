//! The awaitable that receives a message of a WebSocket, in the form of its interface. Tests: `tests/server/test_websocket.py`.

use std::sync::Arc;

use citius_base::awaitable::{Poll, PollAwaitable, impl_awaitable};
use citius_base::support;
use citius_base::waiter::Waiter;
use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::gateway::ws::session::{Incoming, Session};
use crate::outbox::OutboxOwner as _;

/// The form in which a message is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `str` or `bytes`; the end raises `ConnectionClosed`.
    Plain,
    /// `str` or `bytes`; the end ends an iteration.
    Iteration,
    /// ASGI's dictionary.
    Asgi,
}

/// Returned by whatever receives.
#[pyclass(frozen, module = "citius._core", name = "_Message")]
pub(crate) struct NextMessage {
    pub(crate) session: Arc<Session>,
    pub(crate) shape: Shape,
}

impl PollAwaitable for NextMessage {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let value = match (self.session.take(py), self.shape) {
            (Incoming::Nothing, _) => return Ok(Waiter::pending(self.session.await_message(py)?)),
            (Incoming::Message(message), Shape::Asgi) => asgi_message(py, message)?,
            (Incoming::Message(message), _) => message,
            (Incoming::Closed(end), Shape::Plain) => {
                return Err(support::connection_closed(py, Some(&end)));
            }
            (Incoming::Closed(_), Shape::Iteration) => {
                return Err(PyStopAsyncIteration::new_err(()));
            }
            (Incoming::Closed(end), Shape::Asgi) => {
                let message = PyDict::new(py);
                message.set_item(intern!(py, "type"), intern!(py, "websocket.disconnect"))?;
                message.set_item(intern!(py, "code"), end.code.number())?;
                message.set_item(intern!(py, "reason"), end.reason)?;
                message.into_any().unbind()
            }
        };
        Ok(Poll::Ready(value))
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

impl_awaitable!(NextMessage);
