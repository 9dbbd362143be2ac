//! A scheduler with threads of its own. A goroutine runs on any of them, on one at a time.
//!
//! Each thread has a run queue. A thread without work takes from the common queue, which goroutines enter that other threads
//! start or wake, and then half of another thread's. A thread that finds nothing sleeps; one of those that sleep does so in the
//! poller, where it waits for timers. Threads start when they are first needed.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use citius_coroutine::{MigratingCoroutine, Progress, StackError, Stacks};
use crossbeam_deque::{Injector, Steal, Stealer, Worker as Queue};

use crate::current::{Goroutine, Scheduler, exchange_word, set_scheduler, with_scheduler};
use crate::observer::{Failure, Observer};
use crate::poller::Poller;
use crate::timers::{Nanos, Timers};

/// Threads that run goroutines; clones are the same pool. Its threads end when it is closed.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

/// A goroutine of a [`Pool`].
pub struct Parked {
    shared: Arc<Shared>,
    phase: AtomicU8,
    /// While it does not run.
    coroutine: Mutex<Option<MigratingCoroutine>>,
    word: AtomicUsize,
    /// The timer that it waits for, or 0.
    timer: AtomicU64,
}

/// It runs.
const RUNNING: u8 = 0;
/// It was unparked while it ran: its next park returns at once.
const NOTIFIED: u8 = 1;
const PARKED: u8 = 2;
/// It is in a run queue.
const READY: u8 = 3;
const ENDED: u8 = 4;

struct Shared {
    stacks: Stacks,
    injector: Injector<Arc<Parked>>,
    stealers: Vec<Stealer<Arc<Parked>>>,
    /// Queues of threads that have not started.
    unstarted: Mutex<Vec<Queue<Arc<Parked>>>>,
    sleep: Mutex<Sleep>,
    wakeup: Condvar,
    /// Threads that sleep or are about to.
    idle: AtomicUsize,
    /// Threads that were woken and look for work.
    searching: AtomicUsize,
    timers: Mutex<Timers<Arc<Parked>>>,
    poller: Poller,
    is_closed: AtomicBool,
    live: AtomicUsize,
    observer: Box<dyn Observer + Send + Sync>,
    settings: Settings,
}

/// What a pool needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What its threads are called, before their numbers.
    pub name: &'static str,
    /// Threads at most.
    pub threads: usize,
    /// Reads the monotonic clock.
    pub now: fn() -> Nanos,
    /// Is called on each thread before its first goroutine.
    pub prepare_thread: fn(),
}

#[derive(Default)]
struct Sleep {
    /// Threads that wait for the condition variable and have not been granted a wake-up.
    waiting: usize,
    /// Wake-ups that no thread has taken yet; the variable alone may wake more threads than were asked to.
    granted: usize,
    /// A thread waits in the poller.
    is_polled: bool,
    /// It was woken.
    is_poll_over: bool,
}

/// One thread of a pool.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    queue: Queue<Arc<Parked>>,
    current: Cell<Option<Arc<Parked>>>,
    /// What the goroutine that suspends itself wants.
    suspension: Cell<Suspension>,
    random: Cell<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suspension {
    Park,
    Yield,
}

/// The thread's own stack is as large as a process's first thread has by default: foreign code may be called on it.
const THREAD_STACK_BYTES: usize = 8 * 1024 * 1024;
/// After so many goroutines a thread looks at the timers and at the common queue before its own.
const RESUMES_PER_LOOK: u32 = 61;
/// How often a thread that was woken looks for work before it sleeps again.
const SEARCHES: u32 = 20;

impl Pool {
    /// A pool without threads: they start when they are needed.
    ///
    /// # Errors
    /// The kernel has no descriptor for the poller.
    pub fn new(
        settings: Settings,
        stacks: Stacks,
        observer: Box<dyn Observer + Send + Sync>,
    ) -> std::io::Result<Self> {
        let threads = settings.threads.max(1);
        let queues: Vec<_> = (0..threads).map(|_| Queue::new_fifo()).collect();
        let shared = Shared {
            stacks,
            injector: Injector::new(),
            stealers: queues.iter().map(Queue::stealer).collect(),
            unstarted: Mutex::new(queues),
            sleep: Mutex::default(),
            wakeup: Condvar::new(),
            idle: AtomicUsize::new(0),
            searching: AtomicUsize::new(0),
            timers: Mutex::default(),
            poller: Poller::new()?,
            is_closed: AtomicBool::new(false),
            live: AtomicUsize::new(0),
            observer,
            settings,
        };
        Ok(Self(Arc::new(shared)))
    }

