//! Coroutines are stepped within the turn, and still run in an `asyncio.Task`.
//!
//! Making a task for each request costs microseconds, and most handlers never suspend. So one *spare* task waits, parked. A new
//! coroutine is stepped with the spare as the current task and in the spare's context. If it ends without suspending and the
//! spare is unchanged, the spare serves the next request (I18). If it suspends, the spare becomes its task, and waits for the next
//! request when the coroutine has ended, again if it is unchanged:
//!
//! ```text
//! new task --first step: returns itself as the future to wait for--> Parked
//! Parked   --coroutine suspended on F: wakeup()------------------->  waits for F, an ordinary task
//! that     --coroutine ended: returns itself once more------------>  Parked
//! ```
//!
//! `coroutine.rs` makes a step, `driver.rs` is what the task runs, `parked.rs` has the tasks that wait for later requests,
//! `../context.rs` has the contexts. Only asyncio's documented protocol between tasks and futures is used. Tests: `tests/eager/`.

use std::cell::OnceCell;
use std::sync::Arc;

use citius_http::FAST_PATHS;
use citius_reactor::{Mailbox, Reply};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::Py_ssize_t;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::context::{BaseContext, enter_context, exit_context};
use crate::host_loop::HostLoop;
use crate::reuse::{Known, Links, Memory, Reuse, Spare};

use self::coroutine::{Step, StepInput, advance, step};
use self::driver::{ParkState, SuspendedCoroutine};
use self::parked::Parked;

mod coroutine;
mod driver;
mod future;
mod parked;

pub use self::coroutine::{
    CompletionHandler, Entry, LateStep, Next, Progress, Resume, Suspended, is_cancellation,
};
pub(crate) use self::driver::Driver;
pub(crate) use self::future::call_done_callback;

/// What steps the coroutines of one reactor.
pub struct Tasks {
    event_loop: Arc<HostLoop>,
    /// `None` while there is no event loop.
    asyncio: Option<Asyncio>,
    spare: Spare<SpareTask>,
    /// Tasks whose coroutines have suspended and ended. One of them is the next spare.
    parked: Arc<Parked>,
    /// The context every request starts from: that of the start-up hooks. The turn's own will not do,
    /// for it may have been scheduled from a handler's.
    base: Arc<BaseContext>,
    /// A copy of it that `def` handlers run in, until one of them changes or keeps it.
    shared: Py<PyAny>,
    entered: EnteredContext,
}

/// Whose context is the thread's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EnteredContext {
    /// The host's.
    Host,
    /// The shared one: a `def` handler or a callback of ours may run.
    Shared,
    /// The spare's, which is the loop's current task too: a coroutine may be stepped.
    SpareTask,
}

struct Asyncio {
    event_loop: Py<PyAny>,
    task_type: Py<PyAny>,
    enter_task: Py<PyAny>,
    leave_task: Py<PyAny>,
    current_task: Py<PyAny>,
    starts_eagerly: bool,
    /// Where tasks refer to each other; asked for with the first spare.
    links: OnceCell<Option<Links>>,
}

/// A task that is no request's yet.
struct SpareTask {
    task: Py<PyAny>,
    driver: Py<Driver>,
    context: Py<PyAny>,
    /// What the context was copied from.
    base: Arc<BaseContext>,
    /// The task as it was made. Every change of it is one of this: a name, a callback, a cancellation, an attribute.
    /// `None` where one would not show: then the task serves one request only.
    memory: Option<Memory>,
    known: KnownParts,
    /// The task waits for its driver. Until then, which is before Python 3.12 until the loop's next round, `memory` and
    /// `known` are those of a task that has not made its first step.
    is_parked: bool,
}

/// References to the objects of a spare that is not the current task.
struct KnownParts {
    task: Known,
    context: Known,
    driver: Known,
}

/// Those of a spare that waits for its driver.
const PARKED: KnownParts = KnownParts {
    task: Known::TASK,
    context: Known::TASK_CONTEXT,
    driver: Known::TASK_DRIVER,
};

