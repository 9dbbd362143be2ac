//! What a coroutine awaits: one statement and what becomes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use citius_base::awaitable::Poll;
use citius_base::client_metrics::{Operation, error_word};
use citius_base::progress::{Progress, Sleeper, Stage, Underway};
use citius_base::serial::Signal;
use citius_base::waiter::Waiter;
use citius_pg::{Parameters, Scope, Standing};
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::connection::PgConnection;
use super::errors::error_of;
use super::native::{PgTable, Table};
use super::pool::PgPool;
use super::rows::{Portal, Shape};

/// What is executed.
pub(crate) enum Work {
    /// A statement with its parameters: prepared once per session.
    Statement(Py<PyString>, Py<PyTuple>),
    /// A statement of compiled code, whose parameters are encoded.
    Native(Py<PyString>, Parameters),
    /// One statement with each of these parameters, in one request.
    Each(Py<PyString>, Vec<Py<PyTuple>>),
    /// Statements without parameters, by the simple protocol.
    Script(Py<PyString>),
    /// A statement whose rows come in portions: the first of them.
    Open(Arc<Portal>, Py<PyString>, Py<PyTuple>),
    /// The next portion.
    Resume(Arc<Portal>),
    /// A COPY, and who is told of its data: bytes that have come, or `None` when the server wants some.
    Copy(Py<PyString>, Py<PyAny>),
}

impl Work {
    /// The text of what has to be prepared.
    pub(crate) fn statement(&self) -> Option<&Py<PyString>> {
        match self {
            Self::Statement(sql, _)
            | Self::Native(sql, _)
            | Self::Each(sql, _)
            | Self::Open(_, sql, _) => Some(sql),
            Self::Script(_) | Self::Resume(_) | Self::Copy(..) => None,
        }
    }

    /// The text of what is executed; a portion after the first has none.
    pub(crate) fn text(&self) -> Option<&Py<PyString>> {
        match self {
            Self::Script(sql) | Self::Copy(sql, _) => Some(sql),
            _ => self.statement(),
        }
    }

    /// What metrics and spans know of it: its text and how many executions it is. Portions after the first are none, and
    /// neither are scripts without text, which only wait for what is before them.
    fn describe(&self, py: Python<'_>) -> Option<(String, usize)> {
        let (sql, batch) = match self {
            Self::Statement(sql, _)
            | Self::Native(sql, _)
            | Self::Open(_, sql, _)
            | Self::Copy(sql, _)
            | Self::Script(sql) => (sql, 1),
            Self::Each(sql, rows) => (sql, rows.len()),
            Self::Resume(_) => return None,
        };
        Some((sql.to_str(py).unwrap_or_default().to_owned(), batch))
    }

    fn is_counted(&self, py: Python<'_>) -> bool {
        match self {
            Self::Resume(_) => false,
            Self::Script(sql) => !sql.bind(py).is_empty().unwrap_or(true),
            _ => true,
        }
    }
}

/// A statement on its way; it starts when it is awaited.
#[pyclass(frozen, module = "citius._core", name = "PgCall")]
pub(crate) struct PgCall {
    pool: Py<PgPool>,
    /// The session that it belongs to; without one any of the pool's.
    session: Option<Py<PgConnection>>,
    /// The block that has made it.
    block: Option<Py<PgBlock>>,
    pub(crate) work: Work,
    pub(crate) shape: Shape,
    pub(crate) standing: Standing,
    progress: Progress,
}

/// A call as its session has it: the trait of `citius-pg` is implemented for it in `session.rs`.
#[repr(transparent)]
pub(crate) struct SessionCall(pub(crate) Py<PgCall>);

impl PgCall {
    pub(crate) fn new(
        py: Python<'_>,
        pool: Py<PgPool>,
        owner: Option<Owner>,
        work: Work,
        shape: Shape,
    ) -> PyResult<Py<Self>> {
        let (session, block, scope) = match owner {
            None => (None, None, Scope::Pool),
            // A portal is one of a block.
            Some(Owner::Session(session)) if matches!(work, Work::Open(..)) => {
                (Some(session), None, Scope::Block)
            }
            Some(Owner::Session(session)) => (Some(session), None, Scope::Session),
            Some(Owner::Block(block)) => {
                let session = block.get().session.clone_ref(py);
                (Some(session), Some(block), Scope::Block)
            }
        };
        Self::make(py, pool, (session, block, scope), work, shape)
    }

