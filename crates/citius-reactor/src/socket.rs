//! The state of a connection's WebSockets, and what all WebSockets of a reactor share.
//!
//! The functions that use it are in `messages.rs`.

use citius_http::{Limits, Millis};
use citius_ws::{Context, Tools};

/// One WebSocket of a connection.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) stream: u32,
    pub(crate) codec: citius_ws::Connection,
    /// Bytes that came while the service took no messages.
    pub(crate) held: Vec<u8>,
    /// The service takes none.
    pub(crate) is_paused: bool,
    /// Bytes that are taken, and others not asked for in their place yet.
    pub(crate) owed: u64,
    /// The tunnel has ended on the peer's side.
    pub(crate) has_ended: bool,
}

/// What the sockets of a reactor share.
#[derive(Debug, Default)]
pub(crate) struct Codecs {
    pub(crate) tools: Tools,
    /// Frames on their way to a write queue.
    pub(crate) frames: Vec<u8>,
    /// The reactor drains: a socket that is opened now is closed at once.
    pub(crate) is_draining: bool,
}

impl Codecs {
    pub(crate) fn context<'a>(
        tools: &'a mut Tools,
        now: Millis,
        limits: &'a Limits,
    ) -> Context<'a> {
        Context { now, limits, tools }
    }
}

/// Whether one of these is the socket of `stream`.
#[inline]
pub(crate) fn is_socket(sockets: &[Socket], stream: u32) -> bool {
    sockets.iter().any(|socket| socket.stream == stream)
}

/// The socket of `stream` is no more; the service is not told.
pub(crate) fn forget(sockets: &mut Vec<Socket>, stream: u32) {
    sockets.retain(|socket| socket.stream != stream);
}

/// When the first of them wants something to happen.
#[inline]
pub(crate) fn deadline(sockets: &[Socket], limits: &Limits) -> Option<Millis> {
    let deadlines = sockets
        .iter()
        .filter_map(|socket| socket.codec.deadline(limits));
    deadlines.min()
}

#[inline]
pub(crate) fn find(sockets: &mut [Socket], stream: u32) -> Option<&mut Socket> {
    sockets.iter_mut().find(|socket| socket.stream == stream)
}
