//! The end of a reactor: it stops accepting, lets open requests finish and closes idle connections.
//!
//! In: [`Reactor::drain`] and [`Reactor::close`]. Out: connections that end, each when its last response has left. Requests that
//! have reached the process are not lost. Tests: `tests/turn.rs`, `tests/server/test_stopping.py`.

use citius_http::{DRAIN_IDLE_MS, Millis};
use citius_observe::Ending;
use citius_ws::Code;

use crate::conn::{Conn, Phase, Verdict};
use crate::id::ConnectionId;
use crate::reactor::{Reactor, TIMER_DRAIN};
use crate::readiness::INDEX_LISTENER;
use crate::service::{Notice, Service};

/// Connections accepted from one listener at the start of a drain, at the least: what is queued is served, and
/// queues are this long by Linux's own bound (`somaxconn`). A listener that other
/// processes have too cannot be closed, and must not be accepted from for ever.
const ACCEPTS_PER_DRAIN: usize = 4096;
/// Milliseconds that a connection without a request gets for its first one while the reactor drains.
const DRAIN_GRACE_MS: Millis = 1000;
/// Milliseconds after which a drain says which requests it waits for.
const DRAIN_TOLD_MS: Millis = 1000;

impl Reactor {
    /// Stops accepting, lets open requests finish and closes idle connections.
    ///
    /// Nothing that has reached us is lost: what is queued is accepted, every connection is read once
    /// more, one that has not asked anything yet gets [`DRAIN_GRACE_MS`] to do so, and one between two
    /// requests [`DRAIN_IDLE_MS`].
    pub fn drain<S: Service>(&mut self, service: &mut S) {
        self.begin_timing();
        self.leave_balancer(service);
        let accepts = ACCEPTS_PER_DRAIN.max(self.tools.limits.connections_max as usize);
        for listener in 0..self.listeners.len() {
            let mut left = accepts;
            while left > 0 {
                match self.accept(listener, service) {
                    0 => break,
                    accepted => left = left.saturating_sub(accepted),
                }
            }
        }
        self.stop_listening();
        for id in self.table.ids() {
            self.in_hand(id, service, |reactor, conn, service| {
                let verdict = match conn.phase {
                    _ if conn.is_quic() => reactor.settle_quic(conn, service),
                    Phase::Open if conn.wire.wants_input(&reactor.tools.limits) => {
                        reactor.receive(conn, service)
                    }
                    _ => Verdict::Keep,
                };
                if verdict == Verdict::Close {
                    return Verdict::Close;
                }
                if let Phase::Handshaking { .. } | Phase::AwaitingProxyHeader { .. } = conn.phase {
                    conn.drain_at = reactor.tools.clock.now + DRAIN_GRACE_MS;
                    return Verdict::Keep;
                }
                // Nothing is under way to a connection whose client is in this process.
                let is_between =
                    conn.phase == Phase::Open && conn.wire.streams_open() == 0 && conn.is_remote();
                if !conn.has_asked || is_between {
                    let grace = if conn.has_asked {
                        DRAIN_IDLE_MS
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
        self.timers.arm(now, &mut self.poller);
    }

    /// Whether the last response of a connection that drains is about to leave, so that the end is said in the same write,
    /// once what its client has sent meanwhile is taken.
    #[inline]
    pub(crate) fn is_goaway_due(&self, conn: &Conn) -> bool {
        self.draining
            && conn.phase == Phase::Open
            && !conn.peer_closed
            && !conn.is_quic()
            && conn.wire.has_events()
    }

    /// The connection takes no more requests.
    pub(crate) fn drain_wire(&mut self, conn: &mut Conn) {
        let mut context = self.tools.context();
        conn.wire.drain(&mut context, &mut conn.output);
    }

    /// Cuts all connections.
    pub fn close<S: Service>(&mut self, service: &mut S) {
        self.membership = None;
        self.stop_listening();
        self.watch.lost = Ending::Stopped;
        for id in self.table.ids() {
            self.in_hand(id, service, |_, _, _| Verdict::Close);
        }
    }

    /// Unwatched before they are dropped: another process may hold the same sockets open, and then
    /// dropping ours alone would leave them in the epoll set, ready for ever.
    pub(crate) fn stop_listening(&mut self) {
        self.draining = true;
        if let Some(quic) = &mut self.quic {
            quic.close();
        }
        self.codecs.is_draining = true;
        for listener in std::mem::take(&mut self.listeners) {
            // While accepting is paused they are not watched, and need not be unwatched.
            if let Some(socket) = listener.socket() {
                self.poller.remove(socket);
            }
        }
    }

    /// A drain has not ended at once: says what it waits for.
    pub(crate) fn tell_what_drains<S: Service>(&mut self, service: &mut S) {
        let requests = self.requests_open();
        // What a cut has closed may be in hand still.
        if requests > 0 && self.watch.lost != Ending::Stopped {
            let routes = self.routes_open();
            let routes = &routes;
            service.noted(Notice::Draining { requests, routes });
        }
    }
}
