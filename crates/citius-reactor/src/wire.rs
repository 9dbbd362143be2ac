//! The protocol of a connection: HTTP/1.1, HTTP/2 and RPC behind one set of methods.
//!
//! Each method is that of the protocol's connection and means the same for all; a protocol without a use for it ignores it.
//! HTTP/1.1 comes first in every `match` and is inlined. Protocols are told apart in this file alone. A change of protocol
//! (prior knowledge, `upgrade: h2c`, ALPN) replaces the value and hands over the unread bytes.

use citius_h1::{Context, Request};
use citius_http::{
    Action, Closing, Event, Fault, Head, Limits, Millis, Output, PlainResponse, RefusedHead,
    Version,
};

/// Which protocols a reactor speaks, and how connections come to HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// HTTP/1.1 and HTTP/1.0.
    pub http1: bool,
    /// HTTP/2: to clients that begin with its preface, whatever they were offered.
    pub http2: bool,
    /// `upgrade: h2c` is granted; without effect unless both are spoken.
    pub upgrade: bool,
}

impl Default for Protocols {
    fn default() -> Self {
        Self {
            http1: true,
            http2: true,
            upgrade: true,
        }
    }
}

/// The protocol of one connection.
#[derive(Debug)]
pub(crate) enum Wire {
    /// HTTP/1.1 and HTTP/1.0.
    H1(citius_h1::Connection),
    /// HTTP/2; boxed, because it is larger than everything else that most connections are made of.
    H2(Box<citius_h2::Connection>),
    /// Calls of procedures; boxed for the same reason.
    Rpc(Box<citius_rpc::Connection>),
}

use Wire::{H1, H2, Rpc};

impl Wire {
    /// What a connection that was accepted at `now` speaks until it shows otherwise.
    #[inline]
    pub(crate) fn new(now: Millis, protocols: Protocols) -> Self {
        if protocols.http1 {
            H1(citius_h1::Connection::new(now))
        } else {
            Self::h2(now)
        }
    }

    /// HTTP/2 from here on: agreed on by ALPN, or known because the client's preface has come.
    pub(crate) fn h2(now: Millis) -> Self {
        H2(Box::new(citius_h2::Connection::new(now, H2_OPTIONS)))
    }

    /// Calls of procedures, from the first byte to the last.
    pub(crate) fn rpc(now: Millis) -> Self {
        Rpc(Box::new(citius_rpc::Connection::new(now)))
    }

    /// HTTP/2 from here on if the first bytes of a connection, `input`, say so; whether they do.
    #[inline(never)]
    pub(crate) fn recognise(&mut self, now: Millis, input: &[u8]) -> bool {
        let begins = !self.is_rpc() && citius_h2::Connection::begins_with(input);
        if begins && !self.is_h2() {
            *self = Self::h2(now);
        }
        begins
    }

    /// HTTP/2 from here on if `head`, the first request of a connection and complete, asks for it in a way that can be
    /// granted (RFC 7540 §3.2). Writes the 101, makes `head` one of HTTP/2, and returns the stream it is to be answered on.
    ///
    /// An upgrade that cannot be granted is ignored: the request is answered by HTTP/1.1, which is always right.
    #[cold]
    pub(crate) fn upgrade(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Head,
        out: &mut Output,
    ) -> Option<u32> {
        let settings = h2c_settings(head)?;
        let mut announced = Output::default();
        let wire =
            citius_h2::Connection::upgraded(&h2(cx), H2_OPTIONS, head, settings, &mut announced);
        *self = H2(Box::new(wire.ok()?));
        out.tail().extend_from_slice(SWITCHING);
        out.append(&mut announced);
        for name in [&b"connection"[..], b"upgrade", b"http2-settings"] {
            head.drop_field(name);
        }
        head.version = Version::Http2;
        head.asks_upgrade = false;
        Some(UPGRADED_STREAM)
    }

