//! The environ of a request: a copy of a template, and what this request adds (PEP 3333, "environ Variables").
//!
//! PEP 3333 wants a `dict`, so nothing in it is lazy; keys, constant values and values that clients repeat are shared. A field
//! whose name has an underscore is dropped, because it would pass for one with a hyphen (CVE-2015-0219).
//! Tests: `tests/wsgi/`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;

use citius_base::reuse::{Known, Reuse as _, SpareDict};
use citius_base::support::latin;
use citius_http::origin::{Client, Scheme};
use citius_http::{FAST_PATHS, Head, Origin, Tls};
use citius_reactor::Peer;
use citius_route::decode;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{IntoPyObjectExt, intern};

use super::environ_cache::{CachedEnviron, set_line};
use crate::request::ip_text;

/// Makes environs. Each thread that calls the application has its own.
pub(super) struct EnvironFactory {
    template: Py<PyDict>,
    /// Where the application is mounted, without a slash at its end.
    root: Vec<u8>,
    keys: HashMap<Box<[u8]>, Py<PyString>>,
    peers: Peers,
    cached: Vec<CachedEnviron>,
    /// Which of them was used last.
    latest: usize,
    /// Environs that are copies before one is lent again.
    copies_due: u32,
}

/// Keys that are kept; a client may send any number of other names.
const KEYS_KEPT_MAX: usize = 128;
/// Lists of field names with a cached environ.
const CACHED_MAX: usize = 16;
/// How many copies an application gets that kept or changed what it was lent: making that anew costs as
/// much as a dozen copies.
const COPIES_AFTER_KEPT: u32 = 1024;

/// An environ on its way to the application.
pub(super) struct Environ<'py> {
    pub(super) dict: Bound<'py, PyDict>,
    lent: Option<Lent>,
}

/// An environ that is to come back.
struct Lent {
    /// Its place among the recent ones.
    at: usize,
    spare: SpareDict,
}

/// What else the environ of a request has.
pub(super) struct Extra<'a, 'py> {
    /// `wsgi.input`; without one there is no body, and the template's empty one will do.
    pub(super) input: Option<Bound<'py, PyAny>>,
    /// Bytes of a chunked body that is complete: it is described like any other (RFC 9112 §7.1.3).
    pub(super) dechunked_bytes: Option<u64>,
    /// Makes what the application sends trailers with.
    pub(super) send_trailers: &'a dyn Fn(Python<'py>) -> PyResult<Bound<'py, PyAny>>,
}

impl EnvironFactory {
    pub(super) fn new(template: Py<PyDict>, root: &str) -> Self {
        Self {
            template,
            root: root.as_bytes().to_vec(),
            keys: HashMap::default(),
            peers: Peers::default(),
            cached: Vec::new(),
            latest: 0,
            copies_due: 0,
        }
    }

