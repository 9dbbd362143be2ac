//! What a poller reports: what a connection is ready for, and the numbers of what is no connection.

use crate::id::ConnectionId;

bitflags::bitflags! {
    /// What a connection waits for, and what has come. The numbers are those of epoll, which takes them as they are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Readiness: u32 {
        /// Bytes to read, or the peer's end.
        const IN = 0x1;
        /// Room to write.
        const OUT = 0x4;
        /// The connection is broken.
        const ERR = 0x8;
        /// Both directions have ended.
        const HUP = 0x10;
        /// The peer sends no more.
        const RDHUP = 0x2000;
        /// Report a change once.
        const ET = 1 << 31;
    }
}

/// A connection that is ready, and for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) id: ConnectionId,
    pub(crate) flags: Readiness,
}

/// Indexes of what is no connection.
pub(crate) const INDEX_WAKEUP: u32 = u32::MAX;
pub(crate) const INDEX_TIMER: u32 = u32::MAX - 1;
pub(crate) const INDEX_LISTENER: u32 = u32::MAX - 2;
pub(crate) const INDEX_UPSTREAM: u32 = u32::MAX - 3;
pub(crate) const INDEX_SERVICE: u32 = u32::MAX - 4;
pub(crate) const INDEX_OFFERS: u32 = u32::MAX - 5;
pub(crate) const INDEX_QUIC: u32 = u32::MAX - 6;

/// Readiness taken in one call of [`Poller::wait`].
pub(crate) const EVENTS_PER_TURN: usize = 256;

/// What has changed of a connection to another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingReady {
    /// The number that it was added with.
    pub number: u64,
    /// There may be bytes to read, an end, or an error.
    pub is_readable: bool,
    /// There may be room to write, or an error.
    pub is_writable: bool,
}
