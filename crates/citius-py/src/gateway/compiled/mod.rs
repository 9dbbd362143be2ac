//! Compiled handlers: native code called without a Python object.
//!
//! [`abi`] is the C header from this side, [`arguments`] makes arguments, [`pool`] runs long work, [`object`] is the Python class.
//! A handler that is not `pooled` runs on the reactor's thread with the GIL held, because releasing it costs more than a short
//! call; after a call longer than [`RELEASE_US`] it runs without the GIL. Tests: `tests/compiled/`.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use citius_base::exchange::{LazySubject, Role};
use citius_base::interpreter;
use citius_base::logging::Names;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::{self, LEVEL_ERROR, LEVEL_WARNING, Subject};
use citius_base::sink::Sink;
use citius_http::{
    Action, FAST_PATHS, Fields, Head, Limits, Output, Payload, ResponseHead, Status, TEXT,
};
use citius_reactor::{Reply, ResponseAction, StreamCommand, StreamId, coarse_ms, exact_us};
use citius_route::Captures;
use pyo3::prelude::*;

use self::abi::{CallResult, Entry, HandlerRequest, HandlerResponse};
use self::arguments::{Argument, Decoded, Given};
use crate::gateway::turn::Turn;
use crate::request_context::RequestContext;

pub(crate) mod abi;
mod arguments;
pub(crate) mod client_stream;
pub(super) mod goroutine;
pub(crate) mod object;
pub(crate) mod pool;
mod query;

pub(crate) use object::CompiledHandler;

/// One handler.
pub(crate) struct Handler {
    entry: Entry,
    /// What the log calls it.
    name: String,
    arguments: Vec<Argument>,
    /// The media type of its body, unless it sets one.
    content_type: Vec<u8>,
    /// Calls on the reactor's thread, to measure some of them.
    calls: AtomicU32,
    is_long: AtomicBool,
    /// When a warning that it takes too long was last logged, in milliseconds.
    logged_ms: AtomicU32,
}

/// Microseconds of work from which the GIL is given away for it. Who gives it away while others want it may
/// have it back only after the interpreter's switch interval, 5 ms by default.
const RELEASE_US: u64 = 100;
/// One call in so many is measured.
const MEASURED_EVERY: u32 = 64;
/// Milliseconds between two warnings about one handler.
const LOGGED_EVERY_MS: u32 = 10_000;

/// An open exchange whose handler is called when the body is complete.
pub(crate) struct AwaitsBody {
    head: Box<Head>,
    captures: Captures,
    pub(super) route: Arc<super::native::Route>,
    body: Vec<u8>,
}

impl AwaitsBody {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

impl Role for AwaitsBody {
    fn on_disconnect(self: Box<Self>, _py: Python<'_>) -> bool {
        false
    }

    fn subject(&self, _py: Python<'_>, names: Names<'_>) -> Option<LazySubject> {
        let subject = Subject::new(names, &self.head, Some(&self.route.info.label));
        Some(Box::new(move |_| subject))
    }
}

/// An open exchange that a thread works on, which looks here whether its client has gone.
struct InPool(Arc<AtomicBool>);

impl Role for InPool {
    fn on_disconnect(self: Box<Self>, _py: Python<'_>) -> bool {
        self.0.store(true, Ordering::Relaxed);
        false
    }

    fn subject(&self, _py: Python<'_>, _names: Names<'_>) -> Option<LazySubject> {
        Some(Box::new(|_| Subject::named(String::from("a request"))))
    }
}

/// A request on its way through a thread.
pub(crate) struct Job {
    handler: Arc<Handler>,
    route: Arc<super::native::Route>,
    handle: Arc<ReactorHandle>,
    id: StreamId,
    head: Box<Head>,
    captures: Captures,
    body: Vec<u8>,
    /// The client has left.
    is_disconnected: Arc<AtomicBool>,
}

/// Where requests are handled that take long.
pub(crate) type Pool = pool::Pool<Job>;

/// Where a handler is called.
pub(crate) enum CallSite {
    /// On the reactor's thread.
    Here,
    /// On a thread without the GIL.
    Threads(Arc<Pool>),
    /// In a goroutine of the reactor.
    Goroutine,
    /// In a goroutine of the threads without the GIL.
    PooledGoroutine,
}

impl pool::Job for Job {
    type OnPanic = (Arc<ReactorHandle>, StreamId);

