//! From what a handler returned, or raised, to an answer on its way.
//!
//! One place for all ways in: a `def` handler inside the turn, a coroutine that ended eagerly or late,
//! a thread. Only the [`Sink`] differs. Nothing an application returns gets past this file unchecked,
//! and whatever is wrong with it ends as a logged error and a 500.

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

use crate::file;
use crate::file_body::FileBody;
use crate::fork::end_child_with;
use crate::link::{LEVEL_ERROR, LateSubject, Link, Role, Sink, payload};
use crate::negotiate::prefers_msgpack;
use crate::report::Subject;
use crate::request::Request;
use crate::response::Response;
use crate::route::RouteInfo;
use crate::stream::{Stream, copy_of_buffer};
use crate::support;
use crate::task::{
    Entry, Errand, LateStep, Next, Progress, Resume, Suspended, Tasks, is_cancellation,
};

/// One request as its answer needs it: with or without a Python object.
///
/// Borrows what the turn has, so that a request answered at once counts no references.
pub(crate) struct Asked<'a> {
    pub(crate) id: StreamId,
    pub(crate) peer: Peer,
    pub(crate) link: &'a Arc<Link>,
    pub(crate) route: Option<&'a Arc<RouteInfo>>,
    pub(crate) captures: Captures,
    pub(crate) head: Option<Box<Head>>,
    pub(crate) request: Option<Py<Request>>,
    pub(crate) stage: Stage,
    /// What the trailer section is made of, if the answer turns out to be streamed.
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

    fn subject(&self, py: Python<'_>, _link: &Link) -> Option<LateSubject> {
        let request = self.request.clone_ref(py);
        Some(Box::new(move |_| request.get().subject()))
    }
}

/// How far the application's part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The handler is at work.
    Handling,
    /// The error handlers are: what they raise is not handed to them again.
    Failing,
    /// The head of a streamed answer has been sent; its driver is at work.
    Streaming,
}

/// How far an answer is.
pub(crate) enum Settled {
    /// It is on its way.
    Answered,
    /// Its head is; a stream follows by itself.
    Streaming,
    /// This is to be stepped; what it returns concludes the request.
    Coroutine(Py<PyAny>),
}

impl<'a> Asked<'a> {
    #[inline]
    pub(crate) fn new(id: StreamId, peer: Peer, link: &'a Arc<Link>, head: Box<Head>) -> Self {
        Self {
            id,
            peer,
            link,
            route: None,
            captures: Captures::new(),
            head: Some(head),
            request: None,
            stage: Stage::Handling,
            trailers: None,
        }
    }

