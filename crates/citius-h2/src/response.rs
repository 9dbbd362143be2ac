//! Responses going out: [`Action`] in, field blocks and data out (RFC 9113 §8.3.2, §8.1).

use alloc::vec::Vec;

use citius_http::{
    Action, Declared, FAST_PATHS, Fault, Fields, Output, Payload, ResponseHead, Status,
};

use crate::connection::{Connection, Context, Shutdown};
use crate::frame::{self, Code, END_HEADERS, END_STREAM, HEADER_BYTES, WINDOW_MAX};
use crate::hpack::{Encoder, Indexing};
use crate::receive::Reading;
use crate::stream::Stream;
use citius_http::multiplexed::Following;

/// The field blocks of the last 200 without fields of its own and of the last with some.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    without_fields: Template,
    with_fields: Template,
}

impl Templates {
    #[inline]
    pub(crate) fn of(&self, lines: &[u8]) -> &Template {
        if lines.is_empty() {
            &self.without_fields
        } else {
            &self.with_fields
        }
    }

    fn of_mut(&mut self, lines: &[u8]) -> &mut Template {
        if lines.is_empty() {
            &mut self.without_fields
        } else {
            &mut self.with_fields
        }
    }
}

/// The field block of a 200, as long as the table stays what it was: most responses begin like the one
/// before, and many are as long.
#[derive(Debug, Default)]
pub(crate) struct Template {
    /// Empty at first.
    block: Vec<u8>,
    generation: u64,
    server: Vec<u8>,
    date: Vec<u8>,
    media_type: Vec<u8>,
    /// Those of the application.
    lines: Vec<u8>,
    /// What `content-length` says, if it is there.
    length: Option<u64>,
}

impl Template {
    #[inline]
    pub(crate) fn is_for(
        &self,
        cx: &Context<'_>,
        generation: u64,
        media_type: &[u8],
        lines: &[u8],
        length: Option<u64>,
    ) -> bool {
        FAST_PATHS
            && self.length == length
            && self.generation == generation
            && !self.block.is_empty()
            && self.media_type == media_type
            && self.lines == lines
            && self.date == cx.date
            && self.server == cx.server
    }

    fn keep(
        &mut self,
        cx: &Context<'_>,
        generation: u64,
        media_type: &[u8],
        lines: &[u8],
        length: Option<u64>,
        block: &[u8],
    ) {
        for (place, bytes) in [
            (&mut self.block, block),
            (&mut self.server, cx.server),
            (&mut self.date, cx.date),
            (&mut self.media_type, media_type),
            (&mut self.lines, lines),
        ] {
            place.clear();
            place.extend_from_slice(bytes);
        }
        self.generation = generation;
        self.length = length;
    }
}

