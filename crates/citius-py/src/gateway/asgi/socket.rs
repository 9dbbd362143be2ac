//! The `websocket` scope: ASGI's messages on one side, a [`Session`] on the other.
//!
//! `receive` returns `websocket.connect`, then each message, then `websocket.disconnect` at every further call. A request that
//! the application rejects (`websocket.close`, `websocket.http.response`) gets an HTTP response. Tests: `tests/asgi/`.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use citius_base::awaitable::{Done, Poll, PollAwaitable, impl_awaitable};
use citius_base::fork::end_child_with;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::{LEVEL_DEBUG, LEVEL_ERROR, Subject};
use citius_base::sink::Sink;
use citius_base::support;
use citius_base::sync::lock;
use citius_base::task::{
    CompletionHandler, Entry, LateStep, Next, Progress, Resume, Suspended, is_cancellation,
};
use citius_http::{Fault, Fields, Head, Status};
use citius_reactor::ws::{Close, Code, Transport};
use citius_reactor::{Reply, StreamId};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::gateway::asgi::message::{self, Start};
use crate::gateway::asgi::{Plan, awaitables};
use crate::gateway::turn::Turn;
use crate::gateway::ws;
use crate::gateway::ws::receive::{NextMessage, Shape};
use crate::gateway::ws::session::{ReadyState, Refusal, Session};
use crate::outbox::AwaitCapacity;
use crate::respond;

/// One socket, as the application sees it.
#[pyclass(frozen, module = "citius._core", name = "_AsgiSocket")]
pub(crate) struct AsgiSocket {
    pub(crate) session: Arc<Session>,
    /// What messages say of it.
    subject: Subject,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `websocket.connect` has been returned.
    connect_sent: bool,
    /// The request is being answered as HTTP.
    denial: Option<(Start, Vec<u8>)>,
    /// It was.
    is_denied: bool,
}

#[pymethods]
impl AsgiSocket {
    fn receive<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if !std::mem::replace(&mut lock(&self.state).connect_sent, true) {
            return Ok(Bound::new(py, Connect)?.into_any());
        }
        let next = NextMessage {
            session: Arc::clone(&self.session),
            shape: Shape::Asgi,
        };
        Ok(Bound::new(py, next)?.into_any())
    }

    fn send<'py>(&self, message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        let Ok(message) = message.cast::<PyDict>() else {
            return Err(PyTypeError::new_err(format!(
                "send() expects a dict, got {}",
                message.get_type().name()?
            )));
        };
        let kind = item(message, intern!(py, "type"))?.ok_or_else(|| {
            PyKeyError::new_err(format!("the ASGI message {message} has no \"type\""))
        })?;
        let kind = kind.cast::<PyString>()?.to_str()?;
        let ready_state = self.session.ready_state();
        if let Some(end) = self.session.closed_with()
            && !lock(&self.state).is_denied
        {
            return Err(support::connection_closed(py, Some(&end)));
        }
        match (kind, ready_state) {
            ("websocket.send", ReadyState::Open) => return self.send_data(message),
            ("websocket.accept", ReadyState::Connecting) if lock(&self.state).denial.is_none() => {
                self.accept(message)?;
            }
            ("websocket.close", ReadyState::Connecting) if lock(&self.state).denial.is_none() => {
                let start = Start::plain(Status::new(403).expect("a status"));
                self.deny(py, &start, Vec::new());
            }
            ("websocket.close", ReadyState::Open) => self.close(message)?,
            // Saying it again changes nothing.
            ("websocket.close", ReadyState::Closed) => {}
            ("websocket.http.response.start", ReadyState::Connecting)
                if lock(&self.state).denial.is_none() =>
            {
                let start = message::start(message)?;
                let replaced = lock(&self.state).denial.replace((start, Vec::new()));
                drop(replaced);
            }
            ("websocket.http.response.body", ReadyState::Connecting)
                if lock(&self.state).denial.is_some() =>
            {
                self.append_denial(message)?;
            }
            _ => return Err(self.out_of_order(kind, ready_state)),
        }
        Done::get(py)
    }
}

fn item<'py>(
    message: &Bound<'py, PyDict>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(message.get_item(name)?.filter(|value| !value.is_none()))
}

