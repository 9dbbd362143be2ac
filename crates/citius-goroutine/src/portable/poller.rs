//! Where a thread without work waits, where the kernel has no descriptors for it. There are no goroutines here, so there is never work.

use std::io;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::timers::Nanos;

/// A flag to wait for.
#[derive(Debug, Default)]
pub(crate) struct Poller {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Poller {
    #[expect(clippy::unnecessary_wraps, reason = "a kernel may refuse it")]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// Ends the current [`wait`](Self::wait), or the next.
    pub(crate) fn wake(&self) {
        *self.is_woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Waits until woken; no goroutine has set a timer.
    pub(crate) fn wait(&self, _until: Option<Nanos>) {
        let woken = self.is_woken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut woken = self
            .changed
            .wait_while(woken, |is_woken| !*is_woken)
            .unwrap_or_else(PoisonError::into_inner);
        *woken = false;
    }
}
