//! Waiting on a plain thread, which has the GIL and lets go of it meanwhile ([`citius_native::thread`]).
//!
//! The main thread comes back now and then for signal handlers, and raises `Deadlock` if all threads wait and nothing else could use
//! a channel. Tests: `tests/go/`.

use std::time::Instant;

use citius_native::thread::{self, Parker};
use citius_native::{Outcome, Waker};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::process::call_in_children;

use super::operation::{Operation, error};

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
    let ticket = thread::ticket();
    if let Some(outcome) = operation.queue(&ticket) {
        return Ok(Some(outcome));
    }
    let Waker::Thread(parker) = ticket.waker() else {
        unreachable!("made above");
    };
    let end = timeout_s.map(thread::in_seconds);
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

/// Waits on this thread until `end`; whether it was woken.
///
/// # Errors
/// As [`block`].
pub(crate) fn wait(py: Python<'_>, parker: &Parker, end: Option<Instant>) -> PyResult<bool> {
    let is_main = thread::is_main_thread();
    let mut suspicions = 0;
    loop {
        let is_woken = py.detach(|| thread::wait_detached(parker, end));
        thread::has_attached();
        if is_woken || parker.is_woken() {
            return Ok(true);
        }
        if thread::has_come(end) {
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

/// Whether every thread but this one, which is about to, waits for a channel without end.
fn is_everybody_parked(py: Python<'_>) -> PyResult<bool> {
    let frames = py
        .import(intern!(py, "sys"))?
        .call_method0(intern!(py, "_current_frames"))?
        .len()?;
    Ok(thread::parked() + 1 >= frames.max(other_threads(py)? + 1))
}

/// Whether something besides the threads that wait here could use a channel: a signal handler, or a thread that
/// Python does not know and that may call it. What cannot be found out counts as yes.
pub(crate) fn has_outside_party(py: Python<'_>) -> PyResult<bool> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return Ok(true);
    };
    if tasks.count() > thread::parked() + 1 {
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

/// Once per process, when the module is imported: learn whether there is a GIL, when the interpreter ends, and what a
/// child of a fork must know.
///
/// Nothing of this waits for the first use: a child forked while another thread is in the middle of it would wait for
/// that thread, which it does not have.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    let has_gil = match py.import("sys")?.getattr_opt("_is_gil_enabled")? {
        Some(is_enabled) => is_enabled.call0()?.extract()?,
        None => true,
    };
    thread::prepare(has_gil);
    let end = wrap_pyfunction!(end, py)?;
    py.import("atexit")?.call_method1("register", (end,))?;
    call_in_children(&wrap_pyfunction!(forked, py)?)
}

/// Whether what was made in generation `born` belongs to this process.
///
/// # Errors
/// `ChannelMisuse`, if it does not.
#[inline]
pub(crate) fn check_generation(py: Python<'_>, born: u32) -> PyResult<()> {
    if born == thread::generation() {
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
    py.detach(thread::end);
}

#[pyfunction]
fn forked() {
    thread::forked();
}

const SIGINT: u32 = 2;
/// Signals of errors (ILL, TRAP, ABRT, BUS, FPE, SEGV), whose handlers end the process, and the two of the C library.
const SIGNALS_OF_THE_SYSTEM: u64 =
    bit(4) | bit(5) | bit(6) | bit(7) | bit(8) | bit(11) | bit(32) | bit(33);

/// A thread that was started a moment ago may not be seen yet.
const SUSPICIONS_MAX: u32 = 3;
