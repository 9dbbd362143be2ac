//! `citius.Response`: a response with status, fields, body and trailers. Tests: `tests/gateway/`.

use std::borrow::Cow;
use std::sync::Mutex;

use citius_base::sync::lock;
use citius_http::{Fault, Fields, Status};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::functions;

/// Flags and length before a message in an envelope.
pub(crate) const PREFIX_BYTES: usize = 5;

/// A response. One may be returned many times, from many threads.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Response {
    parts: Mutex<Parts>,
}

/// Its parts.
pub(crate) struct Parts {
    status_code: i64,
    pub(crate) body: Py<PyAny>,
    pub(crate) content_type: Option<Py<PyString>>,
    /// Pairs of `str`, as given.
    headers: Option<Py<PyList>>,
    /// What the trailer section of a streamed body is made of.
    pub(crate) trailers: Option<Py<PyAny>>,
    /// What is called after the response.
    pub(crate) background: Option<Py<PyAny>>,
    /// The value that the body is made of and what has encoded it, for the declared type of a route.
    encoded: Option<Py<PyAny>>,
    /// The number of the one request that uses this response; 0: the application may return it for other requests too.
    owner: u64,
}

impl Response {
    /// One with this body and nothing else, for one request alone.
    pub(crate) fn owned(body: Py<PyAny>, owner: u64) -> Self {
        let parts = Parts {
            status_code: 200,
            body,
            content_type: None,
            headers: None,
            trailers: None,
            background: None,
            encoded: None,
            owner,
        };
        Self {
            parts: Mutex::new(parts),
        }
    }

    /// A copy for one request alone, with a list of header fields that nothing else has; `None` if this is its own already.
    pub(crate) fn owned_copy(&self, py: Python<'_>, owner: u64) -> Option<Self> {
        let parts = {
            let parts = lock(&self.parts);
            if parts.owner == owner {
                return None;
            }
            Parts {
                encoded: parts.encoded.as_ref().map(|encoded| encoded.clone_ref(py)),
                owner,
                ..parts.shared(py)
            }
        };
        Some(Self {
            parts: Mutex::new(parts.with_own_fields(py)),
        })
    }

    /// Adds lines that have been checked before, as `headers` does, without an object for it.
    pub(crate) fn add_checked<'py>(
        &self,
        py: Python<'py>,
        lines: impl IntoIterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let empty = PyList::empty(py).unbind();
        let list = lock(&self.parts).headers.get_or_insert(empty).clone_ref(py);
        lines
            .into_iter()
            .try_for_each(|line| list.bind(py).append(line))
    }

    /// Whether the body is bytes or text of the handler's own, so that no declared type holds for it.
    #[inline]
    pub(crate) fn is_encoded(&self, py: Python<'_>) -> bool {
        let parts = lock(&self.parts);
        let body = parts.body.bind(py);
        parts.encoded.is_none()
            && (body.is_exact_instance_of::<PyBytes>() || body.is_exact_instance_of::<PyString>())
    }
}

