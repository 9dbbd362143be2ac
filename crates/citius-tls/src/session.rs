//! One connection's TLS, from the first byte of its handshake to its last word.
//!
//! ```text
//!  socket ── receive() ─► [held | new] in TlsScratch::incoming ─► rustls ─► plaintext
//!  socket ◄─ transmit() ─ [unsent | sealed] in TlsScratch::outgoing ◄─ rustls ◄─ plaintext
//! ```
//!
//! What a session holds between two calls: an unfinished record or handshake message (`held`), and sealed bytes that
//! the socket has not taken (`unsent`). Plaintext counts as sent when the last sealed byte of it is: until then it stays with
//! the caller, whose queue so tells all there is to write, apart from the handshake's own messages (`wants_write`).

use std::sync::Arc;

use citius_http::Tls;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus,
};
use rustls::{CommonState, Error, HandshakeKind, ServerConfig};

use crate::resolver::{Choice, take_choice};
use crate::tickets::GoodUntil;
use crate::{certificate, ciphers};

/// Bytes of plaintext in a full record (RFC 8446 §5.1).
const RECORD_BYTES: usize = 16 * 1024;
/// Bytes of plaintext that are sealed for one call of the socket.
const SEALED_BYTES_MAX: usize = 4 * RECORD_BYTES;
/// Bytes that a record may be longer than its plaintext: header, content type, nonce and tag of any suite, with room.
const OVERHEAD_BYTES: usize = 64;
/// Bytes of one whole record on the wire at most (RFC 8446 §5.2).
const RECORD_WIRE_BYTES_MAX: usize = 5 + RECORD_BYTES + 256;
/// Bytes of the incoming side at least: a record that is held, and room for the next.
const INCOMING_BYTES_MIN: usize = 2 * RECORD_WIRE_BYTES_MAX;

/// The memory that all sessions of a thread work in; empty until the first one does.
#[derive(Debug)]
pub struct TlsScratch {
    incoming: Vec<u8>,
    incoming_bytes: usize,
    outgoing: Vec<u8>,
    /// Bytes of `outgoing` that are in use.
    filled: usize,
    /// Small pieces on their way into one record.
    gathered: Vec<u8>,
}

impl TlsScratch {
    /// Scratch memory with which `incoming_bytes` are received at once.
    ///
    /// # Panics
    /// Two records would not fit.
    pub const fn new(incoming_bytes: usize) -> Self {
        assert!(
            incoming_bytes >= INCOMING_BYTES_MIN,
            "two records have room"
        );
        Self {
            incoming: Vec::new(),
            incoming_bytes,
            outgoing: Vec::new(),
            filled: 0,
            gathered: Vec::new(),
        }
    }

    fn set_up(&mut self) {
        if self.incoming.is_empty() {
            self.incoming = vec![0; self.incoming_bytes];
            self.outgoing = vec![0; SEALED_BYTES_MAX + 4 * OVERHEAD_BYTES];
        }
    }

    /// Room for `bytes` more in `outgoing`.
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.outgoing.len() < self.filled + bytes {
            self.outgoing.resize(self.filled + bytes, 0);
        }
        &mut self.outgoing[self.filled..]
    }
}

/// What ends a session: the peer has broken the protocol, or does not want what we want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// Why a call has brought nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop<E> {
    /// The socket's own reason.
    Io(E),
    /// The session is over; what it has to say last is sent by [`Session::transmit`].
    Failed(Failure),
    /// The first byte begins a request in clear text; nothing was sent.
    ClearText,
}

/// One connection's TLS.
pub struct Session {
    conn: UnbufferedServerConnection,
    /// Received, and not understood without what follows.
    held: Vec<u8>,
    held_bytes_max: usize,
    /// Sealed, and not taken by the socket.
    unsent: Vec<u8>,
    /// Bytes of `unsent` that have been taken after all.
    unsent_from: usize,
    /// Bytes of the caller's plaintext that `unsent` is made of.
    covers: usize,
    has_begun: bool,
    has_failed: bool,
    peer_has_closed: bool,
    choice: Option<Choice>,
    good_until: GoodUntil,
    facts: Option<Arc<Tls>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("held", &self.held.len())
            .field("unsent", &self.unsent.len())
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(config: Arc<ServerConfig>, held_bytes_max: usize) -> Result<Self, Failure> {
        Ok(Self {
            conn: UnbufferedServerConnection::new(config)?,
            held: Vec::new(),
            held_bytes_max: held_bytes_max.max(RECORD_WIRE_BYTES_MAX),
            unsent: Vec::new(),
            unsent_from: 0,
            covers: 0,
            has_begun: false,
            has_failed: false,
            peer_has_closed: false,
            choice: None,
            good_until: GoodUntil::new(),
            facts: None,
        })
    }

