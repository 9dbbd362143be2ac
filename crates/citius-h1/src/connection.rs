//! One connection: requests in the order they came, responses in the same order.
//!
//! Two halves that know little of each other. The reading half ([`Reading`]) is in a head or in the
//! body of the newest request. The response half is the [`Queue`]: every request whose response is not
//! complete. They meet where a body is left unread, where `100 Continue` is due, and where
//! the connection ends.
//!
//! ```text
//!            ┌── bodiless request, or end of body ──┐
//!            ▼                                      │
//! new ─► Head ── request with a body ──► Exact | Chunked      closing() is set once the queue has
//!            │                                      │         run empty, or at a response that
//!            └──► Over ◄────────────────────────────┘         ends the connection
//!   fault, `connection: close`, drain, end of input
//! ```
//!
//! A request that asks for another protocol may be held: [`Reading::AwaitsUpgrade`] takes nothing until it is answered,
//! by a 101, from which on all input is [`Reading::Tunnel`]'s, or otherwise, which brings back `Head`.

use alloc::boxed::Box;

use citius_http::{
    Action, BodyLength, Closing, DRAIN_IDLE_MS, Event, FAST_PATHS, Fault, Fields, Head, HeadPool,
    Limits, Millis, Output, PlainResponse, RefusedHead,
};

use crate::chunked::{Chunked, Piece};
use crate::encode::{self, Persistence, Template};
use crate::exchange::{Exchange, Progress, Queue};
use crate::lines::Stop;
use crate::{head, scan};

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
    /// What the last response looked like; keep it between calls, or make a new one each time.
    pub template: &'a mut Template,
}

/// One HTTP/1.1 connection, server side.
///
/// Duties of the caller: after every call but the queries, look at [`closing`](Self::closing) and
/// write what came to the output. After [`send`](Self::send) and [`want`](Self::want), offer the
/// unread bytes to [`receive`](Self::receive) again: the pipeline may have room, or the body credit.
/// Stop reading from the socket while [`wants_input`](Self::wants_input) is false.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts; the states that exclude each other are enums"
)]
pub struct Connection {
    queue: Queue,
    reading: Reading,
    /// Body bytes the application still wants; while discarding, those that may still be dropped.
    credit: u64,
    /// Accept, the end of the last response, the first byte of a head, or the start of the window over which
    /// a body's rate is judged.
    since: Millis,
    /// Body bytes that came in that window.
    window_bytes: u64,
    /// Bytes of an incomplete head that were searched for its end.
    searched: u32,
    /// Whether the client waits for `100 Continue`.
    expecting: Expecting,
    /// What ended reading, if the peer is to blame.
    fault: Option<Fault>,
    /// How the server's own response to `fault` is due once the queue is empty.
    fault_response: FaultResponse,
    closing: Option<Closing>,
    /// No request was taken so far.
    fresh: bool,
    /// The one blank line before a request line that is tolerated has been taken.
    blank_line_taken: bool,
    /// The newest request is answered, the rest of its body is dropped.
    discarding: bool,
    /// No new request is taken, and the next response says so.
    draining: bool,
    /// The response under way does not say that the connection ends: its client may send another request, which is taken.
    takes_one_more: bool,
    /// The peer has closed its sending side.
    peer_finished: bool,
    /// The last call of `receive` left bytes over.
    unread: bool,
    /// They begin a request that waits until all before it are answered.
    waits_its_turn: bool,
    /// Reading stopped where the peer may go on sending.
    lingers: bool,
}

/// An [`Event::Request`] by itself.
#[derive(Debug)]
#[expect(missing_docs, reason = "the event's own fields")]
pub struct Request {
    pub stream: u32,
    pub head: Box<Head>,
    pub ended: bool,
}

impl From<Request> for Event<'_> {
    #[inline]
    fn from(request: Request) -> Self {
        Self::Request {
            stream: request.stream,
            head: request.head,
            ended: request.ended,
        }
    }
}

/// What the next byte is part of.
#[derive(Debug)]
enum Reading {
    /// A request head, or nothing yet.
    Head,
    /// A body of which so many bytes are to come.
    Exact(u64),
    /// A chunked body.
    Chunked(Chunked),
    /// Nothing for now: the newest request may turn the connection into a tunnel.
    AwaitsUpgrade,
    /// Another protocol, to the end of the connection.
    Tunnel,
    /// Nothing: no further byte is read.
    Over,
}

/// The state of `Expect: 100-continue` for the newest request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expecting {
    /// The client does not wait, or does so no longer.
    Nothing,
    /// The client waits, and the application has not asked for the body.
    Unasked,
    /// The application has asked, and older responses come first.
    Asked,
}

/// The server's own response to a peer's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultResponse {
    None,
    Due { head_only: bool },
}

/// How much of the newest request's body is unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    Known(u64),
    Unknown,
}

