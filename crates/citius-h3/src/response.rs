//! Responses going out: [`Action`] in, field sections and data out (RFC 9114 §4.1, §4.3.2).

use alloc::vec::Vec;

use citius_http::multiplexed::Following;
use citius_http::{Action, Declared, FAST_PATHS, Fault, Fields, Payload, ResponseHead, Status};
use citius_qpack::{Encoder, Secrecy};

use crate::code::Code;
use crate::connection::Connection;
use crate::frame;
use crate::seam::Context;
use crate::stream::{Fin, Stream};

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
    ) -> Result<(), Fault> {
        let Some(index) = self.open_index(stream) else {
            return Ok(());
        };
        let result = match action {
            Action::Respond(response, payload) => self.respond(cx, index, &response, payload),
            Action::Inform(response) => self.inform(index, &response),
            Action::Start(response) => self.start(cx, index, &response, &[]),
            Action::Data(payload) => self.data(cx, index, payload),
            Action::End { trailers } => self.end(cx, index, trailers),
            // RFC 9220: the protocol was named by the request, and a 200 grants it.
            Action::Switch { fields, .. } => self.switch(cx, index, fields),
            Action::Abort => {
                self.since = cx.now;
                self.drop_stream(stream, Some(Code::Internal));
                Ok(())
            }
        };
        if let Err(fault) = result {
            self.fail(cx, stream, fault);
        }
        result
    }

    /// The handler of `stream` failed: 500 if nothing was sent for it yet, otherwise the stream is reset.
    pub fn fail(&mut self, cx: &mut Context<'_>, stream: u32, fault: Fault) {
        let Some(index) = self.open_index(stream) else {
            return;
        };
        let is_begun = self
            .streams
            .at(index)
            .is_some_and(|stream| !stream.state.awaits_headers());
        if is_begun {
            self.since = cx.now;
            self.drop_stream(stream, Some(Code::of(fault)));
        } else {
            self.respond_to_fault(cx, index, fault);
        }
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
    ) -> Result<(), Fault> {
        let stream = self.streams.at_mut(index).ok_or(Fault::ResponseOrder)?;
        // What the template was made of has been checked.
        let is_known =
            FAST_PATHS && self.template.media_type == response.content_type.unwrap_or_default();
        check_final(stream, response, is_known)?;
        let without_content = stream.without_content(response.status);
        let length = response.length_of_whole(payload.len(), without_content)?;
        stream.state.send_headers(Following::Whole)?;
        let id = stream.id;
        self.lend_memory(id);
        self.write_head(cx, index, response, length, &[]);
        let stream = self.streams.at_mut(index).ok_or(Fault::ResponseOrder)?;
        if !without_content && !payload.is_empty() {
            push_data(stream, payload);
        }
        self.is_to_send(cx, index, Fin::Due);
        Ok(())
    }

    fn inform(&mut self, index: usize, response: &ResponseHead<'_>) -> Result<(), Fault> {
        let stream = self.streams.at(index).ok_or(Fault::ResponseOrder)?;
        if !stream.state.awaits_headers() {
            return Err(Fault::ResponseOrder);
        }
        response.check_informational()?;
        self.write_section(index, |section| {
            status(section, response.status);
            fields(section, response);
        });
        Ok(())
    }

    fn start(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        response: &ResponseHead<'_>,
        more: &[(&[u8], &[u8])],
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
        self.lend_memory(id);
        self.write_head(cx, index, response, length, more);
        self.is_to_send(cx, index, if without_content { Fin::Due } else { Fin::No });
        Ok(())
    }

    /// The stream becomes a tunnel, or that of a session.
    fn switch(&mut self, cx: &mut Context<'_>, index: usize, fields: &Fields) -> Result<(), Fault> {
        let response = ResponseHead {
            status: Status::OK,
            content_type: None,
            fields,
        };
        let stream = self.streams.at_mut(index).ok_or(Fault::ResponseOrder)?;
        stream.asks_protocol = false;
        let (id, is_session) = (stream.id, stream.asks_session);
        // Draft 02 of WebTransport, which Chromium speaks, has its server name it.
        let more: &[(&[u8], &[u8])] = if is_session {
            &[(b"sec-webtransport-http3-draft", b"draft02")]
        } else {
            &[]
        };
        self.start(cx, index, &response, more)?;
        if let Some(stream) = self.streams.find_mut(id) {
            stream.is_tunnel = true;
        }
        if is_session {
            self.begin_session(id);
            let stream = self.streams.find(id);
            if stream.is_some_and(|stream| stream.state.is_remote_closed()) {
                // Its client has ended it while it was not granted.
                self.session_is_closed(cx, id);
            }
        }
        Ok(())
    }

    fn data(&mut self, cx: &Context<'_>, index: usize, payload: Payload<'_>) -> Result<(), Fault> {
        let stream = self.streams.at_mut(index).ok_or(Fault::ResponseOrder)?;
        let is_sent = stream.state.send_data(payload.len())?;
        if is_sent && !payload.is_empty() {
            push_data(stream, payload);
            self.is_to_send(cx, index, Fin::No);
        }
        Ok(())
    }

    fn end(&mut self, cx: &mut Context<'_>, index: usize, trailers: &Fields) -> Result<(), Fault> {
        let stream = self.streams.at_mut(index).ok_or(Fault::ResponseOrder)?;
        let is_end_due = stream.state.complete()?;
        let (id, is_session) = (stream.id, stream.takes_capsules());
        if is_session {
            self.end_session(id);
        }
        if is_end_due {
            if !trailers.is_empty() {
                self.write_section(index, |section| {
                    for (name, value) in trailers.iter() {
                        Encoder::field(section, name, value, secrecy(name));
                    }
                });
            }
            self.is_to_send(cx, index, Fin::Due);
        } else {
            self.finish_stream(cx, id);
        }
        Ok(())
    }

    /// Something was queued on the stream at `index`.
    #[inline]
    fn is_to_send(&mut self, cx: &Context<'_>, index: usize, fin: Fin) {
        let Some(stream) = self.streams.at_mut(index) else {
            return;
        };
        let sender = &mut stream.sender;
        if fin == Fin::Due {
            sender.fin = Fin::Due;
        }
        if !sender.is_blocked {
            sender.waiting_at = cx.now;
            let quic = stream.quic();
            self.schedule(quic);
        }
    }

    /// Writes the server's own response to `fault`, and ends the stream. Returns the bytes of its content.
    #[cold]
    pub(crate) fn respond_to_fault(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
        fault: Fault,
    ) -> u64 {
        let response = ResponseHead::text(fault.status());
        let body = [fault.told().as_bytes(), b"\n"].concat();
        let head_only = self.streams.at(index).is_some_and(|s| s.head_only);
        self.respond(cx, index, &response, Payload::Copied(&body))
            .expect("a plain response to a stream that has none");
        if head_only { 0 } else { body.len() as u64 }
    }

    /// Writes `100 Continue`.
    pub(crate) fn write_continue(&mut self, index: usize) {
        self.write_section(index, |section| status(section, Status::from_const(100)));
    }

    /// Queues a HEADERS frame with the section that `encode` makes.
    fn write_section(&mut self, index: usize, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut section = core::mem::take(&mut self.section);
        section.clear();
        Encoder::begin(&mut section);
        encode(&mut section);
        if let Some(stream) = self.streams.at_mut(index) {
            push_headers(stream, &section);
            let quic = stream.quic();
            self.schedule(quic);
        }
        self.section = section;
    }

    /// Forgets the stream if both sides are done with it.
    #[inline]
    pub(crate) fn finish_stream(&mut self, cx: &Context<'_>, id: u32) {
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        if stream.sender.fin != Fin::Sent || stream.is_open() {
            return;
        }
        // The client of a session ends it too, when it has read why; Chromium takes a stop for a loss of the connection.
        let is_awaited = !stream.has_ended && !stream.takes_capsules();
        let quic = stream.quic();
        self.since = cx.now;
        self.drop_stream(id, None);
        if is_awaited {
            // RFC 9114 §4.1: the rest of the request is of no use.
            self.controls.push_back(crate::seam::Control::StopSending {
                stream: quic,
                code: Code::NoError.number(),
            });
        }
    }

    /// Queues the head of a final response.
    #[inline]
    fn write_head(
        &mut self,
        cx: &Context<'_>,
        index: usize,
        response: &ResponseHead<'_>,
        length: Option<u64>,
        more: &[(&[u8], &[u8])],
    ) {
        let is_plain = response.status == Status::OK && response.fields.adds_nothing();
        if let (true, Some(media_type), Some(length)) = (is_plain, response.content_type, length)
            && self.template.is_for(cx, media_type, length)
            && let Some(stream) = self.streams.at_mut(index)
        {
            return push_headers(stream, &self.template.section);
        }
        let mut section = core::mem::take(&mut self.section);
        section.clear();
        Encoder::begin(&mut section);
        status(&mut section, response.status);
        if !response.fields.has_server {
            line(&mut section, cx.server);
        }
        if !response.fields.has_date {
            line(&mut section, cx.date);
        }
        if !cx.default_fields.is_empty() {
            for (name, value) in response.missing_defaults(cx.default_fields) {
                Encoder::field(&mut section, name, value, secrecy(name));
            }
        }
        fields(&mut section, response);
        for (name, value) in more {
            Encoder::field(&mut section, name, value, Secrecy::Public);
        }
        if let Some(length) = length {
            let mut digits = itoa::Buffer::new();
            let digits = digits.format(length).as_bytes();
            Encoder::field(&mut section, b"content-length", digits, Secrecy::Public);
        }
        if let Some(stream) = self.streams.at_mut(index) {
            push_headers(stream, &section);
        }
        if let (true, true, Some(media_type), Some(length)) =
            (is_plain, more.is_empty(), response.content_type, length)
            && section.len() <= TEMPLATE_BYTES_MAX
        {
            self.template.keep(cx, media_type, length, &section);
        }
        self.section = section;
    }
}

