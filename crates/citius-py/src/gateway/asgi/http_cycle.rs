//! One request and its response as the application sees them: body in, ASGI messages out.
//!
//! ```text
//! NotStarted ── start ──► Started ── first body, the head is sent ──► Streaming ── last body ──► Complete
//! ```
//!
//! Messages are queued in an [`Outbox`]: within a turn [`HttpCompletion`] sends them when the step ends, later each piece of
//! the body is posted at once. The lock is never held while Python code can run. Tests: `tests/asgi/`.

use std::sync::{Arc, Mutex};

use citius_base::awaitable::Done;
use citius_base::exchange::{LazySubject, Role, Tell};
use citius_base::fork::end_child_with;
use citius_base::logging::Names;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::{LEVEL_DEBUG, LEVEL_ERROR, Subject};
use citius_base::sink::{Late, Sink, payload};
use citius_base::support;
use citius_base::sync::lock;
use citius_base::task::{
    CompletionHandler, Entry, LateStep, Next, Progress, Resume, Suspended, is_cancellation,
};
use citius_base::waiter::Waiter;
use citius_http::{Action, Declared, Fault, Fields, Head, Method, Payload, ResponseHead, Status};
use citius_reactor::{Reply, StreamId, exact_us};
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::gateway::asgi::awaitables::{Ignored, Receive};
use crate::gateway::asgi::message::{self, Body, InternedKeys, Message, Start};
use crate::outbox::{AwaitCapacity, Capacity, Outbox, OutboxOwner, Waiters};

/// What the conversations of one reactor have in common.
pub(super) struct Constants {
    /// `{"type": "http.request", "body": b"", "more_body": False}`, to be copied.
    empty_request: Py<PyDict>,
    keys: InternedKeys,
}

/// A request whose application is not called yet. Its callables refer to the cycle that keeps them here.
pub(super) struct PendingCall {
    pub(super) head: Box<Head>,
    pub(super) receive: Py<PyAny>,
    pub(super) send: Py<PyAny>,
}

/// How far the application is with its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
enum ResponseState {
    #[default]
    NotStarted,
    /// The start was sent by the application; it leaves with the first piece of the body.
    Started,
    /// The head has left.
    Streaming,
    /// The last body was sent by the application.
    Complete,
}

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pushed {
    MayGoOn,
    /// The next one has to wait for room.
    MustWait,
    /// The client has gone.
    Ignored,
}

/// Microseconds in which messages are ignored without a turn of the event loop, when the client has gone.
const IGNORED_AT_ONCE_US: u64 = 20_000;

/// Messages that are ignored with one, before `send` raises all the same: an application that neither waits for
/// `http.disconnect` nor ends would go on for ever.
const IGNORED_MAX: u32 = 1000;

/// One request and its response, as the application sees them.
#[pyclass(frozen, module = "citius._core", name = "_HttpCycle")]
pub(crate) struct HttpCycle {
    pub(crate) handle: Arc<ReactorHandle>,
    constants: Arc<Constants>,
    state: Mutex<CycleState>,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one request and its answer"
)]
#[derive(Default)]
struct CycleState {
    /// Absent between two requests.
    id: Option<StreamId>,
    /// Queued pieces of the body.
    outbox: Outbox<Body>,
    /// What the application is to be called with.
    pending_call: Option<PendingCall>,
    /// What the application was called with, for messages about it.
    scope: Option<Py<PyDict>>,
    // The request.
    piece: Option<Py<PyBytes>>,
    more_pieces: Vec<u8>,
    body_ended: bool,
    /// `receive` has returned the end of the body.
    end_sent: bool,
    /// Bytes of the body that were asked for and have not arrived.
    credit: u64,
    /// The client has disconnected.
    is_disconnected: bool,
    /// The body is longer than it may be: no more of it comes, while the response goes on.
    is_body_refused: bool,
    /// When the first message came after that, and how many gave up a turn of the event loop.
    ignored_since_us: Option<u64>,
    n_ignored: u32,
    // The response.
    response_state: ResponseState,
    start: Option<Start>,
    hints: Vec<Fields>,
    trailers: Fields,
    awaits_trailers: bool,
    /// The application has sent the last piece of the body.
    is_body_over: bool,
    head_only: bool,
    declared: Declared,
    sent_bytes: u64,
}

