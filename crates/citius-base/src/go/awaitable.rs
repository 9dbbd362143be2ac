//! Waiting in a coroutine: an operation to be awaited.
//!
//! Nothing is done before it is awaited. An operation that need not wait ends the `await` without suspending. Otherwise the task
//! waits for a [`Waiter`], which [`super::event_loop`] completes. The ticket in the queues of the channels holds the
//! awaitable, and the awaitable holds the ticket weakly: only what can still wake it keeps it alive. Tests: `tests/go/`.

use std::sync::{Arc, Mutex, Weak};

use citius_native::{Outcome, Ticket, Waker};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::caller;
use super::event_loop::EventLoop;
use super::operation::{Operation, ResultShape, error};
use crate::sync::lock;
use crate::waiter::Waiter;

/// What to do instead of blocking an event loop.
const REMEDY: &str = "use `await` (in `async def`), or add serial=True to the handler (a `def`), or do it in a thread (`go` of a plain \
                      function, or a handler with blocking=True)";

/// How a coroutine is woken.
pub(crate) struct TaskWaker {
    pub(crate) event_loop: Py<EventLoop>,
    pub(crate) awaitable: Py<ChannelAwaitable>,
}

/// An operation to be awaited, once.
#[pyclass(frozen, module = "citius._core", name = "_ChannelAwaitable", weakref)]
pub(crate) struct ChannelAwaitable {
    shape: ResultShape,
    /// What an error calls it.
    name: &'static str,
    state: Mutex<State>,
}

struct State {
    progress: AwaitState,
    /// Taken out while it is at work, for it may run Python code.
    operation: Option<Operation>,
    is_awaited: bool,
    /// What the task waits for.
    waiter: Option<Py<Waiter>>,
}

enum AwaitState {
    Created,
    Pending(Weak<Ticket>),
    Ready(Outcome),
    Finished,
}

impl ChannelAwaitable {
    pub(crate) fn make(
        py: Python<'_>,
        operation: Operation,
        shape: ResultShape,
    ) -> PyResult<Py<PyAny>> {
        let wait = Self {
            shape,
            name: operation.name(),
            state: Mutex::new(State {
                progress: AwaitState::Created,
                operation: Some(operation),
                is_awaited: false,
                waiter: None,
            }),
        };
        Ok(Py::new(py, wait)?.into_any())
    }

    /// On the loop's thread: takes the outcome and wakes the task.
    ///
    /// # Errors
    /// What comes out of a step of the task: exceptions that end the event loop.
    pub(crate) fn resolve(&self, py: Python<'_>, ticket: &Arc<Ticket>) -> PyResult<()> {
        let operation = lock(&self.state).operation.take();
        let Some(operation) = operation else {
            return Ok(());
        };
        let outcome = operation.finish(ticket);
        let waiter = {
            let mut state = lock(&self.state);
            state.operation = Some(operation);
            if let Some(outcome) = outcome {
                state.progress = AwaitState::Ready(outcome);
            }
            state.waiter.as_ref().map(|waiter| waiter.clone_ref(py))
        };
        waiter.map_or(Ok(()), |waiter| Waiter::complete(waiter.bind(py), true))
    }

    /// Its task will not take what has come, or may still come.
    pub(crate) fn discard(&self, ticket: &Arc<Ticket>) {
        let operation = lock(&self.state).operation.take();
        if let Some(operation) = operation {
            operation.cancel(ticket);
        }
    }

    /// Ends it without a result; a value that was received goes to the next receiver.
    fn cancel_operation(&self) {
        let (progress, operation) = {
            let mut state = lock(&self.state);
            let progress = std::mem::replace(&mut state.progress, AwaitState::Finished);
            (progress, state.operation.take())
        };
        let Some(operation) = operation else {
            return;
        };
        match progress {
            AwaitState::Pending(ticket) => {
                if let Some(ticket) = ticket.upgrade() {
                    operation.cancel(&ticket);
                }
            }
            AwaitState::Ready(outcome) => operation.give_back(outcome),
            AwaitState::Created | AwaitState::Finished => {}
        }
    }

