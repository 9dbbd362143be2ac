//! The head of an answer: status line and field lines in, status and body framing out
//! (RFC 9112 §4 to §6). Only `Content-Length`, `Transfer-Encoding` and `Connection` are read;
//! the others are checked for their form.

use memchr::memmem::Finder;
use memchr::{memchr, memchr2_iter};

use crate::wire::Fault;

/// What the reader needs to know of a head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) framing: Framing,
    /// The peer closes the connection after this answer.
    pub(super) closing: bool,
}

/// How the end of the body is found; exceptions for HEAD, 204 and 304 are the caller's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// The last few distinct heads, byte for byte, with their meaning.
pub(crate) struct Recent {
    heads: [(Vec<u8>, Head); RECENT_HEADS],
    /// Where the next unknown head goes: round robin, so a head with a changing date or number
    /// cannot push out all others at once.
    next: usize,
    blank_line: Finder<'static>,
}

impl Default for Recent {
    fn default() -> Self {
        let nothing = Head {
            status: 0,
            framing: Framing::UntilClose,
            closing: true,
        };
        Self {
            heads: std::array::from_fn(|_| (Vec::new(), nothing)),
            next: 0,
            blank_line: Finder::new(b"\r\n\r\n"),
        }
    }
}

impl Recent {
    /// The head that `input` begins with and its size, if its bytes are known.
    #[inline]
    pub(super) fn find(&self, input: &[u8]) -> Option<(Head, usize)> {
        self.heads
            .iter()
            .find(|(bytes, _)| !bytes.is_empty() && input.starts_with(bytes))
            .map(|(bytes, head)| (*head, bytes.len()))
    }

    /// The size of the head that `input` begins with, blank line included.
    pub(super) fn head_end(&self, input: &[u8]) -> Option<usize> {
        self.blank_line.find(input).map(|at| at + 4)
    }

    /// Parses a whole head, blank line included, and remembers it.
    pub(super) fn parse(&mut self, bytes: &[u8]) -> Result<Head, Fault> {
        let head = parse(bytes)?;
        let (kept, meaning) = &mut self.heads[self.next];
        kept.clear();
        kept.extend_from_slice(bytes);
        *meaning = head;
        self.next = (self.next + 1) % RECENT_HEADS;
        Ok(head)
    }
}

/// Refuses early what no further byte can make a head, so that garbage does not wait for the
/// timeout.
pub(super) fn check_beginning(partial: &[u8]) -> Result<(), Fault> {
    let n_known = partial.len().min(PROTOCOL.len());
    if partial[..n_known] != PROTOCOL[..n_known] {
        return Err(Fault::StatusLine);
    }
    check_line_ends(partial)
}

fn check_line_ends(bytes: &[u8]) -> Result<(), Fault> {
    for at in memchr2_iter(b'\n', 0, bytes) {
        if bytes[at] == 0 {
            return Err(Fault::FieldLine);
        }
        if at == 0 || bytes[at - 1] != b'\r' {
            return Err(Fault::BareLineFeed);
        }
    }
    Ok(())
}

fn parse(bytes: &[u8]) -> Result<Head, Fault> {
    check_beginning(bytes)?;
    let mut lines = Lines {
        rest: &bytes[..bytes.len() - 2],
    };
    let status_line = lines.next().ok_or(Fault::StatusLine)?;
    let (status, minor_version) = parse_status_line(status_line)?;
    if status == 101 {
        return Err(Fault::Upgrade);
    }
    let mut fields = Fields::default();
    lines.try_for_each(|line| fields.read(line))?;
    let framing = match (fields.chunked, fields.content_length) {
        (true, Some(_)) => return Err(Fault::BodyLength),
        // RFC 9112 §6.1: the framing of an HTTP/1.0 answer with a transfer coding is faulty.
        (true, None) if minor_version == 0 => return Err(Fault::TransferCoding),
        (true, None) => Framing::Chunked,
        (false, Some(length)) => Framing::Length(length),
        (false, None) => Framing::UntilClose,
    };
    // RFC 9112 §9.3: 1.1 persists unless told otherwise, 1.0 the other way round.
    let closing = fields.close || (minor_version == 0 && !fields.keep_alive);
    Ok(Head {
        status,
        framing,
        closing,
    })
}

/// Lines that end with CRLF, without it.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let line_feed = memchr(b'\n', self.rest)?;
        let line = &self.rest[..line_feed - 1];
        self.rest = &self.rest[line_feed + 1..];
        Some(line)
    }
}

/// `HTTP/1.` digit SP 3DIGIT SP reason; a missing reason may take its space with it.
fn parse_status_line(line: &[u8]) -> Result<(u16, u8), Fault> {
    let (minor_version, rest) = match line.strip_prefix(PROTOCOL) {
        Some([minor @ b'0'..=b'9', b' ', rest @ ..]) => (minor - b'0', rest),
        _ => return Err(Fault::StatusLine),
    };
    match rest {
        [
            a @ b'1'..=b'9',
            b @ b'0'..=b'9',
            c @ b'0'..=b'9',
            reason @ ..,
        ] if reason.is_empty() || reason[0] == b' ' => {
            let digit = |digit: u8| u16::from(digit - b'0');
            (memchr(b'\r', reason).is_none())
                .then_some((digit(*a) * 100 + digit(*b) * 10 + digit(*c), minor_version))
                .ok_or(Fault::StatusLine)
        }
        _ => Err(Fault::StatusLine),
    }
}

/// What the field lines say about framing and persistence.
#[derive(Default)]
struct Fields {
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn read(&mut self, line: &[u8]) -> Result<(), Fault> {
        let colon = memchr(b':', line).ok_or(Fault::FieldLine)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        // A folded line begins with white space, which no name may contain.
        if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
            return Err(Fault::FieldLine);
        }
        if memchr(b'\r', value).is_some() {
            return Err(Fault::FieldLine);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = parse_length(value)?;
            if self.content_length.is_some_and(|other| other != length) {
                return Err(Fault::BodyLength);
            }
            self.content_length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            // Twice chunked is as wrong as any other coding.
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Fault::TransferCoding);
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
            for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                self.close |= option.eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        Ok(())
    }
}

fn parse_length(value: &[u8]) -> Result<u64, Fault> {
    // Any nineteen digits fit 64 bits.
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return Err(Fault::BodyLength);
    }
    Ok(value
        .iter()
        .fold(0, |length, digit| length * 10 + u64::from(digit - b'0')))
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

const PROTOCOL: &[u8] = b"HTTP/1.";
/// Heads remembered per thread. One is enough for one endpoint between two changes of its date;
/// a mix wants one per endpoint. More would make each miss dearer.
const RECENT_HEADS: usize = 4;
