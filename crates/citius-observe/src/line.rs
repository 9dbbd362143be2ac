//! One line of the access log.
//!
//! In: the facts of a request, the outcome, and a format. Out: the bytes of a line. What a client chose is escaped, so that
//! no request forges a line, a field or a terminal sequence, and cut, so that lines of several processes do not mix in a
//! pipe. Nothing is written to a file here (`writer.rs`). Rendering the parts of a format is one pass over one input.

use std::io::Write as _;
use std::net::SocketAddr;

use citius_http::date::civil_from_days;
use citius_http::{RefusedHead, Version};
use smallvec::SmallVec;

use crate::format::{Format, Part, Shape};
use crate::trace::TraceContext;

/// What is kept of a request for its line: copies, because the head goes its own way.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) bytes: Vec<u8>,
    pub(crate) method_end: usize,
    pub(crate) target_end: usize,
    pub(crate) version: Version,
    pub(crate) client: Option<SocketAddr>,
    /// Where the fields that the format quotes lie.
    pub(crate) fields: SmallVec<[Option<(u32, u32)>; 4]>,
    pub(crate) request_id: Option<(u32, u32)>,
    pub(crate) trace: Option<TraceContext>,
    /// Whether it came over TLS, or a proxy that is trusted says so; known of requests with a trace.
    pub(crate) is_secure: bool,
    /// Whether its media type is one of gRPC's; known of requests with a trace.
    pub(crate) is_grpc: bool,
}

impl Facts {
    /// Of a request of which there is no head.
    #[cold]
    pub(crate) fn of_refused(refused: &RefusedHead) -> Self {
        let method_end = refused.method.len();
        let bytes = [&refused.method[..], &refused.target].concat();
        Self {
            method_end,
            target_end: bytes.len(),
            bytes,
            version: refused.version,
            ..Self::default()
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
        (self.method_end, self.target_end) = (0, 0);
        (self.version, self.client) = (Version::default(), None);
        (self.request_id, self.trace) = (None, None);
    }

    /// Copies `bytes` and says where they are.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Option<(u32, u32)> {
        let start = u32::try_from(self.bytes.len()).ok()?;
        self.bytes.extend_from_slice(bytes);
        Some((start, u32::try_from(self.bytes.len()).ok()?))
    }

    pub(crate) fn slice(&self, span: Option<(u32, u32)>) -> Option<&[u8]> {
        let (start, end) = span?;
        self.bytes.get(start as usize..end as usize)
    }

    pub(crate) fn method(&self) -> &[u8] {
        self.bytes.get(..self.method_end).unwrap_or_default()
    }

    pub(crate) fn target(&self) -> &[u8] {
        self.bytes
            .get(self.method_end..self.target_end)
            .unwrap_or_default()
    }

    /// Path and query of the target as sent.
    pub(crate) fn path_and_query(&self) -> (&[u8], &[u8]) {
        let target = self.target();
        match target.iter().position(|&byte| byte == b'?') {
            Some(at) => (&target[..at], &target[at + 1..]),
            None => (target, b""),
        }
    }
}

/// What is known when the response is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) duration_us: u64,
    pub(crate) route: &'a str,
    pub(crate) rpc_code: Option<&'static str>,
    /// How long another server took to which the request was passed on.
    pub(crate) upstream_us: Option<u64>,
    pub(crate) fault: Option<&'a str>,
}

/// Bytes of one quoted text, escapes included.
const QUOTE_BYTES_MAX: usize = 1024;

/// The time in the forms that lines need, made once a second.
#[derive(Debug)]
pub(crate) struct Stamps {
    second: i64,
    millisecond: u64,
    offset_s: i64,
    /// `2026-01-31 12:34:56`, local.
    local: Vec<u8>,
    /// `31/Jan/2026:12:34:56 +0100`.
    clf: Vec<u8>,
    /// `2026-01-31T12:34:56`, UTC.
    utc: Vec<u8>,
}

impl Stamps {
    pub(crate) fn new(offset_s: i64) -> Self {
        Self {
            second: i64::MIN,
            millisecond: 0,
            offset_s,
            local: Vec::new(),
            clf: Vec::new(),
            utc: Vec::new(),
        }
    }

    /// Seconds that local time is ahead of UTC; changes twice a year in many places.
    pub(crate) fn set_offset(&mut self, offset_s: i64) {
        if offset_s != self.offset_s {
            *self = Self::new(offset_s);
        }
    }

    #[inline]
    pub(crate) fn tell(&mut self, wall_ms: u64) {
        self.millisecond = wall_ms % 1000;
        let second = i64::try_from(wall_ms / 1000).unwrap_or(i64::MAX);
        if second != self.second {
            self.second = second;
            self.spell();
        }
    }

