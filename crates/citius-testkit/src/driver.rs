//! The reactor's part without sockets: offers input piece by piece, lets an application act, lets time pass.
//!
//! Obeys the duties that [`Connection`] states, and nothing more: what goes wrong here goes wrong
//! in the reactor.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use citius_h1::{Closing, Connection, Context, Template};
use citius_http::{
    Action, Event, Fault, Fields, Head, HeadPool, Limits, Metadata, Output, Payload, PlainResponse,
    ResponseHead, Status, Tls,
};

use crate::rng::Rng;
use crate::transcript::{Deed, Start};

/// An event that outlives its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A request head.
    Request {
        /// Its number.
        stream: u32,
        /// As sent.
        method: Vec<u8>,
        /// As sent.
        target: Vec<u8>,
        /// Path, and `?` and query if there is one.
        path: Vec<u8>,
        /// There is no body.
        ended: bool,
        /// All that the head says, printed.
        head: String,
    },
    /// Body bytes; pieces that follow each other are joined.
    Data {
        /// The request's number.
        stream: u32,
        /// All pieces since the last other event.
        bytes: Vec<u8>,
    },
    /// The end of a body.
    End {
        /// The request's number.
        stream: u32,
        /// Trailer lines.
        trailers: Vec<u8>,
    },
    /// A body of which no more is read, while its response goes on.
    BodyRefused {
        /// The request's number.
        stream: u32,
        /// Why.
        fault: Fault,
    },
    /// A body that will never end.
    Broken {
        /// The request's number.
        stream: u32,
        /// Why.
        fault: Fault,
    },
    /// The application broke a rule.
    AppFault {
        /// The request's number.
        stream: u32,
        /// Which.
        fault: Fault,
    },
}

/// Decides what to do about an event.
pub trait Application {
    /// Called once for every event; data come as they are, not joined.
    fn react(&mut self, seen: &Seen) -> Vec<(u32, Deed)>;

    /// Called when nothing else happens: something that was put off.
    fn resume(&mut self) -> Option<(u32, Deed)> {
        None
    }
}

/// Does nothing by itself.
#[derive(Debug)]
pub struct Silent;

impl Application for Silent {
    fn react(&mut self, _: &Seen) -> Vec<(u32, Deed)> {
        Vec::new()
    }
}

/// Tells back what it got; see [`crate::transcript`].
#[derive(Debug, Default)]
pub struct Echo {
    line: Vec<u8>,
    body: Vec<u8>,
}

impl Application for Echo {
    fn react(&mut self, seen: &Seen) -> Vec<(u32, Deed)> {
        match seen {
            Seen::Request {
                stream,
                method,
                path,
                ended,
                ..
            } => {
                self.line = [method, &b" "[..], path].concat();
                self.body.clear();
                if *ended {
                    return vec![(*stream, self.respond())];
                }
                vec![(*stream, Deed::Want(u64::MAX))]
            }
            Seen::Data { bytes, .. } => {
                self.body.extend_from_slice(bytes);
                Vec::new()
            }
            Seen::End { stream, .. } => vec![(*stream, self.respond())],
            Seen::BodyRefused { .. } | Seen::Broken { .. } | Seen::AppFault { .. } => Vec::new(),
        }
    }
}

impl Echo {
    fn respond(&self) -> Deed {
        let length = format!(" {}\n", self.body.len());
        let body = [&self.line, length.as_bytes(), &self.body].concat();
        let start = Start {
            status: 200,
            content_type: Some(b"text/plain".to_vec()),
            fields: Vec::new(),
        };
        Deed::Respond(start, body)
    }
}

/// What requests leave to later ones.
#[derive(Debug, Default)]
pub struct Caches {
    heads: HeadPool,
    template: Template,
}

static PLAIN: LazyLock<Metadata> = LazyLock::new(|| Metadata {
    media_type: b"text/plain",
    fields: Fields::EMPTY,
});

/// A connection, what it talks to, and what came of it.
pub struct Driver<'a> {
    /// The machine.
    pub connection: Connection,
    /// The clock.
    pub now: u64,
    /// Everything that happened, data joined.
    pub seen: Vec<Seen>,
    /// Everything that was written.
    pub written: Vec<u8>,
    limits: &'a Limits,
    server: Vec<u8>,
    date: Vec<u8>,
    /// What connections of one reactor share.
    pub caches: Caches,
    /// The fast paths are taken; without them nothing is known of earlier requests.
    pub is_fast: bool,
    /// Changes heads before they are given back, as what is above a connection does.
    pub spoils: Option<Rng>,
    /// Heads that came out of the cache.
    pub n_recalled: usize,
    /// Responses that were written as plain ones.
    pub n_plain: usize,
    out: Output,
    application: &'a mut dyn Application,
    /// What the socket holds.
    pieces: VecDeque<Vec<u8>>,
    /// What is read, and not taken by the connection.
    unread: Vec<u8>,
    finish_is_due: bool,
    /// The next data are not joined to the last.
    is_apart: bool,
}

