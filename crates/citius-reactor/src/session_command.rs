//! What a service wants of a WebTransport session; `sessions.rs` does it.

use bytes::Bytes;
use citius_http::Fields;

/// What may be said to a session.
#[derive(Debug)]
pub enum SessionCommand {
    /// Grant it to the client, with these fields in the response.
    Accept(Fields),
    /// Open a stream: the service hears of it by this number.
    Open {
        /// The number.
        number: u32,
        /// Whether both sides send on it.
        is_bidirectional: bool,
    },
    /// Send bytes on a stream.
    Send {
        /// The stream.
        stream: u64,
        /// The bytes.
        bytes: Bytes,
        /// Whether the stream ends behind them.
        fin: bool,
    },
    /// Tell when all bytes of a stream have been taken.
    AwaitRoom(u64),
    /// Bring so many more bytes of a stream.
    Want(u64, u64),
    /// Reset the server's side of a stream with this code.
    Reset(u64, u32),
    /// Read no more of a stream, and tell the client so with this code.
    Stop(u64, u32),
    /// Send a datagram, or lose it.
    Datagram(Bytes),
    /// Send a packet that shows that the connection is in use.
    Ping,
    /// Close it, with a code and a reason.
    Close(u32, Bytes),
    /// A procedure is called on a stream: count it, and log it when it ends.
    BeginCall {
        /// The stream.
        stream: u64,
        /// The name of the procedure, as the client has it.
        name: Bytes,
        /// What it is counted under; see [`Observer::class_of`](citius_observe::Observer::class_of).
        class: u16,
    },
    /// A call is over.
    EndCall {
        /// The stream.
        stream: u64,
        /// What its response would have as status, were it one of HTTP.
        status: u16,
        /// Bytes of the response.
        bytes: u64,
        /// The client takes no response any more.
        is_cancelled: bool,
    },
}
