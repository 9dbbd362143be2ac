//! Messages of an ASGI application: a dictionary in, a validated [`Message`] out.
//!
//! An invalid message raises in the application that sent it, with what was expected. Nothing is sent here.
//! Tests: `tests/asgi/`.

use std::borrow::Cow;
use std::sync::Arc;

use citius_base::reactor_handle::ReactorHandle;
use citius_http::fields::is_value;
use citius_http::{Fault, Fields, Payload, Status};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyMemoryView, PyString, PyTuple};

use crate::file;
use crate::gateway::response_headers::{HeaderCache, ResponseHeaders};
use crate::items::for_each_item;

/// A message of an application.
pub(super) enum Message {
    Start(Start),
    Body {
        body: Body,
        more: bool,
    },
    Trailers {
        fields: Fields,
        more: bool,
    },
    EarlyHint(Fields),
    /// Of interest to test clients only.
    Debug,
}

/// The start of a response.
pub(super) struct Start {
    pub(super) status: Status,
    pub(super) headers: Arc<ResponseHeaders>,
    pub(super) content_length: Option<u64>,
    /// A trailer section is to come.
    pub(super) trailers: bool,
}

impl Start {
    /// Of a response with a status and no fields.
    pub(super) fn plain(status: Status) -> Self {
        Self {
            status,
            headers: Arc::default(),
            content_length: None,
            trailers: false,
        }
    }

    /// The fields of a response, with `content-length`.
    pub(super) fn fields(&self) -> Cow<'_, Fields> {
        self.headers.fields_with(self.content_length, b"")
    }
}

/// A piece of a body.
pub(crate) enum Body {
    Bytes(Py<PyBytes>),
    File(Payload<'static>),
}

impl Body {
    pub(super) fn len(&self, py: Python<'_>) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.as_bytes(py).len() as u64,
            Self::File(payload) => payload.len(),
        }
    }
}

/// The keys of most messages, and recent values of one of them.
pub(super) struct InternedKeys {
    kind: Py<PyString>,
    status: Py<PyString>,
    headers: Py<PyString>,
    body: Py<PyString>,
    more_body: Py<PyString>,
    trailers: Py<PyString>,
    header_cache: HeaderCache<PyBytes>,
}

impl InternedKeys {
    pub(super) fn new(py: Python<'_>) -> Self {
        let key = |name: &str| PyString::intern(py, name).unbind();
        Self {
            kind: key("type"),
            status: key("status"),
            headers: key("headers"),
            body: key("body"),
            more_body: key("more_body"),
            trailers: key("trailers"),
            header_cache: HeaderCache::default(),
        }
    }
}

/// What most messages say, by key.
#[derive(Default)]
struct Parts<'py> {
    kind: Option<Bound<'py, PyAny>>,
    status: Option<Bound<'py, PyAny>>,
    headers: Option<Bound<'py, PyAny>>,
    body: Option<Bound<'py, PyAny>>,
    more_body: Option<Bound<'py, PyAny>>,
    trailers: Option<Bound<'py, PyAny>>,
}

impl<'py> Parts<'py> {
    /// Goes once through the dictionary: keys that are written in code are the interned strings themselves. Others
    /// are looked up as equal ones.
    #[inline]
    fn of(message: &Bound<'py, PyDict>, keys: &InternedKeys) -> PyResult<Self> {
        let mut parts = Self::default();
        let is_usual = for_each_item(message, |key, value| {
            let place = if key.is(&keys.kind) {
                &mut parts.kind
            } else if key.is(&keys.body) {
                &mut parts.body
            } else if key.is(&keys.status) {
                &mut parts.status
            } else if key.is(&keys.headers) {
                &mut parts.headers
            } else if key.is(&keys.more_body) {
                &mut parts.more_body
            } else if key.is(&keys.trailers) {
                &mut parts.trailers
            } else {
                return false;
            };
            *place = Some(value.to_owned());
            true
        });
        if is_usual {
            Ok(parts)
        } else {
            Self::look_up(message)
        }
    }

    #[cold]
    fn look_up(message: &Bound<'py, PyDict>) -> PyResult<Self> {
        let py = message.py();
        Ok(Self {
            kind: message.get_item(intern!(py, "type"))?,
            status: message.get_item(intern!(py, "status"))?,
            headers: message.get_item(intern!(py, "headers"))?,
            body: message.get_item(intern!(py, "body"))?,
            more_body: message.get_item(intern!(py, "more_body"))?,
            trailers: message.get_item(intern!(py, "trailers"))?,
        })
    }
}

