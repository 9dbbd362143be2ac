//! The observer as Python makes it, and the counters that Python reads.
//!
//! Nothing here runs for a request: Python makes an [`Observer`], hands it to a reactor, and then sends heartbeats, reads
//! counters and takes spans. Tests: `tests/observe/`.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use citius_base::client_metrics::{self, ClientMetrics};
use citius_base::sync::lock;
use citius_http::Fault;
use citius_observe::observer::{self, fault_name};
use citius_observe::slot::{BUCKETS_US, SLOT_CELLS};
use citius_observe::{
    ClientCells, ClientSpan, Counter, Format, Gauge, Lines, MetricsSlot, Sink, Spans,
};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// The access log, with the format of its lines.
fn open_log(format: &str, fd: Option<i32>) -> PyResult<(Arc<Lines>, Format)> {
    let format = Format::parse(format).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let sink = match fd {
        None => Sink::Stdout,
        Some(fd) => Sink::Open(citius_base::descriptor::duplicate(fd)?),
    };
    Ok((Arc::new(Lines::open(sink)?), format))
}

/// Names of the parts of what [`SharedMetrics::read`] returns, for the code that explains them.
pub(crate) fn metrics(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let metrics = PyDict::new(py);
    metrics.set_item(
        "tallies",
        Counter::ALL.iter().map(|t| t.name()).collect::<Vec<_>>(),
    )?;
    metrics.set_item(
        "gauges",
        Gauge::ALL.iter().map(|g| g.name()).collect::<Vec<_>>(),
    )?;
    let faults: Vec<_> = Fault::ALL.iter().map(|&fault| fault_name(fault)).collect();
    metrics.set_item("faults", faults)?;
    metrics.set_item("buckets_us", BUCKETS_US.to_vec())?;
    Ok(metrics)
}

/// The memory of `buffer`, which is kept for ever, as atomics.
pub(crate) fn shared_cells(buffer: PyBuffer<u8>) -> PyResult<&'static [AtomicU64]> {
    let address = buffer.buf_ptr().cast::<AtomicU64>();
    if buffer.readonly() || !buffer.is_c_contiguous() || !address.is_aligned() {
        return Err(PyValueError::new_err(
            "what processes share needs writable, contiguous memory such as an mmap",
        ));
    }
    let n_cells = buffer.len_bytes() / size_of::<AtomicU64>();
    // The buffer is kept for ever: its exporter cannot free or move the memory any more.
    std::mem::forget(buffer);
    // SAFETY: the memory is writable, aligned, `n_cells` long and, since the buffer is never released,
    // there until the process ends; cells are only ever accessed as atomics, here and by the processes
    // that share it.
    Ok(unsafe { std::slice::from_raw_parts(address, n_cells) })
}

/// Slots in memory that a supervisor and its workers share.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct SharedMetrics {
    slots: Vec<MetricsSlot>,
}

#[pymethods]
impl SharedMetrics {
    #[classattr]
    const SLOT_BYTES: usize = SLOT_CELLS * size_of::<u64>();

    #[new]
    fn new(buffer: PyBuffer<u8>) -> PyResult<Self> {
        let cells = shared_cells(buffer)?;
        let slots = cells.chunks_exact(SLOT_CELLS).filter_map(MetricsSlot::new);
        Ok(Self {
            slots: slots.collect(),
        })
    }

    fn __len__(&self) -> usize {
        self.slots.len()
    }

    /// What the slot holds, as plain numbers.
    fn read<'py>(&self, py: Python<'py>, slot: usize) -> PyResult<Bound<'py, PyDict>> {
        read(py, self.slot(slot)?)
    }

    /// Zeroes the slot for the next worker.
    fn clear(&self, slot: usize) -> PyResult<()> {
        self.slot(slot)?.clear();
        Ok(())
    }
}

impl SharedMetrics {
    fn slot(&self, slot: usize) -> PyResult<MetricsSlot> {
        let found = self.slots.get(slot).copied();
        found.ok_or_else(|| PyIndexError::new_err(format!("there are {} slots", self.slots.len())))
    }
}

