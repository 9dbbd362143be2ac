//! A channel: a buffer, two queues of waiters, and whether it is closed.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::effects::{Effects, Woken};
use crate::lock::{Guard, Lock};
use crate::resident::{Begun, Completion, Record, Resident};
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

/// Which resident is to be woken when an operation at home is done and the lock is free.
struct ToWake(Option<u64>);

/// An operation that waits in the queue of a channel.
pub(crate) struct Waiter<V, W: Wake<V>> {
    party: Party<V, W>,
    /// What a sender with a ticket sends; that of a resident is in its record.
    pub(crate) value: Option<V>,
}

enum Party<V, W: Wake<V>> {
    /// With the case of its select.
    Ticket(Arc<Ticket<V, W>>, usize),
    /// With its number at home.
    Resident(Record, u64),
}

/// A resident's wait.
struct Wait<V> {
    /// What it sends until it is over; then what it has received, or what could not be sent.
    value: Option<V>,
    /// What it has come to.
    completion: Option<Completion>,
}

pub(crate) struct State<V, W: Wake<V>> {
    /// Longer than the capacity only by values that were put back.
    buffer: VecDeque<V>,
    capacity: usize,
    receivers: VecDeque<Waiter<V, W>>,
    senders: VecDeque<Waiter<V, W>>,
    is_closed: bool,
    /// Waits of residents of `home`.
    waits: Vec<Wait<V>>,
    free_waits: Vec<u32>,
    home: Option<(NonZeroU64, W::Home)>,
    /// The lock is confined to the thread of `home`.
    is_confined: bool,
}

impl<V, W: Wake<V>> Channel<V, W> {
    /// An open channel. With a `capacity` of zero every send waits for its receiver.
    pub fn new(capacity: usize) -> Self {
        Self::make(capacity, false)
    }

    /// An open channel of values that need no [visits](Self::try_visit); it may become confined to a thread.
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

    /// [`Self::try_receive`] for `resident`, if there is one.
    #[inline]
    pub fn try_receive_as(&self, resident: Option<&Resident<V, W>>) -> Attempt<V> {
        if let Some(value) = self.try_receive_at_home(resident) {
            return Attempt::Done(Event::Received(value));
        }
        self.with_for(resident, State::receive)
            .map_or(Attempt::Blocked(None), Attempt::Done)
    }

    /// Sends if a receiver waits or the buffer has room; on a closed channel the attempt is done with an error.
    pub fn try_send(&self, value: V) -> Attempt<V> {
        self.try_send_as(value, None)
    }

    /// [`Self::try_send`] for `resident`, if there is one.
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

    /// [`Self::receive`] for `resident`, if there is one.
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

    /// [`Self::send`] for `resident`, if there is one.
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

    /// [`Self::forget`] for `resident`, if the ticket is a resident's.
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
        let waits = state.waits.iter().filter_map(|wait| wait.value.as_ref());
        let mut values = state.buffer.iter().chain(sent).chain(waits);
        values.try_for_each(&mut visit)
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

/// Operations of residents. Each does what the one with a ticket does. A value is moved from its sender's place to the channel and from
/// there to its receiver's, and is not returned through functions, each of which would move it again.
impl<V, W: Wake<V>> Channel<V, W> {
    /// Receives into `place`, which is empty, or waits with a record. `None`: the channel is not confined to the resident's thread,
    /// and nothing is done. A channel that one thread uses often enough in a row becomes confined to it.
    #[inline]
    pub fn receive_at_home(
        &self,
        place: &mut Option<V>,
        resident: &Resident<V, W>,
    ) -> Option<Begun> {
        debug_assert!(place.is_none(), "what is received has a place of its own");
        let Some(mut state) = self.state.enter(resident.thread()) else {
            self.note_use(resident);
            return None;
        };
        if let Some(to_wake) = state.receive_from_resident(place) {
            drop(state);
            to_wake.wake(resident);
            return Some(Begun::Done(Completion::Transferred));
        }
        if state.buffer.is_empty() && state.senders.is_empty() && !state.is_closed {
            return Some(Begun::Waits(state.queue_receiver(resident)));
        }
        Some(Self::finish_receive(state, place, resident))
    }

