//! Where requests go: scheme, host and port, and the way there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An origin (RFC 9110 §4.3.1), and the way to it. Connections are shared by requests to equal ones.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct HttpOrigin {
    pub(crate) key: Key,
    /// The value of `host`: with the port, unless it is the scheme's own.
    pub(crate) authority: String,
    /// What messages call it.
    pub(crate) text: Arc<str>,
    /// The request target begins with this: a proxy forwards requests that are not secured.
    pub(crate) target_prefix: Option<String>,
    /// What the proxy is told of who asks.
    pub(crate) proxy_authorization: Option<String>,
    /// The pool that had it last, and the number of its lane there.
    place: AtomicU64,
}

/// What makes connections interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) sni: Option<String>,
    pub(crate) proxy: Option<String>,
    pub(crate) unix: Option<String>,
}

impl HttpOrigin {
    /// The number of its lane in a pool, if it was used there last.
    pub(crate) fn lane_in(&self, pool: u32) -> Option<u32> {
        let place = self.place.load(Ordering::Relaxed);
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        (place >> 32 == u64::from(pool)).then_some(place as u32)
    }

    pub(crate) fn set_lane(&self, pool: u32, lane: u32) {
        let place = u64::from(pool) << 32 | u64::from(lane);
        self.place.store(place, Ordering::Relaxed);
    }
}

#[pymethods]
impl HttpOrigin {
    #[new]
    #[pyo3(signature = (scheme, host, port, *, sni = None, proxy = None, unix = None))]
    fn new(
        py: Python<'_>,
        scheme: &str,
        host: &str,
        port: u16,
        sni: Option<String>,
        proxy: Option<String>,
        unix: Option<String>,
    ) -> PyResult<Self> {
        let is_tls = match scheme {
            "http" => false,
            "https" => true,
            other => {
                return Err(PyValueError::new_err(format!(
                    "expected http or https, got {other:?}"
                )));
            }
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_visible = |byte: u8| byte.is_ascii_graphic() && !b"/?#@\\[]".contains(&byte);
        if host.is_empty() || port == 0 || !host.bytes().all(is_visible) {
            return Err(PyValueError::new_err(format!(
                "{host:?} and {port} are no host and port"
            )));
        }
        let host = host.to_ascii_lowercase();
        let shown = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.clone()
        };
        let authority = match (is_tls, port) {
            (false, 80) | (true, 443) => shown,
            _ => format!("{shown}:{port}"),
        };
        let is_forwarded =
            !is_tls && unix.is_none() && proxy.as_ref().is_some_and(|it| it.starts_with("http"));
        let mut proxy_authorization = None;
        if is_forwarded {
            let module = py.import("citius.http.transport.proxies")?;
            proxy_authorization = module.call_method1("authorization", (&proxy,))?.extract()?;
        }
        Ok(Self {
            text: format!("{scheme}://{authority}").into(),
            target_prefix: is_forwarded.then(|| format!("http://{authority}")),
            authority,
            proxy_authorization,
            key: Key {
                is_tls,
                host,
                port,
                sni,
                proxy,
                unix,
            },
            place: AtomicU64::new(u64::MAX),
        })
    }

    #[getter]
    fn scheme(&self) -> &'static str {
        if self.key.is_tls { "https" } else { "http" }
    }

    #[getter]
    fn host(&self) -> &str {
        &self.key.host
    }

    #[getter]
    fn port(&self) -> u16 {
        self.key.port
    }

    /// The name that the certificate must have.
    #[getter]
    fn server_name(&self) -> &str {
        self.key.sni.as_deref().unwrap_or(&self.key.host)
    }

    #[getter]
    fn proxy(&self) -> Option<&str> {
        self.key.proxy.as_deref()
    }

    #[getter]
    fn unix(&self) -> Option<&str> {
        self.key.unix.as_deref()
    }

    #[getter]
    fn authority(&self) -> &str {
        &self.authority
    }

    fn __str__(&self) -> &str {
        &self.text
    }
}
