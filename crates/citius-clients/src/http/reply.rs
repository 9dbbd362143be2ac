//! A response as Python sees it, and reading its content while it comes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use citius_base::awaitable::Poll;
use citius_base::progress::Sleeper;
use citius_base::support::call_back;
use citius_base::sync::lock;
use citius_base::waiter::Waiter;
use citius_chan::{Found, WAITING_BYTES_MAX};
use citius_http::{Fault, Fields};
use citius_reactor::coarse_ms;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::call::{Body, CallConnection, CallPool, HttpCall, sleeper_for, wait_serially};
use super::errors::Failure;
use super::forward::{response_fields, response_list};
use super::head::{Collected, Head, Pairs};
use super::servers::Lease;
use super::upload::HttpUpload;

/// The content of a response that is read while it comes.
pub(super) type Incoming = citius_chan::Incoming<Sleeper, Failure>;

/// A response, to be handed to the code that waits for it.
pub(crate) struct Response {
    pub(crate) call: Py<HttpCall>,
    pub(crate) head: Head,
    pub(crate) informational: Vec<(u16, Pairs)>,
    pub(crate) body: Collected,
    pub(crate) trailers: Pairs,
    /// The content follows here.
    pub(crate) incoming: Option<Arc<Incoming>>,
    pub(crate) begun_ms: u64,
    pub(crate) is_reused: bool,
}

/// A response: whole, or with content that is read from it.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct HttpReply {
    head: Head,
    informational: Vec<(u16, Pairs)>,
    body: Py<PyBytes>,
    trailers: Pairs,
    pub(super) streamed: Option<Streamed>,
    remote: Arc<str>,
    origin: Arc<str>,
    is_reused: bool,
    /// Milliseconds that it waited for a connection, and from then to the head.
    times_ms: (u64, u64),
    /// Microseconds from the start of the call to the head, if that is measured.
    upstream_us: Option<u64>,
    /// Called when the content has ended or is not read any more.
    on_end: Mutex<Option<Py<PyAny>>>,
    /// Dropped then.
    lease: Mutex<Option<Lease>>,
}

/// Content that follows.
pub(super) struct Streamed {
    pub(super) incoming: Arc<Incoming>,
    connection: Box<dyn CallConnection>,
    pool: Box<dyn CallPool>,
    /// What goes into a tunnel.
    tunnel: Option<Py<HttpUpload>>,
    is_left: AtomicBool,
}

impl Streamed {
    /// The content is bytes of another protocol.
    pub(super) fn is_tunnel(&self) -> bool {
        self.tunnel.is_some()
    }

    /// A reader has taken content.
    pub(super) fn note_read(&self, py: Python<'_>, bytes: usize, reopens: bool) {
        self.connection
            .note_read(py, &self.incoming, bytes, reopens);
    }

    /// A reader waits for content.
    pub(super) fn note_reader(&self, py: Python<'_>) {
        self.connection.note_reader(py, &self.incoming, coarse_ms());
    }
}

impl HttpReply {
    /// `follows` gives what the content is read from.
    pub(crate) fn new(
        py: Python<'_>,
        response: Response,
        (remote, origin): (&Arc<str>, &Arc<str>),
        follows: impl FnOnce() -> (Box<dyn CallConnection>, Box<dyn CallPool>),
    ) -> Self {
        let call = response.call.get();
        let streamed = response.incoming.map(|incoming| {
            let (connection, pool) = follows();
            Streamed {
                incoming,
                connection,
                pool,
                tunnel: match &call.body {
                    Body::Upload(upload) if response.head.is_switch() => Some(upload.clone_ref(py)),
                    _ => None,
                },
                is_left: AtomicBool::new(false),
            }
        });
        let queued_ms = response.begun_ms.saturating_sub(call.started_ms());
        Self {
            head: response.head,
            informational: response.informational,
            body: response.body.into_bytes(py),
            trailers: response.trailers,
            streamed,
            remote: Arc::clone(remote),
            origin: Arc::clone(origin),
            is_reused: response.is_reused,
            times_ms: (queued_ms, coarse_ms().saturating_sub(response.begun_ms)),
            upstream_us: call.elapsed_us(),
            on_end: Mutex::default(),
            lease: Mutex::default(),
        }
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether its connection has become a tunnel.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.streamed.as_ref().is_some_and(Streamed::is_tunnel)
    }

