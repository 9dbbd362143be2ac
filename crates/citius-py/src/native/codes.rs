//! What functions of the header return, and the last mistake.

use std::cell::Cell;
use std::ffi::{c_char, c_int};

use super::context::Ended;
use super::current_call::CurrentCall;
use super::green;
use super::report::{self, Mistake};
use super::wait::Interrupted;

pub(crate) const OK: c_int = 0;
pub(crate) const CLOSED: c_int = 1;
pub(crate) const MISUSE: c_int = 2;
pub(crate) const CANCELLED: c_int = 499;
pub(crate) const FAILED: c_int = 500;
pub(crate) const UNREACHABLE: c_int = 502;
pub(crate) const UNAVAILABLE: c_int = 503;
pub(crate) const TIMEOUT: c_int = 504;

thread_local! {
    /// The last mistake outside of goroutines.
    static MISTAKE: Cell<Option<Mistake>> = const { Cell::new(None) };
}

/// Notes a mistake for `citius_mistake`, and for the handler that has made it.
#[cold]
pub(crate) fn misuse(mistake: Mistake) -> c_int {
    if green::with_current(|green| green.set_mistake(mistake)).is_none() {
        set_mistake_of_thread(mistake);
    }
    (CurrentCall::get().note_mistake)(report::text(mistake));
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
    report::c_text(mistake)
}

#[inline(never)]
fn mistake_of_thread() -> Option<Mistake> {
    MISTAKE.get()
}
