//! Locks, what is done once, and wait groups.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{FOREVER, NOW, Shared, mistake, null};
use crate::codes::{MISUSE, OK, TIMEOUT};
use crate::sync;

#[test]
fn a_lock_is_held_once() {
    let mut state = null();
    let place = &raw mut state;
    // SAFETY: the place is the member of a lock that lives until it is destroyed below.
    assert_eq!(unsafe { sync::mutex_lock(place, FOREVER) }, OK);
    // SAFETY: the lock is not destroyed yet.
    let again = unsafe { sync::mutex_lock(place, NOW) };
    assert_eq!(again, TIMEOUT);
    // SAFETY: the lock is not destroyed yet.
    assert_eq!(unsafe { sync::mutex_unlock(place) }, OK);
    // SAFETY: the lock is not destroyed yet.
    assert_eq!(unsafe { sync::mutex_unlock(place) }, MISUSE);
    assert!(mistake().contains("not locked"), "{}", mistake());
    // SAFETY: nothing uses the lock any more.
    unsafe { sync::mutex_destroy(place) };
    assert!(state.is_null());
}

#[test]
fn what_is_done_once_is_done_once_by_many_threads() {
    static DONE: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C-unwind" fn work(_argument: *mut c_void) {
        std::thread::yield_now();
        DONE.fetch_add(1, Ordering::Relaxed);
    }

    let mut state = null();
    let place = Shared(&raw mut state);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                // SAFETY: the lock outlives the threads of the scope, and the function takes any argument.
                let code = unsafe { sync::once(place.get(), Some(work), null()) };
                assert_eq!((code, DONE.load(Ordering::Relaxed)), (OK, 1));
            });
        }
    });
    // SAFETY: nothing uses it any more.
    unsafe { sync::mutex_destroy(place.get()) };
}

#[test]
fn a_wait_group_cannot_go_below_zero() {
    // SAFETY: no pointer is passed.
    let group = unsafe { sync::group_make() };
    // SAFETY: the group is not released.
    assert_eq!(unsafe { sync::group_add(group, 2) }, OK);
    let waiter = Shared(group);
    std::thread::scope(|scope| {
        // SAFETY: the group outlives the threads of the scope.
        let waits = scope.spawn(move || unsafe { sync::group_wait(waiter.get()) });
        for _ in 0..2 {
            // SAFETY: the group is not released.
            assert_eq!(unsafe { sync::group_add(group, -1) }, OK);
        }
        assert_eq!(waits.join().expect("the thread returns"), OK);
    });
    // SAFETY: the group is not released.
    assert_eq!(unsafe { sync::group_add(group, -1) }, MISUSE);
    assert!(mistake().contains("below zero"), "{}", mistake());
    // SAFETY: the reference is the test's.
    unsafe { sync::group_release(group) };
}
