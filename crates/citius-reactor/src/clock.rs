//! The only place that reads a clock: once for each turn. `linux/clock.rs` and `portable/clock.rs` have the calls.

use citius_http::{Millis, date::imf_fixdate};

use crate::system;

/// Time as one turn sees it.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Monotonic; from the coarse clock (four milliseconds fine), which costs a quarter of the exact one.
    pub(crate) now: Millis,
    /// Seconds since 1970 for which `date` was rendered.
    second: i64,
    /// The `date` field line, or nothing when it is switched off.
    date: Vec<u8>,
    with_date: bool,
}

impl Clock {
    pub(crate) fn new(with_date: bool) -> Self {
        let mut clock = Self {
            now: 0,
            second: i64::MIN,
            date: Vec::new(),
            with_date,
        };
        clock.refresh();
        clock
    }

    /// Reads the time; renders the date when its second has changed, and tells whether it did.
    pub(crate) fn refresh(&mut self) -> bool {
        self.now = coarse_ms();
        let second = system::wall_s_coarse();
        if !self.with_date || second == self.second {
            return false;
        }
        self.second = second;
        self.date.clear();
        self.date.extend_from_slice(b"date: ");
        self.date
            .extend_from_slice(&imf_fixdate(second.unsigned_abs()));
        self.date.extend_from_slice(b"\r\n");
        true
    }

    pub(crate) fn date(&self) -> &[u8] {
        &self.date
    }
}

/// Milliseconds on the coarse monotonic clock, four milliseconds fine: for long times.
pub fn coarse_ms() -> Millis {
    system::coarse_ms()
}

/// Microseconds since 1970 on the exact clock, for times that people read.
pub fn wall_us() -> u64 {
    system::wall_us()
}

/// Microseconds on the exact monotonic clock, for times of single requests.
pub fn exact_us() -> u64 {
    system::exact_us()
}

/// Nanoseconds on the exact monotonic clock, for timers that are finer than a turn's.
pub fn exact_ns() -> u64 {
    system::exact_ns()
}
