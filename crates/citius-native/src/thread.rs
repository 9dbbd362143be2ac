//! Waiting on a plain thread: spin for a while, then park; without the GIL.
//!
//! A parked thread costs a system call and the latency of an idle processor, which is most of a hand-over between two threads.
//! So a thread spins first while spinning has lately paid. The thread that wakes it holds the GIL at that moment and will soon
//! release it; [`DETACHMENTS`] tells the woken thread when. The main thread comes back every [`TICK`] for signal handlers.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::channel::{Ticket, Waker};
use crate::interpreter::interpreter;

/// One wait of a thread.
pub struct Parker {
    thread: Thread,
    is_woken: AtomicBool,
    /// [`DETACHMENTS`] when it was woken.
    detachments: AtomicU32,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self {
            thread: std::thread::current(),
            is_woken: AtomicBool::new(false),
            detachments: AtomicU32::new(0),
        }
    }

    pub(crate) fn unpark(&self) {
        let now = DETACHMENTS.load(Ordering::Acquire);
        self.detachments.store(now, Ordering::Relaxed);
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Whether it was woken.
    pub fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Acquire)
    }

    /// Waits until woken or until `end`. The GIL is not held.
    fn wait(&self, end: Option<Instant>) -> bool {
        let began = now();
        let patience = PATIENCE.get();
        if !patience.is_zero() && self.look(began, patience) {
            PATIENCE.set((patience * 2).min(PATIENCE_MAX));
            self.let_go(began);
            return true;
        }
        while !self.is_woken() {
            match end {
                None => std::thread::park(),
                Some(end) => {
                    let left = end.saturating_duration_since(now());
                    if left.is_zero() {
                        return self.is_woken();
                    }
                    std::thread::park_timeout(left);
                }
            }
        }
        // What came soon would have been worth looking for.
        let patience = if began.elapsed() < PATIENCE_MAX * 2 && *HAS_CORES {
            PATIENCE_MAX
        } else {
            patience / 2
        };
        PATIENCE.set(patience);
        true
    }

    fn look(&self, began: Instant, patience: Duration) -> bool {
        while !self.is_woken() {
            for _ in 0..LOOKS {
                std::hint::spin_loop();
            }
            if began.elapsed() > patience {
                return self.is_woken();
            }
        }
        true
    }

    /// Gives the thread that woke this one a moment to release the GIL.
    fn let_go(&self, began: Instant) {
        if !HAS_GIL.load(Ordering::Relaxed) {
            return;
        }
        let then = self.detachments.load(Ordering::Relaxed);
        let patience = began.elapsed() + COURTESY;
        while DETACHMENTS.load(Ordering::Acquire) == then && began.elapsed() < patience {
            std::hint::spin_loop();
        }
    }
}

/// What has ended the wait of native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The outcome is there.
    Done,
    /// The end of the wait has come.
    TimedOut,
    /// A signal handler has raised; its exception is set.
    Raised,
}

/// A ticket for a wait of this thread.
pub fn ticket() -> Arc<Ticket> {
    Arc::new(Ticket::new(Waker::Thread(Parker::new())))
}

/// Waits on this thread for native code, which may have the GIL or not, until the [`ticket`] is complete. After `TimedOut` and
/// `Raised` it may be complete all the same.
pub(crate) fn wait_natively(ticket: &Ticket, end: Option<Instant>) -> Woken {
    let Waker::Thread(parker) = ticket.waker() else {
        return Woken::TimedOut;
    };
    if interpreter().is_attached() {
        return interpreter().wait_attached(parker, end);
    }
    loop {
        if parker.wait(slice(end)) {
            return Woken::Done;
        }
        if has_come(end) {
            return Woken::TimedOut;
        }
        if interpreter().has_raised() {
            return Woken::Raised;
        }
    }
}

/// When a thread that waits until `end` looks up from its wait.
fn slice(end: Option<Instant>) -> Option<Instant> {
    match (is_main_thread(), end) {
        (true, None) => Some(now() + TICK),
        (true, Some(end)) => Some(end.min(now() + TICK)),
        (false, end) => end,
    }
}

/// Whether the end of a wait has come.
pub fn has_come(end: Option<Instant>) -> bool {
    end.is_some_and(|end| now() >= end)
}

/// One part of the wait of a thread that has let go of the GIL: until it is woken, until `end`, or, on the main thread, for a [`TICK`].
/// Returns whether it was woken; then the thread may take the GIL, and says so by [`has_attached`].
pub fn wait_detached(parker: &Parker, end: Option<Instant>) -> bool {
    DETACHMENTS.fetch_add(1, Ordering::AcqRel);
    if end.is_none() {
        PARKED.fetch_add(1, Ordering::AcqRel);
    }
    let is_woken = parker.wait(slice(end));
    if end.is_none() {
        PARKED.fetch_sub(1, Ordering::AcqRel);
    }
    attach_or_stay();
    is_woken
}

