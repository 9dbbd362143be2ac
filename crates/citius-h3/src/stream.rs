//! The sending side of any stream ([`Sender`]), requests with their responses ([`Stream`]), and the table of those that are
//! open ([`Streams`]).

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::Bytes;
use citius_http::multiplexed::{Priority, State};
use citius_http::{Fault, Fields, Head, Millis, Output, Payload, Status};

use crate::frame::Partial;

/// Whether the end of a stream is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fin {
    #[default]
    No,
    /// Behind what is queued.
    Due,
    Sent,
}

/// What is queued on one stream.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    pub(crate) output: Output,
    pub(crate) fin: Fin,
    /// QUIC takes nothing until it says so.
    pub(crate) is_blocked: bool,
    /// When the span began over which that is judged, and what was taken in it.
    pub(crate) waiting_at: Millis,
    pub(crate) moved_bytes: u64,
}

impl Sender {
    /// Whether something is to be sent.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        !self.output.is_empty() || self.fin == Fin::Due
    }
}

/// A stream of which something is to be sent, and what orders them: the control streams come first, then the most urgent;
/// among equals those that don't share, in their order, and then those that share, in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    pub(crate) urgency: u8,
    pub(crate) shares: bool,
    pub(crate) served: u32,
    pub(crate) stream: u64,
}

/// The state of `expect: 100-continue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expecting {
    Nothing,
    /// The client waits for 100, and the application has not asked for the body.
    Unasked,
}

/// What the next byte of a request is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A frame's type and length.
    Frame,
    /// A field section, of which so many bytes are to come.
    Section(usize),
    /// A section that is whole, and could not be read because it refers to what has not come, or is not tried yet.
    WholeSection,
    /// Content, of which the frame has so many bytes left.
    Data(u64),
    /// A frame that means nothing here.
    Skip(u64),
    /// Nothing: no further byte is looked at.
    Over,
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its head has not come.
    Head,
    /// Its head was told, and content may come.
    Content,
    /// Its trailers have come.
    Trailers,
    /// Its head was refused: the application knows nothing of it.
    Refused,
}

/// One open request.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts; the states that exclude each other are enums"
)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) phase: Phase,
    pub(crate) reading: Reading,
    pub(crate) partial: Partial,
    /// The start of a section, or a whole one that waits.
    pub(crate) section: Vec<u8>,
    /// Input that waits for the application, or for the dynamic table.
    pub(crate) unread: Bytes,
    /// The client has finished its side, behind `unread`.
    pub(crate) has_ended: bool,
    pub(crate) trailers: Option<Box<Fields>>,
    pub(crate) state: State,
    pub(crate) expecting: Expecting,
    /// The response has no content: the method is HEAD.
    pub(crate) head_only: bool,
    /// Its request asks for another protocol (RFC 9220), which only [`Action::Switch`](citius_http::Action::Switch) may
    /// grant.
    pub(crate) asks_protocol: bool,
    pub(crate) priority: Priority,
    /// Turn in which it last sent, for those that share.
    pub(crate) served: u32,
    /// Content bytes the application still wants.
    pub(crate) credit: u64,
    /// Content bytes whose frames have come, and those that must.
    pub(crate) received: u64,
    pub(crate) expected: Option<u64>,
    /// The client has ended the body before its length, behind the beginning of a response.
    pub(crate) stops_short: bool,
    /// Content bytes that may come.
    pub(crate) body_bytes_max: u64,
    /// It carries another protocol (RFC 9220), which has its own idea of how long, and how slow, is too much.
    pub(crate) is_tunnel: bool,
    /// Its request asks for a WebTransport session.
    pub(crate) asks_session: bool,
    /// A frame has begun on it.
    pub(crate) has_begun: bool,
    /// When the stream began; later, when the span began over which the body's rate is judged, and what came in it.
    pub(crate) body_at: Millis,
    pub(crate) body_bytes: u64,
    pub(crate) sender: Sender,
}

