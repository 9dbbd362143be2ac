//! `citius.WebSocket`: a [`Session`] and its request, as native handlers see them. Tests: `tests/server/test_websocket.py`.

use std::sync::Arc;

use citius_base::awaitable::Done;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::sink::Late;
use citius_base::support;
use citius_base::task::{CompletionHandler as _, Next};
use citius_http::{Fault, Fields};
use citius_reactor::ws::{Close, Code};
use citius_reactor::{Reply, StreamId};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::completion;
use crate::gateway::ws::completion::{Handled, HandlerEnd, SocketCompletion};
use crate::gateway::ws::receive::{NextMessage, Shape};
use crate::gateway::ws::session::{Incoming, ReadyState, Session, json_of};
use crate::gateway::ws::{self, SocketRole, fields_from};
use crate::outbox::{AwaitCapacity, OutboxOwner as _};
use crate::request::Request;
use crate::request_context::RequestContext;

/// One WebSocket; made by the server only.
#[pyclass(frozen, module = "citius._core", weakref)]
pub(crate) struct WebSocket {
    pub(crate) session: Arc<Session>,
    pub(crate) request: Py<Request>,
    /// The subprotocols that the client has offered.
    offered: Vec<String>,
}

impl WebSocket {
    pub(crate) fn new(session: Arc<Session>, request: Py<Request>) -> Self {
        let offered = session.offered();
        Self {
            session,
            request,
            offered,
        }
    }

    /// Something of the request's.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.request.bind(py).getattr(name)
    }

    /// Accepts, unless the handler has.
    pub(super) fn accept_implicitly(&self, py: Python<'_>) -> PyResult<()> {
        if self.session.ready_state() == ReadyState::Connecting {
            self.session.accept(py, None, Fields::default())?;
        }
        Ok(())
    }

    fn send_item(&self, py: Python<'_>, message: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.accept_implicitly(py)?;
        self.session.send(py, message)
    }

    fn awaitable<'py>(&self, py: Python<'py>, has_room: bool) -> PyResult<Bound<'py, PyAny>> {
        if has_room {
            Done::get(py)
        } else {
            AwaitCapacity::of(py, Arc::clone(&self.session))
        }
    }

    fn checked_close(code: u16, reason: &str) -> PyResult<Close> {
        let code = Code::new(code).ok_or_else(|| {
            PyValueError::new_err(format!(
                "a close code is 1000 to 1003, 1007 to 1014, or 3000 to 4999; got {code}"
            ))
        })?;
        if reason.len() > Close::REASON_BYTES_MAX {
            return Err(PyValueError::new_err(format!(
                "the reason of a close has at most {} bytes in UTF-8, got {}",
                Close::REASON_BYTES_MAX,
                reason.len()
            )));
        }
        Ok(Close::new(code, reason))
    }
}

