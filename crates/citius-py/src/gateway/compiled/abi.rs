//! `python/citius/include/citius.h`, seen from the server's side.
//!
//! [`Asking`] and [`Answering`] begin with the structs that a handler sees; what follows them is ours, and
//! the functions of the table get at it by the address they are handed back. A handler is native code that
//! we do not know, so everything it leaves behind is checked before it is used ([`Answering::left`]).
//! Nothing here names Python or needs the GIL.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int};
use std::fmt::Write as _;

use citius_http::{Fault, Fields, Head};
use citius_route::Captures;
use smallvec::SmallVec;

use super::query;

pub(crate) const VERSION: u32 = 1;
const MINOR: u32 = 0;

const OK: c_int = 0;
const NOT_FOUND: c_int = 404;
const UNPROCESSABLE: c_int = 422;
const FAILED: c_int = 500;

/// What is called. It reads the first struct, writes the second and returns 0 or a status.
pub(crate) type Entry = unsafe extern "C" fn(*const Request, *mut Response) -> c_int;

/// `citius_text`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Text {
    data: *const u8,
    size: usize,
}

impl Text {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr(),
            size: bytes.len(),
        }
    }
}

/// `citius_value`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Value {
    pub(crate) integer: i64,
    pub(crate) real: f64,
    pub(crate) text: Text,
}

pub(crate) type Values = SmallVec<[Value; 4]>;

/// `citius_request`.
#[repr(C)]
pub(crate) struct Request {
    api: *const Api,
    method: Text,
    path: Text,
    query: Text,
    body: Text,
    params: *const Text,
    params_count: usize,
    arguments: *const Value,
    arguments_count: usize,
}

/// `citius_response`.
#[repr(C)]
pub(crate) struct Response {
    api: *const Api,
    body: *mut u8,
    size: usize,
    room: usize,
    status: i32,
}

/// `citius_api`.
#[repr(C)]
pub(crate) struct Api {
    version: u32,
    minor: u32,
    size: usize,
    reserve: extern "C" fn(*mut Response, usize) -> c_int,
    set_content_type: extern "C" fn(*mut Response, *const c_char, usize) -> c_int,
    add_header: extern "C" fn(*mut Response, *const c_char, usize, *const c_char, usize) -> c_int,
    write_integer: extern "C" fn(*mut Response, i64) -> c_int,
    write_real: extern "C" fn(*mut Response, f64) -> c_int,
    header: extern "C" fn(*const Request, *const c_char, usize, *mut Text) -> c_int,
    query: extern "C" fn(*const Request, *const c_char, usize, *mut Text) -> c_int,
    param: extern "C" fn(*const Request, usize, *mut Text) -> c_int,
    integer: extern "C" fn(Text, *mut i64) -> c_int,
}

/// The table of this server.
pub(crate) static API: Api = Api {
    version: VERSION,
    minor: MINOR,
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
};

/// A request as a handler sees it, for one call.
#[repr(C)]
pub(crate) struct Asking<'a> {
    seen: Request,
    head: &'a Head,
    params: SmallVec<[Text; 2]>,
    /// Decoded parameters of the query that a handler has been shown.
    decoded: RefCell<Vec<Box<[u8]>>>,
    /// The mistake of a handler that asked for what there is not.
    mistake: Cell<Option<&'static str>>,
}

impl<'a> Asking<'a> {
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
                params: std::ptr::null(),
                params_count: 0,
                arguments: arguments.as_ptr(),
                arguments_count: arguments.len(),
            },
            head,
            params: captures.iter().map(|value| Text::of(value)).collect(),
            decoded: RefCell::default(),
            mistake: Cell::new(None),
        }
    }

    /// Calls `entry`; what it returned, and what it has left in `answering`.
    ///
    /// # Safety
    /// `entry` must be the address of a function as the header describes it.
    pub(crate) unsafe fn call(&mut self, entry: Entry, answering: &mut Answering) -> c_int {
        // Only now does this stay where it is.
        self.seen.params = self.params.as_ptr();
        self.seen.params_count = self.params.len();
        let request = (&raw const *self).cast::<Request>();
        let response = answering.begin();
        // SAFETY: the caller vouches for `entry`; both structs begin with what it expects, and live
        // until it has returned.
        let code = unsafe { entry(request, response) };
        if answering.mistake.is_none() {
            answering.mistake = self.mistake.take();
        }
        code
    }
}

