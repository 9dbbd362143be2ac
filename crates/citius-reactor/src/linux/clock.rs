//! Linux's clocks. The coarse ones are four milliseconds fine and cost a quarter of the exact ones.

use std::time::Instant;

use citius_http::Millis;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Milliseconds on the coarse monotonic clock.
pub(crate) fn coarse_ms() -> Millis {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::MonotonicCoarse);
    tv_sec.unsigned_abs() * 1000 + tv_nsec.unsigned_abs() / 1_000_000
}

/// Seconds since 1970 on the coarse clock.
pub(crate) fn wall_s_coarse() -> i64 {
    clock_gettime(ClockId::RealtimeCoarse).tv_sec
}

/// Microseconds since 1970.
pub(crate) fn wall_us() -> u64 {
    micros(clock_gettime(ClockId::Realtime))
}

/// Microseconds on the exact monotonic clock.
pub(crate) fn exact_us() -> u64 {
    micros(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds on the exact monotonic clock.
pub(crate) fn exact_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec.unsigned_abs() * 1_000_000_000 + tv_nsec.unsigned_abs()
}

/// Milliseconds that this thread has been on a processor.
#[expect(clippy::unnecessary_wraps, reason = "other systems do not tell")]
pub(crate) fn thread_cpu_ms() -> Option<Millis> {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    Some(tv_sec.unsigned_abs() * 1000 + tv_nsec.unsigned_abs() / 1_000_000)
}

/// The exact monotonic clock, as crates of others want it.
#[expect(clippy::disallowed_methods, reason = "this is where clocks are read")]
pub(crate) fn exact_instant() -> Instant {
    Instant::now()
}

fn micros(Timespec { tv_sec, tv_nsec }: Timespec) -> u64 {
    tv_sec.unsigned_abs() * 1_000_000 + tv_nsec.unsigned_abs() / 1000
}
