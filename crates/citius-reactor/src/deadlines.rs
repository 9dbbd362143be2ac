//! Deadlines of connections and of the reactor: what happens when one has passed.
//!
//! In: the time, once for each turn. Out: closed connections, events of the protocol, or nothing if the deadline has moved.
//! Tests: `tests/turn.rs`, `tests/abuse/`.

use citius_h1::Closing;
use citius_http::Millis;
use citius_observe::Counter;

use crate::conn::{Conn, Phase, Verdict};
use crate::reactor::{NEVER, Reactor, TIMER_DRAIN, TIMER_SHORTAGE};
use crate::readiness::INDEX_LISTENER;
use crate::service::{Notice, Service};
use crate::socket;

impl Reactor {
    /// Deadlines that have passed.
    pub(crate) fn expire<S: Service>(&mut self, service: &mut S) {
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
    pub(crate) fn own_timer<S: Service>(&mut self, which: u32, service: &mut S) {
        match which {
            TIMER_SHORTAGE => self.look_at_shortage(service),
            TIMER_DRAIN => self.tell_what_drains(service),
            _ => self.resume_accepting(),
        }
    }

    /// The next moment at which something happens to `conn` if nothing else does.
    #[inline]
    pub(crate) fn deadline(&self, conn: &Conn) -> Millis {
        let limits = &self.tools.limits;
        match conn.phase {
            Phase::Lingering { until } => return until,
            Phase::Handshaking { until } | Phase::AwaitingProxyHeader { until, .. } => {
                return until.min(conn.drain_at);
            }
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

    /// Requests that have no whole response are told of, by name and in their lines.
    #[cold]
    fn tell_of_stall<S: Service>(&self, conn: &mut Conn, service: &mut S) {
        conn.is_stalled = true;
        let requests = conn.notes.len() + conn.leaving.len();
        if requests > 0 {
            let unsent = conn.leaving.iter().map(|leaving| &leaving.note);
            let routes = &self.watch.routes(conn.notes.iter().chain(unsent));
            service.noted(Notice::Stalled { requests, routes });
        }
    }

    /// A deadline has passed.
    pub(crate) fn overdue<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        let now = self.tools.clock.now;
        match conn.phase {
            Phase::AwaitingProxyHeader { until, .. } if until <= now => {
                return self.proxy_header_overdue(conn, service);
            }
            Phase::Lingering { .. } | Phase::AwaitingProxyHeader { .. } => return Verdict::Close,
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
            self.tell_of_stall(conn, service);
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
}
