//! A streamed response as the code that drives it sees it: chunks in, actions out. Tests: `tests/gateway/`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use citius_http::{Fault, Fields, Payload};
use citius_reactor::{ResponseAction, StreamCommand, StreamId};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use crate::reactor_handle::ReactorHandle;
use crate::report::Subject;
use crate::response;
use crate::support::{call_back, client_disconnected};
use crate::sync::{Flag, lock};

/// The way out for one streamed response. Callable from any thread.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Stream {
    handle: Arc<ReactorHandle>,
    id: StreamId,
    /// What it is the response to, for messages.
    /// A `citius.Request`.
    request: Mutex<Option<Py<PyAny>>>,
    /// Bytes sent since there was room last.
    sent_bytes: AtomicUsize,
    /// The client has disconnected.
    is_gone: Flag,
    /// `end` or `abort` was called.
    is_over: Flag,
    on_writable: Mutex<Option<Py<PyAny>>>,
    /// What the trailer section is made of at the end.
    trailers: Mutex<Option<Py<PyAny>>>,
}

impl Stream {
    pub(crate) fn new(
        handle: Arc<ReactorHandle>,
        id: StreamId,
        request: Py<PyAny>,
        trailers: Option<Py<PyAny>>,
    ) -> Self {
        Self {
            handle,
            id,
            request: Mutex::new(Some(request)),
            sent_bytes: AtomicUsize::new(0),
            is_gone: Flag::default(),
            is_over: Flag::default(),
            on_writable: Mutex::default(),
            trailers: Mutex::new(trailers),
        }
    }

    /// There is room.
    pub(crate) fn has_room(&self, py: Python<'_>) {
        self.sent_bytes.store(0, Ordering::Release);
        self.call_back(py);
    }

    /// The client has disconnected.
    pub(crate) fn gone(&self, py: Python<'_>) {
        self.is_gone.set();
        self.call_back(py);
    }

    fn call_back(&self, py: Python<'_>) {
        let callback = lock(&self.on_writable).take();
        call_back(py, callback);
    }

    fn post(&self, py: Python<'_>, post: ResponseAction) {
        self.handle.post(py, self.id, StreamCommand::Act(post));
    }

    fn finish(&self, py: Python<'_>, post: ResponseAction) {
        if !self.is_over.is_set() {
            self.is_over.set();
            self.post(py, post);
            drop(self.handle.take(self.id));
        }
    }
}

#[pymethods]
impl Stream {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is taken means that the stream is in use: no garbage.
        if let Ok(trailers) = self.trailers.try_lock() {
            visit.call(&*trailers)?;
        }
        if let Ok(request) = self.request.try_lock() {
            visit.call(&*request)?;
        }
        self.on_writable
            .try_lock()
            .map_or(Ok(()), |on_writable| visit.call(&*on_writable))
    }

    fn __clear__(&self) {
        let on_writable = lock(&self.on_writable).take();
        let trailers = lock(&self.trailers).take();
        let request = lock(&self.request).take();
        drop((on_writable, trailers, request));
    }

    fn send(&self, py: Python<'_>, chunk: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.is_gone.is_set() {
            return Err(client_disconnected(py));
        }
        let bytes = chunk_bytes(chunk)?;
        if !bytes.is_empty() {
            self.sent_bytes.fetch_add(bytes.len(), Ordering::AcqRel);
            self.post(py, ResponseAction::Data(Payload::Shared(bytes)));
        }
        let most = self.handle.limits.write_queue_bytes_max as usize;
        Ok(self.sent_bytes.load(Ordering::Acquire) < most)
    }

    fn on_writable(&self, py: Python<'_>, callback: Py<PyAny>) {
        let replaced = lock(&self.on_writable).replace(callback);
        drop(replaced);
        if self.is_gone.is_set() {
            self.call_back(py);
        } else {
            self.handle.post(py, self.id, StreamCommand::AwaitWritable);
        }
    }

    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let trailers = lock(&self.trailers).take();
        let fields = trailers
            .map(|trailers| trailer_fields(trailers.bind(py)))
            .transpose()?;
        self.finish(py, ResponseAction::End(fields.unwrap_or_default()));
        Ok(())
    }

    /// A message about its request.
    fn _message(&self, py: Python<'_>, what: &str) -> String {
        let request = lock(&self.request)
            .as_ref()
            .map(|request| request.clone_ref(py));
        let message = request.and_then(|request| {
            let message = request.call_method1(py, pyo3::intern!(py, "_message"), (what,));
            message.and_then(|message| message.extract(py)).ok()
        });
        message
            .unwrap_or_else(|| Subject::named(format!("request {}", self.id.stream)).message(what))
    }

    fn abort(&self, py: Python<'_>) {
        self.finish(py, ResponseAction::Abort);
    }
}

/// The trailer section: a mapping or pairs, or what a function without parameters makes of them now
/// that the body is complete.
fn trailer_fields(trailers: &Bound<'_, PyAny>) -> PyResult<Fields> {
    let trailers = if trailers.is_callable() {
        trailers.call0()?
    } else {
        trailers.clone()
    };
    let refused = |fault: Fault| PyValueError::new_err(format!("trailers: {}", fault.text()));
    response::fields(&response::pairs(&trailers)?)?.map_err(refused)
}

/// A `bytes` with what a `bytearray` or a `memoryview` holds now; `None` for anything else.
pub(crate) fn copy_of_buffer<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if !value.is_instance_of::<PyByteArray>() && !value.is_instance_of::<PyMemoryView>() {
        return Ok(None);
    }
    let copied = value.py().get_type::<PyBytes>().call1((value,))?;
    Ok(Some(copied.cast_into::<PyBytes>()?))
}

/// The bytes of a piece that an application yields.
fn chunk_bytes(chunk: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = chunk.cast::<PyBytes>() {
        return Ok(Bytes::from_owner(PyBackedBytes::from(bytes.clone())));
    }
    if let Ok(text) = chunk.cast::<PyString>() {
        return Ok(Bytes::copy_from_slice(text.to_str()?.as_bytes()));
    }
    if let Some(bytes) = copy_of_buffer(chunk)? {
        return Ok(Bytes::from_owner(PyBackedBytes::from(bytes)));
    }
    Err(pyo3::exceptions::PyTypeError::new_err(format!(
        "a streamed answer consists of bytes or str, but its iterator yielded {}",
        chunk.get_type().name()?
    )))
}
