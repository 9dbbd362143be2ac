//! QUIC in a turn: datagrams from UDP sockets to their connections, and from connections to the sockets.
//!
//! A connection of QUIC is a [`Conn`] like others, with a [`Carrier`] in place of a stream. Its handshakes wait for their turn as
//! those of TLS do, its own timers are exact ones behind an alarm, and what it has to send leaves once for each time that it
//! was in hand. A reactor without a UDP socket has nothing of this. Tests: `tests/http3/`.

use std::net::SocketAddr;

use bytes::Bytes;
use citius_h3::{Control, Incoming};
use citius_http::{Closing, Millis};
use citius_observe::{Counter, Ending};
use citius_quic::{
    Accepted, Begun, ConnectionError, ConnectionEvent, Earned, EndpointEvent, Handle, Origin,
    Place, VarInt,
};

use crate::carrier::{Carrier, Happened};
use crate::clock::{exact_ns, exact_us};
use crate::conn::{Conn, Phase, Transport, Verdict};
use crate::handing::Handings;
use crate::id::{ConnectionId, Peer};
use crate::quic::{Handed, Leftover, Quic, Timed, quic_id};
use crate::reactor::{Reactor, Table};
use crate::readiness::Readiness;
use crate::secure::HANDSHAKES_US;
use crate::service::{Notice, Service, TlsNotice};
use crate::stream::{Memory, Stream};
use crate::system::{DatagramSocket, Errno, Socket, exact_instant};
use crate::turn::TURN_MS;
use crate::wire::{Protocols, Wire, h3};

/// The alarm, where a socket has its number.
const ALARM: u32 = u32::MAX;
/// Where other workers hand on datagrams, from this number on.
const HANDINGS: u32 = ALARM - 2;
/// How often one connection may read and write in one turn.
const ROUNDS_PER_TURN: usize = 4;
/// Runs of datagrams that one connection sends in one turn.
const RUNS_PER_TURN: usize = 8;
/// Datagrams of one run. Origin: quinn's 10 leave 14 kB; 32 fill most of the 64 kB that the kernel takes.
const RUN_MAX: usize = 32;
/// Closed connections that are remembered for their last packets. Of handshakes that have failed, as many are as may be under way
/// without a proof of the address: a packet of anyone's begins one, and its end is kept for seconds.
const CLOSING_MAX: usize = 1024;
/// Bytes of files that one connection reads in one turn.
const FILE_BYTES_PER_TURN: u64 = 256 * 1024;
/// RFC 9114 §8.1.
const H3_NO_ERROR: u64 = 0x100;
const H3_INTERNAL_ERROR: u64 = 0x102;

impl Reactor {
    /// Serves HTTP/3 to those who send datagrams to `socket`, which is bound; `receive_bytes` of them wait in the kernel, if it
    /// allows that. Returns how many it allows.
    ///
    /// # Errors
    /// The reactor has no certificates, no TLS 1.3, or no poller of the kernel's; or the socket is of another kind.
    pub fn listen_datagrams(
        &mut self,
        socket: Socket,
        mut place: Place,
        receive_bytes: usize,
    ) -> std::result::Result<usize, String> {
        let text = |error: Errno| error.to_string();
        let socket = DatagramSocket::new(socket).map_err(text)?;
        let server = self.tls.as_deref().ok_or("HTTP/3 needs TLS")?;
        place.finds_mtu = socket.keeps_whole();
        let quic = match &mut self.quic {
            Some(quic) => quic,
            none => {
                let offers_rpc = self.rpc_path.is_some();
                let quic = Quic::new(place, server, &self.tools.limits, offers_rpc)?;
                self.poller
                    .add_alarm(&quic.alarm, quic_id(ALARM))
                    .map_err(text)?;
                none.insert(Box::new(quic))
            }
        };
        let number = u32::try_from(quic.sockets.len()).unwrap_or(ALARM);
        self.poller
            .add(socket.socket(), quic_id(number), Readiness::IN)
            .map_err(text)?;
        let received = socket.set_receive_buffer(receive_bytes);
        quic.sockets.push(socket);
        quic.is_full.push(false);
        Ok(received)
    }

