//! What a client of a database counts, and its operations as spans: one [`ClientMetrics`] per pool.
//!
//! A client has one only while metrics or spans are wanted; without it an operation pays one branch. The parent of a span
//! is asked for when the operation begins, because it is a value of the caller's context. Tests: `tests/pg/test_observed.py`.

use std::sync::{Arc, Mutex};

use citius_observe::{ClientCells, ClientCounter, ClientGauge, ClientSpan, Rng, Spans};
use citius_reactor::{exact_us, wall_us};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::sync::lock;

/// The counters of one client in its worker's slot.
#[pyclass(frozen, module = "citius._core")]
pub struct ClientMetrics {
    number: usize,
    cells: ClientCells,
    tracing: Option<Tracing>,
}

struct Tracing {
    spans: Arc<Spans<ClientSpan>>,
    /// Returns the current span as two integers, if it is sampled.
    parent: Py<PyAny>,
    identities: Mutex<Rng>,
}

/// An operation that is under way.
pub struct Operation {
    started_us: u64,
    parent: Option<Parent>,
}

struct Parent {
    trace_id: u128,
    span_id: u64,
    started_us: u64,
}

const CANCELLED: &str = "cancelled";
/// Bytes of an operation's text that a span keeps.
const TEXT_BYTES_MAX: usize = 8192;

impl ClientMetrics {
    /// Counts in these cells.
    pub fn new(
        number: usize,
        cells: ClientCells,
        tracing: Option<(Arc<Spans<ClientSpan>>, Py<PyAny>)>,
    ) -> Self {
        Self {
            number,
            cells,
            tracing: tracing.map(|(spans, parent)| Tracing {
                spans,
                parent,
                identities: Mutex::default(),
            }),
        }
    }

    /// Counts one.
    pub fn count(&self, counter: ClientCounter) {
        self.cells.count(counter);
    }

    /// An operation begins, in its caller's context.
    pub fn begin(&self, py: Python<'_>) -> Operation {
        Operation {
            started_us: exact_us(),
            parent: self.tracing.as_ref().and_then(|it| it.parent(py)),
        }
    }

    /// It has succeeded; `describe` is called if there is a span: what was executed, and how often.
    pub fn succeeded(&self, operation: Operation, describe: impl FnOnce() -> (String, usize)) {
        self.end(operation, ClientCounter::Ok, || None, describe);
    }

    /// It has failed, or its caller has left.
    pub fn failed(
        &self,
        operation: Operation,
        error: impl FnOnce() -> String,
        describe: impl FnOnce() -> (String, usize),
    ) {
        self.end(operation, ClientCounter::Error, || Some(error()), describe);
    }

    /// Its caller has left.
    pub fn cancelled(&self, operation: Operation, describe: impl FnOnce() -> (String, usize)) {
        let error = || Some(CANCELLED.to_owned());
        self.end(operation, ClientCounter::Cancelled, error, describe);
    }

    fn end(
        &self,
        operation: Operation,
        outcome: ClientCounter,
        error: impl FnOnce() -> Option<String>,
        describe: impl FnOnce() -> (String, usize),
    ) {
        let duration_us = exact_us().saturating_sub(operation.started_us);
        self.cells.finish(outcome, duration_us);
        let (Some(tracing), Some(parent)) = (&self.tracing, operation.parent) else {
            return;
        };
        let (mut text, batch) = describe();
        while text.len() > TEXT_BYTES_MAX && text.pop().is_some() {}
        tracing.spans.push(ClientSpan {
            client: self.number,
            trace_id: parent.trace_id,
            parent_id: parent.span_id,
            span_id: lock(&tracing.identities).next_u64() | 1,
            started_us: parent.started_us,
            duration_us,
            text: text.into(),
            batch,
            error: error().map(Into::into),
        });
    }
}

impl Tracing {
    fn parent(&self, py: Python<'_>) -> Option<Parent> {
        let asked = self.parent.call0(py).and_then(|found| found.extract(py));
        let found: Option<(u128, u64)> = asked.unwrap_or_else(|error| {
            error.write_unraisable(py, None);
            None
        });
        found.map(|(trace_id, span_id)| Parent {
            trace_id,
            span_id,
            started_us: wall_us(),
        })
    }
}