    #[inline]
    pub(crate) fn is_h2(&self) -> bool {
        matches!(self, H2(_))
    }

    /// Whether procedures are called, and no requests come.
    #[inline]
    pub(crate) fn is_rpc(&self) -> bool {
        matches!(self, Rpc(_))
    }

    /// Has the call `stream` given up at `due_at`.
    pub(crate) fn set_due(&mut self, stream: u32, due_at: Millis) {
        if let Rpc(wire) = self {
            wire.set_due(stream, due_at);
        }
    }

    /// Whether responses are still to be waited for although the peer has closed its side: calls are answered and
    /// notifications run to their end, while a request's handler that still waits is cancelled.
    pub(crate) fn owes_responses(&self) -> bool {
        match self {
            H1(_) | H2(_) => false,
            Rpc(wire) => wire.streams_open() > 0,
        }
    }

    /// Bytes of the response of `stream` that are not in the connection's write queue yet: they wait for earlier
    /// responses, or for a window. `None`: all of them are, or were.
    pub(crate) fn held_back_bytes(&self, stream: u32) -> Option<u64> {
        match self {
            H1(wire) => wire.parked_bytes_of(stream),
            H2(wire) => wire.waiting_bytes_of(stream),
            Rpc(_) => None,
        }
    }

    // --- bytes and time coming in -------------------------------------------------------------

    /// The next request, if it says the same as one before it, which HTTP/1 alone remembers.
    #[inline]
    pub(crate) fn receive_cached(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &[u8],
    ) -> Option<Request> {
        match self {
            H1(wire) => wire.receive_cached(cx, input),
            H2(_) | Rpc(_) => None,
        }
    }

    /// Whether [`receive`](Self::receive) has nothing to do before more input comes, if there is none left.
    #[inline]
    pub(crate) fn awaits_head(&self) -> bool {
        match self {
            H1(wire) => wire.awaits_head(),
            H2(_) | Rpc(_) => false,
        }
    }

    /// Takes as much of `input` as it can and returns the next event, unless [`receive_cached`](Self::receive_cached) has one; to be
    /// called until `None`.
    #[inline]
    pub(crate) fn receive<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>> {
        match self {
            H1(wire) => wire.receive_uncached(cx, input, out),
            H2(wire) => apart(|| wire.receive(&mut h2(cx), input, out)),
            Rpc(wire) => apart(|| wire.receive(rpc(cx), input, out)),
        }
    }

    /// The peer has closed its sending side.
    pub(crate) fn receive_eof(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        match self {
            H1(wire) => wire.receive_eof(cx, out),
            H2(wire) => wire.receive_eof(&mut h2(cx), out),
            Rpc(wire) => {
                wire.receive_eof();
                None
            }
        }
    }

    /// Time has passed.
    pub(crate) fn expire(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        match self {
            H1(wire) => wire.expire(cx, out),
            H2(wire) => wire.expire(&mut h2(cx), out),
            Rpc(wire) => wire.expire(rpc(cx), out),
        }
    }

    /// When [`expire`](Self::expire) wants to be called.
    #[inline]
    pub(crate) fn deadline(&self, limits: &Limits) -> Option<Millis> {
        match self {
            H1(wire) => wire.deadline(limits),
            H2(wire) => apart(|| wire.deadline(limits)),
            Rpc(wire) => apart(|| wire.deadline(limits)),
        }
    }

    /// Whether more input could be used.
    #[inline]
    pub(crate) fn wants_input(&self, limits: &Limits) -> bool {
        match self {
            H1(wire) => wire.wants_input(limits),
            H2(wire) => apart(|| wire.wants_input(limits)),
            Rpc(wire) => apart(|| wire.wants_input(limits)),
        }
    }

    /// Whether [`receive`](Self::receive) has something to tell without another byte of input.
    #[inline]
    pub(crate) fn has_events(&self) -> bool {
        match self {
            H1(_) | Rpc(_) => false,
            H2(wire) => wire.has_events(),
        }
    }

