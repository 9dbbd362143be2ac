//! The functions of the header for outgoing calls.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;

use citius_abi::{HttpRequest, OutgoingApi, OutgoingObjects, Text, Tls};

use super::error::{NetError, Result, code_of, net_error};
use super::http::{self, Request};
use super::response::Response;
use super::stream::{Stream, Target};
use super::tls::TlsRules;
use super::url::Url;
use crate::wait::Until;

/// What the header's pointers lead to.
pub struct Objects;

impl OutgoingObjects for Objects {
    type Conn = Stream;
    type HttpResponse = Response;
}

/// Those of this runtime.
pub const OUTGOING_API: OutgoingApi<Objects> = OutgoingApi {
    connect,
    conn_read: read,
    conn_write: write,
    conn_close: close,
    net_error,
    http_call,
    http_status,
    http_body,
    http_field,
    http_free,
};

/// The most that a response may have where the caller says nothing.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The text of a string; `what` names it in the error.
///
/// # Errors
/// It is no UTF-8.
///
/// # Safety
/// `text` is null, or ends in a zero byte and outlives the call.
pub unsafe fn string<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str();
    text.map(Some)
        .map_err(|_| NetError::misuse(format!("{what} is no UTF-8")))
}

/// # Safety
/// So many bytes at `data` are readable, and outlive the call.
pub unsafe fn bytes<'a>(data: *const c_char, size: usize) -> &'a [u8] {
    // SAFETY: the caller's.
    unsafe { Text { data, size }.bytes() }
}

/// # Safety
/// The pointers in it are null or end in a zero byte.
unsafe fn rules_of(settings: Option<&Tls>) -> Result<TlsRules> {
    let Some(settings) = settings else {
        return Ok(TlsRules::default());
    };
    if settings.size != size_of::<Tls>() {
        return Err(NetError::misuse(
            "the size of citius_tls: begin with CITIUS_TLS_INIT",
        ));
    }
    // SAFETY: the caller's.
    let authorities = unsafe { string(settings.authorities, "the path of the authorities")? };
    // SAFETY: the caller's.
    let server_name = unsafe { string(settings.server_name, "the name of the server")? };
    Ok(TlsRules {
        authorities: authorities.map(|path| PathBuf::from(OsStr::new(path))),
        server_name: server_name.map(str::to_owned),
        is_unverified: settings.is_unverified != 0,
    })
}

/// A `citius_conn *`.
type StreamPointer = *const Stream;

pub(crate) unsafe extern "C" fn connect(
    host: *const c_char,
    port: u16,
    tls: *const Tls,
    timeout_ns: i64,
    place: *mut StreamPointer,
) -> c_int {
    let connect = || {
        if place.is_null() {
            return Err(NetError::misuse("there is no place for the connection"));
        }
        // SAFETY: what the header asks for.
        unsafe { place.write(ptr::null()) };
        // SAFETY: what the header asks for.
        let host = unsafe { string(host, "the host")? }.unwrap_or_default();
        if host.is_empty() || port == 0 {
            return Err(NetError::misuse("a host and a port were expected"));
        }
        // SAFETY: what the header asks for.
        let settings = unsafe { tls.as_ref() };
        let target = Target {
            host: host.to_owned(),
            port,
            tls: match settings {
                // SAFETY: what the header asks for.
                Some(_) => Some(unsafe { rules_of(settings)? }),
                None => None,
            },
        };
        let stream = Stream::connect(&target, Until::within(timeout_ns))?;
        // SAFETY: what the header asks for.
        unsafe { place.write(Arc::into_raw(Arc::new(stream))) };
        Ok(())
    };
    code_of(connect())
}

/// # Safety
/// The pointer is null or a connection that is not closed.
unsafe fn stream<'a>(pointer: StreamPointer) -> Result<&'a Stream> {
    // SAFETY: the caller's.
    let stream = unsafe { pointer.as_ref() };
    stream.ok_or_else(|| NetError::misuse("the connection is NULL"))
}

pub(crate) unsafe extern "C" fn read(
    pointer: StreamPointer,
    buffer: *mut c_void,
    size: usize,
    got: *mut usize,
    timeout_ns: i64,
) -> c_int {
    let read = || {
        // SAFETY: what the header asks for.
        let stream = unsafe { stream(pointer)? };
        // SAFETY: what the header asks for: a place for the number, or null.
        let got = unsafe { got.as_mut() };
        let got =
            got.ok_or_else(|| NetError::misuse("there is no place for the number of bytes"))?;
        *got = 0;
        if buffer.is_null() || size == 0 {
            return Err(NetError::misuse("there is no room for a byte"));
        }
        // SAFETY: what the header asks for: room for so many bytes, which may be written only.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast(), size) };
        *got = stream.read(buffer, Until::within(timeout_ns))?;
        Ok(())
    };
    code_of(read())
}