impl Constants {
    pub(super) fn new(py: Python<'_>) -> PyResult<Self> {
        let empty_request = PyDict::new(py);
        empty_request.set_item(intern!(py, "type"), intern!(py, "http.request"))?;
        empty_request.set_item(intern!(py, "body"), PyBytes::new(py, b""))?;
        empty_request.set_item(intern!(py, "more_body"), false)?;
        Ok(Self {
            empty_request: empty_request.unbind(),
            keys: InternedKeys::new(py),
        })
    }
}

#[pymethods]
impl HttpCycle {
    fn receive(slf: Py<Self>) -> Receive {
        Receive(slf)
    }

    fn send<'py>(
        slf: &Bound<'py, Self>,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let said = message::read(&this.handle, &this.constants.keys, message)?;
        match this.push_message(py, said, message)? {
            Pushed::MayGoOn => Done::get(py),
            Pushed::MustWait => AwaitCapacity::of(py, slf.clone().unbind()),
            Pushed::Ignored => Ok(Bound::new(py, Ignored::default())?.into_any()),
        }
    }
}

impl HttpCycle {
    pub(super) fn new(handle: &Arc<ReactorHandle>, constants: &Arc<Constants>) -> Self {
        Self {
            handle: Arc::clone(handle),
            constants: Arc::clone(constants),
            state: Mutex::new(CycleState::idle()),
        }
    }

    /// Becomes that of another request; it is new, or has [forgotten](Self::reset) the one before.
    #[inline]
    pub(super) fn begin(&self, head: &Head, body_ended: bool, reply: &Reply<'_>) {
        let mut state = lock(&self.state);
        state.id = Some(reply.id());
        state.is_disconnected = false;
        state.is_body_refused = false;
        state.outbox.begin_step();
        state.body_ended = body_ended;
        state.head_only = head.method == Method::Head;
    }

    /// Lets go of everything that belongs to the request.
    #[inline]
    pub(super) fn reset(&self) {
        let state = std::mem::replace(&mut *lock(&self.state), CycleState::idle());
        drop(state);
    }

    #[inline]
    pub(crate) fn id(&self) -> StreamId {
        lock(&self.state)
            .id
            .expect("a cycle has an id while a request uses it")
    }

    pub(super) fn set_pending_call(&self, pending_call: PendingCall) {
        let replaced = lock(&self.state).pending_call.replace(pending_call);
        drop(replaced);
    }

    /// A request whose application is to be called now.
    pub(super) fn take_pending_call(&self) -> Option<PendingCall> {
        lock(&self.state).pending_call.take()
    }

    pub(super) fn set_scope(&self, scope: Py<PyDict>) {
        let replaced = lock(&self.state).scope.replace(scope);
        drop(replaced);
    }

    /// The application is done. What it has put into the scope may lead back to us, and the collector of
    /// garbage does not see through us.
    #[inline]
    fn forget_scope(&self) {
        let scope = lock(&self.state).scope.take();
        drop(scope);
    }

    fn window(&self) -> u64 {
        u64::from(self.handle.limits.body_window_bytes)
    }

    /// Asks for as much of the body as may wait here.
    pub(super) fn want_window(&self, reply: &mut Reply<'_>) {
        lock(&self.state).credit = self.window();
        reply.want(self.window());
    }

