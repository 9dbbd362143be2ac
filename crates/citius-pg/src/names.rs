//! Which prepared statements of a session its own texts have deallocated.
//!
//! In: what a text changes, as it is sent, and what the server says of names that it does not know. Out: whether a statement is gone,
//! and whether the session itself may be why; if it is not, something between here and the server is (`PgPool::lose_names`).
//! Tests: `tests/pg/test_names.py`.

use crate::Change;

/// Texts are numbered that may deallocate what was prepared before them.
#[derive(Default)]
pub struct Names {
    sent: u32,
    /// What was prepared before this one is gone.
    lost: u32,
}

impl Names {
    /// The number for what is prepared now.
    pub fn now(&self) -> u32 {
        self.sent
    }

    /// A text is sent: `DEALLOCATE ALL`, or code of which it is not known whether it executes that.
    pub fn note(&mut self, change: Change) {
        if matches!(change, Change::Names | Change::Code | Change::Prepare) {
            self.sent = self.sent.wrapping_add(1);
            if change == Change::Names {
                self.lost = self.sent;
            }
        }
    }

    /// Whether what was prepared by this number is gone.
    #[inline]
    pub fn are_lost(&self, prepared: u32) -> bool {
        prepared < self.lost
    }

    /// The server does not know the name of what was prepared by this number: whether a text of the session may be why. All that is
    /// older is taken to be gone, too.
    pub fn lose(&mut self, prepared: u32) -> bool {
        let is_own = prepared < self.sent;
        if is_own {
            self.lost = self.sent;
        }
        is_own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deallocate_all_takes_the_names_of_before() {
        let mut names = Names::default();
        let before = names.now();
        names.note(Change::Names);
        assert!(names.are_lost(before));
        assert!(!names.are_lost(names.now()), "what is prepared now stays");
    }

    #[test]
    fn a_name_that_the_server_does_not_know_may_be_the_sessions_own_doing() {
        let mut names = Names::default();
        let before = names.now();
        names.note(Change::Code);
        assert!(
            !names.are_lost(before),
            "the code may have left names alone"
        );
        assert!(names.lose(before));
        assert!(names.are_lost(before));
        assert!(!names.lose(names.now()), "no text has come since");
    }

    #[test]
    fn other_statements_lose_no_names() {
        let mut names = Names::default();
        let before = names.now();
        names.note(Change::Nothing);
        names.note(Change::SessionPath);
        assert_eq!(names.now(), before);
    }
}