    /// Sends the value in `place`, or waits with a record; the value is taken in either case, unless the channel is closed. `None`: as of
    /// [`receive_at_home`](Self::receive_at_home).
    #[inline]
    pub fn send_at_home(&self, place: &mut Option<V>, resident: &Resident<V, W>) -> Option<Begun> {
        debug_assert!(place.is_some(), "there is a value to be sent");
        let Some(mut state) = self.state.enter(resident.thread()) else {
            self.note_use(resident);
            return None;
        };
        if let Some(to_wake) = state.send_to_resident(place) {
            drop(state);
            to_wake.wake(resident);
            return Some(Begun::Done(Completion::Transferred));
        }
        if state.capacity == 0 && state.receivers.is_empty() && !state.is_closed {
            return Some(Begun::Waits(state.queue_sender(resident, place)));
        }
        Self::finish_send(state, place, resident)
    }

    /// What became of a resident's wait, if it is over; the record is used up then. `place` gets what was received, or what could not
    /// be sent.
    #[inline]
    pub fn fetch(
        &self,
        record: Record,
        place: &mut Option<V>,
        resident: &Resident<V, W>,
    ) -> Option<Completion> {
        self.lock_for(Some(resident)).fetch(record, place)
    }

    /// Gives a resident's wait up, unless it is over. The record is used up. `place` gets what [`fetch`](Self::fetch) would give, or
    /// the value that was to be sent.
    pub fn give_up(
        &self,
        record: Record,
        place: &mut Option<V>,
        resident: &Resident<V, W>,
    ) -> Option<Completion> {
        self.with_for(Some(resident), |state, effects| {
            let completion = state.fetch(record, place);
            if completion.is_none() {
                state.forget(
                    effects,
                    |party| matches!(party, Party::Resident(other, _) if *other == record),
                );
                *place = state.waits[record.0 as usize].value.take();
                state.free_waits.push(record.0);
            }
            completion
        })
    }

    #[inline(never)]
    fn finish_receive(
        mut state: Guard<'_, State<V, W>>,
        place: &mut Option<V>,
        resident: &Resident<V, W>,
    ) -> Begun {
        let mut effects = Effects::default();
        let begun = match state.receive(&mut effects) {
            Some(event) => Begun::Done(Completion::of(event, place)),
            None => Begun::Waits(state.queue_receiver(resident)),
        };
        drop(state);
        effects.carry_out(Some(resident));
        begun
    }

    #[inline(never)]
    fn finish_send(
        mut state: Guard<'_, State<V, W>>,
        place: &mut Option<V>,
        resident: &Resident<V, W>,
    ) -> Option<Begun> {
        let mut effects = Effects::default();
        let begun = match state.send(place.take()?, &mut effects) {
            Ok(event) => Begun::Done(Completion::of(event, place)),
            Err(value) => {
                *place = Some(value);
                Begun::Waits(state.queue_sender(resident, place))
            }
        };
        drop(state);
        effects.carry_out(Some(resident));
        Some(begun)
    }

    /// Receives from a resident or from the buffer, if the channel is confined to the thread of `resident`. `None`: nothing is done.
    #[inline]
    fn try_receive_at_home(&self, resident: Option<&Resident<V, W>>) -> Option<V> {
        let resident = resident?;
        let mut state = self.state.enter(resident.thread())?;
        let mut received = None;
        let to_wake = state.receive_from_resident(&mut received)?;
        drop(state);
        to_wake.wake(resident);
        received
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
                if state.waits.len() != state.free_waits.len() {
                    // Residents of the home before wait still, or have not fetched their events.
                    return false;
                }
                state.home = Some((thread, W::home(resident.here())));
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
            waits: Vec::new(),
            free_waits: Vec::new(),
            home: None,
            is_confined: false,
        }
    }

