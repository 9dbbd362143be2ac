//! Threads for compiled handlers that take long. They never hold the GIL, so they use all cores.
//!
//! In: jobs, into a bounded queue; `submit` never waits. Out: what the job itself posts. Threads start when they are first
//! needed. A job that panics loses its request alone. Nothing here touches a socket. Tests: `crates/citius-py/tests/pool.rs`.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a thread does.
pub(crate) trait Job: Send + 'static {
    /// What is left to do where [`run`](Self::run) has panicked.
    type OnPanic;

    fn on_panic(&self) -> Self::OnPanic;

    fn run(self, place: Place<'_, Self>)
    where
        Self: Sized;

    fn give_up(rest: Self::OnPanic);
}

/// At most `threads_max` threads; at most `queue_max` jobs wait for one of them.
pub(crate) struct Pool<J> {
    shared: Arc<Shared<J>>,
    threads_max: usize,
    queue_max: usize,
}

struct Shared<J> {
    state: Mutex<State<J>>,
    ready: Condvar,
}

struct State<J> {
    jobs: VecDeque<Box<J>>,
    /// Jobs that are not done, those at work included: this is bounded.
    open: usize,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    is_closed: bool,
}

/// As much as a process's first thread has by default: native code may expect it.
const STACK_BYTES: usize = 8 * 1024 * 1024;

impl<J: Job> Pool<J> {
    pub(crate) fn new(threads_max: usize, queue_max: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    jobs: VecDeque::new(),
                    open: 0,
                    threads: 0,
                    idle: 0,
                    is_closed: false,
                }),
                ready: Condvar::new(),
            }),
            threads_max,
            queue_max,
        }
    }

    /// Has `job` done by a thread; gives it back if the queue is full.
    pub(crate) fn submit(&self, job: Box<J>) -> Result<(), Box<J>> {
        let mut state = self.shared.lock();
        if state.open >= self.queue_max + self.threads_max {
            return Err(job);
        }
        if state.jobs.len() >= state.idle && state.threads < self.threads_max {
            let shared = Arc::clone(&self.shared);
            let spawned = std::thread::Builder::new()
                .name(format!("citius-compiled-{}", state.threads))
                .stack_size(STACK_BYTES)
                .spawn(move || shared.work());
            match spawned {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads > 0 => {}
                Err(_) => return Err(job),
            }
        }
        state.open += 1;
        state.jobs.push_back(job);
        drop(state);
        self.shared.ready.notify_one();
        Ok(())
    }
}

impl<J> Drop for Pool<J> {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        // They are not joined: a thread with a job ends after it.
        self.shared.ready.notify_all();
    }
}

/// What a job takes of the bounded number of open ones, until it is dropped.
pub(crate) struct Place<'a, J>(&'a Shared<J>);

impl<J> Drop for Place<'_, J> {
    fn drop(&mut self) {
        self.0.lock().open -= 1;
    }
}

impl<J> Shared<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        // A panic between two changes of the state is none of a job's.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: Job> Shared<J> {
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                self.run(*job);
                state = self.lock();
            } else if state.is_closed {
                return;
            } else {
                state = self.wait(state);
            }
        }
    }

    /// Does a job. A panic costs its request, and neither the thread nor the job's place.
    fn run(&self, job: J) {
        let (rest, place) = (job.on_panic(), Place(self));
        if catch_unwind(AssertUnwindSafe(|| job.run(place))).is_err() {
            J::give_up(rest);
        }
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State<J>>) -> MutexGuard<'a, State<J>> {
        state.idle += 1;
        let mut state = self
            .ready
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state
    }
}
