//! One compiled handler: its arguments, its call, and what came of it as a response.
//!
//! A handler that is not `pooled` runs on the reactor's thread with the GIL held, because releasing it costs more than a short
//! call; after a call longer than [`RELEASE_US`] it runs without the GIL. Tests: `tests/compiled/`.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use citius_base::interpreter;
use citius_base::sink::Sink;
use citius_http::{
    Action, FAST_PATHS, Fields, Limits, Output, Payload, ResponseHead, Status, TEXT,
};
use citius_reactor::{ResponseAction, StreamCommand, coarse_ms, exact_us};
use pyo3::prelude::*;

use super::abi::{self, CallResult, Entry, HandlerRequest, HandlerResponse};
use super::arguments::{self, Argument, Decoded, Given};

/// One handler.
pub(crate) struct Handler {
    pub(super) entry: Entry,
    /// What the log calls it.
    pub(super) name: String,
    pub(super) arguments: Vec<Argument>,
    /// The media type of its body, unless it sets one.
    pub(super) content_type: Vec<u8>,
    /// Calls on the reactor's thread, to measure some of them.
    pub(super) calls: AtomicU32,
    pub(super) is_long: AtomicBool,
    /// When a warning that it takes too long was last logged, in milliseconds.
    pub(super) logged_ms: AtomicU32,
}

/// Microseconds of work from which the GIL is given away for it. Who gives it away while others want it may
/// have it back only after the interpreter's switch interval, 5 ms by default.
const RELEASE_US: u64 = 100;
/// One call in so many is measured.
const MEASURED_EVERY: u32 = 64;
/// Milliseconds between two warnings about one handler.
const LOGGED_EVERY_MS: u32 = 10_000;

/// What came of a call, to be sent.
pub(super) enum HandlerOutcome {
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

const PROBLEM: &[u8] = b"application/problem+json";

impl Handler {
    /// Takes the arguments from the request and calls the native code.
    ///
    /// `run` decides under what circumstances. What the log has to be told comes back as `Err` beside
    /// the response.
    pub(super) fn make(
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
    pub(super) fn enter(
        &self,
        request: &mut HandlerRequest<'_>,
        response: &mut HandlerResponse,
    ) -> c_int {
        // SAFETY: the code that registered the handler vouches for its address; Python's `compiled=` is the
        // only way here.
        unsafe { request.call(self.entry, response) }
    }

    /// Calls it on the thread of a turn or a job, where no goroutine runs.
    #[inline]
    pub(super) fn enter_on_thread(
        &self,
        request: &mut HandlerRequest<'_>,
        response: &mut HandlerResponse,
    ) -> c_int {
        // SAFETY: the code that registered the handler vouches for its address; Python's `compiled=` is the only way here.
        unsafe { request.call_on_thread(self.entry, response) }
    }

    /// Calls it on the reactor's thread.
    #[inline]
    pub(super) fn enter_in_turn(
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

    pub(super) fn enter_detached(
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

    pub(super) fn media<'a>(
        &'a self,
        response: &'a HandlerResponse,
        size: usize,
    ) -> Option<&'a [u8]> {
        if !response.content_type.is_empty() {
            Some(&response.content_type)
        } else if !self.content_type.is_empty() {
            Some(&self.content_type)
        } else {
            (size > 0 && !response.fields.has_content_type).then_some(abi::OCTETS)
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

impl Handler {
    /// What the log says of a call that has kept the reactor's thread for too long.
    pub(super) fn long_run(&self, began_ms: u64, limits: &Limits) -> Option<String> {
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
pub(super) fn send<S: Sink>(
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
pub(super) fn response_command(
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
pub(super) fn text_command(status: Status) -> StreamCommand {
    StreamCommand::Act(ResponseAction::Respond {
        status,
        content_type: Some(Bytes::from_static(TEXT)),
        fields: Fields::EMPTY,
        body: Payload::Shared(Bytes::from_static(status.reason().as_bytes())),
    })
}

/// Lends the thread's response object, whose memory is reused, to what stays on this thread.
#[inline]
pub(super) fn with_response<R>(act: impl FnOnce(&mut HandlerResponse) -> R) -> R {
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
pub(super) fn take_response() -> Box<HandlerResponse> {
    SPARE.with(taken)
}

pub(super) fn keep_response(mut response: Box<HandlerResponse>) {
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