    /// From a request that has its object already.
    pub(crate) fn of_request(request: &'a Bound<'_, Request>) -> Self {
        let this = request.get();
        Self {
            id: this.id,
            peer: this.peer(),
            link: &this.link,
            route: None,
            captures: Captures::new(),
            head: None,
            request: Some(request.clone().unbind()),
            stage: Stage::Handling,
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
            (Some(head), _) => Subject::new(self.link, head, self.route.map(|route| &*route.label)),
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
const OCTETS: &[u8] = b"application/octet-stream";

// Statics, for a plain answer's metadata are known by their address.
static OF_TEXT: Metadata = Metadata {
    media_type: TEXT,
    fields: Fields::EMPTY,
};
static OF_BYTES: Metadata = Metadata {
    media_type: OCTETS,
    fields: Fields::EMPTY,
};
static OF_JSON: LazyLock<Metadata> = LazyLock::new(|| negotiated(b"application/json"));
static OF_MSGPACK: LazyLock<Metadata> = LazyLock::new(|| negotiated(b"application/msgpack"));

/// RFC 9110 §12.5.5: a cache must know that another client could have got the other format.
fn negotiated(media_type: &'static [u8]) -> Metadata {
    let mut fields = Fields::default();
    fields.push(b"vary", b"accept").expect("a valid field");
    Metadata { media_type, fields }
}

/// Sends what a handler returned or raised.
#[inline]
pub(crate) fn conclude<S: Sink>(
    py: Python<'_>,
    result: PyResult<Bound<'_, PyAny>>,
    asked: &mut Asked<'_>,
    sink: &mut S,
) -> Settled {
    match result {
        Ok(value) => match send_value(py, &value, asked, sink) {
            Ok(settled) => settled,
            Err(error) => conclude_error(py, &error, asked, sink),
        },
        Err(error) => conclude_error(py, &error, asked, sink),
    }
}

/// Lets the error handlers make an answer of an exception.
#[cold]
fn conclude_error<S: Sink>(
    py: Python<'_>,
    error: &PyErr,
    asked: &mut Asked<'_>,
    sink: &mut S,
) -> Settled {
    end_child_with(py, asked.link, error);
    if asked.stage == Stage::Failing {
        return conclude_plainly(py, error, asked, sink);
    }
    asked.stage = Stage::Failing;
    // By way of `into_value`, which puts the traceback where Python looks for it.
    let exception: Py<PyBaseException> = error.clone_ref(py).into_value(py);
    let Some(on_error) = asked.link.callbacks.on_error.as_ref() else {
        return conclude_plainly(py, error, asked, sink);
    };
    let made = asked
        .request(py, true)
        .cloned()
        .and_then(|request| on_error.bind(py).call1((request, exception)));
    match made.and_then(|value| {
        if is_coroutine(&value) {
            Ok(Settled::Coroutine(value.unbind()))
        } else {
            send_value(py, &value, asked, sink)
        }
    }) {
        Ok(settled) => settled,
        Err(error) => conclude_plainly(py, &error, asked, sink),
    }
}

/// The last resort: a logged error and a 500 without a word.
#[cold]
pub(crate) fn conclude_plainly<S: Sink>(
    py: Python<'_>,
    error: &PyErr,
    asked: &mut Asked<'_>,
    sink: &mut S,
) -> Settled {
    report_error(py, error, asked);
    send_plain(py, Fault::HandlerFailed, sink);
    Settled::Answered
}

/// Logs an exception that the application has not handled.
#[cold]
pub(crate) fn report_error(py: Python<'_>, error: &PyErr, asked: &Asked<'_>) {
    end_child_with(py, asked.link, error);
    let what = match asked.stage {
        Stage::Handling => " failed",
        Stage::Failing => " failed in its error handler",
        Stage::Streaming => " failed while its response was streamed",
    };
    asked.subject(py).exception(py, what, error);
}

/// What a stream's driver lets through although it handles its own errors: logged, and the answer cut.
#[cold]
pub(crate) fn cut_stream<S: Sink>(
    py: Python<'_>,
    error: Option<PyErr>,
    asked: &Asked<'_>,
    sink: &mut S,
) {
    if let Some(error) = error {
        report_error(py, &error, asked);
    }
    // Cutting what is cut already changes nothing.
    let _ = sink.send(py, Action::Abort);
}

/// Answers with a fault's status and text.
pub(crate) fn send_plain<S: Sink>(py: Python<'_>, fault: Fault, sink: &mut S) {
    let status = fault.status();
    let mut fields = Fields::default();
    if status.code() == 503 {
        fields.push(b"retry-after", b"1").expect("a valid field");
    }
    let answer = ResponseHead {
        status,
        content_type: Some(TEXT),
        fields: &fields,
    };
    let body = if status == Status::INTERNAL_SERVER_ERROR {
        status.reason()
    } else {
        fault.text()
    };
    // An answer of ours that is refused has come too late: the connection is being cut already.
    let _ = sink.send(
        py,
        Action::Respond(answer, Payload::Copied(body.as_bytes())),
    );
}

/// Sends one whole answer.
#[inline]
fn send<S: Sink>(
    py: Python<'_>,
    answer: ResponseHead<'_>,
    body: Payload<'_>,
    asked: &Asked<'_>,
    sink: &mut S,
) -> Settled {
    if let Err(fault) = sink.send(py, Action::Respond(answer, body)) {
        report(py, fault, asked);
    }
    Settled::Answered
}

/// Logs what the protocol refused of an application's answer.
#[cold]
pub(crate) fn report(py: Python<'_>, fault: Fault, asked: &Asked<'_>) {
    let what = format!(": {} ({})", fault.text(), fault.spec());
    asked.subject(py).log(py, asked.link, LEVEL_ERROR, &what);
}

/// The plain answer that a handler's value is, if it is text or bytes that are few enough to be copied.
#[inline]
pub(crate) fn plain_of<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<PlainResponse<'a>>> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Ok(Some(PlainResponse {
            metadata: &OF_TEXT,
            body: text.to_str()?.as_bytes(),
        }));
    }
    if let Ok(bytes) = value.cast_exact::<PyBytes>()
        && bytes.as_bytes().len() < Output::SHARED_BYTES_MIN
    {
        return Ok(Some(PlainResponse {
            metadata: &OF_BYTES,
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
    asked: &mut Asked<'_>,
    sink: &mut S,
) -> PyResult<Settled> {
    if FAST_PATHS && let Some(plain) = plain_of(value)? {
        return Ok(send_whole(py, plain, asked, sink));
    }
    if FAST_PATHS && is_data(value, asked) {
        return send_data(py, value, asked, sink);
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        refuse_status(py, tuple, asked)?;
        return send_data(py, value, asked, sink);
    }
    if let Ok(response) = value.cast::<Response>() {
        return send_response(py, response, asked, sink);
    }
    if value.is_none() {
        let answer = ResponseHead {
            status: Status::NO_CONTENT,
            content_type: None,
            fields: &Fields::EMPTY,
        };
        return Ok(send(py, answer, Payload::Copied(b""), asked, sink));
    }
    send_body(py, Status::OK, None, Fields::default(), value, asked, sink)
}

/// Raises for `body, status`, which other frameworks take for a response; here it would be a JSON array.
fn refuse_status(py: Python<'_>, tuple: &Bound<'_, PyTuple>, asked: &Asked<'_>) -> PyResult<()> {
    if !(2..=3).contains(&tuple.len()) || tuple.get_item(1)?.cast_exact::<PyInt>().is_err() {
        return Ok(());
    }
    let route = match (asked.route, &asked.request) {
        (None, Some(request)) => request.get().route(),
        (route, _) => route,
    };
    let handler = route.map(|route| route.handler.bind(py));
    support::REFUSE_STATUS.get(py)?.call1((tuple, handler))?;
    Ok(())
}

/// Sends a plain answer, the shorter way if there is one.
#[inline]
fn send_whole<S: Sink>(
    py: Python<'_>,
    plain: PlainResponse<'_>,
    asked: &Asked<'_>,
    sink: &mut S,
) -> Settled {
    if !sink.respond(plain)
        && let Err(fault) = sink.send(py, plain.action())
    {
        report(py, fault, asked);
    }
    Settled::Answered
}

/// Whether this is known to be a value that is encoded, without asking what else it might be.
#[inline]
fn is_data(value: &Bound<'_, PyAny>, asked: &Asked<'_>) -> bool {
    value.cast_exact::<PyDict>().is_ok()
        || value.cast_exact::<PyList>().is_ok()
        || asked.link.data_types.contains(&value.get_type())
}

/// Sends a value as JSON or MessagePack, as the client would have it.
fn send_data<S: Sink>(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    asked: &mut Asked<'_>,
    sink: &mut S,
) -> PyResult<Settled> {
    let (encode, metadata) = format_for(py, asked);
    let encoded = encode.call1(py, value)?;
    let bytes = encoded.cast::<PyBytes>()?;
    if bytes.as_bytes().len() < Output::SHARED_BYTES_MIN {
        let plain = PlainResponse {
            metadata,
            body: bytes.as_bytes(),
        };
        return Ok(send_whole(py, plain, asked, sink));
    }
    let answer = ResponseHead {
        status: Status::OK,
        content_type: Some(metadata.media_type),
        fields: &metadata.fields,
    };
    Ok(send(py, answer, payload(bytes), asked, sink))
}

/// What encodes values for this client, and what is said of what comes out.
#[inline]
fn format_for(
    py: Python<'_>,
    asked: &Asked<'_>,
) -> (&'static support::Function, &'static Metadata) {
    let accepts = |head: &Head| head.field(b"accept").is_some_and(prefers_msgpack);
    if asked.with_head(py, accepts) {
        (&support::ENCODE_MSGPACK, &OF_MSGPACK)
    } else {
        (&support::ENCODE_JSON, &OF_JSON)
    }
}

fn send_response<S: Sink>(
    py: Python<'_>,
    response: &Bound<'_, Response>,
    asked: &mut Asked<'_>,
    sink: &mut S,
) -> PyResult<Settled> {
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
            report(py, fault, asked);
            send_plain(py, fault, sink);
            return Ok(Settled::Answered);
        }
    };
    asked.trailers = parts.trailers;
    let (body, media) = (parts.body.bind(py), media.map(str::as_bytes));
    send_body(py, status, media, fields, body, asked, sink)
}

/// Sends an answer whose status and fields are known and whose body may be anything.
fn send_body<S: Sink>(
    py: Python<'_>,
    status: Status,
    media: Option<&[u8]>,
    mut fields: Fields,
    body: &Bound<'_, PyAny>,
    asked: &mut Asked<'_>,
    sink: &mut S,
) -> PyResult<Settled> {
    if let Ok(bytes) = body.cast::<PyBytes>() {
        // An empty body has no type unless somebody gave it one.
        let media = media.or((!bytes.as_bytes().is_empty()).then_some(OCTETS));
        let answer = ResponseHead {
            status,
            content_type: media,
            fields: &fields,
        };
        return Ok(send(py, answer, payload(bytes), asked, sink));
    }
    if let Ok(text) = body.cast::<PyString>() {
        let media = media.or((!status.has_no_body()).then_some(TEXT));
        let answer = ResponseHead {
            status,
            content_type: media,
            fields: &fields,
        };
        return Ok(send(
            py,
            answer,
            Payload::Copied(text.to_str()?.as_bytes()),
            asked,
            sink,
        ));
    }
    if let Some(bytes) = copy_of_buffer(body)? {
        return send_body(py, status, media, fields, &bytes, asked, sink);
    }
    if body.is_none() {
        let answer = ResponseHead {
            status,
            content_type: media,
            fields: &fields,
        };
        return Ok(send(py, answer, Payload::Copied(b""), asked, sink));
    }
    if let Some(kind) = iterator_kind(body)? {
        if let Some(payload) = file::rest_of(asked.link, body)? {
            let answer = ResponseHead {
                status,
                content_type: media.or(Some(OCTETS)),
                fields: &fields,
            };
            return Ok(send(py, answer, payload, asked, sink));
        }
        return start_stream(py, status, media, &fields, body, kind, asked, sink);
    }
    if let Ok(file) = body.cast::<FileBody>() {
        file.get().send(py, status, media, &fields, asked, sink)?;
        return Ok(Settled::Answered);
    }
    let (encode, media) = if let Some(media) = media {
        (&support::ENCODE_JSON, media)
    } else {
        let (encode, metadata) = format_for(py, asked);
        for (name, value) in metadata.fields.iter() {
            fields.push(name, value).expect("a field of the server's");
        }
        (encode, metadata.media_type)
    };
    refuse_coroutine(body)?;
    let encoded = encode.call1(py, body)?;
    asked.link.data_types.note(&body.get_type());
    let bytes = encoded.cast::<PyBytes>()?;
    let answer = ResponseHead {
        status,
        content_type: Some(media),
        fields: &fields,
    };
    Ok(send(py, answer, payload(bytes), asked, sink))
}

/// A coroutine is what a handler returns that calls an `async def` function and does not await it.
fn refuse_coroutine(body: &Bound<'_, PyAny>) -> PyResult<()> {
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

/// Sends the head of a streamed answer and sets its driver going.
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
    asked: &mut Asked<'_>,
    sink: &mut S,
) -> PyResult<Settled> {
    let answer = ResponseHead {
        status,
        content_type: media.or(Some(OCTETS)),
        fields,
    };
    if let Err(fault) = sink.send(py, Action::Start(answer)) {
        report(py, fault, asked);
        return Ok(Settled::Answered);
    }
    if status.has_no_body() || asked.with_head(py, |head| head.method == Method::Head) {
        // Nobody will see the body, so nobody makes it.
        if let Err(fault) = sink.send(
            py,
            Action::End {
                trailers: &Fields::EMPTY,
            },
        ) {
            report(py, fault, asked);
        }
        if let Some(close) = body.getattr_opt(pyo3::intern!(py, "close"))? {
            close.call0()?;
        }
        return Ok(Settled::Answered);
    }
    asked.stage = Stage::Streaming;
    let link = Arc::clone(asked.link);
    let trailers = asked.trailers.take();
    let request = asked.request(py, true)?.clone().unbind();
    if S::IN_TURN {
        let role = NativeRequest {
            request: request.clone_ref(py),
            stream: None,
        };
        asked.link.enter(asked.id, role);
    }
    let stream = Py::new(py, Stream::new(link, asked.id, request, trailers))?;
    let kept = stream.clone_ref(py);
    let set = |role: &mut NativeRequest| role.stream.replace(kept);
    if asked.link.with_role(asked.id, set).is_none() {
        // Only a turn enters exchanges: the client has gone, and nobody else would tell the stream.
        stream.get().gone(py);
    }
    if kind == IteratorKind::Async {
        let pump = support::PUMP_ASYNC.get(py)?.call1((stream, body))?;
        return Ok(Settled::Coroutine(pump.unbind()));
    }
    support::PUMP_BLOCKING.get(py)?.call1((stream, body))?;
    Ok(Settled::Streaming)
}

/// A request whose coroutine waits.
struct Waiting {
    request: Py<Request>,
    stage: Stage,
}

impl Resume for Waiting {
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress {
        let mut asked = Asked::of_request(self.request.bind(py));
        asked.stage = self.stage;
        let progress = step.run(py, &mut asked);
        self.stage = asked.stage;
        progress
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.request)
    }
}

