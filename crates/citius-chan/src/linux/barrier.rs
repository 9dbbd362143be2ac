//! `membarrier(2)`, the kind for the threads of one process.
#![allow(unsafe_code, reason = "one system call, with numbers only")]

use libc::{
    MEMBARRIER_CMD_PRIVATE_EXPEDITED as PASS, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED as REGISTER,
};

fn call(command: libc::c_int) -> bool {
    // SAFETY: it takes numbers only.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Whether threads can be made to pass a barrier; asked each time, because a filter of system calls may have been set.
pub(crate) fn is_there() -> bool {
    call(REGISTER) && call(PASS)
}

/// Each thread of the process passes a full memory barrier between two of its instructions.
pub(crate) fn pass_on_all_threads() {
    // A child process may have to register itself.
    if !call(PASS) && !is_there() {
        // The system had it when the lock was confined. Without it two threads could be inside.
        std::process::abort();
    }
}
