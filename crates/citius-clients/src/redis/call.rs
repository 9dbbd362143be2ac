//! What a coroutine awaits, or a thread or greenlet waits for: one command and what becomes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use citius_base::awaitable::Poll;
use citius_base::client_metrics::{self, Operation};
use citius_base::progress::{Progress, Sleeper, Stage};
use citius_base::serial::Signal;
use citius_base::waiter::Waiter;
use citius_redis::{append_head, append_word};
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use super::arguments::{append_key, append_words};
use super::client::RedisClient;
use super::connection::RedisConnection;
use super::errors::error_of;
use super::incoming::Expects;
use super::reply::{Blobs, Shape, Then};
use super::spread::Part;

/// What is sent.
pub(crate) enum Work {
    /// A command: its words.
    Command(Py<PyTuple>),
    /// `GET` and its key.
    Get(Py<PyAny>),
    /// A script: by its hash, or in full when the server does not know it.
    Script(Script),
    /// Commands between `MULTI` and `EXEC`.
    Transaction(Vec<Py<RedisCall>>),
    /// Nothing: the result is a connection that is the caller's own, to the node that has this key.
    Acquire(Option<Vec<u8>>),
}

pub(crate) struct Script {
    pub(crate) source: Py<PyString>,
    pub(crate) hash: Py<PyString>,
    /// The number of keys, the keys, further arguments.
    pub(crate) arguments: Py<PyTuple>,
    /// The server has been found not to know it.
    pub(crate) is_unknown: AtomicBool,
    pub(crate) is_read_only: bool,
}

impl Work {
    /// What metrics and spans know of it: its name, and how many commands it is.
    fn describe(&self, py: Python<'_>) -> (String, usize) {
        match self {
            Self::Command(words) => (name_of(words.bind(py)), 1),
            Self::Get(_) => ("GET".into(), 1),
            Self::Script(script) => (script.name().into(), 1),
            Self::Transaction(calls) => ("MULTI".into(), calls.len()),
            Self::Acquire(_) => (String::new(), 0),
        }
    }
}

/// A command on its way; it starts when it is awaited.
#[pyclass(frozen, module = "citius._core", name = "RedisCall")]
pub(crate) struct RedisCall {
    client: Py<RedisClient>,
    /// The connection that it belongs to; without one any that is shared.
    pub(crate) connection: Option<Py<RedisConnection>>,
    pub(crate) work: Work,
    pub(crate) shape: Shape,
    /// The server may keep it waiting.
    pub(crate) is_blocking: bool,
    /// How long the server may keep it waiting; `None` without an end.
    pub(crate) blocks_ms: Option<u64>,
    /// When it has waited for too long, from when it was submitted on.
    until_ms: AtomicU64,
    /// Until when it is sent again if no node of a cluster serves it: what a server may keep waiting has no more time for that.
    retry_until_ms: AtomicU64,
    /// Redirections that it has followed without a pause.
    redirects: AtomicU8,
    /// The server that it goes to, whatever its key is.
    pub(crate) node: Option<usize>,
    /// Of a connection of the caller's own: its block.
    pub(crate) lease: u64,
    /// It goes to a node that its slot is being moved to.
    is_asking: AtomicBool,
    /// It is what one node gets of a command to all.
    pub(crate) part: Option<Part<Py<Self>>>,
    progress: Progress,
}

/// Redirections that one command follows without a pause.
const REDIRECTS_MAX: u8 = 16;

impl RedisCall {
    pub(crate) fn new(
        client: Py<RedisClient>,
        connection: Option<Py<RedisConnection>>,
        work: Work,
        shape: Shape,
    ) -> Self {
        let own = connection.as_ref().map(Py::get);
        Self {
            node: None,
            lease: own.map_or(0, RedisConnection::lease),
            is_asking: AtomicBool::new(own.is_some_and(RedisConnection::is_asking)),
            part: None,
            client,
            connection,
            work,
            shape,
            is_blocking: false,
            blocks_ms: None,
            until_ms: AtomicU64::new(u64::MAX),
            retry_until_ms: AtomicU64::new(u64::MAX),
            redirects: AtomicU8::new(0),
            progress: Progress::default(),
        }
    }

