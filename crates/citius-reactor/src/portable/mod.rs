//! Systems other than Linux: files and clocks of Rust's standard library. An event loop owns the sockets (`hosted.rs`), so there
//! is neither a socket nor a kernel's poller here, only types of which no value exists.

mod clock;
mod errno;
mod file;
mod nothing;

pub(crate) use clock::{
    coarse_ms, exact_instant, exact_ns, exact_us, thread_cpu_ms, wall_s_coarse, wall_us,
};
pub use errno::Errno;
pub(crate) use errno::Result;
pub(crate) use file::{descriptors_max, open, read_at, send_file, status};
pub use nothing::Socket;
pub(crate) use nothing::{
    Alarm, Arrived, DatagramBuffers, DatagramSocket, Epoll, Handing, OutgoingEpoll, Spare, Wakeup,
    accept,
};
