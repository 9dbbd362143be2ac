//! One WebSocket between its client and its application.
//!
//! ```text
//! Connecting ── accepted ──► Open ── either side closes ──► Closed
//!      └──────── any other response ──────────────────────────► Closed
//! ```
//!
//! In: messages of the client. Out: messages of the application, by an [`Outbox`]; what was posted in the same turn is sent
//! first. The lock is never held while Python code can run. Tests: `tests/server/test_websocket.py`, `tests/asgi/`.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::LEVEL_ERROR;
use citius_base::support::{self, call_back};
use citius_base::sync::lock;
use citius_base::waiter::Waiter;
use citius_http::{Action, Fields, Payload, ResponseHead, Status};
use citius_reactor::ws::{Agreed, Close, Code, Kind, Opening};
use citius_reactor::{Reply, ResponseAction, StreamCommand, StreamId};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyString};

use crate::functions;
use crate::gateway::turn::Turn;
use crate::gateway::ws::members::Membership;
use crate::outbox::{Capacity, Outbox, OutboxOwner, Waiters};
use crate::stream::copy_of_buffer;

/// How far a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadyState {
    /// The application has neither accepted nor rejected it.
    Connecting,
    /// Messages go both ways.
    Open,
    /// Nothing can be sent any more.
    Closed,
}

/// What an application sends.
pub(crate) enum Outgoing {
    Open(Agreed, Fields),
    Message(Kind, Py<PyAny>),
    Close(Close),
    /// The request is refused by this response.
    Refusal(Refusal),
}

/// A response in place of a WebSocket.
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) content_type: Option<Bytes>,
    pub(crate) fields: Fields,
    pub(crate) body: Bytes,
}

/// One socket.
pub(crate) struct Session {
    pub(crate) id: StreamId,
    pub(crate) handle: Arc<ReactorHandle>,
    state: Mutex<SessionState>,
}

struct SessionState {
    outbox: Outbox<Outgoing>,
    ready_state: ReadyState,
    /// What the client has asked for, until it is granted.
    opening: Option<Opening>,
    /// The subprotocol that was agreed on.
    protocol: Option<String>,
    // What has come.
    queue: VecDeque<(Py<PyAny>, usize)>,
    queued_bytes: usize,
    is_paused: bool,
    /// How the session ended, as the application is told.
    end: Option<Close>,
    /// The turn in which something was posted last.
    posted_in: u64,
    on_change: Option<Py<PyAny>>,
    rooms: Vec<Membership>,
}

/// What a look at the line brings.
pub(crate) enum Incoming {
    /// A message: `str` or `bytes`.
    Message(Py<PyAny>),
    /// It is over, and all messages have been taken.
    Closed(Close),
    /// Nothing yet.
    Nothing,
}

impl Session {
    pub(crate) fn new(id: StreamId, handle: &Arc<ReactorHandle>, opening: Opening) -> Self {
        let mut outbox = Outbox::default();
        outbox.begin_step();
        Self {
            id,
            handle: Arc::clone(handle),
            state: Mutex::new(SessionState {
                outbox,
                ready_state: ReadyState::Connecting,
                opening: Some(opening),
                protocol: None,
                queue: VecDeque::new(),
                queued_bytes: 0,
                is_paused: false,
                end: None,
                posted_in: 0,
                on_change: None,
                rooms: Vec::new(),
            }),
        }
    }

    pub(crate) fn ready_state(&self) -> ReadyState {
        lock(&self.state).ready_state
    }

    /// How the session ended, if it has.
    pub(crate) fn closed_with(&self) -> Option<Close> {
        lock(&self.state).end.clone()
    }

    /// The subprotocol that was agreed on.
    pub(crate) fn protocol(&self) -> Option<String> {
        lock(&self.state).protocol.clone()
    }

    // --- receiving ---------------------------------------------------------------------------

