//! What a handler returned or raised in, a response out.
//!
//! One place for `def` handlers, coroutines that ended early or late, and threads; only the [`Sink`] differs. Every value is
//! validated here; an invalid one ends as a logged error and a 500. Tests: `tests/gateway/`.

use std::sync::{Arc, LazyLock};

use citius_http::{
    Action, FAST_PATHS, Fault, Fields, Head, Metadata, Method, Output, Payload, PlainResponse,
    ResponseHead, Status,
};
use citius_reactor::{Peer, Reply, StreamId};
use citius_route::{Captures, Converter};
use pyo3::exceptions::{PyBaseException, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::exchange::{LazySubject, Role};
use crate::file;
use crate::file_body::FileBody;
use crate::fork::end_child_with;
use crate::negotiate::prefers_msgpack;
use crate::reactor_handle::ReactorHandle;
use crate::report::LEVEL_ERROR;
use crate::report::Subject;
use crate::request::Request;
use crate::response::Response;
use crate::route::RouteInfo;
use crate::sink::{Sink, payload};
use crate::stream::{Stream, copy_of_buffer};
use crate::support;
use crate::task::{
    CompletionHandler, Entry, LateStep, Next, Progress, Resume, Suspended, Tasks, is_cancellation,
};

/// One request as its response needs it: with or without a Python object.
///
/// Borrows what the turn has, so that a request answered at once counts no references.
pub(crate) struct RequestContext<'a> {
    pub(crate) id: StreamId,
    pub(crate) peer: Peer,
    pub(crate) handle: &'a Arc<ReactorHandle>,
    pub(crate) route: Option<&'a Arc<RouteInfo>>,
    pub(crate) captures: Captures,
    pub(crate) head: Option<Box<Head>>,
    pub(crate) request: Option<Py<Request>>,
    pub(crate) stage: HandlerStage,
    /// What the trailer section is made of, if the response turns out to be streamed.
    trailers: Option<Py<PyAny>>,
}

/// An open exchange whose native handler, or the stream that it has returned, is at work.
pub(crate) struct NativeRequest {
    pub(crate) request: Py<Request>,
    /// The streamed response, which is told when there is room to write.
    pub(crate) stream: Option<Py<Stream>>,
}

impl Role for NativeRequest {
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool {
        self.request.get().break_body(py);
        if let Some(stream) = self.stream {
            stream.get().gone(py);
        }
        true
    }

    fn subject(&self, py: Python<'_>, _handle: &ReactorHandle) -> Option<LazySubject> {
        let request = self.request.clone_ref(py);
        Some(Box::new(move |_| request.get().subject()))
    }
}

/// How far the application's part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandlerStage {
    /// The handler is at work.
    Handler,
    /// The error handlers are: what they raise is not handed to them again.
    ErrorHandler,
    /// The head of a streamed response has been sent; its driver is at work.
    Streaming,
}

/// How far a response is.
pub(crate) enum SendOutcome {
    /// It is on its way.
    Sent,
    /// Its head is; a stream follows by itself.
    Streaming,
    /// This is to be stepped; what it returns concludes the request.
    Coroutine(Py<PyAny>),
}

impl<'a> RequestContext<'a> {
    #[inline]
    pub(crate) fn new(
        id: StreamId,
        peer: Peer,
        handle: &'a Arc<ReactorHandle>,
        head: Box<Head>,
    ) -> Self {
        Self {
            id,
            peer,
            handle,
            route: None,
            captures: Captures::new(),
            head: Some(head),
            request: None,
            stage: HandlerStage::Handler,
            trailers: None,
        }
    }

    /// From a request that has its object already.
    pub(crate) fn of_request(request: &'a Bound<'_, Request>) -> Self {
        let this = request.get();
        Self {
            id: this.id,
            peer: this.peer(),
            handle: &this.handle,
            route: None,
            captures: Captures::new(),
            head: None,
            request: Some(request.clone().unbind()),
            stage: HandlerStage::Handler,
            trailers: None,
        }
    }

