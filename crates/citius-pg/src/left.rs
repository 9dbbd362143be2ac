//! What a text leaves of a session for the next user of it, and what undoes that.

use alloc::format;
use alloc::string::String;

use crate::{Change, RESET, RESET_NAMES};

/// What may be left of the block that has a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    #[default]
    /// Nothing.
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
    pub fn by(change: Change) -> Self {
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
    pub fn by_copy(change: Change) -> Self {
        match change {
            Change::Nothing | Change::Stream => Self::Nothing,
            Change::Lasting => Self::Lasting,
            _ => Self::Names,
        }
    }

    /// What is to be executed before another user has the session: `None` for nothing; empty if that does not undo it.
    pub fn reset(self) -> Option<String> {
        let names = match self {
            Self::Nothing => return None,
            Self::Changes => "",
            Self::Names => RESET_NAMES,
            Self::Lasting => return Some(String::new()),
        };
        Some(format!("{names}{RESET}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_undone_by_no_less_and_no_more_than_it_needs() {
        assert_eq!(Left::by(Change::Nothing).reset(), None);
        assert_eq!(Left::by(Change::Session).reset().as_deref(), Some(RESET));
        let names = Left::by(Change::Prepare).reset().unwrap_or_default();
        assert!(names.starts_with(RESET_NAMES) && names.ends_with(RESET));
        assert_eq!(
            Left::by(Change::Lasting).reset().as_deref(),
            Some(""),
            "no command undoes it"
        );
    }

    #[test]
    fn of_several_statements_the_worst_counts() {
        let left = [Change::Session, Change::Lasting, Change::Nothing].map(Left::by);
        assert_eq!(left.into_iter().max(), Some(Left::Lasting));
        assert_eq!(Left::by_copy(Change::Stream), Left::Nothing);
        assert_eq!(Left::by_copy(Change::Session), Left::Names);
    }
}
