//! Log messages about requests that fail: one place for all interfaces (I25).
//!
//! In: a [`Subject`], which is what is known of a request (method, target, route, handler with file and line, request id), and
//! what happened. Out: a log record; an exception that the application did not handle is also counted
//! (`citius_handler_exceptions_total`), and so is a failure noted by [`ReactorHandle::note_failure`].
//! Tests: `tests/observe/test_failures.py`.

use citius_http::{Fault, Head, Millis, RefusedHead};
use citius_reactor::{Peer, StreamId, cpu_of};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyDict};

use crate::reactor_handle::ReactorHandle;
use crate::support;

/// A request as log messages describe it.
#[derive(Clone)]
pub(crate) struct Subject {
    /// `GET /items?x=y`, as the client sent it.
    request: String,
    /// Route, handler and request id, as far as there are any.
    details: Vec<String>,
}

impl Subject {
    /// A request, and the label of the route that it has led to.
    #[cold]
    pub(crate) fn new(handle: &ReactorHandle, head: &Head, route: Option<&str>) -> Self {
        let text = |span| printable(head.slice(span));
        let application = handle.callbacks.application.as_deref();
        let mut details: Vec<String> = route
            .or(application)
            .map(str::to_owned)
            .into_iter()
            .collect();
        if let Some(name) = &handle.observed.request_id_field
            && let Some(id) = head.field(name)
        {
            details.push(format!("request id {}", printable(id)));
        }
        Self {
            request: format!("{} {}", text(head.method_span), text(head.target)),
            details,
        }
    }

    /// A request whose header section was refused, as far as it was read.
    #[cold]
    fn refused(refused: &RefusedHead) -> Self {
        if refused.method.is_empty() {
            return Self::named("a request".to_owned());
        }
        let (method, target) = (printable(&refused.method), printable(&refused.target));
        Self::named(format!("{method} {target}"))
    }

    /// A call of a procedure, by the id that its client has given it.
    #[cold]
    pub(crate) fn of_call(procedure: &str, handler: &str, call_id: Option<u32>) -> Self {
        let mut details = vec![format!("handler {handler}")];
        details.extend(call_id.map(|id| format!("call id {id}")));
        Self {
            request: format!("CALL {procedure}"),
            details,
        }
    }

    /// One of which this name is all that is known.
    #[cold]
    pub(crate) fn named(name: String) -> Self {
        Self {
            request: name,
            details: Vec::new(),
        }
    }

    /// A request as its ASGI scope describes it; routers add its handler as `endpoint`. Applications may put
    /// anything there: what is of another type than ASGI wants is left out.
    #[cold]
    pub(crate) fn of_scope(handle: &ReactorHandle, scope: &Bound<'_, PyDict>) -> Self {
        let item = |name: &str| scope.get_item(name).ok().flatten();
        let bytes = |name: &str| {
            let value = item(name)?.cast_into::<PyBytes>().ok()?;
            Some(printable(value.as_bytes()))
        };
        let method = item("method").and_then(|method| method.extract::<String>().ok());
        let method = method.map_or_else(String::new, |method| printable(method.as_bytes()));
        let mut target = bytes("raw_path").unwrap_or_default();
        if let Some(query) = bytes("query_string").filter(|query| !query.is_empty()) {
            target = format!("{target}?{query}");
        }
        let mut details = Vec::new();
        if let Some(endpoint) = item("endpoint") {
            details.push(format!("handler {}", describe(&endpoint)));
        } else if let Some(application) = &handle.callbacks.application {
            details.push(application.to_string());
        }
        if let Some(id) = handle.observed.request_id_field.as_ref().and_then(|name| {
            let pairs = item("headers")?.extract::<Vec<(Vec<u8>, Vec<u8>)>>().ok()?;
            pairs.into_iter().find(|(known, _)| **known == **name)
        }) {
            details.push(format!("request id {}", printable(&id.1)));
        }
        Self {
            request: format!("{method} {target}"),
            details,
        }
    }

    /// Marks the request as one that was to become a WebSocket, or something else of this `name`.
    pub(crate) fn named_as(mut self, name: &str) -> Self {
        let target = self
            .request
            .split_once(' ')
            .map_or("", |(_, target)| target);
        self.request = format!("{name} {target}");
        self
    }

