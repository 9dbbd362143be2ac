//! One connection: what it knows, and the verbs that are not about frames coming in ([`receive`](crate::receive)),
//! responses going out ([`response`](crate::response)) or data waiting for a window ([`write`](crate::write)).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use citius_http::{
    Closing, Event, Fault, Fields, Head, HeadPool, Limits, Method, Millis, Output, RefusedHead,
};

use crate::budget::Budget;
use crate::frame::{self, Code, WINDOW_BYTES, WINDOW_MAX};
use crate::hpack::{Decoder, Encoder};
use crate::receive::{Block, LastBlock, Reading};
use crate::response::Templates;
use crate::settings::{self, Settings};
use crate::stream::{Broken, Expecting, LastEnd, Stream, Streams};
use citius_http::multiplexed::Early;
use citius_http::multiplexed::State;
use citius_http::multiplexed::{Facts, Scratch};

/// What a call may look at besides its input.
#[derive(Debug)]
pub struct Context<'a> {
    /// The turn's clock.
    pub now: Millis,
    /// The limits in force.
    pub limits: &'a Limits,
    /// Where heads come from.
    pub heads: &'a mut HeadPool,
    /// `server: …\r\n`, or empty.
    pub server: &'a [u8],
    /// `date: …\r\n`, or empty; rendered once a second by the reactor.
    pub date: &'a [u8],
    /// Fields of every response that does not say the same itself.
    pub default_fields: &'a Fields,
}

/// What a server offers beyond the plain protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Extended CONNECT (RFC 8441): such a request is a [`Head`] of the method CONNECT with a field `:protocol`.
    pub extended_connect: bool,
}

/// How far the server has taken leave (RFC 9113 §6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// Not at all.
    No,
    /// It is told as soon as no request is open.
    Due(Millis),
    /// No request is open, and the client is given time to read its last responses before it is told.
    Pausing { until: Millis },
    /// A ping tells when the client has read what was sent before; then, or at this time, it is told to stop.
    Asked { until: Millis },
    /// The client was told to stop, and may have sent requests before it knew: at least until then, at most until there.
    Announced { until: Millis, most: Millis },
    /// The client was told which request is the last.
    Final,
}

/// One HTTP/2 connection, server side.
///
/// Duties of the caller: after every call but the queries, look at [`closing`](Self::closing) and
/// write what came to the output; when the output has been written, call [`pump`](Self::pump). After
/// [`send`](Self::send) and [`want`](Self::want), call [`receive`](Self::receive) again, with what is unread or
/// nothing: body bytes may have waited. Stop reading from the socket while [`wants_input`](Self::wants_input) is false.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts; the states that exclude each other are enums"
)]
pub struct Connection {
    pub(crate) options: Options,
    pub(crate) reading: Reading,
    pub(crate) decoder: Decoder,
    pub(crate) encoder: Encoder,
    pub(crate) templates: Templates,
    /// Where field blocks are put together; kept for its memory.
    pub(crate) field_block: Vec<u8>,
    pub(crate) scratch: Scratch,
    pub(crate) last_block: Option<Box<LastBlock>>,
    /// The head of which continuations are awaited.
    pub(crate) block: Option<Box<Block>>,
    pub(crate) peer: Settings,
    pub(crate) streams: Streams,
    /// Priorities that have come before their requests.
    pub(crate) early: Early,
    pub(crate) budget: Budget,
    /// The highest stream that was taken.
    pub(crate) last_stream: u32,
    /// The first of the streams that are not taken, because a drain waits for those before.
    pub(crate) held_from: Option<u32>,
    /// How many of them have come since the client was last asked whether it has read its responses.
    pub(crate) held: u32,
    /// What the client may still send on all streams together; what was taken and is not given back.
    pub(crate) receive_window: i64,
    pub(crate) consumed: u32,
    /// What the client may send beyond the connection's window, because responses ended before their requests; it is kept
    /// back from what is taken next.
    pub(crate) lent_bytes: u64,
    /// What we may still send on all streams together.
    pub(crate) send_window: i64,
    /// When data began to wait for that, and what went through it since.
    pub(crate) waiting_at: Millis,
    pub(crate) moved_bytes: u64,
    /// What of that is not to be used before the client's preface.
    pub(crate) withheld: i64,
    /// Bytes sent since the connection's window made a frame small.
    pub(crate) sent_since_small: u64,
    /// Windows were opened, and what waits for them has not been looked at.
    pub(crate) pump_due: bool,
    /// Streams of which something waits to leave.
    pub(crate) n_waiting: usize,
    /// Counts turns among streams that share.
    pub(crate) n_served: u32,
    /// Streams of which something waits to be told.
    pub(crate) ready: VecDeque<u32>,
    /// Streams that are over, to be told.
    pub(crate) broken: VecDeque<Broken>,
    /// What was sent for the fault of the stream that was told last to be over.
    pub(crate) fault_response_bytes: u64,
    /// Requests whose heads were refused since they were taken last. The budget of resets bounds them.
    pub(crate) refused: Vec<RefusedHead>,
    /// Accept, or the end of the last response.
    pub(crate) since: Millis,
    /// When the frame began that is incomplete.
    pub(crate) partial_at: Option<Millis>,
    /// When our settings went out, until they are acknowledged.
    pub(crate) settings_at: Option<Millis>,
    /// When streams are to be looked at that may have come to a standstill.
    pub(crate) stall_check_at: Option<Millis>,
    pub(crate) shutdown: Shutdown,
    /// Ends of responses are held back until all of them are there.
    pub(crate) holds_ends: bool,
    pub(crate) fault: Option<Fault>,
    pub(crate) closing: Option<Closing>,
    /// No request was taken so far.
    pub(crate) fresh: bool,
    /// The peer has closed its sending side.
    pub(crate) peer_finished: bool,
    /// Our settings are on their way.
    pub(crate) settings_sent: bool,
    /// The client's settings have come.
    pub(crate) settings_received: bool,
}

