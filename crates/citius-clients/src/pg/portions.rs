//! Rows in portions: what Python fetches from a portal.

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::call::{Owner, PgCall, Work};
use super::connection::PgConnection;
use super::pool::{PgPool, rendered};
use super::rows::{Portal, RowType, Shape};

/// A portal of a session in a transaction.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct PgPortal {
    pool: Py<PgPool>,
    session: Py<PgConnection>,
    kind: RowType,
    is_described: bool,
    portal: Arc<Portal>,
}

#[pymethods]
impl PgPortal {
    #[new]
    #[pyo3(signature = (pool, session, rows_max, as_ = None, is_described = false))]
    fn new(
        pool: Py<PgPool>,
        session: Py<PgConnection>,
        rows_max: u32,
        as_: Option<&Bound<'_, PyAny>>,
        is_described: bool,
    ) -> PyResult<Self> {
        Ok(Self {
            pool,
            session,
            kind: RowType::of(as_)?,
            is_described,
            portal: Arc::new(Portal::new(rows_max)),
        })
    }

    /// The first rows of a statement.
    #[pyo3(signature = (*arguments))]
    fn open(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Py<PgCall>> {
        let py = arguments.py();
        let (sql, arguments) = rendered(arguments)?;
        let portal = Arc::clone(&self.portal);
        let work = Work::Open(portal, sql.unbind(), arguments.unbind());
        self.call(py, work)
    }

    /// The next rows.
    fn next(&self, py: Python<'_>) -> PyResult<Py<PgCall>> {
        self.call(py, Work::Resume(Arc::clone(&self.portal)))
    }

    /// Whether the last row has come.
    #[getter]
    fn is_done(&self) -> bool {
        self.portal.is_done()
    }

    /// Closes the portal, with the next request of the session.
    fn close(&self) {
        self.session.get().close_portal(self.portal.name());
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)?;
        visit.call(&self.session)
    }
}

impl PgPortal {
    fn call(&self, py: Python<'_>, work: Work) -> PyResult<Py<PgCall>> {
        let shape = if self.is_described {
            Shape::Described
        } else {
            Shape::Rows(self.kind.copy(py))
        };
        let session = Some(Owner::Session(self.session.clone_ref(py)));
        PgCall::new(py, self.pool.clone_ref(py), session, work, shape)
    }
}