    /// Begins: does what is asked at once, or waits.
    fn begin(
        slf: &Bound<'_, Self>,
        mut operation: Operation,
    ) -> PyResult<Option<(Operation, Outcome)>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(outcome) = operation.attempt() {
            return Ok(Some((operation, outcome)));
        }
        let Some(running) = caller::running_loop(py)? else {
            return Err(PyRuntimeError::new_err(format!(
                "{} is awaited where no asyncio loop runs",
                this.name
            )));
        };
        let event_loop = EventLoop::of(py, &running)?;
        let ticket = Arc::new(Ticket::new(Waker::Foreign(Box::new(TaskWaker {
            event_loop,
            awaitable: slf.clone().unbind(),
        }))));
        let claimed = Arc::downgrade(&ticket);
        // Without a ticket it waits for nothing that could ever happen.
        let claim = move || claimed.upgrade().is_none_or(|ticket| ticket.claim());
        let waiter = Waiter::on_loop(py, running.unbind(), Some(Arc::new(claim)))?;
        {
            let mut state = lock(&this.state);
            state.progress = AwaitState::Pending(Arc::downgrade(&ticket));
            state.waiter = Some(waiter);
        }
        // Another thread may settle the ticket from here on; only this one, later, looks at it.
        if let Some(outcome) = operation.queue(&ticket) {
            return Ok(Some((operation, outcome)));
        }
        let replaced = lock(&this.state).operation.replace(operation);
        drop(replaced);
        Ok(None)
    }

    /// What the task gets to wait for.
    fn awaited(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let state = lock(&self.state);
        let waiter = state.waiter.as_ref().map(|waiter| waiter.clone_ref(py));
        drop(state);
        waiter.map(Waiter::awaited)
    }

    /// What the `await` comes to, as an iterator says it: `None` by ending, for that takes no exception.
    fn finish(
        &self,
        py: Python<'_>,
        operation: &Operation,
        outcome: Outcome,
    ) -> PyResult<Option<Py<PyAny>>> {
        let over = {
            let mut state = lock(&self.state);
            state.progress = AwaitState::Finished;
            (state.operation.take(), state.waiter.take())
        };
        drop(over);
        let value = operation.shape(py, self.shape, outcome)?;
        if value.is_none(py) {
            return Ok(None);
        }
        // Made here: an exception that is still to be made is made from a tuple of arguments, in more steps.
        let stop = py.get_type::<PyStopIteration>().call1((value,))?;
        Err(PyErr::from_value(stop))
    }
}

#[pymethods]
impl ChannelAwaitable {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.state.try_lock() {
            Ok(state) => visit.call(&state.waiter),
            // It is in use: no garbage.
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let waiter = lock(&self.state).waiter.take();
        drop(waiter);
    }

    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        lock(&slf.get().state).is_awaited = true;
        slf
    }

    /// Unless `yield from` goes through `__await__`, a `def` on a loop's thread has called what blocks
    /// elsewhere, and looks at the result.
    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if lock(&slf.get().state).is_awaited {
            return Ok(slf);
        }
        slf.get().cancel_operation();
        Err(error(
            slf.py(),
            "ChannelMisuse",
            &format!(
                "{} on the thread of a running event loop must not block it: {REMEDY}",
                slf.get().name
            ),
        ))
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        let (py, this) = (slf.py(), slf.get());
        let (progress, operation) = {
            let mut state = lock(&this.state);
            let progress = std::mem::replace(&mut state.progress, AwaitState::Finished);
            let operation = match progress {
                AwaitState::Created | AwaitState::Ready(_) => state.operation.take(),
                AwaitState::Pending(_) | AwaitState::Finished => None,
            };
            (progress, operation)
        };
        let kept = || operation.expect("kept until it is over");
        match progress {
            AwaitState::Created => match Self::begin(slf, kept())? {
                Some((operation, outcome)) => this.finish(py, &operation, outcome),
                None => Ok(this.awaited(py)),
            },
            AwaitState::Ready(outcome) => this.finish(py, &kept(), outcome),
            AwaitState::Pending(ticket) => {
                // Stepped by other code than the loop: wait on.
                lock(&this.state).progress = AwaitState::Pending(ticket);
                Ok(this.awaited(py))
            }
            AwaitState::Finished => Err(PyRuntimeError::new_err(format!(
                "{} can be awaited once; make another one",
                this.name
            ))),
        }
    }

    #[pyo3(signature = (kind, value = None, _traceback = None))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.cancel_operation();
        let raised = match value {
            Some(value) if !value.is_none() => value.clone(),
            _ if kind.is_callable() => kind.call0()?,
            _ => kind.clone(),
        };
        Err(PyErr::from_value(raised))
    }

    fn close(&self) {
        self.cancel_operation();
    }

    fn __repr__(&self) -> String {
        let progress = match lock(&self.state).progress {
            AwaitState::Created => "not awaited yet",
            AwaitState::Pending(_) => "waiting",
            AwaitState::Ready(_) => "settled",
            AwaitState::Finished => "over",
        };
        format!("<{} to be awaited, {progress}>", self.name)
    }
}

impl Drop for ChannelAwaitable {
    fn drop(&mut self) {
        let is_fresh = match lock(&self.state).progress {
            AwaitState::Created => true,
            AwaitState::Pending(_) | AwaitState::Ready(_) => false,
            AwaitState::Finished => return,
        };
        Python::attach(|py| {
            // An object may be let go of because of an exception, which must go on.
            let raised = PyErr::take(py);
            if is_fresh {
                self.warn(py);
            } else {
                self.cancel_operation();
            }
            if let Some(raised) = raised {
                raised.restore(py);
            }
        });
    }
}

impl ChannelAwaitable {
    #[cold]
    fn warn(&self, py: Python<'_>) {
        let message = format!(
            "{} was never awaited, so it was not done: {REMEDY}",
            self.name
        );
        // As text it names the place.
        let misuse = error(py, "ChannelMisuse", &message);
        let warned = std::ffi::CString::new(misuse.value(py).to_string())
            .map_err(PyErr::from)
            .and_then(|text| PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1));
        if let Err(error) = warned {
            error.write_unraisable(py, None);
        }
    }
}
