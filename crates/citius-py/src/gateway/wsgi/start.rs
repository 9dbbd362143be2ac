//! `start_response` and the `write` that it returns (PEP 3333, "The `start_response()` Callable").
//!
//! Arguments are validated in the call, so that an error raises in the application. If the application keeps neither callable,
//! the next request gets the same ones (I18). Tests: `tests/wsgi/`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use citius_base::reuse::{Known, Reuse};
use citius_base::sync::lock;
use citius_http::{Declared, Fields, Limits};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::Py_ssize_t;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::start_state::{StartState, push_field};

/// The response of one application call so far.
#[derive(Default)]
pub(super) struct ResponseState {
    /// `start_response` has been called.
    pub(super) is_started: bool,
    pub(super) start_state: StartState,
    /// There are body bytes: the head can no longer be replaced.
    pub(super) is_committed: bool,
    /// The head is on its way.
    pub(super) is_sent: bool,
    /// What `write` was given and could not send, because the reactor's own thread is at work here.
    pub(super) written: Vec<u8>,
    /// Once the head is on its way.
    pub(super) declared: Declared,
    pub(super) trailers: Trailers,
    /// What is logged at the end of the response.
    pub(super) mistake: Option<&'static str>,
    /// The call that all of this is about.
    call: u32,
}

impl ResponseState {
    /// The announced length of the body.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.start_state.content_length.filter(|_| self.is_started)
    }

    /// The announced body has been sent, and there can be nothing behind it.
    pub(super) fn is_complete(&self) -> bool {
        self.declared.left() == Some(0) && self.takes_no_trailers()
    }

    pub(super) fn takes_no_trailers(&self) -> bool {
        matches!(self.trailers, Trailers::NotTaken)
    }

    /// Has the protocol say how long the body is, which it knows.
    pub(super) fn forget_content_length(&mut self) {
        self.start_state.content_length = None;
    }

    /// Makes it ready for another call. What was announced is kept, to be known again.
    fn reset(&mut self, call: u32) {
        self.is_started = false;
        self.is_committed = false;
        self.is_sent = false;
        self.written = Vec::new();
        self.declared = Declared::default();
        self.trailers = Trailers::NotTaken;
        self.mistake = None;
        self.call = call;
    }
}

/// What stands behind the body.
#[derive(Default)]
pub(super) enum Trailers {
    /// The client takes none.
    #[default]
    NotTaken,
    /// There may be some, so the application says itself where the body ends.
    None,
    Sent(Fields),
}

impl Trailers {
    pub(super) fn are_sent(&self) -> bool {
        matches!(self, Self::Sent(_))
    }

    /// Those that have been sent.
    pub(super) fn take(&mut self) -> Option<Fields> {
        match std::mem::take(self) {
            Self::Sent(fields) => Some(fields),
            _ => None,
        }
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        if !self.are_sent() {
            *self = Self::Sent(Fields::default());
        }
        if let Self::Sent(fields) = self {
            // It was checked a moment ago.
            let _ = fields.push(name, value);
        }
    }
}

/// What sends as `write` is called.
pub(super) trait WriteNow: Send + Sync {
    fn write(
        self: Arc<Self>,
        py: Python<'_>,
        shared: &Shared,
        bytes: &Bound<'_, PyBytes>,
    ) -> PyResult<()>;
}

/// What the two callables of a request share.
pub(super) struct Shared {
    /// Bytes that `write` may collect.
    collected_bytes_max: usize,
    /// Absent while it is borrowed.
    state: Mutex<Option<Box<ResponseState>>>,
    /// Where `write` sends at once; without one it collects.
    late: Mutex<Option<Arc<dyn WriteNow>>>,
    /// Numbers the calls that these are made for; the state of an earlier call is reset when it is borrowed.
    call: AtomicU32,
}

/// The state, taken out: no lock is held meanwhile, for using it may run Python code.
pub(super) struct BorrowedState<'a> {
    shared: &'a Shared,
    /// Present until it is put back.
    state: Option<Box<ResponseState>>,
}

impl Shared {
    pub(super) fn borrow_state(&self) -> BorrowedState<'_> {
        let mut state = lock(&self.state).take().unwrap_or_default();
        let call = self.call.load(Ordering::Relaxed);
        if state.call != call {
            state.reset(call);
        }
        BorrowedState {
            shared: self,
            state: Some(state),
        }
    }

    pub(super) fn set_late(&self, late: Option<Arc<dyn WriteNow>>) {
        let replaced = std::mem::replace(&mut *lock(&self.late), late);
        drop(replaced);
    }
}

impl std::ops::Deref for BorrowedState<'_> {
    type Target = ResponseState;

    fn deref(&self) -> &ResponseState {
        self.state
            .as_ref()
            .expect("put back only when it is dropped")
    }
}

impl std::ops::DerefMut for BorrowedState<'_> {
    fn deref_mut(&mut self) -> &mut ResponseState {
        self.state
            .as_mut()
            .expect("put back only when it is dropped")
    }
}

impl Drop for BorrowedState<'_> {
    fn drop(&mut self) {
        *lock(&self.shared.state) = self.state.take();
    }
}

/// The owner of the method that is handed out as `start_response`.
#[pyclass(frozen, module = "citius._core", name = "_Start")]
pub(crate) struct Start {
    shared: Arc<Shared>,
    write: Py<Write>,
}

/// What `start_response` returns.
#[pyclass(frozen, module = "citius._core", name = "_Write")]
pub(crate) struct Write {
    shared: Arc<Shared>,
}