    /// Hands datagrams on to the workers that had the sockets before, and has them from those that will have them.
    ///
    /// # Errors
    /// There is no socket for datagrams, or the kernel refuses to watch one of these.
    pub fn join_workers(
        &mut self,
        own: Socket,
        back: (Socket, Socket),
        older: Vec<(Origin, Socket)>,
    ) -> std::result::Result<(), String> {
        let quic = self.quic.as_mut().ok_or("there is no UDP socket")?;
        quic.handings = Handings::new(own, back, older);
        for (source, number) in quic.handings.sources.iter().zip(HANDINGS..) {
            self.poller
                .add(source.socket(), quic_id(number), Readiness::IN)
                .map_err(|error| error.to_string())?;
        }
        quic.handings.take_over();
        Ok(())
    }

    /// Other workers have handed on datagrams.
    fn take_handed(&mut self, number: u32) {
        let Some(quic) = &mut self.quic else {
            return;
        };
        match quic.receive_handed((number - HANDINGS) as usize, &mut |id, event, earned| {
            deliver(&mut self.table, id, event, earned)
        }) {
            Handed::Datagrams => {}
            Handed::TakenOver => {
                quic.handings.is_taken_over = true;
                quic.endpoint.close();
                for socket in &quic.sockets {
                    self.poller.remove(socket.socket());
                }
                // What goes back is the newest worker's to take.
                if let Some(source) = quic.handings.sources.get(1) {
                    self.poller.remove(source.socket());
                }
            }
            Handed::End => {
                if let Some(source) = quic.handings.sources.get((number - HANDINGS) as usize) {
                    self.poller.remove(source.socket());
                }
            }
        }
    }

    /// A UDP socket is ready, or the alarm has rung.
    #[cold]
    pub(crate) fn serve_quic<S: Service>(
        &mut self,
        number: u32,
        flags: Readiness,
        service: &mut S,
    ) {
        let Some(quic) = &mut self.quic else {
            return;
        };
        if number == ALARM {
            quic.alarm.fired();
        } else if number >= HANDINGS {
            self.take_handed(number);
        } else {
            if flags.contains(Readiness::OUT) {
                self.unblock_quic(number);
            }
            let (Some(quic), limits) = (&mut self.quic, &self.tools.limits) else {
                return;
            };
            if flags.intersects(Readiness::IN | Readiness::ERR) {
                quic.receive(number, limits, &mut |id, event, earned| {
                    deliver(&mut self.table, id, event, earned)
                });
            }
        }
        self.shake_quic(service);
        self.expire_quic(service);
        self.settle_active(service);
        self.arm_quic();
    }

    /// Connections that something has come for, for as long as the turn has time; the others come first in the next one.
    fn settle_active<S: Service>(&mut self, service: &mut S) {
        let Some(quic) = &mut self.quic else {
            return;
        };
        let active = std::mem::take(&mut quic.active);
        let mut rest = active.iter();
        for &id in rest.by_ref() {
            self.in_hand(id, service, |reactor, conn, service| {
                reactor.settle_quic(conn, service)
            });
            if self.look_for_slow(id, service) - self.started_at > TURN_MS {
                break;
            }
        }
        for &id in rest {
            if let Some(conn) = self.table.get_mut(id)
                && !std::mem::replace(&mut conn.comes_again, true)
            {
                self.again.push(id);
            }
        }
        if let Some(quic) = &mut self.quic
            && quic.active.is_empty()
        {
            quic.active = active;
            quic.active.clear();
        }
    }