#[pymethods]
impl Response {
    #[new]
    #[pyo3(signature = (
        body = None, status_code = 200, headers = None, content_type = None, trailers = None, background = None
    ))]
    fn new(
        py: Python<'_>,
        body: Option<Py<PyAny>>,
        status_code: i64,
        headers: Option<&Bound<'_, PyAny>>,
        content_type: Option<Py<PyString>>,
        trailers: Option<Py<PyAny>>,
        background: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let headers = headers.map(pairs).transpose()?.map(Bound::unbind);
        let body = body.unwrap_or_else(|| PyBytes::new(py, b"").into_any().unbind());
        let parts = Parts {
            status_code,
            body,
            content_type,
            headers,
            trailers,
            background,
            encoded: None,
            owner: 0,
        };
        Ok(Self {
            parts: Mutex::new(parts),
        })
    }

    #[getter]
    fn status_code(&self) -> i64 {
        lock(&self.parts).status_code
    }

    #[setter]
    fn set_status_code(&self, status_code: i64) {
        lock(&self.parts).status_code = status_code;
    }

    #[getter]
    fn body(&self, py: Python<'_>) -> Py<PyAny> {
        lock(&self.parts).body.clone_ref(py)
    }

    #[setter]
    fn set_body(&self, body: Py<PyAny>) {
        // What it replaces may run Python code as it goes, hence not under the lock.
        let mut parts = lock(&self.parts);
        let replaced = (
            std::mem::replace(&mut parts.body, body),
            parts.encoded.take(),
        );
        drop(parts);
        drop(replaced);
    }

    #[getter]
    fn _encoded(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let parts = lock(&self.parts);
        parts.encoded.as_ref().map(|encoded| encoded.clone_ref(py))
    }

    #[setter(_encoded)]
    fn set_encoded(&self, encoded: Option<Py<PyAny>>) {
        let replaced = std::mem::replace(&mut lock(&self.parts).encoded, encoded);
        drop(replaced);
    }

    #[getter]
    fn content_type(&self, py: Python<'_>) -> Option<Py<PyString>> {
        lock(&self.parts)
            .content_type
            .as_ref()
            .map(|media| media.clone_ref(py))
    }

    #[setter]
    fn set_content_type(&self, content_type: Option<Py<PyString>>) {
        let replaced = std::mem::replace(&mut lock(&self.parts).content_type, content_type);
        drop(replaced);
    }

    #[getter]
    fn trailers(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.parts)
            .trailers
            .as_ref()
            .map(|trailers| trailers.clone_ref(py))
    }

    #[setter]
    fn set_trailers(&self, trailers: Option<Py<PyAny>>) {
        let replaced = std::mem::replace(&mut lock(&self.parts).trailers, trailers);
        drop(replaced);
    }

    #[getter]
    fn background(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let parts = lock(&self.parts);
        parts.background.as_ref().map(|work| work.clone_ref(py))
    }

    #[setter]
    fn set_background(&self, background: Option<Py<PyAny>>) {
        let replaced = std::mem::replace(&mut lock(&self.parts).background, background);
        drop(replaced);
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let empty = PyList::empty(py).unbind();
        let list = lock(&self.parts).headers.get_or_insert(empty).clone_ref(py);
        functions::MUTABLE_HEADERS.call1(py, list.bind(py).as_any())
    }

    #[pyo3(signature = (*lines))]
    fn _add_checked(&self, py: Python<'_>, lines: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.add_checked(py, lines.iter())
    }

    /// A copy with another body.
    #[pyo3(name = "_with_body")]
    fn with_body(&self, py: Python<'_>, body: Py<PyAny>) -> Self {
        Self {
            parts: Mutex::new(Parts {
                body,
                ..self.parts(py).with_own_fields(py)
            }),
        }
    }

    /// A copy whose body is `message` behind the prefix of an envelope.
    #[expect(clippy::needless_pass_by_value, reason = "it is taken from Python")]
    fn _with_envelope(&self, py: Python<'_>, message: PyBackedBytes) -> PyResult<Self> {
        let length = u32::try_from(message.len())?;
        let body = PyBytes::new_with(py, PREFIX_BYTES + message.len(), |body| {
            let (prefix, content) = body.split_at_mut(PREFIX_BYTES);
            prefix[1..].copy_from_slice(&length.to_be_bytes());
            content.copy_from_slice(&message);
            Ok(())
        })?;
        Ok(self.with_body(py, body.into_any().unbind()))
    }

    fn __repr__(&self) -> String {
        format!("<Response {}>", self.status_code())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is taken means that the response is in use: no garbage.
        let Ok(parts) = self.parts.try_lock() else {
            return Ok(());
        };
        visit.call(&parts.body)?;
        visit.call(&parts.headers)?;
        visit.call(&parts.trailers)?;
        visit.call(&parts.background)?;
        visit.call(&parts.encoded)
    }

    fn __clear__(&self, py: Python<'_>) {
        let nothing = py.None();
        let mut parts = lock(&self.parts);
        let body = std::mem::replace(&mut parts.body, nothing);
        let headers = parts.headers.take();
        let cleared = (
            body,
            headers,
            parts.trailers.take(),
            parts.background.take(),
            parts.encoded.take(),
        );
        drop(parts);
        drop(cleared);
    }
}