impl Connection {
    /// A connection accepted at `now`.
    pub fn new(now: Millis) -> Self {
        Self {
            queue: Queue::default(),
            reading: Reading::Head,
            credit: 0,
            since: now,
            window_bytes: 0,
            searched: 0,
            expecting: Expecting::Nothing,
            fault: None,
            fault_response: FaultResponse::None,
            closing: None,
            fresh: true,
            blank_line_taken: false,
            discarding: false,
            draining: false,
            takes_one_more: false,
            peer_finished: false,
            unread: false,
            waits_its_turn: false,
            lingers: false,
        }
    }

    /// Takes as much of `input` as it can (advances the slice) and returns the next event; call
    /// until `None`. What is left must be offered again, longer.
    ///
    /// A peer's fault in a head is no event: its response goes to `out`, and [`fault`](Self::fault)
    /// tells it.
    #[inline]
    pub fn receive<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>> {
        match self.receive_cached(cx, input) {
            Some(request) => Some(request.into()),
            None => self.receive_uncached(cx, input, out),
        }
    }

    /// The first half of [`receive`](Self::receive): a request whose head says the same to the byte as the one that was
    /// given back last, for clients repeat themselves. Otherwise nothing is done.
    #[inline]
    pub fn receive_cached(&mut self, cx: &mut Context<'_>, input: &mut &[u8]) -> Option<Request> {
        let may_begin = matches!(self.reading, Reading::Head) && self.searched == 0;
        if !may_begin || !self.queue.is_empty() && self.has_to_wait(input, cx.limits) {
            return None;
        }
        let head = cx.heads.cached(head_window(input, cx.limits))?;
        *input = input.get(head.bytes.len()..).unwrap_or_default();
        self.unread = !input.is_empty();
        if !head.is_simple() {
            return Some(self.begin(head));
        }
        // What `begin` comes to for most heads.
        self.waits_its_turn = false;
        self.fresh = false;
        self.blank_line_taken = false;
        Some(Request {
            stream: self.queue.push(Exchange::SIMPLE),
            head,
            ended: true,
        })
    }

    /// Whether [`receive`](Self::receive) has nothing to do before more input comes, if there is none left.
    #[inline]
    pub fn awaits_head(&self) -> bool {
        matches!(self.reading, Reading::Head) && !self.peer_finished
    }

    /// The second half of [`receive`](Self::receive): everything but a head that the cache knows.
    #[inline]
    pub fn receive_uncached<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>> {
        let event = self.next_event(cx, input, out);
        self.unread = !input.is_empty();
        event
    }

    /// The peer has closed its sending side: a request that is not complete will never be.
    ///
    /// Offer all input to `receive` first. Requests that are complete are still answered. If `receive` left
    /// bytes over because the pipeline was full or the body not wanted, nothing is decided yet: go on
    /// offering them.
    pub fn receive_eof(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        self.peer_finished = true;
        if self.unread && !self.wants_input(cx.limits) {
            return None;
        }
        self.end_input(cx, out)
    }

    /// Does what the application wants to happen to `stream`; nothing if that has ended already.
    ///
    /// # Errors
    /// The application's fault, to be logged. What is on the wire stays consistent: 500 if nothing was
    /// sent for the stream yet, otherwise the connection is cut.
    #[inline]
    pub fn send(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        action: Action<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let Some(index) = self.open_index(stream) else {
            return Ok(());
        };
        if self.awaits_nothing_else() {
            return self.send_alone(cx, action, out);
        }
        if let Action::Switch { protocol, fields } = action {
            return self.switch(cx, index, protocol, fields, out);
        }
        let ends_here = self.ends_with(index, cx.limits);
        // Apart from the others, because handing the action on through a closure copies it: the front is
        // what nearly every response is for.
        let result = match self.queue.at_mut(0) {
            Some(front) if index == 0 => Self::act(front, cx, action, ends_here, out),
            _ => {
                let mut result = Ok(());
                self.with_exchange(index, out, |exchange, out| {
                    result = Self::act(exchange, cx, action, ends_here, out);
                });
                result
            }
        };
        self.follow_up(index, cx, out);
        result
    }

    /// What [`send`](Self::send) does with [`PlainResponse::action`], if nothing else has to be considered; `false`: nothing is
    /// done, and it has to be said at length.
    #[inline]
    pub fn respond(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        plain: PlainResponse<'_>,
        out: &mut Output,
    ) -> bool {
        let is_all = FAST_PATHS && self.queue.is_only_simple(stream) && self.goes_on_with_a_head();
        if !is_all {
            return false;
        }
        encode::plain(out.tail(), cx, plain);
        self.queue.pop(out);
        self.since = cx.now;
        true
    }

    /// Bytes of the response of `stream` that wait for earlier ones; `None` if none can.
    pub fn parked_bytes_of(&self, stream: u32) -> Option<u64> {
        let index = self.queue.index_of(stream).filter(|&index| index > 0)?;
        self.queue.at(index).map(Exchange::parked_bytes)
    }

    /// Whether one request is all there is: it is the only one, complete, and nothing has come after it.
    #[inline]
    fn awaits_nothing_else(&self) -> bool {
        FAST_PATHS && self.queue.len() == 1 && self.goes_on_with_a_head()
    }

