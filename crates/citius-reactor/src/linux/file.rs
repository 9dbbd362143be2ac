//! Files by the system calls of Linux: what there is of them, reading at an offset, sending by `sendfile`.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::process::{Resource, getrlimit};

use crate::file_status::FileStatus;
use crate::linux::Socket;

/// How files are opened that the application named: a FIFO must not keep the turn waiting for its writer,
/// a terminal must not become ours.
pub fn open_flags() -> OFlags {
    OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY
}

/// Opens a file for reading, wherever its path leads.
pub(crate) fn open(path: &Path) -> Result<File> {
    Ok(rustix::fs::open(path, open_flags(), Mode::empty())?.into())
}

/// What the file system says of an open file.
#[expect(
    clippy::useless_conversion,
    reason = "the fields' types differ between architectures"
)]
pub(crate) fn status(file: &File) -> Result<FileStatus> {
    let found = rustix::fs::fstat(file)?;
    let kind = FileType::from_raw_mode(found.st_mode);
    Ok(FileStatus {
        is_regular: kind == FileType::RegularFile,
        is_directory: kind == FileType::Directory,
        bytes: u64::try_from(found.st_size).unwrap_or(0),
        modified_s: i64::from(found.st_mtime),
        modified_ns: u32::try_from(found.st_mtime_nsec).unwrap_or(0),
    })
}

/// Reads at an offset.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    rustix::io::pread(file, buffer, offset)
}

/// Has the kernel send `count` bytes from `offset` on. `EINVAL`: the file's system cannot.
pub(crate) fn send_file(socket: &Socket, file: &File, offset: u64, count: u64) -> Result<usize> {
    let mut offset = offset;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    match rustix::fs::sendfile(socket, file, Some(&mut offset), count) {
        // The file has become shorter since its length was promised.
        Ok(0) => Err(Errno::NODATA),
        Err(Errno::NOSYS | Errno::OPNOTSUPP) => Err(Errno::INVAL),
        sent => sent,
    }
}

/// Descriptors that the process may have.
pub(crate) fn descriptors_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
