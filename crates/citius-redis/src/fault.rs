//! What ends a connection: rules of the protocol that the server breaks, limits that it exceeds, a login that it refuses.

use alloc::string::String;
use core::fmt;

use crate::reader::{DEPTH_MAX, LINE_BYTES_MAX};

/// Why a connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A byte is not what the protocol allows here.
    Protocol(&'static str),
    /// A reply has come that no command waits for.
    Unasked,
    /// A reply takes more bytes than it may.
    ReplyTooLong(usize),
    /// A line has more than [`LINE_BYTES_MAX`] bytes.
    LineTooLong,
    /// Arrays and maps are nested deeper than [`DEPTH_MAX`].
    TooDeep,
    /// The server refuses the login; its error as it came.
    Refused(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(what) => write!(f, "the server does not speak RESP3: {what}"),
            Self::Unasked => f.write_str("the server has sent a reply that no command waits for"),
            Self::ReplyTooLong(limit) => write!(
                f,
                "the server has sent a reply that takes more than {limit} bytes"
            ),
            Self::LineTooLong => write!(
                f,
                "the server has sent a line of more than {LINE_BYTES_MAX} bytes"
            ),
            Self::TooDeep => write!(
                f,
                "the server has sent a reply that is nested more than {DEPTH_MAX} deep"
            ),
            Self::Refused(error) => f.write_str(error),
        }
    }
}