/// The thread is back from [`wait_detached`], and has the GIL.
pub fn has_attached() {
    ATTACHING.fetch_sub(1, Ordering::AcqRel);
}

/// Threads that wait without end.
pub fn parked() -> usize {
    PARKED.load(Ordering::Acquire)
}

/// The moment that is `ns` nanoseconds away.
pub(crate) fn in_ns(ns: u64) -> Instant {
    now() + Duration::from_nanos(ns)
}

/// The moment that is `seconds` away.
pub fn in_seconds(seconds: f64) -> Instant {
    now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9))
}

/// A thread that comes back to an interpreter that is ending would be ended inside of this function, which
/// Rust does not survive: it stays away.
fn attach_or_stay() {
    ATTACHING.fetch_add(1, Ordering::AcqRel);
    if IS_ENDING.load(Ordering::Acquire) && !is_main_thread() {
        ATTACHING.fetch_sub(1, Ordering::AcqRel);
        loop {
            std::thread::park();
        }
    }
}

/// Once per process, when the extension is loaded. Nothing of this waits for the first use: a child forked while another thread is in
/// the middle of it would wait for that thread, which it does not have.
pub fn prepare(has_gil: bool) {
    std::sync::LazyLock::force(&HAS_CORES);
    HAS_GIL.store(has_gil, Ordering::Relaxed);
}

/// A number that a child of this process has another of: the threads that wait for a channel stay in the parent.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// The interpreter ends: lets threads in that are on their way back, and none after them. The GIL is not held.
pub fn end() {
    IS_ENDING.store(true, Ordering::Release);
    let began = now();
    while ATTACHING.load(Ordering::Acquire) > 0 && began.elapsed() < TICK {
        std::thread::yield_now();
    }
}

/// This is the child of a fork.
pub fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    PARKED.store(0, Ordering::Release);
    ATTACHING.store(0, Ordering::Release);
}

thread_local! {
    /// This thread is within a reactor's turn.
    static IS_SERVING: Cell<bool> = const { Cell::new(false) };
}

/// A reactor's turn on this thread, while it lives.
pub struct Serving {
    before: bool,
}

/// Whether this thread is within a reactor's turn.
pub fn is_serving() -> bool {
    IS_SERVING.get()
}

impl Serving {
    /// The turn begins.
    pub fn begin() -> Self {
        Self {
            before: IS_SERVING.replace(true),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        IS_SERVING.set(self.before);
    }
}

/// Whether this is the thread that the process has begun with.
pub fn is_main_thread() -> bool {
    thread_local! {
        static IS_MAIN: bool = std::fs::read_link("/proc/thread-self").is_ok_and(|path| {
            let mut ids = path.iter().filter_map(|part| part.to_str()?.parse::<u32>().ok());
            ids.next() == ids.next()
        });
    }
    IS_MAIN.with(|is_main| *is_main)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a thread outside of every reactor has no turn, and no turn's clock"
)]
fn now() -> Instant {
    Instant::now()
}

thread_local! {
    /// How long this thread looks before it parks.
    static PATIENCE: Cell<Duration> = Cell::new(if *HAS_CORES { PATIENCE_MAX } else { Duration::ZERO });
}

/// Looking is of use only if another thread can run meanwhile. Evaluated when the module is imported.
static HAS_CORES: std::sync::LazyLock<bool> =
    std::sync::LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|n| n.get() > 1));

/// How often threads have let go of the GIL here.
static DETACHMENTS: AtomicU32 = AtomicU32::new(0);
/// Threads that wait here without end.
static PARKED: AtomicUsize = AtomicUsize::new(0);
/// Threads between their wait and the interpreter.
static ATTACHING: AtomicUsize = AtomicUsize::new(0);
/// Free-threaded interpreters have none to be let go of.
static HAS_GIL: AtomicBool = AtomicBool::new(true);
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Forks between the import and this process.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Looking for longer than it takes to wake a parked thread is a waste.
const PATIENCE_MAX: Duration = Duration::from_micros(40);
/// A thread that sends and then receives is back here before this is over.
const COURTESY: Duration = Duration::from_micros(10);
/// Pauses between two looks at the clock.
const LOOKS: u32 = 8;
/// Python runs signal handlers on the main thread only, and only when it holds the GIL.
const TICK: Duration = Duration::from_millis(100);
