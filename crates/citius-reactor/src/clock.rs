//! The only place that reads a clock: once for each turn. `linux/clock.rs` and `portable/clock.rs` have the calls.

use std::cell::Cell;

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

thread_local! {
    /// The coarse time of the last reading of the thread's CPU time, and what it was.
    static CPU_READ: Cell<(Millis, Option<Millis>)> = const { Cell::new((0, None)) };
}

/// Remembers the CPU time of this thread: an event begins at `now` on the coarse clock. It is read once for each tick.
pub fn note_cpu(now: Millis) {
    if CPU_READ.get().0 != now {
        CPU_READ.set((now, system::thread_cpu_ms()));
    }
}

/// How much of `took_ms`, which have passed since the last [`note_cpu`], this thread was on a processor; a tick of the
/// coarse clock (four milliseconds) too much at most. `None` where the system does not tell.
pub fn cpu_of(took_ms: Millis) -> Option<Millis> {
    let spent = system::thread_cpu_ms()?.saturating_sub(CPU_READ.get().1?);
    Some(spent.min(took_ms))
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
