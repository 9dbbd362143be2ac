//! Open files that responses send.
//!
//! In: an open file. Out: a [`File`] behind a [`FileRange`], shared by several responses. [`Files`] counts how many are open, so
//! that slow clients cannot use up the descriptors that connections need. Only regular files are taken, which never keep a read
//! waiting for a writer; a read may wait for a disk, and [`conn`](crate::conn) bounds how much a turn reads.
//! Tests: `tests/files.rs`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use citius_http::{FileRange, Payload};

use crate::file_status::FileStatus;
use crate::system::{self, Errno, Result};

/// Opens a file for reading, wherever its path leads; one that would keep a read waiting is not waited for.
///
/// # Errors
/// Those of `open`; on systems other than Linux `EINVAL` for what is no regular file.
pub fn open(path: &Path) -> Result<std::fs::File> {
    system::open(path)
}

/// What the file system says of an open file.
///
/// # Errors
/// Those of `fstat`.
pub fn status(file: &std::fs::File) -> Result<FileStatus> {
    system::status(file)
}

/// The open files of one reactor, counted.
#[derive(Clone, Debug)]
pub struct Files {
    count: Arc<AtomicU32>,
    files_open_max: u32,
}

impl Files {
    pub(crate) fn new(files_open_max: u32) -> Self {
        Self {
            count: Arc::default(),
            files_open_max,
        }
    }

    /// Takes an open file over; `label` is what the log calls it, escaped: a name may hold line ends,
    /// and the application that gave it would write lines of its own.
    ///
    /// # Errors
    /// `EINVAL` if it is no regular file, `ENFILE` if as many are open as may be.
    pub fn adopt(&self, file: std::fs::File, label: &str) -> Result<Arc<File>> {
        let status = system::status(&file)?;
        if !status.is_regular {
            return Err(Errno::INVAL);
        }
        let place = Place::take(self).ok_or(Errno::NFILE)?;
        Ok(Arc::new(File {
            opened: file,
            status,
            label: label.escape_debug().to_string().into(),
            must_be_read: AtomicBool::new(false),
            _place: place,
        }))
    }

    /// Opens the file at `path`, wherever that leads.
    ///
    /// # Errors
    /// Those of `open` and of [`adopt`](Self::adopt).
    pub fn open(&self, path: &Path) -> Result<Arc<File>> {
        self.adopt(system::open(path)?, &path.to_string_lossy())
    }

    /// Number of files that are open.
    pub fn open_count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}

/// An open regular file.
#[derive(Debug)]
pub struct File {
    opened: std::fs::File,
    status: FileStatus,
    label: Box<str>,
    /// Its file system does not send by itself.
    must_be_read: AtomicBool,
    _place: Place,
}

impl File {
    /// Bytes below which a file is read at once: a copy is cheaper than a queue entry and a system call
    /// of its own, and the descriptor is free again.
    pub const SENT_BYTES_MIN: u64 = 32 * 1024;

    /// What the file system said of it when it was adopted.
    pub fn status(&self) -> FileStatus {
        self.status
    }

    /// Number of bytes when it was adopted.
    pub fn len(&self) -> u64 {
        self.status.bytes
    }

    /// Whether it had no bytes then.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the log calls it.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// `length` bytes from `offset` on, as the body of a response or a piece of one: read now if there are
    /// few, else sent when the socket takes them.
    ///
    /// # Errors
    /// Those of `pread`; `ENODATA` if the file is shorter than that by now.
    pub fn payload(self: &Arc<Self>, offset: u64, length: u64) -> Result<Payload<'static>> {
        match usize::try_from(length) {
            Ok(count) if length < Self::SENT_BYTES_MIN => {
                let mut bytes = vec![0; count];
                self.read_exact(offset, &mut bytes)?;
                Ok(Payload::Shared(Bytes::from(bytes)))
            }
            _ => Ok(Payload::File(FileRange::new(
                Arc::clone(self),
                offset,
                length,
            ))),
        }
    }

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// Those of `pread`; `ENODATA` if there are fewer.
    pub fn read_exact(&self, mut offset: u64, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            match system::read_at(&self.opened, bytes, offset) {
                Ok(0) => return Err(Errno::NODATA),
                Ok(n) => {
                    offset += n as u64;
                    bytes = &mut std::mem::take(&mut bytes)[n..];
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn as_std(&self) -> &std::fs::File {
        &self.opened
    }

    /// Whether `sendfile` has failed on it before.
    pub(crate) fn must_be_read(&self) -> bool {
        self.must_be_read.load(Ordering::Relaxed)
    }

    pub(crate) fn set_must_be_read(&self) {
        self.must_be_read.store(true, Ordering::Relaxed);
    }
}

/// One of the places that are counted.
#[derive(Debug)]
struct Place(Arc<AtomicU32>);

impl Place {
    fn take(files: &Files) -> Option<Self> {
        let more = |open: u32| (open < files.files_open_max).then_some(open + 1);
        files
            .count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        Some(Self(Arc::clone(&files.count)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
