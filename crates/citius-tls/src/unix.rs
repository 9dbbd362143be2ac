//! Unix only: which file a path leads to, and who may read it.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What tells a file from every other one: device and inode.
pub(crate) type Identity = (u64, u64);

pub(crate) fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

/// Whether all users can read a file.
pub(crate) fn is_world_readable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o004 != 0)
}

/// Makes what is made a thing of its owner alone.
pub(crate) fn for_owner(file: &mut OpenOptions) -> &mut OpenOptions {
    file.mode(0o600)
}

/// Makes a directory that only its owner may use.
pub(crate) fn directory_for_owner(directory: &mut DirBuilder) -> &mut DirBuilder {
    directory.mode(0o700)
}
