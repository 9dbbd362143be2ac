//! The scope of a request: a dictionary, copied from a template and filled in.
//!
//! Copying a dictionary that has all its keys is one allocation and a block copy; names of fields, whole
//! field lines that clients send with each request, and paths come from small caches of immutable
//! objects. The caches are direct-mapped and bounded: nothing a client sends makes them grow, and what
//! may be a secret is never in them.

use std::borrow::Cow;
use std::sync::Mutex;

use citius_http::origin::Client;
use citius_http::{Head, Method, Origin, Tls, Version};
use citius_reactor::{ConnectionId, Peer, Reply};
use citius_route::decode;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::link::lock;

/// Makes the scopes of one application.
pub(crate) struct Scopes {
    template: Py<PyDict>,
    /// The same for WebSockets.
    socket_template: Py<PyDict>,
    root_path: String,
    state: Py<PyDict>,
    caches: Mutex<Option<Box<Caches>>>,
    /// Both ends of each connection, by its place in the reactor's table.
    ends: Mutex<Vec<Option<Ends>>>,
}

/// What is the same for all requests of a connection.
struct Ends {
    generation: u32,
    client: Py<PyAny>,
    server: Py<PyAny>,
    /// What an encrypted connection adds to the template's extensions, made when it is first asked for.
    secured: Option<Py<PyDict>>,
}

#[derive(Default)]
struct Caches {
    names: Cache<Py<PyBytes>>,
    lines: Cache<Py<PyTuple>>,
    paths: Cache<(Py<PyString>, Py<PyBytes>)>,
}

impl Scopes {
    pub(crate) fn new(
        py: Python<'_>,
        root_path: &str,
        state: &Py<PyDict>,
        is_debug: bool,
    ) -> PyResult<Self> {
        let versions = PyDict::new(py);
        versions.set_item("version", "3.0")?;
        versions.set_item("spec_version", "2.5")?;
        let extensions = PyDict::new(py);
        for name in [
            "http.response.pathsend",
            "http.response.zerocopysend",
            "http.response.trailers",
            "http.response.early_hint",
        ] {
            extensions.set_item(name, PyDict::new(py))?;
        }
        if is_debug {
            extensions.set_item("http.response.debug", PyDict::new(py))?;
        }
        let template = PyDict::new(py);
        template.set_item(intern!(py, "type"), intern!(py, "http"))?;
        template.set_item(intern!(py, "asgi"), versions)?;
        template.set_item(intern!(py, "http_version"), intern!(py, "1.1"))?;
        template.set_item(intern!(py, "method"), intern!(py, "GET"))?;
        template.set_item(intern!(py, "scheme"), intern!(py, "http"))?;
        template.set_item(intern!(py, "path"), "")?;
        template.set_item(intern!(py, "raw_path"), PyBytes::new(py, b""))?;
        template.set_item(intern!(py, "query_string"), PyBytes::new(py, b""))?;
        template.set_item(intern!(py, "root_path"), root_path)?;
        template.set_item(intern!(py, "headers"), py.None())?;
        template.set_item(intern!(py, "client"), py.None())?;
        template.set_item(intern!(py, "server"), py.None())?;
        template.set_item(intern!(py, "state"), py.None())?;
        template.set_item(intern!(py, "extensions"), extensions)?;
        let socket_extensions = PyDict::new(py);
        socket_extensions.set_item("websocket.http.response", PyDict::new(py))?;
        let socket_template = template.copy()?;
        socket_template.set_item(intern!(py, "type"), intern!(py, "websocket"))?;
        socket_template.set_item(intern!(py, "scheme"), intern!(py, "ws"))?;
        socket_template.set_item(intern!(py, "extensions"), socket_extensions)?;
        socket_template.set_item(intern!(py, "subprotocols"), py.None())?;
        socket_template.del_item(intern!(py, "method"))?;
        Ok(Self {
            socket_template: socket_template.unbind(),
            template: template.unbind(),
            root_path: root_path.to_owned(),
            state: state.clone_ref(py),
            caches: Mutex::default(),
            ends: Mutex::default(),
        })
    }

