//! A request as bytes: its head, with the framing that is this half's to say.

use alloc::vec::Vec;

use citius_http::fields::{is_token, is_value};

use super::Asked;
use crate::scan;

/// A request that is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The request target.
    pub target: &'a [u8],
    /// The value of `host`, unless it is among the fields.
    pub authority: &'a [u8],
    /// The content, which follows the head.
    pub content: Content,
    /// A WebSocket may be asked for, by the field `upgrade`.
    pub upgrades: bool,
}

/// How the end of a request's content is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// So many bytes follow.
    Length(u64),
    /// Chunks follow ([`encode_chunk`]), and an end ([`encode_last_chunk`]).
    Chunked,
}

/// Why a request cannot be sent, with the name of the field that is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse<'a> {
    /// It is not a token, or `CONNECT`, whose target is of another form.
    Method,
    /// A byte that no target has.
    Target,
    /// A byte that no authority has.
    Authority,
    /// It is not a token.
    FieldName(&'a [u8]),
    /// A control byte in its value.
    FieldValue(&'a [u8]),
    /// It frames the message or speaks of the connection.
    FieldOwned(&'a [u8]),
}

/// Fields that say how the message is framed, which is not the caller's to say.
const OWNED: [&[u8]; 5] = [
    b"content-length",
    b"transfer-encoding",
    b"connection",
    b"upgrade",
    b"te",
];

/// Fields that no trailer section may have (RFC 9110 §6.5.1): they frame, route or authenticate the message.
const NO_TRAILERS: [&[u8]; 12] = [
    b"host",
    b"content-encoding",
    b"content-type",
    b"content-range",
    b"trailer",
    b"authorization",
    b"proxy-authorization",
    b"cookie",
    b"expect",
    b"max-forwards",
    b"cache-control",
    b"range",
];

impl Request<'_> {
    /// Appends the head; returns what a [`Connection`](super::Connection) is to be told.
    ///
    /// # Errors
    /// What cannot be sent without another reading; a part of the head may have been appended.
    pub fn encode<'f>(
        &self,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<Asked, Misuse<'f>> {
        if !is_token(self.method) || self.method == b"CONNECT" {
            return Err(Misuse::Method);
        }
        let is_visible = |bytes: &[u8]| scan::target_run(bytes, bytes) == bytes.len();
        if self.target.is_empty() || !is_visible(self.target) {
            return Err(Misuse::Target);
        }
        if !is_visible(self.authority) {
            return Err(Misuse::Authority);
        }
        put(out, &[self.method, b" ", self.target, b" HTTP/1.1\r\n"]);
        let (mut has_host, mut is_upgrade) = (false, false);
        for (name, value) in fields {
            check_field(name, value)?;
            if is_owned(name) {
                // The only coding of transfer that may be asked for beside that of the connection (RFC 9110 §10.1.4).
                if name.eq_ignore_ascii_case(b"te") && value.eq_ignore_ascii_case(b"trailers") {
                    put(out, &[b"te: trailers\r\nconnection: te\r\n"]);
                    continue;
                }
                let is_websocket = name.eq_ignore_ascii_case(b"upgrade")
                    && value.eq_ignore_ascii_case(b"websocket");
                if self.upgrades && is_websocket && !core::mem::replace(&mut is_upgrade, true) {
                    put(out, &[b"upgrade: websocket\r\nconnection: upgrade\r\n"]);
                    continue;
                }
                return Err(Misuse::FieldOwned(name));
            }
            if name.eq_ignore_ascii_case(b"host") && core::mem::replace(&mut has_host, true) {
                return Err(Misuse::FieldOwned(name));
            }
            put(out, &[name, b": ", value, b"\r\n"]);
        }
        if !has_host {
            put(out, &[b"host: ", self.authority, b"\r\n"]);
        }
        match self.content {
            // Methods that anticipate content say that there is none (RFC 9110 §8.6).
            Content::Length(0) if !matches!(self.method, b"POST" | b"PUT" | b"PATCH") => {}
            Content::Length(length) => {
                let mut digits = itoa::Buffer::new();
                let length = digits.format(length);
                put(out, &[b"content-length: ", length.as_bytes(), b"\r\n"]);
            }
            Content::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        }
        out.extend_from_slice(b"\r\n");
        Ok(if is_upgrade {
            Asked::Upgrade
        } else if self.method == b"HEAD" {
            Asked::Head
        } else {
            Asked::Content
        })
    }
}

/// Appends a piece of content as a chunk; nothing for an empty one, which would end the content.
pub fn encode_chunk(data: &[u8], out: &mut Vec<u8>) {
    if data.is_empty() {
        return;
    }
    let size = alloc::format!("{:x}\r\n", data.len());
    put(out, &[size.as_bytes(), data, b"\r\n"]);
}

/// Appends the end of content in chunks, with its trailer section.
///
/// # Errors
/// A field that no trailer section may have; nothing has been appended.
pub fn encode_last_chunk<'f>(
    trailers: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
    out: &mut Vec<u8>,
) -> Result<(), Misuse<'f>> {
    let start = out.len();
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        if let Err(misuse) = check_trailer(name, value) {
            out.truncate(start);
            return Err(misuse);
        }
        put(out, &[name, b": ", value, b"\r\n"]);
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Whether a field may be in a trailer section of a request.
///
/// # Errors
/// It may not.
pub fn check_trailer<'f>(name: &'f [u8], value: &[u8]) -> Result<(), Misuse<'f>> {
    check_field(name, value)?;
    let is_forbidden = |other: &&[u8]| name.eq_ignore_ascii_case(other);
    if is_owned(name) || NO_TRAILERS.iter().any(is_forbidden) {
        return Err(Misuse::FieldOwned(name));
    }
    Ok(())
}

