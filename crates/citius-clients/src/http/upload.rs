//! Content of a request that is sent while it is made.

use std::sync::{Arc, Mutex};

use citius_base::awaitable::Poll;
use citius_base::passing::{Content, Inbound, Passable, Unsent};
use citius_base::progress::Sleeper;
use citius_base::sync::lock;
use citius_base::waiter::Waiter;
use citius_h1::client::check_trailer;
use citius_http::{BodyLength, Fields};
use citius_reactor::StreamCommand;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::call::{Body, CallConnection, CallPool, HttpCall, sleeper_for, wait_serially};
use super::errors::Failure;
use super::head::Pairs;
use super::request::{refused, with_fields};

/// Bytes that wait to be sent; with more the sender waits.
const WAITING_BYTES_MAX: usize = 64 * 1024;

/// Content that a call sends.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct HttpUpload {
    pool: Box<dyn CallPool>,
    /// Bytes of it, if that was said.
    pub(crate) length: Option<u64>,
    /// The request of a client whose content it is.
    inbound: Option<Inbound>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pieces: Vec<u8>,
    /// Bytes that were given.
    given: u64,
    /// There is no more.
    end: Option<Pairs>,
    /// The connection has taken some of it.
    is_begun: bool,
    /// What is given is dropped: the exchange is over.
    is_closed: bool,
    /// Bytes that the client was asked for and that have not come.
    wanted: u64,
    /// The client has been told of the tunnel that it goes into.
    is_tunnel: bool,
    sleeper: Option<Sleeper>,
    connection: Option<Arc<dyn CallConnection>>,
    /// The request that it is the content of.
    call: Option<Py<HttpCall>>,
}

/// What a connection has taken.
pub(crate) enum Part {
    Some,
    /// The last of it, and the fields that follow.
    Last(Pairs),
}

impl HttpUpload {
    pub(crate) fn new(pool: Box<dyn CallPool>, length: Option<u64>) -> Self {
        Self {
            pool,
            length,
            inbound: None,
            state: Mutex::default(),
        }
    }

    /// The content of a client's request, of which this is there.
    fn of_request(
        pool: Box<dyn CallPool>,
        length: Option<u64>,
        inbound: Inbound,
        unsent: Unsent,
    ) -> Self {
        let state = State {
            pieces: unsent.pieces,
            given: unsent.given,
            wanted: unsent.wanted,
            end: unsent.end.as_ref().map(allowed_trailers),
            ..State::default()
        };
        Self {
            pool,
            length,
            inbound: Some(inbound),
            state: Mutex::new(state),
        }
    }

    /// What the client sends from now on goes into a tunnel.
    pub(crate) fn open_tunnel(&self, py: Python<'_>) {
        lock(&self.state).is_tunnel = true;
        self.ask(py);
        // What has come before.
        self.note_unsent(py);
    }

    /// Asks the client for more, if there is room.
    fn ask(&self, py: Python<'_>) {
        let Some(inbound) = &self.inbound else {
            return;
        };
        let window = u64::from(inbound.handle.limits.body_window_bytes);
        let bytes = {
            let mut state = lock(&self.state);
            let held = state.wanted + state.pieces.len() as u64;
            let is_over = state.is_closed || state.end.is_some();
            if is_over || held > window / 2 || inbound.upgrades && !state.is_tunnel {
                return;
            }
            state.wanted += window - held;
            window - held
        };
        inbound.post(py, StreamCommand::Want(bytes));
    }

    /// Whether some of it has left.
    pub(crate) fn is_begun(&self) -> bool {
        lock(&self.state).is_begun
    }

    /// Its request is on this connection.
    pub(crate) fn set_connection(&self, connection: Arc<dyn CallConnection>) {
        let before = lock(&self.state).connection.replace(connection);
        drop(before);
    }

    /// Has a connection take what there is.
    pub(crate) fn take(&self, take: impl FnOnce(&[u8])) -> Part {
        let mut state = lock(&self.state);
        if !state.pieces.is_empty() {
            state.is_begun = true;
            take(&state.pieces);
            state.pieces.clear();
        }
        // With the length that was said it is complete, whether or not its end was.
        if self.length == Some(state.given) {
            return Part::Last(Pairs::new());
        }
        match &state.end {
            Some(trailers) => {
                let trailers = trailers.clone();
                state.is_begun = true;
                Part::Last(trailers)
            }
            None => Part::Some,
        }
    }

    /// The same for at most `most` bytes.
    pub(crate) fn take_most(&self, most: usize, take: impl FnOnce(&[u8])) -> Part {
        let mut state = lock(&self.state);
        let size = most.min(state.pieces.len());
        if size > 0 {
            state.is_begun = true;
            take(&state.pieces[..size]);
            state.pieces.drain(..size);
        }
        if self.length == Some(state.given) && state.pieces.is_empty() {
            return Part::Last(Pairs::new());
        }
        match &state.end {
            Some(trailers) if state.pieces.is_empty() => Part::Last(trailers.clone()),
            _ => Part::Some,
        }
    }