/// Room for a body that most handlers never exceed.
const ROOM_BYTES: usize = 16 * 1024;
/// Buffers beyond this are not kept for the next answer.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// An answer as a handler writes it.
#[repr(C)]
pub(crate) struct Answering {
    seen: Response,
    /// What `seen.body` points to. Always initialised: a handler that counts bytes it has not
    /// written shows old ones of its own, and nothing worse.
    buffer: Vec<u8>,
    pub(crate) fields: Fields,
    pub(crate) content_type: Vec<u8>,
    body_bytes_max: usize,
    /// What the handler has done wrong, first of all.
    mistake: Option<&'static str>,
}

// SAFETY: the pointers lead into the buffer, which goes along, and to the static table.
unsafe impl Send for Answering {}

/// What a handler has left behind, checked.
pub(crate) enum Left {
    /// An answer: a status within 200 to 599 and so many bytes of body.
    Answer { status: u16, size: usize },
    /// A status in place of one.
    Code { status: u16, size: usize },
    /// It broke the rules.
    Mistake(String),
}

impl Answering {
    pub(crate) fn new() -> Self {
        Self {
            seen: Response {
                api: &raw const API,
                body: std::ptr::null_mut(),
                size: 0,
                room: 0,
                status: 200,
            },
            buffer: vec![0; ROOM_BYTES],
            fields: Fields::default(),
            content_type: Vec::new(),
            body_bytes_max: usize::MAX,
            mistake: None,
        }
    }

    /// Makes it ready for another answer.
    pub(crate) fn clear(&mut self, body_bytes_max: usize) {
        if self.buffer.len() < ROOM_BYTES || self.buffer.len() > KEPT_BYTES_MAX {
            self.buffer = vec![0; ROOM_BYTES];
        }
        if !self.fields.is_plain() {
            self.fields.clear();
        }
        self.content_type.clear();
        self.body_bytes_max = body_bytes_max;
        self.mistake = None;
    }

    fn begin(&mut self) -> *mut Response {
        self.seen = Response {
            api: &raw const API,
            body: self.buffer.as_mut_ptr(),
            size: 0,
            room: self.buffer.len().min(self.body_bytes_max),
            status: 200,
        };
        (&raw mut *self).cast()
    }

