//! Handlers for Citius in Rust: `citius.h` behind safe types.
//!
//! ```
//! use citius_handler::{Outcome, Request, Response};
//!
//! fn hello(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
//!     response.content_type(b"text/plain")?;
//!     response.write(b"Hello, ")?;
//!     response.write(request.param(0)?)
//! }
//!
//! citius_handler::export!(hello);
//! # fn main() {}
//! ```
//!
//! A `cdylib` with this is what `citius.load_handlers` loads. A handler is called on the reactor's thread or,
//! with `pool=True`, on several threads at once; what it shares has to be `Sync`. A panic is answered
//! with 500 and a line in the log.
//!
//! With `serial=True` on its route a handler runs in a goroutine and may wait: [`go`], [`Chan`], [`select`], [`sleep`], calls of
//! other servers ([`HttpRequest`], [`Conn`]) and of databases ([`Redis`], [`Postgres`]). With
//! `pool=True` besides, it may continue on another thread after a wait: what belongs to a thread, such as a borrow of a
//! thread-local variable or the guard of a `std::sync::Mutex`, must not be kept over one. The compiler cannot check that.
#![allow(
    unsafe_code,
    reason = "a C interface; what callers are given is safe to use"
)]

use std::ffi::c_int;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of `citius.h` that this crate was written against.
pub const ABI_VERSION: u32 = citius_abi::VERSION;

mod calls;
mod databases;
mod go;
#[doc(hidden)]
pub mod raw;

pub use calls::{CallError, Conn, FieldValue, HttpRequest, HttpResponse, Reason, Tls};
pub use databases::{Elements, OwnedReply, Postgres, Redis, Reply, Rows, Value};
#[doc(hidden)]
pub use go::set_table;
pub use go::{
    Case, Chan, Context, Error, Mutex, MutexGuard, Slot, WaitGroup, go, in_goroutine, now_ns,
    select, sleep, yield_now,
};

/// A status from 400 to 599 that responses in place of what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u16);

impl Status {
    /// 404.
    pub const NOT_FOUND: Self = Self(404);
    /// 422.
    pub const UNPROCESSABLE: Self = Self(422);
    /// 500.
    pub const FAILED: Self = Self(500);
}

/// What a handler returns.
pub type Outcome = Result<(), Status>;

/// A request; all of its bytes live as long as the call.
pub struct Request<'a> {
    raw: &'a raw::Request,
}

/// The response.
pub struct Response<'a> {
    raw: *mut raw::Response,
    lent: PhantomData<&'a mut raw::Response>,
}

impl<'a> Request<'a> {
    /// The method, as sent.
    pub fn method(&self) -> &'a [u8] {
        raw::bytes(self.raw.method)
    }

    /// The path as sent: percent-encoded, without the query.
    pub fn path(&self) -> &'a [u8] {
        raw::bytes(self.raw.path)
    }

    /// The query as sent, without its question mark.
    pub fn query(&self) -> &'a [u8] {
        raw::bytes(self.raw.query)
    }

    /// The whole body; empty with `stream=True` on the route.
    pub fn body(&self) -> &'a [u8] {
        raw::bytes(self.raw.body)
    }

    /// Copies the next bytes of the body and returns how many; 0 at the end. With `stream=True` on the route it waits for them.
    ///
    /// # Errors
    /// 499: the client has left; 504: the deadline has come; 500, and a line in the log: nothing may wait here.
    pub fn read_body(&self, buffer: &mut [u8]) -> Result<usize, Status> {
        let mut got = 0;
        // SAFETY: the server's own function; the buffer may be written to for its length.
        let code = unsafe {
            (self.api().body_read)(
                self.raw,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &raw mut got,
            )
        };
        checked(code).map(|()| got)
    }

    /// The path parameter at `index`, decoded.
    ///
    /// # Errors
    /// 500, and a line in the log: the route has fewer.
    pub fn param(&self, index: usize) -> Result<&'a [u8], Status> {
        let mut text = raw::Text::EMPTY;
        // SAFETY: the server's own function, with what the server gave and a place to write to.
        let code = unsafe { (self.api().param)(self.raw, index, &raw mut text) };
        checked(code).map(|()| raw::bytes(text))
    }

    /// The path parameter at `index` as a number.
    ///
    /// # Errors
    /// 422 if it is none that fits; 500 if the route has fewer parameters.
    pub fn param_integer(&self, index: usize) -> Result<i64, Status> {
        self.integer(self.param(index)?)
    }

    /// The last value of a query parameter, decoded.
    pub fn query_param(&self, name: &str) -> Option<&'a [u8]> {
        let mut text = raw::Text::EMPTY;
        // SAFETY: the request is the server's and lasts for the call; the name is readable for its length.
        let code = unsafe {
            (self.api().query)(self.raw, name.as_ptr().cast(), name.len(), &raw mut text)
        };
        (code == 0).then(|| raw::bytes(text))
    }

    /// A query parameter as a number; `otherwise` if it was not sent.
    ///
    /// # Errors
    /// 422 if it is none that fits.
    pub fn query_integer(&self, name: &str, otherwise: i64) -> Result<i64, Status> {
        self.query_param(name)
            .map_or(Ok(otherwise), |text| self.integer(text))
    }

    /// A text as the server reads numbers.
    fn integer(&self, text: &[u8]) -> Result<i64, Status> {
        let mut value = 0;
        let text = raw::Text {
            data: text.as_ptr().cast(),
            size: text.len(),
        };
        // SAFETY: the text is readable for its length, and there is a place for a number.
        let code = unsafe { (self.api().integer)(text, &raw mut value) };
        checked(code).map(|()| value)
    }

    /// The first value of a header field, found without regard to case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        let mut text = raw::Text::EMPTY;
        // SAFETY: the request is the server's and lasts for the call; the name is readable for its length.
        let code = unsafe {
            (self.api().header)(self.raw, name.as_ptr().cast(), name.len(), &raw mut text)
        };
        (code == 0).then(|| raw::bytes(text))
    }

    fn api(&self) -> &'a raw::Api {
        // SAFETY: the server's table is static.
        unsafe { &*self.raw.api }
    }
}

