//! The scope of a request: the one before, corrected where this request says something else.
//!
//! The *sheet* is a scope that no application ever sees. What two requests have in common stays in it, and a
//! copy of it is one allocation and a block copy. An application that neither keeps nor changes its scope leaves
//! it to the next request, and not even a copy is made. What is mutable in a scope is each request's own
//! (`own.rs`, `fields.rs`); the rest are immutable objects, from small bounded caches where they are likely to
//! be needed again.
//!
//! Invariant: when a request gets its scope the sheet has been *settled*: nothing else can reach what is in there, and
//! nothing that an application has put anywhere is left.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Mutex;

use citius_http::origin::Client;
use citius_http::{FAST_PATHS, Head, Method, Origin, Tls, Version};
use citius_reactor::{ConnectionId, Peer, Reply};
use citius_route::decode;
use pyo3::ffi::Py_ssize_t;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::gateway::asgi::fields::{Cache, FieldList, FieldLists};
use crate::gateway::asgi::own::Own;
use crate::ownership::{references, version};
use crate::sync::lock;

/// From 2.4 on Starlette ends a stream only when `send` raises, and one that waits for its own source sends nothing:
/// up to 2.3 it listens for `http.disconnect` too. `send` raises either way.
const HTTP_SPEC_VERSION: &str = "2.3";
const WEBSOCKET_SPEC_VERSION: &str = "2.5";

/// Makes the scopes of one application.
pub(crate) struct Scopes {
    root_path: String,
    state: Py<PyDict>,
    is_debug: bool,
    /// Taken out, not locked, while a scope is made: making objects may run the garbage collector, and that
    /// Python code.
    sheet: Mutex<Option<Box<Sheet>>>,
}

/// A scope as it was last made, and what it was made from.
struct Sheet {
    scope: Py<PyDict>,
    /// The latest request's scope, as full as `scope`, and its version, if it may serve again.
    given: Option<(Py<PyDict>, u64)>,
    // What is in `scope`.
    connection: Option<ConnectionId>,
    /// `client` is in `given` alone: at one request a connection it is all that changes.
    is_client_given: bool,
    server_put: Option<Py<PyAny>>,
    method: Method,
    version: Version,
    path: Vec<u8>,
    query: Vec<u8>,
    state: Py<PyDict>,
    asgi: Own,
    extensions: Own,
    headers: FieldLists,
    // What other requests may need again.
    paths: Cache<(Py<PyString>, Py<PyBytes>)>,
    /// Both ends of each connection, by its place in the reactor's table.
    ends: Vec<Option<Ends>>,
    /// The server's own end that was made last.
    server: Option<(SocketAddr, Py<PyAny>)>,
}

/// What is the same for all requests of a connection.
struct Ends {
    generation: u32,
    client: Py<PyAny>,
    server: Py<PyAny>,
    /// The extensions of an encrypted connection, made when they are first asked for.
    secured: Option<Own>,
}

impl Scopes {
    pub(crate) fn new(root_path: &str, state: Py<PyDict>, is_debug: bool) -> Self {
        Self {
            root_path: root_path.to_owned(),
            state,
            is_debug,
            sheet: Mutex::default(),
        }
    }

