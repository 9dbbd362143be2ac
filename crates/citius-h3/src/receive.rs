//! Requests coming in (RFC 9114 §4.1, §7): frames of bidirectional streams, content in the pieces in which it arrives.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::Bytes;
use citius_http::multiplexed::{Builder, Facts, Trailers, is_malformed};
use citius_http::{Event, FAST_PATHS, Fault, Fields, Head, Method, RefusedHead, Version};
use citius_qpack::Section;

use crate::code::Code;
use crate::connection::{Connection, Shutdown};
use crate::frame::Kind;
use crate::last_sections::LastSection;
use crate::seam::{Context, Incoming};
use crate::stream::{Expecting, Phase, Reading, Stream, quic, request_number};

/// Bytes of a section and of a head that are worth remembering.
const CACHED_SECTION_BYTES_MAX: usize = 512;
const CACHED_HEAD_BYTES_MAX: usize = 2048;

/// Bytes that are read at once.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// What one step comes to.
pub(crate) enum Step<'i> {
    Event(Event<'i>),
    /// Something was taken: go on.
    Again,
    /// More input is needed.
    Starved,
    /// The input waits for the application, or for the dynamic table.
    Held,
    /// It is a stream of a WebTransport session.
    Session(u64),
}

/// What a section is.
enum Read {
    Head(Result<Facts, Fault>),
    Blocked,
}