    /// The Python object, made now if there is none yet.
    pub(crate) fn request<'py>(
        &mut self,
        py: Python<'py>,
        body_ended: bool,
    ) -> PyResult<&Bound<'py, Request>> {
        if let Some(head) = self.head.take() {
            let request = Request::new(self, head, body_ended);
            self.request = Some(Py::new(py, request)?);
        }
        Ok(self
            .request
            .as_ref()
            .expect("a request without a head has an object")
            .bind(py))
    }

    /// What messages say of it.
    #[cold]
    pub(crate) fn subject(&self, py: Python<'_>) -> Subject {
        match (&self.head, &self.request) {
            (Some(head), _) => {
                Subject::new(self.handle, head, self.route.map(|route| &*route.label))
            }
            (None, Some(request)) => request.bind(py).get().subject(),
            (None, None) => Subject::named(format!("request {}", self.id.stream)),
        }
    }

    pub(crate) fn with_head<R>(&self, py: Python<'_>, look: impl FnOnce(&Head) -> R) -> R {
        match (&self.head, &self.request) {
            (Some(head), _) => look(head),
            (None, Some(request)) => look(request.bind(py).get().head()),
            (None, None) => look(&Head::default()),
        }
    }
}

const TEXT: &[u8] = b"text/plain; charset=utf-8";
const OCTET_STREAM: &[u8] = b"application/octet-stream";

// Statics, for a plain response's metadata are known by their address.
static TEXT_METADATA: Metadata = Metadata {
    media_type: TEXT,
    fields: Fields::EMPTY,
};
static BYTES_METADATA: Metadata = Metadata {
    media_type: OCTET_STREAM,
    fields: Fields::EMPTY,
};
static JSON_METADATA: LazyLock<Metadata> = LazyLock::new(|| negotiated(b"application/json"));
static MSGPACK_METADATA: LazyLock<Metadata> = LazyLock::new(|| negotiated(b"application/msgpack"));

/// RFC 9110 §12.5.5: a cache must know that another client could have got the other format.
fn negotiated(media_type: &'static [u8]) -> Metadata {
    let mut fields = Fields::default();
    fields.push(b"vary", b"accept").expect("a valid field");
    Metadata { media_type, fields }
}

/// Sends what a handler returned or raised.
#[inline]
pub(crate) fn send_result<S: Sink>(
    py: Python<'_>,
    result: PyResult<Bound<'_, PyAny>>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> SendOutcome {
    match result {
        Ok(value) => match send_value(py, &value, context, sink) {
            Ok(outcome) => outcome,
            Err(error) => handle_exception(py, &error, context, sink),
        },
        Err(error) => handle_exception(py, &error, context, sink),
    }
}

