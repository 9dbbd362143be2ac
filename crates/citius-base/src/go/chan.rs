//! `Chan` and `select` as Python sees them. Tests: `tests/go/`.

use citius_chan::AlreadyClosed;
use citius_native::{Case, Channel, Element, Format, Value};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyTuple};

use super::awaitable::ChannelAwaitable;
use super::element;
use super::operation::{Operation, ResultShape, error, selected};
use super::{caller, thread};
use crate::object::{borrowed, value as value_of};

/// A channel.
#[pyclass(frozen, module = "citius._core", weakref, generic)]
pub struct Chan {
    /// What Python sees of.
    pub channel: Channel,
}

impl Chan {
    /// The channel, in the process that has made it.
    #[inline]
    pub fn channel(&self, py: Python<'_>) -> PyResult<&Channel> {
        thread::check_generation(py, self.channel.generation())?;
        Ok(&self.channel)
    }

    fn receive(&self, py: Python<'_>) -> PyResult<Operation> {
        let channel = self.channel(py)?;
        refuse_owned(channel)?;
        Ok(Operation::Receive(channel.clone()))
    }
}

/// The value that Python sends on a channel.
#[inline]
fn packed(py: Python<'_>, channel: &Channel, value: Py<PyAny>) -> PyResult<Value> {
    if matches!(channel.element(), Element::Object) {
        return Ok(value_of(value));
    }
    refuse_owned(channel)?;
    element::pack(channel.element(), value, py)
}

/// Refuses what would break values that have to be freed.
#[inline]
fn refuse_owned(channel: &Channel) -> PyResult<()> {
    if let Element::Fixed { drop: Some(_), .. } = channel.element() {
        return Err(PyTypeError::new_err(
            "the values of this channel own memory of native code: only native code can send and receive them",
        ));
    }
    Ok(())
}

#[pymethods]
impl Chan {
    #[new]
    #[pyo3(signature = (capacity = 0, type_ = None))]
    fn new(capacity: isize, type_: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let capacity = usize::try_from(capacity).map_err(|_| {
            PyValueError::new_err(format!(
                "the capacity of a channel is a number of values, 0 or more, not {capacity}"
            ))
        })?;
        Ok(Self {
            channel: Channel::new(capacity, element::of(type_)?),
        })
    }

