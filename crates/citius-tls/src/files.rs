//! Files as they were when they were read, so that a change is noticed for the price of a `stat`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::system::{Identity, identity};
use crate::{Reason, Settings};

/// The files of a server and how they looked.
#[derive(Debug)]
pub(crate) struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

/// What tells one state of a file from another; a link that is pointed elsewhere changes it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    identity: Identity,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            identity: identity(&found),
            bytes: found.len(),
            modified: found.modified().ok(),
        })
    }
}

impl Stamps {
    /// Takes them; before the files are read, so that a change in between is noticed.
    pub(crate) fn take(settings: &Settings) -> Self {
        let stamp = |path: PathBuf| {
            let stamp = Stamp::of(settings.source(&path));
            (path, stamp)
        };
        Self(settings.paths().into_iter().map(stamp).collect())
    }

    /// Whether any of the files looks different now.
    pub(crate) fn are_stale(&self) -> bool {
        let differs = |(path, stamp): &(PathBuf, Option<Stamp>)| Stamp::of(path) != *stamp;
        self.0.iter().any(differs)
    }
}

/// Bytes of a file that is read for TLS; no honest one comes near.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// All of a file; `what` says what it should be.
pub(crate) fn read(settings: &Settings, path: &Path, what: &str) -> Result<Vec<u8>, Reason> {
    let cannot = |why: &str| format!("cannot read the {what} {}: {why}", path.display());
    let source = settings.source(path);
    match fs::metadata(source) {
        Ok(found) if found.is_dir() => return Err(cannot("it is a directory")),
        // A FIFO would keep the server waiting for a process that writes to it.
        Ok(found) if !found.is_file() => return Err(cannot("it is no regular file")),
        Ok(found) if found.len() > FILE_BYTES_MAX => {
            return Err(cannot("it is larger than 16 MiB"));
        }
        Ok(_) => {}
        Err(error) => return Err(cannot(&reason(&error))),
    }
    fs::read(source).map_err(|error| cannot(&reason(&error)))
}

/// The system's word for an error, without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}
