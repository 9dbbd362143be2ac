//! The clock of goroutines.

use citius_goroutine::Nanos;
use citius_reactor::exact_ns;

/// Nanoseconds on the exact monotonic clock.
#[inline]
pub(crate) fn now() -> Nanos {
    exact_ns()
}
