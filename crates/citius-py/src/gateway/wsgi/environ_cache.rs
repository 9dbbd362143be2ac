//! Cache of environs: one for each list of field names in the same order.
//!
//! In: a head. Out: an environ of an earlier request, in which the values that differ are replaced. The application gets a copy
//! of it, or the dictionary itself for the length of its call. A dictionary is reused only if nothing else refers to it and
//! its version, which every change makes another, is unchanged (I18). Tests: `tests/wsgi/test_repeats.py`.

use std::net::SocketAddr;

use citius_base::reuse::{Spare, SpareDict};
use citius_base::support::latin;
use citius_http::head::{FieldSpan, Span};
use citius_http::{Head, Method, Version};
use citius_route::decode;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::environ::Peers;

/// The environ of heads with the same field names in the same order.
pub(super) struct CachedEnviron {
    /// Says what `head_key` and `peer` say. Absent while a request has it, and if it was lost.
    environ: Spare<SpareDict>,
    head_key: HeadKey,
    peer: Option<SocketAddr>,
    /// Of each field in turn; `None` for one that is not the application's to see.
    keys: Box<[Option<Py<PyString>>]>,
    /// One of the fields is TE.
    pub(super) has_te: bool,
}

/// Bytes of a head whose environ is cached, at most.
const HEAD_BYTES_MAX: usize = 4096;
/// Its fields.
const FIELDS_MAX: usize = 64;

/// The head that an environ was made of.
#[derive(Default)]
pub(super) struct HeadKey {
    /// Those of the head; what follows are its spans.
    bytes: Vec<u8>,
    fields: Vec<FieldSpan>,
    method: Method,
    method_span: Span,
    target: Span,
    has_query: bool,
    version: Version,
    is_verbatim: bool,
}

impl CachedEnviron {
    /// Whether the head is short enough.
    pub(super) fn is_cacheable(head: &Head) -> bool {
        head.bytes.len() <= HEAD_BYTES_MAX && head.fields.len() <= FIELDS_MAX
    }

    /// For heads like this one, whose fields have these `keys`, no two the same.
    pub(super) fn new(head: &Head, keys: Box<[Option<Py<PyString>>]>) -> Self {
        let mut head_key = HeadKey::default();
        head_key.assign(head);
        Self {
            environ: Spare::default(),
            head_key,
            peer: None,
            keys,
            has_te: head.field(b"te").is_some(),
        }
    }

    /// Whether the environ has the fields of `head`, by a comparison of bytes.
    #[inline]
    pub(super) fn matches_fields(&self, head: &Head) -> bool {
        self.head_key.matches_fields(head)
    }

    /// Whether the environ can be made to say it.
    pub(super) fn matches_names(&self, head: &Head) -> bool {
        self.head_key.matches_names(head)
    }

    /// Takes the environ out, saying what `head`, which has the names that this is for, and `peer` say.
    /// `has_fields` is what [`matches_fields`](Self::matches_fields) has found.
    #[inline]
    pub(super) fn update<'py>(
        &mut self,
        template: &Bound<'py, PyDict>,
        root: &[u8],
        head: &Head,
        has_fields: bool,
        peer: Option<SocketAddr>,
        peers: &mut Peers,
    ) -> PyResult<Bound<'py, PyDict>> {
        // After an error no environ is kept, and so none that is half updated.
        let Some(kept) = self.environ.take(template.py()) else {
            return self.build(template, root, head, peer, peers);
        };
        let environ = kept.dict.into_bound(template.py());
        if self.peer != peer {
            peers.set(&environ, peer)?;
            self.peer = peer;
        }
        let has_line = self.head_key.matches_request_line(head);
        if has_line && has_fields {
            return Ok(environ);
        }
        if !has_line {
            set_line(&environ, head, root, Some(&self.head_key))?;
        }
        if !has_fields {
            self.update_fields(&environ, head)?;
        }
        self.head_key.assign(head);
        Ok(environ)
    }

    /// Keeps the environ that [`update`](Self::update) has given out.
    #[inline]
    pub(super) fn put(&mut self, environ: Option<SpareDict>) {
        self.environ = environ.into();
    }

    #[cold]
    fn build<'py>(
        &mut self,
        template: &Bound<'py, PyDict>,
        root: &[u8],
        head: &Head,
        peer: Option<SocketAddr>,
        peers: &mut Peers,
    ) -> PyResult<Bound<'py, PyDict>> {
        let environ = template.copy()?;
        peers.set(&environ, peer)?;
        self.peer = peer;
        set_line(&environ, head, root, None)?;
        for (key, (_, value)) in self.keys.iter().zip(head.fields()) {
            if let Some(key) = key {
                environ.set_item(key, latin(template.py(), value))?;
            }
        }
        self.head_key.assign(head);
        Ok(environ)
    }

    fn update_fields(&self, environ: &Bound<'_, PyDict>, head: &Head) -> PyResult<()> {
        let head_key = self.head_key.fields.iter().zip(&head.fields);
        for (key, (head_key, field)) in self.keys.iter().zip(head_key) {
            let value = head.slice(field.value);
            if let Some(key) = key
                && self.head_key.slice(head_key.value) != value
            {
                environ.set_item(key, latin(environ.py(), value))?;
            }
        }
        Ok(())
    }
}