impl Connection {
    /// Takes bytes of a stream of the client's, and with `fin` its end behind them. Returns the next event; call until `None`:
    /// then all of `input` is taken.
    #[inline]
    pub fn receive<'i>(
        &mut self,
        cx: &mut Context<'_>,
        stream: u64,
        input: &mut &'i [u8],
        fin: bool,
    ) -> Option<Incoming<'i>> {
        if self.closing.is_some() {
            *input = &[];
            return None;
        }
        if self.direct.is_some() {
            return self.receive_direct(cx, stream, input, fin);
        }
        match stream & 3 {
            0 => self.receive_request(cx, stream, input, fin),
            2 => self.receive_uni(cx, stream, input, fin),
            // A bidirectional stream that the server has opened is one of a session.
            1 => self.receive_session_stream(stream, input, fin),
            _ => {
                *input = &[];
                None
            }
        }
    }

    /// Bytes of `stream` that are of use now; 0: read none. Changes with [`want`](Self::want).
    #[inline]
    pub fn appetite(&self, stream: u64) -> usize {
        if self.closing.is_some() {
            return 0;
        }
        if self.direct.is_some() {
            return self.appetite_of_direct(stream);
        }
        let request = request_number(stream).and_then(|id| self.streams.find(id));
        if let Some(request) = request {
            let is_held = match request.reading {
                Reading::Data(left) => left > 0 && request.credit == 0 && !request.takes_capsules(),
                Reading::WholeSection => true,
                _ => false,
            };
            return if is_held || !request.unread.is_empty() {
                0
            } else {
                READ_BYTES
            };
        }
        self.appetite_for_session(stream).unwrap_or(READ_BYTES)
    }

    #[inline]
    fn receive_request<'i>(
        &mut self,
        cx: &mut Context<'_>,
        stream: u64,
        input: &mut &'i [u8],
        fin: bool,
    ) -> Option<Incoming<'i>> {
        if self.sessions.has_stream(stream) {
            return self.receive_session_stream(stream, input, fin);
        }
        let id = request_number(stream);
        let Some(index) =
            id.and_then(|id| self.streams.index_of(id).or_else(|| self.admit(cx, id)))
        else {
            *input = &[];
            return None;
        };
        let found = self.streams.at_mut(index)?;
        let id = found.id;
        if !found.unread.is_empty() {
            // What waits comes first.
            hold(found, input, fin);
            return None;
        }
        found.has_ended |= fin;
        loop {
            match self.step(cx, id, input) {
                Ok(Step::Event(event)) => return Some(Incoming::Http(event)),
                Ok(Step::Again) => {}
                Ok(Step::Starved) => return self.end_input(cx, id).map(Incoming::Http),
                Ok(Step::Held) => {
                    if let Some(found) = self.streams.find_mut(id) {
                        hold(found, input, fin);
                    }
                    *input = &[];
                    return None;
                }
                Ok(Step::Session(session)) => {
                    self.streams.remove(id);
                    self.adopt_session_stream(cx, stream, session);
                    return self.receive_session_stream(stream, input, fin);
                }
                Err(fault) => {
                    self.end_with(fault);
                    *input = &[];
                    return None;
                }
            }
        }
    }

    /// A request of which something waits goes on.
    pub(crate) fn resume(&mut self, cx: &mut Context<'_>, id: u32) -> Option<Incoming<'static>> {
        let unread = core::mem::take(&mut self.streams.find_mut(id)?.unread);
        let mut input: &[u8] = &unread;
        loop {
            let event = match self.step(cx, id, &mut input) {
                Ok(Step::Event(event)) => Some(match event {
                    Event::Data { stream, bytes } => {
                        let bytes = unread.slice_ref(bytes);
                        Event::Buffered { stream, bytes }
                    }
                    Event::Request {
                        stream,
                        head,
                        ended,
                    } => Event::Request {
                        stream,
                        head,
                        ended,
                    },
                    Event::End { stream, trailers } => Event::End { stream, trailers },
                    Event::BodyRefused { stream, fault } => Event::BodyRefused { stream, fault },
                    Event::Broken { stream, fault } => Event::Broken { stream, fault },
                    Event::Buffered { stream, bytes } => Event::Buffered { stream, bytes },
                    Event::Call { .. } => return None,
                }),
                Ok(Step::Again) => continue,
                Ok(Step::Starved) => return self.end_input(cx, id).map(Incoming::Http),
                Ok(Step::Held) => None,
                Ok(Step::Session(_)) => return None,
                Err(fault) => {
                    self.end_with(fault);
                    return None;
                }
            };
            if let Some(found) = self.streams.find_mut(id) {
                found.unread = unread.slice_ref(input);
            }
            return event.map(Incoming::Http);
        }
    }

    /// A stream has come of which nothing is known; `None`: it is over already, or rejected.
    fn admit(&mut self, cx: &mut Context<'_>, id: u32) -> Option<usize> {
        if !self.is_new(id) {
            return None;
        }
        if self.acknowledgements.sender.output.len() > cx.limits.write_queue_bytes_max as usize {
            self.end_with(Fault::ExcessiveLoad);
        }
        if self.closing.is_some() {
            return None;
        }
        // While sessions end, what begins may be a stream of one: its first frame says.
        let is_rejected = self.is_behind_goaway(id) && !self.sessions.has_open()
            || self.streams.len() >= (cx.limits.h3_streams_max as usize).max(1);
        if is_rejected {
            self.reject_request(cx, quic(id));
            return None;
        }
        Some(self.streams.insert(Stream::new(id, cx.now)))
    }

    /// Whether the client has read that the request `id` is not taken any more.
    #[inline]
    pub(crate) fn is_behind_goaway(&self, id: u32) -> bool {
        self.rejected_from.is_some_and(|first| id >= first)
    }

    /// Rejects a stream that the client may open again elsewhere. One that it had to expect to be taken counts as a reset.
    pub(crate) fn reject_request(&mut self, cx: &Context<'_>, stream: u64) {
        self.reject(stream, Code::RequestRejected);
        let budget = if self.shutdown == Shutdown::No {
            self.budget.reset(cx.now, cx.limits)
        } else {
            self.budget.idle_frame(cx.now, cx.limits)
        };
        if let Err(fault) = budget {
            self.end_with(fault);
        }
    }

    /// Whether `id` has not begun before; takes note that it has now.
    pub(crate) fn is_new(&mut self, id: u32) -> bool {
        if id < self.next_stream {
            let before = self.unseen.len();
            self.unseen.retain(|&unseen| unseen != id);
            return self.unseen.len() < before;
        }
        let skipped = self.next_stream..id;
        // QUIC's limit of streams bounds the gap.
        if skipped.len().saturating_add(self.unseen.len()) > UNSEEN_MAX {
            self.end_with(Fault::ExcessiveLoad);
            return false;
        }
        self.unseen.extend(skipped);
        self.next_stream = id.saturating_add(1);
        true
    }

    /// One frame's header, one section, or one piece of content.
    #[inline]
    fn step<'i>(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        input: &mut &'i [u8],
    ) -> Result<Step<'i>, Fault> {
        let Some(stream) = self.streams.find_mut(id) else {
            *input = &[];
            return Ok(Step::Starved);
        };
        match stream.reading {
            Reading::Frame => self.begin_frame(cx, id, input),
            Reading::Section(left) => {
                if stream.section.is_empty()
                    && let Some((section, rest)) = input.split_at_checked(left)
                {
                    *input = rest;
                    return self.take_section(cx, id, section, input.is_empty());
                }
                let (came, rest) = input.split_at(input.len().min(left));
                stream.section.extend_from_slice(came);
                *input = rest;
                let left = left.saturating_sub(came.len());
                stream.reading = Reading::Section(left);
                if left > 0 {
                    return Ok(Step::Starved);
                }
                stream.reading = Reading::WholeSection;
                Ok(Step::Again)
            }
            Reading::WholeSection => {
                let section = core::mem::take(&mut stream.section);
                self.take_section(cx, id, &section, input.is_empty())
            }
            Reading::Data(0) => {
                stream.reading = Reading::Frame;
                Ok(Step::Again)
            }
            Reading::Data(left) => self.take_content(cx, id, left, input),
            Reading::Skip(left) => {
                let (_, rest) = input.split_at(limit(input.len(), left));
                let left = left.saturating_sub(input.len().saturating_sub(rest.len()) as u64);
                *input = rest;
                stream.reading = if left == 0 {
                    Reading::Frame
                } else {
                    Reading::Skip(left)
                };
                Ok(if left == 0 {
                    Step::Again
                } else {
                    Step::Starved
                })
            }
            Reading::Over => {
                *input = &[];
                Ok(Step::Starved)
            }
        }
    }

    /// Content, of which the frame has `left` bytes.
    #[inline]
    fn take_content<'i>(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        left: u64,
        input: &mut &'i [u8],
    ) -> Result<Step<'i>, Fault> {
        let Some(stream) = self.streams.find_mut(id) else {
            return Ok(Step::Starved);
        };
        if input.is_empty() {
            return Ok(Step::Starved);
        }
        if stream.takes_capsules() {
            let (bytes, rest) = input.split_at(limit(input.len(), left));
            *input = rest;
            stream.reading = Reading::Data(left.saturating_sub(bytes.len() as u64));
            return self.take_capsules(cx, id, bytes).map(|()| Step::Again);
        }
        let length = limit(limit(input.len(), left), stream.credit);
        if length == 0 {
            return Ok(Step::Held);
        }
        let (bytes, rest) = input.split_at(length);
        *input = rest;
        stream.reading = Reading::Data(left.saturating_sub(length as u64));
        stream.credit = stream.credit.saturating_sub(length as u64);
        stream.body_bytes = stream.body_bytes.saturating_add(length as u64);
        Ok(Step::Event(Event::Data { stream: id, bytes }))
    }

    /// A frame begins, if its type and length are whole.
    #[inline]
    fn begin_frame<'i>(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        input: &mut &'i [u8],
    ) -> Result<Step<'i>, Fault> {
        let (webtransport, is_rejected) = (self.options.webtransport, self.is_behind_goaway(id));
        let Some(stream) = self.streams.find_mut(id) else {
            return Ok(Step::Starved);
        };
        let Some((kind, length)) = stream.partial.pair(input) else {
            return Ok(Step::Starved);
        };
        let phase = stream.phase;
        match (Kind::of(kind), phase) {
            (Kind::Headers, Phase::Head) => {
                if is_rejected || length > u64::from(cx.limits.head_bytes_max) {
                    return self.refuse_unread_head(cx, id, is_rejected);
                }
                stream.reading = Reading::Section(usize::try_from(length).unwrap_or(usize::MAX));
            }
            (Kind::Headers, Phase::Content) if !stream.is_tunnel => {
                if length > u64::from(cx.limits.trailer_bytes_max) {
                    stream.reading = Reading::Over;
                    self.break_for(cx, id, Fault::TrailersTooLong)?;
                    return Ok(Step::Again);
                }
                stream.reading = Reading::Section(usize::try_from(length).unwrap_or(usize::MAX));
            }
            (Kind::Data, Phase::Content) => {
                stream.reading = Reading::Data(length);
                if length == 0 {
                    self.budget.idle_frame(cx.now, cx.limits)?;
                } else if let Err(fault) = count_content(stream, length) {
                    if fault == Fault::BodyTooLong && !stream.state.awaits_headers() {
                        self.refuse_body(id, fault);
                    } else {
                        self.break_for(cx, id, fault)?;
                    }
                }
            }
            (Kind::SessionStream, _) if webtransport => {
                // §4.2 of WebTransport over HTTP/3: only at the very start of a stream.
                let is_first = phase == Phase::Head && !stream.has_begun;
                if !is_first {
                    return Err(Fault::FrameSize);
                }
                return Ok(Step::Session(length));
            }
            (Kind::Unknown | Kind::SessionStream, _) => {
                self.budget.idle_frame(cx.now, cx.limits)?;
                stream.reading = Reading::Skip(length);
            }
            _ => return Err(Fault::FrameSequence),
        }
        if let Some(stream) = self.streams.find_mut(id) {
            stream.has_begun = true;
        }
        Ok(Step::Again)
    }

    /// A field section is whole: a head, or trailers. `is_last`: nothing has come behind it.
    #[inline]
    fn take_section<'i>(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        section: &[u8],
        is_last: bool,
    ) -> Result<Step<'i>, Fault> {
        let Some(stream) = self.streams.find_mut(id) else {
            return Ok(Step::Starved);
        };
        let ended = is_last && stream.has_ended;
        if stream.phase == Phase::Content {
            return self.take_trailers(cx, id, section);
        }
        let mut head = cx.heads.take();
        let facts = match self.read_head(cx, id, section, ended, &mut head)? {
            Read::Head(facts) => facts,
            Read::Blocked => {
                cx.heads.give(head);
                return Ok(Step::Held);
            }
        };
        match facts {
            Ok(facts) => {
                self.budget.request();
                self.open_request(id, &head, ended, &facts);
                if head.method == Method::Connect && self.has_all_sessions(cx.limits) {
                    cx.heads.give(head);
                    self.budget.reset(cx.now, cx.limits)?;
                    self.drop_stream(id, Some(Code::RequestRejected));
                    return Ok(Step::Again);
                }
                Ok(Step::Event(Event::Request {
                    stream: id,
                    head,
                    ended,
                }))
            }
            Err(fault) => {
                cx.heads.give(head);
                self.refuse_head(cx, id, fault)?;
                Ok(Step::Again)
            }
        }
    }

    /// Reads a head, or remembers it.
    #[inline]
    fn read_head(
        &mut self,
        cx: &Context<'_>,
        id: u32,
        section: &[u8],
        ended: bool,
        head: &mut Head,
    ) -> Result<Read, Fault> {
        if let Some(last) = self.last_section.as_deref().filter(|_| FAST_PATHS)
            && last.generation == self.decoder.generation()
            && last.ended == ended
            && last.section == section
        {
            head.copy_from(&last.head);
            let (required, facts) = (last.required, last.facts);
            self.acknowledge(quic(id), required);
            return Ok(Read::Head(Ok(facts)));
        }
        self.read_new_head(cx, id, section, ended, head)
    }

    fn read_new_head(
        &mut self,
        cx: &Context<'_>,
        id: u32,
        section: &[u8],
        ended: bool,
        head: &mut Head,
    ) -> Result<Read, Fault> {
        let extended_connect = self.options.extended_connect || self.options.webtransport;
        let scratch = &mut self.scratch;
        let mut builder = Builder::new(head, scratch, cx.limits, Version::Http3, extended_connect);
        let done = self
            .decoder
            .decode(section, |name, value| builder.take(name, value))
            .map_err(|_| Fault::FieldCompression)?;
        let required = match done {
            Section::Read(required) => required,
            Section::Blocked(required) => {
                self.block(cx, id, required, section)?;
                return Ok(Read::Blocked);
            }
        };
        let facts = builder.finish(ended);
        self.acknowledge(quic(id), required);
        if let Ok(facts) = facts
            && section.len() <= CACHED_SECTION_BYTES_MAX
            && head.bytes.len() <= CACHED_HEAD_BYTES_MAX
        {
            let generation = self.decoder.generation();
            let last = self.last_section.get_or_insert_with(|| {
                Box::new(LastSection {
                    section: Vec::new(),
                    generation,
                    required,
                    ended,
                    head: Head::default(),
                    facts,
                })
            });
            last.section.clear();
            last.section.extend_from_slice(section);
            last.generation = generation;
            last.required = required;
            last.ended = ended;
            last.head.copy_from(head);
            last.facts = facts;
        }
        Ok(Read::Head(facts))
    }

    /// A section waits for `required` insertions.
    #[cold]
    fn block(
        &mut self,
        cx: &Context<'_>,
        id: u32,
        required: u64,
        section: &[u8],
    ) -> Result<(), Fault> {
        self.blocked.retain(|&(_, blocked)| blocked != id);
        self.blocked.push((required, id));
        // RFC 9204 §2.1.2: an encoder that blocks more than it was allowed is at fault.
        if self.blocked.len() > cx.limits.h3_blocked_streams_max as usize {
            return Err(Fault::FieldCompression);
        }
        if let Some(stream) = self.streams.find_mut(id) {
            stream.reading = Reading::WholeSection;
            stream.section = section.to_vec();
        }
        self.check_stalled_by(cx.now.saturating_add(cx.limits.head_read_ms));
        Ok(())
    }

    /// Sections that have waited for what was inserted can be read.
    pub(crate) fn unblock(&mut self) {
        let n_inserted = self.decoder.insert_count();
        let ready = &mut self.ready;
        self.blocked.retain(|&(required, id)| {
            if required <= n_inserted {
                ready.push_back(id);
            }
            required > n_inserted
        });
    }

    /// A request is taken.
    #[inline]
    pub(crate) fn open_request(&mut self, id: u32, head: &Head, ended: bool, facts: &Facts) {
        self.fresh = false;
        // What was said of the stream itself goes over what its head says, which may be older (RFC 9218 §7).
        let early = if self.early.is_empty() {
            None
        } else {
            self.early.take_only(id)
        };
        let Some(stream) = self.streams.find_mut(id) else {
            return;
        };
        stream.phase = Phase::Content;
        stream.reading = Reading::Frame;
        if head.expects_continue {
            stream.expecting = Expecting::Unasked;
        }
        stream.head_only = head.method == Method::Head;
        stream.asks_protocol = head.method == Method::Connect;
        stream.priority = early.unwrap_or(facts.priority);
        stream.expected = facts.content_length;
        if ended {
            let received = stream.state.receive_end();
            debug_assert_eq!(received, Ok(()), "the request has just begun");
        } else if head.method == Method::Connect {
            stream.asks_session = asks_session(head);
        }
    }

    fn take_trailers<'i>(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        section: &[u8],
    ) -> Result<Step<'i>, Fault> {
        let mut trailers = Trailers::new();
        let done = self
            .decoder
            .decode(section, |name, value| trailers.take(name, value, cx.limits))
            .map_err(|_| Fault::FieldCompression)?;
        match done {
            Section::Read(required) => self.acknowledge(quic(id), required),
            Section::Blocked(required) => {
                self.block(cx, id, required, section)?;
                return Ok(Step::Held);
            }
        }
        match trailers.finish() {
            Ok(trailers) => {
                if let Some(stream) = self.streams.find_mut(id) {
                    stream.phase = Phase::Trailers;
                    stream.reading = Reading::Frame;
                    stream.trailers = (!trailers.is_empty()).then(|| Box::new(trailers));
                }
            }
            Err(fault) => self.break_for(cx, id, fault)?,
        }
        Ok(Step::Again)
    }

    /// All input of a request is taken; where the client has finished its side, so is the request.
    fn end_input(&mut self, cx: &mut Context<'_>, id: u32) -> Option<Event<'static>> {
        let is_cut = self.sessions.has_open() && self.cuts_capsule(id);
        let stream = self.streams.find_mut(id)?;
        if !stream.has_ended {
            if stream.phase == Phase::Head {
                self.check_stalled_by(cx.now.saturating_add(cx.limits.head_read_ms.max(1)));
            }
            return None;
        }
        if stream.state.is_remote_closed() || stream.reading == Reading::Over {
            return None;
        }
        if stream.reading != Reading::Frame || !stream.partial.is_empty() {
            // RFC 9114 §7.1: the last frame is cut.
            if stream.reading != Reading::WholeSection {
                self.end_with(Fault::FrameSize);
            }
            return None;
        }
        let is_short = stream
            .expected
            .is_some_and(|expected| stream.received < expected && !stream.is_tunnel);
        if is_short && stream.phase != Phase::Head && !stream.state.awaits_headers() {
            // A client may stop an upload so when it has read that it is refused. The end is not told: the application would
            // take a part for the whole.
            stream.stops_short = true;
            return None;
        }
        let broken = match stream.phase {
            Phase::Head => Some(Fault::RequestIncomplete),
            _ if is_short => Some(Fault::LengthMismatch),
            _ if is_cut => Some(Fault::CapsuleSyntax),
            _ => None,
        };
        if let Some(fault) = broken {
            if let Err(fault) = self.break_for(cx, id, fault) {
                self.end_with(fault);
            }
            return self.next_broken();
        }
        stream.state.receive_end().ok()?;
        let trailers = stream
            .trailers
            .take()
            .map_or(Fields::EMPTY, |trailers| *trailers);
        let is_open = stream.is_open();
        if stream.takes_capsules() {
            // The client has closed the session by ending its stream.
            self.session_is_closed(cx, id);
            return None;
        }
        self.finish_stream(cx, id);
        is_open.then_some(Event::End {
            stream: id,
            trailers,
        })
    }

    /// A request ends for a mistake of the client's.
    #[cold]
    pub(crate) fn break_for(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        fault: Fault,
    ) -> Result<(), Fault> {
        self.budget.reset(cx.now, cx.limits)?;
        self.break_stream(cx, id, fault);
        Ok(())
    }

    /// A head that is malformed, or too much: reset, or answered.
    #[cold]
    fn refuse_head(&mut self, cx: &mut Context<'_>, id: u32, fault: Fault) -> Result<(), Fault> {
        self.budget.reset(cx.now, cx.limits)?;
        let line = self.scratch.request_line();
        let mut refused = RefusedHead::new(fault, Version::Http3, line, 0);
        // RFC 9114 §4.3.1: without an authority a request is malformed here.
        if is_malformed(fault) || fault == Fault::HostMissing {
            self.drop_stream(id, Some(Code::of(fault)));
        } else if let Some(index) = self.streams.index_of(id) {
            if let Some(stream) = self.streams.at_mut(index) {
                stream.phase = Phase::Refused;
                stream.reading = Reading::Over;
            }
            refused.response_bytes = self.respond_to_fault(cx, index, fault);
        }
        self.refused.push(refused);
        Ok(())
    }

    /// A head is not read: its section alone is longer than a head may be, or its request is rejected.
    #[cold]
    fn refuse_unread_head<'i>(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        is_rejected: bool,
    ) -> Result<Step<'i>, Fault> {
        if is_rejected {
            self.budget.idle_frame(cx.now, cx.limits)?;
            self.drop_stream(id, Some(Code::RequestRejected));
            return Ok(Step::Again);
        }
        self.scratch.clear();
        self.refuse_head(cx, id, Fault::HeadTooLong)?;
        self.cancel_section(quic(id));
        Ok(Step::Again)
    }

    /// A head has not come in time.
    #[cold]
    pub(crate) fn refuse_late_head(&mut self, cx: &mut Context<'_>, id: u32) {
        self.scratch.clear();
        if self.blocked.iter().any(|&(_, blocked)| blocked == id) {
            self.blocked.retain(|&(_, blocked)| blocked != id);
            self.cancel_section(quic(id));
        }
        if let Err(fault) = self.refuse_head(cx, id, Fault::HeadTooSlow) {
            self.end_with(fault);
        }
    }

    /// The client has reset its side of `stream`.
    pub fn reset(&mut self, cx: &mut Context<'_>, stream: u64, code: u64) {
        if self.closing.is_some() {
            return;
        }
        if self.reset_session_side(stream, code) || self.direct.is_some() {
            return;
        }
        if stream & 3 == 2 {
            return self.reset_uni(stream);
        }
        self.leave_request(cx, stream);
    }

    /// The client reads no more of `stream` (`STOP_SENDING`).
    pub fn stop_sending(&mut self, cx: &mut Context<'_>, stream: u64, code: u64) {
        if self.closing.is_some() {
            return;
        }
        let is_critical = [&self.control, &self.acknowledgements]
            .iter()
            .any(|local| local.stream == Some(stream));
        if is_critical {
            return self.end_with(Fault::CriticalStreamClosed);
        }
        if self.stop_session_side(stream, code) || self.direct.is_some() {
            return;
        }
        self.leave_request(cx, stream);
    }

    /// The client has taken its request back.
    fn leave_request(&mut self, cx: &mut Context<'_>, stream: u64) {
        let Some(id) = request_number(stream) else {
            return;
        };
        if self.streams.find(id).is_none() {
            if !self.is_new(id) {
                return;
            }
            if !self.sessions.is_empty() {
                self.end_session(id);
            }
        }
        match self.budget.reset(cx.now, cx.limits) {
            Ok(()) => self.break_stream(cx, id, Fault::StreamReset),
            Err(fault) => self.end_with(fault),
        }
    }
}

