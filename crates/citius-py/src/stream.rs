//! A streamed response as the code that drives it sees it: chunks in, actions out.
//!
//! What is sent while a turn steps the driver is queued, and handed to the turn's reply when the step ends: the head of the
//! response, what was ready, and its end if it came leave in one write. At any other time commands go to the mailbox.
//! Tests: `tests/gateway/test_event_streams.py`, `tests/server/test_streams.py`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::Subject;
use citius_base::support::{call_back, client_disconnected};
use citius_base::sync::{Flag, lock};
use citius_http::{FAST_PATHS, Fault, Fields, Payload};
use citius_reactor::{ResponseAction, StreamCommand, StreamId, coarse_ms};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use crate::response;
use crate::server_events::{append_data, append_event, plain_text};

/// Tells a request that its stream has ended, and whether it has failed.
pub(crate) type EndStreamed = fn(&Bound<'_, PyAny>, bool);

/// The way out for one streamed response. Callable from any thread.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Stream {
    handle: Arc<ReactorHandle>,
    id: StreamId,
    /// What it is the response to, for messages.
    /// A `citius.Request`.
    request: Mutex<Option<Py<PyAny>>>,
    on_end: EndStreamed,
    /// Bytes sent since there was room last.
    sent_bytes: AtomicUsize,
    /// The turn in which there was room last, before what has filled the queue was sent.
    filled_in: AtomicU64,
    /// When the last event was sent, in milliseconds of the coarse clock.
    event_sent_ms: AtomicU64,
    step: Mutex<Step>,
    /// The client has disconnected.
    is_gone: Flag,
    /// `end` or `abort` was called.
    is_over: Flag,
    on_writable: Mutex<Option<Py<PyAny>>>,
    /// What the trailer section is made of at the end.
    trailers: Mutex<Option<Py<PyAny>>>,
}

/// What is sent during a step of the driver within a turn.
///
/// Invariant: in a step everything is queued, in order, and at its end the reply gets it before the turn takes anything from
/// the mailbox. So nothing that is posted later, by this thread or another, comes before what was queued.
#[derive(Default)]
struct Step {
    is_running: bool,
    commands: Vec<StreamCommand>,
    /// Events that follow the commands: they leave in one piece.
    events: Vec<u8>,
}

impl Step {
    /// Queues what follows the events that are here.
    fn push(&mut self, command: StreamCommand) {
        self.seal_events();
        self.commands.push(command);
    }

    /// Appends an event that is a text, and returns how long it is; `None` outside of a step.
    #[inline]
    fn append_text(&mut self, text: &[u8]) -> Option<usize> {
        if !self.is_running {
            return None;
        }
        let before = self.events.len();
        append_data(text, &mut self.events);
        Some(self.events.len() - before)
    }

    fn seal_events(&mut self) {
        if !self.events.is_empty() {
            let events = Bytes::from(std::mem::take(&mut self.events));
            self.commands.push(data(events));
        }
    }
}

fn data(bytes: Bytes) -> StreamCommand {
    StreamCommand::Act(ResponseAction::Data(Payload::Shared(bytes)))
}

