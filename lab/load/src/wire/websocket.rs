//! WebSocket, client side (RFC 6455): a request is a message, its answer the message that comes
//! back. The head of the upgrade is the first thing sent; messages wait until it is accepted.
//!
//! *Echo*: the peer sends every message back to its sender, in order. *Broadcast*: it sends every
//! message to all. A message then begins with what its receivers need to time it ([`Stamp`]);
//! each copy is a delivery, and the sender's own copy also ends its request.
//!
//! The key of the upgrade and of the mask are constants: they protect proxies from hostile
//! scripts, and there are none here. Not spoken: extensions, subprotocols unless a header asks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Answers, Fault, Setup, Ticket, Wire};
use crate::request::Request;

/// The state of one connection.
///
/// ```text
///  Upgrade --101--> Frame <--> Payload --close--> Over
///     \--other status: it is the answer--> Over
/// ```
#[derive(Debug)]
pub(crate) struct WebSocket {
    state: State,
    /// A begun head of the upgrade or of a frame, or a begun control frame.
    partial: Vec<u8>,
    /// Tickets whose message has not come back, oldest first.
    asked: VecDeque<Ticket>,
    /// Frames that wait for the upgrade, and what the peer's control frames ask for.
    replies: Vec<u8>,
    /// Whether a message is under way, and whether it is one for us to time.
    message: Option<Message>,
    is_broadcast: bool,
    /// Tells this connection's messages from others'.
    sender: u32,
}

#[derive(Debug)]
enum State {
    Upgrade,
    Frame,
    Payload { n_left: u64, is_final: bool },
    Over,
}

/// The message that is being received.
#[derive(Debug)]
struct Message {
    /// The request that it responds to; none in a broadcast.
    ticket: Option<Ticket>,
    /// The beginning of a broadcast message, as far as it has come.
    stamp: Vec<u8>,
    n_bytes: u64,
}

/// What a broadcast message begins with: who sent it, and when it was due; 24 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stamp {
    sender: u32,
    due_ns: u64,
}

/// A message as it is sent, and the upgrade of its connection.
#[derive(Debug)]
pub(crate) struct Prepared {
    upgrade: Vec<u8>,
    /// A whole frame, masked.
    frame: Vec<u8>,
    /// Where its payload begins.
    payload_at: usize,
}

impl Wire for WebSocket {
    type Shared = ();
    type Prepared = Prepared;
    const REPLIES: bool = true;