    /// Whether the next byte begins another request, which will be taken.
    #[inline]
    fn goes_on_with_a_head(&self) -> bool {
        self.searched == 0 && !self.draining && matches!(self.reading, Reading::Head)
    }

    /// What [`send`](Self::send) comes to for nearly every response: nothing else has to be considered.
    #[inline]
    fn send_alone(
        &mut self,
        cx: &mut Context<'_>,
        action: Action<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let Some(front) = self.queue.at_mut(0) else {
            return Ok(());
        };
        let result = Self::act(front, cx, action, false, out);
        if front.progress == Progress::Done && !front.closes {
            self.queue.pop(out);
            self.since = cx.now;
        } else {
            self.follow_up(0, cx, out);
        }
        result
    }

    #[inline]
    fn act(
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
        action: Action<'_>,
        ends_here: bool,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let result = exchange.act(cx, action, ends_here, out);
        if let Err(fault) = result {
            exchange.fail(cx, fault, ends_here, out);
        }
        result
    }

    /// Takes no further request until `stream` is answered, which may be by [`Action::Switch`]. `false`: it is not
    /// the newest, or something has come after it already.
    pub fn hold(&mut self, stream: u32) -> bool {
        let is_newest = self.queue.index_of(stream) == self.queue.len().checked_sub(1);
        let is_last = is_newest && !self.queue.is_empty() && self.searched == 0;
        let holds = is_last && !self.draining && matches!(self.reading, Reading::Head);
        if holds {
            self.reading = Reading::AwaitsUpgrade;
        }
        holds
    }

    /// The request that was held makes a tunnel of the connection.
    #[cold]
    fn switch(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        protocol: &[u8],
        fields: &Fields,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let is_held = matches!(self.reading, Reading::AwaitsUpgrade);
        let mut result = Err(Fault::ResponseOrder);
        self.with_exchange(index, out, |exchange, out| {
            if is_held {
                result = exchange.switch(cx, protocol, fields, out);
            }
            if let Err(fault) = result {
                exchange.fail(cx, fault, false, out);
            }
        });
        if result.is_ok() {
            self.reading = Reading::Tunnel;
            self.credit = 0;
        }
        self.follow_up(index, cx, out);
        result
    }

    /// The handler of `stream` failed: 500 if nothing was sent for it yet, otherwise the connection is cut.
    pub fn fail(&mut self, cx: &mut Context<'_>, stream: u32, fault: Fault, out: &mut Output) {
        let Some(index) = self.open_index(stream) else {
            return;
        };
        let ends_here = self.ends_with(index, cx.limits);
        self.with_exchange(index, out, |exchange, out| {
            exchange.fail(cx, fault, ends_here, out);
        });
        self.follow_up(index, cx, out);
    }