impl AsgiSocket {
    fn accept(&self, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = message.py();
        let protocol: Option<String> = item(message, intern!(py, "subprotocol"))?
            .map(|protocol| protocol.extract())
            .transpose()?;
        let mut fields = Fields::default();
        if let Some(headers) = item(message, intern!(py, "headers"))? {
            message::for_each_field(&headers, |name, value| {
                if name
                    .as_bytes()
                    .eq_ignore_ascii_case(b"sec-websocket-protocol")
                {
                    return Err(PyValueError::new_err(
                        "the subprotocol of 'websocket.accept' is said by 'subprotocol', not among 'headers'",
                    ));
                }
                fields
                    .push(name.as_bytes(), value.as_bytes())
                    .map_err(|fault| message::refused(name, value, fault))
            })?;
        }
        self.session.accept(py, protocol.as_deref(), fields)
    }

    fn send_data<'py>(&self, message: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        let data = match (
            item(message, intern!(py, "text"))?,
            item(message, intern!(py, "bytes"))?,
        ) {
            (Some(text), None) if text.is_instance_of::<PyString>() => text,
            (None, Some(bytes)) if !bytes.is_instance_of::<PyString>() => bytes,
            _ => {
                return Err(PyValueError::new_err(
                    "'websocket.send' has either 'text', a str, or 'bytes'",
                ));
            }
        };
        if self.session.send(py, &data)? {
            Done::get(py)
        } else {
            AwaitCapacity::of(py, Arc::clone(&self.session))
        }
    }

    fn close(&self, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = message.py();
        let number: u16 = match item(message, intern!(py, "code"))? {
            Some(code) => code.extract()?,
            None => 1000,
        };
        let code = Code::new(number).ok_or_else(|| {
            PyValueError::new_err(format!(
                "'code' of 'websocket.close' is 1000 to 1003, 1007 to 1014, or 3000 to 4999; got {number}"
            ))
        })?;
        let reason: String = match item(message, intern!(py, "reason"))? {
            Some(reason) => reason.extract()?,
            None => String::new(),
        };
        self.session.close(py, Close::new(code, &reason));
        Ok(())
    }

    fn append_denial(&self, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = message.py();
        let body = match item(message, intern!(py, "body"))? {
            Some(body) => message::bytes_of(body, "'body' of 'websocket.http.response.body'")?,
            None => PyBytes::new(py, b"").unbind(),
        };
        let more = message::flag(message, intern!(py, "more_body"))?;
        let mut state = lock(&self.state);
        if let Some((_, whole)) = &mut state.denial {
            whole.extend_from_slice(body.as_bytes(py));
        }
        let denial = if more { None } else { state.denial.take() };
        drop(state);
        if let Some((start, body)) = denial {
            self.deny(py, &start, body);
        }
        Ok(())
    }

    /// Answers as HTTP.
    fn deny(&self, py: Python<'_>, start: &Start, body: Vec<u8>) {
        lock(&self.state).is_denied = true;
        let media = start.headers.content_type.as_ref();
        let refusal = Refusal {
            status: start.status,
            content_type: media.map(|media| Bytes::copy_from_slice(media)),
            fields: start.fields().into_owned(),
            body: body.into(),
        };
        self.session.refuse_with(py, refusal);
    }

    #[cold]
    fn out_of_order(&self, kind: &str, ready_state: ReadyState) -> PyErr {
        let expected = match ready_state {
            ReadyState::Connecting if lock(&self.state).denial.is_some() => {
                "expected 'websocket.http.response.body'"
            }
            ReadyState::Connecting => {
                "expected 'websocket.accept', 'websocket.close' or 'websocket.http.response.start'"
            }
            ReadyState::Open => "expected 'websocket.send' or 'websocket.close'",
            ReadyState::Closed => "the WebSocket is closed already",
        };
        PyRuntimeError::new_err(format!("unexpected ASGI message {kind:?}: {expected}"))
    }

    #[cold]
    fn report(&self, py: Python<'_>, what: &str) {
        let what = format!(": {what}");
        self.subject
            .log(py, &self.session.handle, LEVEL_ERROR, &what);
    }
}

/// Returned by the first `receive`.
#[pyclass(frozen, module = "citius._core", name = "_Connect")]
struct Connect;

impl PollAwaitable for Connect {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let message = PyDict::new(py);
        message.set_item(intern!(py, "type"), intern!(py, "websocket.connect"))?;
        Ok(Poll::Ready(message.into_any().unbind()))
    }
}

impl_awaitable!(Connect);

