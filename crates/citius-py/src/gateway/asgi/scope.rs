//! The scope of a request: a copy of a template, in which only what differs from the request before is set anew.
//!
//! The *template* is a scope that no application sees. A scope that the application neither kept nor changed goes to the next
//! request without a copy. Mutable values belong to one request at a time (`reusable_dict.rs`, `scope_headers.rs`); the others
//! come from bounded caches. Invariant (I18): before a request gets its scope, everything that an earlier application can
//! reach is replaced. Tests: `tests/asgi/test_isolation.py`.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Mutex;

use citius_base::reuse::{Known, Reuse, Spare, SpareDict};
use citius_base::sync::lock;
use citius_http::origin::Client;
use citius_http::{FAST_PATHS, Head, Method, Origin, Tls, Version};
use citius_reactor::{ConnectionId, Peer, Reply};
use citius_route::decode;
use pyo3::ffi::Py_ssize_t;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::gateway::asgi::reusable_dict::ReusableDict;
use crate::gateway::asgi::scope_headers::{Cache, FieldList, FieldLists};
use crate::request::ip_text;

/// From 2.4 on `send` raises when the client has gone, and Starlette ends a stream only by that: one that waits for its own
/// source sends nothing. Up to 2.3 `send` does nothing then, and Starlette listens for `http.disconnect`, ends the stream and
/// runs its background tasks.
const HTTP_SPEC_VERSION: &str = "2.3";
const WEBSOCKET_SPEC_VERSION: &str = "2.5";

/// Makes the scopes of one application.
pub(crate) struct ScopeFactory {
    root_path: String,
    state: Py<PyDict>,
    is_debug: bool,
    /// Taken out, not locked, while a scope is made: making objects may run the garbage collector, and that
    /// Python code.
    template: Mutex<Option<Box<ScopeTemplate>>>,
}

/// A scope as it was last made, and what it was made from.
struct ScopeTemplate {
    scope: Py<PyDict>,
    /// The latest request's scope, as full as `scope`.
    reusable: Spare<SpareDict>,
    // What is in `scope`.
    connection: Option<ConnectionId>,
    /// `client` is in `reusable` alone: at one request a connection it is all that changes.
    is_client_in_reusable: bool,
    server_in_template: Option<Py<PyAny>>,
    method: Method,
    version: Version,
    path: Vec<u8>,
    query: Vec<u8>,
    state: Spare<State>,
    asgi: ReusableDict,
    extensions: ReusableDict,
    headers: FieldLists,
    // What other requests may need again.
    paths: Cache<(Py<PyString>, Py<PyBytes>)>,
    /// Both ends of each connection, by its place in the reactor's table.
    addresses: Vec<Option<Addresses>>,
    /// The server's own end that was made last.
    server: Option<(SocketAddr, Py<PyAny>)>,
}

/// `scope["state"]`, empty.
struct State(Py<PyDict>);

impl Reuse for State {
    #[inline]
    fn is_fresh(&mut self, py: Python<'_>, lent: Py_ssize_t) -> bool {
        Known::ASGI_STATE.are_all(py, &self.0, lent) && self.0.bind(py).is_empty()
    }
}

/// What is the same for all requests of a connection.
struct Addresses {
    generation: u32,
    client: Py<PyAny>,
    server: Py<PyAny>,
    /// The extensions of an encrypted connection, made when they are first asked for.
    tls_extensions: Option<ReusableDict>,
}

