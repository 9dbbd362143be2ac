//! TLS as Python configures it, and the facts of a connection that handlers see. Tests: `tests/tls/`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use citius_base::sync::lock;
use citius_base::upstream::tls::{unexpected, version_from};
use citius_http::Tls as Facts;
use citius_reactor::wall_us;
use citius_tls::{Challenges, ClientAuth, IdentityFiles, Server, Settings, Tickets, pem};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn wall_s() -> u64 {
    wall_us() / 1_000_000
}

/// The secret of session tickets, shared by the workers that are forked after it was made.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct TlsTickets(Mutex<Tickets>);

#[pymethods]
impl TlsTickets {
    #[new]
    fn new() -> Self {
        Self(Mutex::new(Tickets::new(wall_s())))
    }

    fn advance(&self) {
        lock(&self.0).advance(wall_s());
    }
}

/// Certificates, keys and rules, loaded from their files.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Tls {
    /// Until a reactor takes it over.
    server: Mutex<Option<Server>>,
    #[pyo3(get)]
    warnings: Vec<String>,
}

#[pymethods]
impl Tls {
    #[new]
    #[pyo3(signature = (identities, *, password = None, version_min = "tls1.2", ciphers = None,
                        client_auth = "none", client_ca = None, crls = Vec::new(), protocols = Vec::new(),
                        handshake_bytes_max = citius_http::limits::TLS_HANDSHAKE_BYTES_MAX as usize,
                        tickets = None, opened = HashMap::new(), challenges = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword arguments of a Python constructor"
    )]
    fn new(
        identities: Vec<(PathBuf, PathBuf)>,
        password: Option<String>,
        version_min: &str,
        ciphers: Option<String>,
        client_auth: &str,
        client_ca: Option<PathBuf>,
        crls: Vec<PathBuf>,
        protocols: Vec<String>,
        handshake_bytes_max: usize,
        tickets: Option<&Bound<'_, TlsTickets>>,
        opened: HashMap<PathBuf, PathBuf>,
        challenges: Option<(PathBuf, Vec<String>)>,
    ) -> PyResult<Self> {
        let identities = identities
            .into_iter()
            .map(|(certificate, key)| IdentityFiles { certificate, key });
        let settings = Settings {
            identities: identities.collect(),
            password,
            version_min: version_from(version_min)?,
            ciphers,
            client_auth: match client_auth {
                "none" => ClientAuth::Off,
                "optional" => ClientAuth::Optional,
                "required" => ClientAuth::Required,
                other => return Err(unexpected("none, optional or required", other)),
            },
            client_ca,
            crls,
            protocols: protocols.into_iter().map(String::into_bytes).collect(),
            handshake_bytes_max,
            opened,
            challenges: challenges.map(|(directory, names)| Challenges { directory, names }),
        };
        let tickets = match tickets {
            Some(tickets) => lock(&tickets.get().0).clone(),
            None => Tickets::new(wall_s()),
        };
        let server = Server::load(settings, tickets).map_err(PyValueError::new_err)?;
        Ok(Self {
            warnings: server.warnings().to_vec(),
            server: Mutex::new(Some(server)),
        })
    }
}

impl Tls {
    /// What a reactor secures its connections with.
    pub(crate) fn take(&self) -> PyResult<Server> {
        lock(&self.server)
            .take()
            .ok_or_else(|| PyValueError::new_err("another reactor has these certificates already"))
    }
}

/// The certificate of `--ssl-dev` that is kept in `directory`: its file, its key's, its fingerprint, and whether it is new.
#[pyfunction]
pub(crate) fn development_certificate(
    directory: &str,
) -> PyResult<(PathBuf, PathBuf, String, bool)> {
    let made = citius_tls::development(directory.as_ref()).map_err(PyValueError::new_err)?;
    Ok((made.certificate, made.key, made.fingerprint, made.is_new))
}

/// A certificate for `name` that it has signed itself, with its key; with `digest` it answers a challenge (RFC 8737).
#[pyfunction]
#[pyo3(signature = (name, digest = None))]
pub(crate) fn self_signed_certificate(name: &str, digest: Option<[u8; 32]>) -> PyResult<String> {
    citius_tls::self_signed(name, digest.as_ref()).map_err(PyValueError::new_err)
}

/// What a handler can know of the encryption of its request.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct TlsInfo(pub(crate) Arc<Facts>);

#[pymethods]
impl TlsInfo {
    #[getter]
    fn version(&self) -> &'static str {
        self.0.version_name()
    }

    #[getter]
    fn cipher(&self) -> &'static str {
        self.0.cipher_name
    }

    #[getter]
    fn server_name(&self) -> Option<&str> {
        self.0.server_name.as_deref()
    }

    #[getter]
    fn client_name(&self) -> Option<&str> {
        self.0.client_name.as_deref()
    }

    #[getter]
    fn client_chain(&self) -> Vec<String> {
        chain(&self.0)
    }

    #[getter]
    fn is_resumed(&self) -> bool {
        self.0.is_resumed
    }

    fn __repr__(&self) -> String {
        format!("<TlsInfo {} {}>", self.0.version_name(), self.0.cipher_name)
    }
}

/// The client's certificates as PEM.
pub(crate) fn chain(facts: &Facts) -> Vec<String> {
    facts.client_chain.iter().map(|der| pem(der)).collect()
}

/// The `tls` extension of an ASGI scope.
pub(crate) fn extension<'py>(py: Python<'py>, facts: &Facts) -> PyResult<Bound<'py, PyDict>> {
    let extension = PyDict::new(py);
    extension.set_item("server_cert", pem(&facts.certificate))?;
    extension.set_item("client_cert_chain", chain(facts))?;
    extension.set_item("client_cert_name", facts.client_name.as_deref())?;
    // A certificate that is not accepted ends the handshake: no request comes of it.
    extension.set_item("client_cert_error", py.None())?;
    extension.set_item("tls_version", facts.version)?;
    extension.set_item("cipher_suite", facts.cipher_suite)?;
    Ok(extension)
}