    /// What the handshake has agreed on; `None` until it is over.
    #[inline]
    pub fn facts(&self) -> Option<&Arc<Tls>> {
        self.facts.as_ref()
    }

    /// The protocol agreed on (RFC 7301).
    pub fn protocol(&self) -> Option<&[u8]> {
        self.conn.alpn_protocol()
    }

    /// Whether the peer has said that it sends no more; what ended without that may have been cut.
    #[inline]
    pub fn peer_has_closed(&self) -> bool {
        self.peer_has_closed
    }

    /// Whether sealed bytes wait for the socket.
    #[inline]
    pub fn wants_write(&self) -> bool {
        self.unsent_from < self.unsent.len()
    }

    /// Whether plaintext of the caller's is among them.
    #[inline]
    pub fn is_sending(&self) -> bool {
        self.covers > 0
    }

    /// Calls `fetch` once with room for ciphertext and writes what it becomes to `plain`; returns its bytes.
    ///
    /// 0 means that `fetch` brought no plaintext yet, or the peer's end: its own 0, or [`peer_has_closed`](Self::peer_has_closed).
    ///
    /// # Errors
    /// `fetch`'s, or the session's end.
    ///
    /// # Panics
    /// `plain` is smaller than the scratch memory.
    pub fn receive<E>(
        &mut self,
        scratch: &mut TlsScratch,
        plain: &mut [u8],
        fetch: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, Stop<E>> {
        scratch.set_up();
        assert!(
            plain.len() >= scratch.incoming.len(),
            "plaintext is never longer than ciphertext"
        );
        let held = self.held.len();
        let n = fetch(&mut scratch.incoming[held..]).map_err(Stop::Io)?;
        if n == 0 || self.has_failed {
            return Ok(0);
        }
        // The rest must have room to come.
        let held_bytes_max = self.held_bytes_max.min(scratch.incoming.len() / 2);
        scratch.incoming[..held].copy_from_slice(&self.held);
        let incoming = &mut scratch.incoming[..held + n];
        if !self.has_begun {
            self.has_begun = true;
            if is_clear_text(incoming) {
                self.has_failed = true;
                return Err(Stop::ClearText);
            }
        }
        let (used, written) = self.take_in(incoming, plain).map_err(|failure| {
            self.fail();
            Stop::Failed(failure)
        })?;
        let rest = if self.peer_has_closed {
            &[]
        } else {
            &incoming[used..]
        };
        if rest.len() > held_bytes_max {
            self.fail();
            return Err(Stop::Failed(Failure(format!(
                "a handshake message of more than {held_bytes_max} bytes"
            ))));
        }
        if rest.is_empty() {
            // A session at rest owns no memory.
            self.held = Vec::new();
        } else {
            self.held.clear();
            self.held.extend_from_slice(rest);
        }
        Ok(written)
    }

    /// Deciphers all that can be; returns how much was used, and how much plaintext came of it.
    fn take_in(
        &mut self,
        incoming: &mut [u8],
        plain: &mut [u8],
    ) -> Result<(usize, usize), Failure> {
        let (mut used, mut written) = (0, 0);
        loop {
            let (conn, records) = (&mut self.conn, &mut incoming[used..]);
            let UnbufferedStatus { mut discard, state } = match self.facts {
                None => self.good_until.during(|| conn.process_tls_records(records)),
                Some(_) => conn.process_tls_records(records),
            };
            let mut is_blocked = false;
            match state? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        let end = written + record.payload.len();
                        plain[written..end].copy_from_slice(record.payload);
                        written = end;
                        discard += record.discard;
                    }
                }
                ConnectionState::EncodeTlsData(data) => encode(data, &mut self.unsent)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.peer_has_closed = true,
                ConnectionState::Closed
                | ConnectionState::BlockedHandshake
                | ConnectionState::WriteTraffic(_) => is_blocked = true,
                // Early data, which can be replayed, is never offered.
                _ => return Err(Failure("an unexpected state of the handshake".into())),
            }
            used += discard;
            if self.facts.is_none() {
                if let Some(choice) = take_choice() {
                    self.choice = Some(choice);
                }
                if !self.conn.is_handshaking() {
                    self.record_handshake();
                }
            }
            if is_blocked {
                return Ok((used, written));
            }
        }
    }

    /// Writes down what the handshake has agreed on.
    fn record_handshake(&mut self) {
        if let Some(choice) = self.choice.take() {
            self.facts = facts_of(&self.conn, choice);
        }
    }

    /// Calls `send` once with sealed bytes: those that wait, and as much of `pieces` as one call should carry. Returns how
    /// many bytes of `pieces` are fully sent; offer the others again, and nothing else in their place.
    ///
    /// Call it while there are pieces or [`wants_write`](Self::wants_write).
    ///
    /// # Errors
    /// `send`'s, or the session's end.
    pub fn transmit<'p, E>(
        &mut self,
        scratch: &mut TlsScratch,
        pieces: impl IntoIterator<Item = &'p [u8]>,
        send: impl FnOnce(&[u8]) -> Result<usize, E>,
    ) -> Result<usize, Stop<E>> {
        if self.has_failed && !self.wants_write() {
            return Err(Stop::Failed(Failure("the session is over".into())));
        }
        if self.covers == 0 {
            scratch.set_up();
            scratch.filled = 0;
            if self.wants_write() {
                let unsent = &self.unsent[self.unsent_from..];
                scratch.room(unsent.len())[..unsent.len()].copy_from_slice(unsent);
                scratch.filled = unsent.len();
            }
            if !self.has_failed {
                self.seal(scratch, pieces).map_err(Stop::Failed)?;
            }
            let sealed = &scratch.outgoing[..scratch.filled];
            if sealed.is_empty() {
                return Ok(0);
            }
            let (taken, error) = match send(sealed) {
                Ok(n) => (n, None),
                Err(error) => (0, Some(error)),
            };
            self.unsent_from = 0;
            if taken < sealed.len() {
                self.unsent.clear();
                self.unsent.extend_from_slice(&sealed[taken..]);
                return error.map_or(Ok(0), |error| Err(Stop::Io(error)));
            }
        } else {
            self.unsent_from += send(&self.unsent[self.unsent_from..]).map_err(Stop::Io)?;
            if self.wants_write() {
                return Ok(0);
            }
        }
        self.unsent = Vec::new();
        self.unsent_from = 0;
        Ok(std::mem::take(&mut self.covers))
    }

    /// Seals a call's worth of `pieces` into records that are as full as can be.
    fn seal<'p>(
        &mut self,
        scratch: &mut TlsScratch,
        pieces: impl IntoIterator<Item = &'p [u8]>,
    ) -> Result<(), Failure> {
        let mut left = SEALED_BYTES_MAX;
        let mut pieces = pieces.into_iter().peekable();
        let mut gathered = std::mem::take(&mut scratch.gathered);
        while let Some(piece) = pieces.next() {
            let mut piece = &piece[..piece.len().min(left)];
            left -= piece.len();
            self.covers += piece.len();
            let is_last = left == 0 || pieces.peek().is_none();
            if !gathered.is_empty() {
                // A record that was begun is filled first.
                let (now, rest) = piece.split_at(piece.len().min(RECORD_BYTES - gathered.len()));
                gathered.extend_from_slice(now);
                piece = rest;
                if gathered.len() == RECORD_BYTES || is_last {
                    self.encrypt(&gathered, scratch)?;
                    gathered.clear();
                }
            }
            let whole = if is_last {
                piece.len()
            } else {
                piece.len() / RECORD_BYTES * RECORD_BYTES
            };
            self.encrypt(&piece[..whole], scratch)?;
            gathered.extend_from_slice(&piece[whole..]);
            if is_last {
                break;
            }
        }
        scratch.gathered = gathered;
        Ok(())
    }

    fn encrypt(&mut self, plain: &[u8], scratch: &mut TlsScratch) -> Result<(), Failure> {
        if plain.is_empty() {
            return Ok(());
        }
        let records = plain.len().div_ceil(RECORD_BYTES);
        let mut room = plain.len() + records * OVERHEAD_BYTES;
        loop {
            let status = self.conn.process_tls_records(&mut self.held);
            match status.state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    match traffic.encrypt(plain, scratch.room(room)) {
                        Ok(n) => {
                            scratch.filled += n;
                            return Ok(());
                        }
                        // Messages of the handshake's go before.
                        Err(EncryptError::InsufficientSize(size)) => room = size.required_size,
                        Err(EncryptError::EncryptExhausted) => {
                            return Err(Failure("the keys of the connection are used up".into()));
                        }
                    }
                }
                ConnectionState::EncodeTlsData(data) => {
                    let mut message = Vec::new();
                    encode(data, &mut message)?;
                    scratch.room(message.len())[..message.len()].copy_from_slice(&message);
                    scratch.filled += message.len();
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.peer_has_closed = true,
                _ => return Err(Failure("nothing can be written in this state".into())),
            }
        }
    }

    /// Our last words, to be sent after all else (RFC 8446 §6.1); empty where they would be a lie: before the handshake is
    /// over, after a failure, or while something is unsent.
    pub fn close(&mut self) -> Vec<u8> {
        let mut words = Vec::new();
        if self.facts.is_none() || self.has_failed || self.wants_write() {
            return words;
        }
        loop {
            let status = self.conn.process_tls_records(&mut self.held);
            match status.state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let mut room = [0; 2 * OVERHEAD_BYTES];
                    // If close_notify does not fit, the peer sees a truncated connection.
                    if let Ok(n) = traffic.queue_close_notify(&mut room) {
                        words.extend_from_slice(&room[..n]);
                    }
                    return words;
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    if encode(data, &mut words).is_err() {
                        return words;
                    }
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_has_closed = true,
                _ => return words,
            }
        }
    }

    /// Puts the alert that tells the peer of its mistake among what is to be sent.
    fn fail(&mut self) {
        self.has_failed = true;
        self.held = Vec::new();
        // rustls must not be asked for more than its alert: it would look for what it has read of a message.
        while self.conn.wants_write() {
            match self.conn.process_tls_records(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    if encode(data, &mut self.unsent).is_err() {
                        return;
                    }
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while traffic.next_record().is_some() {}
                }
                _ => return,
            }
        }
    }
}