/// A word for an exception: its SQLSTATE, or the name of its class.
pub fn error_word(py: Python<'_>, error: &PyErr) -> String {
    let value = error.value(py);
    let state = value.getattr_opt(intern!(py, "sqlstate")).ok().flatten();
    let state = state.and_then(|state| state.extract().ok());
    state.unwrap_or_else(|| {
        let name = error.get_type(py).fully_qualified_name();
        name.map_or_else(|_| "Exception".to_owned(), |name| name.to_string())
    })
}

/// An operation that code in Python times: that of a client which is not the extension's.
#[pyclass(frozen, module = "citius._core")]
pub struct ClientOperation {
    metrics: Py<ClientMetrics>,
    operation: Mutex<Option<Operation>>,
}

impl ClientOperation {
    /// The operation that `metrics` has begun.
    pub fn new(metrics: Py<ClientMetrics>, operation: Operation) -> Self {
        Self {
            metrics,
            operation: Mutex::new(Some(operation)),
        }
    }
}

#[pymethods]
impl ClientOperation {
    /// It has succeeded; or failed, with a word for the error; or its caller has left, with the word `cancelled`.
    #[pyo3(signature = (text, *, batch = 1, error = None))]
    fn end(&self, text: &str, batch: usize, error: Option<String>) {
        let Some(operation) = lock(&self.operation).take() else {
            return;
        };
        let metrics = self.metrics.get();
        let describe = || (text.to_owned(), batch);
        match error {
            None => metrics.succeeded(operation, describe),
            Some(error) if error == CANCELLED => metrics.cancelled(operation, describe),
            Some(error) => metrics.failed(operation, || error, describe),
        }
    }
}

#[pymethods]
impl ClientMetrics {
    /// An operation begins, in its caller's context.
    #[pyo3(name = "begin")]
    fn begin_in_python(slf: Bound<'_, Self>) -> ClientOperation {
        ClientOperation {
            operation: Mutex::new(Some(slf.get().begin(slf.py()))),
            metrics: slf.unbind(),
        }
    }

    /// Whether operations are spans of a trace too.
    #[getter]
    fn is_tracing(&self) -> bool {
        self.tracing.is_some()
    }

    /// Counts one, by the name of the counter.
    #[pyo3(name = "count")]
    fn count_by_name(&self, counter: &str) -> PyResult<()> {
        let named = |known: &&ClientCounter| known.name() == counter;
        let found = ClientCounter::ALL.iter().find(named);
        let found = found.ok_or_else(|| PyValueError::new_err("no counter of this name"))?;
        self.count(*found);
        Ok(())
    }

    /// Sets the gauges.
    fn set(&self, used: u64, idle: u64, queued: u64) {
        self.cells.set(ClientGauge::Used, used);
        self.cells.set(ClientGauge::Idle, idle);
        self.cells.set(ClientGauge::Queued, queued);
    }
}

/// What `SharedMetrics.read` says of the clients of a worker.
pub fn clients(
    py: Python<'_>,
    slot: citius_observe::MetricsSlot,
) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let cells = (0..).map_while(|number| ClientCells::new(slot, number));
    let known = cells.filter(|client| !client.kind().is_empty());
    known
        .map(|client| {
            let dict = PyDict::new(py);
            dict.set_item("kind", client.kind())?;
            dict.set_item("label", client.label())?;
            for &counter in ClientCounter::ALL {
                dict.set_item(counter.name(), client.counter(counter))?;
            }
            for &gauge in ClientGauge::ALL {
                dict.set_item(gauge.name(), client.gauge(gauge))?;
            }
            dict.set_item("durations", client.durations())?;
            Ok(dict)
        })
        .collect()
}

/// A span as Python gets it.
pub fn span_dict<'py>(py: Python<'py>, span: &ClientSpan) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("client", span.client)?;
    dict.set_item("trace_id", span.trace_id)?;
    dict.set_item("parent_id", span.parent_id)?;
    dict.set_item("span_id", span.span_id)?;
    dict.set_item("started_us", span.started_us)?;
    dict.set_item("duration_us", span.duration_us)?;
    dict.set_item("text", &*span.text)?;
    dict.set_item("batch", span.batch)?;
    dict.set_item("error", span.error.as_deref())?;
    Ok(dict)
}
