//! `python/citius/include/citius.h` from the server's side.
//!
//! [`HandlerRequest`] and [`HandlerResponse`] begin with the structs that a handler sees. The functions of the table follow a
//! pointer only if it is that of the thread's current call ([`CurrentCall`]). What a handler leaves behind is checked before it
//! is used ([`HandlerResponse::result`]), and its memory holds nothing of other requests. Nothing here names Python or needs
//! the GIL. Tests: `tests/compiled/`.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_void};
use std::fmt::Write as _;
use std::ptr;
use std::sync::Arc;

use bytes::Bytes;
pub(crate) use citius_abi::{Text, VERSION, Value};
use citius_clients::engines::functions as engines;
use citius_http::{Fault, Fields, Head, Status};
use citius_native::api::RUNTIME_API;
use citius_native::codes;
use citius_native::current_call::CurrentCall;
use citius_native::net::functions::OUTGOING_API;
use citius_route::Captures;
use smallvec::SmallVec;

use super::client_stream::ClientStream;
use super::query;
use crate::numbers;

/// The media type of bytes of which nothing is known.
pub(super) const OCTETS: &[u8] = b"application/octet-stream";

/// Handlers built for these are served.
pub(crate) const VERSIONS: [u32; 2] = [1, VERSION];

const OK: c_int = 0;
const NOT_FOUND: c_int = 404;
const UNPROCESSABLE: c_int = 422;
const FAILED: c_int = 500;
const CLOSED: c_int = codes::CLOSED;

/// What the header's pointers lead to in the server.
pub(crate) struct Server;

impl citius_abi::Objects for Server {
    type Runtime = citius_native::Objects;
    type Outgoing = citius_native::net::functions::Objects;
    type Engines = engines::Objects;
}

type Api = citius_abi::Api<Server>;
type Request = citius_abi::Request<Server>;
type Response = citius_abi::Response<Server>;
pub(crate) type Entry = citius_abi::Handler<Server>;
pub(crate) type Values = SmallVec<[Value; 4]>;

/// The table as it was in version 1, for modules built for that which look at its version.
pub(crate) static API_1: Api = Api {
    version: 1,
    size: std::mem::offset_of!(Api, runtime),
    ..TABLE
};

/// The table of this server.
pub(crate) static API: Api = TABLE;

const TABLE: Api = Api {
    version: VERSION,
    minor: citius_abi::MINOR,
    size: size_of::<Api>(),
    reserve,
    set_content_type,
    add_header,
    write_integer,
    write_real,
    header,
    query: query_parameter,
    param,
    integer,
    runtime: RUNTIME_API,
    flush,
    body_read,
    outgoing: OUTGOING_API,
    engines: engines::ENGINES_API,
};

/// A request as a handler sees it, for one call.
#[repr(C)]
pub(crate) struct HandlerRequest<'a> {
    seen: Request,
    head: &'a Head,
    params: SmallVec<[Text; 2]>,
    /// Decoded parameters of the query that a handler has been shown.
    decoded: RefCell<Vec<Box<[u8]>>>,
    /// Bytes of a complete body that `citius_body_read` has given out.
    body_read: Cell<usize>,
}

impl<'a> HandlerRequest<'a> {
    /// `captures`, `body` and what `arguments` point to have to outlive it as `head` does.
    pub(crate) fn new(
        head: &'a Head,
        captures: &'a Captures,
        body: &'a [u8],
        arguments: &'a [Value],
    ) -> Self {
        Self {
            seen: Request {
                api: &raw const API,
                method: Text::of(head.slice(head.method_span)),
                path: Text::of(head.path()),
                query: Text::of(head.query()),
                body: Text::of(body),
                params: ptr::null(),
                params_count: 0,
                arguments: arguments.as_ptr(),
                arguments_count: arguments.len(),
            },
            head,
            params: captures.iter().map(|value| Text::of(value)).collect(),
            decoded: RefCell::default(),
            body_read: Cell::new(0),
        }
    }

