//! A fuzz campaign: arbitrary bytes, cuts and application behaviour, and what must hold all the same.
//!
//! In: bytes and a seed. Out: nothing, or a panic that names what does not hold. The table of what an application does is
//! one pass over one input.
//!
//! - Nothing panics.
//! - parse(whole) == parse(any cut): same events, same output, same fault.
//! - What was written are responses to the requests that were taken, in their order; all are complete
//!   unless the connection was cut off.
//! - Nothing hangs: when the peer has closed its side and the application has said all it will, the
//!   connection closes.
//! - No more requests are open than `pipeline_max`.

use std::collections::VecDeque;
use std::fmt;

use citius_h1::Closing;
use citius_http::{Fault, Limits};

use crate::driver::{Application, Driver, Seen};
use crate::replay::spell;
use crate::responses::{self, Asked};
use crate::rng::Rng;
use crate::transcript::{Deed, Start, escape};

/// Feeds `input` to an application whose every mood depends on `seed`, whole and cut, and compares.
///
/// # Panics
/// If one of the invariants does not hold; the message says which.
pub fn check(input: &[u8], seed: u64) {
    let limits = limits_of(seed);
    let whole = run(vec![input.to_vec()], seed, &limits);
    whole.check(&limits);
    let bytes = input.chunks(1).map(<[u8]>::to_vec).collect();
    whole.compare(&run(bytes, seed, &limits), "byte by byte");
    let pieces = Rng::new(seed).pieces(input);
    let pieces = pieces.into_iter().map(<[u8]>::to_vec).collect();
    whole.compare(&run(pieces, seed, &limits), "at random");
    weather(input, seed, &limits);
}

/// What came of one run.
struct Record {
    seen: Vec<Seen>,
    written: Vec<u8>,
    closing: Option<Closing>,
    fault: Option<Fault>,
    falls_silent: bool,
}

fn run(pieces: Vec<Vec<u8>>, seed: u64, limits: &Limits) -> Record {
    let mut moody = Moody::new(seed);
    let falls_silent = moody.may_fall_silent;
    let mut driver = Driver::new(limits, &mut moody);
    driver.offer(pieces);
    while driver.resume() {}
    driver.finish();
    while driver.resume() {}
    let n_open = driver.connection.streams_open();
    assert!(n_open <= limits.pipeline_max as usize, "pipeline overflows");
    Record {
        closing: driver.connection.closing(),
        fault: driver.connection.fault(),
        seen: driver.seen,
        written: driver.written,
        falls_silent,
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for seen in &self.seen {
            writeln!(f, "= {}", spell(seen))?;
        }
        writeln!(f, "< {}", escape(&self.written))?;
        writeln!(f, "= close {:?} fault {:?}", self.closing, self.fault)
    }
}

impl Record {
    fn check(&self, limits: &Limits) {
        assert!(
            self.closing.is_some() || self.falls_silent,
            "hangs: {self:?} {limits:?}"
        );
        let responses = match responses::read(&self.written, &self.asked()) {
            Ok(responses) => responses,
            Err(reason) => panic!("{reason}: {self:?}"),
        };
        let complete = responses.iter().all(|response| response.complete);
        let was_cut = self.closing.is_none_or(|closing| closing == Closing::Abort);
        assert!(complete || was_cut, "half a response: {self:?}");
    }

    /// The requests that were taken and could get a response of their own.
    fn asked(&self) -> Vec<Asked> {
        let requests = self.seen.iter().filter_map(|seen| match seen {
            Seen::Request { method, head, .. } => Some(Asked {
                head_only: method == b"HEAD",
                http10: head.contains("version: Http10"),
            }),
            _ => None,
        });
        requests.collect()
    }

    fn compare(&self, cut: &Self, how: &str) {
        assert!(
            self.seen == cut.seen && self.written == cut.written && self.fault == cut.fault,
            "differs, cut {how}: whole\n{self:?}\ncut\n{cut:?}"
        );
        // Whether a byte is left over depends on what was offered: clean and lingering are one here.
        let is_abort = |record: &Self| record.closing.map(|closing| closing == Closing::Abort);
        assert_eq!(
            is_abort(self),
            is_abort(cut),
            "ends differently, cut {how}: whole\n{self:?}\ncut\n{cut:?}"
        );
    }
}

/// Time passes, the server drains or refuses: nothing to compare with, and still no panic, no hang.
fn weather(input: &[u8], seed: u64, limits: &Limits) {
    let mut rng = Rng::new(seed ^ 1);
    let mut moody = Moody::new(seed);
    let mut driver = Driver::new(limits, &mut moody);
    for piece in input.chunks(1 + rng.below(64)) {
        driver.offer([piece.to_vec()]);
        match rng.below(12) {
            0 => driver.wait(rng.next_u64() % 100_000),
            1 if rng.once_in(4) => driver.drain(),
            2 if rng.once_in(4) => driver.refuse(Fault::Overloaded),
            3 | 4 => {
                driver.resume();
            }
            _ => driver.wait(1),
        }
    }
    while driver.resume() {}
    let mut patience = 0;
    while let Some(left) = driver.time_left() {
        driver.wait(left);
        patience += 1;
        assert!(patience < 1000, "deadlines without end");
    }
}

