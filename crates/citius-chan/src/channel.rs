//! A channel: a buffer, two queues of waiters, and whether it is closed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::effects::Effects;
use crate::ticket::{Event, Ticket, Wake};

/// A channel of `V`, whose waiters are woken by `W`.
#[derive(Debug)]
pub struct Channel<V, W> {
    /// The order in which the locks of several channels are taken.
    id: u64,
    capacity: usize,
    state: Mutex<State<V, W>>,
}

/// What an operation that does not wait comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt<V> {
    /// It is done.
    Done(Event<V>),
    /// It would have to wait; a value to be sent is given back.
    Blocked(Option<V>),
}

/// A channel can be closed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyClosed;

/// An operation that waits in the queue of a channel.
#[derive(Debug)]
pub(crate) struct Waiter<V, W> {
    pub(crate) ticket: Arc<Ticket<V, W>>,
    pub(crate) case: usize,
    /// What a sender sends.
    pub(crate) value: Option<V>,
}

#[derive(Debug)]
pub(crate) struct State<V, W> {
    /// Longer than the capacity only by values that were put back.
    buffer: VecDeque<V>,
    capacity: usize,
    receivers: VecDeque<Waiter<V, W>>,
    senders: VecDeque<Waiter<V, W>>,
    is_closed: bool,
}

impl<V, W: Wake<V>> Channel<V, W> {
    /// An open channel. With a `capacity` of zero every send waits for its receiver.
    pub fn new(capacity: usize) -> Self {
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            capacity,
            state: Mutex::new(State {
                buffer: VecDeque::new(),
                capacity,
                receivers: VecDeque::new(),
                senders: VecDeque::new(),
                is_closed: false,
            }),
        }
    }

    /// Receives, if there is something to receive or nothing more will come.
    pub fn try_receive(&self) -> Attempt<V> {
        self.with(State::receive)
            .map_or(Attempt::Blocked(None), Attempt::Done)
    }

    /// Sends if a receiver waits or the buffer has room; on a closed channel the attempt is done with an error.
    pub fn try_send(&self, value: V) -> Attempt<V> {
        match self.with(|state, effects| state.send(value, effects)) {
            Ok(event) => Attempt::Done(event),
            Err(value) => Attempt::Blocked(Some(value)),
        }
    }

    /// Receives, or queues `ticket` for it.
    pub fn receive(&self, ticket: &Arc<Ticket<V, W>>) -> Option<Event<V>> {
        self.with(|state, effects| {
            let event = state.receive(effects);
            if event.is_none() {
                state.queue(ticket, 0, None);
            }
            event
        })
    }

    /// Sends, or queues `ticket` for it.
    pub fn send(&self, value: V, ticket: &Arc<Ticket<V, W>>) -> Option<Event<V>> {
        self.with(|state, effects| match state.send(value, effects) {
            Ok(event) => Some(event),
            Err(value) => {
                state.queue(ticket, 0, Some(value));
                None
            }
        })
    }

    /// Takes `ticket` out of the queues: it was cancelled, or completed by another case of its select.
    pub fn forget(&self, ticket: &Arc<Ticket<V, W>>) {
        self.with(|state, effects| state.forget(ticket, effects));
    }

    /// Gives back a value that was received and will not be used: the next receiver gets it.
    pub fn put_back(&self, value: V) {
        self.with(|state, effects| match state.hand(value, effects) {
            Ok(()) => {}
            Err(value) => state.buffer.push_front(value),
        });
    }

    /// No value will be sent any more: waiting receivers and senders are told.
    ///
    /// # Errors
    /// [`AlreadyClosed`] the second time.
    pub fn close(&self) -> Result<(), AlreadyClosed> {
        self.with(State::close)
    }

    /// Whether it is closed (there may be values left).
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Values in the buffer.
    pub fn len(&self) -> usize {
        self.lock().buffer.len()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values that the buffer takes while no receiver waits.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Receivers and senders in the queues.
    pub fn waiting(&self) -> (usize, usize) {
        let state = self.lock();
        (state.receivers.len(), state.senders.len())
    }

    /// Calls `visit` with each value that is kept here, unless the channel is in use at this moment.
    ///
    /// # Errors
    /// The first of `visit`, which is the last call.
    pub fn try_visit<E>(&self, mut visit: impl FnMut(&V) -> Result<(), E>) -> Result<(), E> {
        let Ok(state) = self.state.try_lock() else {
            return Ok(());
        };
        let sent = state
            .senders
            .iter()
            .filter_map(|waiter| waiter.value.as_ref());
        state.buffer.iter().chain(sent).try_for_each(&mut visit)
    }

    /// Takes all values out of the buffer.
    pub fn clear(&self) {
        let values = std::mem::take(&mut self.lock().buffer);
        drop(values);
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<V, W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut State<V, W>, &mut Effects<V, W>) -> R) -> R {
        let mut effects = Effects::default();
        let result = work(&mut self.lock(), &mut effects);
        effects.carry_out();
        result
    }
}

