//! TLS as a stage between socket and wire: sealed bytes in, plain bytes out, and back. Sans-IO.
//!
//! Records are opened where they were read to, so a byte is copied only if its record is not whole
//! yet. A load generator has nothing to lose to an impostor and mostly meets certificates that
//! are self-signed, so by default it accepts any, as other load generators do; `--ca` verifies.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, HandshakeKind, RootCertStore, SignatureScheme,
};

use crate::sessions::Sessions;
use crate::wire::Fault;

/// What all connections of a run agree on.
#[derive(Clone, Debug)]
pub(crate) struct Security {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// What the peer must choose, if it chooses at all; HTTP/2 needs it to be chosen.
    protocol: &'static [u8],
}

impl Security {
    /// # Errors  The host is no name a certificate could have, or the file has no certificates.
    pub(crate) fn new(
        host: &str,
        protocol: &'static str,
        authorities: Option<&Path>,
        resumes: bool,
    ) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{host:?} is no name that a certificate could have"))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut config = match authorities {
            Some(path) => builder.with_root_certificates(read_authorities(path)?),
            None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))),
        }
        .with_no_client_auth();
        config.alpn_protocols = vec![protocol.into()];
        config.resumption = if resumes {
            Resumption::store(Arc::new(Sessions::default()))
        } else {
            Resumption::disabled()
        };
        Ok(Self {
            config: Arc::new(config),
            name,
            protocol: protocol.as_bytes(),
        })
    }
}

impl Security {
    /// What QUIC makes its handshakes of.
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// The name that the server is asked for.
    pub(crate) fn name(&self) -> String {
        self.name.to_str().into_owned()
    }
}

fn read_authorities(path: &Path) -> Result<RootCertStore, String> {
    let fault = |error: &dyn std::fmt::Display| format!("--ca {}: {error}", path.display());
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fault(&error))? {
        let certificate = certificate.map_err(|error| fault(&error))?;
        store.add(certificate).map_err(|error| fault(&error))?;
    }
    if store.is_empty() {
        return Err(fault(&"there is no certificate in it"));
    }
    Ok(store)
}

/// The TLS state of one connection.
pub(crate) struct Tls {
    session: UnbufferedClientConnection,
    /// The begun record whose end has not arrived.
    partial: Vec<u8>,
    protocol: &'static [u8],
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.describe())
    }
}

impl Tls {
    /// # Errors  The configuration allows no handshake.
    pub(crate) fn new(security: &Security) -> Result<Self, Error> {
        Ok(Self {
            session: UnbufferedClientConnection::new(
                Arc::clone(&security.config),
                security.name.clone(),
            )?,
            partial: Vec::new(),
            protocol: security.protocol,
        })
    }

    /// Copies what is left of earlier reads to the front of `input` and returns its length: more
    /// is to be read behind it.
    pub(crate) fn begin(&self, input: &mut [u8]) -> usize {
        input[..self.partial.len()].copy_from_slice(&self.partial);
        self.partial.len()
    }

    /// Opens the records of `input`, hands the plain bytes to `on_plain`, and appends what the peer
    /// is to be told to `sealed`.
    /// # Errors  The peer broke the rules of TLS, or `on_plain` failed.
    pub(crate) fn receive(
        &mut self,
        input: &mut [u8],
        sealed: &mut Vec<u8>,
        mut on_plain: impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> Result<(), Trouble> {
        let mut n_used = 0;
        loop {
            let n_left = input.len() - n_used;
            let UnbufferedStatus { mut discard, state } =
                self.session.process_tls_records(&mut input[n_used..]);
            let mut is_blocked = false;
            match state? {
                ConnectionState::EncodeTlsData(mut data) => append(sealed, |room| {
                    data.encode(room).map_err(|error| match error {
                        EncodeError::InsufficientSize(size) => Some(size.required_size),
                        EncodeError::AlreadyEncoded => None,
                    })
                }),
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        on_plain(record.payload)?;
                    }
                }
                ConnectionState::BlockedHandshake
                | ConnectionState::WriteTraffic(_)
                | ConnectionState::PeerClosed
                | ConnectionState::Closed => is_blocked = discard == 0 || discard == n_left,
                _ => return Err(Trouble::Tls(Error::HandshakeNotComplete)),
            }
            n_used += discard;
            if is_blocked {
                break;
            }
        }
        self.partial.clear();
        self.partial.extend_from_slice(&input[n_used..]);
        Ok(())
    }

    /// Appends `plain` to `sealed` as records.
    /// # Errors  The handshake is not over, or the peer has closed.
    pub(crate) fn seal(&mut self, plain: &[u8], sealed: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            match self.session.process_tls_records(&mut []).state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    append(sealed, |room| {
                        traffic.encrypt(plain, room).map_err(|error| match error {
                            EncryptError::InsufficientSize(size) => Some(size.required_size),
                            EncryptError::EncryptExhausted => None,
                        })
                    });
                    return Ok(());
                }
                // A new key, say.
                ConnectionState::EncodeTlsData(mut data) => append(sealed, |room| {
                    data.encode(room).map_err(|error| match error {
                        EncodeError::InsufficientSize(size) => Some(size.required_size),
                        EncodeError::AlreadyEncoded => None,
                    })
                }),
                ConnectionState::TransmitTlsData(data) => data.done(),
                _ => return Err(Error::HandshakeNotComplete),
            }
        }
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    pub(crate) fn is_resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Version and cipher suite, after the handshake.
    pub(crate) fn describe(&self) -> String {
        let version = self.session.protocol_version().and_then(|v| v.as_str());
        let suite = self.session.negotiated_cipher_suite();
        let suite = suite.and_then(|suite| suite.suite().as_str());
        format!("{} {}", version.unwrap_or("?"), suite.unwrap_or("?"))
    }

    /// What the peer chose does not do for the wire, after the handshake.
    pub(crate) fn objection(&self) -> Option<String> {
        let chosen = self.session.alpn_protocol();
        let is_needed = self.protocol == b"h2";
        match chosen {
            Some(chosen) if chosen == self.protocol => None,
            None if !is_needed => None,
            chosen => Some(format!(
                "the server was offered {} and chose {}",
                String::from_utf8_lossy(self.protocol),
                chosen.map_or("nothing".into(), String::from_utf8_lossy)
            )),
        }
    }
}

/// What ended the reading of sealed bytes.
#[derive(Debug)]
pub(crate) enum Trouble {
    Tls(Error),
    Wire,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Tls(error)
    }
}

impl From<Fault> for Trouble {
    fn from(_: Fault) -> Self {
        Self::Wire
    }
}

/// Appends what `write` writes to the room it is given. It fails with the room it needs, or
/// without if there is nothing to write any more.
fn append(output: &mut Vec<u8>, mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>) {
    let n_before = output.len();
    // What is there already is not written to twice: the room is what capacity is left.
    output.resize(output.capacity().max(n_before + ROOM_BYTES_MIN), 0);
    loop {
        match write(&mut output[n_before..]) {
            Ok(n_written) => return output.truncate(n_before + n_written),
            Err(Some(n_wanted)) => output.resize(n_before + n_wanted, 0),
            Err(None) => return output.truncate(n_before),
        }
    }
}

/// Accepts every certificate, but still checks that the peer has the key to it.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A small request and what TLS adds to it.
const ROOM_BYTES_MIN: usize = 512;
