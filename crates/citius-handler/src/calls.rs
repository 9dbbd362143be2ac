//! Calls of other servers: TCP, TLS and HTTP/1.1. Each parks the goroutine that makes it.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::io;
use std::ptr::{self, NonNull};
use std::time::Duration;

use crate::go::{Error, table_for_wait, timeout_ns};
use crate::{Status, raw};

/// Why a call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The host's name has no address.
    Name,
    /// No server listens there.
    Refused,
    /// The connection broke.
    Reset,
    /// The server has ended the connection in the middle of a message.
    Ended,
    /// The handshake failed, or the certificate is not as asked for.
    Tls,
    /// What came is not what the protocol asks for.
    Protocol,
    /// What came is larger than the caller takes.
    TooLarge,
    /// The operating system refuses: no descriptor, no route.
    System,
    /// The time of the call is over, or the deadline of the context has come.
    TimedOut,
    /// The client has left, or the context was cancelled.
    Cancelled,
    /// An argument does not fit, or nothing may wait here.
    Misuse,
    /// Redis or PostgreSQL has refused what it was asked for; the text begins with the code of the error.
    Server,
    /// More calls wait than the client permits, or this one has waited for too long.
    Overloaded,
    /// The client is not open.
    NotOpen,
}

impl Reason {
    fn of(number: c_int) -> Self {
        match number {
            1 => Self::Name,
            2 => Self::Refused,
            3 => Self::Reset,
            4 => Self::Ended,
            5 => Self::Tls,
            6 => Self::Protocol,
            7 => Self::TooLarge,
            9 => Self::TimedOut,
            10 => Self::Cancelled,
            11 => Self::Misuse,
            12 => Self::Server,
            13 => Self::Overloaded,
            14 => Self::NotOpen,
            _ => Self::System,
        }
    }
}

/// A call that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// What a handler returns that lets it through: 499, 500, 502, 503 or 504.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// The reason as text.
    pub text: String,
}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for CallError {}

impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        error.status
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self {
            text: error.to_string(),
            status: error.into(),
            reason: Reason::Misuse,
        }
    }
}

impl CallError {
    fn misuse(text: String) -> Self {
        Self {
            status: Status::FAILED,
            reason: Reason::Misuse,
            text,
        }
    }
}

/// The result of a function of the table.
pub(crate) fn check(table: &raw::Api, code: c_int) -> Result<(), CallError> {
    if code == 0 {
        return Ok(());
    }
    let mut text: *const c_char = ptr::null();
    // SAFETY: the server's own function, with a place for a pointer.
    let reason = Reason::of(unsafe { (table.outgoing.net_error)(&raw mut text) });
    let text = if text.is_null() {
        String::new()
    } else {
        // SAFETY: it ends in a zero byte, and is valid until the next call of this goroutine.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    };
    let status = u16::try_from(code).ok().filter(|status| *status >= 400);
    Err(CallError {
        status: status.map_or(Status::FAILED, Status),
        reason,
        text,
    })
}

pub(crate) fn c_text(text: &str, what: &str) -> Result<CString, CallError> {
    CString::new(text).map_err(|_| CallError::misuse(format!("{what} has a zero byte in it")))
}

/// How a server's certificate is verified. The default: against the system's authorities, for the name of the host.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// A file of certificates of authorities (PEM).
    pub authorities: Option<String>,
    /// The name that the certificate must have.
    pub server_name: Option<String>,
    /// Nothing is verified; anyone on the way can read and change everything.
    pub is_unverified: bool,
}

/// [`Tls`] as C has it, with the texts that it points to.
struct RawTls {
    raw: raw::Tls,
    _texts: [Option<CString>; 2],
}

impl RawTls {
    fn of(tls: &Tls) -> Result<Self, CallError> {
        let text = |text: &Option<String>, what| {
            let text = text.as_deref().map(|text| c_text(text, what));
            text.transpose()
        };
        let texts = [
            text(&tls.authorities, "the path of the authorities")?,
            text(&tls.server_name, "the name of the server")?,
        ];
        let pointer =
            |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        Ok(Self {
            raw: raw::Tls {
                size: size_of::<raw::Tls>(),
                authorities: pointer(&texts[0]),
                server_name: pointer(&texts[1]),
                is_unverified: c_int::from(tls.is_unverified),
            },
            _texts: texts,
        })
    }
}