/// Bytes of a field section that is worth keeping; a media type may be long.
const TEMPLATE_BYTES_MAX: usize = 512;

#[inline]
fn push_headers(stream: &mut Stream, section: &[u8]) {
    let tail = stream.sender.output.tail();
    frame::header(tail, frame::HEADERS, section.len());
    tail.extend_from_slice(section);
}

#[inline]
fn push_data(stream: &mut Stream, payload: Payload<'_>) {
    let length = usize::try_from(payload.len()).unwrap_or(usize::MAX);
    frame::header(stream.sender.output.tail(), frame::DATA, length);
    stream.push(payload);
}

fn status(section: &mut Vec<u8>, status: Status) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(status.code()).as_bytes();
    Encoder::field(section, b":status", digits, Secrecy::Public);
}

/// Media type and fields of a response.
fn fields(section: &mut Vec<u8>, response: &ResponseHead<'_>) {
    if let (Some(media_type), false) = (response.content_type, response.fields.has_content_type) {
        Encoder::field(section, b"content-type", media_type, Secrecy::Public);
    }
    for (name, value) in response.fields.iter() {
        Encoder::field(section, name, value, secrecy(name));
    }
}

/// A field of every response, given as a line of HTTP/1.
fn line(section: &mut Vec<u8>, line: &[u8]) {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else {
        return;
    };
    let (name, value) = line.split_at_checked(colon).unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let value = value.get(1..).unwrap_or_default().trim_ascii();
    Encoder::field(section, &name, value, Secrecy::Public);
}

/// Secrets go into no table (RFC 9204 §7.1.3).
fn secrecy(name: &[u8]) -> Secrecy {
    match name {
        b"set-cookie" | b"authorization" | b"www-authenticate" | b"proxy-authenticate" => {
            Secrecy::Secret
        }
        _ => Secrecy::Public,
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
