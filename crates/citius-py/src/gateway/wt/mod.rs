//! WebTransport sessions of every interface: `citius._core._WebTransport` is what their classes in Python are made of.
//!
//! In: events of HTTP/3, as calls of the methods of one Python object, which is attached. Out: commands for the session, posted,
//! so that they leave in the order in which they are given. Queues and what waits for them are in
//! `python/citius/web/realtime/webtransport.py`. Tests: `tests/http3/test_webtransport.py`.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use citius_base::exchange::Role;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::support;
use citius_base::sync::lock;
use citius_http::Fields;
use citius_observe::Counter;
use citius_reactor::{Reply, SessionCommand, SessionEvent, StreamCommand, StreamId};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString};

use crate::gateway::turn::Turn;
use crate::gateway::ws::completion::{Handled, HandlerEnd};
use crate::gateway::ws::fields_from;
use crate::gateway::ws::members::Membership;
use crate::gateway::ws::session::ReadyState;
use crate::request::Request;
use crate::stream::copy_of_buffer;

/// What the server closes sessions with; 0 is a close without an error. As with WebSockets.
const GOING_AWAY: u32 = 1001;
const FAILED: u32 = 1011;
/// What a session that was lost has ended with.
const ABNORMAL: u32 = 1006;

/// Bytes from which on those of Python are referred to, not copied.
const SHARED_BYTES_MIN: usize = citius_http::Output::SHARED_BYTES_MIN;

/// One session; made by the server only.
#[pyclass(frozen, module = "citius._core", name = "_WebTransport", weakref)]
pub(crate) struct WebTransport {
    pub(crate) id: StreamId,
    pub(crate) handle: Arc<ReactorHandle>,
    pub(crate) request: Py<Request>,
    /// The largest datagram that can be sent.
    datagram_bytes_max: usize,
    state: Mutex<State>,
}

struct State {
    ready: ReadyState,
    /// How it ended.
    end: Option<(u32, String)>,
    /// What is told of it.
    listener: Option<Py<PyAny>>,
    rooms: Vec<Membership>,
}

/// An open exchange that is a session.
pub(crate) struct SessionRole {
    session: Py<WebTransport>,
    /// A handler that is elsewhere when its client is lost is cancelled.
    cancels: bool,
}

impl Role for SessionRole {
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool {
        let was_awaited = self.session.get().finish(py, ABNORMAL, String::new());
        self.cancels && !was_awaited
    }
}

impl WebTransport {
    pub(crate) fn new(
        handle: &Arc<ReactorHandle>,
        request: Py<Request>,
        reply: &mut Reply<'_>,
    ) -> Self {
        Self {
            id: reply.id(),
            handle: Arc::clone(handle),
            request,
            datagram_bytes_max: reply.datagram_bytes_max(),
            state: Mutex::new(State {
                ready: ReadyState::Connecting,
                end: None,
                listener: None,
                rooms: Vec::new(),
            }),
        }
    }

    fn ready_state(&self) -> ReadyState {
        lock(&self.state).ready
    }

    fn post(&self, py: Python<'_>, command: SessionCommand) {
        let command = StreamCommand::Session(Box::new(command));
        self.handle.post(py, self.id, command);
    }

    /// Posts something for a session that is open; `false`: it is not.
    fn post_if_open(&self, py: Python<'_>, command: SessionCommand) -> bool {
        let is_open = self.ready_state() == ReadyState::Open;
        if is_open {
            self.post(py, command);
        }
        is_open
    }

    /// It is over: what is attached is told, and it is a member of no room. Whether something waited for it.
    fn finish(&self, py: Python<'_>, code: u32, reason: String) -> bool {
        let mut state = lock(&self.state);
        if state.end.is_some() {
            return false;
        }
        state.ready = ReadyState::Closed;
        state.end = Some((code, reason.clone()));
        let listener = state.listener.take();
        let rooms = std::mem::take(&mut state.rooms);
        drop(state);
        for room in rooms {
            room.end(&self.handle, self.id);
        }
        let Some(listener) = listener else {
            return false;
        };
        let told = listener
            .bind(py)
            .call_method1(intern!(py, "_on_closed"), (code, reason))
            .and_then(|was_awaited| was_awaited.is_truthy());
        told.unwrap_or_else(|error| {
            error.write_unraisable(py, Some(listener.bind(py)));
            false
        })
    }

