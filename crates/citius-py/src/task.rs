//! Coroutines, stepped on the spot, and still proper tasks.
//!
//! Making an `asyncio.Task` for every request costs microseconds; most handlers never suspend. So one
//! *spare* task waits, parked, ready to be somebody's. A new coroutine is stepped inside the turn with
//! the spare entered as the loop's current task and with the spare's context entered too: whoever asks
//! sees a task. If the coroutine ends without suspending and the spare is as it was made, the spare
//! serves the next request. If it suspends, the spare *becomes* its task, for good, with
//! the identity that may have been seen:
//!
//! ```text
//! new task --first step: returns itself as the future to wait for--> Parked
//! Parked   --coroutine suspended on F: wakeup()------------------->  waits for F, an ordinary task
//! ```
//!
//! [`Driver`] is the coroutine that the task runs and the future it is parked on. Everything goes
//! through asyncio's documented protocol between tasks and futures; no private state is changed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::{Arc, Mutex};

use citius_http::{FAST_PATHS, limits};
use citius_reactor::{Reply, StreamId, coarse_ms};
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, ffi};

use crate::exchange::Role;
use crate::fork::end_child;
use crate::ownership::{Field, Memory, is_known_only, references};
use crate::reactor_handle::ReactorHandle;
use crate::report::{self, Subject};
use crate::sink::{Late, Sink};
use crate::support::{clear_exception, guarded};
use crate::sync::lock;

/// What takes the result of a coroutine.
pub(crate) trait CompletionHandler {
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

    /// The coroutine has suspended or ended within the turn: sends what was said. From here on that is posted.
    fn flush(&mut self, py: Python<'_>, reply: &mut Reply<'_>);

    /// What the log says of it.
    fn subject(&self, py: Python<'_>) -> Subject;

    /// It cannot be stepped.
    fn fail(&mut self, py: Python<'_>, error: &PyErr, reply: &mut Reply<'_>);
}

/// What follows a coroutine.
pub(crate) enum Next {
    /// Another one, which takes its place.
    Coroutine(Py<PyAny>),
    /// Nothing; the error is one that the task must end with.
    Done(Option<PyErr>),
}

/// What a coroutine leaves when it suspends.
pub(crate) struct Suspended {
    pub(crate) entry: Entry,
    pub(crate) resume: Box<dyn Resume>,
}

/// What becomes of the exchange of a coroutine that has suspended.
pub(crate) enum Entry {
    /// It is entered in this role, unless it is open.
    As(Box<dyn Role>),
    /// It was entered before its application was called, and may be over.
    Known,
    /// Its response is complete: the coroutine goes on by itself.
    Over,
}

/// A [`CompletionHandler`] between two steps.
pub(crate) trait Resume: Send {
    /// Makes the handler and has `step` made for it.
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress;

    /// Visits the Python objects in it.
    fn traverse(&self, _visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        Ok(())
    }
}

/// A step of a coroutine outside of a turn.
pub(crate) struct LateStep<'a> {
    coroutine: &'a mut Py<PyAny>,
    input: StepInput,
}

