//! Opens what lies beneath a directory, and never anything else. `linux.rs` and `portable.rs` have the directories.

use std::fs::File;
use std::path::Path;

use citius_reactor::Errno;

#[cfg(target_os = "linux")]
pub(crate) use crate::linux::Directory;
use crate::path::{self, Below};
#[cfg(not(target_os = "linux"))]
pub(crate) use crate::portable::Directory;

/// Opens the file at `path` below `root`; `path` may come from a client.
///
/// # Errors
/// Those of `open`; `ENOENT` for a path with empty or dot segments or names that begin with a dot, `ELOOP` for
/// one with a symbolic link.
pub fn open_beneath(root: &Path, path: &[u8]) -> Result<File, Errno> {
    let is_file = |below: &Below<'_>| !below.is_directory && !below.path.is_empty();
    if path.starts_with(b"/") || path.contains(&0) {
        return Err(Errno::NOENT);
    }
    let below = path::below(path, false)
        .filter(is_file)
        .ok_or(Errno::NOENT)?;
    let opened = Directory::open(root, false)?.open_below(&below.path)?;
    regular(opened, Errno::NOENT)
}

/// Opens the file at `path`, wherever that leads; for paths that the application itself has made.
///
/// # Errors
/// Those of `open`; `EINVAL` for what is no regular file.
pub fn open_anywhere(path: &Path) -> Result<File, Errno> {
    regular(citius_reactor::open(path)?, Errno::INVAL)
}

fn regular(file: File, otherwise: Errno) -> Result<File, Errno> {
    if citius_reactor::status(&file)?.is_regular {
        Ok(file)
    } else {
        Err(otherwise)
    }
}
