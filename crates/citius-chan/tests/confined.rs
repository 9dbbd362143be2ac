//! Channels that are confined to a thread: no two threads are inside at a time, and nothing is lost when another thread comes.
#![allow(unsafe_code, reason = "a resident's thread is the test's promise")]

use std::collections::HashSet;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};

use citius_chan::{Attempt, Begun, Channel, Completion, Event, Resident, Ticket, Wake};
use citius_testkit::rng::Rng;

// --- all interleavings ----------------------------------------------------------------------------

/// The protocol of `lock.rs` between the thread that a lock is confined to and one that makes it shared. Each has a buffer in
/// which its stores wait before the other sees them, as processors have.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct World {
    is_confined: bool,
    is_inside: bool,
    /// Which of the two has the mutex.
    mutex: Option<Who>,
    /// Stores of the first thread to `is_inside`, the oldest first.
    delayed: [Option<bool>; 2],
    /// The second thread's store to `is_confined` waits.
    is_revocation_delayed: bool,
    first: First,
    rounds: u8,
    second: Second,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
enum Who {
    First,
    Second,
}

/// What the thread of the confinement does next.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
enum First {
    Look,
    SayInside,
    LookAgain,
    Inside,
    TakeMutex,
    InsideShared,
    Done,
}

/// What the other thread does next.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
enum Second {
    TakeMutex,
    Revoke,
    Barrier,
    Wait,
    Inside,
    Done,
}

impl World {
    const BEGIN: Self = Self {
        is_confined: true,
        is_inside: false,
        mutex: None,
        delayed: [None; 2],
        is_revocation_delayed: false,
        first: First::Look,
        rounds: 0,
        second: Second::TakeMutex,
    };

    /// A store of the first thread, if its buffer has room.
    fn store(mut self, is_inside: bool, then: First) -> Option<Self> {
        let place = self.delayed.iter().position(Option::is_none)?;
        self.delayed[place] = Some(is_inside);
        self.first = then;
        Some(self)
    }

    /// The first thread's oldest store is seen.
    fn drain(mut self) -> Self {
        if let [Some(oldest), next] = self.delayed {
            self.is_inside = oldest;
            self.delayed = [next, None];
        }
        self
    }

    fn first(mut self) -> Option<Self> {
        self.first = match self.first {
            First::Look if self.is_confined => First::SayInside,
            First::Look => First::TakeMutex,
            First::SayInside => return self.store(true, First::LookAgain),
            First::LookAgain if self.is_confined => First::Inside,
            First::LookAgain => return self.store(false, First::TakeMutex),
            First::Inside => {
                self.rounds += 1;
                let then = if self.rounds == 3 {
                    First::Done
                } else {
                    First::Look
                };
                return self.store(false, then);
            }
            First::TakeMutex if self.mutex.is_none() => {
                // An atomic operation: what was stored before is seen.
                self = self.drain().drain();
                self.mutex = Some(Who::First);
                First::InsideShared
            }
            First::InsideShared => {
                self.mutex = None;
                First::Done
            }
            First::TakeMutex | First::Done => return None,
        };
        Some(self)
    }

    fn second(mut self, has_barrier: bool) -> Option<Self> {
        self.second = match self.second {
            Second::TakeMutex if self.mutex.is_none() => {
                self.mutex = Some(Who::Second);
                Second::Revoke
            }
            Second::Revoke => {
                self.is_revocation_delayed = true;
                Second::Barrier
            }
            Second::Barrier => {
                if has_barrier {
                    // On both threads.
                    self = self.drain().drain().revocation_seen();
                }
                Second::Wait
            }
            Second::Wait if !self.is_inside => Second::Inside,
            Second::Inside => {
                self = self.revocation_seen();
                self.mutex = None;
                Second::Done
            }
            Second::TakeMutex | Second::Wait | Second::Done => return None,
        };
        Some(self)
    }

    fn revocation_seen(mut self) -> Self {
        if std::mem::take(&mut self.is_revocation_delayed) {
            self.is_confined = false;
        }
        self
    }

    fn is_shared_by_two(&self) -> bool {
        matches!(self.first, First::Inside | First::InsideShared) && self.second == Second::Inside
    }
}

