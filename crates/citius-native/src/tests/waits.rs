//! Waits: of threads, of goroutines, and how contexts end them.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use super::{FOREVER, Shared, integers, receive, release, send};
use crate::clock::now;
use crate::codes::{CANCELLED, MISUSE, OK, TIMEOUT};
use crate::context::Context;
use crate::current_call::CurrentCall;
use crate::{codes, go_functions, local};

/// Runs `code` in a goroutine of the pool, and returns its result.
fn in_goroutine<T: Send + 'static>(
    context: Option<Arc<Context>>,
    code: impl FnOnce() -> T + Send + 'static,
) -> mpsc::Receiver<T> {
    let (sender, result) = mpsc::channel();
    let started = local::start_in_pool(context, Box::new(|_| {}), move || {
        sender.send(code()).expect("the test waits for it");
    });
    assert!(started.is_ok(), "there is a stack");
    result
}

/// The result, or an error where the goroutine does not end.
fn result_of<T>(ended: &mpsc::Receiver<T>) -> Result<T, mpsc::RecvTimeoutError> {
    ended.recv_timeout(Duration::from_secs(30))
}

#[test]
fn a_thread_waits_for_a_goroutine_and_a_goroutine_for_a_thread() {
    let (there, back) = (integers(0), integers(0));
    let (theirs, ours) = (Shared(there), Shared(back));
    let ended = in_goroutine(None, move || {
        // SAFETY: no pointer is passed.
        assert_eq!(unsafe { go_functions::in_goroutine() }, 1);
        let (code, value) = receive(theirs.get(), FOREVER);
        (code, send(ours.get(), value + 1, FOREVER))
    });
    assert_eq!(send(there, 41, FOREVER), OK);
    assert_eq!(receive(back, FOREVER), (OK, 42));
    assert_eq!(result_of(&ended), Ok((OK, OK)));
    release(there);
    release(back);
}

#[test]
fn a_wait_ends_when_its_time_is_up() {
    let channel = integers(0);
    let began = now();
    assert_eq!(receive(channel, 2_000_000).0, TIMEOUT);
    assert!(now() >= began + 2_000_000);
    let shared = Shared(channel);
    let ended = in_goroutine(None, move || receive(shared.get(), 2_000_000).0);
    assert_eq!(result_of(&ended), Ok(TIMEOUT));
    // What was given up waits no more: nothing takes this.
    assert_eq!(send(channel, 1, 0), TIMEOUT);
    release(channel);
}

#[test]
fn a_context_ends_the_waits_of_its_goroutines_and_of_its_children() {
    let channel = integers(0);
    let shared = Shared(channel);
    let parent = Context::new(None, None);
    let child = Context::new(Some(Arc::clone(&parent)), None);
    let ended = in_goroutine(Some(child), move || receive(shared.get(), FOREVER).0);
    assert!(ended.try_recv().is_err(), "it waits");
    parent.cancel();
    assert_eq!(result_of(&ended), Ok(CANCELLED));

    let expired = Context::new(Some(Context::new(None, Some(now()))), None);
    let ended = in_goroutine(Some(expired), move || receive(shared.get(), FOREVER).0);
    assert_eq!(result_of(&ended), Ok(TIMEOUT));
    release(channel);
}

#[test]
fn a_goroutine_sleeps_until_a_moment() {
    let at = now() + 3_000_000;
    let ended = in_goroutine(None, move || {
        let until = i64::try_from(at).expect("the clock has begun lately");
        // SAFETY: no pointer is passed.
        let code = unsafe { go_functions::sleep_until(until) };
        (code, now() >= at)
    });
    assert_eq!(result_of(&ended), Ok((OK, true)));
}

#[test]
fn a_mistake_is_noted_in_the_call_that_has_made_it() {
    thread_local! {
        static NOTED: std::cell::RefCell<Vec<&'static str>> = const { std::cell::RefCell::new(Vec::new()) };
    }

    let mut response = 0_u8;
    let call = CurrentCall {
        request: std::ptr::null(),
        response: (&raw mut response).cast(),
        note_mistake: |text| NOTED.with_borrow_mut(|noted| noted.push(text)),
    };
    let outer = call.enter();
    assert_eq!(codes::misuse(c"it is wrong"), MISUSE);
    drop(outer);
    assert_eq!(codes::misuse(c"it is wrong outside"), MISUSE);
    assert_eq!(NOTED.take(), ["it is wrong"]);
    assert_eq!(super::mistake(), "it is wrong outside");
}
