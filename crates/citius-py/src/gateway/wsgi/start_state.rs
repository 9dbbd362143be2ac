//! `start_response`'s arguments in, the validated head of a response out.
//!
//! Applications pass the same status and headers, or equal ones, again and again: those are validated once
//! ([`HeaderCache`]). `content-length` is read anew each time. Tests: `tests/wsgi/`.

use std::borrow::Cow;
use std::sync::Arc;

use citius_http::{FAST_PATHS, Fault, Fields, ResponseHead, Status, fields};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::gateway::response_headers::{HeaderCache, ResponseHeaders};

/// What the latest call was given.
pub(super) struct StartState {
    header_cache: HeaderCache<PyString>,
    headers: Arc<ResponseHeaders>,
    pub(super) content_length: Option<u64>,
    pub(super) status: Status,
    /// The reason phrase, unless it is the registered one.
    reason: Vec<u8>,
    /// What `status` and `reason` were read from.
    status_text: Option<Py<PyString>>,
}

/// Bytes of a status that is known again.
const STATUS_KEPT_BYTES_MAX: usize = 128;

impl Default for StartState {
    fn default() -> Self {
        Self {
            header_cache: HeaderCache::default(),
            headers: Arc::default(),
            content_length: None,
            status: Status::OK,
            reason: Vec::new(),
            status_text: None,
        }
    }
}

impl StartState {
    /// The fields of the response, with length and reason phrase.
    #[inline]
    pub(super) fn fields(&self) -> Cow<'_, Fields> {
        self.headers.fields_with(self.content_length, &self.reason)
    }

    /// The head of the response, with its [`fields`](Self::fields).
    #[inline]
    pub(super) fn response_head<'a>(&'a self, fields: &'a Fields) -> ResponseHead<'a> {
        ResponseHead {
            status: self.status,
            content_type: self.headers.content_type.as_deref(),
            fields,
        }
    }

    /// Takes what `start_response` was given. After an error nothing is announced.
    #[inline]
    pub(super) fn set_start(
        &mut self,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let is_same = |text: &Py<PyString>| FAST_PATHS && text.is(status);
        if !self.status_text.as_ref().is_some_and(is_same) {
            self.read_status(status)?;
        }
        let parse = |parsed: &mut ResponseHeaders| {
            headers.try_iter()?.try_for_each(|header| {
                push_pair("start_response", &header?, |name, value| {
                    push(parsed, name, value)
                })
            })
        };
        (self.headers, self.content_length) = self.header_cache.read(headers, parse)?;
        Ok(())
    }

    /// Keeps the text if it is an exact `str`.
    fn read_status(&mut self, text: &Bound<'_, PyAny>) -> PyResult<()> {
        self.status_text = None;
        (self.status, self.reason) = parse_status(text)?;
        let exact = text.cast_exact::<PyString>().ok();
        self.status_text = exact
            .filter(|text| text.len().is_ok_and(|chars| chars <= STATUS_KEPT_BYTES_MAX))
            .map(|text| text.clone().unbind());
        Ok(())
    }
}

/// Has `push` take a trailer.
pub(super) fn push_field(
    whose: &str,
    field: &Bound<'_, PyAny>,
    mut push: impl FnMut(&[u8], &[u8]) -> Result<(), Fault>,
) -> PyResult<()> {
    push_pair(whose, field, |name, value| {
        if is_hop_by_hop(name, value) || name.eq_ignore_ascii_case(b"content-length") {
            let name = String::from_utf8_lossy(name);
            let text = format!("{whose}: {name} cannot stand behind a body (RFC 9110 §6.5.1)");
            return Err(PyValueError::new_err(text));
        }
        push(name, value).map_err(|fault| refused(fault, name))
    })
}

#[inline]
fn push_pair(
    whose: &str,
    header: &Bound<'_, PyAny>,
    push: impl FnOnce(&[u8], &[u8]) -> PyResult<()>,
) -> PyResult<()> {
    let pair = header
        .cast::<PyTuple>()
        .ok()
        .filter(|pair| pair.len() == 2)
        .ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{whose}: headers is a list of (name, value) tuples"
            ))
        })?;
    let (name, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
    with_latin(native_string(&name)?, |name| {
        with_latin(native_string(&value)?, |value| push(name, value))
    })
}

