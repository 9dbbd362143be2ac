//! What a reactor consists of, and the table of its connections.

use std::collections::VecDeque;
#[cfg(target_os = "linux")]
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use citius_compress::{Compressor, Policy};
use citius_forwarded::Proxies;
use citius_http::{Fields, Limits, Millis};
use citius_observe::Observer;
use citius_tls::{Server, TlsScratch};

use crate::balancer::Membership;
use crate::conn::Conn;
use crate::file::Files;
use crate::hosted::Host;
use crate::id::{ConnectionId, StreamId};
use crate::listener::{Listener, ListenerProtocol, ListenerTraits};
use crate::mailbox::{Mailbox, StreamCommand};
use crate::memories::Memories;
use crate::outgoing::OutgoingPoller;
use crate::poller::Poller;
use crate::quic::Quic;
use crate::readiness::{EVENTS_PER_TURN, INDEX_LISTENER, Readiness, Ready};
use crate::service::Service;
use crate::shortage::Shortage;
use crate::slow::SlowHandlers;
use crate::socket::Codecs;
use crate::system::{Result, Socket};
use crate::timers::Timers;
use crate::tools::Tools;
use crate::upstream::Upstreams;
use crate::watch::Watch;
use crate::wire::Protocols;

/// How a reactor is set up.
#[derive(Debug)]
pub struct Options {
    /// All limits.
    pub limits: Limits,
    /// The value of the `server` field; `None` leaves it out.
    pub server: Option<String>,
    /// Whether responses carry a `date` field.
    pub date: bool,
    /// Fields of every response that does not say the same itself.
    pub default_fields: Fields,
    /// What is told about every request.
    pub observer: Option<Box<Observer>>,
    /// What is compressed; `None` compresses nothing.
    pub compression: Option<Policy>,
    /// Peers that speak for their clients.
    pub proxies: Proxies,
    /// Which protocols are spoken.
    pub protocols: Protocols,
}

/// One thread's poller and its connections.
#[derive(Debug)]
pub struct Reactor {
    pub(crate) poller: Poller,
    /// What `poll` found and `turn` has not looked at yet.
    pub(crate) events: Vec<Ready>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) accepting: bool,
    /// At `connections_max`, connections without a request make room for new ones.
    pub(crate) makes_room: bool,
    pub(crate) shortage: Shortage,
    pub(crate) draining: bool,
    pub(crate) table: Table,
    pub(crate) timers: Timers,
    pub(crate) mailbox: Arc<Mailbox>,
    files: Files,
    pub(crate) compressor: Option<Compressor>,
    pub(crate) tools: Tools,
    /// What every read goes into first. One for all connections: idle ones hold no buffer.
    pub(crate) inbox: Box<[u8]>,
    /// The memory that the connection in hand writes into, for the same reason.
    pub(crate) spare_output: Vec<u8>,
    pub(crate) spare_commands: Vec<(StreamId, StreamCommand)>,
    /// Connections that could go on at once but have had their share of this turn.
    pub(crate) again: Vec<ConnectionId>,
    pub(crate) requests_total: u64,
    /// What is offered to clients of HTTP/3 beyond the plain protocol.
    pub(crate) h3_options: citius_h3::Options,
    /// Where sessions of RPC without HTTP/3 are; `None`: it is not offered.
    pub(crate) rpc_path: Option<Box<str>>,
    pub(crate) poll_worth: PollWorth,
    pub(crate) watch: Watch,
    pub(crate) codecs: Codecs,
    pub(crate) proxies: Proxies,
    /// When the log may next say that a peer without a PROXY header was turned away.
    pub(crate) proxy_notice_at: Millis,
    pub(crate) protocols: Protocols,
    /// What new connections are secured with; `None` in clear text.
    pub(crate) tls: Option<Box<Server>>,
    /// When its files were looked at last.
    pub(crate) tls_looked_at: Millis,
    /// The memory that TLS works in, for all connections.
    pub(crate) scratch: TlsScratch,
    /// Connections whose handshakes can go on.
    pub(crate) handshakes: VecDeque<ConnectionId>,
    /// When the turn began.
    pub(crate) started_at: Millis,
    pub(crate) slow: SlowHandlers,
    pub(crate) upstreams: Upstreams,
    pub(crate) memories: Memories,
    /// What it has for QUIC; nothing without a socket for it.
    pub(crate) quic: Option<Box<Quic>>,
    /// Its part in the balancer that shares new connections among reactors; `None`: it keeps all that it accepts.
    pub(crate) membership: Option<Membership>,
}

/// Whether polling again within a turn has lately found anything.
#[derive(Debug, Default)]
pub(crate) struct PollWorth {
    /// Finds minus vain polls, from 0 to `MOST`.
    score: u8,
    /// Turns since it was tried last.
    idle: u8,
}

impl PollWorth {
    const MOST: u8 = 8;
    /// After so many turns without, it is tried once more.
    const RETRY_TURNS: u8 = 32;