    /// Calls a method of what is attached.
    fn tell<'py>(
        &self,
        py: Python<'py>,
        name: &Bound<'py, PyString>,
        arguments: impl PyCallArgs<'py>,
    ) {
        let listener = lock(&self.state)
            .listener
            .as_ref()
            .map(|kept| kept.clone_ref(py));
        if let Some(listener) = listener
            && let Err(error) = listener.bind(py).call_method1(name, arguments)
        {
            error.write_unraisable(py, Some(listener.bind(py)));
        }
    }

    // --- rooms --------------------------------------------------------------------------------

    /// Accepts, unless the handler has.
    pub(crate) fn accept_implicitly(&self, py: Python<'_>) -> PyResult<()> {
        if self.ready_state() == ReadyState::Connecting {
            self.accept(py, None)?;
        }
        Ok(())
    }

    /// Remembers to leave a room at the end; `false`: that has come.
    pub(crate) fn enter_room(&self, room: Membership) -> bool {
        let mut state = lock(&self.state);
        if state.ready == ReadyState::Closed {
            return false;
        }
        if !state.rooms.iter().any(|other| other.is(&room)) {
            state.rooms.push(room);
        }
        true
    }

    /// Forgets a room.
    pub(crate) fn leave_room(&self, room: &Membership) {
        lock(&self.state).rooms.retain(|other| !other.is(room));
    }

    pub(crate) fn closed_error(&self, py: Python<'_>) -> PyErr {
        let end = lock(&self.state).end.clone();
        let (code, reason) = end.unwrap_or((ABNORMAL, String::new()));
        support::connection_closed_with(py, code, &reason)
    }
}