    /// Its values are its own only if nothing else refers to the channel: neither an operation that waits nor native code.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.channel.is_alone() {
            return Ok(());
        }
        self.channel.try_visit(|value| match value {
            Value::Object(object) => visit.call(borrowed(object)),
            Value::Packed(_) => Ok(()),
        })
    }

    fn __clear__(&self) {
        self.channel.clear();
    }

    fn send(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let channel = self.channel(py)?;
        let value = packed(py, channel, value)?;
        let operation = Operation::Send(channel.clone(), Some(value));
        caller::perform(py, operation, ResultShape::Nothing)
    }

    fn recv(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        caller::perform(py, self.receive(py)?, ResultShape::Pair)
    }

    /// A receive for threads that ends after a time: `None`. For the clock of `citius.go`.
    #[pyo3(signature = (timeout_s))]
    fn _recv_within(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Py<PyAny>> {
        let mut operation = self.receive(py)?;
        match thread::block(py, &mut operation, timeout_s)? {
            Some(outcome) => operation.shape(py, ResultShape::Pair, outcome),
            None => Ok(py.None()),
        }
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.channel(py)?.close().map_err(|AlreadyClosed| {
            error(
                py,
                "ChannelClosed",
                "close of a closed channel; let one party close it, once (`with channel:` does)",
            )
        })
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.channel(py)?.is_closed())
    }

    /// What its values are, for what compiles Python: a word, and their bytes or the dtype of arrays.
    #[getter]
    fn _element(&self, py: Python<'_>) -> PyResult<(&'static str, Py<PyAny>)> {
        Ok(match self.channel.element() {
            Element::Object => ("object", py.None()),
            Element::Bytes => ("bytes", py.None()),
            Element::Array(dtype) => ("array", borrowed(dtype).clone_ref(py)),
            Element::Fixed { size, format, .. } => {
                let word = match format {
                    Format::Unit => "none",
                    Format::Integer => "int",
                    Format::Real => "float",
                    Format::Bool => "bool",
                    Format::Opaque | Format::Struct(_) => "struct",
                };
                (word, size.into_py_any(py)?)
            }
        })
    }

    #[getter]
    fn cap(&self) -> usize {
        self.channel.capacity()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.channel(py)?.len())
    }

    #[expect(clippy::unused_self, reason = "Python's protocol")]
    fn __bool__(&self) -> bool {
        true // a channel, not None: no matter how many values are in it
    }

    fn __repr__(&self) -> String {
        if !self.channel.is_of_this_process() {
            return "<Chan of the parent process>".to_owned();
        }
        let (receivers, senders) = self.channel.waiting();
        let state = if self.channel.is_closed() {
            ", closed"
        } else {
            ""
        };
        format!(
            "<Chan {}/{}, {receivers} receiving, {senders} sending{state}>",
            self.channel.len(),
            self.channel.capacity()
        )
    }

    /// Two objects that refer to one channel are equal.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<Self>();
        other.is_ok_and(|other| other.get().channel.is_same(&self.channel))
    }

    fn __hash__(&self) -> usize {
        self.channel.address()
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if !caller::is_serial() && caller::running_loop(slf.py())?.is_some() {
            return Err(error(
                slf.py(),
                "ChannelMisuse",
                "`for` over a channel would stop the event loop of this thread: use `async for` (in `async def`), or add \
                 serial=True to the handler (a `def`)",
            ));
        }
        Ok(slf)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        caller::perform(py, self.receive(py)?, ResultShape::Item)
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        ChannelAwaitable::make(py, self.receive(py)?, ResultShape::AsyncItem)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*error))]
    fn __exit__(&self, error: &Bound<'_, PyTuple>) -> PyResult<()> {
        // It may have been closed already, which is the same.
        let _ = self.channel(error.py())?.close();
        Ok(())
    }
}

/// One of several operations.
#[pyfunction]
#[pyo3(signature = (*cases, default = false))]
pub(crate) fn select(
    py: Python<'_>,
    cases: &Bound<'_, PyTuple>,
    default: bool,
) -> PyResult<Py<PyAny>> {
    let cases = cases
        .iter_borrowed()
        .enumerate()
        .map(|(index, case)| read_case(index, &case))
        .collect::<PyResult<Vec<_>>>()?;
    let mut operation = Operation::Select(cases);
    if default {
        return match operation.attempt() {
            Some(outcome) => operation.shape(py, ResultShape::Selected, outcome),
            None => selected(py, py.None(), py.None(), false),
        };
    }
    caller::perform(py, operation, ResultShape::Selected)
}

fn read_case(index: usize, case: &Bound<'_, PyAny>) -> PyResult<Case> {
    let wrong = || {
        let kind = case.get_type();
        let kind = kind
            .name()
            .map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "case {index} of select must be a channel (receive), (channel, value) (send), or None in \
             place of a channel; got {kind}"
        ))
    };
    let channel_of = |object: &Bound<'_, PyAny>| -> PyResult<Option<Channel>> {
        if object.is_none() {
            return Ok(None);
        }
        let chan = object.cast::<Chan>().map_err(|_| wrong())?;
        let channel = chan.get().channel(object.py())?;
        refuse_owned(channel)?;
        Ok(Some(channel.clone()))
    };
    if let Ok(pair) = case.cast::<PyTuple>() {
        if pair.len() != 2 {
            return Err(wrong());
        }
        let (channel, value) = (channel_of(&pair.get_item(0)?)?, pair.get_item(1)?.unbind());
        let value = match &channel {
            Some(channel) => packed(case.py(), channel, value)?,
            None => value_of(value),
        };
        return Ok(Case::Send(channel, Some(value)));
    }
    Ok(Case::Receive(channel_of(case)?))
}
