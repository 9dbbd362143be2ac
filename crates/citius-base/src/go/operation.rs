//! An operation on channels, independent of how its caller waits, and the form of its result. Tests: `tests/go/`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use citius_chan::{Attempt, Event};
use citius_native::{Case, Channel, Outcome, Ticket, Value};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use super::element;
use crate::object::from_object;

/// An operation.
pub(crate) enum Operation {
    Receive(Channel),
    /// The value is taken when it is sent or queued.
    Send(Channel, Option<Value>),
    Select(Vec<Case>),
}

/// What the caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultShape {
    /// `(value, ok)`
    Pair,
    /// The value; the end of an iteration when there is none.
    Item,
    /// The value in `async for`; the end of the iteration when there is none.
    AsyncItem,
    /// `None`, or `ChannelClosed`.
    Nothing,
    /// `Selected(case, value, ok)`, or `ChannelClosed`.
    Selected,
}

impl Operation {
    /// Does it, if that needs no waiting.
    #[inline]
    pub(crate) fn attempt(&mut self) -> Option<Outcome> {
        let attempt = match self {
            Self::Receive(channel) => channel.try_receive(),
            Self::Send(channel, value) => channel.try_send(value.take()?),
            Self::Select(cases) => return citius_chan::select(cases, seed(), None),
        };
        match attempt {
            Attempt::Done(event) => Some(Outcome { case: 0, event }),
            Attempt::Blocked(unsent) => {
                if let Self::Send(_, value) = self {
                    *value = unsent;
                }
                None
            }
        }
    }

    /// Does it, or queues the ticket.
    #[inline]
    pub(crate) fn queue(&mut self, ticket: &Arc<Ticket>) -> Option<Outcome> {
        let event = match self {
            Self::Receive(channel) => channel.receive(ticket)?,
            Self::Send(channel, value) => channel.send(value.take()?, ticket)?,
            Self::Select(cases) => return citius_chan::select(cases, seed(), Some(ticket)),
        };
        Some(Outcome { case: 0, event })
    }

    /// Takes the outcome of a settled ticket, and the ticket out of the queues of the other cases.
    #[inline]
    pub(crate) fn finish(&self, ticket: &Arc<Ticket>) -> Option<Outcome> {
        if let Self::Select(cases) = self {
            forget(cases, ticket);
        }
        ticket.take()
    }

    /// The caller waits no more. A value that has been received in the meantime goes to the next receiver.
    pub(crate) fn cancel(&self, ticket: &Arc<Ticket>) {
        ticket.claim();
        // Taking the locks also waits until a thread that claimed it before has settled it.
        match self {
            Self::Receive(channel) | Self::Send(channel, _) => channel.forget(ticket),
            Self::Select(cases) => forget(cases, ticket),
        }
        if let Some(outcome) = ticket.take() {
            self.give_back(outcome);
        }
    }

    /// Gives back what was received and is of no use.
    pub(crate) fn give_back(&self, outcome: Outcome) {
        if let Event::Received(value) = outcome.event {
            match self {
                Self::Receive(channel) | Self::Send(channel, _) => channel.put_back(value),
                Self::Select(cases) => {
                    if let Some(channel) = cases[outcome.case].channel() {
                        channel.put_back(value);
                    }
                }
            }
        }
    }

    /// The value that was received, as Python sees it.
    fn unpack(&self, py: Python<'_>, case: usize, value: Value) -> PyResult<Py<PyAny>> {
        let channel = match self {
            Self::Receive(channel) | Self::Send(channel, _) => Some(channel),
            Self::Select(cases) => cases.get(case).and_then(Case::channel),
        };
        match channel {
            Some(channel) => element::unpack(channel.element(), value, py),
            None => Ok(py.None()),
        }
    }

    /// The caller's response.
    #[inline]
    pub(crate) fn shape(
        &self,
        py: Python<'_>,
        shape: ResultShape,
        outcome: Outcome,
    ) -> PyResult<Py<PyAny>> {
        let Outcome { case, event } = outcome;
        let (value, ok) = match event {
            Event::Received(Value::Object(value)) => (from_object(py, value), true),
            Event::Received(value) => (self.unpack(py, case, value)?, true),
            Event::Sent => (py.None(), true),
            Event::Drained => (py.None(), false),
            Event::Refused(_) => {
                return Err(error(
                    py,
                    "ChannelClosed",
                    "send on a closed channel; only the sender should close it, after its last send",
                ));
            }
        };
        match shape {
            ResultShape::Pair => Ok((value, ok).into_pyobject(py)?.into_any().unbind()),
            ResultShape::Nothing => Ok(py.None()),
            ResultShape::Item | ResultShape::AsyncItem if ok => Ok(value),
            ResultShape::Item => Err(PyStopIteration::new_err(())),
            ResultShape::AsyncItem => Err(PyStopAsyncIteration::new_err(())),
            ResultShape::Selected => selected(py, case.into_py_any(py)?, value, ok),
        }
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Receive(_) => "a receive",
            Self::Send(..) => "a send",
            Self::Select(_) => "a select",
        }
    }
}

fn forget(cases: &[Case], ticket: &Arc<Ticket>) {
    for channel in cases.iter().filter_map(Case::channel) {
        channel.forget(ticket);
    }
}

/// A number for each select, spread by the select itself.
fn seed() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
}

/// A `citius.go.Selected`.
pub(crate) fn selected(
    py: Python<'_>,
    case: Py<PyAny>,
    value: Py<PyAny>,
    ok: bool,
) -> PyResult<Py<PyAny>> {
    static TYPE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let kind = TYPE.get_or_try_init(py, || {
        let module = py.import(intern!(py, "citius.go"))?;
        Ok::<_, PyErr>(module.getattr(intern!(py, "Selected"))?.unbind())
    })?;
    let members = PyTuple::new(py, [case, value, ok.into_py_any(py)?])?;
    Ok(kind.bind(py).call1(members)?.unbind())
}

/// An exception of `citius.errors`.
#[cold]
pub(crate) fn error(py: Python<'_>, name: &str, message: &str) -> PyErr {
    let made = py
        .import(intern!(py, "citius.errors"))
        .and_then(|module| module.getattr(name))
        .and_then(|kind| kind.call1((message,)));
    match made {
        Ok(made) => PyErr::from_value(made),
        Err(error) => error,
    }
}
