//! The goroutines of a reactor: their scheduler, which belongs to the reactor's thread, and how a turn runs them.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use citius_goroutine::{Goroutine, Local, Nanos, Pool, StackError, Stacks};
use citius_http::Limits;
use citius_reactor::{Mailbox, coarse_ms};

use super::clock::now;
use super::context::Context;
use super::gil::{Attached, GoroutinesRun};
use super::green::{Failures, Green, OnFailure};
use super::pool;
use crate::Outgoing;

/// What goroutines need of the reactor that runs them.
pub trait Reactor: Send + Sync {
    /// Its limits.
    fn limits(&self) -> &Limits;

    /// What wakes it.
    fn mailbox(&self) -> &Arc<Mailbox>;

    /// The connections that compiled code has opened there.
    fn outgoing(&self) -> &Outgoing;

    /// Whether this thread turns it, and will go on to.
    fn is_at_home_here(&self) -> bool;

    /// Logs a warning. The thread is attached to the interpreter.
    fn warn(&self, text: &str);
}

/// A reactor of this thread and its scheduler.
struct Entry {
    handle: Weak<dyn Reactor>,
    local: Local,
    trimmed_at: Nanos,
    /// When the log was last told that they kept the thread for long.
    told_at: Nanos,
}

impl Entry {
    fn is_of(&self, handle: &dyn Reactor) -> bool {
        std::ptr::addr_eq(self.handle.as_ptr(), handle)
    }
}

thread_local! {
    static LOCALS: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    /// The reactor that was last at home on this thread.
    static HERE: RefCell<Option<Weak<dyn Reactor>>> = const { RefCell::new(None) };
}

/// A turn leaves the rest of the goroutines to the next one after so many milliseconds.
const RUN_MS: u64 = 4;
/// The scheduler looks at whether its run is over after every 16 resumes. So many looks a handler that waits may have for the
/// goroutines that are ready, before the next request begins: 32 resumes.
const EARLY_LOOKS: u32 = 1;
/// So long goroutines may take to notice that their clients are gone when the reactor closes.
const CLOSE_MS: u64 = 100;
/// Between two times at which memory of stacks is given back.
const TRIM_EVERY_NS: Nanos = 1_000_000_000;
/// Between two lines of the log about the same.
const TELL_EVERY_NS: Nanos = 10_000_000_000;

/// A reactor is at home on this thread: goroutines that code on it starts are the reactor's.
pub fn set_home(handle: &Arc<impl Reactor + 'static>) {
    let handle: Weak<dyn Reactor> = Arc::downgrade(handle) as _;
    HERE.replace(Some(handle));
}

/// The reactor at home on this thread, if it is still turned: one that has ended may be kept alive by what refers to it.
pub fn home() -> Option<Arc<dyn Reactor>> {
    let handle = HERE.with(|here| here.borrow().as_ref()?.upgrade())?;
    handle.is_at_home_here().then_some(handle)
}

/// The scheduler of a reactor on its thread.
fn of(handle: &Arc<dyn Reactor>) -> Local {
    existing(&**handle).unwrap_or_else(|| make(handle))
}

fn existing(handle: &dyn Reactor) -> Option<Local> {
    LOCALS.with(|locals| {
        let locals = locals.borrow();
        let found = locals.iter().find(|entry| entry.is_of(handle));
        found.map(|entry| entry.local.clone())
    })
}

#[cold]
fn make(handle: &Arc<dyn Reactor>) -> Local {
    let limits = handle.limits();
    let stacks = Stacks::new(
        usize::try_from(limits.goroutine_stack_bytes).unwrap_or(usize::MAX),
        limits.goroutines_max as usize,
    );
    let mailbox = Arc::clone(handle.mailbox());
    let request_run = move || {
        if mailbox.call_service() {
            mailbox.wake();
        }
    };
    let local = Local::new(stacks, Box::new(Failures), Box::new(request_run));
    super::interpreter::protect();
    LOCALS.with(|locals| {
        let mut locals = locals.borrow_mut();
        locals.retain(|entry| entry.handle.strong_count() > 0);
        locals.push(Entry {
            handle: Arc::downgrade(handle),
            local: local.clone(),
            trimmed_at: now(),
            told_at: 0,
        });
    });
    local
}

