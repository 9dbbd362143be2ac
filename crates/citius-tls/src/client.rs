//! The client's side: connections that the application opens to other servers, databases above all.
//!
//! A [`Client`] is the rules, read once from files; a [`ClientSession`] is one connection, sans-IO: ciphertext in,
//! plaintext out, and back. How far a server is verified is the caller's choice ([`Verification`]): databases are often run
//! with certificates that no authority of the system has signed.
//!
//! A server's certificate that is itself among the trusted ones needs no issuer, which is how OpenSSL takes certificates
//! that are signed by themselves; its dates count all the same.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use ring::digest::{self, SHA256, SHA384, SHA512};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, ring as provider, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::SingleCertAndKey;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

use crate::identity::{self, Identity};
use crate::settings::{IdentityFiles, Settings, Version};
use crate::{Reason, certificate};

/// What is asked of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Nothing: who listens can read nothing, who pretends to be the server can read all.
    Off,
    /// One of the given authorities has signed it.
    Authority,
    /// One of the given authorities has signed it, and it is made out to the name that is connected to.
    Full,
    /// The same by the rules of HTTPS (RFC 9110 §4.3.4): names are alternative names only.
    Web,
}

/// Everything a [`Client`] is made of.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// What is asked of the server's certificate.
    pub verification: Verification,
    /// Files with the certificates of those who sign servers' certificates.
    pub authorities: Vec<PathBuf>,
    /// The certificate to show if the server asks for one.
    pub identity: Option<IdentityFiles>,
    /// The password of its key.
    pub password: Option<String>,
    /// The oldest version spoken.
    pub version_min: Version,
    /// The protocols spoken above TLS (RFC 7301).
    pub protocols: Vec<Vec<u8>>,
    /// SHA-256 of public keys (RFC 7469 §2.4), one of which the server's certificate has to have; empty: any.
    pub pins: Vec<[u8; 32]>,
}

/// The rules that connections to a server are secured by.
#[derive(Clone, Debug)]
pub struct Client(Arc<ClientConfig>);

impl Client {
    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn load(settings: ClientSettings) -> Result<Self, Reason> {
        let files = Settings {
            password: settings.password,
            ..Settings::default()
        };
        let mut trusted = Vec::new();
        for path in &settings.authorities {
            trusted.extend(identity::chain(&files, path)?);
        }
        let mut roots = RootCertStore::empty();
        // Bundles of systems have some that are no authorities.
        roots.add_parsable_certificates(trusted.iter().cloned());
        let provider = Arc::new(provider::default_provider());
        let verifier = Verifier {
            verification: settings.verification,
            pins: settings.pins,
            roots,
            trusted,
            provider: Arc::clone(&provider),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(settings.version_min.and_later())
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &settings.identity {
            Some(own) => {
                let own = Identity::load(&files, own)?;
                config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own.key)))
            }
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = settings.protocols;
        Ok(Self(Arc::new(config)))
    }

    /// The rules for handshakes of QUIC, with `protocols` spoken above it.
    pub fn for_quic(&self, protocols: &[&[u8]]) -> ClientConfig {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        config
    }

    /// A connection to the server of this name or address.
    ///
    /// # Errors
    /// It is no name that a certificate can have.
    pub fn session(&self, server_name: &str) -> Result<ClientSession, Reason> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| format!("{server_name:?} is no name or address of a server"))?;
        let mut tls =
            ClientConnection::new(Arc::clone(&self.0), name).map_err(|error| error.to_string())?;
        // What is to be sent is bounded by the caller.
        tls.set_buffer_limit(None);
        Ok(ClientSession {
            tls: Box::new(tls),
            failure: None,
            is_ended: false,
        })
    }
}

/// One connection to a server.
#[derive(Debug)]
pub struct ClientSession {
    tls: Box<ClientConnection>,
    failure: Option<String>,
    is_ended: bool,
}

impl ClientSession {
    /// Takes ciphertext and appends the plaintext that it holds. What is to be said in return is had by
    /// [`transmit`](Self::transmit), after an error too: the server is told.
    ///
    /// # Errors
    /// The handshake fails, or bytes are not what the server has sent. Nothing more may be read.
    pub fn receive(
        &mut self,
        mut ciphertext: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        while !ciphertext.is_empty() {
            let fed = self.tls.read_tls(&mut ciphertext);
            let outcome = match fed {
                Ok(_) => self
                    .tls
                    .process_new_packets()
                    .map_err(|error| plain(&error)),
                Err(error) => Err(error.to_string()),
            };
            let state = match outcome {
                Ok(state) => state,
                Err(failure) => {
                    self.failure = Some(failure.clone());
                    return Err(failure);
                }
            };
            let start = plaintext.len();
            plaintext.resize(start + state.plaintext_bytes_to_read(), 0);
            let read = self.tls.reader().read(&mut plaintext[start..]).unwrap_or(0);
            plaintext.truncate(start + read);
            if state.peer_has_closed() {
                self.is_ended = true;
                break;
            }
        }
        Ok(())
    }

