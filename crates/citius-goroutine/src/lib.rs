//! Goroutines: stackful coroutines with a run queue, parking, timers and descriptors.
//!
//! Two schedulers have the same primitives. A [`Local`] belongs to one thread, which calls [`Local::run`]: a reactor's turn. A
//! [`Pool`] has threads of its own, which take goroutines from each other. Code in a goroutine calls [`park`], [`yield_now`] and
//! [`set_timer`] without knowing which of them it runs on.
//!
//! What a goroutine waits for is not known here. It parks, other code calls [`Goroutine::unpark`], and the goroutine looks again: a
//! wake-up carries no value and may come without a reason. So a wait is a loop, as with [`std::thread::park`].
//!
//! Invariants:
//! - Goroutines that become ready run in the order in which they became ready; on a pool in that order for each thread.
//! - No lock is held and nothing is borrowed while a goroutine runs.
//! - A goroutine of a [`Local`] runs on the thread of its scheduler only.
//! - A panic or a stack overflow ends its goroutine; [`Observer::failed`] is told.
//!
//! Nothing here reads a clock: times are nanoseconds of the monotonic clock that callers pass in. Tests: `tests/`.
#![forbid(unsafe_code)]

mod current;
mod local;
mod observer;
#[cfg_attr(target_os = "linux", path = "linux/poller.rs")]
#[cfg_attr(not(target_os = "linux"), path = "portable/poller.rs")]
mod poller;
mod pool;
mod timers;

pub use citius_coroutine::{
    Current, MigratingCoroutine, Protection, Stack, StackError, Stacks, on_thread_stack,
    remaining_bytes, require_stack, set_word, trap, with_current, word,
};
pub use current::{
    Goroutine, clear_timer, current, is_inside, park, park_as, set_timer, yield_now,
};
pub use local::{Local, LocalHandle, LocalHere, LocalHome};
pub use observer::{Failure, Observer};
pub use pool::{Parked, Pool, Settings as PoolSettings};
pub use timers::{Nanos, TIMER_GRANULARITY_NS};