/// Whether a field can be sent without another reading.
///
/// # Errors
/// It cannot.
pub fn check_field<'f>(name: &'f [u8], value: &[u8]) -> Result<(), Misuse<'f>> {
    if !is_token(name) {
        return Err(Misuse::FieldName(name));
    }
    if !is_value(value) {
        return Err(Misuse::FieldValue(name));
    }
    Ok(())
}

/// Whether a field is the client's own to say.
pub fn is_owned(name: &[u8]) -> bool {
    OWNED.iter().any(|owned| name.eq_ignore_ascii_case(owned))
}

fn put(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: Request<'_> = Request {
        method: b"GET",
        target: b"/a?b",
        authority: b"a:1",
        content: Content::Length(0),
        upgrades: false,
    };

    fn encoded<'f>(
        request: Request<'_>,
        fields: &[(&'f [u8], &'f [u8])],
    ) -> Result<Vec<u8>, Misuse<'f>> {
        let mut out = Vec::new();
        request.encode(fields.iter().copied(), &mut out)?;
        Ok(out)
    }

    #[test]
    fn says_host_and_length_itself() {
        assert_eq!(
            encoded(GET, &[(b"x", b"y")]).as_deref(),
            Ok(&b"GET /a?b HTTP/1.1\r\nx: y\r\nhost: a:1\r\n\r\n"[..])
        );
        let post = Request {
            method: b"POST",
            ..GET
        };
        assert_eq!(
            encoded(post, &[(b"Host", b"b")]).as_deref(),
            Ok(&b"POST /a?b HTTP/1.1\r\nHost: b\r\ncontent-length: 0\r\n\r\n"[..])
        );
    }

    #[test]
    fn content_of_unknown_length_is_in_chunks() {
        let chunked = Request {
            content: Content::Chunked,
            ..GET
        };
        assert_eq!(
            encoded(chunked, &[(b"TE", b"trailers")]).as_deref(),
            Ok(&b"GET /a?b HTTP/1.1\r\nte: trailers\r\nconnection: te\r\nhost: a:1\r\ntransfer-encoding: chunked\r\n\r\n"[..])
        );
        let mut out = Vec::new();
        encode_chunk(b"", &mut out);
        encode_chunk(&[b'x'; 17], &mut out);
        assert_eq!(out, b"11\r\nxxxxxxxxxxxxxxxxx\r\n");
        out.clear();
        let forbidden: [(&[u8], &[u8]); 2] = [(b"a", b"b"), (b"Content-Length", b"3")];
        let refused = encode_last_chunk(forbidden, &mut out);
        assert_eq!(refused, Err(Misuse::FieldOwned(b"Content-Length")));
        assert!(out.is_empty());
        let fields: [(&[u8], &[u8]); 1] = [(b"a", b"b")];
        assert_eq!(encode_last_chunk(fields, &mut out), Ok(()));
        assert_eq!(out, b"0\r\na: b\r\n\r\n");
    }

    #[test]
    fn a_response_to_head_is_known_by_its_request() {
        let head = Request {
            method: b"HEAD",
            ..GET
        };
        let mut out = Vec::new();
        assert_eq!(head.encode([], &mut out), Ok(Asked::Head));
        assert_eq!(GET.encode([], &mut out), Ok(Asked::Content));
    }

    #[test]
    fn nothing_of_the_caller_ends_a_line() {
        for bad in [&b"a\r\nb: c"[..], b"a\nb", b"a\0", b"a\x7f", b"\x01"] {
            let refused = Err(Misuse::FieldValue(b"x"));
            assert_eq!(encoded(GET, &[(b"x", bad)]), refused, "{bad:?}");
            let refused = Err(Misuse::FieldName(bad));
            assert_eq!(encoded(GET, &[(bad, b"y")]), refused, "{bad:?}");
            let method = Request { method: bad, ..GET };
            assert_eq!(encoded(method, &[]), Err(Misuse::Method), "{bad:?}");
            let target = Request { target: bad, ..GET };
            assert_eq!(encoded(target, &[]), Err(Misuse::Target), "{bad:?}");
            let authority = Request {
                authority: bad,
                ..GET
            };
            assert_eq!(encoded(authority, &[]), Err(Misuse::Authority), "{bad:?}");
        }
        for bad in [&b""[..], b"/a b", b"/a#b", b"/\xc3\xa9"] {
            let target = Request { target: bad, ..GET };
            assert_eq!(encoded(target, &[]), Err(Misuse::Target), "{bad:?}");
        }
    }

    #[test]
    fn framing_is_not_the_callers() {
        for owned in OWNED {
            let refused = Err(Misuse::FieldOwned(owned));
            assert_eq!(encoded(GET, &[(owned, b"1")]), refused);
        }
        let twice: [(&[u8], &[u8]); 2] = [(b"host", b"a"), (b"Host", b"b")];
        assert_eq!(encoded(GET, &twice), Err(Misuse::FieldOwned(b"Host")));
        let connect = Request {
            method: b"CONNECT",
            ..GET
        };
        assert_eq!(encoded(connect, &[]), Err(Misuse::Method));
    }
}
