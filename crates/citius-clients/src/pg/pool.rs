//! The sessions of one application with one database, and the calls that wait for one.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use citius_base::client_metrics::ClientMetrics;
use citius_base::process::Process;
use citius_base::support::Function;
use citius_base::sync::lock;
use citius_observe::ClientCounter;
use citius_pg::{PARAMETERS_MAX, Parameters, PoolState, StatementId};
use citius_reactor::coarse_ms;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::call::{Owner, PgCall, Work};
use super::connection::PgConnection;
use super::errors::errors;
use super::rows::{RowType, Shape};
use super::types::{PgTypes, TypeTable};

/// A statement with its values, of a t-string or of a statement and arguments.
static RENDER: Function = Function::new("citius.databases.templates", "render");

/// Sessions that share calls among them.
#[pyclass(frozen, module = "citius._core", name = "PgPool")]
pub(crate) struct PgPool {
    pub(crate) event_loop: Py<PyAny>,
    /// The thread of the loop.
    home: ThreadId,
    /// A child that is forked later has copies of the same sockets.
    process: Process,
    /// Text of a statement to its number; emptied at [`TEXTS_MAX`] and [`TEXTS_BYTES_MAX`].
    statements: Py<PyDict>,
    texts_bytes: AtomicUsize,
    /// The number of the next text that is new; none is given twice.
    next_statement: AtomicU32,
    /// Told what happens: `(kind, value)`.
    listener: Py<PyAny>,
    queue_max: usize,
    depth: usize,
    /// What its sessions have in common.
    state: PoolState,
    sharing: Mutex<Sharing>,
    is_pumping: AtomicBool,
    /// Without it nothing is measured.
    metrics: Option<Py<ClientMetrics>>,
    types: Py<PgTypes>,
}

#[derive(Default)]
struct Sharing {
    /// Sessions that are open and no transaction's.
    sessions: Vec<Py<PgConnection>>,
    /// The one that got the last call.
    latest: usize,
    queue: VecDeque<(u64, Py<PgCall>)>,
    is_closed: bool,
}

/// The keys of the hash are random, but the same in processes that were forked from one.
fn prefix() -> String {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("citius_{:x}_", hasher.finish())
}

/// Requests under way on one session; more wait in the queue.
const LOAD_MAX: usize = 64;

/// Texts of statements that are known by a number. An application that writes values into its statements never stops
/// making new ones; with more all are forgotten, and sessions prepare those that come again under a new number.
const TEXTS_MAX: usize = 10_000;

/// Bytes of those texts.
const TEXTS_BYTES_MAX: usize = 4 * 1024 * 1024;

impl PgPool {
    /// The number of a statement.
    pub(crate) fn statement_id(&self, sql: &Bound<'_, PyString>) -> PyResult<StatementId> {
        let statements = self.statements.bind(sql.py());
        if let Some(id) = statements.get_item(sql)? {
            return Ok(StatementId::of_bits(id.extract()?));
        }
        self.new_statement(statements, sql)
    }

    #[cold]
    fn new_statement(
        &self,
        statements: &Bound<'_, PyDict>,
        sql: &Bound<'_, PyString>,
    ) -> PyResult<StatementId> {
        let text = sql.to_str()?;
        let bytes = self.texts_bytes.fetch_add(text.len(), Ordering::Relaxed);
        if statements.len() >= TEXTS_MAX || bytes + text.len() > TEXTS_BYTES_MAX {
            statements.clear();
            self.texts_bytes.store(text.len(), Ordering::Relaxed);
        }
        let number = self.next_statement.fetch_add(1, Ordering::Relaxed);
        let id = StatementId::new(number, text);
        statements.set_item(sql, id.bits())?;
        Ok(id)
    }

    /// What its sessions have in common.
    #[inline]
    pub(crate) fn state(&self) -> &PoolState {
        &self.state
    }

    /// Whether this is the thread of the pool's event loop, in its process.
    pub(crate) fn is_home(&self) -> bool {
        std::thread::current().id() == self.home && self.is_of_process()
    }

    /// Whether this is the process that has opened it.
    pub(crate) fn is_of_process(&self) -> bool {
        self.process == Process::current()
    }

