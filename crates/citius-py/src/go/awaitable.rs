//! Waiting in a coroutine: an operation to be awaited, which is also the future that its task waits for.
//!
//! Nothing is done before it is awaited. An operation that need not wait ends the `await` without suspending. Otherwise the task
//! gets this object as its future, and [`super::event_loop`] completes it. The ticket in the queues of the channels holds the
//! awaitable, and the awaitable holds the ticket weakly: only what can still wake it keeps it alive. Tests: `tests/go/`.

use std::sync::{Arc, Mutex, Weak};

use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::event_loop::EventLoop;
use super::operation::{Operation, ResultShape, error};
use super::{Outcome, Ticket, Waker, caller};
use crate::sync::lock;
use crate::task::{call_done_callback, enter_context, exit_context};

/// How a coroutine is woken.
pub(crate) struct TaskWaker {
    pub(crate) event_loop: Py<EventLoop>,
    pub(crate) wait: Py<ChannelAwaitable>,
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
    /// asyncio's mark of a future that is being awaited.
    is_blocking: bool,
    event_loop: Option<Py<EventLoop>>,
    /// What the task wants to be called with, and in which context.
    callback: Option<(Py<PyAny>, Py<PyAny>)>,
}

enum AwaitState {
    Created,
    Pending(Weak<Ticket>),
    Ready(Outcome),
    Cancelled,
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
                is_blocking: false,
                event_loop: None,
                callback: None,
            }),
        };
        Ok(Py::new(py, wait)?.into_any())
    }

    /// On the loop's thread: takes the outcome and wakes the task.
    pub(crate) fn resolve(
        &self,
        py: Python<'_>,
        this: &Py<Self>,
        ticket: &Arc<Ticket>,
    ) -> PyResult<()> {
        let operation = lock(&self.state).operation.take();
        let Some(operation) = operation else {
            return Ok(());
        };
        let outcome = operation.finish(ticket);
        let callback = {
            let mut state = lock(&self.state);
            state.operation = Some(operation);
            if let Some(outcome) = outcome {
                state.progress = AwaitState::Ready(outcome);
            }
            state.callback.take()
        };
        if let Some((callback, context)) = callback {
            enter_context(py, &context)?;
            let called = call_done_callback(callback.bind(py), this.bind(py).as_any());
            exit_context(py, &context);
            called?;
        }
        Ok(())
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
            AwaitState::Created | AwaitState::Cancelled | AwaitState::Finished => {}
        }
    }

    /// Begins: does what is asked at once, or waits.
    fn begin(slf: &Bound<'_, Self>, mut operation: Operation) -> PyResult<Option<Outcome>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(outcome) = operation.attempt() {
            return Ok(Some(outcome));
        }
        let Some(running) = caller::running_loop(py)? else {
            return Err(PyRuntimeError::new_err(format!(
                "{} is awaited where no asyncio loop runs",
                this.name
            )));
        };
        let event_loop = EventLoop::of(py, &running)?;
        let ticket = Arc::new(Ticket::new(Waker::Coroutine(TaskWaker {
            event_loop: event_loop.clone_ref(py),
            wait: slf.clone().unbind(),
        })));
        {
            let mut state = lock(&this.state);
            state.progress = AwaitState::Pending(Arc::downgrade(&ticket));
            state.event_loop = Some(event_loop);
            state.is_blocking = true;
        }
        // Another thread may settle the ticket from here on; only this one, later, looks at it.
        let outcome = operation.queue(&ticket);
        let replaced = lock(&this.state).operation.replace(operation);
        drop(replaced);
        Ok(outcome)
    }

    /// What the `await` comes to, as an iterator says it: `None` by ending, for that takes no exception.
    fn finish(&self, py: Python<'_>, outcome: Outcome) -> PyResult<Option<Py<PyAny>>> {
        let over = {
            let mut state = lock(&self.state);
            state.progress = AwaitState::Finished;
            state.is_blocking = false;
            state.operation.take()
        };
        drop(over);
        let value = self.shape.shape(py, outcome)?;
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
        if let Ok(state) = self.state.try_lock()
            && let Some((callback, context)) = &state.callback
        {
            visit.call(callback)?;
            visit.call(context)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let callback = lock(&self.state).callback.take();
        drop(callback);
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
                "{} on the thread of a running event loop must not block it: use `await` (in `async def`), or \
                 do it in a thread (`go` of a plain function, or a handler with blocking=True)",
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
                AwaitState::Created => state.operation.take(),
                _ => None,
            };
            (progress, operation)
        };
        match progress {
            AwaitState::Created => {
                let operation = operation.expect("kept until it begins");
                match Self::begin(slf, operation)? {
                    Some(outcome) => this.finish(py, outcome),
                    None => Ok(Some(slf.clone().into_any().unbind())),
                }
            }
            AwaitState::Ready(outcome) => this.finish(py, outcome),
            AwaitState::Pending(ticket) => {
                // Stepped by other code than the loop: wait on.
                let mut state = lock(&this.state);
                state.progress = AwaitState::Pending(ticket);
                state.is_blocking = true;
                Ok(Some(slf.clone().into_any().unbind()))
            }
            AwaitState::Cancelled | AwaitState::Finished => Err(PyRuntimeError::new_err(format!(
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

    #[getter(_asyncio_future_blocking)]
    fn is_blocking(&self) -> bool {
        lock(&self.state).is_blocking
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, is_blocking: bool) {
        lock(&self.state).is_blocking = is_blocking;
    }

    fn get_loop(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let event_loop = lock(&self.state)
            .event_loop
            .as_ref()
            .map(|event_loop| event_loop.clone_ref(py))?;
        Some(event_loop.get().host.clone_ref(py))
    }

    #[pyo3(signature = (callback, *, context))]
    fn add_done_callback(&self, callback: Py<PyAny>, context: Py<PyAny>) {
        let before = lock(&self.state).callback.replace((callback, context));
        drop(before);
    }

    /// A task is cancelled: false if there is an outcome, which `throw` gives back then.
    #[pyo3(signature = (msg = None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        let (py, this) = (slf.py(), slf.get());
        drop(msg);
        let ticket = match &lock(&this.state).progress {
            AwaitState::Pending(ticket) => ticket.upgrade(),
            AwaitState::Ready(_)
            | AwaitState::Created
            | AwaitState::Cancelled
            | AwaitState::Finished => return Ok(false),
        };
        // Without a ticket it waits for nothing that could ever happen.
        if ticket.as_ref().is_some_and(|ticket| !ticket.claim()) {
            return Ok(false);
        }
        let (operation, callback, event_loop) = {
            let mut state = lock(&this.state);
            state.progress = AwaitState::Cancelled;
            let event_loop = state.event_loop.as_ref().map(|kept| kept.clone_ref(py));
            (state.operation.take(), state.callback.take(), event_loop)
        };
        if let (Some(operation), Some(ticket)) = (&operation, &ticket) {
            operation.cancel(ticket);
        }
        if let (Some((callback, context)), Some(event_loop)) = (callback, event_loop) {
            let keywords = pyo3::types::PyDict::new(py);
            keywords.set_item(intern!(py, "context"), context)?;
            let arguments = PyTuple::new(py, [callback, slf.clone().into_any().unbind()])?;
            event_loop.get().host.bind(py).call_method(
                intern!(py, "call_soon"),
                arguments,
                Some(&keywords),
            )?;
        }
        Ok(true)
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        if !matches!(lock(&self.state).progress, AwaitState::Cancelled) {
            return Ok(());
        }
        let kind = py.import("asyncio")?.getattr("CancelledError")?;
        Err(PyErr::from_value(kind.call0()?))
    }

    fn __repr__(&self) -> String {
        let progress = match lock(&self.state).progress {
            AwaitState::Created => "not awaited yet",
            AwaitState::Pending(_) => "waiting",
            AwaitState::Ready(_) => "settled",
            AwaitState::Cancelled => "cancelled",
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
            AwaitState::Cancelled | AwaitState::Finished => return,
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
            "{} was never awaited, so it was not done: on the thread of an event loop write `await …`",
            self.name
        );
        let warned = std::ffi::CString::new(message)
            .map_err(PyErr::from)
            .and_then(|text| PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1));
        if let Err(error) = warned {
            error.write_unraisable(py, None);
        }
    }
}