    /// The application wants up to `bytes` more of the body of `stream`; adds up, `u64::MAX` is all of it.
    ///
    /// Writes `100 Continue` if the client waits for it, as soon as older responses are out of the way.
    pub fn want(&mut self, cx: &mut Context<'_>, stream: u32, bytes: u64, out: &mut Output) {
        let reads_body = matches!(
            self.reading,
            Reading::Exact(_) | Reading::Chunked(_) | Reading::Tunnel
        );
        let is_read = self.queue.index_of(stream) == self.queue.len().checked_sub(1);
        if !reads_body || !is_read || self.queue.is_empty() || self.discarding || bytes == 0 {
            return;
        }
        if self.credit == 0 {
            self.open_window(cx.now);
        }
        self.credit = self.credit.saturating_add(bytes);
        if self.expecting == Expecting::Unasked {
            self.expecting = Expecting::Asked;
            self.continue_if_due(cx, out);
        }
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
        if self.queue.index_of(stream) != self.queue.len().checked_sub(1) {
            return false;
        }
        match &mut self.reading {
            Reading::Chunked(chunked) => chunked.bytes_max = bytes_max,
            Reading::Exact(length) if *length > bytes_max => {
                self.break_body(cx, Fault::BodyTooLong, out);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Whether more input could be used: not while the pipeline is full or the body not wanted, nor once
    /// reading has ended.
    #[inline]
    pub fn wants_input(&self, limits: &Limits) -> bool {
        if self.closing.is_some() || self.peer_finished && !self.unread {
            return false;
        }
        match &self.reading {
            Reading::Head => !self.is_full(limits),
            Reading::Exact(_) | Reading::Chunked(_) => self.body_may_come(),
            Reading::Tunnel => self.credit > 0,
            Reading::AwaitsUpgrade | Reading::Over => false,
        }
    }

    /// When [`expire`](Self::expire) is due if no other call comes first; `None` for never.
    ///
    /// Changes with every other call.
    #[inline]
    pub fn deadline(&self, limits: &Limits) -> Option<Millis> {
        if self.closing.is_some() {
            return None;
        }
        let patience_ms = match &self.reading {
            // A head that must not be read on is not the peer's delay.
            Reading::Head if self.searched > 0 && self.is_full(limits) => 0,
            Reading::Head if self.searched > 0 => limits.head_read_ms,
            Reading::Head if !self.queue.is_empty() => 0,
            Reading::Head if self.fresh => limits.head_read_ms,
            Reading::Head if self.takes_one_more => DRAIN_IDLE_MS,
            Reading::Head => limits.keep_alive_ms,
            Reading::Exact(_) | Reading::Chunked(_) => {
                // Beside a response that streams, the client may be quiet: both directions are in use.
                let streams = self.queue.newest().is_some_and(Exchange::is_begun);
                let is_wanted = self.discarding || self.credit > 0 && !streams;
                let is_awaited = is_wanted && self.expecting == Expecting::Nothing;
                if is_awaited && limits.body_rate_min_bytes_per_s > 0 {
                    limits.body_read_ms
                } else {
                    0
                }
            }
            // Only the application knows how long a tunnel may be silent.
            Reading::AwaitsUpgrade | Reading::Tunnel | Reading::Over => 0,
        };
        (patience_ms > 0).then(|| self.since.saturating_add(patience_ms))
    }

    /// Time has passed; does nothing before the deadline.
    pub fn expire(&mut self, cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>> {
        if self.deadline(cx.limits)? > cx.now {
            return None;
        }
        match &self.reading {
            Reading::Head if self.searched > 0 => {
                self.refuse_head(cx, Fault::HeadTooSlow, out);
                None
            }
            Reading::AwaitsUpgrade | Reading::Tunnel => None,
            Reading::Head | Reading::Over => {
                self.reading = Reading::Over;
                self.closing = Some(Closing::Clean);
                None
            }
            Reading::Exact(_) | Reading::Chunked(_) => {
                let span_ms = cx.now.saturating_sub(self.since);
                let due = cx.limits.body_rate_min_bytes_per_s.saturating_mul(span_ms);
                if self.window_bytes.saturating_mul(1000) < due {
                    return self.break_body(cx, Fault::BodyTooSlow, out);
                }
                self.open_window(cx.now);
                None
            }
        }
    }

    /// Stops taking new requests: responses in flight leave, the last with `connection: close`. Where its head has left
    /// without it, one more request is taken, within [`DRAIN_IDLE_MS`] of the end: it may be under way.
    pub fn drain(&mut self) {
        if self.draining || self.closing.is_some() {
            return;
        }
        self.draining = true;
        let newest = self.queue.newest();
        self.takes_one_more = newest.is_some_and(|newest| newest.is_begun() && !newest.closes)
            && !matches!(self.reading, Reading::Tunnel | Reading::Over);
        if self.takes_one_more {
            return;
        }
        let is_idle = self.queue.is_empty();
        self.lingers |= self.searched > 0 || self.unread || self.discarding || !is_idle;
        if is_idle || matches!(self.reading, Reading::Head) {
            self.reading = Reading::Over;
        }
        if is_idle {
            self.closing = Some(self.kind_of_end());
        }
    }

    /// Answers what is open, then `fault`, and reads no further byte; for reasons this machine does not
    /// know, such as [`Fault::Overloaded`]. `Broken` for a request whose body is incomplete.
    pub fn refuse(
        &mut self,
        cx: &mut Context<'_>,
        fault: Fault,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        match self.reading {
            Reading::AwaitsUpgrade | Reading::Tunnel | Reading::Over => None,
            Reading::Exact(_) | Reading::Chunked(_) => self.break_body(cx, fault, out),
            Reading::Head => {
                self.refuse_head(cx, fault, out);
                None
            }
        }
    }

    /// Set once nothing more will be read or begun: flush the output, then close in this way. Streams
    /// that are open at that moment are over.
    #[inline]
    pub fn closing(&self) -> Option<Closing> {
        self.closing
    }

    /// Bytes of the content of the response that the fault got, or will get when it is its turn; for the log.
    #[cold]
    pub fn fault_response_bytes(&self) -> u64 {
        match (self.fault_response, self.fault) {
            (FaultResponse::Due { head_only: false }, Some(fault)) => encode::fault_bytes(fault),
            _ => 0,
        }
    }

    /// The request whose header section was refused; for the log. `unread` is what [`receive`](Self::receive) has
    /// left over, which begins with that section.
    #[cold]
    pub fn refused_head(&self, unread: &[u8]) -> Option<RefusedHead> {
        let fault = self
            .fault
            .filter(|_| self.fault_response != FaultResponse::None)?;
        let (line, version) = head::request_line_so_far(unread);
        let bytes = self.fault_response_bytes();
        Some(RefusedHead::new(fault, version, line, bytes))
    }

    /// The rule the peer broke, if that is why reading ended; for the log.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Requests whose responses are not complete.
    #[inline]
    pub fn streams_open(&self) -> usize {
        self.queue.n_open()
    }

    /// Whether it has become a tunnel that this side has not ended.
    #[inline]
    pub fn is_tunnel(&self) -> bool {
        let front = self.queue.at(0);
        front.is_some_and(|front| front.progress == Progress::Tunnel)
    }

    /// Whether what is sent for `stream` goes to the output now: it is the oldest unanswered. What is sent
    /// for others is kept until their turn, so let those who stream wait for it.
    #[inline]
    pub fn is_at_front(&self, stream: u32) -> bool {
        self.queue.index_of(stream) == Some(0)
    }

    /// Whether a response to `stream` can still be sent.
    #[inline]
    pub fn is_open(&self, stream: u32) -> bool {
        self.open_index(stream).is_some()
    }

    /// Whether no further request is taken for now: too many are unanswered, too much waits for a
    /// slow one to be answered first, or the next has to wait for all of them.
    #[inline]
    fn is_full(&self, limits: &Limits) -> bool {
        !self.queue.is_empty() && (self.waits_its_turn || self.is_full_behind_others(limits))
    }

    fn is_full_behind_others(&self, limits: &Limits) -> bool {
        self.queue.len() >= pipeline_max(limits)
            || self.queue.parked_bytes() >= limits.write_queue_bytes_max as usize
    }

    /// Whether the request that `input` begins is not taken for now, while others are unanswered.
    ///
    /// RFC 9112 §9.3.2: pipelined requests may be processed in parallel if all of them are safe. One that is not is taken when
    /// those before it are answered, and those behind it when it is.
    #[inline(never)]
    fn has_to_wait(&mut self, input: &[u8], limits: &Limits) -> bool {
        let is_behind_unsafe = self.queue.newest().is_some_and(|newest| newest.is_unsafe);
        let input_of_request = match input.strip_prefix(b"\r\n") {
            // The blank line that is tolerated.
            Some(rest) if !self.blank_line_taken => rest,
            _ => input,
        };
        self.waits_its_turn =
            is_behind_unsafe && !input.is_empty() || begins_unsafe(input_of_request);
        self.is_full(limits)
    }

    /// The position of `stream`, if the application may still say something about it.
    #[inline]
    fn open_index(&self, stream: u32) -> Option<usize> {
        let index = self.queue.index_of(stream)?;
        self.queue.at(index)?.is_open().then_some(index)
    }

    /// Whether a byte of the body that is being read could be used.
    fn body_may_come(&self) -> bool {
        let is_wanted = self.credit > 0 || self.discarding;
        match &self.reading {
            // The framing between two chunks needs no credit, and may be the end.
            Reading::Chunked(chunked) => is_wanted || chunked.is_begun() && !chunked.is_in_data(),
            _ => is_wanted,
        }
    }

    #[inline]
    fn next_event<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>> {
        loop {
            match &mut self.reading {
                Reading::AwaitsUpgrade if self.peer_finished => return self.end_input(cx, out),
                Reading::AwaitsUpgrade | Reading::Over => return None,
                Reading::Tunnel if input.is_empty() && self.peer_finished => {
                    return self.end_input(cx, out);
                }
                Reading::Tunnel => return self.take_raw(input),
                Reading::Head => {
                    if !self.queue.is_empty() && self.has_to_wait(input, cx.limits) {
                        return None;
                    }
                    match self.take_head(cx, input) {
                        Ok(Some(head)) => return Some(self.begin(head).into()),
                        Ok(None) if self.peer_finished => return self.end_input(cx, out),
                        Ok(None) => return None,
                        Err(fault) => {
                            self.refuse_head(cx, fault, out);
                            return None;
                        }
                    }
                }
                Reading::Exact(_) | Reading::Chunked(_) => {
                    let piece = match self.take_body(cx, input) {
                        Ok(piece) => piece,
                        Err(fault) => return self.break_body(cx, fault, out),
                    };
                    match piece {
                        Piece::Data(bytes) => {
                            self.note_data(bytes.len());
                            if !self.discarding {
                                let stream = self.queue.newest_stream();
                                return Some(Event::Data { stream, bytes });
                            }
                        }
                        Piece::End(trailers) => {
                            if let Some(event) = self.end_body(cx, trailers, out) {
                                return Some(event);
                            }
                        }
                        Piece::Starved if self.peer_finished => return self.end_input(cx, out),
                        Piece::Starved | Piece::NoCredit => return None,
                    }
                }
            }
        }
    }

    /// Takes a complete head off `input`, if there is one.
    #[inline]
    fn take_head(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &[u8],
    ) -> Result<Option<Box<Head>>, Fault> {
        if self.searched == 0 && !self.find_start(input)? {
            return Ok(None);
        }
        let window = head_window(input, cx.limits);
        let mut head = cx.heads.take();
        if self.searched == 0
            && let Ok(length) = head::parse(window, cx.limits, &mut head)
        {
            *input = input.get(length..).unwrap_or_default();
            return Ok(Some(head));
        }
        let result = self.take_arriving_head(cx, window, &mut head);
        match result {
            Ok(Some(length)) => {
                *input = input.get(length..).unwrap_or_default();
                Ok(Some(head))
            }
            Ok(None) => {
                cx.heads.give(head);
                Ok(None)
            }
            Err(fault) => {
                cx.heads.give(head);
                Err(fault)
            }
        }
    }

    /// The way of heads that come in pieces or are broken: first find the end, then read.
    #[cold]
    fn take_arriving_head(
        &mut self,
        cx: &Context<'_>,
        window: &[u8],
        head: &mut Head,
    ) -> Result<Option<usize>, Fault> {
        let Some(length) = head::search(window, self.searched as usize, cx.limits)? else {
            if self.searched == 0 && !self.fresh {
                self.since = cx.now;
            }
            self.searched = u32::try_from(window.len()).unwrap_or(u32::MAX);
            return Ok(None);
        };
        head.clear();
        let complete = window.get(..length).unwrap_or_default();
        match head::parse(complete, cx.limits, head) {
            Ok(length) => Ok(Some(length)),
            Err(Stop::Fault(fault)) => Err(fault),
            // A complete head ends in CRLF CRLF, so only a lone CR can make it look unfinished.
            Err(Stop::Partial) => Err(Fault::LineEnding),
        }
    }

    /// Whether a request line begins; takes one blank line before it.
    ///
    /// RFC 9112 §2.2 asks for that leniency: clients of the nineties, and scripts that post a body with a
    /// line end too many, send one CRLF. A second one has no such excuse.
    #[inline]
    fn find_start(&mut self, input: &mut &[u8]) -> Result<bool, Fault> {
        loop {
            match *input {
                [byte, ..] if scan::is_token(*byte) => return Ok(true),
                [b'\r', ..] if self.blank_line_taken => return Err(Fault::RequestLineSyntax),
                [] | [b'\r'] => return Ok(false),
                [b'\r', b'\n', rest @ ..] => {
                    self.blank_line_taken = true;
                    *input = rest;
                }
                [b'\r' | b'\n', ..] => return Err(Fault::LineEnding),
                [b' ', ..] => return Err(Fault::RequestLineSyntax),
                _ => return Err(Fault::MethodSyntax),
            }
        }
    }

    /// A request is taken.
    #[inline]
    fn begin(&mut self, head: Box<Head>) -> Request {
        let exchange = Exchange::new(&head);
        let closes = exchange.closes;
        let stream = self.queue.push(exchange);
        self.fresh = false;
        self.searched = 0;
        self.blank_line_taken = false;
        self.waits_its_turn = false;
        self.reading = match head.body {
            BodyLength::None if closes => Reading::Over,
            BodyLength::None => Reading::Head,
            BodyLength::Exact(length) => Reading::Exact(length),
            BodyLength::Chunked => Reading::Chunked(Chunked::new()),
        };
        let ended = head.body == BodyLength::None;
        if !ended {
            self.credit = 0;
            self.expecting = if head.expects_continue {
                Expecting::Unasked
            } else {
                Expecting::Nothing
            };
        }
        Request {
            stream,
            head,
            ended,
        }
    }

    /// The next piece of the body that is being read.
    fn take_body<'i>(
        &mut self,
        cx: &Context<'_>,
        input: &mut &'i [u8],
    ) -> Result<Piece<'i>, Fault> {
        let may_come = self.body_may_come();
        match &mut self.reading {
            Reading::Exact(0) => Ok(Piece::End(Fields::EMPTY)),
            Reading::Exact(_) if input.is_empty() => Ok(Piece::Starved),
            Reading::Exact(left) => {
                let size = usize::try_from(self.credit.min(*left)).unwrap_or(usize::MAX);
                let (data, rest) = input.split_at_checked(size).unwrap_or((*input, &[]));
                if data.is_empty() {
                    return Ok(Piece::NoCredit);
                }
                *left = left.saturating_sub(data.len() as u64);
                *input = rest;
                Ok(Piece::Data(data))
            }
            Reading::Chunked(_) if !may_come && !input.is_empty() => Ok(Piece::NoCredit),
            Reading::Chunked(chunked) => {
                let before = input.len();
                let piece = chunked.decode(input, self.credit, &cx.limits.into());
                if input.len() < before && self.expecting != Expecting::Nothing {
                    self.expecting = Expecting::Nothing;
                    self.open_window(cx.now);
                }
                piece
            }
            Reading::Head | Reading::AwaitsUpgrade | Reading::Tunnel | Reading::Over => {
                Ok(Piece::Starved)
            }
        }
    }

    /// The next bytes of a tunnel, as many as are wanted.
    #[inline]
    fn take_raw<'i>(&mut self, input: &mut &'i [u8]) -> Option<Event<'i>> {
        let size = usize::try_from(self.credit).unwrap_or(usize::MAX);
        let (bytes, rest) = input.split_at_checked(size).unwrap_or((*input, &[]));
        if bytes.is_empty() {
            return None;
        }
        *input = rest;
        self.credit = self.credit.saturating_sub(bytes.len() as u64);
        let stream = self.queue.newest_stream();
        Some(Event::Data { stream, bytes })
    }