    /// The environ of one request. With `may_lend` it may be one that was used before: then it is to be
    /// handed to [`give_back`](Self::give_back) before another one is made.
    #[inline]
    pub(super) fn make<'py>(
        &mut self,
        py: Python<'py>,
        head: &Head,
        peer: Peer,
        extra: Extra<'_, 'py>,
        may_lend: bool,
    ) -> PyResult<Environ<'py>> {
        let Some((at, has_fields)) = self.find(py, head) else {
            let dict = self.build_uncached(py, head, peer)?;
            return Self::finish(dict, head, extra);
        };
        self.latest = at;
        let cached = &mut self.cached[at];
        let (template, root) = (self.template.bind(py), &*self.root);
        let (peer, peers) = (peer.address(), &mut self.peers);
        let dict = cached.update(template, root, head, has_fields, peer, peers)?;
        let has_more = extra.input.is_some()
            || extra.dechunked_bytes.is_some()
            || head.tls.is_some()
            || head.origin.is_some()
            || cached.has_te;
        if may_lend && !has_more {
            if self.copies_due > 0 {
                self.copies_due -= 1;
            } else if let Some(spare) = SpareDict::lent(&dict, Known::WSGI_ENVIRON) {
                let lent = Some(Lent { at, spare });
                return Ok(Environ { dict, lent });
            }
        }
        let copy = dict.copy()?;
        cached.put(SpareDict::template(&dict, Known::WSGI_ENVIRON));
        if has_more {
            return Self::finish(copy, head, extra);
        }
        Ok(Environ {
            dict: copy,
            lent: None,
        })
    }

    /// Keeps an environ for another request, if it was lent, is unchanged, and nothing else refers to it.
    #[inline]
    pub(super) fn give_back(&mut self, environ: Environ<'_>) {
        let Environ { dict, lent } = environ;
        let py = dict.py();
        drop(dict);
        let Some(mut lent) = lent else {
            return;
        };
        if lent.spare.is_fresh(py, 0) {
            self.cached[lent.at].put(Some(lent.spare));
        } else {
            self.copies_due = COPIES_AFTER_KEPT;
        }
    }

    /// The recent environ that can be made to say what `head` does, and whether it says so of all fields;
    /// `None` if the head is of a kind that none serves.
    #[inline]
    fn find(&mut self, py: Python<'_>, head: &Head) -> Option<(usize, bool)> {
        if !FAST_PATHS || !CachedEnviron::is_cacheable(head) {
            return None;
        }
        let latest = self.cached.get(self.latest);
        if latest.is_some_and(|latest| latest.matches_fields(head)) {
            return Some((self.latest, true));
        }
        let mut known = self.cached.iter();
        let at = match known.position(|cached| cached.matches_names(head)) {
            Some(at) => at,
            None => self.add(py, head)?,
        };
        Some((at, self.cached[at].matches_fields(head)))
    }

    /// Makes room for another kind of heads; if there is none, in the place of one that was not used last.
    #[cold]
    fn add(&mut self, py: Python<'_>, head: &Head) -> Option<usize> {
        let distinct = PyDict::new(py);
        let keys: Box<[_]> = head
            .fields()
            .map(|(name, _)| self.key_of(py, name))
            .collect();
        for key in keys.iter().flatten() {
            distinct.set_item(key, py.None()).ok()?;
        }
        // Repeated fields are joined, which is not done in place.
        if distinct.len() < keys.iter().flatten().count() {
            return None;
        }
        let cached = CachedEnviron::new(head, keys);
        if self.cached.len() < CACHED_MAX {
            self.cached.push(cached);
            return Some(self.cached.len() - 1);
        }
        let at = (self.latest + 1) % CACHED_MAX;
        self.cached[at] = cached;
        Some(at)
    }

    /// The environ of a head that is not cached.
    #[cold]
    fn build_uncached<'py>(
        &mut self,
        py: Python<'py>,
        head: &Head,
        peer: Peer,
    ) -> PyResult<Bound<'py, PyDict>> {
        let environ = self.template.bind(py).copy()?;
        set_line(&environ, head, &self.root, None)?;
        self.peers.set(&environ, peer.address())?;
        self.set_fields(py, &environ, head)?;
        Ok(environ)
    }

    /// Adds what only this request has.
    #[cold]
    fn finish<'py>(
        environ: Bound<'py, PyDict>,
        head: &Head,
        extra: Extra<'_, 'py>,
    ) -> PyResult<Environ<'py>> {
        let py = environ.py();
        if let Some(input) = extra.input {
            environ.set_item(intern!(py, "wsgi.input"), input)?;
        }
        if let Some(facts) = &head.tls {
            Self::secure(&environ, facts)?;
        }
        if let Some(origin) = head.origin.as_deref() {
            Self::correct(&environ, origin)?;
        }
        if let Some(bytes) = extra.dechunked_bytes {
            let _ = environ.del_item(intern!(py, "HTTP_TRANSFER_ENCODING"));
            environ.set_item(intern!(py, "CONTENT_LENGTH"), bytes.to_string())?;
        }
        if head.field(b"te").is_some_and(accepts_trailers) {
            let send = (extra.send_trailers)(py)?;
            environ.set_item(intern!(py, "wsgi.ext.http.send_trailers"), send)?;
        }
        Ok(Environ {
            dict: environ,
            lent: None,
        })
    }

    /// What an encrypted connection adds, under the names of Apache's `mod_ssl`.
    fn secure(environ: &Bound<'_, PyDict>, facts: &Tls) -> PyResult<()> {
        let py = environ.py();
        environ.set_item(intern!(py, "wsgi.url_scheme"), intern!(py, "https"))?;
        environ.set_item(intern!(py, "HTTPS"), intern!(py, "on"))?;
        environ.set_item(intern!(py, "SSL_PROTOCOL"), facts.version_name())?;
        environ.set_item(intern!(py, "SSL_CIPHER"), facts.cipher_name)?;
        if let Some(name) = &facts.server_name {
            environ.set_item(intern!(py, "SSL_TLS_SNI"), &**name)?;
        }
        let Some(own) = facts.client_chain.first() else {
            return environ.set_item(intern!(py, "SSL_CLIENT_VERIFY"), intern!(py, "NONE"));
        };
        environ.set_item(intern!(py, "SSL_CLIENT_VERIFY"), intern!(py, "SUCCESS"))?;
        environ.set_item(
            intern!(py, "SSL_CLIENT_S_DN"),
            facts.client_name.as_deref().unwrap_or_default(),
        )?;
        environ.set_item(intern!(py, "SSL_CLIENT_CERT"), citius_tls::pem(own))?;
        for (place, der) in facts.client_chain.iter().skip(1).enumerate() {
            environ.set_item(
                format!("SSL_CLIENT_CERT_CHAIN_{place}"),
                citius_tls::pem(der),
            )?;
        }
        Ok(())
    }

    /// Replaces values of the connection and of the options by those of a trusted proxy.
    #[cold]
    fn correct(environ: &Bound<'_, PyDict>, origin: &Origin) -> PyResult<()> {
        let py = environ.py();
        let client = match origin.client {
            None => None,
            Some(Client::Hidden) => Some((String::new(), String::new())),
            Some(Client::Address(address)) => {
                // Empty, as for a Unix socket, if the proxy has not told it.
                let port = match address.port() {
                    0 => String::new(),
                    port => port.to_string(),
                };
                Some((ip_text(address.ip()), port))
            }
        };
        if let Some((host, port)) = client {
            environ.set_item(intern!(py, "REMOTE_ADDR"), host)?;
            environ.set_item(intern!(py, "REMOTE_PORT"), port)?;
        }
        if let Some(scheme) = origin.scheme {
            environ.set_item(intern!(py, "wsgi.url_scheme"), scheme.name())?;
            if scheme == Scheme::Http && environ.contains(intern!(py, "HTTPS"))? {
                environ.del_item(intern!(py, "HTTPS"))?;
            }
        }
        let (host, port) = origin.server();
        if let Some(host) = host {
            environ.set_item(intern!(py, "SERVER_NAME"), host)?;
        }
        if let Some(port) = port {
            environ.set_item(intern!(py, "SERVER_PORT"), port.to_string())?;
        }
        if let Some(prefix) = &origin.prefix {
            let script_name = decode(prefix.as_bytes());
            environ.set_item(intern!(py, "SCRIPT_NAME"), latin(py, &script_name))?;
        }
        Ok(())
    }

    fn set_fields(
        &mut self,
        py: Python<'_>,
        environ: &Bound<'_, PyDict>,
        head: &Head,
    ) -> PyResult<()> {
        // Values of repeated fields are joined here and set once: appending to a Python string copies it.
        let mut joined: HashMap<String, String> = HashMap::new();
        for (name, value) in head.fields() {
            let Some(key) = self.key_of(py, name) else {
                continue;
            };
            let text = latin(py, value);
            let Some(earlier) = environ.get_item(&key)? else {
                environ.set_item(&key, text)?;
                continue;
            };
            let separator = match name.len() {
                // RFC 9110 §5.3 leaves these two to the first one; RFC 6265 §5.4 joins cookies so.
                12 | 14 if is_entity(name) => continue,
                6 if name.eq_ignore_ascii_case(b"cookie") => "; ",
                _ => ", ",
            };
            let joined = match joined.entry(key.to_str(py)?.to_owned()) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(earlier.extract()?),
            };
            joined.push_str(separator);
            joined.push_str(text.to_str()?);
        }
        for (key, value) in joined {
            environ.set_item(key, value)?;
        }
        Ok(())
    }

    /// The key of a field; `None` if the field is not the application's to see.
    fn key_of(&mut self, py: Python<'_>, name: &[u8]) -> Option<Py<PyString>> {
        if let Some(known) = self.keys.get(name) {
            return Some(known.clone_ref(py));
        }
        let key = key(name)?;
        if self.keys.len() >= KEYS_KEPT_MAX {
            // Never interned: some versions of Python keep interned strings for good, and clients choose these.
            return Some(PyString::new(py, &key).unbind());
        }
        let key = PyString::intern(py, &key).unbind();
        self.keys.insert(name.into(), key.clone_ref(py));
        Some(key)
    }
}

