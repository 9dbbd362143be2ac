//! `Chan` and `select` as Python sees them. Tests: `tests/go/`.

use std::sync::Arc;

use citius_chan::AlreadyClosed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyTuple};

use super::awaitable::ChannelAwaitable;
use super::operation::{Operation, ResultShape, error, selected};
use super::{Case, Channel, caller, thread};

/// A channel.
#[pyclass(frozen, module = "citius._core", weakref, generic)]
pub(crate) struct Chan {
    channel: Arc<Channel>,
    /// The process it was made in.
    generation: u32,
}

impl Chan {
    /// The channel, in the process that has made it.
    #[inline]
    fn channel(&self, py: Python<'_>) -> PyResult<&Arc<Channel>> {
        thread::check_generation(py, self.generation)?;
        Ok(&self.channel)
    }
}

#[pymethods]
impl Chan {
    #[new]
    #[pyo3(signature = (capacity = 0))]
    fn new(capacity: isize) -> PyResult<Self> {
        let capacity = usize::try_from(capacity).map_err(|_| {
            PyValueError::new_err(format!(
                "the capacity of a channel is a number of values, 0 or more, not {capacity}"
            ))
        })?;
        Ok(Self {
            channel: Arc::new(Channel::new(capacity)),
            generation: thread::generation(),
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.channel.try_visit(|value| visit.call(value))
    }

    fn __clear__(&self) {
        self.channel.clear();
    }

    fn send(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let channel = Arc::clone(self.channel(py)?);
        caller::perform(
            py,
            Operation::Send(channel, Some(value)),
            ResultShape::Nothing,
        )
    }

    fn recv(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let channel = Arc::clone(self.channel(py)?);
        caller::perform(py, Operation::Receive(channel), ResultShape::Pair)
    }

    /// A receive for threads that ends after a time: `None`. For the clock of `citius.go`.
    #[pyo3(signature = (timeout_s))]
    fn _recv_within(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Py<PyAny>> {
        let mut operation = Operation::Receive(Arc::clone(self.channel(py)?));
        match thread::block(py, &mut operation, timeout_s)? {
            Some(outcome) => ResultShape::Pair.shape(py, outcome),
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
        if self.generation != thread::generation() {
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

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if caller::running_loop(slf.py())?.is_some() {
            return Err(error(
                slf.py(),
                "ChannelMisuse",
                "`for` over a channel would stop the event loop of this thread: use `async for`",
            ));
        }
        Ok(slf)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let channel = Arc::clone(self.channel(py)?);
        caller::perform(py, Operation::Receive(channel), ResultShape::Item)
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let operation = Operation::Receive(Arc::clone(self.channel(py)?));
        ChannelAwaitable::make(py, operation, ResultShape::AsyncItem)
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
            Some(outcome) => ResultShape::Selected.shape(py, outcome),
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
    let channel_of = |object: &Bound<'_, PyAny>| -> PyResult<Option<Arc<Channel>>> {
        if object.is_none() {
            return Ok(None);
        }
        let chan = object.cast::<Chan>().map_err(|_| wrong())?;
        Ok(Some(Arc::clone(chan.get().channel(object.py())?)))
    };
    if let Ok(pair) = case.cast::<PyTuple>() {
        if pair.len() != 2 {
            return Err(wrong());
        }
        let value = pair.get_item(1)?.unbind();
        return Ok(Case::Send(channel_of(&pair.get_item(0)?)?, Some(value)));
    }
    Ok(Case::Receive(channel_of(case)?))
}
