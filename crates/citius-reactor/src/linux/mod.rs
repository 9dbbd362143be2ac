//! Linux only: epoll, eventfd, timerfd, non-blocking sockets, `sendfile`, coarse clocks.

mod alarm;
mod clock;
mod datagram;
mod file;
mod outgoing;
mod poller;
mod socket;

pub(crate) use alarm::Alarm;
pub(crate) use clock::{
    coarse_ms, exact_instant, exact_ns, exact_us, thread_cpu_ms, wall_s_coarse, wall_us,
};
pub(crate) use datagram::{Arrived, DatagramBuffers, DatagramSocket, Handing};
pub use file::open_flags;
pub(crate) use file::{descriptors_max, open, read_at, send_file, status};
pub(crate) use outgoing::OutgoingEpoll;
pub(crate) use poller::{Epoll, Spare, Wakeup};
pub use rustix::io::Errno;
pub(crate) use rustix::io::Result;
pub use socket::Socket;
pub(crate) use socket::accept;
