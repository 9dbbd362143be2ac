//! Campaigns against HTTP/3: scripts of what a client does on its streams, damaged, in any cut.
//!
//! - Nothing panics, and nothing hangs: each script comes to an end, deadlines included.
//! - parse(whole) == parse(any cut): the same events, the same bytes on each stream, the same code.
//! - After the connection has ended nothing more is told.
//! - Every request that is told has one end: `End`, `Broken`, or the connection's.

use std::collections::{BTreeMap, BTreeSet};

use citius_h3::{Connection, Context, Control, Incoming, Options, SessionEvent, Taken};
use citius_http::{Action, Event, Fields, HeadPool, Limits, Payload, ResponseHead, Status};

use crate::rng::Rng;

/// What a client does next.
#[derive(Clone, Debug)]
enum Deed<'a> {
    /// Bytes of a stream, and perhaps its end.
    Send(u64, &'a [u8], bool),
    Reset(u64),
    Stop(u64),
    Datagram(&'a [u8]),
}

impl Deed<'_> {
    /// It begins a stream of instructions for the table of fields (RFC 9204 §4.2).
    fn opens_encoder_stream(&self) -> bool {
        matches!(*self, Self::Send(stream, [2, ..], _) if stream & 3 == 2)
    }
}

/// Streams that a script may name: requests, and the client's unidirectional ones.
const STREAMS: [u64; 16] = [0, 4, 8, 12, 16, 20, 24, 28, 2, 6, 10, 14, 18, 22, 1, 32];

/// Reads a script: of each deed a byte that says what it is and where, then a byte of length, then the bytes.
fn read(mut script: &[u8]) -> Vec<Deed<'_>> {
    let mut deeds = Vec::new();
    while let [what, length, rest @ ..] = script {
        let (bytes, after) = rest.split_at(usize::from(*length).min(rest.len()));
        script = after;
        let stream = STREAMS[usize::from(what & 15)];
        deeds.push(match what >> 4 {
            0..=7 => Deed::Send(stream, bytes, false),
            8..=12 => Deed::Send(stream, bytes, true),
            13 => Deed::Reset(stream),
            14 => Deed::Stop(stream),
            _ => Deed::Datagram(bytes),
        });
    }
    deeds
}

/// Plays the script `input` whole, byte by byte and in random pieces, and compares.
///
/// # Panics
/// If one of the invariants does not hold; the message says which.
pub fn check(input: &[u8], seed: u64) {
    let deeds = read(input);
    let whole = Play::run(&deeds, seed, |bytes| vec![bytes]);
    let single = Play::run(&deeds, seed, |bytes| bytes.chunks(1).collect());
    let inserts = deeds.iter().any(Deed::opens_encoder_stream);
    assert_same(&single, &whole, inserts, "byte by byte");
    let mut rng = Rng::new(seed ^ 1);
    let pieces = Play::run(&deeds, seed, |bytes| rng.pieces(bytes));
    assert_same(&pieces, &whole, inserts, "in pieces");
}

/// Compares stream by stream: which of those that wait for the same instructions comes first depends on the cut, and so does
/// how far each is when a mistake on one ends the connection. `inserts`: the client writes to the table of fields.
fn assert_same(cut: &Outcome, whole: &Outcome, inserts: bool, how: &str) {
    let is_cut_short = whole.fault.is_some();
    assert_eq!(
        cut.closed.is_some(),
        whole.closed.is_some(),
        "ends differ {how}"
    );
    if is_cut_short && (whole.fault == Some("EncoderStream") || cut.fault == Some("EncoderStream"))
    {
        return;
    }
    // Whether an encoder can have sent a count of entries depends on how many have come by then (RFC 9204 §4.5.1.1): a count
    // that none sends is a fault, or one of entries to come, for which the section waits until the connection ends.
    let faults = [cut.fault, whole.fault];
    if inserts && cut.fault != whole.fault && faults.contains(&Some("FieldCompression")) {
        return;
    }
    assert_eq!((cut.closed, cut.fault), (whole.closed, whole.fault));
    let (cut_told, told) = (by_stream(&cut.told), by_stream(&whole.told));
    if !is_cut_short {
        assert_eq!(cut_told, told, "differs {how}");
        assert_eq!(cut.got, whole.got, "differs {how}");
        return;
    }
    for (stream, events) in &told {
        let other = cut_told.get(stream).cloned().unwrap_or_default();
        let n_common = events.len().min(other.len());
        assert_eq!(events[..n_common], other[..n_common], "differs {how}");
    }
}