impl<'a> Driver<'a> {
    /// A connection accepted at time 1000.
    pub fn new(limits: &'a Limits, application: &'a mut dyn Application) -> Self {
        let now = 1000;
        Self {
            connection: Connection::new(now),
            now,
            seen: Vec::new(),
            written: Vec::new(),
            limits,
            server: Vec::new(),
            date: Vec::new(),
            caches: Caches::default(),
            is_fast: true,
            spoils: None,
            n_recalled: 0,
            n_plain: 0,
            out: Output::default(),
            application,
            pieces: VecDeque::new(),
            unread: Vec::new(),
            finish_is_due: false,
            is_apart: false,
        }
    }

    /// A connection that reuses the heads of another connection of the reactor.
    pub fn after(
        other: Driver<'_>,
        limits: &'a Limits,
        application: &'a mut dyn Application,
    ) -> Self {
        Self {
            caches: other.caches,
            ..Self::new(limits, application)
        }
    }

    /// Data that come from now on are not joined to earlier ones.
    pub fn separate(&mut self) {
        self.is_apart = true;
    }

    /// Sends `server` and `date` fields from now on.
    pub fn sign(&mut self, server: Option<&str>, date: Option<&str>) {
        let line = |name, value: &str| format!("{name}: {value}\r\n").into_bytes();
        self.caches.template.clear();
        self.server = server.map_or_else(Vec::new, |value| line("server", value));
        self.date = date.map_or_else(Vec::new, |value| line("date", value));
    }

    /// Bytes arrive at the socket, to be read one piece at a time.
    pub fn offer(&mut self, pieces: impl IntoIterator<Item = Vec<u8>>) {
        self.pieces
            .extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
        self.run_until_idle();
    }

    /// The peer closes its sending side, behind what it has sent.
    pub fn finish(&mut self) {
        self.finish_is_due = true;
        self.run_until_idle();
    }

    /// Time passes; the deadline is honoured if it is over.
    pub fn wait(&mut self, span_ms: u64) {
        self.now += span_ms;
        if self
            .connection
            .deadline(self.limits)
            .is_some_and(|at| at <= self.now)
        {
            let event = self.with(Connection::expire);
            self.note_owned(event);
        }
        self.run_until_idle();
    }

    /// The server stops taking requests.
    pub fn drain(&mut self) {
        self.connection.drain();
        self.run_until_idle();
    }

    /// The server refuses the connection.
    pub fn refuse(&mut self, fault: Fault) {
        let event = self.with(|connection, cx, out| connection.refuse(cx, fault, out));
        self.note_owned(event);
        self.run_until_idle();
    }

    /// The application does something.
    pub fn act(&mut self, stream: u32, deed: Deed) {
        self.perform(stream, deed);
        self.run_until_idle();
    }

    /// The application does one thing that it has put off; false if there is none.
    pub fn resume(&mut self) -> bool {
        let Some((stream, deed)) = self.application.resume() else {
            return false;
        };
        self.act(stream, deed);
        true
    }

    /// Whether the connection wants input.
    pub fn is_reading(&self) -> bool {
        self.connection.wants_input(self.limits)
    }

    /// Milliseconds to the deadline.
    pub fn time_left(&self) -> Option<u64> {
        let deadline = self.connection.deadline(self.limits)?;
        Some(deadline.saturating_sub(self.now))
    }

    fn run_until_idle(&mut self) {
        loop {
            self.pump();
            if self.connection.closing().is_some() {
                break;
            }
            if self.connection.wants_input(self.limits)
                && let Some(piece) = self.pieces.pop_front()
            {
                self.unread.extend(piece);
            } else if self.pieces.is_empty() && self.finish_is_due {
                self.finish_is_due = false;
                let event = self.with(Connection::receive_eof);
                self.note_owned(event);
            } else {
                break;
            }
        }
        self.flush();
    }

