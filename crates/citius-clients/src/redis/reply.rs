//! The values of a reply as Python objects.
//!
//! A [`Builder`] takes the values of one reply as they come and keeps what contains others on a stack. Sets whose elements cannot
//! be hashed become lists, maps with such keys lists of pairs.

use citius_redis::{Item, Value};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PySet, PyString, PyTuple};

use super::errors::server_error;

/// What a reply becomes.
pub(crate) struct Shape {
    pub(crate) blobs: Blobs,
    pub(crate) then: Then,
}

/// What strings of a reply become, however deep they are.
pub(crate) enum Blobs {
    Bytes,
    Text,
    Int,
    Float,
    /// What this returns for the bytes.
    Decoded(Py<PyAny>),
}

/// What becomes of the value of the whole reply.
pub(crate) enum Then {
    /// It is the result.
    Value,
    /// Whether it is a status or a number that is not 0.
    Bool,
    /// The result of this function.
    Call(Py<PyAny>),
}

impl Blobs {
    /// `None`: as `default` has it. `bytes`, `str`, `int`, `float`, or a function of bytes.
    pub(crate) fn of(as_: Option<&Bound<'_, PyAny>>, is_text: bool) -> PyResult<Self> {
        let Some(as_) = as_ else {
            return Ok(if is_text { Self::Text } else { Self::Bytes });
        };
        let py = as_.py();
        if as_.is(py.get_type::<PyBytes>()) {
            Ok(Self::Bytes)
        } else if as_.is(py.get_type::<PyString>()) {
            Ok(Self::Text)
        } else if as_.is(py.get_type::<PyInt>()) {
            Ok(Self::Int)
        } else if as_.is(py.get_type::<PyFloat>()) {
            Ok(Self::Float)
        } else if as_.is_callable() {
            Ok(Self::Decoded(as_.clone().unbind()))
        } else {
            Err(PyTypeError::new_err(format!(
                "as_ is str, bytes, int, float, or a function that takes bytes, got {}",
                as_.repr()?
            )))
        }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Bytes => Self::Bytes,
            Self::Text => Self::Text,
            Self::Int => Self::Int,
            Self::Float => Self::Float,
            Self::Decoded(decode) => Self::Decoded(decode.clone_ref(py)),
        }
    }

    #[inline]
    fn make(&self, py: Python<'_>, blob: &[u8]) -> PyResult<Py<PyAny>> {
        match self {
            Self::Bytes => Ok(PyBytes::new(py, blob).into_any().unbind()),
            Self::Text => Ok(text(py, blob)?.into_any().unbind()),
            Self::Int => Ok(py.get_type::<PyInt>().call1((text(py, blob)?,))?.unbind()),
            Self::Float => Ok(py.get_type::<PyFloat>().call1((text(py, blob)?,))?.unbind()),
            Self::Decoded(decode) => decode.call1(py, (PyBytes::new(py, blob),)),
        }
    }
}

impl Then {
    /// `None`: the value itself. `bool`, or a function of the value.
    pub(crate) fn of(then: Option<&Bound<'_, PyAny>>) -> Self {
        match then {
            None => Self::Value,
            Some(then) if then.is(then.py().get_type::<PyBool>()) => Self::Bool,
            Some(then) => Self::Call(then.clone().unbind()),
        }
    }

    #[inline]
    pub(crate) fn apply(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Value => Ok(value),
            Self::Bool => value.is_truthy(py)?.into_py_any(py),
            Self::Call(function) => function.call1(py, (value,)),
        }
    }
}

fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    PyString::from_encoded_object(&PyBytes::new(py, bytes), Some(c"utf-8"), None)
}

/// A value that contains no others; an error becomes an exception that is a value.
#[inline]
pub(crate) fn simple_value(py: Python<'_>, value: Value<'_>, blobs: &Blobs) -> PyResult<Py<PyAny>> {
    match value {
        Value::Blob(blob) => blobs.make(py, blob),
        Value::Null => Ok(py.None()),
        Value::Integer(number) => number.into_py_any(py),
        Value::Simple(status) => Ok(status_text(py, status).into_any().unbind()),
        Value::Double(number) => number.into_py_any(py),
        Value::Boolean(value) => value.into_py_any(py),
        Value::Verbatim(bytes) => Ok(text(py, bytes)?.into_any().unbind()),
        Value::BigNumber(digits) => {
            Ok(py.get_type::<PyInt>().call1((text(py, digits)?,))?.unbind())
        }
        Value::Error(error) => Ok(server_error(py, error).into_value(py).into_any()),
        Value::Array(_) | Value::Push(_) => PyList::empty(py).into_py_any(py),
        Value::Set(_) => PySet::empty(py)?.into_py_any(py),
        Value::Map(_) => PyDict::new(py).into_py_any(py),
    }
}

