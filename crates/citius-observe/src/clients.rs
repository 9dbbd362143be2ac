//! What the clients of databases in one worker count, in cells of its slot, and their operations as spans.
//!
//! A client is a pool of `citius.pg` or a client of `citius.redis`. Their number is bounded by [`CLIENTS_MAX`]; a client
//! for which there is no room is not counted.

use crate::slot::{BUCKETS_US, CLIENTS_AT, HISTOGRAM_CELLS, LABEL_BYTES_MAX, MetricsSlot, cells};

/// Clients that a worker counts.
pub const CLIENTS_MAX: usize = 8;

cells! {
    /// What only grows.
    ClientCounter {
        /// Operations that succeeded.
        Ok = "ok",
        /// Operations that failed.
        Error = "error",
        /// Operations whose caller has left.
        Cancelled = "cancelled",
        /// Connections that were opened.
        Opened = "opened",
        /// Connections that ended without being closed by the client.
        Lost = "lost",
        /// Attempts to connect that failed.
        ConnectFailed = "connect_failed",
        /// Operations that were refused because too much waited, or waited for too long.
        Refused = "refused",
    }
}

cells! {
    /// What goes up and down.
    ClientGauge {
        /// Open connections on which something is under way.
        Used = "used",
        /// Open connections on which nothing is.
        Idle = "idle",
        /// Operations that wait for a connection.
        Queued = "queued",
    }
}

const LABEL_CELLS: usize = LABEL_BYTES_MAX / 8;
const KIND_BYTES_MAX: usize = 8;
const KIND_AT: usize = LABEL_CELLS;
const COUNTERS_AT: usize = KIND_AT + KIND_BYTES_MAX / 8;
const GAUGES_AT: usize = COUNTERS_AT + ClientCounter::ALL.len();
const HISTOGRAM_AT: usize = GAUGES_AT + ClientGauge::ALL.len();

/// Cells of one client.
pub(crate) const CLIENT_CELLS: usize = 48;

const _: () = assert!(HISTOGRAM_AT + HISTOGRAM_CELLS <= CLIENT_CELLS);

/// The cells of one client.
#[derive(Clone, Copy, Debug)]
pub struct ClientCells {
    slot: MetricsSlot,
    at: usize,
}

impl ClientCells {
    /// Those of the client with this number; `None` if there is no room for it.
    pub fn new(slot: MetricsSlot, number: usize) -> Option<Self> {
        let at = CLIENTS_AT + number * CLIENT_CELLS;
        (number < CLIENTS_MAX).then_some(Self { slot, at })
    }

    /// Says what the client is: `pg` or `redis`, and its name.
    pub fn describe(self, kind: &str, label: &str) {
        self.slot.write(self.at, LABEL_BYTES_MAX, label);
        self.slot.write(self.at + KIND_AT, KIND_BYTES_MAX, kind);
    }

    /// Counts one.
    #[inline]
    pub fn count(self, counter: ClientCounter) {
        self.slot.bump(self.at + COUNTERS_AT + counter as usize, 1);
    }

    /// Counts an operation that took so long.
    #[inline]
    pub fn finish(self, outcome: ClientCounter, duration_us: u64) {
        self.count(outcome);
        self.slot.observe(self.at + HISTOGRAM_AT, duration_us);
    }

    /// Sets a gauge.
    pub fn set(self, gauge: ClientGauge, value: u64) {
        self.slot.put(self.at + GAUGES_AT + gauge as usize, value);
    }

    /// What a counter stands at.
    pub fn counter(self, counter: ClientCounter) -> u64 {
        self.slot.value(self.at + COUNTERS_AT + counter as usize)
    }

    /// What a gauge stands at.
    pub fn gauge(self, gauge: ClientGauge) -> u64 {
        self.slot.value(self.at + GAUGES_AT + gauge as usize)
    }

    /// What the client is: `pg` or `redis`; empty for one that is not there.
    pub fn kind(self) -> String {
        self.slot.read(self.at + KIND_AT, KIND_BYTES_MAX)
    }

    /// Its name.
    pub fn label(self) -> String {
        self.slot.read(self.at, LABEL_BYTES_MAX)
    }

    /// How long operations took: one count a bucket of [`BUCKETS_US`], one above them, the sum in microseconds.
    pub fn durations(self) -> Vec<u64> {
        (0..BUCKETS_US.len() + 2)
            .map(|cell| self.slot.value(self.at + HISTOGRAM_AT + cell))
            .collect()
    }
}

/// One operation of a client within a sampled trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSpan {
    /// The number of its client.
    pub client: usize,
    /// The trace that it belongs to.
    pub trace_id: u128,
    /// The span that it is a child of.
    pub parent_id: u64,
    /// Its own identity.
    pub span_id: u64,
    /// Microseconds since 1970.
    pub started_us: u64,
    /// How long it took.
    pub duration_us: u64,
    /// What was executed, without its parameters.
    pub text: Box<str>,
    /// How many executions it was.
    pub batch: usize,
    /// What went wrong, in a word.
    pub error: Option<Box<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_count_apart() {
        let slot = MetricsSlot::leak();
        let (one, two) = (
            ClientCells::new(slot, 0).unwrap(),
            ClientCells::new(slot, CLIENTS_MAX - 1).unwrap(),
        );
        assert!(ClientCells::new(slot, CLIENTS_MAX).is_none());
        one.describe("pg", "shop");
        two.describe("redis", &"é".repeat(100));
        one.finish(ClientCounter::Ok, 120);
        one.finish(ClientCounter::Error, 90);
        two.count(ClientCounter::Refused);
        two.set(ClientGauge::Queued, 7);
        assert_eq!((one.kind(), one.label()), ("pg".into(), "shop".into()));
        assert_eq!((two.kind(), two.label()), ("redis".into(), "é".repeat(64)));
        assert_eq!(one.counter(ClientCounter::Ok), 1);
        assert_eq!(two.counter(ClientCounter::Ok), 0);
        assert_eq!(two.gauge(ClientGauge::Queued), 7);
        let durations = one.durations();
        assert_eq!((durations[0], durations[1], durations[17]), (1, 1, 210));
        slot.clear();
        assert_eq!(one.kind(), "");
    }
}
