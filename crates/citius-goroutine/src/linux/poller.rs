//! Where a thread without work waits: for a time, or to be woken.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::timers::Nanos;

/// A timer of the kernel, which is armed again only for an earlier time.
#[derive(Debug)]
struct Alarm {
    descriptor: OwnedFd,
    /// When it fires; 0: it is not armed.
    armed_for: Mutex<Nanos>,
}

impl Alarm {
    /// One that is not armed.
    ///
    /// # Errors
    /// The kernel has no descriptor for it.
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self {
            descriptor: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            armed_for: Mutex::new(0),
        })
    }

    /// Readable, by its edge, when the time has come.
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Sees to it that it fires at `at`, or earlier if it is armed for an earlier time.
    fn arm(&self, at: Nanos) {
        let mut armed_for = self
            .armed_for
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if *armed_for != 0 && *armed_for <= at {
            return;
        }
        // Zero would disarm it.
        let at = at.max(1);
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: i64::try_from(at / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(at % 1_000_000_000).unwrap_or(0),
            },
        };
        if timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &once).is_ok() {
            *armed_for = at;
        }
    }

    /// Takes note that it has fired.
    fn fired(&self) {
        *self
            .armed_for
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = 0;
    }
}

/// An epoll set with an alarm and a descriptor to be woken by.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    alarm: Alarm,
    wakeup: OwnedFd,
}

const TOKEN_ALARM: u64 = 0;
const TOKEN_WAKEUP: u64 = 1;

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let alarm = Alarm::new()?;
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(
            &epoll,
            alarm.descriptor(),
            EventData::new_u64(TOKEN_ALARM),
            edge,
        )?;
        epoll::add(&epoll, &wakeup, EventData::new_u64(TOKEN_WAKEUP), edge)?;
        Ok(Self {
            epoll,
            alarm,
            wakeup,
        })
    }

    /// Ends the current [`wait`](Self::wait), or the next.
    pub(crate) fn wake(&self) {
        // It fails only when the counter is full, and then the descriptor is readable already.
        let _ = rustix::io::write(&self.wakeup, &1_u64.to_ne_bytes());
    }

    /// Waits until woken, or until `until`.
    pub(crate) fn wait(&self, until: Option<Nanos>) {
        if let Some(until) = until {
            self.alarm.arm(until);
        }
        let mut events = [const { MaybeUninit::uninit() }; 8];
        // An interruption by a signal is as good as a wake-up.
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events[..], None) else {
            return;
        };
        for event in events {
            if event.data.u64() == TOKEN_ALARM {
                self.alarm.fired();
            }
        }
    }
}
