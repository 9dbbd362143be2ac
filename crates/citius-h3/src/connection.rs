//! One connection: what it knows, and the methods that are not about bytes coming in ([`receive`](crate::receive),
//! [`critical`](crate::critical)), responses ([`response`](crate::response)), bytes going out ([`write`](crate::write)) or
//! WebTransport ([`session`](crate::session)).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use citius_http::multiplexed::{Early, Scratch, is_malformed};
use citius_http::{Closing, Event, Fault, Limits, Millis, RefusedHead};
use citius_qpack::Decoder;

use crate::budget::Budget;
use crate::code::Code;
use crate::critical::{Control as ClientControl, Uni};
use crate::frame;
use crate::last_sections::{LastSection, Template};
use crate::seam::{Context, Control, Incoming, Options, SessionEvent, Token};
use crate::session::Sessions;
use crate::settings::{self, Settings};
use crate::stream::{
    Broken, Direct, Expecting, Phase, Reading, Sender, Stream, Streams, Turn, quic,
};
use crate::varint;

/// A stream that the server has opened for itself.
#[derive(Debug, Default)]
pub(crate) struct Local {
    /// `None` until QUIC has opened it.
    pub(crate) stream: Option<u64>,
    pub(crate) sender: Sender,
}

/// How far the server has taken leave (RFC 9114 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// Not at all.
    No,
    /// The client was told to stop, and may have sent requests before it knew: until then they are taken.
    Announced { until: Millis },
    /// The client was told which request is the last.
    Final,
}

/// One HTTP/3 connection, server side.
///
/// Duties of the caller:
/// - bytes of the client's streams go to [`receive`](Self::receive), in the order of each stream, and no more of a stream than
///   [`appetite`](Self::appetite) says: what is left in QUIC's buffers holds the client back;
/// - after every call but the queries: take events of [`next_event`](Self::next_event) until there is none, then
///   [`next_control`](Self::next_control), then send ([`next_to_send`](Self::next_to_send), [`outgoing`](Self::outgoing),
///   [`taken`](Self::taken));
/// - call [`expire`](Self::expire) at the [`deadline`](Self::deadline).
#[derive(Debug)]
pub struct Connection {
    pub(crate) options: Options,
    pub(crate) decoder: Decoder,
    pub(crate) template: Template,
    /// Where field sections are put together; kept for its memory.
    pub(crate) section: Vec<u8>,
    pub(crate) scratch: Scratch,
    pub(crate) last_section: Option<Box<LastSection>>,
    pub(crate) streams: Streams,
    /// The number of the first request that has not begun.
    pub(crate) next_stream: u32,
    /// Requests before it that have not begun either: QUIC may bring streams out of order.
    pub(crate) unseen: Vec<u32>,
    /// The first of the requests that are not taken, because GOAWAY has told so.
    pub(crate) rejected_from: Option<u32>,
    /// Requests whose sections wait for so many insertions.
    pub(crate) blocked: Vec<(u64, u32)>,
    /// Priorities that have come before their requests.
    pub(crate) early: Early,
    pub(crate) budget: Budget,
    /// The client's unidirectional streams.
    pub(crate) unis: Vec<Uni>,
    /// The last of them that are not looked at.
    pub(crate) ignored_unis: VecDeque<u64>,
    pub(crate) client_control: ClientControl,
    /// The start of an instruction of the client's QPACK decoder.
    pub(crate) decoder_instructions: Vec<u8>,
    pub(crate) peer: Settings,
    pub(crate) sessions: Sessions,
    pub(crate) control: Local,
    pub(crate) acknowledgements: Local,
    /// Streams of which something is to be sent.
    pub(crate) turns: Vec<Turn>,
    /// Counts turns among streams that share.
    pub(crate) n_served: u32,
    /// Memory of outputs that are empty.
    pub(crate) spare: Vec<Vec<u8>>,
    pub(crate) controls: VecDeque<Control>,
    /// Requests of which something waits to be told.
    pub(crate) ready: VecDeque<u32>,
    /// Requests that are over, to be told.
    pub(crate) broken: VecDeque<Broken>,
    /// What was sent for the fault of the request that was told last to be over.
    pub(crate) fault_response_bytes: u64,
    /// Requests whose heads were refused since they were taken last. The budget of resets bounds them.
    pub(crate) refused: Vec<RefusedHead>,
    /// The handshake, or the end of the last response.
    pub(crate) since: Millis,
    /// When streams are to be looked at that may have come to a standstill.
    pub(crate) stall_check_at: Option<Millis>,
    pub(crate) shutdown: Shutdown,
    pub(crate) fault: Option<Fault>,
    pub(crate) closing: Option<Closing>,
    /// No request was taken so far.
    pub(crate) fresh: bool,
    /// It is one session without HTTP/3.
    pub(crate) direct: Option<Box<Direct>>,
}

