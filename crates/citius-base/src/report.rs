//! Log messages about requests that fail: one place for all interfaces (I25).
//!
//! In: a [`Subject`], which is what is known of a request, and what happened. Out: a log record; an exception that the application did not handle is also counted
//! (`citius_handler_exceptions_total`), and so is a failure noted by [`ReactorHandle::note_failure`].
//! Tests: `tests/observe/test_failures.py`.

use citius_http::{Fault, Millis, RefusedHead};
use citius_reactor::{Peer, StreamId, cpu_of};
use pyo3::prelude::*;

pub use crate::logging::{LEVEL_DEBUG, LEVEL_ERROR, LEVEL_INFO, LEVEL_WARNING, Subject, failure};
use crate::reactor_handle::ReactorHandle;

impl Subject {
    /// Logs something that is no exception.
    #[cold]
    pub fn log(&self, py: Python<'_>, handle: &ReactorHandle, level: u8, what: &str) {
        handle.log(py, level, &self.message(what));
    }
}

/// An open request, as far as its gateway knows it.
#[cold]
pub fn subject_of(py: Python<'_>, handle: &ReactorHandle, id: StreamId) -> Option<Subject> {
    let subject = handle.with(id, |exchange| exchange.subject(py, handle.names()))??;
    Some(subject(py))
}

/// Logs an action of the application's that the protocol has refused.
#[cold]
pub fn action_refused(py: Python<'_>, handle: &ReactorHandle, id: StreamId, fault: Fault) {
    let what = format!(": {} ({})", fault.text(), fault.spec());
    subject_of(py, handle, id)
        .unwrap_or_else(|| Subject::named(format!("request {}", id.stream)))
        .log(py, handle, LEVEL_ERROR, &what);
}

/// Logs that a request was cut off: for a limit of ours in words that all see, else for those who look for it.
#[cold]
pub fn cut(
    py: Python<'_>,
    handle: &ReactorHandle,
    fault: Fault,
    subject: impl FnOnce() -> Subject,
) {
    let option = match fault {
        Fault::BodyTooSlow => "--body-rate-min-bytes-per-s",
        Fault::StreamStalled => "--write-stall-ms",
        _ => {
            let message = format!(": {}", fault.text());
            return subject().log(py, handle, LEVEL_DEBUG, &message);
        }
    };
    let what = format!(
        " was cut off: {}; the limit is set by {option}",
        fault.text()
    );
    handle.log_of_clients(py, option, LEVEL_INFO, subject().message(&what));
}

/// Logs that a request was refused, or a connection closed, for a limit that an option sets. What else is wrong with a
/// request only the access log tells: it is the client's business.
#[cold]
pub fn head_refused(py: Python<'_>, handle: &ReactorHandle, peer: Peer, refused: &RefusedHead) {
    let closed = |options: &'static str| {
        let message = format!(
            "a connection from {} is closed: {}; the limit is set by {options}",
            name_of(peer),
            refused.fault.text()
        );
        handle.log_of_clients(py, options, LEVEL_WARNING, message);
    };
    let limits = &handle.limits;
    let (n, what, option) = match refused.fault {
        Fault::HeadTooLong => (
            limits.head_bytes_max,
            "bytes of header section",
            "--head-bytes-max",
        ),
        Fault::TargetTooLong => (
            limits.target_bytes_max,
            "bytes of request target",
            "--target-bytes-max",
        ),
        Fault::TooManyFields => (limits.fields_max, "field lines", "--fields-max"),
        Fault::StreamStalled => {
            let message = "a client has opened no window of HTTP/2 for as long as --write-stall-ms says; its connection is cut";
            return handle.log_of_clients(py, "window", LEVEL_INFO, message.to_owned());
        }
        Fault::ExcessiveLoad => {
            return closed(
                "--h2-idle-frames-max and --h2-continuations-max, of HTTP/3 --h3-idle-frames-max",
            );
        }
        Fault::ExcessiveResets => {
            return closed("--h2-resets-max, of HTTP/3 --h3-resets-max");
        }
        _ => return,
    };
    let message = format!(
        ": refused with {}, for it has more than {n} {what}; the limit is set by {option}",
        refused.fault.status().code(),
    );
    let message = Subject::refused(refused).message(&message);
    handle.log_of_clients(py, option, LEVEL_WARNING, message);
}

/// Logs that a request has kept the thread of the event loop for too long, at most once a minute.
#[cold]
pub fn slow(
    py: Python<'_>,
    handle: &ReactorHandle,
    took_ms: Millis,
    subject: impl FnOnce() -> Subject,
) {
    if !handle.should_log_slow_handler() {
        return;
    }
    // A thread that waits for a processor, or sleeps, keeps its requests waiting all the same.
    let on_processor = cpu_of(took_ms)
        .map(|cpu_ms| format!(" ({cpu_ms} ms on a processor)"))
        .unwrap_or_default();
    let what = format!(
        " kept the event loop's thread for {took_ms} ms{on_processor}, while every other request of this worker waited: let it \
         await what it waits for, or run in a thread (native: blocking=True; ASGI: asyncio.to_thread; WSGI: \
         --threads); --slow-handler-ms is the limit, 0 never tells"
    );
    subject().log(py, handle, LEVEL_WARNING, &what);
}

/// A peer in a message.
pub fn name_of(peer: Peer) -> String {
    peer.address().map_or_else(
        || "a Unix socket".to_owned(),
        |address| address.ip().to_string(),
    )
}
