//! Statements of PostgreSQL, and their rows.

use std::sync::Arc;

use citius_base::serial::Signal;
use citius_pg::{Change, Parameters, change_of, first_word};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::engine::{Engine, attached, check_wait, wait_for};
use super::failure::failure_of;
use crate::pg::call::PgCall;
use crate::pg::native::Table;
use crate::pg::pool::PgPool;
use citius_native::net::error::{NetError, Result};
use citius_native::wait::Until;

const WHAT: &str = "a statement of PostgreSQL";

/// Refuses what statements of other requests, which follow on the same session, would be a part of, or meet with.
fn refuse_what_is_of_a_session(sql: &str) -> Result<()> {
    match change_of(sql) {
        Change::Nothing | Change::Code | Change::Path if !is_stream(sql) => Ok(()),
        Change::Transaction | Change::Savepoint => Err(NetError::misuse(
            "a statement of compiled code is a transaction of its own, and this one would make one of what other requests \
             send: use one statement (WITH ... AS (INSERT ... RETURNING ...), a function), or pool.transaction() in Python",
        )),
        _ => Err(NetError::misuse(
            "compiled code has no session of its own, which this statement needs or changes: use pool.copy_in(), \
             pool.copy_out(), pool.cursor(), pool.listen() or pool.transaction() in Python",
        )),
    }
}

/// Whether it needs a session of its own for as long as it is under way.
fn is_stream(sql: &str) -> bool {
    let word = first_word(sql);
    word.eq_ignore_ascii_case("COPY") || word.eq_ignore_ascii_case("DECLARE")
}

/// Executes a statement and waits for its rows.
pub(super) fn query(
    engine: &Engine,
    sql: &str,
    parameters: Parameters,
    until: Until,
) -> Result<Arc<Table>> {
    check_wait(WHAT)?;
    refuse_what_is_of_a_session(sql)?;
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
