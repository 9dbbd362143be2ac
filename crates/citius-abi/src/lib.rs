//! `python/citius/include/citius.h` as Rust types: the one definition that the server and `citius-handler` share.
//!
//! What the header only points to (a channel, a reply) is a type of its own on each side: the server's are the real ones, those
//! of handlers are opaque. So the tables are generic over a set of such types ([`Objects`]), and the compiler checks each
//! function of the server against the signature that handlers call it by. References to objects that are counted are
//! `*const`. Tests: `tests/tidy/test_abi.py` compares the members with the header's.
#![no_std]
#![allow(missing_docs, reason = "the header describes each member")]
#![allow(
    unsafe_code,
    reason = "a C interface: its functions are unsafe to call"
)]

use core::ffi::{c_char, c_int, c_void};
use core::ptr;

/// `CITIUS_ABI_VERSION`.
pub const VERSION: u32 = 2;
/// The members of [`Api`] that there are, within the version.
pub const MINOR: u32 = 2;

/// The objects that the header points to without saying what they are.
pub trait Objects {
    type Runtime: RuntimeObjects;
    type Outgoing: OutgoingObjects;
    type Engines: EngineObjects;
}

/// Those of goroutines and channels.
pub trait RuntimeObjects {
    type Chan;
    type WaitGroup;
    type Context;
}

/// Those of calls to other servers.
pub trait OutgoingObjects {
    type Conn;
    type HttpResponse;
}

/// Those of calls to databases.
pub trait EngineObjects {
    type Engine;
    type Reply;
    type Rows;
}

// --- values -------------------------------------------------------------------------------------

/// `citius_text`: a borrowed slice of bytes, not terminated by a zero byte.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    pub data: *const c_char,
    pub size: usize,
}

impl Text {
    pub const EMPTY: Self = Self {
        data: ptr::null(),
        size: 0,
    };

    #[must_use]
    pub const fn of(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }

    /// The bytes; none if there is no text.
    ///
    /// # Safety
    /// `size` bytes at `data` are readable, unless it is null, and stay as they are for `'a`.
    #[must_use]
    pub const unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.size == 0 || self.data.is_null() {
            return &[];
        }
        // SAFETY: the caller's.
        unsafe { core::slice::from_raw_parts(self.data.cast(), self.size) }
    }
}

/// `citius_value`: the route says which member is meant.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Value {
    pub integer: i64,
    pub real: f64,
    pub text: Text,
}

/// `citius_pg_value`: a parameter of a statement.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PgValue {
    /// 0: NULL, 1: text, 2: bytes, 3: integer, 4: real.
    pub kind: i32,
    pub value: Value,
}

/// `citius_bytes`: memory that the receiver gives back with `free`.
#[repr(C)]
pub struct Bytes {
    pub data: *mut c_void,
    pub size: usize,
}

/// `citius_case`: one case of a select.
#[repr(C)]
pub struct Case<O: RuntimeObjects> {
    /// A case without a channel is never chosen.
    pub chan: *const O::Chan,
    /// What is sent, or where what is received is written to; null: nowhere.
    pub value: *mut c_void,
    /// Bytes of the value.
    pub size: usize,
    /// 0: receive, 1: send.
    pub operation: i32,
    /// Of the case that was chosen: 1, or 0 where a receive has found the channel closed.
    pub ok: i32,
}

/// `citius_tls`: what a connection's TLS is checked against.
#[repr(C)]
pub struct Tls {
    /// Bytes of the struct, as its writer knows it.
    pub size: usize,
    pub authorities: *const c_char,
    pub server_name: *const c_char,
    pub is_unverified: c_int,
}

/// `citius_field`: a header field.
#[repr(C)]
pub struct Field {
    pub name: Text,
    pub value: Text,
}

/// `citius_http_request`: a call of another server.
#[repr(C)]
pub struct HttpRequest {
    /// Bytes of the struct, as its writer knows it.
    pub size: usize,
    pub method: *const c_char,
    pub url: *const c_char,
    pub fields: *const Field,
    pub fields_count: usize,
    pub body: Text,
    pub body_bytes_max: usize,
    pub timeout_ns: i64,
    pub tls: *const Tls,
}

// --- a call of a handler ------------------------------------------------------------------------

/// `citius_handler`: it reads the first struct, writes the second and returns 0 or a status.
pub type Handler<O> = unsafe extern "C" fn(*const Request<O>, *mut Response<O>) -> c_int;

/// `citius_request`. All of it lives as long as the call.
#[repr(C)]
pub struct Request<O: Objects> {
    pub api: *const Api<O>,
    pub method: Text,
    pub path: Text,
    pub query: Text,
    pub body: Text,
    pub params: *const Text,
    pub params_count: usize,
    pub arguments: *const Value,
    pub arguments_count: usize,
}

/// `citius_response`. The handler writes at most `room` bytes to `body`, and to `size` how many.
#[repr(C)]
pub struct Response<O: Objects> {
    pub api: *const Api<O>,
    pub body: *mut u8,
    pub size: usize,
    pub room: usize,
    pub status: i32,
}

// --- the table ----------------------------------------------------------------------------------

