//! epoll, with the timer and the wake-up of a reactor in it.
//!
//! The epoll set is itself pollable: a host loop waits for it beside its own descriptors.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use citius_http::Millis;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Result;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::id::ConnectionId;
use crate::linux::alarm::Alarm;
use crate::linux::{OutgoingEpoll, Socket};
use crate::readiness::{
    EVENTS_PER_TURN, INDEX_OFFERS, INDEX_SERVICE, INDEX_TIMER, INDEX_WAKEUP, Readiness, Ready,
};

/// An epoll set.
#[derive(Debug)]
pub(crate) struct Epoll {
    set: OwnedFd,
    timer: OwnedFd,
    wakeup: Arc<OwnedFd>,
    /// For the times at which the service wants to be called.
    alarm: Option<Alarm>,
}

/// The eventfd that makes an epoll set readable.
#[derive(Debug)]
pub(crate) struct Wakeup(Arc<OwnedFd>);

/// A descriptor in reserve; it is free when this is dropped.
#[derive(Debug)]
pub(crate) struct Spare(#[expect(dead_code, reason = "it is only held")] OwnedFd);

impl Wakeup {
    pub(crate) fn wake(&self) {
        // It fails only when the counter is full, and then the descriptor is readable already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

impl Epoll {
    pub(crate) fn new() -> Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (descriptor, index) in [(&wakeup, INDEX_WAKEUP), (&timer, INDEX_TIMER)] {
            let id = ConnectionId {
                index,
                generation: 0,
            };
            epoll::add(&epoll, descriptor, token(id), EventFlags::IN)?;
        }
        Ok(Self {
            set: epoll,
            timer,
            wakeup: Arc::new(wakeup),
            alarm: None,
        })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }

    pub(crate) fn add(&self, socket: &Socket, id: ConnectionId, interest: Readiness) -> Result<()> {
        epoll::add(&self.set, socket, token(id), flags(interest))
    }

    /// Reports the service when a set of outgoing connections has something to report.
    pub(crate) fn add_outgoing(&self, outgoing: &OutgoingEpoll) -> Result<()> {
        let id = ConnectionId {
            index: INDEX_SERVICE,
            generation: 0,
        };
        epoll::add(&self.set, outgoing.descriptor(), token(id), EventFlags::IN)
    }

    pub(crate) fn modify(
        &self,
        socket: &Socket,
        id: ConnectionId,
        interest: Readiness,
    ) -> Result<()> {
        epoll::modify(&self.set, socket, token(id), flags(interest))
    }

    pub(crate) fn remove(&self, socket: &Socket) {
        let _ = epoll::delete(&self.set, socket);
    }

    #[inline]
    pub(crate) fn wait(&self, ready: &mut Vec<Ready>, timeout: Option<Duration>) -> Result<()> {
        let mut buffer = [const { MaybeUninit::uninit() }; EVENTS_PER_TURN];
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs().cast_signed(),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let (events, _) = epoll::wait(&self.set, &mut buffer[..], timeout.as_ref())?;
        ready.extend(events.iter().map(|event| {
            // The kernel's structure is packed: the field is copied before it is used.
            let flags = event.flags;
            Ready {
                id: id_of(event),
                flags: Readiness::from_bits_retain(flags.bits()),
            }
        }));
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "elsewhere there may be none")]
    pub(crate) fn wakeup(&self) -> Result<Wakeup> {
        Ok(Wakeup(Arc::clone(&self.wakeup)))
    }

    pub(crate) fn clear_wakeup(&self) {
        let mut count = [0; 8];
        // It fails only without a wake-up.
        let _ = rustix::io::read(&*self.wakeup, &mut count);
    }

    pub(crate) fn set_timer(&self, wait_ms: Millis) -> bool {
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
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).is_ok()
    }

    pub(crate) fn clear_timer(&self) {
        let mut expirations = [0; 8];
        // An error means that it has not fired after all; it will be armed again.
        let _ = rustix::io::read(&self.timer, &mut expirations);
    }

    pub(crate) fn set_alarm(&mut self, at_ns: u64) -> bool {
        let alarm = match &mut self.alarm {
            Some(alarm) => alarm,
            None => match self.add_alarm() {
                Ok(alarm) => self.alarm.insert(alarm),
                Err(_) => return false,
            },
        };
        alarm.arm(at_ns)
    }

    fn add_alarm(&self) -> Result<Alarm> {
        let alarm = Alarm::new()?;
        self.watch_alarm(&alarm, alone(INDEX_SERVICE))?;
        Ok(alarm)
    }

    /// Reports offers when an alarm rings that other sets watch too.
    pub(crate) fn add_shared_alarm(&self, alarm: &Alarm) -> Result<()> {
        self.watch_alarm(alarm, alone(INDEX_OFFERS))
    }

    pub(crate) fn watch_alarm(&self, alarm: &Alarm, id: ConnectionId) -> Result<()> {
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.set, alarm.descriptor(), token(id), edge)
    }

    pub(crate) fn alarm_fired(&mut self) {
        if let Some(alarm) = &mut self.alarm {
            alarm.fired();
        }
    }

    pub(crate) fn spare(&self) -> Option<Spare> {
        rustix::io::fcntl_dupfd_cloexec(&*self.wakeup, 0)
            .ok()
            .map(Spare)
    }
}

/// The name of what there is one of.
fn alone(index: u32) -> ConnectionId {
    ConnectionId {
        index,
        generation: 0,
    }
}

fn token(id: ConnectionId) -> EventData {
    EventData::new_u64(u64::from(id.generation) << 32 | u64::from(id.index))
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of `token`")]
fn id_of(event: &Event) -> ConnectionId {
    let token = event.data.u64();
    ConnectionId {
        index: token as u32,
        generation: (token >> 32) as u32,
    }
}

fn flags(interest: Readiness) -> EventFlags {
    EventFlags::from_bits_retain(interest.bits())
}

const _: () = assert!(
    Readiness::IN.bits() == EventFlags::IN.bits()
        && Readiness::OUT.bits() == EventFlags::OUT.bits()
        && Readiness::ERR.bits() == EventFlags::ERR.bits()
        && Readiness::HUP.bits() == EventFlags::HUP.bits()
        && Readiness::RDHUP.bits() == EventFlags::RDHUP.bits()
        && Readiness::ET.bits() == EventFlags::ET.bits(),
    "readiness has epoll's numbers"
);
