//! One wait: claimed once, completed once, woken once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a waiting caller learns that its wait is over.
pub trait Wake<V>: Sized {
    /// What wakes [residents](crate::Resident) of one thread, from any thread.
    type Home: Clone;
    /// What wakes residents from their own thread.
    type Here;

    /// Called once, from any thread, when the outcome is there. No lock is held.
    fn wake(ticket: Arc<Ticket<V, Self>>);

    /// Called, from any thread, with a value that waited and was not sent: its send was cancelled, or another case of its select
    /// was done. No lock is held.
    fn unsent(value: V) {
        drop(value);
    }

    /// What wakes them from other threads.
    fn home(here: &Self::Here) -> Self::Home;

    /// Called once, from any thread, when the wait of the resident `key` of `home` is over. No lock is held.
    fn wake_resident(home: &Self::Home, key: u64);

    /// Called once, on the thread of the residents, when the wait of the resident `key` is over. No lock is held.
    fn wake_here(here: &Self::Here, key: u64);
}

/// What an operation came to, and which of the cases it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<V> {
    /// Index of the case in a select; 0 of a lone operation.
    pub case: usize,
    /// What happened to it.
    pub event: Event<V>,
}

/// What happened to an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<V> {
    /// A value was received.
    Received(V),
    /// There was nothing left to receive: the channel is closed.
    Drained,
    /// The value was sent.
    Sent,
    /// The value was not sent: the channel is closed.
    Refused(V),
}

/// A ticket is in use elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillShared;

/// One wait for one of several operations.
///
/// States: free → claimed (an operation is about to complete it, or has cancelled it) → complete.
#[derive(Debug)]
pub struct Ticket<V, W> {
    is_done: AtomicBool,
    state: Mutex<State<V>>,
    waker: W,
}

#[derive(Debug)]
struct State<V> {
    is_claimed: bool,
    outcome: Option<Outcome<V>>,
}

impl<V, W> Ticket<V, W> {
    /// A ticket that no operation waits with yet.
    pub fn new(waker: W) -> Self {
        Self {
            is_done: AtomicBool::new(false),
            state: Mutex::new(State {
                is_claimed: false,
                outcome: None,
            }),
            waker,
        }
    }

    /// Takes the right to complete or cancel; true for one caller only.
    ///
    /// A caller that claims in order to cancel must then call [`Channel::forget`](crate::Channel::forget) on
    /// each channel. After false there is an outcome, or another thread is about to write it.
    pub fn claim(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_claimed, true)
    }

    /// Whether there is an outcome to take.
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// The outcome, once.
    pub fn take(&self) -> Option<Outcome<V>> {
        self.lock().outcome.take()
    }

    /// Takes the outcome, if there is one, and makes the ticket fit for another wait.
    ///
    /// # Errors
    /// Something else refers to it still: a queue, or the operation that has completed it. Nothing is changed.
    #[inline]
    pub fn renew(this: &mut Arc<Self>) -> Result<Option<Outcome<V>>, StillShared> {
        let ticket = Arc::get_mut(this).ok_or(StillShared)?;
        *ticket.is_done.get_mut() = false;
        let state = ticket.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.is_claimed = false;
        Ok(state.outcome.take())
    }

    /// How the waiting caller is woken.
    pub fn waker(&self) -> &W {
        &self.waker
    }

    /// Claims it and writes the outcome, with one lock, unless it is claimed: then `with` is given back.
    #[inline]
    pub(crate) fn complete<T>(
        &self,
        case: usize,
        with: T,
        event: impl FnOnce(T) -> Event<V>,
    ) -> Result<(), T> {
        let mut state = self.lock();
        if state.is_claimed {
            return Err(with);
        }
        state.is_claimed = true;
        let event = event(with);
        debug_assert!(state.outcome.is_none(), "a ticket is completed once");
        state.outcome = Some(Outcome { case, event });
        drop(state);
        self.is_done.store(true, Ordering::Release);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