    fn unconfine(&mut self) {
        self.is_confined = false;
    }

    /// A record of a new wait.
    #[inline]
    fn begin_wait(&mut self) -> Record {
        Record(self.free_waits.pop().unwrap_or_else(|| {
            self.waits.push(Wait {
                value: None,
                completion: None,
            });
            u32::try_from(self.waits.len() - 1).expect("goroutines are fewer than 2^32")
        }))
    }

    #[inline]
    fn queue_receiver(&mut self, resident: &Resident<V, W>) -> Record {
        let record = self.begin_wait();
        self.receivers.push_back(Waiter {
            party: Party::Resident(record, resident.key()),
            value: None,
        });
        record
    }

    #[inline]
    fn queue_sender(&mut self, resident: &Resident<V, W>, place: &mut Option<V>) -> Record {
        let record = self.begin_wait();
        self.waits[record.0 as usize].value = place.take();
        self.senders.push_back(Waiter {
            party: Party::Resident(record, resident.key()),
            value: None,
        });
        record
    }

    #[inline]
    fn fetch(&mut self, record: Record, place: &mut Option<V>) -> Option<Completion> {
        let wait = &mut self.waits[record.0 as usize];
        let completion = wait.completion.take()?;
        *place = wait.value.take();
        self.free_waits.push(record.0);
        Some(completion)
    }

    /// The resident that waits first in a queue, if one does: it is taken out.
    #[inline]
    fn pop_resident(queue: &mut VecDeque<Waiter<V, W>>) -> Option<(Record, u64)> {
        let &Waiter {
            party: Party::Resident(record, key),
            ..
        } = queue.front()?
        else {
            return None;
        };
        // There is nothing to drop in it.
        std::mem::forget(queue.pop_front());
        Some((record, key))
    }

    /// Receives what is buffered or what a resident sends, if no party with a ticket comes into it: the resident to wake. `None`:
    /// nothing is done.
    #[inline]
    fn receive_from_resident(&mut self, place: &mut Option<V>) -> Option<ToWake> {
        if self.buffer.is_empty() {
            let (record, key) = Self::pop_resident(&mut self.senders)?;
            let wait = &mut self.waits[record.0 as usize];
            *place = wait.value.take();
            wait.completion = Some(Completion::Transferred);
            return Some(ToWake(Some(key)));
        }
        if !self.senders.is_empty() {
            return None;
        }
        *place = self.buffer.pop_front();
        Some(ToWake(None))
    }

    /// Sends to a resident or into the buffer, as [`receive_from_resident`](Self::receive_from_resident) receives.
    #[inline]
    fn send_to_resident(&mut self, place: &mut Option<V>) -> Option<ToWake> {
        if self.is_closed {
            return None;
        }
        if let Some((record, key)) = Self::pop_resident(&mut self.receivers) {
            let wait = &mut self.waits[record.0 as usize];
            wait.value = place.take();
            wait.completion = Some(Completion::Transferred);
            return Some(ToWake(Some(key)));
        }
        if self.buffer.len() >= self.capacity || !self.receivers.is_empty() {
            return None;
        }
        self.buffer.push_back(place.take()?);
        Some(ToWake(None))
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
            let value = match &waiter.party {
                Party::Ticket(..) => waiter.value.take(),
                Party::Resident(record, _) => self.waits[record.0 as usize].value.take(),
            };
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
                let wait = &mut self.waits[record.0 as usize];
                let value = wait.value.take();
                wait.completion = Some(Completion::of(event(with), &mut wait.value));
                let woken = match &self.home {
                    Some((_, home)) if !self.is_confined => Woken::There(home.clone(), key),
                    _ => Woken::Here(key),
                };
                effects.wake(woken);
                Ok(value)
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

impl ToWake {
    /// Wakes it, on behalf of another resident of its thread. No lock is held.
    #[inline]
    fn wake<V, W: Wake<V>>(self, resident: &Resident<V, W>) {
        if let Self(Some(key)) = self {
            W::wake_here(resident.here(), key);
        }
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);
