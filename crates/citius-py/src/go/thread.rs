//! Waiting on a plain thread: spin for a while, then park; without the GIL.
//!
//! A parked thread costs a system call and the latency of an idle processor, which is most of a hand-over between two threads.
//! So a thread spins first while spinning has lately paid. The thread that wakes it holds the GIL at that moment and will soon
//! release it; [`DETACHMENTS`] tells the woken thread when. The main thread comes back every [`TICK`] for signal handlers, and
//! raises `Deadlock` if all threads wait and nothing else could use a channel. Tests: `tests/go/`.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::fork::call_in_children;

use super::operation::{Operation, error};
use super::{Outcome, Ticket, Waker};

/// One wait of a thread.
pub(crate) struct Parker {
    thread: Thread,
    is_woken: AtomicBool,
    /// [`DETACHMENTS`] when it was woken.
    detachments: AtomicU32,
}

impl Parker {
    fn new() -> Self {
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

    fn is_woken(&self) -> bool {
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

/// Waits on this thread; `None` when the time is up.
///
/// # Errors
/// What a signal handler raises; `Deadlock` on the main thread when all threads wait here.
pub(crate) fn block(
    py: Python<'_>,
    operation: &mut Operation,
    timeout_s: Option<f64>,
) -> PyResult<Option<Outcome>> {
    if timeout_s.is_some_and(f64::is_nan) {
        return Err(PyValueError::new_err(
            "a time to wait is a number of seconds, not nan",
        ));
    }
    let ticket = Arc::new(Ticket::new(Waker::Thread(Parker::new())));
    if let Some(outcome) = operation.queue(&ticket) {
        return Ok(Some(outcome));
    }
    let Waker::Thread(parker) = ticket.waker() else {
        unreachable!("made above");
    };
    let end = timeout_s.map(|timeout_s| now() + Duration::from_secs_f64(timeout_s.clamp(0.0, 1e9)));
    match wait(py, parker, end) {
        Ok(true) => Ok(operation.finish(&ticket)),
        // The last moment may have brought something.
        Ok(false) if ticket.claim() => {
            operation.cancel(&ticket);
            Ok(None)
        }
        Ok(false) => {
            while !ticket.is_done() {
                std::hint::spin_loop();
            }
            Ok(operation.finish(&ticket))
        }
        Err(error) => {
            operation.cancel(&ticket);
            Err(error)
        }
    }
}

fn wait(py: Python<'_>, parker: &Parker, end: Option<Instant>) -> PyResult<bool> {
    let is_main = is_main_thread();
    let mut suspicions = 0;
    loop {
        let slice = match (is_main, end) {
            (true, None) => Some(now() + TICK),
            (true, Some(end)) => Some(end.min(now() + TICK)),
            (false, end) => end,
        };
        let is_woken = py.detach(|| {
            DETACHMENTS.fetch_add(1, Ordering::AcqRel);
            if end.is_none() {
                PARKED.fetch_add(1, Ordering::AcqRel);
            }
            let is_woken = parker.wait(slice);
            if end.is_none() {
                PARKED.fetch_sub(1, Ordering::AcqRel);
            }
            attach_or_stay();
            is_woken
        });
        ATTACHING.fetch_sub(1, Ordering::AcqRel);
        if is_woken || parker.is_woken() {
            return Ok(true);
        }
        if end.is_some_and(|end| now() >= end) {
            return Ok(false);
        }
        py.check_signals()?;
        if is_main && end.is_none() {
            suspicions = if is_everybody_parked(py)? && !has_outside_party(py)? {
                suspicions + 1
            } else {
                0
            };
            if suspicions == SUSPICIONS_MAX && !parker.is_woken() {
                return Err(error(
                    py,
                    "Deadlock",
                    "all threads wait for channels, and nobody is left who could send, receive or close; look \
                     for a goroutine that ended early (its exception is in the log), a missing close(), or a \
                     channel without room that one thread both fills and empties",
                ));
            }
        }
    }
}

/// What has ended the wait of native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Done,
    TimedOut,
    /// A signal handler of Python has raised; its exception is set.
    Raised,
}

/// A ticket for a wait of this thread.
pub(crate) fn ticket() -> Arc<Ticket> {
    Arc::new(Ticket::new(Waker::Thread(Parker::new())))
}

/// Waits on this thread for native code, which may have the GIL or not, until the [`ticket`] is complete. After `TimedOut` and
/// `Raised` it may be complete all the same.
pub(crate) fn wait_natively(ticket: &Ticket, end: Option<Instant>) -> Woken {
    let Waker::Thread(parker) = ticket.waker() else {
        return Woken::TimedOut;
    };
    if is_attached() {
        return Python::attach(|py| match wait(py, parker, end) {
            Ok(true) => Woken::Done,
            Ok(false) => Woken::TimedOut,
            Err(error) => {
                error.restore(py);
                Woken::Raised
            }
        });
    }
    loop {
        let slice = match (is_main_thread(), end) {
            (true, None) => Some(now() + TICK),
            (true, Some(end)) => Some(end.min(now() + TICK)),
            (false, end) => end,
        };
        if parker.wait(slice) {
            return Woken::Done;
        }
        if end.is_some_and(|end| now() >= end) {
            return Woken::TimedOut;
        }
        let raised = Python::attach(|py| {
            let raised = py.check_signals().err();
            let has_raised = raised.is_some();
            if let Some(error) = raised {
                error.restore(py);
            }
            has_raised
        });
        if raised {
            return Woken::Raised;
        }
    }
}

/// The moment that is `ns` nanoseconds away.
pub(crate) fn in_ns(ns: u64) -> Instant {
    now() + Duration::from_nanos(ns)
}

/// Whether this thread may use Python at this moment: it has the GIL, where there is one.
pub(crate) fn is_attached() -> bool {
    crate::native::gil::is_attached()
}

/// Whether every thread but this one, which is about to, waits for a channel without end.
fn is_everybody_parked(py: Python<'_>) -> PyResult<bool> {
    let frames = py
        .import(intern!(py, "sys"))?
        .call_method0(intern!(py, "_current_frames"))?
        .len()?;
    Ok(PARKED.load(Ordering::Acquire) + 1 >= frames.max(other_threads(py)? + 1))
}

/// Whether something besides the threads that wait here could use a channel: a signal handler, or a thread that
/// Python does not know and that may call it. What cannot be found out counts as yes.
pub(crate) fn has_outside_party(py: Python<'_>) -> PyResult<bool> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return Ok(true);
    };
    if tasks.count() > PARKED.load(Ordering::Acquire) + 1 {
        return Ok(true);
    }
    let caught = std::fs::read_to_string("/proc/self/status").ok();
    let caught = caught.as_deref().and_then(caught_signals);
    let Some(caught) = caught else {
        return Ok(true);
    };
    let mut others = caught & !SIGNALS_OF_THE_SYSTEM;
    if others & bit(SIGINT) != 0 && interrupt_raises(py)? {
        others &= !bit(SIGINT);
    }
    Ok(others != 0)
}

/// The signals that have handlers, as bits, of `/proc/self/status`.
fn caught_signals(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    u64::from_str_radix(line?.trim(), 16).ok()
}

/// Whether SIGINT does what it does by default: it raises `KeyboardInterrupt` and uses no channel.
fn interrupt_raises(py: Python<'_>) -> PyResult<bool> {
    let signal = py.import(intern!(py, "_signal"))?;
    let handler = signal.call_method1(intern!(py, "getsignal"), (SIGINT,))?;
    Ok(handler.is(&signal.getattr(intern!(py, "default_int_handler"))?))
}

const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Threads that Python has started, as far as they have not ended.
pub(crate) fn other_threads(py: Python<'_>) -> PyResult<usize> {
    static COUNT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let count = COUNT.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("_thread")?.getattr("_count")?.unbind())
    })?;
    count.bind(py).call0()?.extract()
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

