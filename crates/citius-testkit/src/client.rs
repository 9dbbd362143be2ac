//! Responses of a server against the client's half of HTTP/1.1: transcripts (`vectors/h1-client/`), and campaigns of mutated and
//! composed ones.
//!
//! A transcript is one as [`transcript`](crate::transcript) describes, with these lines:
//!
//! | kind | content | meaning |
//! |---|---|---|
//! | `#` | text | comment |
//! | `?` | `NAME CONTENT` | a variant, with `\?` in other lines standing for CONTENT |
//! | `:` | `limit NAME VALUE` | a limit other than the default |
//! | `~` | `content`, `head`, `connect`, `upgrade` | a request is sent, and what is special about it |
//! | `>` | bytes | the server sends |
//! | `!` | `finish` | the server closes |
//! | `=` | `interim STATUS`, `head STATUS`, `data BYTES`, `end HEAD`, `tunnel STATUS`, `fault FAULT` | an event |
//! | `=` | `idle`, `over`, `left BYTES` | the connection takes another request, or none; what is not read |
//!
//! Without a `~` line a `content` request is sent first. What the lines before `=` lines do is exactly what these say; the last
//! two need not be there. Pieces of content that follow each other are one event.

use std::path::Path;
use std::{fmt, io};

use citius_h1::client::{Asked, Connection, Event, Fault, Limits, ResponseHead};
use citius_http::Fields;

use crate::campaign::mutate;

use crate::rng::Rng;
use crate::transcript::{self, escape, unescape};

/// A parsed file.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    limits: Limits,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug, Default)]
struct Block {
    line: usize,
    steps: Vec<Step>,
    expected: Vec<String>,
}

#[derive(Clone, Debug)]
enum Step {
    Ask(Asked),
    Input(Vec<u8>),
    Finish,
}