    /// A message has come.
    pub(crate) fn push(&self, message: Py<PyAny>, message_bytes: usize) {
        let queued_bytes = &self.handle.ws_queued_bytes;
        queued_bytes.fetch_add(message_bytes as u64, Ordering::Relaxed);
        let mut state = lock(&self.state);
        state.queued_bytes += message_bytes;
        state.queue.push_back((message, message_bytes));
    }

    /// Whether too much waits over all connections, and more here than an equal share of it. Then the latest message
    /// is dropped, and nothing more can be sent: the caller closes the socket.
    pub(crate) fn is_overrun(&self) -> bool {
        let limits = &self.handle.limits;
        if self.handle.ws_queued_bytes.load(Ordering::Relaxed) <= limits.ws_queued_bytes_max {
            return false;
        }
        let share = limits.ws_queued_bytes_max / u64::from(limits.connections_max.max(1));
        let mut state = lock(&self.state);
        if state.queued_bytes as u64 <= share {
            return false;
        }
        let dropped = state.queue.pop_back();
        if let Some((_, message_bytes)) = &dropped {
            self.release_bytes(&mut state, *message_bytes);
        }
        self.mark_closed(state);
        drop(dropped);
        true
    }

    /// A message does not wait any more.
    fn release_bytes(&self, state: &mut SessionState, message_bytes: usize) {
        state.queued_bytes -= message_bytes;
        let queued_bytes = &self.handle.ws_queued_bytes;
        queued_bytes.fetch_sub(message_bytes as u64, Ordering::Relaxed);
    }

    /// Whether another message may come; if not, taking enough of them resumes reading.
    pub(crate) fn may_push(&self) -> bool {
        let mut state = lock(&self.state);
        state.is_paused = state.queue.len() >= (self.handle.limits.ws_queue_max as usize).max(1)
            || state.queued_bytes >= self.handle.limits.body_window_bytes as usize;
        !state.is_paused
    }

    /// Nothing more will arrive, and nothing can be sent.
    pub(crate) fn end(&self, close: Close) {
        let mut state = lock(&self.state);
        if state.end.is_none() {
            state.end = Some(close);
        }
        let said = state.outbox.take_items();
        self.mark_closed(state);
        drop(said);
    }

    /// Nothing more can be sent, so the session is a member of no room. Every socket that ends comes through here:
    /// [`Self::enter_room`] lets none in afterwards.
    fn mark_closed(&self, mut state: MutexGuard<'_, SessionState>) {
        state.ready_state = ReadyState::Closed;
        let rooms = std::mem::take(&mut state.rooms);
        drop(state);
        for room in rooms {
            room.end(&self.handle, self.id);
        }
    }

    /// The next message, if there is one.
    pub(crate) fn take(&self, py: Python<'_>) -> Incoming {
        let mut state = lock(&self.state);
        let Some((message, message_bytes)) = state.queue.pop_front() else {
            return match &state.end {
                Some(end) => Incoming::Closed(end.clone()),
                None => Incoming::Nothing,
            };
        };
        self.release_bytes(&mut state, message_bytes);
        let resumes = state.is_paused
            && state.queue.len() <= self.handle.limits.ws_queue_max as usize / 2
            && state.queued_bytes <= self.handle.limits.body_window_bytes as usize / 2;
        if resumes {
            state.is_paused = false;
        }
        if state.queue.is_empty() && state.queue.capacity() > 64 {
            state.queue = VecDeque::new();
        }
        drop(state);
        if resumes {
            self.handle.post(py, self.id, StreamCommand::Resume);
        }
        Incoming::Message(message)
    }

    // --- waiting ------------------------------------------------------------------------------

    /// Calls `callback` once, on the reactor's thread, when something has changed; soon if there is something to
    /// find already.
    pub(crate) fn on_change(&self, py: Python<'_>, callback: Py<PyAny>, for_room: bool) {
        let mut state = lock(&self.state);
        let is_there = if for_room {
            state.ready_state == ReadyState::Closed
        } else {
            !state.queue.is_empty() || state.end.is_some()
        };
        let replaced = if is_there {
            None
        } else {
            state.on_change.replace(callback.clone_ref(py))
        };
        drop(state);
        drop(replaced);
        if is_there {
            call_back(py, Some(callback));
        } else if for_room {
            self.await_writable(py);
        }
    }