    /// Copies the next bytes of a body that is complete.
    fn read_complete(&self, place: &mut [u8]) -> usize {
        let from = self.body_read.get();
        let count = place.len().min(self.seen.body.size - from);
        // SAFETY: the body is readable for its size while the request lives.
        let body = unsafe { self.seen.body.bytes() };
        place[..count].copy_from_slice(&body[from..from + count]);
        self.body_read.set(from + count);
        count
    }

    /// Calls `entry`; what it returned, and what it has left in `response`.
    ///
    /// # Safety
    /// `entry` must be the address of a function as the header describes it.
    pub(crate) unsafe fn call(&mut self, entry: Entry, response: &mut HandlerResponse) -> c_int {
        let (call, request, response) = self.begin(response);
        let _outer = call.enter();
        // SAFETY: the caller vouches for `entry`; both structs begin with what it expects, and live
        // until it has returned.
        unsafe { entry(request, response) }
    }

    /// Calls `entry` where no goroutine runs, so that the handler ends on the thread that it begins on.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    #[inline]
    pub(crate) unsafe fn call_on_thread(
        &mut self,
        entry: Entry,
        response: &mut HandlerResponse,
    ) -> c_int {
        let (call, request, response) = self.begin(response);
        // SAFETY: the caller vouches for `entry`, and what is declared `extern "C"` does not unwind; both structs live until it
        // has returned.
        call.hold(|| unsafe { entry(request, response) })
    }

    #[inline]
    fn begin(
        &mut self,
        response: &mut HandlerResponse,
    ) -> (CurrentCall, *const Request, *mut Response) {
        // Only now does this stay where it is.
        self.seen.params = self.params.as_ptr();
        self.seen.params_count = self.params.len();
        let request = (&raw const *self).cast::<Request>();
        let response = response.begin();
        let call = CurrentCall {
            request: request.cast(),
            response: response.cast(),
            note_mistake: note_call_mistake,
        };
        (call, request, response)
    }
}

/// Room for a body that a handler finds without asking for more. It is zeroed for each call, so it is small.
const INITIAL_BODY_BYTES: usize = 512;
/// Memory of a buffer beyond this is not kept for the next response.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// A response as a handler writes it.
#[repr(C)]
pub(crate) struct HandlerResponse {
    seen: Response,
    /// What `seen.body` points to; as long as the room that the handler has. Each of its bytes is zero or
    /// written by the handler in this very call: a handler that counts bytes it has not written shows zeros.
    buffer: Vec<u8>,
    pub(crate) fields: Fields,
    pub(crate) content_type: Vec<u8>,
    body_bytes_max: usize,
    /// What the handler has done wrong, first of all.
    mistake: Option<&'static str>,
    /// Where the response goes piece by piece, if the handler runs in a goroutine.
    pub(super) stream: Option<Arc<ClientStream>>,
    /// The body of the request comes by it too.
    pub(super) streams_body: bool,
    /// What a response has for a media type that sets none.
    pub(super) default_content_type: Vec<u8>,
    /// The head is sent.
    is_started: bool,
}

// SAFETY: the pointers lead into the buffer, which goes along, and to the static table.
unsafe impl Send for HandlerResponse {}

/// What a handler has left behind, checked.
pub(crate) enum CallResult {
    /// A response: a status within 200 to 599 and so many bytes of body.
    Response { status: u16, size: usize },
    /// A status in place of one.
    Code { status: u16, size: usize },
    /// It broke the rules.
    Mistake(String),
}

impl HandlerResponse {
    pub(crate) fn new() -> Self {
        Self {
            seen: Response {
                api: &raw const API,
                body: ptr::null_mut(),
                size: 0,
                room: 0,
                status: 200,
            },
            buffer: Vec::new(),
            fields: Fields::default(),
            content_type: Vec::new(),
            body_bytes_max: usize::MAX,
            mistake: None,
            stream: None,
            streams_body: false,
            default_content_type: Vec::new(),
            is_started: false,
        }
    }