/// Lets the error handlers make a response of an exception.
#[cold]
fn handle_exception<S: Sink>(
    py: Python<'_>,
    error: &PyErr,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> SendOutcome {
    end_child_with(py, context.handle, error);
    if context.stage == HandlerStage::ErrorHandler {
        return send_internal_error(py, error, context, sink);
    }
    context.stage = HandlerStage::ErrorHandler;
    // By way of `into_value`, which puts the traceback where Python looks for it.
    let exception: Py<PyBaseException> = error.clone_ref(py).into_value(py);
    let Some(on_error) = context.handle.callbacks.on_error.as_ref() else {
        return send_internal_error(py, error, context, sink);
    };
    let made = context
        .request(py, true)
        .cloned()
        .and_then(|request| on_error.bind(py).call1((request, exception)));
    match made.and_then(|value| {
        if is_coroutine(&value) {
            Ok(SendOutcome::Coroutine(value.unbind()))
        } else {
            send_value(py, &value, context, sink)
        }
    }) {
        Ok(outcome) => outcome,
        Err(error) => send_internal_error(py, &error, context, sink),
    }
}

/// The last resort: a logged error and a 500 without a word.
#[cold]
pub(crate) fn send_internal_error<S: Sink>(
    py: Python<'_>,
    error: &PyErr,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> SendOutcome {
    log_exception(py, error, context);
    send_fault(py, Fault::HandlerFailed, sink);
    SendOutcome::Sent
}

/// Logs an exception that the application has not handled.
#[cold]
pub(crate) fn log_exception(py: Python<'_>, error: &PyErr, context: &RequestContext<'_>) {
    end_child_with(py, context.handle, error);
    let what = match context.stage {
        HandlerStage::Handler => " failed",
        HandlerStage::ErrorHandler => " failed in its error handler",
        HandlerStage::Streaming => " failed while its response was streamed",
    };
    context.subject(py).exception(py, what, error);
}

/// What a stream's driver lets through although it handles its own errors: logged, and the response cut.
#[cold]
pub(crate) fn abort_stream<S: Sink>(
    py: Python<'_>,
    error: Option<PyErr>,
    context: &RequestContext<'_>,
    sink: &mut S,
) {
    if let Some(error) = error {
        log_exception(py, &error, context);
    }
    // Cutting what is cut already changes nothing.
    let _ = sink.send(py, Action::Abort);
}

/// Answers with a fault's status and text.
pub(crate) fn send_fault<S: Sink>(py: Python<'_>, fault: Fault, sink: &mut S) {
    let status = fault.status();
    let mut fields = Fields::default();
    if status.code() == 503 {
        fields.push(b"retry-after", b"1").expect("a valid field");
    }
    let response = ResponseHead {
        status,
        content_type: Some(TEXT),
        fields: &fields,
    };
    let body = if status == Status::INTERNAL_SERVER_ERROR {
        status.reason()
    } else {
        fault.text()
    };
    // A response of ours that is refused has come too late: the connection is being cut already.
    let _ = sink.send(
        py,
        Action::Respond(response, Payload::Copied(body.as_bytes())),
    );
}

/// Sends one whole response.
#[inline]
fn send<S: Sink>(
    py: Python<'_>,
    response: ResponseHead<'_>,
    body: Payload<'_>,
    context: &RequestContext<'_>,
    sink: &mut S,
) -> SendOutcome {
    if let Err(fault) = sink.send(py, Action::Respond(response, body)) {
        log_fault(py, fault, context);
    }
    SendOutcome::Sent
}

/// Logs what the protocol refused of an application's response.
#[cold]
pub(crate) fn log_fault(py: Python<'_>, fault: Fault, context: &RequestContext<'_>) {
    let what = format!(": {} ({})", fault.text(), fault.spec());
    context
        .subject(py)
        .log(py, context.handle, LEVEL_ERROR, &what);
}

/// The plain response that a handler's value is, if it is text or bytes that are few enough to be copied.
#[inline]
pub(crate) fn plain_response<'a>(
    value: &'a Bound<'_, PyAny>,
) -> PyResult<Option<PlainResponse<'a>>> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Ok(Some(PlainResponse {
            metadata: &TEXT_METADATA,
            body: text.to_str()?.as_bytes(),
        }));
    }
    if let Ok(bytes) = value.cast_exact::<PyBytes>()
        && bytes.as_bytes().len() < Output::SHARED_BYTES_MIN
    {
        return Ok(Some(PlainResponse {
            metadata: &BYTES_METADATA,
            body: bytes.as_bytes(),
        }));
    }
    Ok(None)
}

