//! The goroutines of no reactor: one pool of threads for the process.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use citius_goroutine::{Goroutine, MigratingCoroutine, Pool, PoolSettings, StackError, Stacks};
use citius_http::Limits;

use super::clock::now;
use super::green::Failures;
use super::interpreter::interpreter;
use crate::lock::lock;
use crate::thread;

/// What the pool is made with: threads, bytes of a stack, goroutines. Set by the first application that is served.
static THREADS: AtomicUsize = AtomicUsize::new(0);
static STACK_BYTES: AtomicUsize = AtomicUsize::new(256 * 1024);
static GOROUTINES_MAX: AtomicUsize = AtomicUsize::new(128 * 1024);

/// The pool and the process it was made in: a child of a fork has none of its threads.
static POOL: Mutex<Option<(u32, Pool)>> = Mutex::new(None);

/// Says how many threads the pool has, if it is made later. 0: one per processor.
pub fn set_threads(threads: usize) {
    THREADS.store(threads, Ordering::Relaxed);
}

/// Sets the limits of the pool's goroutines, if it is made later.
pub fn set_limits(limits: &Limits) {
    let stack_bytes = usize::try_from(limits.goroutine_stack_bytes).unwrap_or(usize::MAX);
    STACK_BYTES.store(stack_bytes, Ordering::Relaxed);
    GOROUTINES_MAX.store(limits.goroutines_max as usize, Ordering::Relaxed);
}

/// The pool of this process.
///
/// # Panics
/// The kernel has no descriptors for it.
pub fn pool() -> Pool {
    let mut known = lock(&POOL);
    if let Some((generation, pool)) = &*known
        && *generation == thread::generation()
    {
        return pool.clone();
    }
    let threads = match THREADS.load(Ordering::Relaxed) {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        threads => threads,
    };
    let stacks = Stacks::new(
        STACK_BYTES.load(Ordering::Relaxed),
        GOROUTINES_MAX.load(Ordering::Relaxed),
    );
    super::interpreter::protect();
    let settings = PoolSettings {
        name: "citius-go",
        threads,
        now,
        prepare_thread: || interpreter().keep_thread_state(),
    };
    let pool = Pool::new(settings, stacks, Box::new(Failures))
        .expect("the kernel has descriptors for a poller");
    // One of the parent process is not touched: its threads are not here.
    if let Some(before) = known.replace((thread::generation(), pool.clone())) {
        std::mem::forget(before);
    }
    pool
}

/// Starts a goroutine of the pool.
///
/// # Errors
/// There is no stack for it.
pub fn start(
    pool: &Pool,
    word: usize,
    code: impl FnOnce() + Send + 'static,
) -> Result<Goroutine, StackError> {
    pool.start(word, |stack| {
        // SAFETY: what is of this crate keeps nothing of a thread over a wait: thread-local variables are looked up in functions
        // that are not inlined. Code of handlers is told so by the header.
        unsafe { MigratingCoroutine::new(stack, code) }
    })
}