/// A function that frees what a channel's value has.
pub type DropFunction = unsafe extern "C" fn(*mut c_void);
/// Where C++ keeps the exceptions of a thread (`__cxa_get_globals`).
pub type CxxGlobals = unsafe extern "C" fn() -> *mut [usize; 2];

/// `citius_api`: the functions of the server.
#[repr(C)]
pub struct Api<O: Objects> {
    pub version: u32,
    pub minor: u32,
    /// Bytes of the table: members behind it are missing.
    pub size: usize,
    pub reserve: unsafe extern "C" fn(*mut Response<O>, usize) -> c_int,
    pub set_content_type: unsafe extern "C" fn(*mut Response<O>, *const c_char, usize) -> c_int,
    pub add_header:
        unsafe extern "C" fn(*mut Response<O>, *const c_char, usize, *const c_char, usize) -> c_int,
    pub write_integer: unsafe extern "C" fn(*mut Response<O>, i64) -> c_int,
    pub write_real: unsafe extern "C" fn(*mut Response<O>, f64) -> c_int,
    pub header: unsafe extern "C" fn(*const Request<O>, *const c_char, usize, *mut Text) -> c_int,
    pub query: unsafe extern "C" fn(*const Request<O>, *const c_char, usize, *mut Text) -> c_int,
    pub param: unsafe extern "C" fn(*const Request<O>, usize, *mut Text) -> c_int,
    pub integer: unsafe extern "C" fn(Text, *mut i64) -> c_int,
    /// Since version 2, as all that follow.
    pub runtime: RuntimeApi<O::Runtime>,
    pub flush: unsafe extern "C" fn(*mut Response<O>) -> c_int,
    pub body_read: unsafe extern "C" fn(*const Request<O>, *mut c_void, usize, *mut usize) -> c_int,
    /// Since minor version 1.
    pub outgoing: OutgoingApi<O::Outgoing>,
    /// Since minor version 2.
    pub engines: EnginesApi<O::Engines>,
}

/// Goroutines, channels and time.
#[repr(C)]
pub struct RuntimeApi<O: RuntimeObjects> {
    pub go: unsafe extern "C" fn(Option<unsafe extern "C" fn(*mut c_void)>, *mut c_void) -> c_int,
    pub yield_now: unsafe extern "C" fn() -> c_int,
    pub sleep_until: unsafe extern "C" fn(i64) -> c_int,
    pub now: unsafe extern "C" fn() -> i64,
    pub in_goroutine: unsafe extern "C" fn() -> c_int,
    pub mistake: unsafe extern "C" fn() -> *const c_char,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub chan_make:
        unsafe extern "C" fn(c_int, usize, usize, Option<DropFunction>) -> *const O::Chan,
    pub chan_find: unsafe extern "C" fn(*const c_char, usize) -> *const O::Chan,
    pub chan_retain: unsafe extern "C" fn(*const O::Chan) -> *const O::Chan,
    pub chan_release: unsafe extern "C" fn(*const O::Chan),
    pub chan_send: unsafe extern "C" fn(*const O::Chan, *const c_void, usize, i64) -> c_int,
    pub chan_receive: unsafe extern "C" fn(*const O::Chan, *mut c_void, usize, i64) -> c_int,
    pub chan_send_bytes: unsafe extern "C" fn(*const O::Chan, *const c_void, usize, i64) -> c_int,
    pub chan_receive_bytes: unsafe extern "C" fn(*const O::Chan, *mut Bytes, i64) -> c_int,
    pub chan_send_object: unsafe extern "C" fn(*const O::Chan, *mut c_void, i64) -> c_int,
    pub chan_receive_object: unsafe extern "C" fn(*const O::Chan, *mut *mut c_void, i64) -> c_int,
    pub chan_close: unsafe extern "C" fn(*const O::Chan) -> c_int,
    pub chan_count: unsafe extern "C" fn(*const O::Chan, c_int) -> usize,
    pub chan_to_python: unsafe extern "C" fn(*const O::Chan) -> *mut c_void,
    pub chan_from_python: unsafe extern "C" fn(*mut c_void) -> *const O::Chan,
    pub select: unsafe extern "C" fn(*mut Case<O>, usize, i64) -> c_int,
    pub wait_group_make: unsafe extern "C" fn() -> *const O::WaitGroup,
    pub wait_group_retain: unsafe extern "C" fn(*const O::WaitGroup) -> *const O::WaitGroup,
    pub wait_group_release: unsafe extern "C" fn(*const O::WaitGroup),
    pub wait_group_add: unsafe extern "C" fn(*const O::WaitGroup, i64) -> c_int,
    pub wait_group_wait: unsafe extern "C" fn(*const O::WaitGroup) -> c_int,
    pub mutex_lock: unsafe extern "C" fn(*mut *mut c_void, i64) -> c_int,
    pub mutex_unlock: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
    pub mutex_destroy: unsafe extern "C" fn(*mut *mut c_void),
    /// An exception of C++ may pass through it.
    pub once: unsafe extern "C-unwind" fn(
        *mut *mut c_void,
        Option<unsafe extern "C-unwind" fn(*mut c_void)>,
        *mut c_void,
    ) -> c_int,
    pub context_current: unsafe extern "C" fn() -> *const O::Context,
    pub context_make: unsafe extern "C" fn(*const O::Context, i64) -> *const O::Context,
    pub context_retain: unsafe extern "C" fn(*const O::Context) -> *const O::Context,
    pub context_release: unsafe extern "C" fn(*const O::Context),
    pub context_cancel: unsafe extern "C" fn(*const O::Context),
    pub context_error: unsafe extern "C" fn(*const O::Context) -> c_int,
    pub context_deadline: unsafe extern "C" fn(*const O::Context) -> i64,
    pub context_done: unsafe extern "C" fn(*const O::Context) -> *const O::Chan,
    pub context_use: unsafe extern "C" fn(*const O::Context) -> c_int,
    pub cxx_globals: unsafe extern "C" fn(Option<CxxGlobals>),
}

