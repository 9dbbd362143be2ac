//! Data going out (RFC 9113 §5.2, §6.1): cut to frames and windows, most urgent first.
//!
//! What the windows and the output have room for is written at once. The rest waits at its stream, by
//! reference where it was given so, and leaves in [`Connection::pump`]. Little is put into the output ahead of the
//! socket, because what is there can't be overtaken any more.

use bytes::Bytes;
use citius_http::{Fields, Limits, Output, Payload};

use crate::connection::{Connection, Context, Shutdown};
use crate::frame::{self, FRAME_BYTES_MAX};
use crate::stream::{LastEnd, Stream, Waiting};

impl Connection {
    /// Writes what waits, as far as windows and the output have room; to be called when the output was written.
    ///
    /// Streams that asked for room may have it now: see [`room`](Self::room).
    #[inline]
    pub fn pump(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        if self.n_waiting > 0 {
            self.pump_waiting(cx, out);
        }
    }

    /// Whether something waits that only the output keeps from leaving.
    pub fn wants_output(&self) -> bool {
        self.n_waiting > 0 && self.next_to_send().is_some()
    }

    /// Sends `payload` on the stream at `index`, and with `end` the end of it.
    #[inline]
    pub(crate) fn push(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        payload: Payload<'_>,
        end: Option<&Fields>,
        out: &mut Output,
    ) {
        let is_held = end.is_some()
            && self
                .streams
                .at(index)
                .is_some_and(|stream| self.holds_end(stream));
        let Some(stream) = self.streams.at_mut(index) else {
            return;
        };
        let length = usize::try_from(payload.len()).unwrap_or(usize::MAX);
        let cost = i64::try_from(length).unwrap_or(i64::MAX);
        // An empty frame needs no window, and waits only for earlier frames of its own stream.
        let has_window = cost <= stream.send_window.min(self.send_window) || length == 0;
        let is_free = (self.n_waiting == 0 || length == 0 && stream.waiting.is_none()) && !is_held;
        if !(has_window && is_free && length <= FRAME_BYTES_MAX && has_space(out, cx.limits)) {
            return self.push_later(cx, index, payload, end, out);
        }
        stream.send_window = stream.send_window.saturating_sub(cost);
        self.send_window = self.send_window.saturating_sub(cost);
        self.budget.sent(length);
        let id = stream.id;
        let has_trailers = end.is_some_and(|trailers| !trailers.is_empty());
        if end.is_some() {
            let ended = stream.state.send_end();
            debug_assert_eq!(ended, Ok(()), "the response is complete");
        }
        if length > 0 || !has_trailers {
            let ends = end.is_some() && !has_trailers;
            frame::data(out.tail(), id, length, ends);
            out.push(payload);
        }
        if let (Some(trailers), true) = (end, has_trailers) {
            self.write_trailers(id, trailers, out);
        }
    }

    /// Puts `payload` behind what waits.
    #[cold]
    fn push_later(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        payload: Payload<'_>,
        end: Option<&Fields>,
        out: &mut Output,
    ) {
        let Some(stream) = self.streams.at_mut(index) else {
            return;
        };
        if stream.waiting.is_none() {
            stream.waiting = Some(alloc::boxed::Box::default());
            stream.waiting_at = cx.now;
            stream.moved_bytes = 0;
            if self.n_waiting == 0 {
                self.waiting_at = cx.now;
                self.moved_bytes = 0;
            }
            self.n_waiting = self.n_waiting.saturating_add(1);
            if cx.limits.write_stall_ms > 0 {
                let at = cx.now.saturating_add(cx.limits.write_stall_ms);
                self.check_stalled_by(at);
            }
        }
        if let Some(stream) = self.streams.at_mut(index)
            && let Some(waiting) = &mut stream.waiting
        {
            if !payload.is_empty() {
                waiting.n_bytes = waiting.n_bytes.saturating_add(payload.len());
                waiting.pieces.push_back(payload.into_owned());
            }
            waiting.end = end.cloned();
        }
        self.pump_waiting(cx, out);
    }

    /// Whether the end of the response of `stream` may not leave yet, because the connection drains.
    #[inline]
    pub(crate) fn holds_end(&self, stream: &Stream) -> bool {
        self.holds_ends || self.shutdown != Shutdown::No && self.holds_last_end(stream)
    }

    /// Asks once whether the client has read the content of the only stream, if nothing but its end has to be sent. A stream
    /// becomes the only one by what happens to others.
    fn ask_for_held_end(&mut self, cx: &Context<'_>, out: &mut Output) {
        if self.shutdown != Shutdown::No
            && let Some(stream) = self.streams.at(0)
            && stream.last_end == LastEnd::NotHeld
            && stream.waits_with_end()
            && self.holds_last_end(stream)
        {
            self.ask_for_end(cx, stream.id, out);
        }
    }

    #[cold]
    fn pump_waiting(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        while has_space(out, cx.limits) {
            let Some(index) = self.next_to_send() else {
                return self.ask_for_held_end(cx, out);
            };
            self.send_frame(cx, index, out);
        }
    }

    /// The stream whose turn it is: the most urgent; among equals those that don't share, in their order, and then
    /// those that share, in turns (RFC 9218 §10).
    fn next_to_send(&self) -> Option<usize> {
        let rank = self
            .streams
            .iter()
            .enumerate()
            .filter_map(|(index, stream)| {
                let waiting = stream.waiting.as_ref()?;
                if self.holds_ends && waiting.end.is_some() {
                    return None;
                }
                let may_send = if waiting.n_bytes == 0 {
                    waiting.end.is_some() && !self.holds_end(stream)
                } else {
                    self.is_worth_a_frame(stream, waiting.n_bytes)
                };
                let shares = stream.priority.incremental;
                let turn = if shares { stream.served } else { 0 };
                may_send.then_some((stream.priority.urgency, shares, turn, index))
            });
        rank.min().map(|(.., index)| index)
    }