/// Addresses as texts, of the latest peers of so many: those of one connection ask again.
pub(super) struct Peers(Box<[Option<KnownPeer>]>);

struct KnownPeer {
    address: SocketAddr,
    host: Py<PyString>,
    port: Py<PyString>,
}

/// Peers whose texts are kept: a power of two.
const PEERS_KEPT_MAX: usize = 128;

impl Default for Peers {
    fn default() -> Self {
        Self((0..PEERS_KEPT_MAX).map(|_| None).collect())
    }
}

impl Peers {
    /// Sets the address of the client; empty without one.
    pub(super) fn set(
        &mut self,
        environ: &Bound<'_, PyDict>,
        address: Option<SocketAddr>,
    ) -> PyResult<()> {
        let py = environ.py();
        let (host_key, port_key) = (intern!(py, "REMOTE_ADDR"), intern!(py, "REMOTE_PORT"));
        let Some(address) = address else {
            environ.set_item(host_key, intern!(py, ""))?;
            return environ.set_item(port_key, intern!(py, ""));
        };
        // One host's connections have neighbouring ports.
        let place = &mut self.0[usize::from(address.port()) % PEERS_KEPT_MAX];
        let known = match place {
            Some(known) if known.address == address => known,
            _ => place.insert(KnownPeer {
                address,
                host: PyString::new(py, &address.ip().to_string()).unbind(),
                port: PyString::new(py, itoa::Buffer::new().format(address.port())).unbind(),
            }),
        };
        environ.set_item(host_key, &known.host)?;
        environ.set_item(port_key, &known.port)
    }
}

