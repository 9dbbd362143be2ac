//! New connections: sockets from a listener in, connections with a protocol out.
//!
//! A connection above `connections_max` is refused. Out of descriptors, accepting pauses ([`shortage`](crate::shortage)).
//! Tests: `tests/turn.rs`, `tests/abuse/`.

use citius_h1::Closing;
use citius_http::Millis;
use citius_observe::Counter;

use crate::conn::{Conn, Transport, Verdict};
use crate::id::{ConnectionId, Peer};
use crate::listener::{Accepted, Listener, ListenerProtocol};
use crate::reactor::{Reactor, TIMER_ACCEPT};
use crate::readiness::{INDEX_LISTENER, Readiness};
use crate::service::Service;
use crate::stream::Stream;
use crate::system::{Result, Socket};
use crate::turn::TURN_MS;
use crate::wire::{Protocols, Wire};

/// Connections accepted from one listener in one turn.
const ACCEPTS_PER_TURN: usize = 64;
/// Connections above `connections_max` that are told so; beyond them the door is shut without a word.
const REFUSALS_MAX: usize = 64;
/// Milliseconds for which nothing is accepted after an attempt has failed for a reason that lasts.
const EXHAUSTED_MS: Millis = 100;

impl Reactor {
    /// Takes new connections, until the turn has taken its time; returns how many, and 0 if none can be had.
    pub(crate) fn accept<S: Service>(&mut self, listener: usize, service: &mut S) -> usize {
        let mut accepted = 0;
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(next) = self.listeners.get(listener).map(Listener::accept) else {
                break;
            };
            let (socket, peer) = match next {
                Accepted::Connection(socket, peer) => (socket, peer),
                Accepted::Nothing => break,
                Accepted::OutOfDescriptors if self.make_way(listener, service) => continue,
                Accepted::OutOfDescriptors | Accepted::Exhausted => {
                    self.pause_accepting();
                    break;
                }
            };
            accepted += 1;
            let Some((socket, peer)) = self.offer(listener, socket, peer) else {
                continue;
            };
            match self.take_up(listener, socket, peer, service) {
                // Its first request may have been served: a slow one is named by itself.
                Ok(Some(id)) if self.look_for_slow(id, service) - self.started_at > TURN_MS => {
                    break;
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        accepted
    }

    /// Takes up a connection that was accepted from `listener`, and reads it. `None`: it was closed without a response, because
    /// too many are open even for refusals.
    ///
    /// # Errors
    /// The poller has no memory to watch it.
    pub(crate) fn take_up<S: Service>(
        &mut self,
        listener: usize,
        socket: Socket,
        peer: Peer,
        service: &mut S,
    ) -> Result<Option<ConnectionId>> {
        if !self.has_place(service) {
            return Ok(None);
        }
        let id = self.table.reserve();
        if let Err(error) = self.poller.add(&socket, id, Readiness::IN) {
            self.table.release(id);
            self.pause_accepting();
            return Err(error);
        }
        self.begin(listener, id, (Stream::Socket(socket), peer), service);
        Ok(Some(id))
    }

    /// Whether one more connection can be served, or at least be told that it is not.
    pub(crate) fn has_place<S: Service>(&mut self, service: &mut S) -> bool {
        let open_max = self.tools.limits.connections_max as usize;
        if self.makes_room && self.table.len() >= open_max {
            self.evict_quiet(true, service);
        }
        let has_place = self.table.len() < open_max + REFUSALS_MAX;
        if !has_place {
            self.watch.count(Counter::ConnectionsRefused, 1);
        }
        has_place
    }

    /// Takes up a new connection, whose place in the table is reserved, or turns it away.
    pub(crate) fn begin<S: Service>(
        &mut self,
        listener: usize,
        id: ConnectionId,
        (stream, peer): (Stream, Peer),
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
        let (wire, protocols, is_secured) = self.wire_of(listener);
        let mut conn = Conn::new(id, Transport::Plain(stream), peer, wire, now);
        conn.protocols = protocols;
        conn.is_trusted = self.proxies.trusts(peer.address());
        conn.redirect_port = self.listeners[listener].redirect_port;
        if self.listeners[listener].is_proxied && !refused {
            self.table.put(Box::new(conn));
            return self.in_hand(id, service, |reactor, conn, service| {
                reactor.await_proxy_header(conn, is_secured, service)
            });
        }
        if is_secured {
            self.accept_secured(conn, refused, service);
            return;
        }
        self.table.put(Box::new(conn));
        // Most clients have sent their first request by now; the others cost one vain read.
        self.in_hand(id, service, |reactor, conn, service| {
            if refused {
                reactor.refuse(conn)
            } else {
                reactor.receive(conn, service)
            }
        });
    }

    /// What a connection of a listener speaks at first, which versions of HTTP it may, and whether under TLS.
    pub(crate) fn wire_of(&self, listener: usize) -> (Wire, Protocols, bool) {
        let now = self.tools.clock.now;
        match self.listeners[listener].speaks {
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
        }
    }

    /// Turns a connection away and tells it why, if its protocol can say so.
    pub(crate) fn refuse(&mut self, conn: &mut Conn) -> Verdict {
        let Some(refusal) = conn.wire.refusal() else {
            return Verdict::Close;
        };
        conn.output.tail().extend_from_slice(refusal);
        if conn.flush(self.tools.clock.now, &mut self.scratch) == Ok(true) {
            self.begin_close(conn, Closing::Linger)
        } else {
            Verdict::Close
        }
    }

    /// Out of descriptors: leaves the queue to the kernel for a while.
    pub(crate) fn pause_accepting(&mut self) {
        if std::mem::replace(&mut self.accepting, false) {
            if let Some(membership) = &self.membership {
                membership.pause(true);
            }
            for socket in self.listeners.iter().filter_map(Listener::socket) {
                self.poller.remove(socket);
            }
            let resume = ConnectionId {
                index: INDEX_LISTENER,
                generation: TIMER_ACCEPT,
            };
            self.timers
                .push(self.tools.clock.now + EXHAUSTED_MS, resume);
        }
    }

    pub(crate) fn resume_accepting(&mut self) {
        self.accepting = true;
        if let Some(membership) = &self.membership {
            membership.pause(false);
        }
        self.hold_spares();
        for (listener, generation) in self.listeners.iter().zip(0..) {
            let id = ConnectionId {
                index: INDEX_LISTENER,
                generation,
            };
            if let Some(socket) = listener.socket() {
                // If the kernel refuses, the pause above begins anew with the next attempt.
                let _ = self.poller.add(socket, id, Readiness::IN);
            }
        }
    }
}
