//! What `receive` and `send` return: awaitables that end at once when there is nothing to wait for.
//!
//! One that has to wait yields a future of the loop's, as a coroutine does that awaits one, and looks
//! again whenever that is done: whoever wakes it up says nothing but "look".

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::awaitable::{
    Poll, PollAwaitable, impl_awaitable, install_am_send_of, install_am_send_of_done,
};
use crate::gateway::asgi::conversation::Conversation;
use crate::outbox::AwaitCapacity;
use crate::respond::is_coroutine;
use crate::waiter::Waiter;

/// Returned by `receive`.
#[pyclass(frozen, module = "citius._core", name = "_Receive")]
pub(crate) struct Receive(pub(crate) Py<Conversation>);

impl PollAwaitable for Receive {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let conversation = self.0.bind(py).get();
        match conversation.next_message(py)? {
            Some(message) => Ok(Poll::Ready(message.into_any().unbind())),
            None => Ok(Waiter::pending(conversation.await_piece(py)?)),
        }
    }
}

impl_awaitable!(Receive);

/// Makes awaiting cheap. Once, before there are any of these objects.
pub(crate) fn install_am_send(py: Python<'_>) {
    install_am_send_of_done(py);
    install_am_send_of::<Receive>(py);
    install_am_send_of::<AwaitCapacity>(py);
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