    /// A piece of the body has come.
    pub(super) fn push_body(&self, py: Python<'_>, bytes: &[u8]) {
        let mut state = lock(&self.state);
        state.credit = state.credit.saturating_sub(bytes.len() as u64);
        if state.piece.is_some() || !state.more_pieces.is_empty() {
            state.more_pieces.extend_from_slice(bytes);
        } else {
            drop(state);
            let piece = PyBytes::new(py, bytes).unbind();
            state = lock(&self.state);
            state.piece = Some(piece);
        }
        let receivers = state.outbox.take_receivers();
        drop(state);
        wake(py, receivers);
    }

    /// The body is complete.
    pub(super) fn end_body(&self, py: Python<'_>) {
        let mut state = lock(&self.state);
        state.body_ended = true;
        let receivers = state.outbox.take_receivers();
        drop(state);
        wake(py, receivers);
    }

    /// The client has disconnected.
    pub(super) fn disconnect(&self, py: Python<'_>) {
        let mut state = lock(&self.state);
        state.is_disconnected = true;
        let receivers = state.outbox.take_receivers();
        let senders = state.outbox.take_senders(true);
        let said = (state.outbox.take_items(), state.start.take());
        let pending_call = state.pending_call.take();
        drop(state);
        if let Some(pending_call) = pending_call {
            self.handle.keep_head(pending_call.head);
        }
        wake(py, receivers);
        wake(py, senders);
        drop(said);
    }

    /// No more of the body comes, while the response goes on.
    pub(super) fn refuse_body(&self, py: Python<'_>) {
        let mut state = lock(&self.state);
        state.is_body_refused = !state.body_ended;
        let receivers = state.outbox.take_receivers();
        drop(state);
        wake(py, receivers);
    }

    /// There is room for more of the response.
    pub(super) fn on_writable(&self, py: Python<'_>) {
        let mut state = lock(&self.state);
        state.outbox.on_writable();
        let senders = state.outbox.take_senders(true);
        drop(state);
        wake(py, senders);
    }