#[pymethods]
impl WebTransport {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.request)?;
        match self.state.try_lock() {
            Ok(state) => visit.call(&state.listener),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let listener = lock(&self.state).listener.take();
        drop(listener);
    }

    /// Has an object told of all that comes, by its methods.
    fn attach(&self, listener: Py<PyAny>) {
        let mut state = lock(&self.state);
        let replaced = if state.end.is_none() {
            state.listener.replace(listener)
        } else {
            Some(listener)
        };
        drop(state);
        drop(replaced);
    }

    #[pyo3(signature = (headers = None))]
    fn accept(&self, py: Python<'_>, headers: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let fields = match headers {
            Some(_) => fields_from(headers)?,
            None => Fields::default(),
        };
        let mut state = lock(&self.state);
        match state.ready {
            ReadyState::Connecting => state.ready = ReadyState::Open,
            ReadyState::Open => {
                return Err(PyRuntimeError::new_err("the session is accepted already"));
            }
            ReadyState::Closed => {
                drop(state);
                return Err(self.closed_error(py));
            }
        }
        drop(state);
        self.post(py, SessionCommand::Accept(fields));
        Ok(())
    }

    /// Opens a stream, which is told of by this number.
    fn open(&self, py: Python<'_>, number: u32, is_bidirectional: bool) -> bool {
        let command = SessionCommand::Open {
            number,
            is_bidirectional,
        };
        self.post_if_open(py, command)
    }

    fn send(
        &self,
        py: Python<'_>,
        stream: u64,
        data: &Bound<'_, PyAny>,
        fin: bool,
    ) -> PyResult<usize> {
        let bytes = bytes_of(data)?;
        let length = bytes.len();
        self.post_if_open(py, SessionCommand::Send { stream, bytes, fin });
        Ok(length)
    }

    fn await_room(&self, py: Python<'_>, stream: u64) {
        self.post_if_open(py, SessionCommand::AwaitRoom(stream));
    }

    fn want(&self, py: Python<'_>, stream: u64, bytes: u64) {
        self.post_if_open(py, SessionCommand::Want(stream, bytes));
    }

    fn reset(&self, py: Python<'_>, stream: u64, code: u32) {
        self.post_if_open(py, SessionCommand::Reset(stream, code));
    }

    fn stop(&self, py: Python<'_>, stream: u64, code: u32) {
        self.post_if_open(py, SessionCommand::Stop(stream, code));
    }

    fn send_datagram(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = bytes_of(data)?;
        if bytes.len() > self.datagram_bytes_max {
            return Err(PyValueError::new_err(format!(
                "a datagram of this session has at most {} bytes, got {}; send it on a stream",
                self.datagram_bytes_max,
                bytes.len()
            )));
        }
        self.post_if_open(py, SessionCommand::Datagram(bytes));
        Ok(())
    }

    /// Counts a datagram that was dropped.
    fn count_dropped(&self) {
        if let Some(slot) = self.handle.observed.slot {
            slot.add_from_any_thread(Counter::DatagramsDropped, 1);
        }
    }

    /// A procedure is called on a stream.
    fn begin_call(&self, py: Python<'_>, stream: u64, name: &str, class: u16) {
        if self.handle.observed.slot.is_some() {
            let name = Bytes::copy_from_slice(name.as_bytes());
            let command = SessionCommand::BeginCall {
                stream,
                name,
                class,
            };
            self.post_if_open(py, command);
        }
    }

    /// The call of a stream is over.
    fn end_call(&self, py: Python<'_>, stream: u64, status: u16, bytes: u64, is_cancelled: bool) {
        if self.handle.observed.slot.is_some() {
            let command = SessionCommand::EndCall {
                stream,
                status,
                bytes,
                is_cancelled,
            };
            self.post_if_open(py, command);
        }
    }

    fn ping(&self, py: Python<'_>) {
        self.post_if_open(py, SessionCommand::Ping);
    }

    /// Closes it; nothing once that is done.
    #[pyo3(signature = (code = 0, reason = ""))]
    fn close(&self, py: Python<'_>, code: u32, reason: &str) -> PyResult<()> {
        match self.ready_state() {
            ReadyState::Connecting => {
                return Err(PyRuntimeError::new_err(
                    "the session is not accepted yet: return a Response or raise an HTTPError to refuse it",
                ));
            }
            ReadyState::Closed => return Ok(()),
            ReadyState::Open => {}
        }
        let said = Bytes::copy_from_slice(reason.as_bytes());
        self.post(py, SessionCommand::Close(code, said));
        self.finish(py, code, reason.to_owned());
        drop(self.handle.take(self.id));
        Ok(())
    }

    #[getter]
    fn request(&self, py: Python<'_>) -> Py<Request> {
        self.request.clone_ref(py)
    }

    #[getter]
    fn is_open(&self) -> bool {
        self.ready_state() == ReadyState::Open
    }

    #[getter]
    fn close_code(&self) -> Option<u32> {
        lock(&self.state).end.as_ref().map(|(code, _)| *code)
    }

    #[getter]
    fn close_reason(&self) -> Option<String> {
        let state = lock(&self.state);
        state.end.as_ref().map(|(_, reason)| reason.clone())
    }

    #[getter]
    fn datagram_bytes_max(&self) -> usize {
        self.datagram_bytes_max
    }

    /// One of the server's limits.
    fn limit(&self, name: &str) -> u64 {
        self.handle.limits.value_of(name).unwrap_or(0)
    }
}

impl Handled for WebTransport {
    const CALLED: &'static str = "WebTransport";
    type Role = SessionRole;

    fn request(&self) -> &Py<Request> {
        &self.request
    }

    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId) {
        (&self.handle, self.id)
    }

    fn is_undecided(&self) -> bool {
        self.ready_state() == ReadyState::Connecting
    }

    fn is_over(&self) -> bool {
        self.ready_state() == ReadyState::Closed
    }

    fn refuse(&self, py: Python<'_>) {
        self.finish(py, ABNORMAL, String::new());
    }

    fn end(&self, py: Python<'_>, ending: HandlerEnd) {
        let code = match ending {
            HandlerEnd::Returned => 0,
            HandlerEnd::Cancelled => GOING_AWAY,
            HandlerEnd::Failed => FAILED,
        };
        // Fails for none that was accepted.
        let _ = self.close(py, code, "");
    }

    fn release(&self) {
        drop(self.handle.take(self.id));
    }
}

