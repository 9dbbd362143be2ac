//! A block that has a session to itself, and the calls that belong to it.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::connection::PgConnection;

/// A transaction, or a savepoint, that has a session: a call of its is refused when it has ended, because another block may
/// have the session then.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct PgBlock {
    pub(crate) session: Py<PgConnection>,
    is_over: AtomicBool,
}

impl PgBlock {
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

#[pymethods]
impl PgBlock {
    #[new]
    fn new(session: Py<PgConnection>) -> Self {
        Self {
            session,
            is_over: AtomicBool::new(false),
        }
    }

    /// Has calls that come later refused.
    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.session)
    }
}

/// Where a call has to be executed.
#[derive(FromPyObject)]
pub(crate) enum Owner {
    Block(Py<PgBlock>),
    Session(Py<PgConnection>),
}