fn read(py: Python<'_>, slot: MetricsSlot) -> PyResult<Bound<'_, PyDict>> {
    let (all, tallies, gauges, faults) = (
        PyDict::new(py),
        PyDict::new(py),
        PyDict::new(py),
        PyDict::new(py),
    );
    for &tally in Counter::ALL {
        tallies.set_item(tally.name(), slot.counter(tally))?;
    }
    for &gauge in Gauge::ALL {
        gauges.set_item(gauge.name(), slot.gauge(gauge))?;
    }
    for &fault in Fault::ALL {
        faults.set_item(fault_name(fault), slot.faults(fault))?;
    }
    let classes = slot.classes().into_iter();
    let classes: Vec<_> = classes
        .map(|class| (class.label, class.counts, class.histogram, class.calls))
        .collect();
    all.set_item("tallies", tallies)?;
    all.set_item("gauges", gauges)?;
    all.set_item("faults", faults)?;
    all.set_item("codes", slot.codes())?;
    all.set_item("lag", slot.lag())?;
    all.set_item("checks_text", slot.text())?;
    all.set_item("classes", classes)?;
    all.set_item("clients", client_metrics::clients(py, slot)?)?;
    Ok(all)
}

/// What watches one reactor.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Observer {
    slot: MetricsSlot,
    lines: Option<Arc<Lines>>,
    spans: Option<Arc<Spans>>,
    client_spans: Option<Arc<Spans<ClientSpan>>>,
    /// Kind and label of the clients of databases, in the order of their numbers.
    clients: Mutex<Vec<(String, String)>>,
    utc_offset_s: Arc<AtomicI64>,
    /// Until a reactor takes it.
    made: Mutex<Option<(citius_observe::Observer, Vec<String>)>>,
}

#[pymethods]
impl Observer {
    #[new]
    #[pyo3(signature = (*, metrics = None, slot = 0, access_log = None, access_log_fd = None, access_log_sample = 1.0,
                        request_id = None, trace = false, trace_sample = 1.0, spans = false,
                        path_patterns = Vec::new(), health = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword arguments of a Python constructor"
    )]
    fn new(
        metrics: Option<&Bound<'_, SharedMetrics>>,
        slot: usize,
        access_log: Option<&str>,
        access_log_fd: Option<i32>,
        access_log_sample: f64,
        request_id: Option<String>,
        trace: bool,
        trace_sample: f64,
        spans: bool,
        path_patterns: Vec<String>,
        health: Option<String>,
    ) -> PyResult<Self> {
        let slot = match metrics {
            Some(metrics) => metrics.get().slot(slot)?,
            None => MetricsSlot::leak(),
        };
        let request_id = request_id.map(|name| name.to_ascii_lowercase());
        if let Some(name) = &request_id
            && !citius_http::fields::is_token(name.as_bytes())
        {
            return Err(PyValueError::new_err(format!(
                "{name:?} is no name of a header"
            )));
        }
        let log = access_log
            .map(|text| open_log(text, access_log_fd))
            .transpose()?;
        let client_spans = spans.then(Arc::default);
        let spans = spans.then(Arc::<Spans>::default);
        let utc_offset_s = Arc::new(AtomicI64::new(0));
        let made = citius_observe::Observer::new(observer::Options {
            slot,
            log: log
                .as_ref()
                .map(|(lines, format)| (Arc::clone(lines), format.clone())),
            log_share: access_log_sample,
            utc_offset_s: Arc::clone(&utc_offset_s),
            request_id,
            traces: trace,
            trace_share: trace_sample,
            spans: spans.clone(),
            health,
        });
        Ok(Self {
            slot,
            lines: log.map(|(lines, _)| lines),
            spans,
            client_spans,
            clients: Mutex::default(),
            utc_offset_s,
            made: Mutex::new(Some((made, path_patterns))),
        })
    }

    /// The loop is alive: how late it was, and what waits for the thread pool.
    #[pyo3(signature = (*, now_ms, lag_us, queue_length = 0, queue_age_us = 0, utc_offset_s = 0))]
    fn heartbeat(
        &self,
        now_ms: u64,
        lag_us: u64,
        queue_length: u64,
        queue_age_us: u64,
        utc_offset_s: i64,
    ) {
        self.utc_offset_s.store(utc_offset_s, Ordering::Relaxed);
        self.slot.add_lag(lag_us);
        self.slot.set(Gauge::BeatAt, now_ms);
        self.slot.set(Gauge::QueueLength, queue_length);
        self.slot.set(Gauge::QueueAge, queue_age_us);
    }

    /// Where the worker is in its life: 0 starting, 1 ready, 2 draining.
    fn set_state(&self, state: u64, pid: u64) {
        self.slot.set(Gauge::Pid, pid);
        self.slot.set(Gauge::State, state);
    }

    /// What the application's readiness checks found.
    fn set_checks(&self, passed: bool, text: &str) {
        self.slot.set(Gauge::Checks, if passed { 1 } else { 2 });
        self.slot.set_text(text);
    }

    /// An exception that was not handled.
    fn add_exception(&self) {
        self.slot.add_from_any_thread(Counter::HandlerExceptions, 1);
    }

    /// Its own counters.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.count_dropped();
        read(py, self.slot)
    }

    /// Access lines lost so far, and what went wrong since the last call.
    fn log_failure(&self) -> (u64, Option<String>) {
        self.count_dropped();
        match &self.lines {
            Some(lines) => (lines.dropped(), lines.take_error()),
            None => (0, None),
        }
    }

    /// Writes what is left of the access log; `False` if that took longer than `patience_s`.
    fn close(&self, py: Python<'_>, patience_s: f64) -> bool {
        let Some(lines) = &self.lines else {
            return true;
        };
        let patience = Duration::try_from_secs_f64(patience_s).unwrap_or_default();
        py.detach(|| lines.close(patience))
    }

    /// Requests that have ended since the last call, as spans.
    fn take_spans<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let Some(spans) = &self.spans else {
            return Ok(Vec::new());
        };
        let taken = spans.take().into_iter();
        taken.map(|span| span_dict(py, &span)).collect()
    }

    /// Operations of clients of databases that have ended since the last call, as spans.
    fn take_client_spans<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let Some(spans) = &self.client_spans else {
            return Ok(Vec::new());
        };
        let taken = spans.take().into_iter();
        taken
            .map(|span| client_metrics::span_dict(py, &span))
            .collect()
    }

    /// Spans that found no room.
    #[getter]
    fn spans_dropped(&self) -> u64 {
        let of_requests = self.spans.as_ref().map_or(0, |spans| spans.dropped());
        let of_clients = self
            .client_spans
            .as_ref()
            .map_or(0, |spans| spans.dropped());
        of_requests + of_clients
    }

    /// The number of a client of a database and its counters; `None` if there are too many clients. A client of the
    /// same kind and label is the same one. `parent` returns the current span, if it is sampled.
    fn client(
        &self,
        kind: &str,
        label: &str,
        parent: Option<Py<PyAny>>,
    ) -> Option<(usize, ClientMetrics)> {
        let mut clients = lock(&self.clients);
        let known = clients
            .iter()
            .position(|known| known.0 == kind && known.1 == label);
        let number = known.unwrap_or(clients.len());
        let cells = ClientCells::new(self.slot, number)?;
        if known.is_none() {
            clients.push((kind.to_owned(), label.to_owned()));
            cells.describe(kind, label);
        }
        let tracing = self.client_spans.clone().zip(parent);
        Some((number, ClientMetrics::new(number, cells, tracing)))
    }
}