    /// Starts a goroutine. `make` makes its coroutine of the stack.
    ///
    /// # Errors
    /// [`StackError`]: there is no stack for it.
    pub fn start(
        &self,
        word: usize,
        make: impl FnOnce(citius_coroutine::Stack) -> MigratingCoroutine,
    ) -> Result<Goroutine, StackError> {
        let coroutine = make(self.0.stacks.take()?);
        let parked = Arc::new(Parked {
            shared: Arc::clone(&self.0),
            phase: AtomicU8::new(READY),
            coroutine: Mutex::new(Some(coroutine)),
            word: AtomicUsize::new(word),
            timer: AtomicU64::new(0),
        });
        self.0.live.fetch_add(1, Ordering::Relaxed);
        Shared::push(&self.0, Arc::clone(&parked));
        Ok(Goroutine::Pool(parked))
    }

    /// The pool whose thread this is.
    pub fn here() -> Option<Self> {
        with_scheduler(|scheduler| match scheduler {
            Some(Scheduler::Worker(worker)) => Some(Self(Arc::clone(&worker.shared))),
            _ => None,
        })
    }

    /// Goroutines that have not ended.
    pub fn len(&self) -> usize {
        self.0.live.load(Ordering::Relaxed)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends its threads when they have nothing to run. Goroutines that are parked stay parked.
    pub fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
        let sleep = lock(&self.0.sleep);
        self.0.wakeup.notify_all();
        drop(sleep);
        self.0.poller.wake();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pool")
            .field("name", &self.0.settings.name)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Parked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Parked")
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

impl Parked {
    pub(crate) fn unpark(this: &Arc<Self>) {
        let mut phase = this.phase.load(Ordering::Acquire);
        loop {
            let next = match phase {
                PARKED => READY,
                RUNNING => NOTIFIED,
                _ => return,
            };
            let exchanged =
                this.phase
                    .compare_exchange_weak(phase, next, Ordering::AcqRel, Ordering::Acquire);
            match exchanged {
                Ok(PARKED) => return Shared::push(&this.shared, Arc::clone(this)),
                Ok(_) => return,
                Err(other) => phase = other,
            }
        }
    }
}

impl Shared {
    /// Enters a goroutine in a run queue: that of this thread, if it is one of the pool's.
    fn push(this: &Arc<Self>, parked: Arc<Parked>) {
        let left = with_scheduler(|scheduler| match scheduler {
            Some(Scheduler::Worker(worker)) if Arc::ptr_eq(&worker.shared, this) => {
                worker.queue.push(parked);
                None
            }
            _ => Some(parked),
        });
        if let Some(parked) = left {
            this.injector.push(parked);
        }
        Self::notify(this);
    }

    /// Wakes a thread, if one sleeps and none is looking for work already.
    fn notify(this: &Arc<Self>) {
        // The work that was added is seen by a thread that is counted as idle after this.
        fence(Ordering::SeqCst);
        if this.searching.load(Ordering::SeqCst) > 0 {
            return;
        }
        if this.idle.load(Ordering::SeqCst) == 0 {
            return Self::start_thread(this);
        }
        let mut sleep = lock(&this.sleep);
        if sleep.waiting > 0 {
            sleep.waiting -= 1;
            sleep.granted += 1;
            this.searching.fetch_add(1, Ordering::SeqCst);
            drop(sleep);
            this.wakeup.notify_one();
        } else if sleep.is_polled && !std::mem::replace(&mut sleep.is_poll_over, true) {
            drop(sleep);
            this.poller.wake();
        }
    }

    fn start_thread(this: &Arc<Self>) {
        let Some(queue) = lock(&this.unstarted).pop() else {
            return;
        };
        let shared = Arc::clone(this);
        let seed = lock(&this.unstarted).len();
        let started = std::thread::Builder::new()
            .name(format!("{}-{seed}", this.settings.name))
            .stack_size(THREAD_STACK_BYTES)
            .spawn(move || {
                (shared.settings.prepare_thread)();
                let worker = Rc::new(Worker {
                    shared,
                    queue,
                    current: Cell::new(None),
                    suspension: Cell::new(Suspension::Park),
                    random: Cell::new(seed as u64 * 2 + 1),
                });
                drop(set_scheduler(Some(Scheduler::Worker(Rc::clone(&worker)))));
                worker.work();
                drop(set_scheduler(None));
            });
        // Without a thread the queue stays with the others: those that run take what is in it.
        drop(started);
    }

    fn has_work(&self) -> bool {
        !self.injector.is_empty() || self.stealers.iter().any(|queue| !queue.is_empty())
    }

    fn fire_timers(&self) {
        let now = (self.settings.now)();
        loop {
            let due = lock(&self.timers).pop_due(now);
            let Some((parked, id)) = due else {
                return;
            };
            let is_live = parked
                .timer
                .compare_exchange(id, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
            if is_live {
                Parked::unpark(&parked);
            } else {
                lock(&self.timers).forget_stale();
            }
        }
    }
}

impl Worker {
    fn work(&self) {
        let mut resumes = 0_u32;
        loop {
            resumes = resumes.wrapping_add(1);
            if resumes.is_multiple_of(RESUMES_PER_LOOK) {
                self.look_around();
            }
            if let Some(parked) = self.find() {
                self.resume(parked);
            } else if !self.sleep() {
                return;
            }
        }
    }

    /// Sees to it that neither timers nor the common queue wait for ever while this thread has enough to do.
    fn look_around(&self) {
        self.shared.fire_timers();
        if let Steal::Success(parked) = self.shared.injector.steal() {
            self.queue.push(parked);
        }
    }

    fn find(&self) -> Option<Arc<Parked>> {
        self.queue.pop().or_else(|| self.find_elsewhere())
    }

    fn find_elsewhere(&self) -> Option<Arc<Parked>> {
        let shared = &self.shared;
        loop {
            let mut is_contended = false;
            match shared.injector.steal_batch_and_pop(&self.queue) {
                Steal::Success(parked) => return Some(parked),
                Steal::Retry => is_contended = true,
                Steal::Empty => {}
            }
            let count = shared.stealers.len();
            let first = self.random(count);
            for offset in 0..count {
                match shared.stealers[(first + offset) % count].steal_batch_and_pop(&self.queue) {
                    Steal::Success(parked) => return Some(parked),
                    Steal::Retry => is_contended = true,
                    Steal::Empty => {}
                }
            }
            if !is_contended {
                return None;
            }
        }
    }

    fn random(&self, below: usize) -> usize {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        usize::try_from(state >> 33).unwrap_or(0) % below
    }

    /// Waits for work. `false`: the pool is closed and there is none.
    fn sleep(&self) -> bool {
        let shared = &self.shared;
        shared.idle.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if shared.has_work() {
            shared.idle.fetch_sub(1, Ordering::SeqCst);
            return true;
        }
        if shared.is_closed.load(Ordering::Acquire) {
            shared.idle.fetch_sub(1, Ordering::SeqCst);
            return false;
        }
        let mut sleep = lock(&shared.sleep);
        if !sleep.is_polled {
            sleep.is_polled = true;
            sleep.is_poll_over = false;
            drop(sleep);
            self.poll();
            shared.idle.fetch_sub(1, Ordering::SeqCst);
            return true;
        }
        // Work that was added before the lock was taken has woken no thread; what is added after that wakes this one.
        if shared.has_work() {
            drop(sleep);
            shared.idle.fetch_sub(1, Ordering::SeqCst);
            return true;
        }
        sleep.waiting += 1;
        while sleep.granted == 0 {
            if shared.is_closed.load(Ordering::Acquire) {
                sleep.waiting -= 1;
                drop(sleep);
                shared.idle.fetch_sub(1, Ordering::SeqCst);
                return true;
            }
            sleep = shared
                .wakeup
                .wait(sleep)
                .unwrap_or_else(PoisonError::into_inner);
        }
        sleep.granted -= 1;
        drop(sleep);
        shared.idle.fetch_sub(1, Ordering::SeqCst);
        self.search();
        true
    }

    /// Looks for work for a moment, during which no other thread is woken.
    fn search(&self) {
        for _ in 0..SEARCHES {
            if let Some(parked) = self.find_elsewhere() {
                self.queue.push(parked);
                break;
            }
            std::hint::spin_loop();
        }
        let before = self.shared.searching.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0);
        fence(Ordering::SeqCst);
        // The last to look may have been the reason why no other thread was woken for what came meanwhile.
        if self.queue.len() > 1 || self.shared.has_work() {
            Shared::notify(&self.shared);
        }
    }

    /// Waits in the poller until it is woken or a timer is due.
    fn poll(&self) {
        let shared = &self.shared;
        let next_at = lock(&shared.timers).next_at();
        // Work that was added before `is_polled` was set has woken no thread.
        if !shared.has_work() && !shared.is_closed.load(Ordering::Acquire) {
            shared.poller.wait(next_at);
        }
        lock(&shared.sleep).is_polled = false;
        shared.fire_timers();
    }

    fn resume(&self, parked: Arc<Parked>) {
        let Some(mut coroutine) = lock(&parked.coroutine).take() else {
            return;
        };
        parked.phase.store(RUNNING, Ordering::Release);
        let word = parked.word.load(Ordering::Relaxed);
        self.current.set(Some(parked));
        self.suspension.set(Suspension::Park);
        let outer = exchange_word(word);
        let progress = coroutine.resume();
        let word = exchange_word(outer);
        let Some(parked) = self.current.take() else {
            return;
        };
        parked.word.store(word, Ordering::Relaxed);
        if let Progress::Suspended = progress {
            *lock(&parked.coroutine) = Some(coroutine);
            return self.suspended(parked);
        }
        self.shared.stacks.give_hot(coroutine.into_stack());
        parked.phase.store(ENDED, Ordering::Release);
        if parked.timer.swap(0, Ordering::AcqRel) != 0 {
            note_stale_timer(&self.shared);
        }
        drop(parked);
        self.shared.live.fetch_sub(1, Ordering::Relaxed);
        match progress {
            Progress::Panicked(payload) => self.failed(word, Failure::Panicked(payload)),
            Progress::Overflowed => self.failed(word, Failure::Overflowed),
            Progress::Returned | Progress::Suspended => {}
        }
    }

    /// What is told of a failure is not part of any goroutine: a panic of it must not end the thread.
    fn failed(&self, word: usize, failure: Failure) {
        let told = catch_unwind(AssertUnwindSafe(|| {
            self.shared.observer.failed(word, failure);
        }));
        let _: Result<(), Box<dyn Any + Send>> = told;
    }

    fn suspended(&self, parked: Arc<Parked>) {
        if self.suspension.get() == Suspension::Park {
            let exchanged =
                parked
                    .phase
                    .compare_exchange(RUNNING, PARKED, Ordering::AcqRel, Ordering::Acquire);
            if exchanged.is_ok() {
                return;
            }
        }
        parked.phase.store(READY, Ordering::Release);
        self.queue.push(parked);
    }

    pub(crate) fn prepare_park(&self) -> bool {
        self.suspension.set(Suspension::Park);
        let Some(parked) = self.current.take() else {
            panic!("only a goroutine parks");
        };
        let notified =
            parked
                .phase
                .compare_exchange(NOTIFIED, RUNNING, Ordering::AcqRel, Ordering::Relaxed);
        self.current.set(Some(parked));
        notified.is_err()
    }

    pub(crate) fn prepare_yield(&self) {
        self.suspension.set(Suspension::Yield);
    }

    /// Does something with the goroutine that runs.
    pub(crate) fn with_current<R>(&self, act: impl FnOnce(&Arc<Parked>) -> R) -> Option<R> {
        let parked = self.current.take()?;
        let result = act(&parked);
        self.current.set(Some(parked));
        Some(result)
    }

    pub(crate) fn set_timer(&self, at: Nanos) {
        self.with_current(|parked| {
            let shared = &self.shared;
            let (id, is_first) = {
                let mut timers = lock(&shared.timers);
                let before = timers.next_at();
                let id = timers.add(at, Arc::clone(parked));
                (id, timers.next_at() != before)
            };
            if parked.timer.swap(id, Ordering::AcqRel) != 0 {
                note_stale_timer(shared);
            }
            // The thread in the poller waits for a later one.
            if is_first && lock(&shared.sleep).is_polled {
                shared.poller.wake();
            }
        });
    }

    pub(crate) fn clear_timer(&self) {
        self.with_current(|parked| {
            if parked.timer.swap(0, Ordering::AcqRel) != 0 {
                note_stale_timer(&self.shared);
            }
        });
    }
}

fn note_stale_timer(shared: &Shared) {
    lock(&shared.timers).note_stale(|parked, id| parked.timer.load(Ordering::Relaxed) == id);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