    /// Whether the windows let enough of `n_bytes` through.
    ///
    /// A client may open its windows by just what it got; if every opening were used at once, frames would be cut ever
    /// smaller and never grow again (RFC 9293 §3.8.6.2.1 tells of the same in TCP). So a window makes a frame small only
    /// once every so many bytes, unless small windows are what the client wants.
    fn is_worth_a_frame(&self, stream: &Stream, n_bytes: u64) -> bool {
        let least = i64::try_from(n_bytes).unwrap_or(i64::MAX).min(SMALL_BYTES);
        let is_enough = |window: i64, since_small: u64| {
            window >= least || window > 0 && since_small >= SMALL_EVERY_BYTES
        };
        let wants_small = self.peer.window < 2 * SMALL_BYTES && stream.send_window > 0;
        is_enough(self.send_window, self.sent_since_small)
            && (wants_small || is_enough(stream.send_window, stream.sent_since_small))
    }

    /// Sends one frame of what waits at the stream at `index`.
    fn send_frame(&mut self, cx: &mut Context<'_>, index: usize, out: &mut Output) {
        self.n_served = self.n_served.wrapping_add(1);
        let is_held = self
            .streams
            .at(index)
            .is_some_and(|stream| self.holds_end(stream));
        let Some(stream) = self.streams.at_mut(index) else {
            return;
        };
        stream.served = self.n_served;
        let id = stream.id;
        let window = usize::try_from(stream.send_window.min(self.send_window)).unwrap_or(0);
        let Some(waiting) = &mut stream.waiting else {
            return;
        };
        let piece = next_piece(waiting, window.min(FRAME_BYTES_MAX));
        let length = piece.as_ref().map_or(0, Payload::len);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let is_sent = waiting.n_bytes == 0;
        let is_over = is_sent && !(is_held && waiting.end.is_some());
        let is_last = is_over && waiting.end.as_ref().is_some_and(Fields::is_empty);
        if piece.is_some() || is_last {
            frame::data(out.tail(), id, length, is_last);
        }
        if let Some(piece) = piece {
            out.push(piece);
        }
        let end = if is_over { waiting.end.take() } else { None };
        let ends_output = is_over && end.is_none() && waiting.ends_output;
        let cost = i64::try_from(length).unwrap_or(i64::MAX);
        stream.send_window = stream.send_window.saturating_sub(cost);
        stream.moved_bytes = stream.moved_bytes.saturating_add(length as u64);
        self.send_window = self.send_window.saturating_sub(cost);
        let is_cut = !is_sent && cost < SMALL_BYTES;
        note_sent(
            &mut stream.sent_since_small,
            stream.send_window,
            is_cut,
            length,
        );
        note_sent(&mut self.sent_since_small, self.send_window, is_cut, length);
        self.moved_bytes = self.moved_bytes.saturating_add(length as u64);
        self.budget.sent(length);
        if is_over {
            end_waiting(stream, end.is_some(), ends_output, out);
            self.n_waiting = self.n_waiting.saturating_sub(1);
        }
        if let Some(trailers) = end {
            if !trailers.is_empty() {
                self.write_trailers(id, &trailers, out);
            }
            self.finish_stream(cx, id, out);
        }
    }
}

/// Nothing waits at the stream any more; `is_end`: its end was sent.
fn end_waiting(stream: &mut Stream, is_end: bool, ends_output: bool, out: &mut Output) {
    stream.waiting = None;
    if is_end {
        let ended = stream.state.send_end();
        debug_assert_eq!(ended, Ok(()), "the response is complete");
    } else if ends_output && stream.state.end_output().is_ok() {
        frame::data(out.tail(), stream.id, 0, true);
    }
}

/// Bytes below which a frame is small if only a window makes it so, and how seldom that is to happen.
const SMALL_BYTES: i64 = 1024;
const SMALL_EVERY_BYTES: u64 = FRAME_BYTES_MAX as u64;

/// Takes at most `n` bytes of the first piece that waits.
fn next_piece(waiting: &mut Waiting, n: usize) -> Option<Payload<'static>> {
    let (now, later) = split(waiting.pieces.pop_front()?, n);
    if let Some(later) = later {
        waiting.pieces.push_front(later);
    }
    waiting.n_bytes = waiting.n_bytes.saturating_sub(now.len());
    Some(now)
}

/// Takes note of a frame of `length` bytes; `is_cut`: it is small and not the last of its content, so a window that it
/// closed is what made it small.
fn note_sent(since_small: &mut u64, window: i64, is_cut: bool, length: usize) {
    *since_small = if is_cut && window <= 0 {
        0
    } else {
        since_small.saturating_add(length as u64)
    };
}

/// Whether more may be put into the output ahead of the socket.
#[inline]
fn has_space(out: &Output, limits: &Limits) -> bool {
    out.len() < (limits.write_queue_bytes_max as usize).max(1)
}

/// The first `n` bytes of `payload`, and the others.
fn split(payload: Payload<'static>, n: usize) -> (Payload<'static>, Option<Payload<'static>>) {
    match payload {
        Payload::Shared(mut bytes) if bytes.len() > n => {
            let first = bytes.split_to(n);
            (Payload::Shared(first), Some(Payload::Shared(bytes)))
        }
        Payload::File(mut range) if range.len() > n as u64 => {
            let first = range.split_to(n as u64);
            (Payload::File(first), Some(Payload::File(range)))
        }
        Payload::Copied(bytes) if bytes.len() > n => {
            split(Payload::Shared(Bytes::from_static(bytes)), n)
        }
        whole => (whole, None),
    }
}
