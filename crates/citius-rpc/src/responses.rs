//! What a client of MessagePack-RPC hears.

use citius_http::Fault;

use crate::msgpack::{Message, Scanner, split};

/// A message from a server.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// `[1, msgid, error, result]`; both are encoded.
    Response {
        /// The call that it answers.
        msgid: u32,
        /// `nil` if there is none.
        error: &'a [u8],
        /// `nil` if there is an error.
        result: &'a [u8],
    },
    /// `[2, method, params]`, or a request, which a client does not answer.
    Notification {
        /// Its name.
        method: &'a [u8],
        /// Encoded.
        params: &'a [u8],
    },
}

/// Finds messages in what comes from a server.
#[derive(Debug, Default)]
pub struct Responses {
    scanner: Scanner,
}

/// Arrays and maps within each other that a client looks into; results are decoded by others.
const DEPTH_MAX: usize = 1024;

impl Responses {
    /// Takes the next message off `input` (advances the slice); `None` if there is no whole one, and then
    /// what is left must be offered again, longer.
    ///
    /// # Errors
    /// What comes is not MessagePack-RPC, or a message is longer than `bytes_max`. Nothing more can be understood.
    pub fn receive<'i>(
        &mut self,
        input: &mut &'i [u8],
        bytes_max: usize,
    ) -> Result<Option<Incoming<'i>>, Fault> {
        let Some(length) = self.scanner.scan(input, bytes_max, DEPTH_MAX)? else {
            return Ok(None);
        };
        let (message, rest) = input.split_at_checked(length).unwrap_or((input, &[]));
        *input = rest;
        match split(message) {
            Some(Message::Response {
                msgid,
                error,
                result,
            }) => Ok(Some(Incoming::Response {
                msgid,
                error,
                result,
            })),
            Some(Message::Call { method, params, .. }) => {
                Ok(Some(Incoming::Notification { method, params }))
            }
            Some(Message::Malformed { .. }) | None => Err(Fault::CallSyntax),
        }
    }
}
