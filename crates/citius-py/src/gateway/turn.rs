//! What a gateway has while the reactor's thread runs a turn: the GIL, the way back to the reactor, the tasks.

use std::sync::Arc;

use citius_base::reactor_handle::ReactorHandle;
use citius_base::task::Tasks;
use pyo3::prelude::*;

/// One turn of the reactor, with the GIL in hand.
pub(crate) struct Turn<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) handle: &'a Arc<ReactorHandle>,
    pub(crate) tasks: &'a mut Tasks,
}