    fn on_panic(&self) -> Self::OnPanic {
        (Arc::clone(&self.handle), self.id)
    }

    fn run(self, place: pool::Place<'_, Self>) {
        run_in_pool(self, place);
    }

    fn give_up((handle, id): Self::OnPanic) {
        handle.cut(id);
    }
}

/// What came of a call, to be sent.
enum HandlerOutcome {
    /// The rest of a response whose head was sent; `None`: it is broken off.
    Rest { size: Option<usize> },
    /// What the handler has written, in the buffer it was given.
    Whole { status: Status, size: usize },
    /// A text of ours.
    Text {
        status: Status,
        media: &'static [u8],
        body: String,
    },
}

const OCTETS: &[u8] = b"application/octet-stream";
const PROBLEM: &[u8] = b"application/problem+json";

impl Handler {
    /// Takes the arguments from the request and calls the native code.
    ///
    /// `run` decides under what circumstances. What the log has to be told comes back as `Err` beside
    /// the response.
    fn make(
        &self,
        given: Given<'_>,
        limits: &Limits,
        response: &mut HandlerResponse,
        run: impl FnOnce(&mut HandlerRequest<'_>, &mut HandlerResponse) -> c_int,
    ) -> (HandlerOutcome, Option<String>) {
        let mut decoded = Decoded::default();
        let values = match arguments::values(&self.arguments, given, &mut decoded) {
            Ok(values) => values,
            Err(body) => {
                let status = Status::from_const(422);
                let outcome = HandlerOutcome::Text {
                    status,
                    media: PROBLEM,
                    body,
                };
                return (outcome, None);
            }
        };
        response.clear(usize::try_from(limits.compiled_body_bytes_max).unwrap_or(usize::MAX));
        let mut request = HandlerRequest::new(given.head, given.captures, given.body, &values);
        let code = run(&mut request, response);
        if code == abi::RAISED {
            report_exception(&self.name);
        }
        let text = |status: Status| HandlerOutcome::Text {
            status,
            media: TEXT,
            body: status.reason().to_owned(),
        };
        let status_of = |code: u16| Status::new(code).unwrap_or(Status::INTERNAL_SERVER_ERROR);
        if response.is_started() {
            return match response.result(code) {
                CallResult::Response { size, .. } => {
                    (HandlerOutcome::Rest { size: Some(size) }, None)
                }
                CallResult::Code { .. } => (HandlerOutcome::Rest { size: None }, None),
                CallResult::Mistake(what) => (HandlerOutcome::Rest { size: None }, Some(what)),
            };
        }
        match response.result(code) {
            CallResult::Code { status, size: 0 } => (text(status_of(status)), None),
            CallResult::Response { status, size } | CallResult::Code { status, size } => {
                let status = status_of(status);
                (HandlerOutcome::Whole { status, size }, None)
            }
            CallResult::Mistake(what) => (text(Status::INTERNAL_SERVER_ERROR), Some(what)),
        }
    }

    /// Calls it here and now, on a thread that has no GIL or keeps it.
    fn enter(&self, request: &mut HandlerRequest<'_>, response: &mut HandlerResponse) -> c_int {
        // SAFETY: the code that registered the handler vouches for its address; Python's `compiled=` is the
        // only way here.
        unsafe { request.call(self.entry, response) }
    }

    /// Calls it on the thread of a turn or a job, where no goroutine runs.
    #[inline]
    fn enter_on_thread(
        &self,
        request: &mut HandlerRequest<'_>,
        response: &mut HandlerResponse,
    ) -> c_int {
        // SAFETY: the code that registered the handler vouches for its address; Python's `compiled=` is the only way here.
        unsafe { request.call_on_thread(self.entry, response) }
    }

    /// Calls it on the reactor's thread.
    #[inline]
    fn enter_in_turn(
        &self,
        py: Python<'_>,
        request: &mut HandlerRequest<'_>,
        response: &mut HandlerResponse,
    ) -> c_int {
        let call = self.calls.load(Ordering::Relaxed);
        self.calls.store(call.wrapping_add(1), Ordering::Relaxed);
        let began_us = call.is_multiple_of(MEASURED_EVERY).then(exact_us);
        let code = if self.is_long.load(Ordering::Relaxed) {
            self.enter_detached(py, request, response)
        } else {
            self.enter_on_thread(request, response)
        };
        if let Some(began_us) = began_us {
            let is_long = exact_us().saturating_sub(began_us) > RELEASE_US;
            self.is_long.store(is_long, Ordering::Relaxed);
        }
        code
    }

    fn enter_detached(
        &self,
        py: Python<'_>,
        request: &mut HandlerRequest<'_>,
        response: &mut HandlerResponse,
    ) -> c_int {
        struct CallArguments<'a, 'b>(&'a mut HandlerRequest<'b>, &'a mut HandlerResponse);
        // SAFETY: `detach` asks for `Send` to keep Python objects out, and there are none in it; what
        // is lent stays on this very thread.
        unsafe impl Send for CallArguments<'_, '_> {}
        let arguments = CallArguments(request, response);
        py.detach(move || {
            let CallArguments(request, response) = { arguments };
            self.enter(request, response)
        })
    }

    fn media<'a>(&'a self, response: &'a HandlerResponse, size: usize) -> Option<&'a [u8]> {
        if !response.content_type.is_empty() {
            Some(&response.content_type)
        } else if !self.content_type.is_empty() {
            Some(&self.content_type)
        } else {
            (size > 0 && !response.fields.has_content_type).then_some(OCTETS)
        }
    }
}

/// Logs the exception that a handler has left behind, as functions of Cython do that are declared with `except -1`.
#[cold]
fn report_exception(name: &str) {
    // The interpreter needs more stack than a goroutine has.
    citius_goroutine::on_thread_stack(|| {
        Python::attach(|py| {
            interpreter::report::exception(py, &format!("the compiled handler {name} raised"));
        });
    });
}

/// `GET /x: the compiled handler NAME: WHAT [route /x, handler NAME, request id 5f]`.
fn complaint(
    handle: &ReactorHandle,
    route: &super::native::Route,
    head: &Head,
    what: &str,
) -> String {
    let name = route.compiled.as_ref().map_or("", |handler| &handler.name);
    let what = format!(": the compiled handler {name}: {what}");
    Subject::new(handle.names(), head, Some(&route.info.label)).message(&what)
}

/// A request for a compiled handler: calls it now, or when the body is there.
#[inline]
pub(super) fn request(
    turn: &mut Turn<'_, '_>,
    route: &Arc<super::native::Route>,
    mut context: RequestContext<'_>,
    ended: bool,
    reply: &mut Reply<'_>,
) {
    let Some(head) = context.head.take() else {
        return;
    };
    let captures = std::mem::take(&mut context.captures);
    if ended || route.info.streams_body {
        return call(turn, route, head, captures, Vec::new(), ended, reply);
    }
    let role = AwaitsBody {
        head,
        captures,
        route: Arc::clone(route),
        body: Vec::new(),
    };
    turn.handle.enter(reply.id(), role);
    reply.want(u64::MAX);
}

/// The body of a request is complete.
pub(super) fn end(turn: &mut Turn<'_, '_>, awaits: AwaitsBody, reply: &mut Reply<'_>) {
    let AwaitsBody {
        head,
        captures,
        route,
        body,
    } = awaits;
    call(turn, &route, head, captures, body, true, reply);
}

fn call(
    turn: &mut Turn<'_, '_>,
    route: &Arc<super::native::Route>,
    head: Box<Head>,
    captures: Captures,
    body: Vec<u8>,
    has_ended: bool,
    reply: &mut Reply<'_>,
) {
    let Some(handler) = &route.compiled else {
        return;
    };
    if !matches!(route.site, CallSite::Here) {
        let job = Job {
            handler: Arc::clone(handler),
            route: Arc::clone(route),
            handle: Arc::clone(turn.handle),
            id: reply.id(),
            head,
            captures,
            body,
            is_disconnected: Arc::default(),
        };
        return match &route.site {
            CallSite::Threads(pool) => submit(turn, pool, job, reply),
            CallSite::PooledGoroutine => goroutine::serve_in_pool(turn, job, has_ended, reply),
            CallSite::Goroutine | CallSite::Here => goroutine::serve(turn, job, has_ended, reply),
        };
    }
    turn.tasks.enter_shared(turn.py);
    let began_ms = coarse_ms();
    with_response(|response| {
        let given = Given {
            head: &head,
            captures: &captures,
            body: &body,
        };
        let py = turn.py;
        let (outcome, mistake) =
            handler.make(given, reply.limits(), response, |request, response| {
                handler.enter_in_turn(py, request, response)
            });
        let tell = |level, what: &str| {
            turn.handle
                .log(py, level, &complaint(turn.handle, route, &head, what));
        };
        if let Some(mistake) = mistake {
            report::failure(py, &complaint(turn.handle, route, &head, &mistake));
        }
        if let Err(fault) = send(py, handler, outcome, response, reply) {
            tell(LEVEL_ERROR, &format!("{} ({})", fault.text(), fault.spec()));
        }
        if let Some(what) = handler.long_run(began_ms, reply.limits()) {
            tell(LEVEL_WARNING, &what);
        }
    });
    reply.recycle(head);
}

impl Handler {
    /// What the log says of a call that has kept the reactor's thread for too long.
    fn long_run(&self, began_ms: u64, limits: &Limits) -> Option<String> {
        let took_ms = coarse_ms().saturating_sub(began_ms);
        let limit_ms = limits.compiled_run_ms_max;
        let is_long = limit_ms > 0 && took_ms > limit_ms && self.should_log(began_ms);
        is_long.then(|| {
            format!(
                "it kept the reactor's thread for {took_ms} ms, and everybody else waiting; give \
                 its route pool=True"
            )
        })
    }

    /// Whether no warning about it was logged lately.
    #[cold]
    fn should_log(&self, now_ms: u64) -> bool {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "differences are what counts"
        )]
        let now_ms = (now_ms as u32).max(1);
        let logged_ms = self.logged_ms.load(Ordering::Relaxed);
        let is_due = logged_ms == 0 || now_ms.wrapping_sub(logged_ms) >= LOGGED_EVERY_MS;
        if is_due {
            self.logged_ms.store(now_ms, Ordering::Relaxed);
        }
        is_due
    }
}

/// Sends what was made, from within the turn.
#[expect(
    clippy::inline_always,
    reason = "goroutines call it, too: with two callers it becomes a call, for requests that need none"
)]
#[inline(always)]
fn send<S: Sink>(
    py: Python<'_>,
    handler: &Handler,
    outcome: HandlerOutcome,
    response: &mut HandlerResponse,
    sink: &mut S,
) -> Result<(), citius_http::Fault> {
    match outcome {
        // Only goroutines send in pieces, and their responses come through the mailbox.
        HandlerOutcome::Rest { .. } => sink.send(py, Action::Abort),
        HandlerOutcome::Text {
            status,
            media,
            body,
        } => {
            let response = ResponseHead {
                status,
                content_type: Some(media),
                fields: &Fields::EMPTY,
            };
            sink.send(
                py,
                Action::Respond(response, Payload::Copied(body.as_bytes())),
            )
        }
        HandlerOutcome::Whole { status, size } => {
            // Long ones are kept alive until they are written, short ones are copied.
            let kept = (size >= Output::SHARED_BYTES_MIN).then(|| response.take_body(size));
            let head = ResponseHead {
                status,
                content_type: handler.media(response, size),
                fields: &response.fields,
            };
            let body = match kept {
                Some(bytes) => Payload::Shared(bytes),
                None => Payload::Copied(response.body(size)),
            };
            sink.send(py, Action::Respond(head, body))
        }
    }
}