/// Reads a message.
#[inline]
pub(super) fn read(
    handle: &ReactorHandle,
    keys: &InternedKeys,
    message: &Bound<'_, PyAny>,
) -> PyResult<Message> {
    let Ok(message) = message.cast::<PyDict>() else {
        return Err(PyTypeError::new_err(format!(
            "send() expects a dict, got {}",
            message.get_type().name()?
        )));
    };
    let mut parts = Parts::of(message, keys)?;
    let kind = required(parts.kind.take(), message, "type")?;
    let kind = kind.cast::<PyString>()?.to_str()?;
    match kind {
        "http.response.body" => body(message.py(), parts),
        "http.response.start" => begin(message, parts, &keys.header_cache).map(Message::Start),
        "http.response.pathsend" => pathsend(handle, message),
        "http.response.zerocopysend" => zerocopysend(handle, message),
        "http.response.trailers" => trailers(message),
        "http.response.early_hint" => early_hint(message),
        "http.response.debug" => Ok(Message::Debug),
        _ => Err(PyRuntimeError::new_err(format!(
            "expected an ASGI message 'http.response.…' for an http scope, got {kind:?}"
        ))),
    }
}

#[inline]
fn body(py: Python<'_>, parts: Parts<'_>) -> PyResult<Message> {
    let body = match parts.body {
        None => PyBytes::new(py, b"").unbind(),
        Some(body) => bytes_of(body, "'body' of 'http.response.body'")?,
    };
    Ok(Message::Body {
        body: Body::Bytes(body),
        more: is_set(parts.more_body)?,
    })
}

/// Reads a message that starts a response, with other keys than most.
pub(super) fn start(message: &Bound<'_, PyDict>) -> PyResult<Start> {
    begin(message, Parts::look_up(message)?, &HeaderCache::default())
}

#[inline]
fn begin(
    message: &Bound<'_, PyDict>,
    parts: Parts<'_>,
    header_cache: &HeaderCache<PyBytes>,
) -> PyResult<Start> {
    let code = required(parts.status, message, "status")?;
    let status = code.extract::<u16>().ok().and_then(Status::new);
    let status = status.filter(|status| !status.is_informational());
    let status = status.ok_or_else(|| {
        PyValueError::new_err(format!(
            "'status' of 'http.response.start' is a number from 200 to 599, got {code:?}"
        ))
    })?;
    let (headers, content_length) = match parts.headers {
        Some(headers) => header_cache.read(&headers, |parsed| parse_headers(&headers, parsed))?,
        None => Default::default(),
    };
    Ok(Start {
        status,
        headers,
        content_length,
        trailers: is_set(parts.trailers)?,
    })
}

/// Validates the headers of a response.
fn parse_headers(headers: &Bound<'_, PyAny>, parsed: &mut ResponseHeaders) -> PyResult<()> {
    for_each_field(headers, |name, value| {
        let (name_bytes, value_bytes) = (name.as_bytes(), value.as_bytes());
        if name_bytes == b"content-type" && parsed.content_type.is_none() {
            if !is_value(value_bytes) {
                return Err(refused(name, value, Fault::ResponseFieldValue));
            }
            parsed.content_type = Some(value_bytes.to_vec());
            return Ok(());
        }
        match parsed.fields.push(name_bytes, value_bytes) {
            // "The server must ignore it", says the specification of `transfer-encoding`; frameworks and gateways send others.
            Ok(()) | Err(Fault::ResponseConnectionField) => Ok(()),
            Err(fault) => Err(refused(name, value, fault)),
        }
    })
}

fn trailers(message: &Bound<'_, PyDict>) -> PyResult<Message> {
    let py = message.py();
    let mut fields = Fields::default();
    if let Some(headers) = message.get_item(intern!(py, "headers"))? {
        for_each_field(&headers, |name, value| {
            let pushed = fields.push(name.as_bytes(), value.as_bytes());
            pushed.map_err(|fault| refused(name, value, fault))
        })?;
    }
    Ok(Message::Trailers {
        fields,
        more: flag(message, intern!(py, "more_trailers"))?,
    })
}

fn early_hint(message: &Bound<'_, PyDict>) -> PyResult<Message> {
    let mut fields = Fields::default();
    for handle in item(message, intern!(message.py(), "links"))?.try_iter()? {
        let handle = bytes_of(handle?, "a link of 'http.response.early_hint'")?;
        let value = handle.bind(message.py());
        let pushed = fields.push(b"link", value.as_bytes());
        pushed
            .map_err(|fault| PyValueError::new_err(format!("link {value:?}: {}", fault.text())))?;
    }
    Ok(Message::EarlyHint(fields))
}