    /// A statement of compiled code.
    pub(crate) fn native_call(
        slf: &Bound<'_, Self>,
        sql: Bound<'_, PyString>,
        parameters: Parameters,
    ) -> PyResult<Py<PgCall>> {
        let work = Work::Native(sql.unbind(), parameters);
        PgCall::new(slf.py(), slf.clone().unbind(), None, work, Shape::Native)
    }

    /// What is known of types now.
    pub(crate) fn types(&self) -> Arc<TypeTable> {
        self.types.get().table()
    }

    /// What measures its statements, if they are measured.
    #[inline]
    pub(crate) fn metrics(&self) -> Option<&ClientMetrics> {
        self.metrics.as_ref().map(Py::get)
    }

    /// Statements have no names from now on, because they get lost.
    pub(crate) fn tell_nameless(&self, py: Python<'_>) {
        self.tell(py, "nameless");
    }

    /// The session for the next call: one that has something to send already, so that it leaves in the same write; else
    /// an idle one; else the least busy.
    fn pick(&self, py: Python<'_>) -> Option<Py<PgConnection>> {
        let mut sharing = lock(&self.sharing);
        let latest = sharing.sessions.get(sharing.latest);
        if let Some(latest) = latest
            && latest.get().is_unsent()
            && latest.get().load() < self.depth
        {
            return Some(latest.clone_ref(py));
        }
        let least = sharing
            .sessions
            .iter()
            .enumerate()
            .min_by_key(|(_, it)| it.get().load());
        let (at, session) = least.filter(|(_, it)| it.get().load() < LOAD_MAX)?;
        let session = session.clone_ref(py);
        sharing.latest = at;
        Some(session)
    }

    /// Takes a call that any session may do.
    pub(crate) fn submit(slf: &Bound<'_, Self>, call: Py<PgCall>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let is_queued = !lock(&this.sharing).queue.is_empty();
        let call = match this.pick(py) {
            Some(session) if !is_queued => match PgConnection::submit(session.bind(py), call) {
                Ok(()) => return Ok(()),
                Err(call) => call,
            },
            _ => call,
        };
        this.queue(py, call)
    }

    fn queue(&self, py: Python<'_>, call: Py<PgCall>) -> PyResult<()> {
        let refused = {
            let mut sharing = lock(&self.sharing);
            if sharing.is_closed {
                Some("pool_closed")
            } else if sharing.queue.len() >= self.queue_max {
                Some("queue_full")
            } else {
                sharing.queue.push_back((coarse_ms(), call));
                None
            }
        };
        if let Some(refused) = refused {
            self.count_refused();
            return Err(PyErr::from_value(
                errors(py, refused)?
                    .call1(py, (self.queue_max,))?
                    .into_bound(py),
            ));
        }
        self.tell(py, "queued");
        Ok(())
    }

    /// Takes back a call that its session could not do.
    pub(crate) fn queue_first(slf: &Bound<'_, Self>, call: Py<PgCall>) {
        lock(&slf.get().sharing)
            .queue
            .push_front((coarse_ms(), call));
        slf.get().tell(slf.py(), "queued");
    }

    /// Hands calls that wait to sessions that have room.
    pub(crate) fn pump(slf: &Bound<'_, Self>) {
        let (py, this) = (slf.py(), slf.get());
        if this.is_pumping.swap(true, Ordering::Relaxed) {
            return;
        }
        while !lock(&this.sharing).queue.is_empty() {
            let Some(session) = this.pick(py) else { break };
            if !this.hand_over(session.bind(py)) {
                break;
            }
        }
        this.is_pumping.store(false, Ordering::Relaxed);
    }

    /// Hands the call that has waited longest to a session; `false`: there is none, or the session did not take it.
    fn hand_over(&self, session: &Bound<'_, PgConnection>) -> bool {
        let Some((since, call)) = lock(&self.sharing).queue.pop_front() else {
            return false;
        };
        if call.get().is_over() {
            return true;
        }
        match PgConnection::submit(session, call) {
            Ok(()) => true,
            Err(call) => {
                lock(&self.sharing).queue.push_front((since, call));
                false
            }
        }
    }