    fn new(setup: Setup) -> Self {
        static SENDERS: AtomicU32 = AtomicU32::new(0);
        Self {
            state: State::Upgrade,
            partial: Vec::new(),
            asked: VecDeque::new(),
            replies: Vec::new(),
            message: None,
            is_broadcast: setup.is_broadcast,
            sender: SENDERS.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn prepare(requests: &[&Request], _setup: Setup) -> Vec<Prepared> {
        let prepare = |request: &&Request| {
            let kind = if std::str::from_utf8(&request.body).is_ok() {
                TEXT
            } else {
                BINARY
            };
            let mut frame = Vec::new();
            let payload_at = write_frame(kind, &request.body, &mut frame);
            Prepared {
                upgrade: upgrade(request),
                frame,
                payload_at,
            }
        };
        requests.iter().map(prepare).collect()
    }

    fn open(&mut self, prepared: &[Prepared], output: &mut Vec<u8>) {
        output.extend_from_slice(&prepared[0].upgrade);
    }

    #[inline]
    fn has_room(&self) -> bool {
        matches!(self.state, State::Frame | State::Payload { .. })
    }

    fn send(&mut self, ticket: Ticket, due_ns: u64, prepared: &Prepared, output: &mut Vec<u8>) {
        self.asked.push_back(ticket);
        let output = match self.state {
            State::Upgrade => &mut self.replies,
            _ => output,
        };
        let start = output.len() + prepared.payload_at;
        output.extend_from_slice(&prepared.frame);
        if self.is_broadcast {
            let stamp = Stamp {
                sender: self.sender,
                due_ns,
            };
            let place = &mut output[start..start + STAMP_BYTES];
            place.copy_from_slice(stamp.text().as_bytes());
            mask(place);
        }
    }

    #[inline]
    fn reply(&mut self, output: &mut Vec<u8>) {
        if !matches!(self.state, State::Upgrade) {
            output.append(&mut self.replies);
        }
    }

    fn receive<A: Answers>(
        &mut self,
        _shared: &mut (),
        mut input: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault> {
        while !input.is_empty() {
            match self.state {
                State::Over => return Ok(()),
                State::Upgrade => input = self.receive_upgrade(input, answers)?,
                State::Frame => input = self.receive_frame(input, answers)?,
                State::Payload { n_left, is_final } => {
                    let n_here = usize::try_from(n_left)
                        .unwrap_or(usize::MAX)
                        .min(input.len());
                    let (payload, rest) = input.split_at(n_here);
                    input = rest;
                    self.note_payload(payload, answers);
                    let n_left = n_left - n_here as u64;
                    self.state = State::Payload { n_left, is_final };
                    if n_left == 0 {
                        self.end_frame(is_final, answers)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn end<A: Answers>(&mut self, _answers: &mut A) {}

    fn has_begun(&self, ticket: Ticket) -> bool {
        let is_begun = self.message.is_some() || matches!(self.state, State::Upgrade);
        is_begun && !self.is_broadcast && self.asked.front() == Some(&ticket)
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn skippable(&self) -> u64 {
        0
    }

    fn skip<A: Answers>(&mut self, _n_bytes: u64, _answers: &mut A) {
        unreachable!("nothing is skippable");
    }
}

impl WebSocket {
    fn receive_upgrade<'a, A: Answers>(
        &mut self,
        input: &'a [u8],
        answers: &mut A,
    ) -> Result<&'a [u8], Fault> {
        let n_before = self.partial.len();
        self.partial.extend_from_slice(input);
        let Some(end) = memchr::memmem::find(&self.partial, b"\r\n\r\n") else {
            return if self.partial.len() > HEAD_BYTES_MAX {
                Err(Fault::HeadTooLong)
            } else {
                Ok(&[])
            };
        };
        let head = std::mem::take(&mut self.partial);
        match check_upgrade(&head[..end])? {
            101 => self.state = State::Frame,
            status => {
                // Refused: that is the answer to what the connection was opened for.
                self.state = State::Over;
                if let Some(ticket) = self.asked.pop_front() {
                    answers.begin(ticket, status, true);
                    answers.complete(ticket);
                }
            }
        }
        Ok(&input[end + 4 - n_before..])
    }

    /// Reads the head of a frame, or all of a control frame.
    fn receive_frame<'a, A: Answers>(
        &mut self,
        input: &'a [u8],
        answers: &mut A,
    ) -> Result<&'a [u8], Fault> {
        let n_before = self.partial.len();
        // The longest head, or the longest control frame, which has a short head.
        let n_joined = input.len().min(CONTROL_BYTES_MAX + 2 - n_before);
        let joined;
        let bytes = if n_before == 0 {
            input
        } else {
            self.partial.extend_from_slice(&input[..n_joined]);
            joined = std::mem::take(&mut self.partial);
            &joined[..]
        };
        let Some(head) = FrameHead::parse(bytes)? else {
            self.partial.extend_from_slice(bytes);
            return Ok(&[]);
        };
        let mut n_read = head.n_bytes;
        if head.kind >= CLOSE {
            n_read += usize::try_from(head.n_payload).expect("checked");
            let Some(payload) = bytes.get(head.n_bytes..n_read) else {
                self.partial.extend_from_slice(bytes);
                return Ok(&input[if n_before == 0 { input.len() } else { n_joined }..]);
            };
            self.obey(head.kind, payload)?;
            return Ok(&input[n_read - n_before..]);
        }
        if (head.kind == CONTINUATION) != self.message.is_some() {
            return Err(Fault::Frame);
        }
        if self.message.is_none() {
            self.begin_message(answers)?;
        }
        self.state = State::Payload {
            n_left: head.n_payload,
            is_final: head.is_final,
        };
        if head.n_payload == 0 {
            self.end_frame(head.is_final, answers)?;
        }
        Ok(&input[n_read - n_before..])
    }

    fn begin_message<A: Answers>(&mut self, answers: &mut A) -> Result<(), Fault> {
        let ticket = if self.is_broadcast {
            None
        } else {
            let ticket = *self.asked.front().ok_or(Fault::Unasked)?;
            answers.begin(ticket, SWITCHED, false);
            Some(ticket)
        };
        self.message = Some(Message {
            ticket,
            stamp: Vec::new(),
            n_bytes: 0,
        });
        Ok(())
    }

    #[inline]
    fn note_payload<A: Answers>(&mut self, payload: &[u8], answers: &mut A) {
        let Some(message) = &mut self.message else {
            return;
        };
        if let Some(ticket) = message.ticket {
            return answers.body(ticket, payload);
        }
        message.n_bytes += payload.len() as u64;
        let n_missing = STAMP_BYTES - message.stamp.len();
        message
            .stamp
            .extend_from_slice(&payload[..n_missing.min(payload.len())]);
    }

    fn end_frame<A: Answers>(&mut self, is_final: bool, answers: &mut A) -> Result<(), Fault> {
        self.state = State::Frame;
        if !is_final {
            return Ok(());
        }
        let Some(message) = self.message.take() else {
            return Err(Fault::Frame);
        };
        if let Some(ticket) = message.ticket {
            self.asked.pop_front();
            answers.complete(ticket);
            return Ok(());
        }
        let stamp = Stamp::parse(&message.stamp);
        let is_own = stamp.is_some_and(|stamp| stamp.sender == self.sender);
        answers.deliver(stamp.map(|stamp| stamp.due_ns), message.n_bytes);
        if is_own {
            let ticket = self.asked.pop_front().ok_or(Fault::Unasked)?;
            answers.release(ticket);
        }
        Ok(())
    }

    /// RFC 6455 §5.5.
    fn obey(&mut self, kind: u8, payload: &[u8]) -> Result<(), Fault> {
        if self.replies.len() > REPLY_BYTES_MAX {
            return Err(Fault::Frame);
        }
        match kind {
            PING => {
                write_frame(PONG, payload, &mut self.replies);
            }
            PONG => {}
            CLOSE => {
                write_frame(CLOSE, &payload[..payload.len().min(2)], &mut self.replies);
                self.state = State::Over;
            }
            _ => return Err(Fault::Frame),
        }
        Ok(())
    }
}

/// The head of a frame from a server (RFC 6455 §5.2).
#[derive(Clone, Copy, Debug, PartialEq)]
struct FrameHead {
    is_final: bool,
    kind: u8,
    n_payload: u64,
    /// Of the head itself.
    n_bytes: usize,
}

impl FrameHead {
    /// `None` if not all of it is there.
    /// # Errors  It is masked, uses an extension that was not negotiated, or is a control frame with too much.
    #[inline]
    fn parse(bytes: &[u8]) -> Result<Option<Self>, Fault> {
        let [first, second, rest @ ..] = bytes else {
            return Ok(None);
        };
        let (is_final, kind) = (first & 0x80 != 0, first & 0x0F);
        let is_control = kind >= CLOSE;
        let is_known = matches!(kind, CONTINUATION..=BINARY | CLOSE..=PONG);
        if first & 0x70 != 0 || second & 0x80 != 0 || !is_known {
            return Err(Fault::Frame);
        }
        let (n_payload, n_bytes) = match second & 0x7F {
            LENGTH_16 => match rest.first_chunk() {
                Some(length) => (u64::from(u16::from_be_bytes(*length)), 4),
                None => return Ok(None),
            },
            LENGTH_64 => match rest.first_chunk() {
                Some(length) => (u64::from_be_bytes(*length), 10),
                None => return Ok(None),
            },
            length => (u64::from(length), 2),
        };
        if is_control && (!is_final || n_bytes > 2) || n_payload > u64::MAX / 2 {
            return Err(Fault::Frame);
        }
        Ok(Some(Self {
            is_final,
            kind,
            n_payload,
            n_bytes,
        }))
    }
}

impl Stamp {
    fn text(self) -> String {
        format!("{:08x}{:016x}", self.sender, self.due_ns)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (sender, due_ns) = std::str::from_utf8(bytes).ok()?.split_at_checked(8)?;
        Some(Self {
            sender: u32::from_str_radix(sender, 16).ok()?,
            due_ns: u64::from_str_radix(due_ns, 16).ok()?,
        })
    }
}

/// Appends a masked frame and returns where its payload begins.
fn write_frame(kind: u8, payload: &[u8], output: &mut Vec<u8>) -> usize {
    let start = output.len();
    output.push(0x80 | kind);
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length @ 0..LENGTH_16), _) => output.push(0x80 | length),
        (_, Ok(length)) => {
            output.push(0x80 | LENGTH_16);
            output.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            output.push(0x80 | LENGTH_64);
            output.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    output.extend_from_slice(&MASK);
    let payload_at = output.len();
    output.extend_from_slice(payload);
    mask(&mut output[payload_at..]);
    payload_at - start
}

fn mask(payload: &mut [u8]) {
    for (byte, key) in payload.iter_mut().zip(MASK.iter().cycle()) {
        *byte ^= key;
    }
}

/// The head that asks for the upgrade (RFC 6455 §4.1).
fn upgrade(request: &Request) -> Vec<u8> {
    let given = |name: &str| {
        let mut headers = request.headers.iter();
        headers.any(|(n, _)| n.eq_ignore_ascii_case(name))
    };
    let mut lines = vec![format!("GET {} HTTP/1.1", request.target)];
    if !given("host") {
        lines.push(format!("Host: {}", request.authority));
    }
    let headers = request.headers.iter();
    lines.extend(headers.map(|(name, value)| format!("{name}: {value}")));
    lines.extend(["Connection: Upgrade", "Upgrade: websocket"].map(str::to_owned));
    lines.push("Sec-WebSocket-Version: 13".to_owned());
    lines.push(format!("Sec-WebSocket-Key: {KEY}\r\n\r\n"));
    lines.join("\r\n").into_bytes()
}

/// The status of a head. One that accepts must do so in due form (RFC 6455 §4.2.2).
fn check_upgrade(head: &[u8]) -> Result<u16, Fault> {
    let text = std::str::from_utf8(head).map_err(|_| Fault::StatusLine)?;
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let status = line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
        .and_then(|digits| digits.parse().ok())
        .filter(|status| (100..1_000).contains(status))
        .ok_or(Fault::StatusLine)?;
    let fields: Vec<(&str, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name, value.trim()))
        .collect();
    let value = |name: &str| {
        let mut fields = fields.iter();
        let field = fields.find(|(n, _)| n.eq_ignore_ascii_case(name));
        field.map(|(_, value)| *value)
    };
    let is_accepted = value("sec-websocket-accept") == Some(ACCEPT)
        && value("upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
        && value("sec-websocket-extensions").is_none();
    if status == SWITCHED && !is_accepted {
        return Err(Fault::Upgrade);
    }
    Ok(status)
}

/// The key of RFC 6455 §1.3 and what accepts it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];
const SWITCHED: u16 = 101;
/// Bytes of the head that accepts. Origin: larger than what any server sends by an order.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Payload of a control frame (RFC 6455 §5.5).
const CONTROL_BYTES_MAX: usize = 125;
/// Replies that the peer did not take.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// Digits of a stamp, and so the least that a broadcast message holds.
pub(crate) const STAMP_BYTES: usize = 24;

/// In place of a length: it follows in so many bits.
const LENGTH_16: u8 = 0x7E;
const LENGTH_64: u8 = 0x7F;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

#[cfg(test)]
mod tests;
