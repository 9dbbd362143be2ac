//! HTTP/1.1 answers, client side (RFC 9112): strict, because a judge does not guess.
//!
//! Answers come in the order of the requests, so the wire keeps the tickets in a queue. A head is
//! looked up before it is parsed: servers send the same head, byte for byte, many times, and a
//! comparison with the last ones parsed costs a tenth of parsing. Equal bytes mean an equal head,
//! so nothing is taken on trust. A head that arrives in pieces is joined in `partial`, which is
//! empty otherwise.
//!
//! Not accepted: bare line feeds, folded lines, two readings of a body length, transfer codings
//! other than chunked, bytes that belong to no request. Interim answers (1xx) are skipped.

mod chunked;
mod head;

use std::collections::VecDeque;

use self::chunked::Chunked;
use self::head::{Framing, Head, Recent};
use super::{Answers, Fault, Setup, Ticket, Wire};
use crate::request::Request;

/// The reading state of one connection.
///
/// ```text
///            +--------------------------------------------+
///            v                                            |
///  Head --> Length | Chunked | UntilClose --> complete ---+--> Over (close announced, or EOF)
/// ```
#[derive(Debug)]
pub(crate) struct H1 {
    state: State,
    /// The begun head; its end has not arrived.
    partial: Vec<u8>,
    /// Tickets not completely answered, oldest first.
    asked: VecDeque<Ticket>,
    /// Whether the answer being read is announced as the last.
    closing: bool,
}

#[derive(Debug)]
enum State {
    Head,
    /// So many body bytes are to come, at least one.
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    /// Later bytes are not read (RFC 9112 §9.6).
    Over,
    /// A rule was broken: the place of the next byte in any answer is unknown.
    Faulty,
}

impl Wire for H1 {
    type Shared = Recent;
    type Prepared = Vec<u8>;
    const REPLIES: bool = false;

    fn new(_setup: Setup) -> Self {
        Self {
            state: State::Head,
            partial: Vec::new(),
            asked: VecDeque::new(),
            closing: false,
        }
    }

    fn prepare(requests: &[&Request], setup: Setup) -> Vec<Vec<u8>> {
        let bytes = |request: &&Request| encode(request, setup.keep_alive);
        requests.iter().map(bytes).collect()
    }

    fn open(&mut self, _prepared: &[Vec<u8>], _output: &mut Vec<u8>) {}

    #[inline]
    fn has_room(&self) -> bool {
        true
    }

    #[inline]
    fn send(&mut self, ticket: Ticket, _due_ns: u64, prepared: &Vec<u8>, output: &mut Vec<u8>) {
        self.asked.push_back(ticket);
        output.extend_from_slice(prepared);
    }

    fn reply(&mut self, _output: &mut Vec<u8>) {}

