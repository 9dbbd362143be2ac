//! `start_response` and the `write` it returns (PEP 3333, "The `start_response()` Callable").
//!
//! What the application says is checked here, while it is running and can be told. Most applications
//! keep neither callable beyond their answer; then the next request gets the same ones.

use std::sync::{Arc, Mutex};

use citius_http::{Answer, Fault, Fields, Limits, Status};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use pyo3::{ffi, intern};

use super::call::Call;
use crate::link::lock;

/// What one application call has said so far.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one answer"
)]
pub(super) struct Said {
    /// `start_response` has been called.
    pub(super) is_announced: bool,
    pub(super) status: Option<Status>,
    media_type: Vec<u8>,
    has_media_type: bool,
    pub(super) fields: Fields,
    /// There are body bytes: the head can no longer be replaced.
    pub(super) is_committed: bool,
    /// The head is on its way.
    pub(super) is_sent: bool,
    /// What `write` was given and could not send, because the reactor's own thread is at work here.
    pub(super) written: Vec<u8>,
    /// Bytes that the announced length leaves to be sent, once the head is on its way.
    pub(super) due_bytes: Option<u64>,
}

impl Said {
    pub(super) fn answer(&self) -> Answer<'_> {
        Answer {
            status: self.status.unwrap_or(Status::OK),
            content_type: self.has_media_type.then_some(&self.media_type),
            fields: &self.fields,
        }
    }

    fn reset(&mut self) {
        self.is_announced = false;
        self.status = None;
        self.media_type.clear();
        self.has_media_type = false;
        self.fields.clear();
        self.is_committed = false;
        self.is_sent = false;
        self.written = Vec::new();
        self.due_bytes = None;
    }

    fn announce(&mut self, status: &Bound<'_, PyAny>, headers: &Bound<'_, PyAny>) -> PyResult<()> {
        self.media_type.clear();
        self.has_media_type = false;
        self.fields.clear();
        self.status = Some(parse_status(status)?);
        match headers.cast_exact::<PyList>() {
            Ok(list) => list.iter().try_for_each(|header| self.add(&header)),
            Err(_) => headers
                .try_iter()?
                .try_for_each(|header| self.add(&header?)),
        }
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
        let (name, value) = (native_string(&name)?, native_string(&value)?);
        with_latin(name, |name| {
            with_latin(value, |value| self.push(name, value))
        })
    }

    #[inline]
    fn push(&mut self, name: &[u8], value: &[u8]) -> PyResult<()> {
        if name.len() == 12 && name.eq_ignore_ascii_case(b"content-type") && !self.has_media_type {
            if !value
                .iter()
                .all(|&byte| citius_http::fields::is_value_byte(byte))
            {
                return Err(refused(Fault::AnswerFieldValue, name));
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

/// `"404 Not Found"`: three digits, and a space if there is more.
fn parse_status(status: &Bound<'_, PyAny>) -> PyResult<Status> {
    let text = native_string(status)?;
    let code = match text.as_bytes() {
        [_, _, _] => digits(text),
        [_, _, _, b' ', ..] => text.get(..3).and_then(digits),
        _ => None,
    };
    code.and_then(Status::new)
        .filter(|status| !status.is_informational())
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "start_response: a status is three digits from 200 to 599, a space and a reason, \
                 not {text:?}"
            ))
        })
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

/// What the two callables of a request share.
pub(super) struct Shared {
    /// Bytes that `write` may collect.
    collected_bytes_max: usize,
    /// Absent while somebody has it in hand.
    said: Mutex<Option<Box<Said>>>,
    /// Where `write` sends at once; without one it collects.
    late: Mutex<Option<Arc<Call>>>,
}

/// What has been said, in hand: no lock is held meanwhile, for looking at it may run Python code.
pub(super) struct InHand<'a> {
    shared: &'a Shared,
    /// Present until it is put back.
    said: Option<Box<Said>>,
}

impl Shared {
    pub(super) fn in_hand(&self) -> InHand<'_> {
        let said = lock(&self.said).take().unwrap_or_default();
        InHand {
            shared: self,
            said: Some(said),
        }
    }

    pub(super) fn set_late(&self, call: Option<Arc<Call>>) {
        let replaced = std::mem::replace(&mut *lock(&self.late), call);
        drop(replaced);
    }
}

impl std::ops::Deref for InHand<'_> {
    type Target = Said;

    fn deref(&self) -> &Said {
        self.said
            .as_ref()
            .expect("put back only when it is dropped")
    }
}

