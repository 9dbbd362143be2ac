//! The functions of the header as native code calls them, without an interpreter.

mod channels;
mod sync;
mod waits;

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use crate::chan::{self, Pointer};
use crate::codes;

/// A channel of 64-bit integers.
fn integers(capacity: usize) -> Pointer {
    // SAFETY: no pointer is passed.
    unsafe { chan::make(1, 8, capacity, None) }
}

fn send(channel: Pointer, value: i64, timeout_ns: i64) -> c_int {
    // SAFETY: the channel is not released, and the value has eight bytes.
    unsafe { chan::send(channel, ptr::from_ref(&value).cast(), 8, timeout_ns) }
}

/// What has come, and the code.
fn receive(channel: Pointer, timeout_ns: i64) -> (c_int, i64) {
    let mut value = -1_i64;
    // SAFETY: the channel is not released, and there is room for eight bytes.
    let code = unsafe { chan::receive(channel, ptr::from_mut(&mut value).cast(), 8, timeout_ns) };
    (code, value)
}

fn close(channel: Pointer) -> c_int {
    // SAFETY: the channel is not released.
    unsafe { chan::close(channel) }
}

fn release(channel: Pointer) {
    // SAFETY: the test has this reference, and uses it no more.
    unsafe { chan::release(channel) };
}

/// The last mistake of this thread.
fn mistake() -> &'static str {
    // SAFETY: no pointer is passed.
    let text = unsafe { codes::mistake() };
    assert!(!text.is_null(), "there is no mistake");
    // SAFETY: it is a text of the runtime's own, which lasts.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().expect("texts are UTF-8")
}

/// A pointer for another thread.
#[derive(Clone, Copy)]
struct Shared<T>(T);

// SAFETY: what is pointed to may be used on any thread, as the header says of channels.
unsafe impl<T> Send for Shared<T> {}

impl<T: Copy> Shared<T> {
    fn get(self) -> T {
        self.0
    }
}

const NOW: i64 = 0;
const FOREVER: i64 = -1;

fn null() -> *mut c_void {
    ptr::null_mut()
}
