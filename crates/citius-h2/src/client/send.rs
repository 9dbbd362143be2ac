//! Requests to frames.

use alloc::vec::Vec;

use citius_http::fields::{is_token, is_value};

use super::connection::{Connection, Stream};
use super::head::is_of_connection;
use crate::frame::{self, Code, FRAME_BYTES_MAX};
use crate::hpack::Indexing;

/// A request that is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a [u8],
    /// `http` or `https`.
    pub scheme: &'a [u8],
    /// Host and port, unless `host` is among the fields.
    pub authority: &'a [u8],
    /// The request target.
    pub path: &'a [u8],
    /// Bytes of its content, if that is known.
    pub content_length: Option<u64>,
    /// There is no content.
    pub ends: bool,
}

/// Why a request cannot be sent, with the name of the field that is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse<'a> {
    /// It is not a token, or `CONNECT`.
    Method,
    /// A byte that no target or authority has.
    Target,
    /// It is not a token.
    FieldName(&'a [u8]),
    /// A control byte in its value.
    FieldValue(&'a [u8]),
    /// It frames the message or speaks of the connection.
    FieldOwned(&'a [u8]),
    /// The server takes no more requests, now or any more.
    Full,
}

/// Fields whose values are secrets, or guessed easily (RFC 7541 §7.1.3).
const SECRETS: [&[u8]; 3] = [b"authorization", b"cookie", b"proxy-authorization"];
/// Fields whose values are another one each time.
const CHANGING: [&[u8]; 6] = [
    b"content-length",
    b"date",
    b"if-modified-since",
    b"range",
    b"traceparent",
    b"x-request-id",
];

impl Connection {
    /// Requests that may be begun now.
    pub fn room(&self) -> u32 {
        if self.is_going || self.next > 0x7fff_ffff {
            return 0;
        }
        self.streams_max().saturating_sub(self.open)
    }

    /// Begins a request; returns the number of its stream.
    ///
    /// # Errors
    /// It cannot be sent; nothing has been appended.
    pub fn begin<'f>(
        &mut self,
        request: &Request<'_>,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])> + Clone,
        out: &mut Vec<u8>,
    ) -> Result<u32, Misuse<'f>> {
        check(request, fields.clone())?;
        if self.room() == 0 {
            return Err(Misuse::Full);
        }
        let block = self.block(request, fields);
        let id = self.next;
        self.next = self.next.saturating_add(2);
        self.open = self.open.saturating_add(1);
        let stream = Stream::new(
            i64::from(self.peer_window),
            request.method == b"HEAD",
            request.ends,
        );
        self.streams.insert(id, stream);
        frame::headers(out, id, &block, request.ends);
        Ok(id)
    }

    /// All fields were checked: what is written into the table has to be sent.
    fn block<'f>(
        &mut self,
        request: &Request<'_>,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])> + Clone,
    ) -> Vec<u8> {
        let mut block = Vec::with_capacity(128);
        let encoder = &mut self.encoder;
        encoder.begin(&mut block);
        let is_host = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(b"host");
        let host = fields.clone().into_iter().find(is_host);
        let authority = host.map_or(request.authority, |(_, value)| value);
        encoder.field(&mut block, b":method", request.method, Indexing::Keep);
        encoder.field(&mut block, b":scheme", request.scheme, Indexing::Keep);
        encoder.field(&mut block, b":authority", authority, Indexing::Keep);
        encoder.field(&mut block, b":path", request.path, Indexing::Once);
        let mut lower = Vec::new();
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"host") {
                continue;
            }
            lower.clear();
            lower.extend(name.iter().map(u8::to_ascii_lowercase));
            encoder.field(&mut block, &lower, value.trim_ascii(), indexing(&lower));
        }
        let length = match request.content_length {
            Some(0) if !matches!(request.method, b"POST" | b"PUT" | b"PATCH") => None,
            length => length,
        };
        if let Some(length) = length {
            let mut digits = itoa::Buffer::new();
            let length = digits.format(length).as_bytes();
            encoder.field(&mut block, b"content-length", length, Indexing::Once);
        }
        block
    }

    /// Bytes of content that may be sent on a stream now.
    pub fn capacity(&self, id: u32) -> usize {
        let Some(stream) = self.streams.get(&id).filter(|it| !it.is_sent) else {
            return 0;
        };
        let window = stream.send_window.min(self.send_window);
        usize::try_from(window).unwrap_or(0)
    }

    /// Whether the request of a stream can still be sent.
    pub fn takes_content(&self, id: u32) -> bool {
        self.streams.get(&id).is_some_and(|it| !it.is_sent)
    }

    /// Appends content, at most [`capacity`](Self::capacity) of it; returns how much that was. `ends`: there is no more behind all of it.
    pub fn data(&mut self, id: u32, content: &[u8], ends: bool, out: &mut Vec<u8>) -> usize {
        let size = self.capacity(id).min(content.len());
        let is_last = ends && size == content.len();
        let Some(stream) = self.streams.get_mut(&id).filter(|it| !it.is_sent) else {
            return 0;
        };
        if size == 0 && !is_last {
            return 0;
        }
        let mut rest = content.get(..size).unwrap_or_default();
        loop {
            let (now, later) = rest.split_at(rest.len().min(FRAME_BYTES_MAX));
            frame::data(out, id, now.len(), is_last && later.is_empty());
            out.extend_from_slice(now);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        // A server opens windows for what it gets.
        if size > 0 {
            self.idle_frames = 0;
        }
        let sent = i64::try_from(size).unwrap_or(i64::MAX);
        stream.send_window = stream.send_window.saturating_sub(sent);
        stream.is_sent = is_last;
        self.send_window = self.send_window.saturating_sub(sent);
        if is_last {
            self.drop_if_over(id);
        }
        size
    }

    /// Ends content with a trailer section, whose fields were checked.
    pub fn trailers<'f>(
        &mut self,
        id: u32,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        out: &mut Vec<u8>,
    ) {
        if !self.takes_content(id) {
            return;
        }
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in fields {
            let lower = name.to_ascii_lowercase();
            self.encoder
                .field(&mut block, &lower, value.trim_ascii(), Indexing::Once);
        }
        frame::headers(out, id, &block, true);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.is_sent = true;
        }
        self.drop_if_over(id);
    }

    /// Gives a stream up.
    pub fn reset(&mut self, id: u32, out: &mut Vec<u8>) {
        if self.forget(id) {
            frame::reset(out, id, Code::Cancel);
        }
    }
}

