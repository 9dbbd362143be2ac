//! A certificate chain and its key, from PEM files (RFC 7468).
//!
//! Keys may be PKCS#8 (also encrypted, RFC 5958), PKCS#1 (RSA) or SEC1 (elliptic curves). OpenSSL's older way to
//! encrypt keys (`Proc-Type: 4,ENCRYPTED`) derives them by one round of MD5 and is refused with the command that converts.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use pkcs8::EncryptedPrivateKeyInfo;
use pkcs8::der::Decode;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::certificate::{self, Facts};
use crate::settings::{IdentityFiles, Settings};
use crate::{Reason, files};

/// A certificate chain and its key, ready for handshakes.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) key: Arc<CertifiedKey>,
    /// The own certificate, DER.
    pub(crate) certificate: Arc<[u8]>,
    pub(crate) dns_names: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    /// What is wrong with the order of the chain, if anything is.
    pub(crate) disorder: Option<String>,
    pub(crate) valid_s: std::ops::RangeInclusive<u64>,
}

impl Identity {
    /// What the two files hold.
    pub(crate) fn load(settings: &Settings, from: &IdentityFiles) -> Result<Self, Reason> {
        let chain = chain(settings, &from.certificate)?;
        let key = key(settings, &from.key)?;
        Self::new(chain, &key).map_err(|why| {
            format!(
                "certificate {} and key {}: {why}",
                from.certificate.display(),
                from.key.display()
            )
        })
    }

    /// What a file holds that this server has written, whose critical extension for challenges rustls does not know.
    pub(crate) fn load_own(from: &IdentityFiles) -> Result<Self, Reason> {
        let settings = Settings::default();
        let chain = chain(&settings, &from.certificate)?;
        Self::unchecked(chain, &key(&settings, &from.key)?)
    }

    pub(crate) fn new(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
    ) -> Result<Self, Reason> {
        let made = Self::unchecked(chain, key)?;
        match made.key.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
                Ok(made)
            }
            Err(rustls::Error::InconsistentKeys(_)) => Err(why_not(&made.key)),
            Err(error) => Err(format!("rustls cannot use the certificate: {error}")),
        }
    }

    fn unchecked(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
    ) -> Result<Self, Reason> {
        let own = chain.first().ok_or("there is no certificate")?;
        let certificate = Arc::from(own.as_ref());
        let Facts {
            dns_names,
            addresses,
            valid_s,
            ..
        } = certificate::read(own)?;
        let key = any_supported_type(key).map_err(|_| {
            "keys may be RSA of 2048 to 8192 bits, ECDSA on P-256 or P-384, or Ed25519, and this is none of them"
        })?;
        let disorder = disorder(&chain);
        Ok(Self {
            key: Arc::new(CertifiedKey::new(chain, key)),
            certificate,
            dns_names,
            addresses,
            disorder,
            valid_s,
        })
    }
}

/// Why the first certificate of a chain is not that of its key.
fn why_not(key: &CertifiedKey) -> Reason {
    let own = key.cert.iter().skip(1).position(|certificate| {
        let alone = CertifiedKey::new(vec![certificate.clone()], Arc::clone(&key.key));
        alone.keys_match().is_ok()
    });
    match own {
        Some(index) => format!(
            "the chain is in the wrong order: the server's own certificate is number {} of the file and must be the \
             first, each certificate followed by that of its issuer",
            index + 2
        ),
        None => "they do not belong together: the certificate was made for another key".into(),
    }
}