impl Stream {
    pub(crate) fn new(
        handle: Arc<ReactorHandle>,
        id: StreamId,
        (request, on_end): (Py<PyAny>, EndStreamed),
        trailers: Option<Py<PyAny>>,
    ) -> Self {
        Self {
            handle,
            id,
            request: Mutex::new(Some(request)),
            on_end,
            sent_bytes: AtomicUsize::new(0),
            filled_in: AtomicU64::new(0),
            event_sent_ms: AtomicU64::new(0),
            step: Mutex::default(),
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

    /// A turn steps the driver from here on, until [`end_step`](Self::end_step).
    pub(crate) fn begin_step(&self) {
        lock(&self.step).is_running = FAST_PATHS;
    }

    /// Hands what the step has sent to `deliver`.
    ///
    /// # Errors
    /// The first fault of a command; those that follow it are handed over all the same, as from the mailbox.
    pub(crate) fn end_step(
        &self,
        mut deliver: impl FnMut(StreamCommand) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut step = std::mem::take(&mut *lock(&self.step));
        step.seal_events();
        let mut outcome = Ok(());
        for command in step.commands {
            outcome = outcome.and(deliver(command));
        }
        outcome
    }

    /// Queues a command in a step, and posts it at any other time.
    fn command(&self, py: Python<'_>, command: StreamCommand) {
        let mut step = lock(&self.step);
        if step.is_running {
            return step.push(command);
        }
        drop(step);
        self.handle.post(py, self.id, command);
    }

    fn finish(&self, py: Python<'_>, action: ResponseAction) {
        if !self.is_over.is_set() {
            self.is_over.set();
            // That its client has left is no failure of a stream.
            let is_failed = matches!(action, ResponseAction::Abort) && !self.is_gone.is_set();
            self.command(py, StreamCommand::Act(action));
            drop(self.handle.take(self.id));
            let request = lock(&self.request);
            let request = request.as_ref().map(|request| request.clone_ref(py));
            if let Some(request) = request {
                (self.on_end)(request.bind(py), is_failed);
            }
        }
    }

    /// Counts bytes that are sent; whether there is room for more.
    fn count(&self, bytes: usize) -> bool {
        let before = self.sent_bytes.fetch_add(bytes, Ordering::AcqRel);
        let most = self.handle.limits.write_queue_bytes_max as usize;
        let has_room = before + bytes < most;
        if !has_room && before < most {
            let turn = self.handle.turn.load(Ordering::Relaxed);
            self.filled_in.store(turn, Ordering::Relaxed);
        }
        has_room
    }

    /// Encodes what an iterator yields while there is room; whether it has ended.
    fn take_events(&self, iterator: &Bound<'_, PyAny>, encoded: &mut Vec<u8>) -> PyResult<bool> {
        let sent = self.sent_bytes.load(Ordering::Acquire);
        let room = (self.handle.limits.write_queue_bytes_max as usize).saturating_sub(sent);
        for event in iterator.try_iter()? {
            append_event(&event?, encoded)?;
            if encoded.len() >= room {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn check_client(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_gone.is_set() {
            return Err(client_disconnected(py));
        }
        Ok(())
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
        self.check_client(py)?;
        let bytes = chunk_bytes(chunk)?;
        let has_room = self.count(bytes.len());
        if !bytes.is_empty() {
            self.command(py, data(bytes));
        }
        Ok(has_room)
    }

    fn send_event(&self, py: Python<'_>, event: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.check_client(py)?;
        self.event_sent_ms.store(coarse_ms(), Ordering::Relaxed);
        if let Some(text) = plain_text(event)
            && let Some(length) = lock(&self.step).append_text(text)
        {
            return Ok(self.count(length));
        }
        let mut encoded = Vec::new();
        append_event(event, &mut encoded)?;
        let has_room = self.count(encoded.len());
        let mut step = lock(&self.step);
        if step.is_running {
            step.events.append(&mut encoded);
        } else {
            drop(step);
            self.handle.post(py, self.id, data(encoded.into()));
        }
        Ok(has_room)
    }

    fn send_events(&self, py: Python<'_>, iterator: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.check_client(py)?;
        let mut encoded = Vec::new();
        let taken = self.take_events(iterator, &mut encoded);
        // What was yielded before an exception is sent.
        self.count(encoded.len());
        if !encoded.is_empty() {
            self.command(py, data(encoded.into()));
        }
        taken
    }

    /// Whether the client has been offered what has filled the queue: a turn that began later has ended.
    fn is_offered(&self) -> bool {
        let turn = self.handle.turn.load(Ordering::Relaxed);
        turn >= self.filled_in.load(Ordering::Relaxed) + 2
    }

    fn idle_ms(&self) -> u64 {
        coarse_ms().saturating_sub(self.event_sent_ms.load(Ordering::Relaxed))
    }

    fn on_writable(&self, py: Python<'_>, callback: Py<PyAny>) {
        let replaced = lock(&self.on_writable).replace(callback);
        drop(replaced);
        if self.is_gone.is_set() {
            self.call_back(py);
        } else {
            self.command(py, StreamCommand::AwaitWritable);
        }
    }

    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let trailers = lock(&self.trailers).take();
        let fields = trailers
            .map(|trailers| {
                let (fields, code) = trailer_fields(trailers.bind(py))?;
                if let Some(code) = code.filter(|_| !self.is_over.is_set()) {
                    self.command(py, StreamCommand::RpcCode(code));
                }
                PyResult::Ok(fields)
            })
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
/// that the body is complete. Those of a remote procedure call have its code besides (`connectrpc/status.py`).
pub(crate) fn trailer_fields(trailers: &Bound<'_, PyAny>) -> PyResult<(Fields, Option<u8>)> {
    let trailers = if trailers.is_callable() {
        trailers.call0()?
    } else {
        trailers.clone()
    };
    let refused = |fault: Fault| PyValueError::new_err(format!("trailers: {}", fault.text()));
    let code = trailers.getattr_opt(pyo3::intern!(trailers.py(), "rpc_code"))?;
    let code = code.map(|code| code.extract()).transpose()?;
    let fields = response::fields(&response::pairs(&trailers)?)?.map_err(refused)?;
    Ok((fields, code))
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

/// The bytes of a buffer whose items are bytes, such as an array or a mapped file; `None` for what is no buffer.
#[cold]
pub(crate) fn bytes_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = value.py();
    let Ok(view) = PyMemoryView::from(value) else {
        return Ok(None);
    };
    let item_bytes: usize = view.getattr(pyo3::intern!(py, "itemsize"))?.extract()?;
    if item_bytes != 1 {
        return Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "{} has items of {item_bytes} bytes, whose order clients cannot know; send its tobytes() or tolist()",
            value.get_type().name()?
        )));
    }
    let bytes = view.call_method0(pyo3::intern!(py, "tobytes"))?;
    Ok(Some(bytes.cast_into::<PyBytes>()?))
}

/// The bytes of a piece that an application yields.
fn chunk_bytes(chunk: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = chunk.cast::<PyBytes>() {
        return Ok(Bytes::from_owner(PyBackedBytes::from(bytes.clone())));
    }
    if let Ok(text) = chunk.cast::<PyString>() {
        return Ok(Bytes::copy_from_slice(text.to_str()?.as_bytes()));
    }
    let bytes = match copy_of_buffer(chunk)? {
        None => bytes_of(chunk)?,
        some => some,
    };
    if let Some(bytes) = bytes {
        return Ok(Bytes::from_owner(PyBackedBytes::from(bytes)));
    }
    Err(pyo3::exceptions::PyTypeError::new_err(format!(
        "a streamed answer consists of bytes or str, but its iterator yielded {}",
        chunk.get_type().name()?
    )))
}
