//! Our TLS as `quinn-proto` asks for it.

use std::any::Any;
use std::sync::Arc;

use citius_http::Tls;
use citius_tls::{QuicServer, QuicSession};
use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{Connection, ConnectionId, Side, TransportError, TransportErrorCode};
use ring::aead;
use rustls::quic::{KeyChange, Secrets, Version};

/// The only version that is spoken (RFC 9000).
pub(crate) const VERSION: u32 = 1;

/// What handshakes are made from.
pub(crate) struct Crypto(pub(crate) QuicServer);

struct Session {
    tls: Handshake,
    has_begun: bool,
    next: Option<Secrets>,
}

/// A handshake. Once it is over, and the tickets are sent, TLS has nothing more to do: what it has agreed on is kept, and not
/// the 3 to 4 KiB that its state takes for each idle connection.
enum Handshake {
    Open(Box<QuicSession>),
    Over(Agreed),
}

/// The alert `unexpected_message` (RFC 8446 §6): after its handshake a client has no message to send. Keys are renewed by QUIC
/// (RFC 9001 §6), and certificates are asked for in the handshake.
const UNEXPECTED_MESSAGE: u8 = 10;

/// What a handshake has agreed on.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// What all of TLS has; `None` until it is over.
    pub tls: Option<Arc<Tls>>,
    /// The name of the protocol (ALPN).
    pub protocol: Option<Vec<u8>>,
}

/// What the handshake of a connection has agreed on so far.
pub fn agreed(connection: &Connection) -> Option<Agreed> {
    let data = connection.crypto_session().handshake_data()?;
    data.downcast::<Agreed>().ok().map(|agreed| *agreed)
}

impl crypto::ServerConfig for Crypto {
    fn initial_keys(
        &self,
        version: u32,
        chosen: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        if version != VERSION {
            return Err(UnsupportedVersion);
        }
        Ok(initial_keys(chosen, Side::Server))
    }

    /// RFC 9001 §5.8.
    fn retry_tag(&self, _version: u32, chosen: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        let mut pseudo = Vec::with_capacity(1 + chosen.len() + packet.len());
        pseudo.push(u8::try_from(chosen.len()).expect("at most 20"));
        pseudo.extend_from_slice(chosen);
        pseudo.extend_from_slice(packet);
        let key = aead::UnboundKey::new(&aead::AES_128_GCM, &RETRY_KEY).expect("16 bytes");
        let nonce = aead::Nonce::assume_unique_for_key(RETRY_NONCE);
        let tag = aead::LessSafeKey::new(key)
            .seal_in_place_separate_tag(nonce, aead::Aad::from(pseudo), &mut [])
            .expect("the length is far below the cipher's limit");
        let mut bytes = [0; 16];
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let mut encoded = Vec::new();
        parameters.write(&mut encoded);
        let tls = self.0.session(Version::V1, encoded);
        let tls = tls.expect("the configuration was checked, and the kernel gives random numbers");
        Box::new(Session {
            tls: Handshake::Open(Box::new(tls)),
            has_begun: false,
            next: None,
        })
    }
}

impl Session {
    /// Lets go of the handshake, if it is over.
    fn settle(&mut self) {
        if let Handshake::Open(tls) = &self.tls
            && !tls.is_handshaking()
            && self.next.is_some()
        {
            self.tls = Handshake::Over(agreed_by(tls));
        }
    }
}

fn agreed_by(tls: &QuicSession) -> Agreed {
    Agreed {
        tls: tls.facts().cloned(),
        protocol: tls.protocol().map(<[u8]>::to_vec),
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, chosen: &ConnectionId, side: Side) -> Keys {
        initial_keys(chosen, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.has_begun.then(|| {
            Box::new(match &self.tls {
                Handshake::Open(tls) => agreed_by(tls),
                Handshake::Over(agreed) => agreed.clone(),
            }) as Box<dyn Any>
        })
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        match &self.tls {
            Handshake::Open(tls) => tls.is_handshaking(),
            Handshake::Over(_) => false,
        }
    }

    fn read_handshake(&mut self, messages: &[u8]) -> Result<bool, TransportError> {
        let failed = |(alert, reason): (Option<u8>, String)| TransportError {
            code: alert.map_or(
                TransportErrorCode::PROTOCOL_VIOLATION,
                TransportErrorCode::crypto,
            ),
            frame: None,
            reason,
        };
        let Handshake::Open(tls) = &mut self.tls else {
            let reason = "a message of TLS after the handshake".to_owned();
            return Err(failed((Some(UNEXPECTED_MESSAGE), reason)));
        };
        tls.receive(messages).map_err(failed)?;
        if self.has_begun || !tls.has_begun() && tls.is_handshaking() {
            return Ok(false);
        }
        self.has_begun = true;
        Ok(true)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        // They are asked for once, in the handshake.
        let Handshake::Open(tls) = &self.tls else {
            return Ok(None);
        };
        let Some(mut encoded) = tls.parameters() else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(Side::Server, &mut encoded)?))
    }

    fn write_handshake(&mut self, messages: &mut Vec<u8>) -> Option<Keys> {
        let Handshake::Open(tls) = &mut self.tls else {
            return None;
        };
        let before = messages.len();
        match tls.transmit(messages) {
            Some(KeyChange::Handshake { keys }) => Some(boxed(keys)),
            Some(KeyChange::OneRtt { keys, next }) => {
                self.next = Some(next);
                Some(boxed(keys))
            }
            None => {
                if messages.len() == before {
                    self.settle();
                }
                None
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair {
            local: Box::new(keys.local),
            remote: Box::new(keys.remote),
        })
    }

    /// Only a server sends those.
    fn is_valid_retry(&self, _chosen: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    /// Nothing asks for it.
    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

fn initial_keys(chosen: &ConnectionId, side: Side) -> Keys {
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    boxed(QuicServer::initial_suite().keys(chosen, side, Version::V1))
}

fn boxed(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(keys.local.header),
            remote: Box::new(keys.remote.header),
        },
        packet: KeyPair {
            local: Box::new(keys.local.packet),
            remote: Box::new(keys.remote.packet),
        },
    }
}

/// RFC 9001 §5.8.
const RETRY_KEY: [u8; 16] = [
    0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e,
];
const RETRY_NONCE: [u8; 12] = [
    0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
];