impl Tasks {
    /// Those of the reactor with this loop and this mailbox. Without one they only have contexts.
    pub fn new(
        py: Python<'_>,
        event_loop: Arc<HostLoop>,
        mailbox: Option<Arc<Mailbox>>,
    ) -> PyResult<Self> {
        let made = event_loop.get().map(|made| made.clone_ref(py));
        let asyncio = made.map(|made| Asyncio::new(py, made)).transpose()?;
        let base = Arc::new(BaseContext::new(py)?);
        let shared = base.copy(py)?;
        Ok(Self {
            event_loop,
            asyncio,
            spare: Spare::default(),
            parked: Arc::new(Parked::new(mailbox)),
            base,
            shared,
            entered: EnteredContext::Host,
        })
    }

    /// Steps a new coroutine; what it comes to is answered now or later.
    pub fn step<E: CompletionHandler>(
        &mut self,
        py: Python<'_>,
        coroutine: Py<PyAny>,
        handler: &mut E,
        reply: &mut Reply<'_>,
    ) {
        let mut coroutine = coroutine;
        if let Err(error) = self.enter(py) {
            let _ = coroutine.bind(py).call_method0(intern!(py, "close"));
            return handler.fail(py, &error, reply);
        }
        match advance(py, &mut coroutine, StepInput::Send, handler, reply) {
            Progress::Suspended(awaited) => {
                self.exit(py);
                self.hand_over(py, coroutine, awaited, handler, reply);
            }
            Progress::Done(_) => {
                handler.flush(py, reply);
                self.retire_if_kept(py);
            }
        }
    }

