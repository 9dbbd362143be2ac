//! Work that the operating system has no other way for than to block: looking names up, reading files. It is done by threads of
//! its own while the caller waits.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::error::{NetError, Reason, Result};
use crate::chan::receive_value;
use crate::channel::{Element, Format, Value};
use crate::lock::lock;
use crate::packed::Packed;
use crate::wait::Until;
use crate::{Channel, thread};

/// Threads at most; more work waits for one of them.
const THREADS_MAX: usize = 8;
/// A thread without work ends after this time.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    generation: u32,
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    generation: 0,
    jobs: VecDeque::new(),
    threads: 0,
    idle: 0,
});
static ADDED: Condvar = Condvar::new();

/// A channel for one notification, which is kept until it is received.
pub(crate) fn signal() -> Channel {
    Channel::new(1, Element::fixed(0, Format::Unit))
}

/// Sends the notification.
pub(crate) fn raise(signal: &Channel) {
    // A signal that is raised already is as good.
    let _ = signal.try_send(Value::Packed(Packed::default()));
}

/// Waits for the notification, until a deadline; `what` names the wait in the error.
pub(crate) fn wait(signal: &Channel, until: Until, what: &str) -> Result<()> {
    match receive_value(signal, until) {
        Ok(_) => Ok(()),
        Err(code) => Err(NetError::waiting(code, what)),
    }
}

/// Does `work` on another thread and waits for what it returns. If the wait ends before, work that has begun goes on; other
/// work is not begun.
pub(crate) fn run<T: Send + 'static>(
    what: &str,
    until: Until,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let place = Arc::new((Mutex::new(None), signal()));
    let theirs = Arc::downgrade(&place);
    add(Box::new(move || {
        let Some(theirs) = theirs.upgrade() else {
            return;
        };
        // Without a result the caller is told that it has failed.
        let result = catch_unwind(AssertUnwindSafe(work));
        let _earlier = std::mem::replace(&mut *lock(&theirs.0), result.ok());
        raise(&theirs.1);
    }))?;
    wait(&place.1, until, what)?;
    let result = lock(&place.0).take();
    result.ok_or_else(|| NetError::new(Reason::System, format!("{what} has failed")))
}

fn add(job: Job) -> Result<()> {
    let mut queue = lock(&QUEUE);
    if queue.generation != thread::generation() {
        // In a child the threads are gone.
        *queue = Queue {
            generation: thread::generation(),
            ..Queue::default()
        };
    }
    queue.jobs.push_back(job);
    if queue.idle >= queue.jobs.len() || queue.threads >= THREADS_MAX {
        ADDED.notify_one();
        return Ok(());
    }
    let spawned = std::thread::Builder::new()
        .name("citius-names".into())
        .spawn(work);
    match spawned {
        Ok(_) => queue.threads += 1,
        Err(error) if queue.threads == 0 => {
            queue.jobs.clear();
            return Err(NetError::new(
                Reason::System,
                format!("no thread to look names up: {error}"),
            ));
        }
        Err(_) => {}
    }
    Ok(())
}

fn work() {
    let mut queue = lock(&QUEUE);
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            drop(queue);
            job();
            queue = lock(&QUEUE);
            continue;
        }
        queue.idle += 1;
        let (woken, timeout) = ADDED
            .wait_timeout(queue, IDLE)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        queue = woken;
        queue.idle -= 1;
        if timeout.timed_out() && queue.jobs.is_empty() {
            queue.threads -= 1;
            return;
        }
    }
}
