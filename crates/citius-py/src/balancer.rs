//! What reactors of one worker share their new connections by, as Python passes it on. Tests: `tests/hosts/test_reactor_threads.py`.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// The reactors that accept from the same sockets.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Balancer {
    pub(crate) shared: Arc<citius_reactor::Balancer>,
}

/// How long a connection waits for a thread that is busy while others may be idle: longer than most handlers take, and than a
/// thread that runs takes to turn.
const PATIENCE: Duration = Duration::from_millis(5);

#[pymethods]
impl Balancer {
    #[new]
    fn new() -> PyResult<Self> {
        let made = citius_reactor::Balancer::new(PATIENCE);
        let shared = made.map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(Self {
            shared: Arc::new(shared),
        })
    }
}
