//! One request and its response, and the table of those that are open (RFC 9113 §5.1).
//!
//! A [`Stream`] holds the [`State`] of a stream, its windows, and what is buffered in either direction. [`Streams`] holds
//! those that are neither idle nor closed, in the order of their numbers, and the numbers of the last streams that were
//! reset here: the client may have sent frames for them before it received the `RST_STREAM`, which is no error.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use citius_http::{Fault, Fields, Limits, Millis, Payload, Status};

use citius_http::multiplexed::Priority;
use citius_http::multiplexed::State;

/// The state of `expect: 100-continue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expecting {
    Nothing,
    /// The client waits for 100, and the application has not asked for the body.
    Unasked,
}

/// The end of a response that leaves once the client has read the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastEnd {
    /// It is not the last one of a connection, so far.
    NotHeld,
    /// The client was asked whether it has read the content.
    Asked,
    /// It has.
    ContentRead,
}

/// Content that was received before the application asked for it.
#[derive(Debug, Default)]
pub(crate) struct Buffered {
    pub(crate) bytes: Vec<u8>,
    /// The trailer section, once the body is complete.
    pub(crate) end: Option<Fields>,
}

/// What of a response waits for its window, or for its turn.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) pieces: VecDeque<Payload<'static>>,
    pub(crate) n_bytes: u64,
    /// What comes behind the pieces; `None` as long as more may follow.
    pub(crate) end: Option<Fields>,
    /// Our side of a tunnel ends behind them.
    pub(crate) ends_output: bool,
}

/// A stream that is over, or whose body is, and what its fault got in response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    pub(crate) stream: u32,
    pub(crate) fault: Fault,
    /// Its response goes on.
    pub(crate) is_answered: bool,
    /// Bytes of content.
    pub(crate) response_bytes: u64,
}

/// One open stream.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one stream"
)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) state: State,
    pub(crate) expecting: Expecting,
    /// Neither response nor trailers may have a body: the method is HEAD.
    pub(crate) head_only: bool,
    /// Its request asks for another protocol (RFC 8441), which only [`Action::Switch`](citius_http::Action::Switch) may
    /// grant.
    pub(crate) asks_protocol: bool,
    pub(crate) priority: Priority,
    /// Turn in which it last sent, for those that share.
    pub(crate) served: u32,
    /// Body bytes the application still wants; behind a complete response, and of a body that is refused, those that may
    /// still be dropped.
    pub(crate) credit: u64,
    /// Body bytes that came, and those that must.
    pub(crate) received: u64,
    pub(crate) expected: Option<u64>,
    /// The client has ended the body before its length, behind the beginning of a response.
    pub(crate) stops_short: bool,
    /// Body bytes that may come.
    pub(crate) body_bytes_max: u64,
    /// More came, behind the beginning of a response: the rest is dropped.
    pub(crate) is_body_refused: bool,
    /// It carries another protocol (RFC 8441), which has its own idea of how long, and how slow, is too much.
    pub(crate) is_tunnel: bool,
    /// Of a response of which only the end is left: what is known of its client.
    pub(crate) last_end: LastEnd,
    /// What the client may still send.
    pub(crate) receive_window: i64,
    /// What of it was taken, and is not given back yet.
    pub(crate) consumed: u32,
    /// When the span began over which the body's rate is judged, and what came in it.
    pub(crate) body_at: Millis,
    pub(crate) body_bytes: u64,
    /// What we may still send.
    pub(crate) send_window: i64,
    /// When the span began over which a closed window is judged, and what went through it.
    pub(crate) waiting_at: Millis,
    pub(crate) moved_bytes: u64,
    /// Bytes sent since its window made a frame small.
    pub(crate) sent_since_small: u64,
    pub(crate) buffered: Option<Box<Buffered>>,
    pub(crate) waiting: Option<Box<Waiting>>,
}

impl Stream {
    /// Whether the application waits for the client before it responds. Beside a response that streams, the client may be
    /// quiet: both directions are in use. The rest of a body that stops short never comes.
    pub(crate) fn awaits_body(&self) -> bool {
        self.credit > 0
            && (self.state.awaits_headers() || self.stops_short)
            && !self.state.is_remote_closed()
            && !self.is_tunnel
            && self.expecting == Expecting::Nothing
    }

    /// Whether too little of the body has come in a span that is over now; the next one begins.
    pub(crate) fn is_body_slow(&mut self, now: Millis, limits: &Limits) -> bool {
        now.saturating_sub(self.body_at) >= limits.body_read_ms && self.was_slow(now, limits)
    }