    /// The client has been told of the tunnel: what it sends goes in.
    pub(crate) fn open_tunnel(&self, py: Python<'_>) {
        let tunnel = self.streamed.as_ref().and_then(|it| it.tunnel.as_ref());
        if let Some(upload) = tunnel {
            upload.get().open_tunnel(py);
        }
    }

    /// Microseconds that the other server took, if that is measured.
    pub(super) fn upstream_us(&self) -> Option<u64> {
        self.upstream_us
    }

    pub(super) fn is_reused(&self) -> bool {
        self.is_reused
    }

    pub(super) fn head(&self) -> &Head {
        &self.head
    }

    /// Its fields for the client of a gateway.
    ///
    /// # Errors
    /// One of them cannot be sent.
    pub(super) fn fields_for_client(&self, via: &str) -> Result<Fields, Fault> {
        response_fields(&mut *self.head.fields(), self.head.version(), via)
    }

    /// Keeps something until the content has been passed on, or is not read any more.
    pub(super) fn keep(&self, lease: Lease) {
        let replaced = lock(&self.lease).replace(lease);
        drop(replaced);
    }

    /// All of the content, if it is there.
    pub(crate) fn take_whole(&self, py: Python<'_>) -> Option<Vec<u8>> {
        let streamed = self.streamed.as_ref().filter(|it| !it.is_tunnel())?;
        let whole = streamed.incoming.take_whole()?;
        streamed.note_read(py, whole.len(), whole.len() >= WAITING_BYTES_MAX);
        Some(whole)
    }

    /// No code reads the content any more.
    pub(crate) fn leave(&self, py: Python<'_>) {
        let Some(streamed) = &self.streamed else {
            return;
        };
        if streamed.is_left.swap(true, Ordering::Relaxed) {
            return;
        }
        drop(streamed.incoming.leave());
        drop(lock(&self.lease).take());
        let on_end = lock(&self.on_end).take();
        call_back(py, on_end);
        if !streamed.incoming.is_over() {
            streamed.connection.leave(py, &streamed.incoming);
        }
    }
}

impl Drop for HttpReply {
    fn drop(&mut self) {
        if self.streamed.is_some() {
            Python::attach(|py| self.leave(py));
        }
    }
}

fn owned_pairs<'py>(py: Python<'py>, fields: &Pairs) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (name, value) in fields {
        list.append((PyBytes::new(py, name), PyBytes::new(py, value)))?;
    }
    Ok(list)
}

#[pymethods]
impl HttpReply {
    #[getter]
    fn status(&self) -> u16 {
        self.head.status()
    }

