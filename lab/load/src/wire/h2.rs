//! HTTP/2, client side (RFC 9113): a stream per request, answers in any order.
//!
//! Requests go out with the opening, without waiting for the peer's settings; streams are limited
//! to [`STREAMS_ASSUMED`] until these say otherwise. A request body that a window has no room for
//! waits, and no request is added behind it. Windows for the peer are a gigabyte and renewed when
//! half of it is used.
//!
//! Streams are numbered in steps of two, so those under way are a queue of slots: its front is the
//! oldest, and a slot that is done stays, empty, until those before it are.
//!
//! What breaks a stream (a malformed head, a wrong content length, a reset) costs its request;
//! what breaks the connection is a [`Fault`]. Not spoken: push, priorities, and padding of our own.

mod frame;
mod hpack;
pub(crate) mod huffman;

use std::collections::VecDeque;
use std::sync::Arc;

use self::frame::FrameHead;
use self::hpack::{Catalogue, Coded, Decoder, Encoder, Section, Tools};
use super::{Answers, Failure, Fault, Setup, Ticket, Wire};
use crate::request::Request;

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct H2 {
    /// A frame, not DATA, of which not all has come; or a head.
    partial: Vec<u8>,
    /// The DATA frame that is being read.
    data: Option<Data>,
    /// The field block that is being collected, and the stream it is for.
    block: Option<Block>,
    has_settings: bool,
    streams: VecDeque<Option<Stream>>,
    /// The number of the stream at the front of the queue.
    front: u32,
    n_open: usize,
    n_open_max: usize,
    /// The last stream that the peer will answer, if it is about to leave.
    last: Option<u32>,
    encoder: Encoder,
    decoder: Decoder,
    /// Bytes of DATA received since the connection's window was renewed.
    n_unrenewed: u32,
    send_window: i64,
    send_window_initial: i64,
    n_payload_max: usize,
    /// The body that waits for a window.
    upload: Option<Upload>,
    /// Frames that answer the peer's.
    replies: Vec<u8>,
}

#[derive(Debug)]
struct Stream {
    ticket: Ticket,
    has_begun: bool,
    /// Bytes that the content length has promised and that have not come.
    n_promised: Option<u64>,
    n_unrenewed: u32,
}

#[derive(Clone, Copy, Debug)]
struct Data {
    stream: u32,
    n_left: usize,
    /// Of those, at the end.
    n_padding: usize,
    ends: bool,
}

#[derive(Debug)]
struct Block {
    stream: u32,
    ends_stream: bool,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Upload {
    stream: u32,
    body: Arc<[u8]>,
    n_sent: usize,
    window: i64,
}

/// A request as it is sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    fields: Vec<Coded>,
    body: Arc<[u8]>,
}

impl Wire for H2 {
    type Shared = Tools;
    type Prepared = Prepared;
    const REPLIES: bool = true;

    fn new(_setup: Setup) -> Self {
        Self {
            partial: Vec::new(),
            data: None,
            block: None,
            has_settings: false,
            streams: VecDeque::new(),
            front: 1,
            n_open: 0,
            n_open_max: STREAMS_ASSUMED,
            last: None,
            encoder: Encoder::default(),
            decoder: Decoder::default(),
            n_unrenewed: 0,
            send_window: i64::from(frame::WINDOW_DEFAULT),
            send_window_initial: i64::from(frame::WINDOW_DEFAULT),
            n_payload_max: frame::PAYLOAD_BYTES_MAX,
            upload: None,
            replies: Vec::new(),
        }
    }

    fn prepare(requests: &[&Request], setup: Setup) -> Vec<Prepared> {
        let mut catalogue = Catalogue::default();
        let prepare = |request: &&Request| Prepared {
            fields: fields(request, setup)
                .iter()
                .map(|(name, value)| catalogue.code(name, value))
                .collect(),
            body: request.body.as_slice().into(),
        };
        requests.iter().map(prepare).collect()
    }

    fn open(&mut self, _prepared: &[Prepared], output: &mut Vec<u8>) {
        frame::write_opening(output);
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.n_open < self.n_open_max
            && self.upload.is_none()
            && self.last.is_none()
            && self.streams.len() < STREAMS_SPAN_MAX
            && self.next() < frame::STREAM_MAX
    }