/// Whether a request asks for a WebTransport session, by the token of one draft or of another.
pub fn asks_session(head: &Head) -> bool {
    head.method == Method::Connect
        && head.version == Version::Http3
        && head
            .field(b":protocol")
            .is_some_and(|protocol| matches!(protocol, b"webtransport" | b"webtransport-h3"))
}

/// Streams that may begin before those with lower numbers.
const UNSEEN_MAX: usize = 4096;

/// The smaller one.
#[inline]
fn limit(length: usize, most: u64) -> usize {
    usize::try_from(most).map_or(length, |most| length.min(most))
}

/// Counts the content of a frame; what contradicts the head is a fault.
#[inline]
fn count_content(stream: &mut Stream, length: u64) -> Result<(), Fault> {
    stream.received = stream.received.saturating_add(length);
    if stream.is_tunnel {
        return Ok(());
    }
    if stream
        .expected
        .is_some_and(|expected| stream.received > expected)
    {
        return Err(Fault::LengthMismatch);
    }
    if stream.received > stream.body_bytes_max {
        return Err(Fault::BodyTooLong);
    }
    Ok(())
}

/// Keeps input for later.
#[cold]
fn hold(stream: &mut Stream, input: &mut &[u8], fin: bool) {
    stream.has_ended |= fin;
    let rest = core::mem::take(input);
    stream.unread = if stream.unread.is_empty() {
        Bytes::copy_from_slice(rest)
    } else {
        Bytes::from([&stream.unread, rest].concat())
    };
}
