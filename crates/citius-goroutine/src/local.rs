//! The scheduler of one thread: a run queue that the thread's owner works off.
//!
//! All but the inbox is the thread's own. A wake-up from another thread goes through the inbox, and the owner is asked for a run by
//! the function that it gave; so is a wake-up on the thread itself when no run is certain to come.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use citius_coroutine::{Coroutine, Progress, Stack, StackError, Stacks};

use crate::current::{Goroutine, Scheduler, set_scheduler, with_scheduler};
use crate::observer::{Failure, Observer};
use crate::timers::{Nanos, Timers};

/// A scheduler of the thread that has made it; clones are the same scheduler.
#[derive(Clone)]
pub struct Local(Rc<State>);

/// A goroutine of a [`Local`].
#[derive(Clone, Debug)]
pub struct LocalHandle {
    shared: Arc<Shared>,
    key: Key,
}

/// What wakes the goroutines of one [`Local`] by their [numbers](LocalHandle::number).
#[derive(Clone, Debug)]
pub struct LocalHome(Arc<Shared>);

/// Wakes goroutines of one [`Local`] from the thread of that [`Local`]: it does not compare threads.
#[derive(Clone)]
pub struct LocalHere {
    /// Not an [`Rc`]: goroutines have it, and their scheduler has them.
    state: Weak<State>,
    home: LocalHome,
}

/// A place in the table, and how often it has been used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

/// What other threads reach.
struct Shared {
    id: NonZeroU64,
    inbox: Mutex<Vec<Key>>,
    has_inbox: AtomicBool,
    is_closed: AtomicBool,
    /// Sees to it that [`Local::run`] is called.
    request_run: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Shared")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

pub(crate) struct State {
    shared: Arc<Shared>,
    stacks: Stacks,
    /// Stacks that were used last, with their memory.
    hot: RefCell<Vec<Stack>>,
    /// The fewest of them since the last trim: so many were not needed.
    hot_low: Cell<usize>,
    table: RefCell<Table>,
    /// The goroutine that runs, or `NONE`.
    current: Cell<u32>,
    timers: RefCell<Timers<Key>>,
    /// The time that the owner was told last; until it has come, only an earlier timer needs a run.
    told_timer_at: Cell<Nanos>,
    /// A run is under way, or has been requested.
    is_expected: Cell<bool>,
    observer: Box<dyn Observer>,
}

#[derive(Default)]
struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    len: usize,
    /// The run queue.
    ready: VecDeque<u32>,
}

struct Slot {
    generation: u32,
    state: Phase,
    coroutine: Option<Coroutine>,
    word: usize,
    /// The timer that it waits for, or 0.
    timer: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It runs, or is about to be resumed.
    Running,
    /// It was unparked while it ran: it is ready when it parks.
    Notified,
    Parked,
    /// In the run queue.
    Ready,
    /// The place is free.
    Ended,
}

const NONE: u32 = u32::MAX;
/// Stacks that stay with their memory when there is nothing to do.
const HOT_STACKS_IDLE: usize = 64;
/// Stacks whose memory one trim gives back: each takes about a microsecond.
const TRIMMED_MAX: usize = 1024;
/// Goroutines that are resumed between two looks at whether the run is over.
const RESUMES_PER_LOOK: usize = 16;

impl LocalHandle {
    #[inline]
    pub(crate) fn unpark(&self) {
        self.shared.unpark(self.key);
    }

    /// It among the goroutines of its home, past ones included.
    pub fn number(&self) -> u64 {
        u64::from(self.key.generation) << 32 | u64::from(self.key.index)
    }
}

impl LocalHome {
    /// Tells the schedulers of a process apart. All goroutines of one run on one thread.
    pub fn id(&self) -> NonZeroU64 {
        self.0.id
    }

    /// See [`Goroutine::unpark`].
    #[inline]
    pub fn unpark(&self, number: u64) {
        self.0.unpark(Key::of(number));
    }
}

impl LocalHere {
    /// What wakes the goroutines from other threads.
    pub fn home(&self) -> LocalHome {
        self.home.clone()
    }

