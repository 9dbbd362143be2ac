//! What is known of the encryption of a connection once its handshake is over.
//!
//! Every request that comes over it carries the same [`Tls`], so that any interface can tell its application, even
//! after the connection has gone.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// One handshake's outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The version's number on the wire: 0x0303 for TLS 1.2, 0x0304 for TLS 1.3.
    pub version: u16,
    /// The cipher suite's number on the wire.
    pub cipher_suite: u16,
    /// The cipher suite's name with OpenSSL.
    pub cipher_name: &'static str,
    /// The name the client wanted to reach (RFC 6066 §3), if it said one.
    pub server_name: Option<Box<str>>,
    /// The server's certificate, DER.
    pub certificate: Arc<[u8]>,
    /// The client's certificates, DER, its own first; empty if it has shown none. What is here has been verified.
    pub client_chain: Vec<Box<[u8]>>,
    /// The subject of the client's certificate (RFC 4514).
    pub client_name: Option<Box<str>>,
    /// The handshake took up an earlier session.
    pub is_resumed: bool,
}

impl Tls {
    /// The version's name with OpenSSL.
    pub const fn version_name(&self) -> &'static str {
        match self.version {
            0x0303 => "TLSv1.2",
            0x0304 => "TLSv1.3",
            _ => "unknown",
        }
    }
}
