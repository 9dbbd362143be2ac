//! ⑥ write: the write queue of a connection to its socket, and what follows from an empty queue.
//!
//! An empty queue lets streams go on, held requests be parsed, or the connection close. The number of rounds in one turn is
//! bounded. Tests: `tests/turn.rs`, `tests/files.rs`.

use citius_h1::Closing;
use citius_observe::Counter;

use crate::conn::{Conn, Phase, Verdict};
use crate::file::File;
use crate::reactor::Reactor;
use crate::service::Service;
use crate::system::Errno;

/// How often one connection may fill and empty its write queue in one turn.
const ROUNDS_PER_TURN: usize = 4;
/// Bytes of a write queue that are kept for the next connection; larger ones go back to the allocator.
const SPARE_OUTPUT_BYTES_MAX: usize = 1024 * 1024;

impl Reactor {
    /// ⑥ write, and whatever that makes possible: closing, more of a stream, held requests.
    pub(crate) fn flush<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        if conn.is_quic() {
            return self.settle_quic(conn, service);
        }
        let mut rounds = 0;
        let verdict = loop {
            match conn.flush(self.tools.clock.now, &mut self.scratch) {
                Err(error) => break Self::write_failed(conn, error, service),
                Ok(false) => {
                    // Handlers that still run have no client once the last request has been taken.
                    self.is_done_with(conn, service);
                    break Verdict::Keep;
                }
                Ok(true) => {}
            }
            if conn.phase == Phase::Flushing {
                break Verdict::Close;
            }
            if let Some(closing) = conn.wire.closing() {
                self.tell_refused(conn, service);
                break self.begin_close(conn, closing);
            }
            if !self.has_more(conn) {
                // Some have had their response without waiting for room.
                if !conn.rooms.is_empty() {
                    conn.rooms.retain(|stream| conn.wire.is_open(*stream));
                }
                if self.is_done_with(conn, service) {
                    break Verdict::Close;
                }
                break Verdict::Keep;
            }
            if rounds == ROUNDS_PER_TURN || rounds > 0 && self.is_over_time() {
                self.come_again(conn);
                break Verdict::Keep;
            }
            rounds += 1;
            let mut context = self.tools.context();
            conn.wire.pump(&mut context, &mut conn.output);
            self.offer_room(conn, service);
            if conn.is_held_back && !conn.input.is_empty() || conn.wire.has_events() {
                self.parse_held(conn, service);
            }
        };
        self.take_back_output(conn);
        self.watch.count(Counter::BytesSent, conn.take_written());
        if !conn.leaving.is_empty() {
            self.watch.end_sent(conn);
        }
        if conn.wire.has_refused() {
            self.tell_refused(conn, service);
        }
        verdict
    }

    /// Tells of requests that the protocol has refused before they were complete.
    pub(crate) fn tell_refused<S: Service>(&mut self, conn: &mut Conn, service: &mut S) {
        if !conn.wire.has_refused() && (conn.fault_told || conn.wire.fault().is_none()) {
            return;
        }
        // In the order in which the client has asked.
        self.watch.end_sent(conn);
        for refused in self.watch.take_refused(conn) {
            service.head_refused(conn.peer, &refused);
        }
    }

    /// The socket takes nothing more, or the file that comes next gives nothing more.
    #[cold]
    pub(crate) fn write_failed<S: Service>(
        conn: &mut Conn,
        error: Errno,
        service: &mut S,
    ) -> Verdict {
        if let Some(range) = conn.output.file() {
            let name = range.handle().map_or("a file", File::label);
            let left = range.len();
            match error {
                Errno::NODATA => service.file_failed(
                    conn.id,
                    &format!("{name} has become shorter while it was sent: {left} bytes missing"),
                ),
                Errno::IO | Errno::STALE | Errno::BADF => {
                    service.file_failed(conn.id, &format!("{name} cannot be read on: {error}"));
                }
                // The peer is gone.
                _ => {}
            }
            // What was promised will never come, and the client must be able to tell.
            conn.reset_on_close();
            conn.is_cut = matches!(
                error,
                Errno::NODATA | Errno::IO | Errno::STALE | Errno::BADF
            );
        }
        Verdict::Close
    }

    /// Leaves the rest of a connection's work to the next turn.
    pub(crate) fn come_again(&mut self, conn: &mut Conn) {
        if !std::mem::replace(&mut conn.comes_again, true) {
            self.again.push(conn.id);
        }
    }

    /// Whether a connection whose queue is empty could go on without its socket.
    #[expect(
        clippy::inline_always,
        reason = "each turn of a connection asks: the call costs 25 instructions"
    )]
    #[inline(always)]
    pub(crate) fn has_more(&self, conn: &Conn) -> bool {
        let has_waiting = !conn.rooms.is_empty() || !conn.codings.is_empty();
        has_waiting && self.has_room(conn)
            || conn.could_go_on(&self.tools.limits)
            || conn.wire.has_events()
            || conn.wire.wants_output()
    }

    /// Whether a response that waits for room in the queue may be written.
    #[inline(never)]
    fn has_room(&self, conn: &Conn) -> bool {
        let limits = &self.tools.limits;
        let mut rooms = conn.rooms.iter();
        rooms.any(|&stream| conn.wire.may_write(stream, limits)) || self.unfinished(conn).is_some()
    }

    /// The response that the compressor could go on with.
    #[inline]
    pub(crate) fn unfinished(&self, conn: &Conn) -> Option<u32> {
        let mut streams = conn.codings.unfinished();
        streams.find(|&stream| conn.wire.may_write(stream, &self.tools.limits))
    }

    /// Tells those who wait for room, as far as it is their turn to write.
    pub(crate) fn offer_room<S: Service>(&mut self, conn: &mut Conn, service: &mut S) {
        if let Some(stream) = self.unfinished(conn) {
            let mut reply = self.reply(conn, stream);
            let id = reply.id();
            if let Err(fault) = reply.go_on() {
                service.refused(id, fault);
            }
        }
        for stream in std::mem::take(&mut conn.rooms) {
            let may_write = conn.wire.may_write(stream, &self.tools.limits);
            if may_write && !conn.codings.is_unfinished(stream) {
                service.writable(&mut self.reply(conn, stream));
            } else if conn.wire.is_open(stream) {
                conn.rooms.push(stream);
            }
        }
    }

    /// The protocol has ended and everything is written.
    pub(crate) fn begin_close(&mut self, conn: &mut Conn, closing: Closing) -> Verdict {
        match closing {
            Closing::Clean => Verdict::Close,
            Closing::Abort => {
                conn.reset_on_close();
                Verdict::Close
            }
            // Closing a socket with unread bytes resets it, and the reset may overtake our response.
            Closing::Linger => {
                conn.shut_down_write();
                conn.input = Vec::new();
                let until = self.tools.clock.now + self.tools.limits.linger_ms;
                conn.phase = Phase::Lingering { until };
                self.linger(conn)
            }
        }
    }

    /// Drops what still comes.
    pub(crate) fn linger(&mut self, conn: &mut Conn) -> Verdict {
        match conn.discard(&mut self.inbox) {
            Ok(0) => Verdict::Close,
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Verdict::Keep,
            Err(_) => Verdict::Close,
        }
    }

    /// Whether a peer that has closed its side has got all it will get, apart from what is in the queue.
    #[inline]
    pub(crate) fn is_done_with<S: Service>(&self, conn: &mut Conn, service: &mut S) -> bool {
        conn.peer_closed && self.lets_go(conn, service)
    }

    #[inline(never)]
    pub(crate) fn lets_go<S: Service>(&self, conn: &mut Conn, service: &mut S) -> bool {
        if conn.phase != Phase::Open || conn.is_held_back {
            return false;
        }
        if conn.wire.wants_output() || self.unfinished(conn).is_some() || conn.owes_responses() {
            return false;
        }
        service.disconnected(conn.id);
        conn.phase = Phase::Flushing;
        true
    }

    /// Gives the connection in hand the shared memory to write into.
    #[inline]
    pub(crate) fn lend_output(&mut self, conn: &mut Conn) {
        if conn.output.is_empty() {
            conn.output.lend(&mut self.spare_output);
        }
    }

    /// Takes the shared memory back, unless it holds what the socket has not taken.
    ///
    /// A connection at rest owns no memory; of two buffers the larger one stays, and stays in the cache.
    #[inline]
    pub(crate) fn take_back_output(&mut self, conn: &mut Conn) {
        if conn.output.is_empty() && conn.output.capacity() > 0 {
            let memory = conn.output.take_memory();
            if memory.capacity() > self.spare_output.capacity()
                && memory.capacity() <= SPARE_OUTPUT_BYTES_MAX
            {
                self.spare_output = memory;
            }
        }
    }
}