impl LateStep<'_> {
    pub(crate) fn run<E: CompletionHandler>(self, py: Python<'_>, handler: &mut E) -> Progress {
        let (handle, id) = handler.exchange();
        let handle = &Arc::clone(handle);
        let began_ms = coarse_ms();
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

/// What steps the coroutines of one reactor.
pub(crate) struct Tasks {
    /// `None` without an event loop.
    asyncio: Option<Asyncio>,
    spare: Option<SpareTask>,
    /// The context every request starts from: that of the start-up hooks. The turn's own will not do,
    /// for it may have been scheduled from a handler's.
    base: BaseContext,
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
}

/// A task that is no request's yet. It serves a request if it [is fresh](SpareTask::is_fresh).
struct SpareTask {
    task: Py<PyAny>,
    driver: Py<Driver>,
    context: Py<PyAny>,
    /// The task as it was made. Every change of it is one of this: a name, a callback, a cancellation, an attribute.
    /// `None` where one would not show: then the task serves one request only.
    memory: Option<Memory>,
    counts: ReferenceCounts,
    /// The task waits for its driver. Until then, which is before Python 3.12 until the loop's next round, `memory` and
    /// `counts` are those of a task that has not made its first step.
    is_parked: bool,
}

/// References to the objects of a spare that is not the current task.
struct ReferenceCounts {
    task: ffi::Py_ssize_t,
    context: ffi::Py_ssize_t,
    driver: ffi::Py_ssize_t,
}

/// Of a parked spare: ours, and the wake-up's to the task, the task's to its context, and the task's two to its driver,
/// its coroutine and what it waits for.
const PARKED: ReferenceCounts = ReferenceCounts {
    task: 2,
    context: 2,
    driver: 3,
};

impl Tasks {
    pub(crate) fn new(py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Self> {
        let asyncio = event_loop
            .map(|event_loop| Asyncio::new(py, event_loop))
            .transpose()?;
        let base = BaseContext::new(py)?;
        let shared = base.copy(py)?;
        Ok(Self {
            asyncio,
            spare: None,
            base,
            shared,
            entered: EnteredContext::Host,
        })
    }

    /// Steps a new coroutine; what it comes to is answered now or later.
    pub(crate) fn step<E: CompletionHandler>(
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

    /// Makes the spare the current task, with its context. Other code may have found the spare since it was left.
    #[inline]
    fn enter(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.retire_unless_fresh(py) && self.entered == EnteredContext::SpareTask {
            return Ok(());
        }
        self.leave(py);
        let asyncio = self.asyncio.as_ref().ok_or_else(|| {
            PyRuntimeError::new_err("this host has no event loop to run a coroutine on")
        })?;
        if self.spare.is_none() {
            self.spare = Some(asyncio.make_spare(py, &self.base)?);
        }
        let spare = self.spare.as_mut().expect("made above");
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

    /// Ends a spare that may not serve another request, so that code which kept its task sees it end as the task of a
    /// handler that has returned. Returns whether there is a spare that may.
    #[inline]
    fn retire_unless_fresh(&mut self, py: Python<'_>) -> bool {
        let is_current = self.entered == EnteredContext::SpareTask;
        let Some(spare) = &mut self.spare else {
            return false;
        };
        if spare.is_fresh(py, &self.base, is_current) {
            return true;
        }
        self.close(py);
        false
    }

    /// After a coroutine that did not suspend: ends the spare at once if code keeps its task, which may wait for it, and
    /// lets go of what the coroutine has set in its context. What else was done to the task shows when it is
    /// [left](Self::leave), and all else when it is [taken](Self::enter).
    #[inline]
    fn retire_if_kept(&mut self, py: Python<'_>) {
        let known = ffi::Py_ssize_t::from(self.entered == EnteredContext::SpareTask);
        let is_kept = self.spare.as_ref().is_some_and(|spare| {
            !FAST_PATHS
                || spare.memory.is_none()
                || references(py, &spare.task) != spare.counts.task + known
                || !self.base.is_same(py, &spare.context)
        });
        if is_kept {
            self.close(py);
        }
    }

    /// Makes room for Python code that is no coroutine's step: no current task, and a context that no
    /// request has left anything in.
    #[inline]
    pub(crate) fn enter_shared(&mut self, py: Python<'_>) {
        let is_entered = self.entered == EnteredContext::Shared;
        // A token of one of its variables is a reference to it.
        let is_clean = is_known_only(py, &self.shared, 1 + ffi::Py_ssize_t::from(is_entered))
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
    pub(crate) fn take_shared(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let fresh = self.base.copy(py)?;
        self.leave(py);
        Ok(std::mem::replace(&mut self.shared, fresh))
    }

    /// Makes room for the rest of a response, in the context that [`take_shared`](Self::take_shared) has
    /// handed out.
    pub(crate) fn enter_shared_with(&mut self, py: Python<'_>, context: Py<PyAny>) {
        self.leave(py);
        self.shared = context;
        match enter_context(py, &self.shared) {
            Ok(()) => self.entered = EnteredContext::Shared,
            Err(error) => error.write_unraisable(py, None),
        }
    }

    /// Whether another task than the spare may be stepped here and now: none is current.
    pub(crate) fn may_step(&mut self, py: Python<'_>) -> bool {
        self.leave(py);
        let Some(asyncio) = &self.asyncio else {
            return false;
        };
        let current = asyncio.current_task.bind(py).call1((&asyncio.event_loop,));
        current.is_ok_and(|task| task.is_none())
    }

    /// Gives the thread back to its host's context. Undoes [`enter`](Self::enter) and [`enter_shared`](Self::enter_shared). Ends a
    /// spare whose task was changed: callbacks that were added to it are called when it ends.
    #[inline]
    pub(crate) fn leave(&mut self, py: Python<'_>) {
        let was_entered = self.entered == EnteredContext::SpareTask;
        self.exit(py);
        if was_entered
            && self
                .spare
                .as_ref()
                .is_some_and(|spare| !spare.is_unchanged(py))
        {
            self.close(py);
        }
    }

    #[inline]
    fn exit(&mut self, py: Python<'_>) {
        match std::mem::replace(&mut self.entered, EnteredContext::Host) {
            EnteredContext::Host => {}
            EnteredContext::Shared => exit_context(py, &self.shared),
            EnteredContext::SpareTask => {
                let (Some(asyncio), Some(spare)) = (&self.asyncio, &self.spare) else {
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
        let Some(spare) = self.spare.take() else {
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
                let SpareTask { task, driver, .. } = spare;
                let suspended = SuspendedCoroutine { coroutine, resume };
                driver.get().take_over(py, suspended, awaited, task)
            });
        if let Err(error) = taken_over {
            handler.fail(py, &error, reply);
        }
    }

    /// Lets the spare go: its task ends, so that the loop can close without a pending one.
    pub(crate) fn close(&mut self, py: Python<'_>) {
        self.exit(py);
        if let Some(spare) = self.spare.take() {
            spare.driver.get().retire(py);
        }
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
        })
    }

    fn make_spare(&self, py: Python<'_>, base: &BaseContext) -> PyResult<SpareTask> {
        let context = base.copy(py)?;
        let driver = Py::new(py, Driver::new(self.event_loop.clone_ref(py)))?;
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
        let counts = ReferenceCounts {
            task: references(py, &task),
            context: references(py, &context),
            driver: references(py, &driver),
        };
        Ok(SpareTask {
            memory: Memory::of(py, &task),
            is_parked: false,
            task,
            driver,
            context,
            counts,
        })
    }
}

impl SpareTask {
    /// Whether the task, which is not the current one, is known to us alone and unchanged.
    #[inline]
    fn is_unchanged(&self, py: Python<'_>) -> bool {
        let memory = self.memory.as_ref();
        references(py, &self.task) == self.counts.task
            && memory.is_some_and(|memory| memory.is_same(py, &self.task))
    }

    /// Whether task, driver and context are known to us alone, and as they were made. `is_current`: it is the current
    /// task, and its context is the thread's.
    #[inline]
    fn is_fresh(&mut self, py: Python<'_>, base: &BaseContext, is_current: bool) -> bool {
        let Some(memory) = &mut self.memory else {
            return false;
        };
        let more = ffi::Py_ssize_t::from(is_current);
        let is_parked = match self.driver.get().park_state(py) {
            ParkState::Unstarted => false,
            ParkState::Parked => true,
            ParkState::Disturbed => return false,
        };
        if is_parked && !self.is_parked {
            if !memory.has_become(py, &self.task, &self.driver) {
                return false;
            }
            self.counts = PARKED;
            self.is_parked = true;
        }
        references(py, &self.task) == self.counts.task + more
            && memory.is_same(py, &self.task)
            && is_known_only(py, &self.driver, self.counts.driver)
            && is_known_only(py, &self.context, self.counts.context + more)
            && base.is_same(py, &self.context)
    }
}

fn copy_current_context(py: Python<'_>) -> PyResult<Py<PyAny>> {
    // SAFETY: the GIL is held.
    let context = unsafe { ffi::PyContext_CopyCurrent() };
    // SAFETY: it is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, context) }.map(Bound::unbind)
}

pub(crate) fn enter_context(py: Python<'_>, context: &Py<PyAny>) -> PyResult<()> {
    // SAFETY: the GIL is held, and `context` is a context object.
    let failed = unsafe { ffi::PyContext_Enter(context.as_ptr()) } != 0;
    if failed {
        Err(PyErr::fetch(py))
    } else {
        Ok(())
    }
}

/// Calls `call` in `context`, wherever the thread is.
pub(crate) fn in_context(py: Python<'_>, context: &Py<PyAny>, call: impl FnOnce()) {
    match enter_context(py, context) {
        Ok(()) => {
            let outcome = catch_unwind(AssertUnwindSafe(call));
            if outcome.is_err() {
                clear_exception(py);
            }
            exit_context(py, context);
            if let Err(panic) = outcome {
                resume_unwind(panic);
            }
        }
        Err(error) => error.write_unraisable(py, None),
    }
}

/// Undoes [`enter_context`]; whatever was entered in between has been left.
pub(crate) fn exit_context(py: Python<'_>, context: &Py<PyAny>) {
    // SAFETY: the GIL is held, and `context` is a context object that this thread has entered.
    if unsafe { ffi::PyContext_Exit(context.as_ptr()) } != 0 {
        PyErr::fetch(py).write_unraisable(py, None);
    }
}

/// A context as every request finds it.
struct BaseContext {
    context: Py<PyAny>,
    /// Its variables and their values, so that looking for changes makes no objects.
    values: Vec<(Py<PyAny>, Py<PyAny>)>,
    /// Where contexts keep their variables, all in one immutable object that a copy shares: while that is the same, so
    /// are they. `None` where the interpreter does it otherwise.
    variables: Option<Field>,
}

impl BaseContext {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let context = copy_current_context(py)?;
        let mut values = Vec::new();
        for variable in context.bind(py).try_iter()? {
            let variable = variable?;
            let value = context.bind(py).get_item(&variable)?;
            values.push((variable.unbind(), value.unbind()));
        }
        let mut this = Self {
            context,
            values,
            variables: None,
        };
        this.variables = this.find_variables(py)?;
        Ok(this)
    }

    /// Sets a variable in a copy, and looks what that has changed.
    fn find_variables(&self, py: Python<'_>) -> PyResult<Option<Field>> {
        let probe = self.copy(py)?;
        let Some(before) = Memory::of(py, &probe) else {
            return Ok(None);
        };
        let variable = py
            .import("contextvars")?
            .call_method1("ContextVar", ("citius",))?;
        let set = variable.getattr("set")?;
        let token = probe.bind(py).call_method1("run", (set, py.None()))?;
        let field = Field::changed(py, &before, &probe);
        drop(token);
        let is_shared = |field: &Field| {
            let copy = self.copy(py);
            copy.is_ok_and(|copy| field.of(py, &copy) == field.of(py, &self.context))
        };
        Ok(field.filter(is_shared))
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // SAFETY: the GIL is held, and `context` is a context object.
        let copy = unsafe { ffi::PyContext_Copy(self.context.as_ptr()) };
        // SAFETY: it is a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, copy) }.map(Bound::unbind)
    }

    /// Whether `context` holds the very same values still. Not `==`, to which 0 and False are one.
    #[inline]
    fn is_same(&self, py: Python<'_>, context: &Py<PyAny>) -> bool {
        if let Some(field) = self.variables
            && field.of(py, context) == field.of(py, &self.context)
        {
            return true;
        }
        self.is_equal(py, context)
    }

    /// The same, whatever objects hold them.
    #[inline(never)]
    fn is_equal(&self, py: Python<'_>, context: &Py<PyAny>) -> bool {
        let context = context.bind(py);
        let holds = |(variable, value): &(Py<PyAny>, Py<PyAny>)| {
            context.get_item(variable).is_ok_and(|held| held.is(value))
        };
        context.len().is_ok_and(|n| n == self.values.len()) && self.values.iter().all(holds)
    }
}

/// A coroutine that has suspended, and what its result is for.
struct SuspendedCoroutine {
    coroutine: Py<PyAny>,
    resume: Box<dyn Resume>,
}

/// How a coroutine is gone on with.
pub(crate) enum StepInput {
    Send,
    Throw(Py<PyAny>),
}

/// What came of it.
pub(crate) enum Progress {
    /// It waits for this.
    Suspended(Py<PyAny>),
    /// It is over and answered; the error is one that the task must end with.
    Done(Option<PyErr>),
}

/// Steps until the coroutine waits or its handler is done; another may take its place on the way.
#[inline]
fn advance<E: CompletionHandler, S: Sink>(
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

pub(crate) fn is_cancellation(py: Python<'_>, error: &PyErr) -> bool {
    static KIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let kind = KIND.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("asyncio")?.getattr("CancelledError")?.unbind())
    });
    kind.is_ok_and(|kind| error.is_instance(py, kind.bind(py)))
}

enum Step<'py> {
    Yielded(Py<PyAny>),
    Returned(Bound<'py, PyAny>),
    Raised(PyErr),
}

/// One step of a coroutine.
#[inline]
fn step<'py>(py: Python<'py>, coroutine: &Py<PyAny>, input: &StepInput) -> Step<'py> {
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

/// The coroutine that a request's task runs, and the future it is parked on while it is a spare.
#[pyclass(frozen, module = "citius._core", name = "_Driver", weakref)]
pub(crate) struct Driver {
    event_loop: Py<PyAny>,
    state: Mutex<DriverState>,
}

/// How the driver of a spare is found.
enum ParkState {
    /// Its task has not made its first step.
    Unstarted,
    /// Its task waits for it, and nothing else knows what wakes that up.
    Parked,
    /// Something has been done to it.
    Disturbed,
}

#[derive(Default)]
struct DriverState {
    /// asyncio's mark of a future that is being awaited.
    is_blocking: bool,
    /// What the parked task wants to be called with.
    wakeup: Option<Py<PyAny>>,
    /// What the coroutine waits for and the task does not know of yet.
    awaited: Option<Py<PyAny>>,
    suspended: Option<SuspendedCoroutine>,
    /// The task itself, while its coroutine goes on: asyncio knows its tasks by weak references alone,
    /// and nothing else may refer to one whose response is complete. Hidden from the collector of garbage.
    task: Option<Py<PyAny>>,
    is_retired: bool,
    /// The parked task was cancelled and is on its way to its end.
    is_cancelled: bool,
}

impl Driver {
    fn new(event_loop: Py<PyAny>) -> Self {
        Self {
            event_loop,
            state: Mutex::default(),
        }
    }

    /// Drives `suspended` as `task` from here on; it waits for `awaited`.
    ///
    /// # Errors
    /// The task cannot be woken. The work is dropped: it would wait for ever.
    fn take_over(
        &self,
        py: Python<'_>,
        suspended: SuspendedCoroutine,
        awaited: Py<PyAny>,
        task: Py<PyAny>,
    ) -> PyResult<()> {
        let wakeup = {
            let mut state = lock(&self.state);
            state.suspended = Some(suspended);
            state.task = Some(task);
            state.awaited = Some(awaited);
            state.wakeup.take()
        };
        let woken = Self::wake(py, wakeup);
        if woken.is_err() {
            let dropped = std::mem::take(&mut *lock(&self.state));
            drop(dropped);
        }
        woken
    }

    /// How the driver of a spare is found.
    #[inline]
    fn park_state(&self, py: Python<'_>) -> ParkState {
        let state = lock(&self.state);
        match &state.wakeup {
            _ if state.is_blocking || state.is_cancelled => ParkState::Disturbed,
            Some(wakeup) if is_known_only(py, wakeup, 1) => ParkState::Parked,
            Some(_) => ParkState::Disturbed,
            None => ParkState::Unstarted,
        }
    }

    /// Ends the task of a spare that other code has kept.
    fn retire(&self, py: Python<'_>) {
        let wakeup = {
            let mut state = lock(&self.state);
            state.is_retired = true;
            state.wakeup.take()
        };
        if let Err(error) = Self::wake(py, wakeup) {
            error.write_unraisable(py, None);
        }
    }

    /// Without a wake-up the task has not been started yet; its first step comes by itself.
    fn wake(py: Python<'_>, wakeup: Option<Py<PyAny>>) -> PyResult<()> {
        let Some(wakeup) = wakeup else {
            return Ok(());
        };
        wakeup.bind(py).call1((finished_future(py)?,)).map(drop)
    }

    /// Goes on with the coroutine.
    fn advance(&self, py: Python<'_>, input: StepInput) -> PyResult<Option<Py<PyAny>>> {
        let Some(mut suspended) = lock(&self.state).suspended.take() else {
            return Ok(None);
        };
        let step = LateStep {
            coroutine: &mut suspended.coroutine,
            input,
        };
        let progress = suspended.resume.resume(py, step);
        let outcome = match progress {
            Progress::Suspended(awaited) => {
                let replaced = lock(&self.state).suspended.replace(suspended);
                drop(replaced);
                return Ok(Some(awaited));
            }
            Progress::Done(None) => Ok(None),
            Progress::Done(Some(error)) => Err(error),
        };
        let task = lock(&self.state).task.take();
        drop(task);
        outcome
    }
}

/// The message that a task was cancelled with, as arguments to `cancel`.
fn cancel_arguments<'py>(error: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let arguments = error.getattr(intern!(error.py(), "args"))?;
    let arguments = arguments.cast_into::<PyTuple>()?;
    Ok(arguments.get_slice(0, 1))
}

