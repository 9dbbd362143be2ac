//! `WaitGroup`: a counter, and a channel that is closed when the counter reaches zero. Tests: `tests/go/`.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::operation::{Operation, ResultShape};
use super::{caller, thread};
use citius_native::{Channel, Element, Format, Group, Negative};

/// Waits for a number of things to be done.
#[pyclass(frozen, module = "citius._core", weakref)]
pub(crate) struct WaitGroup {
    pub(crate) group: Arc<Group>,
}

#[pymethods]
impl WaitGroup {
    #[new]
    fn new() -> Self {
        Self {
            group: Arc::new(Group::new()),
        }
    }

    #[pyo3(signature = (n = 1))]
    fn add(&self, py: Python<'_>, n: isize) -> PyResult<()> {
        thread::check_generation(py, self.group.generation())?;
        self.group.add(n).map_err(|Negative(count)| {
            PyValueError::new_err(format!(
                "the count of a WaitGroup cannot go from {count} to below zero (by {n}): call add() before the \
                 work starts, and done() once for each"
            ))
        })
    }

    fn done(&self, py: Python<'_>) -> PyResult<()> {
        self.add(py, -1)
    }

    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        thread::check_generation(py, self.group.generation())?;
        let gate = self.group.gate().unwrap_or_else(|| {
            let open = Channel::new(0, Element::fixed(0, Format::Unit));
            let _ = open.close();
            open
        });
        caller::perform(py, Operation::Receive(gate), ResultShape::Nothing)
    }

    #[getter]
    fn count(&self) -> isize {
        self.group.count()
    }

    fn __repr__(&self) -> String {
        format!("<WaitGroup {}>", self.group.count())
    }
}