    /// What `receive` returns, if there is something to tell.
    pub(super) fn next_message<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut state = lock(&self.state);
        let has_come = state.piece.is_some() || state.body_ended && !state.end_sent;
        if !has_come || state.response_state == ResponseState::Complete {
            // ASGI has no other word for a body that does not go on.
            let is_over = state.is_disconnected || state.is_body_refused;
            if !is_over && state.response_state != ResponseState::Complete {
                return Ok(None);
            }
            drop(state);
            let message = PyDict::new(py);
            message.set_item(intern!(py, "type"), intern!(py, "http.disconnect"))?;
            return Ok(Some(message));
        }
        let piece = state.piece.take();
        let rest = std::mem::take(&mut state.more_pieces);
        let more = !state.body_ended;
        state.end_sent = !more;
        drop(state);
        let message = self.constants.empty_request.bind(py).copy()?;
        if let Some(piece) = piece {
            let body = if rest.is_empty() {
                piece.into_bound(py)
            } else {
                PyBytes::new(py, &[piece.as_bytes(py), &rest].concat())
            };
            if more {
                message.set_item(intern!(py, "more_body"), true)?;
                self.request_body(py, body.as_bytes().len() as u64);
            }
            message.set_item(intern!(py, "body"), body)?;
        }
        Ok(Some(message))
    }

    /// Something to wait for until `next_message` may have something.
    pub(super) fn await_piece(&self, py: Python<'_>) -> PyResult<Py<Waiter>> {
        let waiter = self.await_message(py)?;
        let is_first_question = {
            let state = lock(&self.state);
            !state.body_ended && state.credit == 0
        };
        if is_first_question {
            self.request_body(py, self.window());
        }
        Ok(waiter)
    }

    fn request_body(&self, py: Python<'_>, bytes: u64) {
        lock(&self.state).credit += bytes;
        self.want(py, bytes);
    }

    /// Takes a message.
    fn push_message(
        &self,
        py: Python<'_>,
        said: Message,
        message: &Bound<'_, PyAny>,
    ) -> PyResult<Pushed> {
        let mut state = lock(&self.state);
        if state.is_disconnected {
            let pushed = state.ignore();
            drop(state);
            return pushed.ok_or_else(|| support::client_disconnected(py));
        }
        match said {
            Message::Start(start) if state.response_state == ResponseState::NotStarted => {
                let is_bodiless = state.head_only || start.status.refuses_content();
                state.declared = Declared::new(start.content_length.filter(|_| !is_bodiless));
                state.awaits_trailers = start.trailers;
                state.response_state = ResponseState::Started;
                state.start = Some(start);
                return Ok(Pushed::MayGoOn);
            }
            Message::Body { body, more } if state.takes_body() && !state.is_body_over => {
                state.take_body(py, body, more)?;
            }
            Message::Trailers { fields, more } if state.takes_body() && state.awaits_trailers => {
                for (name, value) in fields.iter() {
                    // They were checked a moment ago.
                    let _ = state.trailers.push(name, value);
                }
                if !more {
                    state.response_state = ResponseState::Complete;
                }
            }
            Message::EarlyHint(fields) if state.response_state == ResponseState::NotStarted => {
                state.hints.push(fields);
            }
            Message::Debug => return Ok(Pushed::MayGoOn),
            _ => {
                let response_state = state.response_state;
                drop(state);
                return Err(out_of_order(response_state, message));
            }
        }
        let is_complete = state.response_state == ResponseState::Complete;
        let pushed = if is_complete || !state.outbox.is_full(&self.handle) {
            Pushed::MayGoOn
        } else {
            Pushed::MustWait
        };
        if state.outbox.is_in_step() {
            return Ok(pushed);
        }
        drop(state);
        let mut late = Late {
            handle: &self.handle,
            id: self.id(),
        };
        self.flush_pending(py, &mut late);
        Ok(pushed)
    }

    /// Sends what is queued.
    #[inline]
    fn flush_pending<S: Sink>(&self, py: Python<'_>, sink: &mut S) {
        let mut state = lock(&self.state);
        let hints = std::mem::take(&mut state.hints);
        let ends = state.response_state == ResponseState::Complete;
        if !state.outbox.has_items() && !ends {
            drop(state);
            return self.send_hints(py, hints, sink);
        }
        let pieces = state.outbox.take_items();
        let start = state.start.take();
        let trailers = std::mem::take(&mut state.trailers);
        if !ends {
            state.response_state = ResponseState::Streaming;
        }
        let receivers = if ends {
            state.outbox.take_receivers()
        } else {
            Waiters::new()
        };
        drop(state);
        if !hints.is_empty() {
            self.send_hints(py, hints, sink);
        }
        let sent = match start {
            Some(start) if ends && pieces.len() <= 1 && !start.trailers => {
                respond(py, &start, pieces.first(), sink)
            }
            start => stream(py, start, &pieces, ends.then_some(&trailers), sink),
        };
        if let Err(fault) = sent {
            self.report(py, &format!("{} ({})", fault.text(), fault.spec()));
        }
        if ends && !S::IN_TURN {
            drop(self.handle.take(self.id()));
        }
        if !receivers.is_empty() {
            wake(py, receivers);
        }
    }

    fn send_hints<S: Sink>(&self, py: Python<'_>, hints: Vec<Fields>, sink: &mut S) {
        for fields in hints {
            let response = ResponseHead {
                status: Status::new(103).expect("a status"),
                content_type: None,
                fields: &fields,
            };
            if let Err(fault) = sink.send(py, Action::Inform(response)) {
                self.report(py, fault.text());
            }
        }
    }

    /// Logs what is wrong with the application.
    #[cold]
    fn report(&self, py: Python<'_>, what: &str) {
        let subject = self.subject(py);
        subject.log(py, &self.handle, LEVEL_ERROR, &format!(": {what}"));
    }

    /// What messages say of the request.
    #[cold]
    pub(crate) fn subject(&self, py: Python<'_>) -> Subject {
        let scope = {
            let state = lock(&self.state);
            if let Some(pending_call) = &state.pending_call {
                return Subject::new(self.handle.names(), &pending_call.head, None);
            }
            state.scope.as_ref().map(|scope| scope.clone_ref(py))
        };
        match scope {
            Some(scope) => Subject::of_scope(self.handle.names(), scope.bind(py)),
            None => Subject::named(format!("request {}", self.id().stream)),
        }
    }
}