    fn send(&mut self, ticket: Ticket, _due_ns: u64, prepared: &Prepared, output: &mut Vec<u8>) {
        let stream = self.next();
        self.n_open += 1;
        self.streams.push_back(Some(Stream {
            ticket,
            has_begun: false,
            n_promised: None,
            n_unrenewed: 0,
        }));
        let has_body = !prepared.body.is_empty();
        self.write_head(stream, &prepared.fields, !has_body, output);
        if has_body {
            self.upload = Some(Upload {
                stream,
                body: Arc::clone(&prepared.body),
                n_sent: 0,
                window: self.send_window_initial,
            });
            self.write_body(output);
        }
    }

    #[inline]
    fn reply(&mut self, output: &mut Vec<u8>) {
        output.append(&mut self.replies);
        if self.upload.is_some() {
            self.write_body(output);
        }
    }

    fn receive<A: Answers>(
        &mut self,
        tools: &mut Tools,
        mut input: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault> {
        while !input.is_empty() {
            if self.data.is_some() {
                input = self.receive_data(input, answers)?;
            } else if self.partial.is_empty()
                && let Some((head, rest)) = input.split_first_chunk()
            {
                let head = self.check(FrameHead::parse(head))?;
                if head.kind == frame::DATA {
                    self.begin_data(head)?;
                    input = rest;
                    self.end_empty_data(answers)?;
                } else if let Some((payload, rest)) = rest.split_at_checked(head.n_payload) {
                    self.receive_frame(tools, head, payload, answers)?;
                    input = rest;
                } else {
                    self.partial.extend_from_slice(input);
                    return Ok(());
                }
            } else {
                input = self.receive_partial(tools, input, answers)?;
            }
        }
        Ok(())
    }

    fn end<A: Answers>(&mut self, _answers: &mut A) {}

    fn has_begun(&self, ticket: Ticket) -> bool {
        let mut open = self.streams.iter().flatten();
        open.any(|stream| stream.ticket == ticket && stream.has_begun)
    }

    fn is_over(&self) -> bool {
        self.last.is_some_and(|last| {
            self.numbered()
                .all(|(number, stream)| stream.is_none() || number > last)
        })
    }

    fn skippable(&self) -> u64 {
        0
    }

    fn skip<A: Answers>(&mut self, _n_bytes: u64, _answers: &mut A) {
        unreachable!("nothing is skippable");
    }
}

impl H2 {
    /// The number of the next stream.
    #[inline]
    fn next(&self) -> u32 {
        let n_streams = u32::try_from(self.streams.len()).expect("bounded by STREAMS_SPAN_MAX");
        self.front + 2 * n_streams
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &Option<Stream>)> {
        (self.front..).step_by(2).zip(&self.streams)
    }

    /// The place of a stream in the queue; `None` if we never opened it. A stream before the
    /// queue's front is one that is done.
    fn place(&self, number: u32) -> Result<Option<usize>, Fault> {
        if number & 1 == 0 || number >= self.next() {
            return Err(Fault::Stream);
        }
        let Some(distance) = number.checked_sub(self.front) else {
            return Ok(None);
        };
        let place = usize::try_from(distance / 2).expect("32 bits");
        Ok(self.streams[place].is_some().then_some(place))
    }

    #[inline]
    fn stream(&mut self, place: usize) -> &mut Stream {
        self.streams[place].as_mut().expect("a place of `place`")
    }

    /// Takes a stream off the queue; its ticket is free.
    #[inline]
    fn close(&mut self, place: usize) -> Stream {
        let stream = self.streams[place].take().expect("a place of `place`");
        self.n_open -= 1;
        if let Some(upload) = &self.upload
            && upload.stream == self.front + 2 * u32::try_from(place).expect("bounded")
        {
            // The peer has answered without reading all of the body.
            let number = upload.stream;
            self.upload = None;
            frame::write_reset(number, frame::CANCEL, &mut self.replies);
        }
        while let Some(None) = self.streams.front() {
            self.streams.pop_front();
            self.front += 2;
        }
        stream
    }