impl Response {
    /// Its parts at this moment.
    pub(crate) fn parts(&self, py: Python<'_>) -> Parts {
        lock(&self.parts).shared(py)
    }
}

impl Parts {
    /// The same objects, for a response that is no request's own and has nothing to encode.
    fn shared(&self, py: Python<'_>) -> Self {
        Self {
            status_code: self.status_code,
            body: self.body.clone_ref(py),
            content_type: self.content_type.as_ref().map(|media| media.clone_ref(py)),
            headers: self.headers.as_ref().map(|list| list.clone_ref(py)),
            trailers: self
                .trailers
                .as_ref()
                .map(|trailers| trailers.clone_ref(py)),
            background: self.background.as_ref().map(|work| work.clone_ref(py)),
            encoded: None,
            owner: 0,
        }
    }

    /// These with a list of header fields that nothing else has; not under the lock, as it makes an object.
    fn with_own_fields(mut self, py: Python<'_>) -> Self {
        self.headers = self.headers.map(|list| {
            let list = list.bind(py);
            list.get_slice(0, list.len()).unbind()
        });
        self
    }

    /// The status, if it is one a final response may have.
    pub(crate) fn checked_status(&self) -> Result<Status, Fault> {
        u16::try_from(self.status_code)
            .ok()
            .and_then(Status::new)
            .filter(|status| !status.is_informational())
            .ok_or(Fault::ResponseStatus)
    }

    /// The header fields, checked.
    pub(crate) fn fields(&self, py: Python<'_>) -> PyResult<Result<Fields, Fault>> {
        match &self.headers {
            Some(headers) => fields(headers.bind(py)),
            None => Ok(Ok(Fields::default())),
        }
    }
}

/// Pairs of `str` as a field section, checked.
pub(crate) fn fields(pairs: &Bound<'_, PyList>) -> PyResult<Result<Fields, Fault>> {
    let mut fields = Fields::default();
    for pair in pairs {
        let pair = pair.cast::<PyTuple>()?;
        let (name, value) = (pair.get_item(0)?, pair.get_item(1)?);
        let (name, value) = (text(&name)?, text(&value)?);
        if let Err(fault) = fields.push(&name, &value) {
            return Ok(Err(fault));
        }
    }
    Ok(Ok(fields))
}

/// A field name or value on the wire: latin-1 where it fits (RFC 9110 §5.5), UTF-8 otherwise.
fn text<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    let text = text
        .cast::<PyString>()
        .map_err(|_| PyTypeError::new_err("header names and values are str"))?
        .to_str()?;
    if text.is_ascii() {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let latin: Option<Vec<u8>> = text
        .chars()
        .map(|c| u8::try_from(u32::from(c)).ok())
        .collect();
    Ok(latin.map_or_else(|| Cow::Borrowed(text.as_bytes()), Cow::Owned))
}

/// A new list of `(name, value)` from a mapping or an iterable of pairs.
pub(crate) fn pairs<'py>(headers: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = headers.py();
    if let Ok(mapping) = headers.cast::<PyDict>() {
        return PyList::new(py, mapping.iter());
    }
    // A list has no `items`, and to find that out costs as much as the rest.
    let items = match headers.cast::<PyList>() {
        Ok(_) => None,
        Err(_) => headers.getattr_opt("items")?,
    };
    let source = match items {
        Some(items) => items.call0()?,
        None => headers.clone(),
    };
    let list = PyList::empty(py);
    for pair in source.try_iter()? {
        let pair = pair?;
        if is_pair(&pair) {
            list.append(pair)?;
            continue;
        }
        let (name, value): (Bound<'_, PyString>, Bound<'_, PyString>) =
            pair.extract().map_err(|_: PyErr| {
                PyTypeError::new_err(
                    "headers is a mapping or an iterable of (name, value), all str",
                )
            })?;
        list.append((name, value))?;
    }
    Ok(list)
}

/// Whether it is a `(name, value)` that need not be made again.
fn is_pair(pair: &Bound<'_, PyAny>) -> bool {
    pair.cast_exact::<PyTuple>().is_ok_and(|pair| {
        pair.len() == 2 && pair.iter().all(|part| part.is_instance_of::<PyString>())
    })
}