    // --- what the application says ------------------------------------------------------------

    /// Does what the application wants to happen to `stream`.
    #[inline]
    pub(crate) fn send(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        action: Action<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        match self {
            H1(wire) => wire.send(cx, stream, action, out),
            H2(wire) => apart(|| wire.send(&mut h2(cx), stream, action, out)),
            Rpc(wire) => apart(|| wire.send(rpc(cx), stream, action, out)),
        }
    }

    /// Gives a plain response, if that takes nothing but to write it; `false`: it has to be said at length.
    #[inline]
    pub(crate) fn respond(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        plain: PlainResponse<'_>,
        out: &mut Output,
    ) -> bool {
        match self {
            H1(wire) => wire.respond(cx, stream, plain, out),
            H2(_) | Rpc(_) => false,
        }
    }

    /// Takes nothing that follows `stream` for another request until it is answered; `false`: something has come already.
    /// Streams of HTTP/2 are apart from each other anyway.
    pub(crate) fn hold(&mut self, stream: u32) -> bool {
        match self {
            H1(wire) => wire.hold(stream),
            H2(wire) => wire.is_open(stream),
            // No call becomes a socket.
            Rpc(_) => false,
        }
    }

    /// The application wants up to `bytes` more of the body of `stream`.
    #[inline]
    pub(crate) fn want(&mut self, cx: &mut Context<'_>, stream: u32, bytes: u64, out: &mut Output) {
        match self {
            H1(wire) => wire.want(cx, stream, bytes, out),
            H2(wire) => wire.want(&mut h2(cx), stream, bytes, out),
            // Calls come whole.
            Rpc(_) => {}
        }
    }

    /// The body of `stream` may have at most `bytes_max` bytes; `true`: it is announced longer, and is refused.
    #[cold]
    pub(crate) fn limit_body(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        bytes_max: u64,
        out: &mut Output,
    ) -> bool {
        match self {
            H1(wire) => wire.limit_body(cx, stream, bytes_max, out),
            H2(wire) => wire.limit_body(&mut h2(cx), stream, bytes_max, out),
            // Messages have a limit of their own.
            Rpc(_) => false,
        }
    }

    /// Stops taking new requests.
    pub(crate) fn drain(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        match self {
            H1(wire) => wire.drain(),
            H2(wire) => wire.drain(&mut h2(cx), out),
            Rpc(wire) => wire.drain(out),
        }
    }

    // --- room ---------------------------------------------------------------------------------

    /// Bytes of a streamed response that may be sent now without piling up, with `queued` bytes in the output.
    #[inline]
    pub(crate) fn write_capacity(&self, stream: u32, limits: &Limits, queued: usize) -> usize {
        match self {
            H1(wire) if wire.is_at_front(stream) => {
                (limits.write_queue_bytes_max as usize).saturating_sub(queued)
            }
            // Results leave whole.
            H1(_) | Rpc(_) => 0,
            H2(wire) => wire.write_capacity(stream, limits),
        }
    }

    /// Whether the response on `stream` may go on now that the output is empty.
    #[inline]
    pub(crate) fn may_write(&self, stream: u32, limits: &Limits) -> bool {
        match self {
            H1(wire) => wire.is_at_front(stream),
            H2(wire) => wire.is_open(stream) && wire.write_capacity(stream, limits) > 0,
            Rpc(_) => false,
        }
    }

    /// Whether something waits that only the output keeps from leaving.
    #[inline]
    pub(crate) fn wants_output(&self) -> bool {
        match self {
            H1(_) | Rpc(_) => false,
            H2(wire) => wire.wants_output(),
        }
    }

    /// Writes what waits, now that the output is empty.
    #[inline]
    pub(crate) fn pump(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        match self {
            H1(_) | Rpc(_) => {}
            H2(wire) => wire.pump(&mut h2(cx), out),
        }
    }