impl Stream {
    pub(crate) fn new(id: u32, now: Millis) -> Self {
        Self {
            id,
            phase: Phase::Head,
            reading: Reading::Frame,
            partial: Partial::default(),
            section: Vec::new(),
            unread: Bytes::new(),
            has_ended: false,
            trailers: None,
            state: State::new(false),
            expecting: Expecting::Nothing,
            head_only: false,
            asks_protocol: false,
            priority: Priority::default(),
            served: 0,
            credit: 0,
            received: 0,
            expected: None,
            body_bytes_max: u64::MAX,
            stops_short: false,
            is_tunnel: false,
            asks_session: false,
            has_begun: false,
            body_at: now,
            body_bytes: 0,
            sender: Sender::default(),
        }
    }

    /// The QUIC stream.
    #[inline]
    pub(crate) const fn quic(&self) -> u64 {
        quic(self.id)
    }

    /// Whether the application waits for the client before it responds. Beside a response that streams, the client may be
    /// quiet: both directions are in use.
    pub(crate) fn awaits_body(&self) -> bool {
        self.phase == Phase::Content
            && self.credit > 0
            && (self.state.awaits_headers() || self.stops_short)
            && !self.state.is_remote_closed()
            && !self.is_tunnel
            && self.expecting == Expecting::Nothing
    }

    /// Whether its content is capsules of a session that was granted.
    #[inline]
    pub(crate) fn takes_capsules(&self) -> bool {
        self.asks_session && self.is_tunnel
    }

    /// Whether no content follows the head of a response with `status`.
    #[inline]
    pub(crate) fn without_content(&self, status: Status) -> bool {
        self.head_only || status.refuses_content()
    }

    /// Whether the application knows of the request.
    #[inline]
    pub(crate) fn was_told(&self) -> bool {
        matches!(self.phase, Phase::Content | Phase::Trailers)
    }

    /// Whether the application may still send something.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.was_told() && !self.state.is_response_complete()
    }

    /// Appends bytes to be sent.
    #[inline]
    pub(crate) fn push(&mut self, payload: Payload<'_>) {
        self.sender.output.push(payload);
    }
}

/// The QUIC stream of a request: every fourth one is the client's and bidirectional (RFC 9000 §2.1).
#[inline]
pub(crate) const fn quic(id: u32) -> u64 {
    (id as u64) << 2
}

/// The number of the request on a QUIC stream; `None`: none can be on it.
#[inline]
pub(crate) fn request_number(stream: u64) -> Option<u32> {
    if stream.is_multiple_of(4) {
        u32::try_from(stream >> 2).ok()
    } else {
        None
    }
}

/// A stream that is over, and what its fault got in response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    pub(crate) stream: u32,
    pub(crate) fault: Fault,
    /// Its response goes on.
    pub(crate) is_answered: bool,
    /// Bytes of content.
    pub(crate) response_bytes: u64,
}

/// The open requests in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: Vec<Stream>,
}

impl Streams {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Requests the application may still say something about.
    pub(crate) fn n_open(&self) -> usize {
        self.open.iter().filter(|stream| stream.is_open()).count()
    }

    /// Adds a stream, mostly the one with the highest number.
    #[inline]
    pub(crate) fn insert(&mut self, stream: Stream) -> usize {
        let index = match self.open.last() {
            Some(last) if last.id > stream.id => {
                self.open.partition_point(|other| other.id < stream.id)
            }
            _ => self.open.len(),
        };
        self.open.insert(index, stream);
        index
    }

    /// Where the stream `id` is. Mostly it is the newest.
    #[inline]
    pub(crate) fn index_of(&self, id: u32) -> Option<usize> {
        match self.open.last() {
            Some(last) if last.id == id => self.open.len().checked_sub(1),
            _ => self.open.binary_search_by_key(&id, |stream| stream.id).ok(),
        }
    }

    #[inline]
    pub(crate) fn at(&self, index: usize) -> Option<&Stream> {
        self.open.get(index)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: usize) -> Option<&mut Stream> {
        self.open.get_mut(index)
    }

    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<&Stream> {
        self.at(self.index_of(id)?)
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let index = self.index_of(id)?;
        self.at_mut(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.open.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: u32) -> Option<Stream> {
        let index = self.index_of(id)?;
        if index.saturating_add(1) == self.open.len() {
            return self.open.pop();
        }
        Some(self.open.remove(index))
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

/// What is known of a connection that is one session without HTTP/3.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    /// Its request, until that is told.
    pub(crate) head: Option<Box<Head>>,
    /// The stream that was rejected last: what else has come of it is not looked at.
    pub(crate) rejected: Option<u64>,
}