fn by_stream(told: &[String]) -> BTreeMap<String, Vec<&str>> {
    let mut streams: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for text in told {
        let n_words = if text.starts_with("stream") { 2 } else { 1 };
        let words: Vec<&str> = text.split(' ').take(n_words).collect();
        streams.entry(words.join(" ")).or_default().push(text);
    }
    streams
}

/// What a stream has got.
#[derive(Debug, Default, PartialEq, Eq)]
struct Got {
    bytes: Vec<u8>,
    fin: bool,
    reset: Option<u64>,
    stopped: Option<u64>,
}

/// What has come of a script.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    told: Vec<String>,
    got: BTreeMap<u64, Got>,
    closed: Option<u64>,
    fault: Option<&'static str>,
}

struct Play {
    connection: Connection,
    limits: Limits,
    heads: HeadPool,
    now: u64,
    rng: Rng,
    outcome: Outcome,
    /// Requests that were told and have not ended.
    open: Vec<u32>,
    ended: BTreeSet<u64>,
    next_uni: u64,
}

/// The decoder stream: how acknowledgements are put together depends on the cut.
const ACKNOWLEDGEMENTS: u64 = 7;

impl Play {
    fn run<'a>(
        deeds: &[Deed<'a>],
        seed: u64,
        mut cut: impl FnMut(&'a [u8]) -> Vec<&'a [u8]>,
    ) -> Outcome {
        let mut rng = Rng::new(seed ^ 2);
        let mut limits = Limits::default();
        if rng.once_in(3) {
            limits.h3_resets_max = 3;
            limits.h3_idle_frames_max = 5;
            limits.h3_blocked_streams_max = 1;
            limits.h3_streams_max = 3;
            limits.webtransport_streams_max = 2;
        }
        let options = Options {
            extended_connect: true,
            webtransport: !rng.once_in(4),
        };
        let mut play = Self {
            connection: Connection::new(0, options, &limits),
            limits,
            heads: HeadPool::default(),
            now: 0,
            rng,
            outcome: Outcome::default(),
            open: Vec::new(),
            ended: BTreeSet::new(),
            next_uni: 3,
        };
        play.settle();
        for deed in deeds {
            play.act(deed, &mut cut);
            play.settle();
        }
        play.wait();
        play.outcome.fault = play.connection.fault().map(citius_http::Fault::name);
        play.outcome.got.remove(&ACKNOWLEDGEMENTS);
        // Whether a client is told to stop that has nothing more to send depends on how much of it has come by then.
        for (stream, got) in &mut play.outcome.got {
            if play.ended.contains(stream) {
                got.stopped = None;
            }
        }
        play.outcome
    }

    fn act<'a>(&mut self, deed: &Deed<'a>, cut: &mut impl FnMut(&'a [u8]) -> Vec<&'a [u8]>) {
        match *deed {
            Deed::Send(stream, bytes, fin) => {
                if self.ended.contains(&stream) {
                    return;
                }
                if fin {
                    self.ended.insert(stream);
                }
                let pieces = cut(bytes);
                let n_pieces = pieces.len();
                if n_pieces == 0 {
                    self.send(stream, b"", fin);
                }
                for (piece, n) in pieces.into_iter().zip(1..) {
                    self.send(stream, piece, fin && n == n_pieces);
                }
            }
            Deed::Reset(stream) => {
                if self.ended.insert(stream) {
                    self.call(|connection, cx| connection.reset(cx, stream, 0x10c));
                }
            }
            Deed::Stop(stream) => {
                self.call(|connection, cx| connection.stop_sending(cx, stream, 0x10c));
            }
            Deed::Datagram(bytes) => {
                let spelled = self.call(|connection, cx| connection.datagram(cx, bytes).map(spell));
                self.tell(spelled);
            }
        }
    }

    fn call<R>(&mut self, act: impl FnOnce(&mut Connection, &mut Context<'_>) -> R) -> R {
        let mut context = Context {
            now: self.now,
            limits: &self.limits,
            heads: &mut self.heads,
            server: b"",
            date: b"",
            default_fields: &Fields::EMPTY,
        };
        act(&mut self.connection, &mut context)
    }

    fn send(&mut self, stream: u64, mut input: &[u8], fin: bool) {
        let mut n_events = 0;
        loop {
            let spelled = self
                .call(|connection, cx| connection.receive(cx, stream, &mut input, fin).map(spell));
            if !self.tell(spelled) {
                break;
            }
            n_events += 1;
            assert!(n_events < 10_000, "events without end");
        }
        assert!(input.is_empty(), "input is left over");
        self.hear();
    }

    /// Takes note of an event, and acts on it as an application.
    fn tell(&mut self, event: Option<(String, Told)>) -> bool {
        let Some((text, told)) = event else {
            return false;
        };
        assert!(
            self.outcome.closed.is_none(),
            "something is told behind the end: {text}"
        );
        // Pieces of content are as long as the input: only their sum counts.
        match self.outcome.told.last_mut() {
            Some(last) if told.is_data && last.starts_with(&told.prefix) => {
                last.push_str(&text[told.prefix.len()..]);
            }
            _ => self.outcome.told.push(text),
        }
        match told.what {
            What::Request { id, is_whole } => {
                assert!(!self.open.contains(&id), "a request is told twice");
                if !is_whole {
                    self.open.push(id);
                }
                self.answer(id);
            }
            What::Ended(id) => self.open.retain(|&open| open != id),
            What::SessionStream(stream) => {
                self.call(|connection, _| connection.want_session_bytes(stream, u64::MAX));
                self.call(|connection, _| {
                    connection.send_session_bytes(stream, Payload::Copied(b"echo"), true)
                });
            }
            What::Else => {}
        }
        true
    }

    fn answer(&mut self, id: u32) {
        self.call(|connection, cx| connection.want(cx, id, u64::MAX));
        let limits = self.limits.clone();
        let way = self.rng.below(6);
        self.call(|connection, cx| {
            let text = ResponseHead::text(Status::OK);
            let trailers = &Fields::EMPTY;
            let fields = trailers;
            // Faults of the application are none of the protocol.
            let _ = match way {
                0 => connection.send(cx, id, Action::Respond(text, Payload::Copied(b"whole"))),
                1 => connection
                    .send(cx, id, Action::Start(text))
                    .and_then(|()| connection.send(cx, id, Action::Data(Payload::Copied(b"part"))))
                    .and_then(|()| connection.send(cx, id, Action::End { trailers })),
                2 => connection.send(cx, id, Action::Abort),
                3 => {
                    let protocol = b"any";
                    let done = connection.send(cx, id, Action::Switch { protocol, fields });
                    connection.open_session_stream(id, 1, false, &limits);
                    connection.open_session_stream(id, 2, true, &limits);
                    connection.send_session_message(id, b"to all".as_slice().into(), &limits);
                    done
                }
                4 => connection.send(cx, id, Action::Data(Payload::Copied(b"too early"))),
                _ => Ok(()),
            };
        });
    }

    /// Takes events that need no input.
    fn hear(&mut self) {
        let mut n_events = 0;
        loop {
            let spelled = self.call(|connection, cx| connection.next_event(cx).map(spell));
            if !self.tell(spelled) {
                return;
            }
            n_events += 1;
            assert!(n_events < 10_000, "events without end");
        }
    }

    /// Takes events and what is to be sent: between deeds, so that no cut decides whether a response leaves before the rest of
    /// its request comes.
    fn settle(&mut self) {
        loop {
            self.hear();
            let mut is_done = true;
            while let Some(control) = self.connection.next_control() {
                is_done = false;
                self.control(&control);
            }
            while let Some(stream) = self.connection.next_to_send() {
                is_done = false;
                let outgoing = self.connection.outgoing(stream).expect("something to send");
                let got = self.outcome.got.entry(stream).or_default();
                assert!(!got.fin && got.reset.is_none(), "bytes behind the end");
                got.bytes.extend(outgoing.output.pieces().flatten());
                got.fin |= outgoing.fin;
                self.call(|connection, cx| connection.taken(cx, stream, Taken::All));
            }
            if is_done {
                return;
            }
        }
    }

    fn control(&mut self, control: &Control) {
        assert!(self.outcome.closed.is_none(), "closing comes last");
        let got = &mut self.outcome.got;
        match *control {
            Control::OpenUni(token) | Control::OpenBi(token) => {
                let stream = self.next_uni;
                self.next_uni += 4;
                self.connection.opened(token, stream);
            }
            Control::StopSending { stream, code } => {
                got.entry(stream).or_default().stopped.get_or_insert(code);
            }
            Control::Reset { stream, code } => {
                let got = got.entry(stream).or_default();
                got.reset.get_or_insert(code);
            }
            Control::Datagram(_) | Control::Forget(_) => {}
            Control::Close { code, .. } => self.outcome.closed = Some(code),
        }
    }

    /// Time passes until nothing more is due.
    fn wait(&mut self) {
        let mut n_deadlines = 0;
        while let Some(at) = self.connection.deadline(&self.limits) {
            self.now = self.now.max(at);
            self.call(Connection::expire);
            self.settle();
            n_deadlines += 1;
            assert!(n_deadlines < 100, "deadlines without end");
        }
        self.call(Connection::lost);
        self.settle();
    }
}

/// What an event means to an application.
struct Told {
    is_data: bool,
    prefix: String,
    what: What,
}

enum What {
    Request { id: u32, is_whole: bool },
    Ended(u32),
    SessionStream(u64),
    Else,
}

fn spell(incoming: Incoming<'_>) -> (String, Told) {
    let hex = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let data = |prefix: String, bytes: &[u8]| {
        let text = format!("{prefix}{}", hex(bytes));
        let told = Told {
            is_data: true,
            prefix,
            what: What::Else,
        };
        (text, told)
    };
    let plain = |text: String, what: What| {
        let told = Told {
            is_data: false,
            prefix: String::new(),
            what,
        };
        (text, told)
    };
    match incoming {
        Incoming::Http(event) => match event {
            Event::Request {
                stream,
                head,
                ended,
            } => plain(
                format!("{stream} {} {ended}", hex(&head.bytes)),
                What::Request {
                    id: stream,
                    is_whole: ended,
                },
            ),
            Event::Data { stream, bytes } => data(format!("{stream} data "), bytes),
            Event::Buffered { stream, bytes } => data(format!("{stream} data "), &bytes),
            Event::End { stream, trailers } => plain(
                format!("{stream} end {}", hex(trailers.lines())),
                What::Ended(stream),
            ),
            Event::BodyRefused { stream, fault } | Event::Broken { stream, fault } => {
                plain(format!("{stream} broken {fault:?}"), What::Ended(stream))
            }
            Event::Call { .. } => unreachable!("HTTP/3 has no calls"),
        },
        Incoming::Session(event) => match event {
            SessionEvent::Data { stream, bytes, .. } => {
                data(format!("stream {stream} data "), bytes)
            }
            SessionEvent::Buffered { stream, bytes, .. } => {
                data(format!("stream {stream} data "), &bytes)
            }
            SessionEvent::Opened { session, stream } => plain(
                format!("{session} opened {stream}"),
                What::SessionStream(stream),
            ),
            other => plain(format!("{other:?}"), What::Else),
        },
    }
}

/// A deed of a script.
fn put(script: &mut Vec<u8>, what: u8, stream: u64, bytes: &[u8]) {
    let place = STREAMS
        .iter()
        .position(|&other| other == stream)
        .unwrap_or(0);
    for piece in bytes
        .chunks(255)
        .chain(bytes.is_empty().then_some(&b""[..]))
    {
        script.push(what << 4 | u8::try_from(place).unwrap_or(0));
        script.push(u8::try_from(piece.len()).unwrap_or(0));
        script.extend_from_slice(piece);
    }
}

/// Bytes of a request's stream, some of them mistaken.
fn compose_request(rng: &mut Rng) -> Vec<u8> {
    const HEADS: [&[u8]; 7] = [
        // GET / of `a`, by the static table.
        b"\x01\x07\x00\x00\xd1\xd7\xc1\x50\x01a",
        // The same, its authority from the dynamic table.
        b"\x01\x06\x02\x00\xd1\xd7\xc1\x80",
        // POST with a length.
        b"\x01\x0a\x00\x00\xd4\xd7\xc1\x50\x01a\x54\x013",
        // POST without one.
        b"\x01\x07\x00\x00\xd4\xd7\xc1\x50\x01a",
        // A session.
        b"\x01\x21\x00\x00\xcf\x27\x02:protocol\x0cwebtransport\xd7\xc1\x50\x01a",
        // HEAD.
        b"\x01\x07\x00\x00\xd2\xd7\xc1\x50\x01a",
        // No authority.
        b"\x01\x05\x00\x00\xd1\xd7\xc1",
    ];
    const PIECES: [&[u8]; 10] = [
        b"\x00\x03abc",
        b"\x00\x01x",
        b"\x00\x00",
        b"\x21\x04what",
        b"\x01\x06\x00\x00\x21x\x01y",
        b"\x01\x03\x03\x00\x80",
        b"\x00\x0c\x68\x43\x08\x00\x00\x00\x07byes",
        b"\x00\x05\x80\x00\x78\xae\x00",
        b"\x04\x00",
        b"\x40\x41\x00hello",
    ];
    let mut bytes = Vec::new();
    if !rng.once_in(6) {
        bytes.extend_from_slice(HEADS[rng.below(HEADS.len())]);
    }
    for _ in 0..rng.below(4) {
        bytes.extend_from_slice(PIECES[rng.below(PIECES.len())]);
    }
    bytes
}

/// A script of a client that is sometimes mistaken.
pub fn compose(rng: &mut Rng) -> Vec<u8> {
    const UNIS: [&[u8]; 8] = [
        b"\x02\x3f\xe1\x1f\xc0\x01a",
        b"\x02\x3f\xe1\x1f\xc0\x01a\x00\x41x\x01y",
        b"\x03\x44\x7f\x80\x01",
        b"\x40\x54\x00uni",
        b"\x40\x21what",
        b"\x01",
        b"\x02\x00",
        b"\x03\x80",
    ];
    let mut script = Vec::new();
    if !rng.once_in(8) {
        put(&mut script, 0, 2, b"\x00\x04\x02\x33\x01");
    }
    for _ in 0..=rng.below(10) {
        let request = STREAMS[rng.below(8)];
        match rng.below(16) {
            0..=7 => {
                let what = if rng.once_in(3) { 0 } else { 8 };
                put(&mut script, what, request, &compose_request(rng));
            }
            8..=10 => put(
                &mut script,
                0,
                STREAMS[9 + rng.below(5)],
                UNIS[rng.below(UNIS.len())],
            ),
            11 => put(&mut script, 13, STREAMS[rng.below(14)], b""),
            12 => put(&mut script, 14, request, b""),
            13 => put(&mut script, 15, 0, b"\x00datagram"),
            14 => put(
                &mut script,
                0,
                2,
                b"\x80\x0f\x07\x00\x04\x04u=1\x0d\x01\x05\x21\x01x",
            ),
            _ => put(&mut script, 0, request, b"\x40\x41\x00hello"),
        }
    }
    script
}

/// The same, damaged once in three times.
pub fn compose_damaged(rng: &mut Rng) -> Vec<u8> {
    let mut script = compose(rng);
    if rng.once_in(3) {
        for _ in 0..=rng.below(3) {
            let at = rng.below(script.len());
            if let Some(byte) = script.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_section_that_names_too_many_entries_may_wait_for_them() {
        // Headers that wait for one entry, trailers that name 130; the table gets two, in one piece or in several.
        let script = b"\x85\x10\x01\x06\x02\x00\xd1\xd7\xc1\x80\x01\x03\x83\x00\x80\x00\x01x\
            \x0b\x0c\x02?\xe1\x1f\xc0\x01a\x00Ax\x01y";
        for seed in 0..64 {
            check(script, seed);
        }
    }
}