fn limits_of(seed: u64) -> Limits {
    let mut rng = Rng::new(seed ^ 2);
    let mut limits = Limits::default();
    if rng.once_in(2) {
        limits.pipeline_max = 1 + u32::try_from(rng.below(4)).unwrap_or(0);
    }
    if rng.once_in(4) {
        limits.write_queue_bytes_max = 100;
    }
    if rng.once_in(4) {
        limits.head_bytes_max = 200;
        limits.target_bytes_max = 20;
        limits.fields_max = 5;
    }
    if rng.once_in(4) {
        limits.body_bytes_max = 64;
        limits.discard_bytes_max = 16;
        limits.trailer_bytes_max = 24;
        limits.chunk_extension_bytes_max = 8;
        limits.chunk_size_digits_max = 4;
    }
    limits
}

/// An application that treats each stream in one of many ways, good and bad.
#[derive(Debug)]
pub(crate) struct Moody {
    seed: u64,
    may_fall_silent: bool,
    rng: Rng,
    put_off: Vec<(u32, VecDeque<Deed>)>,
}

impl Moody {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            may_fall_silent: seed.is_multiple_of(8),
            rng: Rng::new(seed ^ 3),
            put_off: Vec::new(),
        }
    }

    fn mood(&self, stream: u32) -> usize {
        Rng::new(
            self.seed
                .wrapping_add(u64::from(stream).wrapping_mul(0x1234_5678_9abc)),
        )
        .below(24)
    }

    fn put_off(&mut self, stream: u32, deeds: impl IntoIterator<Item = Deed>) -> Vec<(u32, Deed)> {
        self.put_off.push((stream, deeds.into_iter().collect()));
        Vec::new()
    }

    fn begin(&mut self, stream: u32, ended: bool) -> Vec<(u32, Deed)> {
        let mood = self.mood(stream);
        let now = |deeds: Vec<Deed>| deeds.into_iter().map(|deed| (stream, deed)).collect();
        match mood {
            0..=5 if ended => now(vec![respond(200, "now")]),
            0..=5 => now(vec![Deed::Want(u64::MAX)]),
            6 => now(vec![respond(404, "unread")]),
            7 => self.put_off(stream, [respond(200, "late")]),
            8 => self.put_off(
                stream,
                [Deed::Want(3), Deed::Want(u64::MAX), respond(200, "later")],
            ),
            9 => self.put_off(
                stream,
                [
                    start(200, &[("content-length", "4")]),
                    data("ab"),
                    data("cd"),
                    end(),
                ],
            ),
            10 => now(vec![
                start(200, &[]),
                data("a"),
                data(""),
                data("bcd"),
                end(),
            ]),
            11 => self.put_off(
                stream,
                [start(200, &[]), Deed::Want(u64::MAX), data("x"), end()],
            ),
            12 => now(vec![respond(204, "dropped")]),
            13 => now(vec![inform(103), respond(304, "")]),
            14 => self.put_off(stream, [inform(102), start(204, &[]), data("x"), end()]),
            15 => now(vec![respond_with(200, &[("connection", "close")], "bye")]),
            16 => self.put_off(
                stream,
                [respond_with(200, &[("content-length", "9")], "short")],
            ),
            17 => now(vec![
                start(200, &[("content-length", "2")]),
                data("abc"),
                end(),
            ]),
            18 => self.put_off(
                stream,
                [start(200, &[("content-length", "9")]), data("abc"), end()],
            ),
            19 => now(vec![data("before its head"), respond(200, "ignored")]),
            20 => self.put_off(stream, [start(205, &[("x-y", "z")]), Deed::Abort]),
            21 => now(vec![respond_with(200, &[("x", "a\r\nb")], "")]),
            22 if self.may_fall_silent => Vec::new(),
            _ => self.put_off(
                stream,
                [
                    Deed::Want(1),
                    Deed::Want(0),
                    Deed::Fail(Fault::HandlerFailed),
                ],
            ),
        }
    }
}

impl Application for Moody {
    fn react(&mut self, seen: &Seen) -> Vec<(u32, Deed)> {
        match *seen {
            Seen::Request { stream, ended, .. } => self.begin(stream, ended),
            Seen::End { stream, .. } if self.mood(stream) < 6 => {
                vec![(stream, respond(200, "after the body"))]
            }
            _ => Vec::new(),
        }
    }

    fn resume(&mut self) -> Option<(u32, Deed)> {
        let index = self.rng.below(self.put_off.len());
        let (stream, deeds) = self.put_off.get_mut(index)?;
        let stream = *stream;
        let deed = deeds.pop_front();
        if deeds.is_empty() {
            self.put_off.swap_remove(index);
        }
        deed.map(|deed| (stream, deed))
    }
}

