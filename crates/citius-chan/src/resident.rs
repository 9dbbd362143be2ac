//! A party that runs on one thread always, such as a goroutine of a reactor.
//!
//! Its lone waits need no ticket on a channel that is confined to its thread: the channel keeps a record of the wait, and the party
//! fetches from it, under the channel's lock, what the wait has come to.
#![allow(
    unsafe_code,
    reason = "that a party stays on its thread is for its maker to promise"
)]

use std::marker::PhantomData;
use std::num::NonZeroU64;

use crate::ticket::{Event, Wake};

/// A party of one thread, with the number of its thread, its own number there, and what wakes parties of that thread.
#[derive(Debug)]
pub struct Resident<V, W: Wake<V>> {
    thread: NonZeroU64,
    key: u64,
    here: W::Here,
    _of_one_thread: PhantomData<*const V>,
}

impl<V, W: Wake<V>> Resident<V, W> {
    /// The party `key` of `thread`, whose parties `here` wakes.
    ///
    /// # Safety
    /// All residents with the same `thread` are used on one thread, and have the same home.
    pub unsafe fn new(thread: NonZeroU64, here: W::Here, key: u64) -> Self {
        Self {
            thread,
            key,
            here,
            _of_one_thread: PhantomData,
        }
    }

    pub(crate) fn thread(&self) -> NonZeroU64 {
        self.thread
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    pub(crate) fn here(&self) -> &W::Here {
        &self.here
    }
}

/// The place of a resident's wait in its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record(pub(crate) u32);

/// What became of a resident's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is done.
    Done(Completion),
    /// It waits. The resident is woken when there may be something to fetch.
    Waits(Record),
}

/// What a resident's operation has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The value was sent or received.
    Transferred,
    /// It was not: the channel is closed, and there is nothing left to receive.
    Closed,
}

impl Completion {
    /// What an event is of a resident's operation. `place` gets the value that it gives.
    #[inline]
    pub fn of<V>(event: Event<V>, place: &mut Option<V>) -> Self {
        match event {
            Event::Received(value) => {
                *place = Some(value);
                Self::Transferred
            }
            Event::Sent => Self::Transferred,
            Event::Drained => Self::Closed,
            Event::Refused(value) => {
                *place = Some(value);
                Self::Closed
            }
        }
    }
}
