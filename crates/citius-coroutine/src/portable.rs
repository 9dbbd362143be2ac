//! Systems and processors without coroutines. No value of [`Stack`] exists, so no code that has one is ever run.

#![expect(
    clippy::unused_self,
    clippy::needless_pass_by_value,
    reason = "the signatures are those of Linux"
)]

use crate::{Progress, StackError};

/// A stack.
#[derive(Debug)]
pub struct Stack(Never);

/// Private, so that code elsewhere is compiled as if there were stacks.
#[derive(Debug)]
enum Never {}

/// A pool of stacks, which has none.
#[derive(Clone, Debug)]
pub struct Stacks {
    bytes: usize,
}

impl Stacks {
    /// A pool.
    pub fn new(bytes: usize, _count_max: usize) -> Self {
        Self { bytes }
    }

    /// Bytes of each stack.
    pub fn stack_bytes(&self) -> usize {
        self.bytes
    }

    /// Stacks that were taken and not given back.
    pub fn in_use(&self) -> usize {
        0
    }

    /// A stack.
    ///
    /// # Errors
    /// [`StackError::Unsupported`]
    pub fn take(&self) -> Result<Stack, StackError> {
        Err(StackError::Unsupported)
    }

    /// Takes a stack back.
    pub fn give(&self, stack: Stack) {
        match stack.0 {}
    }

    /// Takes a stack back with its memory.
    pub fn give_hot(&self, stack: Stack) {
        match stack.0 {}
    }
}

/// Code that suspends itself in the middle.
#[derive(Debug)]
pub struct Coroutine(Stack);

/// A coroutine that may continue on another thread.
#[derive(Debug)]
pub struct MigratingCoroutine(Stack);

impl Coroutine {
    /// A coroutine that runs `code` when it is resumed.
    pub fn new(stack: Stack, _code: impl FnOnce() + 'static) -> Self {
        Self(stack)
    }

    /// The [`word`] of its code.
    pub fn word(&self) -> usize {
        match self.0.0 {}
    }

    /// Sets it.
    pub fn set_word(&mut self, _word: usize) {}

    /// Runs it until it suspends itself or ends.
    pub fn resume(&mut self) -> Progress {
        match self.0.0 {}
    }

    /// Ends it wherever it is.
    pub fn abandon(self) -> Stack {
        self.0
    }

    /// The stack of one that has ended.
    pub fn into_stack(self) -> Stack {
        self.0
    }
}

impl MigratingCoroutine {
    /// See [`Coroutine::new`].
    ///
    /// # Safety
    /// It is never run.
    pub unsafe fn new(stack: Stack, _code: impl FnOnce() + Send + 'static) -> Self {
        Self(stack)
    }

    /// See [`Coroutine::word`].
    pub fn word(&self) -> usize {
        match self.0.0 {}
    }

    /// See [`Coroutine::set_word`].
    pub fn set_word(&mut self, _word: usize) {}

    /// See [`Coroutine::resume`].
    pub fn resume(&mut self) -> Progress {
        match self.0.0 {}
    }

    /// See [`Coroutine::abandon`].
    pub fn abandon(self) -> Stack {
        self.0
    }

    /// See [`Coroutine::into_stack`].
    pub fn into_stack(self) -> Stack {
        self.0
    }
}

/// Whether the caller runs in a coroutine.
pub fn is_inside() -> bool {
    false
}

/// Suspends the coroutine that calls it.
///
/// # Panics
/// The caller runs in no coroutine.
pub fn suspend() {
    panic!("only a coroutine suspends itself");
}

/// The coroutine that runs. There is none.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a>(&'a Never);

/// Calls `look` with `None`: no coroutine runs.
pub fn with_current<R>(look: impl FnOnce(Option<Current<'_>>) -> R) -> R {
    look(None)
}

impl Current<'_> {
    /// See [`word`].
    pub fn word(self) -> usize {
        match *self.0 {}
    }

    /// See [`require_stack`].
    pub fn require_stack(self, _bytes: usize) {}

    /// Whether it stays on its thread.
    pub fn is_pinned(self) -> bool {
        match *self.0 {}
    }

    /// See [`suspend`].
    pub fn suspend(self) {}
}

/// A number that belongs to the coroutine that runs.
pub fn word() -> usize {
    0
}

/// Sets it.
pub fn set_word(_word: usize) {}

/// Bytes of stack that the coroutine which calls it has left; `None` outside of coroutines.
pub fn remaining_bytes() -> Option<usize> {
    None
}

/// Ends the coroutine as overflowed unless it has `bytes` of stack left.
pub fn require_stack(_bytes: usize) {}

/// Calls `work`.
pub fn on_thread_stack<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// The handler of overflows, of which there are none.
pub mod trap {
    use crate::Protection;

    /// Installs the handler.
    pub fn install() {}

    /// Code of the library that `address` lies in is not cut off by an overflow.
    pub fn protect(_address: usize, _protection: Protection) {}
}
