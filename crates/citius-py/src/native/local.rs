//! The goroutines of a reactor: their scheduler, which belongs to the reactor's thread, and how a turn runs them.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use citius_goroutine::{Goroutine, Local, Nanos, Pool, StackError, Stacks};
use citius_reactor::coarse_ms;
use pyo3::prelude::*;

use super::clock::now;
use super::context::Context;
use super::gil::GoroutinesRun;
use super::green::{Failures, Green, OnFailure};
use super::pool;
use crate::reactor_handle::ReactorHandle;

/// A reactor of this thread and its scheduler.
struct Entry {
    handle: Weak<ReactorHandle>,
    local: Local,
    trimmed_at: Nanos,
}

thread_local! {
    static LOCALS: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    /// The reactor that was last at home on this thread.
    static HERE: RefCell<Weak<ReactorHandle>> = const { RefCell::new(Weak::new()) };
}

/// A turn leaves the rest of the goroutines to the next one after so many milliseconds.
const RUN_MS: u64 = 4;
/// So long goroutines may take to notice that their clients are gone when the reactor closes.
const CLOSE_MS: u64 = 100;
/// Between two times at which memory of stacks is given back.
const TRIM_EVERY_NS: Nanos = 1_000_000_000;

/// A reactor is at home on this thread: goroutines that code on it starts are the reactor's.
pub(crate) fn set_home(handle: &Arc<ReactorHandle>) {
    HERE.replace(Arc::downgrade(handle));
}

/// The reactor at home on this thread, if it is still turned: one that has ended may be kept alive by what refers to it.
pub(crate) fn home() -> Option<Arc<ReactorHandle>> {
    let handle = HERE.with(|here| here.borrow().upgrade())?;
    handle.is_at_home_here().then_some(handle)
}

/// The scheduler of a reactor on its thread.
pub(crate) fn of(handle: &Arc<ReactorHandle>) -> Local {
    existing(handle).unwrap_or_else(|| make(handle))
}

fn existing(handle: &Arc<ReactorHandle>) -> Option<Local> {
    LOCALS.with(|locals| {
        let locals = locals.borrow();
        let found = locals
            .iter()
            .find(|entry| std::ptr::eq(entry.handle.as_ptr(), Arc::as_ptr(handle)));
        found.map(|entry| entry.local.clone())
    })
}

#[cold]
fn make(handle: &Arc<ReactorHandle>) -> Local {
    let limits = &handle.limits;
    let stacks = Stacks::new(
        usize::try_from(limits.goroutine_stack_bytes).unwrap_or(usize::MAX),
        limits.goroutines_max as usize,
    );
    let mailbox = Arc::clone(&handle.mailbox);
    let request_run = move || {
        if mailbox.call_service() {
            mailbox.wake();
        }
    };
    let local = Local::new(stacks, Box::new(Failures), Box::new(request_run));
    super::protect_python();
    LOCALS.with(|locals| {
        let mut locals = locals.borrow_mut();
        locals.retain(|entry| entry.handle.strong_count() > 0);
        locals.push(Entry {
            handle: Arc::downgrade(handle),
            local: local.clone(),
            trimmed_at: now(),
        });
    });
    local
}

/// Runs the goroutines of a reactor that are ready, within its turn. Returns when it is to be called again.
pub(crate) fn run(py: Python<'_>, handle: &Arc<ReactorHandle>) -> Option<Nanos> {
    let local = existing(handle)?;
    let began_ms = coarse_ms();
    local.fire_timers(now());
    let is_left = {
        let _run = GoroutinesRun::begin(py);
        local.run(&|| coarse_ms().saturating_sub(began_ms) > RUN_MS)
    };
    if is_left {
        // Not needed: the turn sees it at its end.
        let _ = handle.mailbox.call_service();
    }
    next_call(handle, &local)
}

