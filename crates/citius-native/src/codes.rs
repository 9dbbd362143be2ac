//! What functions of the header return, and the last mistake.

use std::cell::Cell;
use std::ffi::{c_char, c_int};

use super::context::Ended;
use super::current_call::CurrentCall;
use super::green;
use super::mistake::{self, Mistake};
use super::wait::Interrupted;

/// It is done.
pub const OK: c_int = 0;
/// The channel is closed.
pub const CLOSED: c_int = 1;
/// What was called must not be called so; `citius_mistake` says why.
pub const MISUSE: c_int = 2;
/// The context was cancelled.
pub const CANCELLED: c_int = 499;
/// A server has refused it.
pub const FAILED: c_int = 500;
/// A server cannot be reached, or says what the protocol has not.
pub const UNREACHABLE: c_int = 502;
/// There is no room for it now.
pub const UNAVAILABLE: c_int = 503;
/// Its time is up.
pub const TIMEOUT: c_int = 504;

thread_local! {
    /// The last mistake outside of goroutines.
    static MISTAKE: Cell<Option<Mistake>> = const { Cell::new(None) };
}

/// Notes a mistake for `citius_mistake`, and for the handler that has made it.
#[cold]
pub fn misuse(mistake: Mistake) -> c_int {
    if green::with_current(|green| green.set_mistake(mistake)).is_none() {
        set_mistake_of_thread(mistake);
    }
    (CurrentCall::get().note_mistake)(mistake::text(mistake));
    MISUSE
}

#[inline(never)]
fn set_mistake_of_thread(mistake: Mistake) {
    MISTAKE.set(Some(mistake));
}

/// The code of a wait that was interrupted.
#[cold]
pub(crate) fn interrupted(interrupted: Interrupted) -> c_int {
    match interrupted {
        Interrupted::TimedOut | Interrupted::Ended(Ended::Expired) => TIMEOUT,
        Interrupted::Ended(Ended::Cancelled) | Interrupted::Raised => CANCELLED,
        Interrupted::Misuse(mistake) => misuse(mistake),
    }
}

pub(crate) unsafe extern "C" fn mistake() -> *const c_char {
    let mistake = match green::with_current(green::Green::mistake) {
        Some(mistake) => mistake,
        None => mistake_of_thread(),
    };
    mistake::c_text(mistake)
}

#[inline(never)]
fn mistake_of_thread() -> Option<Mistake> {
    MISTAKE.get()
}
