//! Heads of responses: [`ResponseHead`] in, bytes out (RFC 9112 §4–§6).
//!
//! One reservation, then plain copies: a small response costs no allocation once the write queue has
//! its size. Invariant: nothing an application gave can end a line early; its fields were checked when they
//! were built, its media type is checked by the caller.

use alloc::vec::Vec;
use core::ptr;

use citius_http::{
    FAST_PATHS, Fault, Fields, Metadata, Output, Payload, PlainResponse, ResponseHead, Status,
};

use crate::Context;

/// How the client finds the end of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The status says that there is none.
    Bodiless,
    /// `content-length`.
    Length(u64),
    /// `transfer-encoding: chunked`.
    Chunked,
    /// The end of the connection.
    UntilClose,
}

/// What the client is told about the life of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Nothing: HTTP/1.1 connections live on.
    Implied,
    /// `connection: keep-alive`, for HTTP/1.0.
    KeepAlive,
    /// `connection: close`.
    Close,
}

/// The head of the last plain 200: most responses begin like the one before, and many are as long.
///
/// One copy in place of nine, and a media type that is known to be valid. The caller that keeps one
/// between calls must [`clear`](Template::clear) it when the server or date line changes.
#[derive(Debug, Default)]
pub struct Template {
    /// The whole head; empty at first.
    bytes: Vec<u8>,
    media_type: Vec<u8>,
    /// Whether it says more than every response of that type does.
    has_fields: bool,
    /// What it is of, as the last [`PlainResponse`] gave it, to be known by its address.
    plain: Option<&'static Metadata>,
    /// Where in `bytes` the digits of the length begin.
    length_at: usize,
    /// The length they say.
    length: u64,
}

impl Template {
    /// Forgets the head.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.media_type.clear();
        self.has_fields = false;
        self.plain = None;
    }

    /// Whether the last plain response was of the very same.
    #[inline]
    fn is_of(&self, metadata: &'static Metadata) -> bool {
        FAST_PATHS && self.plain.is_some_and(|plain| ptr::eq(plain, metadata))
    }

    /// Whether the last plain 200 had this media type, which has been checked then, and said nothing else.
    #[inline]
    pub(crate) fn is_for(&self, media_type: &[u8]) -> bool {
        FAST_PATHS && self.media_type == media_type && !media_type.is_empty() && !self.has_fields
    }

    #[cold]
    fn make(
        &mut self,
        server: &[u8],
        date: &[u8],
        default_fields: &Fields,
        media_type: &[u8],
        fields: &Fields,
        length: u64,
    ) {
        self.clear();
        self.media_type.extend_from_slice(media_type);
        self.has_fields = !fields.is_empty();
        for part in [b"HTTP/1.1 200 OK\r\n", server, date] {
            self.bytes.extend_from_slice(part);
        }
        let response = ResponseHead {
            status: Status::OK,
            content_type: Some(media_type),
            fields,
        };
        default_field_lines(&mut self.bytes, default_fields, &response);
        for part in [
            b"content-type: ",
            media_type,
            b"\r\n",
            fields.lines(),
            b"content-length: ",
        ] {
            self.bytes.extend_from_slice(part);
        }
        self.length_at = self.bytes.len();
        self.set_length(length);
    }

    fn set_length(&mut self, length: u64) {
        self.length = length;
        self.bytes.truncate(self.length_at);
        self.bytes
            .extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        self.bytes.extend_from_slice(b"\r\n\r\n");
    }
}

/// Appends the head of a 200 with a media type, a length and nothing else to say; `is_known` if
/// [`Template::is_for`] that type.
#[inline]
pub(crate) fn plain_head(
    out: &mut Vec<u8>,
    cx: &mut Context<'_>,
    media_type: &[u8],
    is_known: bool,
    length: u64,
    body_bytes: usize,
) {
    let template = &mut *cx.template;
    if !is_known {
        let fields = const { &Fields::EMPTY };
        template.make(
            cx.server,
            cx.date,
            cx.default_fields,
            media_type,
            fields,
            length,
        );
    } else if template.length != length {
        template.set_length(length);
    }
    let head = template.bytes.as_slice();
    out.reserve(head.len().saturating_add(body_bytes));
    out.extend_from_slice(head);
}

/// Appends a plain response: its head and its body.
#[inline]
pub(crate) fn plain(out: &mut Vec<u8>, cx: &mut Context<'_>, plain: PlainResponse<'_>) {
    let length = plain.body.len() as u64;
    if !cx.template.is_of(plain.metadata) {
        make_plain(cx, plain.metadata, length);
    } else if cx.template.length != length {
        cx.template.set_length(length);
    }
    let head = cx.template.bytes.as_slice();
    out.reserve(head.len().wrapping_add(plain.body.len()));
    out.extend_from_slice(head);
    out.extend_from_slice(plain.body);
}

#[cold]
fn make_plain(cx: &mut Context<'_>, metadata: &'static Metadata, length: u64) {
    let Metadata { media_type, fields } = metadata;
    cx.template.make(
        cx.server,
        cx.date,
        cx.default_fields,
        media_type,
        fields,
        length,
    );
    cx.template.plain = Some(metadata);
}

