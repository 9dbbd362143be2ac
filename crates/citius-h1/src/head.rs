//! A request head: bytes in, [`Head`] out (RFC 9112 §2–§6).
//!
//! Two passes that agree. [`parse`] reads a head in one go, and is all that a head that arrives in
//! one piece ever meets. [`search`] only looks for the end of a head that is still arriving, from where it
//! left off, so that a peer that sends a byte at a time costs O(n). What `search` finds (a bare LF,
//! too long a target, too long a head) comes before what `parse` finds, however the bytes were cut.
//!
//! Invariant: a head with more than one reading is refused. Cases: `vectors/h1/request_line`,
//! `fields`, `host`, `framing`, `limits`.

use citius_http::head::{FieldSpan, Span};
use citius_http::{BodyLength, FAST_PATHS, Fault, Head, Limits, Method, Version};

use crate::framing::Framing;
use crate::lines::{FieldLine, Stop, find_end, offset, part, span, span_of, split, stop_at};
use crate::{host, scan};

/// Reads the head at the start of `input` into `head`, which is empty, and returns its length.
///
/// `input` is cut to `limits.head_bytes_max` by the caller, hence every index fits a span.
#[inline]
pub(crate) fn parse(input: &[u8], limits: &Limits, head: &mut Head) -> Result<usize, Stop> {
    parse_by::<FAST_PATHS>(input, limits, head)
}

/// [`parse`]; with `FAST` the usual beginnings of heads are recognised first.
#[inline]
fn parse_by<const FAST: bool>(
    input: &[u8],
    limits: &Limits,
    head: &mut Head,
) -> Result<usize, Stop> {
    // Always the end of `input`: what is read is taken off its front.
    let mut rest = request_line::<FAST>(input, limits, head)?;
    let mut facts = Facts::default();
    let length = loop {
        let host_line = if FAST && facts.host.is_none() {
            FieldLine::host(rest, input)
        } else {
            None
        };
        let line = match host_line {
            Some(line) => {
                facts.host_is_valid = true;
                line
            }
            None => match FieldLine::read(rest, input)? {
                Some(line) => line,
                None => break offset(input, rest).wrapping_add(2),
            },
        };
        if head.fields.len() >= limits.fields_max as usize {
            return Err(Stop::Fault(Fault::TooManyFields));
        }
        facts
            .note(head.fields.len(), line.name, line.value)
            .map_err(Stop::Fault)?;
        head.fields.push(FieldSpan {
            name: span_of(offset(input, rest), line.name),
            value: span_of(offset(input, line.value_on), line.value),
        });
        rest = line.next;
    };
    facts.apply_to(input, head).map_err(Stop::Fault)?;
    head.bytes
        .extend_from_slice(input.get(..length).unwrap_or_default());
    head.is_verbatim = true;
    Ok(length)
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
        // What has no second word by now is no request with much to say; it is none.
        return Err(match memchr::memchr(b' ', input) {
            Some(_) => Fault::HeadTooLong,
            None => Fault::RequestLineSyntax,
        });
    }
    Ok(end)
}

/// `method SP request-target SP HTTP-version CRLF` (RFC 9112 §3), one space each; returns what follows.
#[inline]
fn request_line<'i, const FAST: bool>(
    input: &'i [u8],
    limits: &Limits,
    head: &mut Head,
) -> Result<&'i [u8], Stop> {
    // Most requests are a GET; the general way says the same of them.
    let (method, rest) = match input {
        [b'G', b'E', b'T', b' ', rest @ ..] if FAST => {
            head.method = Method::Get;
            (span(0, 3), rest)
        }
        _ => {
            let (method, rest) = method(input)?;
            head.method = Method::from_token(method);
            (span_of(0, method), rest)
        }
    };
    head.method_span = method;
    let (target, version) = split(rest, scan::target_run(rest, input));
    let version = match version {
        [b' ', version @ ..] if !target.is_empty() => version,
        [b' ', ..] => return Err(Stop::Fault(Fault::RequestLineSyntax)),
        _ => return Err(stop_at(version, Fault::TargetSyntax)),
    };
    if target.len() > limits.target_bytes_max as usize {
        return Err(Stop::Fault(Fault::TargetTooLong));
    }
    let next = match version.split_first_chunk() {
        Some((b"HTTP/1.1\r\n", next)) => {
            head.version = Version::Http11;
            next
        }
        Some((b"HTTP/1.0\r\n", next)) => {
            head.version = Version::Http10;
            next
        }
        _ => return Err(version_stop(version)),
    };
    head.target = span_of(offset(input, rest), target);
    Ok(next)
}

/// Method and target at the start of a header section that was refused, and its version: the bytes in their
/// places, up to the fault, valid or not.
#[cold]
pub(crate) fn request_line_so_far(input: &[u8]) -> ((&[u8], &[u8]), Version) {
    let Ok((method, rest)) = method(input) else {
        return ((b"", b""), Version::default());
    };
    let end = rest.iter().position(|byte| b" \r\n".contains(byte));
    let (target, version) = split(rest, end.unwrap_or(rest.len()));
    let version = if version.starts_with(b" HTTP/1.0") {
        Version::Http10
    } else {
        Version::Http11
    };
    ((method, target), version)
}

/// The method at the start of `input` and what follows the space behind it.
#[inline]
fn method(input: &[u8]) -> Result<(&[u8], &[u8]), Stop> {
    let (method, rest) = split(input, scan::token_run(input, input));
    match rest {
        [b' ', rest @ ..] if !method.is_empty() => Ok((method, rest)),
        [b' ', ..] => Err(Stop::Fault(Fault::RequestLineSyntax)),
        _ => Err(stop_at(rest, Fault::MethodSyntax)),
    }
}

