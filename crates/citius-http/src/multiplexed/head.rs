//! Fields of a request of HTTP/2 or HTTP/3 to a [`Head`] in HTTP/1.1's form (RFC 9113 §8.2, §8.3; RFC 9114 §4.2, §4.3).
//!
//! Every field of a block is looked at, for in HTTP/2 the blocks behind it build on it; the first broken rule is kept and
//! nothing is stored from then on. Invariant: a head that comes out could have come by HTTP/1.1.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::priority::Priority;
use crate::fields::{is_forbidden_trailer, is_token, is_value, parse_decimal};
use crate::head::{FieldSpan, Span};
use crate::{BodyLength, Fault, Fields, Head, Limits, Method, Version};

/// What an entry of a table costs besides its text.
pub const ENTRY_BYTES: usize = 32;

/// What a field costs in a table, or counts for in a list (RFC 7541 §4.1, RFC 9113 §10.5.1, RFC 9204 §3.2.1).
#[inline]
pub fn entry_bytes(name: &[u8], value: &[u8]) -> usize {
    name.len()
        .saturating_add(value.len())
        .saturating_add(ENTRY_BYTES)
}

/// Pseudo-header fields and crumbs of cookie, until it is their turn; kept for its memory.
#[derive(Debug, Default)]
pub struct Scratch {
    method: Vec<u8>,
    scheme: Vec<u8>,
    authority: Vec<u8>,
    path: Vec<u8>,
    protocol: Vec<u8>,
    cookie: Vec<u8>,
    /// Which of the pseudo-header fields were there.
    seen: u8,
}

impl Scratch {
    /// Forgets the head before.
    pub fn clear(&mut self) {
        self.seen = 0;
        for part in [
            &mut self.method,
            &mut self.scheme,
            &mut self.authority,
            &mut self.path,
            &mut self.protocol,
            &mut self.cookie,
        ] {
            part.clear();
        }
    }

    /// Method and path of the head that was read last, as far as they were there.
    pub fn request_line(&self) -> (&[u8], &[u8]) {
        (&self.method, &self.path)
    }
}

const METHOD: u8 = 1;
const SCHEME: u8 = 2;
const AUTHORITY: u8 = 4;
const PATH: u8 = 8;
const PROTOCOL: u8 = 16;

/// What a head says besides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// How urgent its response is.
    pub priority: Priority,
    /// Its `content-length`.
    pub content_length: Option<u64>,
}

/// Puts one head together, field by field.
#[derive(Debug)]
pub struct Builder<'a> {
    head: &'a mut Head,
    scratch: &'a mut Scratch,
    limits: &'a Limits,
    version: Version,
    facts: Facts,
    /// Name and value bytes and 32 a field, as `SETTINGS_MAX_HEADER_LIST_SIZE` counts.
    list_bytes: usize,
    /// The pseudo-header fields are over.
    is_begun: bool,
    has_host: bool,
    extended_connect: bool,
    fault: Option<Fault>,
}

impl<'a> Builder<'a> {
    /// Into `head`, which is empty.
    pub fn new(
        head: &'a mut Head,
        scratch: &'a mut Scratch,
        limits: &'a Limits,
        version: Version,
        extended_connect: bool,
    ) -> Self {
        scratch.clear();
        Self {
            head,
            scratch,
            limits,
            version,
            facts: Facts::default(),
            list_bytes: 0,
            is_begun: false,
            has_host: false,
            extended_connect,
            fault: None,
        }
    }

    /// Takes the next field; `false`: a rule is broken, and nothing more is of use.
    pub fn take(&mut self, name: &[u8], value: &[u8]) -> bool {
        if self.fault.is_none() {
            self.fault = self.field(name, value).err();
        }
        self.fault.is_none()
    }

