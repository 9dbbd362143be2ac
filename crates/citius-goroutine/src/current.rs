//! The goroutine that runs on a thread, and the handle by which one is woken.
//!
//! Every access to a thread-local variable is in a function that is not inlined: a goroutine of a pool may continue on another
//! thread after it has parked, and a caller must not reuse the address of the first thread's variable.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use citius_coroutine::{Current, with_current};

use crate::local::{LocalHandle, State};
use crate::pool::{Parked, Worker};
use crate::timers::Nanos;

/// A goroutine, to be woken.
#[derive(Clone, Debug)]
pub enum Goroutine {
    /// Of a thread's own scheduler.
    Local(LocalHandle),
    /// Of a pool.
    Pool(Arc<Parked>),
}

impl Goroutine {
    /// Has it run again, if it is parked; otherwise its next [`park`] does not wait. Callable from any thread.
    #[inline]
    pub fn unpark(&self) {
        match self {
            Self::Local(handle) => handle.unpark(),
            Self::Pool(parked) => Parked::unpark(parked),
        }
    }
}

/// The scheduler that runs, or has run last, on this thread.
#[derive(Clone)]
pub(crate) enum Scheduler {
    Local(Rc<State>),
    Worker(Rc<Worker>),
}

thread_local! {
    static SCHEDULER: RefCell<Option<Scheduler>> = const { RefCell::new(None) };
}

/// Looks at the scheduler of this thread. `look` must not run a goroutine.
#[inline(never)]
pub(crate) fn with_scheduler<R>(look: impl FnOnce(Option<&Scheduler>) -> R) -> R {
    SCHEDULER.with(|scheduler| look(scheduler.borrow().as_ref()))
}

/// Makes a scheduler this thread's; the one before.
pub(crate) fn set_scheduler(scheduler: Option<Scheduler>) -> Option<Scheduler> {
    SCHEDULER.replace(scheduler)
}

/// Whether the caller runs in a goroutine.
#[inline]
pub fn is_inside() -> bool {
    citius_coroutine::is_inside()
}

/// Waits until the goroutine that calls it is unparked. It may return without that.
///
/// # Panics
/// The caller is in no goroutine.
#[inline]
pub fn park() {
    with_current(|current| park_as(current.expect("only a goroutine parks")));
}

/// [`park`] for a caller that knows its coroutine.
#[inline]
pub fn park_as(current: Current<'_>) {
    // The scheduler of a thread looks at what has happened to a goroutine after it has suspended itself.
    if current.is_pinned() || prepare_park_in_pool() {
        current.suspend();
    }
}

fn prepare_park_in_pool() -> bool {
    with_scheduler(|scheduler| match scheduler {
        Some(Scheduler::Worker(worker)) => worker.prepare_park(),
        Some(Scheduler::Local(_)) | None => panic!("only a goroutine of the pool parks here"),
    })
}

/// Lets the other goroutines that are ready run first.
///
/// # Panics
/// The caller is in no goroutine.
pub fn yield_now() {
    with_scheduler(|scheduler| match scheduler {
        Some(Scheduler::Local(state)) => state.prepare_yield(),
        Some(Scheduler::Worker(worker)) => worker.prepare_yield(),
        None => panic!("only a goroutine yields"),
    });
    citius_coroutine::suspend();
}

/// The goroutine that calls it; `None` outside of goroutines.
pub fn current() -> Option<Goroutine> {
    if !is_inside() {
        return None;
    }
    with_scheduler(|scheduler| match scheduler {
        Some(Scheduler::Local(state)) => state.current().map(Goroutine::Local),
        Some(Scheduler::Worker(worker)) => {
            worker.with_current(|parked| Goroutine::Pool(Arc::clone(parked)))
        }
        None => None,
    })
}

/// Has the goroutine that calls it unparked at `at`. A goroutine has one timer; a new one replaces it.
pub fn set_timer(at: Nanos) {
    with_scheduler(|scheduler| match scheduler {
        Some(Scheduler::Local(state)) => state.set_timer(at),
        Some(Scheduler::Worker(worker)) => worker.set_timer(at),
        None => {}
    });
}

/// The goroutine that calls it needs its timer no more.
pub fn clear_timer() {
    with_scheduler(|scheduler| match scheduler {
        Some(Scheduler::Local(state)) => state.clear_timer(),
        Some(Scheduler::Worker(worker)) => worker.clear_timer(),
        None => {}
    });
}
