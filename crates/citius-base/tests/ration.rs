//! Lines of the log that clients cause are bounded; the test is in the file itself. Files are included, because a test that
//! links this crate needs Python's library: these stand on nothing but the standard library.

#![allow(
    unreachable_pub,
    dead_code,
    reason = "what a crate shows to itself this test shows to nothing"
)]

#[path = "../src/ration.rs"]
mod ration;
#[path = "../src/sync.rs"]
mod sync;

use std::sync::{Arc, Mutex};

#[test]
fn a_panic_of_another_thread_locks_nothing_up() {
    let shared = Arc::new(Mutex::new(1));
    let other = Arc::clone(&shared);
    let panicked = std::thread::spawn(move || {
        let _guard = sync::lock(&other);
        panic!("while the lock is held");
    });
    assert!(panicked.join().is_err());
    *sync::lock(&shared) += 1;
    assert_eq!(*sync::lock(&shared), 2);
}

#[test]
fn a_flag_is_seen_by_other_threads() {
    let flag = Arc::new(sync::Flag::default());
    let other = Arc::clone(&flag);
    assert!(!flag.is_set());
    std::thread::spawn(move || other.set())
        .join()
        .expect("it only sets the flag");
    assert!(flag.is_set());
    flag.clear();
    assert!(!flag.is_set());
}
