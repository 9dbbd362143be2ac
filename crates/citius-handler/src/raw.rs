//! The structs of the header.

use std::ffi::{c_char, c_int, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    pub data: *const c_char,
    pub size: usize,
}

impl Text {
    pub(crate) const EMPTY: Self = Self {
        data: std::ptr::null(),
        size: 0,
    };

    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }

    /// For as long as the request is lent.
    pub(crate) fn bytes<'a>(self) -> &'a [u8] {
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
    pub add_header:
        unsafe extern "C" fn(*mut Response, *const c_char, usize, *const c_char, usize) -> c_int,
    pub write_integer: unsafe extern "C" fn(*mut Response, i64) -> c_int,
    pub write_real: unsafe extern "C" fn(*mut Response, f64) -> c_int,
    pub header: unsafe extern "C" fn(*const Request, *const c_char, usize, *mut Text) -> c_int,
    pub query: unsafe extern "C" fn(*const Request, *const c_char, usize, *mut Text) -> c_int,
    pub param: unsafe extern "C" fn(*const Request, usize, *mut Text) -> c_int,
    pub integer: unsafe extern "C" fn(Text, *mut i64) -> c_int,
    // Since version 2.
    pub go: unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void) -> c_int,
    pub yield_now: unsafe extern "C" fn() -> c_int,
    pub sleep_until: unsafe extern "C" fn(i64) -> c_int,
    pub now: unsafe extern "C" fn() -> i64,
    pub in_goroutine: unsafe extern "C" fn() -> c_int,
    pub mistake: unsafe extern "C" fn() -> *const c_char,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub chan_make: unsafe extern "C" fn(
        c_int,
        usize,
        usize,
        Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> *mut Chan,
    pub chan_find: unsafe extern "C" fn(*const c_char, usize) -> *mut Chan,
    pub chan_retain: unsafe extern "C" fn(*mut Chan) -> *mut Chan,
    pub chan_release: unsafe extern "C" fn(*mut Chan),
    pub chan_send: unsafe extern "C" fn(*mut Chan, *const c_void, usize, i64) -> c_int,
    pub chan_receive: unsafe extern "C" fn(*mut Chan, *mut c_void, usize, i64) -> c_int,
    pub chan_send_bytes: unsafe extern "C" fn(*mut Chan, *const c_void, usize, i64) -> c_int,
    pub chan_receive_bytes: unsafe extern "C" fn(*mut Chan, *mut Bytes, i64) -> c_int,
    pub chan_send_object: unsafe extern "C" fn(*mut Chan, *mut c_void, i64) -> c_int,
    pub chan_receive_object: unsafe extern "C" fn(*mut Chan, *mut *mut c_void, i64) -> c_int,
    pub chan_close: unsafe extern "C" fn(*mut Chan) -> c_int,
    pub chan_count: unsafe extern "C" fn(*const Chan, c_int) -> usize,
    pub chan_to_python: unsafe extern "C" fn(*mut Chan) -> *mut c_void,
    pub chan_from_python: unsafe extern "C" fn(*mut c_void) -> *mut Chan,
    pub select: unsafe extern "C" fn(*mut Case, usize, i64) -> c_int,
    pub wait_group_make: unsafe extern "C" fn() -> *mut WaitGroup,
    pub wait_group_retain: unsafe extern "C" fn(*mut WaitGroup) -> *mut WaitGroup,
    pub wait_group_release: unsafe extern "C" fn(*mut WaitGroup),
    pub wait_group_add: unsafe extern "C" fn(*mut WaitGroup, i64) -> c_int,
    pub wait_group_wait: unsafe extern "C" fn(*mut WaitGroup) -> c_int,
    pub mutex_lock: unsafe extern "C" fn(*mut *mut c_void, i64) -> c_int,
    pub mutex_unlock: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
    pub mutex_destroy: unsafe extern "C" fn(*mut *mut c_void),
    pub once: unsafe extern "C-unwind" fn(
        *mut *mut c_void,
        unsafe extern "C-unwind" fn(*mut c_void),
        *mut c_void,
    ) -> c_int,
    pub context_current: unsafe extern "C" fn() -> *mut Context,
    pub context_make: unsafe extern "C" fn(*mut Context, i64) -> *mut Context,
    pub context_retain: unsafe extern "C" fn(*mut Context) -> *mut Context,
    pub context_release: unsafe extern "C" fn(*mut Context),
    pub context_cancel: unsafe extern "C" fn(*mut Context),
    pub context_error: unsafe extern "C" fn(*const Context) -> c_int,
    pub context_deadline: unsafe extern "C" fn(*const Context) -> i64,
    pub context_done: unsafe extern "C" fn(*mut Context) -> *mut Chan,
    pub context_use: unsafe extern "C" fn(*mut Context) -> c_int,
    pub cxx_globals: unsafe extern "C" fn(*mut c_void),
    pub flush: unsafe extern "C" fn(*mut Response) -> c_int,
    pub body_read: unsafe extern "C" fn(*const Request, *mut c_void, usize, *mut usize) -> c_int,
    // Since minor version 1.
    pub connect:
        unsafe extern "C" fn(*const c_char, u16, *const Tls, i64, *mut *const Conn) -> c_int,
    pub conn_read: unsafe extern "C" fn(*const Conn, *mut c_void, usize, *mut usize, i64) -> c_int,
    pub conn_write: unsafe extern "C" fn(*const Conn, *const c_void, usize, i64) -> c_int,
    pub conn_close: unsafe extern "C" fn(*const Conn),
    pub net_error: unsafe extern "C" fn(*mut *const c_char) -> c_int,
    pub http_call: unsafe extern "C" fn(*const HttpRequest, *mut *mut HttpResponse) -> c_int,
    pub http_status: unsafe extern "C" fn(*const HttpResponse) -> c_int,
    pub http_body: unsafe extern "C" fn(*const HttpResponse) -> Text,
    pub http_field:
        unsafe extern "C" fn(*const HttpResponse, *const c_char, usize, *mut Text) -> c_int,
    pub http_free: unsafe extern "C" fn(*mut HttpResponse),
    // Since minor version 2.
    pub engine_find: unsafe extern "C" fn(c_int, *const c_char, usize) -> *const Engine,
    pub engine_release: unsafe extern "C" fn(*const Engine),
    pub redis_call:
        unsafe extern "C" fn(*const Engine, *const Text, usize, i64, *mut *mut Reply) -> c_int,
    pub reply_kind: unsafe extern "C" fn(*const Reply) -> c_int,
    pub reply_integer: unsafe extern "C" fn(*const Reply) -> i64,
    pub reply_real: unsafe extern "C" fn(*const Reply) -> f64,
    pub reply_text: unsafe extern "C" fn(*const Reply) -> Text,
    pub reply_count: unsafe extern "C" fn(*const Reply) -> usize,
    pub reply_at: unsafe extern "C" fn(*const Reply, usize) -> *const Reply,
    pub reply_free: unsafe extern "C" fn(*mut Reply),
    pub pg_query: unsafe extern "C" fn(
        *const Engine,
        *const c_char,
        *const PgValue,
        usize,
        i64,
        *mut *mut Rows,
    ) -> c_int,
    pub pg_count: unsafe extern "C" fn(*const Rows, c_int) -> i64,
    pub pg_column: unsafe extern "C" fn(*const Rows, usize) -> Text,
    pub pg_text: unsafe extern "C" fn(*const Rows, usize, usize) -> Text,
    pub pg_integer: unsafe extern "C" fn(*const Rows, usize, usize, *mut i64) -> c_int,
    pub pg_real: unsafe extern "C" fn(*const Rows, usize, usize, *mut f64) -> c_int,
    pub pg_free: unsafe extern "C" fn(*mut Rows),
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union Value {
    pub integer: i64,
    pub real: f64,
    pub text: Text,
}

#[repr(C)]
pub struct PgValue {
    pub kind: i32,
    pub value: Value,
}

#[repr(C)]
pub struct Engine([u8; 0]);

#[repr(C)]
pub struct Reply([u8; 0]);

#[repr(C)]
pub struct Rows([u8; 0]);

#[repr(C)]
pub struct Tls {
    pub size: usize,
    pub authorities: *const c_char,
    pub server_name: *const c_char,
    pub is_unverified: c_int,
}

#[repr(C)]
pub struct Field {
    pub name: Text,
    pub value: Text,
}

#[repr(C)]
pub struct HttpRequest {
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

#[repr(C)]
pub struct Conn([u8; 0]);

#[repr(C)]
pub struct HttpResponse([u8; 0]);

/// What is only pointed to.
#[repr(C)]
pub struct Chan([u8; 0]);

#[repr(C)]
pub struct WaitGroup([u8; 0]);

#[repr(C)]
pub struct Context([u8; 0]);

#[repr(C)]
pub struct Bytes {
    pub data: *mut c_void,
    pub size: usize,
}

#[repr(C)]
pub struct Case {
    pub chan: *mut Chan,
    pub value: *mut c_void,
    pub size: usize,
    pub operation: i32,
    pub ok: i32,
}
