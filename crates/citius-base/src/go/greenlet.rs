//! Waiting in a gevent greenlet: switch to the next ready greenlet, or to the hub.
//!
//! A woken greenlet is queued at its hub. A greenlet that has to wait switches to the first of the queue, [`DIRECT_MAX`] times
//! without the hub; then the hub runs, so that its watchers and timers are served. A callback of the hub takes what is left in
//! the queue. Tests: `tests/go/`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use citius_native::{ForeignWaker, Outcome, Ticket, Waker};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::operation::{Operation, error};
use super::thread;
use crate::sync::lock;

/// A greenlet in its wait.
pub(crate) struct GreenletWaker {
    hub: Py<Hub>,
    /// Its `switch`.
    switch: Py<PyAny>,
    /// Cleared by the code that switches to it, and by the greenlet itself if it leaves for other reasons.
    is_waiting: AtomicBool,
}

impl GreenletWaker {
    fn leave(&self) -> bool {
        self.is_waiting.swap(false, Ordering::AcqRel)
    }
}

impl ForeignWaker for GreenletWaker {
    fn wake(&self, ticket: &Arc<Ticket>) {
        wake(Arc::clone(ticket));
    }
}

/// What belongs to one gevent hub: the greenlets of its that are ready. Called, it switches to them.
#[pyclass(frozen, module = "citius._core", name = "_Hub")]
pub(crate) struct Hub {
    gevents: Py<PyAny>,
    switch: Py<PyAny>,
    event_loop: Py<PyAny>,
    thread: ThreadId,
    state: Mutex<State>,
    /// Keeps the hub's loop from ending while another thread may wake a greenlet.
    keeper: Mutex<Option<Py<PyAny>>>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<Ticket>>,
    /// The hub's callback is on its way, or at work.
    is_scheduled: bool,
    /// Switches since the hub had its turn.
    n_direct: u32,
    n_waiting: usize,
    is_kept: bool,
}

/// Waits in the current greenlet.
///
/// # Errors
/// Whatever is thrown into it; `Deadlock` if the hub has nothing left that could wake a greenlet.
pub(crate) fn block(
    py: Python<'_>,
    gevent_hub: &Bound<'_, PyAny>,
    operation: &mut Operation,
) -> PyResult<Outcome> {
    let current = current(py)?;
    if current.is(gevent_hub) {
        let message = format!(
            "{} that has to wait, in gevent's hub: a callback of the hub's must not block; spawn a greenlet",
            operation.name()
        );
        return Err(error(py, "ChannelMisuse", &message));
    }
    let hub = Hub::of(py, gevent_hub)?;
    let ticket = Arc::new(Ticket::new(Waker::Foreign(Box::new(GreenletWaker {
        hub: hub.clone_ref(py),
        switch: current.getattr(intern!(py, "switch"))?.unbind(),
        is_waiting: AtomicBool::new(true),
    }))));
    if let Some(outcome) = operation.queue(&ticket) {
        return Ok(outcome);
    }
    let this = hub.get();
    let waited = this
        .enter(py)
        .and_then(|()| this.wait(py, &hub, &ticket))
        .and(this.exit(py));
    match waited {
        Ok(()) => Ok(operation
            .finish(&ticket)
            .expect("settled, and ours to take")),
        Err(error) => {
            operation.cancel(&ticket);
            Err(error)
        }
    }
}

/// Queues the greenlet of a settled ticket.
fn wake(ticket: Arc<Ticket>) {
    Python::attach(|py| {
        let hub = waker_of(&ticket).hub.clone_ref(py);
        let schedules = {
            let mut state = lock(&hub.get().state);
            state.ready.push_back(ticket);
            !std::mem::replace(&mut state.is_scheduled, true)
        };
        if schedules {
            hub.get().schedule(py, &hub);
        }
    });
}

fn waker_of(ticket: &Ticket) -> &GreenletWaker {
    let waker = ticket.waker().foreign();
    waker.expect("only greenlets are queued at a hub")
}

