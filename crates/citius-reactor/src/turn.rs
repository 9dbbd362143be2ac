//! The spine: one turn of the reactor, and in it the life of every request.
//!
//! ① poll → ② read → ③ parse → ④ dispatch → ⑤ serialise → ⑥ write, connection by connection, so that
//! what was just read is still in the cache when it is answered. ④ and ⑤ happen inside the service's
//! call: a response that is there at once is encoded straight into the connection's write queue, and
//! all responses of a turn leave in one write per connection.
//!
//! A turn is bounded (events, bytes read per connection, rounds of streaming, time), so that the host
//! loop's other work is not starved: what is left makes the epoll descriptor readable again at once.
//! Late responses join at ⑤ through the mailbox. A panic costs the connection it happened on.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use citius_h1::{Closing, Request};
use citius_http::{
    Action, Event, Fault, Fields, Head, Millis, Payload, ProcedureCall, ResponseHead, Status,
};
use citius_observe::Counter;
use citius_ws::Code;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::{Errno, Result};
use rustix::time::Timespec;

use crate::clock::coarse_ms;
use crate::conn::{Conn, Memory, Phase, Transport, Verdict};
use crate::file::File;
use crate::id::{ConnectionId, Peer, StreamId};
use crate::listener::{Accepted, Listener, ListenerProtocol};
use crate::mailbox::StreamCommand;
use crate::reactor::{
    EVENTS_PER_TURN, INDEX_LISTENER, INDEX_TIMER, INDEX_WAKEUP, NEVER, Reactor, Ready,
    TIMER_ACCEPT, TIMER_DRAIN, TIMER_SHORTAGE, id_of, new_inbox, token,
};
use crate::refusal::REFUSAL;
use crate::service::{Notice, Reply, Service};
use crate::socket;
use crate::watch::Admission;
use crate::wire::{Protocols, Wire};

/// Milliseconds after which a turn leaves the rest to the next one; the coarse clock's own tick is four.
const TURN_MS: Millis = 4;
/// How often one turn asks the kernel for events.
const POLLS_PER_TURN: usize = 16;
/// Connections accepted from one listener in one turn.
const ACCEPTS_PER_TURN: usize = 64;
/// Connections accepted from one listener at the start of a drain, at the least: what is queued is served, and
/// queues are this long by Linux's own bound (`somaxconn`). A listener that other
/// processes have too cannot be closed, and must not be accepted from for ever.
const ACCEPTS_PER_DRAIN: usize = 4096;
/// Requests of one connection after which a turn looks at the time.
const EVENTS_PER_LOOK: u32 = 8;
/// How often one connection may fill and empty its write queue in one turn.
const ROUNDS_PER_TURN: usize = 4;
/// Connections above `connections_max` that are told so; beyond them the door is shut without a word.
const REFUSALS_MAX: usize = 64;
/// Bytes of a write queue that are kept for the next connection; larger ones go back to the allocator.
const SPARE_OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Milliseconds that a connection without a request gets for its first one while the reactor drains.
const DRAIN_GRACE_MS: Millis = 1000;
/// Milliseconds that a kept-alive connection between two requests gets for one more, which is answered
/// with `connection: close`: its next request may be under way, and closing now would lose it.
const DRAIN_IDLE_GRACE_MS: Millis = 250;
/// Milliseconds after which a drain says which requests it waits for.
const DRAIN_TOLD_MS: Millis = 1000;
/// Milliseconds for which nothing is accepted after an attempt has failed for a reason that lasts.
const EXHAUSTED_MS: Millis = 100;

/// Requests whose choice of a coding is remembered before those without an open stream are dropped.
const CODINGS_KEPT_MAX: usize = 16;

impl Reactor {
    /// Waits until there is something to do, at most for `timeout` (`None`: for ever).
    ///
    /// # Errors
    /// `EINTR` when a signal came.
    pub fn poll(&mut self, timeout: Option<&Timespec>) -> Result<()> {
        if !self.events.is_empty() {
            return Ok(());
        }
        let mut buffer = [const { MaybeUninit::uninit() }; EVENTS_PER_TURN];
        let (events, _) = epoll::wait(&self.epoll, &mut buffer[..], timeout)?;
        self.events.extend(events.iter().map(|event| Ready {
            id: id_of(event),
            flags: event.flags,
        }));
        Ok(())
    }

    /// Serves everything that is ready; never blocks.
    pub fn turn<S: Service>(&mut self, service: &mut S) {
        self.mailbox.set_expected(true);
        self.tools.refresh_clock();
        self.started_at = self.tools.clock.now;
        self.watch.begin_turn();
        self.run_commands(service);
        self.serve_ready(service);
        self.go_on(service);
        self.shake_hands(service);
        self.expire(service);
        self.mailbox.set_expected(false);
        if !self.mailbox.is_empty() {
            self.mailbox.set_expected(true);
            self.run_commands(service);
            self.mailbox.set_expected(false);
        }
        // Events that were left over are ready still, but their descriptors' first report may not be.
        if !self.again.is_empty()
            || !self.events.is_empty()
            || !self.handshakes.is_empty()
            || !self.mailbox.is_empty()
        {
            self.mailbox.wake();
        }
        self.timers.arm(self.tools.clock.now);
        self.watch.end_turn(self.table.len());
    }

