//! An HTTP/1.1 request to another server, and its response in full.

use std::slice::Chunks;
use std::sync::Arc;

use citius_goroutine::on_thread_stack;
use citius_h1::client::{Asked, Content, Misuse};

use super::driver::Driver;
use super::error::{NetError, Result};
use super::response::{Reader, Response};
use super::stream::{SHARE_BYTES, Stream};
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

/// Sends the request and reads the response at the same time: a server may answer before it has read all, or send while it
/// reads.
fn exchange(
    stream: &Stream,
    request: &Request<'_>,
    head: &[u8],
    reader: &mut Reader,
    until: Until,
) -> Result<()> {
    let joined;
    let mut sending = if request.body.len() <= JOINED_BYTES {
        joined = [head, request.body].concat();
        Sending::new(&joined, &[])
    } else {
        Sending::new(head, request.body)
    };
    let mut received = Vec::with_capacity(READ_BYTES);
    while !reader.is_complete() {
        let is_full = sending.push(stream);
        received.clear();
        let read = if sending.piece.is_some() {
            stream.append_now(&mut received, until)
        } else {
            stream.append(&mut received, until).map(Some)
        };
        match read {
            Ok(None) if is_full => stream.wait(until)?,
            Ok(None) => {}
            Ok(Some(0)) => {
                reader.end().map_err(|error| sending.reason(error))?;
                break;
            }
            Ok(Some(_)) => on_thread_stack(|| reader.receive(&received))?,
            Err(error) => return Err(sending.reason(error)),
        }
    }
    if !sending.is_done() {
        // The server would take what was not sent for the next request.
        reader.spoil();
    }
    Ok(())
}

/// A request on its way.
struct Sending<'a> {
    /// What is sent now; `None`: all has left, or it has failed.
    piece: Option<&'a [u8]>,
    rest: Chunks<'a, u8>,
    failure: Option<NetError>,
}

impl<'a> Sending<'a> {
    fn new(first: &'a [u8], rest: &'a [u8]) -> Self {
        Self {
            piece: Some(first),
            rest: rest.chunks(SHARE_BYTES),
            failure: None,
        }
    }

    /// Sends what there is room for; `true`: there is no more room.
    fn push(&mut self, stream: &Stream) -> bool {
        let Some(piece) = &mut self.piece else {
            return false;
        };
        stream.set_midway(true);
        let unsent = piece.len();
        let pushed = stream.push(piece);
        stream.note_moved(unsent - piece.len());
        match pushed {
            Ok(true) => self.piece = self.rest.next(),
            Ok(false) => return true,
            // The server may have answered before it has closed: the response tells why.
            Err(error) => (self.piece, self.failure) = (None, Some(error)),
        }
        stream.set_midway(!self.is_done());
        false
    }

    fn is_done(&self) -> bool {
        self.piece.is_none() && self.failure.is_none()
    }

    /// Why the exchange has failed: what has kept the request from being sent comes before what that has led to.
    fn reason(&mut self, error: NetError) -> NetError {
        self.failure.take().unwrap_or(error)
    }
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
