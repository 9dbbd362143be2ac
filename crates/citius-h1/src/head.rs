//! A request head: bytes in, [`Head`] out (RFC 9112 §2–§6).
//!
//! Two passes that agree. [`parse`] reads a head in one go, and is all that a head that arrives in
//! one piece ever meets. [`search`] only looks for the end of a head that is still arriving, from where it
//! left off, so that a peer that sends a byte at a time costs O(n). What `search` finds (a bare LF,
//! too long a target, too long a head) comes before what `parse` finds, however the bytes were cut.
//!
//! Invariant: a head with more than one reading is refused. Cases: `vectors/h1/request_line`,
//! `fields`, `host`, `framing`, `limits`.

use citius_http::fields::parse_decimal;
use citius_http::head::{FieldSpan, Span};
use citius_http::{BodyLength, Fault, Head, Limits, Method, Version};

use crate::{host, scan};

/// Why [`parse`] did not reach the end of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The bytes end before the head does.
    Partial,
    /// A rule is broken.
    Fault(Fault),
}

/// Reads the head at the start of `input` into `head`, which is empty, and returns its length.
///
/// `input` is cut to `limits.head_bytes_max` by the caller, hence every index fits a span.
#[inline]
pub(crate) fn parse(input: &[u8], limits: &Limits, head: &mut Head) -> Result<usize, Stop> {
    let mut at = request_line(input, limits, head)?;
    let mut facts = Facts::default();
    loop {
        let name_end = scan::token_end(input, at);
        if input.get(name_end) != Some(&b':') || name_end == at {
            if input.get(at..at.saturating_add(2)) == Some(b"\r\n") {
                at = at.saturating_add(2);
                break;
            }
            return Err(name_stop(input, at, name_end));
        }
        if head.fields.len() >= limits.fields_max as usize {
            return Err(Stop::Fault(Fault::TooManyFields));
        }
        let (value, next) = field_value(input, name_end.saturating_add(1))?;
        let field = FieldSpan {
            name: span(at, name_end),
            value,
        };
        facts
            .note(
                head.fields.len(),
                part(input, field.name),
                part(input, value),
            )
            .map_err(Stop::Fault)?;
        head.fields.push(field);
        at = next;
    }
    facts.settle(input, limits, head).map_err(Stop::Fault)?;
    head.bytes
        .extend_from_slice(input.get(..at).unwrap_or_default());
    Ok(at)
}

/// Looks for the end of an incomplete head in `input`, of which `searched` bytes were seen before.
///
/// `input` is cut to `limits.head_bytes_max` by the caller. Returns the length of the head once it is
/// there.
pub(crate) fn search(
    input: &[u8],
    searched: usize,
    limits: &Limits,
) -> Result<Option<usize>, Fault> {
    if input.len() > limits.target_bytes_max as usize {
        let line_end = memchr::memchr2(b'\r', b'\n', input).unwrap_or(input.len());
        let line = input.get(..line_end).unwrap_or_default();
        let mut words = line.splitn(3, |&byte| byte == b' ');
        if words.nth(1).unwrap_or_default().len() > limits.target_bytes_max as usize {
            return Err(Fault::TargetTooLong);
        }
    }
    let end = find_end(input, searched)?;
    if end.is_none() && input.len() >= limits.head_bytes_max as usize {
        return Err(Fault::HeadTooLong);
    }
    Ok(end)
}

