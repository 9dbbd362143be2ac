//! Rows for compiled code: bytes that are read without Python.
//!
//! All columns come in the text format of their types, `bytea` in binary format: so every value can be read as text, as libpq has
//! it, whatever its type is.

use std::sync::Arc;

use citius_pg::{Fault, Row};
use pyo3::prelude::*;

use super::rows::Statement;

/// The rows of one statement.
#[derive(Debug, Default)]
pub struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: usize,
    /// Rows that the statement has changed or returned.
    pub(crate) count: u64,
    bytes: Vec<u8>,
    /// Where each value ends, row by row, and whether it is NULL.
    ends: Vec<(usize, bool)>,
}

impl Table {
    /// Takes a row.
    ///
    /// # Errors
    /// It has more or fewer values than columns, or is cut off.
    pub(crate) fn push(&mut self, statement: &Statement, row: Row<'_>) -> Result<(), Fault> {
        let columns = &statement.description().columns;
        if row.len() != columns.len() {
            return Err(Fault::Protocol(
                "a row with more or fewer values than columns",
            ));
        }
        for value in row.values() {
            let value = value?;
            self.bytes.extend_from_slice(value.unwrap_or_default());
            self.ends.push((self.bytes.len(), value.is_none()));
        }
        self.rows += 1;
        Ok(())
    }

    /// What is known at the end.
    pub(crate) fn finish(&mut self, statement: Option<&Statement>, count: u64) {
        self.count = count;
        if let Some(statement) = statement {
            let columns = statement.description().columns.iter();
            self.columns = columns.map(|column| column.name.clone()).collect();
        }
    }

    /// A value; `None`: there is no such row or column, or it is NULL.
    pub(crate) fn value(&self, row: usize, column: usize) -> Option<&[u8]> {
        if row >= self.rows || column >= self.columns.len() {
            return None;
        }
        let at = row * self.columns.len() + column;
        let (end, is_null) = *self.ends.get(at)?;
        let start = match at.checked_sub(1) {
            None => 0,
            Some(before) => self.ends.get(before)?.0,
        };
        if is_null {
            return None;
        }
        self.bytes.get(start..end)
    }
}

/// A table as the result of a call.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct PgTable(pub(crate) Arc<Table>);
