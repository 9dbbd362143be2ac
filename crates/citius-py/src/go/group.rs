//! `WaitGroup`: a counter, and a channel that is closed when the counter reaches zero. Tests: `tests/go/`.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::operation::{Operation, ResultShape};
use super::{Channel, caller, thread};
use crate::sync::lock;

/// Waits for a number of things to be done.
#[pyclass(frozen, module = "citius._core", weakref)]
pub(crate) struct WaitGroup {
    state: Mutex<State>,
    /// The process it was made in.
    generation: u32,
}

struct State {
    count: isize,
    /// Closed when the count is zero; there is a new one each time it leaves zero.
    gate: Option<Arc<Channel>>,
}

#[pymethods]
impl WaitGroup {
    #[new]
    fn new() -> Self {
        Self {
            state: Mutex::new(State {
                count: 0,
                gate: None,
            }),
            generation: thread::generation(),
        }
    }

    #[pyo3(signature = (n = 1))]
    fn add(&self, py: Python<'_>, n: isize) -> PyResult<()> {
        thread::check_generation(py, self.generation)?;
        let opened = {
            let mut state = lock(&self.state);
            let count = state.count.checked_add(n).filter(|count| *count >= 0);
            let Some(count) = count else {
                return Err(PyValueError::new_err(format!(
                    "the count of a WaitGroup cannot go from {} to below zero (by {n}): call add() before the \
                     work starts, and done() once for each",
                    state.count
                )));
            };
            state.count = count;
            if count == 0 {
                state.gate.take()
            } else {
                state.gate.get_or_insert_with(|| Arc::new(Channel::new(0)));
                None
            }
        };
        if let Some(gate) = opened {
            let _ = gate.close();
        }
        Ok(())
    }

    fn done(&self, py: Python<'_>) -> PyResult<()> {
        self.add(py, -1)
    }

    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        thread::check_generation(py, self.generation)?;
        let gate = lock(&self.state).gate.clone();
        let gate = gate.unwrap_or_else(|| {
            let open = Channel::new(0);
            let _ = open.close();
            Arc::new(open)
        });
        caller::perform(py, Operation::Receive(gate), ResultShape::Nothing)
    }

    #[getter]
    fn count(&self) -> isize {
        lock(&self.state).count
    }

    fn __repr__(&self) -> String {
        format!("<WaitGroup {}>", lock(&self.state).count)
    }
}