    /// The scope of one request.
    #[inline]
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        head: &Head,
        reply: &Reply<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.make_for(py, head, reply, true)
    }

    #[inline]
    fn make_for<'py>(
        &self,
        py: Python<'py>,
        head: &Head,
        reply: &Reply<'_>,
        is_whole: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let sheet = lock(&self.sheet).take();
        let mut sheet = match sheet {
            Some(sheet) => sheet,
            None => Box::new(Sheet::new(py, self)?),
        };
        let made = sheet.make(py, self, head, reply, is_whole)?;
        if !FAST_PATHS {
            return Ok(made);
        }
        let replaced = lock(&self.sheet).replace(sheet);
        drop(replaced);
        Ok(made)
    }

    /// The application that has the latest scope has been stepped: what it has put there is let go, if there is
    /// something. Whether the next request may have the scope is asked when that [takes](Self::make) it.
    #[inline]
    pub(crate) fn let_go(&self, py: Python<'_>) {
        let holds_more = lock(&self.sheet)
            .as_ref()
            .is_some_and(|sheet| sheet.holds_more(py));
        if holds_more {
            self.settle(py);
        }
    }

    #[cold]
    fn settle(&self, py: Python<'_>) {
        let sheet = lock(&self.sheet).take();
        if let Some(mut sheet) = sheet
            && sheet.settle(py).is_ok()
        {
            let replaced = lock(&self.sheet).replace(sheet);
            drop(replaced);
        }
    }

    /// The scope of a request for a WebSocket.
    pub(crate) fn make_socket<'py>(
        &self,
        py: Python<'py>,
        head: &Head,
        protocols: &[String],
        reply: &Reply<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let scope = self.make_for(py, head, reply, false)?;
        scope.set_item(intern!(py, "type"), intern!(py, "websocket"))?;
        scope.del_item(intern!(py, "method"))?;
        scope.set_item(intern!(py, "asgi"), versions(py, WEBSOCKET_SPEC_VERSION)?)?;
        scope.set_item(intern!(py, "subprotocols"), protocols)?;
        let scheme = intern!(py, "scheme");
        let is_secure = scope
            .get_item(scheme)?
            .is_some_and(|scheme| scheme.eq("https").unwrap_or(false));
        scope.set_item(scheme, if is_secure { "wss" } else { "ws" })?;
        let extensions = PyDict::new(py);
        extensions.set_item("websocket.http.response", PyDict::new(py))?;
        if let Some(facts) = &head.tls {
            extensions.set_item(intern!(py, "tls"), crate::tls::extension(py, facts)?)?;
        }
        scope.set_item(intern!(py, "extensions"), extensions)?;
        Ok(scope)
    }

    /// The path decoded, and as it was sent; the root path goes before both, as ASGI wants it.
    fn path<'py>(
        &self,
        py: Python<'py>,
        raw: &[u8],
    ) -> (Bound<'py, PyString>, Bound<'py, PyBytes>) {
        let with_root = if self.root_path.is_empty() {
            Cow::Borrowed(raw)
        } else {
            Cow::Owned([self.root_path.as_bytes(), raw].concat())
        };
        let mut path = self.root_path.clone();
        path.push_str(&String::from_utf8_lossy(&decode(raw)));
        (PyString::new(py, &path), PyBytes::new(py, &with_root))
    }

    /// What the server can do beyond what all can.
    fn extensions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let extensions = PyDict::new(py);
        for name in [
            "http.response.pathsend",
            "http.response.zerocopysend",
            "http.response.trailers",
            "http.response.early_hint",
        ] {
            extensions.set_item(name, PyDict::new(py))?;
        }
        if self.is_debug {
            extensions.set_item("http.response.debug", PyDict::new(py))?;
        }
        Ok(extensions)
    }
}

/// `scope["asgi"]`.
fn versions<'py>(py: Python<'py>, spec_version: &str) -> PyResult<Bound<'py, PyDict>> {
    let versions = PyDict::new(py);
    versions.set_item(intern!(py, "version"), intern!(py, "3.0"))?;
    versions.set_item(intern!(py, "spec_version"), spec_version)?;
    Ok(versions)
}

impl Sheet {
    #[cold]
    fn new(py: Python<'_>, scopes: &Scopes) -> PyResult<Self> {
        let versions = versions(py, HTTP_SPEC_VERSION)?;
        let (mut asgi, mut extensions) = (Own::like(&versions), Own::like(&scopes.extensions(py)?));
        let state = PyDict::new(py);
        let empty = PyBytes::new(py, b"");
        let scope = PyDict::new(py);
        scope.set_item(intern!(py, "type"), intern!(py, "http"))?;
        scope.set_item(intern!(py, "asgi"), asgi.take(py)?)?;
        scope.set_item(intern!(py, "http_version"), intern!(py, "1.1"))?;
        scope.set_item(intern!(py, "method"), intern!(py, "GET"))?;
        scope.set_item(intern!(py, "scheme"), intern!(py, "http"))?;
        scope.set_item(intern!(py, "path"), "")?;
        scope.set_item(intern!(py, "raw_path"), &empty)?;
        scope.set_item(intern!(py, "query_string"), &empty)?;
        scope.set_item(intern!(py, "root_path"), &scopes.root_path)?;
        scope.set_item(intern!(py, "headers"), py.None())?;
        scope.set_item(intern!(py, "client"), py.None())?;
        scope.set_item(intern!(py, "server"), py.None())?;
        scope.set_item(intern!(py, "state"), &state)?;
        scope.set_item(intern!(py, "extensions"), extensions.take(py)?)?;
        Ok(Self {
            scope: scope.unbind(),
            given: None,
            connection: None,
            is_client_given: false,
            server_put: None,
            method: Method::Get,
            version: Version::Http11,
            path: Vec::new(),
            query: Vec::new(),
            state: state.unbind(),
            asgi,
            extensions,
            headers: FieldLists::default(),
            paths: Cache::default(),
            ends: Vec::new(),
            server: None,
        })
    }

