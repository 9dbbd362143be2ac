//! A channel: a buffer, two queues of waiters, and whether it is closed.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::effects::{Effects, Woken};
use crate::lock::{Guard, Lock};
use crate::resident::{Begun, Record, Resident};
use crate::ticket::{Event, Ticket, Wake};

/// A channel of `V`, whose waiters are woken by `W`.
pub struct Channel<V, W: Wake<V>> {
    /// The order in which the locks of several channels are taken.
    id: u64,
    capacity: usize,
    state: Lock<State<V, W>>,
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
pub(crate) struct Waiter<V, W: Wake<V>> {
    party: Party<V, W>,
    /// What a sender sends.
    pub(crate) value: Option<V>,
}

enum Party<V, W: Wake<V>> {
    /// With the case of its select.
    Ticket(Arc<Ticket<V, W>>, usize),
    /// With its number at home.
    Resident(Record, u64),
}

pub(crate) struct State<V, W: Wake<V>> {
    /// Longer than the capacity only by values that were put back.
    buffer: VecDeque<V>,
    capacity: usize,
    receivers: VecDeque<Waiter<V, W>>,
    senders: VecDeque<Waiter<V, W>>,
    is_closed: bool,
    /// Waits of residents of `home`: `Some` is an event to be fetched.
    records: Vec<Option<Event<V>>>,
    free_records: Vec<u32>,
    home: Option<(NonZeroU64, W::Home)>,
    /// The lock is confined to the thread of `home`.
    is_confined: bool,
}

impl<V, W: Wake<V>> Channel<V, W> {
    /// An open channel. With a `capacity` of zero every send waits for its receiver.
    pub fn new(capacity: usize) -> Self {
        Self::make(capacity, false)
    }

    /// The same, of values that need no [visits](Self::try_visit): it may become confined to a thread.
    pub fn confinable(capacity: usize) -> Self {
        Self::make(capacity, true)
    }

    fn make(capacity: usize, is_confinable: bool) -> Self {
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            capacity,
            state: Lock::new(State::new(capacity), is_confinable),
        }
    }

    /// Receives, if there is something to receive or nothing more will come.
    pub fn try_receive(&self) -> Attempt<V> {
        self.try_receive_as(None)
    }

    /// The same, for `resident` if there is one.
    #[inline]
    pub fn try_receive_as(&self, resident: Option<&Resident<V, W>>) -> Attempt<V> {
        self.with_for(resident, State::receive)
            .map_or(Attempt::Blocked(None), Attempt::Done)
    }

    /// Sends if a receiver waits or the buffer has room; on a closed channel the attempt is done with an error.
    pub fn try_send(&self, value: V) -> Attempt<V> {
        self.try_send_as(value, None)
    }

    /// The same, for `resident` if there is one.
    #[inline]
    pub fn try_send_as(&self, value: V, resident: Option<&Resident<V, W>>) -> Attempt<V> {
        match self.with_for(resident, |state, effects| state.send(value, effects)) {
            Ok(event) => Attempt::Done(event),
            Err(value) => Attempt::Blocked(Some(value)),
        }
    }

    /// Receives, or queues `ticket` for it.
    pub fn receive(&self, ticket: &Arc<Ticket<V, W>>) -> Option<Event<V>> {
        self.receive_as(ticket, None)
    }

    /// The same, for `resident` if there is one.
    pub fn receive_as(
        &self,
        ticket: &Arc<Ticket<V, W>>,
        resident: Option<&Resident<V, W>>,
    ) -> Option<Event<V>> {
        self.with_for(resident, |state, effects| {
            let event = state.receive(effects);
            if event.is_none() {
                state.queue(ticket, 0, None);
            }
            event
        })
    }

    /// Sends, or queues `ticket` for it.
    pub fn send(&self, value: V, ticket: &Arc<Ticket<V, W>>) -> Option<Event<V>> {
        self.send_as(value, ticket, None)
    }

    /// The same, for `resident` if there is one.
    pub fn send_as(
        &self,
        value: V,
        ticket: &Arc<Ticket<V, W>>,
        resident: Option<&Resident<V, W>>,
    ) -> Option<Event<V>> {
        self.with_for(resident, |state, effects| {
            match state.send(value, effects) {
                Ok(event) => Some(event),
                Err(value) => {
                    state.queue(ticket, 0, Some(value));
                    None
                }
            }
        })
    }

    /// Takes `ticket` out of the queues: it was cancelled, or completed by another case of its select.
    pub fn forget(&self, ticket: &Arc<Ticket<V, W>>) {
        self.forget_as(ticket, None);
    }

