//! The secrets that all workers of a server share, so that each can do for the others what has to be done.

use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::hmac;

use crate::cid::CidKey;

/// Derived from one secret: the cipher of connection ids, what seals Retry tokens, and what stateless resets are made of.
#[derive(Clone)]
pub struct Keys {
    pub(crate) cids: CidKey,
    pub(crate) resets: [u8; 32],
    pub(crate) tokens: [u8; 32],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

impl Keys {
    /// The keys of a secret.
    pub fn new(secret: &[u8; 32]) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derive = |purpose: &[u8]| {
            let mut key = [0; 32];
            key.copy_from_slice(hmac::sign(&secret, purpose).as_ref());
            key
        };
        let cids = derive(b"citius quic: connection ids");
        let word =
            |at: usize| u32::from_be_bytes([cids[at], cids[at + 1], cids[at + 2], cids[at + 3]]);
        Self {
            cids: CidKey::new([word(0), word(4), word(8), word(12)]),
            resets: derive(b"citius quic: stateless resets"),
            tokens: derive(b"citius quic: tokens"),
        }
    }

    pub(crate) fn reset_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.resets)
    }

    pub(crate) fn token_key(&self) -> Prk {
        Salt::new(HKDF_SHA256, &[]).extract(&self.tokens)
    }
}
