//! The thread loop of QUIC, by `quinn-proto` and `quinn-udp`: HTTP/3, whose frames are `wire::h3`'s, messages of WebTransport, whose
//! sessions are `wire::webtransport`'s, and calls on streams, whose messages are `wire::rpc`'s.
//!
//! As in [`engine`](crate::engine) one thread serves its share of connections with one epoll set, and the instants that a latency
//! is made of are the same: an answer ends at the clock read behind the `recvmsg` that brought its last datagram, a request begins
//! at the last one before it is handed to QUIC. Only the closed loop is spoken, on connections that live on.
//!
//! Every connection has a socket of its own, so that a server with several sockets spreads them as it does others' clients.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, ReadError, StreamEvent, StreamId, TransportConfig, VarInt, WriteError,
};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::clock::{self, CpuTime, SECOND_NS};
use crate::engine::{Live, Seat};
use crate::flight::{Comparison, Flight, Sent};
use crate::judge::{Exchange, Judge, Phase};
use crate::pace::Random;
use crate::plan::{Plan, Protocol};
use crate::request::Mix;
use crate::stop::{Quota, Window};
use crate::tally::{ErrorClass, Tally};
use crate::wire::h2::huffman::Huffman;
use crate::wire::h3::{self, Response};
use crate::wire::webtransport::{self, SERIAL_BYTES};
use crate::wire::{Answers, Failure, Fault, Ticket, rpc};

mod session;

use session::{Progress, Session};

/// One thread's part of a run.
pub(crate) struct QuicEngine {
    plan: Arc<Plan>,
    epoll: OwnedFd,
    config: ClientConfig,
    name: String,
    places: Vec<Place>,
    prepared: Vec<Bytes>,
    huffman: Huffman,
    judge: Judge,
    mix: Arc<Mix>,
    random: Random,
    quota: Quota,
    window: Window,
    edge_ns: u64,
    ended_ns: u64,
    cpu_at_begin: CpuTime,
    retries: BinaryHeap<Reverse<(u64, usize)>>,
    sweep_ns: u64,
    input: Vec<u8>,
    output: Vec<u8>,
    live: Arc<Live>,
    interrupted: Arc<AtomicBool>,
    on_end: Box<dyn FnMut(u64) + Send>,
    n_open: u64,
    /// The same instant by both clocks.
    origin: (Instant, u64),
}

/// A connection, and those that take its place.
struct Place {
    quic: Option<Quic>,
    flight: Flight,
    n_answers: u64,
    n_answers_before: u64,
    n_answers_uncounted: u64,
    n_failures: u32,
    opened_ns: u64,
}

/// A connection that is open, or opening.
struct Quic {
    socket: UdpSocket,
    state: UdpSocketState,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    is_established: bool,
    streams: HashMap<StreamId, Asked>,
    /// Requests of which QUIC has not taken all.
    unwritten: Vec<(StreamId, Bytes)>,
    /// That of WebTransport.
    session: Option<Session>,
}

impl Quic {
    /// Whether requests can be sent.
    fn is_ready(&self) -> bool {
        let session = self.session.as_ref();
        self.is_established && session.is_none_or(|session| session.is_granted)
    }
}

/// A request under way.
struct Asked {
    ticket: Ticket,
    answer: Answer,
}

/// What has come for it.
enum Answer {
    Http(Response),
    Call(Vec<u8>),
    /// A message that comes back; whether it has begun.
    Echo(bool),
}

impl Answer {
    fn has_begun(&self) -> bool {
        match self {
            Self::Http(response) => response.has_begun,
            Self::Call(bytes) => !bytes.is_empty(),
            Self::Echo(has_begun) => *has_begun,
        }
    }