fn next_call(handle: &Arc<ReactorHandle>, local: &Local) -> Option<Nanos> {
    let timer_at = local.next_timer_at();
    if !local.is_trimmable() {
        return timer_at;
    }
    let trim_at = LOCALS.with(|locals| {
        let mut locals = locals.borrow_mut();
        let entry = locals
            .iter_mut()
            .find(|entry| std::ptr::eq(entry.handle.as_ptr(), Arc::as_ptr(handle)))?;
        let now = now();
        if now >= entry.trimmed_at + TRIM_EVERY_NS {
            entry.trimmed_at = now;
            entry.local.trim();
        }
        Some(entry.trimmed_at + TRIM_EVERY_NS)
    });
    match (timer_at, trim_at) {
        (Some(timer_at), Some(trim_at)) => Some(timer_at.min(trim_at)),
        (timer_at, trim_at) => timer_at.or(trim_at),
    }
}

/// Runs `code` in a new goroutine of the reactor now, until it parks or ends. To be called in the turn, outside of goroutines.
pub(crate) fn start_now(
    py: Python<'_>,
    handle: &Arc<ReactorHandle>,
    word: usize,
    code: impl FnOnce() + 'static,
) -> Result<(), StackError> {
    let local = of(handle);
    let _run = GoroutinesRun::begin(py);
    let started = local.start_now(word, move || {
        let _running = Green::begin();
        code();
    });
    if started.is_err() {
        Green::unmake(word);
    }
    started
}

/// Starts a goroutine where the caller is: with its scheduler, with the reactor of its thread, or in the pool.
///
/// `code` may run on another thread from one wait to the next.
pub(crate) fn start(
    context: Option<Arc<Context>>,
    on_failure: OnFailure,
    code: impl FnOnce() + Send + 'static,
) -> Result<Goroutine, StackError> {
    start_at(here(), context, on_failure, code)
}

/// Starts a goroutine in the pool.
pub(crate) fn start_in_pool(
    context: Option<Arc<Context>>,
    on_failure: OnFailure,
    code: impl FnOnce() + Send + 'static,
) -> Result<Goroutine, StackError> {
    start_at(Here::Pool(pool::pool()), context, on_failure, code)
}

fn start_at(
    here: Here,
    context: Option<Arc<Context>>,
    on_failure: OnFailure,
    code: impl FnOnce() + Send + 'static,
) -> Result<Goroutine, StackError> {
    let word = Green::make(context, on_failure);
    let code = move || {
        let _running = Green::begin();
        code();
    };
    let started = match here {
        Here::Local(local) => local.start(word, code).map(Goroutine::Local),
        Here::Pool(pool) => pool::start(&pool, word, code),
    };
    if started.is_err() {
        Green::unmake(word);
    }
    started
}

enum Here {
    Local(Local),
    Pool(Pool),
}

fn here() -> Here {
    if citius_goroutine::is_inside() {
        if let Some(local) = Local::here() {
            return Here::Local(local);
        }
        if let Some(pool) = Pool::here() {
            return Here::Pool(pool);
        }
    }
    match home() {
        Some(handle) => Here::Local(of(&handle)),
        None => Here::Pool(pool::pool()),
    }
}

/// The reactor has no connections any more and takes none: goroutines whose contexts have ended run to their end, and all others
/// are ended wherever they are.
pub(crate) fn close(py: Python<'_>, handle: &Arc<ReactorHandle>) {
    let local = LOCALS.with(|locals| {
        let mut locals = locals.borrow_mut();
        let at = locals
            .iter()
            .position(|entry| std::ptr::eq(entry.handle.as_ptr(), Arc::as_ptr(handle)))?;
        Some(locals.swap_remove(at).local)
    });
    if let Some(local) = local {
        let began_ms = coarse_ms();
        {
            let _run = GoroutinesRun::begin(py);
            local.run(&|| coarse_ms().saturating_sub(began_ms) > CLOSE_MS);
        }
        local.abandon_all();
    }
}
