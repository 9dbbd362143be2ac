//! A goroutine as the functions that wait know it: its ticket, its context, and what is told if it fails.
//!
//! The goroutine's word is the address of a [`Green`] on the heap, which lives until the goroutine has ended.

use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use citius_abi::CxxGlobals;
use citius_chan::StillShared;
use citius_goroutine::{Current, Failure, Goroutine, Local, Observer, set_word, word};

use super::context::Context;
use super::current_call::CurrentCall;
use super::interpreter::interpreter;
use super::mistake::Mistake;
use crate::channel::{Outcome, Resident, Ticket, Waker};

/// Is told if a goroutine does not end by returning.
pub type OnFailure = Box<dyn FnOnce(Failure) + Send>;

/// What belongs to one goroutine.
pub struct Green {
    /// For all of its waits, one after the other.
    ticket: RefCell<Option<Arc<Ticket>>>,
    /// For its waits on channels of its thread, if it stays on one.
    resident: OnceCell<Option<Resident>>,
    context: RefCell<Option<Arc<Context>>>,
    /// Is told if it does not end by returning.
    on_failure: Cell<Option<OnFailure>>,
    mistake: Cell<Option<Mistake>>,
    net_error: super::kept_error::Kept,
}

// SAFETY: one goroutine uses it, on one thread at a time, and what in it belongs to a thread (`resident`) only a goroutine has that
// stays on that thread.
unsafe impl Send for Green {}

impl Green {
    /// What a goroutine that is about to be started gets: its word.
    pub fn make(context: Option<Arc<Context>>, on_failure: OnFailure) -> usize {
        let green = Box::new(Self {
            ticket: RefCell::new(None),
            resident: OnceCell::new(),
            context: RefCell::new(context),
            on_failure: Cell::new(Some(on_failure)),
            mistake: Cell::new(None),
            net_error: super::kept_error::Kept::new(),
        });
        Box::into_raw(green) as usize
    }

    /// One that was made and not started.
    pub fn unmake(word: usize) {
        // SAFETY: no goroutine has it.
        drop(unsafe { Self::take(word) });
    }

    /// # Safety
    /// `word` is that of a goroutine that has ended or was never started, and is not used again.
    unsafe fn take(word: usize) -> Option<Box<Self>> {
        let pointer = word as *mut Self;
        // SAFETY: `make` has made it, of a box.
        (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
    }

    /// The first thing that a goroutine does.
    pub fn begin() -> Running {
        let word = word();
        with_current(|green| {
            if let Some(context) = &*green.context.borrow() {
                enter(context, word);
            }
        });
        Running(word)
    }

    pub(crate) fn context(&self) -> Option<Arc<Context>> {
        self.context.borrow().clone()
    }

    /// Makes another context the goroutine's.
    pub(crate) fn set_context(&self, context: Option<Arc<Context>>) {
        let word = ptr::from_ref(self) as usize;
        if let Some(context) = &context {
            enter(context, word);
        }
        let before = self.context.replace(context);
        if let Some(before) = before {
            before.leave(word);
        }
    }

    pub(crate) fn set_mistake(&self, mistake: Mistake) {
        self.mistake.set(Some(mistake));
    }

    pub(crate) fn mistake(&self) -> Option<Mistake> {
        self.mistake.get()
    }

    /// Why its last outgoing call has failed.
    pub(crate) fn net_error(&self) -> &super::kept_error::Kept {
        &self.net_error
    }

    /// It as a party of its thread; `None` if it may go to another.
    #[inline]
    pub(crate) fn resident(&self) -> Option<&Resident> {
        self.resident.get_or_init(new_resident).as_ref()
    }

    /// The ticket for a wait that begins.
    pub(crate) fn ticket(&self) -> Arc<Ticket> {
        match self.ticket.take() {
            Some(ticket) => ticket,
            None => new_ticket(),
        }
    }

    /// Takes back a ticket that was not used.
    pub(crate) fn keep(&self, ticket: Arc<Ticket>) {
        self.ticket.replace(Some(ticket));
    }

    /// The context, which stays the goroutine's while this is held.
    pub(crate) fn context_guard(&self) -> Ref<'_, Option<Arc<Context>>> {
        self.context.borrow()
    }

    /// The outcome of a wait that has ended, `None` if it was given up, and the ticket back.
    pub(crate) fn conclude(&self, mut ticket: Arc<Ticket>) -> Option<Outcome> {
        let outcome = match Ticket::renew(&mut ticket) {
            Ok(outcome) => outcome,
            // The thread that completed it has not let go of it yet: it is that thread's to drop.
            Err(StillShared) => return ticket.take(),
        };
        self.ticket.replace(Some(ticket));
        outcome
    }
}