impl Connection {
    /// Whether `input`, the first bytes of a connection, is a client that knows it may speak HTTP/2 (RFC 9113 §3.3).
    ///
    /// Told by what HTTP/1 would take for a whole head; the rest of the preface is checked by the connection.
    #[inline]
    pub fn begins_with(input: &[u8]) -> bool {
        input.starts_with(b"PRI * HTTP/2.0\r\n\r\n")
    }

    /// A connection accepted at `now`, of which the client's preface is the first input.
    pub fn new(now: Millis, options: Options) -> Self {
        Self {
            options,
            reading: Reading::Preface(0),
            decoder: Decoder::new(),
            encoder: Encoder::new(),
            templates: Templates::default(),
            field_block: Vec::new(),
            scratch: Scratch::default(),
            last_block: None,
            block: None,
            peer: Settings::default(),
            streams: Streams::default(),
            early: Early::default(),
            budget: Budget::new(now),
            last_stream: 0,
            held_from: None,
            held: 0,
            receive_window: WINDOW_BYTES,
            consumed: 0,
            lent_bytes: 0,
            send_window: WINDOW_BYTES,
            waiting_at: now,
            moved_bytes: 0,
            withheld: 0,
            sent_since_small: u64::MAX,
            pump_due: false,
            n_waiting: 0,
            n_served: 0,
            ready: VecDeque::new(),
            broken: VecDeque::new(),
            fault_response_bytes: 0,
            refused: Vec::new(),
            since: now,
            partial_at: None,
            settings_at: None,
            stall_check_at: None,
            shutdown: Shutdown::No,
            holds_ends: false,
            fault: None,
            closing: None,
            fresh: true,
            peer_finished: false,
            settings_sent: false,
            settings_received: false,
        }
    }

    /// A connection that was HTTP/1.1 and has agreed to `upgrade: h2c` with a 101 (RFC 7540 §3.2).
    ///
    /// `head` is the request that asked for it, complete and without a body; its response is due on stream 1.
    /// `http2_settings` is its field of that name.
    ///
    /// # Errors
    /// `SettingsValue` or another fault of the settings: the upgrade is to be ignored.
    pub fn upgraded(
        cx: &Context<'_>,
        options: Options,
        head: &Head,
        http2_settings: &[u8],
        out: &mut Output,
    ) -> Result<Self, Fault> {
        let mut connection = Self::new(cx.now, options);
        let payload = settings::from_base64url(http2_settings).ok_or(Fault::SettingsValue)?;
        connection.peer.take(&payload)?;
        connection.encoder.allow(connection.peer.table_bytes);
        connection.send_settings(cx, out);
        connection.send_window = UNGREETED_BYTES;
        connection.withheld = WINDOW_BYTES.saturating_sub(UNGREETED_BYTES);
        connection.open_stream(cx, 1, head, true, &Facts::default());
        connection.last_stream = 1;
        Ok(connection)
    }

    /// The peer has closed its sending side: a request that is not complete will never be.
    ///
    /// Offer all input to `receive` first. Requests that are complete are still answered.
    pub fn receive_eof(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        if self.closing.is_some() {
            return None;
        }
        self.peer_finished = true;
        self.reading = Reading::Over;
        self.partial_at = None;
        let incomplete = self
            .streams
            .iter()
            .filter(|stream| !stream.state.is_remote_closed());
        let incomplete: Vec<u32> = incomplete.map(|stream| stream.id).collect();
        for id in incomplete {
            self.break_stream(cx, id, Fault::Truncated, out);
        }
        self.holds_ends = false;
        self.pump(cx, out);
        self.close_if_done();
        self.next_broken()
    }

