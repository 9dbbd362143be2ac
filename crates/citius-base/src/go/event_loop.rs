//! Wake-ups of coroutines: one callback of the event loop resumes all that are ready, and those they make ready.
//!
//! Two coroutines that exchange values cost no iteration of the loop, [`BATCH_MAX`] times; then the loop's other callbacks and
//! its sockets are served. Tests: `tests/go/`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use citius_native::{ForeignWaker, Ticket};
use pyo3::intern;
use pyo3::prelude::*;

use super::awaitable::TaskWaker;
use crate::sync::lock;

/// What belongs to one event loop. Called, it wakes those who are ready.
#[pyclass(frozen, module = "citius._core", name = "_EventLoop")]
pub(crate) struct EventLoop {
    pub(crate) host: Py<PyAny>,
    thread: ThreadId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<Ticket>>,
    /// The callback is on its way, or at work.
    is_scheduled: bool,
}

impl EventLoop {
    /// The one of the loop that runs on this thread.
    pub(crate) fn of(py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let known = |known: &&Py<Self>| known.get().host.is(event_loop);
        if let Some(known) = lock(&LOOPS).iter().find(known) {
            return Ok(known.clone_ref(py));
        }
        let made = Py::new(
            py,
            Self {
                host: event_loop.clone().unbind(),
                thread: std::thread::current().id(),
                state: Mutex::default(),
            },
        )?;
        let others = std::mem::take(&mut *lock(&LOOPS));
        let (mut open, closed): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|other| other.get().is_open(py));
        drop(closed);
        open.push(made.clone_ref(py));
        lock(&LOOPS).append(&mut open);
        Ok(made)
    }

    fn is_open(&self, py: Python<'_>) -> bool {
        let is_closed = self.host.bind(py).call_method0("is_closed");
        is_closed.is_ok_and(|is_closed| !is_closed.is_truthy().unwrap_or(true))
    }

    fn schedule(&self, py: Python<'_>, this: &Py<Self>) {
        let name = if std::thread::current().id() == self.thread {
            intern!(py, "call_soon")
        } else {
            intern!(py, "call_soon_threadsafe")
        };
        if self.host.bind(py).call_method1(name, (this,)).is_ok() {
            return;
        }
        // The loop was closed while a task waited: its value goes to another receiver.
        let ready = {
            let mut state = lock(&self.state);
            state.is_scheduled = false;
            std::mem::take(&mut state.ready)
        };
        for ticket in ready {
            waker_of(&ticket).awaitable.get().discard(&ticket);
        }
    }
}

impl ForeignWaker for TaskWaker {
    fn wake(&self, ticket: &Arc<Ticket>) {
        wake(Arc::clone(ticket));
    }
}

/// Queues the coroutine of a settled ticket.
fn wake(ticket: Arc<Ticket>) {
    Python::attach(|py| {
        let event_loop = waker_of(&ticket).event_loop.clone_ref(py);
        let schedules = {
            let mut state = lock(&event_loop.get().state);
            state.ready.push_back(ticket);
            !std::mem::replace(&mut state.is_scheduled, true)
        };
        if schedules {
            event_loop.get().schedule(py, &event_loop);
        }
    });
}

fn waker_of(ticket: &Ticket) -> &TaskWaker {
    let waker = ticket.waker().foreign();
    waker.expect("only coroutines are queued at a loop")
}

#[pymethods]
impl EventLoop {
    fn __call__(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let mut result = Ok(());
        for served in 0.. {
            let (next, goes_on) = {
                let mut state = lock(&this.state);
                let next = if served < BATCH_MAX && result.is_ok() {
                    state.ready.pop_front()
                } else {
                    None
                };
                if next.is_none() {
                    state.is_scheduled = !state.ready.is_empty();
                }
                (next, state.is_scheduled)
            };
            let Some(ticket) = next else {
                if goes_on {
                    this.schedule(py, slf.as_unbound());
                }
                break;
            };
            // Only what ends the loop comes out of a task's step: KeyboardInterrupt and its like.
            result = waker_of(&ticket).awaitable.get().resolve(py, &ticket);
        }
        result
    }
}

/// Those whose loops are open, and perhaps some that were closed since the last was made.
static LOOPS: Mutex<Vec<Py<EventLoop>>> = Mutex::new(Vec::new());

/// Wake-ups before the loop has a turn, so that a chain does not starve other callbacks.
const BATCH_MAX: u32 = 100;