    /// The scope of one request.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        head: &Head,
        reply: &Reply<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let scope = self.template.bind(py).copy()?;
        if head.method != Method::Get {
            scope.set_item(intern!(py, "method"), method(py, head))?;
        }
        self.complete(&scope, head, reply)?;
        Ok(scope)
    }

    /// The scope of a request for a WebSocket.
    pub(crate) fn make_socket<'py>(
        &self,
        py: Python<'py>,
        head: &Head,
        protocols: &[String],
        reply: &Reply<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let scope = self.socket_template.bind(py).copy()?;
        scope.set_item(intern!(py, "subprotocols"), protocols)?;
        self.complete(&scope, head, reply)?;
        let scheme = intern!(py, "scheme");
        let is_secure = scope
            .get_item(scheme)?
            .is_some_and(|scheme| scheme.eq("https").unwrap_or(false));
        scope.set_item(scheme, if is_secure { "wss" } else { "ws" })?;
        if let Some(facts) = &head.tls {
            let extensions = PyDict::new(py);
            extensions.set_item("websocket.http.response", PyDict::new(py))?;
            extensions.set_item(intern!(py, "tls"), crate::tls::extension(py, facts)?)?;
            scope.set_item(intern!(py, "extensions"), extensions)?;
        }
        Ok(scope)
    }

    /// Puts what the request and its connection say into a copy of a template.
    #[inline]
    fn complete(&self, scope: &Bound<'_, PyDict>, head: &Head, reply: &Reply<'_>) -> PyResult<()> {
        let py = scope.py();
        // Taken out, not locked: making objects may run the garbage collector, and that Python code.
        let mut caches = lock(&self.caches).take().unwrap_or_default();
        let filled = self.fill(scope, head, &mut caches);
        *lock(&self.caches) = Some(caches);
        filled?;
        let (client, server) = self.ends(py, reply)?;
        scope.set_item(intern!(py, "client"), client)?;
        scope.set_item(intern!(py, "server"), server)?;
        scope.set_item(intern!(py, "state"), self.state.bind(py).copy()?)?;
        if let Some(facts) = &head.tls {
            scope.set_item(intern!(py, "scheme"), intern!(py, "https"))?;
            scope.set_item(intern!(py, "extensions"), self.secured(py, facts, reply)?)?;
        }
        if let Some(origin) = head.origin.as_deref() {
            Self::correct(scope, head, origin)?;
        }
        Ok(())
    }

    /// Puts what a trusted proxy says in the place of what the connection and the options say.
    #[cold]
    fn correct(scope: &Bound<'_, PyDict>, head: &Head, origin: &Origin) -> PyResult<()> {
        let py = scope.py();
        match origin.client {
            None => {}
            Some(Client::Hidden) => scope.set_item(intern!(py, "client"), py.None())?,
            Some(Client::Address(address)) => {
                scope.set_item(intern!(py, "client"), end(py, Peer::Internet(address))?)?;
            }
        }
        if let Some(scheme) = origin.scheme {
            scope.set_item(intern!(py, "scheme"), scheme.name())?;
        }
        let (host, port) = origin.server();
        if let Some(port) = port {
            // The connection's own end, where the proxy has only told the port.
            let own = scope.get_item(intern!(py, "server"))?;
            let host = match host {
                Some(host) => Some(unbracketed(host).to_owned()),
                None => own.and_then(|own| own.get_item(0).ok()?.extract().ok()),
            };
            if let Some(host) = host {
                scope.set_item(intern!(py, "server"), (host, port))?;
            }
        }
        if let Some(prefix) = &origin.prefix {
            let root_path = decode(prefix.as_bytes());
            let root_path = String::from_utf8_lossy(&root_path);
            let path = decode(head.path());
            let path = format!("{root_path}{}", String::from_utf8_lossy(&path));
            let raw_path = [prefix.as_bytes(), head.path()].concat();
            scope.set_item(intern!(py, "root_path"), root_path)?;
            scope.set_item(intern!(py, "path"), path)?;
            scope.set_item(intern!(py, "raw_path"), PyBytes::new(py, &raw_path))?;
        }
        Ok(())
    }

    #[inline]
    fn fill(&self, scope: &Bound<'_, PyDict>, head: &Head, caches: &mut Caches) -> PyResult<()> {
        let py = scope.py();
        match head.version {
            // As in the template.
            Version::Http11 | Version::Rpc => {}
            Version::Http2 => scope.set_item(intern!(py, "http_version"), intern!(py, "2"))?,
            Version::Http10 => scope.set_item(intern!(py, "http_version"), intern!(py, "1.0"))?,
        }
        let (path, raw_path) = self.path(py, head.path(), caches);
        scope.set_item(intern!(py, "path"), path)?;
        scope.set_item(intern!(py, "raw_path"), raw_path)?;
        let query = head.query();
        if !query.is_empty() {
            scope.set_item(intern!(py, "query_string"), PyBytes::new(py, query))?;
        }
        let headers = PyList::empty(py);
        for field in &head.fields {
            let line = citius_http::head::Span {
                start: field.name.start,
                end: field.value.end,
            };
            let (name, value) = (head.slice(field.name), head.slice(field.value));
            headers.append(caches.line(py, head.slice(line), name, value)?)?;
        }
        scope.set_item(intern!(py, "headers"), headers)
    }

    /// The path decoded, and as it was sent; the root path goes before both, as ASGI wants it.
    fn path<'py>(
        &self,
        py: Python<'py>,
        raw: &[u8],
        caches: &mut Caches,
    ) -> (Bound<'py, PyString>, Bound<'py, PyBytes>) {
        if let Some((path, raw_path)) = caches.paths.find(raw) {
            return (path.bind(py).clone(), raw_path.bind(py).clone());
        }
        let with_root = if self.root_path.is_empty() {
            Cow::Borrowed(raw)
        } else {
            Cow::Owned([self.root_path.as_bytes(), raw].concat())
        };
        let raw_path = PyBytes::new(py, &with_root);
        let mut path = self.root_path.clone();
        path.push_str(&String::from_utf8_lossy(&decode(raw)));
        let path = PyString::new(py, &path);
        let kept = (path.clone().unbind(), raw_path.clone().unbind());
        caches.paths.keep(raw, kept);
        (path, raw_path)
    }

    /// Both ends of the connection; made once for each.
    fn ends<'py>(
        &self,
        py: Python<'py>,
        reply: &Reply<'_>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let ConnectionId { index, generation } = reply.id().connection;
        let index = index as usize;
        if let Some(Some(ends)) = lock(&self.ends).get(index)
            && ends.generation == generation
        {
            return Ok((ends.client.bind(py).clone(), ends.server.bind(py).clone()));
        }
        let client = end(py, reply.peer())?;
        let server = end(py, reply.local())?;
        let made = Ends {
            generation,
            client: client.clone().unbind(),
            server: server.clone().unbind(),
            secured: None,
        };
        let mut ends = lock(&self.ends);
        if ends.len() <= index {
            ends.resize_with(index + 1, || None);
        }
        let replaced = ends[index].replace(made);
        drop(ends);
        drop(replaced);
        Ok((client, server))
    }
}