    /// The application wants up to `bytes` more of the body of `stream`; adds up, `u64::MAX` is all of it.
    ///
    /// Writes `100 Continue` if the client waits for it.
    pub fn want(&mut self, cx: &mut Context<'_>, stream: u32, bytes: u64, out: &mut Output) {
        let Some(index) = self.streams.index_of(stream) else {
            return;
        };
        let Some(found) = self.streams.at_mut(index) else {
            return;
        };
        let is_over = found.is_request_delivered() || found.state.is_discarding();
        if bytes == 0 || is_over || found.is_body_refused {
            return;
        }
        if found.credit == 0 {
            found.body_at = cx.now;
            found.body_bytes = 0;
        }
        found.credit = found.credit.saturating_add(bytes);
        let is_due = found.expecting == Expecting::Unasked;
        found.expecting = Expecting::Nothing;
        if found.buffered.is_some() {
            self.ready.push_back(stream);
        } else if is_due && found.state.awaits_headers() {
            self.write_continue(stream, out);
        }
        self.check_stalled_by(cx.now.saturating_add(cx.limits.body_read_ms));
    }

    /// The body of `stream` may have at most `bytes_max` bytes. Call it before any of it is wanted.
    ///
    /// A longer one is answered with [`Fault::BodyTooLong`]: where its length is announced now, without an event, and
    /// `true` is returned; otherwise when it becomes longer.
    pub fn limit_body(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        bytes_max: u64,
        out: &mut Output,
    ) -> bool {
        let Some(found) = self.streams.find_mut(stream) else {
            return false;
        };
        found.body_bytes_max = bytes_max;
        if found.expected.is_none_or(|length| length <= bytes_max) {
            return false;
        }
        if let Err(fault) = self.budget.reset(cx.now, cx.limits) {
            self.end_with(cx, fault, out);
            self.fault_response_bytes = 0;
        } else {
            self.end_stream(cx, stream, Fault::BodyTooLong, out);
            self.close_if_done();
        }
        true
    }

    /// Whether more input could be used: false once reading has ended. Flow-control windows hold back unread bodies.
    #[inline]
    pub fn wants_input(&self, _: &Limits) -> bool {
        self.closing.is_none() && !matches!(self.reading, Reading::Over)
    }

