//! The rules that connections to servers are secured by, read once from files.

use std::path::PathBuf;
use std::sync::Mutex;

use citius_tls::{Client, ClientSettings, Verification, Version};

use super::blocking;
use super::error::{NetError, Reason, Result};
use crate::lock::lock;
use crate::wait::Until;

/// How a server is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TlsRules {
    /// A file with the certificates of authorities; `None`: those of the system.
    pub(crate) authorities: Option<PathBuf>,
    /// The name that the certificate must have; `None`: the host's.
    pub(crate) server_name: Option<String>,
    pub(crate) is_unverified: bool,
}

/// What files were read for.
type Key = (Option<PathBuf>, bool);

static CLIENTS: Mutex<Vec<(Key, Client)>> = Mutex::new(Vec::new());
/// Rules that are kept; with more the oldest are read again.
const CLIENTS_MAX: usize = 16;

/// Where systems keep the certificates of authorities.
const SYSTEM_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The rules, which are read if this is the first connection by them.
pub(crate) fn client(rules: &TlsRules, until: Until) -> Result<Client> {
    let key = (rules.authorities.clone(), rules.is_unverified);
    let found = {
        let clients = lock(&CLIENTS);
        let found = clients.iter().find(|(other, _)| *other == key);
        found.map(|(_, client)| client.clone())
    };
    if let Some(client) = found {
        return Ok(client);
    }
    let settings = settings(&key);
    let loaded = blocking::run("reading certificates", until, move || {
        Client::load(settings)
    })?;
    let client = loaded.map_err(|reason| NetError::new(Reason::Tls, reason))?;
    let mut clients = lock(&CLIENTS);
    if clients.len() >= CLIENTS_MAX {
        clients.remove(0);
    }
    clients.push((key, client.clone()));
    Ok(client)
}

fn settings((authorities, is_unverified): &Key) -> ClientSettings {
    let authorities = match authorities {
        Some(path) => vec![path.clone()],
        None if *is_unverified => Vec::new(),
        None => system_file().into_iter().collect(),
    };
    ClientSettings {
        verification: if *is_unverified {
            Verification::Off
        } else {
            Verification::Web
        },
        authorities,
        identity: None,
        password: None,
        version_min: Version::Tls12,
        protocols: Vec::new(),
        pins: Vec::new(),
    }
}

/// `SSL_CERT_FILE`, as OpenSSL has it, or the first file that there is.
fn system_file() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("SSL_CERT_FILE") {
        return Some(PathBuf::from(path));
    }
    let mut files = SYSTEM_FILES.iter().map(PathBuf::from);
    files.find(|path| path.is_file())
}
