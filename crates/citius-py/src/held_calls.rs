//! The calls that a request has deferred: held until its handler has ended, then made, or forgotten if it has failed.
//!
//! In: calls from `citius.web.execution.background`, and the end of the handler from the code that concludes the request: a
//! response by [`Sent`](crate::request_context::SendOutcome::Sent), a stream by `end` or `abort`, a failure where it is logged. Out:
//! the list of a turn (`deferrals.rs`); where no turn runs, or a call was deferred in another context than requests begin
//! with, `_begin_held` of that module. Tests: `tests/server/test_background.py`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use citius_base::context::copy_current_context;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::sync::lock;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use smallvec::SmallVec;

/// How far the handler of a request is, and what it has deferred.
#[derive(Default)]
pub(crate) struct HandlerProgress {
    state: AtomicU8,
    held: Mutex<Option<Box<Held>>>,
}

/// The handler, or the stream that it has returned, is at work.
const AT_WORK: u8 = 0;
/// The same, and calls wait for it.
const AWAITED: u8 = 1;
/// What is deferred from now on is called soon.
const ENDED: u8 = 2;
/// It goes on without its client and will say itself that it has ended.
const DETACHED: u8 = 3;

/// The calls of one application that wait for handlers: counted, for there is a limit.
#[pyclass(frozen, subclass, module = "citius._core")]
pub(crate) struct HeldCalls {
    count: AtomicUsize,
}

#[pymethods]
impl HeldCalls {
    #[new]
    #[pyo3(signature = (*_args))]
    fn new(_args: &Bound<'_, PyAny>) -> Self {
        Self {
            count: AtomicUsize::new(0),
        }
    }

    #[getter]
    fn held(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// What a request has deferred whose handler is at work.
struct Held {
    of: Py<HeldCalls>,
    calls: SmallVec<[HeldCall; 1]>,
}

struct HeldCall {
    /// To be called without arguments.
    function: Py<PyAny>,
    /// The loop it runs in; `None`: in a thread.
    event_loop: Option<Py<PyAny>>,
    /// The context it was deferred in, where that is another than requests begin with.
    context: Option<Py<PyAny>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let count = &self.of.get().count;
        count.fetch_sub(self.calls.len(), Ordering::Relaxed);
    }
}

impl HandlerProgress {
    /// Holds a call until the handler has ended: `Some(false)` if it has, `None` if `count_max` calls of `of` wait.
    pub(crate) fn hold(
        &self,
        handle: &ReactorHandle,
        of: &Bound<'_, HeldCalls>,
        (function, event_loop): (Bound<'_, PyAny>, Option<Bound<'_, PyAny>>),
        count_max: usize,
    ) -> PyResult<Option<bool>> {
        let py = of.py();
        if self.state.load(Ordering::Acquire) == ENDED {
            return Ok(Some(false));
        }
        if of.get().count.load(Ordering::Relaxed) >= count_max {
            return Ok(None);
        }
        let is_base = event_loop.is_none() || handle.deferred.base.is_entered(py)?;
        let context = (!is_base).then(|| copy_current_context(py)).transpose()?;
        let call = HeldCall {
            function: function.unbind(),
            event_loop: event_loop.map(Bound::unbind),
            context,
        };
        // The end of the handler takes the calls under the same lock.
        let mut slot = lock(&self.held);
        let (from, to) = (AT_WORK, AWAITED);
        let before = self
            .state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if before == Err(ENDED) {
            drop(slot);
            return Ok(Some(false));
        }
        let held = slot.get_or_insert_with(|| {
            Box::new(Held {
                of: of.clone().unbind(),
                calls: SmallVec::new(),
            })
        });
        held.calls.push(call);
        of.get().count.fetch_add(1, Ordering::Relaxed);
        Ok(Some(true))
    }

    /// The handler of `request` has ended: has the calls made that it has deferred, or forgets them if it has failed.
    #[inline]
    pub(crate) fn end(&self, handle: &ReactorHandle, request: &Bound<'_, PyAny>, is_failed: bool) {
        let before = self.state.swap(ENDED, Ordering::AcqRel);
        if matches!(before, AWAITED | DETACHED) {
            self.end_awaited(handle, request, before, is_failed);
        }
    }

    #[cold]
    fn end_awaited(
        &self,
        handle: &ReactorHandle,
        request: &Bound<'_, PyAny>,
        before: u8,
        is_failed: bool,
    ) {
        if before == DETACHED {
            return self.detach();
        }
        let held = lock(&self.held).take();
        if let Some(held) = held.filter(|_| !is_failed)
            && let Err(error) = begin(handle, request, &held)
        {
            error.write_unraisable(request.py(), None);
        }
    }

    /// The handler has failed, and something else will respond in its place.
    pub(crate) fn forget(&self) {
        let mut slot = lock(&self.held);
        let (from, to) = (AWAITED, AT_WORK);
        // `Err`: there are none, or they are no longer its own.
        let _ = self
            .state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        let forgotten = slot.take();
        drop(slot);
        drop(forgotten);
    }

    /// It goes on without its client; [`end_detached`](Self::end_detached) follows.
    pub(crate) fn detach(&self) {
        self.state.store(DETACHED, Ordering::Release);
    }

    pub(crate) fn end_detached(
        &self,
        handle: &ReactorHandle,
        request: &Bound<'_, PyAny>,
        is_failed: bool,
    ) {
        self.state.store(AWAITED, Ordering::Release);
        self.end(handle, request, is_failed);
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is taken means that the request is in use: no garbage.
        let Ok(slot) = self.held.try_lock() else {
            return Ok(());
        };
        let Some(held) = &*slot else {
            return Ok(());
        };
        visit.call(&held.of)?;
        for call in &held.calls {
            visit.call(&call.function)?;
            visit.call(&call.event_loop)?;
            visit.call(&call.context)?;
        }
        Ok(())
    }
}

/// Has the calls made: at the end of the turn if one runs, and by `_begin_held` otherwise.
fn begin(handle: &ReactorHandle, request: &Bound<'_, PyAny>, held: &Held) -> PyResult<()> {
    let py = request.py();
    let of = held.of.bind(py).as_any();
    let own = handle.event_loop.get();
    let is_own = |call: &HeldCall| {
        let loops = own.zip(call.event_loop.as_ref());
        call.context.is_none() && loops.is_some_and(|(own, of_call)| own.is(of_call))
    };
    let own = own.filter(|_| held.calls.iter().all(is_own));
    if let Some(own) = own
        && let Some(list) = handle.deferred.list(py, of)
    {
        if list.is_empty() {
            of.call_method1(intern!(py, "_begin_turn"), (own, &list))?;
        }
        for call in &held.calls {
            list.append((&call.function, request))?;
        }
        return Ok(());
    }
    let calls = PyList::empty(py);
    for call in &held.calls {
        let context = match &call.context {
            None => handle.deferred.base.copy(py)?,
            Some(context) => context.clone_ref(py),
        };
        calls.append((&call.function, &call.event_loop, context))?;
    }
    of.call_method1(intern!(py, "_begin_held"), (request, calls))?;
    Ok(())
}