/// Whether two threads can be inside at a time, and whether both can come to a stop before their ends.
fn explore(has_barrier: bool) -> (bool, bool) {
    let mut seen = HashSet::new();
    let mut left = vec![World::BEGIN];
    let (mut is_shared, mut is_stuck) = (false, false);
    while let Some(world) = left.pop() {
        if !seen.insert(world) {
            continue;
        }
        is_shared |= world.is_shared_by_two();
        let steps = [
            world.first(),
            world.second(has_barrier),
            world.delayed[0].map(|_| world.drain()),
            world.is_revocation_delayed.then(|| world.revocation_seen()),
        ];
        let is_over = world.first == First::Done && world.second == Second::Done;
        is_stuck |= !is_over && steps.iter().all(Option::is_none);
        left.extend(steps.into_iter().flatten());
    }
    assert!(seen.len() > 50, "{} states", seen.len());
    (is_shared, is_stuck)
}

#[test]
fn in_no_interleaving_are_two_threads_inside() {
    assert_eq!(explore(true), (false, false));
}

#[test]
fn without_the_barrier_there_is_such_an_interleaving() {
    assert!(explore(false).0);
}

// --- real threads ---------------------------------------------------------------------------------

struct Parked(Thread);

impl Wake<u64> for Parked {
    type Home = Thread;
    type Here = Thread;

    fn wake(ticket: Arc<Ticket<u64, Self>>) {
        ticket.waker().0.unpark();
    }

    fn home(here: &Thread) -> Thread {
        here.clone()
    }

    fn wake_resident(home: &Thread, _key: u64) {
        home.unpark();
    }

    fn wake_here(here: &Thread, _key: u64) {
        here.unpark();
    }
}

type Chan = Channel<u64, Parked>;

fn resident(thread: u64) -> Resident<u64, Parked> {
    let thread = NonZeroU64::new(thread).expect("not zero");
    // SAFETY: each caller has a number of its own, and keeps what it gets.
    unsafe { Resident::new(thread, thread::current(), 7) }
}

#[cfg(target_os = "linux")]
#[test]
fn a_channel_that_one_thread_uses_is_confined_until_another_comes() {
    let channel = Chan::confinable(1);
    let home = resident(1);
    let mut turns = 0;
    while !channel.is_confined() {
        turns += 1;
        assert!(turns < 100);
        assert_eq!(send_at_home(&channel, turns, &home), (None, Some(turns)));
        let _ = channel.try_send_as(turns, Some(&home));
        let _ = channel.try_receive_as(Some(&home));
    }
    let sent = Some(Begun::Done(Completion::Transferred));
    assert_eq!(send_at_home(&channel, 5, &home), (sent, None));
    assert_eq!(channel.try_visit(|_| Err(())), Ok(()));
    let received = thread::scope(|scope| scope.spawn(|| channel.try_receive()).join());
    assert_eq!(received.ok(), Some(Attempt::Done(Event::Received(5))));
    assert!(!channel.is_confined());
}

#[test]
fn a_channel_that_must_be_visited_is_never_confined() {
    let channel = Chan::new(1);
    let home = resident(2);
    for n in 0..1000 {
        assert_eq!(send_at_home(&channel, n, &home), (None, Some(n)));
        let _ = channel.try_send_as(n, Some(&home));
        let _ = channel.try_receive_as(Some(&home));
    }
    assert!(!channel.is_confined());
}

#[cfg(target_os = "linux")]
#[test]
fn what_waits_at_home_is_completed_by_another_thread() {
    let channel = Chan::confinable(0);
    let home = resident(3);
    let mut place = None;
    while !channel.is_confined() {
        if channel.receive_at_home(&mut place, &home).is_none() {
            let _ = channel.try_receive_as(Some(&home));
        }
    }
    let Some(Begun::Waits(record)) = channel.receive_at_home(&mut place, &home) else {
        panic!("it is confined");
    };
    let Some(Begun::Waits(given_up)) = channel.receive_at_home(&mut place, &home) else {
        panic!("it is confined");
    };
    assert_eq!(channel.give_up(given_up, &mut place, &home), None);
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(channel.try_send(9), Attempt::Done(Event::Sent)));
        let completion = loop {
            if let Some(completion) = channel.fetch(record, &mut place, &home) {
                break completion;
            }
            thread::park();
        };
        assert_eq!((completion, place), (Completion::Transferred, Some(9)));
    });
    assert_eq!(channel.waiting(), (0, 0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_send_that_waits_at_home_is_received_refused_or_given_back() {
    let channel = Chan::confinable(0);
    let home = resident(5);
    while !channel.is_confined() {
        if send_at_home(&channel, 0, &home).0.is_none() {
            let _ = channel.try_receive_as(Some(&home));
        }
    }
    let records = [1, 2, 3].map(|n| match send_at_home(&channel, n, &home) {
        (Some(Begun::Waits(record)), None) => record,
        other => panic!("{other:?}"),
    });
    let mut place = None;
    assert_eq!(channel.give_up(records[1], &mut place, &home), None);
    assert_eq!(place.take(), Some(2));
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(channel.try_receive(), Attempt::Done(Event::Received(1))));
    });
    let sent = Some(Completion::Transferred);
    assert_eq!(channel.fetch(records[0], &mut place, &home), sent);
    assert_eq!(place, None);
    // It is shared now, and what waits at home is visited.
    assert_eq!(channel.try_visit(|value| Err(*value)), Err(3));
    assert_eq!(channel.close(), Ok(()));
    let refused = Some(Completion::Closed);
    assert_eq!(channel.fetch(records[2], &mut place, &home), refused);
    assert_eq!(place, Some(3));
}