    /// Begins handshakes for as long as a turn has for them.
    fn shake_quic<S: Service>(&mut self, service: &mut S) {
        let waits = |reactor: &Self| {
            reactor
                .quic
                .as_ref()
                .is_some_and(|quic| quic.endpoint.waiting() > 0)
        };
        if !waits(self) {
            return;
        }
        self.look_at_files(service);
        let begun_us = exact_us();
        while waits(self) {
            let open_max = self.tools.limits.connections_max as usize;
            let has_place = self.has_place(service) && self.table.len() < open_max;
            let Some(quic) = &mut self.quic else {
                return;
            };
            quic.outgoing.clear();
            if !has_place {
                if let Some((transmit, socket)) = quic.endpoint.refuse(&mut quic.outgoing) {
                    quic.respond(socket, &transmit);
                }
                continue;
            }
            match quic.endpoint.accept(exact_instant(), &mut quic.outgoing) {
                None => return,
                Some(Accepted::Connection(begun)) => self.begin_quic(begun, service),
                Some(Accepted::Failed(remote, why, response, socket)) => {
                    if let Some(transmit) = response {
                        quic.respond(socket, &transmit);
                    }
                    self.quic_failed(remote, &why, service);
                }
            }
            if exact_us() - begun_us > HANDSHAKES_US {
                break;
            }
        }
    }

    fn quic_failed<S: Service>(&mut self, remote: SocketAddr, why: &str, service: &mut S) {
        self.watch.count(Counter::TlsFailed, 1);
        let peer = Peer::Internet(remote);
        service.noted(Notice::Tls(TlsNotice::HandshakeFailed(peer, why)));
    }

    /// A place in the table for a new connection, whose handshake has begun.
    fn begin_quic<S: Service>(&mut self, begun: Begun, service: &mut S) {
        let (now, handle) = (self.tools.clock.now, begun.handle);
        let Some(quic) = &mut self.quic else {
            return;
        };
        let bound = quic.sockets.get(begun.socket as usize);
        let Some(bound) = bound.map(DatagramSocket::local) else {
            return;
        };
        let id = self.table.reserve();
        if quic.ids.len() <= handle.0 {
            quic.ids.resize(handle.0 + 1, None);
        }
        quic.ids[handle.0] = Some(id);
        quic.handshakes += 1;
        self.watch.count(Counter::ConnectionsAccepted, 1);
        let peer = Peer::Internet(begun.connection.remote_address());
        let carrier = Carrier::new(begun, bound);
        let transport = Transport::Quic(Box::new(carrier));
        let mut conn = Conn::new(id, transport, peer, Wire::new(now, HTTP1_UNTIL_AGREED), now);
        conn.protocols = NOTHING_ELSE;
        conn.interest = Readiness::empty();
        conn.is_trusted = self.proxies.trusts(peer.address());
        conn.phase = Phase::Handshaking {
            until: match self.tools.limits.tls_handshake_ms {
                0 => Millis::MAX,
                ms => now.saturating_add(ms),
            },
        };
        self.table.put(Box::new(conn));
        self.in_hand(id, service, |reactor, conn, service| {
            reactor.settle_quic(conn, service)
        });
    }

    /// Timers that are due.
    fn expire_quic<S: Service>(&mut self, service: &mut S) {
        let now = exact_instant();
        while let Some(quic) = &mut self.quic {
            let now_ns = quic.ns_of(now);
            let Some(&(at, timed)) = quic.timers.first() else {
                return;
            };
            if at > now_ns {
                return;
            }
            quic.timers.pop_first();
            match timed {
                Timed::Closed(number) => {
                    let handle = Handle(number);
                    if let Some(leftover) = quic.closing.get_mut(&handle) {
                        leftover.timer_at = u64::MAX;
                        leftover.connection.handle_timeout(now);
                        quic.settle_leftover(handle);
                    }
                }
                Timed::Open(id) => self.in_hand(id, service, |reactor, conn, service| {
                    if let Transport::Quic(carrier) = &mut conn.transport {
                        carrier.timer_at = u64::MAX;
                        carrier.is_in_hand = true;
                        carrier.connection.handle_timeout(now);
                    }
                    reactor.settle_quic(conn, service)
                }),
            }
        }
    }

    /// Sets the alarm for the first timer, or for at once if handshakes wait.
    pub(crate) fn arm_quic(&mut self) {
        let Some(quic) = &mut self.quic else {
            return;
        };
        if quic.endpoint.waiting() > 0 {
            quic.alarm.arm(exact_ns());
        } else if let Some(&(at, _)) = quic.timers.first() {
            quic.alarm.arm(at);
        }
    }

