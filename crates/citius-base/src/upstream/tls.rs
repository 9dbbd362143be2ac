//! TLS to another server: what comes is opened before the protocol sees it, what goes is sealed behind it.
//!
//! The carrier of the bytes, loop or reactor, does not know of it. Tests: `tests/pg/test_tls.py`.

use std::path::PathBuf;
use std::sync::Mutex;

use citius_tls::{Client, ClientSession, ClientSettings, IdentityFiles, Verification, Version};
use pyo3::exceptions::{PyConnectionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::sync::lock;

/// The rules that connections to servers are secured by, read from files.
#[pyclass(frozen, module = "citius._core")]
pub struct ClientTls(Client);

#[pymethods]
impl ClientTls {
    #[new]
    #[pyo3(signature = (verification, *, authorities = Vec::new(), identity = None, password = None,
                        version_min = "tls1.2", protocols = Vec::new(), pins = Vec::new()))]
    fn new(
        verification: &str,
        authorities: Vec<PathBuf>,
        identity: Option<(PathBuf, PathBuf)>,
        password: Option<String>,
        version_min: &str,
        protocols: Vec<String>,
        pins: Vec<[u8; 32]>,
    ) -> PyResult<Self> {
        let settings = ClientSettings {
            verification: match verification {
                "full" => Verification::Full,
                "authority" => Verification::Authority,
                "web" => Verification::Web,
                "off" => Verification::Off,
                other => return Err(unexpected("full, web, authority or off", other)),
            },
            authorities,
            identity: identity.map(|(certificate, key)| IdentityFiles { certificate, key }),
            password,
            version_min: version_from(version_min)?,
            protocols: protocols.into_iter().map(String::into_bytes).collect(),
            pins,
        };
        Client::load(settings)
            .map(Self)
            .map_err(PyValueError::new_err)
    }

    /// One connection to the server of this name or address, for bytes that are no connection's of ours.
    fn stream(&self, server_name: &str) -> PyResult<ClientTlsStream> {
        let session = self.session(server_name)?;
        Ok(ClientTlsStream(Mutex::new(session)))
    }
}

impl ClientTls {
    /// The rules as they were read.
    pub fn client(&self) -> &Client {
        &self.0
    }

    fn session(&self, server_name: &str) -> PyResult<ClientSession> {
        self.0.session(server_name).map_err(PyValueError::new_err)
    }
}

/// TLS of one connection: bytes in, bytes out.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct ClientTlsStream(Mutex<ClientSession>);

#[pymethods]
impl ClientTlsStream {
    /// Takes what has come and returns the plaintext of it.
    fn receive<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut plaintext = Vec::new();
        let received = lock(&self.0).receive(data, &mut plaintext);
        match received {
            Ok(()) => Ok(PyBytes::new(py, &plaintext)),
            Err(failure) => Err(PyConnectionError::new_err(failure)),
        }
    }

    /// Takes plaintext to send, and returns what is to be sent now.
    fn transmit<'py>(&self, py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        let mut session = lock(&self.0);
        session.send(data);
        session.transmit(&mut bytes);
        PyBytes::new(py, &bytes)
    }

    /// Whether the handshake goes on.
    #[getter]
    fn is_handshaking(&self) -> bool {
        lock(&self.0).is_handshaking()
    }
}

/// TLS of one connection, below its protocol.
pub(crate) struct Secured {
    tls: ClientSession,
    is_bound: bool,
}

/// What has come of ciphertext.
pub(crate) struct Opened {
    pub(crate) plaintext: Vec<u8>,
    /// The handshake has just ended.
    pub(crate) secured: Option<Handshaken>,
    /// Something is to be sent in return.
    pub(crate) has_output: bool,
    pub(crate) failure: Option<String>,
    /// The server has said that it sends no more.
    pub(crate) is_ended: bool,
}

/// What a handshake has brought.
pub(crate) struct Handshaken {
    /// The hash of the server's certificate, if it has one.
    pub(crate) server_end_point: Option<Vec<u8>>,
    /// The protocol that the server has chosen.
    pub(crate) protocol: Option<Vec<u8>>,
}

impl Secured {
    pub(crate) fn new(tls: &Bound<'_, ClientTls>, server_name: &str) -> PyResult<Mutex<Self>> {
        Ok(Mutex::new(Self {
            tls: tls.get().session(server_name)?,
            is_bound: false,
        }))
    }

    pub(crate) fn open(&mut self, bytes: &[u8]) -> Opened {
        let mut plaintext = Vec::new();
        let failure = self.tls.receive(bytes, &mut plaintext).err();
        let mut secured = None;
        if !self.is_bound && failure.is_none() && !self.tls.is_handshaking() {
            self.is_bound = true;
            secured = Some(Handshaken {
                server_end_point: self.tls.server_end_point(),
                protocol: self.tls.protocol(),
            });
        }
        Opened {
            plaintext,
            secured,
            has_output: self.tls.wants_write(),
            is_ended: failure.is_none() && self.tls.is_ended(),
            failure,
        }
    }

    /// Takes plaintext and appends all that is to be sent.
    pub(crate) fn seal(&mut self, plaintext: &[u8], bytes: &mut Vec<u8>) {
        self.tls.send(plaintext);
        self.tls.transmit(bytes);
    }

    /// Appends what says that nothing follows.
    pub(crate) fn seal_end(&mut self, bytes: &mut Vec<u8>) {
        self.tls.end();
        self.tls.transmit(bytes);
    }

    /// Whether the server has said that it sends no more.
    pub(crate) fn is_ended(&self) -> bool {
        self.tls.is_ended()
    }

    pub(crate) fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }
}

/// The version of TLS of this name.
pub fn version_from(text: &str) -> PyResult<Version> {
    match text {
        "tls1.2" => Ok(Version::Tls12),
        "tls1.3" => Ok(Version::Tls13),
        other => Err(unexpected("tls1.2 or tls1.3", other)),
    }
}

/// What says that an option has another value than it may have.
pub fn unexpected(expected: &str, got: &str) -> PyErr {
    PyValueError::new_err(format!("expected {expected}, got {got:?}"))
}
