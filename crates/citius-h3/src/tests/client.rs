//! A client of HTTP/3 and a model of the QUIC connection between it and the server: streams that carry bytes in order, and take
//! of the server what the test allows.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use citius_http::{
    Action, Event, Fault, Fields, HeadPool, Limits, Millis, Payload, ResponseHead, Status,
};
use citius_qpack::{Decoder, Encoder, Secrecy};

use crate::{Connection, Context, Control, Incoming, Options, SessionEvent, Taken, Token, varint};

pub(super) const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "a"),
    (":path", "/"),
];

/// What the server has sent on a stream.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    pub(super) fin: bool,
    pub(super) reset: Option<u64>,
    pub(super) stopped: Option<u64>,
}

pub(super) struct Client {
    pub(super) limits: Limits,
    pub(super) now: Millis,
    pub(super) heads: HeadPool,
    pub(super) connection: Connection,
    pub(super) fields: Fields,
    /// What was told, in words.
    pub(super) told: Vec<String>,
    pub(super) sent: BTreeMap<u64, Sent>,
    pub(super) datagrams: VecDeque<Vec<u8>>,
    /// Numbers of streams that are not to be opened any more.
    pub(super) forgotten: Vec<u32>,
    pub(super) closed: Option<u64>,
    /// Bytes that QUIC takes; `None`: any number.
    pub(super) window: Option<usize>,
    /// In which order streams have sent.
    pub(super) order: Vec<u64>,
    /// The server's next streams.
    next_uni: u64,
    next_bi: u64,
    /// Bodies are wanted as soon as requests come.
    pub(super) wants: u64,
}

impl Client {
    pub(super) fn new(limits: Limits) -> Self {
        let options = Options {
            extended_connect: true,
            webtransport: true,
        };
        Self::with(limits, options)
    }

    pub(super) fn with(limits: Limits, options: Options) -> Self {
        let mut client = Self {
            connection: Connection::new(0, options, &limits),
            limits,
            now: 0,
            heads: HeadPool::default(),
            fields: Fields::EMPTY,
            told: Vec::new(),
            sent: BTreeMap::new(),
            datagrams: VecDeque::new(),
            forgotten: Vec::new(),
            closed: None,
            window: None,
            order: Vec::new(),
            next_uni: 3,
            next_bi: 1,
            wants: u64::MAX,
        };
        client.settle();
        client
    }

    /// With the control stream open and settings sent.
    pub(super) fn greeted() -> Self {
        let mut client = Self::new(Limits::default());
        client.greet();
        client
    }

    pub(super) fn greet(&mut self) {
        self.bytes(2, &bytes("00 04 02 3301"), false);
    }