impl Connection {
    /// A connection whose handshake is complete at `now`.
    pub fn new(now: Millis, options: Options, limits: &Limits) -> Self {
        let mut connection = Self {
            options,
            decoder: Decoder::new(limits.h3_table_bytes),
            template: Template::default(),
            section: Vec::new(),
            scratch: Scratch::default(),
            last_section: None,
            streams: Streams::default(),
            next_stream: 0,
            unseen: Vec::new(),
            rejected_from: None,
            blocked: Vec::new(),
            early: Early::default(),
            budget: Budget::new(now),
            unis: Vec::new(),
            ignored_unis: VecDeque::new(),
            client_control: ClientControl::default(),
            decoder_instructions: Vec::new(),
            peer: Settings::default(),
            sessions: Sessions::default(),
            control: Local::default(),
            acknowledgements: Local::default(),
            turns: Vec::new(),
            n_served: 0,
            spare: Vec::new(),
            controls: VecDeque::new(),
            ready: VecDeque::new(),
            broken: VecDeque::new(),
            fault_response_bytes: 0,
            refused: Vec::new(),
            since: now,
            stall_check_at: None,
            shutdown: Shutdown::No,
            fault: None,
            closing: None,
            fresh: true,
            direct: None,
        };
        let tail = connection.control.sender.output.tail();
        varint::put(tail, 0x0);
        frame::whole(tail, frame::SETTINGS, &settings::announced(limits, options));
        connection
            .controls
            .push_back(Control::OpenUni(Token::Control));
        if limits.h3_table_bytes > 0 {
            varint::put(connection.acknowledgements.sender.output.tail(), 0x3);
            connection
                .controls
                .push_back(Control::OpenUni(Token::Decoder));
        }
        connection
    }

    /// The QUIC stream of the request `stream`.
    #[inline]
    pub const fn quic_stream(stream: u32) -> u64 {
        quic(stream)
    }

    /// The QUIC connection is over, by the client's doing or its silence: requests that are open are broken.
    pub fn lost(&mut self, _cx: &mut Context<'_>) {
        if self.closing.is_some() {
            return;
        }
        self.closing = Some(Closing::Abort);
        for stream in self.streams.iter() {
            if stream.was_told() {
                self.broken.push_back(Broken {
                    stream: stream.id,
                    fault: Fault::StreamReset,
                    is_answered: false,
                    response_bytes: 0,
                });
            }
        }
        self.forget_all();
    }

    /// The next event that needs no input.
    pub fn next_event(&mut self, cx: &mut Context<'_>) -> Option<Incoming<'static>> {
        if let Some(event) = self.next_broken() {
            return Some(Incoming::Http(event));
        }
        if self.direct.is_some()
            && let Some(event) = self.next_of_direct(cx)
        {
            return Some(Incoming::Http(event));
        }
        if let Some(event) = self.sessions.events.pop_front() {
            return Some(Incoming::Session(event));
        }
        while let Some(&id) = self.ready.front() {
            if let Some(event) = self.resume(cx, id) {
                return Some(event);
            }
            self.ready.pop_front();
            if let Some(event) = self.next_broken() {
                return Some(Incoming::Http(event));
            }
        }
        self.resume_session_stream()
    }

    /// Whether [`next_event`](Self::next_event) may have something to tell.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.broken.is_empty()
            || !self.ready.is_empty()
            || self.sessions.has_events()
            || self.direct_has_events()
    }

    /// The application wants up to `bytes` more of the body of `stream`; adds up, `u64::MAX` is all of it.
    ///
    /// Writes `100 Continue` if the client waits for it.
    pub fn want(&mut self, cx: &mut Context<'_>, stream: u32, bytes: u64) {
        let Some(index) = self.streams.index_of(stream) else {
            return;
        };
        let Some(found) = self.streams.at_mut(index) else {
            return;
        };
        if bytes == 0 || found.state.is_remote_closed() {
            return;
        }
        if found.credit == 0 {
            found.body_at = cx.now;
            found.body_bytes = 0;
        }
        found.credit = found.credit.saturating_add(bytes);
        let is_due = found.expecting == Expecting::Unasked;
        found.expecting = Expecting::Nothing;
        if !found.unread.is_empty() || found.has_ended {
            self.ready.push_back(stream);
        } else if is_due && found.state.awaits_headers() {
            self.write_continue(index);
        }
        self.check_stalled_by(cx.now.saturating_add(cx.limits.body_read_ms));
    }

