//! `start_response`'s arguments in, the validated head of a response out.
//!
//! Applications pass the same tuples, or equal ones, again and again, so the last few header lists are cached with the fields
//! made of them, and a list that is found is neither validated nor encoded anew. Invariant: strings and tuples of strings are
//! immutable, so the same ones have the same fields; `content-length` is read anew each time. Tests: `tests/wsgi/`.

use citius_http::{FAST_PATHS, Fault, Fields, ResponseHead, Status, fields};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

/// The latest header lists of one application; that of the current call is one of them.
pub(super) struct StartState {
    /// At least one, the first of them empty to begin with.
    recent: Vec<CachedHeaders>,
    /// Which of them is the latest.
    at: usize,
    status: Status,
    /// The reason phrase, unless it is the registered one.
    reason: Vec<u8>,
    /// What `status` and `reason` were read from.
    status_text: Option<Py<PyString>>,
}

/// Header lists that are kept.
const RECENT_MAX: usize = 4;
/// Headers of an announcement that can be known again.
const HEADERS_KEPT_MAX: usize = 32;
/// Bytes of its lines.
const LINES_KEPT_BYTES_MAX: usize = 2048;
/// Bytes of a status that is known again.
const STATUS_KEPT_BYTES_MAX: usize = 128;

/// One list of headers, as it was given and as it is sent.
#[derive(Default)]
struct CachedHeaders {
    media_type: Vec<u8>,
    has_media_type: bool,
    fields: Fields,
    /// What it was made of, if `is_known`.
    headers: Vec<Header>,
    /// The same headers make the same response.
    is_known: bool,
}

/// A header that was given: an exact tuple of two exact strings.
struct Header {
    pair: Py<PyTuple>,
    /// Its value, if it is `Content-Length`.
    length: Option<u64>,
}

impl Default for StartState {
    fn default() -> Self {
        Self {
            recent: vec![CachedHeaders::default()],
            at: 0,
            status: Status::OK,
            reason: Vec::new(),
            status_text: None,
        }
    }
}

impl StartState {
    fn latest(&self) -> &CachedHeaders {
        &self.recent[self.at]
    }

    pub(super) fn response_head(&self) -> ResponseHead<'_> {
        let latest = self.latest();
        ResponseHead {
            status: self.status,
            content_type: latest.has_media_type.then_some(&latest.media_type),
            fields: &latest.fields,
        }
    }

    pub(super) fn content_length(&self) -> Option<u64> {
        self.latest().fields.content_length
    }

    pub(super) fn forget_content_length(&mut self) {
        self.recent[self.at].fields.content_length = None;
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
        self.set_headers(headers)?;
        let fields = &mut self.recent[self.at].fields;
        if fields.reason != self.reason {
            fields.reason.clone_from(&self.reason);
        }
        Ok(())
    }

    #[inline]
    fn set_headers(&mut self, headers: &Bound<'_, PyAny>) -> PyResult<()> {
        if FAST_PATHS && let Ok(list) = headers.cast_exact::<PyList>() {
            if self.recent[self.at].matches(list) {
                return Ok(());
            }
            let known = (0..self.recent.len()).find(|&at| self.recent[at].matches(list));
            if let Some(known) = known {
                self.at = known;
                return Ok(());
            }
        }
        self.parse_headers(headers)
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

    fn parse_headers(&mut self, headers: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.recent.len() < RECENT_MAX {
            self.recent.push(CachedHeaders::default());
            self.at = self.recent.len() - 1;
        } else {
            self.at = (self.at + 1) % RECENT_MAX;
        }
        let cached = &mut self.recent[self.at];
        cached.clear();
        let outcome = match headers.cast_exact::<PyList>() {
            Ok(list) => list.iter().try_for_each(|header| cached.add(&header)),
            Err(_) => headers
                .try_iter()?
                .try_for_each(|header| cached.add(&header?)),
        };
        if outcome.is_err() {
            cached.clear();
            return outcome;
        }
        let n_lengths = cached.headers.iter().filter(|h| h.length.is_some());
        cached.is_known &= n_lengths.count() <= 1
            && cached.fields.lines().len() + cached.media_type.len() <= LINES_KEPT_BYTES_MAX;
        if !cached.is_known {
            cached.headers.clear();
        }
        Ok(())
    }
}