impl Connection {
    /// Does what the application wants to happen to `stream`; nothing if that has ended already.
    ///
    /// # Errors
    /// The application's fault, to be logged. What is on the wire stays consistent: 500 if nothing was
    /// sent for the stream yet, otherwise the stream is reset.
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
        let result = match action {
            Action::Respond(response, payload) => self.respond(cx, index, &response, payload, out),
            Action::Inform(response) => self.inform(index, &response, out),
            Action::Start(response) => self.start(cx, index, &response, out),
            Action::Data(payload) => self.data(cx, index, payload, out),
            Action::End { trailers } => self.end(cx, index, trailers, out),
            // RFC 8441 §5: the protocol was named by the request, and a 200 grants it.
            Action::Switch { fields, .. } => {
                let response = ResponseHead {
                    status: Status::OK,
                    content_type: None,
                    fields,
                };
                if let Some(stream) = self.streams.at_mut(index) {
                    stream.asks_protocol = false;
                }
                let started = self.start(cx, index, &response, out);
                if let (Ok(()), Some(stream)) = (started, self.streams.at_mut(index)) {
                    stream.is_tunnel = true;
                }
                started
            }
            Action::Abort => {
                self.abort(cx, stream, Code::Internal, out);
                Ok(())
            }
        };
        if let Err(fault) = result {
            self.fail(cx, stream, fault, out);
        }
        if self.holds_ends {
            self.release_ends(cx, out);
        }
        result
    }

    /// The handler of `stream` failed: 500 if nothing was sent for it yet, otherwise the stream is reset.
    pub fn fail(&mut self, cx: &mut Context<'_>, stream: u32, fault: Fault, out: &mut Output) {
        let Some(index) = self.open_index(stream) else {
            return;
        };
        let is_begun = self
            .streams
            .at(index)
            .is_some_and(|stream| !stream.state.awaits_headers());
        if is_begun {
            self.abort(cx, stream, Code::of(fault), out);
        } else {
            self.respond_to_fault(cx, index, fault, out);
        }
        if self.holds_ends {
            self.release_ends(cx, out);
        }
    }

    /// Ends our side of a tunnel behind what waits of it; what the client sends still comes. `false`: it is none.
    #[cold]
    pub fn end_output(&mut self, stream: u32, out: &mut Output) -> bool {
        let found = self.streams.find_mut(stream);
        let Some(found) = found.filter(|it| it.is_tunnel && !it.state.is_local_closed()) else {
            return false;
        };
        if let Some(waiting) = &mut found.waiting {
            waiting.ends_output = true;
            return true;
        }
        if found.state.end_output().is_err() {
            return false;
        }
        // An empty frame needs no window.
        frame::data(out.tail(), stream, 0, true);
        true
    }

    fn abort(&mut self, cx: &Context<'_>, id: u32, code: Code, out: &mut Output) {
        self.since = cx.now;
        self.drop_stream(id, Some(code), out);
        self.close_if_done();
    }

    #[inline]
    fn open_index(&self, id: u32) -> Option<usize> {
        let index = self.streams.index_of(id)?;
        self.streams.at(index)?.is_open().then_some(index)
    }

    #[inline]
    fn respond(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        response: &ResponseHead<'_>,
        payload: Payload<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let stream = self.streams.at_mut(index).ok_or(Fault::ResponseOrder)?;
        // What the template was made of has been checked.
        let template = self.templates.of(response.fields.lines());
        let is_known =
            FAST_PATHS && template.media_type == response.content_type.unwrap_or_default();
        check_final(stream, response, is_known)?;
        if !stream.state.is_remote_closed() {
            self.open_for_rest(cx, index, out);
        }
        let stream = self.streams.at(index).ok_or(Fault::ResponseOrder)?;
        let without_content = stream.without_content(response.status);
        let length = response.length_of_whole(payload.len(), without_content)?;
        let is_empty = without_content || payload.is_empty();
        let id = stream.id;
        if self.shutdown != Shutdown::No {
            self.look_at_holding(cx.now, id);
        }
        let stream = self.streams.at(index).ok_or(Fault::ResponseOrder)?;
        let ends = is_empty && !self.holds_end(stream);
        let stream = self.streams.at_mut(index).ok_or(Fault::ResponseOrder)?;
        stream.state.send_headers(if ends {
            Following::Nothing
        } else {
            Following::Whole
        })?;
        self.write_head(cx, id, response, length, ends, out);
        if !ends {
            let payload = if is_empty {
                Payload::Copied(b"")
            } else {
                payload
            };
            self.push(cx, index, payload, Some(&Fields::EMPTY), out);
        }
        self.finish_stream(cx, id, out);
        Ok(())
    }

    fn inform(
        &mut self,
        index: usize,
        response: &ResponseHead<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let stream = self.streams.at(index).ok_or(Fault::ResponseOrder)?;
        if !stream.state.awaits_headers() {
            return Err(Fault::ResponseOrder);
        }
        response.check_informational()?;
        let id = stream.id;
        self.write_block(id, false, out, |encoder, block| {
            status(encoder, block, response.status);
            fields(encoder, block, response);
        });
        Ok(())
    }

    fn start(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        response: &ResponseHead<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let stream = self.streams.at_mut(index).ok_or(Fault::ResponseOrder)?;
        check_final(stream, response, false)?;
        let length = response.length_of_streamed();
        let without_content = stream.without_content(response.status);
        stream.state.send_headers(if without_content {
            Following::Dropped
        } else {
            Following::Content(Declared::new(length))
        })?;
        let id = stream.id;
        self.write_head(cx, id, response, length, without_content, out);
        Ok(())
    }

    fn data(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        payload: Payload<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let stream = self.streams.at_mut(index).ok_or(Fault::ResponseOrder)?;
        let is_sent = stream.state.send_data(payload.len())?;
        if is_sent && !payload.is_empty() {
            self.push(cx, index, payload, None, out);
        }
        Ok(())
    }

    fn end(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        trailers: &Fields,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let stream = self.streams.at_mut(index).ok_or(Fault::ResponseOrder)?;
        let is_end_due = stream.state.complete()?;
        let id = stream.id;
        if !stream.state.is_remote_closed() {
            self.open_for_rest(cx, index, out);
        }
        if is_end_due {
            self.push(cx, index, Payload::Copied(b""), Some(trailers), out);
        }
        self.finish_stream(cx, id, out);
        Ok(())
    }

    /// Writes the server's own response to `fault`, and ends the stream. Returns the bytes of its content.
    #[cold]
    pub(crate) fn respond_to_fault(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        fault: Fault,
        out: &mut Output,
    ) -> u64 {
        let response = ResponseHead::text(fault.status());
        let body = [fault.told().as_bytes(), b"\n"].concat();
        let head_only = self.streams.at(index).is_some_and(|s| s.head_only);
        self.respond(cx, index, &response, Payload::Copied(&body), out)
            .expect("a plain response to a stream that has none");
        if head_only { 0 } else { body.len() as u64 }
    }

    /// Writes `100 Continue`.
    pub(crate) fn write_continue(&mut self, id: u32, out: &mut Output) {
        self.write_block(id, false, out, |encoder, block| {
            status(encoder, block, Status::from_const(100));
        });
    }

    /// Appends a trailer section, and with it the end of the stream.
    pub(crate) fn write_trailers(&mut self, id: u32, trailers: &Fields, out: &mut Output) {
        self.write_block(id, true, out, |encoder, block| {
            for (name, value) in trailers.iter() {
                encoder.field(block, name, value, Indexing::Once);
            }
        });
    }

    /// Appends a HEADERS frame, continued as needed, with the field block that `encode` makes.
    fn write_block(
        &mut self,
        id: u32,
        ends: bool,
        out: &mut Output,
        encode: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        let mut block = core::mem::take(&mut self.field_block);
        block.clear();
        self.encoder.begin(&mut block);
        encode(&mut self.encoder, &mut block);
        frame::headers(out.tail(), id, &block, ends);
        self.field_block = block;
    }

    /// Forgets the stream if both sides are done with it.
    #[inline]
    pub(crate) fn finish_stream(&mut self, cx: &Context<'_>, id: u32, out: &mut Output) {
        let Some(index) = self.streams.index_of(id) else {
            return;
        };
        let Some(stream) = self.streams.at(index) else {
            return;
        };
        if !stream.state.is_local_closed() || stream.is_open() {
            return;
        }
        if !stream.state.is_remote_closed() && !stream.stops_short {
            self.discard_rest(cx, index, out);
        } else if stream.buffered.is_some() || stream.waiting.is_some() {
            self.drop_stream(id, None, out);
        } else {
            self.streams.discard(index);
        }
        self.since = cx.now;
        self.close_if_done();
    }

    /// A response is about to end before its request. curl 7.88 sends no more behind that if a window is shut then, and waits
    /// for ever: both are opened before, for what will be dropped.
    #[cold]
    fn open_for_rest(&mut self, cx: &Context<'_>, index: usize, out: &mut Output) {
        // Others go on when a window opens.
        let is_curl = self.peer.are_of_curl();
        let limits = cx.limits;
        let most = if is_curl {
            limits.h2_discard_bytes_max
        } else {
            limits.discard_bytes_max.min(limits.h2_discard_bytes_max)
        };
        let discarding = self.streams.iter().filter(|s| s.state.is_discarding());
        let of_others = discarding.fold(0_u64, |sum, s| sum.saturating_add(s.rest(s.credit)));
        let Some(stream) = self.streams.at_mut(index) else {
            return;
        };
        let rest = stream.rest(most);
        let is_long = stream
            .expected
            .is_some_and(|it| it.saturating_sub(stream.received) > most);
        if limits.linger_ms == 0 || is_long && !is_curl || stream.stops_short {
            return;
        }
        let missing = |rest: u64, window: i64| {
            let rest = i64::try_from(rest).unwrap_or(WINDOW_MAX).min(WINDOW_MAX);
            u32::try_from(rest.saturating_sub(window.max(0))).ok()
        };
        if let Some(missing @ 1..) = missing(rest, stream.receive_window) {
            frame::window_update(out.tail(), stream.id, missing);
            stream.receive_window = stream.receive_window.saturating_add(i64::from(missing));
        }
        let of_all = if is_curl {
            rest.saturating_add(of_others)
        } else {
            rest
        };
        if let Some(missing @ 1..) = missing(of_all, self.receive_window) {
            let lent = u64::from(missing.saturating_sub(self.consumed));
            if !is_curl && self.lent_bytes.saturating_add(lent) > most {
                return;
            }
            let opened = missing.max(self.consumed);
            frame::window_update(out.tail(), 0, opened);
            self.receive_window = self.receive_window.saturating_add(i64::from(opened));
            self.lent_bytes = self.lent_bytes.saturating_add(lent);
            self.consumed = 0;
        }
    }

    /// The response is complete before its request: the rest of the body is dropped, and the stream reset if that takes
    /// too much (§8.1). curl 7.88 and httpx fail if that comes before they have sent all of it.
    #[cold]
    fn discard_rest(&mut self, cx: &Context<'_>, index: usize, out: &mut Output) {
        let Some(stream) = self.streams.at_mut(index) else {
            return;
        };
        let id = stream.id;
        let may_come = !self.peer_finished && !matches!(self.reading, Reading::Over);
        if !may_come || cx.limits.linger_ms == 0 {
            return self.drop_stream(id, Some(Code::NoError), out);
        }
        let buffered = stream.buffered.take().map_or(0, |b| b.bytes.len());
        stream.credit = cx.limits.h2_discard_bytes_max;
        stream.body_bytes_max = u64::MAX;
        stream.body_at = cx.now;
        stream.body_bytes = 0;
        self.check_stalled_by(cx.now.saturating_add(cx.limits.linger_ms));
        self.release_stream_window(id, buffered, out);
    }

    /// Appends the head of a final response.
    #[inline]
    fn write_head(
        &mut self,
        cx: &Context<'_>,
        id: u32,
        response: &ResponseHead<'_>,
        length: Option<u64>,
        ends: bool,
        out: &mut Output,
    ) {
        if let (Status::OK, Some(media_type)) = (response.status, response.content_type) {
            let generation = self.encoder.generation();
            let lines = response.fields.lines();
            let template = self.templates.of(lines);
            if template.is_for(cx, generation, media_type, lines, length) {
                let block = template.block.as_slice();
                let flags = if ends {
                    END_HEADERS | END_STREAM
                } else {
                    END_HEADERS
                };
                let tail = out.tail();
                // Head and the header of the data behind it.
                tail.reserve(block.len().saturating_add(2 * HEADER_BYTES));
                tail.extend_from_slice(&frame::header(block.len(), 1, flags, id));
                tail.extend_from_slice(block);
                return;
            }
        }
        self.write_new_head(cx, id, response, length, ends, out);
    }

    fn write_new_head(
        &mut self,
        cx: &Context<'_>,
        id: u32,
        response: &ResponseHead<'_>,
        length: Option<u64>,
        ends: bool,
        out: &mut Output,
    ) {
        let mut block = core::mem::take(&mut self.field_block);
        block.clear();
        self.encoder.begin(&mut block);
        let generation = self.encoder.generation();
        let is_whole = block.is_empty();
        status(&mut self.encoder, &mut block, response.status);
        if !response.fields.has_server {
            line(&mut self.encoder, &mut block, cx.server);
        }
        if !response.fields.has_date {
            line(&mut self.encoder, &mut block, cx.date);
        }
        if !cx.default_fields.is_empty() {
            for (name, value) in response.missing_defaults(cx.default_fields) {
                let indexing = default_field_indexing(name, value);
                self.encoder.field(&mut block, name, value, indexing);
            }
        }
        fields(&mut self.encoder, &mut block, response);
        if let Some(length) = length {
            let mut digits = itoa::Buffer::new();
            let digits = digits.format(length).as_bytes();
            self.encoder
                .field(&mut block, b"content-length", digits, Indexing::Once);
        }
        frame::headers(out.tail(), id, &block, ends);
        let lines = response.fields.lines();
        let is_stable = is_whole && self.encoder.generation() == generation;
        if let (true, Status::OK, Some(media_type)) =
            (is_stable, response.status, response.content_type)
            && block.len().max(lines.len()) <= TEMPLATE_BYTES_MAX
        {
            self.templates
                .of_mut(lines)
                .keep(cx, generation, media_type, lines, length, &block);
        }
        self.field_block = block;
    }
}

