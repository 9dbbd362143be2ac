//! Errors by the names that they have on Linux, out of what Rust's standard library tells of any system.

use std::fmt;
use std::io::{Error, ErrorKind};

/// Why the system refuses something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(ErrorKind);

/// The result of a call of the system.
pub(crate) type Result<T> = std::result::Result<T, Errno>;

#[expect(missing_docs, reason = "the names are those of errno(3)")]
impl Errno {
    pub const ACCESS: Self = Self(ErrorKind::PermissionDenied);
    pub const AGAIN: Self = Self(ErrorKind::WouldBlock);
    pub const BADF: Self = Self(ErrorKind::NotSeekable);
    pub const CANCELED: Self = Self(ErrorKind::BrokenPipe);
    pub const CONNABORTED: Self = Self(ErrorKind::ConnectionAborted);
    pub const INTR: Self = Self(ErrorKind::Interrupted);
    pub const INVAL: Self = Self(ErrorKind::InvalidInput);
    pub const IO: Self = Self(ErrorKind::Other);
    pub const ISDIR: Self = Self(ErrorKind::IsADirectory);
    pub const LOOP: Self = Self(ErrorKind::TooManyLinks);
    pub const MFILE: Self = Self(ErrorKind::ResourceBusy);
    pub const NFILE: Self = Self(ErrorKind::QuotaExceeded);
    pub const NODATA: Self = Self(ErrorKind::UnexpectedEof);
    pub const NOENT: Self = Self(ErrorKind::NotFound);
    pub const NOTDIR: Self = Self(ErrorKind::NotADirectory);
    pub const OPNOTSUPP: Self = Self(ErrorKind::Unsupported);
    pub const PROTO: Self = Self(ErrorKind::InvalidData);
    pub const PROTONOSUPPORT: Self = Self(ErrorKind::AddrNotAvailable);
    pub const STALE: Self = Self(ErrorKind::StaleNetworkFileHandle);

    /// The number of errno.h, as far as all systems agree on it; `EIO` otherwise.
    pub fn raw_os_error(self) -> i32 {
        match self {
            Self::NOENT => 2,
            Self::INTR => 4,
            Self::BADF => 9,
            Self::ACCESS => 13,
            Self::NOTDIR => 20,
            Self::ISDIR => 21,
            Self::INVAL => 22,
            Self::NFILE => 23,
            Self::MFILE => 24,
            _ => 5,
        }
    }

    /// The error that a call of the standard library has returned.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "as on Linux, where not all errors have a number"
    )]
    pub fn from_io_error(error: &Error) -> Option<Self> {
        Some(Self(error.kind()))
    }
}

impl From<Error> for Errno {
    fn from(error: Error) -> Self {
        Self(error.kind())
    }
}

impl From<Errno> for Error {
    fn from(error: Errno) -> Self {
        Self::from(error.0)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Errno {}