/// Sends what a handler returned.
#[inline]
fn send_value<S: Sink>(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<SendOutcome> {
    if FAST_PATHS && let Some(plain) = plain_response(value)? {
        return Ok(send_plain_response(py, plain, context, sink));
    }
    if FAST_PATHS && is_encodable(value, context) {
        return send_encoded(py, value, context, sink);
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        reject_status_tuple(py, tuple, context)?;
        return send_encoded(py, value, context, sink);
    }
    if let Ok(response) = value.cast::<Response>() {
        return send_response(py, response, context, sink);
    }
    if value.is_none() {
        let response = ResponseHead {
            status: Status::NO_CONTENT,
            content_type: None,
            fields: &Fields::EMPTY,
        };
        return Ok(send(py, response, Payload::Copied(b""), context, sink));
    }
    send_body(
        py,
        Status::OK,
        None,
        Fields::default(),
        value,
        context,
        sink,
    )
}

/// Raises for `body, status`, which other frameworks take for a response; here it would be a JSON array.
fn reject_status_tuple(
    py: Python<'_>,
    tuple: &Bound<'_, PyTuple>,
    context: &RequestContext<'_>,
) -> PyResult<()> {
    if !(2..=3).contains(&tuple.len()) || tuple.get_item(1)?.cast_exact::<PyInt>().is_err() {
        return Ok(());
    }
    let route = match (context.route, &context.request) {
        (None, Some(request)) => request.get().route(),
        (route, _) => route,
    };
    let handler = route.map(|route| route.handler.bind(py));
    support::REFUSE_STATUS.get(py)?.call1((tuple, handler))?;
    Ok(())
}

/// Sends a plain response, the shorter way if there is one.
#[inline]
fn send_plain_response<S: Sink>(
    py: Python<'_>,
    plain: PlainResponse<'_>,
    context: &RequestContext<'_>,
    sink: &mut S,
) -> SendOutcome {
    if !sink.respond(plain)
        && let Err(fault) = sink.send(py, plain.action())
    {
        log_fault(py, fault, context);
    }
    SendOutcome::Sent
}

/// Whether this is known to be a value that is encoded, without asking what else it might be.
#[inline]
fn is_encodable(value: &Bound<'_, PyAny>, context: &RequestContext<'_>) -> bool {
    value.cast_exact::<PyDict>().is_ok()
        || value.cast_exact::<PyList>().is_ok()
        || context.handle.data_types.contains(&value.get_type())
}

/// Sends a value as JSON or MessagePack, as the client would have it.
fn send_encoded<S: Sink>(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<SendOutcome> {
    let (encode, metadata) = negotiate_encoder(py, context);
    let encoded = encode.call1(py, value)?;
    let bytes = encoded.cast::<PyBytes>()?;
    if bytes.as_bytes().len() < Output::SHARED_BYTES_MIN {
        let plain = PlainResponse {
            metadata,
            body: bytes.as_bytes(),
        };
        return Ok(send_plain_response(py, plain, context, sink));
    }
    let response = ResponseHead {
        status: Status::OK,
        content_type: Some(metadata.media_type),
        fields: &metadata.fields,
    };
    Ok(send(py, response, payload(bytes), context, sink))
}

/// What encodes values for this client, and what is said of what comes out.
#[inline]
fn negotiate_encoder(
    py: Python<'_>,
    context: &RequestContext<'_>,
) -> (&'static support::Function, &'static Metadata) {
    let accepts = |head: &Head| head.field(b"accept").is_some_and(prefers_msgpack);
    if context.with_head(py, accepts) {
        (&support::ENCODE_MSGPACK, &MSGPACK_METADATA)
    } else {
        (&support::ENCODE_JSON, &JSON_METADATA)
    }
}

fn send_response<S: Sink>(
    py: Python<'_>,
    response: &Bound<'_, Response>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<SendOutcome> {
    let parts = response.get().parts(py);
    let checked = match (parts.checked_status(), parts.fields(py)?) {
        (Ok(status), Ok(fields)) => Ok((status, fields)),
        (Err(fault), _) | (_, Err(fault)) => Err(fault),
    };
    let media = parts
        .content_type
        .as_ref()
        .map(|media| media.bind(py).to_str())
        .transpose()?;
    let checked = checked.and_then(|checked| match media {
        Some(media) if !media.bytes().all(citius_http::fields::is_value_byte) => {
            Err(Fault::ResponseFieldValue)
        }
        _ => Ok(checked),
    });
    let (status, fields) = match checked {
        Ok(checked) => checked,
        Err(fault) => {
            log_fault(py, fault, context);
            send_fault(py, fault, sink);
            return Ok(SendOutcome::Sent);
        }
    };
    context.trailers = parts.trailers;
    let (body, media) = (parts.body.bind(py), media.map(str::as_bytes));
    send_body(py, status, media, fields, body, context, sink)
}

/// Sends a response whose status and fields are known and whose body may be anything.
fn send_body<S: Sink>(
    py: Python<'_>,
    status: Status,
    media: Option<&[u8]>,
    mut fields: Fields,
    body: &Bound<'_, PyAny>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<SendOutcome> {
    if let Ok(bytes) = body.cast::<PyBytes>() {
        // An empty body has no type unless the handler gave it one.
        let media = media.or((!bytes.as_bytes().is_empty()).then_some(OCTET_STREAM));
        let response = ResponseHead {
            status,
            content_type: media,
            fields: &fields,
        };
        return Ok(send(py, response, payload(bytes), context, sink));
    }
    if let Ok(text) = body.cast::<PyString>() {
        let media = media.or((!status.has_no_body()).then_some(TEXT));
        let response = ResponseHead {
            status,
            content_type: media,
            fields: &fields,
        };
        return Ok(send(
            py,
            response,
            Payload::Copied(text.to_str()?.as_bytes()),
            context,
            sink,
        ));
    }
    if let Some(bytes) = copy_of_buffer(body)? {
        return send_body(py, status, media, fields, &bytes, context, sink);
    }
    if body.is_none() {
        let response = ResponseHead {
            status,
            content_type: media,
            fields: &fields,
        };
        return Ok(send(py, response, Payload::Copied(b""), context, sink));
    }
    if let Some(kind) = iterator_kind(body)? {
        if let Some(payload) = file::rest_of(context.handle, body)? {
            let response = ResponseHead {
                status,
                content_type: media.or(Some(OCTET_STREAM)),
                fields: &fields,
            };
            return Ok(send(py, response, payload, context, sink));
        }
        return start_stream(py, status, media, &fields, body, kind, context, sink);
    }
    if let Ok(file) = body.cast::<FileBody>() {
        file.get().send(py, status, media, &fields, context, sink)?;
        return Ok(SendOutcome::Sent);
    }
    let (encode, media) = if let Some(media) = media {
        (&support::ENCODE_JSON, media)
    } else {
        let (encode, metadata) = negotiate_encoder(py, context);
        for (name, value) in metadata.fields.iter() {
            fields.push(name, value).expect("a field of the server's");
        }
        (encode, metadata.media_type)
    };
    reject_coroutine(body)?;
    let encoded = encode.call1(py, body)?;
    context.handle.data_types.note(&body.get_type());
    let bytes = encoded.cast::<PyBytes>()?;
    let response = ResponseHead {
        status,
        content_type: Some(media),
        fields: &fields,
    };
    Ok(send(py, response, payload(bytes), context, sink))
}

/// A coroutine is what a handler returns that calls an `async def` function and does not await it.
fn reject_coroutine(body: &Bound<'_, PyAny>) -> PyResult<()> {
    if !is_coroutine(body) {
        return Ok(());
    }
    // Closed, for Python would complain of it a second time.
    body.call_method0(pyo3::intern!(body.py(), "close"))?;
    Err(PyTypeError::new_err(
        "the handler returned a coroutine that it has not awaited; make it `async def`, or await what it calls",
    ))
}

/// How an iterator is driven.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IteratorKind {
    Sync,
    Async,
}

fn iterator_kind(value: &Bound<'_, PyAny>) -> PyResult<Option<IteratorKind>> {
    let kind = value.get_type();
    if kind.hasattr(pyo3::intern!(value.py(), "__next__"))? {
        return Ok(Some(IteratorKind::Sync));
    }
    if kind.hasattr(pyo3::intern!(value.py(), "__aiter__"))? {
        return Ok(Some(IteratorKind::Async));
    }
    Ok(None)
}

/// Sends the head of a streamed response and sets its driver going.
#[expect(
    clippy::too_many_arguments,
    reason = "a head, a body and where both go"
)]
fn start_stream<S: Sink>(
    py: Python<'_>,
    status: Status,
    media: Option<&[u8]>,
    fields: &Fields,
    body: &Bound<'_, PyAny>,
    kind: IteratorKind,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<SendOutcome> {
    let response = ResponseHead {
        status,
        content_type: media.or(Some(OCTET_STREAM)),
        fields,
    };
    if let Err(fault) = sink.send(py, Action::Start(response)) {
        log_fault(py, fault, context);
        return Ok(SendOutcome::Sent);
    }
    if status.has_no_body() || context.with_head(py, |head| head.method == Method::Head) {
        // The body would not be sent, so it is not made.
        if let Err(fault) = sink.send(
            py,
            Action::End {
                trailers: &Fields::EMPTY,
            },
        ) {
            log_fault(py, fault, context);
        }
        if let Some(close) = body.getattr_opt(pyo3::intern!(py, "close"))? {
            close.call0()?;
        }
        return Ok(SendOutcome::Sent);
    }
    context.stage = HandlerStage::Streaming;
    let handle = Arc::clone(context.handle);
    let trailers = context.trailers.take();
    let request = context.request(py, true)?.clone().unbind();
    if S::IN_TURN {
        let role = NativeRequest {
            request: request.clone_ref(py),
            stream: None,
        };
        context.handle.enter(context.id, role);
    }
    let stream = Py::new(py, Stream::new(handle, context.id, request, trailers))?;
    let kept = stream.clone_ref(py);
    let set = |role: &mut NativeRequest| role.stream.replace(kept);
    if context.handle.with_role(context.id, set).is_none() {
        // Only a turn enters exchanges: the client has gone, and no event would tell the stream.
        stream.get().gone(py);
    }
    if kind == IteratorKind::Async {
        let pump = support::PUMP_ASYNC.get(py)?.call1((stream, body))?;
        return Ok(SendOutcome::Coroutine(pump.unbind()));
    }
    support::PUMP_BLOCKING.get(py)?.call1((stream, body))?;
    Ok(SendOutcome::Streaming)
}

/// A request whose coroutine waits.
struct SuspendedHandler {
    request: Py<Request>,
    stage: HandlerStage,
}

impl Resume for SuspendedHandler {
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress {
        let mut context = RequestContext::of_request(self.request.bind(py));
        context.stage = self.stage;
        let progress = step.run(py, &mut context);
        self.stage = context.stage;
        progress
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.request)
    }
}

