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
//! - Nothing here reads a thread-local variable after a switch that was found before it: the code may continue on another
//!   thread.
//!
//! Tests: `tests/`.
#![allow(
    unsafe_code,
    reason = "stacks, the switch between them and the handler of their overflow; callers get a safe interface"
)]

mod coroutine;
mod mapping;
mod stack;
pub mod trap;

pub use coroutine::{
    Coroutine, MigratingCoroutine, Progress, is_inside, on_thread_stack, remaining_bytes,
    require_stack, suspend,
};
pub use stack::{GUARD_BYTES, STACK_BYTES_MIN, Stack, StackError, Stacks};
