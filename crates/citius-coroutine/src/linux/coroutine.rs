//! One coroutine, and the current one of each thread.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};

use corosensei::trap::CoroutineTrapHandler;
use corosensei::{CoroutineResult, Yielder};

use super::mapping::GuardKind;
use super::stack::Stack;
use super::trap;
use crate::{GUARD_BYTES, Progress};

/// How the code of a coroutine ended.
pub(crate) enum End {
    Returned,
    Panicked(Box<dyn Any + Send>),
    Overflowed,
}

type Inner = corosensei::Coroutine<(), (), End, Stack>;

/// Code that suspends itself in the middle, on a stack of its own; of one thread.
///
/// One that is dropped before it has ended is [abandoned](Self::abandon), and its stack is lost.
pub struct Coroutine {
    /// In memory that belongs to its stack: it stays where it is while the coroutine moves.
    body: NonNull<Body>,
}

/// What there is of a coroutine beside its stack.
pub(crate) struct Body {
    inner: ManuallyDrop<Inner>,
    running: Running,
}

/// What the code of a coroutine finds of itself.
pub(crate) struct Running {
    /// The coroutine whose code has resumed it, while it runs.
    outer: Cell<*const Running>,
    /// How it suspends itself, once it has begun.
    yielder: Cell<*const Yielder<(), ()>>,
    /// The lowest address that may be written to.
    pub(crate) low: usize,
    /// From here on the guard below `low` is open.
    pub(crate) open_from: Cell<usize>,
    pub(crate) guard_kind: GuardKind,
    /// It ends at its next suspension, which comes at once.
    is_overflowed: Cell<bool>,
    /// It continues on the thread on which it was suspended.
    is_pinned: bool,
    /// It is in [`on_thread_stack`].
    is_away: Cell<bool>,
    /// See [`word`].
    word: Cell<usize>,
    /// [`Stack::mark`]
    mark: *mut usize,
    pub(crate) trap: CoroutineTrapHandler<End>,
}

/// What a thread knows of coroutines: one variable, because each access to one is a call in a shared library.
struct Thread {
    running: Cell<*const Running>,
    /// It has the signal stack that the handler of overflows needs.
    is_prepared: Cell<bool>,
}

thread_local! {
    /// Without a destructor and with a constant to begin with, so that a signal handler may read it.
    static THREAD: Thread = const {
        Thread { running: Cell::new(ptr::null()), is_prepared: Cell::new(false) }
    };
}

/// Not inlined: a caller that continues on another thread must not reuse the address of the variable.
#[inline(never)]
pub(crate) fn running() -> *const Running {
    THREAD.with(|thread| thread.running.get())
}

#[inline(never)]
fn set_running(running: *const Running) {
    THREAD.with(|thread| thread.running.set(running));
}

impl Coroutine {
    /// A coroutine that runs `code` when it is resumed.
    #[inline]
    pub fn new(stack: Stack, code: impl FnOnce() + 'static) -> Self {
        Self::make(stack, code, true)
    }

    #[inline]
    fn make(stack: Stack, code: impl FnOnce() + 'static, is_pinned: bool) -> Self {
        let (low, guard_kind) = (stack.low(), stack.kind());
        let (mark, body) = (stack.mark() as *mut usize, stack.body());
        stack.renew();
        let inner = Inner::with_stack(stack, move |yielder, ()| {
            // SAFETY: `resume` has set it, and does not return while this runs.
            let running = unsafe { &*running() };
            running.yielder.set(ptr::from_ref(yielder));
            match catch_unwind(AssertUnwindSafe(code)) {
                Ok(()) => End::Returned,
                Err(payload) => End::Panicked(payload),
            }
        });
        let running = Running {
            outer: Cell::new(ptr::null()),
            yielder: Cell::new(ptr::null()),
            low,
            open_from: Cell::new(low),
            guard_kind,
            is_overflowed: Cell::new(false),
            is_pinned,
            is_away: Cell::new(false),
            word: Cell::new(0),
            mark,
            trap: inner.trap_handler(),
        };
        let inner = ManuallyDrop::new(inner);
        // SAFETY: the place is the stack's, which this coroutine has for itself now, and large enough for a body.
        unsafe { body.write(Body { inner, running }) };
        Self { body }
    }

    #[inline]
    fn running(&self) -> &Running {
        // SAFETY: `make` has written it. It is never borrowed as mutable.
        unsafe { &(*self.body.as_ptr()).running }
    }

    /// The [`word`] of its code.
    #[inline]
    pub fn word(&self) -> usize {
        self.running().word.get()
    }

    /// Sets it.
    #[inline]
    pub fn set_word(&mut self, word: usize) {
        self.running().word.set(word);
    }

    /// Runs it until it suspends itself or ends.
    ///
    /// # Panics
    /// It has ended.
    #[inline]
    pub fn resume(&mut self) -> Progress {
        // Code that calls this is not moved to another thread before it returns: a coroutine suspends itself only.
        THREAD.with(|thread| self.resume_on(thread))
    }