    /// No code waits for a call any more.
    pub(crate) fn abandoned(slf: &Bound<'_, Self>, call: &Bound<'_, PgCall>) {
        let gone = {
            let mut sharing = lock(&slf.get().sharing);
            let at = sharing.queue.iter().position(|(_, queued)| queued.is(call));
            at.and_then(|at| sharing.queue.remove(at))
        };
        if gone.is_none() {
            slf.get().tell(slf.py(), "abandoned");
        }
    }

    fn count_refused(&self) {
        if let Some(metrics) = self.metrics() {
            metrics.count(ClientCounter::Refused);
        }
    }

    fn tell(&self, py: Python<'_>, kind: &str) {
        if let Err(error) = self.listener.call1(py, (kind, py.None())) {
            error.write_unraisable(py, None);
        }
    }

    fn call(
        slf: &Bound<'_, Self>,
        arguments: &Bound<'_, PyTuple>,
        session: Option<Owner>,
        shape: Shape,
    ) -> PyResult<Py<PgCall>> {
        let py = slf.py();
        let (sql, arguments) = rendered(arguments)?;
        let work = Work::Statement(sql.unbind(), arguments.unbind());
        PgCall::new(py, slf.clone().unbind(), session, work, shape)
    }

    fn each(
        slf: &Bound<'_, Self>,
        sql: Bound<'_, PyString>,
        rows: &Bound<'_, PyAny>,
        session: Option<Owner>,
        shape: Shape,
    ) -> PyResult<Py<PgCall>> {
        let rows = rows
            .try_iter()?
            .map(|row| row.and_then(|row| parameters(&row)));
        let work = Work::Each(sql.unbind(), rows.collect::<PyResult<_>>()?);
        PgCall::new(slf.py(), slf.clone().unbind(), session, work, shape)
    }
}

/// The text of a statement and its parameters.
#[inline]
pub(crate) fn rendered<'py>(
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<(Bound<'py, PyString>, Bound<'py, PyTuple>)> {
    let Ok(sql) = arguments.get_borrowed_item(0) else {
        return Err(PyTypeError::new_err("expected a statement"));
    };
    let rest = arguments.get_slice(1, arguments.len());
    if rest.len() > PARAMETERS_MAX {
        return Err(PyTypeError::new_err(format!(
            "a statement has at most {PARAMETERS_MAX} parameters, and {} are given",
            rest.len()
        )));
    }
    if let Ok(sql) = sql.cast_exact::<PyString>() {
        return Ok((sql.to_owned(), rest));
    }
    RENDER.get(arguments.py())?.call1((sql, rest))?.extract()
}

/// The parameters of one execution. Text is no list of them, although it can be iterated.
fn parameters(row: &Bound<'_, PyAny>) -> PyResult<Py<PyTuple>> {
    if let Ok(row) = row.cast::<PyTuple>() {
        return Ok(row.clone().unbind());
    }
    match row.cast::<PyList>() {
        Ok(row) => Ok(row.to_tuple().unbind()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "expected parameters as a tuple or list, got {}",
            row.get_type().name()?
        ))),
    }
}

