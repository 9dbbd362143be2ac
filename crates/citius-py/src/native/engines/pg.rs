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

/// What statements begin with that need a session of their own, or change the one of others.
const OF_SESSIONS: [&str; 4] = ["COPY", "DECLARE", "LISTEN", "UNLISTEN"];

/// Refuses what statements of other requests, which follow on the same session, would be a part of, or meet with.
fn refuse_what_is_of_a_session(sql: &str) -> Result<()> {
    let word = first_word(sql);
    let is_one_of = |words: &[&str]| words.iter().any(|one| one.eq_ignore_ascii_case(word));
    if is_one_of(&OF_TRANSACTIONS) {
        return Err(NetError::misuse(format!(
            "a statement of compiled code is a transaction of its own, and {word} would make one of what other requests \
             send: use one statement (WITH ... AS (INSERT ... RETURNING ...), a function), or pool.transaction() in Python"
        )));
    }
    if is_one_of(&OF_SESSIONS) {
        return Err(NetError::misuse(format!(
            "compiled code has no session of its own, which {word} needs: use pool.copy_in(), pool.copy_out(), pool.cursor() or \
             pool.listen() in Python"
        )));
    }
    Ok(())
}

/// The word that a statement begins with, after spaces, comments and empty statements.
fn first_word(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest =
            rest.trim_start_matches(|letter: char| letter.is_ascii_whitespace() || letter == ';');
        rest = if rest.starts_with("--") {
            rest.trim_start_matches(|letter| !matches!(letter, '\n' | '\r'))
        } else if rest.starts_with("/*") {
            after_comment(rest)
        } else {
            let end = rest.find(|letter: char| !letter.is_ascii_alphabetic());
            return &rest[..end.unwrap_or(rest.len())];
        };
    }
}

/// What follows a comment, which may have others in it.
fn after_comment(sql: &str) -> &str {
    let mut depth = 0_usize;
    let mut rest = sql;
    while let Some(at) = rest.find(['/', '*']) {
        rest = &rest[at..];
        let (is_begin, is_end) = (rest.starts_with("/*"), rest.starts_with("*/"));
        depth = depth + usize::from(is_begin) - usize::from(is_end);
        rest = &rest[if is_begin || is_end { 2 } else { 1 }..];
        if depth == 0 {
            return rest;
        }
    }
    ""
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