fn enter(context: &Context, word: usize) {
    if let Some(goroutine) = citius_goroutine::current() {
        context.enter(word, goroutine);
    }
}

#[cold]
fn new_ticket() -> Arc<Ticket> {
    let goroutine = citius_goroutine::current().expect("called in a goroutine");
    Arc::new(Ticket::new(Waker::Goroutine(goroutine)))
}

#[cold]
fn new_resident() -> Option<Resident> {
    let Goroutine::Local(handle) = citius_goroutine::current()? else {
        return None;
    };
    let waker = Local::here()?.waker();
    let thread = waker.home().id();
    // SAFETY: the goroutines of a `LocalHome` run on one thread, and this is one of them, which has the resident for itself.
    Some(unsafe { Resident::new(thread, waker, handle.number()) })
}

/// A goroutine's code, until it returns.
pub struct Running(usize);

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The observer is told, and ends it.
            return;
        }
        set_word(0);
        end(self.0);
    }
}

/// Frees what belongs to a goroutine that has ended.
fn end(word: usize) -> Option<OnFailure> {
    // SAFETY: the goroutine has ended, or does nothing more.
    let green = unsafe { Green::take(word) }?;
    // One that was abandoned in a wait has its context borrowed for ever.
    let Green {
        context,
        on_failure,
        ..
    } = *green;
    if let Some(context) = context.into_inner() {
        context.leave(word);
    }
    on_failure.into_inner()
}

/// Looks at what belongs to the goroutine that calls it; `None` outside of goroutines.
#[inline]
pub(crate) fn with_current<R>(look: impl FnOnce(&Green) -> R) -> Option<R> {
    with_word(word(), look)
}

/// [`with_current`] for a wait: the goroutine ends as overflowed unless it has `bytes` of stack left.
#[inline]
pub(crate) fn with_current_and_stack<R>(
    bytes: usize,
    look: impl FnOnce(&Green, Current<'_>) -> R,
) -> Option<R> {
    citius_goroutine::with_current(|current| {
        let current = current?;
        current.require_stack(bytes);
        with_word(current.word(), |green| look(green, current))
    })
}

#[inline]
fn with_word<R>(word: usize, look: impl FnOnce(&Green) -> R) -> Option<R> {
    let pointer = word as *const Green;
    // SAFETY: it lives until the goroutine has ended, and this is the goroutine: outside of goroutines there is no word.
    let green = unsafe { pointer.as_ref() }?;
    Some(look(green))
}

static CXX_GLOBALS: AtomicUsize = AtomicUsize::new(0);

/// Goroutines handle exceptions of C++ from now on.
pub(crate) fn set_cxx_globals(globals: CxxGlobals) {
    CXX_GLOBALS.store(globals as usize, Ordering::Release);
}

/// Takes the exceptions that are being handled from the thread: they are the goroutine's.
#[inline]
fn exchange_exceptions(exceptions: [usize; 2]) -> [usize; 2] {
    match CXX_GLOBALS.load(Ordering::Acquire) {
        0 => exceptions,
        globals => exchange_exceptions_at(globals, exceptions),
    }
}

#[inline(never)]
fn exchange_exceptions_at(globals: usize, exceptions: [usize; 2]) -> [usize; 2] {
    // SAFETY: `set_cxx_globals` has stored a function of this type.
    let globals = unsafe { std::mem::transmute::<usize, CxxGlobals>(globals) };
    // SAFETY: it returns the thread's own (Itanium C++ ABI, 2.2.2): a pointer and a number.
    let place = unsafe { globals() };
    // SAFETY: the place is the thread's own, and no code of C++ runs meanwhile.
    unsafe { place.replace(exceptions) }
}

/// Parks the goroutine, which takes along the exceptions that it handles. The caller has [left](CurrentCall::leave_to_wait) its call.
#[inline]
pub(crate) fn park(current: Current<'_>) {
    let exceptions = exchange_exceptions([0; 2]);
    citius_goroutine::park_as(current);
    exchange_exceptions(exceptions);
}

/// Lets others run; the goroutine stays ready.
///
/// # Errors
/// It must not do so now.
pub(crate) fn yield_now() -> Result<(), Mistake> {
    let call = CurrentCall::leave_to_wait()?;
    let exceptions = exchange_exceptions([0; 2]);
    citius_goroutine::yield_now();
    exchange_exceptions(exceptions);
    if call.is_one() {
        call.return_to();
    }
    Ok(())
}

/// Tells of failures what belongs to the goroutine.
pub(crate) struct Failures;

impl Observer for Failures {
    fn failed(&self, word: usize, failure: Failure) {
        CurrentCall::leave();
        exchange_exceptions([0; 2]);
        interpreter().release_abandoned();
        if let Some(on_failure) = end(word) {
            on_failure(failure);
        }
    }
}
