//! TLS as a stage between socket and protocol: ciphertext in, plaintext out, and back (RFC 8446, RFC 5246).
//!
//! A [`Session`] is one connection, sans-IO: it is handed functions that receive and send, and calls each at most once.
//! It holds no buffers while it rests; all sessions of a thread work in one [`TlsScratch`]. A [`Server`] is what sessions are
//! made from: certificates, rules and ticket keys, loaded from the files that [`Settings`] name and loaded again when they
//! change. Files that cannot be used never take the place of those that could.
//!
//! QUIC carries the messages of a handshake itself and seals packets by the keys of it: a [`QuicSession`].
//!
//! A [`Client`] secures connections that the application opens itself.
//!
//! Cryptography is rustls' over ring; nothing here computes any but [`Tickets`], whose keys all workers of a machine derive
//! alike. Time comes in as a value, but for the wall clock that certificates are judged by, which rustls reads.
#![forbid(unsafe_code)]

mod certificate;
mod challenge;
mod ciphers;
mod client;
mod clients;
mod development;
mod files;
mod identity;
#[cfg(not(unix))]
mod portable;
mod quic;
mod resolver;
mod server;
mod session;
mod settings;
mod system;
#[cfg(test)]
mod tests;
mod tickets;
#[cfg(unix)]
mod unix;

pub use certificate::pem;
pub use challenge::{PROTOCOL as CHALLENGE_PROTOCOL, self_signed};
pub use client::{Client, ClientSession, ClientSettings, Verification};
pub use development::{Development, development};
pub use quic::{QuicServer, QuicSession};
pub use server::Server;
pub use session::{Failure, Session, Stop, TlsScratch, is_clear_text};
pub use settings::{Challenges, ClientAuth, IdentityFiles, Settings, Version};
pub use tickets::Tickets;

/// Why settings cannot be used: what was expected, what was found, what to do.
pub type Reason = String;