impl Observer {
    /// For the reactor: the observer itself, once, knowing the gateway's routes.
    pub(crate) fn start(
        &self,
        (labels, procedures): (&[String], &[u16]),
    ) -> PyResult<Box<citius_observe::Observer>> {
        let (mut observer, patterns) = lock(&self.made)
            .take()
            .ok_or_else(|| PyRuntimeError::new_err("the observer watches another reactor"))?;
        for label in labels {
            observer.class_of(label);
        }
        for &class in procedures {
            observer.mark_procedure(class);
        }
        for pattern in patterns {
            observer
                .add_pattern(&pattern)
                .map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        Ok(Box::new(observer))
    }

    /// The writer's thread has no slot of its own to count in.
    fn count_dropped(&self) {
        if let Some(lines) = &self.lines {
            self.slot.raise(Counter::LogLinesDropped, lines.dropped());
        }
    }
}

fn span_dict<'py>(py: Python<'py>, span: &citius_observe::Span) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if let Some(trace) = span.trace() {
        dict.set_item("trace_id", text(&trace.trace_id))?;
        dict.set_item("span_id", text(&trace.span_id))?;
        dict.set_item("parent_id", trace.parent_id.map(|id| text(&id)))?;
        dict.set_item("flags", trace.flags)?;
    }
    let (path, query) = span.path_and_query();
    dict.set_item("started_us", span.started_us)?;
    dict.set_item("duration_us", span.duration_us)?;
    dict.set_item("method", text(span.method()))?;
    dict.set_item("path", text(path))?;
    dict.set_item("query", text(query))?;
    dict.set_item("route", &*span.route)?;
    dict.set_item("status", span.status)?;
    dict.set_item("bytes", span.bytes)?;
    dict.set_item("http_version", span.version().number())?;
    dict.set_item("scheme", if span.is_secure() { "https" } else { "http" })?;
    let client = span
        .client()
        .map(|client| (client.ip().to_string(), client.port()));
    dict.set_item("client", client)?;
    dict.set_item(
        "user_agent",
        span.user_agent().map(|agent| PyBytes::new(py, agent)),
    )?;
    dict.set_item("fault", span.fault)?;
    dict.set_item("rpc_code", span.rpc_code)?;
    dict.set_item("is_grpc", span.is_grpc())?;
    Ok(dict)
}