    /// When [`expire`](Self::expire) is due if no other call comes first; `None` for never.
    ///
    /// Changes with every other call.
    #[inline]
    pub fn deadline(&self, limits: &Limits) -> Option<Millis> {
        if self.closing.is_some() {
            return None;
        }
        if !self.broken.is_empty() {
            return Some(0);
        }
        let after = |since: Option<Millis>, span_ms: u64| {
            since
                .filter(|_| span_ms > 0)
                .map(|since| since.saturating_add(span_ms))
        };
        let is_idle = self.streams.is_empty();
        let idle_ms = match self.reading {
            Reading::Preface(_) => limits.head_read_ms,
            _ if self.fresh => limits.head_read_ms,
            _ => limits.keep_alive_ms,
        };
        let leaving = match self.shutdown {
            Shutdown::Due(since) if self.holds_ends => Some(since.saturating_add(GATHER_MS)),
            Shutdown::Due(since) if self.held_from.is_some() => {
                Some(since.saturating_add(DRAIN_BUSY_MS))
            }
            Shutdown::Pausing { until }
            | Shutdown::Asked { until }
            | Shutdown::Announced { until, .. } => Some(until),
            _ => None,
        };
        [
            after(is_idle.then_some(self.since), idle_ms),
            after(self.partial_at, limits.head_read_ms),
            after(self.settings_at, limits.head_read_ms),
            leaving,
            self.stall_check_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Time has passed; does nothing before the deadline.
    pub fn expire(&mut self, cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>> {
        if self.deadline(cx.limits)? > cx.now {
            return None;
        }
        let is_over = |since: Option<Millis>, span_ms: u64| {
            since.is_some_and(|at| span_ms > 0 && at.saturating_add(span_ms) <= cx.now)
        };
        if is_over(self.partial_at, cx.limits.head_read_ms) {
            self.end_with(cx, Fault::HeadTooSlow, out);
        } else if is_over(self.settings_at, cx.limits.head_read_ms) {
            self.end_with(cx, Fault::SettingsTimeout, out);
        } else if let Shutdown::Pausing { until } = self.shutdown
            && until <= cx.now
        {
            self.send_final_goaway(out);
        } else if let Shutdown::Asked { until } = self.shutdown
            && until <= cx.now
        {
            self.announce_shutdown(cx, out);
            self.pump(cx, out);
        } else if let Shutdown::Announced { until, most } = self.shutdown
            && until <= cx.now
        {
            let quiet = self.since.saturating_add(PAUSE_MS);
            if most <= cx.now || self.streams.is_empty() && quiet <= cx.now {
                self.send_final_goaway(out);
            } else {
                let until = cx.now.saturating_add(PAUSE_MS).min(most);
                self.shutdown = Shutdown::Announced { until, most };
            }
        } else if self.stall_check_at.is_some_and(|at| at <= cx.now) {
            self.check_stalled(cx, out);
        } else if self.holds_ends {
            self.release_ends(cx, out);
        } else if let (Some(_), Shutdown::Due(_)) = (self.held_from, self.shutdown) {
            self.send_final_goaway(out);
        } else if self.broken.is_empty() {
            // Idle for too long: no request is open.
            self.write_goaway(Code::NoError, out);
            self.closing = Some(Closing::Clean);
        }
        self.next_broken()
    }

    /// Stops taking new requests. Nothing that has been sent is lost, as far as the client allows it:
    ///
    /// - Most clients are told in two steps (RFC 9113 §6.8), and what crosses the first is still answered. Node needs that: it
    ///   repeats no request that crosses a GOAWAY, and loses one that it makes between the end of a response and a GOAWAY that it reads
    ///   together: so ends are held back from the ping to the first step. The second step waits for the responses, and [`PAUSE_MS`] for what a busy
    ///   client sends late. curl 7.88 drops content that it reads together with the end of its last stream if a GOAWAY
    ///   has come: so a ping before the first step shows when it has read what was sent, and the last end leaves when
    ///   another one shows that it has read the content ([`holds_last_end`](Self::holds_last_end)).
    /// - the library `h2`, below httpx, reads nothing behind a GOAWAY, and httpx gives up the requests that wait for their turn to
    ///   read. Such a client ([`Settings::are_of_h2`]) is told once, where no request is open: ends of responses are held
    ///   back for [`GATHER_MS`] while others are due, and leave together. The GOAWAY follows after [`PAUSE_MS`], in which
    ///   no request is taken: what the client sends then is beyond the last stream, and it repeats that. A ping shows when it has
    ///   read the responses: one for each request that is not taken, for each of them may take its turn to read before one
    ///   that has its response. Of one whose requests
    ///   overlap without end none is taken from [`HOLD_AFTER_MS`] on, so that those before come to an end; after
    ///   [`DRAIN_BUSY_MS`] it is told all the same.
    pub fn drain(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        if self.shutdown != Shutdown::No || self.closing.is_some() {
            return;
        }
        self.send_settings(cx, out);
        if self.settings_received && !self.peer.are_of_h2() {
            self.begin_shutdown(cx, out);
        } else {
            self.shutdown = Shutdown::Due(cx.now);
        }
    }

    /// A request has come while the connection drains; `true` if it is left to another connection.
    #[cold]
    pub(crate) fn request_in_drain(&mut self, cx: &Context<'_>, id: u32, out: &mut Output) -> bool {
        let since = match self.shutdown {
            Shutdown::Due(since) => since,
            Shutdown::Pausing { .. } => {
                self.held_from.get_or_insert(id);
                self.held = self.held.saturating_add(1);
                return true;
            }
            _ => return false,
        };
        if !self.peer.are_of_h2() {
            self.begin_shutdown(cx, out);
        } else if cx.now.saturating_sub(since) >= HOLD_AFTER_MS && !self.streams.is_empty() {
            self.held_from.get_or_insert(id);
        }
        self.held = self
            .held
            .saturating_add(u32::from(self.held_from.is_some()));
        self.held_from.is_some()
    }

    /// Whether frames of this stream get no reply: it was reset, or GOAWAY has told the client that it is not served.
    #[cold]
    pub(crate) fn was_left(&self, id: u32) -> bool {
        self.streams.was_reset(id) || self.held_from.is_some_and(|first| id >= first)
    }

    /// All input is taken while the connection drains: it ends if no request is open.
    #[cold]
    pub(crate) fn end_drain(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        if self.holds_ends {
            self.release_ends(cx, out);
        }
        if !self.is_goaway_due() {
            return;
        }
        if self.is_quiet(cx.now) {
            self.send_final_goaway(out);
        } else {
            frame::ping(out.tail(), SHUTDOWN_PING, 0);
            let until = cx.now.saturating_add(cx.limits.linger_ms.max(PAUSE_MS));
            self.shutdown = Shutdown::Pausing { until };
        }
    }

    /// Has the client told to stop as soon as it has read what was sent before.
    #[cold]
    fn begin_shutdown(&mut self, cx: &Context<'_>, out: &mut Output) {
        if self.is_quiet(cx.now) {
            return self.announce_shutdown(cx, out);
        }
        frame::ping(out.tail(), SHUTDOWN_PING, 0);
        let until = cx.now.saturating_add(cx.limits.linger_ms);
        self.shutdown = Shutdown::Asked { until };
        self.holds_ends = true;
    }

    /// Whether no request is open, and the last response was read long ago.
    fn is_quiet(&self, now: Millis) -> bool {
        let is_read = self.fresh || self.since.saturating_add(IDLE_MS) <= now;
        self.streams.is_empty() && is_read
    }

    /// Tells a client that may still be busy to stop.
    #[cold]
    fn announce_shutdown(&mut self, cx: &Context<'_>, out: &mut Output) {
        frame::go_away(out.tail(), 0x7fff_ffff, Code::NoError);
        frame::ping(out.tail(), SHUTDOWN_PING, 0);
        self.pump_due |= core::mem::take(&mut self.holds_ends);
        let patience = match self.shutdown {
            Shutdown::Asked { until } if until <= cx.now => PAUSE_MS, // it answers no pings
            _ => cx.limits.linger_ms.max(1),
        };
        let until = cx.now.saturating_add(patience);
        let most = until.max(cx.now.saturating_add(DRAIN_BUSY_MS));
        self.shutdown = Shutdown::Announced { until, most };
    }

    /// The client has answered a ping of the shutdown. Behind the first notice requests that it has begun leave it before that
    /// answer; behind its last responses, those that wait for their turn to read have one.
    #[cold]
    pub(crate) fn shutdown_was_heard(&mut self, cx: &Context<'_>, out: &mut Output) {
        match &mut self.shutdown {
            Shutdown::Asked { .. } => self.announce_shutdown(cx, out),
            Shutdown::Pausing { .. } if self.held > 0 => {
                self.held = self.held.saturating_sub(1);
                frame::ping(out.tail(), SHUTDOWN_PING, 0);
            }
            Shutdown::Announced { until, .. } | Shutdown::Pausing { until } => {
                *until = (*until).min(cx.now.saturating_add(PAUSE_MS));
            }
            _ => {}
        }
    }

    /// Whether the end of the response of `stream` waits until the client has read its content: it is the last one of a client
    /// that is told to stop.
    pub(crate) fn holds_last_end(&self, stream: &Stream) -> bool {
        let is_held = stream.last_end != LastEnd::ContentRead;
        self.holds_last_ends() && is_held && self.streams.len() == 1
    }

    fn holds_last_ends(&self) -> bool {
        let is_told = matches!(
            self.shutdown,
            Shutdown::Asked { .. } | Shutdown::Announced { .. } | Shutdown::Final
        );
        is_told && !self.peer_finished && !self.peer.are_of_h2()
    }

    /// Asks the client whether it has read the content of `id`, of which the end is held.
    #[cold]
    pub(crate) fn ask_for_end(&mut self, cx: &Context<'_>, id: u32, out: &mut Output) {
        if let Some(stream) = self.streams.find_mut(id) {
            stream.waiting_at = cx.now;
            stream.last_end = LastEnd::Asked;
        }
        frame::ping(out.tail(), &end_ping(id), 0);
        self.check_stalled_by(cx.now.saturating_add(cx.limits.linger_ms));
    }

    /// The client has answered a ping: `true` if it was one that waits for that with the end of a response.
    #[cold]
    pub(crate) fn end_was_heard(&mut self, payload: &[u8]) -> bool {
        let Some(stream) = self.streams.iter_mut().find(|s| payload == end_ping(s.id)) else {
            return false;
        };
        let is_answer = stream.last_end == LastEnd::Asked;
        if is_answer {
            stream.last_end = LastEnd::ContentRead;
            self.pump_due = true;
        }
        is_answer
    }

    /// Looks, while a GOAWAY is due, whether ends of responses are held back because of other streams than `but`: those whose
    /// handlers have not responded. A response that streams may have no end.
    #[cold]
    pub(crate) fn look_at_holding(&mut self, now: Millis, but: u32) {
        let Shutdown::Due(since) = self.shutdown else {
            let is_asked = matches!(self.shutdown, Shutdown::Asked { .. });
            self.holds_ends = is_asked && !self.peer_finished;
            return;
        };
        let open = |stream: &&Stream| stream.id != but && stream.is_open();
        let mut others = self.streams.iter().filter(open).peekable();
        self.holds_ends = now < since.saturating_add(GATHER_MS)
            && others.peek().is_some()
            && others.all(|other| other.state.awaits_headers());
    }

    /// Lets ends of responses leave that need not be held back any more.
    #[cold]
    pub(crate) fn release_ends(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        self.look_at_holding(cx.now, 0);
        if !self.holds_ends {
            self.pump(cx, out);
        }
    }

    /// Whether the client is to be told now which request was the last: none is open, and none has begun to come.
    #[inline]
    pub(crate) fn is_goaway_due(&self) -> bool {
        matches!(self.shutdown, Shutdown::Due(_))
            && self.streams.is_empty()
            && self.partial_at.is_none()
    }

    /// Ends the connection for reasons this machine does not know, such as [`Fault::Overloaded`]: the client is told
    /// which requests were taken, and may try the others elsewhere.
    pub fn refuse(
        &mut self,
        cx: &mut Context<'_>,
        fault: Fault,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        if self.closing.is_none() {
            self.end_with(cx, fault, out);
        }
        None
    }

    /// Set once nothing more will be read or begun: flush the output, then close in this way. Streams
    /// that are open at that moment are over.
    #[inline]
    pub fn closing(&self) -> Option<Closing> {
        self.closing
    }

    /// Bytes of the content of the response that the fault of the latest [`Event::Broken`] got, or the body that
    /// [`limit_body`](Self::limit_body) has refused; for the log.
    #[cold]
    pub fn fault_response_bytes(&self) -> u64 {
        self.fault_response_bytes
    }

    /// Whether heads were refused since [`take_refused`](Self::take_refused).
    #[inline]
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// The requests whose heads were refused since this was called last; for the log.
    #[cold]
    pub fn take_refused(&mut self) -> Vec<RefusedHead> {
        core::mem::take(&mut self.refused)
    }

    /// The rule the peer broke, if that is why the connection ends; for the log.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Requests whose responses the application has not completed.
    #[inline]
    pub fn streams_open(&self) -> usize {
        self.streams.n_open()
    }

    /// Whether a response to `stream` can still be sent.
    #[inline]
    pub fn is_open(&self, stream: u32) -> bool {
        self.streams.find(stream).is_some_and(Stream::is_open)
    }

    /// Bytes of the response of `stream` that may be sent before its queue is full; 0 once it is over.
    pub fn write_capacity(&self, stream: u32, limits: &Limits) -> usize {
        let most = limits.write_queue_bytes_max as usize;
        match self.streams.find(stream) {
            Some(stream) if stream.is_open() => {
                let waiting = stream.waiting.as_ref().map_or(0, |waiting| waiting.n_bytes);
                most.saturating_sub(usize::try_from(waiting).unwrap_or(usize::MAX))
            }
            _ => 0,
        }
    }

    /// Whether [`receive`](Self::receive) has something to tell without another byte of input.
    #[inline]
    pub fn has_events(&self) -> bool {
        let may_tell = !self.broken.is_empty() || !self.ready.is_empty() || self.is_goaway_due();
        may_tell && self.closing.is_none()
    }

    // --- among ourselves ----------------------------------------------------------------------

    /// Sends our settings, once.
    pub(crate) fn send_settings(&mut self, cx: &Context<'_>, out: &mut Output) {
        if self.settings_sent {
            return;
        }
        self.settings_sent = true;
        settings::announce(out.tail(), cx.limits, self.options.extended_connect);
        self.receive_window = settings::connection_window(cx.limits);
        self.settings_at = Some(cx.now);
    }

    /// A request is taken.
    pub(crate) fn open_stream(
        &mut self,
        cx: &Context<'_>,
        id: u32,
        head: &Head,
        ended: bool,
        facts: &Facts,
    ) {
        self.fresh = false;
        // What was said of the stream itself goes over what its head says, which may be older (RFC 9218 §7).
        let early = if self.early.is_empty() {
            None
        } else {
            self.early.take(id)
        };
        self.streams.push(Stream {
            id,
            state: State::new(ended),
            expecting: if head.expects_continue {
                Expecting::Unasked
            } else {
                Expecting::Nothing
            },
            head_only: head.method == Method::Head,
            asks_protocol: head.method == Method::Connect,
            priority: early.unwrap_or(facts.priority),
            served: 0,
            credit: 0,
            received: 0,
            expected: facts.content_length,
            body_bytes_max: u64::MAX,
            is_body_refused: false,
            receive_window: settings::stream_window(cx.limits),
            consumed: 0,
            body_at: cx.now,
            body_bytes: 0,
            send_window: self.peer.window,
            waiting_at: cx.now,
            is_tunnel: false,
            stops_short: false,
            last_end: LastEnd::NotHeld,
            moved_bytes: 0,
            sent_since_small: u64::MAX,
            buffered: None,
            waiting: None,
        });
    }

    /// The connection ends for a fault: the last word is `GOAWAY`.
    #[cold]
    pub(crate) fn end_with(&mut self, cx: &Context<'_>, fault: Fault, out: &mut Output) {
        self.send_settings(cx, out);
        self.fault = Some(fault);
        self.write_goaway(Code::of(fault), out);
        self.reading = Reading::Over;
        self.streams.clear();
        self.n_waiting = 0;
        self.closing = Some(if self.peer_finished {
            Closing::Clean
        } else {
            Closing::Linger
        });
    }

    /// A stream ends for a fault that the application has to know of.
    #[cold]
    pub(crate) fn break_stream(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        fault: Fault,
        out: &mut Output,
    ) {
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        let was_delivered = stream.is_request_delivered() || stream.state.is_discarding();
        let is_open = stream.is_open();
        // Complete for the application, and its client will never have all of it.
        let is_cut = stream.waiting.is_some();
        let response_bytes = self.end_stream(cx, id, fault, out);
        if is_open || !was_delivered || is_cut {
            self.broken.push_back(Broken {
                stream: id,
                fault,
                is_answered: false,
                response_bytes,
            });
        }
    }

    /// No more of a body is told, and its response, which has begun, goes on. The rest is read away meanwhile as behind a
    /// complete response, for some clients read none before they have sent it; when that is too much their window stays shut.
    #[cold]
    pub(crate) fn refuse_body(
        &mut self,
        cx: &Context<'_>,
        id: u32,
        fault: Fault,
        out: &mut Output,
    ) {
        let Some(stream) = self.streams.find_mut(id) else {
            return;
        };
        stream.is_body_refused = true;
        stream.body_bytes_max = u64::MAX;
        stream.credit = cx.limits.h2_discard_bytes_max;
        let buffered = stream.buffered.take().map_or(0, |b| b.bytes.len());
        if stream.is_open() {
            self.broken.push_back(Broken {
                stream: id,
                fault,
                is_answered: true,
                response_bytes: 0,
            });
        }
        self.release_stream_window(id, buffered, out);
    }

    /// Takes data of a body that is refused.
    pub(crate) fn drop_data(&mut self, id: u32, length: usize, out: &mut Output) {
        let Some(stream) = self.streams.find_mut(id) else {
            return;
        };
        let may_come = stream.credit >= length as u64;
        stream.credit = stream.credit.saturating_sub(length as u64);
        if may_come {
            self.release_stream_window(id, length, out);
        } else {
            self.release_window(length, out);
        }
    }

    /// A stream ends for a fault: with its status where that can still be said. Returns the bytes of content that are
    /// sent with it.
    #[cold]
    fn end_stream(&mut self, cx: &mut Context<'_>, id: u32, fault: Fault, out: &mut Output) -> u64 {
        let Some(index) = self.streams.index_of(id) else {
            return 0;
        };
        let Some(stream) = self.streams.at(index) else {
            return 0;
        };
        let mut response_bytes = 0;
        self.since = cx.now;
        let may_respond = stream.state.awaits_headers()
            && !citius_http::multiplexed::is_malformed(fault)
            && fault != Fault::StreamReset;
        if may_respond {
            response_bytes = self.respond_to_fault(cx, index, fault, out);
        }
        let is_said = |stream: &Stream| may_respond && stream.state.is_discarding();
        if self.streams.find(id).is_some_and(|stream| !is_said(stream)) {
            // What waits for a window is dropped with the stream.
            let unsent = self.waiting_bytes_of(id).unwrap_or(0);
            response_bytes = response_bytes.saturating_sub(unsent);
            let by_peer = fault == Fault::StreamReset;
            self.drop_stream(id, (!by_peer).then(|| Code::of(fault)), out);
        }
        response_bytes
    }

    /// Bytes of the response of `stream` that wait for a window; `None` if there are none.
    pub fn waiting_bytes_of(&self, stream: u32) -> Option<u64> {
        let waiting = self.streams.find(stream)?.waiting.as_ref()?;
        Some(waiting.n_bytes)
    }

    /// Forgets a stream, and tells the client so with `code`.
    pub(crate) fn drop_stream(&mut self, id: u32, code: Option<Code>, out: &mut Output) {
        let Some(stream) = self
            .streams
            .index_of(id)
            .and_then(|at| self.streams.remove(at))
        else {
            return;
        };
        if stream.waiting.is_some() {
            self.n_waiting = self.n_waiting.saturating_sub(1);
        }
        if let Some(buffered) = stream.buffered {
            self.release_window(buffered.bytes.len(), out);
        }
        if let Some(code) = code {
            self.reset(id, code, out);
        }
    }

    /// Resets `id`.
    pub(crate) fn reset(&mut self, id: u32, code: Code, out: &mut Output) {
        frame::reset(out.tail(), id, code);
        self.streams.note_reset(id);
    }

    /// Opens the connection's window by what was taken, from half of it on.
    pub(crate) fn release_window(&mut self, n_bytes: usize, out: &mut Output) {
        let kept_back = self.lent_bytes.min(n_bytes as u64);
        self.lent_bytes = self.lent_bytes.saturating_sub(kept_back);
        let given_back = (n_bytes as u64).saturating_sub(kept_back);
        self.consumed = self
            .consumed
            .saturating_add(u32::try_from(given_back).unwrap_or(u32::MAX));
        let left = self.receive_window;
        if i64::from(self.consumed) >= left && !matches!(self.reading, Reading::Over) {
            frame::window_update(out.tail(), 0, self.consumed);
            self.receive_window = left
                .saturating_add(i64::from(self.consumed))
                .min(WINDOW_MAX);
            self.consumed = 0;
        }
    }

    /// The rest of a request has been dropped behind its response. curl 7.88 waits for the next frame if it has read the end of
    /// the response before it has sent the end of the request.
    pub(crate) fn wake_uploader(&mut self, out: &mut Output) {
        if self.consumed == 0 {
            self.lent_bytes = self.lent_bytes.saturating_add(1);
            self.consumed = 1;
        }
        frame::window_update(out.tail(), 0, self.consumed);
        let window = self.receive_window.saturating_add(i64::from(self.consumed));
        self.receive_window = window.min(WINDOW_MAX);
        self.consumed = 0;
    }

    /// Streams are to be looked at no later than `at`.
    #[inline]
    pub(crate) fn check_stalled_by(&mut self, at: Millis) {
        self.stall_check_at = Some(self.stall_check_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// The next stream that is over.
    pub(crate) fn next_broken(&mut self) -> Option<Event<'static>> {
        let Broken {
            stream,
            fault,
            is_answered,
            response_bytes,
        } = self.broken.pop_front()?;
        if is_answered {
            return Some(Event::BodyRefused { stream, fault });
        }
        self.fault_response_bytes = response_bytes;
        Some(Event::Broken { stream, fault })
    }

    /// Tells the client which request is the last.
    pub(crate) fn send_final_goaway(&mut self, out: &mut Output) {
        self.write_goaway(Code::NoError, out);
        self.shutdown = Shutdown::Final;
        self.close_if_done();
    }

    fn write_goaway(&self, code: Code, out: &mut Output) {
        let last = self
            .held_from
            .map_or(self.last_stream, |first| first.saturating_sub(2));
        frame::go_away(out.tail(), last, code);
    }

    /// Ends the connection where it is to end.
    #[inline]
    pub(crate) fn close_if_done(&mut self) {
        let is_last = self.shutdown == Shutdown::Final || self.peer_finished;
        if is_last && self.streams.is_empty() && self.closing.is_none() {
            self.closing = Some(if self.peer_finished {
                Closing::Clean
            } else {
                Closing::Linger
            });
        }
    }

    /// Looks for streams that have come to a standstill.
    fn check_stalled(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        self.stall_check_at = None;
        let limits = cx.limits;
        let mut next: Option<Millis> = None;
        let mut stuck: Vec<(u32, Fault)> = Vec::new();
        let mut unread: Vec<u32> = Vec::new();
        let connection_is_shut = self.send_window <= 0;
        let is_draining = self.shutdown != Shutdown::No;
        let holds_last_ends = self.holds_last_ends();
        let mut waits_for_connection = false;
        for stream in self.streams.iter_mut() {
            let mut due = |at: Millis| next = Some(next.map_or(at, |earlier| earlier.min(at)));
            if stream.awaits_body()
                && limits.body_rate_min_bytes_per_s > 0
                && limits.body_read_ms > 0
            {
                if stream.is_body_slow(cx.now, limits) {
                    stuck.push((stream.id, Fault::BodyTooSlow));
                }
                due(stream.body_at.saturating_add(limits.body_read_ms));
            }
            if stream.state.is_discarding() {
                let is_over = stream.body_at.saturating_add(limits.linger_ms) <= cx.now;
                if is_over && (is_draining || stream.is_rest_slow(cx.now, limits)) {
                    unread.push(stream.id);
                } else {
                    due(stream.body_at.saturating_add(limits.linger_ms));
                }
            }
            if stream.last_end == LastEnd::Asked {
                let until = stream.waiting_at.saturating_add(limits.linger_ms);
                if until <= cx.now {
                    stream.last_end = LastEnd::ContentRead;
                } else {
                    due(until);
                }
            } else if stream.waiting.is_some() && limits.write_stall_ms > 0 {
                if stream.is_window_stalled(cx.now, limits) {
                    stuck.push((stream.id, Fault::StreamStalled));
                }
                waits_for_connection |= connection_is_shut;
                due(stream.waiting_at.saturating_add(limits.write_stall_ms));
            }
        }
        self.stall_check_at = next;
        if waits_for_connection && self.is_window_stalled(cx) {
            return self.end_with(cx, Fault::StreamStalled, out);
        }
        for (id, fault) in stuck {
            self.break_stream(cx, id, fault, out);
        }
        for id in unread {
            self.drop_stream(id, Some(Code::NoError), out);
        }
        if holds_last_ends {
            self.pump(cx, out);
        }
        self.close_if_done();
    }

    /// Whether too little has moved through the connection's window since this was last asked.
    fn is_window_stalled(&mut self, cx: &Context<'_>) -> bool {
        let limits = cx.limits;
        if cx.now.saturating_sub(self.waiting_at) < limits.write_stall_ms {
            return false;
        }
        let is_stalled = self.moved_bytes < u64::from(limits.h2_stall_bytes_min);
        self.waiting_at = cx.now;
        self.moved_bytes = 0;
        is_stalled
    }
}

/// Bytes of data that may follow a 101 before the client shows that it has seen it: curl up to 7.88 takes no more than
/// 32 KiB together with the 101.
const UNGREETED_BYTES: i64 = 16 * 1024;

/// Milliseconds of a drain in which a client whose requests overlap may come to an end by itself.
const HOLD_AFTER_MS: Millis = 2000;

/// Milliseconds of a drain after which it waits for no response. Requests have waited for less than httpx's five seconds.
const DRAIN_BUSY_MS: Millis = 6000;

/// Milliseconds of a drain in which ends of responses are held back for others.
const GATHER_MS: Millis = 1000;

/// Milliseconds behind the last response after which a client has read it.
const IDLE_MS: Millis = 1000;

/// Milliseconds that a client gets to read its last responses before a GOAWAY, or to send what it had begun before it.
const PAUSE_MS: Millis = 250;

/// The payload of the ping that tells when the content of a stream has arrived.
pub(crate) fn end_ping(stream: u32) -> [u8; 8] {
    let [a, b, c, d] = stream.to_be_bytes();
    [b'c', b'i', b't', 1, a, b, c, d]
}

/// The payload of the ping that tells when the first notice of leave, or what was sent before it, has arrived.
pub(crate) const SHUTDOWN_PING: &[u8; 8] = b"citius\0\x02";
