//! Frames coming in (RFC 9113 §5, §6): whole ones are taken at once, DATA in the pieces in which it arrives.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::Bytes;
use citius_http::{
    Event, FAST_PATHS, Fault, Fields, Head, Limits, Millis, Output, RefusedHead, Version,
};

use crate::budget;
use crate::connection::{Connection, Context, SHUTDOWN_PING, Shutdown};
use crate::frame::{
    self, ACK, Code, END_HEADERS, END_STREAM, HEADER_BYTES, Header, Kind, PADDED, WINDOW_MAX,
};
use crate::stream::Buffered;
use citius_http::multiplexed::Priority;
use citius_http::multiplexed::{self, Builder, Facts, Trailers};

/// What the next byte is part of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading {
    /// The client's preface, of which so many bytes have come.
    Preface(usize),
    /// A frame.
    Frame,
    /// The data of a frame.
    Data(Data),
    /// So many bytes of a frame that means nothing here.
    Skip(usize),
    /// Nothing: no further byte is read.
    Over,
}

/// A DATA frame under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    stream: u32,
    left: usize,
    padding: usize,
    ends: bool,
}

/// A head that is continued (§6.10): no other frame may come before its end.
#[derive(Debug)]
pub(crate) struct Block {
    stream: u32,
    ends: bool,
    bytes: Vec<u8>,
    n_frames: u32,
    began_at: Millis,
}

/// The last block that was all in the tables, and what it means: clients repeat themselves.
#[derive(Debug)]
pub(crate) struct LastBlock {
    block: Vec<u8>,
    generation: u64,
    ended: bool,
    head: Head,
    facts: Facts,
}

/// Bytes of a block and of a head that are worth remembering.
const CACHED_BLOCK_BYTES_MAX: usize = 256;
const CACHED_HEAD_BYTES_MAX: usize = 2048;

/// What came of a frame.
type Outcome = Result<Option<Event<'static>>, Fault>;

impl Connection {
    /// Takes as much of `input` as it can (advances the slice) and returns the next event; call
    /// until `None`. What is left must be offered again, longer.
    ///
    /// A peer's fault that ends the connection is no event: [`fault`](Self::fault) tells it.
    #[inline]
    pub fn receive<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>> {
        loop {
            if self.closing.is_some() {
                return None;
            }
            if !self.broken.is_empty() {
                return self.next_broken();
            }
            if !self.ready.is_empty()
                && let Some(event) = self.next_buffered(out)
            {
                return Some(event);
            }
            match self.step(cx, input, out) {
                Ok(Step::Event(event)) => return Some(event),
                Ok(Step::Again) => {}
                Ok(Step::Starved) => {
                    self.note_partial(cx.now, !input.is_empty());
                    // Once for all windows that one read opens, so that what they let through is not cut smaller.
                    if core::mem::take(&mut self.pump_due) {
                        self.pump(cx, out);
                    }
                    if let Shutdown::Due(_) = self.shutdown {
                        self.end_drain(cx, out);
                    }
                    return None;
                }
                Err(fault) => {
                    self.end_with(cx, fault, out);
                    return None;
                }
            }
        }
    }

