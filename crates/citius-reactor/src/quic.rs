//! What a reactor has for QUIC: its endpoint, its UDP sockets, timers, and connections that are closed but not forgotten.
//!
//! In: datagrams of the sockets and of other workers. Out: events for connections, which the turn serves
//! ([`quic_turn`](crate::quic_turn)). Tests: `tests/http3/`.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use bytes::BytesMut;
use citius_http::Limits;
use citius_quic::{
    Connection, ConnectionEvent, Earned, Endpoint, EndpointEvent, From, Handle, Place, Received,
    Transmit,
};
use citius_tls::Server;

use crate::clock::exact_ns;
use crate::handing::{Handings, Kind, read_message};
use crate::id::ConnectionId;
use crate::poller::Poller;
use crate::readiness::INDEX_QUIC;
use crate::system::{Alarm, Arrived, DatagramBuffers, DatagramSocket, exact_instant};

/// What a reactor has for QUIC.
#[derive(Debug)]
pub(crate) struct Quic {
    pub(crate) endpoint: Endpoint,
    pub(crate) sockets: Vec<DatagramSocket>,
    /// Sockets that take nothing more, and are watched for room.
    pub(crate) is_full: Vec<bool>,
    buffers: DatagramBuffers,
    /// The connection of each handle; `None`: it is in `closing`, or there is none.
    pub(crate) ids: Vec<Option<ConnectionId>>,
    /// Connections that something has come for.
    pub(crate) active: Vec<ConnectionId>,
    /// Connections that wait for room in a socket.
    pub(crate) blocked: Vec<ConnectionId>,
    /// Connections that are closed, until no packet can come for them any more.
    pub(crate) closing: HashMap<Handle, Leftover>,
    pub(crate) alarm: Alarm,
    /// One entry at the most for each connection.
    pub(crate) timers: BTreeSet<(u64, Timed)>,
    /// The same moment on both clocks.
    begun: (Instant, u64),
    /// Where datagrams are made.
    pub(crate) outgoing: Vec<u8>,
    pub(crate) handshakes: usize,
    pub(crate) handings: Handings,
    /// Clients may speak RPC.
    offers_rpc: bool,
}

/// What is left of a connection that is closed.
pub(crate) struct Leftover {
    pub(crate) connection: Connection,
    pub(crate) socket: u32,
    pub(crate) timer_at: u64,
}

impl std::fmt::Debug for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leftover").finish_non_exhaustive()
    }
}

/// What a timer is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timed {
    Open(ConnectionId),
    Closed(usize),
}

/// Bytes of a datagram that is handed to another worker, with its header.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Datagrams that one turn takes from other workers.
const HANDED_PER_TURN: usize = 256;
/// The name that ALPN knows HTTP/3 by.
const HTTP3: &[u8] = b"h3";
/// Gives an event to a connection; whether it had none before.
pub(crate) type Deliver<'a> = dyn FnMut(ConnectionId, ConnectionEvent, Earned) -> bool + 'a;

impl Quic {
    pub(crate) fn new(
        place: Place,
        server: &Server,
        limits: &Limits,
        offers_rpc: bool,
    ) -> std::result::Result<Self, String> {
        Ok(Self {
            endpoint: Endpoint::new(place, server.quic(protocols(offers_rpc))?, limits),
            offers_rpc,
            sockets: Vec::new(),
            is_full: Vec::new(),
            buffers: DatagramBuffers::new(),
            ids: Vec::new(),
            active: Vec::new(),
            blocked: Vec::new(),
            closing: HashMap::new(),
            alarm: Alarm::new().map_err(|error| error.to_string())?,
            timers: BTreeSet::new(),
            begun: (exact_instant(), exact_ns()),
            outgoing: Vec::new(),
            handshakes: 0,
            handings: Handings::default(),
        })
    }

    /// Handshakes that begin from now on are made of `server`.
    pub(crate) fn renew(&mut self, server: &Server) -> std::result::Result<(), String> {
        self.endpoint
            .renew(server.quic(protocols(self.offers_rpc))?);
        Ok(())
    }

    /// Begins no connection any more.
    pub(crate) fn close(&mut self) {
        self.endpoint.close();
    }