/// Calls the callback of a done `waiter`. asyncio's tasks are shown a future of asyncio's own.
pub(crate) fn call_done_callback(
    callback: &Bound<'_, PyAny>,
    waiter: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if callback.is_exact_instance_of::<PyCFunction>() {
        callback.call1((finished_future(callback.py())?,))?;
    } else {
        callback.call1((waiter,))?;
    }
    Ok(())
}

/// The finished future that a woken task looks at. It is one of asyncio's own, for of those a task takes the result
/// without looking a method up and calling it, which was a tenth of what a message of a WebSocket cost.
fn finished_future(py: Python<'_>) -> PyResult<&'static Py<PyAny>> {
    static FINISHED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FINISHED.get_or_try_init(py, || {
        let keywords = PyDict::new(py);
        keywords.set_item("loop", Py::new(py, NoLoop)?)?;
        let future = py
            .import("asyncio")?
            .getattr("Future")?
            .call((), Some(&keywords))?;
        future.call_method1("set_result", (py.None(),))?;
        Ok(future.unbind())
    })
}

/// The loop of a future that never waits.
#[pyclass(frozen, module = "citius._core", name = "_NoLoop")]
struct NoLoop;

#[pymethods]
impl NoLoop {
    #[expect(clippy::unused_self, reason = "asyncio calls it as a method")]
    fn get_debug(&self) -> bool {
        false
    }
}

#[pymethods]
impl Driver {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        // A lock that is taken means that the driver is in use: no garbage.
        let Ok(state) = self.state.try_lock() else {
            return Ok(());
        };
        visit.call(&state.wakeup)?;
        visit.call(&state.awaited)?;
        match &state.suspended {
            Some(suspended) => {
                visit.call(&suspended.coroutine)?;
                suspended.resume.traverse(&visit)
            }
            None => Ok(()),
        }
    }

    fn __clear__(&self) {
        let state = std::mem::take(&mut *lock(&self.state));
        drop(state);
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        let py = slf.py();
        let this = slf.get();
        {
            let mut state = lock(&this.state);
            if let Some(awaited) = state.awaited.take() {
                return Ok(Some(awaited));
            }
            if state.is_retired {
                return Ok(None);
            }
            if state.suspended.is_none() {
                state.is_blocking = true;
                drop(state);
                return Ok(Some(slf.clone().into_py_any(py)?));
            }
        }
        this.advance(py, StepInput::Send)
    }

    fn send(slf: &Bound<'_, Self>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Self::__next__(slf)?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (error, *_rest))]
    fn throw(
        slf: &Bound<'_, Self>,
        error: Bound<'_, PyAny>,
        _rest: &Bound<'_, PyTuple>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let (awaited, is_suspended) = {
            let mut state = lock(&this.state);
            (state.awaited.take(), state.suspended.is_some())
        };
        // The task was cancelled between the coroutine's suspension and its own first look at what
        // it waits for: as a task does, cancel that first and wait for it to tell.
        if let Some(awaited) = awaited
            && let Some(cancel) = awaited.bind(py).getattr_opt(intern!(py, "cancel"))?
            // With what the task was told: anyio knows its own cancellations by that.
            && cancel.call1(cancel_arguments(&error)?)?.is_truthy()?
        {
            return Ok(awaited);
        }
        // A bare yield waits for nothing that could be cancelled: the coroutine is told at once.
        if !is_suspended {
            return Err(PyErr::from_value(error));
        }
        this.advance(py, StepInput::Throw(error.unbind()))?
            .ok_or_else(|| PyStopIteration::new_err(()))
    }

    fn close(&self, py: Python<'_>) {
        let (suspended, task) = {
            let mut state = lock(&self.state);
            (state.suspended.take(), state.task.take())
        };
        drop(task);
        if let Some(suspended) = suspended {
            // No caller handles what a coroutine raises while it is closed.
            let _ = suspended
                .coroutine
                .bind(py)
                .call_method0(intern!(py, "close"));
        }
    }

    // asyncio's future protocol, as far as a task uses it on what its coroutine yields.

    #[getter(_asyncio_future_blocking)]
    fn is_blocking(&self) -> bool {
        lock(&self.state).is_blocking
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, value: bool) {
        lock(&self.state).is_blocking = value;
    }

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    #[pyo3(signature = (callback, *, context = None))]
    fn add_done_callback(
        &self,
        callback: Py<PyAny>,
        context: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = context;
        let mut state = lock(&self.state);
        if state.wakeup.is_some() {
            drop(state);
            return Err(PyRuntimeError::new_err(
                "the coroutine of a request's task wakes up that task alone",
            ));
        }
        state.wakeup = Some(callback);
        Ok(())
    }

    /// A parked task cannot be cancelled by way of what it waits for: it remembers instead and is told at its next
    /// step. That is soon, unless the task is the current one: then a handler has cancelled itself, and goes on.
    #[pyo3(signature = (msg = None))]
    fn cancel(&self, py: Python<'_>, msg: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let _ = msg;
        let Some(wakeup) = lock(&self.state)
            .wakeup
            .as_ref()
            .map(|wakeup| wakeup.clone_ref(py))
        else {
            return Ok(false);
        };
        let current = py
            .import(intern!(py, "asyncio"))?
            .call_method1(intern!(py, "current_task"), (&self.event_loop,))?;
        if current.is(wakeup.getattr(py, intern!(py, "__self__"))?) {
            return Ok(false);
        }
        {
            let mut state = lock(&self.state);
            state.is_cancelled = true;
            // `wakeup` is another reference to it: nothing is dropped here.
            state.wakeup = None;
        }
        let call_soon = intern!(py, "call_soon");
        self.event_loop
            .call_method1(py, call_soon, (wakeup, finished_future(py)?))?;
        Ok(false)
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        let py = slf.py();
        let coroutine = lock(&slf.get().state)
            .suspended
            .as_ref()
            .map(|suspended| suspended.coroutine.clone_ref(py));
        match coroutine {
            Some(coroutine) => coroutine.bind(py).repr(),
            None => Ok(PyString::new(py, "a spare request")),
        }
    }
}