impl CompletionHandler for RequestContext<'_> {
    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId) {
        (self.handle, self.id)
    }

    #[inline]
    fn on_result<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next {
        if let Err(error) = &result
            && is_cancellation(py, error)
        {
            handle_cancellation(py, error, self, sink);
            return Next::Done(Some(error.clone_ref(py)));
        }
        if self.stage == HandlerStage::Streaming {
            // The stream's driver has sent everything itself.
            if let Err(error) = result {
                abort_stream(py, Some(error), self, sink);
            }
            drop(self.handle.take(self.id));
            return Next::Done(None);
        }
        match send_result(py, result, self, sink) {
            SendOutcome::Coroutine(next) => Next::Coroutine(next),
            SendOutcome::Streaming => Next::Done(None),
            SendOutcome::Sent => {
                // Without an object the request was never entered in the table.
                if self.request.is_some() {
                    drop(self.handle.take(self.id));
                }
                Next::Done(None)
            }
        }
    }

    fn on_suspend(&mut self, py: Python<'_>) -> PyResult<Suspended> {
        let request = self.request(py, true)?.clone().unbind();
        let role = NativeRequest {
            request: request.clone_ref(py),
            stream: None,
        };
        let stage = self.stage;
        Ok(Suspended {
            entry: Entry::As(Box::new(role)),
            resume: Box::new(SuspendedHandler { request, stage }),
        })
    }

    fn subject(&self, py: Python<'_>) -> Subject {
        RequestContext::subject(self, py)
    }

    #[inline]
    fn flush(&mut self, _py: Python<'_>, reply: &mut Reply<'_>) {
        if let Some(head) = self.head.take() {
            reply.recycle(head);
        }
    }

    fn fail(&mut self, py: Python<'_>, error: &PyErr, reply: &mut Reply<'_>) {
        send_internal_error(py, error, self, reply);
    }
}

