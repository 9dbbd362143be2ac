//! What a handler returned in, a response out.
//!
//! One place for `def` handlers, coroutines that ended early or late, and threads; only the [`Sink`] differs. Every value is
//! validated here; an invalid one raises and ends as a logged error and a 500. Tests: `tests/gateway/`.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use citius_base::passing::{Inbound, Relay, Source};
use citius_base::sink::{Sink, payload};
use citius_base::support;
use citius_http::{
    Action, FAST_PATHS, Fault, Fields, Metadata, Method, Output, Payload, PlainResponse,
    ResponseHead, Status, TEXT,
};
use citius_reactor::StreamCommand;
use citius_static::{Outlet, Said};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::declared::DeclaredResponse;
use crate::file;
use crate::file_body::FileBody;
use crate::functions;
use crate::negotiate::{ErrorFormat, prefers_msgpack};
use crate::response::Response;
use crate::stream::{Stream, bytes_of, copy_of_buffer, trailer_fields};

use crate::request_context::{
    HandlerStage, NativeRequest, RequestContext, SendOutcome, end_streamed, log_fault,
};

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

/// Answers with a fault's status: in the format of the native interface's errors, or as text where the application has
/// another interface.
pub(crate) fn send_fault<S: Sink>(
    py: Python<'_>,
    fault: Fault,
    format: Option<ErrorFormat>,
    sink: &mut S,
) {
    let status = fault.status();
    let mut fields = Fields::default();
    if status.code() == 503 {
        fields.push(b"retry-after", b"1").expect("a valid field");
    }
    if format.is_some() {
        fields.push(b"vary", b"accept").expect("a valid field");
    }
    let response = ResponseHead {
        status,
        content_type: Some(format.map_or(TEXT, ErrorFormat::media_type)),
        fields: &fields,
    };
    let body = match format {
        Some(format) => Cow::Owned(format.body(status)),
        None if status == Status::INTERNAL_SERVER_ERROR => Cow::Borrowed(status.reason()),
        None => Cow::Borrowed(fault.text()),
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
pub(crate) fn send_value<S: Sink>(
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

/// Sends what a handler returned whose route declares it.
pub(crate) fn send_declared<S: Sink>(
    py: Python<'_>,
    declared: &DeclaredResponse,
    value: &Bound<'_, PyAny>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<SendOutcome> {
    if FAST_PATHS && value.is_none() {
        let response = ResponseHead {
            status: declared.empty_status(),
            content_type: None,
            fields: &Fields::EMPTY,
        };
        return Ok(send(py, response, Payload::Copied(b""), context, sink));
    }
    if FAST_PATHS
        && !wants_msgpack(py, context)
        && let Some(body) = declared.encoded(value)
    {
        return Ok(send_json(py, declared.status(), body, context, sink));
    }
    if FAST_PATHS
        && let Ok(response) = value.cast_exact::<Response>()
        && (declared.passes_responses() || response.get().is_encoded(py))
    {
        return send_response(py, response, context, sink);
    }
    send_value(py, &declared.respond(value)?, context, sink)
}

/// Sends JSON, the shorter way if there is one.
#[inline]
fn send_json<S: Sink>(
    py: Python<'_>,
    status: Status,
    body: Vec<u8>,
    context: &RequestContext<'_>,
    sink: &mut S,
) -> SendOutcome {
    let metadata: &'static Metadata = &JSON_METADATA;
    let is_short = body.len() < Output::SHARED_BYTES_MIN;
    if is_short && status == Status::OK {
        let plain = PlainResponse {
            metadata,
            body: &body,
        };
        return send_plain_response(py, plain, context, sink);
    }
    let response = ResponseHead {
        status,
        content_type: Some(metadata.media_type),
        fields: &metadata.fields,
    };
    let body = if is_short {
        Payload::Copied(&body)
    } else {
        Payload::Shared(body.into())
    };
    send(py, response, body, context, sink)
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
    functions::REFUSE_STATUS.get(py)?.call1((tuple, handler))?;
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
    let encoded = functions::encoded(py, encode, value)?;
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

/// Whether this client would rather have MessagePack than JSON.
#[inline]
fn wants_msgpack(py: Python<'_>, context: &RequestContext<'_>) -> bool {
    context.with_head(py, |head| {
        head.field(b"accept").is_some_and(prefers_msgpack)
    })
}

/// The encoder of values for this client, and the metadata of its output.
#[inline]
fn negotiate_encoder(
    py: Python<'_>,
    context: &RequestContext<'_>,
) -> (&'static support::Function, &'static Metadata) {
    if wants_msgpack(py, context) {
        (&functions::ENCODE_MSGPACK, &MSGPACK_METADATA)
    } else {
        (&functions::ENCODE_JSON, &JSON_METADATA)
    }
}

fn send_response<S: Sink>(
    py: Python<'_>,
    response: &Bound<'_, Response>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<SendOutcome> {
    let parts = response.get().parts(py);
    if let Some(background) = &parts.background {
        let request = context.request(py, true)?.clone();
        functions::DEFER_ALL.get(py)?.call1((request, background))?;
    }
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
        Some(media) if !citius_http::fields::is_value(media.as_bytes()) => {
            Err(Fault::ResponseFieldValue)
        }
        _ => Ok(checked),
    });
    let (status, fields) = match checked {
        Ok(checked) => checked,
        Err(fault) => {
            log_fault(py, fault, context);
            send_fault(py, fault, context.error_format(py), sink);
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
    let encoded;
    let (media, payload) = if let Ok(bytes) = body.cast::<PyBytes>() {
        // An empty body has no type unless the handler gave it one.
        let default = (!bytes.as_bytes().is_empty()).then_some(OCTET_STREAM);
        (media.or(default), payload(bytes))
    } else if let Ok(text) = body.cast::<PyString>() {
        let default = (!status.refuses_content()).then_some(TEXT);
        let bytes = text.to_str()?.as_bytes();
        (media.or(default), Payload::Copied(bytes))
    } else if FAST_PATHS && is_encodable(body, context) {
        let media_type;
        (encoded, media_type) = encode_body(py, media, &mut fields, body, context)?;
        (Some(media_type), payload(encoded.cast::<PyBytes>()?))
    } else if let Some(bytes) = copy_of_buffer(body)? {
        return send_body(py, status, media, fields, &bytes, context, sink);
    } else if body.is_none() {
        (media, Payload::Copied(&b""[..]))
    } else if let Ok(relay) = body.cast::<Relay>() {
        return start_relay(py, relay.get(), status, media, &fields, context, sink);
    } else if let Some(kind) = iterator_kind(body)? {
        let Some(file) = file::rest_of(context.handle, body)? else {
            return start_stream(py, status, media, &fields, body, kind, context, sink);
        };
        (media.or(Some(OCTET_STREAM)), file)
    } else if let Ok(file) = body.cast::<FileBody>() {
        return send_file(py, file.get(), status, media, &fields, context, sink);
    } else if let Some(later) = body.getattr_opt(pyo3::intern!(py, "citius_response"))? {
        let request = context.request(py, true)?.clone();
        return Ok(SendOutcome::Coroutine(later.call1((request,))?.unbind()));
    } else if let Some(bytes) = bytes_of(body)? {
        return send_body(py, status, media, fields, &bytes, context, sink);
    } else {
        reject_coroutine(body)?;
        let media_type;
        (encoded, media_type) = encode_body(py, media, &mut fields, body, context)?;
        context.handle.data_types.note(&body.get_type());
        (Some(media_type), payload(encoded.cast::<PyBytes>()?))
    };
    let response = ResponseHead {
        status,
        content_type: media,
        fields: &fields,
    };
    match context.trailers.take() {
        None => Ok(send(py, response, payload, context, sink)),
        Some(trailers) => {
            send_with_trailers(py, response, payload, trailers.bind(py), context, sink)
        }
    }
}

/// Sends a whole body and a trailer section; a body's length is not said then, for its framing can carry one.
fn send_with_trailers<S: Sink>(
    py: Python<'_>,
    response: ResponseHead<'_>,
    body: Payload<'_>,
    trailers: &Bound<'_, PyAny>,
    context: &RequestContext<'_>,
    sink: &mut S,
) -> PyResult<SendOutcome> {
    let (trailers, code) = trailer_fields(trailers)?;
    if let Some(code) = code {
        let _ = sink.deliver(py, StreamCommand::RpcCode(code));
    }
    if trailers.is_empty() {
        return Ok(send(py, response, body, context, sink));
    }
    let has_content = !response.status.refuses_content()
        && context.with_head(py, |head| head.method != Method::Head);
    let sent = sink.send(py, Action::Start(response)).and_then(|()| {
        if has_content {
            sink.send(py, Action::Data(body))?;
        }
        let trailers = &trailers;
        sink.send(py, Action::End { trailers })
    });
    if let Err(fault) = sent {
        log_fault(py, fault, context);
    }
    Ok(SendOutcome::Sent)
}

/// A body as bytes, and their media type: JSON of the type that was given, or what the client would have.
fn encode_body<'py, 'a>(
    py: Python<'py>,
    media: Option<&'a [u8]>,
    fields: &mut Fields,
    body: &Bound<'py, PyAny>,
    context: &mut RequestContext<'_>,
) -> PyResult<(Bound<'py, PyAny>, &'a [u8])> {
    let (encode, media_type) = if let Some(media) = media {
        (&functions::ENCODE_JSON, media)
    } else {
        let (encode, metadata) = negotiate_encoder(py, context);
        for (name, value) in metadata.fields.iter() {
            fields.push(name, value).expect("a field of the server's");
        }
        (encode, metadata.media_type)
    };
    Ok((functions::encoded(py, encode, body)?, media_type))
}

/// Sends a file, or what of it the client asks for.
fn send_file<S: Sink>(
    py: Python<'_>,
    file: &FileBody,
    status: Status,
    content_type: Option<&[u8]>,
    fields: &Fields,
    context: &RequestContext<'_>,
    sink: &mut S,
) -> PyResult<SendOutcome> {
    let said = Said {
        content_type,
        fields,
    };
    let mut outlet = FileOutlet { py, context, sink };
    context.with_head(py, |head| {
        file.send(context.handle, head, status, said, &mut outlet)
    })?;
    Ok(SendOutcome::Sent)
}

/// The way of a file's response.
struct FileOutlet<'a, 'py, S> {
    py: Python<'py>,
    context: &'a RequestContext<'a>,
    sink: &'a mut S,
}

impl<S: Sink> Outlet for FileOutlet<'_, '_, S> {
    fn ranges_max(&self) -> u32 {
        self.context.handle.limits.ranges_max
    }

    fn send(&mut self, action: Action<'_>) {
        if let Err(fault) = self.sink.send(self.py, action) {
            log_fault(self.py, fault, self.context);
        }
    }
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
    if status.refuses_content() || context.with_head(py, |head| head.method == Method::Head) {
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
    let stream = open_stream::<S>(py, context)?;
    if kind == IteratorKind::Async {
        let pump = functions::PUMP_ASYNC.get(py)?.call1((stream, body))?;
        return Ok(SendOutcome::Coroutine(pump.unbind()));
    }
    let pumped = functions::PUMP_BLOCKING
        .get(py)
        .and_then(|pump| pump.call1((&stream, body)));
    context.leave_step(py, sink);
    pumped?;
    Ok(SendOutcome::Streaming)
}

/// Sends another server's response: whole if it is here, otherwise its head, and its content follows as it comes.
fn start_relay<S: Sink>(
    py: Python<'_>,
    relay: &Relay,
    status: Status,
    media: Option<&[u8]>,
    fields: &Fields,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<SendOutcome> {
    let source = relay.begin()?;
    if let Some(us) = source.upstream_us() {
        // Refused only when the connection is gone.
        let _ = sink.deliver(py, StreamCommand::UpstreamTime(us));
    }
    let response = ResponseHead {
        status,
        content_type: media,
        fields,
    };
    let is_tunnel = source.is_tunnel();
    let has_no_content =
        status.refuses_content() || context.with_head(py, |head| head.method == Method::Head);
    if !is_tunnel
        && !has_no_content
        && let Some(whole) = source.take_whole(py)
    {
        let body = if whole.len() < Output::SHARED_BYTES_MIN {
            Payload::Copied(&whole)
        } else {
            Payload::Shared(whole.into())
        };
        return Ok(send(py, response, body, context, sink));
    }
    let started = if is_tunnel {
        sink.deliver(py, StreamCommand::Switch(fields.clone()))
    } else {
        sink.send(py, Action::Start(response))
    };
    let ended = started.and_then(|()| {
        let trailers = &Fields::EMPTY;
        let ends = has_no_content && !is_tunnel;
        if ends {
            sink.send(py, Action::End { trailers })?;
        }
        Ok(ends)
    });
    match ended {
        Ok(false) => pass_on::<S>(py, source.as_ref(), context),
        outcome => {
            if let Err(fault) = outcome {
                log_fault(py, fault, context);
            }
            source.leave(py);
            Ok(SendOutcome::Sent)
        }
    }
}

/// Has the content of another server's response follow its head.
fn pass_on<S: Sink>(
    py: Python<'_>,
    source: &dyn Source,
    context: &mut RequestContext<'_>,
) -> PyResult<SendOutcome> {
    context.stage = HandlerStage::Streaming;
    if S::IN_TURN {
        let request = context.request(py, true)?.clone().unbind();
        let role = NativeRequest::new(request);
        context.handle.enter(context.id, role);
    }
    let inbound = Inbound {
        handle: Arc::clone(context.handle),
        id: context.id,
        upgrades: source.is_tunnel(),
    };
    let passing = source.passing(py, inbound);
    let entered = Arc::clone(&passing);
    let set = |role: &mut NativeRequest| role.relaying.replace(entered);
    if context.handle.with_role(context.id, set).is_none() {
        // Only a turn enters exchanges: the client has gone, and no event would tell.
        passing.gone(py);
    } else {
        source.begin(py, passing);
    }
    context.end_handler(py, false);
    Ok(SendOutcome::Streaming)
}

/// Makes the stream of a response whose head has been sent; in a turn its driver is in a step from here on.
fn open_stream<S: Sink>(py: Python<'_>, context: &mut RequestContext<'_>) -> PyResult<Py<Stream>> {
    context.stage = HandlerStage::Streaming;
    let handle = Arc::clone(context.handle);
    let trailers = context.trailers.take();
    let request = context.request(py, true)?.clone().unbind();
    if S::IN_TURN {
        let role = NativeRequest::new(request.clone_ref(py));
        context.handle.enter(context.id, role);
    }
    let request = (request.into_any(), end_streamed as _);
    let stream = Stream::new(handle, context.id, request, trailers);
    let stream = Py::new(py, stream)?;
    if S::IN_TURN {
        stream.get().begin_step();
        context.in_step = Some(stream.clone_ref(py));
    }
    let kept = stream.clone_ref(py);
    let set = |role: &mut NativeRequest| role.stream.replace(kept);
    if context.handle.with_role(context.id, set).is_none() {
        // Only a turn enters exchanges: the client has gone, and no event would tell the stream.
        stream.get().gone(py);
    }
    Ok(stream)
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
