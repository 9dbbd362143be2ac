//! What heads and trailer sections of requests and responses consist of: lines that end in CRLF, field lines, the blank line at
//! the end (RFC 9112 §2.2, §5).

use citius_http::Fault;
use citius_http::head::Span;

use crate::scan;

/// Why a reader did not reach the end of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The bytes end before the section does.
    Partial,
    /// A rule is broken.
    Fault(Fault),
}

/// Index behind the blank line that ends a section of `input`, of which `searched` bytes were seen before.
pub(crate) fn find_end(input: &[u8], searched: usize) -> Result<Option<usize>, Fault> {
    let new = input.get(searched..).unwrap_or_default();
    for found in memchr::memchr_iter(b'\n', new) {
        let line_feed = searched.wrapping_add(found);
        let before = input.get(..line_feed).unwrap_or_default();
        if !before.ends_with(b"\r") {
            return Err(Fault::LineEnding);
        }
        if before.ends_with(b"\n\r") {
            return Ok(Some(line_feed.wrapping_add(1)));
        }
    }
    Ok(None)
}

/// Reads `name: value CRLF` lines up to the blank line into `field`, name and value at a time; `section`
/// ends with that blank line.
pub(crate) fn parse_lines(
    section: &[u8],
    mut field: impl FnMut(&[u8], &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut rest = section;
    while let Some(line) = FieldLine::read(rest, section).map_err(fault_of)? {
        field(line.name, line.value)?;
        rest = line.next;
    }
    Ok(())
}

/// The fault that a stop within a complete section stands for.
pub(crate) fn fault_of(stop: Stop) -> Fault {
    match stop {
        Stop::Fault(fault) => fault,
        // A complete section ends in CRLF CRLF, so only a lone CR can make a line look unfinished.
        Stop::Partial => Fault::LineEnding,
    }
}

/// A field line (RFC 9112 §5).
pub(crate) struct FieldLine<'i> {
    pub(crate) name: &'i [u8],
    /// Without white space around it.
    pub(crate) value: &'i [u8],
    /// From the first byte of the value on.
    pub(crate) value_on: &'i [u8],
    /// What follows the line.
    pub(crate) next: &'i [u8],
}

impl<'i> FieldLine<'i> {
    /// Reads the line at the start of `rest`, the end of `input`; `None` for the blank one that ends a section.
    #[inline]
    pub(crate) fn read(rest: &'i [u8], input: &[u8]) -> Result<Option<Self>, Stop> {
        let (name, after) = split(rest, scan::token_run(rest, input));
        let value_on = match after {
            [b':', b' ', value_on @ ..] | [b':', value_on @ ..] if !name.is_empty() => value_on,
            [b'\r', b'\n', ..] if name.is_empty() => return Ok(None),
            _ => return Err(name_stop(rest, after)),
        };
        let value_on = match value_on {
            [b' ' | b'\t', ..] => trim_start(value_on),
            _ => value_on,
        };
        let (value, after) = split(value_on, scan::value_run(value_on, input));
        let [b'\r', b'\n', next @ ..] = after else {
            return Err(stop_at(after, Fault::FieldValueSyntax));
        };
        let value = match value {
            [.., b' ' | b'\t'] => value.trim_ascii_end(),
            _ => value,
        };
        Ok(Some(Self {
            name,
            value,
            value_on,
            next,
        }))
    }
}

/// Clients usually send one space before a value; this handles other whitespace.
#[cold]
fn trim_start(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    value
}

/// What it means that a run ended before `rest`, where only `fault` explains a byte other than a line end.
#[cold]
pub(crate) fn stop_at(rest: &[u8], fault: Fault) -> Stop {
    match rest {
        [] | [b'\r'] => Stop::Partial,
        // The line is over before its parts are.
        [b'\r', b'\n', ..] => Stop::Fault(match fault {
            Fault::MethodSyntax | Fault::TargetSyntax => Fault::RequestLineSyntax,
            other => other,
        }),
        [b'\r' | b'\n', ..] => Stop::Fault(Fault::LineEnding),
        _ => Stop::Fault(fault),
    }
}

/// Why `line`, whose token ends before `after`, is not a field line.
#[cold]
fn name_stop(line: &[u8], after: &[u8]) -> Stop {
    match line {
        [b' ' | b'\t', ..] => Stop::Fault(Fault::LineFolding),
        _ => stop_at(after, Fault::FieldNameSyntax),
    }
}

/// `bytes` before and from index `at` on, which is at most their length.
#[inline]
pub(crate) fn split(bytes: &[u8], at: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(at).unwrap_or((bytes, &[]))
}

/// Where `rest`, the end of `input`, begins in it.
#[inline]
pub(crate) fn offset(input: &[u8], rest: &[u8]) -> usize {
    input.len().wrapping_sub(rest.len())
}

/// The span of `part`, which begins at `start`.
#[inline]
pub(crate) fn span_of(start: usize, part: &[u8]) -> Span {
    span(start, start.wrapping_add(part.len()))
}

#[inline]
pub(crate) fn part(input: &[u8], span: Span) -> &[u8] {
    input
        .get(span.start as usize..span.end as usize)
        .unwrap_or_default()
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "heads are cut to head_bytes_max, a u32, before they are parsed"
)]
pub(crate) fn span(start: usize, end: usize) -> Span {
    Span {
        start: start as u32,
        end: end as u32,
    }
}