/// Index behind the blank line that ends a section of `input`, of which `searched` bytes were seen before.
pub(crate) fn find_end(input: &[u8], searched: usize) -> Result<Option<usize>, Fault> {
    let new = input.get(searched..).unwrap_or_default();
    for found in memchr::memchr_iter(b'\n', new) {
        let line_feed = searched.saturating_add(found);
        let before = input.get(..line_feed).unwrap_or_default();
        if !before.ends_with(b"\r") {
            return Err(Fault::LineEnding);
        }
        if before.ends_with(b"\n\r") {
            return Ok(Some(line_feed.saturating_add(1)));
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
    let mut at = 0;
    while section.get(at..) != Some(b"\r\n") {
        let name_end = scan::token_end(section, at);
        if section.get(name_end) != Some(&b':') || name_end == at {
            return Err(fault_of(name_stop(section, at, name_end)));
        }
        let (value, next) = field_value(section, name_end.saturating_add(1)).map_err(fault_of)?;
        field(
            section.get(at..name_end).unwrap_or_default(),
            part(section, value),
        )?;
        at = next;
    }
    Ok(())
}

/// The fault that a stop within a complete section stands for.
fn fault_of(stop: Stop) -> Fault {
    match stop {
        Stop::Fault(fault) => fault,
        // A complete section ends in CRLF CRLF, so only a lone CR can make a line look unfinished.
        Stop::Partial => Fault::LineEnding,
    }
}

/// `method SP request-target SP HTTP-version CRLF` (RFC 9112 §3), one space each; returns its length.
#[inline]
fn request_line(input: &[u8], limits: &Limits, head: &mut Head) -> Result<usize, Stop> {
    let method_end = scan::token_end(input, 0);
    match input.get(method_end) {
        Some(b' ') if method_end > 0 => {}
        Some(b' ') => return Err(Stop::Fault(Fault::RequestLineSyntax)),
        _ => return Err(stop_at(input, method_end, Fault::MethodSyntax)),
    }
    let target_start = method_end.saturating_add(1);
    let target_end = scan::target_end(input, target_start);
    match input.get(target_end) {
        Some(b' ') if target_end > target_start => {}
        Some(b' ') => return Err(Stop::Fault(Fault::RequestLineSyntax)),
        _ => return Err(stop_at(input, target_end, Fault::TargetSyntax)),
    }
    if target_end.saturating_sub(target_start) > limits.target_bytes_max as usize {
        return Err(Stop::Fault(Fault::TargetTooLong));
    }
    let version_start = target_end.saturating_add(1);
    let next = version_start.saturating_add(10);
    head.version = match input.get(version_start..next) {
        Some(b"HTTP/1.1\r\n") => Version::Http11,
        Some(b"HTTP/1.0\r\n") => Version::Http10,
        _ => return Err(version_stop(input, version_start)),
    };
    head.method_span = span(0, method_end);
    head.method = Method::from_token(part(input, head.method_span));
    head.target = span(target_start, target_end);
    Ok(next)
}

/// The value from `start` on, without white space around it, and the index behind its CRLF.
#[inline]
fn field_value(input: &[u8], mut start: usize) -> Result<(Span, usize), Stop> {
    while matches!(input.get(start), Some(b' ' | b'\t')) {
        start = start.saturating_add(1);
    }
    let line_end = scan::value_end(input, start);
    let next = line_end.saturating_add(2);
    if input.get(line_end..next) != Some(b"\r\n") {
        return Err(stop_at(input, line_end, Fault::FieldValueSyntax));
    }
    let value = input.get(start..line_end).unwrap_or_default();
    let trimmed = value.trim_ascii_end().len();
    Ok((span(start, start.saturating_add(trimmed)), next))
}

/// What it means that a run ended at `at`, where only `fault` explains a byte other than a line end.
#[cold]
fn stop_at(input: &[u8], at: usize, fault: Fault) -> Stop {
    match (input.get(at), input.get(at.saturating_add(1))) {
        (None, _) | (Some(b'\r'), None) => Stop::Partial,
        // The line is over before its parts are.
        (Some(b'\r'), Some(b'\n')) => Stop::Fault(match fault {
            Fault::MethodSyntax | Fault::TargetSyntax => Fault::RequestLineSyntax,
            other => other,
        }),
        (Some(b'\r' | b'\n'), _) => Stop::Fault(Fault::LineEnding),
        _ => Stop::Fault(fault),
    }
}

/// Why the line at `start`, whose token ends at `name_end`, is not a field line.
#[cold]
fn name_stop(input: &[u8], start: usize, name_end: usize) -> Stop {
    match input.get(start) {
        Some(b' ' | b'\t') => Stop::Fault(Fault::LineFolding),
        _ => stop_at(input, name_end, Fault::FieldNameSyntax),
    }
}

/// Why what follows the target is neither `HTTP/1.1` nor `HTTP/1.0`.
#[cold]
fn version_stop(input: &[u8], start: usize) -> Stop {
    let rest = input.get(start..).unwrap_or_default();
    let Some(length) = memchr::memchr2(b'\r', b'\n', rest) else {
        return Stop::Partial;
    };
    match rest.get(..length).unwrap_or_default() {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            stop_at(
                input,
                start.saturating_add(length),
                Fault::VersionUnsupported,
            )
        }
        text => {
            let is_word = !text.is_empty() && !text.contains(&b' ');
            let fault = if is_word {
                Fault::VersionSyntax
            } else {
                Fault::RequestLineSyntax
            };
            stop_at(input, start.saturating_add(length), fault)
        }
    }
}

/// What the fields say about framing and routing, gathered line by line.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what each line says, before they are weighed against each other"
)]
struct Facts {
    /// Index of the Host line.
    host: Option<usize>,
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
    expects_unknown: bool,
}