impl Scopes {
    /// The extensions of an encrypted connection; made once for each.
    fn secured<'py>(
        &self,
        py: Python<'py>,
        facts: &Tls,
        reply: &Reply<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        // `ends` has made the connection's entry.
        let index = reply.id().connection.index as usize;
        if let Some(Some(Ends {
            secured: Some(made),
            ..
        })) = lock(&self.ends).get(index)
        {
            return Ok(made.bind(py).clone());
        }
        let template = self.template.bind(py).get_item(intern!(py, "extensions"))?;
        let made = match template {
            Some(template) => template.cast::<PyDict>()?.copy()?,
            None => PyDict::new(py),
        };
        made.set_item(intern!(py, "tls"), crate::tls::extension(py, facts)?)?;
        if let Some(Some(ends)) = lock(&self.ends).get_mut(index) {
            ends.secured = Some(made.clone().unbind());
        }
        Ok(made)
    }
}

/// The host without the brackets that an IPv6 address has in a URI.
fn unbracketed(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

/// An address as ASGI shows it: host and port, or `None`.
fn end(py: Python<'_>, peer: Peer) -> PyResult<Bound<'_, PyAny>> {
    match peer {
        Peer::Internet(address) => {
            let end = (address.ip().to_string(), address.port());
            Ok(end.into_pyobject(py)?.into_any())
        }
        Peer::Local => Ok(py.None().into_bound(py)),
    }
}

fn method<'py>(py: Python<'py>, head: &Head) -> Bound<'py, PyString> {
    let known = match head.method {
        Method::Get => intern!(py, "GET"),
        Method::Head => intern!(py, "HEAD"),
        Method::Post => intern!(py, "POST"),
        Method::Put => intern!(py, "PUT"),
        Method::Delete => intern!(py, "DELETE"),
        Method::Options => intern!(py, "OPTIONS"),
        Method::Patch => intern!(py, "PATCH"),
        Method::Connect => intern!(py, "CONNECT"),
        Method::Trace => intern!(py, "TRACE"),
        // ASGI wants methods in upper case.
        Method::Other => {
            let method = head.slice(head.method_span).to_ascii_uppercase();
            return PyString::new(py, &String::from_utf8_lossy(&method));
        }
    };
    known.clone()
}

