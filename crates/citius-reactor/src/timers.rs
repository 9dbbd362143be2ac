//! Deadlines of connections, lazily: a heap entry per connection, not per change.
//!
//! A connection's deadline moves with every request, nearly always later. So an entry stays in the
//! heap until it is due and is then compared with the deadline of that moment; only a deadline that
//! moves *earlier* than its entry costs a push. A busy keep-alive connection costs nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use citius_http::Millis;
use rustix::io::Result;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::id::ConnectionId;

/// A timer descriptor for times that are finer than the coarse clock. It is readable by its edge, so nothing is read from it.
#[derive(Debug)]
pub(crate) struct Alarm {
    descriptor: OwnedFd,
    /// In nanoseconds; `u64::MAX`: never.
    armed_for: u64,
}

impl Alarm {
    pub(crate) fn new() -> Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self {
            descriptor,
            armed_for: u64::MAX,
        })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    pub(crate) fn fired(&mut self) {
        self.armed_for = u64::MAX;
    }

    /// Arms it for `at`, if it is not armed for that or for earlier.
    pub(crate) fn arm(&mut self, at: u64) {
        if at >= self.armed_for {
            return;
        }
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: i64::try_from(at / 1_000_000_000).unwrap_or(i64::MAX),
                // Zero would disarm it.
                tv_nsec: i64::try_from(at % 1_000_000_000).unwrap_or(0).max(1),
            },
        };
        if timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &once).is_ok() {
            self.armed_for = at;
        }
    }
}

/// The heap, and the timer descriptor that wakes a host loop when its first entry is due.
#[derive(Debug)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Millis, ConnectionId)>>,
    descriptor: OwnedFd,
    /// When `descriptor` fires; `Millis::MAX`: never.
    armed_for: Millis,
}

impl Timers {
    pub(crate) fn new() -> Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self {
            heap: BinaryHeap::new(),
            descriptor,
            armed_for: Millis::MAX,
        })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    pub(crate) fn push(&mut self, at: Millis, connection: ConnectionId) {
        self.heap.push(Reverse((at, connection)));
    }

    /// The next entry that is due.
    pub(crate) fn pop_due(&mut self, now: Millis) -> Option<(Millis, ConnectionId)> {
        if self.heap.peek()?.0.0 > now {
            return None;
        }
        self.heap.pop().map(|entry| entry.0)
    }

    /// Takes note that the descriptor has fired, and silences it.
    pub(crate) fn fired(&mut self) {
        let mut expirations = [0; 8];
        // An error means that it has not fired after all; it will be armed again below.
        let _ = rustix::io::read(&self.descriptor, &mut expirations);
        self.armed_for = Millis::MAX;
    }

    /// Arms the descriptor for the first entry, if it is not armed for it or for earlier.
    pub(crate) fn arm(&mut self, now: Millis) {
        let Some(&Reverse((at, _))) = self.heap.peek() else {
            return;
        };
        if at >= self.armed_for {
            return;
        }
        // One coarse tick later, so that the coarse clock has passed `at` when we look at it again.
        let wait_ms = at.saturating_sub(now) + 4;
        let value = Timespec {
            tv_sec: i64::try_from(wait_ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(wait_ms % 1000 * 1_000_000).unwrap_or(0),
        };
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: value,
        };
        if timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &once).is_ok() {
            self.armed_for = at;
        }
    }
}