impl Transcript {
    /// Reads a file's text.
    ///
    /// # Errors
    /// The line that is not understood, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut transcript = Self::default();
        let mut block = Block::default();
        for (index, line) in text.lines().enumerate() {
            let taken = transcript.take_line(&mut block, index + 1, line);
            taken.map_err(|reason| format!("line {}: {reason}: {line}", index + 1))?;
        }
        transcript.blocks.push(block);
        let asks = |step: &Step| matches!(step, Step::Ask(_));
        if !transcript
            .blocks
            .iter()
            .any(|block| block.steps.iter().any(asks))
            && let Some(first) = transcript.blocks.first_mut()
        {
            first.steps.insert(0, Step::Ask(Asked::Content));
        }
        Ok(transcript)
    }

    fn take_line(&mut self, block: &mut Block, number: usize, line: &str) -> Result<(), String> {
        let (kind, content) = line.split_once(' ').unwrap_or((line, ""));
        let step = match (kind, content) {
            ("" | "#", _) => return Ok(()),
            (":", content) => {
                let mut words = content.split(' ');
                let (Some("limit"), Some(name), Some(value)) =
                    (words.next(), words.next(), words.next())
                else {
                    return Err("no such setting".into());
                };
                let value = value.parse().map_err(|_| "not a number")?;
                return self.limits.set(name, value).ok_or("no such limit".into());
            }
            ("=", content) => {
                block.expected.push(content.trim_end().into());
                return Ok(());
            }
            ("~", "content") => Step::Ask(Asked::Content),
            ("~", "head") => Step::Ask(Asked::Head),
            ("~", "connect") => Step::Ask(Asked::Connect),
            ("~", "upgrade") => Step::Ask(Asked::Upgrade),
            (">", content) => Step::Input(unescape(content)?),
            ("!", "finish") => Step::Finish,
            _ => return Err("no such line".into()),
        };
        if !block.expected.is_empty() {
            self.blocks.push(std::mem::take(block));
        }
        if block.steps.is_empty() {
            block.line = number;
        }
        block.steps.push(step);
        Ok(())
    }

    /// All that the server sends.
    pub fn input(&self) -> Vec<u8> {
        let steps = self.blocks.iter().flat_map(|block| &block.steps);
        let inputs = steps.filter_map(|step| match step {
            Step::Input(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        inputs.collect::<Vec<_>>().concat()
    }

    /// The names of the faults it expects.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        let expected = self.blocks.iter().flat_map(|block| &block.expected);
        expected.filter_map(|line| line.strip_prefix("fault "))
    }

    /// Plays it whole, byte by byte, and cut in two at every place.
    ///
    /// # Errors
    /// The first block that came out otherwise, and how.
    pub fn replay(&self) -> Result<(), String> {
        self.play(&|_, bytes| vec![bytes.to_vec()])
            .map_err(|reason| format!("whole, {reason}"))?;
        self.play(&|_, bytes| bytes.chunks(1).map(<[u8]>::to_vec).collect())
            .map_err(|reason| format!("byte by byte, {reason}"))?;
        let count = self.input().len();
        // Long inputs are runs of one byte: a prime step visits enough of their inside.
        let inside = (1..count).step_by(if count > 2000 { 997 } else { 1 });
        for cut in inside.chain(count.saturating_sub(20)..count) {
            self.play(&|before, bytes| {
                let at = cut.saturating_sub(before).min(bytes.len());
                let (first, second) = bytes.split_at(at);
                vec![first.to_vec(), second.to_vec()]
            })
            .map_err(|reason| format!("cut at {cut}, {reason}"))?;
        }
        Ok(())
    }

    fn play(&self, cut: &Cut<'_>) -> Result<(), String> {
        let mut client = Client::new(self.limits.clone());
        let mut sent = 0;
        for block in &self.blocks {
            client.seen.clear();
            let mut steps = block.steps.iter().peekable();
            while let Some(step) = steps.next() {
                match step {
                    Step::Ask(asked) => {
                        if !client.connection.begin(*asked) {
                            return Err(format!("line {}: it takes no request", block.line));
                        }
                    }
                    Step::Input(bytes) => {
                        let mut bytes = bytes.clone();
                        while let Some(Step::Input(more)) = steps.peek() {
                            bytes.extend_from_slice(more);
                            steps.next();
                        }
                        for piece in cut(sent, &bytes) {
                            client.offer(&piece);
                        }
                        sent += bytes.len();
                    }
                    Step::Finish => client.finish(),
                }
            }
            let mut seen: Vec<String> = client.seen.iter().map(ToString::to_string).collect();
            for expected in &block.expected {
                match expected.split_once(' ').unwrap_or((expected, "")) {
                    ("idle", _) if client.connection.is_idle() => seen.push("idle".into()),
                    ("over", _) if !client.connection.begin(Asked::Content) => {
                        seen.push("over".into());
                    }
                    ("left", _) => seen.push(format!("left {}", escape(&client.held))),
                    _ => {}
                }
            }
            if seen != block.expected {
                let (line, expected) = (block.line, &block.expected);
                return Err(format!(
                    "line {line}:\n expected {expected:?}\n got      {seen:?}"
                ));
            }
        }
        Ok(())
    }
}

/// Pieces of what is sent, of which so many bytes have been sent before.
type Cut<'a> = dyn Fn(usize, &[u8]) -> Vec<Vec<u8>> + 'a;

/// The transcripts under `folder`, with their paths below it.
///
/// # Errors
/// A folder or file that can't be read, or is no transcript.
pub fn all_under(folder: &Path) -> io::Result<Vec<(String, Transcript)>> {
    let texts = transcript::texts_under(folder)?.into_iter();
    let parsed = texts.map(|(name, text)| match Transcript::parse(&text) {
        Ok(transcript) => Ok((name, transcript)),
        Err(reason) => Err(io::Error::other(format!("{name}: {reason}"))),
    });
    parsed.collect()
}

/// An event, without a lender.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Interim(ResponseHead),
    Head(ResponseHead),
    Data(Vec<u8>),
    End(Fields),
    Tunnel(ResponseHead),
    Fault(Fault),
}

impl fmt::Display for Seen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interim(head) => write!(formatter, "interim {}", head.status),
            Self::Head(head) => write!(formatter, "head {}", head.status),
            Self::Data(bytes) => write!(formatter, "data {}", escape(bytes)),
            Self::End(trailers) if trailers.is_empty() => write!(formatter, "end"),
            Self::End(trailers) => write!(formatter, "end {}", escape(trailers.lines())),
            Self::Tunnel(head) => write!(formatter, "tunnel {}", head.status),
            Self::Fault(fault) => write!(formatter, "fault {}", fault.name()),
        }
    }
}