    /// Does everything for a connection that can be done now, but for sending its datagrams.
    pub(crate) fn settle_quic<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        let Transport::Quic(carrier) = &mut conn.transport else {
            return Verdict::Close;
        };
        carrier.is_active = false;
        carrier.is_in_hand = true;
        for event in std::mem::take(&mut carrier.arrived) {
            carrier.connection.handle_event(event);
        }
        let verdict = self.settle_rounds(conn, service);
        if let Transport::Quic(carrier) = &mut conn.transport {
            carrier.is_in_hand = false;
            let received = std::mem::take(&mut carrier.received_bytes);
            self.watch.count(Counter::BytesReceived, received);
        }
        self.watch.count(Counter::BytesSent, conn.take_written());
        if !conn.leaving.is_empty() {
            self.watch.end_sent(conn);
        }
        if conn.wire.has_refused() {
            self.tell_refused(conn, service);
        }
        self.take_back_output(conn);
        verdict
    }

    fn settle_rounds<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        let mut rounds = 0;
        loop {
            if let Some(reason) = self.take_quic_events(conn, service) {
                return self.quic_lost(conn, &reason, service);
            }
            match conn.phase {
                Phase::Handshaking { .. } | Phase::AwaitingProxyHeader { .. } => {
                    return Verdict::Keep;
                }
                Phase::Lingering { .. } | Phase::Flushing => return Self::quic_delivered(conn),
                Phase::Open => {}
            }
            let has_read = self.read_quic(conn, service) | self.stop_requests(conn);
            let has_written = self.write_quic(conn);
            if let Some(closing) = conn.wire.closing() {
                self.tell_refused(conn, service);
                return self.close_quic(conn, closing);
            }
            let has_room = !conn.rooms.is_empty() || self.unfinished(conn).is_some();
            let is_offered = has_room && self.has_more(conn);
            if is_offered {
                self.offer_room(conn, service);
            }
            if !(has_read || has_written && conn.wire.has_events() || is_offered) {
                return Verdict::Keep;
            }
            rounds += 1;
            if rounds >= ROUNDS_PER_TURN || self.is_over_time() {
                self.write_quic(conn);
                self.come_again(conn);
                return Verdict::Keep;
            }
        }
    }

    /// What has happened to the connection below HTTP/3; why it is over, if it is.
    fn take_quic_events<S: Service>(
        &mut self,
        conn: &mut Conn,
        service: &mut S,
    ) -> Option<ConnectionError> {
        loop {
            self.take_endpoint_events(conn);
            let Transport::Quic(carrier) = &mut conn.transport else {
                return None;
            };
            let happened = carrier.happened()?;
            match happened {
                Happened::Connected => self.begin_h3(conn),
                Happened::Lost(reason) => return Some(reason),
                Happened::Writable(stream) => {
                    if let Some(wire) = conn.wire.as_h3() {
                        wire.writable(stream);
                    }
                }
                Happened::Datagrams => self.take_frames(conn, service),
            }
        }
    }

    /// Requests whose clients want no response any more; whether there were any.
    fn stop_requests(&mut self, conn: &mut Conn) -> bool {
        let Conn {
            transport: Transport::Quic(carrier),
            wire: Wire::H3(wire),
            ..
        } = &mut *conn
        else {
            return false;
        };
        let mut context = self.tools.context();
        let stopped = std::mem::take(&mut carrier.stopped);
        for &(stream, code) in &stopped {
            wire.stop_sending(&mut h3(&mut context), stream, code);
        }
        !stopped.is_empty()
    }

    /// What the connection asks of the endpoint: ids, and that they are forgotten.
    fn take_endpoint_events(&mut self, conn: &mut Conn) {
        let (Transport::Quic(carrier), Some(quic)) = (&mut conn.transport, &mut self.quic) else {
            return;
        };
        while let Some(event) = carrier.connection.poll_endpoint_events() {
            let is_last = event.is_drained();
            if let Some(event) = quic.endpoint.handle_event(carrier.handle, event) {
                carrier.connection.handle_event(event);
            }
            if is_last && let Some(id) = quic.ids.get_mut(carrier.handle.0) {
                *id = None;
            }
        }
    }

    /// The handshake is over: HTTP/3 begins, or RPC.
    fn begin_h3(&mut self, conn: &mut Conn) {
        if let Some(quic) = &mut self.quic {
            quic.handshakes -= 1;
        }
        let is_resumed = match &conn.transport {
            Transport::Quic(carrier) => {
                carrier.facts.as_ref().is_some_and(|facts| facts.is_resumed)
            }
            Transport::Plain(_) | Transport::Tls(_) => false,
        };
        self.watch.count(Counter::TlsHandshakes, 1);
        self.watch.count(Counter::TlsResumed, u64::from(is_resumed));
        self.watch.count(Counter::Http3Connections, 1);
        conn.wire = match (&conn.transport, &self.rpc_path) {
            (Transport::Quic(carrier), Some(path)) if carrier.is_rpc => {
                let facts = carrier.facts.as_deref();
                let name = facts.and_then(|facts| facts.server_name.as_deref());
                let authority = name.map_or_else(|| carrier.local().to_string(), str::to_owned);
                let mut context = self.tools.context();
                let (path, authority) = (path.as_bytes(), authority.as_bytes());
                Wire::H3(Box::new(citius_h3::Connection::direct(
                    &mut h3(&mut context),
                    path,
                    authority,
                )))
            }
            _ => Wire::h3(self.tools.clock.now, &self.tools.limits, self.h3_options),
        };
        conn.phase = Phase::Open;
        control(conn);
    }

    /// DATAGRAM frames that have come.
    fn take_frames<S: Service>(&mut self, conn: &mut Conn, service: &mut S) {
        loop {
            let Transport::Quic(carrier) = &mut conn.transport else {
                return;
            };
            let Some(bytes) = carrier.connection.datagrams().recv() else {
                return;
            };
            let mut context = self.tools.context();
            let Some(wire) = conn.wire.as_h3() else {
                continue;
            };
            if let Some(incoming) = wire.datagram(&mut h3(&mut context), &bytes) {
                self.dispatch_h3(conn, incoming, service);
            }
        }
    }

    /// Reads streams that HTTP/3 wants something of; whether any was read, or something was told.
    fn read_quic<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> bool {
        let mut has_read = false;
        loop {
            has_read |= self.tell_h3(conn, service);
            let Conn {
                transport: Transport::Quic(carrier),
                wire: Wire::H3(wire),
                ..
            } = &mut *conn
            else {
                return has_read;
            };
            let next = carrier.next_readable(|stream| wire.appetite(stream));
            let Some((stream, wanted)) = next else {
                return has_read;
            };
            let read = carrier.read(stream, wanted);
            let stream = u64::from(stream);
            has_read = true;
            let last = read.chunks.len();
            let chunks = read.chunks.into_iter().zip(1..);
            for (chunk, n) in chunks {
                self.feed_h3(conn, stream, &chunk, read.fin && n == last, service);
            }
            if read.fin && last == 0 {
                self.feed_h3(conn, stream, &Bytes::new(), true, service);
            }
            if let Some(code) = read.reset
                && let Some(wire) = conn.wire.as_h3()
            {
                wire.reset(&mut h3(&mut self.tools.context()), stream, code);
            }
            control(conn);
            if self.is_over_time() {
                return true;
            }
        }
    }

    /// Bytes of a stream to HTTP/3, and what they mean to the service.
    fn feed_h3<S: Service>(
        &mut self,
        conn: &mut Conn,
        stream: u64,
        bytes: &[u8],
        fin: bool,
        service: &mut S,
    ) {
        let mut input = bytes;
        loop {
            let mut context = self.tools.context();
            let Some(wire) = conn.wire.as_h3() else {
                return;
            };
            let incoming = wire.receive(&mut h3(&mut context), stream, &mut input, fin);
            let Some(incoming) = incoming else {
                return;
            };
            self.dispatch_h3(conn, incoming, service);
        }
    }

    /// What HTTP/3 has to tell without further input; whether that was anything.
    fn tell_h3<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> bool {
        let mut has_told = false;
        loop {
            let mut context = self.tools.context();
            let next = conn
                .wire
                .as_h3()
                .and_then(|wire| wire.next_event(&mut h3(&mut context)));
            let Some(incoming) = next else {
                return has_told;
            };
            has_told = true;
            self.dispatch_h3(conn, incoming, service);
        }
    }

    fn dispatch_h3<S: Service>(
        &mut self,
        conn: &mut Conn,
        incoming: Incoming<'_>,
        service: &mut S,
    ) {
        match incoming {
            Incoming::Http(event) => self.dispatch(conn, event, service),
            Incoming::Session(event) => self.tell_session(conn, event, service),
        }
        if self.slow.is_timing {
            self.time_event(conn.id, service);
        }
    }

    /// Gives QUIC what it takes of the responses; whether that was anything.
    pub(crate) fn write_quic(&mut self, conn: &mut Conn) -> bool {
        control(conn);
        let now = self.tools.clock.now;
        let mut context = self.tools.context();
        let mut file_bytes_max = FILE_BYTES_PER_TURN;
        let mut has_written = false;
        let Conn {
            transport: Transport::Quic(carrier),
            wire: Wire::H3(wire),
            written_bytes,
            stalled_since,
            ..
        } = &mut *conn
        else {
            return false;
        };
        let was_blocked = !carrier.blocked.is_empty();
        while let Some(stream) = wire.next_to_send() {
            if wire.is_silent(stream) {
                wire.taken(&mut h3(&mut context), stream, citius_h3::Taken::All);
                continue;
            }
            let Some(outgoing) = wire.outgoing(stream) else {
                break;
            };
            match carrier.write(stream, &outgoing, &mut file_bytes_max) {
                Ok((taken, n)) => {
                    *written_bytes += n as u64;
                    has_written |= n > 0 || taken == citius_h3::Taken::All;
                    if n > 0 {
                        *stalled_since = now;
                    }
                    wire.taken(&mut h3(&mut context), stream, taken);
                    if taken == citius_h3::Taken::Some(0) {
                        break;
                    }
                }
                Err(Errno::CANCELED) => {
                    wire.stop_sending(&mut h3(&mut context), stream, H3_NO_ERROR);
                }
                Err(_) => wire.cut(&mut h3(&mut context), stream),
            }
        }
        if !was_blocked && !carrier.blocked.is_empty() {
            // The wait begins now, not with the last bytes that were taken.
            *stalled_since = now;
        }
        control(conn);
        has_written
    }

    /// The connection is over, not by us: nothing more can be said.
    fn quic_lost<S: Service>(
        &mut self,
        conn: &mut Conn,
        reason: &ConnectionError,
        service: &mut S,
    ) -> Verdict {
        if let Phase::Handshaking { .. } = conn.phase {
            if let (Peer::Internet(remote), false) =
                (conn.peer, *reason == ConnectionError::LocallyClosed)
            {
                self.quic_failed(remote, &reason.to_string(), service);
            }
            return Verdict::Close;
        }
        let has_sessions = |wire: &mut citius_h3::Connection| wire.n_sessions().0 > 0;
        if conn.wire.as_h3().is_some_and(has_sessions) {
            // The code that a session is closed with comes with the end of its connection: Firefox sends both at once.
            self.read_quic(conn, service);
        }
        if let Some(wire) = conn.wire.as_h3() {
            wire.lost(&mut h3(&mut self.tools.context()));
        }
        self.tell_h3(conn, service);
        Verdict::Close
    }

    /// HTTP/3 has ended: its last responses are acknowledged first.
    fn close_quic(&mut self, conn: &mut Conn, closing: Closing) -> Verdict {
        let code = match &conn.transport {
            Transport::Quic(carrier) => carrier.closes_with.map(|(code, _)| code),
            Transport::Plain(_) | Transport::Tls(_) => None,
        };
        if closing == Closing::Abort || code.is_some_and(|code| code != H3_NO_ERROR) {
            return Verdict::Close;
        }
        let until = self.tools.clock.now + self.tools.limits.linger_ms;
        conn.phase = Phase::Lingering { until };
        // Nothing is sent behind the packet that closes it: the last GOAWAY says which requests may be repeated.
        self.transmit_quic(conn);
        Self::quic_delivered(conn)
    }

    fn quic_delivered(conn: &mut Conn) -> Verdict {
        if conn.wire.as_h3().is_some_and(|wire| wire.had_sessions()) {
            // Browsers take an end of the connection for a loss of the session, whatever they have acknowledged of its
            // end: they close the connection, or the time to linger passes.
            return Verdict::Keep;
        }
        let has_delivered = match &mut conn.transport {
            Transport::Quic(carrier) => carrier.has_delivered(),
            Transport::Plain(_) | Transport::Tls(_) => true,
        };
        if has_delivered {
            Verdict::Close
        } else {
            Verdict::Keep
        }
    }

    /// Sends what the connection has to send, and sets its timer. It is about to leave the hand.
    pub(crate) fn transmit_quic(&mut self, conn: &mut Conn) {
        let (Transport::Quic(carrier), Some(quic)) = (&mut conn.transport, &mut self.quic) else {
            return;
        };
        let mut moved = carrier.moved(conn.peer.address());
        let mut comes_again = false;
        if carrier.unsent.is_none()
            && let Some(socket) = quic.sockets.get(carrier.socket as usize)
        {
            let now = exact_instant();
            comes_again = true;
            for _ in 0..RUNS_PER_TURN {
                quic.outgoing.clear();
                let challenges = carrier.challenges();
                let run_max = carrier.run_max().min(socket.run_max()).min(RUN_MAX);
                let made = carrier
                    .connection
                    .poll_transmit(now, run_max, &mut quic.outgoing);
                let Some(transmit) = made else {
                    comes_again = false;
                    break;
                };
                if challenges.is_some() {
                    moved = moved.or(carrier.proven(challenges, &transmit, now));
                }
                let known = moved.or(conn.peer.address());
                if !carrier.may_send(&transmit, known, challenges, now) {
                    // It is lost, as on the network, until the client has proven its address.
                    continue;
                }
                if !carrier.send(socket, transmit, &quic.outgoing) {
                    quic.wait_for_room(conn.id, carrier.socket, &self.poller);
                    comes_again = false;
                    break;
                }
            }
        }
        if let Some(address) = moved {
            conn.peer = Peer::Internet(address);
            conn.is_trusted = self.proxies.trusts(moved);
        }
        let timer = carrier.connection.poll_timeout();
        let before = carrier.timer_at;
        carrier.timer_at = quic.set_timer(Timed::Open(conn.id), before, timer);
        if carrier.timer_at != before {
            quic.alarm.arm(carrier.timer_at);
        }
        if comes_again {
            self.come_again(conn);
        }
    }

    /// A socket has room again.
    fn unblock_quic(&mut self, number: u32) {
        let Some(quic) = &mut self.quic else {
            return;
        };
        let Some(socket) = quic.sockets.get(number as usize) else {
            return;
        };
        quic.is_full[number as usize] = false;
        if quic.handings.is_taken_over {
            self.poller.remove(socket.socket());
        } else {
            let _ = self
                .poller
                .modify(socket.socket(), quic_id(number), Readiness::IN);
        }
        for id in std::mem::take(&mut quic.blocked) {
            let Some(conn) = self.table.get_mut(id) else {
                continue;
            };
            let Transport::Quic(carrier) = &mut conn.transport else {
                continue;
            };
            if let Some((transmit, bytes)) = carrier.unsent.take() {
                // If there is none after all, it is lost, as on the network.
                let _ = socket.transmit(&transmit, &bytes);
            }
            if !std::mem::replace(&mut carrier.is_active, true) {
                quic.active.push(id);
            }
        }
    }

    /// The connection ends: the client is told, and what is left of it is kept for its last packets.
    #[cold]
    pub(crate) fn leave_quic(&mut self, conn: &mut Conn) {
        self.watch.end_calls(conn, None);
        self.watch.forget_sessions(conn);
        let ends_by_us = self.watch.lost == Ending::Stopped;
        let nothing = Transport::Plain(Stream::Memory(Memory::default()));
        let transport = std::mem::replace(&mut conn.transport, nothing);
        let (Transport::Quic(carrier), Some(quic)) = (transport, &mut self.quic) else {
            return;
        };
        let Carrier {
            mut connection,
            handle,
            socket,
            is_in_hand,
            timer_at,
            closes_with,
            ..
        } = *carrier;
        let closing_max = if let Phase::Handshaking { .. } = conn.phase {
            quic.handshakes -= 1;
            self.tools.limits.quic_retry_handshakes as usize
        } else {
            CLOSING_MAX
        };
        quic.timers.remove(&(timer_at, Timed::Open(conn.id)));
        let is_known = quic
            .ids
            .get_mut(handle.0)
            .is_some_and(|id| id.take().is_some());
        if !is_known {
            return;
        }
        if is_in_hand {
            quic.endpoint.handle_event(handle, EndpointEvent::drained());
            return;
        }
        let is_too_much = quic.closing.len() >= closing_max && connection.is_closed();
        let (code, reason) = closes_with.unwrap_or(if conn.resets && !ends_by_us {
            (H3_INTERNAL_ERROR, "")
        } else {
            (H3_NO_ERROR, "")
        });
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        // A connection that is closed already stays so.
        connection.close(exact_instant(), code, Bytes::from_static(reason.as_bytes()));
        quic.closing.insert(
            handle,
            Leftover {
                connection,
                socket,
                timer_at: u64::MAX,
            },
        );
        quic.settle_leftover(handle);
        if is_too_much {
            quic.forget_leftover(handle);
        }
        self.arm_quic();
    }
}