/// Runs the goroutines of a reactor that are ready, within its turn. Returns when it is to be called again.
pub fn run(attached: Attached<'_>, handle: &dyn Reactor) -> Option<Nanos> {
    let local = existing(handle)?;
    handle.outgoing().collect();
    local.fire_timers(now());
    let guard = GoroutinesRun::begin(attached);
    let began_ms = coarse_ms();
    run_ready(handle, &local, &|| {
        coarse_ms().saturating_sub(began_ms) > RUN_MS
    });
    drop(guard);
    let took_ms = coarse_ms().saturating_sub(began_ms);
    if took_ms > RUN_MS {
        tell_long_run(handle, took_ms);
    }
    next_call(handle, &local)
}

/// Logs that goroutines have not waited for a long time, if they have not; now and then.
#[cold]
fn tell_long_run(handle: &dyn Reactor, took_ms: u64) {
    let limit_ms = handle.limits().compiled_run_ms_max;
    if limit_ms == 0 || took_ms <= RUN_MS + limit_ms {
        return;
    }
    let now = now();
    let is_due = LOCALS.with(|locals| {
        let mut locals = locals.borrow_mut();
        let mut entries = locals.iter_mut();
        let entry = entries.find(|entry| entry.is_of(handle));
        entry.is_some_and(|entry| {
            let is_due = now >= entry.told_at + TELL_EVERY_NS;
            if is_due {
                entry.told_at = now;
            }
            is_due
        })
    });
    if is_due {
        let text = format!(
            "goroutines kept the reactor's thread for {took_ms} ms without a wait, and everybody else waiting; let those that \
             compute call citius_yield now and then, or give their routes pool=True"
        );
        handle.warn(&text);
    }
}

/// Runs those that are ready until `is_over`; the rest in the next run of this turn or the next.
fn run_ready(handle: &dyn Reactor, local: &Local, is_over: &dyn Fn() -> bool) {
    let is_left = local.run(is_over);
    if is_left {
        // Not needed: the turn sees it at its end.
        let _ = handle.mailbox().call_service();
    }
}

fn next_call(handle: &dyn Reactor, local: &Local) -> Option<Nanos> {
    let timer_at = local.next_timer_at();
    if !local.is_trimmable() {
        return timer_at;
    }
    let trim_at = LOCALS.with(|locals| {
        let mut locals = locals.borrow_mut();
        let entry = locals.iter_mut().find(|entry| entry.is_of(handle))?;
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
///
/// If it then waits (`is_waiting`) and others are ready, a few of these are resumed, too: what a handler has just started is done
/// before the next request begins, while its stacks are in the cache, and the response may be there within the call. Ten goroutines
/// that send to their handler take three quarters of the time that they take at the end of the turn (the lab's `fan-out`). What
/// takes longer goes on there, so that requests do not wait for one another.
///
/// # Errors
/// There is no stack for it.
pub fn start_now(
    attached: Attached<'_>,
    handle: &Arc<impl Reactor + 'static>,
    word: usize,
    code: impl FnOnce() + 'static,
    is_waiting: impl Fn() -> bool,
) -> Result<(), StackError> {
    let local = existing(&**handle).unwrap_or_else(|| make(&(Arc::clone(handle) as _)));
    let _run = GoroutinesRun::begin(attached);
    let started = local.start_now(word, move || {
        let _running = Green::begin();
        code();
    });
    if started.is_err() {
        Green::unmake(word);
    } else if local.has_ready() && is_waiting() {
        // What made them ready has asked for the run at the end of the turn, which tells the poller of timers.
        let looks = Cell::new(0);
        run_ready(&**handle, &local, &|| {
            looks.replace(looks.get() + 1) == EARLY_LOOKS
        });
    }
    started
}

/// Starts a goroutine where the caller is: with its scheduler, with the reactor of its thread, or in the pool.
///
/// `code` may run on another thread from one wait to the next.
///
/// # Errors
/// There is no stack for it.
pub fn start(
    context: Option<Arc<Context>>,
    on_failure: OnFailure,
    code: impl FnOnce() + Send + 'static,
) -> Result<Goroutine, StackError> {
    start_at(here(), context, on_failure, code)
}

/// Starts a goroutine in the pool.
///
/// # Errors
/// There is no stack for it.
pub fn start_in_pool(
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
pub fn close(attached: Attached<'_>, handle: &dyn Reactor) {
    let local = LOCALS.with(|locals| {
        let mut locals = locals.borrow_mut();
        let at = locals.iter().position(|entry| entry.is_of(handle))?;
        Some(locals.swap_remove(at).local)
    });
    handle.outgoing().close();
    if let Some(local) = local {
        let began_ms = coarse_ms();
        {
            let _run = GoroutinesRun::begin(attached);
            local.run(&|| coarse_ms().saturating_sub(began_ms) > CLOSE_MS);
        }
        local.abandon_all();
    }
}