    /// Makes it ready for another response.
    pub(crate) fn clear(&mut self, body_bytes_max: usize) {
        if !self.fields.adds_nothing() {
            self.fields.clear();
        }
        self.content_type.clear();
        self.body_bytes_max = body_bytes_max;
        self.mistake = None;
    }

    /// Whether the handler has begun to send its response.
    pub(super) fn is_started(&self) -> bool {
        self.is_started
    }

    /// Makes it forget the exchange.
    pub(super) fn detach(&mut self) {
        self.stream = None;
        self.streams_body = false;
        self.is_started = false;
    }

    /// Sends what is written, after the head the first time. `Err` is the code for the handler.
    fn flush(&mut self) -> Result<Option<(Arc<ClientStream>, Bytes)>, c_int> {
        if let Some(mistake) = self.mistake {
            return Err(self.set_mistake(mistake));
        }
        let Some(stream) = self.stream.clone() else {
            return Err(self.set_mistake(
                "it sends its response in pieces outside of a goroutine; add serial=True to its route",
            ));
        };
        let size = self.seen.size;
        if size > self.buffer.len() {
            return Err(self.set_mistake("it says that its body is longer than the room for it"));
        }
        if !self.is_started {
            let status = u16::try_from(self.seen.status)
                .ok()
                .filter(|status| (200..=599).contains(status))
                .and_then(Status::new);
            let Some(status) = status else {
                return Err(self.set_mistake("its status is none from 200 to 599"));
            };
            self.is_started = true;
            stream.start(
                status,
                self.media_for_start(),
                std::mem::take(&mut self.fields),
            );
        }
        let piece = Bytes::copy_from_slice(&self.buffer[..size]);
        self.buffer[..size].fill(0);
        self.seen.size = 0;
        Ok(Some((stream, piece)))
    }

    fn media_for_start(&self) -> Option<Bytes> {
        if !self.content_type.is_empty() {
            return Some(Bytes::copy_from_slice(&self.content_type));
        }
        if !self.default_content_type.is_empty() {
            return Some(Bytes::copy_from_slice(&self.default_content_type));
        }
        (!self.fields.has_content_type).then(|| Bytes::from_static(OCTETS))
    }

    /// Gives back memory that one response needed and the next will hardly need.
    pub(crate) fn shrink(&mut self) {
        if self.buffer.capacity() > KEPT_BYTES_MAX {
            self.buffer = Vec::new();
        }
    }

    fn begin(&mut self) -> *mut Response {
        self.buffer.clear();
        self.buffer
            .resize(INITIAL_BODY_BYTES.min(self.body_bytes_max), 0);
        self.seen = Response {
            api: &raw const API,
            body: self.buffer.as_mut_ptr(),
            size: 0,
            room: self.buffer.len(),
            status: 200,
        };
        (&raw mut *self).cast()
    }

    /// What there is to send, after a call that returned `code`.
    pub(crate) fn result(&mut self, code: c_int) -> CallResult {
        if let Some(mistake) = self.mistake {
            return CallResult::Mistake(mistake.to_owned());
        }
        let size = self.seen.size;
        if size > self.buffer.len() {
            return CallResult::Mistake(format!(
                "it says that its body has {size} bytes, with room for {}; memory may have been \
                 overwritten",
                self.buffer.len()
            ));
        }
        if size > 0
            && self
                .fields
                .content_length
                .is_some_and(|said| said != size as u64)
        {
            return CallResult::Mistake(Fault::ResponseLength.text().to_owned());
        }
        match code {
            0 => match u16::try_from(self.seen.status) {
                Ok(status @ 200..=599) => CallResult::Response { status, size },
                _ => CallResult::Mistake(format!(
                    "its status is {}; expected one from 200 to 599",
                    self.seen.status
                )),
            },
            400..=599 => CallResult::Code {
                status: u16::try_from(code).unwrap_or(500),
                size,
            },
            CLOSED => CallResult::Mistake(
                "it returned CITIUS_CLOSED: a channel is closed that it sends on or receives from"
                    .to_owned(),
            ),
            codes::MISUSE => CallResult::Mistake("it returned CITIUS_MISUSE".to_owned()),
            RAISED => CallResult::Mistake(
                "it raised an exception; call the function itself with these arguments to see it"
                    .to_owned(),
            ),
            _ => CallResult::Mistake(format!(
                "it returned {code}; expected 0, or a status from 400 to 599"
            )),
        }
    }

