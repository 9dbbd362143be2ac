//! Python's numbers for open files and sockets: what they stand for, as values of our own.
//!
//! On Unix a number is a descriptor of the kernel's (`unix.rs`), on Windows one of the C library's (`windows.rs`).

#[cfg(unix)]
pub(crate) mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{duplicate, number_of, socket_of};
#[cfg(windows)]
pub use windows::{duplicate, number_of, socket_of};

/// What Python calls an open file or socket.
pub type Fd = std::ffi::c_int;

/// The error of a system on which only an event loop has sockets.
#[cfg(not(target_os = "linux"))]
fn no_sockets() -> std::io::Error {
    std::io::Error::new(
        std::io::ErrorKind::Unsupported,
        "on this system an event loop has to own the socket (--poller asyncio)",
    )
}
