//! One turn of the reactor: everything that is ready is served, and nothing is waited for.
//!
//! ① poll → ② read → ③ parse → ④ dispatch → ⑤ serialise → ⑥ write, connection by connection, so that what was just read
//! is still in the cache when its response is made. ④ and ⑤ happen in the call of the service: a response that is ready at
//! once is encoded into the write queue, and all responses of a turn leave in one write for each connection.
//!
//! ② and ③ are in `input.rs`, ④ in `dispatch.rs`, ⑥ in `output.rs`. A turn is bounded (events, bytes, rounds, time); what is
//! left asks the poller for another turn. A panic closes the connection it happened on. Tests: `tests/turn.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use citius_http::Millis;
use citius_observe::{Counter, Ending};

use crate::clock::coarse_ms;
use crate::conn::{Conn, Phase, Verdict};
use crate::id::ConnectionId;
use crate::mailbox::StreamCommand;
use crate::reactor::{Reactor, new_inbox};
use crate::readiness::{
    EVENTS_PER_TURN, INDEX_LISTENER, INDEX_OFFERS, INDEX_QUIC, INDEX_SERVICE, INDEX_TIMER,
    INDEX_UPSTREAM, INDEX_WAKEUP, Readiness, Ready,
};
use crate::service::Service;
use crate::system::Result;

/// Milliseconds after which a turn leaves the rest to the next one; the coarse clock's own tick is four.
pub(crate) const TURN_MS: Millis = 4;
/// How often one turn asks the poller for events.
const POLLS_PER_TURN: usize = 16;

impl Reactor {
    /// Waits until there is something to do, at most for `timeout` (`None`: for ever). A reactor that a host turns does
    /// not wait.
    ///
    /// # Errors
    /// `EINTR` when a signal came.
    pub fn poll(&mut self, timeout: Option<Duration>) -> Result<()> {
        if !self.events.is_empty() {
            return Ok(());
        }
        self.poller.wait(&mut self.events, timeout)
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
        if self.mailbox.takes_service_call() {
            self.call_service(service);
        }
        self.mailbox.set_expected(false);
        if !self.mailbox.is_empty() {
            self.mailbox.set_expected(true);
            if self.mailbox.takes_service_call() {
                self.call_service(service);
            }
            self.run_commands(service);
            self.mailbox.set_expected(false);
        }
        self.flush_upstreams(service);
        // Events that were left over are ready still, but their descriptors' first report may not be.
        if !self.again.is_empty()
            || !self.events.is_empty()
            || !self.handshakes.is_empty()
            || !self.mailbox.is_empty()
        {
            self.mailbox.wake();
        }
        self.timers.arm(self.tools.clock.now, &mut self.poller);
        self.watch.end_turn(self.table.len());
    }

