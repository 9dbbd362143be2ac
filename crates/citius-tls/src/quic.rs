//! Handshakes of QUIC (RFC 9001): messages in, messages and keys out, without records.
//!
//! Certificates, rules and tickets are those of the same [`Server`](crate::Server). Early data, which can be replayed, is
//! never offered.

use std::sync::Arc;

use citius_http::Tls;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{KeyChange, ServerConnection, Suite, Version};
use rustls::version::TLS13;
use rustls::{CipherSuite, ServerConfig, SupportedCipherSuite};

use crate::Reason;
use crate::resolver::{Choice, take_choice};
use crate::session::{Failure, facts_of};
use crate::tickets::GoodUntil;

/// What handshakes are made from, as a [`Server`](crate::Server) was configured when this was asked of it.
#[derive(Clone, Debug)]
pub struct QuicServer {
    config: Arc<ServerConfig>,
    handshake_bytes_max: usize,
}

/// The alert `decode_error` (RFC 8446 §6).
const DECODE_ERROR: u8 = 50;

impl QuicServer {
    pub(crate) fn new(
        config: &ServerConfig,
        protocols: &[&[u8]],
        handshake_bytes_max: usize,
    ) -> Result<Self, Reason> {
        let mut config = config.clone();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let is_usable = |suite: &SupportedCipherSuite| {
            suite.version() == &TLS13
                && suite
                    .tls13()
                    .is_some_and(|suite| suite.quic_suite().is_some())
        };
        if config.crypto_provider().cipher_suites.iter().any(is_usable) {
            Ok(Self {
                config: Arc::new(config),
                handshake_bytes_max,
            })
        } else {
            Err("QUIC needs a cipher suite of TLS 1.3, and --ssl-ciphers leaves none".into())
        }
    }

    /// The suite that seals the first packets of all connections (RFC 9001 §5).
    ///
    /// # Panics
    /// Never: ring has it.
    pub fn initial_suite() -> Suite {
        debug_assert_eq!(
            TLS13_AES_128_GCM_SHA256.suite(),
            CipherSuite::TLS13_AES_128_GCM_SHA256
        );
        TLS13_AES_128_GCM_SHA256
            .tls13()
            .and_then(rustls::Tls13CipherSuite::quic_suite)
            .expect("ring's AES seals packets of QUIC")
    }

    /// A session for a new connection, whose client is told `parameters` of the transport.
    ///
    /// # Errors
    /// rustls has no memory or random numbers for it.
    pub fn session(&self, version: Version, parameters: Vec<u8>) -> Result<QuicSession, Failure> {
        Ok(QuicSession {
            conn: ServerConnection::new(Arc::clone(&self.config), version, parameters)?,
            left_bytes: self.handshake_bytes_max,
            choice: None,
            good_until: GoodUntil::new(),
            facts: None,
        })
    }
}

/// One connection's handshake.
pub struct QuicSession {
    conn: ServerConnection,
    /// Of messages that the handshake may still have.
    left_bytes: usize,
    choice: Option<Choice>,
    good_until: GoodUntil,
    facts: Option<Arc<Tls>>,
}

impl std::fmt::Debug for QuicSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuicSession")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl QuicSession {
    /// Takes messages of the handshake.
    ///
    /// # Errors
    /// They break the protocol, or nothing that is offered is wanted: the number of the alert, if there is one, and the reason.
    pub fn receive(&mut self, messages: &[u8]) -> Result<(), (Option<u8>, String)> {
        // rustls keeps a message until it is whole, and takes one of 64 KiB.
        let Some(left) = self.left_bytes.checked_sub(messages.len()) else {
            let reason = "a handshake of more bytes than --tls-handshake-bytes-max".to_owned();
            return Err((Some(DECODE_ERROR), reason));
        };
        self.left_bytes = left;
        let conn = &mut self.conn;
        let taken = self.good_until.during(|| conn.read_hs(messages));
        if let Some(choice) = take_choice() {
            self.choice = Some(choice);
        }
        if !self.conn.is_handshaking()
            && let Some(choice) = self.choice.take()
        {
            self.facts = facts_of(&self.conn, choice);
        }
        taken.map_err(|error| (self.conn.alert().map(u8::from), error.to_string()))
    }

    /// Appends messages to send, up to where other keys are to be used for what follows.
    pub fn transmit(&mut self, messages: &mut Vec<u8>) -> Option<KeyChange> {
        self.conn.write_hs(messages)
    }

    /// Whether the handshake goes on.
    pub fn is_handshaking(&self) -> bool {
        self.conn.is_handshaking()
    }

    /// What the handshake has agreed on; `None` until it is over.
    pub fn facts(&self) -> Option<&Arc<Tls>> {
        self.facts.as_ref()
    }

    /// The protocol that is agreed on (ALPN).
    pub fn protocol(&self) -> Option<&[u8]> {
        self.conn.alpn_protocol()
    }

    /// Whether the protocol is agreed on, or the name of the server is known.
    pub fn has_begun(&self) -> bool {
        self.conn.alpn_protocol().is_some() || self.conn.server_name().is_some()
    }

    /// What the client has told of its transport.
    pub fn parameters(&self) -> Option<&[u8]> {
        self.conn.quic_transport_parameters()
    }
}
