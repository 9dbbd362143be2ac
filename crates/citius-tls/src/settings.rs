//! What the operator says about TLS.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

/// Everything a [`crate::Server`] is made of. Paths are read when it is made, and again when the files change.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Certificates and keys; the first is shown to clients that name no server or an unknown one.
    pub identities: Vec<IdentityFiles>,
    /// The password of keys that have one.
    pub password: Option<String>,
    /// The oldest version spoken.
    pub version_min: Version,
    /// The cipher suites of TLS 1.2, and if it names any those of TLS 1.3, as OpenSSL writes them; `None`: all there are.
    pub ciphers: Option<String>,
    /// Whether clients show certificates.
    pub client_auth: ClientAuth,
    /// The certificates of those who issue them.
    pub client_ca: Option<PathBuf>,
    /// Lists of those that are revoked.
    pub crls: Vec<PathBuf>,
    /// The protocols spoken above TLS, the best first (RFC 7301).
    pub protocols: Vec<Vec<u8>>,
    /// Bytes of a handshake message that may wait for their rest.
    pub handshake_bytes_max: usize,
    /// Files that the caller has opened, and where they are read the first time (`/proc/self/fd/…`): a path that
    /// another user can change must not be resolved again with more rights than that user has.
    pub opened: HashMap<PathBuf, PathBuf>,
    /// How an authority is shown that the names are ours (RFC 8737); `None`: not by TLS.
    pub challenges: Option<Challenges>,
}

/// Where the certificates are by which TLS answers an authority's challenges (`acme-tls/1`).
#[derive(Clone, Debug)]
pub struct Challenges {
    /// The directory of their files, `NAME.pem` with certificate and key; each is there while a challenge is open.
    pub directory: PathBuf,
    /// The names that can be asked for, in lower case.
    pub names: Vec<String>,
}

/// Where a certificate chain and its key are; they may be in one file.
#[derive(Clone, Debug)]
pub struct IdentityFiles {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// A version of TLS that is still in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the versions")]
pub enum Version {
    #[default]
    Tls12,
    Tls13,
}

static FROM_TLS12: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
static FROM_TLS13: &[&SupportedProtocolVersion] = &[&TLS13];

impl Version {
    /// This version and those after it, the best first.
    pub(crate) fn and_later(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => FROM_TLS12,
            Self::Tls13 => FROM_TLS13,
        }
    }
}

/// Whether clients are asked for certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not asked.
    #[default]
    Off,
    /// They may show one; what they show must be good.
    Optional,
    /// They must.
    Required,
}

impl Settings {
    /// Where the file of `path` is read.
    pub(crate) fn source<'a>(&'a self, path: &'a Path) -> &'a Path {
        self.opened.get(path).map_or(path, PathBuf::as_path)
    }

    /// Every file they name.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for files in &self.identities {
            paths.push(files.certificate.clone());
            if files.key != files.certificate {
                paths.push(files.key.clone());
            }
        }
        paths.extend(self.client_ca.clone());
        paths.extend(self.crls.iter().cloned());
        paths
    }
}
