//! What can go wrong: errors that the server reports, and rules of the protocol that it breaks.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorFields;

/// Why a connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A message is not what the protocol allows here.
    Protocol(&'static str),
    /// A message is longer than [`MESSAGE_BYTES_MAX`](crate::MESSAGE_BYTES_MAX).
    MessageTooLong,
    /// The server waits for the data of a COPY that was executed like any other statement.
    Copy,
    /// A statement without a name returns other columns than those it was described with.
    ColumnsChanged,
    /// A value cannot be read. The connection can be used on.
    Value(&'static str),
    /// The server asks for a way of authentication that is not spoken here, or could not prove that it knows the password.
    Authentication(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(what) => {
                write!(f, "the server does not speak PostgreSQL's protocol: {what}")
            }
            Self::MessageTooLong => {
                f.write_str("the server has sent a message that is longer than 256 MiB")
            }
            Self::Copy => f.write_str("COPY FROM STDIN is done by copy_in"),
            Self::ColumnsChanged => f.write_str(
                "the statement's columns have changed since it was described; it has been executed",
            ),
            Self::Value(what) => f.write_str(what),
            Self::Authentication(what) => f.write_str(what),
        }
    }
}

/// The fields of an `ErrorResponse` or `NoticeResponse`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL`, `WARNING`, … in English.
    pub severity: String,
    /// SQLSTATE.
    pub code: String,
    /// The primary message.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The place in the statement, in characters from 1.
    pub position: Option<u32>,
    /// The schema of the object that the error is about.
    pub schema: Option<String>,
    /// Its table.
    pub table: Option<String>,
    /// Its column.
    pub column: Option<String>,
    /// Its constraint.
    pub constraint: Option<String>,
}

impl ServerError {
    pub(crate) fn of(fields: &mut ErrorFields<'_>) -> Result<Self, Fault> {
        let mut error = Self::default();
        let malformed = |_| Fault::Protocol("a malformed error");
        while let Some(field) = fields.next().map_err(malformed)? {
            let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'V' => error.severity = value,
                // Localized; servers before 9.6 have no other.
                b'S' if error.severity.is_empty() => error.severity = value,
                b'C' => error.code = value,
                b'M' => error.message = value,
                b'D' => error.detail = Some(value),
                b'H' => error.hint = Some(value),
                b'P' => error.position = value.parse().ok(),
                b's' => error.schema = Some(value),
                b't' => error.table = Some(value),
                b'c' => error.column = Some(value),
                b'n' => error.constraint = Some(value),
                _ => {}
            }
        }
        if error.code.is_empty() {
            // What is told apart by the code shall find one: an internal error.
            "XX000".clone_into(&mut error.code);
        }
        Ok(error)
    }
}
