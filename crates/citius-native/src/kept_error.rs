//! The last failure of an outgoing call, which each goroutine and each thread keeps for `citius_net_error`.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::ptr;

/// A reason of the header, `CITIUS_NET_OK` at first, and a text that stays where it is until the next one.
#[derive(Debug)]
pub(crate) struct Kept(RefCell<(c_int, Option<CString>)>);

impl Kept {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new((0, None)))
    }

    pub(crate) fn set(&self, reason: c_int, text: Option<CString>) {
        self.0.replace((reason, text));
    }

    pub(crate) fn get(&self) -> (c_int, *const c_char) {
        let kept = self.0.borrow();
        let text = kept.1.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        (kept.0, text)
    }
}
