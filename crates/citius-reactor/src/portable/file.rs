//! Files of Rust's standard library.

use std::fs::File;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::file_status::FileStatus;
use crate::portable::{Errno, Result, Socket};

/// Opens a file for reading, wherever its path leads; only a regular one, for others may keep the call waiting.
pub(crate) fn open(path: &Path) -> Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Errno::INVAL);
    }
    Ok(File::open(path)?)
}

/// What the file system says of an open file.
pub(crate) fn status(file: &File) -> Result<FileStatus> {
    let found = file.metadata()?;
    let modified = found
        .modified()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
        .unwrap_or_default();
    Ok(FileStatus {
        is_regular: found.is_file(),
        is_directory: found.is_dir(),
        bytes: found.len(),
        modified_s: modified.as_secs().cast_signed(),
        modified_ns: modified.subsec_nanos(),
    })
}

/// Reads at an offset.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    Ok(std::os::unix::fs::FileExt::read_at(file, buffer, offset)?)
}

/// Reads at an offset. Nothing else uses the file's own position, which this moves.
#[cfg(windows)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    Ok(std::os::windows::fs::FileExt::seek_read(
        file, buffer, offset,
    )?)
}

/// There is no socket to send it to.
pub(crate) fn send_file(socket: &Socket, _file: &File, _offset: u64, _count: u64) -> Result<usize> {
    match *socket {}
}

/// Descriptors that the process may have; the standard library does not know.
pub(crate) fn descriptors_max() -> u64 {
    u64::MAX
}