    /// Wakes the sender, if there is room.
    pub(crate) fn wake(&self, py: Python<'_>) {
        let sleeper = {
            let mut state = lock(&self.state);
            if state.pieces.len() >= WAITING_BYTES_MAX {
                return;
            }
            state.sleeper.take()
        };
        self.ask(py);
        if let Some(sleeper) = sleeper {
            sleeper.wake(py, false);
        }
    }

    /// The exchange is over: what is given from now on is dropped.
    pub(crate) fn close(&self, py: Python<'_>) {
        let (sleeper, connection) = {
            let mut state = lock(&self.state);
            state.is_closed = true;
            // A request that was not sent may go to another server.
            if self.inbound.is_none() || state.is_begun {
                state.pieces = Vec::new();
            }
            (
                state.sleeper.take(),
                (state.connection.take(), state.call.take()),
            )
        };
        drop(connection);
        if let Some(sleeper) = sleeper {
            sleeper.wake(py, false);
        }
    }

    /// Has the connection look for what there is.
    fn note_unsent(&self, py: Python<'_>) {
        let connection = {
            let state = lock(&self.state);
            state.connection.clone()
        };
        if let Some(connection) = connection {
            connection.note_upload(py);
        }
    }

    /// Whether the sender may go on.
    fn has_room(&self) -> bool {
        let state = lock(&self.state);
        state.is_closed || state.pieces.len() < WAITING_BYTES_MAX
    }

    /// Whether the sender waits: nothing is to be had from the server before it has taken this.
    pub(crate) fn is_waited_for(&self) -> bool {
        let state = lock(&self.state);
        !state.pieces.is_empty() || state.end.is_some()
    }

    fn push(&self, data: &[u8]) -> PyResult<()> {
        let mut state = lock(&self.state);
        if state.end.is_some() {
            return Err(PyRuntimeError::new_err("the upload has ended"));
        }
        let given = state.given.saturating_add(data.len() as u64);
        if self.length.is_some_and(|length| given > length) {
            drop(state);
            return Err(PyValueError::new_err(format!(
                "the upload was announced with {} bytes, and more are given",
                self.length.unwrap_or(0)
            )));
        }
        state.given = given;
        if !state.is_closed {
            state.pieces.extend_from_slice(data);
        }
        Ok(())
    }

    /// The upload cannot be completed.
    fn fail(&self, py: Python<'_>, why: &str) {
        let (connection, call) = {
            let mut state = lock(&self.state);
            (state.connection.take(), state.call.take())
        };
        let failure = Failure::new("WriteError", why);
        match (connection, call) {
            (Some(connection), _) => {
                connection.fail_upload(py, self, &failure);
            }
            (None, Some(call)) => {
                self.pool.forget(call.bind(py));
                call.get().fail(py, &failure);
            }
            (None, None) => {}
        }
        self.close(py);
    }

    /// It is the content of this request, and of no other.
    pub(crate) fn begin(&self, call: Py<HttpCall>) -> PyResult<()> {
        let mut state = lock(&self.state);
        if state.is_closed || state.call.is_some() {
            return Err(PyRuntimeError::new_err(
                "an upload is the content of one request, and this one was used or given up",
            ));
        }
        state.call = Some(call);
        Ok(())
    }
}

fn allowed_trailers(trailers: &Fields) -> Pairs {
    let allowed = trailers
        .iter()
        .filter(|(name, value)| check_trailer(name, value).is_ok());
    allowed
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect()
}

/// The content of a client's request, which goes where the request is passed on to.
struct Fed(Py<HttpUpload>);

impl Content for Fed {
    fn push(&self, py: Python<'_>, data: &[u8]) {
        let upload = self.0.get();
        {
            let mut state = lock(&upload.state);
            state.wanted = state.wanted.saturating_sub(data.len() as u64);
            state.given += data.len() as u64;
            if !state.is_closed || !state.is_begun {
                state.pieces.extend_from_slice(data);
            }
        }
        upload.note_unsent(py);
    }

    fn end(&self, py: Python<'_>, trailers: &Fields) {
        let upload = self.0.get();
        let end = allowed_trailers(trailers);
        let replaced = lock(&upload.state).end.replace(end);
        drop(replaced);
        upload.note_unsent(py);
    }

