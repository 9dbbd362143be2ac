//! The poller without a descriptor: an event loop turns the reactor, and is asked for the next turn.
//!
//! In: wake-ups of any thread, and the first deadline. Out: calls of a [`Host`]. Sockets are the host's business
//! (`remote.rs`). It compiles and works wherever Rust's standard library does. Tests: `tests/hosted.rs`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use citius_http::Millis;

use crate::clock::exact_ns;
use crate::id::ConnectionId;
use crate::readiness::{INDEX_SERVICE, INDEX_TIMER, INDEX_WAKEUP, Readiness, Ready};

/// What an event loop does for the reactor that it turns.
pub trait Host: Send + Sync {
    /// Turns the reactor soon; callable from any thread.
    fn wake(&self);

    /// Turns the reactor in `wait_ms`, at most a millisecond earlier, instead of at the time that was given before. Called on
    /// the loop's thread.
    fn turn_later(&self, wait_ms: Millis);
}

/// The state of such a poller.
pub(crate) struct Hosted {
    host: Arc<dyn Host>,
    request: Arc<Request>,
    /// When the timer is to be reported, on the exact clock, as the coarse one may be behind when the host turns the
    /// reactor, and nothing would ask for another turn; `NEVER`: not.
    timer_at_ns: u64,
    /// When the service is to be reported, likewise.
    alarm_at_ns: u64,
}

const NEVER: u64 = u64::MAX;
const NS_PER_MS: u64 = 1_000_000;

/// Loops count in milliseconds, from the begin of one.
const EARLY_NS_MAX: u64 = NS_PER_MS;

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
            timer_at_ns: NEVER,
            alarm_at_ns: NEVER,
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
        if self.timer_at_ns == NEVER && self.alarm_at_ns == NEVER {
            return;
        }
        // What is told early asks again for the rest of its time.
        let until_ns = exact_ns() + EARLY_NS_MAX;
        if self.timer_at_ns <= until_ns {
            self.timer_at_ns = NEVER;
            ready.push(own(INDEX_TIMER));
            self.ask_for_turn();
        }
        if self.alarm_at_ns <= until_ns {
            self.alarm_at_ns = NEVER;
            ready.push(own(INDEX_SERVICE));
            self.ask_for_turn();
        }
    }

    pub(crate) fn set_timer(&mut self, wait_ms: Millis) {
        self.timer_at_ns = exact_ns().saturating_add(wait_ms.saturating_mul(NS_PER_MS));
        self.ask_for_turn();
    }

    /// As exact as the host's own timers.
    pub(crate) fn set_alarm(&mut self, at_ns: u64) {
        if at_ns < self.alarm_at_ns {
            self.alarm_at_ns = at_ns;
            self.ask_for_turn();
        }
    }

    /// The host has one timer: it gets the earlier one of both times.
    fn ask_for_turn(&self) {
        let at_ns = self.timer_at_ns.min(self.alarm_at_ns);
        if at_ns != NEVER {
            let wait_ns = at_ns.saturating_sub(exact_ns());
            self.host.turn_later(wait_ns.div_ceil(NS_PER_MS));
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
            .field("timer_at_ns", &self.timer_at_ns)
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    #[derive(Default)]
    struct Loop(Mutex<Vec<Millis>>);

    impl Host for Loop {
        fn wake(&self) {}

        fn turn_later(&self, wait_ms: Millis) {
            self.0.lock().expect("no panic").push(wait_ms);
        }
    }

    /// The coarse clock is up to a tick behind when the host turns the reactor, and nothing would ask for another turn.
    #[test]
    fn the_turn_that_was_asked_for_reports_the_timer() {
        for pause_us in (0..16).map(|n| n * 250) {
            let event_loop = Arc::new(Loop::default());
            let mut hosted = Hosted::new(Arc::<Loop>::clone(&event_loop) as Arc<dyn Host>);
            #[expect(clippy::disallowed_methods, reason = "another place in a tick")]
            std::thread::sleep(Duration::from_micros(pause_us));
            hosted.set_timer(5);
            assert_eq!(*event_loop.0.lock().expect("no panic"), [5]);
            #[expect(clippy::disallowed_methods, reason = "a deadline has to pass")]
            std::thread::sleep(Duration::from_millis(4));
            let mut ready = Vec::new();
            hosted.collect(&mut ready);
            assert_eq!(ready.len(), 1, "a millisecond early, as loops are");
        }
    }
}
