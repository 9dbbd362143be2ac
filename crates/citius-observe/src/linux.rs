//! Linux only: writing lines to descriptors, some of which do not block.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, Result};

use crate::sink::Sink;

/// How long is waited for a descriptor that does not block before it is checked whether the wait must end.
const FULL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

fn with<R>(sink: &Sink, act: impl FnOnce(BorrowedFd<'_>) -> R) -> R {
    match sink {
        Sink::Stdout => act(std::io::stdout().as_fd()),
        Sink::Open(file) => act(file.as_fd()),
    }
}

/// Whether writes of several processes mix.
pub(crate) fn is_stream(sink: &Sink) -> bool {
    let kind = with(sink, |file| fstat(file)).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}

/// Writes all of `piece`, and gives up on a full descriptor when `must_end`. `piece` is what has not been written.
pub(crate) fn write(sink: &Sink, piece: &mut &[u8], must_end: impl Fn() -> bool) -> Result<()> {
    with(sink, |file| {
        while !piece.is_empty() {
            match rustix::io::write(file, piece) {
                Ok(0) => return Err(Errno::IO),
                Ok(n) => *piece = &piece[n..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !must_end() => {
                    // An error of the descriptor shows in the next write.
                    let _ = poll(&mut [PollFd::new(&file, PollFlags::OUT)], Some(&FULL));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })
}