    /// The head is over; `ended` if no body follows.
    ///
    /// # Errors
    /// The first rule that it broke.
    pub fn finish(mut self, ended: bool) -> Result<Facts, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.begin()?;
        if !self.scratch.cookie.is_empty() {
            let cookie = core::mem::take(&mut self.scratch.cookie);
            self.push(b"cookie", &cookie);
            self.scratch.cookie = cookie;
        }
        self.head.bytes.extend_from_slice(b"\r\n");
        let length = self.facts.content_length;
        self.head.body = match (ended, length) {
            (true, Some(1..)) => return Err(Fault::LengthMismatch),
            (true, _) => BodyLength::None,
            (false, Some(length @ 1..)) => BodyLength::Exact(length),
            (false, _) => BodyLength::Chunked,
        };
        self.head.expects_continue &= !ended;
        if !self.has_host {
            return Err(Fault::HostMissing);
        }
        Ok(self.facts)
    }

    fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.list_bytes = self.list_bytes.saturating_add(entry_bytes(name, value));
        if self.list_bytes > self.limits.head_bytes_max as usize {
            return Err(Fault::HeadTooLong);
        }
        if let Some(pseudo) = name.strip_prefix(b":") {
            return self.pseudo_field(pseudo, value);
        }
        self.begin()?;
        check_field(name, value)?;
        if self.head.fields.len() >= self.limits.fields_max as usize {
            return Err(Fault::TooManyFields);
        }
        match name {
            b"host" => return self.host(value),
            // RFC 9113 §8.2.3: cookie crumbs are joined before the head is passed on.
            b"cookie" => {
                if !self.scratch.cookie.is_empty() {
                    self.scratch.cookie.extend_from_slice(b"; ");
                }
                self.scratch.cookie.extend_from_slice(value);
                return Ok(());
            }
            b"content-length" => {
                let length = parse_decimal(value).ok_or(Fault::ContentLengthSyntax)?;
                if self.facts.content_length.replace(length).is_some() {
                    return Err(Fault::ContentLengthSyntax);
                }
            }
            b"expect" if value.eq_ignore_ascii_case(b"100-continue") => {
                self.head.expects_continue = true;
            }
            b"expect" => return Err(Fault::ExpectationUnknown),
            b"priority" => self.facts.priority = Priority::parse(value),
            _ => {}
        }
        self.push(name, value);
        Ok(())
    }

    fn pseudo_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        let scratch = &mut *self.scratch;
        let (bit, place) = match name {
            b"method" => (METHOD, &mut scratch.method),
            b"scheme" => (SCHEME, &mut scratch.scheme),
            b"authority" => (AUTHORITY, &mut scratch.authority),
            b"path" => (PATH, &mut scratch.path),
            b"protocol" if self.extended_connect => (PROTOCOL, &mut scratch.protocol),
            _ => return Err(Fault::PseudoField),
        };
        if self.is_begun || scratch.seen & bit != 0 {
            return Err(Fault::PseudoField);
        }
        scratch.seen |= bit;
        place.extend_from_slice(value);
        Ok(())
    }

    /// Writes the request line and `host`, once the pseudo-header fields are over.
    #[inline]
    fn begin(&mut self) -> Result<(), Fault> {
        if self.is_begun {
            return Ok(());
        }
        self.is_begun = true;
        let scratch = core::mem::take(self.scratch);
        let result = self.request_line(&scratch);
        *self.scratch = scratch;
        result
    }

    /// Appends the request target, and takes it apart at its question mark.
    #[inline]
    fn target(&mut self, path: &[u8]) {
        let target = self.append(path);
        self.head.target = target;
        self.head.path = target;
        if let Some(length) = path.iter().position(|&byte| byte == b'?') {
            let mark = target
                .start
                .saturating_add(u32::try_from(length).unwrap_or(0));
            self.head.path.end = mark;
            self.head.query = Some(Span {
                start: mark.saturating_add(1),
                end: target.end,
            });
        }
    }

    fn request_line(&mut self, scratch: &Scratch) -> Result<(), Fault> {
        let has = |bits: u8| scratch.seen & bits == bits;
        if !has(METHOD) {
            return Err(Fault::PseudoField);
        }
        if !is_token(&scratch.method) {
            return Err(Fault::MethodSyntax);
        }
        self.head.method = Method::from_token(&scratch.method);
        let is_connect = self.head.method == Method::Connect;
        if is_connect && !has(PROTOCOL) {
            // §8.5: neither scheme nor path.
            let is_plain = has(AUTHORITY) && scratch.seen & (SCHEME | PATH) == 0;
            return Err(if is_plain {
                Fault::ConnectRefused
            } else {
                Fault::PseudoField
            });
        }
        if !has(SCHEME | PATH) || has(PROTOCOL) && !(is_connect && has(AUTHORITY)) {
            return Err(Fault::PseudoField);
        }
        if !is_scheme(&scratch.scheme) {
            return Err(Fault::PseudoField);
        }
        if scratch.path.len() > self.limits.target_bytes_max as usize {
            return Err(Fault::TargetTooLong);
        }
        let is_asterisk = scratch.path == b"*" && self.head.method == Method::Options;
        if !is_asterisk && !is_path(&scratch.path) {
            return Err(Fault::TargetSyntax);
        }
        self.head.version = self.version;
        self.head.keep_alive = true;
        self.head.method_span = self.append(&scratch.method);
        self.head.bytes.push(b' ');
        self.target(&scratch.path);
        let version: &[u8] = match self.version {
            Version::Http3 => b" HTTP/3\r\n",
            _ => b" HTTP/2\r\n",
        };
        self.head.bytes.extend_from_slice(version);
        if has(AUTHORITY) {
            self.host(&scratch.authority)?;
        }
        if has(PROTOCOL) {
            if !is_token(&scratch.protocol) {
                return Err(Fault::PseudoField);
            }
            self.push(b":protocol", &scratch.protocol);
        }
        Ok(())
    }

    /// `:authority`, or `host` in its place; both only if they say the same (§8.3.1).
    fn host(&mut self, value: &[u8]) -> Result<(), Fault> {
        if self.has_host {
            let is_same = self.head.field(b"host") == Some(value);
            return if is_same {
                Ok(())
            } else {
                Err(Fault::HostRepeated)
            };
        }
        if !is_authority(value) {
            return Err(Fault::HostSyntax);
        }
        self.has_host = true;
        self.push(b"host", value);
        Ok(())
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        let name = self.append(name);
        self.head.bytes.extend_from_slice(b": ");
        let value = self.append(value);
        self.head.bytes.extend_from_slice(b"\r\n");
        self.head.fields.push(FieldSpan { name, value });
    }

    fn append(&mut self, text: &[u8]) -> Span {
        let at = |bytes: &Vec<u8>| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let start = at(&self.head.bytes);
        self.head.bytes.extend_from_slice(text);
        Span {
            start,
            end: at(&self.head.bytes),
        }
    }
}