    // --- how it stands ------------------------------------------------------------------------

    /// Set once nothing more will be read or begun.
    #[inline]
    pub(crate) fn closing(&self) -> Option<Closing> {
        match self {
            H1(wire) => wire.closing(),
            H2(wire) => wire.closing(),
            Rpc(wire) => wire.closing(),
        }
    }

    /// The rule the peer broke, if that is why reading ended.
    pub(crate) fn fault(&self) -> Option<Fault> {
        match self {
            H1(wire) => wire.fault(),
            H2(wire) => wire.fault(),
            Rpc(wire) => wire.fault(),
        }
    }

    /// Requests taken and not fully answered.
    #[inline]
    pub(crate) fn streams_open(&self) -> usize {
        match self {
            H1(wire) => wire.streams_open(),
            H2(wire) => wire.streams_open(),
            Rpc(wire) => wire.streams_open(),
        }
    }

    /// Bytes of the content of the server's own response to the fault of the stream that was broken last.
    #[cold]
    pub(crate) fn fault_response_bytes(&self) -> u64 {
        match self {
            H1(wire) => wire.fault_response_bytes(),
            H2(wire) => wire.fault_response_bytes(),
            Rpc(_) => 0,
        }
    }

    /// The request whose header section was the last thing that was read of the connection, if it was refused.
    /// `unread` is what the connection has left over.
    #[cold]
    pub(crate) fn refused_head(&self, unread: &[u8]) -> Option<RefusedHead> {
        match self {
            H1(wire) => wire.refused_head(unread),
            H2(_) | Rpc(_) => None,
        }
    }

    /// Whether [`take_refused`](Self::take_refused) has something to give.
    #[inline]
    pub(crate) fn has_refused(&self) -> bool {
        match self {
            H1(_) | Rpc(_) => false,
            H2(wire) => wire.has_refused(),
        }
    }

    /// Requests whose header sections were refused on a connection that goes on.
    #[cold]
    pub(crate) fn take_refused(&mut self) -> Vec<RefusedHead> {
        match self {
            H1(_) | Rpc(_) => Vec::new(),
            H2(wire) => wire.take_refused(),
        }
    }

    /// Whether `stream` may still be answered.
    #[inline]
    pub(crate) fn is_open(&self, stream: u32) -> bool {
        match self {
            H1(wire) => wire.is_open(stream),
            H2(wire) => wire.is_open(stream),
            Rpc(wire) => wire.is_open(stream),
        }
    }
}

/// Does `act` out of line, so that the code of HTTP/1 around it stays small enough to be inlined where it is used.
#[inline(never)]
fn apart<R>(act: impl FnOnce() -> R) -> R {
    act()
}

/// The stream on which a request is answered that has asked for `upgrade: h2c` (RFC 7540 §3.2).
const UPGRADED_STREAM: u32 = 1;

/// What grants the upgrade.
const SWITCHING: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n";

/// Fields that show that a request has passed a proxy. None passes an upgrade on that it understands, for the field is
/// between two neighbours only; one that does not understand it would give its client a way around its rules.
const PROXY_FIELDS: [&[u8]; 4] = [b"via", b"forwarded", b"x-forwarded-for", b"x-real-ip"];

/// What is offered beyond the plain protocol.
const H2_OPTIONS: citius_h2::Options = citius_h2::Options {
    extended_connect: true,
};

/// The same context without what only HTTP/1 keeps.
#[inline]
fn h2<'a>(cx: &'a mut Context<'_>) -> citius_h2::Context<'a> {
    citius_h2::Context {
        now: cx.now,
        limits: cx.limits,
        heads: cx.heads,
        server: cx.server,
        date: cx.date,
        default_fields: cx.default_fields,
    }
}

/// What calls of procedures need of it.
#[inline]
fn rpc<'a>(cx: &Context<'a>) -> citius_rpc::Context<'a> {
    citius_rpc::Context {
        now: cx.now,
        limits: cx.limits,
    }
}