impl ScopeFactory {
    pub(crate) fn new(root_path: &str, state: Py<PyDict>, is_debug: bool) -> Self {
        Self {
            root_path: root_path.to_owned(),
            state,
            is_debug,
            template: Mutex::default(),
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
        let template = lock(&self.template).take();
        let mut template = match template {
            Some(template) => template,
            None => Box::new(ScopeTemplate::new(py, self)?),
        };
        let made = template.make(py, self, head, reply, is_whole)?;
        if !FAST_PATHS {
            return Ok(made);
        }
        let replaced = lock(&self.template).replace(template);
        drop(replaced);
        Ok(made)
    }

    /// The application that has the latest scope has been stepped: what it has put there is let go, if there is
    /// something. Whether the next request may have the scope is asked when that [takes](Self::make) it.
    #[inline]
    pub(crate) fn release(&self, py: Python<'_>) {
        let is_kept_or_changed = lock(&self.template)
            .as_mut()
            .is_some_and(|template| template.is_kept_or_changed(py));
        if is_kept_or_changed {
            self.reset_shared(py);
        }
    }

    #[cold]
    fn reset_shared(&self, py: Python<'_>) {
        let template = lock(&self.template).take();
        if let Some(mut template) = template
            && template.reset_shared(py).is_ok()
        {
            let replaced = lock(&self.template).replace(template);
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

    /// The scope of a request for a WebTransport session.
    pub(super) fn make_session<'py>(
        &self,
        py: Python<'py>,
        head: &Head,
        reply: &Reply<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let scope = self.make_for(py, head, reply, false)?;
        scope.set_item(intern!(py, "type"), intern!(py, "webtransport"))?;
        scope.del_item(intern!(py, "method"))?;
        let extensions = PyDict::new(py);
        extensions.set_item("webtransport", PyDict::new(py))?;
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

impl ScopeTemplate {
    #[cold]
    fn new(py: Python<'_>, scopes: &ScopeFactory) -> PyResult<Self> {
        let versions = versions(py, HTTP_SPEC_VERSION)?;
        let (mut asgi, mut extensions) = (
            ReusableDict::like(&versions),
            ReusableDict::like(&scopes.extensions(py)?),
        );
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
            reusable: Spare::default(),
            connection: None,
            is_client_in_reusable: false,
            server_in_template: None,
            method: Method::Get,
            version: Version::Http11,
            path: Vec::new(),
            query: Vec::new(),
            state: Spare::new(State(state.unbind())),
            asgi,
            extensions,
            headers: FieldLists::default(),
            paths: Cache::default(),
            addresses: Vec::new(),
            server: None,
        })
    }

    /// The scope of a request. `is_whole`: the caller adds nothing.
    #[inline]
    fn make<'py>(
        &mut self,
        py: Python<'py>,
        scopes: &ScopeFactory,
        head: &Head,
        reply: &Reply<'_>,
        is_whole: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        // Other code may have found something since the latest request.
        self.reset_shared(py)?;
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
            self.set_addresses(py, reply)?;
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
        self.reusable = Spare::default();
        let scope = self.copy(py)?;
        if let Some(headers) = headers {
            scope.set_item(intern!(py, "headers"), headers)?;
        }
        if !state.is_empty() {
            scope.set_item(intern!(py, "state"), state.copy()?)?;
        }
        if let Some(facts) = &head.tls {
            scope.set_item(intern!(py, "scheme"), intern!(py, "https"))?;
            let tls_extensions = self.tls_extensions(py, scopes, facts, reply)?;
            scope.set_item(intern!(py, "extensions"), tls_extensions)?;
        }
        if let Some(origin) = head.origin.as_deref() {
            correct(&scope, head, origin)?;
        }
        Ok(scope)
    }

    /// Puts a value into the template, and into the reusable scope.
    #[inline]
    fn put(&self, key: &Bound<'_, PyString>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        self.scope.bind(py).set_item(key, value)?;
        match self.reusable.lent() {
            Some(reusable) => reusable.dict.bind(py).set_item(key, value),
            None => Ok(()),
        }
    }

    /// The scope of a request that differs in nothing from the template.
    #[inline]
    fn give<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let scope = match self.reusable.lent() {
            Some(reusable) => reusable.dict.bind(py).clone(),
            None => self.copy(py)?,
        };
        self.reusable = SpareDict::lent(&scope, Known::ASGI_SCOPE).into();
        Ok(scope)
    }

    /// Whether the latest request's application has kept or changed its scope, or put something into its state.
    #[inline]
    fn is_kept_or_changed(&mut self, py: Python<'_>) -> bool {
        let is_changed = !self.reusable.is_empty() && !self.reusable.is_fresh(py, 0);
        is_changed
            || self
                .state
                .lent()
                .is_some_and(|state| !state.0.bind(py).is_empty())
    }