    /// There is room to write.
    pub(crate) fn has_room(&self) {
        lock(&self.state).outbox.on_writable();
    }

    /// Wakes the waiting tasks within a turn, and sends what they queue. Whether there were any.
    pub(crate) fn step(&self, turn: &mut Turn<'_, '_>, reply: &mut Reply<'_>) -> bool {
        let py = turn.py;
        let (waiters, on_change) = self.take_waiters(true);
        let was_awaited = !waiters.is_empty() || on_change.is_some();
        if was_awaited {
            if !waiters.is_empty() {
                turn.tasks.let_step(py, |may_step| {
                    for waiter in waiters {
                        Waiter::wake(waiter.bind(py), may_step);
                    }
                });
            }
            if on_change.is_some() {
                turn.tasks.enter_shared(py);
                call_back(py, on_change);
            }
        }
        if let Err(fault) = self.flush(py, reply) {
            self.handle.log(py, LEVEL_ERROR, fault.text());
        }
        was_awaited
    }

    /// Wakes the waiting tasks by the event loop. Whether there were any.
    pub(crate) fn wake_later(&self, py: Python<'_>) -> bool {
        let (waiters, on_change) = self.take_waiters(false);
        let was_awaited = !waiters.is_empty() || on_change.is_some();
        for waiter in waiters {
            Waiter::wake(waiter.bind(py), false);
        }
        call_back(py, on_change);
        was_awaited
    }