impl<V, W> State<V, W> {
    /// The next value, or that there is none any more; `None`: wait.
    #[inline]
    pub(crate) fn receive(&mut self, effects: &mut Effects<V, W>) -> Option<Event<V>> {
        if let Some(value) = self.buffer.pop_front() {
            if self.buffer.len() < self.capacity
                && let Some(sent) = self.take_sent(effects)
            {
                self.buffer.push_back(sent);
            }
            return Some(Event::Received(value));
        }
        if let Some(value) = self.take_sent(effects) {
            return Some(Event::Received(value));
        }
        self.is_closed.then_some(Event::Drained)
    }

    /// `Err` gives the value back: wait.
    #[inline]
    pub(crate) fn send(&mut self, value: V, effects: &mut Effects<V, W>) -> Result<Event<V>, V> {
        if self.is_closed {
            return Ok(Event::Refused(value));
        }
        let value = match self.hand(value, effects) {
            Ok(()) => return Ok(Event::Sent),
            Err(value) => value,
        };
        if self.buffer.len() < self.capacity {
            self.buffer.push_back(value);
            return Ok(Event::Sent);
        }
        Err(value)
    }

    /// Queues a sender (who has a value) or a receiver.
    pub(crate) fn queue(&mut self, ticket: &Arc<Ticket<V, W>>, case: usize, value: Option<V>) {
        let queue = if value.is_some() {
            &mut self.senders
        } else {
            &mut self.receivers
        };
        queue.push_back(Waiter {
            ticket: Arc::clone(ticket),
            case,
            value,
        });
    }

    /// Hands a value to the receiver that has waited longest.
    fn hand(&mut self, mut value: V, effects: &mut Effects<V, W>) -> Result<(), V> {
        while let Some(waiter) = self.receivers.pop_front() {
            match waiter.ticket.complete(waiter.case, value, Event::Received) {
                Ok(()) => {
                    effects.woken.push(waiter.ticket);
                    return Ok(());
                }
                Err(unsent) => value = unsent,
            }
            effects.stale.push(waiter);
        }
        Err(value)
    }

    /// The value of the sender that has waited longest.
    fn take_sent(&mut self, effects: &mut Effects<V, W>) -> Option<V> {
        let waiter = complete_first(&mut self.senders, effects, |_| Event::Sent)?;
        debug_assert!(waiter.value.is_some(), "senders are queued with a value");
        effects.woken.push(waiter.ticket);
        waiter.value
    }

    fn close(&mut self, effects: &mut Effects<V, W>) -> Result<(), AlreadyClosed> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Err(AlreadyClosed);
        }
        while let Some(waiter) = complete_first(&mut self.receivers, effects, |_| Event::Drained) {
            effects.woken.push(waiter.ticket);
        }
        let refused = |value: &mut Option<V>| value.take().map_or(Event::Sent, Event::Refused);
        while let Some(waiter) = complete_first(&mut self.senders, effects, refused) {
            effects.woken.push(waiter.ticket);
        }
        Ok(())
    }

    fn forget(&mut self, ticket: &Arc<Ticket<V, W>>, effects: &mut Effects<V, W>) {
        for queue in [&mut self.receivers, &mut self.senders] {
            while let Some(index) = queue
                .iter()
                .position(|waiter| Arc::ptr_eq(&waiter.ticket, ticket))
            {
                effects.stale.extend(queue.remove(index));
            }
        }
    }
}

/// Completes the first waiter that is not claimed, and returns it. It is to be woken.
#[inline]
fn complete_first<V, W>(
    queue: &mut VecDeque<Waiter<V, W>>,
    effects: &mut Effects<V, W>,
    event: impl Fn(&mut Option<V>) -> Event<V>,
) -> Option<Waiter<V, W>> {
    loop {
        let mut waiter = queue.pop_front()?;
        let completed = waiter
            .ticket
            .complete(waiter.case, &mut waiter.value, &event);
        if completed.is_ok() {
            return Some(waiter);
        }
        effects.stale.push(waiter);
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);
