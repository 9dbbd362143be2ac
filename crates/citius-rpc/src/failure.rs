//! Why a call has no result: errors that the server itself sends, as values of both protocols.
//!
//! In MessagePack-RPC an error is a map of `type`, `message` and, where there are any, `data`; in JSON-RPC it
//! has the `code` of the specification too, and the type is among its `data`.

use alloc::vec::Vec;

use citius_http::Status;

use crate::{json, msgpack};

/// A kind of failure; its names are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// What came is no JSON.
    Parse,
    /// What came is no request.
    InvalidRequest,
    /// Nothing is exposed under this name.
    MethodNotFound,
    /// The parameters do not fit the signature.
    InvalidParams,
    /// The procedure raised, or returned what cannot be encoded.
    Internal,
    /// The server has too much to do.
    Overloaded,
    /// The call took longer than it may.
    DeadlineExceeded,
    /// The caller took the call back.
    Cancelled,
    /// The message is longer than the server takes.
    TooLong,
}

impl Failure {
    /// The kind that a status stands for.
    pub fn of(status: Status) -> Self {
        match status.code() {
            400 => Self::InvalidRequest,
            404 => Self::MethodNotFound,
            413 => Self::TooLong,
            422 => Self::InvalidParams,
            499 => Self::Cancelled,
            503 => Self::Overloaded,
            504 => Self::DeadlineExceeded,
            _ => Self::Internal,
        }
    }

    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parse => "ParseError",
            Self::InvalidRequest => "InvalidRequest",
            Self::MethodNotFound => "MethodNotFound",
            Self::InvalidParams => "InvalidParams",
            Self::Internal => "InternalError",
            Self::Overloaded => "Overloaded",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::Cancelled => "Cancelled",
            Self::TooLong => "MessageTooLong",
        }
    }

    /// JSON-RPC's code: the specification's (§5.1), its range for servers, and that of the Language Server
    /// Protocol for what was cancelled.
    pub fn code(self) -> &'static str {
        match self {
            Self::Parse => "-32700",
            Self::InvalidRequest => "-32600",
            Self::MethodNotFound => "-32601",
            Self::InvalidParams => "-32602",
            Self::Internal => "-32603",
            Self::Overloaded => "-32000",
            Self::DeadlineExceeded => "-32001",
            Self::TooLong => "-32002",
            Self::Cancelled => "-32800",
        }
    }

    /// Appends the error as MessagePack.
    pub(crate) fn encode_msgpack(self, message: &str, out: &mut Vec<u8>) {
        out.push(0x82);
        msgpack::encode_text("type", out);
        msgpack::encode_text(self.name(), out);
        msgpack::encode_text("message", out);
        msgpack::encode_text(message, out);
    }

    /// Appends the error as JSON.
    pub(crate) fn encode_json(self, message: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"code\":");
        out.extend_from_slice(self.code().as_bytes());
        out.extend_from_slice(b",\"message\":");
        json::encode_text(message, out);
        out.extend_from_slice(b",\"data\":{\"type\":");
        json::encode_text(self.name(), out);
        out.extend_from_slice(b"}}");
    }
}