    #[inline]
    fn resume_on(&mut self, thread: &Thread) -> Progress {
        if !thread.is_prepared.replace(true) {
            trap::prepare_thread();
        }
        // SAFETY: `make` has written it, and the coroutine is borrowed; what runs on its stack uses `running` only.
        let inner = unsafe { &mut (*self.body.as_ptr()).inner };
        let running = self.running();
        let outer = thread.running.replace(running);
        running.outer.set(outer);
        // It does not unwind: a panic of the code is caught on its own stack.
        let result = inner.resume(());
        thread.running.set(outer);
        match result {
            CoroutineResult::Yield(()) if running.is_overflowed.get() => {
                // SAFETY: the coroutine has just yielded: it does not run, and nothing refers to what its frames own, which is leaked.
                unsafe { inner.force_reset() };
                // SAFETY: the word is of its stack, which is there, and none runs on it.
                unsafe { running.mark.write_volatile(0) };
                Progress::Overflowed
            }
            CoroutineResult::Yield(()) => Progress::Suspended,
            // It has come to its end by the reserve that is there to be cut off in.
            CoroutineResult::Return(_) if running.has_overflowed() => Progress::Overflowed,
            CoroutineResult::Return(End::Returned) => Progress::Returned,
            CoroutineResult::Return(End::Panicked(payload)) => Progress::Panicked(payload),
            CoroutineResult::Return(End::Overflowed) => Progress::Overflowed,
        }
    }

    /// Ends it wherever it is. Its code never continues, and what its frames own is leaked, as after `longjmp` in C.
    ///
    /// Code that uses memory of these frames, through a pointer that it was lent, must not run after this.
    pub fn abandon(self) -> Stack {
        // SAFETY: the body lives as long as this handle, and nothing else refers to it, for the coroutine does not run.
        let inner = unsafe { &mut (*self.body.as_ptr()).inner };
        if !inner.done() {
            // SAFETY: the frames are never returned to, and forgetting what they own is no undefined behaviour. That no other
            // code uses their memory is what the caller sees to.
            unsafe { inner.force_reset() };
        }
        let stack = self.into_stack();
        stack.clear_mark();
        stack
    }

    /// The stack of one that has ended.
    ///
    /// # Panics
    /// It has not ended.
    #[inline]
    pub fn into_stack(self) -> Stack {
        // SAFETY: `make` has written it, and it is not used again.
        let Body { inner, running } = unsafe { self.body.read() };
        let stack = ManuallyDrop::into_inner(inner).into_stack();
        if running.has_overflowed() {
            stack.restore();
        }
        stack
    }
}

impl fmt::Debug for Coroutine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Coroutine")
            .field("low", &self.running().low)
            .finish_non_exhaustive()
    }
}

/// A coroutine that may continue on another thread than the one on which it was suspended.
#[derive(Debug)]
pub struct MigratingCoroutine(Coroutine);

// SAFETY: its maker vouches for its code; see `MigratingCoroutine::new`.
unsafe impl Send for MigratingCoroutine {}

impl MigratingCoroutine {
    /// See [`Coroutine::new`].
    ///
    /// # Safety
    /// `code`, when [`suspend`] returns to it, must not use anything that belongs to the thread on which it called `suspend`.
    #[inline]
    pub unsafe fn new(stack: Stack, code: impl FnOnce() + Send + 'static) -> Self {
        Self(Coroutine::make(stack, code, false))
    }

    /// See [`Coroutine::word`].
    #[inline]
    pub fn word(&self) -> usize {
        self.0.word()
    }

    /// See [`Coroutine::set_word`].
    #[inline]
    pub fn set_word(&mut self, word: usize) {
        self.0.set_word(word);
    }

    /// See [`Coroutine::resume`].
    #[inline]
    pub fn resume(&mut self) -> Progress {
        self.0.resume()
    }

    /// See [`Coroutine::abandon`].
    pub fn abandon(self) -> Stack {
        self.0.abandon()
    }

    /// See [`Coroutine::into_stack`].
    #[inline]
    pub fn into_stack(self) -> Stack {
        self.0.into_stack()
    }
}

/// The coroutine that runs, as its own code knows it: what it does needs no further look at the thread.
#[derive(Clone, Copy)]
pub struct Current<'a>(&'a Running);

/// Calls `look` with the coroutine that runs; `None`: there is none.
#[inline]
pub fn with_current<R>(look: impl FnOnce(Option<Current<'_>>) -> R) -> R {
    // SAFETY: it is the coroutine that calls this, which does not end before `look` has returned: a body is where it is until its
    // coroutine has ended.
    look(unsafe { running().as_ref() }.map(Current))
}

impl Current<'_> {
    /// See [`word`].
    #[inline]
    pub fn word(self) -> usize {
        self.0.word.get()
    }

    /// See [`require_stack`].
    #[inline]
    pub fn require_stack(self, bytes: usize) {
        let here = 0_u8;
        let is_short = (&raw const here as usize) < self.0.low + bytes;
        if is_short || self.0.has_overflowed() {
            end_overflowed(self.0);
        }
    }

    /// Whether it stays on its thread: it is no [`MigratingCoroutine`].
    #[inline]
    pub fn is_pinned(self) -> bool {
        self.0.is_pinned
    }

    /// See [`suspend`].
    ///
    /// # Panics
    /// It is called in [`on_thread_stack`].
    #[inline]
    pub fn suspend(self) {
        assert!(!self.0.is_away.get(), "only a coroutine suspends itself");
        citius_coroutine_suspend(self.0);
    }
}

