//! One coroutine, and the current one of each thread.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

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
    inner: ManuallyDrop<Inner>,
    /// How it suspends itself, once it has begun.
    yielder: *const Yielder<(), ()>,
    place: Place,
}

/// Where its stack is.
#[derive(Clone, Copy)]
struct Place {
    low: usize,
    /// From here on the guard is open; `low` if it is closed.
    open_from: usize,
    kind: GuardKind,
}

/// The coroutine that runs on a thread. It lies on the stack of the code that resumed it.
pub(crate) struct Running {
    outer: *const Running,
    yielder: Cell<*const Yielder<(), ()>>,
    /// The lowest address that may be written to.
    pub(crate) low: usize,
    /// From here on the guard below `low` is open.
    pub(crate) open_from: Cell<usize>,
    pub(crate) guard_kind: GuardKind,
    /// It ends at its next suspension, which comes at once.
    is_overflowed: Cell<bool>,
    pub(crate) trap: CoroutineTrapHandler<End>,
}

thread_local! {
    /// Without a destructor and with a constant to begin with, so that a signal handler may read it.
    static RUNNING: Cell<*const Running> = const { Cell::new(ptr::null()) };
}

/// Not inlined: a caller that continues on another thread must not reuse the address of the variable.
#[inline(never)]
pub(crate) fn running() -> *const Running {
    RUNNING.get()
}

#[inline(never)]
fn set_running(running: *const Running) {
    RUNNING.set(running);
}

impl Coroutine {
    /// A coroutine that runs `code` when it is resumed.
    #[inline]
    pub fn new(stack: Stack, code: impl FnOnce() + 'static) -> Self {
        let place = Place {
            low: stack.low(),
            open_from: stack.low(),
            kind: stack.kind(),
        };
        let inner = Inner::with_stack(stack, move |yielder, ()| {
            // SAFETY: `resume` has set it, and does not return while this runs.
            let running = unsafe { &*running() };
            running.yielder.set(ptr::from_ref(yielder));
            match catch_unwind(AssertUnwindSafe(code)) {
                Ok(()) => End::Returned,
                Err(payload) => End::Panicked(payload),
            }
        });
        Self {
            inner: ManuallyDrop::new(inner),
            yielder: ptr::null(),
            place,
        }
    }

    /// Runs it until it suspends itself or ends.
    ///
    /// # Panics
    /// It has ended.
    #[inline]
    pub fn resume(&mut self) -> Progress {
        trap::prepare_thread();
        let running = Running {
            outer: running(),
            yielder: Cell::new(self.yielder),
            low: self.place.low,
            open_from: Cell::new(self.place.open_from),
            guard_kind: self.place.kind,
            is_overflowed: Cell::new(false),
            trap: self.inner.trap_handler(),
        };
        set_running(&raw const running);
        // It does not unwind: a panic of the code is caught on its own stack.
        let result = self.inner.resume(());
        set_running(running.outer);
        self.yielder = running.yielder.get();
        self.place.open_from = running.open_from.get();
        match result {
            CoroutineResult::Yield(()) if running.is_overflowed.get() => {
                // SAFETY: as in `abandon`.
                unsafe { self.inner.force_reset() };
                Progress::Overflowed
            }
            CoroutineResult::Yield(()) => Progress::Suspended,
            // It has come to its end by the reserve that is there to be cut off in.
            CoroutineResult::Return(_) if self.has_overflowed() => Progress::Overflowed,
            CoroutineResult::Return(End::Returned) => Progress::Returned,
            CoroutineResult::Return(End::Panicked(payload)) => Progress::Panicked(payload),
            CoroutineResult::Return(End::Overflowed) => Progress::Overflowed,
        }
    }

    /// Ends it wherever it is. Its code never continues, and what its frames own is leaked, as after `longjmp` in C.
    ///
    /// Code that uses memory of these frames, through a pointer that it was lent, must not run after this.
    pub fn abandon(mut self) -> Stack {
        if !self.inner.done() {
            // SAFETY: the frames are never returned to, and forgetting what they own is no undefined behaviour. That no other
            // code uses their memory is what the caller sees to.
            unsafe { self.inner.force_reset() };
        }
        self.into_stack()
    }