    /// Steps a coroutine that answers no request; if it suspends, it goes on as what `on_suspend` makes of its task.
    ///
    /// `None`: the spare cannot be entered here, and nothing was called.
    pub fn step_apart<'py>(
        &mut self,
        py: Python<'py>,
        begin: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
        on_suspend: impl FnOnce(&Py<PyAny>) -> PyResult<Box<dyn Resume>>,
    ) -> Option<PyResult<()>> {
        self.enter(py).ok()?;
        let coroutine = match begin() {
            Ok(coroutine) => coroutine.unbind(),
            Err(error) => {
                self.retire_if_kept(py);
                return Some(Err(error));
            }
        };
        let awaited = match step(py, &coroutine, &StepInput::Send) {
            Step::Yielded(awaited) => awaited,
            Step::Returned(_) => {
                self.retire_if_kept(py);
                return Some(Ok(()));
            }
            Step::Raised(error) => {
                self.retire_if_kept(py);
                return Some(Err(error));
            }
        };
        self.exit(py);
        let spare = self.spare.retire()?;
        let resumed = on_suspend(&spare.task).and_then(|resume| {
            let suspended = SuspendedCoroutine { coroutine, resume };
            Driver::take_over(py, suspended, awaited, spare)
        });
        Some(resumed)
    }

    /// The context that every request starts from.
    pub fn base(&self) -> Arc<BaseContext> {
        Arc::clone(&self.base)
    }

    /// Makes the spare the current task, with its context. Other code may have found the spare since it was left.
    #[inline]
    fn enter(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.retire_unless_fresh(py) && self.entered == EnteredContext::SpareTask {
            return Ok(());
        }
        self.leave(py);
        if self.asyncio.is_none() {
            self.ask_for_loop(py)?;
        }
        let asyncio = self.asyncio.as_ref().ok_or_else(|| {
            PyRuntimeError::new_err("this host has no event loop to run a coroutine on")
        })?;
        let spare = match self.spare.lent() {
            Some(fresh) => fresh,
            None => self.spare.put(match self.parked.take(py) {
                Some(parked) => parked,
                None => asyncio.make_spare(py, &self.base, &self.parked)?,
            }),
        };
        asyncio
            .enter_task
            .bind(py)
            .call1((&asyncio.event_loop, &spare.task))?;
        if let Err(error) = enter_context(py, &spare.context) {
            asyncio
                .leave_task
                .bind(py)
                .call1((&asyncio.event_loop, &spare.task))?;
            return Err(error);
        }
        self.entered = EnteredContext::SpareTask;
        Ok(())
    }

    /// Something that suspends is to be run: from here on there is a loop, where there can be one.
    #[cold]
    fn ask_for_loop(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Some(made) = self.event_loop.ask(py)? {
            self.asyncio = Some(Asyncio::new(py, made.clone_ref(py))?);
        }
        Ok(())
    }

    /// Ends a spare that may not serve another request, so that code which kept its task sees it end as the task of a
    /// handler that has returned. Returns whether there is a spare that may.
    #[inline]
    fn retire_unless_fresh(&mut self, py: Python<'_>) -> bool {
        let lent = Py_ssize_t::from(self.entered == EnteredContext::SpareTask);
        if self.spare.is_fresh(py, lent) {
            return true;
        }
        self.retire(py);
        false
    }

    /// After a coroutine that did not suspend: ends the spare at once if code keeps its task, which may wait for it, and
    /// lets go of what the coroutine has set in its context. What else was done to the task shows when it is
    /// [left](Self::leave), and all else when it is [taken](Self::enter).
    #[inline]
    fn retire_if_kept(&mut self, py: Python<'_>) {
        let lent = Py_ssize_t::from(self.entered == EnteredContext::SpareTask);
        let is_kept = self.spare.lent().is_some_and(|spare| {
            !FAST_PATHS
                || spare.memory.is_none()
                || !spare.known.task.are_all_strong(py, &spare.task, lent)
                || !self.base.is_same(py, &spare.context)
        });
        if is_kept {
            self.retire(py);
        }
    }

    /// Makes room for Python code that is no coroutine's step: no current task, and a context that no
    /// request has left anything in.
    #[inline]
    pub fn enter_shared(&mut self, py: Python<'_>) {
        let is_entered = self.entered == EnteredContext::Shared;
        // A token of one of its variables is a reference to it.
        let lent = Py_ssize_t::from(is_entered);
        let is_clean = FAST_PATHS
            && Known::SHARED_CONTEXT.are_all(py, &self.shared, lent)
            && self.base.is_same(py, &self.shared);
        if is_clean && self.entered == EnteredContext::Shared {
            return;
        }
        self.leave(py);
        // Wherever it comes from: after who changed it there may have been a step, or the end of a turn.
        if !is_clean {
            match self.base.copy(py) {
                Ok(shared) => self.shared = shared,
                Err(error) => return error.write_unraisable(py, None),
            }
        }
        match enter_context(py, &self.shared) {
            Ok(()) => self.entered = EnteredContext::Shared,
            Err(error) => error.write_unraisable(py, None),
        }
    }

    /// Hands out the shared context as the request that has just run there has left it, for the rest of its response:
    /// a generator resets the variables that it has set, in the context where it has set them.
    pub fn take_shared(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let fresh = self.base.copy(py)?;
        self.leave(py);
        Ok(std::mem::replace(&mut self.shared, fresh))
    }

    /// Makes room for the rest of a response, in the context that [`take_shared`](Self::take_shared) has
    /// handed out.
    pub fn enter_shared_with(&mut self, py: Python<'_>, context: Py<PyAny>) {
        self.leave(py);
        self.shared = context;
        match enter_context(py, &self.shared) {
            Ok(()) => self.entered = EnteredContext::Shared,
            Err(error) => error.write_unraisable(py, None),
        }
    }

    /// Calls `act` with whether tasks may be stepped within it. Those whose coroutines end there are settled behind it.
    pub fn let_step<R>(&mut self, py: Python<'_>, act: impl FnOnce(bool) -> R) -> R {
        let may_step = self.may_step(py);
        let result = act(may_step);
        self.settle(py);
        result
    }

    /// Keeps tasks whose coroutines have ended for later requests, if they are unchanged, and ends the others. The spare
    /// is not the current task.
    #[inline]
    pub fn settle(&self, py: Python<'_>) {
        self.parked.settle(py);
    }

    /// Whether another task than the spare may be stepped here and now: none is current.
    fn may_step(&mut self, py: Python<'_>) -> bool {
        self.leave(py);
        if self.asyncio.is_none()
            && self.event_loop.get().is_some()
            && let Err(error) = self.ask_for_loop(py)
        {
            error.write_unraisable(py, None);
        }
        let Some(asyncio) = &self.asyncio else {
            return false;
        };
        let current = asyncio.current_task.bind(py).call1((&asyncio.event_loop,));
        current.is_ok_and(|task| task.is_none())
    }

    /// Gives the thread back to its host's context. Undoes [`enter`](Self::enter) and [`enter_shared`](Self::enter_shared). Ends a
    /// spare whose task was changed: callbacks that were added to it are called when it ends.
    #[inline]
    pub fn leave(&mut self, py: Python<'_>) {
        let was_entered = self.entered == EnteredContext::SpareTask;
        self.exit(py);
        let is_changed = |spare: &SpareTask| !spare.is_unchanged(py);
        if was_entered && self.spare.lent().is_some_and(is_changed) {
            self.retire(py);
        }
    }

    #[inline]
    fn exit(&mut self, py: Python<'_>) {
        match std::mem::replace(&mut self.entered, EnteredContext::Host) {
            EnteredContext::Host => {}
            EnteredContext::Shared => exit_context(py, &self.shared),
            EnteredContext::SpareTask => {
                let (Some(asyncio), Some(spare)) = (&self.asyncio, self.spare.lent()) else {
                    return;
                };
                exit_context(py, &spare.context);
                let task = (&asyncio.event_loop, &spare.task);
                if let Err(error) = asyncio.leave_task.bind(py).call1(task) {
                    error.write_unraisable(py, None);
                }
            }
        }
    }

    /// The coroutine has suspended: from here on the spare is its task.
    #[inline]
    fn hand_over<E: CompletionHandler>(
        &mut self,
        py: Python<'_>,
        coroutine: Py<PyAny>,
        awaited: Py<PyAny>,
        handler: &mut E,
        reply: &mut Reply<'_>,
    ) {
        let Some(spare) = self.spare.retire() else {
            return;
        };
        let taken_over = handler
            .on_suspend(py)
            .and_then(|Suspended { entry, resume }| {
                handler.flush(py, reply);
                let (handle, id) = handler.exchange();
                match entry {
                    Entry::As(role) => handle.suspend(id, Some(role), spare.task.clone_ref(py)),
                    Entry::Known => handle.suspend(id, None, spare.task.clone_ref(py)),
                    Entry::Over => drop(handle.take(id)),
                }
                let suspended = SuspendedCoroutine { coroutine, resume };
                Driver::take_over(py, suspended, awaited, spare)
            });
        if let Err(error) = taken_over {
            handler.fail(py, &error, reply);
        }
    }

    /// Ends the task of the spare.
    fn retire(&mut self, py: Python<'_>) {
        self.exit(py);
        if let Some(spare) = self.spare.retire() {
            spare.driver.get().retire(py);
        }
    }

    /// Ends all tasks that wait for requests, so that the loop can close without a pending one.
    pub fn close(&mut self, py: Python<'_>) {
        self.retire(py);
        self.parked.close(py);
    }
}

