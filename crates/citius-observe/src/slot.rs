//! One worker's counters, in memory shared with the supervisor.
//!
//! A slot is a run of 64-bit cells that only its reactor writes (with plain loads and stores, on the
//! reactor's thread; the few exceptions have functions of their own) and any process reads. A reader sees each cell whole and at most a few
//! events old; two cells may be of different moments. A worker that dies leaves its slot as it is: the
//! supervisor adds the counters to those of the dead and clears the slot for the next worker.
//!
//! ```text
//! counters │ gauges │ faults │ codes (100…599) │ loop lag │ readiness text │ classes: label, counts, histogram, codes of calls │ clients
//! ```
//!
//! A class is a route of a native application or a path pattern of another: their number is bounded by
//! [`CLASSES_MAX`] and does not depend on what clients request. Memory of classes that are not used is never touched.

use std::sync::atomic::{AtomicU64, Ordering};

use citius_http::{Fault, Method};

use crate::clients::{CLIENT_CELLS, CLIENTS_MAX};
use crate::rpc::RPC_CODES;

macro_rules! cells {
    ($(#[$doc:meta])* $kind:ident { $($(#[$vdoc:meta])* $name:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $kind { $($(#[$vdoc])* $name,)+ }

        impl $kind {
            /// All of them, in the order of their cells.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name outside Rust.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

pub(crate) use cells;

cells! {
    /// What only grows.
    Counter {
        /// Connections taken from the listeners.
        ConnectionsAccepted = "connections_accepted",
        /// Connections that became or began as HTTP/2.
        Http2Connections = "http2_connections",
        /// Connections of HTTP/3.
        Http3Connections = "http3_connections",
        /// Connections turned away above `connections_max`.
        ConnectionsRefused = "connections_refused",
        /// Connections closed after `keep_alive_ms` without a request.
        KeepAliveOver = "keep_alive_over",
        /// Connections reset after `write_stall_ms`.
        WriteStalled = "write_stalled",
        /// Requests answered with 503 above `requests_open_max`.
        RequestsShed = "requests_shed",
        /// Bytes read from sockets.
        BytesReceived = "bytes_received",
        /// Bytes written to sockets.
        BytesSent = "bytes_sent",
        /// Requests whose client left before the response was complete.
        RequestsCancelled = "requests_cancelled",
        /// Exceptions that no handler of the application has taken care of.
        HandlerExceptions = "handler_exceptions",
        /// Access lines that found no room.
        LogLinesDropped = "log_lines_dropped",
        /// TLS handshakes that were completed.
        TlsHandshakes = "tls_handshakes",
        /// Those of them that took up an earlier session.
        TlsResumed = "tls_handshakes_resumed",
        /// TLS handshakes that were not.
        TlsFailed = "tls_handshakes_failed",
        /// Those of them that were not completed in `tls_handshake_ms`.
        TlsTooSlow = "tls_handshakes_too_slow",
        /// Connections closed because no trusted proxy began them with a PROXY header.
        ProxyHeadersRefused = "proxy_headers_refused",
        /// Times that a new connection found no free descriptor.
        DescriptorsMissing = "descriptors_missing",
        /// Idle connections closed to make room for new ones.
        ConnectionsEvicted = "connections_evicted",
        /// Datagrams of WebTransport that their handler, or their session, was too slow for.
        DatagramsDropped = "webtransport_datagrams_dropped",
    }
}

cells! {
    /// What goes up and down; meaningless once the worker is dead.
    Gauge {
        /// The process.
        Pid = "pid",
        /// 0 starting, 1 ready, 2 draining.
        State = "state",
        /// 0 unknown, 1 the application's checks pass, 2 they do not.
        Checks = "checks",
        /// When the loop was alive last: milliseconds on the system's monotonic clock.
        BeatAt = "beat_at_ms",
        /// Open connections.
        ConnectionsOpen = "connections_open",
        /// Requests whose responses are not complete.
        RequestsOpen = "requests_open",
        /// Requests that wait for a thread.
        QueueLength = "queue_length",
        /// How long the oldest of them has waited, in microseconds.
        QueueAge = "queue_age_us",
        /// How late the loop was last, in microseconds.
        LoopLag = "loop_lag_us",
        /// 1 while new connections find no free descriptor.
        DescriptorsMissing = "descriptors_missing",
        /// Open sessions of WebTransport.
        SessionsOpen = "webtransport_sessions_open",
        /// Open streams in them.
        SessionStreamsOpen = "webtransport_streams_open",
    }
}

/// Classes of requests that are counted apart; number 0 is for requests without a class.
pub const CLASSES_MAX: usize = 256;
/// Bytes of a class's label; longer ones are cut.
pub const LABEL_BYTES_MAX: usize = 128;
/// Bytes of what a readiness check says.
const TEXT_BYTES_MAX: usize = 256;
/// Upper ends of the buckets of a duration, in microseconds; there is one more for what is longer.
pub const BUCKETS_US: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// The methods that are told apart, in the order of their cells.
pub const METHODS: [&str; 8] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "other",
];
const STATUS_CLASSES: usize = 5;
const COUNTS: usize = METHODS.len() * STATUS_CLASSES;
pub(crate) const HISTOGRAM_CELLS: usize = BUCKETS_US.len() + 2;
const CODES: usize = 500;

const GAUGES_AT: usize = 32;
const FAULTS_AT: usize = 64;
const CODES_AT: usize = 192;
const LAG_AT: usize = 704;
const TEXT_AT: usize = 728;
const CLASSES_AT: usize = 768;
const CLASS_CELLS: usize = 104;
const LABEL_AT: usize = 64;
/// Calls by their codes, of classes that are procedures.
const RPC_AT: usize = 80;

/// Where the cells of [`clients`](crate::clients) begin.
pub(crate) const CLIENTS_AT: usize = CLASSES_AT + CLASSES_MAX * CLASS_CELLS;

/// Cells of one slot.
pub const SLOT_CELLS: usize = CLIENTS_AT + CLIENTS_MAX * CLIENT_CELLS;

const _: () = {
    assert!(Counter::ALL.len() <= GAUGES_AT);
    assert!(GAUGES_AT + Gauge::ALL.len() <= FAULTS_AT);
    assert!(FAULTS_AT + Fault::ALL.len() <= CODES_AT);
    assert!(CODES_AT + CODES <= LAG_AT);
    assert!(LAG_AT + HISTOGRAM_CELLS <= TEXT_AT);
    assert!(TEXT_AT + 1 + TEXT_BYTES_MAX / 8 <= CLASSES_AT);
    assert!(COUNTS + HISTOGRAM_CELLS <= LABEL_AT);
    assert!(LABEL_AT + LABEL_BYTES_MAX / 8 <= RPC_AT);
    assert!(RPC_AT + RPC_CODES.len() <= CLASS_CELLS);
    assert!(
        CLASSES_AT.is_multiple_of(8) && CLASS_CELLS.is_multiple_of(8),
        "cache lines"
    );
};

/// One worker's cells.
#[derive(Clone, Copy, Debug)]
pub struct MetricsSlot(&'static [AtomicU64; SLOT_CELLS]);

impl MetricsSlot {
    /// A slot in `cells`; `None` if there are too few.
    pub fn new(cells: &'static [AtomicU64]) -> Option<Self> {
        cells.first_chunk().map(Self)
    }

    /// A slot of one's own, for a worker without a supervisor. It lives as long as the process.
    ///
    /// # Panics
    /// Never: the cells are counted two lines below.
    pub fn leak() -> Self {
        let cells: Box<[AtomicU64]> = (0..SLOT_CELLS).map(|_| AtomicU64::new(0)).collect();
        Self::new(Box::leak(cells)).expect("as many cells as a slot has")
    }

    #[inline]
    pub(crate) fn bump(self, at: usize, n: u64) {
        if let Some(cell) = self.0.get(at) {
            // One writer: no need for an atomic addition, which would cost as much as the rest.
            cell.store(
                cell.load(Ordering::Relaxed).wrapping_add(n),
                Ordering::Relaxed,
            );
        }
    }

    pub(crate) fn value(self, at: usize) -> u64 {
        self.0
            .get(at)
            .map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    pub(crate) fn put(self, at: usize, value: u64) {
        if let Some(cell) = self.0.get(at) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    /// Adds to a counter.
    #[inline]
    pub fn add(self, counter: Counter, n: u64) {
        self.bump(counter as usize, n);
    }

    /// Adds to a counter to which any thread of the worker may add, but always by this function.
    pub fn add_from_any_thread(self, counter: Counter, n: u64) {
        if let Some(cell) = self.0.get(counter as usize) {
            cell.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Raises a counter to `total`, which any thread of the worker may, but always by this function.
    pub fn raise(self, counter: Counter, total: u64) {
        if let Some(cell) = self.0.get(counter as usize) {
            cell.fetch_max(total, Ordering::Relaxed);
        }
    }

    /// Sets a gauge.
    #[inline]
    pub fn set(self, gauge: Gauge, value: u64) {
        self.put(GAUGES_AT + gauge as usize, value);
    }

    /// Counts a broken rule.
    pub fn add_fault(self, fault: Fault) {
        self.bump(FAULTS_AT + fault as usize, 1);
    }

    /// Counts a response that has no request: one to a head that was not understood.
    pub fn add_code(self, status: u16) {
        self.bump(CODES_AT + usize::from(status.clamp(100, 599)) - 100, 1);
    }

    /// Counts one answered request of a class. Its code comes last: who has read that finds the rest.
    #[inline]
    pub fn add_response(self, class: u16, method: Method, status: u16, duration_us: u64) {
        let base = class_at(class);
        let status_class = usize::from(status / 100).clamp(1, STATUS_CLASSES) - 1;
        self.bump(
            base + method_index(method) * STATUS_CLASSES + status_class,
            1,
        );
        self.observe(base + COUNTS, duration_us);
        self.add_code(status);
    }

    /// Counts one call of a class that is a procedure.
    pub fn add_call(self, class: u16, code: u8) {
        self.bump(
            class_at(class) + RPC_AT + usize::from(crate::rpc::known(code)),
            1,
        );
    }

    /// Notes how late the loop was.
    pub fn add_lag(self, lag_us: u64) {
        self.set(Gauge::LoopLag, lag_us);
        self.observe(LAG_AT, lag_us);
    }

    /// One value more for the histogram at `at`: buckets, what is above them, sum.
    #[inline]
    pub(crate) fn observe(self, at: usize, value_us: u64) {
        let bucket = BUCKETS_US
            .iter()
            .position(|&end| value_us <= end)
            .unwrap_or(BUCKETS_US.len());
        self.bump(at + bucket, 1);
        self.bump(at + HISTOGRAM_CELLS - 1, value_us);
    }

    /// Says what a class is called. Before the first response of that class.
    pub fn label(self, class: u16, label: &str) {
        self.write(class_at(class) + LABEL_AT, LABEL_BYTES_MAX, label);
    }

    /// Says what the readiness checks found.
    pub fn set_text(self, text: &str) {
        let length = self.write(TEXT_AT + 1, TEXT_BYTES_MAX, text);
        self.put(TEXT_AT, length as u64);
    }

    /// Stores text, eight bytes a cell, zeros behind it; returns the bytes stored.
    pub(crate) fn write(self, at: usize, bytes_max: usize, text: &str) -> usize {
        let mut length = text.len().min(bytes_max);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let bytes = &text.as_bytes()[..length];
        let words = bytes.chunks(8).map(|piece| {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            u64::from_le_bytes(word)
        });
        for (cell, word) in (at..at + bytes_max / 8).zip(words.chain(std::iter::repeat(0))) {
            self.put(cell, word);
        }
        length
    }

    pub(crate) fn read(self, at: usize, bytes_max: usize) -> String {
        let bytes: Vec<u8> = (at..at + bytes_max / 8)
            .flat_map(|cell| self.value(cell).to_le_bytes())
            .take_while(|&byte| byte != 0)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What a counter stands at.
    pub fn counter(self, counter: Counter) -> u64 {
        self.value(counter as usize)
    }

    /// What a gauge stands at.
    pub fn gauge(self, gauge: Gauge) -> u64 {
        self.value(GAUGES_AT + gauge as usize)
    }

    /// How often a rule was broken.
    pub fn faults(self, fault: Fault) -> u64 {
        self.value(FAULTS_AT + fault as usize)
    }

    /// What the readiness checks found.
    pub fn text(self) -> String {
        self.read(TEXT_AT + 1, TEXT_BYTES_MAX)
    }

    /// Status codes of responses, and how often each was sent.
    pub fn codes(self) -> Vec<(u16, u64)> {
        (100..600_u16)
            .map(|code| (code, self.value(CODES_AT + usize::from(code) - 100)))
            .filter(|&(_, n)| n > 0)
            .collect()
    }

    /// The histogram of the loop's lag: one count a bucket, one above them, the sum in microseconds.
    pub fn lag(self) -> Vec<u64> {
        (LAG_AT..LAG_AT + HISTOGRAM_CELLS)
            .map(|cell| self.value(cell))
            .collect()
    }

    /// The classes that have responses.
    pub fn classes(self) -> Vec<Class> {
        let classes = (0..CLASSES_MAX).map(|class| CLASSES_AT + class * CLASS_CELLS);
        classes
            .filter(|&at| (at + COUNTS..at + LABEL_AT).any(|cell| self.value(cell) > 0))
            .map(|at| Class {
                label: self.read(at + LABEL_AT, LABEL_BYTES_MAX),
                counts: (0..COUNTS)
                    .filter(|i| self.value(at + i) > 0)
                    .map(|i| {
                        let status_class = u8::try_from(i % STATUS_CLASSES).unwrap_or(0) + 1;
                        let method = METHODS[i / STATUS_CLASSES];
                        (method, status_class, self.value(at + i))
                    })
                    .collect(),
                histogram: (at + COUNTS..at + COUNTS + HISTOGRAM_CELLS)
                    .map(|cell| self.value(cell))
                    .collect(),
                calls: RPC_CODES
                    .iter()
                    .zip(at + RPC_AT..)
                    .map(|(&code, cell)| (code, self.value(cell)))
                    .filter(|&(_, count)| count > 0)
                    .collect(),
            })
            .collect()
    }

    /// Zeroes everything, for the next worker.
    pub fn clear(self) {
        for cell in self.0 {
            // Writing only nonzero cells leaves unused pages unallocated.
            if cell.load(Ordering::Relaxed) != 0 {
                cell.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// The responses of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// What it is called; empty for requests without a class.
    pub label: String,
    /// Method, first digit of the status, and how many.
    pub counts: Vec<(&'static str, u8, u64)>,
    /// One count a bucket, one above them, the sum in microseconds.
    pub histogram: Vec<u64>,
    /// Code of a remote procedure call, and how many.
    pub calls: Vec<(&'static str, u64)>,
}

#[inline]
fn class_at(class: u16) -> usize {
    let class = usize::from(class);
    CLASSES_AT + CLASS_CELLS * if class < CLASSES_MAX { class } else { 0 }
}

#[inline]
pub(crate) fn method_index(method: Method) -> usize {
    match method {
        Method::Get => 0,
        Method::Head => 1,
        Method::Post => 2,
        Method::Put => 3,
        Method::Delete => 4,
        Method::Options => 5,
        Method::Patch => 6,
        Method::Connect | Method::Trace | Method::Other => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_counted_once_everywhere() {
        let slot = MetricsSlot::leak();
        slot.label(3, "/items/{id}");
        slot.add_response(3, Method::Get, 200, 90);
        slot.add_response(3, Method::Get, 204, 100);
        slot.add_response(3, Method::Other, 503, 20_000_000);
        assert_eq!(slot.codes(), [(200, 1), (204, 1), (503, 1)]);
        let classes = slot.classes();
        assert_eq!(classes.len(), 1);
        assert_eq!(classes[0].label, "/items/{id}");
        assert_eq!(classes[0].counts, [("GET", 2, 2), ("other", 5, 1)]);
        let histogram = &classes[0].histogram;
        assert_eq!(
            (histogram[0], histogram[16], histogram[17]),
            (2, 1, 20_000_190)
        );
    }

    #[test]
    fn odd_numbers_stay_within_the_page() {
        let slot = MetricsSlot::leak();
        slot.add_response(u16::MAX, Method::Get, 999, u64::MAX);
        slot.add_response(0, Method::Get, 0, 0);
        slot.add_code(0);
        assert_eq!(slot.codes(), [(100, 2), (599, 1)]);
        assert_eq!(slot.classes()[0].label, "");
    }

    #[test]
    fn labels_are_cut_between_characters() {
        let slot = MetricsSlot::leak();
        slot.label(1, &"é".repeat(100));
        slot.label(1, &format!("/{}", "é".repeat(100)));
        slot.add_response(1, Method::Get, 200, 0);
        assert_eq!(slot.classes()[0].label, format!("/{}", "é".repeat(63)));
        slot.set_text("database: refused");
        assert_eq!(slot.text(), "database: refused");
        slot.set_text("ok");
        assert_eq!(slot.text(), "ok");
    }

    #[test]
    fn a_cleared_page_is_as_new() {
        let slot = MetricsSlot::leak();
        slot.add(Counter::BytesSent, 7);
        slot.set(Gauge::State, 1);
        slot.add_fault(Fault::HeadTooLong);
        slot.add_lag(5);
        slot.clear();
        assert!(slot.0.iter().all(|cell| cell.load(Ordering::Relaxed) == 0));
    }
}
