//! Why an outgoing call has failed: a code for the handler to return, a reason to tell apart, and a text.

use std::ffi::{CString, c_char, c_int};
use std::io;

use crate::codes::{self, CANCELLED, MISUSE, OK, TIMEOUT, UNREACHABLE};
use crate::green;
use crate::kept_error::Kept;

/// The last failure of a goroutine or a thread.
#[derive(Debug)]
pub struct NetError {
    /// What the function returns.
    pub code: c_int,
    /// What `citius_net_error` returns.
    pub reason: Reason,
    /// What happened, for people.
    pub text: String,
}

/// `CITIUS_NET_*` of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Reason {
    /// The host's name has no address.
    Name = 1,
    /// No server listens there.
    Refused = 2,
    /// The connection broke.
    Reset = 3,
    /// The server has ended the connection in the middle of a message.
    Ended = 4,
    /// TLS has failed.
    Tls = 5,
    /// What came is not what the protocol asks for.
    Protocol = 6,
    /// What came is larger than the caller takes.
    TooLarge = 7,
    /// The operating system refuses: no descriptor, no route.
    System = 8,
    /// Its time is up.
    Timeout = 9,
    /// The context was cancelled.
    Cancelled = 10,
    /// The call is wrong.
    Misuse = 11,
    /// A database has refused what it was asked for.
    Server = 12,
    /// More waits than the client permits.
    Overloaded = 13,
    /// The client is not open.
    NotOpen = 14,
}

/// What outgoing calls return.
pub type Result<T> = std::result::Result<T, NetError>;

impl NetError {
    /// A failure that is no fault of the caller's.
    pub fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self {
            code: UNREACHABLE,
            reason,
            text: text.into(),
        }
    }

    /// Of a wait that has ended without what was waited for.
    pub fn waiting(code: c_int, what: &str) -> Self {
        let (reason, text) = match code {
            TIMEOUT => (Reason::Timeout, format!("the time for {what} is over")),
            CANCELLED => (Reason::Cancelled, format!("{what} was cancelled")),
            MISUSE => (
                Reason::Misuse,
                format!("{what} must not wait here; citius_mistake says why"),
            ),
            _ => (
                Reason::System,
                format!("{what}: the reactor that watched the connection has ended"),
            ),
        };
        Self {
            code: if code == codes::CLOSED {
                UNREACHABLE
            } else {
                code
            },
            reason,
            text,
        }
    }

    /// Of a call of the system.
    pub fn system(error: citius_reactor::Errno, what: &str) -> Self {
        let error = io::Error::from(error);
        let reason = match error.kind() {
            io::ErrorKind::ConnectionRefused => Reason::Refused,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Reason::Reset,
            io::ErrorKind::TimedOut => Reason::Timeout,
            _ => Reason::System,
        };
        Self::new(reason, format!("{what}: {error}"))
    }

    /// Of the caller's.
    pub fn misuse(text: impl Into<String>) -> Self {
        Self {
            code: MISUSE,
            reason: Reason::Misuse,
            text: text.into(),
        }
    }
}

thread_local! {
    /// The last failure outside of goroutines.
    static OF_THREAD: Kept = const { Kept::new() };
}

fn keep(reason: Reason, text: Option<CString>) {
    let mut text = Some(text);
    let kept = green::with_current(|green| {
        let kept = green.net_error();
        kept.set(reason as c_int, text.take().flatten());
    });
    if kept.is_none() {
        keep_of_thread(reason, text.take().flatten());
    }
}

#[inline(never)]
fn keep_of_thread(reason: Reason, text: Option<CString>) {
    OF_THREAD.with(|kept| kept.set(reason as c_int, text));
}

#[inline(never)]
fn of_thread() -> (c_int, *const c_char) {
    OF_THREAD.with(Kept::get)
}

/// The code of a result, which is noted for `citius_net_error`.
pub fn code_of(result: Result<()>) -> c_int {
    match result {
        Ok(()) => OK,
        Err(error) => {
            // Text of other servers may have a zero byte in it.
            let text = error.text.replace('\0', " ");
            keep(error.reason, CString::new(text).ok());
            error.code
        }
    }
}

pub(crate) unsafe extern "C" fn net_error(text: *mut *const c_char) -> c_int {
    let (reason, kept) = match green::with_current(|green| green.net_error().get()) {
        Some(found) => found,
        None => of_thread(),
    };
    if !text.is_null() {
        let kept = if kept.is_null() { c"".as_ptr() } else { kept };
        // SAFETY: what the header asks for: a place for a pointer, or null.
        unsafe { text.write(kept) };
    }
    reason
}