impl Asyncio {
    fn new(py: Python<'_>, event_loop: Py<PyAny>) -> PyResult<Self> {
        let tasks = py.import("asyncio.tasks")?;
        Ok(Self {
            event_loop,
            task_type: py
                .import("citius.serving.tasks")?
                .getattr("RequestTask")?
                .unbind(),
            enter_task: tasks.getattr("_enter_task")?.unbind(),
            leave_task: tasks.getattr("_leave_task")?.unbind(),
            current_task: tasks.getattr("current_task")?.unbind(),
            starts_eagerly: py.version_info() >= (3, 12),
            links: OnceCell::new(),
        })
    }

    fn make_spare(
        &self,
        py: Python<'_>,
        base: &Arc<BaseContext>,
        parked: &Arc<Parked>,
    ) -> PyResult<SpareTask> {
        let spare = self.make_task(py, base, parked)?;
        let links = if let Some(links) = self.links.get() {
            *links
        } else {
            let found = self.find_links(py, &spare, base, parked)?;
            *self.links.get_or_init(|| found)
        };
        let memory = match links {
            Some(links) => spare.memory.map(|memory| memory.except(&spare.task, links)),
            None => spare.memory,
        };
        Ok(SpareTask { memory, ..spare })
    }

    /// Makes another task, and looks how it refers to one that was just made.
    fn find_links(
        &self,
        py: Python<'_>,
        spare: &SpareTask,
        base: &Arc<BaseContext>,
        parked: &Arc<Parked>,
    ) -> PyResult<Option<Links>> {
        if py.version_info() < (3, 14) {
            return Ok(None);
        }
        let next = self.make_task(py, base, parked)?;
        let links = Links::between(py, &spare.task, &next.task);
        next.driver.get().retire(py);
        Ok(links)
    }