    /// ① poll, and serve what is ready, again and again while that has lately been worth its call.
    ///
    /// Going through the host loop costs a second `epoll_wait` for every batch; under load more requests
    /// have come by the time a batch is served, and asking again here halves that. When nothing has
    /// come, the question was in vain, so it is asked only while it is mostly answered.
    fn serve_ready<S: Service>(&mut self, service: &mut S) {
        self.slow.since = coarse_ms();
        self.slow.requests_before = self.requests_total;
        for poll in 0..POLLS_PER_TURN {
            if self.events.is_empty() {
                // An interrupted poll found nothing; the descriptor stays readable and we come again.
                let _ = self.poll(Some(&Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                }));
            }
            if poll > 0 {
                self.poll_worth.note(!self.events.is_empty());
            }
            if self.events.is_empty() {
                return;
            }
            let mut events = std::mem::take(&mut self.events);
            let mut served = 0;
            for &Ready { id, flags } in &events {
                match id.index {
                    INDEX_WAKEUP => self.mailbox.clear_wakeup(),
                    INDEX_TIMER => self.timers.fired(),
                    INDEX_LISTENER => {
                        self.accept(id.generation as usize, service);
                    }
                    _ => self.in_hand(id, service, |reactor, conn, service| {
                        reactor.ready(conn, flags, service)
                    }),
                }
                served += 1;
                if self.look_for_slow(id, service) - self.started_at > TURN_MS {
                    break;
                }
            }
            // Those that have not been served come first in the next turn: the kernel would report the
            // same ones first again, and a busy connection could shut out all that are behind it.
            events.drain(..served);
            self.events = events;
            if !self.events.is_empty() || self.is_over_time() {
                return;
            }
            if !self.poll_worth.is_likely() {
                return;
            }
        }
    }

    /// Whether the turn has taken its time and should leave the rest to the next one.
    #[inline]
    fn is_over_time(&self) -> bool {
        coarse_ms().saturating_sub(self.started_at) > TURN_MS
    }

    /// After a panic has ended a turn: makes whole what the turn had in its hands.
    pub fn recover(&mut self) {
        self.restore_inbox();
        self.mailbox.set_expected(false);
        self.mailbox.wake();
    }

    /// The inbox is lent out while requests are parsed from it, and lost in a panic.
    fn restore_inbox(&mut self) {
        if self.inbox.is_empty() {
            self.inbox = new_inbox();
        }
    }

    /// Stops accepting, lets open requests finish and closes idle connections.
    ///
    /// Nothing that has reached us is lost: what is queued is accepted, every connection is read once
    /// more, one that has not asked anything yet gets [`DRAIN_GRACE_MS`] to do so, and one between two
    /// requests [`DRAIN_IDLE_GRACE_MS`].
    pub fn drain<S: Service>(&mut self, service: &mut S) {
        let accepts = ACCEPTS_PER_DRAIN.max(self.tools.limits.connections_max as usize);
        for listener in 0..self.listeners.len() {
            for _ in 0..accepts.div_ceil(ACCEPTS_PER_TURN) {
                if !self.accept(listener, service) {
                    break;
                }
            }
        }
        self.stop_listening();
        for id in self.table.ids() {
            self.in_hand(id, service, |reactor, conn, service| {
                let verdict = match conn.phase {
                    Phase::Open if conn.wire.wants_input(&reactor.tools.limits) => {
                        reactor.receive(conn, service)
                    }
                    _ => Verdict::Keep,
                };
                if verdict == Verdict::Close {
                    return Verdict::Close;
                }
                if let Phase::Handshaking { .. } = conn.phase {
                    conn.drain_at = reactor.tools.clock.now + DRAIN_GRACE_MS;
                    return Verdict::Keep;
                }
                // Nothing is ever under way to a connection in memory.
                let is_between = conn.phase == Phase::Open
                    && conn.wire.streams_open() == 0
                    && conn.descriptor().is_some();
                // HTTP/2 takes leave in two steps, and loses nothing that is under way.
                if (!conn.has_asked || is_between) && !conn.wire.is_h2() {
                    let grace = if conn.has_asked {
                        DRAIN_IDLE_GRACE_MS
                    } else {
                        DRAIN_GRACE_MS
                    };
                    conn.drain_at = reactor.tools.clock.now + grace;
                    return Verdict::Keep;
                }
                reactor.lend_output(conn);
                reactor.close_sockets(conn, Code::SERVICE_RESTART);
                reactor.drain_wire(conn);
                reactor.flush(conn, service)
            });
        }
        let tell = ConnectionId {
            index: INDEX_LISTENER,
            generation: TIMER_DRAIN,
        };
        let now = self.tools.clock.now;
        self.timers.push(now + DRAIN_TOLD_MS, tell);
        // The turn that would have done it is over.
        self.timers.arm(now);
    }

    /// The connection takes no more requests.
    fn drain_wire(&mut self, conn: &mut Conn) {
        let mut context = self.tools.context();
        conn.wire.drain(&mut context, &mut conn.output);
    }

    /// Cuts all connections.
    pub fn close<S: Service>(&mut self, service: &mut S) {
        self.stop_listening();
        for id in self.table.ids() {
            self.in_hand(id, service, |_, _, _| Verdict::Close);
        }
    }

    /// Unwatched before they are dropped: another process may hold the same sockets open, and then
    /// dropping ours alone would leave them in the epoll set, ready for ever.
    fn stop_listening(&mut self) {
        self.draining = true;
        self.codecs.is_draining = true;
        for listener in std::mem::take(&mut self.listeners) {
            // While accepting is paused they are not watched, and need not be unwatched.
            let _ = epoll::delete(&self.epoll, listener.descriptor());
        }
    }

    /// Opens a connection that lives in memory.
    pub fn open_memory(&mut self) -> ConnectionId {
        let transport = Transport::Memory(Memory::default());
        let id = self.table.reserve();
        let now = self.tools.clock.now;
        let wire = Wire::new(now, self.protocols);
        let mut conn = Conn::new(id, transport, Peer::Local, wire, now);
        conn.protocols = self.protocols;
        conn.is_trusted = self.proxies.trusts(None);
        self.table.put(Box::new(conn));
        id
    }

    /// Bytes from the peer of a connection in memory, or its end if there are none.
    pub fn feed_memory<S: Service>(&mut self, id: ConnectionId, bytes: &[u8], service: &mut S) {
        self.tools.refresh_clock();
        if let Some(Conn {
            transport: Transport::Memory(memory),
            ..
        }) = self.table.get_mut(id)
        {
            memory.incoming.extend_from_slice(bytes);
            memory.incoming_ended |= bytes.is_empty();
        }
        self.again.push(id);
        self.turn(service);
    }

    /// Bytes for the peer of a connection in memory; `None` once it is closed.
    pub fn take_memory(&mut self, id: ConnectionId) -> Option<Vec<u8>> {
        match self.table.get_mut(id)? {
            Conn {
                transport: Transport::Memory(memory),
                ..
            } => Some(std::mem::take(&mut memory.outgoing)),
            Conn { .. } => None,
        }
    }

    /// Does something with a connection and puts it back or destroys it.
    #[inline]
    pub(crate) fn in_hand<S: Service>(
        &mut self,
        id: ConnectionId,
        service: &mut S,
        act: impl FnOnce(&mut Self, &mut Conn, &mut S) -> Verdict,
    ) {
        let Some(mut conn) = self.table.take(id) else {
            return;
        };
        // A panic leaves at worst a half-used connection, and that is dropped here; the reactor's own
        // tables are only changed by whole calls.
        let verdict = catch_unwind(AssertUnwindSafe(|| act(self, &mut conn, service)));
        match verdict {
            Ok(Verdict::Keep) => {
                self.watch(&mut conn);
                self.table.put(conn);
            }
            Ok(Verdict::Close) => self.destroy(conn, service),
            Err(_) => {
                self.restore_inbox();
                service.panicked(id);
                self.destroy(conn, service);
            }
        }
    }

    /// A connection's socket is ready.
    fn ready<S: Service>(
        &mut self,
        conn: &mut Conn,
        flags: EventFlags,
        service: &mut S,
    ) -> Verdict {
        match conn.phase {
            Phase::Lingering { .. } => self.linger(conn),
            Phase::Handshaking { .. } => self.await_handshake(conn),
            Phase::Flushing => self.flush(conn, service),
            // Nothing is read at present, and the peer has left: it will never be read. What was reported
            // before this turn began to read again does not count.
            Phase::Open if flags.contains(EventFlags::RDHUP) && conn.hears_only_the_end() => {
                conn.is_held_back = false;
                self.peer_closed(conn, service)
            }
            // The peer takes no responses either, and all that it has sent is taken.
            Phase::Open
                if conn.peer_closed
                    && conn.wire.owes_responses()
                    && !conn.is_held_back
                    && flags.intersects(EventFlags::HUP | EventFlags::ERR) =>
            {
                Verdict::Close
            }
            Phase::Open => {
                let readable = EventFlags::IN | EventFlags::HUP | EventFlags::ERR;
                if flags.intersects(readable) && !conn.peer_closed {
                    self.receive(conn, service)
                } else {
                    self.flush(conn, service)
                }
            }
        }
    }

    /// ② read, then all that follows.
    pub(crate) fn receive<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        match conn.read(&mut self.inbox, &mut self.scratch) {
            Ok(0) => return self.peer_closed(conn, service),
            Ok(n) => {
                self.take_in(conn, n, service);
                if conn.has_heard_the_end() {
                    return self.peer_closed(conn, service);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The peer has reset the connection: no response can be sent.
            Err(_) => return Verdict::Close,
        }
        self.flush(conn, service)
    }

    /// The first `n` bytes of the inbox are `conn`'s.
    #[inline]
    pub(crate) fn take_in<S: Service>(&mut self, conn: &mut Conn, n: usize, service: &mut S) {
        self.watch.count(Counter::BytesReceived, n as u64);
        self.lend_output(conn);
        let inbox = std::mem::take(&mut self.inbox);
        if conn.input.is_empty() {
            let mut input = &inbox[..n];
            self.parse(conn, &mut input, service);
            conn.input.extend_from_slice(input);
        } else {
            conn.input.extend_from_slice(&inbox[..n]);
            self.parse_held(conn, service);
        }
        self.inbox = inbox;
    }

    /// ③ parse and ④ dispatch, until the input is used up or held back.
    fn parse<S: Service>(&mut self, conn: &mut Conn, input: &mut &[u8], service: &mut S) {
        if !conn.has_asked
            && conn.protocols.http2
            && !conn.has_agreed_on_http1()
            && conn.wire.recognise(self.tools.clock.now, input)
        {
            self.watch.count(Counter::Http2Connections, 1);
        }
        let mut events = 0u32;
        while !self.is_congested(conn) {
            events += 1;
            if events.is_multiple_of(EVENTS_PER_LOOK) && self.is_over_time() {
                self.come_again(conn);
                break;
            }
            if input.is_empty() && conn.wire.awaits_head() {
                conn.is_held_back = !conn.wire.wants_input(&self.tools.limits);
                return;
            }
            if let Some(request) = conn.wire.receive_cached(&mut self.tools.context(), input) {
                self.request(conn, request, service);
                if self.slow.is_timing {
                    self.time_event(conn.id, service);
                }
                continue;
            }
            let mut context = self.tools.context();
            let Some(event) = conn.wire.receive(&mut context, input, &mut conn.output) else {
                conn.is_held_back = !conn.wire.wants_input(&self.tools.limits);
                return;
            };
            self.dispatch(conn, event, service);
            if self.slow.is_timing {
                self.time_event(conn.id, service);
            }
        }
        conn.is_held_back = true;
    }

    /// Goes on with the bytes that were held back.
    fn parse_held<S: Service>(&mut self, conn: &mut Conn, service: &mut S) {
        let held = std::mem::take(&mut conn.input);
        let mut input = held.as_slice();
        self.parse(conn, &mut input, service);
        conn.input = if input.len() == held.len() {
            held
        } else if input.is_empty() {
            Vec::new()
        } else {
            input.to_vec()
        };
        self.tell_end(conn, service);
    }

    /// Tells the protocol that the peer has closed its side, once it has been offered all that came before.
    fn tell_end<S: Service>(&mut self, conn: &mut Conn, service: &mut S) {
        if !conn.peer_closed || conn.knows_of_end || conn.could_go_on(&self.tools.limits) {
            return;
        }
        conn.knows_of_end = true;
        let mut context = self.tools.context();
        if let Some(event) = conn.wire.receive_eof(&mut context, &mut conn.output) {
            self.dispatch(conn, event, service);
        }
    }

    /// Whether so much waits to be written that it must leave before more requests are taken.
    #[inline]
    fn is_congested(&mut self, conn: &mut Conn) -> bool {
        let most = self.tools.limits.write_queue_bytes_max as usize;
        conn.output.len() >= most && !self.relieve(conn, most)
    }

    /// Tries to write, for most often the socket takes all of it; whether less than `most` is left.
    #[cold]
    fn relieve(&mut self, conn: &mut Conn, most: usize) -> bool {
        // An error shows again when the connection is settled.
        let _ = conn.flush(self.tools.clock.now, &mut self.scratch);
        conn.output.len() < most
    }

    /// ④ dispatch: one call of the service for one event.
    #[inline]
    fn dispatch<S: Service>(&mut self, conn: &mut Conn, event: Event<'_>, service: &mut S) {
        match event {
            Event::Request {
                stream,
                head,
                ended,
            } => {
                let request = Request {
                    stream,
                    head,
                    ended,
                };
                self.request(conn, request, service);
            }
            Event::Call { stream, call } => self.take_call(conn, stream, call, service),
            Event::Data { stream, bytes } if socket::is_socket(&conn.sockets, stream) => {
                self.receive_frames(conn, stream, bytes, service);
            }
            Event::Buffered { stream, bytes } if socket::is_socket(&conn.sockets, stream) => {
                self.receive_frames(conn, stream, &bytes, service);
            }
            Event::End { stream, .. } if socket::is_socket(&conn.sockets, stream) => {
                self.end_frames(conn, stream, service);
            }
            Event::Data { stream, bytes } => service.data(bytes, &mut self.reply(conn, stream)),
            Event::Buffered { stream, bytes } => {
                service.data(&bytes, &mut self.reply(conn, stream));
            }
            Event::End { stream, trailers } => service.end(trailers, &mut self.reply(conn, stream)),
            Event::Broken { stream, fault } => {
                conn.rooms.retain(|waiting| *waiting != stream);
                conn.codings.forget(stream);
                socket::forget(&mut conn.sockets, stream);
                self.watch.end_broken(conn, stream, fault);
                service.broken(
                    StreamId {
                        connection: conn.id,
                        stream,
                    },
                    fault,
                );
            }
        }
    }

    /// A request head is complete. Apart from the other events, for moving one of those about takes time.
    fn request<S: Service>(&mut self, conn: &mut Conn, request: Request, service: &mut S) {
        let Request {
            stream,
            mut head,
            ended,
        } = request;
        self.requests_total += 1;
        let stream = if head.asks_upgrade {
            self.upgrade(conn, stream, &mut head, ended)
        } else {
            stream
        };
        conn.has_asked = true;
        if self.draining {
            // Before it is answered, so that the response says `connection: close`.
            self.drain_wire(conn);
        }
        if let Transport::Tls(secured) = &conn.transport {
            head.tls = secured.session.facts().cloned();
        }
        if conn.is_trusted {
            self.proxies.apply(&mut head);
        }
        if self.watch.is_on {
            let admission = self.watch.begin(conn, stream, &mut head);
            if admission != Admission::Serve {
                return self.respond_ourselves(conn, stream, head, admission);
            }
        }
        if let Some(compressor) = &self.compressor {
            let (wire, codings) = (&conn.wire, &mut conn.codings);
            if codings.len() >= CODINGS_KEPT_MAX {
                codings.retain(|stream| wire.is_open(stream));
            }
            compressor.begin(codings, stream, &head);
        }
        self.slow.latest = Some(StreamId {
            connection: conn.id,
            stream,
        });
        service.request(head, ended, &mut self.reply(conn, stream));
    }

    /// A call of a procedure is complete.
    fn take_call<S: Service>(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        call: ProcedureCall<'_>,
        service: &mut S,
    ) {
        self.requests_total += 1;
        conn.has_asked = true;
        self.slow.latest = Some(StreamId {
            connection: conn.id,
            stream,
        });
        if self.watch.is_on && self.begin_call(conn, stream, &call) != Admission::Serve {
            return self.reply(conn, stream).fail(Fault::Overloaded);
        }
        service.call(call, &mut self.reply(conn, stream));
    }

    /// Takes note of a call, by a head that says as much of it as a line of the log can.
    fn begin_call(&mut self, conn: &mut Conn, stream: u32, call: &ProcedureCall<'_>) -> Admission {
        let mut head = self.tools.heads.take();
        head.be_call(&call.method);
        let admission = self.watch.begin(conn, stream, &mut head);
        self.tools.heads.give(head);
        admission
    }

    /// A request asks for another protocol; returns the stream on which it is to be answered.
    ///
    /// Only the first of a connection is heard: late responses to those before it would be taken for others of HTTP/2.
    #[cold]
    fn upgrade(&mut self, conn: &mut Conn, stream: u32, head: &mut Head, ended: bool) -> u32 {
        let Protocols { http2, upgrade, .. } = conn.protocols;
        let is_late = conn.has_asked || conn.wire.is_h2();
        // Over TLS it is ALPN that changes protocols (RFC 7540 §3.2).
        if !(http2 && upgrade && ended) || is_late || matches!(conn.transport, Transport::Tls(_)) {
            return stream;
        }
        let mut context = self.tools.context();
        let Some(stream) = conn.wire.upgrade(&mut context, head, &mut conn.output) else {
            return stream;
        };
        self.watch.count(Counter::Http2Connections, 1);
        stream
    }

    /// Responds to a request that is not passed to the service.
    #[cold]
    fn respond_ourselves(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        head: Box<Head>,
        admission: Admission,
    ) {
        let is_ready = self.watch.observer.as_ref().is_some_and(|o| o.is_ready());
        let (status, text) = match admission {
            Admission::Health(false) => (200, "live"),
            Admission::Health(true) if is_ready && !self.draining => (200, "ready"),
            Admission::Health(true) => (503, "not ready"),
            Admission::Serve | Admission::Shed => (503, Fault::Overloaded.text()),
        };
        let mut fields = Fields::default();
        let extra: (&[u8], &[u8]) = match admission {
            Admission::Health(_) => (b"cache-control", b"no-store"),
            Admission::Serve | Admission::Shed => (b"retry-after", b"1"),
        };
        fields.push(extra.0, extra.1).expect("a valid field");
        let response = ResponseHead {
            status: Status::new(status).expect("one of the two above"),
            content_type: Some(b"text/plain; charset=utf-8"),
            fields: &fields,
        };
        let mut reply = self.reply(conn, stream);
        // Refused only when the connection is being cut already.
        let _ = reply.send(Action::Respond(response, Payload::Copied(text.as_bytes())));
        reply.recycle(head);
    }

    #[inline]
    pub(crate) fn reply<'a>(&'a mut self, conn: &'a mut Conn, stream: u32) -> Reply<'a> {
        Reply {
            stream,
            conn,
            tools: &mut self.tools,
            watch: &mut self.watch,
            compressor: self.compressor.as_ref(),
            codecs: &mut self.codecs,
        }
    }

    /// ⑥ write, and whatever that makes possible: closing, more of a stream, held requests.
    pub(crate) fn flush<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        let mut rounds = 0;
        let verdict = loop {
            match conn.flush(self.tools.clock.now, &mut self.scratch) {
                Err(error) => break Self::write_failed(conn, error, service),
                Ok(false) => {
                    // Handlers that still run have no client once the last request has been taken.
                    self.is_done_with(conn, service);
                    break Verdict::Keep;
                }
                Ok(true) => {}
            }
            if conn.phase == Phase::Flushing {
                break Verdict::Close;
            }
            if let Some(closing) = conn.wire.closing() {
                self.tell_refused(conn, service);
                break self.begin_close(conn, closing);
            }
            if !self.has_more(conn) {
                if self.is_done_with(conn, service) {
                    break Verdict::Close;
                }
                break Verdict::Keep;
            }
            if rounds == ROUNDS_PER_TURN || rounds > 0 && self.is_over_time() {
                self.come_again(conn);
                break Verdict::Keep;
            }
            rounds += 1;
            let mut context = self.tools.context();
            conn.wire.pump(&mut context, &mut conn.output);
            self.offer_room(conn, service);
            if conn.is_held_back && !conn.input.is_empty() || conn.wire.has_events() {
                self.parse_held(conn, service);
            }
        };
        self.take_back_output(conn);
        self.watch.count(Counter::BytesSent, conn.take_written());
        if !conn.leaving.is_empty() {
            self.watch.end_sent(conn);
        }
        if conn.wire.has_refused() {
            self.tell_refused(conn, service);
        }
        verdict
    }

    /// Tells of requests that the protocol has refused before they were complete.
    fn tell_refused<S: Service>(&mut self, conn: &mut Conn, service: &mut S) {
        if !conn.wire.has_refused() && (conn.fault_told || conn.wire.fault().is_none()) {
            return;
        }
        // In the order in which the client has asked.
        self.watch.end_sent(conn);
        for refused in self.watch.take_refused(conn) {
            service.head_refused(conn.id, &refused);
        }
    }

    /// The socket takes nothing more, or the file that comes next gives nothing more.
    #[cold]
    fn write_failed<S: Service>(conn: &mut Conn, error: Errno, service: &mut S) -> Verdict {
        if let Some(range) = conn.output.file() {
            let name = range.handle().map_or("a file", File::label);
            let left = range.len();
            match error {
                Errno::NODATA => service.file_failed(
                    conn.id,
                    &format!("{name} has become shorter while it was sent: {left} bytes missing"),
                ),
                Errno::IO | Errno::STALE | Errno::BADF => {
                    service.file_failed(conn.id, &format!("{name} cannot be read on: {error}"));
                }
                // The peer is gone.
                _ => {}
            }
            // What was promised will never come, and the client must be able to tell.
            conn.reset_on_close();
            conn.is_cut = matches!(
                error,
                Errno::NODATA | Errno::IO | Errno::STALE | Errno::BADF
            );
        }
        Verdict::Close
    }

    /// Leaves the rest of a connection's work to the next turn.
    fn come_again(&mut self, conn: &mut Conn) {
        if !std::mem::replace(&mut conn.comes_again, true) {
            self.again.push(conn.id);
        }
    }

    /// Whether a connection whose queue is empty could go on without its socket.
    fn has_more(&self, conn: &Conn) -> bool {
        let limits = &self.tools.limits;
        conn.rooms
            .iter()
            .any(|&stream| conn.wire.may_write(stream, limits))
            || self.unfinished(conn).is_some()
            || conn.could_go_on(limits)
            || conn.wire.has_events()
            || conn.wire.wants_output()
    }

    /// The response that the compressor could go on with.
    #[inline]
    fn unfinished(&self, conn: &Conn) -> Option<u32> {
        let mut streams = conn.codings.unfinished();
        streams.find(|&stream| conn.wire.may_write(stream, &self.tools.limits))
    }

    /// Tells those who wait for room, as far as it is their turn to write.
    fn offer_room<S: Service>(&mut self, conn: &mut Conn, service: &mut S) {
        if let Some(stream) = self.unfinished(conn) {
            let mut reply = self.reply(conn, stream);
            let id = reply.id();
            if let Err(fault) = reply.go_on() {
                service.refused(id, fault);
            }
        }
        for stream in std::mem::take(&mut conn.rooms) {
            let may_write = conn.wire.may_write(stream, &self.tools.limits);
            if may_write && !conn.codings.is_unfinished(stream) {
                service.writable(&mut self.reply(conn, stream));
            } else if conn.wire.is_open(stream) {
                conn.rooms.push(stream);
            }
        }
    }

    /// The protocol has ended and everything is written.
    pub(crate) fn begin_close(&mut self, conn: &mut Conn, closing: Closing) -> Verdict {
        match closing {
            Closing::Clean => Verdict::Close,
            Closing::Abort => {
                conn.reset_on_close();
                Verdict::Close
            }
            // Closing a socket with unread bytes resets it, and the reset may overtake our response.
            Closing::Linger => {
                conn.shut_down_write();
                conn.input = Vec::new();
                let until = self.tools.clock.now + self.tools.limits.linger_ms;
                conn.phase = Phase::Lingering { until };
                self.linger(conn)
            }
        }
    }

    /// Drops what still comes.
    pub(crate) fn linger(&mut self, conn: &mut Conn) -> Verdict {
        match conn.discard(&mut self.inbox) {
            Ok(0) => Verdict::Close,
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Verdict::Keep,
            Err(_) => Verdict::Close,
        }
    }

    /// The peer sends no more. What it has sent is still answered, as fast as it takes the responses;
    /// a handler that still runs when all of it is taken may stop.
    pub(crate) fn peer_closed<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        conn.peer_closed = true;
        self.lend_output(conn);
        self.tell_end(conn, service);
        self.flush(conn, service)
    }

    /// Whether a peer that has closed its side has got all it will get, apart from what is in the queue.
    #[inline]
    fn is_done_with<S: Service>(&self, conn: &mut Conn, service: &mut S) -> bool {
        conn.peer_closed && self.lets_go(conn, service)
    }

    #[inline(never)]
    fn lets_go<S: Service>(&self, conn: &mut Conn, service: &mut S) -> bool {
        if conn.phase != Phase::Open || conn.is_held_back {
            return false;
        }
        if conn.wire.wants_output() || self.unfinished(conn).is_some() || conn.wire.owes_responses()
        {
            return false;
        }
        service.disconnected(conn.id);
        conn.phase = Phase::Flushing;
        true
    }

    /// Takes new connections; whether there may be more.
    fn accept<S: Service>(&mut self, listener: usize, service: &mut S) -> bool {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(accepted) = self.listeners.get(listener).map(Listener::accept) else {
                return false;
            };
            let (socket, peer) = match accepted {
                Accepted::Connection(socket, peer) => (socket, peer),
                Accepted::Nothing => return false,
                Accepted::OutOfDescriptors if self.make_way(listener, service) => continue,
                Accepted::OutOfDescriptors | Accepted::Exhausted => {
                    self.pause_accepting();
                    return false;
                }
            };
            let open_max = self.tools.limits.connections_max as usize;
            if self.makes_room && self.table.len() >= open_max {
                self.evict_quiet(true, service);
            }
            if self.table.len() >= open_max + REFUSALS_MAX {
                self.watch.count(Counter::ConnectionsRefused, 1);
                continue;
            }
            let id = self.table.reserve();
            if epoll::add(
                &self.epoll,
                &socket,
                token(id.index, id.generation),
                EventFlags::IN,
            )
            .is_err()
            {
                self.table.release(id);
                self.pause_accepting();
                return false;
            }
            self.begin(listener, id, (socket, peer), service);
        }
        true
    }

    /// Takes up a new connection, whose place in the table is reserved, or turns it away.
    fn begin<S: Service>(
        &mut self,
        listener: usize,
        id: ConnectionId,
        (socket, peer): (OwnedFd, Peer),
        service: &mut S,
    ) {
        let now = self.tools.clock.now;
        let refused = self.table.len() > self.tools.limits.connections_max as usize;
        let counter = if refused {
            Counter::ConnectionsRefused
        } else {
            Counter::ConnectionsAccepted
        };
        self.watch.count(counter, 1);
        let (wire, protocols, is_secured) = match self.listeners[listener].speaks {
            ListenerProtocol::Http => (
                Wire::new(now, self.protocols),
                self.protocols,
                self.tls.is_some(),
            ),
            ListenerProtocol::HttpAs {
                protocols,
                is_secured,
            } => (Wire::new(now, protocols), protocols, is_secured),
            ListenerProtocol::Rpc => (Wire::rpc(now), self.protocols, false),
            ListenerProtocol::SecuredRpc => (Wire::rpc(now), self.protocols, true),
        };
        let mut conn = Conn::new(id, Transport::Socket(socket), peer, wire, now);
        conn.protocols = protocols;
        conn.is_trusted = self.proxies.trusts(peer.address());
        if is_secured {
            self.accept_secured(conn, refused, service);
            return;
        }
        self.table.put(Box::new(conn));
        // Most clients have sent their first request by now; the others cost one vain read.
        self.in_hand(id, service, |reactor, conn, service| {
            if refused && conn.wire.is_rpc() {
                Verdict::Close
            } else if refused {
                reactor.refuse(conn)
            } else {
                reactor.receive(conn, service)
            }
        });
    }

    /// Turns a connection away and tells it why.
    pub(crate) fn refuse(&mut self, conn: &mut Conn) -> Verdict {
        conn.output.tail().extend_from_slice(REFUSAL);
        if conn.flush(self.tools.clock.now, &mut self.scratch) == Ok(true) {
            self.begin_close(conn, Closing::Linger)
        } else {
            Verdict::Close
        }
    }

    /// Out of descriptors: leaves the queue to the kernel for a while.
    fn pause_accepting(&mut self) {
        if std::mem::replace(&mut self.accepting, false) {
            for listener in &self.listeners {
                // Deleting what is watched cannot fail.
                let _ = epoll::delete(&self.epoll, listener.descriptor());
            }
            let resume = ConnectionId {
                index: INDEX_LISTENER,
                generation: TIMER_ACCEPT,
            };
            self.timers
                .push(self.tools.clock.now + EXHAUSTED_MS, resume);
        }
    }

    fn resume_accepting(&mut self) {
        self.accepting = true;
        self.hold_spares();
        for (listener, generation) in self.listeners.iter().zip(0..) {
            // If the kernel refuses, the pause below begins anew with the next attempt.
            let token = token(INDEX_LISTENER, generation);
            let _ = epoll::add(&self.epoll, listener.descriptor(), token, EventFlags::IN);
        }
    }

    /// Late responses join the turn: those of one connection together, then one write.
    fn run_commands<S: Service>(&mut self, service: &mut S) {
        let spare = std::mem::take(&mut self.spare_commands);
        let mut commands = self.mailbox.take(spare);
        let mut rest = commands.drain(..).peekable();
        while let Some((id, command)) = rest.next() {
            self.in_hand(id.connection, service, |reactor, conn, service| {
                reactor.lend_output(conn);
                let mut next = Some((id, command));
                while let Some((id, command)) = next {
                    match command {
                        StreamCommand::Resume => reactor.resume_frames(conn, id.stream, service),
                        StreamCommand::Broadcast(broadcast) => {
                            let is_slow = reactor.is_congested(conn);
                            reactor.send_broadcast(conn, id.stream, &broadcast, is_slow, service);
                        }
                        command => {
                            if let Err(fault) = reactor.reply(conn, id.stream).deliver(command) {
                                service.refused(id, fault);
                            }
                        }
                    }
                    next = rest.next_if(|(other, _)| other.connection == id.connection);
                }
                reactor.flush(conn, service)
            });
        }
        drop(rest);
        self.spare_commands = commands;
    }

    /// Connections that had had their share of the last turn: another share for each of them.
    fn go_on<S: Service>(&mut self, service: &mut S) {
        let before = std::mem::take(&mut self.again);
        let mut rest = before.into_iter();
        // At least one, however late it is: they must not be starved either.
        for id in rest.by_ref() {
            self.in_hand(id, service, |reactor, conn, service| {
                reactor.lend_output(conn);
                conn.comes_again = false;
                match conn.transport {
                    Transport::Memory(_) => reactor.receive(conn, service),
                    Transport::Socket(_) | Transport::Tls(_) => {
                        if conn.is_held_back && conn.phase == Phase::Open {
                            reactor.parse_held(conn, service);
                        }
                        reactor.flush(conn, service)
                    }
                }
            });
            if self.is_over_time() {
                break;
            }
        }
        self.again.extend(rest);
    }

    /// Deadlines that have passed.
    fn expire<S: Service>(&mut self, service: &mut S) {
        let now = self.tools.clock.now;
        while let Some((at, id)) = self.timers.pop_due(now) {
            if id.index == INDEX_LISTENER {
                self.own_timer(id.generation, service);
                continue;
            }
            self.in_hand(id, service, |reactor, conn, service| {
                if conn.timer_at != at {
                    return Verdict::Keep;
                }
                conn.timer_at = NEVER;
                if reactor.deadline(conn) > now {
                    Verdict::Keep
                } else {
                    reactor.overdue(conn, service)
                }
            });
        }
    }

    /// A timer of the reactor itself is due.
    #[cold]
    fn own_timer<S: Service>(&mut self, which: u32, service: &mut S) {
        match which {
            TIMER_SHORTAGE => self.look_at_shortage(service),
            TIMER_DRAIN => self.tell_what_drains(service),
            _ => self.resume_accepting(),
        }
    }

    /// A drain has not ended at once: says what it waits for.
    fn tell_what_drains<S: Service>(&mut self, service: &mut S) {
        let requests = self.requests_open();
        if requests > 0 {
            let routes = self.routes_open();
            let routes = &routes;
            service.noted(Notice::Draining { requests, routes });
        }
    }

    /// The next moment at which something happens to `conn` if nothing else does.
    #[inline]
    pub(crate) fn deadline(&self, conn: &Conn) -> Millis {
        let limits = &self.tools.limits;
        match conn.phase {
            Phase::Lingering { until } => return until,
            Phase::Handshaking { until } => return until.min(conn.drain_at),
            Phase::Open | Phase::Flushing => {}
        }
        let stall = match limits.write_stall_ms {
            0 => NEVER,
            _ if !conn.wants_write() => NEVER,
            ms => conn.stalled_since.saturating_add(ms),
        };
        let first = stall
            .min(conn.drain_at)
            .min(conn.wire.deadline(limits).unwrap_or(NEVER));
        if conn.sockets.is_empty() {
            return first;
        }
        first.min(socket::deadline(&conn.sockets, limits).unwrap_or(NEVER))
    }

    /// A deadline has passed.
    fn overdue<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        let now = self.tools.clock.now;
        match conn.phase {
            Phase::Lingering { .. } => return Verdict::Close,
            Phase::Handshaking { until } => {
                return self.handshake_overdue(conn, until <= now, service);
            }
            Phase::Open | Phase::Flushing => {}
        }
        if conn.drain_at <= now {
            conn.drain_at = NEVER;
            self.drain_wire(conn);
            return self.flush(conn, service);
        }
        if !conn.sockets.is_empty() && self.expire_sockets(conn, service) {
            return self.flush(conn, service);
        }
        if conn
            .wire
            .deadline(&self.tools.limits)
            .is_none_or(|at| at > now)
        {
            // It is the peer that takes nothing.
            self.watch.count(Counter::WriteStalled, 1);
            conn.reset_on_close();
            return Verdict::Close;
        }
        let mut context = self.tools.context();
        if let Some(event) = conn.wire.expire(&mut context, &mut conn.output) {
            self.dispatch(conn, event, service);
        }
        if conn.has_asked && conn.wire.closing() == Some(Closing::Clean) {
            self.watch.count(Counter::KeepAliveOver, 1);
        }
        self.flush(conn, service)
    }

    /// Lets epoll and the timers know what a connection waits for.
    #[inline]
    fn watch(&mut self, conn: &mut Conn) {
        if conn.has_unread_memory() && conn.wire.wants_input(&self.tools.limits) {
            // No kernel will tell again.
            self.come_again(conn);
        }
        let Some(descriptor) = conn.descriptor() else {
            return;
        };
        let limits = &self.tools.limits;
        let hears = match conn.phase {
            Phase::Open => {
                !conn.peer_closed
                    && conn.output.len() < limits.write_queue_bytes_max as usize
                    && conn.wire.wants_input(limits)
            }
            Phase::Lingering { .. } => true,
            // A connection that waits in the queue need not be reported again.
            Phase::Handshaking { .. } => !conn.comes_again,
            Phase::Flushing => false,
        };
        let mut interest = EventFlags::empty();
        interest.set(EventFlags::IN, hears);
        // A connection that is read learns of the end by reading; one that is not read, because handlers are
        // slow, must be told. Not while the peer is slow to take responses: it may have sent all its requests.
        let waits = !hears && conn.phase == Phase::Open && conn.output.is_empty();
        interest.set(EventFlags::RDHUP, waits && !conn.peer_closed);
        interest.set(EventFlags::OUT, conn.wants_write());
        // The end of both directions is told whatever is asked for, and again in each turn unless by its edge.
        interest.set(
            EventFlags::ET,
            conn.peer_closed && conn.wire.owes_responses(),
        );
        if interest != conn.interest {
            let token = token(conn.id.index, conn.id.generation);
            // The descriptor is watched and valid; only lack of memory could refuse this, and then the
            // deadline ends the connection.
            let _ = epoll::modify(&self.epoll, descriptor, token, interest);
            conn.interest = interest;
        }
        let deadline = self.deadline(conn);
        if deadline < conn.timer_at {
            conn.timer_at = deadline;
            self.timers.push(deadline, conn.id);
        }
    }

    /// Ends a connection.
    fn destroy<S: Service>(&mut self, mut conn: Box<Conn>, service: &mut S) {
        let id = conn.id;
        if let Some(descriptor) = conn.descriptor() {
            // A process that a handler has forked may hold the socket open: dropping ours would neither
            // take it out of the epoll set nor end the connection. Neither call can fail on a live socket,
            // and a dead one needs neither.
            let _ = epoll::delete(&self.epoll, descriptor);
            if !conn.resets {
                conn.shut_down();
            }
        }
        self.tell_refused(&mut conn, service);
        if self.watch.is_on {
            self.watch.end_all(&mut conn);
            self.watch.count(Counter::BytesSent, conn.take_written());
        }
        drop(conn);
        self.table.release(id);
        service.disconnected(id);
    }

    /// Gives the connection in hand the shared memory to write into.
    #[inline]
    fn lend_output(&mut self, conn: &mut Conn) {
        if conn.output.is_empty() {
            conn.output.lend(&mut self.spare_output);
        }
    }

    /// Takes the shared memory back, unless it holds what the socket has not taken.
    ///
    /// A connection at rest owns no memory; of two buffers the larger one stays, and stays in the cache.
    #[inline]
    fn take_back_output(&mut self, conn: &mut Conn) {
        if conn.output.is_empty() && conn.output.capacity() > 0 {
            let memory = conn.output.take_memory();
            if memory.capacity() > self.spare_output.capacity()
                && memory.capacity() <= SPARE_OUTPUT_BYTES_MAX
            {
                self.spare_output = memory;
            }
        }
    }
}

const _: () = assert!(EVENTS_PER_TURN <= 1024, "a turn stays short");
