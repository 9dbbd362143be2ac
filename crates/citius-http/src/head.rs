//! A request head: owned bytes and the spans of its parts.
//!
//! The head is copied once out of the read buffer, so that a request can
//! outlive its turn. Nothing else is copied or decoded until it is used.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::origin::Scheme;
use crate::{FAST_PATHS, Fault, Origin, Tls};

/// A stretch of [`Head::bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Index of the first byte.
    pub start: u32,
    /// Index behind the last byte.
    pub end: u32,
}

/// Where the name and the value of a field line lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSpan {
    /// The field name, as sent.
    pub name: Span,
    /// The field value, without optional white space around it.
    pub value: Span,
}

/// The methods of RFC 9110 §9 and RFC 5789; others keep their bytes in the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the methods")]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Patch,
    Connect,
    Trace,
    Other,
}

impl Method {
    /// Whether a request with it asks for nothing to be changed (RFC 9110 §9.2.1).
    #[inline]
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// The method spelled `token`; methods are case-sensitive.
    pub fn from_token(token: &[u8]) -> Self {
        match token {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"OPTIONS" => Self::Options,
            b"PATCH" => Self::Patch,
            b"CONNECT" => Self::Connect,
            b"TRACE" => Self::Trace,
            _ => Self::Other,
        }
    }
}

/// The protocol version of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the versions")]
pub enum Version {
    Http10,
    #[default]
    Http11,
    Http2,
    Http3,
    /// None of HTTP's: a call of a procedure.
    Rpc,
}

impl Version {
    /// The number alone, as ASGI and OpenTelemetry want it.
    pub const fn number(self) -> &'static str {
        match self {
            Self::Http10 => "1.0",
            Self::Http11 => "1.1",
            Self::Http2 => "2",
            Self::Http3 => "3",
            Self::Rpc => "",
        }
    }

    /// The protocol with its version, as CGI and access logs want it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
            Self::Rpc => "RPC",
        }
    }
}

/// How the end of a message body is found (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body.
    #[default]
    None,
    /// As many bytes as `Content-Length` says; at least one.
    Exact(u64),
    /// Chunks, the last of them empty; in HTTP/2 and HTTP/3 all DATA until the stream's end.
    Chunked,
}

/// A request head whose framing has been checked.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent property"
)]
pub struct Head {
    /// The head as sent, request line to blank line; one of HTTP/2 or HTTP/3 is kept in HTTP/1.1's form, its
    /// authority as `host`, its crumbs of cookie joined, an extended CONNECT's protocol as a field `:protocol`.
    pub bytes: Vec<u8>,
    /// The method, if it is a known one.
    pub method: Method,
    /// The method as sent.
    pub method_span: Span,
    /// The request target as sent.
    pub target: Span,
    /// The path of the target, still percent-encoded; `*` for `OPTIONS *`, never empty.
    pub path: Span,
    /// The query of the target without its `?`, still percent-encoded.
    pub query: Option<Span>,
    /// The protocol version.
    pub version: Version,
    /// The field lines in the order sent.
    pub fields: Vec<FieldSpan>,
    /// How the body ends.
    pub body: BodyLength,
    /// Whether the client lets the connection live on after this request.
    pub keep_alive: bool,
    /// Whether `connection` names `upgrade`: the client would rather speak what that field names (RFC 9110 §7.8).
    pub asks_upgrade: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// What a trusted proxy says of the request in place of the connection.
    pub origin: Option<Box<Origin>>,
    /// The encryption of the connection; `None` in clear text.
    pub tls: Option<Arc<Tls>>,
    /// Whether all of it but `origin` and `tls` is what HTTP/1 reads in `bytes`: the same bytes mean the same again.
    /// Code that changes another field of a head directly must unset it.
    pub is_verbatim: bool,
    /// A number that a gateway attaches to these bytes and finds again when a client repeats them; 0: none.
    /// Only for what follows from the bytes alone.
    pub app_tag: u32,
}

impl Head {
    /// Whether it is all of its request, which is a GET, and the connection stays open behind it, the default of HTTP/1.1
    /// (RFC 9112 §9.3).
    #[inline]
    pub fn is_simple(&self) -> bool {
        self.body == BodyLength::None
            && self.keep_alive
            && self.version == Version::Http11
            && self.method == Method::Get
    }

