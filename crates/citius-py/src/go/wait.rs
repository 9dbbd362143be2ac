//! Waiting in a coroutine: an operation to be awaited, and the future that its task waits for.
//!
//! Nothing is done before it is awaited. What can be done at once ends the `await` without suspending.
//! Otherwise the task is given this very object as its future (the protocol that asyncio documents by
//! `_asyncio_future_blocking`; `task.rs` does the same), and [`super::event_loop`] wakes it.
//!
//! While it waits, the ticket (in the queues of its channels) holds the wait, and the wait knows its
//! ticket only weakly: whoever can still wake it keeps it alive, and nobody else.

use std::sync::{Arc, Mutex, Weak};

use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::ask::{Ask, Form, error};
use super::event_loop::EventLoop;
use super::{Outcome, Ticket, Waker, place};
use crate::sync::lock;
use crate::task::{call_done_callback, enter_context, exit_context};

/// How a coroutine is woken.
pub(crate) struct Sleeper {
    pub(crate) event_loop: Py<EventLoop>,
    pub(crate) wait: Py<Wait>,
}

/// An operation to be awaited, once.
#[pyclass(frozen, module = "citius._core", name = "_Wait", weakref)]
pub(crate) struct Wait {
    form: Form,
    /// What an error calls it.
    name: &'static str,
    state: Mutex<State>,
}

struct State {
    stage: Stage,
    /// Out of here while it is at work, for it may run somebody's code.
    ask: Option<Ask>,
    is_awaited: bool,
    /// asyncio's mark of a future that is being awaited.
    is_blocking: bool,
    event_loop: Option<Py<EventLoop>>,
    /// What the task wants to be called with, and in which context.
    callback: Option<(Py<PyAny>, Py<PyAny>)>,
}

enum Stage {
    Fresh,
    Waiting(Weak<Ticket>),
    Settled(Outcome),
    Cancelled,
    Over,
}

impl Wait {
    pub(crate) fn make(py: Python<'_>, ask: Ask, form: Form) -> PyResult<Py<PyAny>> {
        let wait = Self {
            form,
            name: ask.name(),
            state: Mutex::new(State {
                stage: Stage::Fresh,
                ask: Some(ask),
                is_awaited: false,
                is_blocking: false,
                event_loop: None,
                callback: None,
            }),
        };
        Ok(Py::new(py, wait)?.into_any())
    }

