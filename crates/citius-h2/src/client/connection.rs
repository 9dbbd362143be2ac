//! One connection: frames in, events out.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::head::{Pairs, Section};
use super::{Fault, Limits};
use crate::frame::{
    self, ACK, Code, END_HEADERS, END_STREAM, FRAME_BYTES_MAX, HEADER_BYTES, Header, Kind, PREFACE,
    PRIORITY, WINDOW_BYTES, WINDOW_MAX, number, without_padding,
};
use crate::hpack::{Decoder, Encoder};

/// What was understood. For each request: any number of `Interim`, one `Head`, any number of `Data`, one `End`; or a `Failed` or
/// `Reset` in place of the rest.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'i> {
    /// A response that another one follows (1xx).
    Interim(u32, u16, Pairs),
    /// The head of the response of a stream.
    Head(u32, u16, Pairs),
    /// A piece of its content; never empty.
    Data(u32, &'i [u8]),
    /// It is complete; its trailer section.
    End(u32, Pairs),
    /// It breaks a rule, and its stream was reset.
    Failed(u32, Fault),
    /// The server has reset the stream; whether it has done nothing of the request.
    Reset(u32, u32, bool),
    /// The server takes no more requests, and has done nothing of those of streams above this one.
    Leaving(u32),
    /// There may be room for requests or content that there was not.
    Room,
    /// The answer to a ping.
    Pong,
}

/// One connection to a server.
#[derive(Debug)]
pub struct Connection {
    decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) streams: BTreeMap<u32, Stream>,
    /// Streams that count towards the server's limit.
    pub(super) open: u32,
    pub(super) next: u32,
    /// What each stream of ours may send at first.
    pub(super) peer_window: u32,
    streams_max_peer: u32,
    streams_max_own: u32,
    pub(super) send_window: i64,
    /// What the server may still send on all streams, and what has come since it was told.
    receive_window: i64,
    received: u32,
    /// A field section that is not there in full: its stream, whether it ends that, and what has come.
    section: Option<(u32, bool, Vec<u8>)>,
    continuations: u32,
    pub(super) idle_frames: u32,
    /// Answers to settings and pings that were appended since what is to be sent was taken.
    replies: u32,
    is_greeted: bool,
    /// The server takes no more requests.
    pub(super) is_going: bool,
    fault: Option<Fault>,
}

/// One request and its response.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one stream"
)]
pub(super) struct Stream {
    pub(super) send_window: i64,
    receive_window: i64,
    /// Bytes that were consumed since the server was told.
    consumed: u32,
    is_head: bool,
    /// The request is complete.
    pub(super) is_sent: bool,
    has_head: bool,
    is_received: bool,
    interims: u32,
    /// Bytes of content to come, if the head says so.
    left: Option<u64>,
}

impl Stream {
    pub(super) fn new(send_window: i64, is_head: bool, is_sent: bool) -> Self {
        Self {
            send_window,
            receive_window: 0,
            consumed: 0,
            is_head,
            is_sent,
            has_head: false,
            is_received: false,
            interims: 0,
            left: None,
        }
    }
}

impl Connection {
    /// Begins a connection: what is to be sent first is appended.
    pub fn new(limits: &Limits, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(PREFACE);
        frame::settings(
            out,
            &[
                // No response is pushed.
                (0x2, 0),
                (0x4, limits.stream_window_bytes),
                (0x6, limits.head_bytes_max),
            ],
        );
        let window = i64::from(limits.connection_window_bytes).max(WINDOW_BYTES);
        let more = u32::try_from(window.saturating_sub(WINDOW_BYTES)).unwrap_or(0);
        if more > 0 {
            frame::window_update(out, 0, more);
        }
        Self {
            decoder: Decoder::new(),
            encoder: Encoder::new(),
            streams: BTreeMap::new(),
            open: 0,
            next: 1,
            peer_window: 65_535,
            streams_max_peer: limits.streams_max,
            streams_max_own: limits.streams_max,
            send_window: WINDOW_BYTES,
            receive_window: window,
            received: 0,
            section: None,
            continuations: 0,
            idle_frames: 0,
            replies: 0,
            is_greeted: false,
            is_going: false,
            fault: None,
        }
    }