    /// No code waits for it.
    pub(crate) fn is_over(&self) -> bool {
        self.progress.is_over()
    }

    /// Whether it may go to any connection.
    pub(crate) fn is_free(&self) -> bool {
        self.connection.is_none()
    }

    /// Whether neither a connection nor a server is its own.
    pub(crate) fn is_anywhere(&self) -> bool {
        self.connection.is_none() && self.node.is_none()
    }

    /// Whether it needs a connection on which nothing else is under way.
    pub(crate) fn needs_own(&self) -> bool {
        self.is_blocking || matches!(self.work, Work::Acquire(_))
    }

    /// Has its time begin, unless it goes on from that of another call.
    pub(crate) fn begin_time(&self, until_ms: impl FnOnce() -> u64) {
        if self.until_ms() == u64::MAX {
            let until_ms = until_ms();
            self.set_until(until_ms);
            self.retry_until_ms.store(until_ms, Ordering::Relaxed);
        }
    }

    /// Has the time and the redirections of another call, in whose place it is.
    pub(crate) fn go_on_from(&self, other: &Self) {
        let until_ms = other.retry_until_ms.load(Ordering::Relaxed);
        self.begin_time(|| until_ms);
        self.redirects
            .store(other.redirects.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether it may be sent again at `at_ms`.
    pub(crate) fn has_time_until(&self, at_ms: u64) -> bool {
        at_ms < self.retry_until_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn set_until(&self, until_ms: u64) {
        self.until_ms.store(until_ms, Ordering::Relaxed);
    }

    /// When it has waited for too long.
    pub(crate) fn until_ms(&self) -> u64 {
        self.until_ms.load(Ordering::Relaxed)
    }

    /// Whether `ASKING` goes before it.
    pub(crate) fn is_asking(&self) -> bool {
        self.is_asking.load(Ordering::Relaxed)
    }

    pub(crate) fn set_asking(&self, is_asking: bool) {
        self.is_asking.store(is_asking, Ordering::Relaxed);
    }

    /// Notes that it is under way, though no code looks at it.
    pub(crate) fn begin(&self) {
        self.progress.start();
    }

    /// Notes that it has ended, and that no code looks at its result.
    pub(crate) fn end(&self) {
        drop(self.progress.replace(Stage::Over));
    }

    /// Counts a redirection; `false`: it has followed too many without a pause.
    pub(crate) fn may_follow(&self) -> bool {
        self.redirects.fetch_add(1, Ordering::Relaxed) < REDIRECTS_MAX
    }

    /// Counts redirections anew, behind a pause.
    pub(crate) fn forget_redirects(&self) {
        self.redirects.store(0, Ordering::Relaxed);
    }

    /// Appends what is to be sent; returns how many replies it has.
    pub(crate) fn encode(&self, py: Python<'_>, output: &mut Vec<u8>) -> PyResult<u32> {
        if self.is_asking() && !matches!(self.work, Work::Acquire(_)) {
            // It holds for the next command, and for all of a transaction that this begins.
            output.extend_from_slice(b"*1\r\n$6\r\nASKING\r\n");
            return self.encode_work(py, output).map(|replies| replies + 1);
        }
        self.encode_work(py, output)
    }

    #[inline]
    fn encode_work(&self, py: Python<'_>, output: &mut Vec<u8>) -> PyResult<u32> {
        match &self.work {
            Work::Command(words) => {
                let words = words.bind(py);
                append_head(output, words.len());
                append_words(output, words, 0, None)?;
                Ok(1)
            }
            Work::Get(key) => {
                output.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
                append_key(output, key.bind(py), "GET")?;
                Ok(1)
            }
            Work::Script(script) => script.encode(py, output).map(|()| 1),
            Work::Transaction(calls) => {
                output.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
                for call in calls {
                    call.get().encode(py, output)?;
                }
                output.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
                Ok(u32::try_from(calls.len()).unwrap_or(u32::MAX - 2) + 2)
            }
            Work::Acquire(_) => Ok(0),
        }
    }

    /// Keeps the result and returns what is to be woken.
    pub(crate) fn finish(&self, py: Python<'_>, result: PyResult<Py<PyAny>>) -> Option<Sleeper> {
        self.progress.finish(result, |operation, error| {
            self.measure(py, operation, error);
        })
    }

    #[cold]
    fn measure(&self, py: Python<'_>, operation: Operation, error: Option<&PyErr>) {
        let Some(metrics) = self.client.get().metrics() else {
            return;
        };
        let describe = || self.work.describe(py);
        match error {
            None => metrics.succeeded(operation, describe),
            Some(error) => metrics.failed(operation, || error_word(py, error), describe),
        }
    }

    pub(crate) fn start(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        match this.progress.start() {
            Some(true) => {}
            Some(false) => return Ok(()),
            None => return Err(held()),
        }
        if !this.client.get().is_of_process() {
            drop(this.progress.replace(Stage::Over));
            return Err(PyRuntimeError::new_err(
                "the client was opened before a fork: open it in the process that uses it",
            ));
        }
        if let Some(metrics) = this.client.get().metrics()
            && !matches!(this.work, Work::Acquire(_))
        {
            this.progress.set_operation(Box::new(metrics.begin(py)));
        }
        let submitted = RedisClient::submit(this.client.bind(py), slf.clone().unbind());
        if let Err(error) = &submitted {
            this.fail_held(py, error);
            if let Stage::Started(underway) = this.progress.replace(Stage::Over)
                && let Some(operation) = underway.operation
            {
                this.measure(py, *operation, Some(error));
            }
        }
        submitted
    }

    /// Has the commands of a transaction fail as it does; those that have results keep them.
    pub(crate) fn fail_held(&self, py: Python<'_>, error: &PyErr) {
        if let Work::Transaction(held) = &self.work {
            for call in held {
                if let Some(sleeper) = call.get().finish(py, Err(error.clone_ref(py))) {
                    sleeper.wake(py, false);
                }
            }
        }
    }

    /// The code that waited for it does not wait any more.
    pub(crate) fn abandon(slf: &Bound<'_, Self>) {
        let (py, this) = (slf.py(), slf.get());
        let mut before = this.progress.replace(Stage::Over);
        let client = this.client.bind(py);
        match &mut before {
            Stage::Started(underway) => {
                if let (Some(operation), Some(metrics)) =
                    (underway.operation.take(), client.get().metrics())
                {
                    metrics.cancelled(*operation, || this.work.describe(py));
                }
                if matches!(this.work, Work::Transaction(_)) {
                    this.fail_held(py, &error_of(py, "transaction_left", py.None()));
                }
                RedisClient::abandoned(client, slf);
            }
            // A connection that came too late to be taken.
            Stage::Done(Ok(value)) if matches!(this.work, Work::Acquire(_)) => {
                if let Ok(connection) = value.bind(py).cast::<RedisConnection>() {
                    client
                        .get()
                        .take_back(py, connection.clone().unbind(), true);
                }
            }
            _ => {}
        }
        drop(before);
    }
}

impl Script {
    fn name(&self) -> &'static str {
        match (self.is_unknown.load(Ordering::Relaxed), self.is_read_only) {
            (false, false) => "EVALSHA",
            (false, true) => "EVALSHA_RO",
            (true, false) => "EVAL",
            (true, true) => "EVAL_RO",
        }
    }

    fn encode(&self, py: Python<'_>, output: &mut Vec<u8>) -> PyResult<()> {
        let arguments = self.arguments.bind(py);
        let name = self.name();
        let script = if self.is_unknown.load(Ordering::Relaxed) {
            &self.source
        } else {
            &self.hash
        };
        append_head(output, arguments.len() + 2);
        append_word(output, name.as_bytes());
        append_word(output, script.bind(py).to_str()?.as_bytes());
        append_words(output, arguments, 2, Some(name))
    }
}

/// The name of a command, in capitals.
pub(crate) fn name_of(words: &Bound<'_, PyTuple>) -> String {
    let Ok(name) = words.get_borrowed_item(0) else {
        return String::new();
    };
    let name = match name.cast::<PyBytes>() {
        Ok(name) => String::from_utf8_lossy(name.as_bytes()).into_owned(),
        Err(_) => name.to_string(),
    };
    name.to_uppercase()
}

/// A word for an exception: the code that the server gives, or the name of its class.
fn error_word(py: Python<'_>, error: &PyErr) -> String {
    let code = error
        .value(py)
        .getattr_opt(intern!(py, "code"))
        .ok()
        .flatten();
    let code = code.and_then(|code| code.extract().ok());
    code.unwrap_or_else(|| client_metrics::error_word(py, error))
}

#[cold]
fn held() -> PyErr {
    PyRuntimeError::new_err(
        "this command is sent when its transaction ends: await it behind the block",
    )
}

impl RedisCall {
    /// Looks for the result; without one `sleep` says what is to be woken.
    fn look<T>(
        slf: &Bound<'_, Self>,
        sleep: impl FnMut() -> PyResult<(Sleeper, T)>,
    ) -> PyResult<Result<Py<PyAny>, T>> {
        let progress = &slf.get().progress;
        progress.look("command", || Self::start(slf), sleep)
    }

    /// The result, or what is set when it is there.
    pub(crate) fn look_serially(slf: &Bound<'_, Self>) -> PyResult<Result<Py<PyAny>, Arc<Signal>>> {
        Self::look(slf, || Ok(Sleeper::serial()))
    }

    fn observe(slf: &Bound<'_, Self>) -> PyResult<Poll> {
        let (py, client) = (slf.py(), slf.get().client.get());
        let found = Self::look(slf, || {
            if let Some(event_loop) = client.home_loop(py) {
                let waiter = Waiter::on_loop(py, event_loop, None)?;
                return Ok((Sleeper::Task(waiter.clone_ref(py)), waiter));
            }
            let event_loop = citius_base::go::caller::running_loop(py)?.ok_or_else(|| {
                PyRuntimeError::new_err("a command is awaited where no asyncio loop runs")
            })?;
            let waiter = Waiter::on_loop(py, event_loop.unbind(), None)?;
            Ok((Sleeper::Elsewhere(waiter.clone_ref(py)), waiter))
        })?;
        Ok(found.map_or_else(Waiter::pending, Poll::Ready))
    }
}

#[pymethods]
impl RedisCall {
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
        let this = slf.get();
        // A connection that has come is given back, too.
        if this.progress.is_started() || matches!(this.work, Work::Acquire(_)) {
            Self::abandon(slf);
        }
    }

    /// Sends it without waiting for its result.
    #[pyo3(name = "start")]
    fn start_now(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::start(slf)
    }

    /// Makes it a command of a transaction, which is not sent by itself.
    fn hold(&self) {
        drop(self.progress.replace(Stage::Held));
    }

    /// Has a command of a transaction that will not be sent fail with `error`.
    fn fail(&self, error: Bound<'_, PyAny>) {
        let py = error.py();
        drop(self.finish(py, Err(PyErr::from_value(error))));
    }

    /// Waits for the result in this thread or greenlet.
    fn wait(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        citius_base::serial::check(py, "a command of Redis")?;
        loop {
            match Self::look_serially(slf)? {
                Ok(value) => return Ok(value),
                Err(signal) => {
                    if let Err(error) = signal.wait(py) {
                        Self::abandon(slf);
                        return Err(error);
                    }
                }
            }
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(&self.connection)?;
        if let Blobs::Decoded(function) = &self.shape.blobs {
            visit.call(function)?;
        }
        if let Then::Call(function) = &self.shape.then {
            visit.call(function)?;
        }
        self.progress.traverse(&visit)
    }

    fn __clear__(&self) {
        self.progress.clear();
    }
}

impl Expects for RedisCall {
    #[inline]
    fn blobs(&self) -> &Blobs {
        &self.shape.blobs
    }

    #[inline]
    fn is_over(&self) -> bool {
        Self::is_over(self)
    }

    #[inline]
    fn transaction(&self) -> Option<&[Py<Self>]> {
        match &self.work {
            Work::Transaction(calls) => Some(calls),
            _ => None,
        }
    }
}
