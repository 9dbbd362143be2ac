//! A request as bytes: its head, with the framing that is this half's to say.

use alloc::vec::Vec;

use citius_http::fields::{is_token, is_value_byte};

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
    /// Bytes of the content, which follows the head.
    pub content_length: u64,
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
        let mut has_host = false;
        for (name, value) in fields {
            if !is_token(name) {
                return Err(Misuse::FieldName(name));
            }
            if !value.iter().all(|&byte| is_value_byte(byte)) {
                return Err(Misuse::FieldValue(name));
            }
            if OWNED.iter().any(|owned| name.eq_ignore_ascii_case(owned)) {
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
        // Methods that anticipate content say that there is none (RFC 9110 §8.6).
        if self.content_length > 0 || matches!(self.method, b"POST" | b"PUT" | b"PATCH") {
            let mut digits = itoa::Buffer::new();
            let length = digits.format(self.content_length);
            put(out, &[b"content-length: ", length.as_bytes(), b"\r\n"]);
        }
        out.extend_from_slice(b"\r\n");
        Ok(if self.method == b"HEAD" {
            Asked::Head
        } else {
            Asked::Content
        })
    }
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
        content_length: 0,
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