/// A caller as the documentation asks for: it holds what is not read, and stops at a fault.
struct Client {
    connection: Connection,
    limits: Limits,
    held: Vec<u8>,
    seen: Vec<Seen>,
    is_broken: bool,
}

impl Client {
    fn new(limits: Limits) -> Self {
        Self {
            connection: Connection::default(),
            limits,
            held: Vec::new(),
            seen: Vec::new(),
            is_broken: false,
        }
    }

    fn offer(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let mut input = self.held.as_slice();
        loop {
            let before = input.len();
            match self.connection.receive(&self.limits, &mut input) {
                Ok(Some(event)) => see(&mut self.seen, event),
                Ok(None) => break,
                Err(fault) => {
                    if self.is_broken {
                        assert_eq!(input.len(), before, "a byte is read after a fault");
                    } else {
                        self.seen.push(Seen::Fault(fault));
                    }
                    self.is_broken = true;
                    break;
                }
            }
        }
        let left = input.len();
        self.held.drain(..self.held.len() - left);
    }

    fn finish(&mut self) {
        match self.connection.receive_eof() {
            Ok(Some(event)) => see(&mut self.seen, event),
            Ok(None) => {}
            Err(_) if self.is_broken => {}
            Err(fault) => {
                self.seen.push(Seen::Fault(fault));
                self.is_broken = true;
            }
        }
    }
}

fn see(seen: &mut Vec<Seen>, event: Event<'_>) {
    match (event, seen.last_mut()) {
        (Event::Data(more), Some(Seen::Data(bytes))) => bytes.extend_from_slice(more),
        (Event::Data(bytes), _) => seen.push(Seen::Data(bytes.into())),
        (Event::Interim(head), _) => seen.push(Seen::Interim(head)),
        (Event::Head(head), _) => seen.push(Seen::Head(head)),
        (Event::End(trailers), _) => seen.push(Seen::End(trailers)),
        (Event::Tunnel(head), _) => seen.push(Seen::Tunnel(head)),
    }
}

/// Reads `input` as what a server sends, whole, byte by byte and in random pieces, and compares.
///
/// # Panics
/// If one of the invariants does not hold; the message says which.
pub fn check(input: &[u8], seed: u64) {
    let whole = run([input], seed);
    assert_eq!(run(input.chunks(1), seed), whole, "differs byte by byte");
    let pieces = Rng::new(seed ^ 1).pieces(input);
    assert_eq!(run(pieces, seed), whole, "differs in pieces");
}

/// What was seen, and whether the connection takes another request.
fn run<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, seed: u64) -> (Vec<Seen>, bool) {
    let mut rng = Rng::new(seed);
    let asked = [
        Asked::Content,
        Asked::Content,
        Asked::Head,
        Asked::Connect,
        Asked::Upgrade,
    ];
    let limits = Limits {
        body_bytes_max: [20, 1000, u64::MAX][rng.below(3)],
        head_bytes_max: [40, 64 * 1024][rng.below(2)],
        fields_max: [2, 128][rng.below(2)],
        interim_max: 2,
        ..Limits::DEFAULT
    };
    let most = limits.body_bytes_max;
    let mut client = Client::new(limits);
    client.connection.begin(asked[rng.below(asked.len())]);
    for piece in pieces {
        client.offer(piece);
    }
    client.finish();
    let data = client.seen.iter().map(|seen| match seen {
        Seen::Data(bytes) => bytes.len() as u64,
        _ => 0,
    });
    assert!(data.sum::<u64>() <= most, "a body beyond its limit");
    let ends = |seen: &Seen| matches!(seen, Seen::End(_) | Seen::Tunnel(_) | Seen::Fault(_));
    let count = client.seen.iter().filter(|seen| ends(seen)).count();
    // Bytes behind a response are a fault of their own.
    assert!((1..=2).contains(&count), "a response ends once");
    let is_idle = client.connection.is_idle();
    assert!(
        !(is_idle && client.is_broken),
        "a broken connection is used again"
    );
    (client.seen, is_idle)
}

