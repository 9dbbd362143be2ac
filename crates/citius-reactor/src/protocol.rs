//! What the reactor asks of a protocol of the listening side. [`wire`](crate::wire) has the protocols.

use citius_h1::{Context, Request};
use citius_http::{
    Action, Closing, Event, Fault, Limits, Millis, Output, PlainResponse, RefusedHead,
};

use crate::refusal::{HTTP_CLEAR_TEXT, HTTP_REFUSAL};

/// What tells a client that nothing more comes in a tunnel, while it may still send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputEnd {
    /// Nothing: only the end of both directions does.
    None,
    /// The end of the connection's sending side.
    Connection,
    /// A frame, which was written, or is when windows allow.
    Frame,
}

/// What a protocol of the listening side is to the reactor. A protocol without a use for a method leaves it as it is
/// here.
pub(crate) trait Protocol {
    /// The name that ALPN knows it by, if nothing else may be spoken on a listener of it.
    const ALPN_ALONE: Option<&'static [u8]> = None;
    /// What a client gets that speaks clear text where TLS is expected.
    const CLEAR_TEXT: &'static [u8] = HTTP_CLEAR_TEXT;
    /// What is sent to a client that is turned away; `None`: the connection is closed without a byte.
    const REFUSAL: Option<&'static [u8]> = Some(HTTP_REFUSAL);
    /// A first request may turn the connection into one of HTTP/2 (RFC 7540 §3.2), or its first bytes may.
    const MAY_BECOME_H2: bool = false;

    /// Takes as much of `input` as it can and returns the next event, unless `receive_cached` has one.
    fn receive<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>>;
    /// The peer has closed its sending side.
    fn receive_eof(&mut self, cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>>;
    /// Time has passed.
    fn expire(&mut self, cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>>;
    /// When `expire` wants to be called.
    fn deadline(&self, limits: &Limits) -> Option<Millis>;
    /// Whether more input could be used.
    fn wants_input(&self, limits: &Limits) -> bool;
    /// Does what the application wants to happen to `stream`.
    fn send(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        action: Action<'_>,
        out: &mut Output,
    ) -> Result<(), Fault>;
    /// Stops taking new requests.
    fn drain(&mut self, cx: &mut Context<'_>, out: &mut Output);
    /// Set once nothing more will be read or begun.
    fn closing(&self) -> Option<Closing>;
    /// The rule the peer broke, if that is why reading ended.
    fn fault(&self) -> Option<Fault>;
    /// Requests taken and not fully answered.
    fn streams_open(&self) -> usize;
    /// Whether `stream` may still be answered.
    fn is_open(&self, stream: u32) -> bool;

    /// The next request, if it says the same as one before it.
    fn receive_cached(&mut self, _cx: &mut Context<'_>, _input: &mut &[u8]) -> Option<Request> {
        None
    }
    /// Whether `receive` has nothing to do before more input comes, if there is none left.
    fn awaits_head(&self) -> bool {
        false
    }
    /// Whether `receive` has something to tell without another byte of input.
    fn has_events(&self) -> bool {
        false
    }
    /// Gives a plain response, if that takes nothing but to write it; `false`: it has to be said at length.
    fn respond(
        &mut self,
        _cx: &mut Context<'_>,
        _stream: u32,
        _plain: PlainResponse<'_>,
        _out: &mut Output,
    ) -> bool {
        false
    }
    /// Takes nothing that follows `stream` for another request until it is answered; `false`: something has come already, or
    /// no request becomes a tunnel.
    fn hold(&mut self, _stream: u32) -> bool {
        false
    }
    /// The application wants up to `bytes` more of the body of `stream`.
    fn want(&mut self, _cx: &mut Context<'_>, _stream: u32, _bytes: u64, _out: &mut Output) {}
    /// The body of `stream` may have at most `bytes_max` bytes; `true`: it is announced longer, and is refused.
    fn limit_body(
        &mut self,
        _cx: &mut Context<'_>,
        _stream: u32,
        _bytes_max: u64,
        _out: &mut Output,
    ) -> bool {
        false
    }
    /// Has the call `stream` given up at `due_at`.
    fn set_due(&mut self, _stream: u32, _due_at: Millis) {}
    /// Whether responses are still to be waited for although the peer has closed its side.
    fn owes_responses(&self) -> bool {
        false
    }
    /// Whether the whole connection is a tunnel: it ends on each side by itself.
    fn is_tunnel(&self) -> bool {
        false
    }
    /// Nothing more goes to the client in the tunnel of `stream`; what the client sends still comes. What tells the client so,
    /// when all that is in the output has left.
    fn end_output(&mut self, _stream: u32, _out: &mut Output) -> OutputEnd {
        OutputEnd::None
    }
    /// Bytes of the response of `stream` that are not in the connection's write queue yet. `None`: all of them are, or were.
    fn held_back_bytes(&self, _stream: u32) -> Option<u64> {
        None
    }
    /// Bytes of a streamed response that may be sent now without piling up, with `queued` bytes in the output.
    fn write_capacity(&self, _stream: u32, _limits: &Limits, _queued: usize) -> usize {
        0
    }
    /// Whether the response on `stream` may go on now that the output is empty.
    fn may_write(&self, _stream: u32, _limits: &Limits) -> bool {
        false
    }
    /// Whether something waits that only the output keeps from leaving.
    fn wants_output(&self) -> bool {
        false
    }
    /// Writes what waits, now that the output is empty.
    fn pump(&mut self, _cx: &mut Context<'_>, _out: &mut Output) {}
    /// Bytes of the content of the server's own response to the fault of the stream that was broken last.
    fn fault_response_bytes(&self) -> u64 {
        0
    }
    /// The request whose header section was the last thing that was read of the connection, if it was refused.
    /// `unread` is what the connection has left over.
    fn refused_head(&self, _unread: &[u8]) -> Option<RefusedHead> {
        None
    }
    /// Whether `take_refused` has something to give.
    fn has_refused(&self) -> bool {
        false
    }
    /// Requests whose header sections were refused on a connection that goes on.
    fn take_refused(&mut self) -> Vec<RefusedHead> {
        Vec::new()
    }
}