/// A cancelled handler. With its client gone this goes nowhere; otherwise other code cancelled it, or it
/// waited for something cancelled, and a response is still expected.
#[cold]
fn handle_cancellation<S: Sink>(
    py: Python<'_>,
    error: &PyErr,
    context: &RequestContext<'_>,
    sink: &mut S,
) {
    let was_open = context.handle.take(context.id).is_some();
    if context.stage == HandlerStage::Streaming {
        abort_stream(py, None, context, sink);
    } else if was_open || S::IN_TURN {
        log_exception(py, error, context);
        send_fault(py, Fault::HandlerFailed, sink);
    }
}

/// Whether `value` is a coroutine object.
pub(crate) fn is_coroutine(value: &Bound<'_, PyAny>) -> bool {
    static KIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let kind = KIND.get_or_try_init(value.py(), || {
        Ok::<_, PyErr>(
            value
                .py()
                .import("types")?
                .getattr("CoroutineType")?
                .unbind(),
        )
    });
    kind.is_ok_and(|kind| value.is_instance(kind.bind(value.py())).unwrap_or(false))
}

/// A path parameter as the handler sees it.
pub(crate) fn convert<'py>(
    py: Python<'py>,
    converter: Converter,
    value: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    static UUID: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let text = String::from_utf8_lossy(value);
    Ok(match converter {
        Converter::Int => text.parse::<i64>()?.into_pyobject(py)?.into_any(),
        Converter::Float => text.parse::<f64>()?.into_pyobject(py)?.into_any(),
        Converter::Uuid => {
            let kind = UUID.get_or_try_init(py, || {
                Ok::<_, PyErr>(py.import("uuid")?.getattr("UUID")?.unbind())
            })?;
            kind.bind(py).call1((text,))?
        }
        Converter::Str | Converter::Path => PyString::new(py, &text).into_any(),
    })
}

/// Concludes a request inside the turn and steps what has to be stepped.
pub(crate) fn complete_in_turn(
    py: Python<'_>,
    result: PyResult<Bound<'_, PyAny>>,
    context: &mut RequestContext<'_>,
    reply: &mut Reply<'_>,
    tasks: &mut Tasks,
) {
    match send_result(py, result, context, reply) {
        SendOutcome::Sent => {
            if let Some(head) = context.head.take() {
                reply.recycle(head);
            }
        }
        SendOutcome::Streaming => {}
        SendOutcome::Coroutine(coroutine) => tasks.step(py, coroutine, context, reply),
    }
}
