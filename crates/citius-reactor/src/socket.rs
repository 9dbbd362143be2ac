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
    pub(crate) behind: Behind,
}

/// How long messages of rooms have waited for one of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Behind {
    /// Since when more waits than may for long; `None`: it does not.
    since: Option<Millis>,
    /// How much did when the connection was last offered it.
    offered_bytes: usize,
    /// How much of it is of a history, which bounds that: by the limits a slow client could never catch up.
    replayed_bytes: usize,
}

impl Behind {
    /// Whether the connection is to be offered what waits for it: trying to write for each message of a burst would cost a system call
    /// each.
    pub(crate) fn is_offer_due(&mut self, waiting: usize, limits: &Limits) -> bool {
        let most = limits.write_queue_bytes_max as usize;
        if waiting < most {
            *self = Self::default();
        }
        waiting >= self.offered_bytes.saturating_add(most)
    }

    /// Takes note of a message of a history.
    pub(crate) fn note_replayed(&mut self, bytes: usize) {
        self.replayed_bytes = self.replayed_bytes.saturating_add(bytes);
    }

    /// Takes note of what waits though the connection was offered it.
    pub(crate) fn note_offer(&mut self, waiting: usize, now: Millis, limits: &Limits) {
        let most = limits.write_queue_bytes_max as usize;
        if waiting < most {
            *self = Self::default();
            return;
        }
        self.offered_bytes = waiting;
        self.replayed_bytes = self.replayed_bytes.min(waiting);
        if waiting - self.replayed_bytes < most {
            self.since = None;
        } else {
            self.since.get_or_insert(now);
        }
    }

    /// Whether a receiver for which so much waits is too slow.
    pub(crate) fn is_too_slow(&self, waiting: usize, now: Millis, limits: &Limits) -> bool {
        let waiting = waiting.saturating_sub(self.replayed_bytes);
        self.since.is_some_and(|since| {
            waiting >= limits.room_member_bytes_max as usize
                || now >= since + limits.room_member_behind_ms
        })
    }
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