    /// Takes plaintext to send; before the end of the handshake it waits inside.
    pub fn send(&mut self, plaintext: &[u8]) {
        // Without a limit nothing is refused.
        let _ = std::io::Write::write_all(&mut self.tls.writer(), plaintext);
    }

    /// Nothing more is sent; what the server sends is still read. Saying so twice is saying it once.
    pub fn end(&mut self) {
        self.tls.send_close_notify();
    }

    /// Appends the ciphertext that is to be sent.
    pub fn transmit(&mut self, ciphertext: &mut Vec<u8>) {
        // Writing to memory does not fail.
        while self.tls.wants_write() && self.tls.write_tls(ciphertext).is_ok() {}
    }

    /// Whether there is any.
    pub fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }

    /// Whether the handshake goes on.
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether the server has said that it sends no more: an end without that may be another's work.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// The protocol that the server has chosen of those that were offered (RFC 7301).
    pub fn protocol(&self) -> Option<Vec<u8>> {
        self.tls.alpn_protocol().map(<[u8]>::to_vec)
    }

    /// The channel's binding `tls-server-end-point` (RFC 5929 §4): the hash of the server's certificate. `None` before the
    /// handshake's end, and for signatures that have no hash of their own, as Ed25519.
    pub fn server_end_point(&self) -> Option<Vec<u8>> {
        let own = self.tls.peer_certificates()?.first()?;
        let algorithm = match certificate::signature_algorithm(own)?.as_str() {
            // RSA and ECDSA with MD5, SHA-1 (for both of which SHA-256 stands in), SHA-256
            "1.2.840.113549.1.1.4"
            | "1.2.840.113549.1.1.5"
            | "1.2.840.113549.1.1.11"
            | "1.2.840.10045.4.1"
            | "1.2.840.10045.4.3.2" => &SHA256,
            "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => &SHA384,
            "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => &SHA512,
            _ => return None,
        };
        Some(digest::digest(algorithm, own).as_ref().to_vec())
    }
}

/// What a user can do something about, in the words of the field.
fn plain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the server's certificate is signed by none of the trusted authorities".into()
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "the server's certificate is made out to another name".into(),
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
            "the server's certificate has none of the pinned keys".into()
        }
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the server's certificate has expired".into(),
        error => error.to_string(),
    }
}

#[derive(Debug)]
struct Verifier {
    verification: Verification,
    pins: Vec<[u8; 32]>,
    roots: RootCertStore,
    /// The trusted certificates as they are in the files.
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check_pins(own)?;
        if self.verification == Verification::Off {
            return Ok(ServerCertVerified::assertion());
        }
        let parsed = ParsedCertificate::try_from(own)?;
        let facts = certificate::read(own)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        if self.trusted.contains(own) {
            if !facts.valid_s.contains(&now.as_secs()) {
                return Err(Error::InvalidCertificate(CertificateError::Expired));
            }
        } else {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &self.roots,
                intermediates,
                now,
                algorithms,
            )?;
        }
        if self.verification == Verification::Web {
            verify_server_name(&parsed, server_name)?;
        }
        if self.verification == Verification::Full {
            match (server_name, &facts.common_name) {
                // As libpq has it: the common name counts if there is no alternative name.
                (ServerName::DnsName(name), Some(common)) if !facts.has_alternative_names => {
                    if !is_name_of(common, name.as_ref()) {
                        return Err(CertificateError::NotValidForName.into());
                    }
                }
                _ => verify_server_name(&parsed, server_name)?,
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, own, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, own, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

impl Verifier {
    /// Whether the certificate has a key that is pinned. Those that come with it prove nothing: any server can send them.
    fn check_pins(&self, own: &CertificateDer<'_>) -> Result<(), Error> {
        if self.pins.is_empty() {
            return Ok(());
        }
        let parsed = ParsedCertificate::try_from(own)?;
        let key = digest::digest(&SHA256, &parsed.subject_public_key_info());
        if self.pins.iter().any(|pin| pin == key.as_ref()) {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

/// Whether a certificate's name, perhaps with a wildcard as its first label, is that of a server (RFC 6125 §6.4).
fn is_name_of(pattern: &str, name: &str) -> bool {
    let name = name.trim_end_matches('.');
    match pattern.strip_prefix("*.") {
        Some(domain) => name
            .split_once('.')
            .is_some_and(|(_, rest)| domain.contains('.') && rest.eq_ignore_ascii_case(domain)),
        None => pattern.eq_ignore_ascii_case(name),
    }
}

#[cfg(test)]
mod names {
    use super::is_name_of;

    #[test]
    fn a_wildcard_stands_for_one_label() {
        for (pattern, name, expected) in [
            ("db.example", "DB.example", true),
            ("db.example", "db.example.", true),
            ("*.example.org", "db.example.org", true),
            ("*.example.org", "a.db.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.org", "example.org", false),
            ("*", "example", false),
            ("db.example", "xdb.example", false),
        ] {
            assert_eq!(is_name_of(pattern, name), expected, "{pattern} {name}");
        }
    }
}
