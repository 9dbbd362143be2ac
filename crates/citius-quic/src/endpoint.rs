//! All QUIC connections of one reactor, as far as a datagram has to find its own, and the handshakes that wait for their turn.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use citius_http::Limits;
use citius_tls::QuicServer;
use quinn_proto::{
    Connection, ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, EndpointConfig,
    EndpointEvent, IdleTimeout, Incoming, QlogConfig, ServerConfig, Transmit, TransportConfig,
    ValidationTokenConfig, VarInt,
};
use ring::rand::SystemRandom;

use crate::allowance::{Allowance, Earned};
use crate::cid::{Generator, Origin, destination};
use crate::keys::Keys;
use crate::replays::Replays;
use crate::session::{Crypto, VERSION};

/// Where an endpoint stands among those of a server.
#[derive(Clone, Debug)]
pub struct Place {
    /// What all of them know.
    pub keys: Keys,
    /// Which one it is.
    pub origin: Origin,
    /// The system does not fragment datagrams, so that their largest size can be found out.
    pub finds_mtu: bool,
    /// Where the events of each connection are written.
    pub logs: Option<Logs>,
}

/// Makes the place for the qlog of a connection, by the id that its client chose first; `None`: it has none.
#[derive(Clone)]
pub struct Logs(pub Arc<MakeLog>);

/// Makes one of them.
pub type MakeLog = dyn Fn(&str) -> Option<Log> + Send + Sync;

/// Where a qlog goes.
pub type Log = Box<dyn Write + Send + Sync>;

impl std::fmt::Debug for Logs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Logs")
    }
}

/// Where a datagram has come from, and what the kernel knows of it.
#[derive(Clone, Copy, Debug)]
pub struct From {
    /// The sender's address.
    pub remote: SocketAddr,
    /// The address that it was sent to.
    pub local: Option<IpAddr>,
    /// What the network says of its load.
    pub ecn: Option<EcnCodepoint>,
    /// The number of the socket.
    pub socket: u32,
}

/// What became of a datagram.
#[derive(Debug)]
pub enum Received {
    /// It is dropped, or waits with a handshake.
    Nothing,
    /// It is for this connection.
    Connection(ConnectionHandle, ConnectionEvent),
    /// It is answered by what was written.
    Response(Transmit),
    /// A client begins, and no connection begins here any more.
    Beginning,
}

/// What became of a handshake whose turn it was.
#[derive(Debug)]
pub enum Accepted {
    /// A new connection.
    Connection(Begun),
    /// It has failed; the client is told by what was written, if anything, by the socket with this number.
    Failed(SocketAddr, String, Option<Transmit>, u32),
}

/// A connection whose handshake has begun.
pub struct Begun {
    /// Its number.
    pub handle: ConnectionHandle,
    /// The connection.
    pub connection: Box<Connection>,
    /// The number of the socket that it has come by.
    pub socket: u32,
    /// What the client may be sent.
    pub allowance: Allowance,
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

/// The connections of one reactor.
pub struct Endpoint {
    inner: quinn_proto::Endpoint,
    place: Place,
    config: ServerConfig,
    limits: Limits,
    /// Handshakes that have not begun.
    waiting: VecDeque<(Incoming, u32, Allowance)>,
    replays: Replays,
    handshakes_max: usize,
    retry_from: usize,
    is_closed: bool,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("place", &self.place)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

/// Least milliseconds between two stateless resets: packets of unknown connections get few responses.
const RESET_INTERVAL: Duration = Duration::from_millis(1);
/// Bytes that may come for a handshake before it begins: what a client with large keys sends at once.
const WAITING_BYTES_MAX: u64 = 8 * 1024;
/// Bytes of messages of the handshake that have come before what they follow. Origin: quinn's 16 KiB.
const HANDSHAKE_BYTES_MAX: usize = 16 * 1024;
/// How long a client may take to come back with a Retry token.
const RETRY_LIFETIME: Duration = Duration::from_secs(15);

impl Endpoint {
    /// An endpoint without connections.
    pub fn new(place: Place, tls: QuicServer, limits: &Limits) -> Self {
        let mut config = EndpointConfig::new(Arc::new(place.keys.reset_key()));
        let (key, origin) = (place.keys.cids.clone(), place.origin);
        config
            .cid_generator(move || {
                Box::new(Generator {
                    key: key.clone(),
                    origin,
                    random: SystemRandom::new(),
                })
            })
            .supported_versions(vec![VERSION])
            .min_reset_interval(RESET_INTERVAL);
        let server = server_config(&place, tls, limits);
        Self {
            inner: quinn_proto::Endpoint::new(
                Arc::new(config),
                Some(Arc::new(server.clone())),
                place.finds_mtu,
                None,
            ),
            place,
            config: server,
            limits: limits.clone(),
            waiting: VecDeque::new(),
            replays: Replays::default(),
            handshakes_max: limits.quic_handshakes_max as usize,
            retry_from: limits.quic_retry_handshakes as usize,
            is_closed: false,
        }
    }

    /// Handshakes that begin from now on are made from `tls`.
    pub fn renew(&mut self, tls: QuicServer) {
        self.config.crypto = Arc::new(Crypto(tls));
        self.inner
            .set_server_config(Some(Arc::new(self.config.clone())));
    }

    /// Which one it is.
    pub fn origin(&self) -> Origin {
        self.place.origin
    }

    /// Who has given out the connection id to which a datagram is addressed; `None`: none of us, a client begins.
    pub fn origin_of(&self, datagram: &[u8]) -> Option<Origin> {
        Origin::of(&self.place.keys.cids, destination(datagram)?)
    }

