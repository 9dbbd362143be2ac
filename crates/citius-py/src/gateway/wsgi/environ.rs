//! The environ of a request: a copy of a template and what this request adds (PEP 3333, "environ Variables").
//!
//! PEP 3333 wants a real `dict`, so nothing in it can be lazy; instead everything that can be shared is:
//! keys, the values all requests have, and the values that clients repeat. A field whose name has an
//! underscore is dropped, for it would pass for one with a hyphen (CVE-2015-0219).

use std::collections::HashMap;
use std::net::SocketAddr;

use citius_http::origin::{Client, Scheme};
use citius_http::{Head, Method, Origin, Tls, Version};
use citius_reactor::Peer;
use citius_route::decode;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{IntoPyObjectExt, intern};
use smallvec::SmallVec;

use crate::request::latin;

/// Makes environs. Each thread that calls the application has its own.
pub(super) struct Environs {
    template: Py<PyDict>,
    /// Where the application is mounted, without a slash at its end.
    root: Vec<u8>,
    names: HashMap<Box<[u8]>, Name>,
    /// The peer of the latest request: those of one connection mostly come together.
    peer: Option<(SocketAddr, Py<PyString>, Py<PyString>)>,
}

/// A field name as environ has it.
struct Name {
    key: Py<PyString>,
    /// The latest value, if it is of a kind that clients repeat.
    latest: Option<Latest>,
}

#[derive(Default)]
struct Latest {
    bytes: Vec<u8>,
    text: Option<Py<PyString>>,
}

/// Names that are kept; a client may send any number of others.
const NAMES_KEPT_MAX: usize = 128;
/// Bytes of a value that is kept for the next request.
const VALUE_KEPT_BYTES_MAX: usize = 128;
/// Fields whose values say more about the kind of client than about the request.
const REPEATED: [&[u8]; 6] = [
    b"accept",
    b"accept-encoding",
    b"accept-language",
    b"connection",
    b"host",
    b"user-agent",
];

/// What else an environ says of a request.
pub(super) struct Extra<'py> {
    /// `wsgi.input`; without one there is no body, and the template's empty one will do.
    pub(super) input: Option<Bound<'py, PyAny>>,
    /// Bytes of a chunked body that is complete: then it is told like any other (RFC 9112 §7.1.3).
    pub(super) dechunked_bytes: Option<u64>,
}

impl Environs {
    pub(super) fn new(template: Py<PyDict>, root: &str) -> Self {
        Self {
            template,
            root: root.as_bytes().to_vec(),
            names: HashMap::default(),
            peer: None,
        }
    }

