//! What reactors of one worker share their new connections by, as Python passes it on. Tests: `tests/hosts/test_reactor_threads.py`.

use std::sync::Arc;

use pyo3::prelude::*;

/// The reactors that accept from the same sockets.
#[pyclass(frozen, module = "citius._core")]
#[derive(Default)]
pub(crate) struct Balancer {
    pub(crate) shared: Arc<citius_reactor::Balancer>,
}

#[pymethods]
impl Balancer {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}