    /// The bytes of `span`; empty if it is not one of this head's.
    #[inline]
    pub fn slice(&self, span: Span) -> &[u8] {
        self.bytes
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// How the client has reached us, or the first proxy if one is believed.
    #[inline]
    pub fn scheme(&self) -> Scheme {
        let told = self.origin.as_ref().and_then(|origin| origin.scheme);
        told.unwrap_or(if self.tls.is_some() {
            Scheme::Https
        } else {
            Scheme::Http
        })
    }

    /// The path, still percent-encoded.
    #[inline]
    pub fn path(&self) -> &[u8] {
        self.slice(self.path)
    }

    /// A reference to the same target with a slash at the end of its path, or without the one that it has, for
    /// `Location`. It is relative to the last segment (RFC 3986 §4.2), so it is right behind a proxy that has
    /// removed a prefix from the path, and never names another server.
    pub fn other_slash(&self) -> Vec<u8> {
        let path = self.path();
        let (up, path, slash): (&[u8], _, &[u8]) = match path.strip_suffix(b"/") {
            Some(without) => (b"../", without, b""),
            None => (b"./", path, b"/"),
        };
        let segment = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let query: [&[u8]; 2] = match self.query {
            Some(query) => [b"?", self.slice(query)],
            None => [b"", b""],
        };
        [up, segment, slash, query[0], query[1]].concat()
    }

    /// The query without its `?`, still percent-encoded; empty where there is none.
    pub fn query(&self) -> &[u8] {
        self.query.map_or(&[], |span| self.slice(span))
    }

    /// Names and values in the order sent.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields
            .iter()
            .map(|field| (self.slice(field.name), self.slice(field.value)))
    }

    /// The first value of the field `name`, compared without regard to case.
    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        // By length first: most names differ in that, and nothing of them has to be looked at.
        let is_as_long = |span: Span| span.end.wrapping_sub(span.start) as usize == name.len();
        self.fields
            .iter()
            .find(|field| {
                is_as_long(field.name) && self.slice(field.name).eq_ignore_ascii_case(name)
            })
            .map(|field| self.slice(field.value))
    }

    /// Becomes what `other` is, in its own memory.
    #[inline]
    pub fn copy_from(&mut self, other: &Self) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&other.bytes);
        self.fields.clear();
        self.fields.extend_from_slice(&other.fields);
        self.method = other.method;
        self.method_span = other.method_span;
        self.target = other.target;
        self.path = other.path;
        self.query = other.query;
        self.version = other.version;
        self.body = other.body;
        self.keep_alive = other.keep_alive;
        self.asks_upgrade = other.asks_upgrade;
        self.expects_continue = other.expects_continue;
        self.origin.clone_from(&other.origin);
        self.tls.clone_from(&other.tls);
        self.is_verbatim = false;
        self.app_tag = 0;
    }

    /// Becomes what the log says of a call of the procedure `name`. What a request line could not have is
    /// percent-encoded, and a long name loses its end: callers choose it.
    pub fn be_call(&mut self, name: &[u8]) {
        const METHOD: &[u8; 4] = b"CALL";
        const NAME_BYTES_MAX: usize = 128;
        self.clear();
        self.method = Method::Other;
        self.version = Version::Rpc;
        self.bytes.extend_from_slice(METHOD);
        let start = 4;
        self.method_span = Span {
            start: 0,
            end: start,
        };
        for &byte in name.iter().take(NAME_BYTES_MAX) {
            match byte {
                b'!' | b'#'..=b'[' | b']'..=b'~' => self.bytes.push(byte),
                _ => {
                    let digit = |n: u8| b"0123456789ABCDEF".get(usize::from(n)).copied();
                    self.bytes.push(b'%');
                    self.bytes.extend(digit(byte >> 4));
                    self.bytes.extend(digit(byte & 0x0f));
                }
            }
        }
        let end = u32::try_from(self.bytes.len()).unwrap_or(start);
        self.target = Span { start, end };
        self.path = self.target;
    }

    /// Makes `value` the only value of the field `name`.
    pub fn set_field(&mut self, name: &[u8], value: &[u8]) {
        self.drop_field(name);
        let mut append = |bytes: &[u8]| {
            let start = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
            self.bytes.extend_from_slice(bytes);
            let end = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
            Span { start, end }
        };
        let name = append(name);
        // A line from a name's start to its value's end is one that a peer could have sent.
        append(b": ");
        let value = append(value);
        self.fields.push(FieldSpan { name, value });
    }

    /// Takes all field lines of this name away.
    pub fn drop_field(&mut self, name: &[u8]) {
        let mut fields = core::mem::take(&mut self.fields);
        fields.retain(|field| !self.slice(field.name).eq_ignore_ascii_case(name));
        self.fields = fields;
        self.is_verbatim = false;
    }

    /// Empties the head and keeps its memory.
    #[inline]
    pub fn clear(&mut self) {
        // Line by line, because moving the two vectors out and in again takes longer.
        self.bytes.clear();
        self.fields.clear();
        self.method = Method::default();
        self.method_span = Span::default();
        self.target = Span::default();
        self.path = Span::default();
        self.query = None;
        self.version = Version::default();
        self.body = BodyLength::None;
        self.keep_alive = false;
        self.asks_upgrade = false;
        self.expects_continue = false;
        self.origin = None;
        self.tls = None;
        self.is_verbatim = false;
        self.app_tag = 0;
    }
}

/// Heads that are done with, kept for their memory, and for what they say: clients repeat themselves.
#[derive(Debug, Default)]
#[expect(
    clippy::vec_box,
    reason = "a head changes owners by pointer, its memory is what is kept"
)]
pub struct HeadPool(Vec<Box<Head>>);