    /// Calls the server.
    pub(super) fn call<R>(
        &mut self,
        act: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> R {
        let mut context = Context {
            now: self.now,
            limits: &self.limits,
            heads: &mut self.heads,
            server: b"server: citius\r\n",
            date: b"date: Mon, 01 Jan 2026 00:00:00 GMT\r\n",
            default_fields: &self.fields,
        };
        act(&mut self.connection, &mut context)
    }

    /// Sends bytes on a stream.
    pub(super) fn bytes(&mut self, stream: u64, mut input: &[u8], fin: bool) {
        loop {
            let wants = self.wants;
            let told = self.call(|connection, cx| {
                let incoming = connection.receive(cx, stream, &mut input, fin)?;
                let (text, request) = spell(incoming);
                if let Some(request) = request.filter(|_| wants > 0) {
                    connection.want(cx, request, wants);
                }
                Some(text)
            });
            let Some(text) = told else { break };
            self.told.push(text);
        }
        assert!(input.is_empty(), "all of the input is taken");
        self.settle();
    }

    /// Sends bytes as far as the server wants them; what it does not is returned.
    pub(super) fn offer(&mut self, stream: u64, input: &[u8]) -> Vec<u8> {
        let mut rest = input;
        while !rest.is_empty() {
            let appetite = self.connection.appetite(stream).min(rest.len());
            if appetite == 0 {
                break;
            }
            let (now, later) = rest.split_at(appetite);
            self.bytes(stream, now, false);
            rest = later;
        }
        rest.to_vec()
    }

    /// Takes events and output.
    pub(super) fn settle(&mut self) {
        loop {
            let wants = self.wants;
            let told = self.call(|connection, cx| {
                let incoming = connection.next_event(cx)?;
                let (text, request) = spell(incoming);
                if let Some(request) = request.filter(|_| wants > 0) {
                    connection.want(cx, request, wants);
                }
                Some(text)
            });
            let Some(text) = told else { break };
            self.told.push(text);
        }
        self.controls();
        while let Some(stream) = self.connection.next_to_send() {
            let Some((pieces, fin)) = self.connection.outgoing(stream).map(|outgoing| {
                let pieces: Vec<u8> = outgoing.output.pieces().flatten().copied().collect();
                (pieces, outgoing.fin)
            }) else {
                panic!("nothing to send on {stream}");
            };
            let n_bytes = self
                .window
                .map_or(pieces.len(), |window| window.min(pieces.len()));
            let sent = self.sent.entry(stream).or_default();
            assert!(!sent.fin, "nothing follows the end");
            sent.bytes.extend_from_slice(&pieces[..n_bytes]);
            self.order.push(stream);
            let taken = if n_bytes == pieces.len() {
                sent.fin |= fin;
                Taken::All
            } else {
                Taken::Blocked(n_bytes)
            };
            if let Some(window) = &mut self.window {
                *window -= n_bytes;
            }
            self.call(|connection, cx| connection.taken(cx, stream, taken));
            self.controls();
        }
    }

    fn controls(&mut self) {
        while let Some(control) = self.connection.next_control() {
            assert_eq!(self.closed, None, "closing is the last");
            match control {
                Control::OpenUni(token) => {
                    let stream = self.next_uni;
                    self.next_uni += 4;
                    assert!(matches!(token, Token::Session(_)) || stream <= 7);
                    self.connection.opened(token, stream);
                }
                Control::OpenBi(token) => {
                    let stream = self.next_bi;
                    self.next_bi += 4;
                    self.connection.opened(token, stream);
                }
                Control::StopSending { stream, code } => {
                    self.sent.entry(stream).or_default().stopped = Some(code);
                }
                Control::Reset { stream, code } => {
                    self.sent.entry(stream).or_default().reset = Some(code);
                }
                Control::Forget(numbers) => self.forgotten.extend(numbers),
                Control::Datagram(bytes) => self.datagrams.push_back(bytes.to_vec()),
                Control::Close { code, .. } => self.closed = Some(code),
            }
        }
    }

    /// QUIC takes `n_bytes` more of the streams that were blocked.
    pub(super) fn open_window(&mut self, n_bytes: usize, streams: &[u64]) {
        self.window = Some(n_bytes);
        for &stream in streams {
            self.connection.writable(stream);
        }
        self.settle();
    }

    pub(super) fn reset(&mut self, stream: u64) {
        self.call(|connection, cx| connection.reset(cx, stream, 0x10c));
        self.settle();
    }

    pub(super) fn stop(&mut self, stream: u64) {
        self.call(|connection, cx| connection.stop_sending(cx, stream, 0x10c));
        self.settle();
    }

    pub(super) fn pass(&mut self, ms: Millis) {
        self.now += ms;
        self.call(Connection::expire);
        self.settle();
    }

    pub(super) fn want(&mut self, request: u32, n_bytes: u64) {
        self.call(|connection, cx| connection.want(cx, request, n_bytes));
        self.settle();
    }

    pub(super) fn act(&mut self, request: u32, action: Action<'_>) -> Result<(), Fault> {
        let done = self.call(|connection, cx| connection.send(cx, request, action));
        self.settle();
        done
    }

    pub(super) fn respond(&mut self, request: u32, body: &[u8]) {
        let response = ResponseHead::text(Status::OK);
        let done = self.act(request, Action::Respond(response, Payload::Copied(body)));
        assert_eq!(done, Ok(()));
    }

    /// Sends a whole request without a body.
    pub(super) fn request(&mut self, stream: u64, fields: &[(&str, &str)]) {
        self.bytes(stream, &headers(fields), true);
    }

    /// What has been told since this was asked last.
    pub(super) fn take_told(&mut self) -> Vec<String> {
        core::mem::take(&mut self.told)
    }

    /// What a stream of a request has got, in words.
    pub(super) fn response(&self, stream: u64) -> String {
        let Some(sent) = self.sent.get(&stream) else {
            return String::from("nothing");
        };
        let mut text = read_frames(&sent.bytes);
        if sent.fin {
            text.push_str(" fin");
        }
        if let Some(code) = sent.reset {
            write!(text, " reset {code:#x}").unwrap();
        }
        if let Some(code) = sent.stopped {
            write!(text, " stop {code:#x}").unwrap();
        }
        String::from(text.trim())
    }
}

/// An event in words, and the request that has begun.
fn spell(incoming: Incoming<'_>) -> (String, Option<u32>) {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut request = None;
    let text = match incoming {
        Incoming::Http(event) => match event {
            Event::Request {
                stream,
                head,
                ended,
            } => {
                if !ended && head.field(b":protocol").is_none() {
                    request = Some(stream);
                }
                let line = head.bytes.split(|&byte| byte == b'\r').next();
                let ended = if ended { " ended" } else { "" };
                format!(
                    "{stream} request {}{ended}",
                    lossy(line.unwrap_or_default())
                )
            }
            Event::Data { stream, bytes } => format!("{stream} data {}", lossy(bytes)),
            Event::Buffered { stream, bytes } => format!("{stream} data {}", lossy(&bytes)),
            Event::End { stream, trailers } => {
                let lines = lossy(trailers.lines()).replace("\r\n", ";");
                format!("{stream} end {lines}")
            }
            Event::BodyRefused { stream, fault } => {
                format!("{stream} body refused {}", fault.name())
            }
            Event::Broken { stream, fault } => format!("{stream} broken {}", fault.name()),
            Event::Call { .. } => panic!("no calls"),
        },
        Incoming::Session(event) => spell_session(event),
    };
    (String::from(text.trim()), request)
}

/// An event of a session in words.
fn spell_session(event: SessionEvent<'_>) -> String {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match event {
        SessionEvent::Opened { session, stream } => format!("{session} opened {stream}"),
        SessionEvent::Data { stream, bytes, .. } => {
            format!("stream {stream} data {}", lossy(bytes))
        }
        SessionEvent::Buffered { stream, bytes, .. } => {
            format!("stream {stream} data {}", lossy(&bytes))
        }
        SessionEvent::End { stream, .. } => format!("stream {stream} end"),
        SessionEvent::Reset { stream, code, .. } => format!("stream {stream} reset {code:?}"),
        SessionEvent::Stopped { stream, code, .. } => {
            format!("stream {stream} stopped {code:?}")
        }
        SessionEvent::Ready { number, stream, .. } => format!("ready {number} {stream}"),
        SessionEvent::NotOpened { number, .. } => format!("not opened {number}"),
        SessionEvent::Writable { stream, .. } => format!("stream {stream} writable"),
        SessionEvent::EarlyDatagram { session, bytes } => {
            format!("{session} early {}", String::from_utf8_lossy(&bytes))
        }
        SessionEvent::Datagram { session, bytes } => {
            format!("{session} datagram {}", lossy(bytes))
        }
        SessionEvent::Leaving { session } => format!("{session} leaving"),
        SessionEvent::Draining { session } => format!("{session} draining"),
        SessionEvent::Closed {
            session,
            code,
            reason,
        } => {
            format!("{session} closed {code} {}", lossy(&reason))
        }
    }
}