    /// The same, for `resident` if it is one whose ticket it is.
    pub fn forget_as(&self, ticket: &Arc<Ticket<V, W>>, resident: Option<&Resident<V, W>>) {
        self.with_for(resident, |state, effects| {
            state.forget(
                effects,
                |party| matches!(party, Party::Ticket(other, _) if Arc::ptr_eq(other, ticket)),
            );
        });
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

    /// Whether one thread has it for itself, for a test to see.
    pub fn is_confined(&self) -> bool {
        self.state.is_confined()
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

    /// Calls `visit` with each value that is kept here, unless the channel is in use at this moment or confined to a thread.
    ///
    /// # Errors
    /// The first of `visit`, which is the last call.
    pub fn try_visit<E>(&self, mut visit: impl FnMut(&V) -> Result<(), E>) -> Result<(), E> {
        let Some(state) = self.state.try_lock() else {
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

    fn lock(&self) -> Guard<'_, State<V, W>> {
        self.state.lock(State::unconfine)
    }

    /// Locks it for `resident` if there is one.
    #[inline]
    pub(crate) fn lock_for(&self, resident: Option<&Resident<V, W>>) -> Guard<'_, State<V, W>> {
        match resident {
            Some(resident) => self.state.lock_as(resident.thread(), State::unconfine),
            None => self.lock(),
        }
    }

    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut State<V, W>, &mut Effects<V, W>) -> R) -> R {
        self.with_for(None, work)
    }

    #[inline]
    pub(crate) fn with_for<R>(
        &self,
        resident: Option<&Resident<V, W>>,
        work: impl FnOnce(&mut State<V, W>, &mut Effects<V, W>) -> R,
    ) -> R {
        let mut effects = Effects::default();
        let result = work(&mut self.lock_for(resident), &mut effects);
        effects.carry_out(resident);
        result
    }
}

/// Operations of residents. Each does what the one with a ticket does.
impl<V, W: Wake<V>> Channel<V, W> {
    /// Receives, or waits with a record. `None`: the channel is not confined to the resident's thread, and nothing is done. A
    /// channel that one thread uses often enough in a row becomes confined to it.
    #[inline]
    pub fn receive_at_home(&self, resident: &Resident<V, W>) -> Option<Begun<V>> {
        let Some(mut state) = self.state.enter(resident.thread()) else {
            self.note_use(resident);
            return None;
        };
        let mut effects = Effects::default();
        let begun = match state.receive(&mut effects) {
            Some(event) => Begun::Done(event),
            None => Begun::Waits(state.queue_resident(resident, None)),
        };
        drop(state);
        effects.carry_out(Some(resident));
        Some(begun)
    }

    /// Sends, or waits with a record.
    ///
    /// # Errors
    /// The value, where [`receive_at_home`](Self::receive_at_home) returns `None`.
    #[inline]
    pub fn send_at_home(&self, value: V, resident: &Resident<V, W>) -> Result<Begun<V>, V> {
        let Some(mut state) = self.state.enter(resident.thread()) else {
            self.note_use(resident);
            return Err(value);
        };
        let mut effects = Effects::default();
        let begun = match state.send(value, &mut effects) {
            Ok(event) => Begun::Done(event),
            Err(value) => Begun::Waits(state.queue_resident(resident, Some(value))),
        };
        drop(state);
        effects.carry_out(Some(resident));
        Ok(begun)
    }

    /// The event of a resident's wait, if there is one; the record is used up then.
    #[inline]
    pub fn fetch(&self, record: Record, resident: &Resident<V, W>) -> Option<Event<V>> {
        self.lock_for(Some(resident)).fetch(record)
    }

    /// Gives a resident's wait up, unless there is an event. The record is used up. A value that was to be sent goes to
    /// [`Wake::unsent`].
    pub fn give_up(&self, record: Record, resident: &Resident<V, W>) -> Option<Event<V>> {
        self.with_for(Some(resident), |state, effects| {
            let event = state.fetch(record);
            if event.is_none() {
                state.forget(
                    effects,
                    |party| matches!(party, Party::Resident(other, _) if *other == record),
                );
                state.free_records.push(record.0);
            }
            event
        })
    }

    /// Closes it; see [`close`](Self::close).
    ///
    /// # Errors
    /// As of `close`.
    pub fn close_as(&self, resident: &Resident<V, W>) -> Result<(), AlreadyClosed> {
        self.with_for(Some(resident), State::close)
    }

    #[inline]
    fn note_use(&self, resident: &Resident<V, W>) {
        if self.state.note_use(resident.thread()) {
            self.confine(resident);
        }
    }

    #[cold]
    fn confine(&self, resident: &Resident<V, W>) {
        let thread = resident.thread();
        self.state.confine(thread, State::unconfine, |state| {
            let is_home = matches!(state.home, Some((home, _)) if home == thread);
            if !is_home {
                if state.records.len() != state.free_records.len() {
                    // Residents of the home before wait still, or have not fetched their events.
                    return false;
                }
                state.home = Some((thread, resident.home().clone()));
            }
            state.is_confined = true;
            true
        });
    }
}

