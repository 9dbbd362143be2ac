//! Wires: how requests become bytes and bytes become answers on one connection. Sans-IO.
//!
//! The engine owns sockets, instants and the books; a wire owns the protocol. They talk in
//! [`Ticket`]s: the engine hands one out per request, the wire says which ticket an answer belongs
//! to, in whatever order answers come. TLS is a stage between socket and wire (`tls.rs`): bytes in,
//! bytes out.
//!
//! Invariant: whatever the cuts between the `input`s given to [`Wire::receive`], the calls made on
//! [`Answers`] are the same, up to the cuts of `body`.

pub(crate) mod h1;
pub(crate) mod h2;
pub(crate) mod h3;
pub(crate) mod rpc;
pub(crate) mod websocket;
pub(crate) mod webtransport;

use crate::request::Request;

/// A request under way on one connection; unique among those, and reused after its answer.
pub(crate) type Ticket = u16;

/// One protocol, client side. One value per connection.
pub(crate) trait Wire {
    /// What the connections of one thread share: caches, never connection state.
    type Shared: Default;
    /// A request, ready to be sent.
    type Prepared;
    /// Whether the peer is owed bytes besides requests, see [`Wire::reply`].
    const REPLIES: bool;

    fn new(setup: Setup) -> Self;

    /// All requests of a run, made once before it.
    fn prepare(requests: &[&Request], setup: Setup) -> Vec<Self::Prepared>;

    /// Appends what comes before the first request.
    fn open(&mut self, prepared: &[Self::Prepared], output: &mut Vec<u8>);

    /// Whether the protocol allows another request now. Asked before every [`Wire::send`] but that
    /// of the request a connection is opened for.
    fn has_room(&self) -> bool;

    /// Notes that `ticket`, which was due at `due_ns`, is asked now and appends what is `prepared`
    /// to `output`.
    fn send(
        &mut self,
        ticket: Ticket,
        due_ns: u64,
        prepared: &Self::Prepared,
        output: &mut Vec<u8>,
    );

    /// Appends what reading has made necessary; called after it.
    fn reply(&mut self, output: &mut Vec<u8>);

    /// Reads all of `input`.
    /// # Errors  The fault that makes the rest of the connection unreadable.
    fn receive<A: Answers>(
        &mut self,
        shared: &mut Self::Shared,
        input: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault>;

    /// The peer sends no more. Completes the answer whose end that was, if there is one.
    fn end<A: Answers>(&mut self, answers: &mut A);

    /// Whether the answer to `ticket` has begun; it is not complete. After a fault, whether it is
    /// to blame.
    fn has_begun(&self, ticket: Ticket) -> bool;

    /// Whether the peer announced that it answers nothing more on this connection.
    fn is_over(&self) -> bool;

    /// Body bytes that certainly come next and that the wire need not see; 0 if it must.
    fn skippable(&self) -> u64;

    /// Notes that `n_bytes` of those were dropped by the caller.
    fn skip<A: Answers>(&mut self, n_bytes: u64, answers: &mut A);
}

/// What requests are prepared for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) keep_alive: bool,
    pub(crate) is_secure: bool,
    /// Whether every message is sent to all connections; WebSocket only.
    pub(crate) is_broadcast: bool,
}

/// What a wire tells the engine while it reads, in this order per ticket.
pub(crate) trait Answers {
    /// Whether the request of `ticket` was a HEAD, whose answer has no body whatever it declares.
    fn is_head(&self, ticket: Ticket) -> bool;
    /// A final head. `closing`: no other answer follows on this connection.
    fn begin(&mut self, ticket: Ticket, status: u16, closing: bool);
    fn body(&mut self, ticket: Ticket, bytes: &[u8]);
    /// Body bytes that were dropped unseen.
    fn unseen(&mut self, ticket: Ticket, n_bytes: u64);
    fn complete(&mut self, ticket: Ticket);
    /// There will be no complete answer, though the connection goes on.
    fn fail(&mut self, ticket: Ticket, failure: Failure);
    /// A message came that was due at `due_ns`, from any sender; `None` if it has no time.
    fn deliver(&mut self, due_ns: Option<u64>, n_bytes: u64);
    /// The request has done what it was for; its deliveries are what counts.
    fn release(&mut self, ticket: Ticket);
}

/// What ended a single request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The peer took it back.
    Reset,
    /// The answer broke a rule.
    Protocol,
}

/// The broken rule that ended the reading of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Bytes that answer no request.
    Unasked,
    /// The first bytes are not those of an HTTP/1.x answer.
    StatusLine,
    /// A field line that RFC 9112 §5 does not allow.
    FieldLine,
    /// A line of the head that ends without a carriage return.
    BareLineFeed,
    /// A head longer than `HEAD_BYTES_MAX`.
    HeadTooLong,
    /// A content length that is no number, two that differ, or one beside a transfer coding.
    BodyLength,
    /// A transfer coding other than chunked.
    TransferCoding,
    /// A chunk size, chunk end or trailer that RFC 9112 §7.1 does not allow.
    Chunk,
    /// 101 to a request that asked for no other protocol.
    Upgrade,
    /// An HTTP/2 connection that does not begin with settings: the peer speaks something else.
    Preface,
    /// A frame of a size, a kind or a place that RFC 9113 does not allow.
    Frame,
    /// A frame for a stream that was not opened.
    Stream,
    /// A window beyond all bounds (RFC 9113 §6.9.1).
    FlowControl,
    /// A field block that RFC 7541 cannot decode.
    Hpack,
    /// Bytes that are no message of MessagePack-RPC.
    Call,
    /// No session of WebTransport: settings without it, or a response that refuses.
    Session,
    /// A datagram that answers none.
    Datagram,
}
