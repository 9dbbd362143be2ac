//! Open files that responses send.
//!
//! In: a descriptor. Out: a [`File`] behind a [`FileRange`], shared by several responses. [`Files`] counts how many are open, so
//! that slow clients cannot use up the descriptors that connections need. Only regular files are taken, which never keep a read
//! waiting for a writer; a read may wait for a disk, and [`conn`](crate::conn) bounds how much a turn reads.
//! Tests: `tests/files.rs`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use citius_http::{FileRange, Payload};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, Result};

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
    pub fn adopt(&self, descriptor: OwnedFd, label: &str) -> Result<Arc<File>> {
        let status = rustix::fs::fstat(&descriptor)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(Errno::INVAL);
        }
        let place = Place::take(self).ok_or(Errno::NFILE)?;
        Ok(Arc::new(File {
            descriptor,
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
        let descriptor = rustix::fs::open(path, open_flags(), Mode::empty())?;
        self.adopt(descriptor, &path.to_string_lossy())
    }

    /// Number of files that are open.
    pub fn open_count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}

/// How files are opened that the application named: a FIFO must not keep the turn waiting for its writer,
/// a terminal must not become ours.
pub fn open_flags() -> OFlags {
    OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY
}

/// An open regular file.
#[derive(Debug)]
pub struct File {
    descriptor: OwnedFd,
    status: Stat,
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
    pub fn status(&self) -> &Stat {
        &self.status
    }

    /// Number of bytes when it was adopted.
    pub fn len(&self) -> u64 {
        u64::try_from(self.status.st_size).unwrap_or(0)
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
            match rustix::io::pread(&self.descriptor, &mut *bytes, offset) {
                Ok(0) => return Err(Errno::NODATA),
                Ok(n) => {
                    offset += n as u64;
                    bytes = &mut bytes[n..];
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether `sendfile` has failed on it before.
    pub(crate) fn must_be_read(&self) -> bool {
        self.must_be_read.load(Ordering::Relaxed)
    }

    pub(crate) fn set_must_be_read(&self) {
        self.must_be_read.store(true, Ordering::Relaxed);
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
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