    fn receive<A: Answers>(
        &mut self,
        recent: &mut Recent,
        input: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault> {
        let result = self.read(recent, input, answers);
        if result.is_err() {
            self.state = State::Faulty;
        }
        result
    }

    fn end<A: Answers>(&mut self, answers: &mut A) {
        if matches!(self.state, State::UntilClose) {
            self.closing = true;
            self.complete(answers);
        }
    }

    fn has_begun(&self, ticket: Ticket) -> bool {
        self.begun() == Some(ticket)
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    #[inline]
    fn skippable(&self) -> u64 {
        match self.state {
            State::Length(left) => left,
            _ => 0,
        }
    }

    fn skip<A: Answers>(&mut self, n_bytes: u64, answers: &mut A) {
        let (State::Length(left), Some(ticket)) = (&mut self.state, self.asked.front()) else {
            unreachable!("the caller asked for what is skippable");
        };
        *left -= n_bytes;
        answers.unseen(*ticket, n_bytes);
        if *left == 0 {
            self.complete(answers);
        }
    }
}

impl H1 {
    /// The ticket whose answer has begun and is not complete.
    fn begun(&self) -> Option<Ticket> {
        let begun = !matches!(self.state, State::Head | State::Over) || !self.partial.is_empty();
        self.asked.front().filter(|_| begun).copied()
    }

    fn read<A: Answers>(
        &mut self,
        recent: &mut Recent,
        mut input: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault> {
        while !input.is_empty() {
            let ticket = match (&self.state, self.asked.front()) {
                (State::Over | State::Faulty, _) => return Ok(()),
                (_, None) => return Err(Fault::Unasked),
                (_, Some(ticket)) => *ticket,
            };
            let complete = match &mut self.state {
                State::Head => {
                    let Some((head, n_consumed)) = self.head(recent, input)? else {
                        return Ok(());
                    };
                    input = &input[n_consumed..];
                    // RFC 9110 §15.2: any number of interim answers may precede the final one.
                    if head.status < 200 {
                        continue;
                    }
                    self.closing = head.closing;
                    answers.begin(ticket, head.status, head.closing);
                    self.state = framing(&head, answers.is_head(ticket));
                    matches!(self.state, State::Length(0))
                }
                State::Length(left) => {
                    // A body that does not fit in memory still fits in `left`.
                    let n_bytes = usize::try_from(*left)
                        .unwrap_or(usize::MAX)
                        .min(input.len());
                    let (body, rest) = input.split_at(n_bytes);
                    answers.body(ticket, body);
                    *left -= n_bytes as u64;
                    input = rest;
                    *left == 0
                }
                State::Chunked(chunked) => {
                    let (n_consumed, complete) =
                        chunked.receive(input, |body| answers.body(ticket, body))?;
                    input = &input[n_consumed..];
                    complete
                }
                State::UntilClose => {
                    answers.body(ticket, std::mem::take(&mut input));
                    false
                }
                State::Over | State::Faulty => unreachable!("returned above"),
            };
            if complete {
                self.complete(answers);
            }
        }
        Ok(())
    }

    /// The head that ends in `input`, and how many bytes of `input` belong to it; `None` when it
    /// does not end there.
    #[inline]
    fn head(&mut self, recent: &mut Recent, input: &[u8]) -> Result<Option<(Head, usize)>, Fault> {
        if self.partial.is_empty() {
            if let Some(found) = recent.find(input) {
                return Ok(Some(found));
            }
            if let Some(n_bytes) = recent.head_end(input) {
                return Ok(Some((recent.parse(&input[..n_bytes])?, n_bytes)));
            }
        }
        self.joined_head(recent, input)
    }

    #[cold]
    fn joined_head(
        &mut self,
        recent: &mut Recent,
        input: &[u8],
    ) -> Result<Option<(Head, usize)>, Fault> {
        let n_before = self.partial.len();
        // Enough to find the end of any head that is allowed.
        let n_joined = input.len().min(HEAD_BYTES_MAX + 1 - n_before);
        self.partial.extend_from_slice(&input[..n_joined]);
        // The blank line may have begun in the bytes that came before.
        let searched = n_before.saturating_sub(3);
        let Some(end) = recent.head_end(&self.partial[searched..]) else {
            if self.partial.len() > HEAD_BYTES_MAX {
                return Err(Fault::HeadTooLong);
            }
            head::check_beginning(&self.partial)?;
            return Ok(None);
        };
        let n_head = searched + end;
        let head = recent.parse(&self.partial[..n_head])?;
        self.partial.clear();
        Ok(Some((head, n_head - n_before)))
    }

    #[inline]
    fn complete<A: Answers>(&mut self, answers: &mut A) {
        self.state = if self.closing {
            State::Over
        } else {
            State::Head
        };
        let ticket = self
            .asked
            .pop_front()
            .expect("an answer is read only when one is owed");
        answers.complete(ticket);
    }
}

/// The bytes of a request.
fn encode(request: &Request, keep_alive: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut line = |parts: &[&str]| {
        for part in parts {
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
    };
    let has = |name: &str| {
        request
            .headers
            .iter()
            .any(|(n, _)| n.eq_ignore_ascii_case(name))
    };
    line(&[&request.method, " ", &request.target, " HTTP/1.1"]);
    if !has("host") {
        line(&["Host: ", &request.authority]);
    }
    for (name, value) in &request.headers {
        line(&[name, ": ", value]);
    }
    // RFC 9110 §8.6: a method that defines a meaning for content says so even when empty.
    let means_content = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    if request.is_chunked {
        line(&["Transfer-Encoding: chunked"]);
    } else if (means_content || !request.body.is_empty()) && !has("content-length") {
        line(&["Content-Length: ", &request.body.len().to_string()]);
    }
    if !keep_alive && !has("connection") {
        line(&["Connection: close"]);
    }
    line(&[]);
    if request.is_chunked {
        extend_with_chunks(&mut bytes, &request.body);
    } else {
        bytes.extend_from_slice(&request.body);
    }
    bytes
}

/// Appends `body` as one chunk and the last chunk (RFC 9112 §7.1).
fn extend_with_chunks(bytes: &mut Vec<u8>, body: &[u8]) {
    if !body.is_empty() {
        bytes.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
}

/// RFC 9112 §6.3, for an answer: rules 1 (no body), 4 (chunked), 6 (length) and 8 (until close).
/// Rules 3 and 5 are faults of the head; 2 and 7 concern CONNECT and requests.
fn framing(head: &Head, to_head_request: bool) -> State {
    match head.framing {
        _ if to_head_request || matches!(head.status, 204 | 304) => State::Length(0),
        Framing::Length(length) => State::Length(length),
        Framing::Chunked => State::Chunked(Chunked::new()),
        Framing::UntilClose => State::UntilClose,
    }
}

/// Bytes of one head. Origin: larger than what any server of the lab sends by two orders.
/// Exceeded: a protocol error.
const HEAD_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests;