fn push(parsed: &mut ResponseHeaders, name: &[u8], value: &[u8]) -> PyResult<()> {
    if name.eq_ignore_ascii_case(b"content-type") && parsed.content_type.is_none() {
        if !fields::is_value(value) {
            return Err(refused(Fault::ResponseFieldValue, name));
        }
        parsed.content_type = Some(value.trim_ascii().to_vec());
        return Ok(());
    }
    if is_hop_by_hop(name, value) {
        return Err(PyValueError::new_err(format!(
            "start_response: {}: {} is between the server and its peer (PEP 3333, \"Other HTTP \
             Features\"); leave it out, the server sends what is needed",
            String::from_utf8_lossy(name),
            String::from_utf8_lossy(value),
        )));
    }
    parsed
        .fields
        .push(name, value)
        .map_err(|fault| refused(fault, name))
}

/// Whether an application may not send this field (RFC 9110 §7.6.1).
///
/// `Connection: close` and `keep-alive` are requests that can be granted or are granted anyway, and
/// other servers take them.
fn is_hop_by_hop(name: &[u8], value: &[u8]) -> bool {
    match name.len() {
        10 if name.eq_ignore_ascii_case(b"keep-alive") => true,
        10 if name.eq_ignore_ascii_case(b"connection") => {
            !value.split(|&b| b == b',').all(|option| {
                let option = option.trim_ascii();
                option.eq_ignore_ascii_case(b"close") || option.eq_ignore_ascii_case(b"keep-alive")
            })
        }
        2 => name.eq_ignore_ascii_case(b"te"),
        7 => name.eq_ignore_ascii_case(b"upgrade") || name.eq_ignore_ascii_case(b"trailer"),
        8 => name.eq_ignore_ascii_case(b"trailers"),
        16..=19 => [
            &b"proxy-connection"[..],
            b"transfer-encoding",
            b"proxy-authenticate",
            b"proxy-authorization",
        ]
        .iter()
        .any(|hop| name.eq_ignore_ascii_case(hop)),
        _ => false,
    }
}

#[cold]
fn refused(fault: Fault, name: &[u8]) -> PyErr {
    PyValueError::new_err(format!(
        "start_response: header {:?}: {}",
        String::from_utf8_lossy(name),
        fault.text()
    ))
}

/// `"404 Not Found"`: three digits, and a space if there is more. The reason is empty if it is the registered one.
fn parse_status(status: &Bound<'_, PyAny>) -> PyResult<(Status, Vec<u8>)> {
    let text = native_string(status)?;
    let (code, reason) = match text.as_bytes() {
        [_, _, _] => (digits(text), ""),
        [_, _, _, b' ', ..] => (text.get(..3).and_then(digits), &text[4..]),
        _ => (None, ""),
    };
    let status = code
        .and_then(Status::new)
        .filter(|status| !status.is_informational())
        .filter(|_| fields::is_value(reason.as_bytes()))
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "start_response: a status is three digits from 200 to 599, a space and a reason without control \
                 characters, not {text:?}"
            ))
        })?;
    let reason = reason.trim_matches([' ', '\t']);
    if reason == status.reason() {
        return Ok((status, Vec::new()));
    }
    with_latin(reason, |bytes| Ok((status, bytes.to_vec())))
}

fn digits(text: &str) -> Option<u16> {
    // `parse` alone would take a sign.
    let all = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| all)
}

fn native_string<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    let text = value.cast::<PyString>().map_err(|_| {
        let kind = value.get_type();
        let kind = kind
            .name()
            .map_or_else(|_| String::new(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "start_response: status, names and values are str, not {kind} ({value:?})"
        ))
    })?;
    text.to_str()
}

/// Calls `act` with `text` as it is on the wire, where a byte is the character of its number.
#[inline]
fn with_latin<R>(text: &str, act: impl FnOnce(&[u8]) -> PyResult<R>) -> PyResult<R> {
    if text.is_ascii() {
        return act(text.as_bytes());
    }
    let bytes: Option<Vec<u8>> = text
        .chars()
        .map(|c| u8::try_from(u32::from(c)).ok())
        .collect();
    match bytes {
        Some(bytes) => act(&bytes),
        None => Err(PyValueError::new_err(format!(
            "start_response: {text:?} has characters beyond U+00FF (PEP 3333, \"A Note On String \
             Types\")"
        ))),
    }
}