    /// Those who may go on: receivers for messages or an end, senders when more can be written.
    fn take_waiters(&self, in_step: bool) -> (Waiters, Option<Py<PyAny>>) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if in_step {
            state.outbox.begin_step();
        }
        let is_over = state.end.is_some();
        let mut waiters = Waiters::new();
        if !state.queue.is_empty() || is_over {
            waiters = state.outbox.take_receivers();
        }
        waiters.extend(state.outbox.take_senders(is_over));
        (waiters, state.on_change.take())
    }

    /// Sends what was queued in a step; later items are posted.
    ///
    /// # Errors
    /// What the protocol has refused of it.
    pub(crate) fn flush(
        &self,
        py: Python<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), citius_http::Fault> {
        let (said, deferred) = {
            let outbox = &mut lock(&self.state).outbox;
            (outbox.take_items(), outbox.end_step())
        };
        let mut sent = Ok(());
        for said in said {
            match said {
                Outgoing::Open(agreed, fields) => {
                    sent = sent.and(reply.open_socket(agreed, &fields));
                }
                Outgoing::Message(kind, message) => {
                    if let Some(payload) = payload_of(py, &message) {
                        reply.send_message(kind, payload);
                    }
                }
                Outgoing::Close(close) => reply.close_socket(&close),
                Outgoing::Refusal(refusal) => {
                    let head = ResponseHead {
                        status: refusal.status,
                        content_type: refusal.content_type.as_deref(),
                        fields: &refusal.fields,
                    };
                    let body = Payload::Shared(refusal.body);
                    sent = sent.and(reply.send(Action::Respond(head, body)));
                    drop(self.handle.take(self.id));
                }
            }
        }
        deferred.send(reply);
        sent
    }

    // --- sending -----------------------------------------------------------------------------

    /// Grants the client its socket.
    pub(crate) fn accept(
        &self,
        py: Python<'_>,
        protocol: Option<&str>,
        mut fields: Fields,
    ) -> PyResult<()> {
        let mut state = lock(&self.state);
        match state.ready_state {
            ReadyState::Connecting => {}
            ReadyState::Open => {
                drop(state);
                return Err(PyRuntimeError::new_err("the WebSocket is accepted already"));
            }
            ReadyState::Closed => {
                let end = state.end.clone();
                drop(state);
                return Err(support::connection_closed(py, end.as_ref()));
            }
        }
        let Some(opening) = state.opening.take() else {
            return Ok(());
        };
        let agreed = match opening.accept(protocol, &mut fields) {
            Ok(agreed) => agreed,
            Err(fault) => {
                state.opening = Some(opening);
                drop(state);
                return Err(PyValueError::new_err(format!(
                    "subprotocol {protocol:?}: {}",
                    fault.text()
                )));
            }
        };
        state.protocol = protocol.map(str::to_owned);
        state.ready_state = ReadyState::Open;
        drop(state);
        self.send_item(py, Outgoing::Open(agreed, fields));
        Ok(())
    }

    /// The subprotocols the client has offered; known until one is accepted.
    pub(crate) fn offered(&self) -> Vec<String> {
        let state = lock(&self.state);
        let protocols = state.opening.as_ref().map(|opening| &opening.protocols);
        protocols.cloned().unwrap_or_default()
    }

    /// Sends a message; `false`: the next one has to wait for room.
    pub(crate) fn send(&self, py: Python<'_>, message: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (kind, message, message_bytes) = read_message(message)?;
        let mut state = lock(&self.state);
        if state.ready_state == ReadyState::Closed {
            let end = state.end.clone();
            drop(state);
            return Err(support::connection_closed(py, end.as_ref()));
        }
        state.outbox.count(message_bytes as u64);
        let has_room = !state.outbox.is_full(&self.handle);
        drop(state);
        self.send_item(py, Outgoing::Message(kind, message));
        Ok(has_room)
    }

    /// Begins to close; nothing if that has begun.
    pub(crate) fn close(&self, py: Python<'_>, close: Close) {
        let state = lock(&self.state);
        if state.ready_state != ReadyState::Open {
            return;
        }
        self.mark_closed(state);
        self.send_item(py, Outgoing::Close(close));
    }

    /// The request is answered in another way.
    pub(crate) fn refuse(&self) {
        self.end(Close::new(Code::ABNORMAL, ""));
    }

    /// The request is refused by this response.
    pub(crate) fn refuse_with(&self, py: Python<'_>, refusal: Refusal) {
        self.refuse();
        self.send_item(py, Outgoing::Refusal(refusal));
    }

    fn send_item(&self, py: Python<'_>, said: Outgoing) {
        let turn = self.handle.turn.load(Ordering::Relaxed);
        let cast_in = self.handle.cast_in.load(Ordering::Relaxed);
        let mut state = lock(&self.state);
        if state.outbox.is_in_step() && state.posted_in != turn && cast_in != turn {
            state.outbox.push(said);
            return;
        }
        // What is queued leaves when the step ends, before all that is posted within it: an acceptance before what a room sends.
        state.posted_in = turn;
        drop(state);
        let is_refusal = matches!(said, Outgoing::Refusal(_));
        let command = match said {
            Outgoing::Open(agreed, fields) => StreamCommand::Open(agreed, fields),
            Outgoing::Message(kind, message) => {
                StreamCommand::Message(kind, bytes_of(py, &message))
            }
            Outgoing::Close(close) => StreamCommand::Close(close),
            Outgoing::Refusal(refusal) => StreamCommand::Act(ResponseAction::Respond {
                status: refusal.status,
                content_type: refusal.content_type,
                fields: refusal.fields,
                body: Payload::Shared(refusal.body),
            }),
        };
        self.handle.post(py, self.id, command);
        if is_refusal {
            drop(self.handle.take(self.id));
        }
    }

    // --- rooms --------------------------------------------------------------------------------

    /// Remembers to leave a room at the end; `false`: that has come.
    pub(crate) fn enter_room(&self, room: Membership) -> bool {
        let mut state = lock(&self.state);
        if state.ready_state == ReadyState::Closed {
            return false;
        }
        if !state.rooms.iter().any(|other| other.is(&room)) {
            state.rooms.push(room);
        }
        true
    }

    /// Forgets a room.
    pub(crate) fn leave_room(&self, room: &Membership) {
        let mut state = lock(&self.state);
        state.rooms.retain(|other| !other.is(room));
    }
}

impl OutboxOwner for Session {
    type Item = Outgoing;