impl CycleState {
    /// Between two requests: code that calls the callables then learns that the client has gone.
    fn idle() -> Self {
        Self {
            is_disconnected: true,
            ..Self::default()
        }
    }

    /// What becomes of a message that comes after the client has left; `None`: `send` raises.
    ///
    /// What `scope.rs` announces: up to `spec_version` 2.3 a message that comes too late does nothing. A source that waits is
    /// cancelled where it waits, and so closed at once, if `send` does not; one that is always ready must be interrupted by
    /// `send`.
    #[cold]
    fn ignore(&mut self) -> Option<Pushed> {
        let now_us = exact_us();
        let since_us = *self.ignored_since_us.get_or_insert(now_us);
        if self.id.is_some() && now_us - since_us < IGNORED_AT_ONCE_US {
            return Some(Pushed::MayGoOn);
        }
        self.n_ignored += 1;
        (self.id.is_some() && self.n_ignored <= IGNORED_MAX).then_some(Pushed::Ignored)
    }

    /// The response has been started, and its end has not been sent.
    fn takes_body(&self) -> bool {
        matches!(
            self.response_state,
            ResponseState::Started | ResponseState::Streaming
        )
    }

    /// A piece of the body.
    fn take_body(&mut self, py: Python<'_>, body: Body, more: bool) -> PyResult<()> {
        let body_bytes = body.len(py);
        let announced = self.declared.left().unwrap_or_default() + self.sent_bytes;
        self.sent_bytes += body_bytes;
        self.outbox.count(body_bytes);
        let wrong = if self.declared.count(body_bytes).is_err() {
            Some("longer")
        } else {
            let is_short = !more && self.declared.complete().is_err();
            is_short.then_some("shorter")
        };
        if let Some(wrong) = wrong {
            return Err(PyRuntimeError::new_err(format!(
                "the response body is {wrong} than its content-length: announced {announced} bytes, \
                 sent {}",
                self.sent_bytes
            )));
        }
        self.outbox.push(body);
        if !more {
            self.is_body_over = true;
            if !self.awaits_trailers {
                self.response_state = ResponseState::Complete;
            }
        }
        Ok(())
    }
}

/// Sends a response that is complete.
#[inline]
fn respond<S: Sink>(
    py: Python<'_>,
    start: &Start,
    piece: Option<&Body>,
    sink: &mut S,
) -> Result<(), Fault> {
    let bound;
    let body = match piece {
        None => Payload::Copied(b""),
        Some(Body::File(payload)) => payload.clone(),
        Some(Body::Bytes(bytes)) => {
            bound = bytes.bind(py);
            payload(bound)
        }
    };
    // The encoder counts by itself, and has a short way for responses that say nothing else.
    if start
        .content_length
        .is_none_or(|length| length == body.len())
    {
        let response = response_head(start, &start.headers.fields);
        return sink.send(py, Action::Respond(response, body));
    }
    let fields = start.fields();
    sink.send(py, Action::Respond(response_head(start, &fields), body))
}

/// Sends the head, if it has not left, and pieces; and the end, if there are `trailers`.
fn stream<S: Sink>(
    py: Python<'_>,
    start: Option<Start>,
    pieces: &[Body],
    trailers: Option<&Fields>,
    sink: &mut S,
) -> Result<(), Fault> {
    if let Some(mut start) = start {
        if trailers.is_some() && !start.trailers && start.content_length.is_none() {
            let body_bytes = pieces.iter().map(|piece| piece.len(py)).sum();
            start.content_length = Some(body_bytes);
        }
        sink.send(py, Action::Start(response_head(&start, &start.fields())))?;
    }
    for piece in pieces {
        let data = match piece {
            Body::Bytes(bytes) => payload(bytes.bind(py)),
            Body::File(payload) => payload.clone(),
        };
        sink.send(py, Action::Data(data))?;
    }
    match trailers {
        Some(trailers) => sink.send(py, Action::End { trailers }),
        None => Ok(()),
    }
}