#[pymethods]
impl PgPool {
    #[new]
    #[pyo3(signature = (event_loop, listener, queue_max, depth, has_names, types, metrics = None, resets = false))]
    #[expect(
        clippy::too_many_arguments,
        reason = "a constructor that one place calls"
    )]
    fn new(
        py: Python<'_>,
        event_loop: Py<PyAny>,
        listener: Py<PyAny>,
        queue_max: usize,
        depth: usize,
        has_names: bool,
        types: Py<PgTypes>,
        metrics: Option<Py<ClientMetrics>>,
        resets: bool,
    ) -> Self {
        Self {
            event_loop,
            home: std::thread::current().id(),
            process: Process::current(),
            statements: PyDict::new(py).unbind(),
            texts_bytes: AtomicUsize::new(0),
            next_statement: AtomicU32::new(0),
            listener,
            queue_max,
            depth,
            state: PoolState::new(prefix(), has_names, resets),
            sharing: Mutex::default(),
            is_pumping: AtomicBool::new(false),
            metrics,
            types,
        }
    }

    /// A transaction of a session may have another server process than the one before.
    fn set_pooled(&self) {
        self.state.set_pooled();
    }

    #[pyo3(signature = (*arguments, as_ = None, session = None))]
    fn fetch(
        slf: &Bound<'_, Self>,
        arguments: &Bound<'_, PyTuple>,
        as_: Option<&Bound<'_, PyAny>>,
        session: Option<Owner>,
    ) -> PyResult<Py<PgCall>> {
        Self::call(slf, arguments, session, Shape::Rows(RowType::of(as_)?))
    }

    /// The description of the columns as PEP 249 has it (`None` without columns), the rows, and the count.
    #[pyo3(signature = (sql, arguments, session))]
    fn fetch_described(
        slf: &Bound<'_, Self>,
        sql: Bound<'_, PyString>,
        arguments: Bound<'_, PyTuple>,
        session: Py<PgConnection>,
    ) -> PyResult<Py<PgCall>> {
        let work = Work::Statement(sql.unbind(), arguments.unbind());
        let pool = slf.clone().unbind();
        PgCall::new(
            slf.py(),
            pool,
            Some(Owner::Session(session)),
            work,
            Shape::Described,
        )
    }

    /// Rows that say what types are, for statements of the session that wait for that.
    fn look_up(
        slf: &Bound<'_, Self>,
        sql: Bound<'_, PyString>,
        types: Vec<u32>,
        session: Py<PgConnection>,
    ) -> PyResult<Py<PgCall>> {
        let py = slf.py();
        let arguments = PyTuple::new(py, [PyList::new(py, types)?])?;
        let work = Work::Statement(sql.unbind(), arguments.unbind());
        let shape = Shape::Rows(RowType::Tuple);
        PgCall::lookup(py, slf.clone().unbind(), session, work, shape)
    }

    #[pyo3(signature = (sql, rows, /, as_ = None, session = None))]
    fn fetch_many(
        slf: &Bound<'_, Self>,
        sql: Bound<'_, PyString>,
        rows: &Bound<'_, PyAny>,
        as_: Option<&Bound<'_, PyAny>>,
        session: Option<Owner>,
    ) -> PyResult<Py<PgCall>> {
        Self::each(slf, sql, rows, session, Shape::Rows(RowType::of(as_)?))
    }

    /// Executes a statement with each of these parameters, in one request: the number of rows changed.
    fn execute_each(
        slf: &Bound<'_, Self>,
        sql: Bound<'_, PyString>,
        rows: &Bound<'_, PyAny>,
        session: Owner,
    ) -> PyResult<Py<PgCall>> {
        Self::each(slf, sql, rows, Some(session), Shape::Count)
    }

    #[pyo3(signature = (*arguments, as_ = None, session = None))]
    fn fetch_one(
        slf: &Bound<'_, Self>,
        arguments: &Bound<'_, PyTuple>,
        as_: Option<&Bound<'_, PyAny>>,
        session: Option<Owner>,
    ) -> PyResult<Py<PgCall>> {
        Self::call(slf, arguments, session, Shape::One(RowType::of(as_)?))
    }

    #[pyo3(signature = (*arguments, session = None))]
    fn fetch_value(
        slf: &Bound<'_, Self>,
        arguments: &Bound<'_, PyTuple>,
        session: Option<Owner>,
    ) -> PyResult<Py<PgCall>> {
        Self::call(slf, arguments, session, Shape::Value)
    }

    #[pyo3(signature = (*arguments, session = None))]
    fn execute(
        slf: &Bound<'_, Self>,
        arguments: &Bound<'_, PyTuple>,
        session: Option<Owner>,
    ) -> PyResult<Py<PgCall>> {
        Self::call(slf, arguments, session, Shape::Count)
    }

    #[pyo3(signature = (*arguments, items = None, session = None))]
    fn fetch_json(
        slf: &Bound<'_, Self>,
        arguments: &Bound<'_, PyTuple>,
        items: Option<String>,
        session: Option<Owner>,
    ) -> PyResult<Py<PgCall>> {
        let is_name = |name: &String| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if items.as_ref().is_some_and(|items| !is_name(items)) {
            return Err(PyTypeError::new_err(
                "items is a name of letters, digits and _",
            ));
        }
        Self::call(slf, arguments, session, Shape::Json(items))
    }

    #[pyo3(signature = (*arguments, session = None))]
    fn fetch_json_one(
        slf: &Bound<'_, Self>,
        arguments: &Bound<'_, PyTuple>,
        session: Option<Owner>,
    ) -> PyResult<Py<PgCall>> {
        Self::call(slf, arguments, session, Shape::JsonOne)
    }

    /// Statements without parameters on a session.
    #[pyo3(signature = (sql, session))]
    fn script(
        slf: &Bound<'_, Self>,
        sql: Bound<'_, PyString>,
        session: Option<Owner>,
    ) -> PyResult<Py<PgCall>> {
        PgCall::new(
            slf.py(),
            slf.clone().unbind(),
            session,
            Work::Script(sql.unbind()),
            Shape::Count,
        )
    }

    /// A COPY on a session that nothing else uses; `sink` gets its data, or `None` when the server wants some.
    fn copy(
        slf: &Bound<'_, Self>,
        sql: Bound<'_, PyString>,
        session: Py<PgConnection>,
        sink: Py<PyAny>,
    ) -> PyResult<Py<PgCall>> {
        let work = Work::Copy(sql.unbind(), sink);
        PgCall::new(
            slf.py(),
            slf.clone().unbind(),
            Some(Owner::Session(session)),
            work,
            Shape::Count,
        )
    }

    /// Lets a session take calls.
    fn share(slf: &Bound<'_, Self>, session: Py<PgConnection>) {
        let mut sharing = lock(&slf.get().sharing);
        if !sharing.sessions.iter().any(|known| known.is(&session)) {
            sharing.sessions.push(session);
        }
        drop(sharing);
        Self::pump(slf);
    }

    /// Hands calls that wait to a session that a transaction gets next, so that transactions do not always go first.
    fn serve_waiting(slf: &Bound<'_, Self>, session: &Bound<'_, PgConnection>) {
        let this = slf.get();
        for _ in 0..this.depth {
            if !this.hand_over(session) {
                return;
            }
        }
    }

    /// Takes a session from those that share; the least busy one without an argument.
    #[pyo3(signature = (session = None))]
    fn unshare(&self, session: Option<Py<PgConnection>>) -> Option<Py<PgConnection>> {
        let mut sharing = lock(&self.sharing);
        let mut sessions = sharing.sessions.iter();
        let at = if let Some(session) = session {
            sessions.position(|known| known.is(&session))?
        } else {
            let least = sessions.enumerate().min_by_key(|(_, it)| it.get().load());
            least?.0
        };
        let taken = sharing.sessions.swap_remove(at);
        sharing.latest = 0;
        Some(taken)
    }

    /// Calls that wait for a session.
    #[getter]
    fn queued(&self) -> usize {
        lock(&self.sharing).queue.len()
    }

    /// Fails the calls that have waited for so long, in milliseconds.
    fn expire(slf: &Bound<'_, Self>, wait_ms: u64, error: &Bound<'_, PyAny>) {
        let (py, now) = (slf.py(), coarse_ms());
        loop {
            let due = {
                let mut sharing = lock(&slf.get().sharing);
                let is_due = |(since, _): &(u64, _)| now.saturating_sub(*since) >= wait_ms;
                if sharing.queue.front().is_some_and(is_due) {
                    sharing.queue.pop_front()
                } else {
                    None
                }
            };
            let Some((_, call)) = due else { return };
            let failed = error.call0().map_or_else(|error| error, PyErr::from_value);
            // At once: the pool is being closed.
            if wait_ms > 0 {
                slf.get().count_refused();
            }
            if let Some(sleeper) = call.get().finish(py, Err(failed)) {
                sleeper.wake(py, false);
            }
        }
    }

    /// Takes no more calls; those that wait are to be expired.
    fn stop_queueing(&self) {
        lock(&self.sharing).is_closed = true;
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        visit.call(&self.listener)?;
        visit.call(&self.types)?;
        if let Ok(sharing) = self.sharing.try_lock() {
            for session in &sharing.sessions {
                visit.call(session)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let sharing = std::mem::take(&mut *lock(&self.sharing));
        drop(sharing);
    }
}
