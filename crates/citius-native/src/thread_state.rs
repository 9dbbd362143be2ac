//! What a thread keeps of the native code that it runs: one variable, because each access to one is a call in a shared library.

use std::cell::Cell;

use super::current_call::CurrentCall;
use super::gil::Counter;

pub(super) struct ThreadState {
    /// The call of a compiled handler that it is in.
    pub(super) call: Cell<CurrentCall>,
    /// Tells whether a goroutine is inside `with gil`.
    pub(super) gil_counter: Cell<Counter>,
}

thread_local! {
    pub(super) static THREAD_STATE: ThreadState = const {
        ThreadState { call: Cell::new(CurrentCall::NONE), gil_counter: Cell::new(Counter::NONE) }
    };
}