    pub(crate) fn note(&mut self, found: bool) {
        self.score = if found {
            (self.score + 1).min(Self::MOST)
        } else {
            self.score.saturating_sub(2)
        };
    }

    pub(crate) fn is_likely(&mut self) -> bool {
        if self.score > 0 {
            return true;
        }
        self.idle += 1;
        if self.idle == Self::RETRY_TURNS {
            self.idle = 0;
            return true;
        }
        false
    }
}

/// Bytes read from one connection in one turn.
const READ_BYTES: usize = 64 * 1024;

/// Timers of the reactor itself: `INDEX_LISTENER` with one of these as generation.
pub(crate) const TIMER_ACCEPT: u32 = 0;
pub(crate) const TIMER_SHORTAGE: u32 = 1;
pub(crate) const TIMER_DRAIN: u32 = 2;

/// What is offered to clients of HTTP/3 beyond the plain protocol, unless the application wants more.
const H3_OPTIONS: citius_h3::Options = citius_h3::Options {
    extended_connect: true,
    webtransport: false,
};

impl Reactor {
    /// An empty reactor that polls the kernel.
    ///
    /// # Errors
    /// The kernel refuses an epoll set, a timer or an event descriptor; systems other than Linux have none.
    pub fn new(options: Options) -> Result<Self> {
        Self::with_poller(options, Poller::epoll()?)
    }

    /// An empty reactor that `host` turns, and that owns no descriptor.
    ///
    /// # Errors
    /// None; the poller has nothing that the system could refuse.
    pub fn hosted(options: Options, host: Arc<dyn Host>) -> Result<Self> {
        Self::with_poller(options, Poller::hosted(host))
    }

    fn with_poller(options: Options, poller: Poller) -> Result<Self> {
        let mailbox = Mailbox::new(poller.waker()?);
        let limits = options.limits.clone();
        let compressor = options
            .compression
            .map(|policy| Compressor::new(policy, limits));
        let watch = Watch::new(options.observer, &options.limits);
        let server = options.server.map_or_else(Vec::new, |name| {
            [b"server: ", name.as_bytes(), b"\r\n"].concat()
        });
        let mut reactor = Self {
            poller,
            events: Vec::with_capacity(EVENTS_PER_TURN),
            listeners: Vec::new(),
            accepting: true,
            makes_room: false,
            shortage: Shortage::default(),
            draining: false,
            table: Table::default(),
            timers: Timers::default(),
            mailbox: Arc::new(mailbox),
            files: Files::new(options.limits.files_open_max),
            compressor,
            tools: Tools::new(options.limits, options.date, server, options.default_fields),
            inbox: new_inbox(),
            spare_output: Vec::new(),
            spare_commands: Vec::new(),
            again: Vec::new(),
            requests_total: 0,
            rpc_path: None,
            h3_options: H3_OPTIONS,
            poll_worth: PollWorth::default(),
            watch,
            codecs: Codecs::default(),
            proxies: options.proxies,
            protocols: options.protocols,
            tls: None,
            proxy_notice_at: 0,
            tls_looked_at: 0,
            scratch: TlsScratch::new(READ_BYTES),
            handshakes: VecDeque::new(),
            started_at: 0,
            slow: SlowHandlers::default(),
            upstreams: Upstreams::default(),
            memories: Memories::default(),
            quic: None,
            membership: None,
        };
        reactor.hold_spares();
        Ok(reactor)
    }

    /// Accepts connections from `socket`, which listens already.
    ///
    /// # Errors
    /// `socket` is not a listening socket, or the kernel refuses to watch it.
    pub fn listen(&mut self, socket: Socket, speaks: ListenerProtocol) -> Result<()> {
        self.listen_as(socket, speaks, ListenerTraits::default())
    }

    /// As [`listen`](Self::listen), with what is particular about the socket.
    ///
    /// # Errors
    /// As above.
    pub fn listen_as(
        &mut self,
        socket: Socket,
        speaks: ListenerProtocol,
        traits: ListenerTraits,
    ) -> Result<()> {
        self.add_listener(Listener::new(socket, speaks, traits)?)
    }

    fn add_listener(&mut self, listener: Listener) -> Result<()> {
        let generation = u32::try_from(self.listeners.len()).unwrap_or(u32::MAX);
        let id = ConnectionId {
            index: INDEX_LISTENER,
            generation,
        };
        if let Some(socket) = listener.socket() {
            self.poller.add(socket, id, Readiness::IN)?;
        }
        self.listeners.push(listener);
        Ok(())
    }

    /// Closes connections that have sent no request, or wait for another, when `connections_max` are open: for a port
    /// that is worked off quickly, and that peers which only connect must not fill.
    pub fn make_room(&mut self) {
        self.makes_room = true;
    }

    /// Speaks TLS with every connection accepted from now on.
    pub fn secure(&mut self, server: Server) {
        self.tls = Some(Box::new(server));
    }