impl Errand for Asked<'_> {
    fn exchange(&self) -> (&Arc<Link>, StreamId) {
        (self.link, self.id)
    }

    #[inline]
    fn conclude<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next {
        if let Err(error) = &result
            && is_cancellation(py, error)
        {
            end_with_task(py, error, self, sink);
            return Next::Done(Some(error.clone_ref(py)));
        }
        if self.stage == Stage::Streaming {
            // The stream's driver has sent everything itself.
            if let Err(error) = result {
                cut_stream(py, Some(error), self, sink);
            }
            drop(self.link.take(self.id));
            return Next::Done(None);
        }
        match conclude(py, result, self, sink) {
            Settled::Coroutine(next) => Next::Coroutine(next),
            Settled::Streaming => Next::Done(None),
            Settled::Answered => {
                // Without an object the request was never entered in the table.
                if self.request.is_some() {
                    drop(self.link.take(self.id));
                }
                Next::Done(None)
            }
        }
    }

    fn suspend(&mut self, py: Python<'_>) -> PyResult<Suspended> {
        let request = self.request(py, true)?.clone().unbind();
        let role = NativeRequest {
            request: request.clone_ref(py),
            stream: None,
        };
        let stage = self.stage;
        Ok(Suspended {
            entry: Entry::As(Box::new(role)),
            resume: Box::new(Waiting { request, stage }),
        })
    }

    fn subject(&self, py: Python<'_>) -> Subject {
        Asked::subject(self, py)
    }

    #[inline]
    fn flush(&mut self, _py: Python<'_>, reply: &mut Reply<'_>) {
        if let Some(head) = self.head.take() {
            reply.recycle(head);
        }
    }

    fn fail(&mut self, py: Python<'_>, error: &PyErr, reply: &mut Reply<'_>) {
        conclude_plainly(py, error, self, reply);
    }
}

/// A cancelled handler. With its client gone this goes nowhere; otherwise other code cancelled it, or it
/// waited for something cancelled, and an answer is still expected.
#[cold]
fn end_with_task<S: Sink>(py: Python<'_>, error: &PyErr, asked: &Asked<'_>, sink: &mut S) {
    let was_open = asked.link.take(asked.id).is_some();
    if asked.stage == Stage::Streaming {
        cut_stream(py, None, asked, sink);
    } else if was_open || S::IN_TURN {
        report_error(py, error, asked);
        send_plain(py, Fault::HandlerFailed, sink);
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
pub(crate) fn conclude_in_turn(
    py: Python<'_>,
    result: PyResult<Bound<'_, PyAny>>,
    asked: &mut Asked<'_>,
    reply: &mut Reply<'_>,
    tasks: &mut Tasks,
) {
    match conclude(py, result, asked, reply) {
        Settled::Answered => {
            if let Some(head) = asked.head.take() {
                reply.recycle(head);
            }
        }
        Settled::Streaming => {}
        Settled::Coroutine(coroutine) => tasks.step(py, coroutine, asked, reply),
    }
}
