//! The head of a response (RFC 9112 §4): bytes in, [`ResponseHead`] out.

use alloc::vec::Vec;

use citius_http::fields::parse_decimal;
use citius_http::head::{FieldSpan, Span};
use citius_http::{Fault as Shared, Version};

use super::{Fault, Limits};
use crate::framing::Framing;
use crate::lines::{FieldLine, fault_of, find_end, offset, part, span_of, split};
use crate::scan;

/// What comes before the content of a response; owned, so that it outlives the bytes it was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHead {
    /// As sent, status line to blank line.
    bytes: Vec<u8>,
    fields: Vec<FieldSpan>,
    reason: Span,
    /// The status code, 100…599.
    pub status: u16,
    /// HTTP/1.0 or HTTP/1.1.
    pub version: Version,
    /// Bytes of the content, if the head says so; of a response to HEAD, and of a 304, those of a response to GET.
    pub content_length: Option<u64>,
}

/// What its first byte begins with.
const PREFIX: &[u8] = b"HTTP/";
/// Field lines that most responses do not exceed.
const FIELDS_USUAL: usize = 16;

impl ResponseHead {
    /// Takes a head off the front of `input`, if it has come in full; `searched` is the number of bytes that were looked at
    /// before, and grows.
    pub(crate) fn take(
        input: &mut &[u8],
        searched: &mut u32,
        limits: &Limits,
    ) -> Result<Option<(Self, Framing)>, Fault> {
        let window = input.get(..limits.head_bytes_max as usize).unwrap_or(input);
        if !window.iter().zip(PREFIX).all(|(one, other)| one == other) {
            return Err(Fault::StatusLineSyntax);
        }
        let Some(length) = find_end(window, *searched as usize)? else {
            if window.len() >= limits.head_bytes_max as usize {
                return Err(Fault::HeadTooLong);
            }
            *searched = u32::try_from(window.len()).unwrap_or(u32::MAX);
            return Ok(None);
        };
        *searched = 0;
        let (section, rest) = split(input, length);
        let head = Self::parse(section, limits)?;
        *input = rest;
        Ok(Some(head))
    }

    /// `section` ends with its blank line.
    fn parse(section: &[u8], limits: &Limits) -> Result<(Self, Framing), Fault> {
        let (mut head, mut rest) = Self::status_line(section)?;
        head.fields.reserve_exact(FIELDS_USUAL);
        let mut framing = Framing::default();
        while let Some(line) = FieldLine::read(rest, section).map_err(fault_of)? {
            if head.fields.len() >= limits.fields_max as usize {
                return Err(Fault::TooManyFields);
            }
            let noted = framing.note(line.name, line.value);
            noted.map_err(|fault| length_fault(fault, line.value))?;
            head.fields.push(FieldSpan {
                name: span_of(offset(section, rest), line.name),
                value: span_of(offset(section, line.value_on), line.value),
            });
            rest = line.next;
        }
        head.content_length = framing.content_length;
        head.bytes.extend_from_slice(section);
        Ok((head, framing))
    }

    /// `HTTP-version SP status-code [ SP [ reason-phrase ] ] CRLF`, and what follows. Many servers leave the second space out if
    /// there is no reason.
    fn status_line(section: &[u8]) -> Result<(Self, &[u8]), Fault> {
        let (version, after) = match section.split_first_chunk() {
            Some((b"HTTP/1.1 ", after)) => (Version::Http11, after),
            Some((b"HTTP/1.0 ", after)) => (Version::Http10, after),
            _ => return Err(version_fault(section)),
        };
        let (status, after) = split(after, 3);
        let status = match status {
            [first @ b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] => {
                if !matches!(first, b'1'..=b'5') {
                    return Err(Fault::StatusUnknown);
                }
                parse_decimal(status).unwrap_or_default()
            }
            _ => return Err(Fault::StatusLineSyntax),
        };
        let reason_on = match after {
            [b' ', reason @ ..] => reason,
            [b'\r', ..] => after,
            _ => return Err(Fault::StatusLineSyntax),
        };
        let (reason, after) = split(reason_on, scan::value_run(reason_on, section));
        let next = match after {
            [b'\r', b'\n', next @ ..] => next,
            [b'\r', ..] => return Err(Shared::LineEnding.into()),
            _ => return Err(Fault::StatusLineSyntax),
        };
        let head = Self {
            reason: span_of(offset(section, reason_on), reason),
            status: u16::try_from(status).unwrap_or_default(),
            version,
            ..Self::default()
        };
        Ok((head, next))
    }

    /// The reason phrase, which means nothing.
    pub fn reason(&self) -> &[u8] {
        part(&self.bytes, self.reason)
    }

    /// Names as sent and values, in the order sent.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let fields = self.fields.iter();
        fields.map(|field| {
            (
                part(&self.bytes, field.name),
                part(&self.bytes, field.value),
            )
        })
    }

    /// The first value of the field `name`, compared without regard to case.
    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        let mut fields = self.fields();
        fields
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

#[cold]
fn version_fault(section: &[u8]) -> Fault {
    match section.get(PREFIX.len()..) {
        Some([major, b'.', minor, b' ', ..])
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Fault::VersionUnsupported
        }
        _ => Fault::StatusLineSyntax,
    }
}

/// A length that is a number, and larger than any, is a body that is too long.
#[cold]
fn length_fault(fault: Shared, value: &[u8]) -> Fault {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    if fault == Shared::ContentLengthSyntax && is_number && parse_decimal(value).is_none() {
        return Fault::BodyTooLong;
    }
    fault.into()
}