    /// Offers WebTransport to clients of HTTP/3.
    pub fn offer_webtransport(&mut self) {
        self.h3_options.webtransport = true;
    }

    /// Offers RPC on connections of QUIC without HTTP/3; each is a session at `path`. Call it before
    /// [`listen_datagrams`](Self::listen_datagrams).
    pub fn offer_rpc(&mut self, path: &str) {
        self.rpc_path = Some(path.into());
    }

    /// The versions of HTTP that are spoken where a listener does not say otherwise.
    pub fn protocols(&self) -> Protocols {
        self.protocols
    }

    /// Whether TLS is spoken where a listener does not say otherwise.
    pub fn is_secured(&self) -> bool {
        self.tls.is_some()
    }

    /// The epoll descriptor: readable when a turn has something to do. `None`: a host turns the reactor.
    #[cfg(target_os = "linux")]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.poller {
            Poller::Epoll(epoll) => Some(epoll.descriptor()),
            Poller::Hosted(_) => None,
        }
    }

    /// The way back for late responses.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    /// Where files come from that responses send.
    pub fn files(&self) -> Files {
        self.files.clone()
    }

    /// Calls the service when one of these connections is ready. Whether the poller can do that: one without a descriptor cannot.
    pub fn watch_outgoing(&self, outgoing: &OutgoingPoller) -> bool {
        self.poller.add_outgoing(outgoing.epoll()).is_ok()
    }

    /// Calls the service, which has asked for it.
    #[cold]
    pub(crate) fn call_service<S: Service>(&mut self, service: &mut S) {
        if let Some(at) = service.called()
            && !self.poller.set_alarm(at)
        {
            // Without a descriptor the service asks again in the next turn.
            self.mailbox.wake();
        }
        if let Some(outgoing) = service.take_outgoing() {
            service.outgoing_watched(self.watch_outgoing(&outgoing));
        }
    }

    /// The time has come at which the service is to be called.
    pub(crate) fn note_alarm(&mut self) {
        self.poller.alarm_fired();
        // Not needed: this is a turn.
        let _ = self.mailbox.call_service();
    }

    /// Open connections.
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// Requests taken and not fully answered.
    pub fn requests_open(&self) -> usize {
        self.table.iter().map(|conn| conn.wire.streams_open()).sum()
    }

    /// The requests of [`requests_open`](Self::requests_open), by route as far as they are watched: the most frequent
    /// first, in a form to be read.
    pub fn routes_open(&self) -> String {
        let notes = self.table.iter().flat_map(|conn| &conn.notes);
        self.watch.routes(notes)
    }

    /// Requests taken since the start.
    pub fn requests_total(&self) -> u64 {
        self.requests_total
    }

    /// What is told about every request.
    pub fn observer(&mut self) -> Option<&mut Observer> {
        self.watch.observer.as_deref_mut()
    }

    /// Whether the reactor takes no new connections.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Whether the reactor takes no new connections and has none left.
    pub fn is_drained(&self) -> bool {
        self.draining && self.table.len() == 0
    }
}

/// The memory that every read goes into first.
pub(crate) fn new_inbox() -> Box<[u8]> {
    vec![0; READ_BYTES].into_boxed_slice()
}

/// The connections, by index and generation.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Read by other threads; written by the reactor's own thread alone, so without a locked instruction.
    len: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    /// Boxed, so that taking it out for a while moves a pointer.
    conn: Option<Box<Conn>>,
}

impl Table {
    /// The identity of the next connection. It must be put in place before the next call.
    pub(crate) fn reserve(&mut self) -> ConnectionId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).expect("descriptors are fewer than 2^32")
        });
        self.len.store(self.len() + 1, Ordering::Relaxed);
        ConnectionId {
            index,
            generation: self.slots[index as usize].generation,
        }
    }

    /// Takes a connection in hand; it must be put back or released.
    #[inline]
    pub(crate) fn take(&mut self, id: ConnectionId) -> Option<Box<Conn>> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation == id.generation {
            slot.conn.take()
        } else {
            None
        }
    }

    #[inline]
    pub(crate) fn put(&mut self, conn: Box<Conn>) {
        let index = conn.id.index as usize;
        self.slots[index].conn = Some(conn);
    }

    /// Frees the place of a connection that was reserved or taken.
    pub(crate) fn release(&mut self, id: ConnectionId) {
        let slot = &mut self.slots[id.index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.conn = None;
        self.free.push(id.index);
        self.len.store(self.len() - 1, Ordering::Relaxed);
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Conn> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation == id.generation {
            slot.conn.as_deref_mut()
        } else {
            None
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Conn> {
        self.slots.iter().filter_map(|slot| slot.conn.as_deref())
    }

    pub(crate) fn ids(&self) -> Vec<ConnectionId> {
        self.iter().map(|conn| conn.id).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// The length, for other threads to read.
    pub(crate) fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.len)
    }
}

/// A time that never comes.
pub(crate) const NEVER: Millis = Millis::MAX;