    /// Lets go of everything that the latest request's application knows or has changed.
    #[inline]
    fn reset_shared(&mut self, py: Python<'_>) -> PyResult<()> {
        if !self.reusable.is_fresh(py, 0) {
            self.reusable = Spare::default();
        }
        // To the template, and to the reusable scope.
        let lent = 1 + Py_ssize_t::from(!self.reusable.is_empty());
        let scope = self.scope.bind(py);
        let mut is_renewed = false;
        if !self.headers.is_as_made(py, lent) {
            self.headers.forget();
            scope.set_item(intern!(py, "headers"), py.None())?;
            is_renewed = true;
        }
        if let Some(asgi) = self.asgi.renewed(py, lent)? {
            scope.set_item(intern!(py, "asgi"), asgi)?;
            is_renewed = true;
        }
        if let Some(extensions) = self.extensions.renewed(py, lent)? {
            scope.set_item(intern!(py, "extensions"), extensions)?;
            is_renewed = true;
        }
        if !self.state.is_fresh(py, lent) {
            let state = PyDict::new(py);
            scope.set_item(intern!(py, "state"), &state)?;
            self.state = Spare::new(State(state.unbind()));
            is_renewed = true;
        }
        if is_renewed {
            self.reusable = Spare::default();
        }
        Ok(())
    }

    fn set_path(&mut self, py: Python<'_>, scopes: &ScopeFactory, raw: &[u8]) -> PyResult<()> {
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

    fn set_addresses(&mut self, py: Python<'_>, reply: &Reply<'_>) -> PyResult<()> {
        let connection = reply.id().connection;
        let index = connection.index as usize;
        if self.addresses.len() <= index {
            self.addresses.resize_with(index + 1, || None);
        }
        let known = self.addresses[index].take();
        let addresses = match known {
            Some(addresses) if addresses.generation == connection.generation => addresses,
            _ => Addresses {
                generation: connection.generation,
                client: end(py, reply.peer())?,
                server: self.server_address(py, reply.local())?,
                tls_extensions: None,
            },
        };
        self.connection = None;
        // Most connections have come to the same end.
        if !self
            .server_in_template
            .as_ref()
            .is_some_and(|put| put.is(&addresses.server))
        {
            self.put(intern!(py, "server"), addresses.server.bind(py))?;
            self.server_in_template = Some(addresses.server.clone_ref(py));
        }
        if let Some(reusable) = self.reusable.lent() {
            let reusable = reusable.dict.bind(py);
            reusable.set_item(intern!(py, "client"), &addresses.client)?;
            self.is_client_in_reusable = true;
        } else {
            self.scope
                .bind(py)
                .set_item(intern!(py, "client"), &addresses.client)?;
            self.is_client_in_reusable = false;
        }
        self.connection = Some(connection);
        self.addresses[index] = Some(addresses);
        Ok(())
    }

    /// Copies the template.
    fn copy<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let scope = self.scope.bind(py);
        if self.is_client_in_reusable
            && let Some(connection) = self.connection
            && let Some(addresses) = &self.addresses[connection.index as usize]
        {
            scope.set_item(intern!(py, "client"), &addresses.client)?;
            self.is_client_in_reusable = false;
        }
        scope.copy()
    }

    fn server_address(&mut self, py: Python<'_>, local: Peer) -> PyResult<Py<PyAny>> {
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
    fn tls_extensions<'py>(
        &mut self,
        py: Python<'py>,
        scopes: &ScopeFactory,
        facts: &Tls,
        reply: &Reply<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let addresses = self.addresses[reply.id().connection.index as usize]
            .as_mut()
            .expect("`set_addresses` has made the connection's");
        if addresses.tls_extensions.is_none() {
            let example = scopes.extensions(py)?;
            example.set_item(intern!(py, "tls"), crate::tls::extension(py, facts)?)?;
            addresses.tls_extensions = Some(ReusableDict::like(&example));
        }
        addresses
            .tls_extensions
            .as_mut()
            .expect("made above")
            .take(py)
    }
}

/// Replaces values of the connection and of the options by those of a trusted proxy.
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
        // The connection's own address, where the proxy gives a port alone.
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
            let end = (ip_text(address.ip()), address.port());
            Ok(end.into_pyobject(py)?.into_any().unbind())
        }
        Peer::Local => Ok(py.None()),
    }
}

fn version_name(py: Python<'_>, version: Version) -> &Bound<'_, PyString> {
    match version {
        Version::Http11 | Version::Rpc => intern!(py, "1.1"),
        Version::Http2 => intern!(py, "2"),
        Version::Http3 => intern!(py, "3"),
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
