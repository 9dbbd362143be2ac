//! Certificates that are no authority's: those by which TLS answers a challenge (RFC 8737), and those that serve until
//! an authority has issued the first.
//!
//! Any worker may get the connection of the authority: the certificate is in a file that all of them can read, and is read
//! when it is asked for. Only names of the settings become names of files. Tests: `tests/acme/`.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair};
use rustls::server::ClientHello;

use crate::identity::Identity;
use crate::settings::{Challenges, IdentityFiles};
use crate::{Reason, tickets};

/// The protocol by which an authority asks (RFC 8737 §3); nothing follows its handshake.
pub const PROTOCOL: &[u8] = b"acme-tls/1";

const DAY_S: u64 = 24 * 60 * 60;
/// Seconds for which a certificate is good that an authority's replaces long before.
const VALID_S: u64 = 397 * DAY_S;

/// Whether a client asks for nothing but the answer to a challenge, as the authority has to.
pub(crate) fn is_asked(hello: &ClientHello<'_>) -> bool {
    hello
        .alpn()
        .is_some_and(|mut offered| offered.next() == Some(PROTOCOL) && offered.next().is_none())
}

impl Challenges {
    /// The certificate for the challenge that is open for `name`.
    pub(crate) fn answer(&self, name: &str) -> Option<Arc<Identity>> {
        let name = name.to_ascii_lowercase();
        if !self.names.contains(&name) {
            return None;
        }
        let path = self.directory.join(format!("{name}.pem"));
        let files = IdentityFiles {
            certificate: path.clone(),
            key: path,
        };
        Identity::load_own(&files).ok().map(Arc::new)
    }
}

/// A certificate for `name` that it has signed itself, and its key, in PEM. With `digest`, the SHA-256 of a key
/// authorization, it answers a challenge.
///
/// # Errors
/// `name` is no name of a host, or there are no random numbers.
pub fn self_signed(name: &str, digest: Option<&[u8; 32]>) -> Result<String, Reason> {
    let cannot = |error: rcgen::Error| format!("cannot make a certificate for {name}: {error}");
    let mut params = CertificateParams::new(vec![name.to_owned()]).map_err(cannot)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(
        DnType::CommonName,
        "Citius, until an authority has issued one",
    );
    if let Some(digest) = digest {
        params
            .custom_extensions
            .push(CustomExtension::new_acme_identifier(digest));
    }
    let now_s = tickets::wall_s();
    params.not_before = (UNIX_EPOCH + Duration::from_secs(now_s - DAY_S)).into();
    params.not_after = (UNIX_EPOCH + Duration::from_secs(now_s + VALID_S)).into();
    let key = KeyPair::generate().map_err(cannot)?;
    let certificate = params.self_signed(&key).map_err(cannot)?;
    Ok(certificate.pem() + &key.serialize_pem())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_names_of_the_settings_become_names_of_files() {
        let directory =
            std::env::temp_dir().join(format!("citius-challenge-{}", std::process::id()));
        fs::create_dir_all(directory.join("challenges")).unwrap();
        let pem = self_signed("a.example", Some(&[7; 32])).unwrap();
        for path in [
            "challenges/a.example.pem",
            "challenges/b.example.pem",
            "c.pem",
        ] {
            fs::write(directory.join(path), &pem).unwrap();
        }
        let challenges = Challenges {
            directory: directory.join("challenges"),
            names: vec!["a.example".into(), "d.example".into()],
        };
        for (name, is_answered) in [
            ("a.example", true),
            ("A.Example", true),
            ("b.example", false),
            ("../c", false),
            ("d.example", false),
        ] {
            assert_eq!(challenges.answer(name).is_some(), is_answered, "{name}");
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
