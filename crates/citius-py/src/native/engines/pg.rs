//! Statements of PostgreSQL, and their rows.

use std::sync::Arc;

use citius_pg::Parameters;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::super::net::error::{NetError, Result};
use super::super::wait::Until;
use super::engine::{Engine, attached, check_wait, wait_for};
use super::failure::failure_of;
use crate::pg::call::PgCall;
use crate::pg::native::Table;
use crate::pg::pool::PgPool;
use crate::serial::Signal;

const WHAT: &str = "a statement of PostgreSQL";

/// What statements begin with that begin or end a transaction, or a part of one.
const OF_TRANSACTIONS: [&str; 8] = [
    "BEGIN",
    "START",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ABORT",
    "SAVEPOINT",
    "RELEASE",
];

/// Refuses to begin a transaction: statements of other requests follow on the same session.
fn refuse_transactions(sql: &str) -> Result<()> {
    let sql = sql.trim_start();
    let end = sql.find(|letter: char| !letter.is_ascii_alphabetic());
    let word = &sql[..end.unwrap_or(sql.len())];
    if OF_TRANSACTIONS
        .iter()
        .any(|one| one.eq_ignore_ascii_case(word))
    {
        return Err(NetError::misuse(format!(
            "a statement of compiled code is a transaction of its own, and {word} would make one of what other requests \
             send: use one statement (WITH ... AS (INSERT ... RETURNING ...), a function), or pool.transaction() in Python"
        )));
    }
    Ok(())
}

/// Executes a statement and waits for its rows.
pub(super) fn query(
    engine: &Engine,
    sql: &str,
    parameters: Parameters,
    until: Until,
) -> Result<Arc<Table>> {
    check_wait(WHAT)?;
    refuse_transactions(sql)?;
    let (call, signal) = attached(|py| {
        let begin = || -> PyResult<(Py<PgCall>, Arc<Signal>)> {
            let pool = engine.pool(py)?;
            let call = PgPool::native_call(&pool, PyString::new(py, sql), parameters)?;
            let signal = PgCall::start_natively(call.bind(py))?;
            Ok((call, signal))
        };
        begin().map_err(|error| failure_of(py, &error))
    })?;
    if let Err(error) = wait_for(&signal, until, WHAT) {
        attached(|py| {
            PgCall::abandon_anywhere(call.bind(py));
            drop(call);
        });
        return Err(error);
    }
    attached(|py| {
        let taken = PgCall::take_natively(call.bind(py));
        drop(call);
        taken.map_err(|error| failure_of(py, &error))
    })
}