    /// On the loop's thread: takes the outcome and wakes the task.
    pub(crate) fn settle(
        &self,
        py: Python<'_>,
        this: &Py<Self>,
        ticket: &Arc<Ticket>,
    ) -> PyResult<()> {
        let ask = lock(&self.state).ask.take();
        let Some(ask) = ask else {
            return Ok(());
        };
        let outcome = ask.conclude(ticket);
        let callback = {
            let mut state = lock(&self.state);
            state.ask = Some(ask);
            if let Some(outcome) = outcome {
                state.stage = Stage::Settled(outcome);
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

    /// Nobody will take what has come, or may still come.
    pub(crate) fn lose(&self, ticket: &Arc<Ticket>) {
        let ask = lock(&self.state).ask.take();
        if let Some(ask) = ask {
            ask.abandon(ticket);
        }
    }

    /// Ends it without a result; a value that was received goes to the next receiver.
    fn give_up(&self) {
        let (stage, ask) = {
            let mut state = lock(&self.state);
            let stage = std::mem::replace(&mut state.stage, Stage::Over);
            (stage, state.ask.take())
        };
        let Some(ask) = ask else {
            return;
        };
        match stage {
            Stage::Waiting(ticket) => {
                if let Some(ticket) = ticket.upgrade() {
                    ask.abandon(&ticket);
                }
            }
            Stage::Settled(outcome) => ask.give_back(outcome),
            Stage::Fresh | Stage::Cancelled | Stage::Over => {}
        }
    }

    /// Begins: does what is asked at once, or waits.
    fn begin(slf: &Bound<'_, Self>, mut ask: Ask) -> PyResult<Option<Outcome>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(outcome) = ask.attempt() {
            return Ok(Some(outcome));
        }
        let Some(running) = place::running_loop(py)? else {
            return Err(PyRuntimeError::new_err(format!(
                "{} is awaited where no asyncio loop runs",
                this.name
            )));
        };
        let event_loop = EventLoop::of(py, &running)?;
        let ticket = Arc::new(Ticket::new(Waker::Task(Sleeper {
            event_loop: event_loop.clone_ref(py),
            wait: slf.clone().unbind(),
        })));
        {
            let mut state = lock(&this.state);
            state.stage = Stage::Waiting(Arc::downgrade(&ticket));
            state.event_loop = Some(event_loop);
            state.is_blocking = true;
        }
        // Another thread may settle the ticket from here on; only this one, later, looks at it.
        let outcome = ask.queue(&ticket);
        let replaced = lock(&this.state).ask.replace(ask);
        drop(replaced);
        Ok(outcome)
    }

    /// What the `await` comes to, as an iterator says it: `None` by ending, for that takes no exception.
    fn finish(&self, py: Python<'_>, outcome: Outcome) -> PyResult<Option<Py<PyAny>>> {
        let over = {
            let mut state = lock(&self.state);
            state.stage = Stage::Over;
            state.is_blocking = false;
            state.ask.take()
        };
        drop(over);
        let value = self.form.shape(py, outcome)?;
        if value.is_none(py) {
            return Ok(None);
        }
        // Made here: an exception that is still to be made is made from a tuple of arguments, in more steps.
        let stop = py.get_type::<PyStopIteration>().call1((value,))?;
        Err(PyErr::from_value(stop))
    }
}

#[pymethods]
impl Wait {
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
        slf.get().give_up();
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
        let (stage, ask) = {
            let mut state = lock(&this.state);
            let stage = std::mem::replace(&mut state.stage, Stage::Over);
            let ask = match stage {
                Stage::Fresh => state.ask.take(),
                _ => None,
            };
            (stage, ask)
        };
        match stage {
            Stage::Fresh => {
                let ask = ask.expect("kept until it begins");
                match Self::begin(slf, ask)? {
                    Some(outcome) => this.finish(py, outcome),
                    None => Ok(Some(slf.clone().into_any().unbind())),
                }
            }
            Stage::Settled(outcome) => this.finish(py, outcome),
            Stage::Waiting(ticket) => {
                // Stepped by somebody else than the loop: wait on.
                let mut state = lock(&this.state);
                state.stage = Stage::Waiting(ticket);
                state.is_blocking = true;
                Ok(Some(slf.clone().into_any().unbind()))
            }
            Stage::Cancelled | Stage::Over => Err(PyRuntimeError::new_err(format!(
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
        self.give_up();
        let raised = match value {
            Some(value) if !value.is_none() => value.clone(),
            _ if kind.is_callable() => kind.call0()?,
            _ => kind.clone(),
        };
        Err(PyErr::from_value(raised))
    }

    fn close(&self) {
        self.give_up();
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
        let ticket = match &lock(&this.state).stage {
            Stage::Waiting(ticket) => ticket.upgrade(),
            Stage::Settled(_) | Stage::Fresh | Stage::Cancelled | Stage::Over => return Ok(false),
        };
        // Without a ticket it waits for nothing that could ever happen.
        if ticket.as_ref().is_some_and(|ticket| !ticket.claim()) {
            return Ok(false);
        }
        let (ask, callback, event_loop) = {
            let mut state = lock(&this.state);
            state.stage = Stage::Cancelled;
            let event_loop = state.event_loop.as_ref().map(|kept| kept.clone_ref(py));
            (state.ask.take(), state.callback.take(), event_loop)
        };
        if let (Some(ask), Some(ticket)) = (&ask, &ticket) {
            ask.abandon(ticket);
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
        if !matches!(lock(&self.state).stage, Stage::Cancelled) {
            return Ok(());
        }
        let kind = py.import("asyncio")?.getattr("CancelledError")?;
        Err(PyErr::from_value(kind.call0()?))
    }

    fn __repr__(&self) -> String {
        let stage = match lock(&self.state).stage {
            Stage::Fresh => "not awaited yet",
            Stage::Waiting(_) => "waiting",
            Stage::Settled(_) => "settled",
            Stage::Cancelled => "cancelled",
            Stage::Over => "over",
        };
        format!("<{} to be awaited, {stage}>", self.name)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let is_fresh = match lock(&self.state).stage {
            Stage::Fresh => true,
            Stage::Waiting(_) | Stage::Settled(_) => false,
            Stage::Cancelled | Stage::Over => return,
        };
        Python::attach(|py| {
            // An object may be let go of because of an exception, which must go on.
            let raised = PyErr::take(py);
            if is_fresh {
                self.warn(py);
            } else {
                self.give_up();
            }
            if let Some(raised) = raised {
                raised.restore(py);
            }
        });
    }
}

impl Wait {
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
