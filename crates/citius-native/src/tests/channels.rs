//! Channels: values, their sizes, what becomes of those that are not received.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{FOREVER, NOW, close, integers, mistake, null, receive, release, send};
use crate::chan::{self, Pointer};
use crate::codes::{CLOSED, MISUSE, OK, TIMEOUT};

fn count(channel: Pointer, what: i32) -> usize {
    // SAFETY: the channel is not released.
    unsafe { chan::count(channel, what) }
}

#[test]
fn values_come_in_the_order_in_which_they_were_sent() {
    let channel = integers(2);
    assert_eq!(send(channel, 7, NOW), OK);
    assert_eq!(send(channel, 8, NOW), OK);
    assert_eq!(send(channel, 9, NOW), TIMEOUT);
    assert_eq!((count(channel, 0), count(channel, 1)), (2, 2));
    assert_eq!(receive(channel, NOW), (OK, 7));
    assert_eq!(close(channel), OK);
    assert_eq!(close(channel), CLOSED);
    assert_eq!(receive(channel, FOREVER), (OK, 8));
    // Nothing is left: the place is zero.
    assert_eq!(receive(channel, FOREVER), (CLOSED, 0));
    assert_eq!(send(channel, 1, FOREVER), CLOSED);
    release(channel);
}

#[test]
fn a_value_of_another_size_is_a_mistake() {
    let channel = integers(1);
    let value = 1_i32;
    // SAFETY: the value has four bytes.
    let code = unsafe { chan::send(channel, ptr::from_ref(&value).cast(), 4, NOW) };
    assert_eq!(code, MISUSE);
    assert!(mistake().contains("another size"), "{}", mistake());
    assert_eq!(count(channel, 0), 0);
    // SAFETY: the channel is not released, and no object is looked at.
    let code = unsafe { chan::send_object(channel, null(), NOW) };
    assert_eq!(code, MISUSE);
    assert!(mistake().contains("an object"), "{}", mistake());
    release(channel);
}

#[test]
fn without_an_interpreter_there_is_no_object_for_a_channel() {
    let channel = integers(0);
    // SAFETY: the channel is not released.
    assert!(unsafe { chan::to_python(channel) }.is_null());
    assert_eq!(count(channel, 5), 1);
    release(channel);
}

/// A channel of values that own something, which `freed` counts.
fn owning(capacity: usize, freed: unsafe extern "C" fn(*mut c_void)) -> Pointer {
    // SAFETY: the function may be called with the address of any value of the channel.
    unsafe { chan::make(0, 8, capacity, Some(freed)) }
}

#[test]
fn a_value_that_is_not_received_is_freed_once() {
    static FREED: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" fn free(_value: *mut c_void) {
        FREED.fetch_add(1, Ordering::Relaxed);
    }

    let channel = owning(3, free);
    for value in 0..3 {
        assert_eq!(send(channel, value, NOW), OK);
    }
    // One that is not sent stays the sender's.
    assert_eq!(send(channel, 3, NOW), TIMEOUT);
    assert_eq!(FREED.load(Ordering::Relaxed), 0);
    // One that is received is the receiver's; without a place for it nothing has it.
    assert_eq!(receive(channel, NOW), (OK, 0));
    assert_eq!(FREED.load(Ordering::Relaxed), 0);
    // SAFETY: the channel is not released; there is no place.
    assert_eq!(unsafe { chan::receive(channel, null(), 0, NOW) }, OK);
    assert_eq!(FREED.load(Ordering::Relaxed), 1);
    release(channel);
    assert_eq!(FREED.load(Ordering::Relaxed), 2);
}

#[test]
fn a_channel_that_is_null_is_never_ready() {
    assert_eq!(send(ptr::null(), 1, NOW), TIMEOUT);
    assert_eq!(receive(ptr::null(), 1_000), (TIMEOUT, -1));
    assert_eq!(send(ptr::null(), 1, FOREVER), MISUSE);
    assert!(mistake().contains("NULL"), "{}", mistake());
}