    /// The scope of a request. `is_whole`: nobody adds to it.
    #[inline]
    fn make<'py>(
        &mut self,
        py: Python<'py>,
        scopes: &Scopes,
        head: &Head,
        reply: &Reply<'_>,
        is_whole: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        // Other code may have found something since the latest request.
        self.settle(py)?;
        if head.method != self.method || head.method == Method::Other {
            self.put(intern!(py, "method"), &method(py, head))?;
            self.method = head.method;
        }
        if head.version != self.version {
            self.put(intern!(py, "http_version"), version_name(py, head.version))?;
            self.version = head.version;
        }
        if head.path() != self.path {
            self.set_path(py, scopes, head.path())?;
        }
        if head.query() != self.query {
            self.set_query(py, head.query())?;
        }
        if self.connection != Some(reply.id().connection) {
            self.set_ends(py, reply)?;
        }
        let headers = match self.headers.list(py, head)? {
            FieldList::Latest => None,
            FieldList::Renewed(list) => {
                self.put(intern!(py, "headers"), &list)?;
                None
            }
            FieldList::Single(list) => Some(list),
        };
        let state = scopes.state.bind(py);
        let is_in_sheet =
            headers.is_none() && state.is_empty() && head.tls.is_none() && head.origin.is_none();
        if is_in_sheet && is_whole {
            return self.give(py);
        }
        self.given = None;
        let scope = self.copy(py)?;
        if let Some(headers) = headers {
            scope.set_item(intern!(py, "headers"), headers)?;
        }
        if !state.is_empty() {
            scope.set_item(intern!(py, "state"), state.copy()?)?;
        }
        if let Some(facts) = &head.tls {
            scope.set_item(intern!(py, "scheme"), intern!(py, "https"))?;
            let secured = self.secured(py, scopes, facts, reply)?;
            scope.set_item(intern!(py, "extensions"), secured)?;
        }
        if let Some(origin) = head.origin.as_deref() {
            correct(&scope, head, origin)?;
        }
        Ok(scope)
    }

    /// Puts a value into the sheet, and into the scope that serves again.
    #[inline]
    fn put(&self, key: &Bound<'_, PyString>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        self.scope.bind(py).set_item(key, value)?;
        match &self.given {
            Some((given, _)) => given.bind(py).set_item(key, value),
            None => Ok(()),
        }
    }

    /// The scope of a request that is all in the sheet.
    #[inline]
    fn give<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let scope = match &self.given {
            Some((given, _)) => given.bind(py).clone(),
            None => self.copy(py)?,
        };
        self.given = version(&scope).map(|version| (scope.clone().unbind(), version));
        Ok(scope)
    }

    /// Whether the latest request's application has kept or changed its scope, or put something into its state.
    #[inline]
    fn holds_more(&self, py: Python<'_>) -> bool {
        let is_changed = self.given.as_ref().is_some_and(|(given, made)| {
            references(py, given) != 1 || version(given.bind(py)) != Some(*made)
        });
        is_changed || !self.state.bind(py).is_empty()
    }

    /// Lets go of everything that the latest request's application knows or has changed.
    #[inline]
    fn settle(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Some((given, made)) = &self.given
            && (references(py, given) != 1 || version(given.bind(py)) != Some(*made))
        {
            self.given = None;
        }
        // Each part is known to whoever has made it, to the sheet and to the scope that serves again.
        let known = 2 + Py_ssize_t::from(self.given.is_some());
        let scope = self.scope.bind(py);
        let mut is_renewed = false;
        if !self.headers.is_as_made(py, known) {
            self.headers.forget();
            scope.set_item(intern!(py, "headers"), py.None())?;
            is_renewed = true;
        }
        if let Some(asgi) = self.asgi.renewed(py, known)? {
            scope.set_item(intern!(py, "asgi"), asgi)?;
            is_renewed = true;
        }
        if let Some(extensions) = self.extensions.renewed(py, known)? {
            scope.set_item(intern!(py, "extensions"), extensions)?;
            is_renewed = true;
        }
        if references(py, &self.state) != known || !self.state.bind(py).is_empty() {
            let state = PyDict::new(py);
            scope.set_item(intern!(py, "state"), &state)?;
            self.state = state.unbind();
            is_renewed = true;
        }
        if is_renewed {
            self.given = None;
        }
        Ok(())
    }

    fn set_path(&mut self, py: Python<'_>, scopes: &Scopes, raw: &[u8]) -> PyResult<()> {
        // No path is empty: whatever fails on the way, the next request sets its own.
        self.path.clear();
        if let Some((path, raw_path)) = self.paths.find(raw) {
            self.put(intern!(py, "path"), path.bind(py))?;
            self.put(intern!(py, "raw_path"), raw_path.bind(py))?;
        } else {
            let (path, raw_path) = scopes.path(py, raw);
            self.put(intern!(py, "path"), &path)?;
            self.put(intern!(py, "raw_path"), &raw_path)?;
            self.paths.keep(raw, (path.unbind(), raw_path.unbind()));
        }
        self.path.extend_from_slice(raw);
        Ok(())
    }

    fn set_query(&mut self, py: Python<'_>, query: &[u8]) -> PyResult<()> {
        self.put(intern!(py, "query_string"), &PyBytes::new(py, query))?;
        self.query.clear();
        self.query.extend_from_slice(query);
        Ok(())
    }

    fn set_ends(&mut self, py: Python<'_>, reply: &Reply<'_>) -> PyResult<()> {
        let connection = reply.id().connection;
        let index = connection.index as usize;
        if self.ends.len() <= index {
            self.ends.resize_with(index + 1, || None);
        }
        let known = self.ends[index].take();
        let ends = match known {
            Some(ends) if ends.generation == connection.generation => ends,
            _ => Ends {
                generation: connection.generation,
                client: end(py, reply.peer())?,
                server: self.server_end(py, reply.local())?,
                secured: None,
            },
        };
        self.connection = None;
        // Most connections have come to the same end.
        if !self
            .server_put
            .as_ref()
            .is_some_and(|put| put.is(&ends.server))
        {
            self.put(intern!(py, "server"), ends.server.bind(py))?;
            self.server_put = Some(ends.server.clone_ref(py));
        }
        if let Some((given, _)) = &self.given {
            given
                .bind(py)
                .set_item(intern!(py, "client"), &ends.client)?;
            self.is_client_given = true;
        } else {
            self.scope
                .bind(py)
                .set_item(intern!(py, "client"), &ends.client)?;
            self.is_client_given = false;
        }
        self.connection = Some(connection);
        self.ends[index] = Some(ends);
        Ok(())
    }

    /// Copies the sheet.
    fn copy<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let scope = self.scope.bind(py);
        if self.is_client_given
            && let Some(connection) = self.connection
            && let Some(ends) = &self.ends[connection.index as usize]
        {
            scope.set_item(intern!(py, "client"), &ends.client)?;
            self.is_client_given = false;
        }
        scope.copy()
    }

    fn server_end(&mut self, py: Python<'_>, local: Peer) -> PyResult<Py<PyAny>> {
        let address = local.address();
        if let (Some((known, end)), Some(address)) = (&self.server, address)
            && *known == address
        {
            return Ok(end.clone_ref(py));
        }
        let end = end(py, local)?;
        self.server = address.map(|address| (address, end.clone_ref(py)));
        Ok(end)
    }

    /// The extensions of an encrypted connection.
    #[inline(never)]
    fn secured<'py>(
        &mut self,
        py: Python<'py>,
        scopes: &Scopes,
        facts: &Tls,
        reply: &Reply<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let ends = self.ends[reply.id().connection.index as usize]
            .as_mut()
            .expect("`set_ends` has made the connection's");
        if ends.secured.is_none() {
            let example = scopes.extensions(py)?;
            example.set_item(intern!(py, "tls"), crate::tls::extension(py, facts)?)?;
            ends.secured = Some(Own::like(&example));
        }
        ends.secured.as_mut().expect("made above").take(py)
    }
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

/// The host without the brackets that an IPv6 address has in a URI.
fn unbracketed(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

/// An address as ASGI shows it: host and port, or `None`.
fn end(py: Python<'_>, peer: Peer) -> PyResult<Py<PyAny>> {
    match peer {
        Peer::Internet(address) => {
            let end = (address.ip().to_string(), address.port());
            Ok(end.into_pyobject(py)?.into_any().unbind())
        }
        Peer::Local => Ok(py.None()),
    }
}

fn version_name(py: Python<'_>, version: Version) -> &Bound<'_, PyString> {
    match version {
        Version::Http11 | Version::Rpc => intern!(py, "1.1"),
        Version::Http2 => intern!(py, "2"),
        Version::Http10 => intern!(py, "1.0"),
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
