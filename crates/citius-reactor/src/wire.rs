//! The protocol of a connection: HTTP/1.1, HTTP/2 and RPC behind one set of methods.
//!
//! [`Protocol`] is what the reactor asks of each; a further protocol is an implementation of it, a variant of [`Wire`], and a way
//! to come to it. Protocols are told apart in this file alone. A change of protocol
//! (prior knowledge, `upgrade: h2c`, ALPN) replaces the value and hands over the unread bytes.

use citius_h1::{Context, Request};
use citius_http::{
    Action, Closing, Event, Fault, Head, Limits, Millis, Output, PlainResponse, RefusedHead,
    Version,
};

use crate::protocol::{OutputEnd, Protocol};
use crate::refusal::RPC_CLEAR_TEXT;

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

/// Calls a method of the protocol that is spoken. HTTP/1.1 comes first and is inlined; HTTP/3 is called out of line, so that
/// those who call it stay as small as they are without it.
macro_rules! each {
    ($wire:ident, ref $method:ident($($argument:ident),*)) => {
        match $wire {
            H1(wire) => Protocol::$method(wire, $($argument),*),
            H2(wire) => Protocol::$method(&**wire, $($argument),*),
            H3(wire) => apart(|| Protocol::$method(&**wire, $($argument),*)),
            Rpc(wire) => Protocol::$method(&**wire, $($argument),*),
        }
    };
    ($wire:ident, mut $method:ident($($argument:ident),*)) => {
        match $wire {
            H1(wire) => Protocol::$method(wire, $($argument),*),
            H2(wire) => Protocol::$method(&mut **wire, $($argument),*),
            H3(wire) => apart(|| Protocol::$method(&mut **wire, $($argument),*)),
            Rpc(wire) => Protocol::$method(&mut **wire, $($argument),*),
        }
    };
}

/// Calls a method of the protocol that is spoken; all but HTTP/1.1 are called out of line.
macro_rules! each_apart {
    ($wire:ident, ref $method:ident($($argument:ident),*)) => {
        match $wire {
            H1(wire) => Protocol::$method(wire, $($argument),*),
            H2(wire) => apart(|| Protocol::$method(&**wire, $($argument),*)),
            H3(wire) => apart(|| Protocol::$method(&**wire, $($argument),*)),
            Rpc(wire) => apart(|| Protocol::$method(&**wire, $($argument),*)),
        }
    };
    ($wire:ident, mut $method:ident($($argument:ident),*)) => {
        match $wire {
            H1(wire) => Protocol::$method(wire, $($argument),*),
            H2(wire) => apart(|| Protocol::$method(&mut **wire, $($argument),*)),
            H3(wire) => apart(|| Protocol::$method(&mut **wire, $($argument),*)),
            Rpc(wire) => apart(|| Protocol::$method(&mut **wire, $($argument),*)),
        }
    };
}