/// Appends the head of a final response; room for `body_bytes` more is reserved with it.
#[inline]
pub(crate) fn final_head(
    out: &mut Vec<u8>,
    cx: &Context<'_>,
    response: &ResponseHead<'_>,
    framing: Framing,
    persistence: Persistence,
    body_bytes: usize,
) {
    let media_type = response.content_type.unwrap_or_default();
    let fields = response.fields;
    // Status line, names and separators, length and persistence take at most 160 bytes.
    out.reserve(
        [
            cx.server.len(),
            cx.date.len(),
            cx.default_fields.lines().len(),
            media_type.len(),
            fields.lines().len(),
            fields.reason.len(),
            body_bytes,
        ]
        .into_iter()
        .fold(160, usize::saturating_add),
    );
    status_line(out, response.status, &fields.reason);
    if !fields.has_server {
        out.extend_from_slice(cx.server);
    }
    if !fields.has_date {
        out.extend_from_slice(cx.date);
    }
    if !cx.default_fields.is_empty() {
        default_field_lines(out, cx.default_fields, response);
    }
    if response.content_type.is_some() && !fields.has_content_type {
        out.extend_from_slice(b"content-type: ");
        out.extend_from_slice(media_type);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(fields.lines());
    // RFC 9110 §15.5.22: with what it requires; there is one protocol that applications can ask for.
    if response.status.code() == 426 {
        out.extend_from_slice(b"connection: upgrade\r\nupgrade: websocket\r\n");
    }
    match persistence {
        Persistence::Implied => {}
        Persistence::KeepAlive => out.extend_from_slice(b"connection: keep-alive\r\n"),
        Persistence::Close => out.extend_from_slice(b"connection: close\r\n"),
    }
    match framing {
        Framing::Length(length) => {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            out.extend_from_slice(b"\r\n\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n"),
        Framing::Bodiless | Framing::UntilClose => out.extend_from_slice(b"\r\n"),
    }
}

/// Appends an informational response.
pub(crate) fn informational(out: &mut Vec<u8>, response: &ResponseHead<'_>) {
    status_line(out, response.status, &response.fields.reason);
    if let (Some(media_type), false) = (response.content_type, response.fields.has_content_type) {
        out.extend_from_slice(b"content-type: ");
        out.extend_from_slice(media_type);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(response.fields.lines());
    out.extend_from_slice(b"\r\n");
}

/// Appends the response that grants `protocol` (RFC 9110 §7.8).
pub(crate) fn switching(out: &mut Vec<u8>, cx: &Context<'_>, protocol: &[u8], fields: &Fields) {
    out.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ");
    out.extend_from_slice(protocol);
    out.extend_from_slice(b"\r\n");
    let response = ResponseHead {
        status: Status::OK,
        content_type: None,
        fields,
    };
    default_field_lines(out, cx.default_fields, &response);
    out.extend_from_slice(fields.lines());
    out.extend_from_slice(b"\r\n");
}

/// Appends the server's own response to `fault`; `head_only` for one to HEAD.
pub(crate) fn fault(
    out: &mut Output,
    cx: &Context<'_>,
    fault: Fault,
    persistence: Persistence,
    head_only: bool,
) {
    let text = fault.told();
    let fields = match fault {
        Fault::Overloaded => retry_after(),
        _ => Fields::EMPTY,
    };
    let response = ResponseHead {
        fields: &fields,
        ..ResponseHead::text(fault.status())
    };
    let length = text.len().saturating_add(1);
    let framing = Framing::Length(length as u64);
    final_head(out.tail(), cx, &response, framing, persistence, length);
    if !head_only {
        out.tail().extend_from_slice(text.as_bytes());
        out.tail().push(b'\n');
    }
}

/// Bytes of the content that [`fault`] writes: the text and the end of its line.
pub(crate) fn fault_bytes(fault: Fault) -> u64 {
    fault.told().len().saturating_add(1) as u64
}

/// Appends one chunk; `payload` is not empty, for an empty chunk would end the body.
pub(crate) fn chunk(out: &mut Output, payload: Payload<'_>) {
    let mut digits = [0u8; 16];
    let mut rest = payload.len();
    let mut start = digits.len();
    for (index, slot) in digits.iter_mut().enumerate().rev() {
        *slot = b"0123456789abcdef"
            .get((rest % 16) as usize)
            .copied()
            .unwrap_or_default();
        start = index;
        rest /= 16;
        if rest == 0 {
            break;
        }
    }
    let size = digits.get(start..).unwrap_or_default();
    out.tail().extend_from_slice(size);
    out.tail().extend_from_slice(b"\r\n");
    out.push(payload);
    out.tail().extend_from_slice(b"\r\n");
}

/// Appends the end of a chunked body.
pub(crate) fn last_chunk(out: &mut Vec<u8>, trailers: &Fields) {
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(trailers.lines());
    out.extend_from_slice(b"\r\n");
}

/// Appends those of `default_fields` that `response` leaves to the server.
#[cold]
fn default_field_lines(out: &mut Vec<u8>, default_fields: &Fields, response: &ResponseHead<'_>) {
    for (name, value) in response.missing_defaults(default_fields) {
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
}

#[inline]
fn status_line(out: &mut Vec<u8>, status: Status, reason: &[u8]) {
    if status == Status::OK && reason.is_empty() {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        other_status_line(out, status, reason);
    }
}

fn other_status_line(out: &mut Vec<u8>, status: Status, reason: &[u8]) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status.code()).as_bytes());
    out.push(b' ');
    out.extend_from_slice(match reason {
        [] => status.reason().as_bytes(),
        own => own,
    });
    out.extend_from_slice(b"\r\n");
}

fn retry_after() -> Fields {
    let mut fields = Fields::default();
    fields
        .push(b"retry-after", b"1")
        .expect("a token and a digit");
    fields
}