/// A response as bytes, mostly valid.
pub fn compose(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    while rng.once_in(4) {
        let status = [100, 102, 103][rng.below(3)];
        bytes.extend(format!("HTTP/1.1 {status} Go on\r\n").bytes());
        fields(rng, &mut bytes);
        bytes.extend(b"\r\n");
    }
    let status = [200, 200, 204, 304, 404, 503][rng.below(6)];
    let version = u8::from(!rng.once_in(4));
    let reason = ["", " ", " OK", " Not \u{e4}"][rng.below(4)];
    bytes.extend(format!("HTTP/1.{version} {status}{reason}\r\n").bytes());
    fields(rng, &mut bytes);
    if rng.once_in(3) {
        let option = ["close", "keep-alive", "x, Close", "upgrade"][rng.below(4)];
        bytes.extend(format!("Connection: {option}\r\n").bytes());
    }
    let body: Vec<u8> = (0..rng.below(60))
        .map(|_| b"ab\r\n0;"[rng.below(6)])
        .collect();
    match rng.below(3) {
        0 => {
            bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
            bytes.extend(body);
        }
        1 => {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            for piece in Rng::new(rng.next_u64()).pieces(&body) {
                if !piece.is_empty() {
                    let extension = ["", ";a", ";a=b", ";a=\"b\""][rng.below(4)];
                    bytes.extend(format!("{:x}{extension}\r\n", piece.len()).bytes());
                    bytes.extend(piece);
                    bytes.extend(b"\r\n");
                }
            }
            bytes.extend(b"0\r\n");
            fields(rng, &mut bytes);
            bytes.extend(b"\r\n");
        }
        _ => {
            bytes.extend(b"\r\n");
            bytes.extend(body);
        }
    }
    bytes
}

/// Such a response, and damage to it.
pub fn compose_damaged(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = compose(rng);
    for _ in 0..rng.below(4) {
        mutate(
            rng,
            &mut bytes,
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nHTTP/1.1 101 x\r\n\r\n",
        );
    }
    bytes
}

fn fields(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.below(4) {
        let line = [
            "x: y\r\n",
            "a:\r\n",
            "etag: \"b\" \r\n",
            "x-long:\t a b \u{e4}\r\n",
        ];
        bytes.extend(line[rng.below(4)].bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses;

    /// What a reader that shares no code with it says of the same bytes, where that reads them at all.
    #[test]
    fn valid_responses_are_read_as_an_independent_reader_does() {
        let mut compared = 0;
        for seed in 0..4000 {
            let mut rng = Rng::new(seed);
            let body: Vec<u8> = (0..rng.below(50))
                .map(|_| b"ab\r\n0"[rng.below(5)])
                .collect();
            let mut bytes = b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n".repeat(rng.below(3));
            bytes.extend(b"HTTP/1.1 200 OK\r\nx: y\r\n");
            match rng.below(3) {
                0 => bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes()),
                1 => bytes.extend(b"transfer-encoding: chunked\r\n\r\n"),
                _ => bytes.extend(b"connection: close\r\n\r\n"),
            }
            if bytes.ends_with(b"chunked\r\n\r\n") {
                for piece in body.chunks(1 + rng.below(9)) {
                    bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
                    bytes.extend(piece);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\nt: u\r\n\r\n");
            } else {
                bytes.extend(&body);
            }
            let asked = responses::Asked {
                head_only: false,
                http10: false,
            };
            let theirs = responses::read(&bytes, &[asked]).expect("a valid response");
            let theirs = theirs.first().expect("one response");
            let mut client = Client::new(Limits::DEFAULT);
            client.connection.begin(Asked::Content);
            client.offer(&bytes);
            client.finish();
            let ours: Vec<u8> = client.seen.iter().fold(Vec::new(), |mut all, seen| {
                if let Seen::Data(bytes) = seen {
                    all.extend(bytes);
                }
                all
            });
            assert_eq!((&ours, &theirs.body), (&body, &body), "seed {seed}");
            assert!(
                matches!(client.seen.last(), Some(Seen::End(_))),
                "seed {seed}"
            );
            compared += 1;
        }
        assert_eq!(compared, 4000);
    }

    #[test]
    fn a_short_campaign() {
        for seed in 0..8000 {
            let mut rng = Rng::new(seed);
            check(&compose(&mut rng), seed);
            check(&compose_damaged(&mut rng), seed);
        }
    }
}