    /// Takes a datagram. `handshakes` are under way besides those that wait. What there is to send at once goes to `out`.
    pub fn receive(
        &mut self,
        now: Instant,
        from: From,
        datagram: BytesMut,
        handshakes: usize,
        out: &mut Vec<u8>,
    ) -> Received {
        let From {
            remote, local, ecn, ..
        } = from;
        let earned = Earned::by(&datagram, remote);
        match self.inner.handle(now, remote, local, ecn, datagram, out) {
            None => Received::Nothing,
            Some(DatagramEvent::Response(transmit)) => Received::Response(transmit),
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                Received::Connection(handle, event)
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.admit(incoming, (from.socket, earned), handshakes, out)
            }
        }
    }

    /// A client begins: it waits for its turn, has to prove its address, or gets no response.
    fn admit(
        &mut self,
        incoming: Incoming,
        (socket, earned): (u32, Earned),
        handshakes: usize,
        out: &mut Vec<u8>,
    ) -> Received {
        let open = handshakes + self.waiting.len();
        let is_proven = incoming.remote_address_validated();
        let is_replayed = is_proven
            && self
                .replays
                .note(incoming.remote_address(), *incoming.orig_dst_cid());
        if self.is_closed {
            self.inner.ignore(incoming);
            return Received::Beginning;
        }
        if is_replayed || open >= self.handshakes_max {
            self.inner.ignore(incoming);
            return Received::Nothing;
        }
        if !is_proven && open >= self.retry_from {
            return match self.inner.retry(incoming, out) {
                Ok(transmit) => Received::Response(transmit),
                Err(error) => {
                    self.inner.ignore(error.into_incoming());
                    Received::Nothing
                }
            };
        }
        let allowance = Allowance::new(is_proven, earned);
        self.waiting.push_back((incoming, socket, allowance));
        Received::Nothing
    }

    /// Handshakes that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Begins the next handshake, which is hundreds of times the work of a packet.
    pub fn accept(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Accepted> {
        let (incoming, socket, allowance) = self.waiting.pop_front()?;
        let remote = incoming.remote_address();
        let config = self.logged(now, &incoming);
        Some(match self.inner.accept(incoming, now, out, config) {
            Ok((handle, connection)) => Accepted::Connection(Begun {
                handle,
                connection: Box::new(connection),
                socket,
                allowance,
            }),
            Err(error) => Accepted::Failed(remote, error.cause.to_string(), error.response, socket),
        })
    }

    /// The configuration of a connection whose events are written.
    fn logged(&self, now: Instant, incoming: &Incoming) -> Option<Arc<ServerConfig>> {
        let Logs(make) = self.place.logs.as_ref()?;
        let log = make(&incoming.orig_dst_cid().to_string())?;
        let mut qlog = QlogConfig::default();
        qlog.writer(log).start_time(now);
        let mut transport = transport_config(&self.limits);
        transport.qlog_stream(Some(qlog.into_stream()?));
        let mut config = self.config.clone();
        config.transport_config(Arc::new(transport));
        Some(Arc::new(config))
    }

    /// Turns the next one away, because too many connections are open.
    pub fn refuse(&mut self, out: &mut Vec<u8>) -> Option<(Transmit, u32)> {
        let (incoming, socket, _) = self.waiting.pop_front()?;
        Some((self.inner.refuse(incoming, out), socket))
    }

    /// Begins no connection any more: clients get no response, and reach the next worker that has the socket.
    pub fn close(&mut self) {
        self.is_closed = true;
        for (incoming, ..) in self.waiting.drain(..) {
            self.inner.ignore(incoming);
        }
    }

    /// Does what a connection asks for; what comes back is for that connection.
    pub fn handle_event(
        &mut self,
        handle: ConnectionHandle,
        event: EndpointEvent,
    ) -> Option<ConnectionEvent> {
        self.inner.handle_event(handle, event)
    }
}

fn server_config(place: &Place, tls: QuicServer, limits: &Limits) -> ServerConfig {
    let mut config = ServerConfig::new(Arc::new(Crypto(tls)), Arc::new(place.keys.token_key()));
    // Tokens of earlier connections would need a memory of those that were used, over all workers.
    let mut validation = ValidationTokenConfig::default();
    validation.sent(0);
    let waiting_max = limits.quic_handshakes_max as usize;
    config
        .transport_config(Arc::new(transport_config(limits)))
        .validation_token_config(validation)
        .retry_token_lifetime(RETRY_LIFETIME)
        .max_incoming(waiting_max)
        .incoming_buffer_size(WAITING_BYTES_MAX)
        .incoming_buffer_size_total(WAITING_BYTES_MAX * waiting_max as u64 / 4);
    config
}

fn transport_config(limits: &Limits) -> TransportConfig {
    let idle_ms = VarInt::from_u64(limits.quic_idle_ms).unwrap_or(VarInt::MAX);
    let idle = (limits.quic_idle_ms > 0).then(|| IdleTimeout::from(idle_ms));
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(limits.h3_streams_max.into())
        .max_concurrent_uni_streams(limits.quic_uni_streams_max.into())
        .max_idle_timeout(idle)
        .stream_receive_window(limits.body_window_bytes.max(1).into())
        .receive_window(limits.quic_window_bytes.into())
        .send_window(limits.quic_unacknowledged_bytes_max.into())
        .crypto_buffer_size(HANDSHAKE_BYTES_MAX)
        .datagram_receive_buffer_size(
            (limits.quic_datagram_bytes_max > 0).then_some(limits.quic_datagram_bytes_max as usize),
        )
        .datagram_send_buffer_size(limits.quic_datagram_bytes_max as usize);
    config
}
