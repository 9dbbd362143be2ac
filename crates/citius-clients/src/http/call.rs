//! What a coroutine awaits, or a thread or greenlet waits for: one request and its response.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use citius_base::awaitable::Poll;
use citius_base::passing::Inbound;
use citius_base::progress::{Progress, Sleeper, Stage};
use citius_base::serial::Signal;
use citius_base::sync::lock;
use citius_base::waiter::Waiter;
use citius_reactor::{coarse_ms, exact_us};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use super::errors::Failure;
use super::origin::HttpOrigin;
use super::reply::{HttpReply, Incoming};
use super::request::Asked;
use super::upload::HttpUpload;

/// The pool of connections that a call is handed to, as those that it carries see it.
pub(crate) trait CallPool: Send + Sync {
    /// The loop of the pool, if this is its thread.
    fn home_loop(&self, py: Python<'_>) -> Option<Py<PyAny>>;

    /// Whether it was opened in this process.
    fn is_of_process(&self) -> bool;

    /// Takes a call.
    ///
    /// # Errors
    /// It takes none: the client is closed, or too many calls wait.
    fn submit(&self, call: &Bound<'_, HttpCall>) -> PyResult<()>;

    /// No code waits for a call that waits for a connection.
    fn forget(&self, call: &Bound<'_, HttpCall>);

    /// Shows the garbage collector the pool.
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError>;
}

/// The connection that a call is on, as the call, its upload and its reply see it.
pub(crate) trait CallConnection: Send + Sync {
    /// No code waits for a call any more.
    fn abandon(&self, call: &Bound<'_, HttpCall>);

    /// No code reads a response any more.
    fn leave(&self, py: Python<'_>, incoming: &Arc<Incoming>);

    /// A reader has taken content.
    fn note_read(&self, py: Python<'_>, incoming: &Arc<Incoming>, bytes: usize, reopens: bool);

    /// A reader waits for content.
    fn note_reader(&self, py: Python<'_>, incoming: &Arc<Incoming>, now_ms: u64);

    /// An upload has something to send.
    fn note_upload(&self, py: Python<'_>);

    /// An upload cannot be completed.
    fn fail_upload(&self, py: Python<'_>, upload: &HttpUpload, failure: &Failure);

    /// Shows the garbage collector the connection.
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError>;
}

/// What follows the head.
pub(crate) enum Body {
    Nothing,
    Bytes(Py<PyBytes>),
    Upload(Py<HttpUpload>),
}

/// How long parts may take, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadlines {
    pub(crate) connect: Option<u64>,
    pub(crate) read: Option<u64>,
    pub(crate) write: Option<u64>,
    pub(crate) pool: Option<u64>,
    pub(crate) total: Option<u64>,
}

/// Seconds for connecting, reading, writing, waiting for a connection, and in all.
pub(crate) type DeadlineArguments = (
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
);

impl Deadlines {
    pub(crate) fn of((connect, read, write, pool, total): DeadlineArguments) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a negative time is none, and a long one is the longest"
        )]
        let ms = |seconds: Option<f64>| seconds.map(|it| (it * 1000.0).ceil() as u64);
        Self {
            connect: ms(connect),
            read: ms(read),
            write: ms(write),
            pool: ms(pool),
            total: ms(total),
        }
    }
}

/// A request on its way; it starts when it is awaited.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct HttpCall {
    pool: Box<dyn CallPool>,
    pub(crate) origin: Py<HttpOrigin>,
    pub(crate) asked: Asked,
    pub(crate) body: Body,
    /// The reply comes with its head; its content is read from it.
    pub(crate) is_streamed: bool,
    pub(crate) deadlines: Deadlines,
    /// The request of a client that it passes on.
    pub(crate) inbound: Option<Inbound>,
    progress: Progress,
    /// The code that waited for it has left before there was a result.
    is_given_up: AtomicBool,
    place: Mutex<Place>,
}

/// Where a call is.
#[derive(Default)]
struct Place {
    connection: Option<Box<dyn CallConnection>>,
    /// When it was started.
    started_ms: u64,
    /// The same, where the access log says how long it takes; otherwise 0.
    started_us: u64,
    /// When it began to wait for a connection.
    queued_ms: u64,
    /// How often it has been handed to a connection.
    tries: u8,
}

/// How often a request is handed to connections that turn out to be closed. Each try uses up one that was idle, so a server that
/// closes them early costs several.
const TRIES_MAX: u8 = 16;

impl HttpCall {
    pub(crate) fn new(
        pool: Box<dyn CallPool>,
        origin: Py<HttpOrigin>,
        asked: Asked,
        body: Body,
        is_streamed: bool,
        deadlines: Deadlines,
        inbound: Option<Inbound>,
    ) -> Self {
        Self {
            pool,
            origin,
            asked,
            body,
            is_streamed,
            deadlines,
            inbound,
            progress: Progress::default(),
            is_given_up: AtomicBool::new(false),
            place: Mutex::default(),
        }
    }

    /// It asks for a WebSocket.
    pub(crate) fn upgrades(&self) -> bool {
        self.inbound.as_ref().is_some_and(|it| it.upgrades)
    }

    /// No code waits for it.
    pub(crate) fn is_over(&self) -> bool {
        self.progress.is_over()
    }

    /// The code that waited for it has left. One whose response has come is over too, and was not given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    pub(crate) fn started_ms(&self) -> u64 {
        lock(&self.place).started_ms
    }

    /// Whether the access log says how long it takes.
    fn is_timed(&self) -> bool {
        let inbound = self.inbound.as_ref();
        inbound.is_some_and(|it| it.handle.observed.logs_upstream_time)
    }

    /// Microseconds since it was started, if that is measured.
    pub(crate) fn elapsed_us(&self) -> Option<u64> {
        if !self.is_timed() {
            return None;
        }
        let started_us = lock(&self.place).started_us;
        Some(exact_us().saturating_sub(started_us))
    }

    /// It begins to wait for a connection, again.
    pub(crate) fn note_queued(&self) {
        lock(&self.place).queued_ms = coarse_ms();
    }

    pub(crate) fn queued_ms(&self) -> u64 {
        lock(&self.place).queued_ms
    }

    /// When it has taken too long in all.
    pub(crate) fn total_due_ms(&self) -> u64 {
        let total = self.deadlines.total;
        total.map_or(u64::MAX, |ms| self.started_ms().saturating_add(ms))
    }

    /// It is on a connection; `None`: on none.
    pub(crate) fn set_connection(&self, connection: Option<Box<dyn CallConnection>>) {
        let before = {
            let mut place = lock(&self.place);
            place.tries = place.tries.saturating_add(u8::from(connection.is_some()));
            std::mem::replace(&mut place.connection, connection)
        };
        drop(before);
    }

    /// Whether it may be handed to one more connection.
    pub(crate) fn may_be_tried(&self) -> bool {
        lock(&self.place).tries < TRIES_MAX
    }

    /// Whether the server may be asked for it twice (RFC 9110 §9.2.2).
    pub(crate) fn is_idempotent(&self, py: Python<'_>) -> bool {
        let method = self.asked.method(py).unwrap_or("");
        matches!(
            method,
            "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE" | "QUERY"
        )
    }

    /// It asks for the head of a response.
    pub(crate) fn is_head(&self, py: Python<'_>) -> bool {
        self.asked.method(py).is_ok_and(|method| method == "HEAD")
    }

    /// Whether its content can be sent again.
    pub(crate) fn is_repeatable(&self) -> bool {
        match &self.body {
            Body::Upload(upload) => !upload.get().is_begun(),
            Body::Nothing | Body::Bytes(_) => true,
        }
    }

    /// Keeps the result and wakes what waits for it.
    pub(crate) fn finish(&self, py: Python<'_>, result: PyResult<Py<PyAny>>, may_step: bool) {
        self.set_connection(None);
        // Content may be streamed both ways.
        if (result.is_err() || !self.is_streamed)
            && let Body::Upload(upload) = &self.body
        {
            upload.get().close(py);
        }
        if let Some(sleeper) = self.progress.finish(result, |_, _| ()) {
            sleeper.wake(py, may_step);
        }
    }

    pub(crate) fn fail(&self, py: Python<'_>, failure: &Failure) {
        let error = failure.error(py, &self.origin.get().text);
        self.finish(py, Err(error), false);
    }

    pub(crate) fn start(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        if this.progress.start() != Some(true) {
            return Ok(());
        }
        Self::send_off(slf)
    }

    /// Starts it; `sleeper` is woken when the result is there, which may be at once.
    pub(crate) fn start_for(slf: &Bound<'_, Self>, sleeper: Sleeper) -> PyResult<()> {
        slf.get().progress.start_for(sleeper);
        Self::send_off(slf)
    }

    /// The result, if it is there and was not taken.
    pub(crate) fn take_result(&self) -> Option<PyResult<Py<PyAny>>> {
        self.progress.take_result()
    }

    fn send_off(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        if !this.pool.is_of_process() {
            drop(this.progress.replace(Stage::Over));
            return Err(PyRuntimeError::new_err(
                "the client was opened before a fork: make one in the process that uses it",
            ));
        }
        if let Body::Upload(upload) = &this.body
            && let Err(error) = upload.get().begin(slf.clone().unbind())
        {
            drop(this.progress.replace(Stage::Over));
            return Err(error);
        }
        {
            let mut place = lock(&this.place);
            place.started_ms = coarse_ms();
            place.queued_ms = place.started_ms;
            if this.is_timed() {
                place.started_us = exact_us();
            }
        }
        let submitted = this.pool.submit(slf);
        if submitted.is_err() {
            drop(this.progress.replace(Stage::Over));
        }
        submitted
    }

    /// The code that waited for it does not wait any more.
    pub(crate) fn abandon(slf: &Bound<'_, Self>) {
        let (py, this) = (slf.py(), slf.get());
        let before = this.progress.replace(Stage::Over);
        match before {
            Stage::Started(_) => {
                this.is_given_up.store(true, Ordering::Relaxed);
                if let Body::Upload(upload) = &this.body {
                    upload.get().close(py);
                }
                let connection = lock(&this.place).connection.take();
                match connection {
                    Some(connection) => connection.abandon(slf),
                    None => this.pool.forget(slf),
                }
            }
            // A reply whose content would never be read.
            Stage::Done(Ok(value)) => {
                if let Ok(reply) = value.bind(py).cast::<HttpReply>() {
                    HttpReply::leave(reply.get(), py);
                }
            }
            _ => {}
        }
    }

    /// Looks for the result; without one `sleep` says what is to be woken.
    fn look<T>(
        slf: &Bound<'_, Self>,
        sleep: impl FnMut() -> PyResult<(Sleeper, T)>,
    ) -> PyResult<Result<Py<PyAny>, T>> {
        let progress = &slf.get().progress;
        progress.look("request", || Self::start(slf), sleep)
    }

    fn observe(slf: &Bound<'_, Self>) -> PyResult<Poll> {
        let (py, pool) = (slf.py(), &*slf.get().pool);
        let found = Self::look(slf, || sleeper_for(py, pool))?;
        Ok(found.map_or_else(Waiter::pending, Poll::Ready))
    }
}

/// What a task waits by, on the loop of the pool or on another thread's.
pub(crate) fn sleeper_for(py: Python<'_>, pool: &dyn CallPool) -> PyResult<(Sleeper, Py<Waiter>)> {
    if let Some(event_loop) = pool.home_loop(py) {
        let waiter = Waiter::on_loop(py, event_loop, None)?;
        return Ok((Sleeper::Task(waiter.clone_ref(py)), waiter));
    }
    let event_loop = citius_base::go::caller::running_loop(py)?.ok_or_else(|| {
        PyRuntimeError::new_err("a request is awaited where no asyncio loop runs: use .sync")
    })?;
    let waiter = Waiter::on_loop(py, event_loop.unbind(), None)?;
    Ok((Sleeper::Elsewhere(waiter.clone_ref(py)), waiter))
}

/// Waits in this thread or greenlet until `look` has a value, which it makes of what is there, or says by what it is woken.
pub(crate) fn wait_serially(
    py: Python<'_>,
    mut look: impl FnMut() -> PyResult<Result<Py<PyAny>, Arc<Signal>>>,
    abandon: impl FnOnce(),
) -> PyResult<Py<PyAny>> {
    citius_base::serial::check(py, "a request to another server")?;
    loop {
        match look()? {
            Ok(value) => return Ok(value),
            Err(signal) => {
                if let Err(error) = signal.wait(py) {
                    abandon();
                    return Err(error);
                }
            }
        }
    }
}

/// The body of a request as Python gives it.
pub(crate) fn body_of(body: Option<&Bound<'_, PyAny>>) -> PyResult<Body> {
    let Some(body) = body else {
        return Ok(Body::Nothing);
    };
    if let Ok(bytes) = body.cast_exact::<PyBytes>() {
        return Ok(Body::Bytes(bytes.clone().unbind()));
    }
    if let Ok(upload) = body.cast::<HttpUpload>() {
        return Ok(Body::Upload(upload.clone().unbind()));
    }
    if body.cast::<PyString>().is_ok() || !body.hasattr("__len__")? {
        return Err(PyTypeError::new_err(format!(
            "a body is bytes or an upload, got {}",
            body.get_type().name()?
        )));
    }
    let bytes = body.py().get_type::<PyBytes>().call1((body,))?;
    Ok(Body::Bytes(bytes.cast_into::<PyBytes>()?.unbind()))
}

#[pymethods]
impl HttpCall {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        Self::observe(slf)?.into_next(slf.py())
    }

    fn send(slf: &Bound<'_, Self>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Self::observe(slf)?.into_sent(slf.py())
    }

    #[pyo3(signature = (error, *_rest))]
    fn throw(
        slf: &Bound<'_, Self>,
        error: Bound<'_, PyAny>,
        _rest: &Bound<'_, PyTuple>,
    ) -> PyResult<Py<PyAny>> {
        Self::abandon(slf);
        Err(PyErr::from_value(error))
    }

    fn close(slf: &Bound<'_, Self>) {
        Self::abandon(slf);
    }

    /// Sends it without waiting for its response.
    #[pyo3(name = "start")]
    fn start_now(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::start(slf)
    }

    /// Waits for the response in this thread or greenlet.
    pub(crate) fn wait(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        wait_serially(
            slf.py(),
            || Self::look(slf, || Ok(Sleeper::serial())),
            || Self::abandon(slf),
        )
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.pool.traverse(&visit)?;
        if let Asked::ByPython { fields, .. } = &self.asked {
            visit.call(fields)?;
        }
        if let Body::Upload(upload) = &self.body {
            visit.call(upload)?;
        }
        if let Ok(place) = self.place.try_lock()
            && let Some(connection) = &place.connection
        {
            connection.traverse(&visit)?;
        }
        self.progress.traverse(&visit)
    }

    fn __clear__(&self) {
        self.progress.clear();
        self.set_connection(None);
    }
}