/// Does what HTTP/3 wants of the connection.
fn control(conn: &mut Conn) {
    let Conn {
        transport: Transport::Quic(carrier),
        wire: Wire::H3(wire),
        ..
    } = &mut *conn
    else {
        return;
    };
    while let Some(control) = wire.next_control() {
        match control {
            Control::OpenUni(token) => carrier.uni_to_open.push_back(token),
            Control::OpenBi(token) => carrier.bi_to_open.push_back(token),
            Control::Forget(numbers) => carrier.forget(&numbers),
            Control::StopSending { stream, code } => carrier.stop(stream, code),
            Control::Reset { stream, code } => carrier.reset(stream, code),
            Control::Datagram(bytes) => {
                // One that has no room is lost, as on the network.
                let _ = carrier.connection.datagrams().send(bytes, true);
            }
            Control::Close { code, reason } => carrier.closes_with = Some((code, reason)),
        }
    }
    while let Some((token, stream)) = carrier.open_next() {
        wire.opened(token, stream);
    }
}

/// Gives an event to a connection; whether it is the first since the connection was served.
fn deliver(table: &mut Table, id: ConnectionId, event: ConnectionEvent, earned: Earned) -> bool {
    let Some(conn) = table.get_mut(id) else {
        return false;
    };
    let known = conn.peer.address();
    let Transport::Quic(carrier) = &mut conn.transport else {
        return false;
    };
    carrier.arrived.push(event);
    carrier.allowance.add(earned);
    if known.is_some_and(|known| known.ip() != earned.from()) {
        carrier.elsewhere.add(earned);
    }
    !std::mem::replace(&mut carrier.is_active, true)
}

/// Until the handshake is over a connection has a protocol that holds nothing.
const HTTP1_UNTIL_AGREED: Protocols = Protocols {
    http1: true,
    http2: false,
    upgrade: false,
};

/// No first bytes make it one of another protocol.
const NOTHING_ELSE: Protocols = Protocols {
    http1: false,
    http2: false,
    upgrade: false,
};