fn head(status: u16, fields: &[(&str, &str)]) -> Start {
    let bytes = |text: &str| text.as_bytes().to_vec();
    Start {
        status,
        content_type: Some(b"text/plain".to_vec()),
        fields: fields.iter().map(|(n, v)| (bytes(n), bytes(v))).collect(),
    }
}

fn start(status: u16, fields: &[(&str, &str)]) -> Deed {
    Deed::Start(head(status, fields))
}

fn inform(status: u16) -> Deed {
    Deed::Inform(Start {
        status,
        ..Start::default()
    })
}

fn respond(status: u16, body: &str) -> Deed {
    respond_with(status, &[], body)
}

fn respond_with(status: u16, fields: &[(&str, &str)], body: &str) -> Deed {
    Deed::Respond(head(status, fields), body.as_bytes().to_vec())
}

fn data(text: &str) -> Deed {
    Deed::Data(text.as_bytes().to_vec())
}

fn end() -> Deed {
    Deed::End(vec![(b"x-trailer".to_vec(), b"1".to_vec())])
}

/// Requests put together at random from parts that servers have stumbled over, mostly well-formed.
pub fn compose(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=rng.below(4) {
        compose_request(rng, &mut bytes);
    }
    for _ in 0..rng.below(3) {
        mutate(rng, &mut bytes, &[]);
    }
    bytes
}

fn compose_request(rng: &mut Rng, bytes: &mut Vec<u8>) {
    const METHODS: [&str; 8] = [
        "GET", "GET", "HEAD", "POST", "PUT", "OPTIONS", "PURGE", "CONNECT",
    ];
    const TARGETS: [&str; 7] = [
        "/",
        "/a?b=c",
        "*",
        "http://a/b",
        "http://a",
        "/%41",
        "/long/er/than/twenty/bytes",
    ];
    const VERSIONS: [&str; 6] = ["1.1", "1.1", "1.1", "1.1", "1.0", "2.0"];
    let method = pick(rng, &METHODS);
    let mut line = |text: &str| {
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    };
    line(&format!(
        "{method} {} HTTP/{}",
        pick(rng, &TARGETS),
        pick(rng, &VERSIONS)
    ));
    line("Host: a");
    for _ in 0..rng.below(4) {
        line(pick(rng, &LINES));
    }
    let n_bytes = rng.below(40);
    let body = "b".repeat(n_bytes);
    match rng.below(5) {
        0 => line(&format!("Content-Length: {n_bytes}\r\n\r\n{body}")),
        1 => {
            line("Transfer-Encoding: chunked\r\n");
            let (first, second) = body.split_at(rng.below(n_bytes + 1));
            for part in [first, second].into_iter().filter(|part| !part.is_empty()) {
                line(&format!(
                    "{:x}{}\r\n{part}",
                    part.len(),
                    pick(rng, &EXTENSIONS)
                ));
            }
            line("0");
            if rng.once_in(3) {
                line(pick(rng, &LINES));
            }
            line("");
        }
        _ => line(""),
    }
}

const LINES: [&str; 12] = [
    "Connection: close",
    "Connection: keep-alive",
    "Expect: 100-continue",
    "Content-Length: 3",
    "Transfer-Encoding: chunked",
    "Accept: */*",
    "X-Tab:\t a\tb \t",
    "X-Empty:",
    "Cookie: a=b; c=d",
    "Connection: x, close , y",
    "Host: b",
    "X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

const EXTENSIONS: [&str; 6] = ["", "", ";a", ";a=b", " ; a = \"q\\\"\"", ";"];

/// Changes `bytes` in one of the ways that find mistakes; may take a piece of `other`.
pub fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    const WORDS: [&[u8]; 16] = [
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b" ",
        b"\t",
        b":",
        b";",
        b"0\r\n\r\n",
        b"\r\n\r\n",
        b"chunked",
        b"ffffffffffffffff",
        b"\xff",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    let at = rng.below(bytes.len() + 1);
    let until = at + rng.below(bytes.len() - at + 1).min(40);
    match rng.below(7) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = u8::try_from(rng.below(256)).unwrap_or(0);
            }
        }
        1 => {
            bytes.splice(
                at..at,
                WORDS
                    .get(rng.below(WORDS.len()))
                    .copied()
                    .unwrap_or_default()
                    .to_vec(),
            );
        }
        2 => {
            bytes.drain(at..until);
        }
        3 => {
            let again = bytes.get(at..until).unwrap_or_default().to_vec();
            bytes.splice(at..at, again);
        }
        4 => bytes.truncate(at),
        5 => {
            let from = rng.below(other.len() + 1);
            let piece = other.get(from..).unwrap_or_default();
            bytes.splice(at..until, piece.iter().copied());
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
    }
}

fn pick<'w>(rng: &mut Rng, words: &[&'w str]) -> &'w str {
    words
        .get(rng.below(words.len()))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_thousand_storms_are_weathered() {
        for seed in 0..2000 {
            check(&compose(&mut Rng::new(seed)), seed);
        }
    }
}