/// Whether a broken rule makes the message malformed (§8.1.1: the stream is reset), or is answered with its status.
pub fn is_malformed(fault: Fault) -> bool {
    fault.status().code() == 400 && fault != Fault::HostMissing
}

/// Puts a trailer section together.
#[derive(Debug)]
pub struct Trailers {
    fields: Fields,
    list_bytes: usize,
    n_fields: u32,
    fault: Option<Fault>,
}

impl Trailers {
    /// One without fields.
    #[expect(clippy::new_without_default, reason = "there is one way to make it")]
    pub fn new() -> Self {
        Self {
            fields: Fields::EMPTY,
            list_bytes: 0,
            n_fields: 0,
            fault: None,
        }
    }

    /// Takes the next field; `false`: a rule is broken, and nothing more is of use.
    pub fn take(&mut self, name: &[u8], value: &[u8], limits: &Limits) -> bool {
        if self.fault.is_none() {
            self.fault = self.field(name, value, limits).err();
        }
        self.fault.is_none()
    }

    /// The section is over.
    ///
    /// # Errors
    /// The first rule that it broke.
    pub fn finish(self) -> Result<Fields, Fault> {
        self.fault.map_or(Ok(self.fields), Err)
    }

    fn field(&mut self, name: &[u8], value: &[u8], limits: &Limits) -> Result<(), Fault> {
        self.list_bytes = self.list_bytes.saturating_add(entry_bytes(name, value));
        self.n_fields = self.n_fields.saturating_add(1);
        if self.list_bytes > limits.trailer_bytes_max as usize {
            return Err(Fault::TrailersTooLong);
        }
        if self.n_fields > limits.fields_max {
            return Err(Fault::TooManyFields);
        }
        if name.first() == Some(&b':') {
            return Err(Fault::PseudoField);
        }
        check_field(name, value)?;
        if is_forbidden_trailer(name) {
            return Err(Fault::TrailerForbidden);
        }
        self.fields.push(name, value)
    }
}