    /// The body; `size` is what [`result`](Self::result) has checked.
    pub(crate) fn body(&self, size: usize) -> &[u8] {
        self.buffer.get(..size).unwrap_or_default()
    }

    /// The body for keeps, in no more memory than it needs.
    pub(crate) fn take_body(&mut self, size: usize) -> Bytes {
        if self.buffer.capacity() <= KEPT_BYTES_MAX {
            return Bytes::copy_from_slice(self.body(size));
        }
        let mut body = std::mem::take(&mut self.buffer);
        body.truncate(size);
        body.shrink_to_fit();
        Bytes::from(body)
    }

    fn set_mistake(&mut self, mistake: &'static str) -> c_int {
        self.mistake.get_or_insert(mistake);
        FAILED
    }

    /// Room for `more` bytes behind those that are written.
    fn grow(&mut self, more: usize) -> c_int {
        let (size, room) = (self.seen.size, self.buffer.len());
        if size > room {
            return self.set_mistake("it says that its body is longer than the room for it");
        }
        let wanted = size.saturating_add(more);
        if wanted <= room {
            return OK;
        }
        if wanted > self.body_bytes_max {
            return self.set_mistake("its body is longer than --compiled-body-bytes-max");
        }
        let length = wanted.max(room * 2).min(self.body_bytes_max);
        if self.buffer.try_reserve(length - room).is_err() {
            return self.set_mistake("there is no memory for its body");
        }
        self.buffer.resize(length, 0);
        self.seen.body = self.buffer.as_mut_ptr();
        self.seen.room = length;
        OK
    }

    fn write(&mut self, bytes: &[u8]) -> c_int {
        let code = self.grow(bytes.len());
        if code == OK {
            let start = self.seen.size;
            if let Some(place) = self.buffer.get_mut(start..start + bytes.len()) {
                place.copy_from_slice(bytes);
                self.seen.size += bytes.len();
            }
        }
        code
    }

    /// Adds a number as JSON has it. What JSON has no word for becomes `null`, as msgspec has it.
    fn write_real(&mut self, value: f64) -> c_int {
        if !value.is_finite() {
            return self.write(b"null");
        }
        let mut digits = Digits::default();
        let size = value.abs();
        // The bounds within which Python writes no exponent.
        let written = if size != 0.0 && !(1e-5..1e16).contains(&size) {
            write!(digits, "{value:e}")
        } else {
            write!(digits, "{value:?}")
        };
        debug_assert!(written.is_ok(), "no number is that long");
        self.write(&digits.0)
    }
}

/// The digits of one number.
#[derive(Default)]
struct Digits(SmallVec<[u8; 32]>);