/// Bytes of a field block, and of fields, that are worth keeping; a media type may be long.
const TEMPLATE_BYTES_MAX: usize = 256;

fn status(encoder: &mut Encoder, block: &mut Vec<u8>, status: Status) {
    let index = match status.code() {
        200 => 8,
        204 => 9,
        206 => 10,
        304 => 11,
        400 => 12,
        404 => 13,
        500 => 14,
        code => {
            let mut digits = itoa::Buffer::new();
            let digits = digits.format(code).as_bytes();
            return encoder.field(block, b":status", digits, Indexing::Keep);
        }
    };
    Encoder::static_index(block, index);
}

/// Media type and fields of a response.
fn fields(encoder: &mut Encoder, block: &mut Vec<u8>, response: &ResponseHead<'_>) {
    if let (Some(media_type), false) = (response.content_type, response.fields.has_content_type) {
        encoder.field(block, b"content-type", media_type, Indexing::Keep);
    }
    for (name, value) in response.fields.iter() {
        encoder.field(block, name, value, indexing(name, value));
    }
}

/// A field of every response, given as a line of HTTP/1.
fn line(encoder: &mut Encoder, block: &mut Vec<u8>, line: &[u8]) {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else {
        return;
    };
    let (name, value) = line.split_at_checked(colon).unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let value = value.get(1..).unwrap_or_default().trim_ascii();
    encoder.field(block, &name, value, Indexing::Keep);
}

