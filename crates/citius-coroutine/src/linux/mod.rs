//! Linux on the processors whose registers the handler of overflows knows.

mod coroutine;
mod mapping;
mod stack;
pub mod trap;

pub use coroutine::{
    Coroutine, MigratingCoroutine, is_inside, on_thread_stack, remaining_bytes, require_stack,
    suspend,
};
pub use stack::{Stack, Stacks};