/// Once per process, when the module is imported: learn whether there is a GIL, when the interpreter ends, and what a
/// child of a fork must know.
///
/// Nothing of this waits for the first use: a child forked while another thread is in the middle of it would wait for
/// that thread, which it does not have.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    std::sync::LazyLock::force(&HAS_CORES);
    if let Some(is_enabled) = py.import("sys")?.getattr_opt("_is_gil_enabled")? {
        HAS_GIL.store(is_enabled.call0()?.extract()?, Ordering::Relaxed);
    }
    let end = wrap_pyfunction!(end, py)?;
    py.import("atexit")?.call_method1("register", (end,))?;
    call_in_children(&wrap_pyfunction!(forked, py)?)
}

/// A number that a child of this process has another of: the threads that wait for a channel stay in the parent.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether what was made in generation `born` belongs to this process.
///
/// # Errors
/// `ChannelMisuse`, if it does not.
#[inline]
pub(crate) fn check_generation(py: Python<'_>, born: u32) -> PyResult<()> {
    if born == generation() {
        return Ok(());
    }
    Err(error(
        py,
        "ChannelMisuse",
        "this channel or WaitGroup was made before the fork, in the parent process, where its threads are; make \
         one in the child (between processes use a pipe or a queue of multiprocessing)",
    ))
}

/// Lets threads in that are on their way back, and none after them.
#[pyfunction]
fn end(py: Python<'_>) {
    IS_ENDING.store(true, Ordering::Release);
    py.detach(|| {
        let began = now();
        while ATTACHING.load(Ordering::Acquire) > 0 && began.elapsed() < TICK {
            std::thread::yield_now();
        }
    });
}

#[pyfunction]
fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    PARKED.store(0, Ordering::Release);
    ATTACHING.store(0, Ordering::Release);
}

pub(crate) fn is_main_thread() -> bool {
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

const SIGINT: u32 = 2;
/// Signals of errors (ILL, TRAP, ABRT, BUS, FPE, SEGV), whose handlers end the process, and the two of the C library.
const SIGNALS_OF_THE_SYSTEM: u64 =
    bit(4) | bit(5) | bit(6) | bit(7) | bit(8) | bit(11) | bit(32) | bit(33);

/// Looking for longer than it takes to wake a parked thread is a waste.
const PATIENCE_MAX: Duration = Duration::from_micros(40);
/// A thread that sends and then receives is back here before this is over.
const COURTESY: Duration = Duration::from_micros(10);
/// Pauses between two looks at the clock.
const LOOKS: u32 = 8;
/// Python runs signal handlers on the main thread only, and only when it holds the GIL.
const TICK: Duration = Duration::from_millis(100);
/// A thread that was started a moment ago may not be seen yet.
const SUSPICIONS_MAX: u32 = 3;