/// Frames of a response in words.
pub(super) fn read_frames(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    while !bytes.is_empty() {
        let kind = varint::take(&mut bytes).expect("a type");
        let length = varint::take(&mut bytes).expect("a length");
        let (payload, rest) = bytes.split_at(usize::try_from(length).unwrap().min(bytes.len()));
        bytes = rest;
        if kind == 1 {
            text.push('[');
            let mut decoder = Decoder::new(0);
            let done = decoder.decode(payload, |name, value| {
                if !matches!(name, b"server" | b"date") {
                    write!(
                        text,
                        "{}: {};",
                        String::from_utf8_lossy(name),
                        String::from_utf8_lossy(value)
                    )
                    .unwrap();
                }
                true
            });
            assert!(done.is_ok());
            text.push(']');
        } else if kind == 0 {
            text.push_str(&String::from_utf8_lossy(payload));
        } else {
            write!(text, "<{kind:#x} {payload:?}>").unwrap();
        }
    }
    text
}

pub(super) fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = Vec::new();
    Encoder::begin(&mut section);
    for (name, value) in fields {
        Encoder::field(
            &mut section,
            name.as_bytes(),
            value.as_bytes(),
            Secrecy::Public,
        );
    }
    section
}

/// A frame.
pub(super) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::frame::whole(&mut out, kind, payload);
    out
}

/// A HEADERS frame.
pub(super) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(1, &section(fields))
}

/// A DATA frame.
pub(super) fn data(payload: &[u8]) -> Vec<u8> {
    frame(0, payload)
}

/// A request with other fields behind its pseudo-header fields.
pub(super) fn with<'a>(method: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut fields = GET.to_vec();
    fields[0].1 = method;
    fields.extend_from_slice(more);
    fields
}

pub(super) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let pair = |pair: &[u8]| {
        let text = core::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    digits
        .chunks(2)
        .map(|digits| pair(digits).expect("hexadecimal"))
        .collect()
}