fn pathsend(handle: &ReactorHandle, message: &Bound<'_, PyDict>) -> PyResult<Message> {
    let path: std::path::PathBuf = item(message, intern!(message.py(), "path"))?.extract()?;
    Ok(Message::Body {
        body: Body::File(file::of_path(handle, &path)?),
        more: false,
    })
}

fn zerocopysend(handle: &ReactorHandle, message: &Bound<'_, PyDict>) -> PyResult<Message> {
    let py = message.py();
    let file = item(message, intern!(py, "file"))?;
    let descriptor = match file.extract() {
        Ok(number) => number,
        Err(_) => file.call_method0(intern!(py, "fileno"))?.extract()?,
    };
    let number = |name| match message.get_item(name)? {
        Some(value) if !value.is_none() => value.extract::<u64>().map(Some),
        _ => Ok::<_, PyErr>(None),
    };
    let (offset, count) = (
        number(intern!(py, "offset"))?,
        number(intern!(py, "count"))?,
    );
    Ok(Message::Body {
        body: Body::File(file::piece_of(handle, py, descriptor, offset, count)?),
        more: flag(message, intern!(py, "more_body"))?,
    })
}

#[inline]
fn item<'py>(
    message: &Bound<'py, PyDict>,
    name: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    required(message.get_item(name)?, message, name.to_str()?)
}

#[inline]
fn required<'py>(
    value: Option<Bound<'py, PyAny>>,
    message: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    value.ok_or_else(|| PyKeyError::new_err(format!("the ASGI message {message} has no '{name}'")))
}

#[inline]
pub(super) fn flag(message: &Bound<'_, PyDict>, name: &Bound<'_, PyString>) -> PyResult<bool> {
    is_set(message.get_item(name)?)
}

#[inline]
fn is_set(value: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
    match value {
        None => Ok(false),
        Some(value) => match value.cast::<PyBool>() {
            Ok(value) => Ok(value.is_true()),
            Err(_) => value.is_truthy(),
        },
    }
}

/// The bytes of `value`, which may be any buffer that ASGI servers let pass.
#[inline]
pub(super) fn bytes_of(value: Bound<'_, PyAny>, what: &str) -> PyResult<Py<PyBytes>> {
    let value = match value.cast_into::<PyBytes>() {
        Ok(bytes) => return Ok(bytes.unbind()),
        Err(error) => error.into_inner(),
    };
    if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
        let copied = value.py().get_type::<PyBytes>().call1((value,))?;
        return Ok(copied.cast_into::<PyBytes>()?.unbind());
    }
    Err(PyTypeError::new_err(format!(
        "{what} is bytes, got {}",
        value.get_type().name()?
    )))
}

/// Calls `act` with each name and value.
#[inline]
pub(super) fn for_each_field<'py>(
    headers: &Bound<'py, PyAny>,
    mut act: impl FnMut(&Bound<'py, PyBytes>, &Bound<'py, PyBytes>) -> PyResult<()>,
) -> PyResult<()> {
    for pair in headers.try_iter()? {
        let pair = pair?;
        let (name, value) = match pair.cast::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => (pair.get_item(0)?, pair.get_item(1)?),
            _ => two_of(&pair)?,
        };
        match (name.cast::<PyBytes>(), value.cast::<PyBytes>()) {
            (Ok(name), Ok(value)) => act(name, value)?,
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "names and values of 'headers' are bytes, got {name:?}: {value:?}"
                )));
            }
        }
    }
    Ok(())
}

/// A header that is no tuple: ASGI allows any iterable of two.
#[cold]
fn two_of<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut items = pair.try_iter()?;
    match (items.next(), items.next(), items.next()) {
        (Some(name), Some(value), None) => Ok((name?, value?)),
        _ => Err(PyValueError::new_err(format!(
            "a header of 'headers' is a name and a value, got {pair:?}"
        ))),
    }
}

#[cold]
pub(super) fn refused(
    name: &Bound<'_, PyBytes>,
    value: &Bound<'_, PyBytes>,
    fault: Fault,
) -> PyErr {
    PyValueError::new_err(format!(
        "header {name:?}: {value:?}: {} ({})",
        fault.text(),
        fault.spec()
    ))
}
