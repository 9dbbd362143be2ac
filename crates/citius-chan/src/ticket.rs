//! One wait: claimed once, completed once, woken once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How a waiting caller learns that its wait is over.
pub trait Wake<V>: Sized {
    /// Called once, from any thread, when the outcome is there. No lock is held.
    fn wake(ticket: Arc<Ticket<V, Self>>);
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
    is_claimed: AtomicBool,
    is_done: AtomicBool,
    outcome: Mutex<Option<Outcome<V>>>,
    waker: W,
}

impl<V, W> Ticket<V, W> {
    /// A ticket that no operation waits with yet.
    pub fn new(waker: W) -> Self {
        Self {
            is_claimed: AtomicBool::new(false),
            is_done: AtomicBool::new(false),
            outcome: Mutex::new(None),
            waker,
        }
    }

    /// Takes the right to complete or cancel; true for one caller only.
    ///
    /// A caller that claims in order to cancel must then call [`Channel::forget`](crate::Channel::forget) on
    /// each channel. After false there is an outcome, or another thread is about to write it.
    pub fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::AcqRel)
    }

    /// Whether there is an outcome to take.
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// The outcome, once.
    pub fn take(&self) -> Option<Outcome<V>> {
        self.outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Takes the outcome, if there is one, and makes the ticket fit for another wait.
    ///
    /// # Errors
    /// Something else refers to it still: a queue, or the operation that has completed it. Nothing is changed.
    #[inline]
    pub fn renew(this: &mut Arc<Self>) -> Result<Option<Outcome<V>>, StillShared> {
        let ticket = Arc::get_mut(this).ok_or(StillShared)?;
        *ticket.is_claimed.get_mut() = false;
        *ticket.is_done.get_mut() = false;
        let outcome = ticket.outcome.get_mut();
        Ok(outcome.unwrap_or_else(PoisonError::into_inner).take())
    }

    /// How the waiting caller is woken.
    pub fn waker(&self) -> &W {
        &self.waker
    }

    /// Writes the outcome. The caller has claimed the ticket.
    pub(crate) fn complete(&self, outcome: Outcome<V>) {
        let before = self
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(outcome);
        debug_assert!(before.is_none(), "only one may claim a ticket");
        self.is_done.store(true, Ordering::Release);
    }
}