    /// What there is to answer with, after a call that returned `code`.
    pub(crate) fn left(&mut self, code: c_int) -> Left {
        if let Some(mistake) = self.mistake {
            return Left::Mistake(mistake.to_owned());
        }
        let size = self.seen.size;
        if size > self.buffer.len().min(self.body_bytes_max) {
            return Left::Mistake(format!(
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
            return Left::Mistake(Fault::AnswerLength.text().to_owned());
        }
        match code {
            0 => match u16::try_from(self.seen.status) {
                Ok(status @ 200..=599) => Left::Answer { status, size },
                _ => Left::Mistake(format!(
                    "its status is {}; expected one from 200 to 599",
                    self.seen.status
                )),
            },
            400..=599 => Left::Code {
                status: u16::try_from(code).unwrap_or(500),
                size,
            },
            RAISED => Left::Mistake(
                "it raised an exception; call the function itself with these arguments to see it"
                    .to_owned(),
            ),
            _ => Left::Mistake(format!(
                "it returned {code}; expected 0, or a status from 400 to 599"
            )),
        }
    }

    /// The body; `size` is what [`left`](Self::left) has checked.
    pub(crate) fn body(&self, size: usize) -> &[u8] {
        self.buffer.get(..size).unwrap_or_default()
    }

    /// The body for keeps, without a copy.
    pub(crate) fn take_body(&mut self, size: usize) -> Vec<u8> {
        let mut body = std::mem::take(&mut self.buffer);
        body.truncate(size);
        body
    }

    fn blame(&mut self, mistake: &'static str) -> c_int {
        self.mistake.get_or_insert(mistake);
        FAILED
    }

    /// Room for `more` bytes behind those that are written.
    fn grow(&mut self, more: usize) -> c_int {
        let (size, room) = (self.seen.size, self.seen.room);
        if size > room {
            return self.blame("it says that its body is longer than the room for it");
        }
        let wanted = size.saturating_add(more);
        if wanted <= room {
            return OK;
        }
        if wanted > self.body_bytes_max {
            return self.blame("its body is longer than --compiled-body-bytes-max");
        }
        let length = wanted.max(room * 2).min(self.body_bytes_max);
        self.buffer.resize(length.max(self.buffer.len()), 0);
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
fn bytes<'a>(data: *const c_char, size: usize) -> Option<&'a [u8]> {
    if size == 0 {
        return Some(&[]);
    }
    if data.is_null() || size > isize::MAX as usize {
        return None;
    }
    // SAFETY: the header asks for `size` readable bytes at `data`, which the handler owns while it
    // waits for us; they are copied before it goes on.
    Some(unsafe { std::slice::from_raw_parts(data.cast(), size) })
}

/// What a handler was given as its response.
fn answering<'a>(response: *mut Response) -> Option<&'a mut Answering> {
    // SAFETY: a handler hands back what it was given, and that is the beginning of an `Answering` that
    // nobody else uses while the handler runs.
    unsafe { response.cast::<Answering>().as_mut() }
}

/// What a handler was given as its request.
fn asking<'a>(request: *const Request) -> Option<&'a Asking<'a>> {
    // SAFETY: as above, of an `Asking`.
    unsafe { request.cast::<Asking<'_>>().as_ref() }
}

/// Writes to where a handler wants to have a result.
fn give<T>(place: *mut T, value: T) -> c_int {
    if place.is_null() {
        return FAILED;
    }
    // SAFETY: the header asks for a place that can be written to.
    unsafe { place.write(value) };
    OK
}

extern "C" fn reserve(response: *mut Response, size: usize) -> c_int {
    answering(response).map_or(FAILED, |answer| answer.grow(size))
}

extern "C" fn set_content_type(response: *mut Response, data: *const c_char, size: usize) -> c_int {
    let Some(answer) = answering(response) else {
        return FAILED;
    };
    match bytes(data, size) {
        Some(media) if media.iter().all(|&b| citius_http::fields::is_value_byte(b)) => {
            answer.content_type.clear();
            answer.content_type.extend_from_slice(media);
            OK
        }
        _ => answer.blame(Fault::AnswerFieldValue.text()),
    }
}

extern "C" fn add_header(
    response: *mut Response,
    name: *const c_char,
    name_size: usize,
    value: *const c_char,
    value_size: usize,
) -> c_int {
    let Some(answer) = answering(response) else {
        return FAILED;
    };
    let (Some(name), Some(value)) = (bytes(name, name_size), bytes(value, value_size)) else {
        return answer.blame("it adds a header from nowhere");
    };
    if answer.fields.lines().len() + name.len() + value.len() > FIELD_BYTES_MAX {
        return answer.blame("its headers are longer than 64 KiB");
    }
    match answer.fields.push(name, value) {
        Ok(()) => OK,
        Err(fault) => answer.blame(fault.text()),
    }
}

/// Bytes of the header fields that a handler may add.
const FIELD_BYTES_MAX: usize = 64 * 1024;

extern "C" fn write_integer(response: *mut Response, value: i64) -> c_int {
    let mut digits = itoa::Buffer::new();
    answering(response).map_or(FAILED, |answer| {
        answer.write(digits.format(value).as_bytes())
    })
}

extern "C" fn write_real(response: *mut Response, value: f64) -> c_int {
    answering(response).map_or(FAILED, |answer| answer.write_real(value))
}

extern "C" fn header(
    request: *const Request,
    name: *const c_char,
    name_size: usize,
    value: *mut Text,
) -> c_int {
    let (Some(asking), Some(name)) = (asking(request), bytes(name, name_size)) else {
        return FAILED;
    };
    match asking.head.field(name) {
        Some(found) => give(value, Text::of(found)),
        None => NOT_FOUND,
    }
}

extern "C" fn query_parameter(
    request: *const Request,
    name: *const c_char,
    name_size: usize,
    value: *mut Text,
) -> c_int {
    let (Some(asking), Some(name)) = (asking(request), bytes(name, name_size)) else {
        return FAILED;
    };
    let found = query::last(asking.head.query(), name);
    found.map_or(NOT_FOUND, |found| {
        let text = match found {
            std::borrow::Cow::Borrowed(plain) => Text::of(plain),
            std::borrow::Cow::Owned(decoded) => {
                let mut kept = asking.decoded.borrow_mut();
                let decoded = decoded.into_boxed_slice();
                let text = Text::of(&decoded);
                kept.push(decoded);
                text
            }
        };
        give(value, text)
    })
}

extern "C" fn param(request: *const Request, index: usize, value: *mut Text) -> c_int {
    let Some(asking) = asking(request) else {
        return FAILED;
    };
    if let Some(&text) = asking.params.get(index) {
        return give(value, text);
    }
    asking.mistake.set(Some(
        "it asks for a path parameter that its route does not have",
    ));
    FAILED
}

extern "C" fn integer(text: Text, value: *mut i64) -> c_int {
    let number = bytes(text.data.cast(), text.size)
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    number.map_or(UNPROCESSABLE, |number| give(value, number))
}

// --- what functions that numba has compiled return ------------------------------------------------

/// What they return after an exception.
const RAISED: c_int = -1;

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

extern "C" fn answer_status(response: *mut Response, status: i64) -> c_int {
    answering(response).map_or(FAILED, |answer| {
        answer.seen.status = i32::try_from(status).unwrap_or(-1);
        OK
    })
}

extern "C" fn answer_bool(response: *mut Response, value: i64) -> c_int {
    let word: &[u8] = if value == 0 { b"false" } else { b"true" };
    answering(response).map_or(FAILED, |answer| answer.write(word))
}

extern "C" fn answer_bytes(response: *mut Response, data: *const c_char, size: usize) -> c_int {
    let Some(answer) = answering(response) else {
        return FAILED;
    };
    match bytes(data, size) {
        Some(bytes) => answer.write(bytes),
        None => answer.blame("it returned bytes from nowhere"),
    }
}

/// A text of `length` characters with `width` bytes each, as numba keeps it.
extern "C" fn answer_text(
    response: *mut Response,
    data: *const c_char,
    length: usize,
    width: c_int,
) -> c_int {
    let Some(answer) = answering(response) else {
        return FAILED;
    };
    let width = usize::try_from(width).unwrap_or(0);
    let Some(raw) = bytes(data, length.saturating_mul(width)) else {
        return answer.blame("it returned a text from nowhere");
    };
    if width == 1 && raw.is_ascii() {
        return answer.write(raw);
    }
    let number = |unit: &[u8]| {
        unit.iter()
            .rev()
            .fold(0u32, |number, &byte| number << 8 | u32::from(byte))
    };
    let text: String = raw
        .chunks_exact(width.max(1))
        .map(|unit| char::from_u32(number(unit)).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    answer.write(text.as_bytes())
}