impl fmt::Debug for Current<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Current").field(&self.0.low).finish()
    }
}

/// Whether the caller runs in a coroutine.
#[inline]
pub fn is_inside() -> bool {
    !running().is_null()
}

/// A number that belongs to the coroutine that runs: 0 in none. Its meaning is that of the code that sets it.
#[inline]
pub fn word() -> usize {
    // SAFETY: what is current lives, for `resume` has not returned.
    let running = unsafe { running().as_ref() };
    running.map_or(0, |running| running.word.get())
}

/// Sets the [`word`] of the coroutine that runs; outside of coroutines nothing happens.
#[inline]
pub fn set_word(word: usize) {
    // SAFETY: what is current lives, for `resume` has not returned.
    if let Some(running) = unsafe { running().as_ref() } {
        running.word.set(word);
    }
}

// The name is what a debugger shows of a goroutine that waits.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn citius_coroutine_suspend(running: &Running) {
    let yielder = running.yielder.get();
    let mark = running.mark;
    // What is saved of the registers lies right below this.
    let here = 0_usize;
    // SAFETY: the word is of the stack that this runs on. Volatile, because nothing in the program reads it.
    unsafe { mark.write_volatile(&raw const here as usize) };
    // SAFETY: the yielder lies on the stack of the coroutine that runs, below all of its frames.
    unsafe { (*yielder).suspend(()) };
    // SAFETY: the word is of the stack that this runs on, which the coroutine has kept meanwhile.
    unsafe { mark.write_volatile(0) };
}

/// Suspends the coroutine that calls it, until it is resumed.
///
/// # Panics
/// The caller runs in no coroutine.
#[inline]
pub fn suspend() {
    // SAFETY: what is current lives, for `resume` has not returned.
    let running = unsafe { running().as_ref() };
    citius_coroutine_suspend(running.expect("only a coroutine suspends itself"));
}

/// Bytes of stack that the coroutine which calls it has left; `None` outside of coroutines.
#[inline]
pub fn remaining_bytes() -> Option<usize> {
    // SAFETY: what is current lives, for `resume` has not returned.
    let running = unsafe { running().as_ref() }?;
    let here = 0_u8;
    Some((&raw const here as usize).saturating_sub(running.low))
}

/// Ends the coroutine as overflowed unless it has `bytes` of stack left. To be called before a lock is taken or anything else
/// is begun that must not be cut off. Outside of coroutines nothing happens.
#[inline]
pub fn require_stack(bytes: usize) {
    with_current(|current| {
        if let Some(current) = current {
            current.require_stack(bytes);
        }
    });
}

#[cold]
fn end_overflowed(running: &Running) {
    running.is_overflowed.set(true);
    citius_coroutine_suspend(running);
    // `resume` has reset the coroutine.
    std::process::abort();
}

/// Calls `work` on the thread's own stack, which is larger, while the coroutine that calls it waits. In `work` there is no
/// current coroutine. Outside of coroutines it is called where it is.
///
/// # Panics
/// As `work` does.
pub fn on_thread_stack<R>(work: impl FnOnce() -> R) -> R {
    struct Alone<T>(T);
    // SAFETY: it does not leave this thread. The bound that it satisfies keeps `work` from suspending the coroutine, which it
    // cannot do because `THREAD` says that there is none.
    unsafe impl<T> Send for Alone<T> {}
    impl<F: FnOnce() -> R, R> Alone<F> {
        fn call(self) -> R {
            (self.0)()
        }
    }

    let current = running();
    // SAFETY: what is current lives, for `resume` has not returned.
    let Some(running) = (unsafe { current.as_ref() }) else {
        return work();
    };
    let yielder = running.yielder.get();
    let work = Alone(work);
    set_running(running.outer.get());
    running.is_away.set(true);
    // SAFETY: the yielder lies on the stack of the coroutine that runs, below all of its frames.
    let result = unsafe { &*yielder }
        .on_parent_stack(move || catch_unwind(AssertUnwindSafe(|| work.call())));
    running.is_away.set(false);
    set_running(current);
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Bytes from the end of the stack within which a signal that finds no room counts as an overflow.
pub(crate) const SIGNAL_FRAME_BYTES: usize = 16 * 1024;

impl Running {
    #[inline]
    fn has_overflowed(&self) -> bool {
        self.open_from.get() != self.low
    }

    /// Whether an access to `address`, with the stack pointer at `stack_pointer`, is one to the closed part of the guard.
    /// `address` is 0 where the kernel has found no room for the frame of a signal handler.
    pub(crate) fn is_guard(&self, address: usize, stack_pointer: usize) -> bool {
        let guard = self.low - GUARD_BYTES..self.open_from.get();
        let near_end = guard.start..self.low + SIGNAL_FRAME_BYTES;
        guard.contains(&address) || (address == 0 && near_end.contains(&stack_pointer))
    }
}
