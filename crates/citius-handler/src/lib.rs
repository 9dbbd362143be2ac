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
#![allow(
    unsafe_code,
    reason = "a C interface; what callers are given is safe to use"
)]

use std::ffi::{c_char, c_int};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of `citius.h` that this crate was written against.
pub const ABI_VERSION: u32 = 1;

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
        self.raw.method.bytes()
    }

    /// The path as sent: percent-encoded, without the query.
    pub fn path(&self) -> &'a [u8] {
        self.raw.path.bytes()
    }

    /// The query as sent, without its question mark.
    pub fn query(&self) -> &'a [u8] {
        self.raw.query.bytes()
    }

    /// The whole body.
    pub fn body(&self) -> &'a [u8] {
        self.raw.body.bytes()
    }

    /// The path parameter at `index`, decoded.
    ///
    /// # Errors
    /// 500, and a line in the log: the route has fewer.
    pub fn param(&self, index: usize) -> Result<&'a [u8], Status> {
        let mut text = raw::Text::EMPTY;
        // SAFETY: the server's own function, with what the server gave and a place to write to.
        let code = unsafe { (self.api().param)(self.raw, index, &raw mut text) };
        checked(code).map(|()| text.bytes())
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
        // SAFETY: as in `param`; the name is readable for its length.
        let code = unsafe {
            (self.api().query)(self.raw, name.as_ptr().cast(), name.len(), &raw mut text)
        };
        (code == 0).then(|| text.bytes())
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
        // SAFETY: as in `param`; the text is readable for its length.
        let code = unsafe { (self.api().integer)(text, &raw mut value) };
        checked(code).map(|()| value)
    }

    /// The first value of a header field, found without regard to case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        let mut text = raw::Text::EMPTY;
        // SAFETY: as in `query_param`.
        let code = unsafe {
            (self.api().header)(self.raw, name.as_ptr().cast(), name.len(), &raw mut text)
        };
        (code == 0).then(|| text.bytes())
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
        // SAFETY: as in `status`.
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

    /// Adds a header field.
    ///
    /// # Errors
    /// 500, and a line in the log: HTTP does not allow such a name or value.
    pub fn header(&mut self, name: &[u8], value: &[u8]) -> Outcome {
        // SAFETY: as in `content_type`.
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
        // SAFETY: as in `status`.
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

/// The structs of the header.
#[doc(hidden)]
pub mod raw {
    use super::{c_char, c_int};

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct Text {
        pub data: *const c_char,
        pub size: usize,
    }

    impl Text {
        pub(super) const EMPTY: Self = Self {
            data: std::ptr::null(),
            size: 0,
        };

        /// For as long as the request is lent.
        pub(super) fn bytes<'a>(self) -> &'a [u8] {
            if self.size == 0 || self.data.is_null() {
                return &[];
            }
            // SAFETY: the server's texts are readable for their size while the call lasts, and this is
            // only handed out bounded by that.
            unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }
        }
    }

    #[repr(C)]
    pub struct Request {
        pub api: *const Api,
        pub method: Text,
        pub path: Text,
        pub query: Text,
        pub body: Text,
        pub params: *const Text,
        pub params_count: usize,
        pub arguments: *const u64,
        pub arguments_count: usize,
    }

    #[repr(C)]
    pub struct Response {
        pub api: *const Api,
        pub body: *mut u8,
        pub size: usize,
        pub room: usize,
        pub status: i32,
    }

    #[repr(C)]
    pub struct Api {
        pub version: u32,
        pub minor: u32,
        pub size: usize,
        pub reserve: unsafe extern "C" fn(*mut Response, usize) -> c_int,
        pub set_content_type: unsafe extern "C" fn(*mut Response, *const c_char, usize) -> c_int,
        pub add_header: unsafe extern "C" fn(
            *mut Response,
            *const c_char,
            usize,
            *const c_char,
            usize,
        ) -> c_int,
        pub write_integer: unsafe extern "C" fn(*mut Response, i64) -> c_int,
        pub write_real: unsafe extern "C" fn(*mut Response, f64) -> c_int,
        pub header: unsafe extern "C" fn(*const Request, *const c_char, usize, *mut Text) -> c_int,
        pub query: unsafe extern "C" fn(*const Request, *const c_char, usize, *mut Text) -> c_int,
        pub param: unsafe extern "C" fn(*const Request, usize, *mut Text) -> c_int,
        pub integer: unsafe extern "C" fn(Text, *mut i64) -> c_int,
    }
}