    /// # Errors  A rule was broken.
    fn receive<A: Answers>(
        &mut self,
        huffman: &Huffman,
        ticket: Ticket,
        bytes: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault> {
        match self {
            Self::Http(response) => response.receive(huffman, ticket, bytes, answers),
            Self::Call(message) => {
                message.extend_from_slice(bytes);
                Ok(())
            }
            Self::Echo(has_begun) => {
                if !std::mem::replace(has_begun, true) {
                    answers.begin(ticket, MESSAGE_STATUS, false);
                }
                answers.body(ticket, bytes);
                Ok(())
            }
        }
    }

    /// The stream has ended.
    /// # Errors  That was not the end of an answer.
    fn end<A: Answers>(&self, ticket: Ticket, answers: &mut A) -> Result<(), Fault> {
        match self {
            Self::Echo(true) => {}
            Self::Echo(false) => answers.begin(ticket, MESSAGE_STATUS, false),
            Self::Http(response) if response.is_complete() => {}
            Self::Http(_) => return Err(Fault::Frame),
            Self::Call(message) => {
                let (status, body) = rpc::of_stream(message)?;
                answers.begin(ticket, status, false);
                answers.body(ticket, body);
            }
        }
        answers.complete(ticket);
        Ok(())
    }
}

/// What a request is sent on.
enum Channel {
    Stream(StreamId),
    /// By its serial number.
    Datagram(u64),
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Connect,
    Lost,
    TimedOut,
    Fault,
}

impl QuicEngine {
    /// # Errors  The kernel refuses an epoll instance, or the TLS configuration does not do for QUIC.
    pub(crate) fn new(plan: &Arc<Plan>, seat: Seat) -> Result<Self, String> {
        let Seat {
            thread,
            window,
            live,
            interrupted,
            on_end,
        } = seat;
        let security = plan.security.as_ref().ok_or("QUIC needs a URL with TLS")?;
        let crypto = QuicClientConfig::try_from(security.config()).map_err(|e| e.to_string())?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        let mut transport = TransportConfig::default();
        transport.max_concurrent_bidi_streams(VarInt::from_u32(0));
        config.transport_config(Arc::new(transport));
        let mix = Arc::new(plan.mix.clone());
        let prepared = mix.entries.iter().map(|entry| match plan.protocol {
            Protocol::RpcQuic => rpc::on_stream(&entry.request).into(),
            Protocol::Streams | Protocol::Datagrams => entry.request.body.clone().into(),
            _ => h3::encode(&entry.request).into(),
        });
        let n_places = plan.transport.share(thread, plan.threads);
        let seed = plan
            .seed
            .wrapping_add(thread as u64)
            .wrapping_mul(2)
            .wrapping_add(1);
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| e.to_string())?,
            config,
            name: security.name(),
            places: (0..n_places)
                .map(|_| Place {
                    quic: None,
                    flight: Flight::new(plan.transport.pipeline),
                    n_answers: 0,
                    n_answers_before: 0,
                    n_answers_uncounted: 0,
                    n_failures: 0,
                    opened_ns: 0,
                })
                .collect(),
            prepared: prepared.collect(),
            huffman: Huffman::default(),
            judge: Judge::new(Arc::clone(&mix), false, plan.check_every),
            mix,
            random: Random::new(seed),
            quota: plan.quota(thread),
            window,
            edge_ns: window.begin_ns,
            ended_ns: window.end_ns,
            cpu_at_begin: CpuTime::default(),
            retries: BinaryHeap::new(),
            sweep_ns: window.start_ns,
            input: vec![0; INPUT_BYTES],
            output: Vec::new(),
            plan: Arc::clone(plan),
            live,
            interrupted,
            on_end,
            n_open: 0,
            origin: origin(),
        })
    }

    /// Runs from the window's start until all is answered or given up.
    pub(crate) fn run(mut self) -> Tally {
        let mut events = Vec::with_capacity(1024);
        self.tick();
        for index in 0..self.places.len() {
            self.open(index);
        }
        while !self.is_over() {
            self.wait(&mut events);
            self.tick();
            for event in events.drain(..) {
                let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                let flags = event.flags;
                if flags.contains(epoll::EventFlags::IN) {
                    self.receive(index);
                }
                self.serve(index);
            }
            self.expire();
            self.retry();
            if self.judge.now_ns >= self.sweep_ns {
                self.sweep();
            }
            let (completed, errors) = (self.judge.tally.completed, self.judge.tally.errors.total());
            self.live.completed.store(completed, Ordering::Relaxed);
            self.live.errors.store(errors, Ordering::Relaxed);
        }
        self.close_the_books()
    }

    fn is_over(&mut self) -> bool {
        let is_spent =
            self.judge.is_counting() && self.quota.is_exhausted() && self.judge.n_under_way == 0;
        if is_spent || self.interrupted.load(Ordering::Relaxed) {
            self.end_counting(self.judge.now_ns);
        }
        self.judge.phase == Phase::Draining
            && (self.judge.n_under_way == 0 || self.judge.now_ns >= self.edge_ns)
    }

    /// The nanosecond of the lab's clock that an instant of QUIC's is.
    fn ns_of(&self, instant: Instant) -> u64 {
        let span = instant.saturating_duration_since(self.origin.0);
        self.origin.1 + u64::try_from(span.as_nanos()).unwrap_or(u64::MAX / 2)
    }

    fn instant(&self) -> Instant {
        let span_ns = self.judge.now_ns.saturating_sub(self.origin.1);
        self.origin.0 + std::time::Duration::from_nanos(span_ns)
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) {
        let mut wake_ns = self.edge_ns.min(self.sweep_ns);
        if let Some(Reverse((retry_ns, _))) = self.retries.peek() {
            wake_ns = wake_ns.min(*retry_ns);
        }
        let timers: Vec<Instant> = self
            .places
            .iter_mut()
            .filter_map(|place| place.quic.as_mut()?.connection.poll_timeout())
            .collect();
        for instant in timers {
            wake_ns = wake_ns.min(self.ns_of(instant));
        }
        let span_ns = wake_ns.saturating_sub(self.judge.now_ns);
        let timeout = Timespec {
            tv_sec: (span_ns / SECOND_NS).cast_signed(),
            tv_nsec: (span_ns % SECOND_NS).cast_signed(),
        };
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => unreachable!("epoll_wait on an own epoll descriptor: {error}"),
        }
    }

    fn tick(&mut self) {
        let now_ns = clock::now_ns();
        self.judge.tick(now_ns);
        if now_ns < self.edge_ns {
            return;
        }
        if self.judge.phase == Phase::WarmUp {
            self.edge_ns = self.window.end_ns;
            self.cpu_at_begin = CpuTime::of_thread();
            for place in &mut self.places {
                place.n_answers_uncounted = place.n_answers_before + place.n_answers;
            }
            self.judge.begin_counting(self.window.begin_ns);
            self.judge.tick(now_ns);
        }
        if self.judge.phase == Phase::Counting && now_ns >= self.edge_ns {
            self.end_counting(self.window.end_ns);
        }
    }

    fn end_counting(&mut self, ended_ns: u64) {
        if self.judge.phase == Phase::Draining {
            return;
        }
        if self.judge.is_counting() {
            self.judge.tally.cpu = CpuTime::of_thread().since(self.cpu_at_begin);
            self.judge.tally.open_at_end = self.n_open;
            let counted = self
                .places
                .iter()
                .map(|place| place.n_answers_before + place.n_answers - place.n_answers_uncounted);
            self.judge.tally.answers_by_connection = counted.collect();
        }
        self.ended_ns = ended_ns.max(self.window.begin_ns).min(self.window.end_ns);
        self.edge_ns = self.judge.now_ns + self.plan.drain_ns();
        self.judge.end_counting();
        (self.on_end)(self.ended_ns);
    }

    /// Begins a connection.
    fn open(&mut self, index: usize) {
        if self.judge.phase == Phase::Draining {
            return;
        }
        let now = self.instant();
        self.places[index].opened_ns = self.judge.now_ns;
        match self.connect(index, now) {
            Ok(quic) => {
                self.places[index].quic = Some(quic);
                self.serve(index);
            }
            Err(error) => {
                self.judge.tally.connect_failures.count(error);
                self.lose(index, Cause::Connect);
            }
        }
    }

    fn connect(&self, index: usize, now: Instant) -> Result<Quic, Errno> {
        let errno = |error: std::io::Error| {
            error
                .raw_os_error()
                .map_or(Errno::INVAL, Errno::from_raw_os_error)
        };
        let any: SocketAddr = match self.plan.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).map_err(errno)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket)).map_err(errno)?;
        // It refuses only where the limit of the machine is lower.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), SOCKET_BYTES);
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN)?;
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
        let (handle, connection) = endpoint
            .connect(now, self.config.clone(), self.plan.address, &self.name)
            .map_err(|_| Errno::INVAL)?;
        Ok(Quic {
            socket,
            state,
            endpoint,
            handle,
            connection,
            is_established: false,
            streams: HashMap::new(),
            unwritten: Vec::new(),
            session: self.plan.protocol.is_webtransport().then(Session::default),
        })
    }

    /// Reads what has come for a connection.
    fn receive(&mut self, index: usize) {
        let now = self.instant();
        let is_counting = self.judge.is_counting();
        let Some(quic) = &mut self.places[index].quic else {
            return;
        };
        for _ in 0..READS_PER_TURN {
            let mut meta = [RecvMeta::default()];
            let mut buffers = [IoSliceMut::new(&mut self.input)];
            let received = quic
                .state
                .recv(UdpSockRef::from(&quic.socket), &mut buffers, &mut meta);
            let Ok(1) = received else {
                return;
            };
            let [meta] = meta;
            if is_counting {
                self.judge.tally.bytes_read += meta.len as u64;
            }
            let mut datagrams = BytesMut::from(&self.input[..meta.len]);
            while !datagrams.is_empty() {
                let datagram = datagrams.split_to(meta.stride.min(datagrams.len()).max(1));
                self.output.clear();
                let ecn = meta
                    .ecn
                    .and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8));
                let event = quic.endpoint.handle(
                    now,
                    meta.addr,
                    meta.dst_ip,
                    ecn,
                    datagram,
                    &mut self.output,
                );
                if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                    quic.connection.handle_event(event);
                }
            }
        }
    }

    /// Takes what a connection has to tell, asks for more, and sends.
    fn serve(&mut self, index: usize) {
        let served = self.take_events(index).and_then(|()| self.refill(index));
        if let Err(cause) = served {
            return self.lose(index, cause);
        }
        self.transmit(index);
    }

    fn take_events(&mut self, index: usize) -> Result<(), Cause> {
        loop {
            let Some(quic) = &mut self.places[index].quic else {
                return Ok(());
            };
            while let Some(event) = quic.connection.poll_endpoint_events() {
                if let Some(event) = quic.endpoint.handle_event(quic.handle, event) {
                    quic.connection.handle_event(event);
                }
            }
            let Some(event) = quic.connection.poll() else {
                return Ok(());
            };
            match event {
                Event::Connected => self.establish(index),
                Event::ConnectionLost { reason } => {
                    let is_established = quic.is_established;
                    if !is_established {
                        self.judge
                            .tally
                            .tls_failure
                            .get_or_insert(reason.to_string());
                        self.judge.tally.connect_failures.other += 1;
                    }
                    return Err(if is_established {
                        Cause::Lost
                    } else {
                        Cause::Connect
                    });
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(index, id)?,
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => self.accept_unis(index)?,
                Event::Stream(StreamEvent::Writable { .. }) => self.write_rest(index),
                Event::DatagramReceived => self.read_datagrams(index)?,
                Event::Stream(_) | Event::HandshakeDataReady | Event::DatagramsUnblocked => {}
            }
        }
    }

    /// The handshake is complete.
    fn establish(&mut self, index: usize) {
        let now_ns = self.judge.now_ns;
        self.n_open += 1;
        let is_counting = self.judge.is_counting();
        let tally = &mut self.judge.tally;
        tally.connections_opened += 1;
        tally.open_max = tally.open_max.max(self.n_open);
        let place = &mut self.places[index];
        tally.connect.record(now_ns - place.opened_ns);
        tally.handshake.record(now_ns - place.opened_ns);
        if is_counting {
            tally.handshakes_in_window += 1;
        }
        tally
            .tls_suite
            .get_or_insert_with(|| "QUIC, TLSv1_3".into());
        let Some(quic) = &mut place.quic else {
            return;
        };
        quic.is_established = true;
        if self.plan.protocol == Protocol::RpcQuic {
            return;
        }
        if let Some(control) = quic.connection.streams().open(Dir::Uni) {
            // So few bytes fit every window.
            let mut control = quic.connection.send_stream(control);
            let _ = match quic.session {
                Some(_) => control.write(&webtransport::control()),
                None => control.write(h3::CONTROL),
            };
        }
    }

    /// The server's own streams are read so that they don't stall; only sessions wait for what they say.
    fn accept_unis(&mut self, index: usize) -> Result<(), Cause> {
        while let Some(quic) = &mut self.places[index].quic
            && let Some(id) = quic.connection.streams().accept(Dir::Uni)
        {
            self.read(index, id)?;
        }
        Ok(())
    }

    /// Reads a stream that is no message's, on a connection with a session.
    fn read_session(&mut self, index: usize, id: StreamId) -> Result<(), Cause> {
        let place = &mut self.places[index];
        let Some(quic) = &mut place.quic else {
            return Ok(());
        };
        let (Some(session), connection) = (&mut quic.session, &mut quic.connection) else {
            drain(&mut quic.connection, id);
            return Ok(());
        };
        let progress = if session.is_of(id) {
            session.read(connection, &self.huffman)
        } else if id.dir() == Dir::Uni {
            session.read_announced(connection, id)
        } else {
            drain(connection, id);
            Ok(Progress::None)
        };
        match progress.map_err(|_| Cause::Fault)? {
            Progress::None => Ok(()),
            Progress::Announced => {
                let request = webtransport::connect(&self.mix.entries[0].request);
                let asked = session.ask(connection, &request);
                asked.map_err(|_| Cause::Fault)
            }
            Progress::Ended => Err(Cause::Lost),
        }
    }

    /// Reads the messages that have come in datagrams.
    fn read_datagrams(&mut self, index: usize) -> Result<(), Cause> {
        let place = &mut self.places[index];
        let Some(quic) = &mut place.quic else {
            return Ok(());
        };
        while let Some(datagram) = quic.connection.datagrams().recv() {
            let session = quic.session.as_mut().ok_or(Cause::Fault)?;
            let taken = session.take_datagram(&datagram);
            let Some((ticket, rest)) = taken.map_err(|_| Cause::Fault)? else {
                continue;
            };
            let mut exchange = Exchange {
                judge: &mut self.judge,
                flight: &mut place.flight,
                n_answers: &mut place.n_answers,
            };
            exchange.begin(ticket, MESSAGE_STATUS, false);
            // The serial number stood where the message has these bytes.
            let message = &self.prepared[0];
            exchange.body(ticket, &message[..SERIAL_BYTES]);
            exchange.body(ticket, rest);
            exchange.complete(ticket);
        }
        Ok(())
    }

    /// Reads the answer on a stream.
    fn read(&mut self, index: usize, id: StreamId) -> Result<(), Cause> {
        let place = &mut self.places[index];
        let Some(quic) = &mut place.quic else {
            return Ok(());
        };
        let Some(asked) = quic.streams.get_mut(&id) else {
            return self.read_session(index, id);
        };
        let mut exchange = Exchange {
            judge: &mut self.judge,
            flight: &mut place.flight,
            n_answers: &mut place.n_answers,
        };
        let mut stream = quic.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return Ok(());
        };
        let ticket = asked.ticket;
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    let read =
                        asked
                            .answer
                            .receive(&self.huffman, ticket, &chunk.bytes, &mut exchange);
                    if read.is_err() {
                        break Some(Err(Cause::Fault));
                    }
                }
                Ok(None) => {
                    if asked.answer.end(ticket, &mut exchange).is_err() {
                        exchange.fail(ticket, Failure::Protocol);
                    }
                    break Some(Ok(()));
                }
                Err(ReadError::Blocked) => break None,
                Err(ReadError::Reset(_)) => {
                    exchange.fail(ticket, Failure::Reset);
                    break Some(Ok(()));
                }
            }
        };
        let _ = chunks.finalize();
        match ended {
            Some(Ok(())) => {
                quic.streams.remove(&id);
                quic.unwritten.retain(|(unwritten, _)| *unwritten != id);
                Ok(())
            }
            Some(Err(cause)) => Err(cause),
            None => Ok(()),
        }
    }

    /// Asks for as much as may be under way.
    /// # Errors  The server takes no datagram of that size.
    fn refill(&mut self, index: usize) -> Result<(), Cause> {
        while self.judge.phase != Phase::Draining
            && !(self.judge.is_counting() && self.quota.is_exhausted())
        {
            let place = &mut self.places[index];
            let Some(quic) = place.quic.as_mut().filter(|quic| quic.is_ready()) else {
                return Ok(());
            };
            if !place.flight.has_room() || !quic.unwritten.is_empty() {
                return Ok(());
            }
            let channel = match (&mut quic.session, self.plan.protocol) {
                (Some(session), Protocol::Datagrams) => session
                    .send_datagram(&mut quic.connection, &self.prepared[0])
                    .map_err(|_| Cause::Fault)?
                    .map(Channel::Datagram),
                _ => quic.connection.streams().open(Dir::Bi).map(Channel::Stream),
            };
            let Some(channel) = channel else {
                return Ok(());
            };
            if self.judge.is_counting() {
                self.quota.take();
                self.judge.compares_all = self.quota.is_exhausted();
                self.judge.tally.sent += 1;
            }
            // The first requests have waited for the connection as well.
            let is_first = place.n_answers == 0 && place.flight.is_empty();
            let now_ns = if is_first {
                place.opened_ns
            } else {
                self.judge.now_ns
            };
            let entry = self.mix.draw(&mut self.random);
            self.judge.n_under_way += 1;
            let ticket = place.flight.insert(Sent {
                due_ns: now_ns,
                sent_ns: now_ns,
                entry: u32::try_from(entry).expect("a mix has fewer entries"),
                counted: self.judge.is_counting() || !self.quota.is_limited(),
                status: 0,
                comparison: Comparison::Off,
                n_body: 0,
            });
            let id = match (channel, &mut quic.session) {
                (Channel::Stream(id), _) => id,
                (Channel::Datagram(serial), session) => {
                    if let Some(session) = session {
                        session.wait_for(serial, ticket);
                    }
                    continue;
                }
            };
            let answer = match self.plan.protocol {
                Protocol::RpcQuic => Answer::Call(Vec::new()),
                Protocol::Streams => Answer::Echo(false),
                _ => Answer::Http(Response::default()),
            };
            let prepared = &self.prepared[entry];
            let bytes = match &quic.session {
                Some(session) => session.on_stream(prepared),
                None => prepared.clone(),
            };
            quic.streams.insert(id, Asked { ticket, answer });
            quic.unwritten.push((id, bytes));
            self.write_rest(index);
        }
        Ok(())
    }

    /// Hands QUIC what it has not taken of requests.
    fn write_rest(&mut self, index: usize) {
        let Some(quic) = &mut self.places[index].quic else {
            return;
        };
        let connection = &mut quic.connection;
        quic.unwritten.retain_mut(|(id, bytes)| {
            let mut stream = connection.send_stream(*id);
            while !bytes.is_empty() {
                match stream.write_chunks(std::slice::from_mut(bytes)) {
                    Ok(_) => {}
                    Err(WriteError::Blocked) => return true,
                    // The server reads no more of it; its answer says why.
                    Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return false,
                }
            }
            let _ = stream.finish();
            false
        });
    }

    fn transmit(&mut self, index: usize) {
        let now = self.instant();
        let is_counting = self.judge.is_counting();
        let Some(quic) = &mut self.places[index].quic else {
            return;
        };
        loop {
            self.output.clear();
            let run_max = quic.state.max_gso_segments().min(RUN_MAX);
            let Some(transmit) = quic
                .connection
                .poll_transmit(now, run_max, &mut self.output)
            else {
                return;
            };
            let contents = &self.output[..transmit.size];
            let sent = quic.state.try_send(
                UdpSockRef::from(&quic.socket),
                &Transmit {
                    destination: transmit.destination,
                    ecn: transmit
                        .ecn
                        .and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
                    contents,
                    segment_size: transmit.segment_size,
                    src_ip: transmit.src_ip,
                },
            );
            // What the kernel does not take is lost, as on the network; QUIC repeats it.
            if is_counting && sent.is_ok() {
                self.judge.tally.bytes_written += transmit.size as u64;
            }
        }
    }

    /// Timers of QUIC that are due.
    fn expire(&mut self) {
        let now = self.instant();
        for index in 0..self.places.len() {
            let Some(quic) = &mut self.places[index].quic else {
                continue;
            };
            if quic.connection.poll_timeout().is_some_and(|at| at <= now) {
                quic.connection.handle_timeout(now);
                self.serve(index);
            }
        }
    }

    /// A connection ends, and another takes its place.
    fn lose(&mut self, index: usize, cause: Cause) {
        let now_ns = self.judge.now_ns;
        let timeout_ns = self.plan.timeout_ns;
        let place = &mut self.places[index];
        let quic = place.quic.take();
        if quic.as_ref().is_some_and(|quic| quic.is_established) {
            self.n_open -= 1;
            if self.judge.is_counting() {
                self.judge.tally.connections_lost += 1;
            }
        }
        let has_begun = |ticket: Ticket| {
            quic.as_ref().is_some_and(|quic| {
                let mut asked = quic.streams.values();
                asked.any(|asked| asked.ticket == ticket && asked.answer.has_begun())
            })
        };
        let lost = place.flight.drain();
        self.judge.n_under_way -= lost.len();
        if lost.is_empty() {
            match cause {
                Cause::Connect => self.judge.fail_unasked(ErrorClass::Connect),
                Cause::Fault => self.judge.fail_unasked(ErrorClass::Protocol),
                Cause::Lost | Cause::TimedOut => {}
            }
        }
        for (ticket, sent) in &lost {
            let class = match cause {
                Cause::Connect => ErrorClass::Connect,
                Cause::Lost if has_begun(*ticket) => ErrorClass::Short,
                Cause::Fault if has_begun(*ticket) => ErrorClass::Protocol,
                Cause::TimedOut if now_ns - sent.sent_ns >= timeout_ns => ErrorClass::Timeout,
                _ => ErrorClass::Reset,
            };
            self.judge.fail(sent, class);
        }
        let place = &mut self.places[index];
        place.n_failures = if place.n_answers > 0 {
            0
        } else {
            place.n_failures.saturating_add(1)
        };
        place.n_answers_before += std::mem::take(&mut place.n_answers);
        let wait_ns = (BACK_OFF_NS_MIN << place.n_failures.min(16)).min(SECOND_NS);
        self.retries.push(Reverse((now_ns + wait_ns, index)));
    }

    fn retry(&mut self) {
        while let Some(Reverse((retry_ns, index))) = self.retries.peek().copied()
            && retry_ns <= self.judge.now_ns
        {
            self.retries.pop();
            self.open(index);
        }
    }

    /// Ends the connections whose oldest request, or whose handshake, has taken too long.
    fn sweep(&mut self) {
        let now_ns = self.judge.now_ns;
        self.sweep_ns = now_ns + SWEEP_NS;
        for index in 0..self.places.len() {
            self.give_up_datagrams(index);
            let place = &self.places[index];
            let Some(quic) = &place.quic else { continue };
            let (since_ns, cause) = if quic.is_ready() {
                (place.flight.oldest_ns(), Cause::TimedOut)
            } else {
                (Some(place.opened_ns), Cause::Connect)
            };
            if since_ns.is_some_and(|since_ns| now_ns - since_ns >= self.plan.timeout_ns) {
                if cause == Cause::Connect {
                    self.judge.tally.connect_failures.timeout += 1;
                }
                self.lose(index, cause);
            }
        }
    }

    /// A datagram may be lost by itself: the connection lives on.
    fn give_up_datagrams(&mut self, index: usize) {
        let place = &mut self.places[index];
        let Some(session) = place.quic.as_mut().and_then(|quic| quic.session.as_mut()) else {
            return;
        };
        let (now_ns, timeout_ns) = (self.judge.now_ns, self.plan.timeout_ns.min(LOST_NS));
        let flight = &mut place.flight;
        for ticket in session.give_up(|ticket| now_ns - flight.of(ticket).sent_ns >= timeout_ns) {
            let sent = flight.remove(ticket);
            self.judge.n_under_way -= 1;
            self.judge.fail(&sent, ErrorClass::Timeout);
        }
    }

    /// Closes the connections, so that the server need not wait for them.
    fn close_the_books(mut self) -> Tally {
        let now = self.instant();
        for index in 0..self.places.len() {
            if let Some(quic) = &mut self.places[index].quic {
                let code = VarInt::from_u32(h3::REQUEST_CANCELLED);
                quic.connection.close(now, code, Bytes::new());
                self.transmit(index);
            }
        }
        self.judge.tally.series.close();
        self.judge.tally.unanswered = self.judge.n_under_way as u64;
        self.judge.tally
    }
}

/// The present by QUIC's clock and by the lab's, which are the same clock.
#[expect(
    clippy::disallowed_methods,
    reason = "QUIC's instants can be made from others only"
)]
fn origin() -> (Instant, u64) {
    (Instant::now(), clock::now_ns())
}

/// Reads a stream away.
fn drain(connection: &mut Connection, id: StreamId) {
    let mut stream = connection.recv_stream(id);
    if let Ok(mut chunks) = stream.read(true) {
        while let Ok(Some(_)) = chunks.next(usize::MAX) {}
        let _ = chunks.finalize();
    }
}

/// As many datagrams as the kernel joins for one read.
const INPUT_BYTES: usize = 64 * 1024;
const SOCKET_BYTES: usize = 1024 * 1024;
/// Reads of one connection before the others have their turn.
const READS_PER_TURN: usize = 16;
/// Datagrams of one write.
const RUN_MAX: usize = 10;
const SWEEP_NS: u64 = 100_000_000;
/// A datagram that has not come back after so long is lost.
const LOST_NS: u64 = SECOND_NS;
/// The status of a session, which stands for that of its messages.
const MESSAGE_STATUS: u16 = 200;
const BACK_OFF_NS_MIN: u64 = 1_000_000;
