//! Channels between goroutines, as code above this crate makes them.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::{Arc, Mutex};

use citius_chan::{
    Attempt, Begun, Case, Channel, Completion, Event, Outcome, Resident, Ticket, Wake, select_as,
};
use citius_goroutine::{
    Failure, Goroutine, Local, LocalHere, LocalHome, MigratingCoroutine, Observer, Pool,
    StackError, Stacks, current, park, yield_now,
};

pub(crate) struct Waker(Goroutine);

impl<V> Wake<V> for Waker {
    type Home = LocalHome;
    type Here = LocalHere;

    fn wake(ticket: Arc<Ticket<V, Self>>) {
        ticket.waker().0.unpark();
    }

    fn home(here: &LocalHere) -> LocalHome {
        here.home()
    }

    fn wake_resident(home: &LocalHome, number: u64) {
        home.unpark(number);
    }

    fn wake_here(here: &LocalHere, number: u64) {
        here.unpark(number);
    }
}

pub(crate) type Chan<V> = Arc<Channel<V, Waker>>;

pub(crate) fn chan<V>(capacity: usize) -> Chan<V> {
    Arc::new(Channel::confinable(capacity))
}

/// The goroutine that calls it, if it is one of a reactor.
#[expect(
    unsafe_code,
    reason = "that it stays on its thread is the test's promise"
)]
fn resident<V>() -> Option<Resident<V, Waker>> {
    let Goroutine::Local(handle) = current()? else {
        return None;
    };
    let waker = Local::here()?.waker();
    let thread = waker.home().id();
    // SAFETY: goroutines of a home run on one thread, and what is returned stays in this one.
    Some(unsafe { Resident::new(thread, waker, handle.number()) })
}

fn conclude<V>(
    channel: &Chan<V>,
    begun: Begun,
    place: &mut Option<V>,
    resident: &Resident<V, Waker>,
) -> Completion {
    let record = match begun {
        Begun::Done(completion) => return completion,
        Begun::Waits(record) => record,
    };
    loop {
        if let Some(completion) = channel.fetch(record, place, resident) {
            return completion;
        }
        park();
    }
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
    let (resident, mut place) = (resident(), Some(value));
    if let Some(resident) = &resident
        && let Some(begun) = channel.send_at_home(&mut place, resident)
    {
        let completion = conclude(channel, begun, &mut place, resident);
        assert_eq!(completion == Completion::Closed, place.is_some());
        return completion == Completion::Transferred;
    }
    let value = place.expect("nothing was done");
    let event = match channel.try_send_as(value, resident.as_ref()) {
        Attempt::Done(event) => event,
        Attempt::Blocked(value) => {
            let ticket = ticket();
            match channel.send_as(value.expect("given back"), &ticket, resident.as_ref()) {
                Some(event) => event,
                None => wait(&ticket).event,
            }
        }
    };
    matches!(event, Event::Sent)
}

pub(crate) fn receive<V>(channel: &Chan<V>) -> Option<V> {
    let (resident, mut place) = (resident(), None);
    if let Some(resident) = &resident
        && let Some(begun) = channel.receive_at_home(&mut place, resident)
    {
        let completion = conclude(channel, begun, &mut place, resident);
        assert_eq!(completion == Completion::Transferred, place.is_some());
        return place;
    }
    let event = match channel.try_receive_as(resident.as_ref()) {
        Attempt::Done(event) => event,
        Attempt::Blocked(_) => {
            let ticket = ticket();
            match channel.receive_as(&ticket, resident.as_ref()) {
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
    let resident = resident();
    if let Some(outcome) = select_as(&mut cases, seed, Some(&ticket), resident.as_ref()) {
        return outcome;
    }
    while !ticket.is_done() {
        park();
    }
    for channel in cases.iter().filter_map(Case::channel) {
        channel.forget_as(&ticket, resident.as_ref());
    }
    ticket.take().expect("done")
}

/// The same; gives up after so many turns of others, and then nothing was done.
pub(crate) fn select_for<V>(
    mut cases: Vec<Case<Chan<V>, V>>,
    seed: u64,
    turns: usize,
) -> Option<Outcome<V>> {
    let ticket = ticket();
    let resident = resident();
    if let Some(outcome) = select_as(&mut cases, seed, Some(&ticket), resident.as_ref()) {
        return Some(outcome);
    }
    for _ in 0..turns {
        if ticket.is_done() {
            break;
        }
        yield_now();
    }
    let has_given_up = ticket.claim();
    // Who has claimed it before settles it in a moment.
    while !has_given_up && !ticket.is_done() {
        park();
    }
    for channel in cases.iter().filter_map(Case::channel) {
        channel.forget_as(&ticket, resident.as_ref());
    }
    ticket.take()
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
