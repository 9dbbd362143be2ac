//! `WaitGroup`: a counter, and a channel that is closed when the counter reaches zero. Tests: `tests/go/`.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::element::{Element, Format};
use super::operation::{Operation, ResultShape};
use super::{Channel, caller, thread};
use crate::sync::lock;

/// The counter, as Python and native code share it.
pub(crate) struct Group {
    state: Mutex<State>,
    /// The process it was made in.
    generation: u32,
}

struct State {
    count: isize,
    /// Closed when the count is zero; there is a new one each time it leaves zero.
    gate: Option<Channel>,
}

/// The count cannot go below zero: what it is.
pub(crate) struct Negative(pub(crate) isize);

impl Group {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                count: 0,
                gate: None,
            }),
            generation: thread::generation(),
        }
    }

    /// Adds to the count; at zero all that wait are woken.
    pub(crate) fn add(&self, n: isize) -> Result<(), Negative> {
        let opened = {
            let mut state = lock(&self.state);
            let count = state.count.checked_add(n).filter(|count| *count >= 0);
            let Some(count) = count else {
                return Err(Negative(state.count));
            };
            state.count = count;
            if count == 0 {
                state.gate.take()
            } else {
                state.gate.get_or_insert_with(new_gate);
                None
            }
        };
        if let Some(gate) = opened {
            let _ = gate.close();
        }
        Ok(())
    }

    /// What is closed when the count is zero; `None`: it is.
    pub(crate) fn gate(&self) -> Option<Channel> {
        lock(&self.state).gate.clone()
    }

    pub(crate) fn count(&self) -> isize {
        lock(&self.state).count
    }

    pub(crate) fn is_of_this_process(&self) -> bool {
        self.generation == thread::generation()
    }
}

fn new_gate() -> Channel {
    Channel::new(0, Element::fixed(0, Format::Unit))
}

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
        thread::check_generation(py, self.group.generation)?;
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
        thread::check_generation(py, self.group.generation)?;
        let gate = self.group.gate().unwrap_or_else(|| {
            let open = new_gate();
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