/// A request for a WebSocket.
#[inline(never)]
pub(super) fn request(
    turn: &mut Turn<'_, '_>,
    plan: &Plan,
    head: Box<Head>,
    transport: Transport,
    ended: bool,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    let Some(opening) = ws::opening(&head, transport, ended, reply) else {
        return reply.recycle(head);
    };
    let protocols = opening.protocols.clone();
    let session = Arc::new(Session::new(reply.id(), turn.handle, opening));
    ws::enter(turn, &session, false);
    let made = AsgiSocket {
        session,
        subject: Subject::new(turn.handle.names(), &head, None).named_as("WebSocket"),
        state: Mutex::default(),
    };
    let socket = match Bound::new(py, made) {
        Ok(socket) => socket,
        Err(error) => {
            drop(turn.handle.take(reply.id()));
            return super::refuse(turn, &error, head, reply);
        }
    };
    let called = plan
        .scopes
        .make_socket(py, &head, &protocols, reply)
        .and_then(|scope| {
            let receive = socket.getattr(intern!(py, "receive"))?;
            let send = socket.getattr(intern!(py, "send"))?;
            plan.app.bind(py).call1((scope, receive, send))
        });
    reply.recycle(head);
    let mut completion = SocketCompletion::new(&socket);
    match called.and_then(|awaitable| awaitables::coroutine_of(&awaitable)) {
        Ok(coroutine) => turn.tasks.step(py, coroutine, &mut completion, reply),
        Err(error) => completion.fail(py, &error, reply),
    }
    plan.scopes.release(py);
}

/// Takes the result of the coroutine of a socket.
struct SocketCompletion<'a, 'py> {
    socket: &'a Bound<'py, AsgiSocket>,
}

impl<'a, 'py> SocketCompletion<'a, 'py> {
    fn new(socket: &'a Bound<'py, AsgiSocket>) -> Self {
        Self { socket }
    }

    /// The application has ended before it accepted or refused.
    fn fail_handshake<S: Sink>(&self, py: Python<'_>, sink: &mut S) {
        let session = &self.socket.get().session;
        session.refuse();
        respond::send_fault(py, Fault::HandlerFailed, None, sink);
    }
}

/// A socket between two steps of its coroutine.
struct BetweenSteps(Py<AsgiSocket>);

impl Resume for BetweenSteps {
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress {
        step.run(py, &mut SocketCompletion::new(self.0.bind(py)))
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

impl CompletionHandler for SocketCompletion<'_, '_> {
    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId) {
        let session = &self.socket.get().session;
        (&session.handle, session.id)
    }

    fn subject(&self, _py: Python<'_>) -> Subject {
        self.socket.get().subject.clone()
    }

    fn on_result<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next {
        let this = self.socket.get();
        let session = &this.session;
        let is_unanswered =
            session.ready_state() == ReadyState::Connecting && session.closed_with().is_none();
        let error = result.err();
        match &error {
            None if is_unanswered => {
                this.report(
                    py,
                    "the ASGI application returned without accepting or closing it",
                );
                self.fail_handshake(py, sink);
            }
            None => session.close(py, Close::new(Code::NORMAL, "")),
            Some(error) if session.closed_with().is_some() && !lock(&this.state).is_denied => {
                let what = format!(": after its end: {error}");
                this.subject.log(py, &session.handle, LEVEL_DEBUG, &what);
            }
            Some(error) => {
                end_child_with(py, &session.handle, error);
                let what = format!(": the ASGI application raised {error}");
                this.subject.exception(py, &what, error);
                if is_unanswered {
                    self.fail_handshake(py, sink);
                } else {
                    session.close(py, Close::new(Code::SERVER_ERROR, ""));
                }
            }
        }
        if !lock(&this.state).is_denied {
            ws::release(session);
        }
        Next::Done(error.filter(|error| is_cancellation(py, error)))
    }

    fn on_suspend(&mut self, _py: Python<'_>) -> PyResult<Suspended> {
        Ok(Suspended {
            entry: Entry::Known,
            resume: Box::new(BetweenSteps(self.socket.clone().unbind())),
        })
    }

    fn flush(&mut self, py: Python<'_>, reply: &mut Reply<'_>) {
        let this = self.socket.get();
        if let Err(fault) = this.session.flush(py, reply) {
            this.report(py, fault.text());
        }
    }

    fn fail(&mut self, py: Python<'_>, error: &PyErr, reply: &mut Reply<'_>) {
        // There is no coroutine that could be gone on with.
        let _ = self.on_result(py, Err(error.clone_ref(py)), reply);
        self.flush(py, reply);
    }
}