    /// The stack of one that has ended.
    ///
    /// # Panics
    /// It has not ended.
    #[inline]
    pub fn into_stack(self) -> Stack {
        let is_spoiled = self.has_overflowed();
        let stack = ManuallyDrop::into_inner(self.inner).into_stack();
        if is_spoiled {
            stack.restore();
        }
        stack
    }

    fn has_overflowed(&self) -> bool {
        self.place.open_from != self.place.low
    }
}

impl fmt::Debug for Coroutine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Coroutine")
            .field("low", &self.place.low)
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
        Self(Coroutine::new(stack, code))
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

/// Whether the caller runs in a coroutine.
#[inline]
pub fn is_inside() -> bool {
    !running().is_null()
}

/// Suspends the coroutine that calls it, until it is resumed.
///
/// # Panics
/// The caller runs in no coroutine.
// The name is what a debugger shows of a goroutine that waits.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn citius_coroutine_suspend() {
    // SAFETY: what is current lives, for `resume` has not returned.
    let Some(running) = (unsafe { running().as_ref() }) else {
        return;
    };
    let yielder = running.yielder.get();
    // SAFETY: the yielder lies on the stack of the coroutine that runs, below all of its frames.
    unsafe { (*yielder).suspend(()) };
}

/// Suspends the coroutine that calls it, until it is resumed.
///
/// # Panics
/// The caller runs in no coroutine.
#[inline]
pub fn suspend() {
    assert!(is_inside(), "only a coroutine suspends itself");
    citius_coroutine_suspend();
}

/// Bytes of stack that the coroutine which calls it has left; `None` outside of coroutines.
#[inline]
pub fn remaining_bytes() -> Option<usize> {
    // SAFETY: as in `suspend`.
    let running = unsafe { running().as_ref() }?;
    let here = 0_u8;
    Some((&raw const here as usize).saturating_sub(running.low))
}

/// Ends the coroutine as overflowed unless it has `bytes` of stack left. To be called before a lock is taken or anything else
/// is begun that must not be cut off. Outside of coroutines nothing happens.
#[inline]
pub fn require_stack(bytes: usize) {
    // SAFETY: as in `suspend`.
    let Some(running) = (unsafe { running().as_ref() }) else {
        return;
    };
    let here = 0_u8;
    let is_short = (&raw const here as usize) < running.low + bytes;
    if is_short || running.open_from.get() != running.low {
        end_overflowed(running);
    }
}

#[cold]
fn end_overflowed(running: &Running) {
    running.is_overflowed.set(true);
    citius_coroutine_suspend();
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
    // cannot do because `RUNNING` says that there is none.
    unsafe impl<T> Send for Alone<T> {}
    impl<F: FnOnce() -> R, R> Alone<F> {
        fn call(self) -> R {
            (self.0)()
        }
    }

    let current = running();
    // SAFETY: as in `suspend`.
    let Some(running) = (unsafe { current.as_ref() }) else {
        return work();
    };
    let yielder = running.yielder.get();
    let work = Alone(work);
    set_running(running.outer);
    // SAFETY: as in `suspend`.
    let result = unsafe { &*yielder }
        .on_parent_stack(move || catch_unwind(AssertUnwindSafe(|| work.call())));
    set_running(current);
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Bytes from the end of the stack within which a signal that finds no room counts as an overflow.
pub(crate) const SIGNAL_FRAME_BYTES: usize = 16 * 1024;

impl Running {
    /// Whether an access to `address`, with the stack pointer at `stack_pointer`, is one to the closed part of the guard.
    /// `address` is 0 where the kernel has found no room for the frame of a signal handler.
    pub(crate) fn is_guard(&self, address: usize, stack_pointer: usize) -> bool {
        let guard = self.low - GUARD_BYTES..self.open_from.get();
        let near_end = guard.start..self.low + SIGNAL_FRAME_BYTES;
        guard.contains(&address) || (address == 0 && near_end.contains(&stack_pointer))
    }
}