    fn take_unsent(&self) -> Option<Unsent> {
        let mut state = lock(&self.0.get().state);
        if state.is_begun {
            return None;
        }
        let end = state.end.take().map(|pairs| {
            let mut fields = Fields::default();
            for (name, value) in pairs {
                // It was a field of a client's.
                let _ = fields.push(&name, &value);
            }
            fields
        });
        Some(Unsent {
            pieces: std::mem::take(&mut state.pieces),
            given: state.given,
            wanted: state.wanted,
            end,
        })
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

/// Where the content of a client's request goes of which nothing has come, and of which `wanted` bytes were asked for.
pub(super) fn body_to_come(
    py: Python<'_>,
    length: BodyLength,
    pool: Box<dyn CallPool>,
    inbound: &Inbound,
    wanted: u64,
) -> PyResult<(Body, Arc<dyn Content>)> {
    let length = match length {
        BodyLength::Exact(length) => Some(length),
        _ => None,
    };
    let unsent = Unsent {
        wanted,
        ..Unsent::default()
    };
    let upload = HttpUpload::of_request(pool, length, inbound.clone(), unsent);
    let upload = Py::new(py, upload)?;
    let content = Arc::new(Fed(upload.clone_ref(py)));
    Ok((Body::Upload(upload), content))
}

/// The content of a client's request as that of a request to another server; what has not come yet goes there as it comes.
///
/// # Errors
/// It has been read, or passed on.
pub(super) fn body_of_request(
    py: Python<'_>,
    request: &dyn Passable,
    pool: Box<dyn CallPool>,
    inbound: &Inbound,
) -> PyResult<Body> {
    let length = match request.as_client().head.body {
        BodyLength::None if !inbound.upgrades => return Ok(Body::Nothing),
        BodyLength::Exact(length) => Some(length),
        _ => None,
    };
    if !inbound.upgrades
        && let Some(whole) = request.whole_body(py)?
    {
        let is_empty = whole.as_bytes().is_empty();
        return Ok(if is_empty {
            Body::Nothing
        } else {
            Body::Bytes(whole.unbind())
        });
    }
    let unsent = request.take_unsent(inbound.upgrades)?;
    let upload = HttpUpload::of_request(pool, length, inbound.clone(), unsent);
    let upload = Py::new(py, upload)?;
    request.pass_content_on(Arc::new(Fed(upload.clone_ref(py))));
    Ok(Body::Upload(upload))
}

#[pymethods]
impl HttpUpload {
    /// Sends a piece; awaited, it waits until there is room for the next.
    fn send(slf: &Bound<'_, Self>, data: &[u8]) -> PyResult<HttpSending> {
        slf.get().push(data)?;
        slf.get().note_unsent(slf.py());
        Ok(HttpSending(slf.clone().unbind()))
    }

    /// There is no more; these fields follow it.
    #[pyo3(signature = (trailers = None))]
    fn end(slf: &Bound<'_, Self>, trailers: Option<&Bound<'_, PyAny>>) -> PyResult<HttpSending> {
        let (py, this) = (slf.py(), slf.get());
        let mut pairs = Pairs::new();
        if let Some(trailers) = trailers {
            let list = py.get_type::<PyList>().call1((trailers,))?;
            pairs = with_fields(list.cast::<PyList>()?, |fields| {
                let mut pairs = Pairs::new();
                for (name, value) in fields {
                    check_trailer(name, value).map_err(|misuse| refused("", &misuse))?;
                    pairs.push((name.to_vec(), value.to_vec()));
                }
                Ok::<_, PyErr>(pairs)
            })??;
        }
        let given = {
            let mut state = lock(&this.state);
            if state.end.is_none() && this.length.is_none_or(|length| state.given == length) {
                state.end = Some(pairs);
            }
            state.given
        };
        if let Some(length) = this.length
            && given != length
        {
            let why =
                format!("the upload was announced with {length} bytes, and {given} were given");
            this.fail(py, &why);
            return Err(PyValueError::new_err(why));
        }
        this.note_unsent(py);
        Ok(HttpSending(slf.clone().unbind()))
    }

    /// Gives it up: the request fails.
    fn abort(&self, py: Python<'_>) {
        self.fail(py, "the upload was given up");
    }

    /// Whether what is given is dropped, because the exchange is over.
    #[getter]
    fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.pool.traverse(&visit)?;
        if let Ok(state) = self.state.try_lock() {
            if let Some(connection) = &state.connection {
                connection.traverse(&visit)?;
            }
            visit.call(&state.call)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let mut state = lock(&self.state);
        let dropped = (state.connection.take(), state.call.take());
        drop(state);
        drop(dropped);
    }
}

/// What a sender awaits.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct HttpSending(Py<HttpUpload>);

impl HttpSending {
    fn look<T>(
        &self,
        sleep: impl FnOnce() -> PyResult<(Sleeper, T)>,
        py: Python<'_>,
    ) -> PyResult<Result<Py<PyAny>, T>> {
        let upload = self.0.get();
        if upload.has_room() {
            return Ok(Ok(py.None()));
        }
        let (sleeper, token) = sleep()?;
        let before = lock(&upload.state).sleeper.replace(sleeper);
        drop(before);
        if upload.has_room() {
            upload.wake(py);
        }
        Ok(Err(token))
    }

    fn observe(&self, py: Python<'_>) -> PyResult<Poll> {
        let pool = &*self.0.get().pool;
        let found = self.look(|| sleeper_for(py, pool), py)?;
        Ok(found.map_or_else(Waiter::pending, Poll::Ready))
    }
}

#[pymethods]
impl HttpSending {
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
    #[expect(clippy::unused_self, reason = "a method of iterators that are awaited")]
    fn throw(&self, error: Bound<'_, PyAny>, _rest: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        Err(PyErr::from_value(error))
    }

    #[expect(clippy::unused_self, reason = "a method of iterators that are awaited")]
    fn close(&self) {}

    /// Waits in this thread or greenlet.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        wait_serially(py, || self.look(|| Ok(Sleeper::serial()), py), || ())
    }
}