/// The response as a command, from another thread.
fn response_command(
    handler: &Handler,
    outcome: HandlerOutcome,
    response: &mut HandlerResponse,
) -> StreamCommand {
    StreamCommand::Act(match outcome {
        HandlerOutcome::Rest { .. } => ResponseAction::Abort,
        HandlerOutcome::Text {
            status,
            media,
            body,
        } => ResponseAction::Respond {
            status,
            content_type: Some(Bytes::from_static(media)),
            fields: Fields::EMPTY,
            body: Payload::Shared(Bytes::from(body)),
        },
        HandlerOutcome::Whole { status, size } => {
            let content_type = handler.media(response, size).map(Bytes::copy_from_slice);
            let body = response.take_body(size);
            ResponseAction::Respond {
                status,
                content_type,
                fields: std::mem::take(&mut response.fields),
                body: Payload::Shared(body),
            }
        }
    })
}

/// A response that says no more than a status, as a command.
fn text_command(status: Status) -> StreamCommand {
    StreamCommand::Act(ResponseAction::Respond {
        status,
        content_type: Some(Bytes::from_static(TEXT)),
        fields: Fields::EMPTY,
        body: Payload::Shared(Bytes::from_static(status.reason().as_bytes())),
    })
}

/// Hands a request to the threads.
fn submit(turn: &mut Turn<'_, '_>, pool: &Pool, job: Job, reply: &mut Reply<'_>) {
    // Before the job is there for the taking: a thread may respond before this returns.
    turn.handle
        .enter(reply.id(), InPool(Arc::clone(&job.is_disconnected)));
    if let Err(job) = pool.submit(Box::new(job)) {
        drop(turn.handle.take(reply.id()));
        crate::respond::send_fault(turn.py, citius_http::Fault::Overloaded, None, reply);
        reply.recycle(job.head);
    }
}

