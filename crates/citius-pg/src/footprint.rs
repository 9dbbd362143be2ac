//! What prepared statements take of the server's memory: an estimate, and its bound for one session.
//!
//! The server keeps of each the text, the parse tree, the rewritten query and, once it has decided for it, a plan for all values. All
//! of them grow with the text; the query and the plan also with each column of the result, of which `SELECT *` names none, and with
//! each parameter. What it takes is not told to a user without privileges, so that it is estimated.
//! Tests: `tests/pg/test_session_memory.py`.

use crate::Description;

/// Prepared statements of one session; with more the server forgets those that were not used since it last did, or all
/// that are not under way.
pub const STATEMENTS_MAX: usize = 500;

/// Bytes of the server that those of one session may take by the estimate.
pub const SERVER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A longer text gets no name: it is mostly made for one request, such as a list of as many parameters as there are values.
pub const NAMED_TEXT_BYTES_MAX: usize = 8 * 1024;

/// What any statement takes: contexts of its text, query and plan, each of at least a few KiB.
const STATEMENT_BYTES: usize = 16 * 1024;
/// What a byte of its text does: an expression has a node of the tree, the query and the plan for some three bytes. Lists of
/// parameters take less, joins more.
const TEXT_FACTOR: usize = 320;
/// What a column of its result does: 700 to 1 450 bytes with PostgreSQL 15 (`lab/costs/statements.py`).
const COLUMN_BYTES: usize = 1024;
/// Columns that it is taken to have until the server has described it.
const COLUMNS_UNKNOWN: usize = 256;
/// What a column of one without a name takes of this process.
const OWN_COLUMN_BYTES: usize = 256;

/// What a statement takes with a text of so many bytes; `None`: it has no name, and the server forgets it by itself.
pub fn footprint(named_bytes: Option<usize>, description: Option<&Description>) -> usize {
    let columns = description.map_or(COLUMNS_UNKNOWN, |it| it.columns.len());
    match named_bytes {
        Some(bytes) => STATEMENT_BYTES + bytes * TEXT_FACTOR + columns * COLUMN_BYTES,
        None => columns * OWN_COLUMN_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_text_takes_more_and_one_without_a_name_none_of_the_server() {
        assert!(footprint(Some(200), None) > footprint(Some(20), None));
        assert!(footprint(None, None) < footprint(Some(0), None));
    }

    #[test]
    fn the_longest_text_that_has_a_name_leaves_room_for_others() {
        assert!(footprint(Some(NAMED_TEXT_BYTES_MAX), None) * 8 < SERVER_BYTES_MAX);
    }
}