/// Appends a question for a sign of life.
pub fn ping(out: &mut Vec<u8>) {
    frame::ping(out, b"citius\0\0", 0);
}

fn indexing(name: &[u8]) -> Indexing {
    if SECRETS.contains(&name) {
        Indexing::Never
    } else if CHANGING.contains(&name) {
        Indexing::Once
    } else {
        Indexing::Keep
    }
}

fn check<'f>(
    request: &Request<'_>,
    fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
) -> Result<(), Misuse<'f>> {
    if !is_token(request.method) || request.method == b"CONNECT" {
        return Err(Misuse::Method);
    }
    let is_visible = |bytes: &[u8]| !bytes.is_empty() && bytes.iter().all(u8::is_ascii_graphic);
    let has_fragment = request.path.contains(&b'#');
    if !is_visible(request.path) || has_fragment || !is_visible(request.authority) {
        return Err(Misuse::Target);
    }
    let mut has_host = false;
    for (name, value) in fields {
        if !is_token(name) {
            return Err(Misuse::FieldName(name));
        }
        if !is_value(value) {
            return Err(Misuse::FieldValue(name));
        }
        let lower = name.to_ascii_lowercase();
        let is_te = lower == b"te" && !value.eq_ignore_ascii_case(b"trailers");
        if is_of_connection(&lower) || is_te || lower == b"content-length" {
            return Err(Misuse::FieldOwned(name));
        }
        if lower == b"host" && (!is_visible(value) || core::mem::replace(&mut has_host, true)) {
            return Err(Misuse::FieldOwned(name));
        }
    }
    Ok(())
}