const VISITS: usize = 3000;

/// Begins to send; what is in the value's place afterwards.
fn send_at_home(
    channel: &Chan,
    n: u64,
    home: &Resident<u64, Parked>,
) -> (Option<Begun>, Option<u64>) {
    let mut place = Some(n);
    (channel.send_at_home(&mut place, home), place)
}

/// Sends as a goroutine of the channel's thread does, and gives up if it would wait.
fn send_now(channel: &Chan, n: u64, home: &Resident<u64, Parked>) -> bool {
    let mut place = Some(n);
    match channel.send_at_home(&mut place, home) {
        Some(Begun::Done(completion)) => completion == Completion::Transferred,
        Some(Begun::Waits(record)) => channel.give_up(record, &mut place, home).is_some(),
        None => channel.try_send_as(n, Some(home)) == Attempt::Done(Event::Sent),
    }
}

/// The same of a receive.
fn receive_now(channel: &Chan, home: &Resident<u64, Parked>) -> Option<u64> {
    let mut place = None;
    match channel.receive_at_home(&mut place, home) {
        Some(Begun::Done(_)) => {}
        Some(Begun::Waits(record)) => {
            channel.give_up(record, &mut place, home);
        }
        None => {
            if let Attempt::Done(Event::Received(value)) = channel.try_receive_as(Some(home)) {
                place = Some(value);
            }
        }
    }
    place
}

/// One thread sends and receives all the time, as the residents of a reactor do; two others come now and then.
#[test]
fn nothing_is_lost_when_other_threads_come() {
    let channel = Chan::confinable(4);
    let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let (confinements, visits) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let home = resident(4);
            let mut n = 0;
            while !is_over.load(Ordering::Acquire) {
                n += 1;
                let before = channel.is_confined();
                if send_now(&channel, n, &home) {
                    sent.fetch_add(n, Ordering::Relaxed);
                }
                if let Some(value) = receive_now(&channel, &home) {
                    received.fetch_add(value, Ordering::Relaxed);
                }
                let is_new = !before && channel.is_confined();
                confinements.fetch_add(usize::from(is_new), Ordering::Relaxed);
            }
        });
        for visitor in 0..2_u64 {
            let (channel, sent, received, visits) = (&channel, &sent, &received, &visits);
            let is_over = &is_over;
            scope.spawn(move || {
                let mut rng = Rng::new(visitor);
                while visits.fetch_add(1, Ordering::AcqRel) < VISITS {
                    for _ in 0..rng.below(20_000) {
                        std::hint::spin_loop();
                    }
                    if rng.once_in(2) {
                        let value = rng.below(1000) as u64;
                        if channel.try_send(value) == Attempt::Done(Event::Sent) {
                            sent.fetch_add(value, Ordering::Relaxed);
                        }
                    } else if let Attempt::Done(Event::Received(value)) = channel.try_receive() {
                        received.fetch_add(value, Ordering::Relaxed);
                    }
                }
                is_over.store(true, Ordering::Release);
            });
        }
    });
    while let Attempt::Done(Event::Received(value)) = channel.try_receive() {
        received.fetch_add(value, Ordering::Relaxed);
    }
    assert_eq!(sent.into_inner(), received.into_inner());
    if cfg!(target_os = "linux") {
        assert!(confinements.into_inner() > 3, "nothing was tried");
    }
}
