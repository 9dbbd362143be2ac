//! How a thread or a greenlet waits for something that another thread, or the hub, brings.
//!
//! A [`Signal`] is a channel of `citius.go` that is closed: so waiting is what it is there, in a thread without the GIL, in
//! a greenlet by switching to another. Tests: `tests/redis/test_serial.py`.

use std::sync::Arc;

use citius_native::{Channel, Element};
use pyo3::prelude::*;

use crate::go::caller;
use crate::go::operation::{Operation, ResultShape, error};

/// Something that happens once.
pub struct Signal(Channel);

impl Signal {
    /// One that has not happened.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Channel::new(0, Element::Object)))
    }

    /// The channel that is closed when it happens, for code that waits without Python.
    pub fn channel(&self) -> &Channel {
        &self.0
    }

    /// It has happened.
    pub(crate) fn set(&self, py: Python<'_>) {
        let _ = py;
        let _ = self.0.close();
    }

    /// Waits until it has.
    ///
    /// # Errors
    /// What a signal handler raises, or what is thrown into the greenlet.
    pub fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let operation = Operation::Receive(self.0.clone());
        caller::perform(py, operation, ResultShape::Pair)?;
        Ok(())
    }
}

/// Whether code may wait here for `what`.
///
/// # Errors
/// `ChannelMisuse`: it would stop an event loop, or the server.
pub fn check(py: Python<'_>, what: &str) -> PyResult<()> {
    if caller::is_serial() {
        return Ok(());
    }
    if caller::running_loop(py)?.is_some() {
        let message = format!(
            "{what} on the thread of a running event loop must not block it: use `await` (in `async def`), or add \
             serial=True to the handler (a `def`), or do it in a thread (a handler with blocking=True)"
        );
        return Err(error(py, "ChannelMisuse", &message));
    }
    if caller::would_stop_server(py)? {
        let message = format!(
            "{what} on the server's own thread would stop all requests: add blocking=True to the route, or make the handler \
             `async def` (with --loop auto)"
        );
        return Err(error(py, "ChannelMisuse", &message));
    }
    Ok(())
}