    /// One that finds out what the types of statements before it are: it is sent before them.
    pub(crate) fn lookup(
        py: Python<'_>,
        pool: Py<PgPool>,
        session: Py<PgConnection>,
        work: Work,
        shape: Shape,
    ) -> PyResult<Py<Self>> {
        let owner = (Some(session), None, Scope::Lookup);
        Self::make(py, pool, owner, work, shape)
    }

    fn make(
        py: Python<'_>,
        pool: Py<PgPool>,
        (session, block, scope): (Option<Py<PgConnection>>, Option<Py<PgBlock>>, Scope),
        work: Work,
        shape: Shape,
    ) -> PyResult<Py<Self>> {
        let call = Self {
            pool,
            session,
            block,
            standing: Standing::new(scope, shape.reads_names()),
            work,
            shape,
            progress: Progress::default(),
        };
        Py::new(py, call)
    }

    /// No code waits for it.
    pub(crate) fn is_over(&self) -> bool {
        self.progress.is_over()
    }

    /// Keeps the result and returns what is to be woken.
    pub(crate) fn finish(&self, py: Python<'_>, result: PyResult<Py<PyAny>>) -> Option<Sleeper> {
        self.progress.finish(result, |operation, error| {
            self.measure(py, operation, error);
        })
    }

    #[cold]
    fn measure(&self, py: Python<'_>, operation: Operation, error: Option<&PyErr>) {
        let Some(metrics) = self.pool.get().metrics() else {
            return;
        };
        let describe = || self.work.describe(py).unwrap_or_default();
        match error {
            None => metrics.succeeded(operation, describe),
            Some(error) => metrics.failed(operation, || error_word(py, error), describe),
        }
    }

    fn start(slf: &Bound<'_, Self>) -> PyResult<()> {
        match slf.get().progress.start() {
            Some(true) if !slf.get().pool.get().is_home() => Err(slf.get().not_here()),
            Some(true) => Self::submit(slf),
            _ => Ok(()),
        }
    }

    /// Why it cannot be sent from here.
    #[cold]
    fn not_here(&self) -> PyErr {
        PyRuntimeError::new_err(if self.pool.get().is_of_process() {
            "this pool is that of the event loop of another thread: use pool.sync here"
        } else {
            "the pool was opened before a fork: open it in the process that uses it"
        })
    }

    /// Hands it, which is started, to its session or the pool.
    fn submit(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        if this.is_over() {
            return Ok(());
        }
        if let Some(block) = &this.block
            && block.get().is_over()
        {
            return Err(error_of(py, "block_over", ()));
        }
        if let Some(metrics) = this.pool.get().metrics()
            && this.standing.scope() != Scope::Lookup
            && this.work.is_counted(py)
        {
            this.progress.set_operation(Box::new(metrics.begin(py)));
        }
        let submitted = match &this.session {
            Some(session) => PgConnection::submit_or_fail(session.bind(py), slf.clone().unbind()),
            None => PgPool::submit(this.pool.bind(py), slf.clone().unbind()),
        };
        if let Err(error) = &submitted
            && let Some(operation) = this.progress.take_operation()
        {
            this.measure(py, *operation, Some(error));
        }
        submitted
    }

    /// The code that waited for it does not wait any more.
    fn abandon(slf: &Bound<'_, Self>) {
        let py = slf.py();
        let before = slf.get().progress.replace(Stage::Over);
        if let Stage::Started(mut underway) = before {
            if let (Some(operation), Some(metrics)) =
                (underway.operation.take(), slf.get().pool.get().metrics())
            {
                let describe = || slf.get().work.describe(py).unwrap_or_default();
                metrics.cancelled(*operation, describe);
            }
            PgPool::abandoned(slf.get().pool.bind(py), slf);
        }
    }
}

