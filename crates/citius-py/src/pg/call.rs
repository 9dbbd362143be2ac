//! What a coroutine awaits: one statement and what becomes of it.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::connection::PgConnection;
use super::pool::PgPool;
use super::portal::Portal;
use super::rows::Shape;
use crate::awaitable::Poll;
use crate::sync::lock;
use crate::waiter::Waiter;

/// What is executed.
pub(crate) enum Work {
    /// A statement with its parameters: prepared once per session.
    Statement(Py<PyString>, Py<PyTuple>),
    /// The same statement with each of these parameters, in one request.
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
            Self::Statement(sql, _) | Self::Each(sql, _) | Self::Open(_, sql, _) => Some(sql),
            Self::Script(_) | Self::Resume(_) | Self::Copy(..) => None,
        }
    }
}

/// A statement on its way; it starts when it is awaited.
#[pyclass(frozen, module = "citius._core", name = "PgCall")]
pub(crate) struct PgCall {
    pool: Py<PgPool>,
    /// The session that it belongs to; without one any of the pool's.
    session: Option<Py<PgConnection>>,
    pub(crate) work: Work,
    pub(crate) shape: Shape,
    progress: Mutex<Progress>,
}

#[derive(Default)]
enum Progress {
    #[default]
    New,
    /// The pool or a connection has it; the waiter of who awaits it.
    Started(Option<Py<Waiter>>),
    Done(PyResult<Py<PyAny>>),
    /// The result has been taken, or no code waits for it any more.
    Over,
}

impl PgCall {
    pub(crate) fn new(
        py: Python<'_>,
        pool: Py<PgPool>,
        session: Option<Py<PgConnection>>,
        work: Work,
        shape: Shape,
    ) -> PyResult<Py<Self>> {
        Py::new(
            py,
            Self {
                pool,
                session,
                work,
                shape,
                progress: Mutex::default(),
            },
        )
    }

    /// No code waits for it.
    pub(crate) fn is_over(&self) -> bool {
        matches!(*lock(&self.progress), Progress::Over | Progress::Done(_))
    }

    /// Whether it may go to any session of the pool.
    pub(crate) fn is_free(&self) -> bool {
        self.session.is_none()
    }

    /// Keeps the result and returns who is to be woken.
    pub(crate) fn finish(&self, result: PyResult<Py<PyAny>>) -> Option<Py<Waiter>> {
        let mut progress = lock(&self.progress);
        match &mut *progress {
            Progress::Started(waiter) => {
                let waiter = waiter.take();
                *progress = Progress::Done(result);
                waiter
            }
            Progress::New => {
                *progress = Progress::Done(result);
                None
            }
            Progress::Done(_) | Progress::Over => {
                drop(progress);
                drop(result);
                None
            }
        }
    }

    fn start(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        {
            let mut progress = lock(&this.progress);
            if !matches!(*progress, Progress::New) {
                return Ok(());
            }
            *progress = Progress::Started(None);
        }
        match &this.session {
            Some(session) => PgConnection::submit_or_fail(session.bind(py), slf.clone().unbind()),
            None => PgPool::submit(this.pool.bind(py), slf.clone().unbind()),
        }
    }

    /// Who awaited it has been cancelled.
    fn abandon(slf: &Bound<'_, Self>) {
        let py = slf.py();
        let before = std::mem::replace(&mut *lock(&slf.get().progress), Progress::Over);
        if matches!(before, Progress::Started(_)) {
            PgPool::abandoned(slf.get().pool.bind(py), slf);
        }
        drop(before);
    }
}

/// What a look has found.
enum Found {
    New,
    Waiting,
    Result(PyResult<Py<PyAny>>),
    Over,
}

impl PgCall {
    fn find(&self) -> Found {
        let mut progress = lock(&self.progress);
        match std::mem::take(&mut *progress) {
            Progress::New => Found::New,
            Progress::Started(waiter) => {
                *progress = Progress::Started(waiter);
                Found::Waiting
            }
            Progress::Done(result) => {
                *progress = Progress::Over;
                Found::Result(result)
            }
            Progress::Over => {
                *progress = Progress::Over;
                Found::Over
            }
        }
    }

    fn observe(slf: &Bound<'_, Self>) -> PyResult<Poll> {
        let (py, this) = (slf.py(), slf.get());
        loop {
            match this.find() {
                Found::New => Self::start(slf)?,
                Found::Result(result) => return result.map(Poll::Ready),
                Found::Over => {
                    return Err(PyRuntimeError::new_err(
                        "this statement has been awaited already; call the method again for another one",
                    ));
                }
                Found::Waiting => {
                    let event_loop = this.pool.get().event_loop.clone_ref(py);
                    let waiter = Waiter::on_loop(py, event_loop, None)?;
                    let replaced = match &mut *lock(&this.progress) {
                        Progress::Started(place) => place.replace(waiter.clone_ref(py)),
                        // Making the waiter may have run other code.
                        _ => continue,
                    };
                    drop(replaced);
                    return Ok(Waiter::pending(waiter));
                }
            }
        }
    }
}

#[pymethods]
impl PgCall {
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
        let is_started = matches!(*lock(&slf.get().progress), Progress::Started(_));
        if is_started {
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
        // A lock that is taken means that the call is in use: no garbage.
        if let Ok(progress) = self.progress.try_lock() {
            match &*progress {
                Progress::Started(Some(waiter)) => visit.call(waiter)?,
                Progress::Done(Ok(value)) => visit.call(value)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let progress = std::mem::take(&mut *lock(&self.progress));
        drop(progress);
    }
}