impl Hub {
    /// The one of this thread.
    fn of(py: Python<'_>, gevent_hub: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let known = |known: &&Py<Self>| known.get().gevents.is(gevent_hub);
        if let Some(known) = lock(&HUBS).iter().find(known) {
            return Ok(known.clone_ref(py));
        }
        let made = Py::new(
            py,
            Self {
                gevents: gevent_hub.clone().unbind(),
                switch: gevent_hub.getattr("switch")?.unbind(),
                event_loop: gevent_hub.getattr("loop")?.unbind(),
                thread: std::thread::current().id(),
                state: Mutex::default(),
                keeper: Mutex::new(None),
            },
        )?;
        let others = std::mem::take(&mut *lock(&HUBS));
        let (mut alive, dead): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|other| other.get().is_alive(py));
        drop(dead);
        alive.push(made.clone_ref(py));
        lock(&HUBS).append(&mut alive);
        Ok(made)
    }

    /// A hub that was destroyed has no loop.
    fn is_alive(&self, py: Python<'_>) -> bool {
        let event_loop = self.gevents.bind(py).getattr("loop");
        event_loop.is_ok_and(|event_loop| !event_loop.is_none())
    }

    fn wait(&self, py: Python<'_>, this: &Py<Self>, ticket: &Arc<Ticket>) -> PyResult<()> {
        let own = waker_of(ticket);
        while !ticket.is_done() {
            let switched = match self.take_direct(py, this) {
                Some(next) if Arc::ptr_eq(&next, ticket) => break,
                Some(next) => waker_of(&next).switch.bind(py).call0(),
                None => self.switch.bind(py).call0(),
            };
            if let Err(raised) = switched {
                if self.goes_on_after(py, &raised) {
                    continue;
                }
                own.leave();
                return Err(translate(py, raised));
            }
        }
        own.leave();
        Ok(())
    }

    /// The greenlet to switch to instead of the hub.
    fn take_direct(&self, py: Python<'_>, this: &Py<Self>) -> Option<Arc<Ticket>> {
        let schedules = {
            let mut state = lock(&self.state);
            if state.n_direct < DIRECT_MAX {
                state.n_direct += 1;
                return take(&mut state);
            }
            state.n_direct = 0;
            !state.ready.is_empty() && !std::mem::replace(&mut state.is_scheduled, true)
        };
        if schedules {
            self.schedule(py, this);
        }
        None
    }

    /// Has the hub call us.
    fn schedule(&self, py: Python<'_>, this: &Py<Self>) {
        let name = if std::thread::current().id() == self.thread {
            intern!(py, "run_callback")
        } else {
            intern!(py, "run_callback_threadsafe")
        };
        if let Err(error) = self.event_loop.bind(py).call_method1(name, (this,)) {
            // The hub was destroyed, and its greenlets with it.
            lock(&self.state).is_scheduled = false;
            error.write_unraisable(py, Some(self.gevents.bind(py)));
        }
    }

    fn enter(&self, py: Python<'_>) -> PyResult<()> {
        let others = thread::other_threads(py)? > 0;
        lock(&self.state).n_waiting += 1;
        if others {
            self.keep(py)?;
        }
        Ok(())
    }

    /// Whether to wait on although the hub has found nothing that could wake a greenlet: a signal handler might.
    #[cold]
    fn goes_on_after(&self, py: Python<'_>, raised: &PyErr) -> bool {
        is_loop_exit(py, raised)
            && thread::has_outside_party(py).unwrap_or(true)
            && self.keep(py).unwrap_or(false)
    }

    /// Keeps the hub's loop from ending until no greenlet waits any more; `false` if it is kept already.
    fn keep(&self, py: Python<'_>) -> PyResult<bool> {
        let starts = !std::mem::replace(&mut lock(&self.state).is_kept, true);
        if starts {
            let keeper = lock(&self.keeper)
                .as_ref()
                .map(|keeper| keeper.clone_ref(py));
            let keeper = if let Some(keeper) = keeper {
                keeper
            } else {
                let made = self.event_loop.bind(py).call_method0("async_")?.unbind();
                let replaced = lock(&self.keeper).replace(made.clone_ref(py));
                drop(replaced);
                made
            };
            let nothing = py.get_type::<pyo3::types::PyDict>();
            keeper
                .bind(py)
                .call_method1(intern!(py, "start"), (nothing,))?;
        }
        Ok(starts)
    }

    fn exit(&self, py: Python<'_>) -> PyResult<()> {
        let stops = {
            let mut state = lock(&self.state);
            state.n_waiting -= 1;
            state.n_waiting == 0 && std::mem::replace(&mut state.is_kept, false)
        };
        if stops {
            let keeper = lock(&self.keeper)
                .as_ref()
                .map(|keeper| keeper.clone_ref(py));
            if let Some(keeper) = keeper {
                keeper.bind(py).call_method0(intern!(py, "stop"))?;
            }
        }
        Ok(())
    }
}

/// The first of the ready that still waits; its berth is the caller's to switch to.
fn take(state: &mut State) -> Option<Arc<Ticket>> {
    loop {
        let ticket = state.ready.pop_front()?;
        if waker_of(&ticket).leave() {
            return Some(ticket);
        }
    }
}

#[pymethods]
impl Hub {
    /// The hub's turn: switch to those who were ready when it began.
    fn __call__(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let mut left = {
            let mut state = lock(&this.state);
            state.n_direct = 0;
            state.ready.len()
        };
        loop {
            let (next, goes_on) = {
                let mut state = lock(&this.state);
                let next = if left > 0 { take(&mut state) } else { None };
                if next.is_none() {
                    state.is_scheduled = !state.ready.is_empty();
                }
                (next, state.is_scheduled)
            };
            let Some(next) = next else {
                if goes_on {
                    this.schedule(py, slf.as_unbound());
                }
                return Ok(());
            };
            left -= 1;
            if let Err(error) = waker_of(&next).switch.bind(py).call0() {
                error.write_unraisable(py, None);
            }
        }
    }
}

fn current(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function = FUNCTION.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("greenlet")?.getattr("getcurrent")?.unbind())
    })?;
    function.bind(py).call0()
}

/// Whether the hub's loop has ended because nothing is left that it waits for.
#[cold]
fn is_loop_exit(py: Python<'_>, raised: &PyErr) -> bool {
    py.import("gevent.exceptions")
        .and_then(|module| module.getattr("LoopExit"))
        .is_ok_and(|kind| raised.is_instance(py, &kind))
}

/// `LoopExit` becomes `Deadlock`.
#[cold]
fn translate(py: Python<'_>, raised: PyErr) -> PyErr {
    if !is_loop_exit(py, &raised) {
        return raised;
    }
    let made = error(
        py,
        "Deadlock",
        "all greenlets of this thread wait, there is no other thread, signal handler, timer or socket that could wake one; \
         look for a greenlet that ended early (its exception is in the log), a missing close(), or a channel \
         without room that one greenlet both fills and empties",
    );
    made.set_cause(py, Some(raised));
    made
}

/// Those whose hubs are alive, and perhaps some that died since the last was made.
static HUBS: Mutex<Vec<Py<Hub>>> = Mutex::new(Vec::new());

/// Switches from greenlet to greenlet before the hub has a turn, so that a chain does not starve other greenlets.
const DIRECT_MAX: u32 = 200;