/// The bytes of what Python gives, to keep: copied when small, kept alive when large.
fn bytes_of(data: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let bytes = match data.cast::<PyBytes>() {
        Ok(bytes) => bytes.clone(),
        Err(_) => copy_of_buffer(data)?.ok_or_else(|| {
            let kind = data.get_type();
            PyTypeError::new_err(format!(
                "expected bytes, got {}; encode text first",
                kind.name()
                    .map_or_else(|_| String::new(), |name| name.to_string())
            ))
        })?,
    };
    Ok(if bytes.as_bytes().len() < SHARED_BYTES_MIN {
        Bytes::copy_from_slice(bytes.as_bytes())
    } else {
        Bytes::from_owner(PyBackedBytes::from(bytes))
    })
}

/// Enters the exchange of a session before its handler is called.
pub(crate) fn enter(turn: &Turn<'_, '_>, session: &Bound<'_, WebTransport>) {
    let role = SessionRole {
        session: session.clone().unbind(),
        cancels: true,
    };
    turn.handle.enter(session.get().id, role);
}

/// Something of a session has come.
pub(crate) fn event(turn: &mut Turn<'_, '_>, event: SessionEvent<'_>, reply: &Reply<'_>) {
    let py = turn.py;
    let session = |role: &mut SessionRole| role.session.clone_ref(py);
    let Some(session) = turn.handle.with_role(reply.id(), session) else {
        return;
    };
    let session = session.get();
    turn.tasks.enter_shared(py);
    match event {
        SessionEvent::Opened { stream, .. } => {
            session.tell(py, intern!(py, "_on_opened"), (stream,));
        }
        SessionEvent::Data { stream, bytes, .. } => {
            let bytes = PyBytes::new(py, bytes);
            session.tell(py, intern!(py, "_on_data"), (stream, bytes));
        }
        SessionEvent::Buffered { stream, bytes, .. } => {
            let bytes = PyBytes::new(py, &bytes);
            session.tell(py, intern!(py, "_on_data"), (stream, bytes));
        }
        SessionEvent::End { stream, .. } => session.tell(py, intern!(py, "_on_end"), (stream,)),
        SessionEvent::Reset { stream, code, .. } => {
            session.tell(py, intern!(py, "_on_reset"), (stream, code));
        }
        SessionEvent::Stopped { stream, code, .. } => {
            session.tell(py, intern!(py, "_on_stopped"), (stream, code));
        }
        SessionEvent::Ready { number, stream, .. } => {
            session.tell(py, intern!(py, "_on_ready"), (number, Some(stream)));
        }
        SessionEvent::NotOpened { number, .. } => {
            session.tell(py, intern!(py, "_on_ready"), (number, None::<u64>));
        }
        SessionEvent::Writable { stream, .. } => {
            session.tell(py, intern!(py, "_on_writable"), (stream,));
        }
        SessionEvent::Datagram { bytes, .. } => {
            let bytes = PyBytes::new(py, bytes);
            session.tell(py, intern!(py, "_on_datagram"), (bytes,));
        }
        SessionEvent::EarlyDatagram { bytes, .. } => {
            let bytes = PyBytes::new(py, &bytes);
            session.tell(py, intern!(py, "_on_datagram"), (bytes,));
        }
        SessionEvent::Draining { .. } => {
            session.tell(py, intern!(py, "_on_draining"), (false,));
        }
        SessionEvent::Leaving { .. } => session.tell(py, intern!(py, "_on_draining"), (true,)),
        SessionEvent::Closed { code, reason, .. } => {
            let reason = String::from_utf8_lossy(&reason).into_owned();
            session.finish(py, code, reason);
            drop(turn.handle.take(session.id));
        }
    }
}