    fn handle(&self) -> &Arc<ReactorHandle> {
        &self.handle
    }

    fn stream_id(&self) -> StreamId {
        self.id
    }

    fn outbox<R>(&self, act: impl FnOnce(&mut Outbox<Outgoing>) -> R) -> R {
        act(&mut lock(&self.state).outbox)
    }

    fn is_over(&self) -> bool {
        self.ready_state() == ReadyState::Closed
    }
}

impl Capacity for Arc<Session> {
    fn wait(&self, py: Python<'_>) -> PyResult<Option<Py<Waiter>>> {
        self.await_capacity(py)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let left_bytes = lock(&self.state).queued_bytes as u64;
        let queued_bytes = &self.handle.ws_queued_bytes;
        queued_bytes.fetch_sub(left_bytes, Ordering::Relaxed);
    }
}

/// A message as Python gives it: its kind, and an immutable object that holds it.
fn read_message(message: &Bound<'_, PyAny>) -> PyResult<(Kind, Py<PyAny>, usize)> {
    if let Ok(text) = message.cast::<PyString>() {
        // Fails for lone surrogates, which no UTF-8 can say.
        let text_bytes = text.to_str()?.len();
        return Ok((Kind::Text, message.clone().unbind(), text_bytes));
    }
    if let Ok(bytes) = message.cast::<PyBytes>() {
        let bytes_len = bytes.as_bytes().len();
        return Ok((Kind::Binary, message.clone().unbind(), bytes_len));
    }
    if let Some(copy) = copy_of_buffer(message)? {
        let copy_bytes = copy.as_bytes().len();
        return Ok((Kind::Binary, copy.into_any().unbind(), copy_bytes));
    }
    Err(PyTypeError::new_err(format!(
        "a message is str or bytes, got {}; send_json() encodes other objects",
        message.get_type().name()?
    )))
}

/// The bytes of a message, for the length of a call.
fn payload_of<'a>(py: Python<'a>, message: &'a Py<PyAny>) -> Option<Payload<'a>> {
    let message = message.bind(py);
    let view = match message.cast::<PyString>() {
        Ok(text) => text.to_str().ok()?.as_bytes(),
        Err(_) => message.cast::<PyBytes>().ok()?.as_bytes(),
    };
    if view.len() < citius_http::Output::SHARED_BYTES_MIN {
        Some(Payload::Copied(view))
    } else {
        Some(Payload::Shared(owned(message)?))
    }
}

/// The bytes of a message, to keep: copied when small, kept alive when large.
pub(crate) fn bytes_of(py: Python<'_>, message: &Py<PyAny>) -> Bytes {
    match payload_of(py, message) {
        Some(Payload::Copied(bytes)) => Bytes::copy_from_slice(bytes),
        Some(Payload::Shared(bytes)) => bytes,
        _ => Bytes::new(),
    }
}

/// Kind and bytes of a message as Python gives it.
pub(crate) fn parts_of(message: &Bound<'_, PyAny>) -> PyResult<(Kind, Bytes)> {
    let py = message.py();
    let (kind, message, _) = read_message(message)?;
    Ok((kind, bytes_of(py, &message)))
}

/// An object as a text message.
pub(crate) fn json_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let py = value.py();
    let encoded = functions::encoded(py, &functions::ENCODE_JSON, value)?;
    let text = String::from_utf8_lossy(encoded.cast::<PyBytes>()?.as_bytes());
    Ok(PyString::new(py, &text))
}

fn owned(message: &Bound<'_, PyAny>) -> Option<Bytes> {
    if let Ok(text) = message.cast::<PyString>() {
        return Some(Bytes::from_owner(OwnedText(
            PyBackedStr::try_from(text.clone()).ok()?,
        )));
    }
    let bytes = message.cast::<PyBytes>().ok()?;
    Some(Bytes::from_owner(PyBackedBytes::from(bytes.clone())))
}

/// The UTF-8 of a Python string.
struct OwnedText(PyBackedStr);

impl AsRef<[u8]> for OwnedText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
