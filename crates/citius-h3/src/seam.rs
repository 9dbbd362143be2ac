//! What passes between a [`Connection`](crate::Connection), the QUIC connection below it and the application above it.

use alloc::vec::Vec;

use bytes::Bytes;
use citius_http::{Event, Fields, HeadPool, Limits, Millis, Output};

/// What a call may look at besides its input.
#[derive(Debug)]
pub struct Context<'a> {
    /// The turn's clock.
    pub now: Millis,
    /// The limits in force.
    pub limits: &'a Limits,
    /// Where heads come from.
    pub heads: &'a mut HeadPool,
    /// `server: …\r\n`, or empty.
    pub server: &'a [u8],
    /// `date: …\r\n`, or empty; rendered once a second by the reactor.
    pub date: &'a [u8],
    /// Fields of every response that does not say the same itself.
    pub default_fields: &'a Fields,
}

/// What a server offers beyond requests and responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Extended CONNECT (RFC 9220): such a request is a `Head` of the method CONNECT with a field `:protocol`.
    pub extended_connect: bool,
    /// WebTransport, its streams, and datagrams (RFC 9297). QUIC must allow DATAGRAM frames.
    pub webtransport: bool,
}

/// What a stream that the server opens is for. The transport gives it back with the number of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// The control stream.
    Control,
    /// The stream of the QPACK decoder.
    Decoder,
    /// A stream of a WebTransport session, by a number that the connection has given it.
    Session(u32),
}

/// What the QUIC connection is to do. Errors of streams that are over by then are to be ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Open a unidirectional stream, as soon as the client allows it, and call [`Connection::opened`](crate::Connection::opened).
    OpenUni(Token),
    /// Open a bidirectional stream likewise.
    OpenBi(Token),
    /// Open none of these streams of sessions any more that could not be opened so far; their numbers in order.
    Forget(Vec<u32>),
    /// Ask the client to send no more on `stream` (`STOP_SENDING`); nothing more is read of it.
    StopSending {
        /// The QUIC stream.
        stream: u64,
        /// The application error code.
        code: u64,
    },
    /// Reset the sending side of `stream`; what is queued for it is dropped.
    Reset {
        /// The QUIC stream.
        stream: u64,
        /// The application error code.
        code: u64,
    },
    /// Send a DATAGRAM frame, or drop it if there is no room.
    Datagram(Bytes),
    /// Close the connection (`CONNECTION_CLOSE` with an application error code): now if [`Connection::closing`](crate::Connection::closing)
    /// says `Abort`, otherwise when the client has acknowledged what was sent, or after `linger_ms`. The last one.
    Close {
        /// The application error code.
        code: u64,
        /// The reason phrase.
        reason: &'static str,
    },
}

/// What was understood.
#[derive(Debug)]
pub enum Incoming<'i> {
    /// Something of a request. Its `stream` is the QUIC stream's number divided by four:
    /// [`Connection::quic_stream`](crate::Connection::quic_stream) multiplies it.
    Http(Event<'i>),
    /// Something of a WebTransport session.
    Session(SessionEvent<'i>),
}

/// Something of a WebTransport session. `session` is the number of its request, as [`Event`] has it; `stream` a QUIC stream.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionEvent<'i> {
    /// The client has opened a stream of the session.
    Opened {
        /// The session.
        session: u32,
        /// The stream.
        stream: u64,
    },
    /// Bytes of a stream; never empty.
    Data {
        /// The session.
        session: u32,
        /// The stream.
        stream: u64,
        /// The bytes.
        bytes: &'i [u8],
    },
    /// Bytes of a stream that came before the application wanted them.
    Buffered {
        /// The session.
        session: u32,
        /// The stream.
        stream: u64,
        /// The bytes; never empty.
        bytes: Bytes,
    },
    /// The client has finished its side of a stream.
    End {
        /// The session.
        session: u32,
        /// The stream.
        stream: u64,
    },
    /// The client has reset its side of a stream, with the application's code.
    Reset {
        /// The session.
        session: u32,
        /// The stream.
        stream: u64,
        /// The code; `None`: it is no code of an application.
        code: Option<u32>,
    },
    /// The client reads no more of a stream, which is reset.
    Stopped {
        /// The session.
        session: u32,
        /// The stream.
        stream: u64,
        /// The code; `None`: it is no code of an application.
        code: Option<u32>,
    },
    /// A stream that the application has opened has its number.
    Ready {
        /// The session.
        session: u32,
        /// The number that [`Connection::open_session_stream`](crate::Connection::open_session_stream) was given.
        number: u32,
        /// The stream.
        stream: u64,
    },
    /// As many streams are open as may be: the stream of this number is not opened.
    NotOpened {
        /// The session.
        session: u32,
        /// The number that [`Connection::open_session_stream`](crate::Connection::open_session_stream) was given.
        number: u32,
    },
    /// All bytes of a stream are taken, as [`Connection::await_session_room`](crate::Connection::await_session_room) has
    /// asked to be told.
    Writable {
        /// The session.
        session: u32,
        /// The stream.
        stream: u64,
    },
    /// A datagram.
    Datagram {
        /// The session.
        session: u32,
        /// Its payload.
        bytes: &'i [u8],
    },
    /// A datagram that came before its session was granted.
    EarlyDatagram {
        /// The session.
        session: u32,
        /// Its payload.
        bytes: Bytes,
    },
    /// The client asks for the session to come to an end (`DRAIN_WEBTRANSPORT_SESSION`).
    Draining {
        /// The session.
        session: u32,
    },
    /// The server takes leave ([`Connection::drain`](crate::Connection::drain)), and has asked the client for the same.
    Leaving {
        /// The session.
        session: u32,
    },
    /// The client has closed the session; the streams that belong to it are over.
    Closed {
        /// The session.
        session: u32,
        /// The application's code.
        code: u32,
        /// The application's words.
        reason: Bytes,
    },
}

impl SessionEvent<'_> {
    /// The session that it is of.
    pub const fn session(&self) -> u32 {
        match *self {
            Self::Opened { session, .. }
            | Self::Data { session, .. }
            | Self::Buffered { session, .. }
            | Self::End { session, .. }
            | Self::Reset { session, .. }
            | Self::Stopped { session, .. }
            | Self::Ready { session, .. }
            | Self::NotOpened { session, .. }
            | Self::Writable { session, .. }
            | Self::Datagram { session, .. }
            | Self::EarlyDatagram { session, .. }
            | Self::Draining { session }
            | Self::Leaving { session }
            | Self::Closed { session, .. } => session,
        }
    }
}

/// What is to be sent on a stream next.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The bytes; `Output::file` first if it says so.
    pub output: &'a Output,
    /// Whether the stream ends behind them.
    pub fin: bool,
}

/// How much of an [`Outgoing`] the QUIC connection has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It may take more.
    Some(usize),
    /// It takes no more of this stream until [`Connection::writable`](crate::Connection::writable) is called for it.
    Blocked(usize),
    /// Everything, and the end of the stream if it was due.
    All,
}
