//! The epoll set of connections whose bytes native code reads and writes itself.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Result;
use rustix::time::Timespec;

use crate::readiness::OutgoingReady;
use crate::system::Socket;

/// Changes that are reported at once.
const EVENTS_MAX: usize = 64;

/// An epoll set, which is itself a descriptor that another set can watch.
#[derive(Debug)]
pub(crate) struct OutgoingEpoll(OwnedFd);

impl OutgoingEpoll {
    pub(crate) fn new() -> Result<Self> {
        epoll::create(epoll::CreateFlags::CLOEXEC).map(Self)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn add(&self, socket: &Socket, number: u64) -> Result<()> {
        let changes = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.0, socket, EventData::new_u64(number), changes)
    }

    pub(crate) fn remove(&self, socket: &Socket) {
        // It fails only for one that is not in it.
        let _ = epoll::delete(&self.0, socket);
    }

    pub(crate) fn collect(&self, ready: &mut Vec<OutgoingReady>, waits: bool) -> Result<()> {
        let mut buffer = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let timeout = if waits { None } else { Some(&now) };
        let (events, _) = epoll::wait(&self.0, &mut buffer[..], timeout)?;
        ready.extend(events.iter().map(|event| {
            // The kernel's structure is packed: the fields are copied before they are used.
            let (flags, number) = (event.flags, event.data.u64());
            let both = EventFlags::ERR | EventFlags::HUP;
            OutgoingReady {
                number,
                is_readable: flags.intersects(both | EventFlags::IN | EventFlags::RDHUP),
                is_writable: flags.intersects(both | EventFlags::OUT),
            }
        }));
        Ok(())
    }
}