    fn note_data(&mut self, n_bytes: usize) {
        self.credit = self.credit.saturating_sub(n_bytes as u64);
        self.window_bytes = self.window_bytes.saturating_add(n_bytes as u64);
        self.expecting = Expecting::Nothing;
    }

    /// The body is complete.
    fn end_body(
        &mut self,
        cx: &mut Context<'_>,
        trailers: Fields,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        self.expecting = Expecting::Nothing;
        let closes = self.queue.newest().is_some_and(|newest| newest.closes);
        let stays = !closes && !self.ends_unasked();
        self.reading = if stays { Reading::Head } else { Reading::Over };
        if self.discarding {
            self.discarding = false;
            self.advance(cx, out);
            return None;
        }
        Some(Event::End {
            stream: self.queue.newest_stream(),
            trailers,
        })
    }

    /// Ends the input: an incomplete request stays incomplete.
    fn end_input(&mut self, cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>> {
        match &self.reading {
            Reading::Over => {}
            Reading::Head if self.searched > 0 => self.refuse_head(cx, Fault::Truncated, out),
            Reading::Head | Reading::AwaitsUpgrade => self.stop_reading(cx, out),
            Reading::Tunnel => {
                self.reading = Reading::Over;
                return Some(Event::End {
                    stream: self.queue.newest_stream(),
                    trailers: Fields::EMPTY,
                });
            }
            Reading::Exact(_) | Reading::Chunked(_) => {
                return self.break_body(cx, Fault::Truncated, out);
            }
        }
        None
    }

    /// The next request is not understood, or not wanted.
    #[cold]
    fn refuse_head(&mut self, cx: &mut Context<'_>, fault: Fault, out: &mut Output) {
        self.reading = Reading::Over;
        self.lingers = true;
        self.fault = Some(fault);
        self.fault_response = FaultResponse::Due { head_only: false };
        self.advance(cx, out);
    }

    /// The body that is being read will never be complete.
    #[cold]
    fn break_body(
        &mut self,
        cx: &mut Context<'_>,
        fault: Fault,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        self.fault = Some(fault);
        if self.discarding {
            self.stop_reading(cx, out);
            return None;
        }
        self.reading = Reading::Over;
        self.lingers = true;
        let stream = self.queue.newest_stream();
        match self.queue.newest_mut() {
            // What was said stays true, and the response is complete without the body's rest.
            Some(newest) if newest.is_begun() && fault == Fault::BodyTooLong => {
                self.advance(cx, out);
                return Some(Event::BodyRefused { stream, fault });
            }
            Some(newest) if newest.is_begun() => newest.progress = Progress::Cut,
            Some(newest) => {
                let head_only = newest.head_only;
                self.queue.remove_newest();
                self.fault_response = FaultResponse::Due { head_only };
            }
            None => {}
        }
        self.advance(cx, out);
        Some(Event::Broken { stream, fault })
    }

    /// No further byte is read; what is open is still answered.
    fn stop_reading(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        self.lingers |= self.discarding || self.unread;
        self.discarding = false;
        self.reading = Reading::Over;
        self.advance(cx, out);
    }

    /// Whether the response at `index`, of which the head is about to be written, is the last of this
    /// connection.
    ///
    /// A response that leaves a body unread keeps the connection only if all of the rest may be dropped, and
    /// then it is: a client that is not told of the end sends its next request on this connection, and loses it. How
    /// much of a chunked body is to come is not known.
    #[inline]
    fn ends_with(&self, index: usize, limits: &Limits) -> bool {
        if !self.queue.is_newest(index) {
            return false;
        }
        let rest = match self.rest_of_body() {
            Rest::Nothing => return self.draining,
            rest => rest,
        };
        // RFC 9110 §10.1.1: a client that waited for 100 and got a final response may send the body or not;
        // its next bytes could be either the body or a request.
        self.draining
            || self.expecting != Expecting::Nothing
            || !matches!(rest, Rest::Known(n) if n <= limits.discard_bytes_max)
    }

    /// Whether a drain ends reading with the newest request.
    #[inline]
    fn ends_unasked(&self) -> bool {
        self.draining && !self.takes_one_more
    }

    #[inline]
    fn rest_of_body(&self) -> Rest {
        match &self.reading {
            Reading::Head
            | Reading::AwaitsUpgrade
            | Reading::Tunnel
            | Reading::Over
            | Reading::Exact(0) => Rest::Nothing,
            Reading::Exact(left) => Rest::Known(*left),
            Reading::Chunked(_) => Rest::Unknown,
        }
    }

    /// Calls `act` with the exchange at `index` and the output its bytes go to for now.
    #[inline]
    fn with_exchange(
        &mut self,
        index: usize,
        out: &mut Output,
        act: impl FnOnce(&mut Exchange, &mut Output),
    ) {
        let Some(exchange) = self.queue.at_mut(index) else {
            return;
        };
        if index == 0 {
            act(exchange, out);
        } else {
            let mut parked = exchange.unpark();
            let before = parked.len();
            act(exchange, &mut parked);
            let added = parked.len().saturating_sub(before);
            exchange.park(parked);
            self.queue.add_parked(added);
        }
    }

    /// Draws the conclusions of what was said for the exchange at `index`.
    #[inline]
    fn follow_up(&mut self, index: usize, cx: &mut Context<'_>, out: &mut Output) {
        let Some(exchange) = self.queue.at(index) else {
            return;
        };
        let (progress, closes) = (exchange.progress, exchange.closes);
        let peer_closes = exchange.peer_closes;
        if progress == Progress::AwaitsResponse {
            return;
        }
        let is_newest = self.queue.is_newest(index);
        if progress == Progress::Cut || closes && !is_newest {
            // No response follows this one: later requests of the connection are dropped.
            self.queue.truncate_behind(index);
            self.reading = Reading::Over;
            self.discarding = false;
            self.lingers = true;
        } else if is_newest {
            self.end_reading_with(cx, progress == Progress::Done, closes, peer_closes);
        }
        if index == 0 && matches!(progress, Progress::Done | Progress::Cut) {
            self.advance(cx, out);
        }
    }

    /// The newest response has begun, and is complete if `done`: what becomes of the reading half?
    #[inline]
    fn end_reading_with(&mut self, cx: &Context<'_>, done: bool, closes: bool, peer_closes: bool) {
        if closes && !peer_closes {
            self.lingers = true;
        }
        match self.rest_of_body() {
            Rest::Nothing => {
                if closes || self.ends_unasked() {
                    self.end_reading_if_complete(done);
                } else if done && matches!(self.reading, Reading::Exact(0) | Reading::AwaitsUpgrade)
                {
                    self.reading = Reading::Head;
                }
            }
            rest => {
                self.expecting = Expecting::Nothing;
                if !done {
                    return;
                }
                match rest {
                    Rest::Known(bytes) if !closes && !self.ends_unasked() => {
                        self.discarding = true;
                        self.credit = bytes;
                        self.open_window(cx.now);
                    }
                    _ => {
                        self.reading = Reading::Over;
                        self.lingers = true;
                    }
                }
            }
        }
    }

    /// Ends reading, unless the end of a body is still to be told, or a tunnel is in use.
    fn end_reading_if_complete(&mut self, done: bool) {
        if done || !matches!(self.reading, Reading::Exact(_) | Reading::Tunnel) {
            self.reading = Reading::Over;
        }
    }

    /// Lets responses leave whose turn has come, and ends the connection where it is to end.
    #[inline]
    fn advance(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        while let Some(front) = self.queue.at(0) {
            match front.progress {
                Progress::Done if front.closes => {
                    self.queue.clear();
                    self.closing = Some(self.kind_of_end());
                    return;
                }
                Progress::Done => {
                    let was_held = self.searched > 0 && self.is_full(cx.limits);
                    self.queue.pop(out);
                    if was_held {
                        self.since = cx.now;
                    }
                }
                Progress::Cut => {
                    self.queue.clear();
                    self.reading = Reading::Over;
                    self.closing = Some(Closing::Abort);
                    return;
                }
                _ => {
                    self.continue_if_due(cx, out);
                    return;
                }
            }
        }
        match self.reading {
            Reading::Over => self.end(cx, out),
            Reading::Head if self.searched == 0 => self.since = cx.now,
            _ => {}
        }
    }

    /// The queue is empty and nothing more is read: last words, and the end.
    #[cold]
    fn end(&mut self, cx: &Context<'_>, out: &mut Output) {
        if self.closing.is_some() {
            return;
        }
        if let (FaultResponse::Due { head_only }, Some(fault)) = (self.fault_response, self.fault) {
            encode::fault(out, cx, fault, Persistence::Close, head_only);
        }
        self.closing = Some(self.kind_of_end());
    }

    fn kind_of_end(&self) -> Closing {
        if !self.peer_finished && (self.lingers || self.unread) {
            Closing::Linger
        } else {
            Closing::Clean
        }
    }

    /// Writes `100 Continue` if it is due: asked for, at the front, and before the final response.
    fn continue_if_due(&mut self, cx: &Context<'_>, out: &mut Output) {
        let is_turn = self.queue.len() == 1 && self.queue.at(0).is_some_and(|e| !e.is_begun());
        if self.expecting == Expecting::Asked && is_turn {
            self.expecting = Expecting::Nothing;
            self.open_window(cx.now);
            out.tail()
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    fn open_window(&mut self, now: Millis) {
        self.since = now;
        self.window_bytes = 0;
    }
}

/// Whether `input` begins a request with a method that is not safe. Where it is none, the parser has to say so.
fn begins_unsafe(input: &[u8]) -> bool {
    const SAFE: [&[u8]; 4] = [b"GET ", b"HEAD ", b"OPTIONS ", b"TRACE "];
    let is_token = input.first().is_some_and(|&byte| scan::is_token(byte));
    let begins = |method: &[u8]| input.starts_with(method) || method.starts_with(input);
    is_token && !SAFE.into_iter().any(begins)
}

/// As much of `input` as a head may take up.
#[inline]
fn head_window<'i>(input: &'i [u8], limits: &Limits) -> &'i [u8] {
    input.get(..limits.head_bytes_max as usize).unwrap_or(input)
}

/// Requests that may wait for their responses; without one there would be no service at all.
#[inline]
fn pipeline_max(limits: &Limits) -> usize {
    (limits.pipeline_max as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Connection>() < 200, "{}", size_of::<Connection>());
    }
}