impl std::fmt::Write for Digits {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// The bytes that a handler points to; `None` for what can't be any.
///
/// # Safety
/// `size` bytes at `data` must be readable, unless `data` is null, and stay as they are while the result is
/// used. The header asks handlers for that; nothing here keeps the result.
unsafe fn bytes<'a>(data: *const c_char, size: usize) -> Option<&'a [u8]> {
    if size == 0 {
        return Some(&[]);
    }
    if data.is_null() || size > isize::MAX as usize {
        return None;
    }
    // SAFETY: the caller's.
    Some(unsafe { std::slice::from_raw_parts(data.cast(), size) })
}

/// Does something with the response of this thread's call, if `response` is what its handler was given.
fn on_response(response: *mut Response, act: impl FnOnce(&mut HandlerResponse) -> c_int) -> c_int {
    let current = CurrentCall::get();
    let is_other = !ptr::eq(response, current.response.cast());
    // SAFETY: the `HandlerResponse` that `HandlerRequest::call` holds alone for this very thread, or null. It is not used
    // while a handler runs but here, and `act` calls no handler.
    match unsafe { current.response.cast::<HandlerResponse>().as_mut() } {
        Some(out) if is_other && !response.is_null() => {
            out.set_mistake("it passes a response that is not the one it was called with")
        }
        Some(out) if !is_other => act(out),
        _ => FAILED,
    }
}

/// Does something with the request of this thread's call, if `request` is what its handler was given.
fn on_request(request: *const Request, act: impl FnOnce(&HandlerRequest<'_>) -> c_int) -> c_int {
    let current = CurrentCall::get();
    if request.is_null() {
        return FAILED;
    }
    if !ptr::eq(request, current.request.cast()) {
        return set_call_mistake("it passes a request that is not the one it was called with");
    }
    // SAFETY: the `HandlerRequest` of this thread's call; only shared references to it exist while that lasts.
    act(unsafe { &*request.cast::<HandlerRequest<'_>>() })
}

/// Where the body of the current request comes from piece by piece.
fn current_stream() -> Option<Arc<ClientStream>> {
    let response = CurrentCall::get().response.cast::<HandlerResponse>();
    // SAFETY: the `HandlerResponse` that `HandlerRequest::call` holds alone for this very thread, or null; it is not changed here.
    let out = unsafe { response.as_ref() }?;
    out.stream.as_ref().filter(|_| out.streams_body).cloned()
}

/// Notes a mistake for the handler that this thread runs, if it runs one.
#[cold]
fn note_call_mistake(mistake: &'static str) {
    let _ = set_call_mistake(mistake);
}

/// Notes a mistake of the handler that this thread runs.
fn set_call_mistake(mistake: &'static str) -> c_int {
    on_response(CurrentCall::get().response.cast(), |out| {
        out.set_mistake(mistake)
    })
}

/// Writes to where a handler wants to have a result.
///
/// # Safety
/// `place` must be null or a place that a `T` can be written to. The header asks handlers for that.
unsafe fn give<T>(place: *mut T, value: T) -> c_int {
    if place.is_null() {
        return FAILED;
    }
    // SAFETY: the caller's.
    unsafe { place.write(value) };
    OK
}

// The functions of the table trust a handler with nothing but what it points to (`bytes`, `give`): what it
// says of the call it is in is compared with what is known of it.

unsafe extern "C" fn reserve(response: *mut Response, size: usize) -> c_int {
    on_response(response, |out| out.grow(size))
}

unsafe extern "C" fn set_content_type(
    response: *mut Response,
    data: *const c_char,
    size: usize,
) -> c_int {
    // SAFETY: what the header asks handlers for.
    let media = unsafe { bytes(data, size) };
    on_response(response, |out| match media {
        _ if out.is_started => out.set_mistake(HEAD_SENT),
        Some(media) if citius_http::fields::is_value(media) => {
            out.content_type.clear();
            out.content_type.extend_from_slice(media);
            OK
        }
        _ => out.set_mistake(Fault::ResponseFieldValue.text()),
    })
}

unsafe extern "C" fn add_header(
    response: *mut Response,
    name: *const c_char,
    name_size: usize,
    value: *const c_char,
    value_size: usize,
) -> c_int {
    // SAFETY: what the header asks handlers for.
    let name = unsafe { bytes(name, name_size) };
    // SAFETY: what the header asks handlers for: so many bytes are readable.
    let value = unsafe { bytes(value, value_size) };
    on_response(response, |out| {
        if out.is_started {
            return out.set_mistake(HEAD_SENT);
        }
        let (Some(name), Some(value)) = (name, value) else {
            return out.set_mistake("it adds a header from nowhere");
        };
        if out.fields.lines().len() + name.len() + value.len() > FIELD_BYTES_MAX {
            return out.set_mistake("its headers are longer than 64 KiB");
        }
        match out.fields.push(name, value) {
            Ok(()) => OK,
            Err(fault) => out.set_mistake(fault.text()),
        }
    })
}

const HEAD_SENT: &str = "it sets a header field after citius_flush has sent the head";

unsafe extern "C" fn flush(response: *mut Response) -> c_int {
    citius_goroutine::require_stack(FLUSH_STACK_BYTES);
    let mut taken = None;
    let code = on_response(response, |out| match out.flush() {
        Ok(piece) => {
            taken = piece;
            OK
        }
        Err(code) => code,
    });
    match taken {
        // Not within `on_response`, which lends the response: this may wait.
        Some((stream, piece)) => stream.send(piece).map_or_else(|code| code, |()| OK),
        None => code,
    }
}

/// Stack that sending a piece needs.
const FLUSH_STACK_BYTES: usize = 8 * 1024;

unsafe extern "C" fn body_read(
    request: *const Request,
    place: *mut c_void,
    size: usize,
    got: *mut usize,
) -> c_int {
    citius_goroutine::require_stack(FLUSH_STACK_BYTES);
    // SAFETY: what the header asks handlers for.
    if unsafe { give(got, 0) } != OK || (place.is_null() && size > 0) {
        return set_call_mistake("it reads the body to nowhere");
    }
    let place: &mut [u8] = if size == 0 {
        &mut []
    } else {
        // SAFETY: what the header asks handlers for: so many bytes that may be written to. Any bytes are initialized memory.
        unsafe { std::slice::from_raw_parts_mut(place.cast(), size) }
    };
    let mut stream = None;
    let mut count = 0;
    let code = on_request(request, |request| {
        stream = current_stream();
        if stream.is_none() {
            count = request.read_complete(place);
        }
        OK
    });
    if code != OK {
        return code;
    }
    if let Some(stream) = stream {
        match stream.read(place) {
            Ok(read) => count = read,
            Err(code) => return code,
        }
    }
    // SAFETY: what the header asks handlers for: a place for the number, or null.
    unsafe { give(got, count) }
}

/// Bytes of the header fields that a handler may add.
const FIELD_BYTES_MAX: usize = 64 * 1024;

unsafe extern "C" fn write_integer(response: *mut Response, value: i64) -> c_int {
    let mut digits = itoa::Buffer::new();
    on_response(response, |out| out.write(digits.format(value).as_bytes()))
}

unsafe extern "C" fn write_real(response: *mut Response, value: f64) -> c_int {
    on_response(response, |out| out.write_real(value))
}

unsafe extern "C" fn header(
    request: *const Request,
    name: *const c_char,
    name_size: usize,
    value: *mut Text,
) -> c_int {
    // SAFETY: what the header asks handlers for.
    let name = unsafe { bytes(name, name_size) };
    on_request(request, |request| {
        match name.map(|name| request.head.field(name)) {
            // SAFETY: what the header asks handlers for.
            Some(Some(found)) => unsafe { give(value, Text::of(found)) },
            Some(None) => NOT_FOUND,
            None => FAILED,
        }
    })
}

unsafe extern "C" fn query_parameter(
    request: *const Request,
    name: *const c_char,
    name_size: usize,
    value: *mut Text,
) -> c_int {
    // SAFETY: what the header asks handlers for.
    let name = unsafe { bytes(name, name_size) };
    on_request(request, |request| {
        let Some(name) = name else {
            return FAILED;
        };
        let text = match query::last(request.head.query(), name) {
            None => return NOT_FOUND,
            Some(Cow::Borrowed(plain)) => Text::of(plain),
            Some(Cow::Owned(decoded)) => {
                let decoded = decoded.into_boxed_slice();
                let text = Text::of(&decoded);
                request.decoded.borrow_mut().push(decoded);
                text
            }
        };
        // SAFETY: what the header asks handlers for.
        unsafe { give(value, text) }
    })
}

unsafe extern "C" fn param(request: *const Request, index: usize, value: *mut Text) -> c_int {
    on_request(request, |request| match request.params.get(index) {
        // SAFETY: what the header asks handlers for.
        Some(&text) => unsafe { give(value, text) },
        None => set_call_mistake("it asks for a path parameter that its route does not have"),
    })
}

unsafe extern "C" fn integer(text: Text, value: *mut i64) -> c_int {
    // SAFETY: what the header asks handlers for.
    let digits = unsafe { bytes(text.data.cast(), text.size) };
    match digits.and_then(numbers::integer) {
        // SAFETY: what the header asks handlers for: a place for the number, or null.
        Some(number) => unsafe { give(value, number) },
        None => UNPROCESSABLE,
    }
}

// --- what functions that numba has compiled return ------------------------------------------------

/// What they return after an exception.
pub(super) const RAISED: c_int = -1;

/// Their names for the linker, and where they are.
pub(crate) fn symbols() -> [(&'static str, usize); 6] {
    [
        ("citius_answer_status", answer_status as *const () as usize),
        ("citius_answer_integer", write_integer as *const () as usize),
        ("citius_answer_real", write_real as *const () as usize),
        ("citius_answer_bool", answer_bool as *const () as usize),
        ("citius_answer_text", answer_text as *const () as usize),
        ("citius_answer_bytes", answer_bytes as *const () as usize),
    ]
}

unsafe extern "C" fn answer_status(response: *mut Response, status: i64) -> c_int {
    on_response(response, |out| {
        out.seen.status = i32::try_from(status).unwrap_or(-1);
        OK
    })
}

unsafe extern "C" fn answer_bool(response: *mut Response, value: i64) -> c_int {
    let word: &[u8] = if value == 0 { b"false" } else { b"true" };
    on_response(response, |out| out.write(word))
}

unsafe extern "C" fn answer_bytes(
    response: *mut Response,
    data: *const c_char,
    size: usize,
) -> c_int {
    // SAFETY: numba's own memory, which the entry keeps until this returns.
    let bytes = unsafe { bytes(data, size) };
    on_response(response, |out| match bytes {
        Some(bytes) => out.write(bytes),
        None => out.set_mistake("it returned bytes from nowhere"),
    })
}

/// A text of `length` characters with `width` bytes each, as numba keeps it.
unsafe extern "C" fn answer_text(
    response: *mut Response,
    data: *const c_char,
    length: usize,
    width: c_int,
) -> c_int {
    let width = usize::try_from(width).unwrap_or(0);
    // SAFETY: what the header asks handlers for: `length` elements of this width are readable.
    let raw = unsafe { bytes(data, length.saturating_mul(width)) };
    on_response(response, |out| match raw {
        None => out.set_mistake("it returned a text from nowhere"),
        Some(raw) if width == 1 && raw.is_ascii() => out.write(raw),
        Some(raw) => out.write(text_of(raw, width).as_bytes()),
    })
}

/// The characters of `raw`, each of them `width` bytes, the lowest first.
fn text_of(raw: &[u8], width: usize) -> String {
    let number = |unit: &[u8]| {
        unit.iter()
            .rev()
            .fold(0u32, |number, &byte| number << 8 | u32::from(byte))
    };
    raw.chunks_exact(width.max(1))
        .map(|unit| char::from_u32(number(unit)).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}
