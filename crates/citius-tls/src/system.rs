//! What is asked of the operating system: `unix.rs` or `portable.rs`.

#[cfg(not(unix))]
pub(crate) use crate::portable::*;
#[cfg(unix)]
pub(crate) use crate::unix::*;