#[inline]
fn response_head<'a>(start: &'a Start, fields: &'a Fields) -> ResponseHead<'a> {
    ResponseHead {
        status: start.status,
        content_type: start.headers.content_type.as_deref(),
        fields,
    }
}

#[cold]
fn out_of_order(response_state: ResponseState, message: &Bound<'_, PyAny>) -> PyErr {
    let kind = message
        .get_item("type")
        .map_or_else(|_| String::new(), |kind| kind.to_string());
    let expected = match response_state {
        ResponseState::NotStarted => "expected 'http.response.start'",
        ResponseState::Started | ResponseState::Streaming => {
            "expected 'http.response.body', the response has been started"
        }
        ResponseState::Complete => "the response is complete already",
    };
    PyRuntimeError::new_err(format!("unexpected ASGI message {kind:?}: {expected}"))
}

/// Tells those who wait to look again. Take them out of the lock first.
fn wake(py: Python<'_>, waiters: Waiters) {
    for waiter in waiters {
        Waiter::wake(waiter.bind(py), false);
    }
}

impl OutboxOwner for HttpCycle {
    type Item = Body;

    fn handle(&self) -> &Arc<ReactorHandle> {
        &self.handle
    }

    fn stream_id(&self) -> StreamId {
        self.id()
    }

    fn outbox<R>(&self, act: impl FnOnce(&mut Outbox<Body>) -> R) -> R {
        act(&mut lock(&self.state).outbox)
    }

    fn is_over(&self) -> bool {
        lock(&self.state).is_disconnected
    }
}

impl Capacity for Py<HttpCycle> {
    fn wait(&self, py: Python<'_>) -> PyResult<Option<Py<Waiter>>> {
        self.get().await_capacity(py)
    }
}

/// Takes the result of the coroutine of a cycle.
pub(crate) struct HttpCompletion<'a, 'py> {
    cycle: &'a Bound<'py, HttpCycle>,
}

impl<'a, 'py> HttpCompletion<'a, 'py> {
    pub(crate) fn new(cycle: &'a Bound<'py, HttpCycle>) -> Self {
        Self { cycle }
    }

    /// The application has raised, or could not be called.
    #[cold]
    fn handle_exception<S: Sink>(&mut self, py: Python<'_>, error: &PyErr, sink: &mut S) {
        let this = self.cycle.get();
        end_child_with(py, &this.handle, error);
        let (is_disconnected, response_state) = {
            let mut state = lock(&this.state);
            state.outbox.end_step();
            (state.is_disconnected, state.response_state)
        };
        if is_disconnected {
            let what = format!(": after the client had gone: {error}");
            this.subject(py).log(py, &this.handle, LEVEL_DEBUG, &what);
            return;
        }
        let what = format!(": the ASGI application raised {error}");
        this.subject(py).exception(py, &what, error);
        if response_state == ResponseState::Complete {
            this.flush_rest(py, sink);
        } else {
            self.send_failure(py, sink);
        }
    }

    /// A response that the application leaves incomplete: 500 if nothing has left, otherwise a cut.
    #[cold]
    fn send_failure<S: Sink>(&self, py: Python<'_>, sink: &mut S) {
        let this = self.cycle.get();
        let mut state = lock(&this.state);
        let has_left = state.response_state == ResponseState::Streaming;
        let said = (state.outbox.take_items(), state.start.take());
        state.response_state = ResponseState::Complete;
        let receivers = state.outbox.take_receivers();
        let body = Status::INTERNAL_SERVER_ERROR.reason();
        drop(state);
        drop(said);
        let fields = Fields::EMPTY;
        let action = if has_left {
            Action::Abort
        } else {
            let response = ResponseHead {
                fields: &fields,
                ..ResponseHead::text(Status::INTERNAL_SERVER_ERROR)
            };
            Action::Respond(response, Payload::Copied(body.as_bytes()))
        };
        // Refused only when the connection is being cut already.
        let _ = sink.send(py, action);
        wake(py, receivers);
    }
}

