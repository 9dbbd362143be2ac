//! Wires: how requests become bytes and bytes become answers on one connection. Sans-IO.
//!
//! The engine owns sockets, instants and the books; a wire owns the protocol. They talk in
//! [`Ticket`]s: the engine hands one out per request, the wire says which ticket an answer belongs
//! to, so a wire whose answers come out of order (HTTP/2) needs no change to the engine, only a
//! map from stream to ticket. TLS is a stage between socket and wire: bytes in, bytes out.
//!
//! Invariant: whatever the cuts between the `input`s given to [`Wire::receive`], the calls made on
//! [`Answers`] are the same, up to the cuts of `body`.

pub(crate) mod h1;

use crate::request::Request;

/// A request under way on one connection; unique among those, and reused after its answer.
pub(crate) type Ticket = u16;

/// One protocol, client side. One value per connection.
pub(crate) trait Wire {
    /// What the connections of one thread share: caches, never connection state.
    type Shared: Default;

    fn new() -> Self;

    /// The bytes of a request, made once before the run.
    fn prepare(request: &Request, keep_alive: bool) -> Vec<u8>;

    /// Notes that `ticket` is asked now and appends its `prepared` bytes to `output`.
    fn send(&mut self, ticket: Ticket, prepared: &[u8], output: &mut Vec<u8>);

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

    /// The ticket whose answer has begun and is not complete; after a fault, the one to blame.
    fn begun(&self) -> Option<Ticket>;

    /// Whether the peer announced that it answers nothing more on this connection.
    fn is_over(&self) -> bool;

    /// Body bytes that certainly come next and that the wire need not see; 0 if it must.
    fn skippable(&self) -> u64;

    /// Notes that `n_bytes` of those were dropped by the caller.
    fn skip<A: Answers>(&mut self, n_bytes: u64, answers: &mut A);
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
}