/// The settings of a request that may be upgraded to HTTP/2.
fn h2c_settings(head: &Head) -> Option<&[u8]> {
    let names = |field: &[u8], word: &[u8]| {
        head.fields().any(|(name, value)| {
            let mut words = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
            name.eq_ignore_ascii_case(field) && words.any(|other| other.eq_ignore_ascii_case(word))
        })
    };
    // RFC 7540 §3.2.1: exactly one, and it must be named for the next hop alone.
    if !names(b"upgrade", b"h2c") || !names(b"connection", b"http2-settings") {
        return None;
    }
    if PROXY_FIELDS.iter().any(|name| head.field(name).is_some()) {
        return None;
    }
    let mut found = head
        .fields()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"http2-settings"));
    let (_, settings) = found.next()?;
    found.next().is_none().then_some(settings)
}

#[cfg(test)]
mod tests {
    use citius_http::HeadPool;

    use super::*;

    /// What becomes of a first request with these field lines.
    #[track_caller]
    fn offered(lines: &str) -> (bool, Vec<u8>, Head) {
        let (mut heads, mut template) = (HeadPool::default(), citius_h1::Template::default());
        let limits = Limits::default();
        let mut cx = Context {
            now: 0,
            limits: &limits,
            heads: &mut heads,
            server: b"",
            date: b"",
            default_fields: &citius_http::Fields::EMPTY,
            template: &mut template,
        };
        let text = format!("GET /a HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let (mut wire, mut out) = (Wire::new(0, Protocols::default()), Output::default());
        let event = wire.receive(&mut cx, &mut text.as_bytes(), &mut out);
        let Some(Event::Request { mut head, .. }) = event else {
            panic!("not a request: {text}");
        };
        let stream = if head.asks_upgrade {
            wire.upgrade(&mut cx, &mut head, &mut out)
        } else {
            None
        };
        assert_eq!(stream.is_some(), wire.is_h2());
        assert_eq!(wire.streams_open(), 1);
        let bytes = out.pieces().flatten().copied().collect();
        (wire.is_h2(), bytes, *head)
    }

    #[test]
    fn an_upgrade_is_granted_with_settings_behind_the_101() {
        let lines = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
            HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nAccept: */*\r\n";
        let (granted, bytes, head) = offered(lines);
        assert!(granted);
        let frames = bytes.strip_prefix(SWITCHING).expect("the 101 comes first");
        assert_eq!(frames[3..9], [4, 0, 0, 0, 0, 0], "then SETTINGS");
        assert_eq!(head.version, Version::Http2);
        let names: Vec<_> = head.fields().map(|(name, _)| name).collect();
        assert_eq!(names, [&b"Host"[..], b"Accept"]);
    }

    #[test]
    fn other_upgrades_are_ignored() {
        const SETTINGS: &str = "HTTP2-Settings: AAMAAABk\r\n";
        for lines in [
            format!("Connection: HTTP2-Settings\r\nUpgrade: h2c\r\n{SETTINGS}"),
            format!("Connection: Upgrade\r\nUpgrade: h2c\r\n{SETTINGS}"),
            format!("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2\r\n{SETTINGS}"),
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n".to_owned(),
            format!("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n{SETTINGS}{SETTINGS}"),
            // An initial window of 2^31.
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AASAAAAA\r\n"
                .to_owned(),
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: +\r\n"
                .to_owned(),
            format!(
                "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n{SETTINGS}Via: 1.1 p\r\n"
            ),
        ] {
            let (granted, bytes, head) = offered(&lines);
            assert!(!granted && bytes.is_empty(), "{lines}");
            assert_eq!(head.version, Version::Http11);
        }
    }

    #[test]
    fn http_1_is_not_larger_for_having_company() {
        assert!(size_of::<Wire>() <= size_of::<citius_h1::Connection>() + 8);
    }
}
