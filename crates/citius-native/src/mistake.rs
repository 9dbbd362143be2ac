//! What native code has done wrong.

use std::ffi::{CStr, c_char};
use std::ptr;

/// What is wrong with a call of native code.
pub type Mistake = &'static CStr;

pub(crate) fn c_text(mistake: Option<Mistake>) -> *const c_char {
    mistake.map_or(ptr::null(), CStr::as_ptr)
}

/// The message of a wrong call of native code.
pub(crate) fn text(mistake: Mistake) -> &'static str {
    mistake.to_str().unwrap_or("a mistake")
}