/// Methods that do as the protocol that is spoken does.
macro_rules! methods {
    ($(
        $(#[$attribute:meta])* $way:ident $kind:ident
        $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;
    )+) => {
        $(methods!(@$kind $(#[$attribute])* $way $name($($argument: $type),*) $(-> $result)?);)+
    };
    (@ref $(#[$attribute:meta])* $way:ident $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        $(#[$attribute])*
        pub(crate) fn $name(&self, $($argument: $type),*) $(-> $result)? {
            $way!(self, ref $name($($argument),*))
        }
    };
    (@mut $(#[$attribute:meta])* $way:ident $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        $(#[$attribute])*
        pub(crate) fn $name(&mut self, $($argument: $type),*) $(-> $result)? {
            $way!(self, mut $name($($argument),*))
        }
    };
}

/// A constant of the protocol that is spoken.
macro_rules! constant {
    ($wire:ident, $name:ident) => {
        match $wire {
            H1(_) => <citius_h1::Connection as Protocol>::$name,
            H2(_) => <citius_h2::Connection as Protocol>::$name,
            H3(_) => <citius_h3::Connection as Protocol>::$name,
            Rpc(_) => <citius_rpc::Connection as Protocol>::$name,
        }
    };
}

/// The protocol of one connection.
#[derive(Debug)]
pub(crate) enum Wire {
    /// HTTP/1.1 and HTTP/1.0.
    H1(citius_h1::Connection),
    /// HTTP/2; boxed, because it is larger than everything else that most connections are made of.
    H2(Box<citius_h2::Connection>),
    /// HTTP/3, over QUIC alone; boxed for the same reason.
    H3(Box<citius_h3::Connection>),
    /// Calls of procedures; boxed for the same reason.
    Rpc(Box<citius_rpc::Connection>),
}

use Wire::{H1, H2, H3, Rpc};

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

    /// HTTP/3 on a connection of QUIC.
    pub(crate) fn h3(now: Millis, limits: &Limits, options: citius_h3::Options) -> Self {
        H3(Box::new(citius_h3::Connection::new(now, options, limits)))
    }

    /// The protocol, if it is HTTP/3: what comes and goes over its streams is carried by `carrier.rs`.
    pub(crate) fn as_h3(&mut self) -> Option<&mut citius_h3::Connection> {
        match self {
            H3(wire) => Some(wire),
            H1(_) | H2(_) | Rpc(_) => None,
        }
    }

    /// Calls of procedures, from the first byte to the last.
    pub(crate) fn rpc(now: Millis) -> Self {
        Rpc(Box::new(citius_rpc::Connection::new(now)))
    }

    /// HTTP/2 from here on if the first bytes of a connection, `input`, say so; whether they do.
    #[inline(never)]
    pub(crate) fn recognise(&mut self, now: Millis, input: &[u8]) -> bool {
        let begins = !matches!(self, H3(_) | Rpc(_)) && citius_h2::Connection::begins_with(input);
        if begins && self.may_become_h2() {
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

    /// What ALPN may agree on: `None`: either version of HTTP.
    pub(crate) fn alpn_alone(&self, protocols: Protocols) -> Option<&'static [u8]> {
        constant!(self, ALPN_ALONE).or(match protocols {
            Protocols {
                http1: true,
                http2: true,
                ..
            } => None,
            Protocols { http2: true, .. } => Some(b"h2"),
            _ => Some(b"http/1.1"),
        })
    }

    /// Becomes what a handshake has agreed on.
    pub(crate) fn agree(&mut self, alpn: Option<&[u8]>, now: Millis, protocols: Protocols) {
        *self = match self {
            Rpc(_) => Self::rpc(now),
            _ if alpn == Some(b"h2") => Self::h2(now),
            _ => Self::new(now, protocols),
        };
    }

    /// What a client gets that speaks clear text where TLS is expected.
    pub(crate) fn clear_text_reply(&self) -> &'static [u8] {
        constant!(self, CLEAR_TEXT)
    }

    /// What is sent to a client that is turned away; `None`: the connection is closed without a byte.
    pub(crate) fn refusal(&self) -> Option<&'static [u8]> {
        constant!(self, REFUSAL)
    }

    /// Whether a request may turn the connection into one of HTTP/2.
    pub(crate) fn may_become_h2(&self) -> bool {
        constant!(self, MAY_BECOME_H2)
    }

    // What each means: [`Protocol`].

    #[inline]
    pub(crate) fn receive<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>> {
        each_apart!(self, mut receive(cx, input, out))
    }

    methods! {
        each mut set_due(stream: u32, due_at: Millis);
        each ref owes_responses() -> bool;
        each_apart ref is_tunnel() -> bool;
        #[cold] each mut end_output(stream: u32, out: &mut Output) -> OutputEnd;
        each ref held_back_bytes(stream: u32) -> Option<u64>;
        #[inline] each mut receive_cached(cx: &mut Context<'_>, input: &mut &[u8]) -> Option<Request>;
        #[inline] each ref awaits_head() -> bool;
        each mut receive_eof(cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>>;
        each mut expire(cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>>;
        #[inline] each_apart ref deadline(limits: &Limits) -> Option<Millis>;
        #[inline] each_apart ref wants_input(limits: &Limits) -> bool;
        #[inline] each ref has_events() -> bool;
        #[inline] each_apart mut send(cx: &mut Context<'_>, stream: u32, action: Action<'_>, out: &mut Output) -> Result<(), Fault>;
        #[inline] each mut respond(cx: &mut Context<'_>, stream: u32, plain: PlainResponse<'_>, out: &mut Output) -> bool;
        each mut hold(stream: u32) -> bool;
        #[inline] each mut want(cx: &mut Context<'_>, stream: u32, bytes: u64, out: &mut Output);
        #[cold] each mut limit_body(cx: &mut Context<'_>, stream: u32, bytes_max: u64, out: &mut Output) -> bool;
        each mut drain(cx: &mut Context<'_>, out: &mut Output);
        #[inline] each ref write_capacity(stream: u32, limits: &Limits, queued: usize) -> usize;
        #[inline] each ref may_write(stream: u32, limits: &Limits) -> bool;
        #[inline] each ref wants_output() -> bool;
        #[inline] each mut pump(cx: &mut Context<'_>, out: &mut Output);
        #[inline] each ref closing() -> Option<Closing>;
        each ref fault() -> Option<Fault>;
        #[inline] each ref streams_open() -> usize;
        #[cold] each ref fault_response_bytes() -> u64;
        #[cold] each ref refused_head(unread: &[u8]) -> Option<RefusedHead>;
        #[inline] each ref has_refused() -> bool;
        #[cold] each mut take_refused() -> Vec<RefusedHead>;
        #[inline] each ref is_open(stream: u32) -> bool;
    }
}

impl Protocol for citius_h1::Connection {
    const MAY_BECOME_H2: bool = true;

    #[inline]
    fn receive<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>> {
        self.receive_uncached(cx, input, out)
    }

    fn receive_eof(&mut self, cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>> {
        self.receive_eof(cx, out)
    }

    fn expire(&mut self, cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>> {
        self.expire(cx, out)
    }

    #[inline]
    fn deadline(&self, limits: &Limits) -> Option<Millis> {
        self.deadline(limits)
    }

    #[inline]
    fn wants_input(&self, limits: &Limits) -> bool {
        self.wants_input(limits)
    }

    #[inline]
    fn send(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        action: Action<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        self.send(cx, stream, action, out)
    }

    fn drain(&mut self, _cx: &mut Context<'_>, _out: &mut Output) {
        self.drain();
    }

    #[inline]
    fn closing(&self) -> Option<Closing> {
        self.closing()
    }

    fn fault(&self) -> Option<Fault> {
        self.fault()
    }

    #[inline]
    fn streams_open(&self) -> usize {
        self.streams_open()
    }

    #[inline]
    fn is_open(&self, stream: u32) -> bool {
        self.is_open(stream)
    }

    #[inline]
    fn receive_cached(&mut self, cx: &mut Context<'_>, input: &mut &[u8]) -> Option<Request> {
        self.receive_cached(cx, input)
    }

    #[inline]
    fn awaits_head(&self) -> bool {
        self.awaits_head()
    }

    #[inline]
    fn respond(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        plain: PlainResponse<'_>,
        out: &mut Output,
    ) -> bool {
        self.respond(cx, stream, plain, out)
    }

    fn hold(&mut self, stream: u32) -> bool {
        self.hold(stream)
    }

    fn is_tunnel(&self) -> bool {
        self.is_tunnel()
    }

    fn end_output(&mut self, _stream: u32, _out: &mut Output) -> OutputEnd {
        if self.is_tunnel() {
            OutputEnd::Connection
        } else {
            OutputEnd::None
        }
    }

    #[inline]
    fn want(&mut self, cx: &mut Context<'_>, stream: u32, bytes: u64, out: &mut Output) {
        self.want(cx, stream, bytes, out);
    }

    fn limit_body(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        bytes_max: u64,
        out: &mut Output,
    ) -> bool {
        self.limit_body(cx, stream, bytes_max, out)
    }

    /// They wait for earlier responses.
    fn held_back_bytes(&self, stream: u32) -> Option<u64> {
        self.parked_bytes_of(stream)
    }

    #[inline]
    fn write_capacity(&self, stream: u32, limits: &Limits, queued: usize) -> usize {
        if self.is_at_front(stream) {
            (limits.write_queue_bytes_max as usize).saturating_sub(queued)
        } else {
            0
        }
    }

    #[inline]
    fn may_write(&self, stream: u32, _limits: &Limits) -> bool {
        self.is_at_front(stream)
    }

    fn fault_response_bytes(&self) -> u64 {
        self.fault_response_bytes()
    }

    fn refused_head(&self, unread: &[u8]) -> Option<RefusedHead> {
        self.refused_head(unread)
    }
}

impl Protocol for citius_h2::Connection {
    fn receive<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>> {
        self.receive(&mut h2(cx), input, out)
    }

    fn receive_eof(&mut self, cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>> {
        self.receive_eof(&mut h2(cx), out)
    }

    fn expire(&mut self, cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>> {
        self.expire(&mut h2(cx), out)
    }

    fn deadline(&self, limits: &Limits) -> Option<Millis> {
        self.deadline(limits)
    }

    fn wants_input(&self, limits: &Limits) -> bool {
        self.wants_input(limits)
    }

    fn send(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        action: Action<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        self.send(&mut h2(cx), stream, action, out)
    }

    fn drain(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        self.drain(&mut h2(cx), out);
    }

    #[inline]
    fn closing(&self) -> Option<Closing> {
        self.closing()
    }

    fn fault(&self) -> Option<Fault> {
        self.fault()
    }

    #[inline]
    fn streams_open(&self) -> usize {
        self.streams_open()
    }

    #[inline]
    fn is_open(&self, stream: u32) -> bool {
        self.is_open(stream)
    }

    #[inline]
    fn has_events(&self) -> bool {
        self.has_events()
    }

    /// Streams are apart from each other anyway.
    fn hold(&mut self, stream: u32) -> bool {
        self.is_open(stream)
    }

    fn end_output(&mut self, stream: u32, out: &mut Output) -> OutputEnd {
        if self.end_output(stream, out) {
            OutputEnd::Frame
        } else {
            OutputEnd::None
        }
    }

    #[inline]
    fn want(&mut self, cx: &mut Context<'_>, stream: u32, bytes: u64, out: &mut Output) {
        self.want(&mut h2(cx), stream, bytes, out);
    }

    fn limit_body(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        bytes_max: u64,
        out: &mut Output,
    ) -> bool {
        self.limit_body(&mut h2(cx), stream, bytes_max, out)
    }

    /// They wait for a window.
    fn held_back_bytes(&self, stream: u32) -> Option<u64> {
        self.waiting_bytes_of(stream)
    }

    #[inline]
    fn write_capacity(&self, stream: u32, limits: &Limits, _queued: usize) -> usize {
        self.write_capacity(stream, limits)
    }

    #[inline]
    fn may_write(&self, stream: u32, limits: &Limits) -> bool {
        self.is_open(stream) && self.write_capacity(stream, limits) > 0
    }

    #[inline]
    fn wants_output(&self) -> bool {
        self.wants_output()
    }

    #[inline]
    fn pump(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        self.pump(&mut h2(cx), out);
    }

    fn fault_response_bytes(&self) -> u64 {
        self.fault_response_bytes()
    }

    #[inline]
    fn has_refused(&self) -> bool {
        self.has_refused()
    }

    fn take_refused(&mut self) -> Vec<RefusedHead> {
        self.take_refused()
    }
}

/// Streams are carried by `carrier.rs`; here are the questions that are asked of every protocol.
impl Protocol for citius_h3::Connection {
    /// No further connection takes the place of one of QUIC.
    const REFUSAL: Option<&'static [u8]> = None;

    /// Its events, which are not only those of requests, are told by `settle_quic`.
    fn receive<'i>(
        &mut self,
        _cx: &mut Context<'_>,
        _input: &mut &'i [u8],
        _out: &mut Output,
    ) -> Option<Event<'i>> {
        None
    }

    /// The end of QUIC connections is told by `lost`.
    fn receive_eof(&mut self, _cx: &mut Context<'_>, _out: &mut Output) -> Option<Event<'static>> {
        None
    }

    fn expire(&mut self, cx: &mut Context<'_>, _out: &mut Output) -> Option<Event<'static>> {
        self.expire(&mut h3(cx));
        None
    }

    fn deadline(&self, limits: &Limits) -> Option<Millis> {
        self.deadline(limits)
    }

    fn wants_input(&self, _limits: &Limits) -> bool {
        self.closing().is_none()
    }

    fn send(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        action: Action<'_>,
        _out: &mut Output,
    ) -> Result<(), Fault> {
        self.send(&mut h3(cx), stream, action)
    }

    fn drain(&mut self, cx: &mut Context<'_>, _out: &mut Output) {
        self.drain(&mut h3(cx));
    }

    fn closing(&self) -> Option<Closing> {
        self.closing()
    }

    fn fault(&self) -> Option<Fault> {
        self.fault()
    }

    fn streams_open(&self) -> usize {
        self.streams_open()
    }

    fn is_open(&self, stream: u32) -> bool {
        self.is_open(stream)
    }

    fn has_events(&self) -> bool {
        self.has_events()
    }

    fn hold(&mut self, stream: u32) -> bool {
        self.is_open(stream)
    }

    fn want(&mut self, cx: &mut Context<'_>, stream: u32, bytes: u64, _out: &mut Output) {
        self.want(&mut h3(cx), stream, bytes);
    }

    fn limit_body(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        bytes_max: u64,
        _out: &mut Output,
    ) -> bool {
        self.limit_body(&mut h3(cx), stream, bytes_max)
    }

    /// They wait for QUIC to take them.
    fn held_back_bytes(&self, stream: u32) -> Option<u64> {
        self.waiting_bytes_of(stream)
    }

    fn write_capacity(&self, stream: u32, limits: &Limits, _queued: usize) -> usize {
        self.write_capacity(stream, limits)
    }

    fn may_write(&self, stream: u32, limits: &Limits) -> bool {
        self.is_open(stream) && self.write_capacity(stream, limits) > 0
    }

    fn fault_response_bytes(&self) -> u64 {
        self.fault_response_bytes()
    }

    fn has_refused(&self) -> bool {
        self.has_refused()
    }

    fn take_refused(&mut self) -> Vec<RefusedHead> {
        self.take_refused()
    }
}

/// Calls come whole and results leave whole; messages have limits of their own; no call becomes a tunnel.
impl Protocol for citius_rpc::Connection {
    const ALPN_ALONE: Option<&'static [u8]> = Some(citius_rpc::PROTOCOL);
    const CLEAR_TEXT: &'static [u8] = RPC_CLEAR_TEXT;
    const REFUSAL: Option<&'static [u8]> = None;

    fn receive<'i>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>> {
        self.receive(rpc(cx), input, out)
    }

    fn receive_eof(&mut self, _cx: &mut Context<'_>, _out: &mut Output) -> Option<Event<'static>> {
        self.receive_eof();
        None
    }

    fn expire(&mut self, cx: &mut Context<'_>, out: &mut Output) -> Option<Event<'static>> {
        self.expire(rpc(cx), out)
    }

    fn deadline(&self, limits: &Limits) -> Option<Millis> {
        self.deadline(limits)
    }

    fn wants_input(&self, limits: &Limits) -> bool {
        self.wants_input(limits)
    }

    fn send(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        action: Action<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        self.send(rpc(cx), stream, action, out)
    }

    fn drain(&mut self, _cx: &mut Context<'_>, out: &mut Output) {
        self.drain(out);
    }

    #[inline]
    fn closing(&self) -> Option<Closing> {
        self.closing()
    }

    fn fault(&self) -> Option<Fault> {
        self.fault()
    }

    #[inline]
    fn streams_open(&self) -> usize {
        self.streams_open()
    }

    #[inline]
    fn is_open(&self, stream: u32) -> bool {
        self.is_open(stream)
    }

    fn set_due(&mut self, stream: u32, due_at: Millis) {
        self.set_due(stream, due_at);
    }

    /// Calls are answered and notifications run to their end, while a request's handler that still waits is cancelled.
    fn owes_responses(&self) -> bool {
        self.streams_open() > 0
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

/// The context without what only HTTP/1 keeps.
#[inline]
pub(crate) fn h3<'a>(cx: &'a mut Context<'_>) -> citius_h3::Context<'a> {
    citius_h3::Context {
        now: cx.now,
        limits: cx.limits,
        heads: cx.heads,
        server: cx.server,
        date: cx.date,
        default_fields: cx.default_fields,
    }
}

/// The context without what only HTTP/1 keeps.
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
        assert_eq!(stream.is_some(), matches!(wire, H2(_)));
        assert_eq!(wire.streams_open(), 1);
        let bytes = out.pieces().flatten().copied().collect();
        (matches!(wire, H2(_)), bytes, *head)
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