    fn make_task(
        &self,
        py: Python<'_>,
        base: &Arc<BaseContext>,
        parked: &Arc<Parked>,
    ) -> PyResult<SpareTask> {
        let context = base.copy(py)?;
        let driver = Driver::new(self.event_loop.clone_ref(py), Arc::clone(parked));
        let driver = Py::new(py, driver)?;
        let keywords = PyDict::new(py);
        keywords.set_item(intern!(py, "loop"), &self.event_loop)?;
        keywords.set_item(intern!(py, "context"), &context)?;
        keywords.set_item(intern!(py, "name"), intern!(py, "citius-request"))?;
        if self.starts_eagerly {
            keywords.set_item(intern!(py, "eager_start"), true)?;
        }
        let task = self
            .task_type
            .bind(py)
            .call((&driver,), Some(&keywords))?
            .unbind();
        drop(keywords); // which refer to the context
        let known = KnownParts {
            task: Known::counted(py, &task),
            context: Known::counted(py, &context),
            driver: Known::counted(py, &driver),
        };
        Ok(SpareTask {
            memory: Memory::of(py, &task),
            is_parked: false,
            task,
            driver,
            context,
            base: Arc::clone(base),
            known,
        })
    }
}

impl SpareTask {
    /// Whether the task, which is not the current one, is known to us alone and unchanged.
    #[inline]
    fn is_unchanged(&self, py: Python<'_>) -> bool {
        let memory = self.memory.as_ref();
        self.known.task.are_all_strong(py, &self.task, 0)
            && memory.is_some_and(|memory| memory.is_same(py, &self.task))
    }
}

impl Reuse for SpareTask {
    /// Task, driver and context are as they were made. `lent`: it is the current task, and its context is the thread's.
    #[inline]
    fn is_fresh(&mut self, py: Python<'_>, lent: Py_ssize_t) -> bool {
        let Some(memory) = &mut self.memory else {
            return false;
        };
        let is_parked = match self.driver.get().park_state(py) {
            ParkState::Unstarted => false,
            ParkState::Parked => true,
            ParkState::Disturbed => return false,
        };
        if is_parked && !self.is_parked {
            if !memory.has_become(py, &self.task, &self.driver) {
                return false;
            }
            self.known = PARKED;
            self.is_parked = true;
        }
        self.known.task.are_all_strong(py, &self.task, lent)
            && memory.is_same(py, &self.task)
            && self.known.driver.are_all(py, &self.driver, 0)
            && self.known.context.are_all(py, &self.context, lent)
            && self.base.is_same(py, &self.context)
    }
}
