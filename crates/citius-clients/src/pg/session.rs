//! What a session of PostgreSQL's is told of a call of Python's: its text, its arguments as bytes, its rows as objects.

use std::sync::Arc;

use citius_pg::{
    Call, Description, Host, Misfit, Parameters, PoolState, Row, Standing, StatementId, Trouble,
    Unfit,
};
use citius_reactor::coarse_ms;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::call::{SessionCall, Work};
use super::encode::{check_count, encode, in_row};
use super::errors::{error_of, protocol_error, server_error};
use super::pool::PgPool;
use super::rows::{Made, Rows, Statement, as_text};
use super::types::{Codec, TypeTable};

/// Calls that have ended, with their results.
pub(crate) type Ended = citius_pg::Ended<SessionCall>;
/// What was heard beside results.
pub(crate) type Heard = citius_pg::Heard<SessionCall>;

/// The pool of a session, on a thread that holds the interpreter.
#[derive(Clone, Copy)]
pub(crate) struct PyHost<'a> {
    pub(crate) py: Python<'a>,
    pub(crate) pool: &'a PgPool,
}

impl Host<Codec> for PyHost<'_> {
    #[inline]
    fn pool(&self) -> &PoolState {
        self.pool.state()
    }

    fn types(&self) -> Arc<TypeTable> {
        self.pool.types()
    }

    fn now_ms(&self) -> u64 {
        coarse_ms()
    }
}

impl Call for SessionCall {
    type Host<'a> = PyHost<'a>;
    type Codec = Codec;
    type Made = Made;
    type Rows = Rows;
    type Reply = Py<PyAny>;
    type Error = PyErr;

    #[inline]
    fn work(&self) -> citius_pg::Work<'_, Codec, Made> {
        match &self.0.get().work {
            Work::Statement(..) => citius_pg::Work::Statement,
            Work::Native(..) => citius_pg::Work::Encoded,
            Work::Each(_, rows) => citius_pg::Work::Each(rows.len()),
            Work::Script(_) => citius_pg::Work::Script,
            Work::Open(portal, ..) => citius_pg::Work::Open(portal),
            Work::Resume(portal) => citius_pg::Work::Resume(portal),
            Work::Copy(..) => citius_pg::Work::Copy,
        }
    }

    #[inline]
    fn standing(&self) -> &Standing {
        &self.0.get().standing
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.0.get().is_over()
    }

    #[inline]
    fn id(&self, host: PyHost<'_>) -> PyResult<Option<StatementId>> {
        match self.0.get().work.statement() {
            None => Ok(None),
            Some(sql) => host.pool.statement_id(sql.bind(host.py)).map(Some),
        }
    }

    fn text<'a>(&'a self, host: PyHost<'_>) -> PyResult<&'a str> {
        self.0
            .get()
            .work
            .text()
            .map_or(Ok(""), |sql| sql.to_str(host.py))
    }

    #[inline]
    fn encode<'a>(
        &'a self,
        host: PyHost<'_>,
        statement: &'a Statement,
        row: usize,
        parameters: &'a mut Parameters,
    ) -> Result<(&'a Description, &'a Parameters), Unfit<PyErr>> {
        let (py, description) = (host.py, statement.description());
        let encoded = match &self.0.get().work {
            Work::Native(_, parameters) => {
                return match check_count(parameters.len(), description) {
                    Ok(()) => Ok((as_text(statement), parameters)),
                    Err(error) => Err(unfit(py, error)),
                };
            }
            Work::Statement(_, arguments) | Work::Open(_, _, arguments) => {
                let arguments = arguments.bind(py);
                encode(arguments, description, statement.table(), parameters)
            }
            Work::Each(_, rows) => match rows.get(row) {
                Some(arguments) => {
                    let arguments = arguments.bind(py);
                    encode(arguments, description, statement.table(), parameters)
                        .map_err(|error| in_row(py, row, &error))
                }
                None => Ok(()),
            },
            Work::Script(_) | Work::Resume(_) | Work::Copy(..) => Ok(()),
        };
        match encoded {
            Ok(()) => Ok((description, parameters)),
            Err(error) => Err(unfit(py, error)),
        }
    }

    #[inline]
    fn rows(&self, host: PyHost<'_>) -> Rows {
        Rows::new(host.py, &self.0.get().shape)
    }

    #[inline]
    fn row(host: PyHost<'_>, rows: &mut Rows, statement: &Statement, row: Row<'_>) -> PyResult<()> {
        rows.push(host.py, statement, row)
    }

    #[inline]
    fn finish(
        host: PyHost<'_>,
        rows: Option<Rows>,
        statement: Option<&Statement>,
        count: u64,
    ) -> PyResult<Py<PyAny>> {
        match rows {
            Some(rows) => rows.finish(host.py, statement, count),
            None => count.into_py_any(host.py),
        }
    }

    fn share(&self, host: PyHost<'_>) -> Self {
        Self(self.0.clone_ref(host.py))
    }

    #[cold]
    fn error(host: PyHost<'_>, trouble: Trouble<'_>) -> PyErr {
        match trouble {
            Trouble::Refused { word, is_of_block } => {
                error_of(host.py, "refused", (word, is_of_block))
            }
            Trouble::Unsendable(why) => PyValueError::new_err(why.to_owned()),
            Trouble::Fault(fault) => protocol_error(host.py, fault),
            Trouble::Server(error) => server_error(host.py, error),
        }
    }
}

#[cold]
fn unfit(py: Python<'_>, error: PyErr) -> Unfit<PyErr> {
    let misfit = if error.is_instance_of::<PyTypeError>(py) {
        Misfit::Type
    } else if error.is_instance_of::<PyOverflowError>(py) {
        Misfit::Range
    } else {
        Misfit::Other
    };
    Unfit { error, misfit }
}