#[pymethods]
impl Start {
    #[pyo3(signature = (status, headers, exc_info = None, /))]
    fn start_response(
        &self,
        py: Python<'_>,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
        exc_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Write>> {
        let mut state = self.shared.borrow_state();
        match exc_info.filter(|exc_info| !exc_info.is_none()) {
            // The response has been started; the code that catches this can only end it.
            Some(exc_info) if state.is_committed => return Err(raised(exc_info)?),
            None if state.is_started => {
                return Err(PyRuntimeError::new_err(
                    "start_response has been called before; a second call is for an error, with \
                     exc_info",
                ));
            }
            _ => {}
        }
        state.is_started = false;
        let outcome = state.start_state.set_start(status, headers);
        state.is_started = outcome.is_ok();
        outcome.map(|()| self.write.clone_ref(py))
    }
}

#[pymethods]
impl Write {
    #[pyo3(signature = (data, /))]
    fn __call__(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = block(data, "write() takes")?;
        let late = lock(&self.shared.late).clone();
        if let Some(late) = late {
            return late.write(py, &self.shared, bytes);
        }
        let (mut state, bytes) = (self.shared.borrow_state(), bytes.as_bytes());
        let most = self.shared.collected_bytes_max;
        if bytes.len() > most.saturating_sub(state.written.len()) {
            return Err(PyRuntimeError::new_err(format!(
                "write() has collected {} bytes and may hold {most} (--wsgi-write-bytes-max): on the \
                 server's own thread it cannot wait for them to leave; return an iterable, or serve \
                 with --threads",
                state.written.len()
            )));
        }
        state.is_committed |= !bytes.is_empty();
        state.written.extend_from_slice(bytes);
        Ok(())
    }
}

/// `wsgi.ext.http.send_trailers`: fields behind the body, as the ASGI extension has them. Before the iterable ends.
#[pyclass(frozen, module = "citius._core", name = "_SendTrailers")]
pub(crate) struct SendTrailers {
    shared: Arc<Shared>,
    call: u32,
}

#[pymethods]
impl SendTrailers {
    #[pyo3(signature = (trailers, /))]
    fn __call__(&self, trailers: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut fields = Fields::default();
        for field in trailers.try_iter()? {
            push_field("send_trailers", &field?, |name, value| {
                fields.push(name, value)
            })?;
        }
        let mut state = self.shared.borrow_state();
        if self.call != self.shared.call.load(Ordering::Relaxed) || !state.is_started {
            return Err(PyRuntimeError::new_err(
                "trailers are sent after start_response and before the response has ended",
            ));
        }
        for (name, value) in fields.iter() {
            state.trailers.push(name, value);
        }
        Ok(())
    }
}

/// A piece of a body.
pub(super) fn block<'a, 'py>(
    data: &'a Bound<'py, PyAny>,
    what: &str,
) -> PyResult<&'a Bound<'py, PyBytes>> {
    data.cast::<PyBytes>().map_err(|_| {
        let kind = data.get_type();
        let kind = kind
            .name()
            .map_or_else(|_| String::new(), |name| name.to_string());
        PyTypeError::new_err(format!("{what} bytes (PEP 3333), not {kind}"))
    })
}

/// The exception of `sys.exc_info()`, with its traceback.
fn raised(exc_info: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let value = exc_info.get_item(1)?;
    let trace = exc_info.get_item(2)?;
    let value = value.call_method1(intern!(value.py(), "with_traceback"), (trace,))?;
    Ok(PyErr::from_value(value))
}

/// The callables of one request.
pub(super) struct Callables {
    pub(super) shared: Arc<Shared>,
    pub(super) start_response: Py<PyAny>,
    start: Py<Start>,
    write: Py<Write>,
}

impl Callables {
    pub(super) fn new(py: Python<'_>, limits: &Limits) -> PyResult<Self> {
        let shared = Arc::new(Shared {
            collected_bytes_max: limits.wsgi_write_bytes_max as usize,
            state: Mutex::default(),
            late: Mutex::default(),
            call: AtomicU32::new(0),
        });
        let write = Write {
            shared: Arc::clone(&shared),
        };
        let write = Py::new(py, write)?;
        let start = Start {
            shared: Arc::clone(&shared),
            write: write.clone_ref(py),
        };
        let start = Bound::new(py, start)?;
        Ok(Self {
            shared,
            start_response: start.getattr(intern!(py, "start_response"))?.unbind(),
            start: start.unbind(),
            write,
        })
    }

    /// What an application sends trailers with.
    pub(super) fn send_trailers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, SendTrailers>> {
        self.shared.borrow_state().trailers = Trailers::None;
        let shared = Arc::clone(&self.shared);
        let call = shared.call.load(Ordering::Relaxed);
        Bound::new(py, SendTrailers { shared, call })
    }

    /// Has them serve another call: what they got since the call before belongs to no call.
    #[inline]
    pub(super) fn renew(&self) {
        self.shared.call.fetch_add(1, Ordering::Relaxed);
    }
}

impl Reuse for Callables {
    #[inline]
    fn is_fresh(&mut self, py: Python<'_>, lent: Py_ssize_t) -> bool {
        Known::WSGI_START_RESPONSE.are_all(py, &self.start_response, lent)
            && Known::WSGI_START.are_all(py, &self.start, lent)
            && Known::WSGI_WRITE.are_all(py, &self.write, lent)
            // These callables, and the state of both.
            && Arc::strong_count(&self.shared) == 3
    }
}