/// Whether a value of TE says so (RFC 9110 §10.1.4).
fn accepts_trailers(value: &[u8]) -> bool {
    value
        .split(|&byte| byte == b',')
        .any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

fn is_entity(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"content-type") || name.eq_ignore_ascii_case(b"content-length")
}

/// The key of a field, unless the field is dropped.
fn key(name: &[u8]) -> Option<String> {
    // `Proxy` would become the variable that clients of the application's take for a proxy to use
    // (CVE-2016-5385).
    if name.contains(&b'_') || name.eq_ignore_ascii_case(b"proxy") {
        return None;
    }
    let mut key = String::from(if is_entity(name) { "" } else { "HTTP_" });
    key.extend(name.iter().map(|&byte| match byte {
        b'-' => '_',
        _ => char::from(byte.to_ascii_uppercase()),
    }));
    Some(key)
}

/// What the environs of all requests have in common: `given`, and the values of a plain `GET /`.
///
/// A dict copies itself in one piece only while it is as full as this one, and keeps room for as many
/// keys again: the fields of most requests fit without another allocation.
pub(super) fn template<'py>(
    py: Python<'py>,
    given: &Bound<'py, PyDict>,
    root: &str,
    empty_input: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let template = PyDict::new(py);
    let texts = [
        ("REQUEST_METHOD", "GET"),
        ("PATH_INFO", "/"),
        ("QUERY_STRING", ""),
        ("REQUEST_URI", "/"),
        ("RAW_URI", "/"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("REMOTE_ADDR", ""),
        ("REMOTE_PORT", ""),
        (
            "SERVER_SOFTWARE",
            concat!("citius/", env!("CARGO_PKG_VERSION")),
        ),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SCRIPT_NAME", root),
        ("wsgi.url_scheme", "http"),
    ];
    for (key, value) in texts {
        template.set_item(PyString::intern(py, key), PyString::intern(py, value))?;
    }
    let version = (1, 0).into_bound_py_any(py)?;
    let yes = true.into_bound_py_any(py)?;
    let no = false.into_bound_py_any(py)?;
    let file_wrapper = py.get_type::<super::file::FileWrapper>().into_any();
    let objects = [
        ("wsgi.version", version),
        ("wsgi.input", empty_input),
        ("wsgi.input_terminated", yes),
        ("wsgi.run_once", no),
        ("wsgi.file_wrapper", file_wrapper),
    ];
    for (key, value) in objects {
        template.set_item(PyString::intern(py, key), value)?;
    }
    for (key, value) in given {
        let key = key.cast::<PyString>()?.to_str()?.to_owned();
        template.set_item(PyString::intern(py, &key), value)?;
    }
    Ok(template)
}
