//! Unix only: numbers are descriptors.

use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use citius_reactor::Socket;

use crate::descriptor::Fd;

pub(crate) mod forks;
#[cfg(target_os = "linux")]
pub(crate) mod lifeline;

/// A file of our own for what the number stands for.
pub fn duplicate(fd: Fd) -> Result<File> {
    Ok(owned(fd)?.into())
}

/// A socket of our own for what the number stands for.
#[cfg(target_os = "linux")]
pub fn socket_of(fd: Fd) -> Result<Socket> {
    Ok(owned(fd)?.into())
}

/// There are none.
#[cfg(not(target_os = "linux"))]
pub fn socket_of(_fd: Fd) -> Result<Socket> {
    Err(super::no_sockets())
}

/// The number of an open file, for as long as it is open.
#[expect(
    clippy::unnecessary_wraps,
    reason = "elsewhere the system may refuse one"
)]
pub fn number_of(file: &File) -> Result<Fd> {
    Ok(file.as_raw_fd())
}

fn owned(fd: Fd) -> Result<OwnedFd> {
    if fd < 0 {
        return Err(Error::from_raw_os_error(EBADF));
    }
    // SAFETY: the caller says that `fd` is open; it is only borrowed for the call that duplicates it,
    // and a wrong number is refused by the kernel.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned()
}

/// What the kernel says of a number that is no descriptor.
const EBADF: i32 = 9;