    #[cold]
    fn spell(&mut self) {
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let parts = |second: i64| {
            let second = second.max(0).unsigned_abs();
            let (year, month, day) = civil_from_days(second / 86_400);
            let rest = second % 86_400;
            (year, month, day, rest / 3600, rest / 60 % 60, rest % 60)
        };
        let (year, month, day, hour, minute, second) = parts(self.second);
        let utc = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        let (year, month, day, hour, minute, second) =
            parts(self.second.saturating_add(self.offset_s));
        let local = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
        let name = MONTHS[usize::try_from(month).unwrap_or(1).clamp(1, 12) - 1];
        let sign = if self.offset_s < 0 { '-' } else { '+' };
        let ahead = self.offset_s.abs() / 60;
        let clf = format!(
            "{day:02}/{name}/{year:04}:{hour:02}:{minute:02}:{second:02} {sign}{:02}{:02}",
            ahead / 60,
            ahead % 60
        );
        (self.utc, self.local, self.clf) = (utc.into(), local.into(), clf.into());
    }
}

/// Appends one line, with its line end.
pub(crate) fn render(
    out: &mut Vec<u8>,
    format: &Format,
    stamps: &Stamps,
    facts: &Facts,
    outcome: Outcome<'_>,
) {
    match &format.shape {
        Shape::Json => json(out, stamps, facts, outcome),
        Shape::Parts(parts) => {
            for part in parts {
                render_part(out, part, stamps, facts, outcome);
            }
        }
    }
    out.push(b'\n');
}

fn render_part(
    out: &mut Vec<u8>,
    part: &Part,
    stamps: &Stamps,
    facts: &Facts,
    outcome: Outcome<'_>,
) {
    let duration_us = outcome.duration_us;
    match part {
        Part::Literal(text) => out.extend_from_slice(text),
        Part::Client => client(out, facts.client),
        Part::ClientHost | Part::ClientPort if facts.client.is_none() => out.push(b'-'),
        Part::ClientHost => facts.client.iter().for_each(|&address| host(out, address)),
        Part::ClientPort => {
            facts
                .client
                .iter()
                .for_each(|address| number(out, u64::from(address.port())));
        }
        Part::LocalTime => {
            out.extend_from_slice(&stamps.local);
            out.push(b'.');
            three_digits(out, stamps.millisecond);
        }
        Part::ClfTime => {
            out.push(b'[');
            out.extend_from_slice(&stamps.clf);
            out.push(b']');
        }
        Part::RequestLine => {
            if facts.method().is_empty() {
                return out.push(b'-');
            }
            quoted(out, facts.method());
            out.push(b' ');
            quoted(out, facts.target());
            out.push(b' ');
            out.extend_from_slice(protocol(facts));
        }
        Part::Method => quoted_or_dash(out, Some(facts.method())),
        Part::Target => quoted_or_dash(out, Some(facts.target())),
        Part::Path => quoted_or_dash(out, Some(facts.path_and_query().0)),
        Part::Query => quoted(out, facts.path_and_query().1),
        Part::Protocol => out.extend_from_slice(protocol(facts)),
        Part::Status => number(out, u64::from(outcome.status)),
        Part::BytesOrDash if outcome.bytes == 0 => out.push(b'-'),
        Part::Bytes | Part::BytesOrDash => number(out, outcome.bytes),
        Part::Seconds => number(out, duration_us / 1_000_000),
        Part::SecondsWithFraction => {
            number(out, duration_us / 1_000_000);
            out.push(b'.');
            three_digits(out, duration_us / 1000 % 1000);
            three_digits(out, duration_us % 1000);
        }
        Part::Milliseconds => number(out, duration_us / 1000),
        Part::MillisecondsWithFraction => milliseconds_or_dash(out, Some(duration_us)),
        Part::Microseconds => number(out, duration_us),
        Part::Pid => {
            out.push(b'<');
            number(out, u64::from(std::process::id()));
            out.push(b'>');
        }
        Part::Field(place) => {
            let span = facts.fields.get(*place).copied().flatten();
            quoted_or_dash(out, facts.slice(span));
        }
        Part::Route => quoted_or_dash(out, Some(outcome.route.as_bytes())),
        Part::RequestId => quoted_or_dash(out, facts.slice(facts.request_id)),
        Part::TraceId => quoted_or_dash(out, facts.trace.as_ref().map(|t| &t.trace_id[..])),
        Part::SpanId => quoted_or_dash(out, facts.trace.as_ref().map(|t| &t.span_id[..])),
        Part::Fault => quoted_or_dash(out, outcome.fault.map(str::as_bytes)),
        Part::RpcCode => quoted_or_dash(out, outcome.rpc_code.map(str::as_bytes)),
        Part::RpcCodeBehind => outcome.rpc_code.iter().for_each(|code| behind(out, code)),
        Part::UpstreamTime => milliseconds_or_dash(out, outcome.upstream_us),
    }
}