/// Connections and calls of other servers.
#[repr(C)]
pub struct OutgoingApi<O: OutgoingObjects> {
    pub connect:
        unsafe extern "C" fn(*const c_char, u16, *const Tls, i64, *mut *const O::Conn) -> c_int,
    pub conn_read:
        unsafe extern "C" fn(*const O::Conn, *mut c_void, usize, *mut usize, i64) -> c_int,
    pub conn_write: unsafe extern "C" fn(*const O::Conn, *const c_void, usize, i64) -> c_int,
    pub conn_close: unsafe extern "C" fn(*const O::Conn),
    pub net_error: unsafe extern "C" fn(*mut *const c_char) -> c_int,
    pub http_call: unsafe extern "C" fn(*const HttpRequest, *mut *mut O::HttpResponse) -> c_int,
    pub http_status: unsafe extern "C" fn(*const O::HttpResponse) -> c_int,
    pub http_body: unsafe extern "C" fn(*const O::HttpResponse) -> Text,
    pub http_field:
        unsafe extern "C" fn(*const O::HttpResponse, *const c_char, usize, *mut Text) -> c_int,
    pub http_free: unsafe extern "C" fn(*mut O::HttpResponse),
}

/// Redis and PostgreSQL.
#[repr(C)]
pub struct EnginesApi<O: EngineObjects> {
    pub engine_find: unsafe extern "C" fn(c_int, *const c_char, usize) -> *const O::Engine,
    pub engine_release: unsafe extern "C" fn(*const O::Engine),
    pub redis_call: unsafe extern "C" fn(
        *const O::Engine,
        *const Text,
        usize,
        i64,
        *mut *mut O::Reply,
    ) -> c_int,
    pub reply_kind: unsafe extern "C" fn(*const O::Reply) -> c_int,
    pub reply_integer: unsafe extern "C" fn(*const O::Reply) -> i64,
    pub reply_real: unsafe extern "C" fn(*const O::Reply) -> f64,
    pub reply_text: unsafe extern "C" fn(*const O::Reply) -> Text,
    pub reply_count: unsafe extern "C" fn(*const O::Reply) -> usize,
    pub reply_at: unsafe extern "C" fn(*const O::Reply, usize) -> *const O::Reply,
    pub reply_free: unsafe extern "C" fn(*mut O::Reply),
    pub pg_query: unsafe extern "C" fn(
        *const O::Engine,
        *const c_char,
        *const PgValue,
        usize,
        i64,
        *mut *const O::Rows,
    ) -> c_int,
    pub pg_count: unsafe extern "C" fn(*const O::Rows, c_int) -> i64,
    pub pg_column: unsafe extern "C" fn(*const O::Rows, usize) -> Text,
    pub pg_text: unsafe extern "C" fn(*const O::Rows, usize, usize) -> Text,
    pub pg_integer: unsafe extern "C" fn(*const O::Rows, usize, usize, *mut i64) -> c_int,
    pub pg_real: unsafe extern "C" fn(*const O::Rows, usize, usize, *mut f64) -> c_int,
    pub pg_free: unsafe extern "C" fn(*const O::Rows),
}

// --- for handlers -------------------------------------------------------------------------------

/// The objects as handlers know them: by their addresses.
pub struct Opaque;

/// Something of the server's that is only pointed to.
macro_rules! opaque {
    ($($name:ident),+) => {
        $(
            #[doc = concat!("`citius_", stringify!($name), "`, in the server's memory.")]
            #[repr(C)]
            pub struct $name([u8; 0]);
        )+
    };
}

opaque!(
    Chan,
    WaitGroup,
    Context,
    Conn,
    HttpResponse,
    Engine,
    Reply,
    Rows
);

impl Objects for Opaque {
    type Runtime = Self;
    type Outgoing = Self;
    type Engines = Self;
}

impl RuntimeObjects for Opaque {
    type Chan = Chan;
    type WaitGroup = WaitGroup;
    type Context = Context;
}

impl OutgoingObjects for Opaque {
    type Conn = Conn;
    type HttpResponse = HttpResponse;
}

impl EngineObjects for Opaque {
    type Engine = Engine;
    type Reply = Reply;
    type Rows = Rows;
}
