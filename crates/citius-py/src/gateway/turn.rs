//! What a gateway has at hand while the reactor's thread serves.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::link::Link;
use crate::task::Tasks;

/// One turn of the reactor, with the GIL in hand.
pub(crate) struct Turn<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) link: &'a Arc<Link>,
    pub(crate) tasks: &'a mut Tasks,
}
