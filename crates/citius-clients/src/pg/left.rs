//! What a text leaves of a session for the next user of it, and what undoes that.

use citius_pg::{Change, RESET, RESET_NAMES, changes_of};
use pyo3::prelude::*;

/// What may be left of the block that has a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Left {
    #[default]
    Nothing,
    /// Settings, locks, temporary tables or channels.
    Changes,
    /// These, and names that `PREPARE` has given.
    Names,
    /// What no command undoes.
    Lasting,
}

impl Left {
    /// What a statement leaves behind that has the session to itself.
    pub(super) fn by(change: Change) -> Self {
        match change {
            Change::Lasting => Self::Lasting,
            Change::Prepare | Change::Names | Change::Code => Self::Names,
            Change::Session | Change::SessionPath => Self::Changes,
            Change::Nothing
            | Change::Transaction
            | Change::Savepoint
            | Change::Path
            | Change::Stream => Self::Nothing,
        }
    }

    /// What a COPY leaves behind.
    pub(super) fn by_copy(change: Change) -> Self {
        match change {
            Change::Nothing | Change::Stream => Self::Nothing,
            Change::Lasting => Self::Lasting,
            _ => Self::Names,
        }
    }

    /// What is to be executed before another user has the session: `None` for nothing; empty if that does not undo it.
    pub(super) fn reset(self) -> Option<String> {
        let names = match self {
            Self::Nothing => return None,
            Self::Changes => "",
            Self::Names => RESET_NAMES,
            Self::Lasting => return Some(String::new()),
        };
        Some(format!("{names}{RESET}"))
    }
}

/// What undoes what the statements of a text leave of a session, as [`Left::reset`] says it, and whether they deallocate the prepared
/// statements of the protocol: for sessions of other drivers.
#[pyfunction]
pub(super) fn pg_reset_of(sql: &str) -> (Option<String>, bool) {
    let left = changes_of(sql).map(Left::by).max().unwrap_or_default();
    let are_names_lost = changes_of(sql).any(|change| change == Change::Names);
    (left.reset(), are_names_lost)
}
