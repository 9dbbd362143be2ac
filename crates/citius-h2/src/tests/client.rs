//! A client's side, in memory: it writes frames by hand and reads ours as text.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use citius_http::{
    Action, Event, Fields, HeadPool, Limits, Millis, Output, Payload, ResponseHead, Status,
};

use crate::frame::{self, Header, Kind};
use crate::hpack::{Decoder, Encoder, Indexing};
use crate::{Connection, Context, Options};

pub(super) struct Client {
    pub(super) connection: Connection,
    pub(super) limits: Limits,
    pub(super) now: Millis,
    pub(super) out: Output,
    pub(super) heads: HeadPool,
    encoder: Encoder,
    decoder: Decoder,
    unread: Vec<u8>,
}

/// Calls a method of the connection with a context.
macro_rules! with {
    ($client:expr, |$connection:ident, $cx:ident, $out:ident| $call:expr) => {{
        let Client {
            connection: $connection,
            limits,
            now,
            out: $out,
            heads,
            ..
        } = &mut *$client;
        let mut context = crate::Context {
            now: *now,
            limits,
            heads,
            server: b"server: citius\r\n",
            date: b"date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            default_fields: &Fields::EMPTY,
        };
        let $cx = &mut context;
        $call
    }};
}
pub(super) use with;

impl Client {
    /// Before the preface.
    pub(super) fn silent(limits: Limits) -> Self {
        let options = Options {
            extended_connect: true,
        };
        Self {
            connection: Connection::new(0, options),
            limits,
            now: 0,
            out: Output::default(),
            heads: HeadPool::default(),
            encoder: Encoder::new(),
            decoder: Decoder::new(),
            unread: Vec::new(),
        }
    }

    /// After both prefaces and their acknowledgement.
    pub(super) fn with(limits: Limits) -> Self {
        let mut client = Self::silent(limits);
        let mut bytes = frame::PREFACE.to_vec();
        frame::settings(&mut bytes, &[]);
        frame::settings_ack(&mut bytes);
        assert_eq!(client.feed(&bytes), "");
        let greeting = client.read();
        assert!(
            greeting.starts_with("SETTINGS") && greeting.ends_with("SETTINGS ack"),
            "{greeting}"
        );
        client
    }

    pub(super) fn new() -> Self {
        Self::with(Limits::default())
    }