    /// Lets the connection take what it can of the unread bytes.
    fn pump(&mut self) {
        let unread = std::mem::take(&mut self.unread);
        let mut input = unread.as_slice();
        loop {
            let before = input.len();
            let event =
                self.with(
                    |connection, cx, out| match connection.receive_cached(cx, &mut input) {
                        Some(request) => (true, Some(Event::from(request))),
                        None => (false, connection.receive_uncached(cx, &mut input, out)),
                    },
                );
            let (is_recalled, event) = event;
            self.n_recalled += usize::from(is_recalled);
            assert!(input.len() <= before, "input grew");
            let Some(event) = event else { break };
            self.note(event);
        }
        self.unread = input.to_vec();
    }

    fn note_owned(&mut self, event: Option<Event<'static>>) {
        if let Some(event) = event {
            self.note(event);
        }
    }

    fn note(&mut self, event: Event<'_>) {
        let seen = match event {
            Event::Request {
                stream,
                head,
                ended,
            } => {
                let seen = describe(stream, &head, ended);
                self.give_back(head);
                // As a server does whose application is called with complete bodies.
                let bytes_max = self.limits.body_bytes_max;
                let is_refused = self
                    .with(|connection, cx, out| connection.limit_body(cx, stream, bytes_max, out));
                if is_refused {
                    return;
                }
                seen
            }
            Event::Data { stream, bytes } => {
                assert!(!bytes.is_empty(), "data without bytes");
                let bytes = bytes.to_vec();
                Seen::Data { stream, bytes }
            }
            Event::Call { .. } => unreachable!("HTTP has requests"),
            Event::Buffered { .. } => unreachable!("HTTP/1 leaves what is not wanted in the input"),
            Event::End { stream, trailers } => Seen::End {
                stream,
                trailers: trailers.lines().to_vec(),
            },
            Event::BodyRefused { stream, fault } => {
                assert!(self.connection.is_open(stream), "its response goes on");
                Seen::BodyRefused { stream, fault }
            }
            Event::Broken { stream, fault } => {
                assert!(!self.connection.is_open(stream), "broken, and still open");
                Seen::Broken { stream, fault }
            }
        };
        self.record(seen.clone());
        for (stream, deed) in self.application.react(&seen) {
            self.perform(stream, deed);
        }
    }

    /// A head is done with.
    fn give_back(&mut self, mut head: Box<Head>) {
        head.app_tag = summary(&head.bytes);
        match self.spoils.as_mut().map(|rng| rng.below(12)) {
            Some(0) => head.origin = Some(Box::default()),
            Some(1) => head.tls = Some(Arc::new(encryption())),
            Some(2) => head.set_field(b"x-request-id", b"1"),
            Some(3) => head.drop_field(b"host"),
            // Kept by the application.
            Some(4) => return,
            _ => {}
        }
        self.caches.heads.give(head);
    }

    fn record(&mut self, seen: Seen) {
        let is_apart = std::mem::take(&mut self.is_apart);
        if let (
            Some(Seen::Data { stream, bytes }),
            Seen::Data {
                stream: same,
                bytes: more,
            },
        ) = (self.seen.last_mut(), &seen)
            && stream == same
            && !is_apart
        {
            bytes.extend_from_slice(more);
            return;
        }
        self.seen.push(seen);
    }

    fn perform(&mut self, stream: u32, deed: Deed) {
        let is_plain = self.is_fast
            && self.with(|connection, cx, out| respond_plainly(connection, cx, stream, &deed, out));
        self.n_plain += usize::from(is_plain);
        if is_plain {
            return self.flush();
        }
        let result = self.with(|connection, cx, out| perform(connection, cx, stream, deed, out));
        if let Err(fault) = result {
            self.record(Seen::AppFault { stream, fault });
        }
        // What is not at the front must not reach the output before its turn, hence flush often.
        self.flush();
    }

    fn flush(&mut self) {
        for piece in self.out.pieces() {
            self.written.extend_from_slice(piece);
        }
        self.out.clear();
    }

