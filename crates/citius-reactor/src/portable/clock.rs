//! Clocks of Rust's standard library.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use citius_http::Millis;

/// Time since this was first asked, plus an hour: no time of this process is 0, or so small that differences wrap.
#[expect(clippy::disallowed_methods, reason = "this is the turn's clock")]
fn elapsed() -> Duration {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    STARTED.get_or_init(Instant::now).elapsed() + Duration::from_secs(3600)
}

#[expect(clippy::disallowed_methods, reason = "this is the turn's clock")]
fn wall() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Milliseconds on the monotonic clock.
#[expect(clippy::cast_possible_truncation, reason = "584 million years")]
pub(crate) fn coarse_ms() -> Millis {
    elapsed().as_millis() as Millis
}

/// Seconds since 1970.
pub(crate) fn wall_s_coarse() -> i64 {
    wall().as_secs().cast_signed()
}

/// Microseconds since 1970.
#[expect(clippy::cast_possible_truncation, reason = "584 thousand years")]
pub(crate) fn wall_us() -> u64 {
    wall().as_micros() as u64
}

/// Microseconds on the monotonic clock.
#[expect(clippy::cast_possible_truncation, reason = "584 thousand years")]
pub(crate) fn exact_us() -> u64 {
    elapsed().as_micros() as u64
}

/// Nanoseconds on the monotonic clock.
#[expect(clippy::cast_possible_truncation, reason = "584 years")]
pub(crate) fn exact_ns() -> u64 {
    elapsed().as_nanos() as u64
}

/// Rust's standard library does not tell how long a thread has been on a processor.
pub(crate) const fn thread_cpu_ms() -> Option<Millis> {
    None
}

/// The monotonic clock, as crates of others want it.
#[expect(clippy::disallowed_methods, reason = "this is where clocks are read")]
pub(crate) fn exact_instant() -> Instant {
    Instant::now()
}
