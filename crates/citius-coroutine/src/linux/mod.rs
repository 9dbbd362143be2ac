//! Linux on the processors whose registers the handler of overflows knows.

mod coroutine;
mod mapping;
mod memcheck;
mod stack;
pub mod trap;

pub use coroutine::{
    Coroutine, Current, MigratingCoroutine, is_inside, on_thread_stack, remaining_bytes,
    require_stack, set_word, suspend, with_current, word,
};
pub use stack::{Stack, Stacks};