impl<'i> FieldLine<'i> {
    /// Reads the line at the start of `rest` if it is a plain Host line, as every request has one.
    ///
    /// One pass does what [`read`](Self::read) and [`host::is_valid`] do in three, and says the same.
    #[inline]
    fn host(rest: &'i [u8], input: &[u8]) -> Option<Self> {
        let (name, value_on) = rest.split_first_chunk::<6>()?;
        if name != b"Host: " && name != b"host: " {
            return None;
        }
        let (value, after) = split(value_on, host::plain_run(value_on, input));
        match after {
            [b'\r', b'\n', next @ ..] if !value.is_empty() => Some(Self {
                name: name.split_last_chunk::<2>()?.0,
                value,
                value_on,
                next,
            }),
            _ => None,
        }
    }
}

/// Why what follows the target is neither `HTTP/1.1` nor `HTTP/1.0`.
#[cold]
fn version_stop(rest: &[u8]) -> Stop {
    let Some(length) = memchr::memchr2(b'\r', b'\n', rest) else {
        return Stop::Partial;
    };
    let (text, line_end) = split(rest, length);
    match text {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            stop_at(line_end, Fault::VersionUnsupported)
        }
        _ => {
            let is_word = !text.is_empty() && !text.contains(&b' ');
            let fault = if is_word {
                Fault::VersionSyntax
            } else {
                Fault::RequestLineSyntax
            };
            stop_at(line_end, fault)
        }
    }
}

/// What the fields say about framing and routing, gathered line by line.
#[derive(Default)]
struct Facts {
    /// Index of the Host line.
    host: Option<usize>,
    /// Its value has been looked at.
    host_is_valid: bool,
    framing: Framing,
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
            _ => return self.framing.note(name, value),
        }
        Ok(())
    }

    /// Decides what the head means as a whole.
    #[inline]
    fn apply_to(&self, input: &[u8], head: &mut Head) -> Result<(), Fault> {
        let http11 = head.version == Version::Http11;
        let authority = target_form(input, head)?;
        match self.host.and_then(|index| head.fields.get_mut(index)) {
            Some(field) => {
                let value = part(input, field.value);
                let may_be_empty = !http11 || part(input, head.target) == b"*";
                let is_valid = self.host_is_valid
                    || host::is_valid(input, field.value)
                    || value.is_empty() && may_be_empty;
                if !is_valid {
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
        head.body = match (
            self.framing.is_chunked(http11)?,
            self.framing.content_length,
        ) {
            (true, _) => BodyLength::Chunked,
            (false, None | Some(0)) => BodyLength::None,
            (false, Some(length)) => BodyLength::Exact(length),
        };
        head.keep_alive = self.framing.lets_live_on(http11);
        // RFC 9110 §7.8: from HTTP/1.0 it means nothing.
        head.asks_upgrade = http11 && self.framing.upgrade;
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
    let start = (head.target.start as usize).wrapping_add(scheme.len());
    let rest = target.get(scheme.len()..).unwrap_or_default();
    let length = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
    let end = start.wrapping_add(length);
    let authority = span(start, end);
    if !host::is_valid(input, authority) {
        return Err(Fault::TargetSyntax);
    }
    split_query(input, head, end);
    if head.path.start == head.path.end {
        // An empty path means `/` (RFC 9110 §4.2.3); the slash before the authority spells it.
        head.path = span(start.wrapping_sub(1), start);
    }
    Ok(authority)
}

/// Splits the target from `start` to its end at the first `?`.
#[inline]
fn split_query(input: &[u8], head: &mut Head, start: usize) {
    let end = head.target.end as usize;
    let text = input.get(start..end).unwrap_or_default();
    match text.iter().position(|&byte| byte == b'?') {
        None => head.path = span(start, end),
        Some(length) => {
            let mark = start.wrapping_add(length);
            head.path = span(start, mark);
            head.query = Some(span(mark.wrapping_add(1), end));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use citius_testkit::rng::Rng;
    use citius_testkit::{campaign, variants};

    use super::*;

    fn read<const FAST: bool>(input: &[u8], limits: &Limits) -> (Result<usize, Stop>, String) {
        let mut head = Head::default();
        let read = parse_by::<FAST>(input, limits, &mut head);
        // After an error no caller reads what was parsed so far.
        let head = read.map_or_else(|_| String::new(), |_| format!("{head:?}"));
        (read, head)
    }

    #[test]
    fn the_fast_ways_to_read_a_head_read_the_same() {
        let (mut n_read, mut n_host, mut n_get) = (0, 0, 0);
        for seed in 0..4000 {
            let mut rng = Rng::new(seed);
            let limits = Limits {
                fields_max: if seed % 8 == 0 { 3 } else { 100 },
                target_bytes_max: if seed % 8 == 1 { 2 } else { 8192 },
                ..Limits::default()
            };
            for variant in variants::run(&mut rng, 8) {
                let mut bytes = variant.to_http1();
                for _ in 0..rng.below(3) {
                    campaign::mutate(&mut rng, &mut bytes, &[]);
                }
                let fast = read::<true>(&bytes, &limits);
                let slow = read::<false>(&bytes, &limits);
                assert_eq!(
                    fast,
                    slow,
                    "seed {seed}: {:?}",
                    String::from_utf8_lossy(&bytes)
                );
                n_read += usize::from(fast.0.is_ok());
                n_get += usize::from(bytes.starts_with(b"GET "));
                n_host += usize::from(bytes.windows(6).any(|at| at == b"Host: "));
            }
        }
        assert!(
            n_read > 5000 && n_host > 5000 && n_get > 5000,
            "{n_read} {n_host} {n_get}"
        );
    }
}
