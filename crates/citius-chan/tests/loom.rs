//! The code of `lock.rs` itself under loom, which runs the interleavings of its threads and lets loads return what the memory
//! model allows. `Value` fails the test where two threads have the lock at once ("review B1").
#![allow(unsafe_code, reason = "that of the lock")]
#![allow(dead_code, reason = "the channel that uses the rest is not here")]

use std::num::NonZeroU64;

use loom::sync::Arc;
use loom::thread;

use lock::Lock;

#[path = "../src/lock.rs"]
mod lock;

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
