//! `citius.WebSocket`: a [`Session`] and its request, as native handlers see them. Tests: `tests/server/test_websocket.py`.

use std::sync::Arc;

use citius_http::{Action, Fields, Payload, ResponseHead, Status};
use citius_reactor::ws::{Close, Code};
use citius_reactor::{Reply, StreamId};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::awaitable::Done;
use crate::completion::{self, SendOutcome};
use crate::exchange::Exchange;
use crate::gateway::ws::receive::{NextMessage, Shape};
use crate::gateway::ws::session::{Incoming, ReadyState, Session, json_of};
use crate::gateway::ws::{self, SocketRole, fields_from};
use crate::outbox::{AwaitCapacity, OutboxOwner as _};
use crate::reactor_handle::ReactorHandle;
use crate::report::{LEVEL_ERROR, Subject};
use crate::request::Request;
use crate::request_context::{HandlerStage, NativeRequest, RequestContext};
use crate::sink::{Late, Sink};
use crate::task::{
    CompletionHandler, Entry, LateStep, Next, Progress, Resume, Suspended, is_cancellation,
};
use crate::{respond, support};

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

/// Takes the result of the handler of a socket.
pub(crate) struct SocketCompletion<'a, 'py> {
    socket: &'a Bound<'py, WebSocket>,
    /// Set once the request is answered in another way, and how far that is.
    handler_stage: Option<HandlerStage>,
}

impl<'a, 'py> SocketCompletion<'a, 'py> {
    pub(crate) fn new(
        socket: &'a Bound<'py, WebSocket>,
        handler_stage: Option<HandlerStage>,
    ) -> Self {
        Self {
            socket,
            handler_stage,
        }
    }

    /// The handler is done with a socket that it has accepted.
    fn end(&self, py: Python<'_>, error: Option<&PyErr>) {
        let session = &self.socket.get().session;
        let close = match error {
            None => Close::new(Code::NORMAL, ""),
            Some(error) if is_cancellation(py, error) => Close::new(Code::GOING_AWAY, ""),
            Some(error) => {
                if !(session.closed_with().is_some() && support::is_disconnection(py, error)) {
                    self.report(py, error);
                }
                Close::new(Code::SERVER_ERROR, "")
            }
        };
        session.close(py, close);
    }

    #[cold]
    fn report(&self, py: Python<'_>, error: &PyErr) {
        self.subject(py).exception(py, " failed", error);
    }

    /// The handler is done with a request that it has not accepted: what it returned or raised is the response.
    fn refuse<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next {
        let session = Arc::clone(&self.socket.get().session);
        if self.handler_stage.is_none() {
            session.refuse();
            // From here on it is a request like others.
            let role = Box::new(NativeRequest::new(self.socket.get().request.clone_ref(py)));
            let change = |exchange: &mut Exchange| exchange.change_role::<SocketRole>(role);
            drop(session.handle.with(session.id, change));
        }
        let request = self.socket.get().request.bind(py).clone();
        let mut context = RequestContext::of_request(&request);
        context.stage = self.handler_stage.unwrap_or(HandlerStage::Handler);
        let outcome = match result {
            Ok(value) if value.is_none() => {
                answer_forbidden(py, sink);
                SendOutcome::Sent
            }
            Err(error) if is_cancellation(py, &error) => {
                respond::send_fault(
                    py,
                    citius_http::Fault::HandlerFailed,
                    context.error_format(py),
                    sink,
                );
                drop(session.handle.take(session.id));
                return Next::Done(Some(error));
            }
            result => completion::send_result(py, result, &mut context, sink),
        };
        // The stream of a refusal is driven by the task of the socket, whose steps do not end here.
        context.leave_step(py, sink);
        self.handler_stage = Some(context.stage);
        match outcome {
            SendOutcome::Sent => {
                drop(session.handle.take(session.id));
                Next::Done(None)
            }
            SendOutcome::Streaming => Next::Done(None),
            SendOutcome::Coroutine(coroutine) => Next::Coroutine(coroutine),
        }
    }
}

/// The response for a handler that neither accepts nor responds.
fn answer_forbidden<S: Sink>(py: Python<'_>, sink: &mut S) {
    let status = Status::new(403).expect("a status");
    let response = ResponseHead::text(status);
    let body = Payload::Copied(status.reason().as_bytes());
    // Refused only when the connection is being cut already.
    let _ = sink.send(py, Action::Respond(response, body));
}

/// A socket whose coroutine waits.
struct Waiting {
    socket: Py<WebSocket>,
    handler_stage: Option<HandlerStage>,
}

impl Resume for Waiting {
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress {
        let mut completion = SocketCompletion::new(self.socket.bind(py), self.handler_stage);
        let progress = step.run(py, &mut completion);
        self.handler_stage = completion.handler_stage;
        progress
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.socket)
    }
}

impl CompletionHandler for SocketCompletion<'_, '_> {
    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId) {
        let session = &self.socket.get().session;
        (&session.handle, session.id)
    }

    fn subject(&self, py: Python<'_>) -> Subject {
        let request = &self.socket.get().request;
        request.bind(py).get().subject().of_socket()
    }

    fn on_result<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next {
        let session = &self.socket.get().session;
        if session.closed_with().is_none() && session.ready_state() == ReadyState::Connecting
            || self.handler_stage.is_some()
        {
            return self.refuse(py, result, sink);
        }
        let error = result.err();
        self.end(py, error.as_ref());
        ws::release(&self.socket.get().session);
        Next::Done(error.filter(|error| is_cancellation(py, error)))
    }

    fn on_suspend(&mut self, _py: Python<'_>) -> PyResult<Suspended> {
        let waiting = Waiting {
            socket: self.socket.clone().unbind(),
            handler_stage: self.handler_stage,
        };
        Ok(Suspended {
            entry: Entry::Known,
            resume: Box::new(waiting),
        })
    }

    fn flush(&mut self, py: Python<'_>, reply: &mut Reply<'_>) {
        let session = &self.socket.get().session;
        if let Err(fault) = session.flush(py, reply) {
            let what = format!(": {} ({})", fault.text(), fault.spec());
            self.subject(py)
                .log(py, &session.handle, LEVEL_ERROR, &what);
        }
    }

    fn fail(&mut self, py: Python<'_>, error: &PyErr, reply: &mut Reply<'_>) {
        let socket = self.socket.get();
        let request = socket.request.bind(py);
        socket.session.refuse();
        completion::send_internal_error(py, error, &mut RequestContext::of_request(request), reply);
        drop(socket.session.handle.take(socket.session.id));
    }
}