#[pymethods]
impl WebSocket {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.request)
    }

    #[pyo3(signature = (subprotocol = None, headers = None))]
    fn accept<'py>(
        &self,
        py: Python<'py>,
        subprotocol: Option<&str>,
        headers: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(chosen) = subprotocol
            && !self.offered.iter().any(|offered| offered == chosen)
        {
            return Err(PyValueError::new_err(format!(
                "the client has not offered the subprotocol {chosen:?}, but {:?}",
                self.offered
            )));
        }
        self.session
            .accept(py, subprotocol, fields_from(headers)?)?;
        Done::get(py)
    }

    fn send<'py>(
        &self,
        py: Python<'py>,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let has_room = self.send_item(py, message)?;
        self.awaitable(py, has_room)
    }

    fn send_json<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let has_room = self.send_item(py, json_of(value)?.as_any())?;
        self.awaitable(py, has_room)
    }

    fn receive(&self, py: Python<'_>) -> PyResult<NextMessage> {
        self.next_in(py, Shape::Plain)
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<NextMessage> {
        self.next_in(py, Shape::Iteration)
    }

    #[pyo3(signature = (code = 1000, reason = ""))]
    fn close<'py>(&self, py: Python<'py>, code: u16, reason: &str) -> PyResult<Bound<'py, PyAny>> {
        let close = Self::checked_close(code, reason)?;
        if self.session.ready_state() == ReadyState::Connecting {
            return Err(PyRuntimeError::new_err(
                "the WebSocket is not accepted yet: return a Response or raise an HTTPError to refuse it",
            ));
        }
        self.session.close(py, close);
        Done::get(py)
    }

    #[getter]
    fn request(&self, py: Python<'_>) -> Py<Request> {
        self.request.clone_ref(py)
    }

    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, intern!(py, "path"))
    }

    #[getter]
    fn path_params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, intern!(py, "path_params"))
    }

    #[getter]
    fn query<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, intern!(py, "query"))
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, intern!(py, "headers"))
    }

    #[getter]
    fn cookies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, intern!(py, "cookies"))
    }

    #[getter]
    fn client<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, intern!(py, "client"))
    }

    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, intern!(py, "state"))
    }

    #[getter]
    fn app<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, intern!(py, "app"))
    }

    #[getter]
    fn subprotocols(&self) -> Vec<String> {
        self.offered.clone()
    }

    #[getter]
    fn subprotocol(&self) -> Option<String> {
        self.session.protocol()
    }

    #[getter]
    fn is_open(&self) -> bool {
        self.session.ready_state() == ReadyState::Open
    }

    #[getter]
    fn close_code(&self) -> Option<u16> {
        self.session.closed_with().map(|end| end.code.number())
    }

    #[getter]
    fn close_reason(&self) -> Option<String> {
        self.session.closed_with().map(|end| end.reason)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let ready_state = match self.session.ready_state() {
            ReadyState::Connecting => "not accepted",
            ReadyState::Open => "open",
            ReadyState::Closed => "closed",
        };
        let path: String = self.ask(py, intern!(py, "path"))?.extract()?;
        Ok(format!("<WebSocket {path} {ready_state}>"))
    }

    // What serial handlers are made of.

    /// The next message, `None` if there is none yet.
    fn _take(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.accept_implicitly(py)?;
        match self.session.take(py) {
            Incoming::Message(message) => Ok(Some(message)),
            Incoming::Nothing => Ok(None),
            Incoming::Closed(end) => Err(support::connection_closed(py, Some(&end))),
        }
    }

    /// Queues a message; `False`: wait for room before the next.
    fn _send(&self, py: Python<'_>, message: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.send_item(py, message)
    }

    #[pyo3(name = "_is_full")]
    fn is_full(&self) -> bool {
        self.session.is_full()
    }

    fn _on_message(&self, py: Python<'_>, callback: Py<PyAny>) {
        self.session.on_change(py, callback, false);
    }

    fn _on_writable(&self, py: Python<'_>, callback: Py<PyAny>) {
        self.session.on_change(py, callback, true);
    }

    // Called by the code that runs a handler in a thread or a greenlet, as for a request.

    fn _set_task(&self, task: Py<PyAny>) {
        self.session.handle.set_task(self.session.id, Some(task));
    }

    fn _is_open(&self) -> bool {
        self.session.closed_with().is_none()
    }

    fn _respond(slf: &Bound<'_, Self>, value: Bound<'_, PyAny>) {
        Self::complete(slf, Ok(value));
    }

    fn _fail(slf: &Bound<'_, Self>, error: Bound<'_, PyAny>) {
        Self::complete(slf, Err(PyErr::from_value(error)));
    }
}

impl WebSocket {
    fn next_in(&self, py: Python<'_>, shape: Shape) -> PyResult<NextMessage> {
        self.accept_implicitly(py)?;
        Ok(NextMessage {
            session: Arc::clone(&self.session),
            shape,
        })
    }

    /// A handler has ended outside a turn.
    fn complete(slf: &Bound<'_, Self>, result: PyResult<Bound<'_, PyAny>>) {
        let py = slf.py();
        let session = Arc::clone(&slf.get().session);
        let mut late = Late {
            handle: &session.handle,
            id: session.id,
        };
        let mut completion = SocketCompletion::new(slf, None);
        if let Next::Coroutine(coroutine) = completion.on_result(py, result, &mut late) {
            // Only the loop's thread may step coroutines.
            let _ = coroutine.bind(py).call_method0("close");
            let error = PyRuntimeError::new_err(
                "an `async def` error handler cannot answer a handler that is a `def`",
            );
            let request = slf.get().request.bind(py);
            completion::send_internal_error(
                py,
                &error,
                &mut RequestContext::of_request(request),
                &mut late,
            );
        }
    }
}

impl Handled for WebSocket {
    const CALLED: &'static str = "WebSocket";
    type Role = SocketRole;

    fn request(&self) -> &Py<Request> {
        &self.request
    }

    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId) {
        (&self.session.handle, self.session.id)
    }

    fn is_undecided(&self) -> bool {
        !self.is_over() && self.session.ready_state() == ReadyState::Connecting
    }

    fn is_over(&self) -> bool {
        self.session.closed_with().is_some()
    }

    fn refuse(&self, _py: Python<'_>) {
        self.session.refuse();
    }

    fn end(&self, py: Python<'_>, ending: HandlerEnd) {
        let code = match ending {
            HandlerEnd::Returned => Code::NORMAL,
            HandlerEnd::Cancelled => Code::GOING_AWAY,
            HandlerEnd::Failed => Code::SERVER_ERROR,
        };
        self.session.close(py, Close::new(code, ""));
    }

    fn release(&self) {
        ws::release(&self.session);
    }

    fn flush(&self, py: Python<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
        self.session.flush(py, reply)
    }
}
