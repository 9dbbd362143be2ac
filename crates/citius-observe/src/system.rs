//! What is asked of the operating system: `linux.rs` or `portable.rs`.

#[cfg(target_os = "linux")]
pub(crate) use crate::linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use crate::portable::*;
