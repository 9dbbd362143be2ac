//! A timer for times that are finer than the coarse clock.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Result;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timer descriptor. It is watched for its edge, so nothing is read from it.
#[derive(Debug)]
pub(crate) struct Alarm {
    descriptor: OwnedFd,
    /// In nanoseconds of the monotonic clock; `u64::MAX`: never.
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

    /// Arms it for `at`, if it is not armed for that or for earlier; whether it is.
    pub(crate) fn arm(&mut self, at: u64) -> bool {
        if at >= self.armed_for {
            return true;
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
        let is_armed = timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &once).is_ok();
        if is_armed {
            self.armed_for = at;
        }
        is_armed
    }
}