impl HeadPool {
    /// Heads kept at most; one turn rarely has more in flight.
    const KEPT_MAX: usize = 256;
    /// Bytes of a head above which its memory goes back to the allocator.
    const KEPT_BYTES_MAX: usize = 4096;

    /// An empty head.
    #[inline]
    #[expect(
        clippy::unnecessary_box_returns,
        reason = "the box is the thing pooled"
    )]
    pub fn take(&mut self) -> Box<Head> {
        let mut head = self.0.pop().unwrap_or_default();
        if head.is_verbatim {
            head.clear();
        }
        head
    }

    /// The head that would be taken next, if `input` begins with the very same bytes.
    #[inline]
    pub fn cached(&mut self, input: &[u8]) -> Option<Box<Head>> {
        let next = self.0.last()?;
        if FAST_PATHS
            && next.is_verbatim
            && !next.bytes.is_empty()
            && input.starts_with(&next.bytes)
        {
            self.0.pop()
        } else {
            None
        }
    }

    /// The head that was given back last, as it was, unless it has been taken or cleared since.
    pub fn latest(&self) -> Option<&Head> {
        self.0
            .last()
            .map(Box::as_ref)
            .filter(|head| !head.bytes.is_empty())
    }

    /// Takes back a head that is done with.
    #[inline]
    pub fn give(&mut self, head: Box<Head>) {
        if head.is_verbatim && head.origin.is_none() && head.tls.is_none() {
            self.keep(head);
        } else {
            self.give_changed(head);
        }
    }

    #[inline(never)]
    fn give_changed(&mut self, mut head: Box<Head>) {
        if head.is_verbatim {
            head.origin = None;
            head.tls = None;
        } else {
            head.clear();
        }
        self.keep(head);
    }

    #[inline]
    fn keep(&mut self, head: Box<Head>) {
        if self.0.len() < Self::KEPT_MAX && head.bytes.capacity() <= Self::KEPT_BYTES_MAX {
            self.0.push(head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pool: &mut HeadPool, change: impl FnOnce(&mut Head)) {
        let mut head = pool.take();
        head.bytes.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
        head.is_verbatim = true;
        change(&mut head);
        pool.give(head);
    }

    #[test]
    fn a_head_is_recalled_by_the_same_bytes_alone() {
        let mut pool = HeadPool::default();
        given(&mut pool, |head| {
            head.origin = Some(Box::default());
            head.app_tag = 7;
        });
        let head = pool.cached(b"GET / HTTP/1.1\r\n\r\nGET");
        let head = head.expect("the same bytes");
        assert_eq!(
            (head.bytes.len(), head.origin.is_none(), head.app_tag),
            (18, true, 7)
        );
        for other in [
            &b"GET / HTTP/1.1\r\n\r"[..],
            b"GET /a HTTP/1.1\r\n\r\n",
            b"",
        ] {
            given(&mut pool, |head| head.app_tag = 7);
            assert!(pool.cached(other).is_none(), "{other:?}");
            let head = pool.take();
            assert_eq!((head.bytes.len(), head.app_tag), (0, 0), "{other:?}");
        }
    }

    #[test]
    fn a_head_that_was_changed_is_not_recalled() {
        let changes: [fn(&mut Head); 4] = [
            |head| head.set_field(b"host", b"a"),
            |head| head.drop_field(b"host"),
            |head| head.be_call(b"name"),
            |head| head.copy_from(&Head::default()),
        ];
        for change in changes {
            let mut pool = HeadPool::default();
            given(&mut pool, change);
            assert!(pool.cached(b"GET / HTTP/1.1\r\n\r\n").is_none());
        }
    }
}

/// A request whose header section was refused: it never becomes a [`Head`], and the log names it nevertheless.
///
/// Method and target are as the client sent them, which may be malformed, and empty where the fault came before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedHead {
    /// The rule that was broken.
    pub fault: Fault,
    /// The version that the client speaks, as far as it is known.
    pub version: Version,
    /// The method.
    pub method: Vec<u8>,
    /// The request target, cut to [`TARGET_KEPT_BYTES`](Self::TARGET_KEPT_BYTES).
    pub target: Vec<u8>,
    /// Bytes of the content of the response to it.
    pub response_bytes: u64,
}

impl RefusedHead {
    /// Bytes of a target that are kept; a line of the log quotes no more.
    pub const TARGET_KEPT_BYTES: usize = 1024;

    /// A request of which `method` and `target` were read, and `response_bytes` of content are sent for `fault`.
    pub fn new(
        fault: Fault,
        version: Version,
        (method, target): (&[u8], &[u8]),
        response_bytes: u64,
    ) -> Self {
        let cut = |text: &[u8]| text.get(..Self::TARGET_KEPT_BYTES).unwrap_or(text).to_vec();
        Self {
            fault,
            version,
            method: cut(method),
            target: cut(target),
            response_bytes,
        }
    }
}
