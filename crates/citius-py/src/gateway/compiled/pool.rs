//! Threads for compiled handlers that take long: they never have the GIL, so they use all cores.
//!
//! As `pool.py` for Python: a bounded queue in front of a bounded number of threads, which are started
//! when first needed. `submit` never waits. Nothing here touches a socket: answers go by the mailbox.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use citius_http::Head;
use citius_reactor::StreamId;
use citius_route::Captures;

use super::Handler;
use crate::gateway::native::Route;
use crate::link::{Link, lock};

/// A request on its way through a thread.
pub(crate) struct Job {
    pub(super) handler: Arc<Handler>,
    pub(super) route: Arc<Route>,
    pub(super) link: Arc<Link>,
    pub(super) id: StreamId,
    pub(super) head: Box<Head>,
    pub(super) captures: Captures,
    pub(super) body: Vec<u8>,
    /// The client has left.
    pub(super) is_gone: Arc<AtomicBool>,
}

/// At most `threads_max` threads; at most `queue_max` jobs wait for one of them.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads_max: usize,
    queue_max: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Box<Job>>,
    /// Jobs that are not done, those at work included: this is bounded.
    open: usize,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    is_closed: bool,
}

/// As much as a process's first thread has by default: native code may expect it.
const STACK_BYTES: usize = 8 * 1024 * 1024;

impl Pool {
    pub(crate) fn new(threads_max: usize, queue_max: usize) -> Self {
        Self {
            shared: Arc::default(),
            threads_max,
            queue_max,
        }
    }

    /// Has `job` done by a thread; gives it back if the queue is full.
    pub(super) fn submit(&self, job: Box<Job>) -> Result<(), Box<Job>> {
        let mut state = lock(&self.shared.state);
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

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).is_closed = true;
        // Nobody waits for them: whoever is in the middle of a job ends with it.
        self.shared.ready.notify_all();
    }
}

/// What a job takes of the bounded number of open ones, until it is dropped.
pub(super) struct Place<'a>(&'a Shared);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).open -= 1;
    }
}

impl Shared {
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                self.run(*job);
                state = lock(&self.state);
            } else if state.is_closed {
                return;
            } else {
                state = self.wait(state);
            }
        }
    }

    /// Does a job. A panic costs its connection, and neither the thread nor the job's place.
    fn run(&self, job: Job) {
        let (link, id) = (Arc::clone(&job.link), job.id);
        let place = Place(self);
        if catch_unwind(AssertUnwindSafe(|| super::run_in_pool(job, place))).is_err() {
            link.cut(id);
        }
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.idle += 1;
        let mut state = self
            .ready
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state
    }
}