/// What holds for every field but the pseudo-header ones (§8.2.1, §8.2.2).
#[inline]
fn check_field(name: &[u8], value: &[u8]) -> Result<(), Fault> {
    if !is_token(name) || name.iter().any(u8::is_ascii_uppercase) {
        return Err(Fault::FieldNameSyntax);
    }
    let is_trimmed = !matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
    if !is_trimmed || !is_value(value) {
        return Err(Fault::FieldValueSyntax);
    }
    match name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            Err(Fault::FieldForbidden)
        }
        b"te" if value != b"trailers" => Err(Fault::FieldForbidden),
        _ => Ok(()),
    }
}

fn is_scheme(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic)
        && text
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// As in HTTP/1.1: what RFC 3986 leaves out is refused, but for a few bytes that browsers send.
fn is_path(text: &[u8]) -> bool {
    text.first() == Some(&b'/') && text.iter().all(|&byte| is_target_byte(byte))
}

const fn is_target_byte(byte: u8) -> bool {
    byte > b' ' && byte < 0x7f && byte != b'#'
}

/// Whether `text` is `uri-host [ ":" port ]` (RFC 9110 §7.2), without userinfo.
fn is_authority(text: &[u8]) -> bool {
    let (host, port) = if let Some(literal) = text.strip_prefix(b"[") {
        let Some(end) = literal.iter().position(|&byte| byte == b']') else {
            return false;
        };
        let (address, rest) = literal.split_at_checked(end).unwrap_or_default();
        let is_address =
            core::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
        (is_address, rest.get(1..).unwrap_or_default())
    } else {
        let end = text
            .iter()
            .position(|&byte| byte == b':')
            .unwrap_or(text.len());
        let (name, rest) = text.split_at_checked(end).unwrap_or_default();
        (!name.is_empty() && is_reg_name(name), rest)
    };
    let is_port = match port.strip_prefix(b":") {
        None => port.is_empty(),
        Some(b"") => true,
        Some(digits) => parse_decimal(digits).is_some_and(|port| port <= 65_535),
    };
    host && is_port
}

