//! A party that runs on one thread always, such as a goroutine of a reactor.
//!
//! Its lone waits need no ticket on a channel that is confined to its thread: the channel keeps a record of the wait, and the party
//! fetches the event from it under the channel's lock.
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
    home: W::Home,
    _of_one_thread: PhantomData<*const V>,
}

impl<V, W: Wake<V>> Resident<V, W> {
    /// The party `key` of `home`, which belongs to `thread`.
    ///
    /// # Safety
    /// All residents with the same `thread` are used on one thread, and have the same home.
    pub unsafe fn new(thread: NonZeroU64, home: W::Home, key: u64) -> Self {
        Self {
            thread,
            key,
            home,
            _of_one_thread: PhantomData,
        }
    }

    pub(crate) fn thread(&self) -> NonZeroU64 {
        self.thread
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    pub(crate) fn home(&self) -> &W::Home {
        &self.home
    }
}

/// The place of a resident's wait in its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record(pub(crate) u32);

/// What became of a resident's operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun<V> {
    /// It is done.
    Done(Event<V>),
    /// It waits. The resident is woken when there may be an event to fetch.
    Waits(Record),
}
