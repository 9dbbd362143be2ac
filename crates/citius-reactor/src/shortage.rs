//! What happens when the process has no descriptor left for a new connection.
//!
//! Idle kept-alive connections are closed first, those that are nearest to their end by themselves before the
//! others. Without one, a connection takes the place of a spare descriptor that was held in reserve: with the last
//! spare it is told 503, with those before it (only the management port has any) it is served. The service is told,
//! the observer counts, and readiness is withdrawn until descriptors have been free for a while.

use citius_http::Millis;
use citius_observe::Counter;

use crate::conn::{Conn, Phase, Transport, Verdict};
use crate::id::ConnectionId;
use crate::listener::{Accepted, Listener};
use crate::reactor::{Reactor, TIMER_SHORTAGE};
use crate::readiness::INDEX_LISTENER;
use crate::refusal::OVERLOADED;
use crate::service::{Notice, Service};
use crate::stream::Stream;
use crate::system::Spare;

/// Idle connections that are closed when one descriptor is needed: looking for them means looking at all.
const EVICTIONS: usize = 32;
/// Milliseconds without another shortage after which one is over.
const OVER_MS: Millis = 5_000;
/// Milliseconds after which a shortage that lasts is told again.
const TELL_MS: Millis = 10_000;

/// Descriptors in reserve, and the shortage that there is.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    spares: Vec<Spare>,
    /// When a descriptor was missing last; `None`: enough are free.
    last_at: Option<Millis>,
    told_at: Millis,
    /// Idle connections closed since the service was told.
    evicted: u64,
    /// Connections turned away since then.
    refused: u64,
}

impl Reactor {
    /// Holds as many descriptors in reserve as the limits say and the process has.
    pub(crate) fn hold_spares(&mut self) {
        while self.shortage.spares.len() < self.tools.limits.descriptors_spare as usize {
            match self.poller.spare() {
                Some(spare) => self.shortage.spares.push(spare),
                None => return,
            }
        }
    }

    /// Makes a descriptor free for a connection that waits; whether the next attempt to accept may succeed.
    #[cold]
    pub(crate) fn make_way<S: Service>(&mut self, listener: usize, service: &mut S) -> bool {
        self.watch.count(Counter::DescriptorsMissing, 1);
        self.begin_shortage();
        let evicted = self.evict_quiet(false, service);
        self.shortage.evicted += evicted;
        let goes_on = if evicted > 0 {
            true
        } else if self.shortage.spares.pop().is_some() {
            !self.shortage.spares.is_empty() || self.refuse_next(listener)
        } else {
            false
        };
        self.tell_shortage(service);
        goes_on
    }

    /// Closes connections that wait for a request; with `unasked` also those that have sent none yet.
    pub(crate) fn evict_quiet<S: Service>(&mut self, unasked: bool, service: &mut S) -> u64 {
        let mut quiet: Vec<(Millis, ConnectionId)> = self
            .table
            .iter()
            .filter(|conn| conn.is_quiet(unasked))
            .map(|conn| (self.deadline(conn), conn.id))
            .collect();
        if quiet.len() > EVICTIONS {
            quiet.select_nth_unstable(EVICTIONS);
            quiet.truncate(EVICTIONS);
        }
        for &(_, id) in &quiet {
            self.in_hand(id, service, |_, _, _| Verdict::Close);
        }
        let evicted = quiet.len() as u64;
        self.watch.count(Counter::ConnectionsEvicted, evicted);
        evicted
    }

    /// Accepts one connection by the descriptor that has just become free, and turns it away at once: whether one
    /// came. There is none to keep it open by until the peer has read the response.
    fn refuse_next(&mut self, listener: usize) -> bool {
        let accepted = self.listeners.get(listener).map(Listener::accept);
        let came = if let Some(Accepted::Connection(socket, peer)) = accepted {
            let (wire, _, is_secured) = self.wire_of(listener);
            let now = self.tools.clock.now;
            let id = self.table.reserve();
            let transport = Transport::Plain(Stream::Socket(socket));
            let mut conn = Conn::new(id, transport, peer, wire, now);
            let refusal = if is_secured {
                Some(OVERLOADED)
            } else {
                conn.wire.refusal()
            };
            if let Some(refusal) = refusal {
                conn.output.tail().extend_from_slice(refusal);
            }
            // A peer that cannot be told is gone. What it has sent is read, for closing would reset it otherwise.
            let _ = conn.flush(now, &mut self.scratch);
            conn.shut_down_write();
            let _ = conn.discard(&mut self.inbox);
            drop(conn);
            self.table.release(id);
            self.watch.count(Counter::ConnectionsRefused, 1);
            self.shortage.refused += 1;
            true
        } else {
            false
        };
        self.hold_spares();
        came
    }

    fn begin_shortage(&mut self) {
        let now = self.tools.clock.now;
        if self.shortage.last_at.replace(now).is_none() {
            self.shortage.told_at = now.saturating_sub(TELL_MS);
            self.watch.set_short_of_descriptors(true);
            self.look_again_at_shortage();
        }
    }

    fn look_again_at_shortage(&mut self) {
        let id = ConnectionId {
            index: INDEX_LISTENER,
            generation: TIMER_SHORTAGE,
        };
        self.timers.push(self.tools.clock.now + OVER_MS, id);
    }

    fn tell_shortage<S: Service>(&mut self, service: &mut S) {
        let now = self.tools.clock.now;
        if now.saturating_sub(self.shortage.told_at) < TELL_MS {
            return;
        }
        self.shortage.told_at = now;
        service.noted(Notice::OutOfDescriptors {
            connections: self.table.len(),
            evicted: std::mem::take(&mut self.shortage.evicted),
            refused: std::mem::take(&mut self.shortage.refused),
        });
    }

    /// Some time has passed since descriptors were missing: whether it is over.
    pub(crate) fn look_at_shortage<S: Service>(&mut self, service: &mut S) {
        let Some(last_at) = self.shortage.last_at else {
            return;
        };
        self.hold_spares();
        if self.tools.clock.now.saturating_sub(last_at) < OVER_MS {
            return self.look_again_at_shortage();
        }
        self.shortage.last_at = None;
        self.watch.set_short_of_descriptors(false);
        service.noted(Notice::DescriptorsAreFree {
            evicted: std::mem::take(&mut self.shortage.evicted),
            refused: std::mem::take(&mut self.shortage.refused),
        });
    }
}

impl Conn {
    /// Whether closing it costs the peer no more than a new connection.
    fn is_quiet(&self, unasked: bool) -> bool {
        let waits = match self.phase {
            Phase::Open => self.has_asked && self.input.is_empty() || unasked,
            Phase::Handshaking { .. } | Phase::AwaitingProxyHeader { .. } => unasked,
            Phase::Flushing | Phase::Lingering { .. } => false,
        };
        waits
            && self.wire.streams_open() == 0
            && self.sockets.is_empty()
            && !self.wants_write()
            && self.is_remote()
            // It has no descriptor of its own.
            && !self.is_quic()
    }
}
