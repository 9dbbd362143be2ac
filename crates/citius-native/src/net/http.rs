//! An HTTP/1.1 request to another server, and its response in full.

use std::sync::Arc;

use citius_goroutine::on_thread_stack;
use citius_h1::client::{Asked, Content, Misuse};

use super::driver::Driver;
use super::error::{NetError, Result};
use super::response::{Reader, Response};
use super::stream::Stream;
use super::url::Url;
use crate::codes::UNREACHABLE;
use crate::wait::Until;

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
/// Bytes of most heads.
const HEAD_BYTES: usize = 256;
/// A body up to this size leaves in one write with its head.
const JOINED_BYTES: usize = 16 * 1024;

/// Methods that may be sent again when an idle connection turns out to be gone (RFC 9110 §9.2.2).
const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"];

/// Sends a request, on a connection that is idle if there is one, and waits for the response.
pub(crate) fn call(request: &Request<'_>, until: Until) -> Result<Response> {
    let (head, asked) = head_of(request)?;
    let driver = Driver::here()?;
    let target = &request.url.target;
    if let Some(stream) = driver.idle.take(target) {
        let mut reader = reader_of(request, asked);
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
    let mut reader = reader_of(request, asked);
    exchange(&stream, request, &head, &mut reader, until)?;
    Ok(finish(&driver, request, stream, reader))
}

fn reader_of(request: &Request<'_>, asked: Asked) -> Reader {
    Reader::new(asked, request.body_bytes_max)
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

fn head_of(request: &Request<'_>) -> Result<(Vec<u8>, Asked)> {
    let head = citius_h1::client::Request {
        method: request.method.as_bytes(),
        target: request.url.path.as_bytes(),
        authority: request.url.authority.as_bytes(),
        content: Content::Length(request.body.len() as u64),
        upgrades: false,
    };
    let mut bytes = Vec::with_capacity(HEAD_BYTES);
    let asked = head.encode(request.fields.iter().copied(), &mut bytes);
    match asked {
        Ok(asked) => Ok((bytes, asked)),
        Err(misuse) => Err(misuse_of(request, misuse)),
    }
}

#[cold]
fn misuse_of(request: &Request<'_>, misuse: Misuse<'_>) -> NetError {
    let shown = |name| String::from_utf8_lossy(name).into_owned();
    NetError::misuse(match misuse {
        Misuse::Method => format!("the method {:?}", request.method),
        Misuse::Target | Misuse::Authority => "the URL has a byte that no URL has".into(),
        Misuse::FieldName(name) => format!("the field name {:?}", shown(name)),
        Misuse::FieldValue(name) => format!(
            "the value of the field {:?} has a line end or another control byte in it",
            shown(name)
        ),
        Misuse::FieldOwned(name) => format!(
            "the field {:?} is written by the client itself",
            shown(name)
        ),
    })
}
