//! Goroutines of several threads.

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;

use citius_goroutine::{
    Nanos, Pool, PoolSettings, Stacks, clear_timer, current, park, set_timer, word, yield_now,
};
use rustix::time::{ClockId, clock_gettime};

use common::{Failures, chan, receive, send, start};

fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn pool(threads: usize) -> (Pool, Failures) {
    let failures = Failures::default();
    let stacks = Stacks::new(64 * 1024, 100_000);
    let settings = PoolSettings {
        name: "test",
        threads,
        now,
        prepare_thread: || {},
    };
    let pool = Pool::new(settings, stacks, Box::new(failures.clone()));
    (pool.expect("descriptors"), failures)
}

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn they_run_on_several_threads_at_once() {
    let (pool, _) = pool(3);
    let barrier = Arc::new(Barrier::new(3));
    let (sender, receiver) = mpsc::channel();
    for _ in 0..3 {
        let (barrier, sender) = (Arc::clone(&barrier), sender.clone());
        let code = move || {
            barrier.wait();
            sender.send(std::thread::current().id()).expect("received");
        };
        start(&pool, 0, code).expect("a stack");
    }
    let threads: HashSet<_> = (0..3)
        .map(|_| receiver.recv_timeout(PATIENCE).expect("it runs"))
        .collect();
    assert_eq!(threads.len(), 3);
    pool.close();
}

#[test]
fn goroutines_of_a_busy_thread_are_stolen() {
    let (pool, _) = pool(2);
    let (sender, receiver) = mpsc::channel();
    let inner = pool.clone();
    let code = move || {
        // It keeps its thread until another has run what it starts.
        let (done, is_done) = mpsc::channel();
        for _ in 0..10 {
            let done = done.clone();
            start(&inner, 0, move || done.send(()).expect("received")).expect("a stack");
        }
        for _ in 0..10 {
            is_done.recv_timeout(PATIENCE).expect("it was stolen");
        }
        sender.send(()).expect("received");
    };
    start(&pool, 0, code).expect("a stack");
    receiver.recv_timeout(PATIENCE).expect("it ends");
    pool.close();
}

#[test]
fn timers_wake_on_a_pool_without_work() {
    let (pool, _) = pool(2);
    let (sender, receiver) = mpsc::channel();
    for ms in [30, 10, 20] {
        let sender = sender.clone();
        let code = move || {
            let at = now() + ms * 1_000_000;
            set_timer(at);
            while now() < at {
                park();
            }
            clear_timer();
            sender.send(ms).expect("received");
        };
        start(&pool, 0, code).expect("a stack");
    }
    let woken: Vec<_> = (0..3)
        .map(|_| receiver.recv_timeout(PATIENCE).expect("it wakes"))
        .collect();
    assert_eq!(woken, [10, 20, 30]);
    pool.close();
}

#[test]
fn failures_are_told_and_cost_no_thread() {
    let (pool, failures) = pool(1);
    start(&pool, 1, || panic!("on purpose")).expect("a stack");
    start(&pool, 2, || citius_goroutine::require_stack(1 << 30)).expect("a stack");
    let (sender, receiver) = mpsc::channel();
    start(&pool, 3, move || sender.send(word()).expect("received")).expect("a stack");
    assert_eq!(receiver.recv_timeout(PATIENCE), Ok(3));
    let told = failures.take();
    assert_eq!(
        told,
        [(1, "panicked: on purpose".into()), (2, "overflowed".into())]
    );
    pool.close();
}

#[test]
fn nothing_is_lost_among_threads_that_steal() {
    let (pool, failures) = pool(4);
    let channel = chan::<u64>(2);
    let back = chan::<u64>(0);
    let left = Arc::new(AtomicUsize::new(8));
    for sender in 0..8 {
        let (channel, left) = (Arc::clone(&channel), Arc::clone(&left));
        let code = move || {
            for n in 0..2000 {
                assert!(send(&channel, sender * 2000 + n));
                if n % 7 == 0 {
                    yield_now();
                }
            }
            if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                channel.close().expect("once");
            }
        };
        start(&pool, 0, code).expect("a stack");
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..5 {
        let (channel, back, seen) = (Arc::clone(&channel), Arc::clone(&back), Arc::clone(&seen));
        let code = move || {
            let mut mine = Vec::new();
            while let Some(value) = receive(&channel) {
                mine.push(value);
            }
            seen.lock().expect("no panic").extend(mine);
            assert!(send(&back, 1));
        };
        start(&pool, 0, code).expect("a stack");
    }
    let (sender, receiver) = mpsc::channel();
    let code = move || {
        for _ in 0..5 {
            receive(&back);
        }
        sender.send(()).expect("received");
    };
    start(&pool, 0, code).expect("a stack");
    receiver.recv_timeout(PATIENCE).expect("all have ended");
    let mut values = std::mem::take(&mut *seen.lock().expect("no panic"));
    values.sort_unstable();
    assert!(values.into_iter().eq(0..16_000));
    assert!(failures.take().is_empty());
    pool.close();
}

#[test]
fn no_wake_up_is_lost_while_threads_fall_asleep() {
    let (pool, _) = pool(3);
    let total = Arc::new(AtomicU64::new(0));
    for round in 0..300 {
        let (sender, receiver) = mpsc::channel();
        let goroutines: Vec<_> = (0..4)
            .map(|_| {
                let (sender, total) = (sender.clone(), Arc::clone(&total));
                let code = move || {
                    sender
                        .send(current().expect("in a goroutine"))
                        .expect("received");
                    park();
                    total.fetch_add(1, Ordering::SeqCst);
                    drop(sender);
                };
                start(&pool, 0, code).expect("a stack")
            })
            .collect();
        drop((sender, goroutines));
        for _ in 0..4 {
            let goroutine = receiver.recv_timeout(PATIENCE).expect("it runs");
            if round % 3 == 0 {
                // Sometimes all threads are asleep by now.
                std::thread::yield_now();
            }
            goroutine.unpark();
        }
        // All senders are gone when all have ended.
        assert_eq!(
            receiver.recv_timeout(PATIENCE).err(),
            Some(mpsc::RecvTimeoutError::Disconnected)
        );
    }
    assert_eq!(total.load(Ordering::SeqCst), 1200);
    pool.close();
}