/// RFC 3986 §3.2.2 without the comma, which is what a proxy makes of two hosts.
fn is_reg_name(mut name: &[u8]) -> bool {
    while let [first, rest @ ..] = name {
        name = match (first, rest) {
            (b'%', [high, low, rest @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                rest
            }
            (
                b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+'
                | b';' | b'=',
                _,
            ) => rest,
            (byte, _) if byte.is_ascii_alphanumeric() => rest,
            _ => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(fields: &[(&str, &str)], ended: bool) -> Result<Head, Fault> {
        let (mut head, mut scratch, limits) =
            (Head::default(), Scratch::default(), Limits::default());
        let mut builder = Builder::new(&mut head, &mut scratch, &limits, Version::Http2, true);
        for (name, value) in fields {
            builder.take(name.as_bytes(), value.as_bytes());
        }
        builder.finish(ended).map(|_| head)
    }

    const GET: [(&str, &str); 4] = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/a?b=c"),
        (":authority", "a:80"),
    ];

    fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        GET.iter().chain(more).copied().collect()
    }

    #[test]
    fn a_head_has_the_form_of_http_1() {
        let fields = with(&[
            ("cookie", "a=b"),
            ("accept", "*/*"),
            ("cookie", "c=d"),
            ("host", "a:80"),
        ]);
        let head = build(&fields, true).expect("well-formed");
        let text = b"GET /a?b=c HTTP/2\r\nhost: a:80\r\naccept: */*\r\ncookie: a=b; c=d\r\n\r\n";
        assert_eq!(head.bytes, text);
        assert_eq!((head.path(), head.query()), (&b"/a"[..], &b"b=c"[..]));
        assert_eq!(
            (head.method, head.version, head.body),
            (Method::Get, Version::Http2, BodyLength::None)
        );
        assert_eq!(head.field(b"cookie"), Some(&b"a=b; c=d"[..]));
    }

    #[test]
    fn malformed_heads_are_refused() {
        for (more, fault) in [
            (("Accept", "x"), Fault::FieldNameSyntax),
            (("", "x"), Fault::FieldNameSyntax),
            (("x", "a\r\nb: c"), Fault::FieldValueSyntax),
            (("x", " a"), Fault::FieldValueSyntax),
            (("x", "a\0"), Fault::FieldValueSyntax),
            (("connection", "close"), Fault::FieldForbidden),
            (("transfer-encoding", "chunked"), Fault::FieldForbidden),
            (("te", "gzip"), Fault::FieldForbidden),
            ((":path", "/"), Fault::PseudoField),
            ((":other", "/"), Fault::PseudoField),
            ((":protocol", "websocket"), Fault::PseudoField),
            (("host", "b"), Fault::HostRepeated),
            (("content-length", "1"), Fault::LengthMismatch),
            (("content-length", "x"), Fault::ContentLengthSyntax),
            (("expect", "200-ok"), Fault::ExpectationUnknown),
        ] {
            assert_eq!(build(&with(&[more]), true).err(), Some(fault), "{more:?}");
        }
        let late = with(&[("x", "y"), (":protocol", "z")]);
        assert_eq!(build(&late, true).err(), Some(Fault::PseudoField));
        for (at, value, fault) in [
            (0, "G ET", Fault::MethodSyntax),
            (1, "", Fault::PseudoField),
            (2, "", Fault::TargetSyntax),
            (2, "a", Fault::TargetSyntax),
            (2, "*", Fault::TargetSyntax),
            (2, "/a b", Fault::TargetSyntax),
            (3, "u@a", Fault::HostSyntax),
            (3, "a,b", Fault::HostSyntax),
            (3, "[::1", Fault::HostSyntax),
            (3, "a:65536", Fault::HostSyntax),
        ] {
            let mut fields = GET;
            fields[at].1 = value;
            assert_eq!(build(&fields, true).err(), Some(fault), "{value}");
        }
        for (index, _) in GET.iter().enumerate() {
            let fields: Vec<_> = GET
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != index)
                .map(|(_, f)| *f)
                .collect();
            let fault = if index == 3 {
                Fault::HostMissing
            } else {
                Fault::PseudoField
            };
            assert_eq!(build(&fields, true).err(), Some(fault));
        }
    }

    #[test]
    fn connect_is_refused_or_extended() {
        let plain = [(":method", "CONNECT"), (":authority", "a:80")];
        assert_eq!(build(&plain, false).err(), Some(Fault::ConnectRefused));
        let mut extended = with(&[(":protocol", "websocket")]);
        extended[0].1 = "CONNECT";
        let head = build(&extended, false).expect("well-formed");
        assert_eq!(head.field(b":protocol"), Some(&b"websocket"[..]));
        assert_eq!(head.body, BodyLength::Chunked);
    }

    #[test]
    fn bombs_leave_nothing_behind() {
        let (mut head, mut scratch, limits) =
            (Head::default(), Scratch::default(), Limits::default());
        let mut builder = Builder::new(&mut head, &mut scratch, &limits, Version::Http2, false);
        for (name, value) in GET {
            builder.take(name.as_bytes(), value.as_bytes());
        }
        for _ in 0..10_000 {
            builder.take(b"x", &[b'v'; 4000]);
        }
        assert_eq!(builder.finish(true).err(), Some(Fault::HeadTooLong));
        assert!(head.bytes.len() <= limits.head_bytes_max as usize);
    }
}