impl PgCall {
    fn observe(slf: &Bound<'_, Self>) -> PyResult<Poll> {
        let (py, this) = (slf.py(), slf.get());
        let sleep = || -> PyResult<(Sleeper, Py<Waiter>)> {
            let event_loop = this.pool.get().event_loop.clone_ref(py);
            let waiter = Waiter::on_loop(py, event_loop, None)?;
            Ok((Sleeper::Task(waiter.clone_ref(py)), waiter))
        };
        let found = this
            .progress
            .look("statement", || Self::start(slf), sleep)?;
        Ok(found.map_or_else(Waiter::pending, Poll::Ready))
    }
}

/// What compiled code does. It may be on another thread than the pool's event loop, which is then asked to do it.
impl PgCall {
    /// Sends it; what is returned is set when its result is there.
    pub(crate) fn start_natively(slf: &Bound<'_, Self>) -> PyResult<Arc<Signal>> {
        let (py, signal) = (slf.py(), Signal::new());
        if !slf.get().pool.get().is_of_process() {
            return Err(slf.get().not_here());
        }
        let underway = Underway {
            sleeper: Some(Sleeper::Serial(Arc::clone(&signal))),
            operation: None,
        };
        drop(slf.get().progress.replace(Stage::Started(underway)));
        if slf.get().pool.get().is_home() {
            Self::send_started(slf);
        } else {
            let send = slf.getattr(intern!(py, "_send_started"))?;
            Self::on_loop(slf, &send)?;
        }
        Ok(signal)
    }

    /// Calls a function on the thread of the event loop.
    fn on_loop(slf: &Bound<'_, Self>, function: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let event_loop = slf.get().pool.get().event_loop.bind(py);
        event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (function,))?;
        Ok(())
    }

    /// The result of one whose signal is set.
    pub(crate) fn take_natively(slf: &Bound<'_, Self>) -> PyResult<Arc<Table>> {
        let result = slf.get().progress.take_result();
        let table = result
            .unwrap_or_else(|| Err(PyRuntimeError::new_err("the statement has no result")))?;
        let table = table.bind(slf.py()).cast::<PgTable>()?;
        Ok(Arc::clone(&table.get().0))
    }

    /// No code waits for it any more.
    pub(crate) fn abandon_anywhere(slf: &Bound<'_, Self>) {
        let py = slf.py();
        if slf.get().pool.get().is_home() {
            return Self::close(slf);
        }
        let close = slf.getattr(intern!(py, "close"));
        // Without a loop there are no sessions either.
        if let Err(error) = close.and_then(|close| Self::on_loop(slf, &close)) {
            drop(error);
        }
    }
}

#[pymethods]
impl PgCall {
    /// Sends one that compiled code waits for; what keeps it from being sent is its result.
    #[pyo3(name = "_send_started")]
    fn send_started(slf: &Bound<'_, Self>) {
        let py = slf.py();
        if let Err(error) = Self::submit(slf)
            && let Some(sleeper) = slf.get().finish(py, Err(error))
        {
            sleeper.wake(py, false);
        }
    }

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
        if slf.get().progress.is_started() {
            Self::abandon(slf);
        }
    }

    /// Sends it without waiting for its result.
    #[pyo3(name = "start")]
    fn start_now(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::start(slf)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)?;
        visit.call(&self.session)?;
        visit.call(&self.block)?;
        self.progress.traverse(&visit)
    }

    fn __clear__(&self) {
        self.progress.clear();
    }
}

/// A transaction, or a savepoint, that has a session: a call of its is refused when it has ended, because another block may
/// have the session then.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct PgBlock {
    pub(crate) session: Py<PgConnection>,
    is_over: AtomicBool,
}

impl PgBlock {
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

#[pymethods]
impl PgBlock {
    #[new]
    fn new(session: Py<PgConnection>) -> Self {
        Self {
            session,
            is_over: AtomicBool::new(false),
        }
    }

    /// Has calls that come later refused.
    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.session)
    }
}

/// Where a call has to be executed.
#[derive(FromPyObject)]
pub(crate) enum Owner {
    Block(Py<PgBlock>),
    Session(Py<PgConnection>),
}
