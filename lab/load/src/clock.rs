//! The only place that reads a clock: instants, and the CPU time of the calling thread.
//!
//! An instant is a `u64` of nanoseconds of `CLOCK_MONOTONIC`, so it compares with what other
//! processes of the same machine read (`time.monotonic_ns()` in Python) and needs no epoch.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`. Costs some 25 ns: the vDSO answers, not the kernel.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // The monotonic clock is never negative, and 64 bits of nanoseconds last 584 years.
    time.tv_sec.cast_unsigned() * SECOND_NS + time.tv_nsec.cast_unsigned()
}

/// Nanoseconds since 1970 of the wall clock, to compare with what other machines write down.
pub(crate) fn unix_ns() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec.cast_unsigned() * SECOND_NS + time.tv_nsec.cast_unsigned()
}

/// CPU time spent by a thread, in the program and in the kernel on its behalf.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuTime {
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
}

impl CpuTime {
    /// What the calling thread has used so far; zero if the kernel refuses to say.
    pub(crate) fn of_thread() -> Self {
        getrusage(UsageWho::RUSAGE_THREAD).map_or(Self::default(), |usage| Self {
            user_s: seconds(usage.user_time()),
            system_s: seconds(usage.system_time()),
        })
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user_s: self.user_s - earlier.user_s,
            system_s: self.system_s - earlier.system_s,
        }
    }

    pub(crate) fn total_s(self) -> f64 {
        self.user_s + self.system_s
    }
}

impl std::ops::AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of one run fit 52 bits"
)]
fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// A span in seconds, for people and for records.
#[expect(
    clippy::cast_precision_loss,
    reason = "spans of a run fit 52 bits of nanoseconds"
)]
pub(crate) fn span_s(span_ns: u64) -> f64 {
    span_ns as f64 / 1e9
}