/// Appends a message of the handshake's.
/// What a handshake that is over has agreed on.
pub(crate) fn facts_of(conn: &CommonState, choice: Choice) -> Option<Arc<Tls>> {
    let (suite, version) = (conn.negotiated_cipher_suite()?, conn.protocol_version()?);
    let client_chain: Vec<Box<[u8]>> = conn
        .peer_certificates()
        .unwrap_or_default()
        .iter()
        .map(|certificate| certificate.as_ref().into())
        .collect();
    let client_name = client_chain
        .first()
        .and_then(|own| certificate::read(own).ok())
        .map(|facts| facts.subject.into_boxed_str());
    Some(Arc::new(Tls {
        version: version.into(),
        cipher_suite: suite.suite().into(),
        cipher_name: ciphers::name_of(suite),
        server_name: choice.server_name,
        certificate: Arc::clone(&choice.identity.certificate),
        client_chain,
        client_name,
        is_resumed: conn.handshake_kind() == Some(HandshakeKind::Resumed),
    }))
}

fn encode<Data>(mut data: EncodeTlsData<'_, Data>, to: &mut Vec<u8>) -> Result<(), Failure> {
    let at = to.len();
    let mut room = 0;
    loop {
        to.resize(at + room, 0);
        match data.encode(&mut to[at..]) {
            Ok(n) => {
                to.truncate(at + n);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(size)) if size.required_size > room => {
                room = size.required_size;
            }
            Err(error) => return Err(Failure(error.to_string())),
        }
    }
}

/// Whether bytes that should begin a handshake begin a request of HTTP or JSON instead. No kind of record has the number of
/// a letter or a bracket.
pub fn is_clear_text(bytes: &[u8]) -> bool {
    let first = bytes.first();
    first.is_some_and(|byte| byte.is_ascii_uppercase() || matches!(byte, b'{' | b'['))
}