pub(crate) unsafe extern "C" fn write(
    pointer: StreamPointer,
    data: *const c_void,
    size: usize,
    timeout_ns: i64,
) -> c_int {
    let write = || {
        // SAFETY: what the header asks for.
        let stream = unsafe { stream(pointer)? };
        // SAFETY: what the header asks for: so many bytes are readable.
        let bytes = unsafe { bytes(data.cast(), size) };
        stream.write(bytes, Until::within(timeout_ns))
    };
    code_of(write())
}

pub(crate) unsafe extern "C" fn close(pointer: StreamPointer) {
    if !pointer.is_null() {
        // SAFETY: what the header asks for: it is closed once.
        drop(unsafe { Arc::from_raw(pointer) });
    }
}

pub(crate) unsafe extern "C" fn http_call(
    request: *const HttpRequest,
    place: *mut *mut Response,
) -> c_int {
    citius_goroutine::require_stack(16 * 1024);
    let call = || {
        if place.is_null() {
            return Err(NetError::misuse("there is no place for the response"));
        }
        // SAFETY: what the header asks for.
        unsafe { place.write(ptr::null_mut()) };
        // SAFETY: what the header asks for.
        let request = unsafe { request.as_ref() };
        let request = request.ok_or_else(|| NetError::misuse("the request is NULL"))?;
        if request.size != size_of::<HttpRequest>() {
            return Err(NetError::misuse(
                "the size of citius_http_request: begin with CITIUS_HTTP_REQUEST_INIT",
            ));
        }
        // SAFETY: what the header asks for.
        let response = unsafe { call_of(request)? };
        // SAFETY: what the header asks for.
        unsafe { place.write(Box::into_raw(Box::new(response))) };
        Ok(())
    };
    code_of(call())
}

/// # Safety
/// The request is as the header asks for.
unsafe fn call_of(request: &HttpRequest) -> Result<Response> {
    // SAFETY: the caller's.
    let settings = unsafe { request.tls.as_ref() };
    // SAFETY: the caller's.
    let rules = unsafe { rules_of(settings)? };
    // SAFETY: the caller's.
    let method = unsafe { string(request.method, "the method")? };
    // SAFETY: the caller's.
    let url = unsafe { string(request.url, "the URL")? }.unwrap_or_default();
    let fields = if request.fields.is_null() {
        &[]
    } else {
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts(request.fields, request.fields_count) }
    };
    // SAFETY: the caller's.
    let text = |text: Text| unsafe { text.bytes() };
    let call = Request {
        method: method.unwrap_or("GET"),
        url: Url::parse(url, &rules)?,
        fields: fields
            .iter()
            .map(|field| (text(field.name), text(field.value)))
            .collect(),
        body: text(request.body),
        body_bytes_max: match request.body_bytes_max {
            0 => BODY_BYTES_MAX,
            most => most,
        },
    };
    http::call(&call, Until::within(request.timeout_ns))
}

pub(crate) unsafe extern "C" fn http_status(response: *const Response) -> c_int {
    // SAFETY: what the header asks for.
    let response = unsafe { response.as_ref() };
    response.map_or(0, |response| c_int::from(response.head.status))
}

pub(crate) unsafe extern "C" fn http_body(response: *const Response) -> Text {
    // SAFETY: what the header asks for.
    let response = unsafe { response.as_ref() };
    Text::of(response.map_or(&[], |response| &response.body))
}

pub(crate) unsafe extern "C" fn http_field(
    response: *const Response,
    name: *const c_char,
    name_size: usize,
    value: *mut Text,
) -> c_int {
    // SAFETY: what the header asks for.
    let response = unsafe { response.as_ref() };
    // SAFETY: what the header asks for: so many bytes are readable.
    let name = unsafe { bytes(name, name_size) };
    let found = response.and_then(|response| response.head.field(name));
    let Some(found) = found else {
        return 404;
    };
    // SAFETY: what the header asks for.
    unsafe { value.write(Text::of(found)) };
    0
}

pub(crate) unsafe extern "C" fn http_free(response: *mut Response) {
    if !response.is_null() {
        // SAFETY: what the header asks for: it is freed once.
        drop(unsafe { Box::from_raw(response) });
    }
}