/// The fields of every response are repeated by definition; what is long would push the others out.
fn default_field_indexing(name: &[u8], value: &[u8]) -> Indexing {
    match indexing(name, value) {
        Indexing::Once if value.len() <= STANDING_INDEXED_BYTES_MAX => Indexing::Keep,
        other => other,
    }
}

/// Of the 4096 bytes of a table.
const STANDING_INDEXED_BYTES_MAX: usize = 512;

/// What responses repeat goes into the dynamic table; secrets go into no table (RFC 7541 §7.1.3).
fn indexing(name: &[u8], value: &[u8]) -> Indexing {
    match name {
        b"set-cookie" | b"authorization" | b"www-authenticate" | b"proxy-authenticate" => {
            Indexing::Never
        }
        b"server"
        | b"date"
        | b"content-type"
        | b"cache-control"
        | b"vary"
        | b"content-encoding"
        | b"alt-svc"
        | b"strict-transport-security"
        | b"x-content-type-options"
        | b"x-frame-options"
        | b"access-control-allow-origin"
        | b"referrer-policy"
            if value.len() <= 128 =>
        {
            Indexing::Keep
        }
        _ => Indexing::Once,
    }
}

#[inline]
fn check_final(stream: &Stream, response: &ResponseHead<'_>, is_known: bool) -> Result<(), Fault> {
    if !stream.state.awaits_headers() {
        return Err(Fault::ResponseOrder);
    }
    if stream.asks_protocol && response.status.is_successful() {
        return Err(Fault::ResponseGrants);
    }
    response.check_final(is_known)
}