    pub(super) fn streams_max(&self) -> u32 {
        self.streams_max_peer.min(self.streams_max_own)
    }

    /// Whether the server takes no more requests.
    pub fn is_going(&self) -> bool {
        self.is_going
    }

    /// Whether the server takes no request now, and may take some when its settings change (RFC 9113 §5.1.2).
    pub fn admits_none(&self) -> bool {
        self.streams_max_peer == 0 && !self.is_going
    }

    /// Takes whole frames off the front of `input`, and returns the next event; call until `None`. What is left must be offered again,
    /// longer.
    ///
    /// # Errors
    /// The rule that the server has broken: send what was appended to `out`, and close the connection.
    pub fn receive<'i>(
        &mut self,
        limits: &Limits,
        input: &mut &'i [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'i>>, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        while let Some((header, rest)) = Header::read(input) {
            if header.length > FRAME_BYTES_MAX {
                return Err(self.fail(Fault::FrameSize, out));
            }
            let Some((payload, next)) = rest.split_at_checked(header.length) else {
                break;
            };
            *input = next;
            match self.take(header, payload, limits, out) {
                Ok(None) => {}
                Ok(event) => return Ok(event),
                Err(fault) => return Err(self.fail(fault, out)),
            }
        }
        debug_assert!(input.len() < HEADER_BYTES + FRAME_BYTES_MAX);
        Ok(None)
    }

    fn fail(&mut self, fault: Fault, out: &mut Vec<u8>) -> Fault {
        frame::go_away(out, 0, fault.code);
        self.fault = Some(fault);
        fault
    }

    fn take<'i>(
        &mut self,
        header: Header,
        payload: &'i [u8],
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'i>>, Fault> {
        if !self.is_greeted && (header.kind != Kind::Settings || header.has(ACK)) {
            return Err(Fault::SettingsMissing);
        }
        if self.section.is_some() && header.kind != Kind::Continuation {
            return Err(Fault::FrameOrder);
        }
        self.idle_frames = self.idle_frames.saturating_add(1);
        if self.idle_frames > limits.idle_frames_max {
            return Err(Fault::ExcessiveLoad);
        }
        match header.kind {
            Kind::Data => self.take_data(header, payload, limits, out),
            Kind::Headers => self.take_headers(header, payload, limits, out),
            Kind::Continuation => self.take_continuation(header, payload, limits, out),
            Kind::Settings => {
                self.count_reply(limits)?;
                self.take_settings(header, payload, out)
            }
            Kind::Ping => {
                self.count_reply(limits)?;
                take_ping(header, payload, out)
            }
            Kind::GoAway => self.take_go_away(header, payload),
            Kind::WindowUpdate => self.take_window(header, payload, out),
            Kind::ResetStream => self.take_reset(header, payload),
            Kind::PushPromise => Err(Fault::Push),
            Kind::Priority if header.length != 5 => Err(Fault::FrameSize),
            Kind::Priority | Kind::PriorityUpdate | Kind::Unknown => Ok(None),
        }
    }

    /// What was appended to `out` has been taken.
    pub fn output_taken(&mut self) {
        self.replies = 0;
    }

    /// A server that asks, and does not read the answers, asks for memory.
    fn count_reply(&mut self, limits: &Limits) -> Result<(), Fault> {
        self.replies = self.replies.saturating_add(1);
        if self.replies > limits.replies_max {
            return Err(Fault::ExcessiveLoad);
        }
        Ok(())
    }

    /// Whether a stream was begun, and may be over; an error if it was not.
    fn check_begun(&self, id: u32) -> Result<(), Fault> {
        if id == 0 || id.is_multiple_of(2) || id >= self.next {
            return Err(Fault::FrameStream);
        }
        Ok(())
    }

    fn take_data<'i>(
        &mut self,
        header: Header,
        payload: &'i [u8],
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'i>>, Fault> {
        let id = header.stream;
        self.check_begun(id)?;
        let size = i64::try_from(header.length).unwrap_or(i64::MAX);
        self.receive_window = self.receive_window.saturating_sub(size);
        if self.receive_window < 0 {
            return Err(Fault::FlowControl);
        }
        // What has come is bounded by the windows of the streams; the connection's is opened again at once.
        self.received = self
            .received
            .saturating_add(u32::try_from(size).unwrap_or(0));
        if self.received >= limits.connection_window_bytes / 2 {
            frame::window_update(out, 0, self.received);
            self.receive_window = self.receive_window.saturating_add(i64::from(self.received));
            self.received = 0;
        }
        let data = without_padding(header, payload).map_err(|fault| match fault {
            citius_http::Fault::FramePadding => Fault::FramePadding,
            _ => Fault::FrameSize,
        })?;
        let Some(stream) = self.streams.get_mut(&id) else {
            // It was given up, and the server does not know yet.
            return Ok(None);
        };
        stream.receive_window = stream.receive_window.saturating_sub(size);
        if stream
            .receive_window
            .saturating_add(i64::from(limits.stream_window_bytes))
            < 0
        {
            return Err(Fault::FlowControl);
        }
        let padding = header.length.saturating_sub(data.len());
        stream.consumed = stream
            .consumed
            .saturating_add(u32::try_from(padding).unwrap_or(0));
        let ends = header.has(END_STREAM);
        if let Err(fault) = stream.count(data, ends) {
            return Ok(Some(self.fail_stream(id, fault, out)));
        }
        if !data.is_empty() {
            self.idle_frames = 0;
        }
        if ends && data.is_empty() {
            return Ok(Some(self.end(id, Pairs::new())));
        }
        if ends && let Some(stream) = self.streams.get_mut(&id) {
            stream.is_received = true;
        }
        Ok((!data.is_empty()).then_some(Event::Data(id, data)))
    }

    /// The end that came with the last piece of content: to be asked for after each [`Event::Data`].
    pub fn take_end(&mut self, id: u32) -> bool {
        let is_over = self.streams.get(&id).is_some_and(|it| it.is_received);
        if is_over {
            self.drop_if_over(id);
        }
        is_over
    }

    fn end<'i>(&mut self, id: u32, trailers: Pairs) -> Event<'i> {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.is_received = true;
        }
        self.drop_if_over(id);
        Event::End(id, trailers)
    }

    /// Forgets a stream whose request and response are complete.
    pub(super) fn drop_if_over(&mut self, id: u32) {
        let is_over = self
            .streams
            .get(&id)
            .is_some_and(|it| it.is_sent && it.is_received);
        if is_over {
            self.forget(id);
        }
    }

    /// Forgets a stream; whether it was there.
    pub(super) fn forget(&mut self, id: u32) -> bool {
        let was_there = self.streams.remove(&id).is_some();
        if was_there {
            self.open = self.open.saturating_sub(1);
        }
        was_there
    }

    fn fail_stream<'i>(&mut self, id: u32, fault: Fault, out: &mut Vec<u8>) -> Event<'i> {
        self.forget(id);
        frame::reset(out, id, fault.code);
        Event::Failed(id, fault)
    }

    fn take_headers<'i>(
        &mut self,
        header: Header,
        payload: &[u8],
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'i>>, Fault> {
        self.check_begun(header.stream)?;
        let mut block = without_padding(header, payload).map_err(|fault| match fault {
            citius_http::Fault::FramePadding => Fault::FramePadding,
            _ => Fault::FrameSize,
        })?;
        if header.has(PRIORITY) {
            block = block.get(5..).ok_or(Fault::FrameSize)?;
        }
        let ends = header.has(END_STREAM);
        if header.has(END_HEADERS) {
            return self.take_section(header.stream, ends, block, limits, out);
        }
        self.continuations = 0;
        self.section = Some((header.stream, ends, block.to_vec()));
        Ok(None)
    }

    fn take_continuation<'i>(
        &mut self,
        header: Header,
        payload: &[u8],
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'i>>, Fault> {
        let Some((id, ends, mut block)) = self.section.take() else {
            return Err(Fault::FrameOrder);
        };
        if id != header.stream {
            return Err(Fault::FrameOrder);
        }
        block.extend_from_slice(payload);
        self.continuations = self.continuations.saturating_add(1);
        if block.len() > limits.head_bytes_max as usize || self.continuations > limits.fields_max {
            return Err(Fault::SectionTooLong);
        }
        if header.has(END_HEADERS) {
            return self.take_section(id, ends, &block, limits, out);
        }
        self.section = Some((id, ends, block));
        Ok(None)
    }

    /// A whole field section: a head, an interim one, or trailers.
    fn take_section<'i>(
        &mut self,
        id: u32,
        ends: bool,
        block: &[u8],
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'i>>, Fault> {
        let mut section = Section::default();
        let decoded = self
            .decoder
            .decode(block, |name, value| section.take(name, value, limits));
        decoded.map_err(|_| Fault::Compression)?;
        if !self.streams.contains_key(&id) {
            return Ok(None);
        }
        self.idle_frames = 0;
        match section
            .end()
            .and_then(|it| self.place(id, ends, it, limits))
        {
            Ok(event) => Ok(Some(event)),
            Err(fault) => Ok(Some(self.fail_stream(id, fault, out))),
        }
    }

    fn place<'i>(
        &mut self,
        id: u32,
        ends: bool,
        section: Section,
        limits: &Limits,
    ) -> Result<Event<'i>, Fault> {
        let Some(stream) = self.streams.get_mut(&id) else {
            return Err(Fault::MessageOrder);
        };
        if stream.is_received {
            return Err(Fault::StreamClosed);
        }
        if stream.has_head {
            // Trailers end the response, and have no pseudo-field.
            if !ends || section.status.is_some() {
                return Err(Fault::MessageOrder);
            }
            if stream.left.is_some_and(|left| left > 0) {
                return Err(Fault::ContentLength);
            }
            return Ok(self.end(id, section.fields));
        }
        let status = section.status.ok_or(Fault::PseudoField)?;
        if status < 200 {
            stream.interims = stream.interims.saturating_add(1);
            if ends || status == 101 {
                return Err(Fault::Status);
            }
            if stream.interims > limits.interim_max {
                return Err(Fault::TooManyInterim);
            }
            return Ok(Event::Interim(id, status, section.fields));
        }
        stream.has_head = true;
        let is_empty = stream.is_head || status == 304 || status == 204;
        if status == 204 && section.content_length.is_some_and(|it| it > 0) {
            return Err(Fault::ContentLength);
        }
        stream.left = if is_empty {
            Some(0)
        } else {
            section.content_length
        };
        if ends {
            if stream.left.is_some_and(|left| left > 0) {
                return Err(Fault::ContentLength);
            }
            stream.is_received = true;
        }
        Ok(Event::Head(id, status, section.fields))
    }

    fn take_settings<'i>(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'i>>, Fault> {
        if header.stream != 0 {
            return Err(Fault::FrameStream);
        }
        if header.has(ACK) {
            return if payload.is_empty() {
                Ok(None)
            } else {
                Err(Fault::FrameSize)
            };
        }
        let mut rest = payload;
        while let Some(([n0, n1, v0, v1, v2, v3], next)) = rest.split_first_chunk::<6>() {
            rest = next;
            let value = u32::from_be_bytes([*v0, *v1, *v2, *v3]);
            match u16::from_be_bytes([*n0, *n1]) {
                1 => self.encoder.allow(value as usize),
                2 if value > 0 => return Err(Fault::SettingsValue),
                3 => self.streams_max_peer = value,
                4 if i64::from(value) > WINDOW_MAX => return Err(Fault::FlowControl),
                4 => self.move_windows(value)?,
                5 if !(16_384..=16_777_215).contains(&value) => return Err(Fault::SettingsValue),
                _ => {}
            }
        }
        if !rest.is_empty() {
            return Err(Fault::FrameSize);
        }
        self.is_greeted = true;
        frame::settings_ack(out);
        Ok(Some(Event::Room))
    }

    fn move_windows(&mut self, window: u32) -> Result<(), Fault> {
        let change = i64::from(window).saturating_sub(i64::from(self.peer_window));
        self.peer_window = window;
        for stream in self.streams.values_mut() {
            stream.send_window = stream.send_window.saturating_add(change);
            if stream.send_window > WINDOW_MAX {
                return Err(Fault::FlowControl);
            }
        }
        Ok(())
    }

    fn take_window<'i>(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'i>>, Fault> {
        let (more, []) = number(payload).ok_or(Fault::FrameSize)? else {
            return Err(Fault::FrameSize);
        };
        let id = header.stream;
        if id == 0 {
            self.send_window = self.send_window.saturating_add(i64::from(more));
            if more == 0 {
                return Err(Fault::WindowIncrement);
            }
            if self.send_window > WINDOW_MAX {
                return Err(Fault::FlowControl);
            }
            return Ok(Some(Event::Room));
        }
        self.check_begun(id)?;
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(None);
        };
        stream.send_window = stream.send_window.saturating_add(i64::from(more));
        if more == 0 {
            return Ok(Some(self.fail_stream(id, Fault::WindowIncrement, out)));
        }
        if stream.send_window > WINDOW_MAX {
            return Ok(Some(self.fail_stream(id, Fault::FlowControl, out)));
        }
        Ok(Some(Event::Room))
    }

    fn take_reset<'i>(
        &mut self,
        header: Header,
        payload: &[u8],
    ) -> Result<Option<Event<'i>>, Fault> {
        self.check_begun(header.stream)?;
        let Some(([c0, c1, c2, c3], [])) = payload.split_first_chunk::<4>() else {
            return Err(Fault::FrameSize);
        };
        let code = u32::from_be_bytes([*c0, *c1, *c2, *c3]);
        let id = header.stream;
        let Some(stream) = self.streams.get(&id) else {
            return Ok(None);
        };
        // A server that has answered in full may say that it needs no more of the request (RFC 9113 §8.1).
        if stream.is_received {
            self.forget(id);
            return Ok(Some(Event::Room));
        }
        self.forget(id);
        Ok(Some(Event::Reset(
            id,
            code,
            code == Code::RefusedStream as u32,
        )))
    }

    fn take_go_away<'i>(
        &mut self,
        header: Header,
        payload: &[u8],
    ) -> Result<Option<Event<'i>>, Fault> {
        if header.stream != 0 {
            return Err(Fault::FrameStream);
        }
        let (last, rest) = number(payload).ok_or(Fault::FrameSize)?;
        if rest.len() < 4 {
            return Err(Fault::FrameSize);
        }
        self.is_going = true;
        Ok(Some(Event::Leaving(last)))
    }

    /// Content of a stream was consumed: the server may send as much again.
    pub fn consumed(&mut self, id: u32, bytes: usize, limits: &Limits, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(&id).filter(|it| !it.is_received) else {
            return;
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        stream.consumed = stream.consumed.saturating_add(bytes);
        if stream.consumed >= limits.stream_window_bytes / 2 {
            frame::window_update(out, id, stream.consumed);
            stream.receive_window = stream
                .receive_window
                .saturating_add(i64::from(stream.consumed));
            stream.consumed = 0;
        }
    }
}

impl Stream {
    /// Counts content against what the head has said.
    fn count(&mut self, data: &[u8], ends: bool) -> Result<(), Fault> {
        if !self.has_head {
            return Err(Fault::MessageOrder);
        }
        if self.is_received {
            return Err(Fault::StreamClosed);
        }
        if let Some(left) = &mut self.left {
            let size = data.len() as u64;
            *left = left.checked_sub(size).ok_or(Fault::ContentLength)?;
            if ends && *left > 0 {
                return Err(Fault::ContentLength);
            }
        }
        Ok(())
    }
}

fn take_ping<'i>(
    header: Header,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<Option<Event<'i>>, Fault> {
    if header.stream != 0 {
        return Err(Fault::FrameStream);
    }
    if payload.len() != 8 {
        return Err(Fault::FrameSize);
    }
    if header.has(ACK) {
        return Ok(Some(Event::Pong));
    }
    frame::ping(out, payload, ACK);
    Ok(None)
}
