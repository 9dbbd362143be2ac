//! The threads of compiled handlers outlive what goes wrong in a job. The module is included, because the extension
//! cannot be linked into a test: it stands on nothing but the standard library.

#![allow(
    unreachable_pub,
    reason = "what a crate shows to itself this test shows to nothing"
)]

#[path = "../src/gateway/compiled/pool.rs"]
mod pool;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use pool::{Job, Place, Pool};

/// Tells how it has ended; panics if it is to.
struct Task {
    panics: bool,
    ended: Sender<&'static str>,
}

impl Job for Task {
    type OnPanic = Sender<&'static str>;

    fn on_panic(&self) -> Self::OnPanic {
        self.ended.clone()
    }

    fn run(self, place: Place<'_, Self>) {
        assert!(!self.panics, "a defect");
        drop(place);
        self.ended.send("done").expect("the test waits");
    }

    fn give_up(rest: Self::OnPanic) {
        rest.send("given up").expect("the test waits");
    }
}

const THREADS: usize = 2;
const QUEUE: usize = 3;

fn next(ended: &Receiver<&'static str>) -> &'static str {
    let patience = Duration::from_secs(30);
    ended.recv_timeout(patience).expect("every job ends")
}

#[test]
fn a_panic_loses_neither_the_thread_nor_the_place() {
    let pool = Pool::new(THREADS, QUEUE);
    let (sender, ended) = channel();
    let submit = |panics| {
        let ended = sender.clone();
        pool.submit(Box::new(Task { panics, ended })).is_ok()
    };
    // Far more than there are threads and places.
    for _ in 0..10 * (THREADS + QUEUE) {
        assert!(submit(true), "there is a place");
        assert_eq!(next(&ended), "given up");
    }
    for _ in 0..THREADS + QUEUE {
        assert!(submit(false), "there is a place");
    }
    for _ in 0..THREADS + QUEUE {
        assert_eq!(next(&ended), "done");
    }
}
