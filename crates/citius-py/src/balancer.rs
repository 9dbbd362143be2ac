//! The balancer of new connections as an object of Python, which passes it to each reactor of a worker. Tests: `tests/hosts/test_reactor_threads.py`.

use std::sync::Arc;
use std::time::Duration;

use citius_base::support::os_error;
use pyo3::prelude::*;

/// The reactors that accept from the same sockets.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Balancer {
    pub(crate) shared: Arc<citius_reactor::Balancer>,
}

/// How long a connection that was offered to a busy thread waits before an idle one takes it: a little more than a turn may take
/// (`TURN_MS`), so that a thread that merely serves others is not late.
const PATIENCE: Duration = Duration::from_millis(5);

#[pymethods]
impl Balancer {
    #[new]
    fn new() -> PyResult<Self> {
        let made = citius_reactor::Balancer::new(PATIENCE);
        let shared = made.map_err(|error| os_error("timer", &error.into()))?;
        Ok(Self {
            shared: Arc::new(shared),
        })
    }
}
