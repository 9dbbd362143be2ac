//! What a client of MessagePack-RPC says, for a transport that carries each message apart.

use citius_http::Fault;

use crate::connection::CANCEL;
use crate::msgpack::{Message, Scanner, only_msgid, split};

/// A message of a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// A call, by its number.
    Call(u32),
    /// A notification.
    Notification,
    /// `$/cancelRequest` for the call of this number.
    Cancellation(u32),
}

/// Takes the next message off `input` (advances the slice), which has whole messages.
///
/// # Errors
/// A message is not whole, or none of a client's.
pub fn take_request<'i>(input: &mut &'i [u8]) -> Result<(Request, &'i [u8]), Fault> {
    let length = Scanner::default().scan(input, usize::MAX, usize::MAX)?;
    let whole = length.and_then(|length| input.split_at_checked(length));
    let (message, rest) = whole.ok_or(Fault::CallSyntax)?;
    *input = rest;
    let request = match split(message) {
        Some(
            Message::Call {
                msgid: Some(msgid), ..
            }
            | Message::Malformed { msgid },
        ) => Request::Call(msgid),
        Some(Message::Call { method, params, .. }) => {
            let cancelled = (method == CANCEL).then(|| only_msgid(params));
            cancelled
                .flatten()
                .map_or(Request::Notification, Request::Cancellation)
        }
        Some(Message::Response { .. }) | None => return Err(Fault::CallSyntax),
    };
    Ok((request, message))
}