    /// The body of `stream` may have at most `bytes_max` bytes. Call it before any of it is wanted.
    ///
    /// A longer one is answered with [`Fault::BodyTooLong`]: where its length is announced now, without an event, and
    /// `true` is returned; otherwise when it becomes longer.
    pub fn limit_body(&mut self, cx: &mut Context<'_>, stream: u32, bytes_max: u64) -> bool {
        let Some(found) = self.streams.find_mut(stream) else {
            return false;
        };
        found.body_bytes_max = bytes_max;
        if found.expected.is_none_or(|length| length <= bytes_max) {
            return false;
        }
        if let Err(fault) = self.budget.reset(cx.now, cx.limits) {
            self.end_with(fault);
            self.fault_response_bytes = 0;
        } else {
            self.fault_response_bytes = self.end_stream(cx, stream, Fault::BodyTooLong);
        }
        true
    }

    /// When [`expire`](Self::expire) is due if no other call comes first; `None` for never.
    ///
    /// Changes with every other call.
    pub fn deadline(&self, limits: &Limits) -> Option<Millis> {
        if self.closing.is_some() {
            return None;
        }
        if !self.broken.is_empty() {
            return Some(0);
        }
        let idle_ms = if self.fresh {
            limits.head_read_ms
        } else {
            limits.keep_alive_ms
        };
        let idle = (self.is_idle() && idle_ms > 0).then(|| self.since.saturating_add(idle_ms));
        let leaving = match self.shutdown {
            Shutdown::Announced { until } => Some(until),
            _ => None,
        };
        [idle, leaving, self.stall_check_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Time has passed; does nothing before the deadline.
    pub fn expire(&mut self, cx: &mut Context<'_>) {
        if self.deadline(cx.limits).is_none_or(|at| at > cx.now) {
            return;
        }
        if let Shutdown::Announced { until } = self.shutdown
            && until <= cx.now
        {
            self.send_final_goaway();
        } else if self.stall_check_at.is_some_and(|at| at <= cx.now) {
            self.check_stalled(cx);
        } else if self.is_idle() && self.broken.is_empty() {
            self.send_final_goaway();
        }
    }

    /// Stops taking new requests: the client is told so (§5.2), and a little later, when requests that crossed that have come,
    /// which of them was the last. Those behind it are rejected, which tells a client to repeat them elsewhere.
    pub fn drain(&mut self, cx: &mut Context<'_>) {
        if self.shutdown != Shutdown::No || self.closing.is_some() {
            return;
        }
        if self.direct.is_none() {
            self.write_goaway(varint::MAX & !3);
            self.drain_sessions();
        }
        // What comes late is taken: the client cannot have known.
        self.shutdown = Shutdown::Announced {
            until: cx.now.saturating_add(PAUSE_MS),
        };
    }

    /// Ends the connection for reasons that this machine does not know, such as [`Fault::Overloaded`].
    pub fn refuse(&mut self, fault: Fault) {
        if self.closing.is_none() {
            self.end_with(fault);
        }
    }

    /// Set once nothing more will be read or begun. [`Control::Close`] tells when to close.
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

    /// Whether no request is open and no response is on its way. Streams that wait for a session to be granted do not keep a
    /// connection in use.
    #[inline]
    pub fn is_idle(&self) -> bool {
        let has_sessions = match self.direct {
            Some(_) => !self.sessions.is_empty(),
            None => self.sessions.has_open(),
        };
        self.streams.is_empty() && !has_sessions
    }

    /// Bytes of the response of `stream` that may be sent before its queue is full; 0 once it is over.
    pub fn write_capacity(&self, stream: u32, limits: &Limits) -> usize {
        match self.streams.find(stream) {
            Some(stream) if stream.is_open() => {
                (limits.write_queue_bytes_max as usize).saturating_sub(stream.sender.output.len())
            }
            _ => 0,
        }
    }

    /// Bytes of the response of `stream` that QUIC has not taken; `None` if there are none.
    pub fn waiting_bytes_of(&self, stream: u32) -> Option<u64> {
        let stream = self.streams.find(stream)?;
        stream
            .sender
            .is_due()
            .then(|| stream.sender.output.len() as u64)
    }

    // --- among ourselves ----------------------------------------------------------------------

    /// The connection ends for a fault: the last word is the code.
    #[cold]
    pub(crate) fn end_with(&mut self, fault: Fault) {
        if self.closing.is_some() {
            return;
        }
        self.fault = Some(fault);
        self.closing = Some(Closing::Abort);
        self.forget_all();
        let code = match Code::of(fault) {
            // Of a connection it is no message that is malformed.
            Code::Message => Code::GeneralProtocol,
            code => code,
        };
        self.controls.push_back(Control::Close {
            code: code.number(),
            reason: fault.told(),
        });
    }

    /// Nothing more is sent or told.
    #[cold]
    fn forget_all(&mut self) {
        self.streams.clear();
        self.turns.clear();
        self.ready.clear();
        self.blocked.clear();
        self.unis.clear();
        self.sessions.clear();
        self.controls.clear();
        self.stall_check_at = None;
    }

    /// A request ends for a fault that the application has to know of.
    #[cold]
    pub(crate) fn break_stream(&mut self, cx: &mut Context<'_>, id: u32, fault: Fault) {
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        let was_told = stream.was_told();
        let was_delivered = stream.state.is_remote_closed();
        let is_open = stream.is_open();
        // Complete for the application, and its client will never have all of it.
        let is_cut = stream.sender.is_due();
        let response_bytes = self.end_stream(cx, id, fault);
        if was_told && (is_open || !was_delivered || is_cut) {
            self.broken.push_back(Broken {
                stream: id,
                fault,
                is_answered: false,
                response_bytes,
            });
        }
    }

    /// No more of a body is read, and its response, which has begun, goes on (RFC 9114 §4.1).
    #[cold]
    pub(crate) fn refuse_body(&mut self, id: u32, fault: Fault) {
        let Some(stream) = self.streams.find_mut(id) else {
            return;
        };
        stream.reading = Reading::Over;
        stream.unread = bytes::Bytes::new();
        let (quic, is_open) = (stream.quic(), stream.is_open());
        // As if the client had ended it, which the application is not told.
        let had_ended = core::mem::replace(&mut stream.has_ended, true);
        if is_open {
            self.broken.push_back(Broken {
                stream: id,
                fault,
                is_answered: true,
                response_bytes: 0,
            });
        }
        if !had_ended {
            self.controls.push_back(Control::StopSending {
                stream: quic,
                code: Code::NoError.number(),
            });
        }
    }

    /// A request ends for a fault: with its status where that can still be said. Returns the bytes of content that are
    /// sent with it.
    #[cold]
    pub(crate) fn end_stream(&mut self, cx: &mut Context<'_>, id: u32, fault: Fault) -> u64 {
        let Some(index) = self.streams.index_of(id) else {
            return 0;
        };
        let Some(stream) = self.streams.at(index) else {
            return 0;
        };
        self.since = cx.now;
        let may_respond = stream.state.awaits_headers()
            && !is_malformed(fault)
            && !matches!(fault, Fault::StreamReset | Fault::RequestIncomplete);
        if may_respond {
            if let Some(stream) = self.streams.at_mut(index) {
                stream.reading = Reading::Over;
                stream.unread = bytes::Bytes::new();
            }
            return self.respond_to_fault(cx, index, fault);
        }
        self.drop_stream(id, Some(Code::of(fault)));
        0
    }

    /// Forgets a request, and resets both sides of its stream with `code`.
    pub(crate) fn drop_stream(&mut self, id: u32, code: Option<Code>) {
        let Some(mut stream) = self.streams.remove(id) else {
            return;
        };
        let quic = stream.quic();
        if stream.sender.is_due() {
            self.turns.retain(|turn| turn.stream != quic);
        }
        self.keep_memory(&mut stream.sender);
        if stream.reading == Reading::WholeSection || matches!(stream.reading, Reading::Section(_))
        {
            self.blocked.retain(|&(_, blocked)| blocked != id);
            self.cancel_section(quic);
        }
        if stream.asks_session || !self.sessions.is_empty() {
            // Streams may wait for a session that this request was not.
            self.end_session(id);
        }
        if let Some(code) = code {
            let code = code.number();
            self.controls
                .push_back(Control::Reset { stream: quic, code });
            if !stream.has_ended {
                self.controls
                    .push_back(Control::StopSending { stream: quic, code });
            }
        }
        self.close_if_done();
    }

    /// A stream is not looked at: both of its sides are reset.
    pub(crate) fn reject(&mut self, stream: u64, code: Code) {
        let code = code.number();
        // Of a unidirectional stream there is one side.
        let is_ours = stream & 1 == 1;
        if stream & 2 == 0 || is_ours {
            self.controls.push_back(Control::Reset { stream, code });
        }
        if stream & 2 == 0 || !is_ours {
            self.controls
                .push_back(Control::StopSending { stream, code });
        }
    }

    /// Streams are to be looked at no later than `at`.
    #[inline]
    pub(crate) fn check_stalled_by(&mut self, at: Millis) {
        self.stall_check_at = Some(self.stall_check_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// The next request that is over.
    #[inline]
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
    fn send_final_goaway(&mut self) {
        let first = self.next_stream;
        self.rejected_from = Some(first);
        self.shutdown = Shutdown::Final;
        self.write_goaway(quic(first));
        self.close_if_done();
    }

    fn write_goaway(&mut self, stream: u64) {
        if self.direct.is_some() {
            return;
        }
        let mut payload = Vec::new();
        varint::put(&mut payload, stream);
        frame::whole(self.control.sender.output.tail(), frame::GOAWAY, &payload);
        self.schedule_control();
    }

    /// Ends the connection where it is to end.
    #[inline]
    pub(crate) fn close_if_done(&mut self) {
        if self.direct.is_some() {
            return self.close_direct();
        }
        if self.shutdown == Shutdown::Final && self.is_idle() && self.closing.is_none() {
            self.closing = Some(Closing::Clean);
            self.controls.push_back(Control::Close {
                code: Code::NoError.number(),
                reason: "",
            });
        }
    }

    /// Looks for requests that have come to a standstill.
    fn check_stalled(&mut self, cx: &mut Context<'_>) {
        self.stall_check_at = None;
        let limits = cx.limits;
        let mut next: Option<Millis> = None;
        let mut stuck: Vec<(u32, Fault)> = Vec::new();
        let mut late: Vec<u32> = Vec::new();
        let mut due = |at: Millis| next = Some(next.map_or(at, |earlier| earlier.min(at)));
        for stream in self.streams.iter_mut() {
            if stream.phase == Phase::Head && limits.head_read_ms > 0 {
                let until = stream.body_at.saturating_add(limits.head_read_ms);
                if until <= cx.now {
                    late.push(stream.id);
                } else {
                    due(until);
                }
            }
            if stream.awaits_body()
                && limits.body_rate_min_bytes_per_s > 0
                && limits.body_read_ms > 0
            {
                let span_ms = cx.now.saturating_sub(stream.body_at);
                if span_ms >= limits.body_read_ms {
                    let least = limits.body_rate_min_bytes_per_s.saturating_mul(span_ms);
                    if stream.body_bytes.saturating_mul(1000) < least {
                        stuck.push((stream.id, Fault::BodyTooSlow));
                    }
                    stream.body_at = cx.now;
                    stream.body_bytes = 0;
                }
                due(stream.body_at.saturating_add(limits.body_read_ms));
            }
            if stream.sender.is_due() && limits.write_stall_ms > 0 {
                let sender = &mut stream.sender;
                let span_ms = cx.now.saturating_sub(sender.waiting_at);
                if span_ms >= limits.write_stall_ms {
                    let least = u64::from(limits.h2_stall_bytes_min);
                    if sender.is_blocked && sender.moved_bytes < least {
                        stuck.push((stream.id, Fault::StreamStalled));
                    }
                    sender.waiting_at = cx.now;
                    sender.moved_bytes = 0;
                }
                due(sender.waiting_at.saturating_add(limits.write_stall_ms));
            }
        }
        self.check_unknown_streams(cx, &mut due);
        self.stall_check_at = next;
        for id in late {
            self.refuse_late_head(cx, id);
        }
        for (id, fault) in stuck {
            self.break_stream(cx, id, fault);
        }
    }

    /// What a session has to tell.
    pub(crate) fn tell(&mut self, event: SessionEvent<'static>) {
        self.sessions.events.push_back(event);
    }
}

/// Milliseconds in which requests arrive that crossed the first GOAWAY.
const PAUSE_MS: Millis = 250;
