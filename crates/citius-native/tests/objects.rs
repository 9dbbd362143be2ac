//! Objects are given up once, by the interpreter that is installed.
#![allow(unsafe_code, reason = "the test is the interpreter")]

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use citius_native::thread::{Parker, Woken};
use citius_native::{Channel, Element, Interpreter, Object, Place, Value, install};

/// Counts what is given up.
struct Counting(AtomicUsize);

static COUNTING: Counting = Counting(AtomicUsize::new(0));

// SAFETY: objects are addresses of nothing, which it never follows; it has no memory to give out.
unsafe impl Interpreter for Counting {
    fn release(&self, _object: NonNull<c_void>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn share(&self, _object: NonNull<c_void>) {}

    fn is_attached(&self) -> bool {
        true
    }

    fn keep_thread_state(&self) {}

    fn release_abandoned(&self) {}

    fn log_error(&self, _message: &str) {}

    fn place(&self) -> Option<Place> {
        None
    }

    fn wait_attached(&self, _parker: &Parker, _end: Option<Instant>) -> Woken {
        Woken::TimedOut
    }

    fn has_raised(&self) -> bool {
        false
    }

    fn object_of_channel(&self, _channel: Channel) -> *mut c_void {
        ptr::null_mut()
    }

    fn channel_of_object(&self, _object: NonNull<c_void>) -> Option<Channel> {
        None
    }

    fn allocate(&self, _size: usize) -> *mut c_void {
        ptr::null_mut()
    }

    unsafe fn free(&self, _memory: NonNull<c_void>) {}

    fn vital_address(&self) -> usize {
        0
    }
}

fn object() -> Object {
    // SAFETY: the interpreter of this test follows no address.
    unsafe { Object::from_raw(NonNull::dangling()) }
}

#[test]
fn an_object_is_given_up_once() {
    install(&COUNTING);
    let given_up = || COUNTING.0.load(Ordering::Relaxed);

    let channel = Channel::new(2, Element::Object);
    for _ in 0..2 {
        let _sent = channel.try_send(Value::Object(object()));
    }
    assert_eq!(given_up(), 0);
    // One that the caller has taken over is the caller's.
    let _taken = object().into_raw();
    assert_eq!(given_up(), 0);
    // One that does not fit is refused, and given up with the refusal.
    drop(channel.try_send(Value::Object(object())));
    assert_eq!(given_up(), 1);
    drop(channel);
    assert_eq!(given_up(), 3);
}