impl<V, W: Wake<V>> fmt::Debug for Channel<V, W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Channel")
            .field("id", &self.id)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl<V, W: Wake<V>> State<V, W> {
    fn new(capacity: usize) -> Self {
        Self {
            buffer: VecDeque::new(),
            capacity,
            receivers: VecDeque::new(),
            senders: VecDeque::new(),
            is_closed: false,
            records: Vec::new(),
            free_records: Vec::new(),
            home: None,
            is_confined: false,
        }
    }

    fn unconfine(&mut self) {
        self.is_confined = false;
    }

    #[inline]
    fn queue_resident(&mut self, resident: &Resident<V, W>, value: Option<V>) -> Record {
        let index = self.free_records.pop().unwrap_or_else(|| {
            self.records.push(None);
            u32::try_from(self.records.len() - 1).expect("goroutines are fewer than 2^32")
        });
        let record = Record(index);
        self.push(Party::Resident(record, resident.key()), value);
        record
    }

    #[inline]
    fn fetch(&mut self, record: Record) -> Option<Event<V>> {
        let event = self.records[record.0 as usize].take()?;
        self.free_records.push(record.0);
        Some(event)
    }

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
        self.push(Party::Ticket(Arc::clone(ticket), case), value);
    }

    #[inline]
    fn push(&mut self, party: Party<V, W>, value: Option<V>) {
        let queue = if value.is_some() {
            &mut self.senders
        } else {
            &mut self.receivers
        };
        queue.push_back(Waiter { party, value });
    }

    /// Hands a value to the receiver that has waited longest.
    #[inline]
    fn hand(&mut self, mut value: V, effects: &mut Effects<V, W>) -> Result<(), V> {
        while let Some(waiter) = self.receivers.pop_front() {
            match self.complete(waiter, value, Event::Received, effects) {
                Ok(_) => return Ok(()),
                Err(unsent) => value = unsent,
            }
        }
        Err(value)
    }

    /// The value of the sender that has waited longest.
    #[inline]
    fn take_sent(&mut self, effects: &mut Effects<V, W>) -> Option<V> {
        while let Some(waiter) = self.senders.pop_front() {
            if let Ok(value) = self.complete(waiter, (), |()| Event::Sent, effects) {
                debug_assert!(value.is_some(), "senders are queued with a value");
                return value;
            }
        }
        None
    }

    fn close(&mut self, effects: &mut Effects<V, W>) -> Result<(), AlreadyClosed> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Err(AlreadyClosed);
        }
        while let Some(waiter) = self.receivers.pop_front() {
            let _ = self.complete(waiter, (), |()| Event::Drained, effects);
        }
        while let Some(mut waiter) = self.senders.pop_front() {
            let value = waiter.value.take();
            let refused = |value: Option<V>| value.map_or(Event::Sent, Event::Refused);
            if let Err(value) = self.complete(waiter, value, refused, effects)
                && let Some(stale) = effects.stale.last_mut()
            {
                // It is dropped with its waiter.
                stale.value = value;
            }
        }
        Ok(())
    }

    /// Completes a waiter, which is to be woken, and returns the value that it waited with. One that is claimed is stale: then
    /// `with` is given back.
    #[inline]
    fn complete<T>(
        &mut self,
        waiter: Waiter<V, W>,
        with: T,
        event: impl FnOnce(T) -> Event<V>,
        effects: &mut Effects<V, W>,
    ) -> Result<Option<V>, T> {
        match waiter.party {
            Party::Resident(record, key) => {
                self.records[record.0 as usize] = Some(event(with));
                let woken = match &self.home {
                    Some((_, home)) if !self.is_confined => Woken::There(home.clone(), key),
                    _ => Woken::Here(key),
                };
                effects.wake(woken);
                Ok(waiter.value)
            }
            Party::Ticket(ticket, case) => match ticket.complete(case, with, event) {
                Ok(()) => {
                    effects.wake(Woken::Ticket(ticket));
                    Ok(waiter.value)
                }
                Err(with) => {
                    let party = Party::Ticket(ticket, case);
                    let value = waiter.value;
                    effects.stale.push(Waiter { party, value });
                    Err(with)
                }
            },
        }
    }

    fn forget(&mut self, effects: &mut Effects<V, W>, is_it: impl Fn(&Party<V, W>) -> bool) {
        for queue in [&mut self.receivers, &mut self.senders] {
            while let Some(index) = queue.iter().position(|waiter| is_it(&waiter.party)) {
                effects.stale.extend(queue.remove(index));
            }
        }
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);
