//! How a reactor learns what is ready: register, wait, wake, timer.
//!
//! There are two pollers. [`Epoll`] asks the kernel and is itself a descriptor that a host loop can wait for; `linux/poller.rs`
//! has it. [`Hosted`] has no descriptor: an event loop owns the sockets and carries their bytes to and from connections in
//! memory (`remote.rs`), and a reactor asks it for its next turn. Both drive the same turn. Tests: `tests/turn.rs`,
//! `tests/hosted.rs`.

use std::sync::Arc;
use std::time::Duration;

use citius_http::Millis;

use crate::hosted::{Host, Hosted, Request};
use crate::id::ConnectionId;
use crate::readiness::{Readiness, Ready};
use crate::system::{Alarm, Epoll, OutgoingEpoll, Result, Socket, Spare, Wakeup};

/// Where a reactor learns what is ready.
#[derive(Debug)]
pub(crate) enum Poller {
    /// The kernel's, which watches sockets.
    Epoll(Epoll),
    /// An event loop's, which owns them.
    Hosted(Hosted),
}

impl Poller {
    /// The kernel's.
    ///
    /// # Errors
    /// The kernel refuses a descriptor, or has no such poller.
    pub(crate) fn epoll() -> Result<Self> {
        Epoll::new().map(Self::Epoll)
    }

    /// The poller of a reactor that `host` turns.
    pub(crate) fn hosted(host: Arc<dyn Host>) -> Self {
        Self::Hosted(Hosted::new(host))
    }

    /// Watches a socket, and reports it as `id`.
    ///
    /// # Errors
    /// The kernel refuses to, or the poller watches none.
    pub(crate) fn add(&self, socket: &Socket, id: ConnectionId, interest: Readiness) -> Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.add(socket, id, interest),
            Self::Hosted(_) => Err(crate::system::Errno::OPNOTSUPP),
        }
    }

    /// Reports the service when a set of outgoing connections has something to report.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub(crate) fn add_outgoing(&self, outgoing: &OutgoingEpoll) -> Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.add_outgoing(outgoing),
            Self::Hosted(_) => Err(crate::system::Errno::OPNOTSUPP),
        }
    }

    /// Reports what the reactors of a balancer have left waiting when its alarm rings.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub(crate) fn add_shared_alarm(&self, alarm: &Alarm) -> Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.add_shared_alarm(alarm),
            Self::Hosted(_) => Err(crate::system::Errno::OPNOTSUPP),
        }
    }

    /// Reports an alarm of QUIC's as `id`.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub(crate) fn add_alarm(&self, alarm: &Alarm, id: ConnectionId) -> Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.watch_alarm(alarm, id),
            Self::Hosted(_) => Err(crate::system::Errno::OPNOTSUPP),
        }
    }

    /// Watches it for something else.
    ///
    /// # Errors
    /// The kernel has no memory for it.
    pub(crate) fn modify(
        &self,
        socket: &Socket,
        id: ConnectionId,
        interest: Readiness,
    ) -> Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.modify(socket, id, interest),
            Self::Hosted(_) => Err(crate::system::Errno::OPNOTSUPP),
        }
    }

    /// Watches it no longer. What is watched can be removed; what is not need not be.
    pub(crate) fn remove(&self, socket: &Socket) {
        if let Self::Epoll(epoll) = self {
            epoll.remove(socket);
        }
    }

    /// Waits until something is ready, at most for `timeout` (`None`: for ever), and appends it to `ready`. A hosted
    /// poller does not wait: its event loop does.
    ///
    /// # Errors
    /// `EINTR` when a signal came.
    #[inline]
    pub(crate) fn wait(&mut self, ready: &mut Vec<Ready>, timeout: Option<Duration>) -> Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.wait(ready, timeout),
            Self::Hosted(hosted) => {
                hosted.collect(ready);
                Ok(())
            }
        }
    }

    /// What other threads wake this poller by.
    ///
    /// # Errors
    /// The kernel has no further descriptor.
    pub(crate) fn waker(&self) -> Result<Waker> {
        Ok(match self {
            Self::Epoll(epoll) => Waker::Epoll(epoll.wakeup()?),
            Self::Hosted(hosted) => Waker::Hosted(hosted.request()),
        })
    }

    /// Takes note of a wake-up that was reported.
    pub(crate) fn woken(&mut self) {
        if let Self::Epoll(epoll) = self {
            epoll.clear_wakeup();
        }
    }

    /// Reports the timer in `wait_ms`; whether it will.
    pub(crate) fn set_timer(&mut self, wait_ms: Millis) -> bool {
        match self {
            Self::Epoll(epoll) => epoll.set_timer(wait_ms),
            Self::Hosted(hosted) => {
                hosted.set_timer(wait_ms);
                true
            }
        }
    }

    /// Takes note of the timer, which was reported.
    pub(crate) fn timer_fired(&mut self) {
        if let Self::Epoll(epoll) = self {
            epoll.clear_timer();
        }
    }

    /// Reports the service at `at_ns`, or earlier if it was to be reported earlier; whether it will.
    pub(crate) fn set_alarm(&mut self, at_ns: u64) -> bool {
        match self {
            Self::Epoll(epoll) => epoll.set_alarm(at_ns),
            Self::Hosted(hosted) => {
                hosted.set_alarm(at_ns);
                true
            }
        }
    }

    /// Takes note that the service was reported.
    pub(crate) fn alarm_fired(&mut self) {
        if let Self::Epoll(epoll) = self {
            epoll.alarm_fired();
        }
    }

    /// A descriptor in reserve, if the poller uses any and the process has one.
    pub(crate) fn spare(&self) -> Option<Spare> {
        match self {
            Self::Epoll(epoll) => epoll.spare(),
            Self::Hosted(_) => None,
        }
    }
}

/// Wakes a poller, from any thread and from signal handlers.
#[derive(Debug)]
pub(crate) enum Waker {
    Epoll(Wakeup),
    Hosted(Arc<Request>),
}

impl Waker {
    pub(crate) fn wake(&self) {
        match self {
            Self::Epoll(wakeup) => wakeup.wake(),
            Self::Hosted(request) => request.make(),
        }
    }
}
