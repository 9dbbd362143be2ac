//! Campaigns against the client's half of HTTP/2: scripts of what a server sends and of what the caller does between, in any cut.
//!
//! - Nothing panics, and nothing hangs.
//! - parse(whole) == parse(any cut): the same events, the same bytes to the server, the same fault.
//! - Behind a fault nothing is read.
//! - A response is any number of interim ones, a head, content, an end, in this order; content has the length that its head says.
//! - What is sent keeps to the windows that the server has opened, and to frames of the size that it takes.
//! - A stream that is over makes room for another.

use std::collections::BTreeMap;

use citius_h2::client::{Connection, Event, Fault, Limits, Pairs, Request};

use crate::campaign::mutate;
use crate::rng::Rng;

/// What comes next.
#[derive(Clone, Debug)]
enum Deed<'a> {
    /// The server sends bytes.
    Bytes(&'a [u8]),
    /// The server sends a frame: kind, flags, stream, payload.
    Frame(u8, u8, u32, &'a [u8]),
    /// The caller begins a request; with content, or with the method HEAD.
    Begin { content: bool, head: bool },
    /// The caller sends so many bytes of content, perhaps the last.
    Send(u32, usize, bool),
    /// The caller gives a stream up.
    Reset(u32),
    /// The caller ends its content with trailers.
    Trailers(u32),
}

/// Reads a script: of each deed a byte that says what it is, one that says of which stream, one of length, then the bytes.
fn read(mut script: &[u8]) -> Vec<Deed<'_>> {
    let mut deeds = Vec::new();
    while let [what, stream, length, rest @ ..] = script {
        let (bytes, after) = rest.split_at(usize::from(*length).min(rest.len()));
        script = after;
        // Mostly streams of requests; 0 is the connection, and some are none of ours.
        let id = u32::from(*stream % 12);
        deeds.push(match what >> 4 {
            0 => Deed::Bytes(bytes),
            1..=10 => {
                let flags = bytes.first().copied().unwrap_or(0);
                Deed::Frame(what & 15, flags, id, bytes.get(1..).unwrap_or_default())
            }
            11 | 12 => Deed::Begin {
                content: what & 1 == 1,
                head: what & 2 == 2,
            },
            13 => Deed::Send(id, usize::from(*length) * 300, what & 1 == 1),
            14 => Deed::Reset(id),
            _ => Deed::Trailers(id),
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
    assert_eq!(single, whole, "differs byte by byte");
    let mut rng = Rng::new(seed ^ 1);
    let pieces = Play::run(&deeds, seed, |bytes| rng.pieces(bytes));
    assert_eq!(pieces, whole, "differs in pieces");
}

/// What has come of a script.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    told: Vec<String>,
    sent: Vec<u8>,
    fault: Option<Fault>,
}

/// What was told of a stream.
#[derive(Debug, Default)]
struct Told {
    has_head: bool,
    is_over: bool,
    is_sent: bool,
    /// Bytes that there are, by the method or by its head.
    length: Option<u64>,
    received: u64,
}

struct Play {
    connection: Connection,
    limits: Limits,
    held: Vec<u8>,
    outcome: Outcome,
    streams: BTreeMap<u32, Told>,
}

impl Play {
    fn run<'a>(
        deeds: &[Deed<'a>],
        seed: u64,
        mut cut: impl FnMut(&'a [u8]) -> Vec<&'a [u8]>,
    ) -> Outcome {
        let mut rng = Rng::new(seed ^ 2);
        let mut limits = Limits::DEFAULT;
        if rng.once_in(3) {
            limits.head_bytes_max = 100;
            limits.fields_max = 3;
            limits.interim_max = 1;
            limits.stream_window_bytes = 20;
            limits.idle_frames_max = 6;
            limits.streams_max = 2;
        }
        let mut outcome = Outcome::default();
        let connection = Connection::new(&limits, &mut outcome.sent);
        let mut play = Self {
            connection,
            limits,
            held: Vec::new(),
            outcome,
            streams: BTreeMap::new(),
        };
        for deed in deeds {
            play.act(deed, &mut cut);
            play.check_room();
        }
        check_frames(&play.outcome.sent);
        play.outcome
    }

    fn act<'a>(&mut self, deed: &Deed<'a>, cut: &mut impl FnMut(&'a [u8]) -> Vec<&'a [u8]>) {
        match *deed {
            Deed::Bytes(bytes) => {
                for piece in cut(bytes) {
                    self.offer(piece);
                }
            }
            Deed::Frame(kind, flags, stream, payload) => {
                let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
                let mut header = [0; 9];
                header[..3].copy_from_slice(&length[1..]);
                (header[3], header[4]) = (kind, flags);
                header[5..].copy_from_slice(&stream.to_be_bytes());
                self.offer(&header);
                for piece in cut(payload) {
                    self.offer(piece);
                }
            }
            Deed::Begin { content, head } => self.begin(content, head),
            Deed::Send(id, size, ends) => {
                let capacity = self.connection.capacity(id);
                let takes = self.connection.takes_content(id);
                let taken =
                    self.connection
                        .data(id, &vec![b'x'; size], ends, &mut self.outcome.sent);
                assert!(taken <= capacity, "content beyond the windows");
                if let Some(told) = self.streams.get_mut(&id) {
                    told.is_sent |= takes && ends && taken == size;
                }
            }
            Deed::Reset(id) => {
                self.connection.reset(id, &mut self.outcome.sent);
                if let Some(told) = self.streams.get_mut(&id) {
                    (told.is_over, told.is_sent) = (true, true);
                }
            }
            Deed::Trailers(id) => {
                let takes = self.connection.takes_content(id);
                let fields = [(b"t".as_slice(), b"u".as_slice())];
                self.connection.trailers(id, fields, &mut self.outcome.sent);
                if let Some(told) = self.streams.get_mut(&id) {
                    told.is_sent |= takes;
                }
            }
        }
    }

    fn begin(&mut self, content: bool, head: bool) {
        let request = Request {
            method: if head { b"HEAD" } else { b"POST" },
            scheme: b"https",
            authority: b"a",
            path: b"/",
            content_length: None,
            ends: !content,
        };
        let room = self.connection.room();
        let fields: [(&[u8], &[u8]); 0] = [];
        let begun = self
            .connection
            .begin(&request, fields, &mut self.outcome.sent);
        assert_eq!(begun.is_ok(), room > 0, "room for {room}");
        if let Ok(id) = begun {
            let told = Told {
                is_sent: !content,
                length: head.then_some(0),
                ..Told::default()
            };
            assert!(self.streams.insert(id, told).is_none(), "{id} twice");
        }
    }

    fn offer(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut input = held.as_slice();
        loop {
            let before = input.len();
            let sent = self.outcome.sent.len();
            let received =
                self.connection
                    .receive(&self.limits, &mut input, &mut self.outcome.sent);
            match received {
                Ok(Some(event)) => {
                    let id = self.see(&event);
                    if let (Some(id), Event::Head(..) | Event::Data(..)) = (id, &event) {
                        if let Event::Data(_, data) = event {
                            let (limits, out) = (&self.limits, &mut self.outcome.sent);
                            self.connection.consumed(id, data.len(), limits, out);
                        }
                        if self.connection.take_end(id) {
                            self.end(id);
                        }
                    }
                }
                Ok(None) => break,
                Err(fault) => {
                    if let Some(known) = self.outcome.fault {
                        assert_eq!(known, fault, "another fault");
                        assert_eq!(input.len(), before, "a byte is read behind a fault");
                        assert_eq!(self.outcome.sent.len(), sent, "said twice");
                    }
                    self.outcome.fault = Some(fault);
                    // The caller closes.
                    input = &[];
                    break;
                }
            }
        }
        self.held = input.to_vec();
    }

    /// Checks that an event is in its place; returns its stream.
    fn see(&mut self, event: &Event<'_>) -> Option<u32> {
        assert!(self.outcome.fault.is_none(), "an event behind a fault");
        self.outcome.told.push(format!("{event:?}"));
        let (Event::Interim(id, ..)
        | Event::Head(id, ..)
        | Event::Data(id, _)
        | Event::End(id, _)
        | Event::Failed(id, _)
        | Event::Reset(id, ..)) = *event
        else {
            return None;
        };
        let told = self.streams.get_mut(&id).expect("a stream that was begun");
        assert!(!told.is_over, "{event:?} behind the end");
        match event {
            Event::Interim(_, status, _) => {
                assert!(!told.has_head, "an interim response behind the head");
                assert!((100..200).contains(status));
            }
            Event::Head(_, status, fields) => {
                assert!(!told.has_head, "two heads");
                told.has_head = true;
                let is_without = matches!(status, 204 | 304);
                let said = if is_without { Some(0) } else { length(fields) };
                told.length = told.length.or(said);
            }
            Event::Data(_, data) => {
                assert!(told.has_head, "content before the head");
                assert!(!data.is_empty(), "an empty piece");
                told.received += data.len() as u64;
            }
            Event::End(..) => self.end(id),
            _ => (told.is_over, told.is_sent) = (true, true),
        }
        Some(id)
    }

    fn end(&mut self, id: u32) {
        self.outcome.told.push(format!("end {id}"));
        let told = self.streams.get_mut(&id).expect("a stream that was begun");
        assert!(told.has_head, "an end before the head");
        assert!(!told.is_over, "it ends twice");
        (told.is_over, told.is_sent) = (true, true);
        if let Some(length) = told.length {
            assert_eq!(told.received, length, "another length than was said");
        }
        // As the client does: a server that has responded needs no more of the request.
        self.connection.reset(id, &mut self.outcome.sent);
    }

    fn check_room(&self) {
        if self.connection.is_going() || self.outcome.fault.is_some() {
            return;
        }
        let open = self
            .streams
            .values()
            .filter(|it| !it.is_over || !it.is_sent);
        let open = u32::try_from(open.count()).unwrap_or(u32::MAX);
        let room = self.connection.room();
        assert!(
            room + open <= self.limits.streams_max,
            "{room} beside {open}"
        );
    }
}

fn length(fields: &Pairs) -> Option<u64> {
    let mut found = fields
        .iter()
        .filter(|(name, _)| name.as_slice() == b"content-length");
    let (_, value) = found.next()?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Reads what was sent as frames, with a reader of its own.
fn check_frames(sent: &[u8]) {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut rest = sent.strip_prefix(PREFACE).expect("the preface");
    while let [a, b, c, _, _, tail @ ..] = rest {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        assert!(length <= 16_384, "a frame of {length} bytes");
        rest = tail.get(4 + length..).expect("a whole frame");
    }
    assert!(rest.is_empty(), "a part of a frame");
}

/// Field sections: heads, interim ones, trailers; some that no response has. Names and values are in the static table or literals.
const SECTIONS: [&[u8]; 14] = [
    b"\x88",                            // 200
    b"\x89",                            // 204
    b"\x8b",                            // 304
    b"\x8d",                            // 404
    b"\x08\x03103",                     // 103
    b"\x08\x03101",                     // 101
    b"\x88\x0f\x0d\x015",               // 200 with content-length: 5
    b"\x88\x0f\x0d\x010",               // 200 with content-length: 0
    b"\x88\x40\x01x\x01y",              // 200 with a field that is remembered
    b"\xbe",                            // the field that was remembered
    b"\x00\x01t\x01u",                  // trailers
    b"\x00\x04:foo\x01u",               // a pseudo-field that there is not
    b"\x88\x00\x0aconnection\x05close", // a field of the connection
    b"\x3f\xe1\x1f\x88",                // another size of the table
];

/// A script, mostly of a server that keeps to the protocol.
pub fn compose(rng: &mut Rng) -> Vec<u8> {
    let mut script = Vec::new();
    // Bits that make another deed of it are those of the caller's.
    let mut frame = |kind: u8, stream: u8, flags: u8, payload: &[u8]| {
        let length = u8::try_from(payload.len() + 1).unwrap_or(u8::MAX);
        let what = if kind < 16 { 0x10 | kind } else { kind };
        script.extend([what, stream, length, flags]);
        script.extend(payload.iter().take(usize::from(length) - 1));
    };
    frame(0xb0, 0, 0, &[]);
    frame(4, 0, 0, &[]);
    for _ in 0..=rng.below(16) {
        let stream = [1, 3, 5, 7][rng.below(4)];
        let ends = u8::from(rng.once_in(3));
        let number = [0, 1, 20, 65_535, 0x7fff_ffff][rng.below(5)];
        match rng.below(16) {
            0..=2 => {
                let what = [0xb0, 0xb1, 0xc2, 0xd0, 0xd1, 0xe0, 0xf0][rng.below(7)];
                frame(what, stream, 0, &[]);
            }
            3..=6 => {
                let section = SECTIONS[rng.below(SECTIONS.len())];
                if rng.once_in(6) && section.len() > 1 {
                    frame(1, stream, ends, &section[..1]);
                    frame(9, stream, 4, &section[1..]);
                } else {
                    frame(1, stream, 4 | ends, section);
                }
            }
            7..=9 => {
                let content = &b"contentcontent"[..rng.below(15)];
                if rng.once_in(5) {
                    frame(0, stream, 8 | ends, &[&[2], content, &[0, 0]].concat());
                } else {
                    frame(0, stream, ends, content);
                }
            }
            10 => frame(8, [0, stream][rng.below(2)], 0, &u32::to_be_bytes(number)),
            11 => {
                let id = [1u8, 3, 4, 5, 8][rng.below(5)];
                frame(
                    4,
                    0,
                    0,
                    &[&[0, id], u32::to_be_bytes(number).as_slice()].concat(),
                );
            }
            12 => frame(6, 0, ends, &[0; 8]),
            13 => frame(3, stream, 0, &u32::to_be_bytes([0, 7, 8][rng.below(3)])),
            14 => frame(7, 0, 0, &[0, 0, 0, stream, 0, 0, 0, 0]),
            _ => frame([2, 5, 10, 12][rng.below(4)], stream, 0, &[0; 5]),
        }
    }
    script
}

/// Such a script, and damage to it.
pub fn compose_damaged(rng: &mut Rng) -> Vec<u8> {
    let mut script = compose(rng);
    for _ in 0..rng.below(4) {
        mutate(rng, &mut script, b"\x11\x01\x02\x05\x88\xb0\0\0");
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_keep_to_the_invariants() {
        for seed in 0..3000 {
            check(&compose_damaged(&mut Rng::new(seed)), seed);
        }
    }

    /// A campaign whose scripts bring nothing about would find nothing.
    #[test]
    fn scripts_bring_about_every_event() {
        let mut told = std::collections::BTreeSet::new();
        for seed in 0..3000 {
            let script = compose(&mut Rng::new(seed));
            let outcome = Play::run(&read(&script), seed, |bytes| vec![bytes]);
            let words = outcome
                .told
                .iter()
                .filter_map(|text| text.split(['(', ' ']).next());
            told.extend(words.map(str::to_owned));
        }
        for event in [
            "Interim", "Head", "Data", "End", "end", "Failed", "Reset", "Leaving", "Room", "Pong",
        ] {
            assert!(told.contains(event), "no script brings about {event}");
        }
    }
}