/// One JSON object; members that are not known are left out.
fn json(out: &mut Vec<u8>, stamps: &Stamps, facts: &Facts, outcome: Outcome<'_>) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(&stamps.utc);
    out.push(b'.');
    three_digits(out, stamps.millisecond);
    out.extend_from_slice(b"Z\"");
    if let Some(address) = facts.client {
        out.extend_from_slice(b",\"client\":\"");
        client(out, Some(address));
        out.push(b'"');
    }
    if !facts.method().is_empty() {
        json_text(out, "method", Some(facts.method()));
        json_text(out, "target", Some(facts.target()));
        json_text(out, "protocol", Some(protocol(facts)));
    }
    out.extend_from_slice(b",\"status\":");
    number(out, u64::from(outcome.status));
    json_text(out, "rpc_code", outcome.rpc_code.map(str::as_bytes));
    out.extend_from_slice(b",\"bytes\":");
    number(out, outcome.bytes);
    out.extend_from_slice(b",\"duration_ms\":");
    thousandths(out, outcome.duration_us);
    if let Some(us) = outcome.upstream_us {
        out.extend_from_slice(b",\"upstream_ms\":");
        thousandths(out, us);
    }
    if !outcome.route.is_empty() {
        json_text(out, "route", Some(outcome.route.as_bytes()));
    }
    json_text(out, "request_id", facts.slice(facts.request_id));
    if let Some(trace) = &facts.trace {
        json_text(out, "trace_id", Some(&trace.trace_id));
        json_text(out, "span_id", Some(&trace.span_id));
    }
    let field = |place: usize| facts.slice(facts.fields.get(place).copied().flatten());
    json_text(out, "referer", field(0));
    json_text(out, "user_agent", field(1));
    json_text(out, "fault", outcome.fault.map(str::as_bytes));
    out.push(b'}');
}

fn json_text(out: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    let Some(value) = value else { return };
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":\"");
    if value.len() <= QUOTE_BYTES_MAX && value.iter().all(|&byte| is_plain(byte)) {
        out.extend_from_slice(value);
    } else {
        json_escaped(out, value);
    }
    out.push(b'"');
}

/// Only ASCII comes out: a terminal or a log shipper may change other text.
#[cold]
fn json_escaped(out: &mut Vec<u8>, value: &[u8]) {
    let end = out.len() + QUOTE_BYTES_MAX;
    for c in String::from_utf8_lossy(value).chars() {
        if out.len() + 12 > end {
            return out.extend_from_slice(b"...");
        }
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            ' '..='~' => out.push(c as u8),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to memory cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
}

fn thousandths(out: &mut Vec<u8>, value: u64) {
    number(out, value / 1000);
    out.push(b'.');
    three_digits(out, value % 1000);
}

/// With one decimal.
fn milliseconds_or_dash(out: &mut Vec<u8>, us: Option<u64>) {
    let Some(us) = us else {
        return out.push(b'-');
    };
    let tenths = (us + 50) / 100;
    number(out, tenths / 10);
    out.push(b'.');
    number(out, tenths % 10);
}

fn behind(out: &mut Vec<u8>, word: &str) {
    out.push(b' ');
    out.extend_from_slice(word.as_bytes());
}

fn quoted_or_dash(out: &mut Vec<u8>, text: Option<&[u8]>) {
    match text {
        Some(text) if !text.is_empty() => quoted(out, text),
        _ => out.push(b'-'),
    }
}

#[inline]
fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    if text.len() <= QUOTE_BYTES_MAX && text.iter().all(|&byte| is_plain(byte)) {
        out.extend_from_slice(text);
    } else {
        escaped(out, text);
    }
}