impl std::ops::DerefMut for InHand<'_> {
    fn deref_mut(&mut self) -> &mut Said {
        self.said
            .as_mut()
            .expect("put back only when it is dropped")
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        *lock(&self.shared.said) = self.said.take();
    }
}

/// The owner of the method that is handed out as `start_response`.
#[pyclass(frozen, module = "citius._core", name = "_Start")]
pub(crate) struct Start {
    shared: Arc<Shared>,
    write: Py<Write>,
}

/// What `start_response` returns.
#[pyclass(frozen, module = "citius._core", name = "_Write")]
pub(crate) struct Write {
    shared: Arc<Shared>,
}

#[pymethods]
impl Start {
    #[pyo3(signature = (status, headers, exc_info = None, /))]
    fn start_response(
        &self,
        py: Python<'_>,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
        exc_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Write>> {
        let mut said = self.shared.in_hand();
        match exc_info.filter(|exc_info| !exc_info.is_none()) {
            // The answer is on its way; whoever catches this can only end it.
            Some(exc_info) if said.is_committed => return Err(raised(exc_info)?),
            None if said.is_announced => {
                return Err(PyRuntimeError::new_err(
                    "start_response has been called before; a second call is for an error, with \
                     exc_info",
                ));
            }
            _ => {}
        }
        said.is_announced = false;
        let outcome = said.announce(status, headers);
        said.is_announced = outcome.is_ok();
        outcome.map(|()| self.write.clone_ref(py))
    }
}

#[pymethods]
impl Write {
    #[pyo3(signature = (data, /))]
    fn __call__(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = block(data, "write() takes")?;
        let late = lock(&self.shared.late).clone();
        if let Some(call) = late {
            return call.write(py, &self.shared, bytes);
        }
        let (mut said, bytes) = (self.shared.in_hand(), bytes.as_bytes());
        let most = self.shared.collected_bytes_max;
        if bytes.len() > most.saturating_sub(said.written.len()) {
            return Err(PyRuntimeError::new_err(format!(
                "write() has collected {} bytes and may hold {most} (--wsgi-write-bytes-max): on the \
                 server's own thread it cannot wait for them to leave; return an iterable, or serve \
                 with --threads",
                said.written.len()
            )));
        }
        said.is_committed |= !bytes.is_empty();
        said.written.extend_from_slice(bytes);
        Ok(())
    }
}

/// A piece of a body.
pub(super) fn block<'a, 'py>(
    data: &'a Bound<'py, PyAny>,
    what: &str,
) -> PyResult<&'a Bound<'py, PyBytes>> {
    data.cast::<PyBytes>().map_err(|_| {
        let kind = data.get_type();
        let kind = kind
            .name()
            .map_or_else(|_| String::new(), |name| name.to_string());
        PyTypeError::new_err(format!("{what} bytes (PEP 3333), not {kind}"))
    })
}

/// The exception of `sys.exc_info()`, with its traceback.
fn raised(exc_info: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let value = exc_info.get_item(1)?;
    let trace = exc_info.get_item(2)?;
    let value = value.call_method1(intern!(value.py(), "with_traceback"), (trace,))?;
    Ok(PyErr::from_value(value))
}

/// The callables of one request.
pub(super) struct Callables {
    pub(super) shared: Arc<Shared>,
    pub(super) start_response: Py<PyAny>,
    write: Py<Write>,
}

impl Callables {
    pub(super) fn new(py: Python<'_>, limits: &Limits) -> PyResult<Self> {
        let shared = Arc::new(Shared {
            collected_bytes_max: limits.wsgi_write_bytes_max as usize,
            said: Mutex::default(),
            late: Mutex::default(),
        });
        let write = Write {
            shared: Arc::clone(&shared),
        };
        let write = Py::new(py, write)?;
        let start = Start {
            shared: Arc::clone(&shared),
            write: write.clone_ref(py),
        };
        let start = Bound::new(py, start)?;
        Ok(Self {
            shared,
            start_response: start.getattr(intern!(py, "start_response"))?.unbind(),
            write,
        })
    }

    /// Makes them ready for another request; `None` if somebody may still call one of them.
    pub(super) fn recycle(self, py: Python<'_>) -> Option<Self> {
        // The method is ours alone; `write` is known to its owner as well.
        let is_ours = references(py, &self.start_response) == 1
            && references(py, &self.write) == 2
            && Arc::strong_count(&self.shared) == 3;
        if !is_ours {
            return None;
        }
        self.shared.in_hand().reset();
        Some(self)
    }
}

fn references<T>(_py: Python<'_>, object: &Py<T>) -> ffi::Py_ssize_t {
    // SAFETY: `object` is a live reference, and the GIL is held as `_py` says.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}
