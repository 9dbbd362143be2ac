//! Goroutines of one thread.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use citius_chan::{Attempt, Case};
use citius_goroutine::{
    Local, StackError, Stacks, clear_timer, current, is_inside, park, set_timer, set_word, word,
    yield_now,
};

use common::{Failures, chan, local, receive, run, select_one, send};

#[test]
fn they_run_in_the_order_in_which_they_became_ready() {
    let (local, _) = local();
    let log: Rc<RefCell<Vec<String>>> = Rc::default();
    for name in ["a", "b", "c"] {
        let log = Rc::clone(&log);
        let code = move || {
            for n in 0..2 {
                log.borrow_mut().push(format!("{name}{n}"));
                yield_now();
            }
        };
        local.start(0, code).expect("a stack");
    }
    assert_eq!(local.len(), 3);
    run(&local);
    assert!(local.is_empty());
    assert_eq!(log.borrow().join(" "), "a0 b0 c0 a1 b1 c1");
}

#[test]
fn one_that_is_started_now_runs_at_once() {
    let (local, _) = local();
    let seen = Rc::new(Cell::new(0));
    let log = Rc::clone(&seen);
    let code = move || {
        log.set(1);
        yield_now();
        log.set(2);
    };
    local.start_now(7, code).expect("a stack");
    assert_eq!((seen.get(), local.len()), (1, 1));
    assert_eq!(local.words(), [7]);
    run(&local);
    assert_eq!((seen.get(), local.len()), (2, 0));
}

#[test]
fn values_go_through_channels() {
    let (local, failures) = local();
    let (numbers, squares) = (chan::<u64>(0), chan::<u64>(3));
    let (from, to) = (Arc::clone(&numbers), Arc::clone(&squares));
    let code = move || {
        while let Some(number) = receive(&from) {
            assert!(send(&to, number * number));
        }
        to.close().expect("once");
    };
    local.start(0, code).expect("a stack");
    let from = Arc::clone(&numbers);
    let code = move || {
        for number in 0..100 {
            assert!(send(&from, number));
        }
        from.close().expect("once");
    };
    local.start(0, code).expect("a stack");
    let sum = Rc::new(Cell::new(0));
    let total = Rc::clone(&sum);
    let code = move || {
        while let Some(square) = receive(&squares) {
            total.set(total.get() + square);
        }
    };
    local.start(0, code).expect("a stack");
    run(&local);
    assert_eq!(sum.get(), (0..100).map(|n| n * n).sum());
    assert!(local.is_empty());
    assert!(failures.take().is_empty());
}

#[test]
fn a_wake_up_before_the_park_is_not_lost() {
    let (local, _) = local();
    let code = || {
        current().expect("in a goroutine").unpark();
        current().expect("in a goroutine").unpark();
        park();
    };
    local.start(0, code).expect("a stack");
    run(&local);
    assert!(local.is_empty());
}

#[test]
fn a_wake_up_of_one_that_has_ended_wakes_no_other() {
    let (local, _) = local();
    let first = local.start(0, || {}).expect("a stack");
    run(&local);
    // In the same place of the table.
    let code = || {
        park();
        unreachable!("nothing wakes it");
    };
    local.start(1, code).expect("a stack");
    run(&local);
    citius_goroutine::Goroutine::from(first).unpark();
    run(&local);
    assert_eq!(local.words(), [1]);
    local.abandon_all();
}

#[test]
fn other_threads_wake_through_the_inbox() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let request = move || {
        count.fetch_add(1, Ordering::SeqCst);
    };
    let stacks = Stacks::new(64 * 1024, 10);
    let local = Local::new(stacks, Box::new(Failures::default()), Box::new(request));
    let is_woken = Arc::new(AtomicBool::new(false));
    let sees = Arc::clone(&is_woken);
    let code = move || {
        while !sees.load(Ordering::SeqCst) {
            park();
        }
    };
    let handle = local.start(0, code).expect("a stack");
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    run(&local);
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    let waker = std::thread::spawn(move || {
        is_woken.store(true, Ordering::SeqCst);
        citius_goroutine::Goroutine::from(handle).unpark();
    });
    waker.join().expect("no panic");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    run(&local);
    assert!(local.is_empty());
}

#[test]
fn a_run_ends_when_its_time_is_over() {
    let (local, _) = local();
    let count = Rc::new(Cell::new(0));
    let counts = Rc::clone(&count);
    let code = move || {
        for _ in 0..1000 {
            counts.set(counts.get() + 1);
            yield_now();
        }
    };
    local.start(0, code).expect("a stack");
    assert!(local.run(&|| true));
    assert!((1..100).contains(&count.get()), "{}", count.get());
    run(&local);
    assert_eq!(count.get(), 1000);
}

