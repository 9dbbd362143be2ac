//! The poller without a descriptor: an event loop turns the reactor, and is asked for the next turn.
//!
//! In: wake-ups of any thread, and the first deadline. Out: calls of a [`Host`]. Sockets are the host's business
//! (`remote.rs`). It compiles and works wherever Rust's standard library does. Tests: `tests/hosted.rs`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use citius_http::Millis;

use crate::clock::{coarse_ms, exact_ns};
use crate::id::ConnectionId;
use crate::readiness::{INDEX_SERVICE, INDEX_TIMER, INDEX_WAKEUP, Readiness, Ready};

/// What an event loop does for the reactor that it turns.
pub trait Host: Send + Sync {
    /// Turns the reactor soon; callable from any thread.
    fn wake(&self);

    /// Turns the reactor in `wait_ms`, instead of at the time that was given before. Called on the loop's thread.
    fn turn_later(&self, wait_ms: Millis);
}

/// The state of such a poller.
pub(crate) struct Hosted {
    host: Arc<dyn Host>,
    request: Arc<Request>,
    /// When the timer is to be reported; `Millis::MAX`: never.
    timer_at: Millis,
    /// When the service is to be reported, in nanoseconds; `u64::MAX`: never.
    alarm_at: u64,
}

/// A request for a turn, which is made once until the turn has begun.
pub(crate) struct Request {
    host: Arc<dyn Host>,
    is_made: AtomicBool,
}

impl Request {
    pub(crate) fn make(&self) {
        if !self.is_made.swap(true, Ordering::AcqRel) {
            self.host.wake();
        }
    }
}

impl Hosted {
    pub(crate) fn new(host: Arc<dyn Host>) -> Self {
        let request = Arc::new(Request {
            host: Arc::clone(&host),
            is_made: AtomicBool::new(false),
        });
        Self {
            host,
            request,
            timer_at: Millis::MAX,
            alarm_at: u64::MAX,
        }
    }

    pub(crate) fn request(&self) -> Arc<Request> {
        Arc::clone(&self.request)
    }

    /// Reports the wake-up and the timer, as a kernel does. A wake-up after this asks for another turn.
    pub(crate) fn collect(&mut self, ready: &mut Vec<Ready>) {
        if self.request.is_made.swap(false, Ordering::AcqRel) {
            ready.push(own(INDEX_WAKEUP));
        }
        if self.timer_at <= coarse_ms() {
            self.timer_at = Millis::MAX;
            ready.push(own(INDEX_TIMER));
            self.ask_for_turn();
        }
        // A loop's timers may be a little early. Then the service asks again.
        if self.alarm_at != u64::MAX && self.alarm_at <= exact_ns() + 1_000_000 {
            self.alarm_at = u64::MAX;
            ready.push(own(INDEX_SERVICE));
            self.ask_for_turn();
        }
    }

    pub(crate) fn set_timer(&mut self, wait_ms: Millis) {
        self.timer_at = coarse_ms() + wait_ms;
        self.ask_for_turn();
    }

    /// As exact as the host's own timers.
    pub(crate) fn set_alarm(&mut self, at_ns: u64) {
        if at_ns < self.alarm_at {
            self.alarm_at = at_ns;
            self.ask_for_turn();
        }
    }

    /// The host has one timer: it gets the earlier one of both times.
    fn ask_for_turn(&self) {
        let mut wait_ms = Millis::MAX;
        if self.timer_at != Millis::MAX {
            wait_ms = self.timer_at.saturating_sub(coarse_ms());
        }
        if self.alarm_at != u64::MAX {
            let wait_ns = self.alarm_at.saturating_sub(exact_ns());
            wait_ms = wait_ms.min(wait_ns.div_ceil(1_000_000));
        }
        if wait_ms != Millis::MAX {
            self.host.turn_later(wait_ms);
        }
    }
}

fn own(index: u32) -> Ready {
    let id = ConnectionId {
        index,
        generation: 0,
    };
    Ready {
        id,
        flags: Readiness::IN,
    }
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted")
            .field("timer_at", &self.timer_at)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("is_made", &self.is_made)
            .finish_non_exhaustive()
    }
}