#[cold]
fn escaped(out: &mut Vec<u8>, text: &[u8]) {
    let end = out.len() + QUOTE_BYTES_MAX;
    for &byte in text {
        if out.len() + 4 > end {
            return out.extend_from_slice(b"...");
        }
        if is_plain(byte) {
            out.push(byte);
        } else {
            // Writing to memory cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// Printable ASCII that ends no quotation.
#[inline]
fn is_plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\'
}

fn protocol(facts: &Facts) -> &'static [u8] {
    facts.version.name().as_bytes()
}

fn client(out: &mut Vec<u8>, address: Option<SocketAddr>) {
    let Some(address) = address else {
        return out.push(b'-');
    };
    host(out, address);
    out.push(b':');
    number(out, u64::from(address.port()));
}

fn host(out: &mut Vec<u8>, address: SocketAddr) {
    match address {
        SocketAddr::V4(address) => {
            let [a, b, c, d] = address.ip().octets();
            for (octet, end) in [(a, "."), (b, "."), (c, "."), (d, "")] {
                number(out, u64::from(octet));
                out.extend_from_slice(end.as_bytes());
            }
        }
        SocketAddr::V6(address) => {
            // Writing to memory cannot fail.
            let _ = write!(out, "{}", address.ip());
        }
    }
}

#[inline]
fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn three_digits(out: &mut Vec<u8>, number: u64) {
    let digit = |n: u64| b'0' + u8::try_from(n % 10).unwrap_or(0);
    out.extend_from_slice(&[digit(number / 100), digit(number / 10), digit(number)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(target: &[u8], agent: &[u8]) -> Facts {
        let mut facts = Facts {
            bytes: b"GET".to_vec(),
            method_end: 3,
            client: Some("127.0.0.1:5000".parse().unwrap()),
            ..Facts::default()
        };
        facts.bytes.extend_from_slice(target);
        facts.target_end = facts.bytes.len();
        let agent = facts.keep(agent);
        facts.fields.extend([None, agent]);
        facts
    }

    const OUTCOME: Outcome<'static> = Outcome {
        status: 200,
        bytes: 9,
        duration_us: 104,
        route: "/",
        rpc_code: None,
        upstream_us: None,
        fault: None,
    };

    #[track_caller]
    fn check(format: &str, facts: &Facts, expected: &str) {
        let mut stamps = Stamps::new(3600);
        stamps.tell(1_769_862_896_789);
        let (mut out, format) = (Vec::new(), Format::parse(format).unwrap());
        render(&mut out, &format, &stamps, facts, OUTCOME);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.strip_suffix('\n'), Some(expected));
    }

    #[test]
    fn the_four_formats() {
        let facts = facts(b"/a?b=c", b"curl/8");
        check(
            "text",
            &facts,
            "2026-01-31 13:34:56.789 INFO  127.0.0.1:5000 - \"GET /a?b=c HTTP/1.1\" 200 9B 0.1ms",
        );
        check(
            "common",
            &facts,
            "127.0.0.1 - - [31/Jan/2026:13:34:56 +0100] \"GET /a?b=c HTTP/1.1\" 200 9",
        );
        check(
            "%(h)s %(U)s %(q)s \"%({user-agent}i)s\" %(D)s %(L)s %(route)s %(id)s",
            &Facts {
                fields: SmallVec::from_slice(&[facts.fields[1]]),
                ..facts_again()
            },
            "127.0.0.1 /a b=c \"curl/8\" 104 0.000104 / -",
        );
        check(
            "json",
            &facts,
            "{\"time\":\"2026-01-31T12:34:56.789Z\",\"client\":\"127.0.0.1:5000\",\"method\":\"GET\",\
             \"target\":\"/a?b=c\",\"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes\":9,\
             \"duration_ms\":0.104,\"route\":\"/\",\"user_agent\":\"curl/8\"}",
        );
    }

    #[test]
    fn the_code_of_a_call() {
        let mut stamps = Stamps::new(0);
        stamps.tell(1_769_862_896_789);
        let outcome = Outcome {
            rpc_code: Some("not_found"),
            ..OUTCOME
        };
        for (format, expected) in [
            ("text", "HTTP/1.1\" 200 not_found 9B"),
            (
                "json",
                "\"status\":200,\"rpc_code\":\"not_found\",\"bytes\":9",
            ),
            ("%(s)s %(rpc)s", "200 not_found"),
        ] {
            let mut out = Vec::new();
            let format = Format::parse(format).unwrap();
            render(&mut out, &format, &stamps, &facts_again(), outcome);
            let line = String::from_utf8(out).unwrap();
            assert!(line.contains(expected), "{line}");
        }
    }

    fn facts_again() -> Facts {
        facts(b"/a?b=c", b"curl/8")
    }

    #[test]
    fn nothing_a_client_sends_forges_a_line() {
        let hostile = b"/\r\n\"\\\x1b[2J\xff\xc2\x9b";
        check(
            "%(target)s",
            &facts(hostile, b""),
            r"/\x0d\x0a\x22\x5c\x1b[2J\xff\xc2\x9b",
        );
        let mut out = Vec::new();
        json_text(&mut out, "target", Some(hostile));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            ",\"target\":\"/\\u000d\\u000a\\\"\\\\\\u001b[2J\\ufffd\\u009b\""
        );
    }

    #[test]
    fn long_texts_are_cut() {
        for byte in [b'a', b'"', b'\xf0'] {
            for format in ["combined", "json", "text"] {
                let long = vec![byte; 100_000];
                let mut facts = facts(&long, &long);
                facts.fields[0] = facts.fields[1];
                let (mut out, stamps) = (Vec::new(), Stamps::new(0));
                render(
                    &mut out,
                    &Format::parse(format).unwrap(),
                    &stamps,
                    &facts,
                    OUTCOME,
                );
                assert!(out.len() < 4096, "{format}: {}", out.len());
                assert_eq!(out.split(|&b| b == b'\n').count(), 2);
            }
        }
    }
}