    fn with<R>(
        &mut self,
        act: impl FnOnce(&mut Connection, &mut Context<'_>, &mut Output) -> R,
    ) -> R {
        if !self.is_fast {
            self.caches = Caches::default();
        }
        let mut cx = Context {
            now: self.now,
            limits: self.limits,
            heads: &mut self.caches.heads,
            server: &self.server,
            date: &self.date,
            default_fields: &Fields::EMPTY,
            template: &mut self.caches.template,
        };
        act(&mut self.connection, &mut cx, &mut self.out)
    }
}

/// Of a connection over TLS.
fn encryption() -> Tls {
    Tls {
        version: 0x0304,
        cipher_suite: 0x1301,
        cipher_name: "TLS_AES_128_GCM_SHA256",
        server_name: None,
        certificate: Arc::default(),
        client_chain: Vec::new(),
        client_name: None,
        is_resumed: false,
    }
}

/// What is known of these bytes; never 0.
fn summary(bytes: &[u8]) -> u32 {
    let add = |sum: u32, &byte: &u8| sum.wrapping_mul(31).wrapping_add(u32::from(byte));
    bytes.iter().fold(7, add).max(1)
}

fn describe(stream: u32, head: &Head, ended: bool) -> Seen {
    let knows_rightly = head.app_tag == 0 || head.app_tag == summary(&head.bytes);
    assert!(
        knows_rightly,
        "a head brings what is known of another: {head:?}"
    );
    let printed = Head {
        app_tag: 0,
        ..head.clone()
    };
    let query = head.query();
    let mark: &[u8] = if query.is_empty() { b"" } else { b"?" };
    Seen::Request {
        stream,
        method: head.slice(head.method_span).to_vec(),
        target: head.slice(head.target).to_vec(),
        path: [head.path(), mark, query].concat(),
        ended,
        head: format!("{printed:?}"),
    }
}

/// Responds the short way, if the deed is a plain response and that is all there is to do.
fn respond_plainly(
    connection: &mut Connection,
    cx: &mut Context<'_>,
    stream: u32,
    deed: &Deed,
    out: &mut Output,
) -> bool {
    let Deed::Respond(start, body) = deed else {
        return false;
    };
    let is_plain = start.status == 200
        && start.fields.is_empty()
        && start.content_type.as_deref() == Some(PLAIN.media_type);
    let plain = PlainResponse {
        metadata: &PLAIN,
        body,
    };
    is_plain && connection.respond(cx, stream, plain, out)
}

fn perform(
    connection: &mut Connection,
    cx: &mut Context<'_>,
    stream: u32,
    deed: Deed,
    out: &mut Output,
) -> Result<(), Fault> {
    let was_open = connection.is_open(stream);
    let result = match deed {
        Deed::Want(bytes) => {
            connection.want(cx, stream, bytes, out);
            Ok(())
        }
        Deed::Fail(fault) => Err(fault),
        Deed::Inform(start) => respond(connection, cx, stream, &start, out, Form::Inform),
        Deed::Start(start) => respond(connection, cx, stream, &start, out, Form::Start),
        Deed::Respond(start, body) => {
            let form = Form::Respond(Bytes::from(body));
            respond(connection, cx, stream, &start, out, form)
        }
        Deed::Data(bytes) => {
            let action = Action::Data(Payload::Copied(&bytes));
            return connection.send(cx, stream, action, out);
        }
        Deed::End(list) => match build(&list) {
            Ok(trailers) => {
                let trailers = &trailers;
                return connection.send(cx, stream, Action::End { trailers }, out);
            }
            Err(fault) => Err(fault),
        },
        Deed::Abort => return connection.send(cx, stream, Action::Abort, out),
    };
    match result {
        // The connection has not seen this fault yet; faults of closed streams are ignored.
        Err(fault) if connection.is_open(stream) => {
            connection.fail(cx, stream, fault, out);
            Err(fault)
        }
        Err(_) if !was_open => Ok(()),
        other => other,
    }
}

enum Form {
    Inform,
    Start,
    Respond(Bytes),
}

fn respond(
    connection: &mut Connection,
    cx: &mut Context<'_>,
    stream: u32,
    start: &Start,
    out: &mut Output,
    form: Form,
) -> Result<(), Fault> {
    let status = Status::new(start.status).ok_or(Fault::ResponseStatus)?;
    let fields = build(&start.fields)?;
    let response = ResponseHead {
        status,
        content_type: start.content_type.as_deref(),
        fields: &fields,
    };
    let action = match form {
        Form::Inform => Action::Inform(response),
        Form::Start => Action::Start(response),
        Form::Respond(body) => Action::Respond(response, Payload::Shared(body)),
    };
    connection.send(cx, stream, action, out)
}

fn build(list: &[(Vec<u8>, Vec<u8>)]) -> Result<Fields, Fault> {
    let mut fields = Fields::default();
    for (name, value) in list {
        fields.push(name, value)?;
    }
    Ok(fields)
}

/// The word transcripts have for `closing`.
pub fn closing_word(closing: Closing) -> &'static str {
    match closing {
        Closing::Clean => "clean",
        Closing::Linger => "linger",
        Closing::Abort => "abort",
    }
}