    /// A moment in nanoseconds of the monotonic clock.
    pub(crate) fn ns_of(&self, at: Instant) -> u64 {
        let (instant, ns) = self.begun;
        let since = at.saturating_duration_since(instant).as_nanos();
        ns.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// Sets the timer of a connection to what it wants, if that is earlier than it is set for; returns what it is set for.
    pub(crate) fn set_timer(
        &mut self,
        timed: Timed,
        timer_at: u64,
        wanted: Option<Instant>,
    ) -> u64 {
        let Some(at) = wanted.map(|at| self.ns_of(at)) else {
            return timer_at;
        };
        if at >= timer_at {
            return timer_at;
        }
        self.timers.remove(&(timer_at, timed));
        self.timers.insert((at, timed));
        at
    }

    /// Passes what has come to the connection that it is for.
    fn take(
        &mut self,
        handle: Handle,
        event: ConnectionEvent,
        earned: Earned,
        deliver: &mut Deliver<'_>,
    ) {
        match self.ids.get(handle.0).copied().flatten() {
            Some(id) => {
                if deliver(id, event, earned) {
                    self.active.push(id);
                }
            }
            None => {
                if let Some(leftover) = self.closing.get_mut(&handle) {
                    leftover.connection.handle_event(event);
                    self.settle_leftover(handle);
                }
            }
        }
    }

    /// What a closed connection still has to say, and its end.
    pub(crate) fn settle_leftover(&mut self, handle: Handle) {
        let Some(mut leftover) = self.closing.remove(&handle) else {
            return;
        };
        let mut is_drained = false;
        while let Some(event) = leftover.connection.poll_endpoint_events() {
            is_drained |= event.is_drained();
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                leftover.connection.handle_event(event);
            }
        }
        while leftover.connection.poll().is_some() {}
        if is_drained {
            self.timers
                .remove(&(leftover.timer_at, Timed::Closed(handle.0)));
            return;
        }
        self.send_last(&mut leftover);
        let timer = leftover.connection.poll_timeout();
        leftover.timer_at = self.set_timer(Timed::Closed(handle.0), leftover.timer_at, timer);
        self.closing.insert(handle, leftover);
    }

    /// Forgets a closed connection before its time: what its client still sends is of no connection.
    pub(crate) fn forget_leftover(&mut self, handle: Handle) {
        if let Some(leftover) = self.closing.remove(&handle) {
            self.timers
                .remove(&(leftover.timer_at, Timed::Closed(handle.0)));
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }

    /// Sends the packet that closes a connection, if it is due. If the socket is full, the next packet of the client
    /// brings it about again.
    fn send_last(&mut self, leftover: &mut Leftover) {
        self.outgoing.clear();
        let now = exact_instant();
        if let Some(transmit) = leftover
            .connection
            .poll_transmit(now, 1, &mut self.outgoing)
            && let Some(socket) = self.sockets.get(leftover.socket as usize)
        {
            let _ = socket.transmit(&transmit, &self.outgoing);
        }
    }

    /// Sends what an endpoint answers by itself: Retry, Version Negotiation, a stateless reset. A full socket loses it.
    pub(crate) fn respond(&self, socket: u32, transmit: &Transmit) {
        if let Some(socket) = self.sockets.get(socket as usize) {
            let _ = socket.transmit(transmit, &self.outgoing);
        }
    }

    /// A connection waits for room in a socket.
    #[cold]
    pub(crate) fn wait_for_room(&mut self, id: ConnectionId, number: u32, poller: &Poller) {
        self.blocked.push(id);
        if let Some(socket) = self.sockets.get(number as usize)
            && let Some(is_full) = self.is_full.get_mut(number as usize)
            && !std::mem::replace(is_full, true)
        {
            self.handings
                .watch_for_room(poller, socket.socket(), quic_id(number));
        }
    }

    /// Receives datagrams of a socket, for as long as a turn has for them.
    pub(crate) fn receive(&mut self, number: u32, limits: &Limits, deliver: &mut Deliver<'_>) {
        let mut left = limits.quic_datagrams_per_turn_max as usize;
        let mut arrived = Vec::new();
        while left > 0 {
            let Some(socket) = self.sockets.get(number as usize) else {
                return;
            };
            let received = socket.receive(&mut self.buffers, |piece: Arrived<'_>| {
                let mut bytes = BytesMut::from(piece.bytes);
                let from = From {
                    remote: piece.remote,
                    local: piece.local,
                    ecn: piece.ecn,
                    socket: number,
                };
                while !bytes.is_empty() {
                    let datagram = bytes.split_to(piece.stride.min(bytes.len()));
                    arrived.push((from, datagram));
                }
            });
            // Nothing waits, or the error of an earlier datagram is told, of which its connection learns by itself.
            if received.is_err() {
                return;
            }
            let now = exact_instant();
            left = left.saturating_sub(arrived.len());
            for (from, datagram) in arrived.drain(..) {
                let (ours, origin) = (self.endpoint.origin(), self.endpoint.origin_of(&datagram));
                if let Some(origin) = origin.filter(|&origin| origin != ours)
                    && self.handings.hand_on(ours, origin, &from, &datagram)
                {
                    continue;
                }
                self.take_datagram(now, from, datagram, deliver);
            }
        }
    }