impl CachedHeaders {
    fn clear(&mut self) {
        self.media_type.clear();
        self.has_media_type = false;
        self.fields.clear();
        self.headers.clear();
        self.is_known = true;
    }

    /// Whether `list` equals the one this was made of, apart from the length, which is taken from it.
    #[inline]
    fn matches(&mut self, list: &Bound<'_, PyList>) -> bool {
        if !self.is_known || list.len() != self.headers.len() {
            return false;
        }
        let mut length = None;
        for (header, given) in self.headers.iter().zip(list.iter()) {
            if header.pair.is(&given) {
                length = length.or(header.length);
            } else if header.compare(&given, &mut length).is_none() {
                return false;
            }
        }
        self.fields.content_length = length;
        true
    }

    #[inline]
    fn add(&mut self, header: &Bound<'_, PyAny>) -> PyResult<()> {
        let pair = header
            .cast::<PyTuple>()
            .ok()
            .filter(|pair| pair.len() == 2)
            .ok_or_else(|| {
                PyTypeError::new_err("start_response: headers is a list of (name, value) tuples")
            })?;
        let (name, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
        let (name_text, value_text) = (native_string(&name)?, native_string(&value)?);
        with_latin(name_text, |name| {
            with_latin(value_text, |value| self.push(name, value))
        })?;
        self.is_known &= self.headers.len() < HEADERS_KEPT_MAX
            && header.is_exact_instance_of::<PyTuple>()
            && name.is_exact_instance_of::<PyString>()
            && value.is_exact_instance_of::<PyString>()
            // Its value belongs to one client and hardly comes again.
            && !name_text.eq_ignore_ascii_case("set-cookie");
        if self.is_known {
            let is_length = name_text.eq_ignore_ascii_case("content-length");
            self.headers.push(Header {
                pair: pair.clone().unbind(),
                length: self.fields.content_length.filter(|_| is_length),
            });
        }
        Ok(())
    }

    fn push(&mut self, name: &[u8], value: &[u8]) -> PyResult<()> {
        if name.len() == 12 && name.eq_ignore_ascii_case(b"content-type") && !self.has_media_type {
            if !value.iter().all(|&byte| fields::is_value_byte(byte)) {
                return Err(refused(Fault::ResponseFieldValue, name));
            }
            self.has_media_type = true;
            self.media_type.extend_from_slice(value.trim_ascii());
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
        self.fields
            .push(name, value)
            .map_err(|fault| refused(fault, name))
    }
}

impl Header {
    /// Compares with a pair of another list: something if they are equal. A length may differ, and goes to
    /// `length`.
    fn compare(&self, given: &Bound<'_, PyAny>, length: &mut Option<u64>) -> Option<()> {
        let own = self.pair.bind(given.py());
        let given = given.cast_exact::<PyTuple>().ok()?;
        if given.len() != 2 {
            return None;
        }
        is_same_text(
            &*own.get_borrowed_item(0).ok()?,
            &*given.get_borrowed_item(0).ok()?,
        )?;
        let value = given.get_borrowed_item(1).ok()?;
        if self.length.is_none() {
            return is_same_text(&*own.get_borrowed_item(1).ok()?, &value);
        }
        let digits = text(&value)?.as_bytes().trim_ascii();
        *length = Some(fields::parse_decimal(digits)?);
        Some(())
    }
}

fn is_same_text(own: &Bound<'_, PyAny>, given: &Bound<'_, PyAny>) -> Option<()> {
    (own.is(given) || text(own)? == text(given)?).then_some(())
}

fn text<'a>(value: &'a Bound<'_, PyAny>) -> Option<&'a str> {
    value.cast_exact::<PyString>().ok()?.to_str().ok()
}

/// Whether an application may not send this field (RFC 9110 §7.6.1).
///
/// `Connection: close` and `keep-alive` are requests that can be granted or are granted anyway, and
/// other servers take them.
fn is_hop_by_hop(name: &[u8], value: &[u8]) -> bool {
    match name.len() {
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
        .filter(|_| reason.bytes().all(fields::is_value_byte))
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
