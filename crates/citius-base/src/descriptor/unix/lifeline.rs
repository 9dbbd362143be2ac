//! Linux only: a thread that ends this process when another has ended, whatever the application does.
//!
//! An application may ignore or block all signals, and its code may keep the interpreter for itself. This thread needs
//! neither: it waits for the end of a pipe, has Python told in a thread of its own, which may have to wait, and ends the process when
//! the time for that is over. `python/citius/process/lifeline.py` says what Python does meanwhile.
//! Tests: `tests/supervisor/test_ends.py`.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Builder;
use std::time::Duration;

use pyo3::prelude::*;

use crate::descriptor::{Fd, duplicate};

/// It calls nothing that needs more.
const STACK_BYTES: usize = 64 * 1024;
const NAME: &str = "citius-lifeline";

/// Adds the function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(end_behind, module)?)
}

/// End this process `within_ms` after the pipe has ended whose reading end this is, and call `told` as soon as Python lets it.
#[pyfunction]
fn end_behind(fd: Fd, within_ms: u64, told: Py<PyAny>) -> PyResult<()> {
    let pipe = duplicate(fd)?;
    Builder::new()
        .name(NAME.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let watched = catch_unwind(AssertUnwindSafe(|| watch(&pipe, within_ms, told)));
            debug_assert!(
                watched.is_ok(),
                "it calls the kernel, and threads are not missing"
            );
        })?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a thread of its own, whatever the reactor does"
)]
fn watch(pipe: &File, within_ms: u64, told: Py<PyAny>) {
    if wait_for_end(pipe).is_err() {
        // The application has closed all descriptors. What is left is a look at the parent at each heartbeat.
        return;
    }
    let telling = Builder::new().name(NAME.to_owned()).spawn(move || {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            Python::try_attach(|py| {
                if let Err(error) = told.call0(py) {
                    error.write_unraisable(py, None);
                }
            });
        }));
    });
    std::thread::sleep(Duration::from_millis(within_ms));
    drop(telling);
    let text = b"citius: this process did not end in time after its supervisor had; it is ended\n";
    // Standard error has a lock in Rust, which another thread may hold for ever.
    // SAFETY: the text has this length.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    // SAFETY: nothing of this process runs afterwards.
    unsafe { libc::_exit(1) };
}

/// Blocks until all who could write to a pipe have ended.
fn wait_for_end(pipe: &File) -> Result<()> {
    let mut waiting = libc::pollfd {
        fd: pipe.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    loop {
        // SAFETY: `waiting` is one structure, the count that is passed, and outlives the call.
        if unsafe { libc::poll(&raw mut waiting, 1, -1) } >= 0 {
            break;
        }
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
    if waiting.revents & (libc::POLLHUP | libc::POLLIN) == 0 {
        return Err(Error::from(ErrorKind::NotFound));
    }
    Ok(())
}