    /// The same of what is dropped, of which something has to come.
    pub(crate) fn is_rest_slow(&mut self, now: Millis, limits: &Limits) -> bool {
        let is_silent = self.body_bytes == 0;
        self.was_slow(now, limits) || is_silent
    }

    fn was_slow(&mut self, now: Millis, limits: &Limits) -> bool {
        let span_ms = now.saturating_sub(self.body_at);
        let least = limits.body_rate_min_bytes_per_s.saturating_mul(span_ms);
        let is_slow = self.body_bytes.saturating_mul(1000) < least;
        self.body_at = now;
        self.body_bytes = 0;
        is_slow
    }

    /// Bytes of the body that are to come, `most` if that is less or not known.
    pub(crate) fn rest(&self, most: u64) -> u64 {
        self.expected.map_or(most, |length| {
            length.saturating_sub(self.received).min(most)
        })
    }

    /// Whether the client has kept the window shut for a span that is over now; the next one begins.
    pub(crate) fn is_window_stalled(&mut self, now: Millis, limits: &Limits) -> bool {
        if now.saturating_sub(self.waiting_at) < limits.write_stall_ms {
            return false;
        }
        let is_stalled =
            self.send_window <= 0 && self.moved_bytes < u64::from(limits.h2_stall_bytes_min);
        self.waiting_at = now;
        self.moved_bytes = 0;
        is_stalled
    }

    /// Whether nothing of the response has to be sent but its end.
    pub(crate) fn waits_with_end(&self) -> bool {
        let waiting = self.waiting.as_ref();
        waiting.is_some_and(|waiting| waiting.n_bytes == 0 && waiting.end.is_some())
    }

    /// Whether the application has received the end of the request.
    pub(crate) fn is_request_delivered(&self) -> bool {
        self.state.is_remote_closed() && self.buffered.is_none()
    }

    /// Whether no content follows the head of a response with `status`.
    #[inline]
    pub(crate) fn without_content(&self, status: Status) -> bool {
        self.head_only || status.refuses_content()
    }

    /// Whether the application may still send something.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        !self.state.is_response_complete()
    }
}

/// The open streams in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: Vec<Stream>,
    /// Numbers of the last streams we have reset.
    reset: VecDeque<u32>,
}

impl Streams {
    /// Numbers of reset streams that are remembered; about those whose frames may be under way.
    const RESET_MAX: usize = 256;

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Streams the application may still say something about.
    pub(crate) fn n_open(&self) -> usize {
        self.open.iter().filter(|stream| stream.is_open()).count()
    }

    /// Adds a stream, of which the number is higher than all before.
    #[inline]
    pub(crate) fn push(&mut self, stream: Stream) {
        self.open.push(stream);
    }

    /// Where the stream `id` is. Mostly it is the newest.
    #[inline]
    pub(crate) fn index_of(&self, id: u32) -> Option<usize> {
        match self.open.last() {
            Some(last) if last.id == id => self.open.len().checked_sub(1),
            _ => self.open.binary_search_by_key(&id, |stream| stream.id).ok(),
        }
    }

    #[inline]
    pub(crate) fn at(&self, index: usize) -> Option<&Stream> {
        self.open.get(index)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: usize) -> Option<&mut Stream> {
        self.open.get_mut(index)
    }

    pub(crate) fn find(&self, id: u32) -> Option<&Stream> {
        self.at(self.index_of(id)?)
    }

    pub(crate) fn find_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let index = self.index_of(id)?;
        self.at_mut(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.open.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    /// Removes the stream at `index`.
    #[inline]
    pub(crate) fn remove(&mut self, index: usize) -> Option<Stream> {
        if index.saturating_add(1) == self.open.len() {
            return self.open.pop();
        }
        (index < self.open.len()).then(|| self.open.remove(index))
    }

    /// Drops the stream at `index` where it stands: moving it out first costs more than the rest.
    #[inline]
    pub(crate) fn discard(&mut self, index: usize) {
        if index.saturating_add(1) == self.open.len() {
            self.open.truncate(index);
        } else {
            self.remove(index);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    /// Takes note that we have reset `id`.
    pub(crate) fn note_reset(&mut self, id: u32) {
        if self.reset.len() >= Self::RESET_MAX {
            self.reset.pop_front();
        }
        self.reset.push_back(id);
    }

    /// Whether we have reset `id` lately.
    pub(crate) fn was_reset(&self, id: u32) -> bool {
        self.reset.contains(&id)
    }
}
