//! An HTTP/1.1 request to another server, and its response in full.

use std::sync::Arc;

use citius_goroutine::on_thread_stack;

use super::driver::Driver;
use super::error::{NetError, Result};
use super::response::{Reader, Response};
use super::stream::Stream;
use super::url::Url;
use crate::native::codes::UNREACHABLE;
use crate::native::wait::Until;

/// A request as the caller gives it.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: Url,
    pub(crate) fields: Vec<(&'a [u8], &'a [u8])>,
    pub(crate) body: &'a [u8],
    pub(crate) body_bytes_max: usize,
}

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;
/// A body up to this size leaves in one write with its head.
const JOINED_BYTES: usize = 16 * 1024;

/// Methods that may be sent again when an idle connection turns out to be gone (RFC 9110 §9.2.2).
const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"];

/// Sends a request, on a connection that is idle if there is one, and waits for the response.
pub(crate) fn call(request: &Request<'_>, until: Until) -> Result<Response> {
    let head = head_of(request)?;
    let driver = Driver::here()?;
    let target = &request.url.target;
    if let Some(stream) = driver.idle.take(target) {
        let mut reader = reader_of(request);
        match exchange(&stream, request, &head, &mut reader, until) {
            Ok(()) => return Ok(finish(&driver, request, stream, reader)),
            // The server has closed it at the same moment: nothing of a response has come.
            Err(error)
                if error.code == UNREACHABLE
                    && reader.is_untouched()
                    && IDEMPOTENT.contains(&request.method) => {}
            Err(error) => return Err(error),
        }
    }
    let stream = Arc::new(Stream::connect(target, until)?);
    let mut reader = reader_of(request);
    exchange(&stream, request, &head, &mut reader, until)?;
    Ok(finish(&driver, request, stream, reader))
}

fn reader_of(request: &Request<'_>) -> Reader {
    Reader::new(request.method == "HEAD", request.body_bytes_max)
}

fn finish(driver: &Driver, request: &Request<'_>, stream: Arc<Stream>, reader: Reader) -> Response {
    if reader.keeps_alive() {
        driver.idle.give(&request.url.target, stream);
    }
    reader.into_response()
}

fn exchange(
    stream: &Stream,
    request: &Request<'_>,
    head: &[u8],
    reader: &mut Reader,
    until: Until,
) -> Result<()> {
    let sent = if request.body.len() <= JOINED_BYTES {
        stream.write(&[head, request.body].concat(), until)
    } else {
        let head_sent = stream.write(head, until);
        head_sent.and_then(|()| stream.write(request.body, until))
    };
    // A server may answer before it has read the whole body, and close: the response tells why.
    let mut failure = match sent {
        Err(error) if error.code != UNREACHABLE => return Err(error),
        sent => sent.err(),
    };
    let mut received = Vec::with_capacity(READ_BYTES);
    while !reader.is_complete() {
        received.clear();
        match stream.append(&mut received, until) {
            Ok(0) => {
                return reader
                    .end()
                    .map_err(|error| failure.take().unwrap_or(error));
            }
            Ok(_) => on_thread_stack(|| reader.receive(&received))?,
            Err(error) => return Err(failure.take().unwrap_or(error)),
        }
    }
    if failure.is_some() {
        reader.spoil();
    }
    Ok(())
}

fn is_token(text: &[u8]) -> bool {
    let is_tchar = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_tchar)
}

/// Fields that say how the message is framed, which is not the caller's to say.
const OWN_FIELDS: [&str; 5] = [
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
];

fn head_of(request: &Request<'_>) -> Result<Vec<u8>> {
    if !is_token(request.method.as_bytes()) || request.method == "CONNECT" {
        return Err(NetError::misuse(format!("the method {:?}", request.method)));
    }
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.url.path).into_bytes();
    let mut has_host = false;
    for (name, value) in &request.fields {
        let shown = String::from_utf8_lossy(name);
        if !is_token(name) {
            return Err(NetError::misuse(format!("the field name {shown:?}")));
        }
        if value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(NetError::misuse(format!(
                "the value of the field {shown:?} has a line end or a zero byte in it"
            )));
        }
        if OWN_FIELDS.iter().any(|own| shown.eq_ignore_ascii_case(own)) {
            return Err(NetError::misuse(format!(
                "the field {shown:?} is written by the client itself"
            )));
        }
        has_host |= shown.eq_ignore_ascii_case("host");
        head.extend_from_slice(name);
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    if !has_host {
        head.extend_from_slice(format!("host: {}\r\n", request.url.authority).as_bytes());
    }
    let says_length =
        !request.body.is_empty() || matches!(request.method, "POST" | "PUT" | "PATCH");
    if says_length {
        head.extend_from_slice(format!("content-length: {}\r\n", request.body.len()).as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    Ok(head)
}
