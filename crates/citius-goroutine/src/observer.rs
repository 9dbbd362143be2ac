//! What the code that uses goroutines is told of them.

use std::any::Any;

/// Why a goroutine ended before its code returned.
#[derive(Debug)]
pub enum Failure {
    /// Its code panicked, with this payload.
    Panicked(Box<dyn Any + Send>),
    /// It needed more stack than it had.
    Overflowed,
    /// Its scheduler was closed. What its frames own is leaked.
    Abandoned,
}

/// Is told of goroutines that fail.
pub trait Observer {
    /// The goroutine whose [`word`](crate::word) was `word` has ended. Called on the thread that ran it, outside of goroutines.
    fn failed(&self, word: usize, failure: Failure);
}