    /// ① poll, and serve what is ready, again and again while that has lately been worth its call.
    ///
    /// Going through the host loop costs a second `epoll_wait` for every batch; under load more requests
    /// have come by the time a batch is served, and asking again here halves that. When nothing has
    /// come, the question was in vain, so it is asked only while it is mostly answered.
    fn serve_ready<S: Service>(&mut self, service: &mut S) {
        self.begin_timing();
        for poll in 0..POLLS_PER_TURN {
            if self.events.is_empty() {
                // An interrupted poll found nothing; the descriptor stays readable and we come again.
                let _ = self.poll(Some(Duration::ZERO));
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
                    INDEX_WAKEUP => {
                        self.poller.woken();
                        self.take_offers(service);
                    }
                    INDEX_TIMER => self.timers.fired(&mut self.poller),
                    INDEX_LISTENER => {
                        self.accept(id.generation as usize, service);
                    }
                    INDEX_UPSTREAM => self.serve_upstream(id.generation, flags, service),
                    INDEX_SERVICE => self.note_alarm(),
                    INDEX_OFFERS => self.take_late_offers(service),
                    INDEX_QUIC => self.serve_quic(id.generation, flags, service),
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
            self.flush_upstreams(service);
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
    pub(crate) fn is_over_time(&self) -> bool {
        coarse_ms().saturating_sub(self.started_at) > TURN_MS
    }

    /// After a panic has ended a turn: makes whole what the turn had in its hands.
    pub fn recover(&mut self) {
        self.restore_inbox();
        self.mailbox.set_expected(false);
        self.mailbox.wake();
    }

    /// The inbox is lent out while requests are parsed from it, and lost in a panic.
    pub(crate) fn restore_inbox(&mut self) {
        if self.inbox.is_empty() {
            self.inbox = new_inbox();
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
        let redirects = conn.redirect_port != 0;
        if redirects {
            self.tools.swap_default_fields();
        }
        // A panic leaves at worst a half-used connection, and that is dropped here; the reactor's own
        // tables are only changed by whole calls.
        let verdict = catch_unwind(AssertUnwindSafe(|| act(self, &mut conn, service)));
        if redirects {
            self.tools.swap_default_fields();
        }
        match verdict {
            Ok(Verdict::Keep) => {
                self.watch(&mut conn);
                self.table.put(conn);
            }
            Ok(Verdict::Close) => self.destroy(conn, service),
            Err(_) => {
                self.restore_inbox();
                service.panicked(id);
                let before = std::mem::replace(&mut self.watch.lost, Ending::Aborted);
                self.destroy(conn, service);
                self.watch.lost = before;
            }
        }
    }

    /// A connection's stream is ready.
    fn ready<S: Service>(&mut self, conn: &mut Conn, flags: Readiness, service: &mut S) -> Verdict {
        match conn.phase {
            Phase::Lingering { .. } => self.linger(conn),
            Phase::Handshaking { .. } => self.await_handshake(conn),
            Phase::AwaitingProxyHeader { is_secured, .. } => {
                self.read_proxy_header(conn, is_secured, service)
            }
            Phase::Flushing => self.flush(conn, service),
            // Nothing is read at present, and the peer has left: it will never be read. What was reported
            // before this turn began to read again does not count.
            Phase::Open if flags.contains(Readiness::RDHUP) && conn.hears_only_the_end() => {
                conn.is_held_back = false;
                self.peer_closed(conn, service)
            }
            // The peer takes no responses either, and all that it has sent is taken.
            Phase::Open
                if conn.peer_closed
                    && conn.owes_responses()
                    && !conn.is_held_back
                    && flags.intersects(Self::loss(conn)) =>
            {
                Verdict::Close
            }
            Phase::Open => {
                let readable = Readiness::IN | Readiness::HUP | Readiness::ERR;
                if flags.intersects(readable) && !conn.peer_closed {
                    self.receive(conn, service)
                } else {
                    self.flush(conn, service)
                }
            }
        }
    }

    /// What says that a peer that has closed its side takes nothing more either.
    fn loss(conn: &Conn) -> Readiness {
        if conn.passes_through() {
            // The end of both directions is reported where this side has ended its own as well.
            Readiness::ERR
        } else {
            Readiness::HUP | Readiness::ERR
        }
    }

    /// Late responses join the turn: those of one connection together, then one write.
    pub(crate) fn run_commands<S: Service>(&mut self, service: &mut S) {
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
                            reactor.send_broadcast(conn, id.stream, &broadcast, service);
                        }
                        command => {
                            if let Err(fault) = reactor.reply(conn, id.stream).deliver(command) {
                                service.refused(id, fault);
                            }
                        }
                    }
                    next = rest.next_if(|(other, _)| other.connection == id.connection);
                }
                if reactor.is_goaway_due(conn) {
                    return reactor.receive(conn, service);
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
                if let Some(memory) = conn.memory() {
                    if memory.is_lost() {
                        return Verdict::Close;
                    }
                    let flags = memory.readiness() & conn.interest;
                    if !flags.is_empty() {
                        return reactor.ready(conn, flags, service);
                    }
                }
                if conn.is_held_back && conn.phase == Phase::Open {
                    reactor.parse_held(conn, service);
                }
                reactor.flush(conn, service)
            });
            if self.look_for_slow(id, service) - self.started_at > TURN_MS {
                break;
            }
        }
        // Those that had no share come first in the next turn.
        let late = std::mem::take(&mut self.again);
        self.again = rest.collect();
        self.again.extend(late);
    }

    /// Lets the poller and the timers know what a connection waits for.
    #[inline]
    pub(crate) fn watch(&mut self, conn: &mut Conn) {
        let interest = self.interest(conn);
        if let Some(socket) = conn.socket() {
            if interest != conn.interest {
                // The socket is watched and valid; only lack of memory could refuse this, and then the
                // deadline ends the connection.
                let _ = self.poller.modify(socket, conn.id, interest);
                conn.interest = interest;
            }
        } else if !self.watch_memory(conn, interest) {
            return;
        }
        let deadline = self.deadline(conn);
        if deadline < conn.timer_at {
            conn.timer_at = deadline;
            self.timers.push(deadline, conn.id);
        }
    }

    /// Lets the timers know what a connection without a socket of its own waits for; whether it has deadlines. No kernel
    /// reports its events.
    #[cold]
    fn watch_memory(&mut self, conn: &mut Conn, interest: Readiness) -> bool {
        conn.interest = interest;
        if conn.is_quic() {
            self.watch.count_sessions(conn);
            self.transmit_quic(conn);
            return true;
        }
        let Some(memory) = conn.memory() else {
            return false;
        };
        let is_remote = memory.remote.is_some();
        if memory.readiness().intersects(interest) {
            self.come_again(conn);
        }
        self.memories.note(conn);
        is_remote
    }

    /// What a connection waits for.
    #[inline]
    fn interest(&self, conn: &Conn) -> Readiness {
        let limits = &self.tools.limits;
        let hears = match conn.phase {
            Phase::Open => {
                !conn.peer_closed
                    && conn.output.len() < limits.write_queue_bytes_max as usize
                    && conn.wire.wants_input(limits)
            }
            Phase::Lingering { .. } | Phase::AwaitingProxyHeader { .. } => true,
            // A connection that waits in the queue need not be reported again.
            Phase::Handshaking { .. } => !conn.comes_again,
            Phase::Flushing => false,
        };
        let mut interest = Readiness::empty();
        interest.set(Readiness::IN, hears);
        // A connection that is read learns of the end by reading; one that is not read, because handlers are
        // slow, must be told. Not while the peer is slow to take responses: it may have sent all its requests.
        let waits = !hears && conn.phase == Phase::Open && conn.output.is_empty();
        // Nor in a tunnel, where what the peer has sent before its end still goes to the other side.
        let is_told = waits && !conn.peer_closed && !conn.passes_through();
        interest.set(Readiness::RDHUP, is_told);
        interest.set(Readiness::OUT, conn.wants_write());
        // The end of both directions is told whatever is asked for, and again in each turn unless by its edge.
        interest.set(Readiness::ET, conn.peer_closed && conn.owes_responses());
        interest
    }

    /// Ends a connection.
    pub(crate) fn destroy<S: Service>(&mut self, mut conn: Box<Conn>, service: &mut S) {
        let id = conn.id;
        if let Some(socket) = conn.socket() {
            // A process that a handler has forked may hold the socket open: dropping ours would neither
            // take it out of the epoll set nor end the connection. Neither call can fail on a live socket,
            // and a dead one needs neither.
            self.poller.remove(socket);
        }
        if !conn.resets {
            conn.shut_down();
        }
        self.memories.note_end(&mut conn);
        self.tell_refused(&mut conn, service);
        if conn.is_quic() {
            self.leave_quic(&mut conn);
        }
        if self.watch.is_on {
            self.watch.end_all(&mut conn);
            self.watch.count(Counter::BytesSent, conn.take_written());
        }
        drop(conn);
        self.table.release(id);
        service.disconnected(id);
    }
}

const _: () = assert!(EVENTS_PER_TURN <= 1024, "a turn stays short");
