//! Environs that serve again.
//!
//! A client says mostly the same in each of its requests, and clients of one kind send the same field
//! names in the same order. So there is one environ for each such order, which says what the latest of
//! these requests said; for the next one only what differs is set. The application gets a copy of it, a
//! copy in one piece (see `environ::template`), or the environ itself for the length of its call. What it
//! was given itself serves again only if it is untouched: nobody else has a reference to it, and its
//! version is the same, which every change makes another. Its values are strings and other objects that
//! do not change, so what one request's application does is nothing that another's can see.

use std::net::SocketAddr;

use citius_http::head::{FieldSpan, Span};
use citius_http::{Head, Method, Version};
use citius_route::decode;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::environ::Peers;
use crate::ownership::{references, version};
use crate::request::latin;

/// The environ of heads with the same field names in the same order.
pub(super) struct Recent {
    /// Says what `told` and `peer` say, and its version. Absent while a request has it, and if it was lost.
    environ: Option<(Py<PyDict>, Option<u64>)>,
    told: Told,
    peer: Option<SocketAddr>,
    /// Of each field in turn; `None` for one that is not the application's to see.
    keys: Box<[Option<Py<PyString>>]>,
}

/// Bytes of a head whose environ serves again.
const HEAD_BYTES_MAX: usize = 4096;
/// Its fields.
const FIELDS_MAX: usize = 64;

/// What an environ says of a head.
#[derive(Default)]
pub(super) struct Told {
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

impl Recent {
    /// Whether the head is short enough.
    pub(super) fn may_serve(head: &Head) -> bool {
        head.bytes.len() <= HEAD_BYTES_MAX && head.fields.len() <= FIELDS_MAX
    }

    /// For heads like this one, whose fields have these `keys`, no two the same.
    pub(super) fn new(head: &Head, keys: Box<[Option<Py<PyString>>]>) -> Self {
        let mut told = Told::default();
        told.become_of(head);
        Self {
            environ: None,
            told,
            peer: None,
            keys,
        }
    }

    /// Whether the environ says of the fields what `head` does, as far as that can be seen at a glance.
    #[inline]
    pub(super) fn has_fields_of(&self, head: &Head) -> bool {
        self.told.has_fields_of(head)
    }

    /// Whether the environ can be made to say it.
    pub(super) fn has_names_of(&self, head: &Head) -> bool {
        self.told.has_names_of(head)
    }

    /// Takes the environ out, saying what `head`, which has the names that this is for, and `peer` say.
    /// `has_fields` is what [`has_fields_of`](Self::has_fields_of) has found.
    #[inline]
    pub(super) fn tell<'py>(
        &mut self,
        template: &Bound<'py, PyDict>,
        root: &[u8],
        head: &Head,
        has_fields: bool,
        peer: Option<SocketAddr>,
        peers: &mut Peers,
    ) -> PyResult<Bound<'py, PyDict>> {
        // An error on the way leaves none behind, and so nothing that is half said.
        let kept = self.environ.take();
        // Other code may have found it since it was given back.
        let is_ours = |(environ, made): &(Py<PyDict>, Option<u64>)| {
            references(template.py(), environ) == 1 && version(environ.bind(template.py())) == *made
        };
        let Some((environ, _)) = kept.filter(is_ours) else {
            return self.tell_anew(template, root, head, peer, peers);
        };
        let environ = environ.into_bound(template.py());
        if self.peer != peer {
            peers.set(&environ, peer)?;
            self.peer = peer;
        }
        let has_line = self.told.has_line_of(head);
        if has_line && has_fields {
            return Ok(environ);
        }
        if !has_line {
            set_line(&environ, head, root, Some(&self.told))?;
        }
        if !has_fields {
            self.tell_fields(&environ, head)?;
        }
        self.told.become_of(head);
        Ok(environ)
    }

    /// Keeps the environ that [`tell`](Self::tell) has given out.
    #[inline]
    pub(super) fn give(&mut self, environ: Bound<'_, PyDict>) {
        let version = version(&environ);
        self.environ = Some((environ.unbind(), version));
    }

    #[cold]
    fn tell_anew<'py>(
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
        self.told.become_of(head);
        Ok(environ)
    }

    fn tell_fields(&self, environ: &Bound<'_, PyDict>, head: &Head) -> PyResult<()> {
        let told = self.told.fields.iter().zip(&head.fields);
        for (key, (told, field)) in self.keys.iter().zip(told) {
            let value = head.slice(field.value);
            if let Some(key) = key
                && self.told.slice(told.value) != value
            {
                environ.set_item(key, latin(environ.py(), value))?;
            }
        }
        Ok(())
    }
}

impl Told {
    fn slice(&self, span: Span) -> &[u8] {
        &self.bytes[span.start as usize..span.end as usize]
    }

    /// What follows the target.
    fn rest(&self) -> &[u8] {
        &self.bytes[self.target.end as usize..]
    }

    #[inline]
    fn has_line_of(&self, head: &Head) -> bool {
        self.has_method_of(head)
            && self.version == head.version
            && self.slice(self.target) == head.slice(head.target)
    }

    #[inline]
    fn has_method_of(&self, head: &Head) -> bool {
        self.method == head.method
            && (self.method != Method::Other
                || self.slice(self.method_span) == head.slice(head.method_span))
    }

    #[inline]
    fn has_fields_of(&self, head: &Head) -> bool {
        if self.is_verbatim && head.is_verbatim {
            // The same bytes have the same spans.
            return head.bytes.get(head.target.end as usize..) == Some(self.rest());
        }
        self.bytes == head.bytes && self.fields == head.fields
    }

    fn has_names_of(&self, head: &Head) -> bool {
        let is_same = |(told, field): (&FieldSpan, &FieldSpan)| {
            self.slice(told.name) == head.slice(field.name)
        };
        self.fields.len() == head.fields.len() && self.fields.iter().zip(&head.fields).all(is_same)
    }

    fn become_of(&mut self, head: &Head) {
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

/// Says what is in the request line, to an application that is mounted at `root`. What `told` says is in
/// `environ` already.
pub(super) fn set_line(
    environ: &Bound<'_, PyDict>,
    head: &Head,
    root: &[u8],
    told: Option<&Told>,
) -> PyResult<()> {
    let py = environ.py();
    if told.is_none_or(|told| !told.has_method_of(head)) {
        let method = match head.method {
            Method::Get => intern!(py, "GET").clone(),
            _ => latin(py, head.slice(head.method_span)),
        };
        environ.set_item(intern!(py, "REQUEST_METHOD"), method)?;
    }
    if told.is_none_or(|told| told.version != head.version) {
        let protocol = match head.version {
            Version::Http11 | Version::Rpc => intern!(py, "HTTP/1.1"),
            Version::Http2 => intern!(py, "HTTP/2"),
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
    if head.query.is_some() || told.is_none_or(|told| told.has_query) {
        environ.set_item(intern!(py, "QUERY_STRING"), latin(py, head.query()))?;
    }
    Ok(())
}