    /// The environ of one request.
    pub(super) fn make<'py>(
        &mut self,
        py: Python<'py>,
        head: &Head,
        peer: Peer,
        extra: Extra<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let environ = self.template.bind(py).copy()?;
        match head.method {
            // As in the template.
            Method::Get => {}
            _ => environ.set_item(
                intern!(py, "REQUEST_METHOD"),
                latin(py, head.slice(head.method_span)),
            )?,
        }
        let protocol = match head.version {
            // As in the template.
            Version::Http11 | Version::Rpc => None,
            Version::Http2 => Some(intern!(py, "HTTP/2")),
            Version::Http10 => Some(intern!(py, "HTTP/1.0")),
        };
        if let Some(protocol) = protocol {
            environ.set_item(intern!(py, "SERVER_PROTOCOL"), protocol)?;
        }
        let target = head.slice(head.target);
        if target != b"/" {
            self.set_target(py, &environ, head, target)?;
        }
        self.set_peer(py, &environ, peer)?;
        if let Some(input) = extra.input {
            environ.set_item(intern!(py, "wsgi.input"), input)?;
        }
        self.set_fields(py, &environ, head)?;
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
        Ok(environ)
    }

    fn set_target(
        &self,
        py: Python<'_>,
        environ: &Bound<'_, PyDict>,
        head: &Head,
        target: &[u8],
    ) -> PyResult<()> {
        let target = latin(py, target);
        environ.set_item(intern!(py, "REQUEST_URI"), &target)?;
        environ.set_item(intern!(py, "RAW_URI"), target)?;
        let path = decode(head.path());
        // A proxy may have cut the root off or not. `*` is no path (PEP 3333 wants a slash or nothing).
        let path = match path.strip_prefix(self.root.as_slice()) {
            Some(rest) if !self.root.is_empty() && (rest.is_empty() || rest[0] == b'/') => rest,
            _ if *path == *b"*" => b"",
            _ => &path,
        };
        environ.set_item(intern!(py, "PATH_INFO"), latin(py, path))?;
        if head.query.is_some() {
            environ.set_item(intern!(py, "QUERY_STRING"), latin(py, head.query()))?;
        }
        Ok(())
    }

    fn set_peer(
        &mut self,
        py: Python<'_>,
        environ: &Bound<'_, PyDict>,
        peer: Peer,
    ) -> PyResult<()> {
        let Peer::Internet(address) = peer else {
            return Ok(());
        };
        let (_, host, port) = match &mut self.peer {
            Some(known) if known.0 == address => known,
            Some(known) => {
                if known.0.ip() != address.ip() {
                    known.1 = PyString::new(py, &address.ip().to_string()).unbind();
                }
                known.2 = PyString::new(py, itoa::Buffer::new().format(address.port())).unbind();
                known.0 = address;
                known
            }
            None => self.peer.insert((
                address,
                PyString::new(py, &address.ip().to_string()).unbind(),
                PyString::new(py, &address.port().to_string()).unbind(),
            )),
        };
        environ.set_item(intern!(py, "REMOTE_ADDR"), &*host)?;
        environ.set_item(intern!(py, "REMOTE_PORT"), &*port)
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

    /// Puts what a trusted proxy says in the place of what the connection and the options say.
    #[cold]
    fn correct(environ: &Bound<'_, PyDict>, origin: &Origin) -> PyResult<()> {
        let py = environ.py();
        let client = match origin.client {
            None => None,
            Some(Client::Hidden) => Some((String::new(), String::new())),
            Some(Client::Address(address)) => {
                // Nothing, as for a Unix socket, where nobody has told it.
                let port = match address.port() {
                    0 => String::new(),
                    port => port.to_string(),
                };
                Some((address.ip().to_string(), port))
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
        let mut before: SmallVec<[*mut pyo3::ffi::PyObject; 16]> = SmallVec::new();
        for (name, value) in head.fields() {
            let Some((key, text)) = self.field(py, name, value)? else {
                continue;
            };
            let key_place = key.as_ptr();
            // Keys that are not kept have an identity of their own each time: those are looked up.
            let is_repeated = before.contains(&key_place)
                || self.names.len() >= NAMES_KEPT_MAX && environ.contains(&key)?;
            if !is_repeated {
                environ.set_item(&key, text)?;
                before.push(key_place);
                continue;
            }
            let earlier = environ.get_item(&key)?.expect("it was set before");
            let separator = match name.len() {
                // RFC 9110 §5.3 leaves these two to the first one; RFC 6265 §5.4 joins cookies so.
                12 | 14 if is_entity(name) => continue,
                6 if name.eq_ignore_ascii_case(b"cookie") => "; ",
                _ => ", ",
            };
            environ.set_item(&key, format!("{earlier}{separator}{text}"))?;
        }
        Ok(())
    }

    /// Key and value of a field; `None` if it is not the application's to see.
    #[inline]
    fn field<'py>(
        &mut self,
        py: Python<'py>,
        name: &[u8],
        value: &[u8],
    ) -> PyResult<Option<(Bound<'py, PyString>, Bound<'py, PyString>)>> {
        let Some(known) = self.names.get_mut(name) else {
            return self.new_field(py, name, value);
        };
        let text = match &mut known.latest {
            None => latin(py, value),
            Some(latest) => latest.text_of(py, value),
        };
        Ok(Some((known.key.bind(py).clone(), text)))
    }

    #[cold]
    fn new_field<'py>(
        &mut self,
        py: Python<'py>,
        name: &[u8],
        value: &[u8],
    ) -> PyResult<Option<(Bound<'py, PyString>, Bound<'py, PyString>)>> {
        let Some(key) = key(name) else {
            return Ok(None);
        };
        let text = latin(py, value);
        let lower = name.to_ascii_lowercase();
        // One key for all spellings of a name, so that repetitions are found by identity.
        if lower != name && self.names.len() < NAMES_KEPT_MAX {
            self.new_field(py, &lower, value)?;
        }
        let key = match self.names.get(lower.as_slice()) {
            Some(known) => known.key.bind(py).clone(),
            None => PyString::intern(py, &key),
        };
        if self.names.len() < NAMES_KEPT_MAX {
            let latest = REPEATED.contains(&lower.as_slice()).then(Latest::default);
            let known = Name {
                key: key.clone().unbind(),
                latest,
            };
            self.names.insert(name.into(), known);
        }
        Ok(Some((key, text)))
    }
}

impl Latest {
    #[inline]
    fn text_of<'py>(&mut self, py: Python<'py>, value: &[u8]) -> Bound<'py, PyString> {
        if let Some(text) = &self.text
            && self.bytes == value
        {
            return text.bind(py).clone();
        }
        let text = latin(py, value);
        if value.len() <= VALUE_KEPT_BYTES_MAX {
            self.bytes.clear();
            self.bytes.extend_from_slice(value);
            self.text = Some(text.clone().unbind());
        }
        text
    }
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