/// A status; the usual ones are made once.
#[inline]
fn status_text<'py>(py: Python<'py>, status: &[u8]) -> Bound<'py, PyString> {
    match status {
        b"OK" => pyo3::intern!(py, "OK").clone(),
        b"QUEUED" => pyo3::intern!(py, "QUEUED").clone(),
        other => PyString::new(py, &String::from_utf8_lossy(other)),
    }
}

/// Makes the objects of one reply.
#[derive(Default)]
pub(crate) struct Builder {
    open: Vec<Container>,
    /// What went wrong; the rest of the reply is read and dropped.
    failure: Option<PyErr>,
}

struct Container {
    kind: Kind,
    values: Vec<Py<PyAny>>,
}

#[derive(Clone, Copy)]
enum Kind {
    List,
    Set,
    Map,
}

impl Builder {
    /// Takes a value; returns that of the whole reply when it is complete.
    pub(crate) fn add(
        &mut self,
        py: Python<'_>,
        item: Item<'_>,
        blobs: &Blobs,
    ) -> Option<PyResult<Py<PyAny>>> {
        if self.failure.is_none()
            && let Err(failure) = self.try_add(py, item, blobs)
        {
            self.failure = Some(failure);
            self.open.clear();
        }
        if !item.is_last {
            return None;
        }
        if let Some(failure) = self.failure.take() {
            return Some(Err(failure));
        }
        // The outermost container has been closed into a list of one.
        let whole = self.open.pop()?.values.pop()?;
        Some(Ok(whole))
    }

    fn try_add(&mut self, py: Python<'_>, item: Item<'_>, blobs: &Blobs) -> PyResult<()> {
        if self.open.is_empty() {
            self.push(Kind::List);
        }
        let kind = match item.value {
            Value::Array(_) | Value::Push(_) => Some(Kind::List),
            Value::Set(_) => Some(Kind::Set),
            Value::Map(_) => Some(Kind::Map),
            _ => None,
        };
        match kind {
            Some(kind) => self.push(kind),
            None => self.keep(simple_value(py, item.value, blobs)?),
        }
        for _ in 0..item.ends {
            if let Some(container) = self.open.pop() {
                let value = container.close(py)?;
                self.keep(value);
            }
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind) {
        let values = Vec::new();
        self.open.push(Container { kind, values });
    }

    fn keep(&mut self, value: Py<PyAny>) {
        if let Some(container) = self.open.last_mut() {
            container.values.push(value);
        }
    }
}

impl Container {
    fn close(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.kind {
            Kind::List => PyList::new(py, self.values)?.into_py_any(py),
            Kind::Set => {
                let set = PySet::empty(py)?;
                for value in &self.values {
                    if let Err(error) = set.add(value) {
                        is_unhashable(py, error)?;
                        return PyList::new(py, self.values)?.into_py_any(py);
                    }
                }
                set.into_py_any(py)
            }
            Kind::Map => {
                let (pairs, _) = self.values.as_chunks::<2>();
                let dict = PyDict::new(py);
                for [key, value] in pairs {
                    if let Err(error) = dict.set_item(key, value) {
                        is_unhashable(py, error)?;
                        let pairs = pairs.iter().map(|pair| PyTuple::new(py, pair));
                        let pairs = pairs.collect::<PyResult<Vec<_>>>()?;
                        return PyList::new(py, pairs)?.into_py_any(py);
                    }
                }
                dict.into_py_any(py)
            }
        }
    }
}

/// Passes on what is no `TypeError`.
fn is_unhashable(py: Python<'_>, error: PyErr) -> PyResult<()> {
    if error.is_instance_of::<PyTypeError>(py) {
        Ok(())
    } else {
        Err(error)
    }
}
