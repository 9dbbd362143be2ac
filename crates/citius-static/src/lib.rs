//! Static mounts: directories whose files are responses, without a line of the application's code.
//!
//! Reading order: [`path`] (request path → path below the directory), [`beneath`] (that → an open file,
//! never one outside), [`asset`] (a file with its validators and its precompressed variants, remembered
//! for a moment), [`conditional`] and [`range`] (what of it the client needs), [`mount`] (the response).
//!
//! Invariants: no request opens anything outside the directory as it was opened at the start; what is not
//! there, not allowed or not a regular file is one and the same 404; a response never depends on a file's
//! bytes but through `Content-Length`, so that a file that changes can only be cut, not mixed up.
//!
//! Everything runs on the reactor's thread. What can wait is a disk: opening (remembered for
//! `files_cached_ms`), reading files under [`File::SENT_BYTES_MIN`](citius_reactor::File::SENT_BYTES_MIN),
//! and `sendfile`, of which one flush asks for a bounded number of bytes.
//!
//! Tests: the modules' own, and over real sockets `tests/static/`.
#![forbid(unsafe_code)]

mod asset;
mod beneath;
mod conditional;
#[cfg(target_os = "linux")]
mod linux;
mod media;
mod mount;
mod path;
#[cfg(any(test, not(target_os = "linux")))]
mod portable;
mod range;

pub use asset::Asset;
pub use beneath::{open_anywhere, open_beneath};
pub use mount::{
    Found, Mount, MountOptions, Mounts, Outlet, Said, Served, respond_whole, respond_with,
};
