//! Channels between goroutines, as code above this crate makes them.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::{Arc, Mutex};

use citius_chan::{Attempt, Case, Channel, Event, Outcome, Ticket, Wake, select};
use citius_goroutine::{
    Failure, Goroutine, Local, MigratingCoroutine, Observer, Pool, StackError, Stacks, current,
    park,
};

pub(crate) struct Waker(Goroutine);

impl<V> Wake<V> for Waker {
    fn wake(ticket: Arc<Ticket<V, Self>>) {
        ticket.waker().0.unpark();
    }
}

pub(crate) type Chan<V> = Arc<Channel<V, Waker>>;

pub(crate) fn chan<V>(capacity: usize) -> Chan<V> {
    Arc::new(Channel::new(capacity))
}

fn ticket<V>() -> Arc<Ticket<V, Waker>> {
    Arc::new(Ticket::new(Waker(current().expect("in a goroutine"))))
}

fn wait<V>(ticket: &Arc<Ticket<V, Waker>>) -> Outcome<V> {
    while !ticket.is_done() {
        park();
    }
    ticket.take().expect("done")
}

pub(crate) fn send<V>(channel: &Chan<V>, value: V) -> bool {
    let event = match channel.try_send(value) {
        Attempt::Done(event) => event,
        Attempt::Blocked(value) => {
            let ticket = ticket();
            match channel.send(value.expect("given back"), &ticket) {
                Some(event) => event,
                None => wait(&ticket).event,
            }
        }
    };
    matches!(event, Event::Sent)
}

pub(crate) fn receive<V>(channel: &Chan<V>) -> Option<V> {
    let event = match channel.try_receive() {
        Attempt::Done(event) => event,
        Attempt::Blocked(_) => {
            let ticket = ticket();
            match channel.receive(&ticket) {
                Some(event) => event,
                None => wait(&ticket).event,
            }
        }
    };
    match event {
        Event::Received(value) => Some(value),
        _ => None,
    }
}

pub(crate) fn select_one<V>(mut cases: Vec<Case<Chan<V>, V>>, seed: u64) -> Outcome<V> {
    let ticket = ticket();
    if let Some(outcome) = select(&mut cases, seed, Some(&ticket)) {
        return outcome;
    }
    while !ticket.is_done() {
        park();
    }
    for channel in cases.iter().filter_map(Case::channel) {
        channel.forget(&ticket);
    }
    ticket.take().expect("done")
}

/// Failures that were told, as text.
#[derive(Clone, Default)]
pub(crate) struct Failures(pub(crate) Arc<Mutex<Vec<(usize, String)>>>);

impl Failures {
    pub(crate) fn take(&self) -> Vec<(usize, String)> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

impl Observer for Failures {
    fn failed(&self, word: usize, failure: Failure) {
        let text = match failure {
            Failure::Panicked(payload) => match payload.downcast_ref::<&str>() {
                Some(text) => format!("panicked: {text}"),
                None => "panicked".to_owned(),
            },
            Failure::Overflowed => "overflowed".to_owned(),
            Failure::Abandoned => "abandoned".to_owned(),
        };
        self.0.lock().expect("no panic").push((word, text));
    }
}

pub(crate) fn local() -> (Local, Failures) {
    let failures = Failures::default();
    let stacks = Stacks::new(64 * 1024, 100_000);
    let local = Local::new(stacks, Box::new(failures.clone()), Box::new(|| {}));
    (local, failures)
}

pub(crate) fn run(local: &Local) {
    while local.run(&|| false) {}
}

/// Starts a goroutine of a pool whose code keeps nothing of its thread.
#[allow(unsafe_code, reason = "the codes of these tests may migrate")]
pub(crate) fn start(
    pool: &Pool,
    word: usize,
    code: impl FnOnce() + Send + 'static,
) -> Result<Goroutine, StackError> {
    pool.start(word, |stack| {
        // SAFETY: the codes of these tests keep nothing of a thread.
        unsafe { MigratingCoroutine::new(stack, code) }
    })
}