// --- connections ----------------------------------------------------------------------------------

/// A connection to another server, closed when it is dropped. One goroutine may read while another one writes.
#[derive(Debug)]
pub struct Conn(NonNull<raw::Conn>);

// SAFETY: the server's connections may be used by any thread.
unsafe impl Send for Conn {}
// SAFETY: the server locks what a reader and a writer share.
unsafe impl Sync for Conn {}

impl Conn {
    /// Connects over TCP, and TLS if asked for. `timeout` is for all of it; `None`: as long as it takes.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn connect(
        host: &str,
        port: u16,
        tls: Option<&Tls>,
        timeout: Option<Duration>,
    ) -> Result<Self, CallError> {
        let table = table_for_wait()?;
        let host = c_text(host, "the host")?;
        let tls = tls.map(RawTls::of).transpose()?;
        let tls = tls.as_ref().map_or(ptr::null(), |tls| &raw const tls.raw);
        let mut conn = ptr::null();
        // SAFETY: the server's own function; the texts end in zero bytes and outlive the call.
        let code = unsafe {
            (table.outgoing.connect)(host.as_ptr(), port, tls, timeout_ns(timeout), &raw mut conn)
        };
        check(table, code)?;
        NonNull::new(conn.cast_mut())
            .map(Self)
            .ok_or_else(|| CallError::misuse("the server gave no connection".into()))
    }

    /// Reads what there is, at most as much as `buffer` has room for, and waits for the first byte. 0: the server sends no more.
    ///
    /// # Errors
    /// Why nothing was read.
    pub fn read(&self, buffer: &mut [u8], timeout: Option<Duration>) -> Result<usize, CallError> {
        let table = table_for_wait()?;
        let mut got = 0;
        // SAFETY: the connection is open, and the buffer may be written to for its length.
        let code = unsafe {
            (table.outgoing.conn_read)(
                self.0.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &raw mut got,
                timeout_ns(timeout),
            )
        };
        check(table, code).map(|()| got)
    }

    /// Writes all of it. After a failure it is not known how much was sent.
    ///
    /// # Errors
    /// Why it was not sent.
    pub fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> Result<(), CallError> {
        let table = table_for_wait()?;
        // SAFETY: the connection is open, and the bytes are readable for their length.
        let code = unsafe {
            (table.outgoing.conn_write)(
                self.0.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len(),
                timeout_ns(timeout),
            )
        };
        check(table, code)
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        if let Ok(table) = crate::go::table() {
            // SAFETY: it is closed once.
            unsafe { (table.outgoing.conn_close)(self.0.as_ptr()) };
        }
    }
}