    /// See [`Goroutine::unpark`].
    #[inline]
    pub fn unpark(&self, number: u64) {
        if let Some(state) = self.state.upgrade() {
            state.unpark(Key::of(number));
        }
    }
}

impl fmt::Debug for LocalHere {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("LocalHere")
            .field(&self.home.id())
            .finish()
    }
}

impl Key {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the halves of the number")]
    fn of(number: u64) -> Self {
        Self {
            index: number as u32,
            generation: (number >> 32) as u32,
        }
    }
}

impl Shared {
    #[inline]
    fn unpark(&self, key: Key) {
        let is_here = with_scheduler(|scheduler| match scheduler {
            Some(Scheduler::Local(state)) if state.shared.id == self.id => {
                state.unpark(key);
                true
            }
            _ => false,
        });
        if !is_here {
            self.unpark_from_afar(key);
        }
    }

    fn unpark_from_afar(&self, key: Key) {
        let is_first = {
            let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
            inbox.push(key);
            !self.has_inbox.swap(true, Ordering::AcqRel)
        };
        if is_first && !self.is_closed.load(Ordering::Acquire) {
            (self.request_run)();
        }
    }
}

impl Local {
    /// A scheduler of this thread with stacks from `stacks`. `request_run`, called from any thread, has to see to it that
    /// [`run`](Self::run) is called soon.
    pub fn new(
        stacks: Stacks,
        observer: Box<dyn Observer>,
        request_run: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let shared = Shared {
            // 64 bits do not wrap around.
            id: NonZeroU64::new(NEXT_ID.fetch_add(1, Ordering::Relaxed)).unwrap_or(NonZeroU64::MIN),
            inbox: Mutex::default(),
            has_inbox: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            request_run,
        };
        Self(Rc::new(State {
            shared: Arc::new(shared),
            stacks,
            hot: RefCell::default(),
            hot_low: Cell::new(0),
            table: RefCell::default(),
            current: Cell::new(NONE),
            timers: RefCell::default(),
            told_timer_at: Cell::new(Nanos::MAX),
            is_expected: Cell::new(false),
            observer,
        }))
    }

    /// Makes it the scheduler of this thread, where [`here`](Self::here) finds it.
    pub fn enter(&self) {
        drop(set_scheduler(Some(Scheduler::Local(Rc::clone(&self.0)))));
    }

    /// The scheduler of this thread, if it is one of this kind.
    pub fn here() -> Option<Self> {
        with_scheduler(|scheduler| match scheduler {
            Some(Scheduler::Local(state)) => Some(Self(Rc::clone(state))),
            _ => None,
        })
    }

    /// What wakes its goroutines on this thread.
    pub fn waker(&self) -> LocalHere {
        LocalHere {
            state: Rc::downgrade(&self.0),
            home: LocalHome(Arc::clone(&self.0.shared)),
        }
    }

    /// Starts a goroutine, which runs when those have run that are ready now.
    ///
    /// # Errors
    /// [`StackError`]: there is no stack for it.
    pub fn start(
        &self,
        word: usize,
        code: impl FnOnce() + 'static,
    ) -> Result<LocalHandle, StackError> {
        let (key, _) = self.0.add(word, code, Phase::Ready)?;
        self.0.expect_run();
        Ok(self.0.handle(key))
    }

