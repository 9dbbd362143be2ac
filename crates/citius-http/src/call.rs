//! A call of a procedure: its name, and parameters that are not decoded yet.

use alloc::borrow::Cow;

/// How parameters and results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// MessagePack, called by MessagePack-RPC.
    MessagePack,
    /// JSON, called by JSON-RPC 2.0.
    Json,
}

/// A call as it came. It is answered by [`Action::Respond`](crate::Action::Respond): with status 200 the payload
/// is the encoded result; with another the encoded error, or, where the response has a content type, text that
/// becomes the message of an error of the kind that the status stands for.
#[derive(Clone, Debug)]
pub struct ProcedureCall<'a> {
    /// The name of the procedure.
    pub method: Cow<'a, [u8]>,
    /// An array, or a map or object of named parameters, in `form`.
    pub params: &'a [u8],
    /// How `params` is written and the result shall be.
    pub form: Form,
    /// The client waits for a response.
    pub wants_response: bool,
    /// The id that the client has given it, if that is a number; for the log.
    pub id: Option<u32>,
}