fn io_error(error: CallError) -> io::Error {
    let kind = match error.reason {
        Reason::Refused => io::ErrorKind::ConnectionRefused,
        Reason::Reset => io::ErrorKind::ConnectionReset,
        Reason::Ended => io::ErrorKind::UnexpectedEof,
        Reason::TimedOut => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Without a time limit of its own: the context's deadline ends it.
impl io::Read for &Conn {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        Conn::read(self, buffer, None).map_err(io_error)
    }
}

/// As [`Read`](io::Read).
impl io::Write for &Conn {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Conn::write(self, bytes, None).map_err(io_error)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// --- HTTP -----------------------------------------------------------------------------------------

/// A request to another server.
///
/// ```no_run
/// use citius_handler::{HttpRequest, Outcome, Request, Response};
/// use std::time::Duration;
///
/// fn weather(_: &Request<'_>, response: &mut Response<'_>) -> Outcome {
///     let today = HttpRequest::get("http://127.0.0.1:9000/today")
///         .field("accept", "application/json")
///         .timeout(Duration::from_secs(2))
///         .send()?;
///     response.status(today.status());
///     response.write(today.body())
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it is sent by `send`"]
pub struct HttpRequest<'a> {
    method: &'a str,
    url: &'a str,
    fields: Vec<(&'a str, &'a [u8])>,
    body: &'a [u8],
    body_bytes_max: usize,
    timeout: Option<Duration>,
    tls: Option<&'a Tls>,
}

impl<'a> HttpRequest<'a> {
    /// A request with any method. The URL is `http://…` or `https://…`, percent-encoded.
    pub fn new(method: &'a str, url: &'a str) -> Self {
        Self {
            method,
            url,
            fields: Vec::new(),
            body: &[],
            body_bytes_max: 0,
            timeout: None,
            tls: None,
        }
    }

    /// A GET.
    pub fn get(url: &'a str) -> Self {
        Self::new("GET", url)
    }

    /// A POST.
    pub fn post(url: &'a str, body: &'a [u8]) -> Self {
        Self::new("POST", url).body(body)
    }

    /// Adds a field line. `Content-Length`, `Transfer-Encoding` and `Connection` are written by the client itself.
    pub fn field(mut self, name: &'a str, value: impl Into<FieldValue<'a>>) -> Self {
        self.fields.push((name, value.into().0));
        self
    }

    /// The content.
    pub fn body(mut self, body: &'a [u8]) -> Self {
        self.body = body;
        self
    }

    /// The largest content of a response that is taken; 1 MiB without a call.
    pub fn body_bytes_max(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    /// For all of it, from the look-up of the name to the last byte.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How the certificate of an `https://` server is verified.
    pub fn tls(mut self, tls: &'a Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sends it over HTTP/1.1, by a connection of an earlier one if its server keeps one open, and waits for the whole response.
    /// A status of 400 or more is a response as any other. Redirects are not followed.
    ///
    /// # Errors
    /// Why there is no response.
    pub fn send(&self) -> Result<HttpResponse, CallError> {
        let table = table_for_wait()?;
        let method = c_text(self.method, "the method")?;
        let url = c_text(self.url, "the URL")?;
        let tls = self.tls.map(RawTls::of).transpose()?;
        let fields = self.fields.iter().map(|(name, value)| raw::Field {
            name: raw::Text::of(name.as_bytes()),
            value: raw::Text::of(value),
        });
        let fields: Vec<raw::Field> = fields.collect();
        let request = raw::HttpRequest {
            size: size_of::<raw::HttpRequest>(),
            method: method.as_ptr(),
            url: url.as_ptr(),
            fields: fields.as_ptr(),
            fields_count: fields.len(),
            body: raw::Text::of(self.body),
            body_bytes_max: self.body_bytes_max,
            timeout_ns: timeout_ns(self.timeout),
            tls: tls.as_ref().map_or(ptr::null(), |tls| &raw const tls.raw),
        };
        let mut response = ptr::null_mut();
        // SAFETY: the server's own function; what the request points to outlives the call.
        let code = unsafe { (table.outgoing.http_call)(&raw const request, &raw mut response) };
        check(table, code)?;
        NonNull::new(response)
            .map(|response| HttpResponse { response, table })
            .ok_or_else(|| CallError::misuse("the server gave no response".into()))
    }
}

/// The value of a field line: text or bytes.
#[derive(Clone, Copy, Debug)]
pub struct FieldValue<'a>(&'a [u8]);

impl<'a> From<&'a str> for FieldValue<'a> {
    fn from(value: &'a str) -> Self {
        Self(value.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for FieldValue<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self(value)
    }
}

/// A response of another server.
pub struct HttpResponse {
    response: NonNull<raw::HttpResponse>,
    table: &'static raw::Api,
}

// SAFETY: it is bytes that nothing changes.
unsafe impl Send for HttpResponse {}
// SAFETY: it is bytes that nothing changes, so shared references may be used by any thread.
unsafe impl Sync for HttpResponse {}

impl HttpResponse {
    /// Its status.
    pub fn status(&self) -> u16 {
        // SAFETY: it is not freed.
        let status = unsafe { (self.table.outgoing.http_status)(self.response.as_ptr()) };
        u16::try_from(status).unwrap_or(0)
    }

    /// Its content.
    pub fn body(&self) -> &[u8] {
        // SAFETY: it is not freed while it is borrowed.
        raw::bytes(unsafe { (self.table.outgoing.http_body)(self.response.as_ptr()) })
    }

    /// The first value of a field, found without regard to case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let mut value = raw::Text::EMPTY;
        // SAFETY: it is not freed while it is borrowed; the name is readable for its length.
        let code = unsafe {
            (self.table.outgoing.http_field)(
                self.response.as_ptr(),
                name.as_ptr().cast(),
                name.len(),
                &raw mut value,
            )
        };
        (code == 0).then(|| raw::bytes(value))
    }
}

impl Drop for HttpResponse {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { (self.table.outgoing.http_free)(self.response.as_ptr()) };
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpResponse")
            .field("status", &self.status())
            .field("bytes", &self.body().len())
            .finish()
    }
}