    /// `GET /items failed [route /items, handler items (main.py:3), request id 5f]`.
    pub(crate) fn message(&self, what: &str) -> String {
        if self.details.is_empty() {
            return format!("{}{what}", self.request);
        }
        format!("{}{what} [{}]", self.request, self.details.join(", "))
    }

    /// Logs something that is no exception.
    #[cold]
    pub(crate) fn log(&self, py: Python<'_>, handle: &ReactorHandle, level: u8, what: &str) {
        handle.log(py, level, &self.message(what));
    }

    /// Logs and counts an exception that the application has not handled.
    #[cold]
    pub(crate) fn exception(&self, py: Python<'_>, what: &str, error: &PyErr) {
        // By way of `into_value`, which puts the traceback where Python looks for it.
        let exception: Py<PyBaseException> = error.clone_ref(py).into_value(py);
        let told = support::LOG_EXCEPTION
            .get(py)
            .and_then(|log| log.call1((self.message(what), exception)));
        if let Err(error) = told {
            error.write_unraisable(py, None);
        }
    }
}

/// Logs and counts what a handler did in place of raising an exception.
#[cold]
pub(crate) fn failure(py: Python<'_>, message: &str) {
    let told = support::LOG_FAILURE
        .get(py)
        .and_then(|log| log.call1((message,)));
    if let Err(error) = told {
        error.write_unraisable(py, None);
    }
}

/// An open request, as far as its gateway knows it.
#[cold]
pub(crate) fn subject_of(py: Python<'_>, handle: &ReactorHandle, id: StreamId) -> Option<Subject> {
    let subject = handle.with(id, |exchange| exchange.subject(py, handle))??;
    Some(subject(py))
}

/// Logs an action of the application's that the protocol has refused.
#[cold]
pub(crate) fn action_refused(py: Python<'_>, handle: &ReactorHandle, id: StreamId, fault: Fault) {
    let what = format!(": {} ({})", fault.text(), fault.spec());
    subject_of(py, handle, id)
        .unwrap_or_else(|| Subject::named(format!("request {}", id.stream)))
        .log(py, handle, LEVEL_ERROR, &what);
}

/// Logs that a request was cut off: for a limit of ours in words that all see, else for those who look for it.
#[cold]
pub(crate) fn cut(
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
pub(crate) fn head_refused(
    py: Python<'_>,
    handle: &ReactorHandle,
    peer: Peer,
    refused: &RefusedHead,
) {
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
pub(crate) fn slow(
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
pub(crate) fn name_of(peer: Peer) -> String {
    peer.address().map_or_else(
        || "a Unix socket".to_owned(),
        |address| address.ip().to_string(),
    )
}

/// Text of a client's: a line end in it would begin a line of the client's own.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(char::is_control) {
        return text.into_owned();
    }
    let escaped = text.chars().map(|char| match char {
        char if char.is_control() => char.escape_debug().to_string(),
        char => char.to_string(),
    });
    escaped.collect()
}

/// An application as messages call it: module, name, file and line.
#[cold]
pub(crate) fn describe_application(app: &Bound<'_, PyAny>) -> String {
    let described = support::DESCRIBE_APPLICATION
        .call1(app.py(), app)
        .and_then(|text| text.extract::<String>());
    let name = described.unwrap_or_else(|_| app.get_type().to_string());
    format!("application {name}")
}

/// A handler as messages call it: name, file and line.
#[cold]
pub(crate) fn describe(handler: &Bound<'_, PyAny>) -> String {
    let described = support::DESCRIBE
        .call1(handler.py(), handler)
        .and_then(|text| text.extract::<String>());
    described.unwrap_or_else(|_| handler.get_type().to_string())
}

/// Python's logging levels.
pub(crate) const LEVEL_ERROR: u8 = 40;
pub(crate) const LEVEL_WARNING: u8 = 30;
pub(crate) const LEVEL_INFO: u8 = 20;
pub(crate) const LEVEL_DEBUG: u8 = 10;
