//! Stackful coroutines: code that stops in the middle of a call and continues there later.
//!
//! In: a [`Stack`] of a pool ([`Stacks`]) and a closure. Out: what became of it each time it ran ([`Progress`]). The switch itself
//! is `corosensei`'s; here are the stacks, the current coroutine of each thread, and the handler of stack overflows.
//!
//! This crate is the quarantine of the `unsafe` code that green threads need. It schedules nothing and knows no channel:
//! that is `citius-goroutine`, which has no `unsafe`.
//!
//! Invariants:
//! - A stack has a guard below it. An access to the guard ends the coroutine ([`Progress::Overflowed`]), never the process
//!   ([`trap`]).
//! - A coroutine that has not ended is never unwound: foreign frames may be on its stack. [`Coroutine::abandon`] frees the stack
//!   and leaks what its frames own.
//! - What there is of a coroutine beside its stack stays at one place until the coroutine has ended, because its code refers to it
//!   ([`Current`]).
//! - Nothing here reads a thread-local variable after a switch that was found before it: the code may continue on another
//!   thread.
//!
//! Tests: `tests/`.
#![allow(
    unsafe_code,
    reason = "stacks, the switch between them and the handler of their overflow; callers get a safe interface"
)]

use std::any::Any;

mod error;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[path = "linux/mod.rs"]
mod system;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "portable.rs"]
mod system;

pub use error::StackError;
pub use system::*;

/// Bytes of the guard below each stack. Its pages are opened one by one for code that must not be cut off, such as an
/// allocator's; see [`trap`].
pub const GUARD_BYTES: usize = 64 * 1024;
/// Bytes of the smallest stack.
pub const STACK_BYTES_MIN: usize = 16 * 1024;
/// What became of a coroutine that was resumed.
#[derive(Debug)]
pub enum Progress {
    /// It suspends itself.
    Suspended,
    /// Its code has returned.
    Returned,
    /// Its code has panicked, with this payload.
    Panicked(Box<dyn Any + Send>),
    /// Its code needed more stack than there is. What its frames own is leaked.
    Overflowed,
}

/// What is to become of code that overflows a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// It is cut off at the end of the guard, if it is still running then.
    Lasting,
    /// It is never cut off. If it needs more than the guard has, the process ends.
    Vital,
}
