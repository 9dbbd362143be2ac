//! The words between a protocol and an application: [`Event`] inwards, [`Action`] outwards.

use alloc::boxed::Box;

use bytes::Bytes;

use crate::{Fault, Fields, FileRange, Head, ProcedureCall, Status};

/// What a connection has understood. `stream` numbers the requests of one connection, upwards: HTTP/1
/// counts from 0, HTTP/2 has numbers of its own.
///
/// For each stream: one `Request`; then, unless `ended`, any number of `Data` or `Buffered` and one `End`; or, in
/// place of what is missing, one `Broken` or `BodyRefused`. In HTTP/2 a `Broken` may follow all of that: the client
/// does not wait for the response any more.
#[derive(Debug)]
pub enum Event<'a> {
    /// A request head is complete.
    Request {
        /// The request's number on this connection.
        stream: u32,
        /// What was asked.
        head: Box<Head>,
        /// There is no body: neither `Data` nor `End` follows.
        ended: bool,
    },
    /// A procedure is called; neither `Data` nor `End` follows. Instead of a `Request`, where procedures are
    /// called and nothing else.
    Call {
        /// The call's number on this connection.
        stream: u32,
        /// What is called, and with what.
        call: ProcedureCall<'a>,
    },
    /// A piece of the request body, without transfer coding.
    Data {
        /// The request's number on this connection.
        stream: u32,
        /// The piece; never empty.
        bytes: &'a [u8],
    },
    /// A piece of the request body that came before the application wanted it; like `Data` otherwise.
    Buffered {
        /// The request's number on this connection.
        stream: u32,
        /// The piece; never empty.
        bytes: Bytes,
    },
    /// The request body is complete.
    End {
        /// The request's number on this connection.
        stream: u32,
        /// The trailer section; mostly empty.
        trailers: Fields,
    },
    /// No more of the request body is read, and the response, which has begun, goes on: its client loses nothing of it.
    BodyRefused {
        /// The request's number on this connection.
        stream: u32,
        /// The rule that was broken.
        fault: Fault,
    },
    /// The request body will never be complete. The connection answers by itself if it still can,
    /// and closes; later actions for `stream` are ignored.
    Broken {
        /// The request's number on this connection.
        stream: u32,
        /// The rule that was broken.
        fault: Fault,
    },
}

/// The start of a response.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The status.
    pub status: Status,
    /// The media type, unless it is among `fields`.
    pub content_type: Option<&'a [u8]>,
    /// The other fields.
    pub fields: &'a Fields,
}

/// The media type of texts that the server itself says.
pub const TEXT: &[u8] = b"text/plain; charset=utf-8";

static NO_FIELDS: Fields = Fields::EMPTY;

impl ResponseHead<'_> {
    /// That of a text of the server's own, such as what is wrong with a request.
    #[inline]
    pub const fn text(status: Status) -> Self {
        Self {
            status,
            content_type: Some(TEXT),
            fields: &NO_FIELDS,
        }
    }

    /// Those fields of every response that go with this one: what it says itself is not said twice, but a field
    /// whose lines add up has both.
    pub fn missing_defaults<'f>(
        &self,
        all: &'f Fields,
    ) -> impl Iterator<Item = (&'f [u8], &'f [u8])> {
        all.iter().filter(|(name, _)| match *name {
            b"set-cookie" | b"vary" | b"link" => true,
            b"content-type" if self.content_type.is_some() => false,
            name => !self.fields.iter().any(|(said, _)| said == name),
        })
    }
}

/// The response of most handlers, whole: a 200 of a media type and with fields that the server's own responses have.
///
/// Means the same as [`Action::Respond`] with this [`action`](Self::action), and need not be looked at as that must.
#[derive(Clone, Copy, Debug)]
pub struct PlainResponse<'a> {
    /// What is said of the body: the very same each time, so that it is known again by its address.
    pub metadata: &'static Metadata,
    /// The body, which is copied.
    pub body: &'a [u8],
}

impl<'a> PlainResponse<'a> {
    /// The general action that it stands for.
    pub fn action(self) -> Action<'a> {
        let response = ResponseHead {
            status: Status::OK,
            content_type: Some(self.metadata.media_type),
            fields: &self.metadata.fields,
        };
        Action::Respond(response, Payload::Copied(self.body))
    }
}

/// What plain responses of one kind say of their bodies (RFC 9110 §3.2).
#[derive(Debug)]
pub struct Metadata {
    /// The media type, a valid one.
    pub media_type: &'static [u8],
    /// The other fields: lines, and nothing of what frames a response.
    pub fields: Fields,
}

/// Body bytes on their way out.
#[derive(Clone, Debug)]
pub enum Payload<'a> {
    /// Copied into the write queue: best below a few kilobytes.
    Copied(&'a [u8]),
    /// Kept alive until written.
    Shared(Bytes),
    /// Fetched as the socket takes them; best from a few pages on.
    File(FileRange),
}

impl Payload<'_> {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Copied(bytes) => bytes.len() as u64,
            Self::Shared(bytes) => bytes.len() as u64,
            Self::File(range) => range.len(),
        }
    }

    /// A payload that owns its bytes.
    pub fn into_owned(self) -> Payload<'static> {
        match self {
            Self::Copied(bytes) => Payload::Shared(Bytes::copy_from_slice(bytes)),
            Self::Shared(bytes) => Payload::Shared(bytes),
            Self::File(range) => Payload::File(range),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a connection is to be closed once its output is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Close.
    Clean,
    /// The peer may still be sending: shut down the sending side and drop input for a while, so that
    /// a reset does not overtake the last response (RFC 9112 §9.6).
    Linger,
    /// Close without ceremony (reset), so that the peer can tell that something is missing.
    Abort,
}

/// What an application wants to happen to one of its requests.
///
/// In order, for each stream: any number of `Inform`; then either one `Respond`, or one `Start` or `Switch`,
/// any number of `Data` and one `End`. `Abort` at any moment.
#[derive(Debug)]
pub enum Action<'a> {
    /// An informational response (1xx); the final one is still to come.
    Inform(ResponseHead<'a>),
    /// The whole response at once.
    Respond(ResponseHead<'a>, Payload<'a>),
    /// The head of a response whose body follows; its length is `fields.content_length` or unknown.
    Start(ResponseHead<'a>),
    /// A piece of the body. An empty one does nothing.
    Data(Payload<'a>),
    /// The body is complete.
    End {
        /// The trailer section; sent only where the framing can carry one.
        trailers: &'a Fields,
    },
    /// The request is granted another protocol: its connection (HTTP/1.1, by a 101) or its stream (HTTP/2, by a
    /// 200) becomes a tunnel. From here on `Data` is raw bytes, in both directions and as often as either side
    /// likes, until `End` ends both; our side may end before, where a protocol has a way to say so. Ask the protocol to hold the connection before ([`ResponseOrder`]
    /// otherwise), so that nothing behind the request is taken for another one.
    ///
    /// [`ResponseOrder`]: crate::Fault::ResponseOrder
    Switch {
        /// What is spoken from now on.
        protocol: &'a [u8],
        /// The fields of the response.
        fields: &'a Fields,
    },
    /// The response can't be completed: the connection (HTTP/1.1) or the stream (HTTP/2) is cut off so
    /// that the client can tell.
    Abort,
}
