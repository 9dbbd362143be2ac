//! The functions of the header for goroutines and time.

use std::ffi::{c_int, c_void};

use citius_abi::CxxGlobals;
use citius_goroutine::Failure;

use super::clock::now;
use super::codes::{OK, UNAVAILABLE, interrupted, misuse};
use super::interpreter::interpreter;
use super::{green, local, wait};

/// A pointer that a goroutine is given.
struct Argument(*mut c_void);

// SAFETY: the code that starts the goroutine passes it on; the header says that it may be used on another thread.
unsafe impl Send for Argument {}

impl Argument {
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

pub(crate) unsafe extern "C" fn go(
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    citius_goroutine::require_stack(wait::STACK_BYTES);
    let Some(function) = function else {
        return misuse(c"it starts a goroutine without a function");
    };
    let argument = Argument(argument);
    let context = green::with_current(green::Green::context).flatten();
    let started = local::start(context, Box::new(report), move || {
        // SAFETY: what the header asks for: a function of this type that may be called with this argument.
        unsafe { function(argument.pointer()) };
    });
    match started {
        Ok(_) => OK,
        Err(_) => UNAVAILABLE,
    }
}

/// A goroutine that no request waits for has failed.
#[expect(clippy::needless_pass_by_value, reason = "as it is called")]
fn report(failure: Failure) {
    let what = match failure {
        Failure::Overflowed => {
            "a goroutine has overflowed its stack; raise --goroutine-stack-bytes, or let it need less"
        }
        Failure::Panicked(_) => "a goroutine has panicked",
        Failure::Abandoned => return,
    };
    interpreter().log_error(what);
}

pub(crate) unsafe extern "C" fn yield_now() -> c_int {
    citius_goroutine::require_stack(wait::STACK_BYTES);
    if green::with_current(|_| ()).is_none() {
        std::thread::yield_now();
        return OK;
    }
    match green::yield_now() {
        Ok(()) => OK,
        Err(mistake) => misuse(mistake),
    }
}

pub(crate) unsafe extern "C" fn sleep_until(at_ns: i64) -> c_int {
    let at = u64::try_from(at_ns).unwrap_or(0);
    match wait::sleep(at) {
        Ok(()) => OK,
        Err(reason) => interrupted(reason),
    }
}

pub(crate) unsafe extern "C" fn now_ns() -> i64 {
    i64::try_from(now()).unwrap_or(i64::MAX)
}

pub(crate) unsafe extern "C" fn in_goroutine() -> c_int {
    c_int::from(green::with_current(|_| ()).is_some())
}

pub(crate) unsafe extern "C" fn free(memory: *mut c_void) {
    // SAFETY: what was given out by `super::chan::to_malloc`, or null.
    unsafe { super::chan::free(memory) };
}

pub(crate) unsafe extern "C" fn cxx_globals(globals: Option<CxxGlobals>) {
    if let Some(globals) = globals {
        green::set_cxx_globals(globals);
    }
}
