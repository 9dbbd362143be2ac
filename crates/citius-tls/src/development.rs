//! The certificate of `--ssl-dev`: made once, signed by itself, good for this machine's own names.
//!
//! It is kept where it is found again, so that a browser that was told to trust it need not be told every day.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair};
use ring::digest::{SHA256, digest};

use crate::identity::{self, Identity};
use crate::settings::{IdentityFiles, Settings};
use crate::system::{directory_for_owner, for_owner};
use crate::{Reason, tickets};

/// Where the certificate is, and how to know it again.
#[derive(Clone, Debug)]
pub struct Development {
    /// PEM of the certificate.
    pub certificate: PathBuf,
    /// PEM of its key, readable by the owner.
    pub key: PathBuf,
    /// SHA-256 of the certificate in hexadecimal pairs, as browsers show it.
    pub fingerprint: String,
    /// It was made just now.
    pub is_new: bool,
}

/// Names the certificate is good for.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Seconds for which it is. Origin: what browsers accept at most of public ones, 398 days.
const VALID_S: u64 = 397 * DAY_S;
/// It is made anew when it has fewer left.
const LEFT_S_MIN: u64 = 7 * DAY_S;
const DAY_S: u64 = 24 * 60 * 60;

/// The development certificate kept in `directory`, made if there is none that is good for another week.
///
/// # Errors
/// It can be neither read nor written there.
pub fn development(directory: &Path) -> Result<Development, Reason> {
    let files = IdentityFiles {
        certificate: directory.join("localhost.pem"),
        key: directory.join("localhost-key.pem"),
    };
    let now_s = tickets::wall_s();
    let is_good = |identity: &Identity| {
        identity.valid_s.contains(&now_s) && identity.valid_s.contains(&(now_s + LEFT_S_MIN))
    };
    let find = || {
        Identity::load(&Settings::default(), &files)
            .ok()
            .filter(is_good)
            .map(|identity| identity.certificate.to_vec())
    };
    let mut is_new = false;
    let certificate = if let Some(certificate) = find() {
        certificate
    } else {
        // Of servers that start at once, one makes the pair: key and certificate are two files.
        let _lock = locked(directory).map_err(|error| unwritten(directory, &error))?;
        if let Some(certificate) = find() {
            certificate
        } else {
            is_new = true;
            make(&files, now_s)?
        }
    };
    Ok(Development {
        fingerprint: fingerprint(&certificate),
        certificate: files.certificate,
        key: files.key,
        is_new,
    })
}

/// Makes the directory, and waits until no other process or thread makes a certificate in it.
fn locked(directory: &Path) -> std::io::Result<fs::File> {
    directory_for_owner(fs::DirBuilder::new().recursive(true)).create(directory)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let lock = for_owner(&mut options).open(directory.join("localhost.lock"))?;
    lock.lock()?;
    Ok(lock)
}

fn unwritten(path: &Path, error: &std::io::Error) -> Reason {
    format!(
        "cannot keep the development certificate in {}: {error}",
        path.display()
    )
}

fn make(files: &IdentityFiles, now_s: u64) -> Result<Vec<u8>, Reason> {
    let cannot = |error: rcgen::Error| format!("cannot make a development certificate: {error}");
    let mut params = CertificateParams::new(NAMES.map(String::from).to_vec()).map_err(cannot)?;
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "Citius development certificate");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // A day early, for clients whose clock is behind.
    params.not_before = (UNIX_EPOCH + Duration::from_secs(now_s - DAY_S)).into();
    params.not_after = (UNIX_EPOCH + Duration::from_secs(now_s + VALID_S)).into();
    let key = KeyPair::generate().map_err(cannot)?;
    let certificate = params.self_signed(&key).map_err(cannot)?;
    // The key first, so that a certificate that is there has its key.
    for (path, pem) in [
        (&files.key, key.serialize_pem()),
        (&files.certificate, certificate.pem()),
    ] {
        write(path, &pem).map_err(|error| unwritten(path, &error))?;
    }
    let chain = identity::chain(&Settings::default(), &files.certificate)?;
    Ok(chain[0].to_vec())
}

/// Writes a file that only its owner can read, whole or not at all.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let mut file = for_owner(&mut options).open(&beside)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&beside, path)
}

fn fingerprint(certificate: &[u8]) -> String {
    let hash = digest(&SHA256, certificate);
    let pairs: Vec<_> = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    pairs.join(":")
}
