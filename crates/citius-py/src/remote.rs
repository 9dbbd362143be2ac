//! The event loop that turns a reactor and owns its sockets: what the reactor asks of it, as calls of Python.
//!
//! `python/citius/serving/hosts/protocol.py` is the other side. Tests: all of the server with `--poller asyncio`.

use citius_http::Millis;
use citius_reactor::Host;
use pyo3::intern;
use pyo3::prelude::*;

/// A Python object with the methods `wake()` and `turn_later(seconds)`.
pub(crate) struct PyHost {
    wake: Py<PyAny>,
    turn_later: Py<PyAny>,
}

impl PyHost {
    pub(crate) fn new(py: Python<'_>, host: &Py<PyAny>) -> PyResult<Self> {
        let host = host.bind(py);
        Ok(Self {
            wake: host.getattr(intern!(py, "wake"))?.unbind(),
            turn_later: host.getattr(intern!(py, "turn_later"))?.unbind(),
        })
    }
}

impl Host for PyHost {
    fn wake(&self) {
        // An interpreter that ends has no loop to be woken.
        let _ = Python::try_attach(|py| {
            if let Err(error) = self.wake.bind(py).call0() {
                error.write_unraisable(py, None);
            }
        });
    }

    fn turn_later(&self, wait_ms: Millis) {
        let _ = Python::try_attach(|py| {
            #[expect(clippy::cast_precision_loss, reason = "a time within weeks")]
            let seconds = wait_ms as f64 / 1000.0;
            if let Err(error) = self.turn_later.bind(py).call1((seconds,)) {
                error.write_unraisable(py, None);
            }
        });
    }
}
