//! What a gateway has while the reactor's thread runs a turn: the GIL, the way back to the reactor, the tasks.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::reactor_handle::ReactorHandle;
use crate::task::Tasks;

/// One turn of the reactor, with the GIL in hand.
pub(crate) struct Turn<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) handle: &'a Arc<ReactorHandle>,
    pub(crate) tasks: &'a mut Tasks,
}