    #[getter]
    fn http_version(&self) -> &'static str {
        self.head.version()
    }

    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.head.reason())
    }

    /// Names and values as sent, in their order.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for (name, value) in self.head.fields() {
            list.append((PyBytes::new(py, name), PyBytes::new(py, value)))?;
        }
        Ok(list)
    }

    /// Its fields for the client of a gateway, as `str`.
    fn forwarded_fields<'py>(&self, py: Python<'py>, via: &str) -> PyResult<Bound<'py, PyList>> {
        let mut fields = self.head.fields();
        response_list(py, &mut *fields, self.head.version(), via)
    }

    /// Has `callback()` called when the content has been passed on, or is not read any more.
    fn on_end(&self, py: Python<'_>, callback: Py<PyAny>) {
        let replaced = lock(&self.on_end).replace(callback);
        drop(replaced);
        let streamed = self.streamed.as_ref();
        if streamed.is_none_or(|it| it.is_left.load(Ordering::Relaxed)) {
            let on_end = lock(&self.on_end).take();
            call_back(py, on_end);
        }
    }

    /// Whether its connection has become a tunnel.
    #[getter(is_tunnel)]
    fn is_tunnel_now(&self) -> bool {
        self.is_tunnel()
    }

    /// The first value of a field, whatever the case of its name.
    fn field<'py>(&self, py: Python<'py>, name: &[u8]) -> Option<Bound<'py, PyBytes>> {
        self.head.field(name).map(|value| PyBytes::new(py, value))
    }

    /// The content; empty if it is streamed.
    #[getter]
    fn body(&self, py: Python<'_>) -> Py<PyBytes> {
        self.body.clone_ref(py)
    }

    /// Fields behind the content; of a streamed one when it has ended.
    #[getter]
    fn trailers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match &self.streamed {
            Some(streamed) => owned_pairs(py, &streamed.incoming.trailers()),
            None => owned_pairs(py, &self.trailers),
        }
    }

    /// Responses before this one: status and fields.
    #[getter]
    fn informational<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for (status, fields) in &self.informational {
            list.append((status, owned_pairs(py, fields)?))?;
        }
        Ok(list)
    }

    #[getter]
    fn connection_reused(&self) -> bool {
        self.is_reused
    }

    /// The address of the server.
    #[getter]
    fn remote(&self) -> &str {
        &self.remote
    }

    /// Seconds that the request waited for a connection, and from then to the response.
    #[getter]
    #[expect(clippy::cast_precision_loss, reason = "seconds with three decimals")]
    fn times(&self) -> (f64, f64) {
        let (queued, first) = self.times_ms;
        (queued as f64 / 1000.0, first as f64 / 1000.0)
    }

    /// The next of the content; empty at its end.
    fn read(slf: &Bound<'_, Self>) -> HttpRead {
        HttpRead(slf.clone().unbind())
    }

    /// Reads no more: a connection whose response is not complete is closed.
    fn close(&self, py: Python<'_>) {
        self.leave(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(streamed) = &self.streamed {
            streamed.connection.traverse(&visit)?;
            streamed.pool.traverse(&visit)?;
            visit.call(&streamed.tunnel)?;
        }
        if let Ok(on_end) = self.on_end.try_lock() {
            visit.call(&*on_end)?;
        }
        Ok(())
    }
}

/// What a reader awaits.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct HttpRead(Py<HttpReply>);

impl HttpRead {
    fn look<T>(
        &self,
        py: Python<'_>,
        mut sleep: impl FnMut(&dyn CallPool) -> PyResult<(Sleeper, T)>,
    ) -> PyResult<Result<Py<PyAny>, T>> {
        let reply = self.0.get();
        let Some(streamed) = &reply.streamed else {
            return Ok(Ok(PyBytes::new(py, b"").into_any().unbind()));
        };
        loop {
            match streamed.incoming.take() {
                Found::Data(data) => {
                    let bytes = data.piece.as_ref();
                    streamed.note_read(py, bytes.len(), data.reopens);
                    return Ok(Ok(PyBytes::new(py, bytes).into_any().unbind()));
                }
                Found::End | Found::OutputEnd => {
                    return Ok(Ok(PyBytes::new(py, b"").into_any().unbind()));
                }
                Found::Failed(failure) => return Err(failure.error(py, &reply.origin)),
                Found::Nothing => {}
            }
            let (sleeper, token) = sleep(&*streamed.pool)?;
            let now = coarse_ms();
            match streamed.incoming.wait(sleeper, now) {
                Ok(before) => {
                    drop(before);
                    streamed.connection.note_reader(py, &streamed.incoming, now);
                    return Ok(Err(token));
                }
                Err(unused) => drop(unused),
            }
        }
    }

    fn observe(&self, py: Python<'_>) -> PyResult<Poll> {
        let found = self.look(py, |pool| sleeper_for(py, pool))?;
        Ok(found.map_or_else(Waiter::pending, Poll::Ready))
    }

    fn stop(&self) {
        if let Some(streamed) = &self.0.get().streamed {
            drop(streamed.incoming.stop_waiting());
        }
    }
}

#[pymethods]
impl HttpRead {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.observe(py)?.into_next(py)
    }

    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.observe(py)?.into_sent(py)
    }

    #[pyo3(signature = (error, *_rest))]
    fn throw(&self, error: Bound<'_, PyAny>, _rest: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        self.stop();
        Err(PyErr::from_value(error))
    }

    fn close(&self) {
        self.stop();
    }

    /// Waits in this thread or greenlet.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        wait_serially(
            py,
            || self.look(py, |_| Ok(Sleeper::serial())),
            || self.stop(),
        )
    }
}