#[test]
fn timers_wake_in_their_order_and_never_early() {
    let (local, _) = local();
    let log: Rc<RefCell<Vec<u64>>> = Rc::default();
    for at in [300, 100, 200] {
        let log = Rc::clone(&log);
        let code = move || {
            set_timer(at);
            park();
            log.borrow_mut().push(at);
        };
        local.start(0, code).expect("a stack");
    }
    // Neither a timer that was cleared nor one of a goroutine that has ended wakes anything.
    let code = || {
        set_timer(150);
        clear_timer();
        set_timer(160);
    };
    local.start(0, code).expect("a stack");
    run(&local);
    assert!(local.next_timer_at().is_some_and(|at| at >= 100));
    local.fire_timers(99);
    run(&local);
    assert!(log.borrow().is_empty());
    local.fire_timers(200);
    run(&local);
    assert_eq!(*log.borrow(), [100, 200]);
    local.fire_timers(1000);
    run(&local);
    assert_eq!(*log.borrow(), [100, 200, 300]);
    assert_eq!(local.next_timer_at(), None);
}

#[test]
fn a_run_is_requested_for_a_timer_that_nothing_knows_of() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let request = move || {
        count.fetch_add(1, Ordering::SeqCst);
    };
    let stacks = Stacks::new(64 * 1024, 10);
    let local = Local::new(stacks, Box::new(Failures::default()), Box::new(request));
    let sleep = |at| {
        move || {
            set_timer(at);
            park();
        }
    };
    local.start_now(0, sleep(900_000)).expect("a stack");
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    run(&local);
    assert_eq!(local.next_timer_at(), Some(900_000));
    local.start_now(0, sleep(950_000)).expect("a stack");
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    local.start_now(0, sleep(500_000)).expect("a stack");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    run(&local);
    assert_eq!(local.next_timer_at(), Some(500_000));
    local.fire_timers(500_000);
    run(&local);
    assert_eq!(local.next_timer_at(), Some(900_000));
    local.fire_timers(2_000_000);
    run(&local);
    assert!(local.is_empty());
}

#[test]
fn one_that_is_started_now_and_stays_ready_requests_a_run() {
    let yields: fn() = yield_now;
    let is_woken: fn() = || {
        current().expect("in a goroutine").unpark();
        park();
    };
    for lets_others_run in [yields, is_woken] {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let local = Local::new(
            Stacks::new(64 * 1024, 100),
            Box::new(Failures::default()),
            Box::new(move || {
                counted.fetch_add(1, Ordering::SeqCst);
            }),
        );
        let code = move || {
            lets_others_run();
            set_timer(500_000);
            park();
        };
        local.start_now(0, code).expect("a stack");
        assert_eq!(requests.load(Ordering::SeqCst), 1);
        run(&local);
        assert_eq!(local.next_timer_at(), Some(500_000));
    }
}

#[test]
fn failures_are_told_and_end_their_goroutine_only() {
    let (local, failures) = local();
    local.start(1, || panic!("on purpose")).expect("a stack");
    local
        .start(2, || {
            set_word(20);
            citius_goroutine::require_stack(1 << 30);
        })
        .expect("a stack");
    let is_done = Rc::new(Cell::new(false));
    let done = Rc::clone(&is_done);
    local
        .start(3, move || {
            yield_now();
            assert_eq!(word(), 3);
            done.set(true);
        })
        .expect("a stack");
    run(&local);
    assert!(is_done.get());
    assert_eq!(word(), 0);
    let told = failures.take();
    assert_eq!(
        told,
        [
            (1, "panicked: on purpose".into()),
            (20, "overflowed".into())
        ]
    );
    let code = || {
        park();
        unreachable!("it is abandoned");
    };
    local.start(4, code).expect("a stack");
    run(&local);
    local.abandon_all();
    assert_eq!(failures.take(), [(4, "abandoned".into())]);
    assert!(local.is_empty());
}

#[test]
fn there_is_a_limit() {
    let stacks = Stacks::new(64 * 1024, 2);
    let local = Local::new(stacks, Box::new(Failures::default()), Box::new(|| {}));
    for _ in 0..2 {
        local.start(0, park).expect("a stack");
    }
    assert_eq!(local.start(0, || {}).err(), Some(StackError::Limit(2)));
    run(&local);
    local.abandon_all();
    assert!(local.start(0, || {}).is_ok());
    run(&local);
}