    /// One frame, or one piece of data.
    #[inline]
    fn step<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Result<Step<'i>, Fault> {
        match &mut self.reading {
            Reading::Over => Ok(Step::Starved),
            Reading::Frame => self.take_frame(cx, input, out),
            Reading::Data(data) => {
                let data = *data;
                Ok(self.take_data(cx, data, input, out))
            }
            Reading::Skip(left) => {
                let (_, rest) = input.split_at(input.len().min(*left));
                *left = left.saturating_sub(input.len().saturating_sub(rest.len()));
                *input = rest;
                if *left > 0 {
                    return Ok(Step::Starved);
                }
                self.reading = Reading::Frame;
                Ok(Step::Again)
            }
            Reading::Preface(taken) => {
                let expected = frame::PREFACE.get(*taken..).unwrap_or_default();
                let length = input.len().min(expected.len());
                let (came, rest) = input.split_at(length);
                if expected.get(..length) != Some(came) {
                    return Err(Fault::PrefaceSyntax);
                }
                *input = rest;
                *taken = taken.saturating_add(length);
                if *taken < frame::PREFACE.len() {
                    return Ok(Step::Starved);
                }
                self.reading = Reading::Frame;
                self.send_settings(cx, out);
                let withheld = core::mem::take(&mut self.withheld);
                self.send_window = self.send_window.saturating_add(withheld);
                self.pump_due |= withheld > 0;
                Ok(Step::Again)
            }
        }
    }

    /// Takes note whether a frame, or a head, is incomplete.
    fn note_partial(&mut self, now: Millis, has_rest: bool) {
        let is_partial = has_rest || matches!(self.reading, Reading::Skip(_));
        self.partial_at = match &self.block {
            Some(block) => Some(block.began_at),
            None if is_partial => Some(self.partial_at.unwrap_or(now)),
            None => None,
        };
    }

    #[inline]
    fn take_frame<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Result<Step<'i>, Fault> {
        let Some((header, after)) = Header::read(input) else {
            return Ok(Step::Starved);
        };
        if header.length > frame::FRAME_BYTES_MAX {
            return Err(Fault::FrameSize);
        }
        self.check_order(header)?;
        match header.kind {
            Kind::Data => return self.begin_data(cx, header, input, out),
            Kind::Unknown => {
                self.budget.idle_frame(cx.now, cx.limits)?;
                *input = after;
                self.reading = Reading::Skip(header.length);
                return Ok(Step::Again);
            }
            _ => {}
        }
        let Some((payload, rest)) = after.split_at_checked(header.length) else {
            return Ok(Step::Starved);
        };
        *input = rest;
        self.partial_at = None;
        let event = match header.kind {
            Kind::Headers => self.take_headers(cx, header, payload, out)?,
            Kind::Continuation => self.take_continuation(cx, header, payload, out)?,
            Kind::WindowUpdate => self.take_window_update(cx, header, payload, out)?,
            Kind::ResetStream => self.take_reset(cx, header, payload, out)?,
            _ => {
                self.take_control(cx, header, payload, out)?;
                None
            }
        };
        Ok(event.map_or(Step::Again, Step::Event))
    }

    /// Checks that a frame of this type may come here (§3.4, §6.10, and the stream each type belongs to).
    #[inline]
    fn check_order(&self, header: Header) -> Result<(), Fault> {
        if let Some(block) = &self.block {
            let goes_on = header.kind == Kind::Continuation && header.stream == block.stream;
            return if goes_on {
                Ok(())
            } else {
                Err(Fault::FrameSequence)
            };
        }
        if !self.settings_received && (header.kind != Kind::Settings || header.has(ACK)) {
            return Err(Fault::PrefaceSyntax);
        }
        let is_right = match header.kind {
            Kind::Data | Kind::Headers | Kind::Priority | Kind::ResetStream => header.stream != 0,
            Kind::Settings | Kind::Ping | Kind::GoAway | Kind::PriorityUpdate => header.stream == 0,
            Kind::WindowUpdate | Kind::Unknown => true,
            Kind::PushPromise | Kind::Continuation => false,
        };
        if is_right {
            Ok(())
        } else {
            Err(Fault::FrameSequence)
        }
    }

    // --- DATA ---------------------------------------------------------------------------------

    fn begin_data<'i>(
        &mut self,
        cx: &mut Context<'_>,
        header: Header,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Result<Step<'i>, Fault> {
        let mut left = header.length;
        let mut padding = 0;
        let mut n_taken = HEADER_BYTES;
        if header.has(PADDED) {
            if left == 0 {
                return Err(Fault::FrameSize);
            }
            let Some(&length) = input.get(HEADER_BYTES) else {
                return Ok(Step::Starved);
            };
            padding = usize::from(length);
            left = left
                .saturating_sub(1)
                .checked_sub(padding)
                .ok_or(Fault::FramePadding)?;
            n_taken = n_taken.saturating_add(1);
        }
        *input = input.get(n_taken..).unwrap_or_default();
        self.partial_at = None;
        let ends = header.has(END_STREAM);
        if left == 0 && !ends {
            self.budget.idle_frame(cx.now, cx.limits)?;
        }
        let cost = i64::try_from(header.length).unwrap_or(i64::MAX);
        self.receive_window = self.receive_window.saturating_sub(cost);
        if self.receive_window < 0 {
            return Err(Fault::FlowControl);
        }
        let ends = ends && !self.stops_short(header.stream, left);
        if let Some(fault) = self.check_data(header, left, ends)? {
            self.refuse_data(cx, header.stream, fault, out)?;
        }
        self.reading = Reading::Data(Data {
            stream: header.stream,
            left,
            padding,
            ends,
        });
        // Padding and its length count towards the windows, and reach no application.
        let overhead = header.length.saturating_sub(left);
        self.release_stream_window(header.stream, overhead, out);
        Ok(Step::Again)
    }

    /// A stream may not have the data that has come for it.
    #[cold]
    fn refuse_data(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        fault: Fault,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let found = self.streams.find(id);
        let is_answered = found.is_some_and(|stream| !stream.state.awaits_headers());
        if self.was_left(id) {
            return self.crossed_reset(cx);
        }
        if fault == Fault::BodyTooLong && is_answered {
            self.refuse_body(cx, id, fault, out);
            return Ok(());
        }
        self.budget.reset(cx.now, cx.limits)?;
        if self.streams.find(id).is_some() {
            self.break_stream(cx, id, fault, out);
            self.close_if_done();
        } else {
            self.reset(id, Code::of(fault), out);
        }
        Ok(())
    }

    /// Whether a body ends before its length, behind the beginning of a response, with these last bytes.
    ///
    /// curl stops an upload so once it has read a status from 400 on, and loses the response if that is reset. The end is not
    /// told: the application would take a part for the whole.
    fn stops_short(&mut self, id: u32, length: usize) -> bool {
        let Some(stream) = self.streams.find_mut(id) else {
            return false;
        };
        if stream.state.awaits_headers() || stream.state.is_discarding() {
            return false;
        }
        let received = stream.received.saturating_add(length as u64);
        stream.stops_short = stream.expected.is_some_and(|it| received < it);
        stream.stops_short
    }

    /// Data has crossed our reset, up to a window of it; more was lent to curl.
    fn crossed_reset(&mut self, cx: &Context<'_>) -> Result<(), Fault> {
        if self.lent_bytes > 0 {
            return Ok(());
        }
        self.budget.idle_frame(cx.now, cx.limits)
    }

    /// Whether the stream may have this data; takes it off its window.
    fn check_data(
        &mut self,
        header: Header,
        length: usize,
        ends: bool,
    ) -> Result<Option<Fault>, Fault> {
        if header.stream > self.last_stream || header.stream.is_multiple_of(2) {
            return Err(Fault::FrameSequence);
        }
        let Some(stream) = self.streams.find_mut(header.stream) else {
            return Ok(Some(Fault::StreamClosed));
        };
        if let Err(fault) = stream.state.receive() {
            return Ok(Some(fault));
        }
        let cost = i64::try_from(header.length).unwrap_or(i64::MAX);
        stream.receive_window = stream.receive_window.saturating_sub(cost);
        if stream.receive_window < 0 {
            return Ok(Some(Fault::FlowControl));
        }
        stream.received = stream.received.saturating_add(length as u64);
        stream.body_bytes = stream.body_bytes.saturating_add(length as u64);
        let received = stream.received;
        let contradicts = stream
            .expected
            .is_some_and(|expected| received > expected || ends && received < expected);
        if contradicts {
            return Ok(Some(Fault::LengthMismatch));
        }
        if received > stream.body_bytes_max && !stream.is_tunnel {
            return Ok(Some(Fault::BodyTooLong));
        }
        Ok(None)
    }

    fn take_data<'i>(
        &mut self,
        cx: &mut Context<'_>,
        mut data: Data,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Step<'i> {
        if data.left > 0 {
            if input.is_empty() {
                return Step::Starved;
            }
            let length = input.len().min(data.left);
            let found = self.streams.find_mut(data.stream);
            let (length, is_wanted) = match &found {
                Some(stream)
                    if stream.buffered.is_none()
                        && stream.credit > 0
                        && !stream.is_body_refused
                        && !stream.state.is_discarding() =>
                {
                    let credit = usize::try_from(stream.credit).unwrap_or(usize::MAX);
                    (length.min(credit), true)
                }
                _ => (length, false),
            };
            let (bytes, rest) = input.split_at(length);
            *input = rest;
            data.left = data.left.saturating_sub(length);
            self.reading = Reading::Data(data);
            match found {
                None => {
                    self.release_stream_window(data.stream, length, out);
                }
                Some(stream) if is_wanted => {
                    stream.credit = stream.credit.saturating_sub(length as u64);
                    self.release_stream_window(data.stream, length, out);
                    let stream = data.stream;
                    return Step::Event(Event::Data { stream, bytes });
                }
                Some(stream) if stream.state.is_discarding() => {
                    let is_enough = stream.credit < length as u64;
                    stream.credit = stream.credit.saturating_sub(length as u64);
                    self.release_stream_window(data.stream, length, out);
                    if is_enough {
                        self.drop_stream(data.stream, Some(Code::NoError), out);
                        self.close_if_done();
                    }
                }
                Some(stream) if stream.is_body_refused => self.drop_data(data.stream, length, out),
                Some(stream) => {
                    let buffered = stream.buffered.get_or_insert_default();
                    buffered.bytes.extend_from_slice(bytes);
                }
            }
            return Step::Again;
        }
        self.take_padding(cx, data, input, out)
    }

    /// What follows the data of a frame: its padding, and perhaps the end of the content.
    fn take_padding<'i>(
        &mut self,
        cx: &mut Context<'_>,
        mut data: Data,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Step<'i> {
        let (_, rest) = input.split_at(input.len().min(data.padding));
        data.padding = data
            .padding
            .saturating_sub(input.len().saturating_sub(rest.len()));
        *input = rest;
        self.reading = Reading::Data(data);
        if data.padding > 0 {
            return Step::Starved;
        }
        self.reading = Reading::Frame;
        if !data.ends {
            return Step::Again;
        }
        let event = self.end_body(cx, data.stream, Fields::EMPTY, out);
        event.map_or(Step::Again, Step::Event)
    }

    /// So many bytes of a stream are taken: the windows open again by them.
    pub(crate) fn release_stream_window(&mut self, id: u32, n_bytes: usize, out: &mut Output) {
        if n_bytes == 0 {
            return;
        }
        self.release_window(n_bytes, out);
        let Some(stream) = self.streams.find_mut(id) else {
            return;
        };
        stream.consumed = stream
            .consumed
            .saturating_add(u32::try_from(n_bytes).unwrap_or(u32::MAX));
        // From half of the window on; the client is not told of every byte.
        if !stream.state.is_remote_closed() && i64::from(stream.consumed) >= stream.receive_window {
            frame::window_update(out.tail(), id, stream.consumed);
            let window = stream
                .receive_window
                .saturating_add(i64::from(stream.consumed));
            stream.receive_window = window.min(WINDOW_MAX);
            stream.consumed = 0;
        }
    }

    /// The body of `id` is complete.
    fn end_body(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        trailers: Fields,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        let index = self.streams.index_of(id)?;
        let stream = self.streams.at_mut(index)?;
        let is_rest = stream.state.is_discarding();
        stream.state.receive_end().ok()?;
        if let Some(buffered) = &mut stream.buffered {
            buffered.end = Some(trailers);
            return None;
        }
        let is_awaited = stream.is_open() && !stream.is_body_refused;
        self.finish_stream(cx, id, out);
        if is_rest {
            self.wake_uploader(out);
        }
        is_awaited.then_some(Event::End {
            stream: id,
            trailers,
        })
    }

    /// Content that was buffered and is wanted by now.
    fn next_buffered(&mut self, out: &mut Output) -> Option<Event<'static>> {
        while let Some(&id) = self.ready.front() {
            if let Some(event) = self.take_buffered(id, out) {
                return Some(event);
            }
            self.ready.pop_front();
        }
        None
    }

    fn take_buffered(&mut self, id: u32, out: &mut Output) -> Option<Event<'static>> {
        let stream = self.streams.find_mut(id)?;
        let buffered = stream.buffered.as_mut()?;
        if buffered.bytes.is_empty() {
            let Buffered { end, .. } = *stream.buffered.take()?;
            let trailers = end?;
            return Some(Event::End {
                stream: id,
                trailers,
            });
        }
        if stream.credit == 0 {
            return None;
        }
        let credit = usize::try_from(stream.credit).unwrap_or(usize::MAX);
        let bytes = if credit >= buffered.bytes.len() {
            core::mem::take(&mut buffered.bytes)
        } else {
            let rest = buffered.bytes.split_off(credit);
            core::mem::replace(&mut buffered.bytes, rest)
        };
        stream.credit = stream.credit.saturating_sub(bytes.len() as u64);
        self.release_stream_window(id, bytes.len(), out);
        Some(Event::Buffered {
            stream: id,
            bytes: Bytes::from(bytes),
        })
    }

    // --- HEADERS ------------------------------------------------------------------------------

    #[inline]
    fn take_headers(
        &mut self,
        cx: &mut Context<'_>,
        header: Header,
        payload: &[u8],
        out: &mut Output,
    ) -> Outcome {
        let id = header.stream;
        if id.is_multiple_of(2) {
            return Err(Fault::StreamNumber);
        }
        let mut fragment = frame::without_padding(header, payload)?;
        let mut depends_on_itself = false;
        if header.has(frame::PRIORITY) {
            let (dependency, rest) = frame::number(fragment).ok_or(Fault::FrameSize)?;
            fragment = rest.get(1..).ok_or(Fault::FrameSize)?;
            depends_on_itself = dependency == id;
        }
        if depends_on_itself {
            return Err(Fault::PriorityCycle);
        }
        let ends = header.has(END_STREAM);
        if header.has(END_HEADERS) {
            return self.take_block(cx, id, ends, fragment, out);
        }
        self.block = Some(Box::new(Block {
            stream: id,
            ends,
            bytes: fragment.to_vec(),
            n_frames: 0,
            began_at: cx.now,
        }));
        Ok(None)
    }

    fn take_continuation(
        &mut self,
        cx: &mut Context<'_>,
        header: Header,
        payload: &[u8],
        out: &mut Output,
    ) -> Outcome {
        let Some(mut block) = self.block.take() else {
            return Err(Fault::FrameSequence);
        };
        block.n_frames = block.n_frames.saturating_add(1);
        budget::continuations(block.n_frames, cx.limits)?;
        // What is more than `head_bytes_max` is decoded all the same, and answered with 431: other streams' blocks build on it.
        block.bytes.extend_from_slice(payload);
        if header.has(END_HEADERS) {
            return self.take_block(cx, block.stream, block.ends, &block.bytes, out);
        }
        self.block = Some(block);
        Ok(None)
    }

    /// A field block is complete: a request, or trailers.
    #[inline]
    fn take_block(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        ends: bool,
        block: &[u8],
        out: &mut Output,
    ) -> Outcome {
        if id <= self.last_stream {
            return self.take_late_block(cx, id, ends, block, out);
        }
        self.last_stream = id;
        let mut head = cx.heads.take();
        let facts = self.read_head(cx.limits, block, ends, &mut head)?;
        let is_refused = self.streams.len() >= (cx.limits.h2_streams_max as usize).max(1)
            || self.shutdown == Shutdown::Final;
        if self.shutdown != Shutdown::No && self.request_in_drain(cx, id, out) {
            cx.heads.give(head);
            self.budget.idle_frame(cx.now, cx.limits)?;
            return Ok(None);
        }
        match facts {
            _ if is_refused => {
                cx.heads.give(head);
                // Before our settings are known a client may not know better.
                if self.settings_at.is_none() {
                    self.budget.reset(cx.now, cx.limits)?;
                }
                self.reset(id, Code::RefusedStream, out);
                Ok(None)
            }
            Ok(facts) => {
                self.budget.request();
                self.open_stream(cx, id, &head, ends, &facts);
                Ok(Some(Event::Request {
                    stream: id,
                    head,
                    ended: ends,
                }))
            }
            Err(fault) => {
                self.budget.reset(cx.now, cx.limits)?;
                self.refuse_head(cx, id, &head, ends, fault, out);
                cx.heads.give(head);
                Ok(None)
            }
        }
    }

    /// Reads a head, or remembers it.
    #[inline]
    fn read_head(
        &mut self,
        limits: &Limits,
        block: &[u8],
        ended: bool,
        head: &mut Head,
    ) -> Result<Result<Facts, Fault>, Fault> {
        if let Some(last_block) = self.cached_head(block, ended) {
            head.copy_from(&last_block.head);
            return Ok(Ok(last_block.facts));
        }
        self.read_new_head(limits, block, ended, head)
    }

    /// What the block means, if it is the one before.
    #[inline]
    pub(crate) fn cached_head(&self, block: &[u8], ended: bool) -> Option<&LastBlock> {
        let last_block = self.last_block.as_deref().filter(|_| FAST_PATHS)?;
        let is_same = last_block.generation == self.decoder.generation()
            && last_block.ended == ended
            && last_block.block == block;
        is_same.then_some(last_block)
    }

    fn read_new_head(
        &mut self,
        limits: &Limits,
        block: &[u8],
        ended: bool,
        head: &mut Head,
    ) -> Result<Result<Facts, Fault>, Fault> {
        let generation = self.decoder.generation();
        let extended_connect = self.options.extended_connect;
        let mut builder = Builder::new(
            head,
            &mut self.scratch,
            limits,
            Version::Http2,
            extended_connect,
        );
        self.decoder
            .decode(block, |name, value| {
                builder.take(name, value);
            })
            .map_err(|_| Fault::FieldCompression)?;
        let facts = builder.finish(ended);
        if let Ok(facts) = facts
            && self.decoder.generation() == generation
            && block.len() <= CACHED_BLOCK_BYTES_MAX
            && head.bytes.len() <= CACHED_HEAD_BYTES_MAX
        {
            let last_block = self.last_block.get_or_insert_with(|| {
                Box::new(LastBlock {
                    block: Vec::new(),
                    generation,
                    ended,
                    head: Head::default(),
                    facts,
                })
            });
            last_block.block.clear();
            last_block.block.extend_from_slice(block);
            last_block.generation = generation;
            last_block.ended = ended;
            last_block.head.copy_from(head);
            last_block.facts = facts;
        }
        Ok(facts)
    }

    /// A head that is malformed, or too much: reset, or answered.
    #[cold]
    fn refuse_head(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        head: &Head,
        ends: bool,
        fault: Fault,
        out: &mut Output,
    ) {
        let line = self.scratch.request_line();
        let refused = RefusedHead::new(fault, Version::Http2, line, 0);
        self.refused.push(refused);
        if multiplexed::is_malformed(fault) {
            self.reset(id, Code::of(fault), out);
            return;
        }
        self.open_stream(cx, id, head, ends, &Facts::default());
        if let Some(index) = self.streams.index_of(id) {
            let bytes = self.respond_to_fault(cx, index, fault, out);
            if let Some(refused) = self.refused.last_mut() {
                refused.response_bytes = bytes;
            }
        }
    }

    /// Trailers, or a head on a stream that is over. The block is read in any case: those behind it build on it.
    fn take_late_block(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        ends: bool,
        block: &[u8],
        out: &mut Output,
    ) -> Outcome {
        let mut trailers = Trailers::new();
        self.decoder
            .decode(block, |name, value| {
                trailers.take(name, value, cx.limits);
            })
            .map_err(|_| Fault::FieldCompression)?;
        let Some(stream) = self.streams.find(id) else {
            if self.was_left(id) {
                self.budget.idle_frame(cx.now, cx.limits)?;
                return Ok(None);
            }
            return Err(Fault::StreamClosed);
        };
        let is_short = stream
            .expected
            .is_some_and(|expected| stream.received < expected);
        let checked = if let Err(fault) = stream.state.receive() {
            Err(fault)
        } else if !ends {
            Err(Fault::FrameSequence)
        } else if is_short {
            Err(Fault::LengthMismatch)
        } else {
            trailers.finish()
        };
        match checked {
            Ok(trailers) => Ok(self.end_body(cx, id, trailers, out)),
            Err(fault) => {
                self.budget.reset(cx.now, cx.limits)?;
                self.break_stream(cx, id, fault, out);
                self.close_if_done();
                Ok(None)
            }
        }
    }

    // --- the others ---------------------------------------------------------------------------

    fn take_reset(
        &mut self,
        cx: &mut Context<'_>,
        header: Header,
        payload: &[u8],
        out: &mut Output,
    ) -> Outcome {
        if payload.len() != 4 {
            return Err(Fault::FrameSize);
        }
        self.check_not_idle(header.stream)?;
        if self.has_unsent(header.stream) {
            self.budget.reset(cx.now, cx.limits)?;
        } else {
            self.budget.receipt(cx.now, cx.limits)?;
        }
        self.break_stream(cx, header.stream, Fault::StreamReset, out);
        self.close_if_done();
        Ok(None)
    }

    /// Whether something of the response of `id` has not been sent.
    fn has_unsent(&self, id: u32) -> bool {
        self.streams
            .find(id)
            .is_some_and(|stream| stream.is_open() || stream.waiting.is_some())
    }

    fn take_window_update(
        &mut self,
        cx: &mut Context<'_>,
        header: Header,
        payload: &[u8],
        out: &mut Output,
    ) -> Outcome {
        let Some((increment, [])) = frame::number(payload) else {
            return Err(Fault::FrameSize);
        };
        self.budget.receipt(cx.now, cx.limits)?;
        let increment = i64::from(increment);
        if header.stream == 0 {
            self.send_window = self.send_window.saturating_add(increment);
            if increment == 0 || self.send_window > WINDOW_MAX {
                return Err(Fault::FlowControl);
            }
        } else {
            self.check_not_idle(header.stream)?;
            let Some(stream) = self.streams.find_mut(header.stream) else {
                return Ok(None);
            };
            stream.send_window = stream.send_window.saturating_add(increment);
            let fault = match increment {
                0 => Some(Fault::FrameSequence),
                _ if stream.send_window > WINDOW_MAX => Some(Fault::FlowControl),
                _ => None,
            };
            if let Some(fault) = fault {
                self.budget.reset(cx.now, cx.limits)?;
                self.break_stream(cx, header.stream, fault, out);
                self.close_if_done();
                return Ok(None);
            }
        }
        self.pump_due = true;
        Ok(None)
    }

    fn take_control(
        &mut self,
        cx: &mut Context<'_>,
        header: Header,
        payload: &[u8],
        out: &mut Output,
    ) -> Result<(), Fault> {
        let is_pong = header.kind == Kind::Ping && header.has(ACK);
        if self.shutdown != Shutdown::No && is_pong && self.end_was_heard(payload) {
            return Ok(());
        }
        self.budget.idle_frame(cx.now, cx.limits)?;
        match header.kind {
            Kind::Settings => self.take_settings(header, payload, out),
            Kind::Ping => {
                if payload.len() != 8 {
                    return Err(Fault::FrameSize);
                }
                if !header.has(ACK) {
                    frame::ping(out.tail(), payload, ACK);
                } else if payload == SHUTDOWN_PING {
                    self.shutdown_was_heard(cx, out);
                }
                Ok(())
            }
            Kind::Priority => {
                if payload.len() != 5 {
                    return Err(Fault::FrameSize);
                }
                match frame::number(payload) {
                    Some((dependency, _)) if dependency == header.stream => {
                        Err(Fault::PriorityCycle)
                    }
                    _ => Ok(()),
                }
            }
            Kind::PriorityUpdate => {
                let (id, value) = frame::number(payload).ok_or(Fault::FrameSize)?;
                self.take_priority_update(cx, id, Priority::parse(value))
            }
            // The client closes gracefully: requests it has sent are still answered.
            Kind::GoAway if payload.len() < 8 => Err(Fault::FrameSize),
            _ => Ok(()),
        }
    }

    /// RFC 9218 §7.1. A stream may be open, over, or not begun.
    fn take_priority_update(
        &mut self,
        cx: &Context<'_>,
        id: u32,
        priority: Priority,
    ) -> Result<(), Fault> {
        if id == 0 {
            return Err(Fault::FrameSequence);
        }
        // A pushed one, that is.
        if id.is_multiple_of(2) {
            return Err(Fault::StreamNumber);
        }
        if let Some(stream) = self.streams.find_mut(id) {
            stream.priority = priority;
        }
        if id <= self.last_stream {
            return Ok(());
        }
        self.early.take(self.last_stream);
        let most = (cx.limits.h2_streams_max as usize).max(1);
        let is_kept = self
            .early
            .keep(id, priority, most.saturating_sub(self.streams.len()));
        // Before our settings are known a client may not know better.
        if is_kept || self.settings_at.is_some() {
            Ok(())
        } else {
            Err(Fault::PriorityExcess)
        }
    }

    fn take_settings(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Output,
    ) -> Result<(), Fault> {
        if header.has(ACK) {
            if !payload.is_empty() {
                return Err(Fault::FrameSize);
            }
            self.settings_at = None;
            return Ok(());
        }
        self.settings_received = true;
        let before = self.peer.window;
        self.peer.take(payload)?;
        self.encoder.allow(self.peer.table_bytes);
        // §6.9.2: windows of open streams move with the initial one, below zero if need be.
        let change = self.peer.window.saturating_sub(before);
        for stream in self.streams.iter_mut() {
            stream.send_window = stream.send_window.saturating_add(change);
            if stream.send_window > WINDOW_MAX {
                return Err(Fault::FlowControl);
            }
        }
        frame::settings_ack(out.tail());
        self.pump_due |= change > 0;
        Ok(())
    }

    /// §5.1: nothing but HEADERS and PRIORITY begins a stream.
    fn check_not_idle(&self, id: u32) -> Result<(), Fault> {
        if id == 0 || id > self.last_stream || id.is_multiple_of(2) {
            Err(Fault::FrameSequence)
        } else {
            Ok(())
        }
    }
}

/// What one step of [`Connection::receive`] comes to.
enum Step<'i> {
    Event(Event<'i>),
    /// Something was taken: go on.
    Again,
    /// More input is needed.
    Starved,
}
