//! One step of a coroutine, and what takes its result.
//!
//! In: a coroutine and a [`CompletionHandler`]. Out: the future that the coroutine waits for, or nothing if its result was
//! handled. A step runs within the turn or, later, in the coroutine's own task ([`LateStep`]). Tests: `tests/eager/`.

use std::ptr;
use std::sync::Arc;

use citius_http::limits;
use citius_reactor::{Reply, StreamId, coarse_ms, note_cpu};
use pyo3::exceptions::PyStopIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{ffi, intern};

use crate::exchange::Role;
use crate::fork::end_child;
use crate::reactor_handle::ReactorHandle;
use crate::report::{self, Subject};
use crate::sink::{Late, Sink};
use crate::support::guarded;

/// What takes the result of a coroutine.
pub trait CompletionHandler {
    /// The exchange that the coroutine works on.
    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId);

    /// Takes what a coroutine has returned or raised.
    fn on_result<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next;

    /// The coroutine has suspended for the first time.
    fn on_suspend(&mut self, py: Python<'_>) -> PyResult<Suspended>;

    /// The coroutine has suspended or ended within the turn: sends what is queued. Later items are posted.
    fn flush(&mut self, py: Python<'_>, reply: &mut Reply<'_>);

    /// What the log says of it.
    fn subject(&self, py: Python<'_>) -> Subject;

    /// It cannot be stepped.
    fn fail(&mut self, py: Python<'_>, error: &PyErr, reply: &mut Reply<'_>);
}

/// What follows a coroutine.
pub enum Next {
    /// Another one, which takes its place.
    Coroutine(Py<PyAny>),
    /// Nothing; the error is one that the task must end with.
    Done(Option<PyErr>),
}

/// What a coroutine leaves when it suspends.
pub struct Suspended {
    /// What becomes of its exchange.
    pub entry: Entry,
    /// What goes on with it.
    pub resume: Box<dyn Resume>,
}

/// What becomes of the exchange of a coroutine that has suspended.
pub enum Entry {
    /// It is entered in this role, unless it is open.
    As(Box<dyn Role>),
    /// It was entered before its application was called, and may be over.
    Known,
    /// Its response is complete: the coroutine goes on by itself.
    Over,
}

/// A [`CompletionHandler`] between two steps.
pub trait Resume: Send {
    /// Makes the handler and has `step` made for it.
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress;

    /// Visits the Python objects in it.
    fn traverse(&self, _visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        Ok(())
    }
}

/// A step of a coroutine outside of a turn.
pub struct LateStep<'a> {
    pub(super) coroutine: &'a mut Py<PyAny>,
    pub(super) input: StepInput,
}

impl LateStep<'_> {
    /// Steps a coroutine that answers no request: what it waits for, `None` if it has returned.
    pub fn run_apart(self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match step(py, self.coroutine, &self.input) {
            Step::Yielded(awaited) => Ok(Some(awaited)),
            Step::Returned(_) => Ok(None),
            Step::Raised(error) => Err(error),
        }
    }

    /// Steps the coroutine for this handler.
    pub fn run<E: CompletionHandler>(self, py: Python<'_>, handler: &mut E) -> Progress {
        let (handle, id) = handler.exchange();
        let handle = &Arc::clone(handle);
        let began_ms = coarse_ms();
        note_cpu(began_ms);
        let progress = guarded(py, || {
            advance(
                py,
                self.coroutine,
                self.input,
                handler,
                &mut Late { handle, id },
            )
        });
        end_child(py, handle);
        let took_ms = coarse_ms().saturating_sub(began_ms);
        if limits::reaches(took_ms, handle.limits.slow_handler_ms) {
            report::slow(py, handle, took_ms, || handler.subject(py));
        }
        progress.unwrap_or_else(|| {
            handle.cut(id);
            Progress::Done(None)
        })
    }
}

/// How a coroutine is gone on with.
pub(crate) enum StepInput {
    Send,
    Throw(Py<PyAny>),
}

/// What came of it.
pub enum Progress {
    /// It waits for this.
    Suspended(Py<PyAny>),
    /// It is over and answered; the error is one that the task must end with.
    Done(Option<PyErr>),
}

/// Steps until the coroutine waits or its handler is done; another may take its place on the way.
#[inline]
pub(super) fn advance<E: CompletionHandler, S: Sink>(
    py: Python<'_>,
    coroutine: &mut Py<PyAny>,
    mut input: StepInput,
    handler: &mut E,
    sink: &mut S,
) -> Progress {
    loop {
        let result = match step(py, coroutine, &input) {
            Step::Yielded(awaited) => return Progress::Suspended(awaited),
            Step::Returned(value) => Ok(value),
            Step::Raised(error) => Err(error),
        };
        match handler.on_result(py, result, sink) {
            Next::Coroutine(next) => {
                *coroutine = next;
                input = StepInput::Send;
            }
            Next::Done(error) => return Progress::Done(error),
        }
    }
}

/// Whether this is what a cancelled task ends with.
pub fn is_cancellation(py: Python<'_>, error: &PyErr) -> bool {
    static KIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let kind = KIND.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("asyncio")?.getattr("CancelledError")?.unbind())
    });
    kind.is_ok_and(|kind| error.is_instance(py, kind.bind(py)))
}

pub(super) enum Step<'py> {
    Yielded(Py<PyAny>),
    Returned(Bound<'py, PyAny>),
    Raised(PyErr),
}

/// One step of a coroutine.
#[inline]
pub(super) fn step<'py>(py: Python<'py>, coroutine: &Py<PyAny>, input: &StepInput) -> Step<'py> {
    if let StepInput::Throw(error) = input {
        return match coroutine
            .bind(py)
            .call_method1(intern!(py, "throw"), (error,))
        {
            Ok(awaited) => Step::Yielded(awaited.unbind()),
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
                match error.value(py).getattr(intern!(py, "value")) {
                    Ok(value) => Step::Returned(value),
                    Err(error) => Step::Raised(error),
                }
            }
            Err(error) => Step::Raised(error),
        };
    }
    let (none, mut result) = (py.None(), ptr::null_mut());
    // SAFETY: both arguments are live objects and the GIL is held; `result` receives a new reference
    // unless an exception is set.
    let sent = unsafe { ffi::PyIter_Send(coroutine.as_ptr(), none.as_ptr(), &raw mut result) };
    if sent == ffi::PySendResult::PYGEN_ERROR {
        return Step::Raised(PyErr::fetch(py));
    }
    // SAFETY: without an error `result` is a new reference.
    let value = unsafe { Bound::from_owned_ptr(py, result) };
    if sent == ffi::PySendResult::PYGEN_RETURN {
        Step::Returned(value)
    } else {
        Step::Yielded(value.unbind())
    }
}