#[cfg(target_os = "linux")]
#[test]
fn channels_of_one_thread_are_confined_to_it_until_another_comes() {
    const ROUNDS: u64 = 20_000;
    let (local, _) = local();
    let (there, back) = (chan::<u64>(0), chan::<u64>(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let visits = Rc::new(Cell::new(0));
    let (from, to, arrived) = (there.clone(), back.clone(), Rc::clone(&visits));
    let echo = move || {
        while let Some(value) = receive(&from) {
            // Values of the thread are odd: they go no further.
            if value % 2 == 1 {
                arrived.set(arrived.get() + 1);
            } else {
                assert!(send(&to, value));
            }
        }
    };
    let confinements = Rc::new(Cell::new(0));
    let (to, from, count) = (there.clone(), back, Rc::clone(&confinements));
    let visited = Arc::clone(&is_over);
    let ping = move || {
        let mut n = 0;
        while n < ROUNDS || !visited.load(Ordering::Acquire) {
            let before = to.is_confined();
            assert!(send(&to, n * 2));
            assert_eq!(
                receive(&from),
                Some(n * 2),
                "none is lost, doubled or early"
            );
            count.set(count.get() + u32::from(!before && to.is_confined()));
            n += 1;
        }
        to.close().expect("once");
    };
    local.start(0, echo).expect("a stack");
    local.start(0, ping).expect("a stack");
    let visitor = thread::spawn(move || {
        let mut sent = 0;
        for visit in 0..50 {
            #[expect(
                clippy::disallowed_methods,
                reason = "visits are to be spread over the run"
            )]
            thread::sleep(Duration::from_micros(200));
            // Only a receiver that waits takes it. There is none while the goroutines find each other's sends waiting, which a
            // value of another one can begin; the visit takes the confinement away all the same.
            let attempt = there.try_send(visit * 2 + 1);
            sent += u32::from(matches!(attempt, Attempt::Done(_)));
        }
        is_over.store(true, Ordering::Release);
        sent
    });
    while !local.is_empty() {
        run(&local);
        thread::yield_now();
    }
    assert_eq!(visitor.join().expect("no panic"), visits.get());
    assert!(confinements.get() > 0, "they were never confined");
}

#[test]
fn a_select_waits_for_several() {
    let (local, _) = local();
    let channels: Vec<_> = (0..3).map(|_| chan::<u64>(0)).collect();
    let sum = Rc::new(Cell::new(0));
    let (total, sources) = (Rc::clone(&sum), channels.clone());
    let code = move || {
        for round in 0..30 {
            let cases = sources
                .iter()
                .map(|channel| Case::Receive(Some(Arc::clone(channel))))
                .collect();
            let outcome = select_one(cases, round);
            let citius_chan::Event::Received(value) = outcome.event else {
                panic!("{outcome:?}");
            };
            assert_eq!(value % 3, outcome.case as u64);
            total.set(total.get() + 1);
        }
    };
    local.start(0, code).expect("a stack");
    for (index, channel) in channels.into_iter().enumerate() {
        let code = move || {
            for n in 0..10 {
                assert!(send(&channel, n * 3 + index as u64));
            }
        };
        local.start(0, code).expect("a stack");
    }
    run(&local);
    assert_eq!(sum.get(), 30);
    assert!(local.is_empty());
}

#[test]
fn a_scheduler_runs_within_a_goroutine_of_another() {
    let (outer, _) = local();
    let code = || {
        let (inner, _) = local();
        citius_goroutine::on_thread_stack(|| {
            assert!(!is_inside());
            inner.start(5, || assert_eq!(word(), 5)).expect("a stack");
            inner.start(6, yield_now).expect("a stack");
            run(&inner);
            assert!(inner.is_empty());
        });
        assert_eq!(word(), 9);
        yield_now();
    };
    outer.start(9, code).expect("a stack");
    run(&outer);
    assert!(outer.is_empty());
}

#[test]
fn stacks_that_are_not_needed_are_given_back() {
    let stacks = Stacks::new(64 * 1024, 10_000);
    let local = Local::new(
        stacks.clone(),
        Box::new(Failures::default()),
        Box::new(|| {}),
    );
    for _ in 0..5000 {
        local.start(0, yield_now).expect("a stack");
    }
    run(&local);
    assert_eq!(stacks.in_use(), 5000);
    let mut trims = 0;
    while local.is_trimmable() {
        local.trim();
        trims += 1;
        assert!(trims < 50, "{}", stacks.in_use());
    }
    assert!(stacks.in_use() <= 64, "{}", stacks.in_use());
}