impl Facts {
    /// Takes note of one field line. Names are told apart by length first: few lines pass that.
    #[inline]
    fn note(&mut self, index: usize, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") && self.host.replace(index).is_some() => {
                return Err(Fault::HostRepeated);
            }
            6 if name.eq_ignore_ascii_case(b"expect") => {
                if value.eq_ignore_ascii_case(b"100-continue") {
                    self.expects_continue = true;
                } else {
                    self.expects_unknown = true;
                }
            }
            10 if name.eq_ignore_ascii_case(b"connection") => self.note_connection(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = parse_decimal(value).ok_or(Fault::ContentLengthSyntax)?;
                if self.content_length.replace(length).is_some() {
                    return Err(Fault::ContentLengthSyntax);
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Fault::TransferEncoding);
                }
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn note_connection(&mut self, value: &[u8]) {
        // What nearly every client sends, if it sends anything.
        if value == b"keep-alive" {
            self.keep_alive = true;
            return;
        }
        for option in value.split(|&byte| byte == b',') {
            let option = option.trim_ascii();
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Decides what the head means as a whole.
    #[inline]
    fn settle(&self, input: &[u8], limits: &Limits, head: &mut Head) -> Result<(), Fault> {
        let http11 = head.version == Version::Http11;
        let authority = target_form(input, head)?;
        match self.host.and_then(|index| head.fields.get_mut(index)) {
            Some(field) => {
                let value = part(input, field.value);
                let may_be_empty = !http11 || part(input, head.target) == b"*";
                if !(host::is_valid(value) || value.is_empty() && may_be_empty) {
                    return Err(Fault::HostSyntax);
                }
                // RFC 9112 §3.2.2: the authority of an absolute target replaces Host.
                if let Some(authority) = authority {
                    field.value = authority;
                }
            }
            None if http11 => return Err(Fault::HostMissing),
            None => {}
        }
        head.body = match (self.chunked, self.content_length) {
            (true, _) if !http11 => return Err(Fault::TransferEncodingInHttp10),
            (true, Some(_)) => return Err(Fault::AmbiguousLength),
            (true, None) => BodyLength::Chunked,
            (false, Some(length)) if length > limits.body_bytes_max => {
                return Err(Fault::BodyTooLong);
            }
            (false, None | Some(0)) => BodyLength::None,
            (false, Some(length)) => BodyLength::Exact(length),
        };
        head.keep_alive = !self.close && (http11 || self.keep_alive);
        // RFC 9110 §10.1.1: an expectation in HTTP/1.0 is ignored.
        if http11 && self.expects_unknown {
            return Err(Fault::ExpectationUnknown);
        }
        head.expects_continue = http11 && self.expects_continue && head.body != BodyLength::None;
        Ok(())
    }
}

/// Finds path and query in the target (RFC 9112 §3.2); returns the authority of an absolute one.
#[inline]
fn target_form(input: &[u8], head: &mut Head) -> Result<Option<Span>, Fault> {
    let target = part(input, head.target);
    if head.method == Method::Connect {
        return Err(Fault::ConnectRefused);
    }
    if target.first() == Some(&b'/') {
        split_query(input, head, head.target.start as usize);
        return Ok(None);
    }
    if target == b"*" && head.method == Method::Options {
        head.path = head.target;
        return Ok(None);
    }
    absolute_form(input, head).map(Some)
}

/// `http://authority/path?query`.
#[cold]
fn absolute_form(input: &[u8], head: &mut Head) -> Result<Span, Fault> {
    let target = part(input, head.target);
    let scheme = [&b"http://"[..], b"https://"]
        .into_iter()
        .find(|scheme| {
            target
                .get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
        .ok_or(Fault::TargetSyntax)?;
    let start = (head.target.start as usize).saturating_add(scheme.len());
    let rest = target.get(scheme.len()..).unwrap_or_default();
    let length = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
    let end = start.saturating_add(length);
    if !host::is_valid(input.get(start..end).unwrap_or_default()) {
        return Err(Fault::TargetSyntax);
    }
    split_query(input, head, end);
    if head.path.start == head.path.end {
        // An empty path means `/` (RFC 9110 §4.2.3); the slash before the authority spells it.
        head.path = span(start.saturating_sub(1), start);
    }
    Ok(span(start, end))
}

/// Splits the target from `start` to its end at the first `?`.
#[inline]
fn split_query(input: &[u8], head: &mut Head, start: usize) {
    let end = head.target.end as usize;
    let text = input.get(start..end).unwrap_or_default();
    match text.iter().position(|&byte| byte == b'?') {
        None => head.path = span(start, end),
        Some(length) => {
            let mark = start.saturating_add(length);
            head.path = span(start, mark);
            head.query = Some(span(mark.saturating_add(1), end));
        }
    }
}

#[inline]
fn part(input: &[u8], span: Span) -> &[u8] {
    input
        .get(span.start as usize..span.end as usize)
        .unwrap_or_default()
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "heads are cut to head_bytes_max, a u32, before they are parsed"
)]
fn span(start: usize, end: usize) -> Span {
    Span {
        start: start as u32,
        end: end as u32,
    }
}