/// A cycle in the table of exchanges, or between two steps.
pub(super) struct OpenCycle(pub(super) Py<HttpCycle>);

impl Role for OpenCycle {
    /// ASGI has no application cancelled because its client is gone.
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool {
        self.0.get().disconnect(py);
        false
    }

    fn refuse_body(&self, py: Python<'_>) -> Option<Tell> {
        let this = self.0.clone_ref(py);
        Some(Box::new(move |py| this.get().refuse_body(py)))
    }

    fn subject(&self, py: Python<'_>, _names: Names<'_>) -> Option<LazySubject> {
        let this = self.0.clone_ref(py);
        Some(Box::new(move |py| this.get().subject(py)))
    }
}

impl Resume for OpenCycle {
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress {
        step.run(py, &mut HttpCompletion::new(self.0.bind(py)))
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

impl CompletionHandler for HttpCompletion<'_, '_> {
    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId) {
        let this = self.cycle.get();
        (&this.handle, this.id())
    }

    fn subject(&self, py: Python<'_>) -> Subject {
        self.cycle.get().subject(py)
    }

    #[inline]
    fn on_result<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next {
        let this = self.cycle.get();
        let mut ends_task = None;
        match result {
            Ok(_) => {
                let mut state = lock(&this.state);
                state.outbox.end_step();
                let (response_state, is_disconnected) =
                    (state.response_state, state.is_disconnected);
                drop(state);
                if response_state == ResponseState::Complete {
                    this.flush_rest(py, sink);
                } else if !is_disconnected {
                    this.report(
                        py,
                        match response_state {
                            ResponseState::NotStarted => {
                                "the ASGI application returned without a response"
                            }
                            _ => "the ASGI application returned before its response was complete",
                        },
                    );
                    self.send_failure(py, sink);
                }
            }
            Err(error) => {
                self.handle_exception(py, &error, sink);
                if is_cancellation(py, &error) {
                    ends_task = Some(error);
                }
            }
        }
        this.forget_scope();
        drop(this.handle.take(this.id()));
        Next::Done(ends_task)
    }

    fn on_suspend(&mut self, _py: Python<'_>) -> PyResult<Suspended> {
        let kept = self.cycle.clone().unbind();
        let is_complete = lock(&kept.get().state).response_state == ResponseState::Complete;
        let entry = if is_complete {
            Entry::Over
        } else {
            Entry::As(Box::new(OpenCycle(self.cycle.clone().unbind())))
        };
        Ok(Suspended {
            entry,
            resume: Box::new(OpenCycle(kept)),
        })
    }

    #[inline]
    fn flush(&mut self, py: Python<'_>, reply: &mut Reply<'_>) {
        let this = self.cycle.get();
        if this.outbox(|outbox| outbox.is_in_step()) {
            this.flush_pending(py, reply);
            let deferred = this.outbox(Outbox::end_step);
            deferred.send(reply);
        }
    }

    fn fail(&mut self, py: Python<'_>, error: &PyErr, reply: &mut Reply<'_>) {
        self.handle_exception(py, error, reply);
        let this = self.cycle.get();
        this.forget_scope();
        drop(this.handle.take(this.id()));
    }
}

impl HttpCycle {
    /// Sends the rest of a complete response; outside a turn it was posted at once.
    #[inline]
    fn flush_rest<S: Sink>(&self, py: Python<'_>, sink: &mut S) {
        if S::IN_TURN {
            self.flush_pending(py, sink);
        }
    }
}