    /// Ends a stream that broke a rule, and tells the peer.
    fn refuse<A: Answers>(&mut self, number: u32, place: usize, answers: &mut A) {
        frame::write_reset(number, frame::PROTOCOL_ERROR, &mut self.replies);
        let stream = self.close(place);
        answers.fail(stream.ticket, Failure::Protocol);
    }

    #[inline]
    fn write_head(&mut self, stream: u32, fields: &[Coded], ends: bool, output: &mut Vec<u8>) {
        let start = output.len();
        output.extend_from_slice(&[0; frame::HEAD_BYTES]);
        self.encoder.encode(fields, output);
        let n_payload = output.len() - start - frame::HEAD_BYTES;
        let mut flags = if ends { frame::END_STREAM } else { 0 };
        if n_payload <= self.n_payload_max {
            let head = FrameHead {
                n_payload,
                kind: frame::HEADERS,
                flags: flags | frame::END_HEADERS,
                stream,
            };
            output[start..start + frame::HEAD_BYTES].copy_from_slice(&head.bytes());
            return;
        }
        // RFC 9113 §6.10: what does not fit follows in frames of its own.
        let block = output.split_off(start + frame::HEAD_BYTES);
        output.truncate(start);
        let mut kind = frame::HEADERS;
        let mut pieces = block.chunks(self.n_payload_max).peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                flags |= frame::END_HEADERS;
            }
            frame::write_short(kind, flags, stream, piece, output);
            (kind, flags) = (frame::CONTINUATION, 0);
        }
    }

    /// As much of the body that waits as the windows have room for.
    fn write_body(&mut self, output: &mut Vec<u8>) {
        let Some(upload) = &mut self.upload else {
            return;
        };
        loop {
            let room = self.send_window.min(upload.window);
            let rest = &upload.body[upload.n_sent..];
            let n_piece = usize::try_from(room)
                .unwrap_or(0)
                .min(rest.len())
                .min(self.n_payload_max);
            if n_piece == 0 {
                return;
            }
            let ends = n_piece == rest.len();
            let flags = if ends { frame::END_STREAM } else { 0 };
            frame::write_short(frame::DATA, flags, upload.stream, &rest[..n_piece], output);
            upload.n_sent += n_piece;
            let n_window = i64::try_from(n_piece).expect("bounded by the window");
            upload.window -= n_window;
            self.send_window -= n_window;
            if ends {
                self.upload = None;
                return;
            }
        }
    }

    /// # Errors  The frame may not come now, or not in this size.
    #[inline]
    fn check(&self, head: FrameHead) -> Result<FrameHead, Fault> {
        if !self.has_settings && (head.kind != frame::SETTINGS || head.has(frame::ACK)) {
            return Err(Fault::Preface);
        }
        if head.n_payload > frame::PAYLOAD_BYTES_MAX {
            return Err(Fault::Frame);
        }
        let continues = self.block.as_ref().map(|block| block.stream);
        match (continues, head.kind == frame::CONTINUATION) {
            (Some(stream), true) if stream == head.stream => Ok(head),
            (None, false) => Ok(head),
            _ => Err(Fault::Frame),
        }
    }

    #[cold]
    fn receive_partial<'a, A: Answers>(
        &mut self,
        tools: &mut Tools,
        input: &'a [u8],
        answers: &mut A,
    ) -> Result<&'a [u8], Fault> {
        let take = |partial: &mut Vec<u8>, input: &mut &'a [u8], n_wanted: usize| {
            let n_missing = n_wanted - partial.len().min(n_wanted);
            let (taken, rest) = input.split_at(n_missing.min(input.len()));
            partial.extend_from_slice(taken);
            *input = rest;
            partial.len() >= n_wanted
        };
        let mut input = input;
        if !take(&mut self.partial, &mut input, frame::HEAD_BYTES) {
            return Ok(input);
        }
        let head = self.partial.first_chunk().expect("a whole head");
        let head = self.check(FrameHead::parse(head))?;
        if head.kind == frame::DATA {
            self.partial.clear();
            self.begin_data(head)?;
            self.end_empty_data(answers)?;
        } else if take(
            &mut self.partial,
            &mut input,
            frame::HEAD_BYTES + head.n_payload,
        ) {
            let frame = std::mem::take(&mut self.partial);
            self.receive_frame(tools, head, &frame[frame::HEAD_BYTES..], answers)?;
        }
        Ok(input)
    }

    fn begin_data(&mut self, head: FrameHead) -> Result<(), Fault> {
        self.renew_window(head.n_payload);
        self.data = Some(Data {
            stream: head.stream,
            n_left: head.n_payload,
            // How much is said by the first byte, which is not a part of the data either.
            n_padding: if head.has(frame::PADDED) {
                usize::MAX
            } else {
                0
            },
            ends: head.has(frame::END_STREAM),
        });
        if head.has(frame::PADDED) && head.n_payload == 0 {
            return Err(Fault::Frame);
        }
        self.place(head.stream).map(|_| ())
    }

    fn renew_window(&mut self, n_bytes: usize) {
        self.n_unrenewed += u32::try_from(n_bytes).expect("a payload");
        if self.n_unrenewed > frame::RECEIVE_WINDOW / 2 {
            frame::write_window_update(0, self.n_unrenewed, &mut self.replies);
            self.n_unrenewed = 0;
        }
    }

    fn end_empty_data<A: Answers>(&mut self, answers: &mut A) -> Result<(), Fault> {
        match self.data {
            Some(Data { n_left: 0, .. }) => self.receive_data(&[], answers).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Reads what `input` has of the DATA frame, and returns what is behind it.
    fn receive_data<'a, A: Answers>(
        &mut self,
        mut input: &'a [u8],
        answers: &mut A,
    ) -> Result<&'a [u8], Fault> {
        let Some(mut data) = self.data.take() else {
            return Ok(input);
        };
        if data.n_padding == usize::MAX
            && let Some((length, rest)) = input.split_first()
        {
            data.n_left -= 1;
            data.n_padding = usize::from(*length);
            if data.n_padding > data.n_left {
                return Err(Fault::Frame);
            }
            input = rest;
        }
        let n_here = data.n_left.min(input.len());
        let n_body = n_here.min(data.n_left - data.n_padding.min(data.n_left));
        let (bytes, rest) = input.split_at(n_here);
        data.n_left -= n_here;
        let is_done = data.n_left == 0;
        if !is_done {
            self.data = Some(data);
        }
        // What comes for a stream that is done was under way when it ended.
        let Some(place) = self.place(data.stream)? else {
            return Ok(rest);
        };
        let is_sound = self.note_data(data.stream, place, &bytes[..n_body], answers);
        if is_sound && is_done && data.ends {
            self.end_stream(data.stream, place, answers);
        }
        Ok(rest)
    }

    /// Says whether the stream is still there.
    #[inline]
    fn note_data<A: Answers>(
        &mut self,
        number: u32,
        place: usize,
        body: &[u8],
        answers: &mut A,
    ) -> bool {
        let stream = self.stream(place);
        let n_body = body.len() as u64;
        let is_promised = match &mut stream.n_promised {
            Some(n_promised) => n_promised
                .checked_sub(n_body)
                .inspect(|left| *n_promised = *left)
                .is_some(),
            None => true,
        };
        if !stream.has_begun || !is_promised {
            self.refuse(number, place, answers);
            return false;
        }
        stream.n_unrenewed += u32::try_from(n_body).expect("a payload");
        let (ticket, n_unrenewed) = (stream.ticket, stream.n_unrenewed);
        if n_unrenewed > frame::RECEIVE_WINDOW / 2 {
            stream.n_unrenewed = 0;
            frame::write_window_update(number, n_unrenewed, &mut self.replies);
        }
        if !body.is_empty() {
            answers.body(ticket, body);
        }
        true
    }

    #[inline]
    fn end_stream<A: Answers>(&mut self, number: u32, place: usize, answers: &mut A) {
        let stream = self.stream(place);
        // RFC 9113 §8.1.1: a length that is not kept is malformed; HEAD and 304 have none to keep.
        let is_kept = stream.n_promised.is_none_or(|left| left == 0);
        if !stream.has_begun || !is_kept {
            return self.refuse(number, place, answers);
        }
        let stream = self.close(place);
        answers.complete(stream.ticket);
    }

    fn receive_frame<A: Answers>(
        &mut self,
        tools: &mut Tools,
        head: FrameHead,
        payload: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault> {
        match head.kind {
            frame::HEADERS => {
                let block = unwrap_headers(head, payload)?;
                if head.has(frame::END_HEADERS) {
                    let ends = head.has(frame::END_STREAM);
                    return self.receive_block(tools, head.stream, ends, block, answers);
                }
                self.block = Some(Block {
                    stream: head.stream,
                    ends_stream: head.has(frame::END_STREAM),
                    bytes: block.to_vec(),
                });
                Ok(())
            }
            frame::CONTINUATION => {
                let mut block = self.block.take().ok_or(Fault::Frame)?;
                block.bytes.extend_from_slice(payload);
                if block.bytes.len() > BLOCK_BYTES_MAX {
                    return Err(Fault::HeadTooLong);
                }
                if !head.has(frame::END_HEADERS) {
                    self.block = Some(block);
                    return Ok(());
                }
                self.receive_block(
                    tools,
                    block.stream,
                    block.ends_stream,
                    &block.bytes,
                    answers,
                )
            }
            frame::RST_STREAM => {
                if payload.len() != 4 {
                    return Err(Fault::Frame);
                }
                if let Some(place) = self.place(head.stream)? {
                    let stream = self.close(place);
                    answers.fail(stream.ticket, Failure::Reset);
                }
                Ok(())
            }
            frame::SETTINGS => self.receive_settings(head, payload),
            frame::PING => {
                if payload.len() != 8 || head.stream != 0 {
                    return Err(Fault::Frame);
                }
                if !head.has(frame::ACK) {
                    self.bound_replies()?;
                    frame::write_short(frame::PING, frame::ACK, 0, payload, &mut self.replies);
                }
                Ok(())
            }
            frame::GOAWAY => {
                let last = frame::number(payload).ok_or(Fault::Frame)? & frame::STREAM_MAX;
                self.last = Some(self.last.map_or(last, |known| known.min(last)));
                Ok(())
            }
            frame::WINDOW_UPDATE => self.receive_window_update(head, payload),
            frame::PUSH_PROMISE => Err(Fault::Frame),
            // RFC 9113 §5.5: unknown frames are ignored, and so are priorities.
            _ => Ok(()),
        }
    }

    fn receive_block<A: Answers>(
        &mut self,
        tools: &mut Tools,
        number: u32,
        ends: bool,
        block: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault> {
        // Decoded in any case, because the table depends on it.
        let section = self.decoder.decode(tools, block)?;
        let Some(place) = self.place(number)? else {
            return Ok(());
        };
        let Section {
            status,
            content_length,
            is_malformed,
        } = section;
        let stream = self.stream(place);
        match status {
            // RFC 9110 §15.2: any number of interim answers may precede the final one.
            Some(100..200) if !ends && !stream.has_begun && !is_malformed => Ok(()),
            Some(status @ 200..) if !stream.has_begun && !is_malformed => {
                stream.has_begun = true;
                let ticket = stream.ticket;
                let has_body = !matches!(status, 204 | 304) && !answers.is_head(ticket);
                self.stream(place).n_promised = content_length.filter(|_| has_body);
                answers.begin(ticket, status, false);
                if ends {
                    self.end_stream(number, place, answers);
                }
                Ok(())
            }
            // Trailers: no pseudo-fields, and nothing follows.
            None if ends && stream.has_begun && !is_malformed => {
                self.end_stream(number, place, answers);
                Ok(())
            }
            _ => {
                self.refuse(number, place, answers);
                Ok(())
            }
        }
    }

    /// RFC 9113 §6.5.
    fn receive_settings(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Fault> {
        let is_ack = head.has(frame::ACK);
        if head.stream != 0 || !payload.len().is_multiple_of(6) || is_ack && !payload.is_empty() {
            return Err(Fault::Frame);
        }
        if is_ack {
            return Ok(());
        }
        if !self.has_settings {
            // Without a word about it there is no limit.
            self.n_open_max = usize::MAX;
            self.has_settings = true;
        }
        for setting in payload.chunks_exact(6) {
            let name = u16::from_be_bytes([setting[0], setting[1]]);
            let value = frame::number(&setting[2..]).ok_or(Fault::Frame)?;
            let size = usize::try_from(value).unwrap_or(usize::MAX);
            match name {
                frame::HEADER_TABLE_SIZE => self.encoder.limit(size),
                frame::MAX_CONCURRENT_STREAMS => self.n_open_max = size,
                frame::INITIAL_WINDOW_SIZE if value > frame::STREAM_MAX => {
                    return Err(Fault::FlowControl);
                }
                frame::INITIAL_WINDOW_SIZE => {
                    let change = i64::from(value) - self.send_window_initial;
                    self.send_window_initial = i64::from(value);
                    if let Some(upload) = &mut self.upload {
                        upload.window += change;
                    }
                }
                frame::MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(Fault::Frame);
                }
                frame::MAX_FRAME_SIZE => self.n_payload_max = size.min(UPLOAD_PIECE_BYTES_MAX),
                _ => {}
            }
        }
        self.bound_replies()?;
        frame::write_short(frame::SETTINGS, frame::ACK, 0, &[], &mut self.replies);
        Ok(())
    }

    fn receive_window_update(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Fault> {
        let room = match (payload.len(), frame::number(payload)) {
            (4, Some(room)) => i64::from(room & frame::STREAM_MAX),
            _ => return Err(Fault::Frame),
        };
        let window = match (&mut self.upload, head.stream) {
            (_, 0) => &mut self.send_window,
            (Some(upload), stream) if upload.stream == stream => &mut upload.window,
            _ => return Ok(()),
        };
        *window += room;
        if room == 0 || *window > i64::from(frame::STREAM_MAX) {
            return Err(Fault::FlowControl);
        }
        Ok(())
    }

    /// # Errors  The peer asks for more replies than it takes.
    fn bound_replies(&self) -> Result<(), Fault> {
        if self.replies.len() > REPLY_BYTES_MAX {
            return Err(Fault::Frame);
        }
        Ok(())
    }
}

/// The fields of a request (RFC 9113 §8.3.1).
fn fields(request: &Request, setup: Setup) -> Vec<(String, String)> {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let given = |name: &str| {
        let mut headers = request.headers.iter();
        headers.find(|(n, _)| n.eq_ignore_ascii_case(name))
    };
    let authority = given("host").map_or(&request.authority, |(_, value)| value);
    let scheme = if setup.is_secure { "https" } else { "http" };
    let mut fields = vec![
        field(":method", &request.method),
        field(":scheme", scheme),
        field(":path", &request.target),
        field(":authority", authority),
    ];
    for (name, value) in &request.headers {
        let name = name.to_ascii_lowercase();
        // RFC 9113 §8.2.2: there is no place for fields of the connection.
        let is_of_connection = matches!(
            name.as_str(),
            "host" | "connection" | "keep-alive" | "proxy-connection" | "upgrade"
        );
        if !is_of_connection {
            fields.push((name, value.clone()));
        }
    }
    if !request.body.is_empty() && given("content-length").is_none() {
        fields.push(field("content-length", &request.body.len().to_string()));
    }
    fields
}

/// The block of a HEADERS frame without padding and priority (RFC 9113 §6.2).
fn unwrap_headers(head: FrameHead, payload: &[u8]) -> Result<&[u8], Fault> {
    let (n_padding, rest) = match (head.has(frame::PADDED), payload) {
        (false, payload) => (0, payload),
        (true, [n_padding, rest @ ..]) => (usize::from(*n_padding), rest),
        (true, []) => return Err(Fault::Frame),
    };
    let n_before = if head.has(frame::PRIORITISED) { 5 } else { 0 };
    let end = rest.len().checked_sub(n_padding).ok_or(Fault::Frame)?;
    rest.get(n_before..end).ok_or(Fault::Frame)
}

/// Streams until the peer's settings come; the least that RFC 9113 §6.5.2 recommends.
const STREAMS_ASSUMED: usize = 100;
/// From the oldest stream under way to the newest: bounds the queue behind one that hangs.
const STREAMS_SPAN_MAX: usize = 1 << 20;
/// Bytes of one field block. Origin: larger than what any server of the lab sends by two orders.
/// Exceeded: a protocol error.
const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// Replies that the peer did not take.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// A larger frame saves nothing and holds up the others.
const UPLOAD_PIECE_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests;