impl Caches {
    /// Name and value of a field; `line` is what the client sent of both.
    #[inline]
    fn line<'py>(
        &mut self,
        py: Python<'py>,
        line: &[u8],
        name: &[u8],
        value: &[u8],
    ) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(pair) = self.lines.find(line) {
            return Ok(pair.bind(py).clone());
        }
        let name = self.name(py, name);
        let pair = PyTuple::new(py, [&name, &PyBytes::new(py, value)])?;
        if is_repeated(name.as_bytes()) {
            self.lines.keep(line, pair.clone().unbind());
        }
        Ok(pair)
    }

    fn name<'py>(&mut self, py: Python<'py>, name: &[u8]) -> Bound<'py, PyBytes> {
        if let Some(known) = self.names.find(name) {
            return known.bind(py).clone();
        }
        let made = PyBytes::new(py, &name.to_ascii_lowercase());
        self.names.keep(name, made.clone().unbind());
        made
    }
}

/// Fields whose values a client repeats with every request, and which are no secrets.
fn is_repeated(name: &[u8]) -> bool {
    matches!(
        name,
        b"host"
            | b"user-agent"
            | b"accept"
            | b"accept-encoding"
            | b"accept-language"
            | b"connection"
            | b"content-type"
            | b"content-length"
            | b"transfer-encoding"
            | b"cache-control"
            | b"pragma"
            | b"origin"
            | b"dnt"
            | b"te"
            | b"priority"
            | b"upgrade-insecure-requests"
            | b"x-forwarded-proto"
            | b"x-forwarded-host"
    ) || name.starts_with(b"sec-")
}

/// A direct-mapped cache of objects made from bytes.
struct Cache<T> {
    slots: Box<[Slot<T>]>,
}

/// The bytes, and what was made of them.
type Slot<T> = Option<(Box<[u8]>, T)>;

impl<T> Cache<T> {
    const SLOTS: usize = 256;
    const KEY_BYTES_MAX: usize = 256;

    /// Eight bytes at a time, mixed by a multiplication. A client that finds keys which meet in one slot
    /// makes its own requests a little slower.
    #[inline]
    fn slot_of(key: &[u8]) -> usize {
        let mut hash = key.len() as u64;
        for piece in key.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            hash = (hash.rotate_left(5) ^ u64::from_le_bytes(word))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        // The upper bits are the ones that all bytes have gone into.
        (hash >> 56) as usize % Self::SLOTS
    }

    #[inline]
    fn find(&self, key: &[u8]) -> Option<&T> {
        match &self.slots[Self::slot_of(key)] {
            Some((known, value)) if **known == *key => Some(value),
            _ => None,
        }
    }

    /// Keeps `value` in the place of whatever was there.
    fn keep(&mut self, key: &[u8], value: T) {
        if key.len() <= Self::KEY_BYTES_MAX {
            self.slots[Self::slot_of(key)] = Some((key.into(), value));
        }
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self {
            slots: (0..Self::SLOTS).map(|_| None).collect(),
        }
    }
}
