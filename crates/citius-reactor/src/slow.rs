//! Events that keep the reactor's thread long: found by the clock that a turn reads anyway, and told to the service.
//!
//! In: the time between two looks at the clock, one after each ready connection and each accepted one. Out: [`Service::slow`]. What took
//! long is known at once if the connection had one request. If it had several (pipelined, multiplexed), each event
//! is timed for a while from then on, so that twenty quick ones are not taken for a slow one.
//! Tests: `tests/observe/test_slow.py`.

use citius_http::{Millis, limits};

use crate::clock::{coarse_ms, note_cpu};
use crate::id::{ConnectionId, StreamId};
use crate::reactor::Reactor;
use crate::service::Service;

/// How long events are timed one by one after several together took long.
const TIMED_MS: Millis = 60_000;

/// What is known of long events.
#[derive(Debug, Default)]
pub(crate) struct SlowHandlers {
    /// Each event is timed by itself.
    pub(crate) is_timing: bool,
    timed_until: Millis,
    /// When the last event ended.
    pub(crate) since: Millis,
    /// The last request that was handed over.
    pub(crate) latest: Option<StreamId>,
    /// [`Reactor::requests_total`] when the last look was taken.
    pub(crate) requests_before: u64,
}

impl SlowHandlers {
    /// The next event begins. The CPU time is read once for each tick of the clock.
    #[inline]
    fn begin(&mut self, now: Millis) {
        if now != self.since {
            note_cpu(now);
        }
        self.since = now;
    }
}

impl Reactor {
    /// Events follow: the first one begins now.
    #[inline]
    pub(crate) fn begin_timing(&mut self) {
        self.slow.begin(coarse_ms());
        self.slow.requests_before = self.requests_total;
    }

    /// A ready or accepted connection has been served: was it for too long? Returns the time.
    #[inline]
    pub(crate) fn look_for_slow<S: Service>(
        &mut self,
        id: ConnectionId,
        service: &mut S,
    ) -> Millis {
        let now = coarse_ms();
        if limits::reaches(now - self.slow.since, self.tools.limits.slow_handler_ms) {
            self.tell_slow(id, now, service);
        }
        self.slow.begin(now);
        self.slow.requests_before = self.requests_total;
        now
    }

    #[cold]
    fn tell_slow<S: Service>(&mut self, id: ConnectionId, now: Millis, service: &mut S) {
        if self.slow.is_timing {
            // Whatever was slow has been told when its event ended.
            self.slow.is_timing = now < self.slow.timed_until;
            return;
        }
        let requests = self.requests_total - self.slow.requests_before;
        if requests > 1 {
            self.slow.is_timing = true;
            self.slow.timed_until = now + TIMED_MS;
            return;
        }
        let request = self.slow.latest.filter(|_| requests == 1);
        self.name_slow(id, request, now - self.slow.since, service);
    }

    /// Serves one event and times it, while each is timed.
    #[cold]
    pub(crate) fn time_event<S: Service>(&mut self, id: ConnectionId, service: &mut S) {
        let now = coarse_ms();
        let took_ms = now.saturating_sub(self.slow.since);
        if limits::reaches(took_ms, self.tools.limits.slow_handler_ms) {
            let is_request = self.requests_total != self.slow.requests_before;
            let request = self.slow.latest.filter(|_| is_request);
            self.name_slow(id, request, took_ms, service);
        }
        self.slow.begin(now);
        self.slow.requests_before = self.requests_total;
        self.slow.is_timing = now < self.slow.timed_until;
    }

    fn name_slow<S: Service>(
        &mut self,
        connection: ConnectionId,
        request: Option<StreamId>,
        took_ms: Millis,
        service: &mut S,
    ) {
        service.slow(connection, request, took_ms, self.tools.heads.latest());
    }
}