    /// Sends bytes; returns the events as text.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> String {
        self.unread.extend_from_slice(bytes);
        let unread = core::mem::take(&mut self.unread);
        let mut input = unread.as_slice();
        let mut events = Vec::new();
        with!(self, |connection, cx, out| {
            while let Some(event) = connection.receive(cx, &mut input, out) {
                events.push(spell(event));
            }
        });
        self.unread = input.to_vec();
        events.join("; ")
    }

    /// A header block of these fields.
    pub(super) fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            self.encoder.field(
                &mut block,
                name.as_bytes(),
                value.as_bytes(),
                Indexing::Keep,
            );
        }
        block
    }

    /// A request head with more fields.
    pub(super) fn head(
        &mut self,
        id: u32,
        method: &str,
        more: &[(&str, &str)],
        ends: bool,
    ) -> Vec<u8> {
        let mut fields = Vec::from([
            (":method", method),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "a"),
        ]);
        fields.extend_from_slice(more);
        let block = self.block(&fields);
        let mut bytes = Vec::new();
        frame::headers(&mut bytes, id, &block, ends);
        bytes
    }

    /// Sends a GET.
    pub(super) fn get(&mut self, id: u32) -> String {
        let head = self.head(id, "GET", &[], true);
        self.feed(&head)
    }

    /// Begins a POST.
    pub(super) fn post(&mut self, id: u32) -> String {
        let head = self.head(id, "POST", &[], false);
        self.feed(&head)
    }

    pub(super) fn data(&mut self, id: u32, data: &[u8], ends: bool) -> String {
        let mut bytes = Vec::new();
        frame::data(&mut bytes, id, data.len(), ends);
        bytes.extend_from_slice(data);
        self.feed(&bytes)
    }

    pub(super) fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> String {
        let bytes = raw(kind, flags, stream, payload);
        self.feed(&bytes)
    }

    /// A `PRIORITY_UPDATE`.
    pub(super) fn prioritise(&mut self, id: u32, value: &str) {
        let payload = [&id.to_be_bytes()[..], value.as_bytes()].concat();
        self.frame(16, 0, 0, &payload);
    }

    pub(super) fn open_window(&mut self, stream: u32, increment: u32) {
        let mut bytes = Vec::new();
        frame::window_update(&mut bytes, stream, increment);
        self.feed(&bytes);
    }

    pub(super) fn want(&mut self, id: u32, bytes: u64) -> String {
        with!(self, |connection, cx, out| connection
            .want(cx, id, bytes, out));
        self.feed(&[])
    }

    pub(super) fn limit_body(&mut self, id: u32, bytes_max: u64) -> bool {
        with!(self, |connection, cx, out| connection
            .limit_body(cx, id, bytes_max, out))
    }

    pub(super) fn act(&mut self, id: u32, action: Action<'_>) {
        let result = with!(self, |connection, cx, out| connection
            .send(cx, id, action, out));
        assert_eq!(result, Ok(()));
    }

    pub(super) fn respond(&mut self, id: u32, status: u16, body: &[u8]) {
        let fields = Fields::EMPTY;
        let head = response(status, &fields);
        self.act(id, Action::Respond(head, Payload::Copied(body)));
    }

    pub(super) fn wait(&mut self, ms: Millis) -> String {
        self.now += ms;
        let mut events = Vec::new();
        with!(self, |connection, cx, out| {
            let due = |connection: &Connection, cx: &Context<'_>| {
                connection
                    .deadline(cx.limits)
                    .is_some_and(|at| at <= cx.now)
            };
            while due(connection, cx) {
                events.extend(connection.expire(cx, out).map(spell));
            }
        });
        events.join("; ")
    }

    /// What was written, as text; the socket takes it all.
    pub(super) fn read(&mut self) -> String {
        let mut lines = Vec::new();
        loop {
            let bytes: Vec<u8> = self.out.pieces().flatten().copied().collect();
            self.out.clear();
            if bytes.is_empty() {
                break;
            }
            let mut rest = bytes.as_slice();
            while let Some((header, after)) = Header::read(rest) {
                let (payload, next) = after.split_at(header.length);
                lines.push(self.describe(header, payload));
                rest = next;
            }
            assert!(rest.is_empty(), "half a frame");
            with!(self, |connection, cx, out| connection.pump(cx, out));
        }
        lines.join("; ")
    }

    fn describe(&mut self, header: Header, payload: &[u8]) -> String {
        let end = if header.has(frame::END_STREAM) {
            " end"
        } else {
            ""
        };
        let number = |at: usize| {
            payload
                .get(at..)
                .and_then(frame::number)
                .map_or(0, |(number, _)| number)
        };
        let id = header.stream;
        match header.kind {
            Kind::Data => {
                let text = match payload.len() {
                    0..=32 => String::from_utf8_lossy(payload).to_string(),
                    n => format!("{n} bytes"),
                };
                format!("DATA {id} {text:?}{end}")
            }
            Kind::Headers => {
                let mut fields = Vec::new();
                let decoded = self.decoder.decode(payload, |name, value| {
                    let name = String::from_utf8_lossy(name);
                    if !matches!(&*name, "server" | "date") {
                        fields.push(format!("{name}={}", String::from_utf8_lossy(value)));
                    }
                });
                assert_eq!(decoded, Ok(()));
                format!("HEADERS {id} {}{end}", fields.join(" "))
            }
            Kind::ResetStream => format!("RST_STREAM {id} {}", number(0)),
            Kind::Settings if header.has(frame::ACK) => "SETTINGS ack".to_owned(),
            Kind::Ping if header.has(frame::ACK) => "PING ack".to_owned(),
            Kind::GoAway => format!("GOAWAY {} {}", number(0), number(4)),
            Kind::WindowUpdate => format!("WINDOW_UPDATE {id} {}", number(0)),
            Kind::Settings => "SETTINGS".to_owned(),
            Kind::Ping => "PING".to_owned(),
            kind => panic!("we never send {kind:?}"),
        }
    }
}

pub(super) fn raw(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = frame::header(payload.len(), kind, flags, stream).to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

pub(super) fn response(status: u16, fields: &Fields) -> ResponseHead<'_> {
    ResponseHead {
        status: Status::new(status).expect("a status"),
        content_type: Some(b"text/plain"),
        fields,
    }
}

pub(super) fn spell(event: Event<'_>) -> String {
    let text = |bytes: &[u8]| match bytes.len() {
        0..=32 => String::from_utf8_lossy(bytes).to_string(),
        n => format!("{n} bytes"),
    };
    match event {
        Event::Request {
            stream,
            head,
            ended,
        } => {
            let method = String::from_utf8_lossy(head.slice(head.method_span)).to_string();
            let end = if ended { " end" } else { "" };
            format!("{method} {stream} {}{end}", text(head.slice(head.target)))
        }
        Event::Call { .. } => unreachable!("HTTP/2 has requests"),
        Event::Data { stream, bytes } => format!("data {stream} {}", text(bytes)),
        Event::Buffered { stream, bytes } => format!("held {stream} {}", text(&bytes)),
        Event::End { stream, trailers } => {
            let trailers = text(trailers.lines());
            format!("end {stream} {}", trailers.trim())
                .trim_end()
                .to_owned()
        }
        Event::BodyRefused { stream, fault } => format!("refused {stream} {}", fault.name()),
        Event::Broken { stream, fault } => format!("broken {stream} {}", fault.name()),
    }
}