    /// Starts a goroutine and runs it at once, until it parks or ends. Not to be called in a goroutine.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_now(&self, word: usize, code: impl FnOnce() + 'static) -> Result<(), StackError> {
        let (key, coroutine) = self.0.add(word, code, Phase::Running)?;
        let outer = set_scheduler(Some(Scheduler::Local(Rc::clone(&self.0))));
        if let Some(coroutine) = coroutine {
            self.0.resume(key.index, coroutine);
        }
        drop(set_scheduler(outer));
        Ok(())
    }

    /// Runs goroutines that are ready, until there are none or `is_over` says that the time is up. `true`: some are left, and
    /// another run is to come.
    pub fn run(&self, is_over: &dyn Fn() -> bool) -> bool {
        let state = &self.0;
        let outer = set_scheduler(Some(Scheduler::Local(Rc::clone(state))));
        state.is_expected.set(true);
        let mut resumes = 0;
        let is_left = loop {
            state.empty_inbox();
            let Some((index, coroutine)) = state.take_ready() else {
                break false;
            };
            state.resume(index, coroutine);
            resumes += 1;
            if resumes % RESUMES_PER_LOOK == 0 && is_over() {
                break state.has_ready();
            }
        };
        state.is_expected.set(is_left);
        drop(set_scheduler(outer));
        is_left
    }

    /// Wakes the goroutines whose timers are due at `now`.
    pub fn fire_timers(&self, now: Nanos) {
        let state = &self.0;
        if state.told_timer_at.get() <= now {
            state.told_timer_at.set(Nanos::MAX);
        }
        loop {
            let due = state.timers.borrow_mut().pop_due(now);
            let Some((key, id)) = due else {
                return;
            };
            if state.take_timer(key, id) {
                state.unpark(key);
            } else {
                state.timers.borrow_mut().forget_stale();
            }
        }
    }

    /// When [`fire_timers`](Self::fire_timers) and [`run`](Self::run) have to be called; they may be called earlier. A run is
    /// requested when an earlier timer is set.
    pub fn next_timer_at(&self) -> Option<Nanos> {
        let at = self.0.timers.borrow().next_at();
        self.0.told_timer_at.set(at.unwrap_or(Nanos::MAX));
        at
    }

    /// Goroutines that have not ended.
    pub fn len(&self) -> usize {
        self.0.table.borrow().len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether one is ready to run.
    pub fn has_ready(&self) -> bool {
        self.0.has_ready()
    }

    /// The words of those that have not ended.
    pub fn words(&self) -> Vec<usize> {
        let table = self.0.table.borrow();
        let live = table.slots.iter().filter(|slot| slot.state != Phase::Ended);
        live.map(|slot| slot.word).collect()
    }

    /// Gives back the memory of half of the stacks that were not needed since it was called last; to be called every second or so
    /// while [`is_trimmable`](Self::is_trimmable).
    pub fn trim(&self) {
        let surplus = {
            let mut hot = self.0.hot.borrow_mut();
            let unused = self.0.hot_low.get().min(hot.len()).div_ceil(2);
            let surplus = unused
                .min(TRIMMED_MAX)
                .min(hot.len().saturating_sub(HOT_STACKS_IDLE));
            // Those at the bottom were used the longest time ago.
            let rest = hot.split_off(surplus);
            self.0.hot_low.set(rest.len());
            std::mem::replace(&mut *hot, rest)
        };
        for stack in surplus {
            self.0.stacks.give(stack);
        }
    }

    /// Whether there is something for [`trim`](Self::trim) to do, now or in a while.
    pub fn is_trimmable(&self) -> bool {
        self.0.hot.borrow().len() > HOT_STACKS_IDLE
    }

    /// Ends all goroutines wherever they are; see [`Failure::Abandoned`]. Not to be called in one of them.
    pub fn abandon_all(&self) {
        let state = &self.0;
        state.shared.is_closed.store(true, Ordering::Release);
        let count = state.table.borrow().slots.len();
        for index in 0..count {
            let taken = {
                let mut table = state.table.borrow_mut();
                let slot = &mut table.slots[index];
                let coroutine = slot.coroutine.take();
                coroutine.map(|coroutine| (coroutine, slot.word))
            };
            if let Some((coroutine, word)) = taken {
                state.stacks.give(coroutine.abandon());
                state.remove(u32::try_from(index).unwrap_or(NONE));
                state.observer.failed(word, Failure::Abandoned);
            }
        }
        state.table.borrow_mut().ready.clear();
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Local")
            .field("id", &self.0.shared.id)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl State {
    fn handle(&self, key: Key) -> LocalHandle {
        LocalHandle {
            shared: Arc::clone(&self.shared),
            key,
        }
    }

    pub(crate) fn current(&self) -> Option<LocalHandle> {
        let index = self.current.get();
        let generation = self.table.borrow().slots.get(index as usize)?.generation;
        Some(self.handle(Key { index, generation }))
    }

    pub(crate) fn set_timer(&self, at: Nanos) {
        let mut table = self.table.borrow_mut();
        let index = self.current.get();
        let Some(slot) = table.slots.get_mut(index as usize) else {
            return;
        };
        let key = Key {
            index,
            generation: slot.generation,
        };
        let id = self.timers.borrow_mut().add(at, key);
        if std::mem::replace(&mut slot.timer, id) != 0 {
            self.note_stale_timer(&table);
        }
        drop(table);
        if at < self.told_timer_at.get() {
            self.told_timer_at.set(at);
            self.expect_run();
        }
    }

    pub(crate) fn clear_timer(&self) {
        let mut table = self.table.borrow_mut();
        let Some(slot) = table.slots.get_mut(self.current.get() as usize) else {
            return;
        };
        if std::mem::take(&mut slot.timer) != 0 {
            self.note_stale_timer(&table);
        }
    }

    /// Adds a goroutine, to the run queue if it is ready; one that is to run at once is given to the caller.
    fn add(
        &self,
        word: usize,
        code: impl FnOnce() + 'static,
        phase: Phase,
    ) -> Result<(Key, Option<Coroutine>), StackError> {
        let hot = self.hot.borrow_mut().pop();
        if self.hot_low.get() != 0 {
            let left = self.hot.borrow().len();
            self.hot_low.set(self.hot_low.get().min(left));
        }
        let stack = hot.map_or_else(|| self.stacks.take(), Ok)?;
        let mut coroutine = Coroutine::new(stack, code);
        coroutine.set_word(word);
        let (kept, given) = if phase == Phase::Ready {
            (Some(coroutine), None)
        } else {
            (None, Some(coroutine))
        };
        let mut table = self.table.borrow_mut();
        let table = &mut *table;
        table.len += 1;
        let index = table.free.pop().unwrap_or_else(|| {
            let index = u32::try_from(table.slots.len()).expect("stacks are fewer than 2^32");
            table.slots.push(Slot {
                generation: 0,
                state: phase,
                coroutine: None,
                word: 0,
                timer: 0,
            });
            index
        });
        let slot = &mut table.slots[index as usize];
        slot.state = phase;
        slot.coroutine = kept;
        slot.word = word;
        let generation = slot.generation;
        if phase == Phase::Ready {
            table.ready.push_back(index);
        }
        Ok((Key { index, generation }, given))
    }

    /// Takes the first of the run queue, to be resumed.
    #[inline]
    fn take_ready(&self) -> Option<(u32, Coroutine)> {
        let mut table = self.table.borrow_mut();
        let table = &mut *table;
        loop {
            let index = table.ready.pop_front()?;
            let slot = &mut table.slots[index as usize];
            // One that was abandoned has none.
            if let Some(coroutine) = slot.coroutine.take() {
                slot.state = Phase::Running;
                return Some((index, coroutine));
            }
        }
    }

    #[inline]
    fn resume(&self, index: u32, mut coroutine: Coroutine) {
        let outer = self.current.replace(index);
        let progress = coroutine.resume();
        self.current.set(outer);
        if let Progress::Suspended = progress {
            return self.suspended(index, coroutine);
        }
        self.ended(index, coroutine, progress);
    }

    fn ended(&self, index: u32, coroutine: Coroutine, progress: Progress) {
        let word = coroutine.word();
        let is_spoiled = matches!(progress, Progress::Overflowed);
        self.give_stack(coroutine.into_stack(), is_spoiled);
        self.remove(index);
        match progress {
            Progress::Panicked(payload) => self.observer.failed(word, Failure::Panicked(payload)),
            Progress::Overflowed => self.observer.failed(word, Failure::Overflowed),
            Progress::Returned | Progress::Suspended => {}
        }
    }

    /// A goroutine has parked, or lets others run first: then it is in the run queue.
    #[inline]
    fn suspended(&self, index: u32, coroutine: Coroutine) {
        let mut borrowed = self.table.borrow_mut();
        let table = &mut *borrowed;
        let slot = &mut table.slots[index as usize];
        slot.word = coroutine.word();
        slot.coroutine = Some(coroutine);
        match slot.state {
            Phase::Running => slot.state = Phase::Parked,
            Phase::Notified => {
                slot.state = Phase::Ready;
                table.ready.push_back(index);
                drop(borrowed);
                self.expect_run();
            }
            Phase::Parked | Phase::Ready | Phase::Ended => {}
        }
    }

    fn give_stack(&self, stack: Stack, is_spoiled: bool) {
        if is_spoiled {
            self.stacks.give(stack);
        } else {
            self.hot.borrow_mut().push(stack);
        }
    }

    fn remove(&self, index: u32) {
        let mut table = self.table.borrow_mut();
        let slot = &mut table.slots[index as usize];
        slot.state = Phase::Ended;
        slot.generation = slot.generation.wrapping_add(1);
        let timer = std::mem::take(&mut slot.timer);
        table.free.push(index);
        table.len -= 1;
        if timer != 0 {
            self.note_stale_timer(&table);
        }
    }

    pub(crate) fn unpark(&self, key: Key) {
        let is_ready = {
            let mut table = self.table.borrow_mut();
            let table = &mut *table;
            let slot = &mut table.slots[key.index as usize];
            if slot.generation != key.generation {
                return;
            }
            let is_parked = slot.state == Phase::Parked;
            if is_parked {
                slot.state = Phase::Ready;
                table.ready.push_back(key.index);
            } else if slot.state == Phase::Running {
                slot.state = Phase::Notified;
            }
            is_parked
        };
        if is_ready {
            self.expect_run();
        }
    }

    pub(crate) fn prepare_yield(&self) {
        let index = self.current.get();
        let mut table = self.table.borrow_mut();
        table.slots[index as usize].state = Phase::Ready;
        table.ready.push_back(index);
        drop(table);
        self.expect_run();
    }

    fn empty_inbox(&self) {
        if !self.shared.has_inbox.load(Ordering::Acquire) {
            return;
        }
        let keys = {
            let inbox = &self.shared.inbox;
            let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
            self.shared.has_inbox.store(false, Ordering::Release);
            std::mem::take(&mut *inbox)
        };
        for key in keys {
            self.unpark(key);
        }
    }

    fn has_ready(&self) -> bool {
        !self.table.borrow().ready.is_empty() || self.shared.has_inbox.load(Ordering::Acquire)
    }

    fn expect_run(&self) {
        if !self.is_expected.replace(true) {
            (self.shared.request_run)();
        }
    }

    /// Whether a timer that is due is the one that its goroutine waits for, which it is no more.
    fn take_timer(&self, key: Key, id: u64) -> bool {
        let mut table = self.table.borrow_mut();
        let slot = &mut table.slots[key.index as usize];
        let is_live = slot.generation == key.generation && slot.timer == id;
        if is_live {
            slot.timer = 0;
        }
        is_live
    }

    fn note_stale_timer(&self, table: &Table) {
        self.timers.borrow_mut().note_stale(|key, id| {
            let slot = &table.slots[key.index as usize];
            slot.generation == key.generation && slot.timer == id
        });
    }
}

impl Drop for State {
    /// Goroutines that are left end here.
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        for mut slot in self.table.take().slots {
            if let Some(coroutine) = slot.coroutine.take() {
                self.stacks.give(coroutine.abandon());
                self.observer.failed(slot.word, Failure::Abandoned);
            }
        }
        for stack in self.hot.get_mut().drain(..) {
            self.stacks.give(stack);
        }
    }
}

impl From<LocalHandle> for Goroutine {
    fn from(handle: LocalHandle) -> Self {
        Self::Local(handle)
    }
}
