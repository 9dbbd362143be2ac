//! Connections that are one session, without HTTP/3: their ALPN is `citius-rpc`.
//!
//! Every stream of the client's belongs to the session from its first byte on. The session is that of a request which the
//! server makes itself; of its response nothing is sent. Wire: docs/guides/rpc.md. Tests: `tests/http3/test_quic_calls.py`.

use alloc::boxed::Box;

use citius_http::multiplexed::Builder;
use citius_http::{Event, Version};

use crate::code::Code;
use crate::connection::{Connection, Shutdown};
use crate::receive::READ_BYTES;
use crate::seam::{Context, Control, Incoming, Options};
use crate::stream::{Direct, Stream, quic, request_number};

/// The number of the request. No stream that a client can open has it.
pub(crate) const SESSION: u32 = u32::MAX;

impl Connection {
    /// A connection whose handshake is complete, and whose session has the request `CONNECT path` to `authority`.
    pub fn direct(cx: &mut Context<'_>, path: &[u8], authority: &[u8]) -> Self {
        let mut connection = Self::new(cx.now, Options::default(), cx.limits);
        connection.controls.clear();
        let mut head = cx.heads.take();
        let (scratch, version) = (&mut connection.scratch, Version::Http3);
        let mut builder = Builder::new(&mut head, scratch, cx.limits, version, true);
        for (name, value) in [
            (&b":method"[..], &b"CONNECT"[..]),
            (b":protocol", b"webtransport"),
            (b":scheme", b"https"),
            (b":authority", authority),
            (b":path", path),
        ] {
            builder.take(name, value);
        }
        match builder.finish(false) {
            Ok(facts) => {
                connection.streams.insert(Stream::new(SESSION, cx.now));
                connection.open_request(SESSION, &head, false, &facts);
                connection.direct = Some(Box::new(Direct {
                    head: Some(head),
                    rejected: None,
                }));
            }
            Err(fault) => {
                cx.heads.give(head);
                connection.direct = Some(Box::default());
                connection.end_with(fault);
            }
        }
        connection
    }

    /// What of a stream is of use now, before the session knows of it: nothing until it is granted.
    pub(crate) fn appetite_of_direct(&self, stream: u64) -> usize {
        if self.sessions.has_stream(stream) {
            self.appetite_for_session(stream).unwrap_or(0)
        } else if self.is_session(SESSION) {
            READ_BYTES
        } else {
            0
        }
    }

    /// Takes bytes of a stream.
    pub(crate) fn receive_direct<'i>(
        &mut self,
        cx: &mut Context<'_>,
        stream: u64,
        input: &mut &'i [u8],
        fin: bool,
    ) -> Option<Incoming<'i>> {
        if !self.sessions.has_stream(stream) && !self.admit_direct(cx, stream) {
            *input = &[];
            return None;
        }
        self.receive_session_stream(stream, input, fin)
    }

    fn admit_direct(&mut self, cx: &mut Context<'_>, stream: u64) -> bool {
        let Some(direct) = &mut self.direct else {
            return false;
        };
        if direct.rejected == Some(stream) {
            return false;
        }
        let is_taken = self.shutdown != Shutdown::Final
            && stream != quic(SESSION)
            && self.sessions.n_streams() < cx.limits.webtransport_streams_max as usize;
        if is_taken {
            self.sessions.adopt(stream, SESSION);
            return true;
        }
        direct.rejected = Some(stream);
        self.reject_request(cx, stream);
        false
    }

    /// The request of the session, the first time.
    pub(crate) fn next_of_direct(&mut self, cx: &mut Context<'_>) -> Option<Event<'static>> {
        let direct = self.direct.as_mut()?;
        if let Some(head) = direct.head.take() {
            return Some(Event::Request {
                stream: SESSION,
                head,
                ended: false,
            });
        }
        if self.direct_is_done() {
            self.session_is_closed(cx, SESSION);
        }
        None
    }

    /// Whether the request waits to be told, or the session has nothing to do any more.
    pub(crate) fn direct_has_events(&self) -> bool {
        let waits = |direct: &Direct| direct.head.is_some();
        self.direct.as_deref().is_some_and(waits) || self.direct_is_done()
    }

    /// Whether the server has taken leave, and all streams are over.
    fn direct_is_done(&self) -> bool {
        self.direct.is_some()
            && self.shutdown == Shutdown::Final
            && self.is_session(SESSION)
            && self.sessions.n_streams() == 0
    }

    /// Whether nothing of `stream` is sent: [`taken`](Self::taken) is called for it with all that is queued.
    pub fn is_silent(&self, stream: u64) -> bool {
        self.direct.is_some() && request_number(stream) == Some(SESSION)
    }

    /// Closes the connection when its session is over, or was refused.
    pub(crate) fn close_direct(&mut self) {
        if self.closing.is_some() || !self.streams.is_empty() {
            return;
        }
        self.closing = Some(citius_http::Closing::Clean);
        let (code, reason) = if self.sessions.was_used() {
            (Code::NoError, "")
        } else {
            (Code::Connect, "the server refuses the connection")
        };
        self.controls.push_back(Control::Close {
            code: code.number(),
            reason,
        });
    }
}
