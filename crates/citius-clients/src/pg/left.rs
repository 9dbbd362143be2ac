//! What undoes what a text leaves of a session, for sessions of other drivers.

use citius_pg::{Change, Left, changes_of};
use pyo3::prelude::*;

/// What undoes what the statements of a text leave of a session, as [`Left::reset`] says it, and whether they deallocate the prepared
/// statements of the protocol: for sessions of other drivers.
#[pyfunction]
pub(super) fn pg_reset_of(sql: &str) -> (Option<String>, bool) {
    let left = changes_of(sql).map(Left::by).max().unwrap_or_default();
    let are_names_lost = changes_of(sql).any(|change| change == Change::Names);
    (left.reset(), are_names_lost)
}
