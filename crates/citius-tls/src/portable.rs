//! Systems that are no Unix: files have neither inodes nor modes. What is made in a user's own directory has that directory's rights.

use std::fs::{DirBuilder, Metadata, OpenOptions};
use std::path::Path;

/// What tells a file from every other one: nothing but its size and time.
pub(crate) type Identity = ();

pub(crate) fn identity(_found: &Metadata) -> Identity {}

/// Whether all users can read a file. It is not known here.
pub(crate) fn is_world_readable(_path: &Path) -> bool {
    false
}

/// What is made has the rights of its directory.
pub(crate) fn for_owner(file: &mut OpenOptions) -> &mut OpenOptions {
    file
}

/// What is made in it has the rights of its parent directory.
pub(crate) fn directory_for_owner(directory: &mut DirBuilder) -> &mut DirBuilder {
    directory
}