/// What a thread of the pool does; `place` is given back before the client can know of it, so that a client with a
/// response finds room.
fn run_in_pool(job: Job, place: pool::Place<'_, Job>) {
    let Job {
        handler,
        route,
        handle,
        id,
        head,
        captures,
        body,
        is_disconnected,
    } = job;
    if is_disconnected.load(Ordering::Relaxed) {
        // The client has left while the request was queued.
        drop(place);
        return handle.keep_head(head);
    }
    let (command, mistake) = with_response(|response| {
        let given = Given {
            head: &head,
            captures: &captures,
            body: &body,
        };
        let (outcome, mistake) =
            handler.make(given, &handle.limits, response, |request, response| {
                handler.enter_on_thread(request, response)
            });
        (response_command(&handler, outcome, response), mistake)
    });
    if let Some(mistake) = mistake {
        handle.note_failure(complaint(&handle, &route, &head, &mistake));
    }
    drop(place);
    post(&handle, id, command);
    handle.keep_head(head);
}

fn post(handle: &ReactorHandle, id: StreamId, command: StreamCommand) {
    drop(handle.take(id));
    if handle.mailbox.post(id, command) {
        handle.mailbox.wake();
    }
}

/// Lends the thread's response object, whose memory is reused, to what stays on this thread.
#[inline]
fn with_response<R>(act: impl FnOnce(&mut HandlerResponse) -> R) -> R {
    SPARE.with(|spare| {
        let mut response = taken(spare);
        let result = act(&mut response);
        // Nothing to detach: only `goroutine.rs` gives a response a stream, and it uses `keep_response`.
        put_back(spare, response);
        result
    })
}

type Spare = std::cell::Cell<Option<Box<HandlerResponse>>>;

thread_local! {
    static SPARE: Spare = const { std::cell::Cell::new(None) };
}

/// The thread's response object, for what may end on another thread.
fn take_response() -> Box<HandlerResponse> {
    SPARE.with(taken)
}

fn keep_response(mut response: Box<HandlerResponse>) {
    response.detach();
    SPARE.with(|spare| put_back(spare, response));
}

/// Taken, not borrowed: a handler called from Python code may be called within another.
#[inline]
fn taken(spare: &Spare) -> Box<HandlerResponse> {
    let kept = spare.take().filter(|_| FAST_PATHS);
    kept.unwrap_or_else(|| Box::new(HandlerResponse::new()))
}

#[inline]
fn put_back(spare: &Spare, mut response: Box<HandlerResponse>) {
    response.shrink();
    spare.set(Some(response));
}