impl Response<'_> {
    /// Answers with this status instead of 200.
    pub fn status(&mut self, status: u16) {
        // SAFETY: the server lends the struct for as long as the call lasts.
        unsafe { (*self.raw).status = i32::from(status) };
    }

    /// Adds to the body.
    ///
    /// # Errors
    /// 500 beyond the server's `--compiled-body-bytes-max`.
    pub fn write(&mut self, bytes: &[u8]) -> Outcome {
        // SAFETY: the server's own function; it makes room or says that there is none.
        let code = unsafe { (self.api().reserve)(self.raw, bytes.len()) };
        checked(code)?;
        // SAFETY: the response is the server's, lasts for the call, and is referred to by this alone.
        let seen = unsafe { &mut *self.raw };
        // SAFETY: what is written ends within the room.
        let end = unsafe { seen.body.add(seen.size) };
        // SAFETY: there is room for so many bytes from there on, and no other object overlaps it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), end, bytes.len()) };
        seen.size += bytes.len();
        Ok(())
    }

    /// Adds a number in decimal digits.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_integer(&mut self, value: i64) -> Outcome {
        // SAFETY: the server's own function.
        checked(unsafe { (self.api().write_integer)(self.raw, value) })
    }

    /// Says the media type of the body.
    ///
    /// # Errors
    /// 500, and a line in the log: it has a control character.
    pub fn content_type(&mut self, media: &[u8]) -> Outcome {
        // SAFETY: the server's own function; the bytes are readable for their length.
        let code =
            unsafe { (self.api().set_content_type)(self.raw, media.as_ptr().cast(), media.len()) };
        checked(code)
    }

    /// In a goroutine: sends what is written, after the head the first time. It waits while the client is slow.
    ///
    /// # Errors
    /// 499: the client has left; 504: the deadline has come; 500, and a line in the log: nothing may wait here.
    pub fn flush(&mut self) -> Outcome {
        // SAFETY: the server's own function.
        checked(unsafe { (self.api().flush)(self.raw) })
    }

    /// Adds a header field.
    ///
    /// # Errors
    /// 500, and a line in the log: HTTP does not allow such a name or value.
    pub fn header(&mut self, name: &[u8], value: &[u8]) -> Outcome {
        // SAFETY: the response is the server's and lasts for the call; name and value are readable for their lengths.
        let code = unsafe {
            (self.api().add_header)(
                self.raw,
                name.as_ptr().cast(),
                name.len(),
                value.as_ptr().cast(),
                value.len(),
            )
        };
        checked(code)
    }

    fn api(&self) -> &'static raw::Api {
        // SAFETY: the response is the server's and lasts for the call.
        let api = unsafe { (*self.raw).api };
        // SAFETY: the server's table is static.
        unsafe { &*api }
    }
}

impl std::fmt::Write for Response<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.write(text.as_bytes()).map_err(|_| std::fmt::Error)
    }
}

fn checked(code: c_int) -> Outcome {
    if code == 0 {
        Ok(())
    } else {
        Err(Status(u16::try_from(code).unwrap_or(500)))
    }
}

/// Calls a handler as the server wants it called; for [`export!`].
///
/// # Safety
/// The pointers have to be what the server calls a handler with.
#[doc(hidden)]
pub unsafe fn enter(
    handler: impl FnOnce(&Request<'_>, &mut Response<'_>) -> Outcome,
    request: *const raw::Request,
    response: *mut raw::Response,
) -> c_int {
    // SAFETY: the server gives a request that lives as long as the call, or this is not its call.
    let Some(raw) = (unsafe { request.as_ref() }) else {
        return 500;
    };
    set_table(raw.api);
    let mut response = Response {
        raw: response,
        lent: PhantomData,
    };
    // What a handler leaves behind when it panics is its own; of ours there is nothing half done.
    match catch_unwind(AssertUnwindSafe(|| {
        handler(&Request { raw }, &mut response)
    })) {
        Ok(Ok(())) => 0,
        Ok(Err(Status(status))) => c_int::from(status),
        // One that the server takes for what it is: a defect, with a line in the log.
        Err(_) => PANICKED,
    }
}

/// No status, so that the server's log has a line.
const PANICKED: c_int = -2;

/// Exports functions as handlers of `citius.h`, under their own names.
#[macro_export]
macro_rules! export {
    ($($handler:ident),+ $(,)?) => {
        const _: () = {
            #[unsafe(no_mangle)]
            static citius_abi_version: u32 = $crate::ABI_VERSION;
            #[unsafe(no_mangle)]
            extern "C" fn citius_library_init(table: *const $crate::raw::Api) {
                $crate::set_table(table);
            }
            $(
                #[unsafe(no_mangle)]
                extern "C" fn $handler(
                    request: *const $crate::raw::Request,
                    response: *mut $crate::raw::Response,
                ) -> ::std::ffi::c_int {
                    // SAFETY: only the server calls it.
                    unsafe { $crate::enter(self::$handler, request, response) }
                }
            )+
        };
    };
}