/// What is wrong with the order of a chain: each certificate is followed by that of its issuer (RFC 5246 §7.4.2).
fn disorder(chain: &[CertificateDer<'static>]) -> Option<String> {
    let facts: Vec<Facts> = chain
        .iter()
        .map_while(|der| certificate::read(der).ok())
        .collect();
    let at = facts
        .windows(2)
        .position(|pair| pair[0].issuer != pair[1].subject)?;
    Some(format!(
        "is in the wrong order, which some clients refuse: certificate {} was issued by {}, and {} follows",
        at + 1,
        facts[at].issuer,
        facts[at + 1].subject
    ))
}

/// The certificates of a file, in its order.
pub(crate) fn chain(
    settings: &Settings,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, Reason> {
    certificates(&files::read(settings, path, "certificate")?, path)
}

/// The certificates of what `path` held.
pub(crate) fn certificates(
    pem: &[u8],
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, Reason> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| format!("{} is no valid PEM: {error}", path.display()))?;
    if found.is_empty() {
        return Err(format!(
            "{} has no certificate: expected PEM with -----BEGIN CERTIFICATE-----{}",
            path.display(),
            if pem.starts_with(&[0x30]) {
                "; it may be DER, which `openssl x509 -inform der -in FILE -out FILE.pem` converts"
            } else {
                ""
            }
        ));
    }
    Ok(found)
}

/// The private key of a file.
fn key(settings: &Settings, path: &Path) -> Result<PrivateKeyDer<'static>, Reason> {
    let pem = files::read(settings, path, "key")?;
    let name = path.display();
    if pem.windows(10).any(|w| w == b"4,ENCRYPTE") {
        return Err(format!(
            "the key {name} is encrypted in OpenSSL's old way, which protects it badly; convert it with \
             `openssl pkcs8 -topk8 -in {name} -out NEW.pem`"
        ));
    }
    if let Some(sealed) = encrypted(&pem).map_err(|why| format!("the key {name}: {why}"))? {
        let Some(password) = settings.password.as_deref() else {
            return Err(format!(
                "the key {name} is encrypted: give its password with --ssl-keyfile-password, or better \
                 in the environment as CITIUS_SSL_KEYFILE_PASSWORD"
            ));
        };
        return decrypt(&sealed, password).map_err(|why| format!("the key {name}: {why}"));
    }
    let mut found = PrivateKeyDer::pem_slice_iter(&pem);
    match found.next() {
        Some(Ok(key)) => Ok(key),
        Some(Err(error)) => Err(format!("the key {name} is no valid PEM: {error}")),
        None => Err(format!(
            "{name} has no private key: expected PEM with -----BEGIN PRIVATE KEY-----, RSA PRIVATE KEY or \
             EC PRIVATE KEY"
        )),
    }
}

/// The encrypted PKCS#8 key of a file, if it holds one.
fn encrypted(pem: &[u8]) -> Result<Option<Vec<u8>>, Reason> {
    const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
    const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
    let text = String::from_utf8_lossy(pem);
    let Some(start) = text.find(BEGIN) else {
        return Ok(None);
    };
    let Some(len) = text[start..].find(END) else {
        return Err("its PEM has no end".into());
    };
    let section = format!(
        "{}\n",
        &text[start..start + len + END.len()].replace('\r', "")
    );
    let (_, document) = pkcs8::der::Document::from_pem(&section)
        .map_err(|error| format!("it is no valid PEM: {error}"))?;
    Ok(Some(document.as_bytes().to_vec()))
}

fn decrypt(sealed: &[u8], password: &str) -> Result<PrivateKeyDer<'static>, Reason> {
    let info = EncryptedPrivateKeyInfo::from_der(sealed).map_err(|error| {
        format!("its encryption is not understood ({error}); PBES2 with AES is")
    })?;
    let key = info
        .encryption_algorithm
        .decrypt(password, info.encrypted_data)
        .map_err(|error| match error {
            // Which of the two it says is a matter of the crate's version.
            pkcs8::pkcs5::Error::DecryptFailed | pkcs8::pkcs5::Error::EncryptFailed => "the password does not fit".to_owned(),
            error => format!(
                "it cannot be decrypted ({error}); `openssl pkcs8 -topk8 -v2 aes-256-cbc` writes what is understood"
            ),
        })?;
    PrivateKeyDer::try_from(key).map_err(|_| "the password does not fit".to_owned())
}
