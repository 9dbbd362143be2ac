//! The code of `lock.rs` and `progress.rs` itself under loom, which runs the interleavings of their threads and lets loads return
//! what the memory model allows. `Value` fails the test where two threads have the lock at once ("review B1"); loom does, where
//! all threads wait and none will be woken ("review B2").
#![allow(unsafe_code, reason = "that of the lock")]
#![allow(dead_code, reason = "what uses the rest is not here")]

use std::convert::Infallible;
use std::num::NonZeroU64;

use loom::sync::{Arc, Notify};
use loom::thread;

use lock::Lock;
use progress::{Looked, Progress, Stage};

#[path = "../src/lock.rs"]
mod lock;
#[allow(unreachable_pub, reason = "public in its own crate")]
#[path = "../src/progress.rs"]
mod progress;

mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;

    /// The barrier of the other thread makes a fence of it.
    pub(crate) fn compiler_fence(order: Ordering) {
        loom::sync::atomic::fence(order);
    }

    #[derive(Debug)]
    pub(crate) struct Value<T>(loom::cell::UnsafeCell<T>);

    impl<T> Value<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::cell::UnsafeCell::new(value))
        }

        /// Each use counts as a write at this moment.
        pub(crate) fn get(&self) -> *mut T {
            self.0.with_mut(|place| place)
        }
    }
}

mod barrier {
    pub(crate) fn is_there() -> bool {
        true
    }

    pub(crate) fn pass_on_all_threads() {
        loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
    }
}

fn thread_number(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).expect("not zero")
}

/// Counts in a way that another thread inside would spoil, which may come in between the two uses.
fn use_it(lock: &Lock<u32>, thread: NonZeroU64) {
    let mut guard = lock.lock_as(thread, |_| {});
    let before = *guard;
    *guard = before + 1;
}

fn explore(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(run);
}

#[test]
fn an_owner_and_another_thread_are_never_inside_together() {
    explore(3, || {
        let lock = Arc::new(Lock::new(0, true));
        let (one, two) = (thread_number(1), thread_number(2));
        lock.confine(one, |_| {}, |_| true);
        let other = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || use_it(&lock, two))
        };
        use_it(&lock, one);
        use_it(&lock, one);
        other.join().expect("no panic");
        assert_eq!(*lock.lock(|_| {}), 3);
    });
}

/// The first owner is stopped between its look at the owner and its store; the other takes the confinement away, and wants it.
#[test]
fn a_second_thread_that_confines_spoils_nothing() {
    explore(3, || {
        let lock = Arc::new(Lock::new(0, true));
        let (one, two) = (thread_number(1), thread_number(2));
        lock.confine(one, |_| {}, |_| true);
        let other = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                use_it(&lock, two);
                lock.confine(two, |_| {}, |_| true);
                use_it(&lock, two);
            })
        };
        use_it(&lock, one);
        other.join().expect("no panic");
        assert_eq!(*lock.lock(|_| {}), 3);
    });
}

#[test]
fn two_threads_that_confine_at_once_have_one_owner() {
    explore(3, || {
        let lock = Arc::new(Lock::new(0, true));
        let both = [1, 2].map(thread_number).map(|number| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                lock.confine(number, |_| {}, |_| true);
                use_it(&lock, number);
            })
        });
        for one in both {
            one.join().expect("no panic");
        }
        assert_eq!(*lock.lock(|_| {}), 2);
    });
}

/// What is measured of a call: it must be outside of the call's lock.
struct Measured;

type Call = Progress<u32, Arc<Notify>, Measured>;

/// A signal, as what the call wakes and as what its thread waits by.
fn signal() -> (Arc<Notify>, Arc<Notify>) {
    let signal = Arc::new(Notify::new());
    (Arc::clone(&signal), signal)
}

/// The result of a call, as a thread waits for it.
fn wait_for(call: &Call) -> Option<u32> {
    loop {
        match call.look(|| Ok::<(), Infallible>(()), || Ok(signal())) {
            Ok(Looked::Result(result)) => return Some(result),
            Ok(Looked::Waits(signal)) => signal.wait(),
            Ok(Looked::Over) => return None,
            Err(never) => match never {},
        }
    }
}

fn finish(call: &Call, result: u32) {
    let sleeper = call.finish(result, |Measured, _| {
        assert!(call.is_started() || call.is_over());
    });
    if let Some(sleeper) = sleeper {
        sleeper.notify();
    }
}

/// A call that has started, whose operation is measured at its end.
fn measured_call() -> Arc<Call> {
    let call = Arc::new(Call::default());
    assert_eq!(call.start(), Some(true));
    call.set_operation(Box::new(Measured));
    call
}

/// In particular one that begins to wait while the call is measured.
#[test]
fn a_thread_that_waits_for_a_result_is_woken() {
    explore(4, || {
        let call = measured_call();
        let other = {
            let call = Arc::clone(&call);
            thread::spawn(move || wait_for(&call))
        };
        finish(&call, 7);
        assert_eq!(other.join().expect("no panic"), Some(7));
        assert!(call.is_over());
    });
}

/// The code that waited leaves, at any moment of the end of the call.
#[test]
fn a_call_that_is_left_has_its_result_once_or_never() {
    explore(4, || {
        let call = measured_call();
        let other = {
            let call = Arc::clone(&call);
            thread::spawn(move || match call.replace(Stage::Over) {
                Stage::Done(result) => Some(result),
                _ => None,
            })
        };
        finish(&call, 7);
        let left_with = other.join().expect("no panic");
        assert!(matches!(left_with, None | Some(7)));
        assert_eq!(wait_for(&call), None);
    });
}

/// Two threads look at once: one of them starts it, one gets the result, and the other is told so.
#[test]
fn a_call_is_started_and_taken_once() {
    explore(3, || {
        let call = Arc::new(Call::default());
        let look = |call: &Call| {
            let start = || {
                if call.start() == Some(true) {
                    finish(call, 7);
                }
                Ok::<(), Infallible>(())
            };
            match call.look(start, || Ok(signal())) {
                Ok(Looked::Result(result)) => Some(result),
                Ok(Looked::Waits(_) | Looked::Over) => None,
                Err(never) => match never {},
            }
        };
        let other = {
            let call = Arc::clone(&call);
            thread::spawn(move || look(&call))
        };
        let here = look(&call);
        let there = other.join().expect("no panic");
        let late = call.take_result();
        assert_eq!(here.or(there).or(late), Some(7));
        assert_eq!(
            [here, there, late].iter().flatten().count(),
            1,
            "one gets it"
        );
    });
}