    /// Takes a datagram that is no other worker's.
    fn take_datagram(
        &mut self,
        now: Instant,
        from: From,
        datagram: BytesMut,
        deliver: &mut Deliver<'_>,
    ) {
        // A worker whose sockets another one reads begins nothing, and may get what was to begin with it.
        let copy = self.handings.is_taken_over.then(|| datagram.clone());
        let earned = Earned::by(&datagram, from.remote);
        self.outgoing.clear();
        let received =
            self.endpoint
                .receive(now, from, datagram, self.handshakes, &mut self.outgoing);
        match received {
            Received::Nothing => {}
            Received::Response(transmit) => self.respond(from.socket, &transmit),
            Received::Connection(handle, event) => self.take(handle, event, earned, deliver),
            Received::Beginning => {
                if let Some(copy) = copy {
                    self.handings.give_back(Kind::Beginning, &from, &copy);
                }
            }
        }
    }

    /// Takes what other workers hand on.
    pub(crate) fn receive_handed(&mut self, number: usize, deliver: &mut Deliver<'_>) -> Handed {
        let now = exact_instant();
        let mut buffer = std::mem::take(&mut self.outgoing);
        buffer.resize(MESSAGE_BYTES_MAX, 0);
        let mut messages = Vec::new();
        let mut handed = Handed::Datagrams;
        while let Some(source) = self.handings.sources.get(number) {
            match source.take(&mut buffer) {
                Ok(0) => {
                    handed = Handed::End;
                    break;
                }
                Ok(n) => match read_message(&buffer[..n]) {
                    Some((kind, Some((from, datagram)))) => {
                        messages.push((kind, from, BytesMut::from(datagram)));
                    }
                    Some((_, None)) => handed = Handed::TakenOver,
                    None => {}
                },
                Err(_) => break,
            }
            if messages.len() >= HANDED_PER_TURN {
                break;
            }
        }
        buffer.clear();
        self.outgoing = buffer;
        let ours = self.endpoint.origin();
        for (kind, from, datagram) in messages {
            let origin = self.endpoint.origin_of(&datagram);
            // What an older worker has read for one that is older still.
            if kind == Kind::Datagram
                && let Some(origin) = origin.filter(|&origin| origin != ours)
                && self.handings.hand_on(ours, origin, &from, &datagram)
            {
                continue;
            }
            self.take_datagram(now, from, datagram, deliver);
        }
        handed
    }
}

fn protocols(offers_rpc: bool) -> &'static [&'static [u8]] {
    if offers_rpc {
        &[HTTP3, citius_rpc::PROTOCOL]
    } else {
        &[HTTP3]
    }
}

/// What a UDP socket is watched as.
pub(crate) fn quic_id(number: u32) -> ConnectionId {
    ConnectionId {
        index: INDEX_QUIC,
        generation: number,
    }
}

/// What other workers have handed on, besides datagrams.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handed {
    Datagrams,
    /// A newer worker reads the sockets from now on.
    TakenOver,
    /// There is no other worker any more.
    End,
}