impl HeadKey {
    fn slice(&self, span: Span) -> &[u8] {
        &self.bytes[span.start as usize..span.end as usize]
    }

    /// What follows the target.
    fn rest(&self) -> &[u8] {
        &self.bytes[self.target.end as usize..]
    }

    #[inline]
    fn matches_request_line(&self, head: &Head) -> bool {
        self.matches_method(head)
            && self.version == head.version
            && self.slice(self.target) == head.slice(head.target)
    }

    #[inline]
    fn matches_method(&self, head: &Head) -> bool {
        self.method == head.method
            && (self.method != Method::Other
                || self.slice(self.method_span) == head.slice(head.method_span))
    }

    #[inline]
    fn matches_fields(&self, head: &Head) -> bool {
        if self.is_verbatim && head.is_verbatim {
            // The same bytes have the same spans.
            return head.bytes.get(head.target.end as usize..) == Some(self.rest());
        }
        self.bytes == head.bytes && self.fields == head.fields
    }

    fn matches_names(&self, head: &Head) -> bool {
        let is_same = |(head_key, field): (&FieldSpan, &FieldSpan)| {
            self.slice(head_key.name) == head.slice(field.name)
        };
        self.fields.len() == head.fields.len() && self.fields.iter().zip(&head.fields).all(is_same)
    }

    fn assign(&mut self, head: &Head) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&head.bytes);
        self.fields.clear();
        self.fields.extend_from_slice(&head.fields);
        self.method = head.method;
        self.method_span = head.method_span;
        self.target = head.target;
        self.has_query = head.query.is_some();
        self.version = head.version;
        self.is_verbatim = head.is_verbatim;
    }
}

/// Says what is in the request line, to an application that is mounted at `root`. What `head_key` says is in
/// `environ` already.
pub(super) fn set_line(
    environ: &Bound<'_, PyDict>,
    head: &Head,
    root: &[u8],
    head_key: Option<&HeadKey>,
) -> PyResult<()> {
    let py = environ.py();
    if head_key.is_none_or(|head_key| !head_key.matches_method(head)) {
        let method = match head.method {
            Method::Get => intern!(py, "GET").clone(),
            _ => latin(py, head.slice(head.method_span)),
        };
        environ.set_item(intern!(py, "REQUEST_METHOD"), method)?;
    }
    if head_key.is_none_or(|head_key| head_key.version != head.version) {
        let protocol = match head.version {
            Version::Http11 | Version::Rpc => intern!(py, "HTTP/1.1"),
            Version::Http2 => intern!(py, "HTTP/2"),
            Version::Http3 => intern!(py, "HTTP/3"),
            Version::Http10 => intern!(py, "HTTP/1.0"),
        };
        environ.set_item(intern!(py, "SERVER_PROTOCOL"), protocol)?;
    }
    // Even if the target is the same: what it means is for method and version to say.
    let target = latin(py, head.slice(head.target));
    environ.set_item(intern!(py, "REQUEST_URI"), &target)?;
    environ.set_item(intern!(py, "RAW_URI"), &target)?;
    let path = decode(head.path());
    // A proxy may have cut the root off or not. `*` is no path (PEP 3333 wants a slash or nothing).
    let path = match path.strip_prefix(root) {
        Some(rest) if !root.is_empty() && (rest.is_empty() || rest[0] == b'/') => rest,
        _ if *path == *b"*" => b"",
        _ => &path,
    };
    let path = if path == head.slice(head.target) {
        target
    } else {
        latin(py, path)
    };
    environ.set_item(intern!(py, "PATH_INFO"), path)?;
    if head.query.is_some() || head_key.is_none_or(|head_key| head_key.has_query) {
        environ.set_item(intern!(py, "QUERY_STRING"), latin(py, head.query()))?;
    }
    Ok(())
}
