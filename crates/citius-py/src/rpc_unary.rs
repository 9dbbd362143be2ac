//! What is read of calls of connectrpc's services without the library: media type, fields and message of a unary call in one
//! step (`python/citius/web/interop/connectrpc/unary.py`), and how deep JSON is nested (`bounded_json.py`). Tests:
//! `tests/rpc/test_rpc_paths.py`, `tests/rpc/test_rpc_depth.py`.

use citius_base::support::latin;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString};

use crate::request::Request;
use crate::response::PREFIX_BYTES;

/// Adds them.
pub(crate) fn add_readers(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RpcUnary>()?;
    module.add_function(wrap_pyfunction!(json_is_deeper, module)?)
}

/// A media type, and what calls of it have to say.
#[derive(FromPyObject)]
struct Way {
    media_type: String,
    /// The message has a prefix.
    is_enveloped: bool,
    /// Fields with the values that ask for nothing.
    fields: Vec<(String, Vec<String>)>,
    timeout: String,
    /// What a call of it gets.
    value: Py<PyAny>,
}

/// Reads calls.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct RpcUnary {
    ways: Vec<Way>,
    bytes_max: usize,
}

impl RpcUnary {
    fn way_of(&self, head: &citius_http::Head) -> Option<&Way> {
        if head.slice(head.method_span) != b"POST" {
            return None;
        }
        let media_type = head.field(b"content-type")?;
        let is_it = |way: &&Way| way.media_type.as_bytes() == media_type;
        let way = self.ways.iter().find(is_it)?;
        let asks_for_nothing = |(name, values): &(String, Vec<String>)| {
            head.field(name.as_bytes())
                .is_none_or(|value| values.iter().any(|one| one.as_bytes() == value))
        };
        way.fields.iter().all(asks_for_nothing).then_some(way)
    }
}

#[pymethods]
impl RpcUnary {
    #[new]
    fn new(ways: Vec<Way>, bytes_max: Option<usize>) -> Self {
        Self {
            ways,
            bytes_max: bytes_max.unwrap_or(usize::MAX),
        }
    }

    /// What calls of the media type get, the message, and the field that limits the time; `None` for a call that asks for
    /// more or has no message.
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn take<'py>(
        &self,
        request: &Bound<'py, Request>,
    ) -> Option<(Py<PyAny>, Bound<'py, PyBytes>, Option<Bound<'py, PyString>>)> {
        let py = request.py();
        let request = request.get();
        let head = request.head();
        let way = self.way_of(head)?;
        let body = request.body(py).ok()?;
        let data = if way.is_enveloped {
            PyBytes::new(py, unwrapped(body.as_bytes())?)
        } else {
            body
        };
        if data.as_bytes().len() > self.bytes_max {
            return None;
        }
        let timeout = head
            .field(way.timeout.as_bytes())
            .map(|value| latin(py, value));
        Some((way.value.clone_ref(py), data, timeout))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.ways.iter().try_for_each(|way| visit.call(&way.value))
    }
}

/// The message of a body that is one envelope, without compression.
fn unwrapped(body: &[u8]) -> Option<&[u8]> {
    let (prefix, data) = body.split_first_chunk::<PREFIX_BYTES>()?;
    let [flags, length @ ..] = *prefix;
    let is_whole = usize::try_from(u32::from_be_bytes(length)) == Ok(data.len());
    (flags == 0 && is_whole).then_some(data)
}

/// Whether arrays and objects of a JSON text are nested deeper than `depth_max`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "it is taken from Python")]
fn json_is_deeper(data: PyBackedBytes, depth_max: usize) -> bool {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for &byte in data.iter() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => depth += 1,
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth > depth_max {
            return true;
        }
    }
    false
}
