//! ② read and ③ parse: bytes of a connection in, events for `dispatch.rs` out.
//!
//! Input that cannot be taken yet (the write queue is full, the turn's time is over, a handler is slow) is held back and parsed
//! later, in order. Tests: `tests/turn.rs`.

use citius_observe::Counter;

use crate::conn::{Conn, Verdict};
use crate::reactor::Reactor;
use crate::service::Service;
use crate::system::Errno;

/// Requests of one connection after which a turn looks at the time.
const EVENTS_PER_LOOK: u32 = 8;

impl Reactor {
    /// ② read, then all that follows.
    pub(crate) fn receive<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        match conn.read(&mut self.inbox, &mut self.scratch) {
            Ok(0) => return self.peer_closed(conn, service),
            Ok(n) => {
                self.take_in(conn, n, service);
                if conn.has_heard_the_end() {
                    return self.peer_closed(conn, service);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {
                if self.is_goaway_due(conn) {
                    self.parse_held(conn, service);
                }
            }
            // The peer has reset the connection: no response can be sent.
            Err(_) => return Verdict::Close,
        }
        self.flush(conn, service)
    }

    /// The first `n` bytes of the inbox are `conn`'s.
    #[inline]
    pub(crate) fn take_in<S: Service>(&mut self, conn: &mut Conn, n: usize, service: &mut S) {
        self.watch.count(Counter::BytesReceived, n as u64);
        self.lend_output(conn);
        let inbox = std::mem::take(&mut self.inbox);
        if conn.input.is_empty() {
            let mut input = &inbox[..n];
            self.parse(conn, &mut input, service);
            conn.input.extend_from_slice(input);
        } else {
            conn.input.extend_from_slice(&inbox[..n]);
            self.parse_held(conn, service);
        }
        self.inbox = inbox;
    }

    /// ③ parse and ④ dispatch, until the input is used up or held back.
    pub(crate) fn parse<S: Service>(
        &mut self,
        conn: &mut Conn,
        input: &mut &[u8],
        service: &mut S,
    ) {
        if !conn.has_asked
            && conn.protocols.http2
            && !conn.has_agreed_on_http1()
            && conn.wire.recognise(self.tools.clock.now, input)
        {
            self.watch.count(Counter::Http2Connections, 1);
        }
        let mut events = 0u32;
        while !self.is_congested(conn) {
            events += 1;
            if events.is_multiple_of(EVENTS_PER_LOOK) && self.is_over_time() {
                self.come_again(conn);
                break;
            }
            if input.is_empty() && conn.wire.awaits_head() {
                conn.is_held_back = !conn.wire.wants_input(&self.tools.limits);
                return;
            }
            if let Some(request) = conn.wire.receive_cached(&mut self.tools.context(), input) {
                self.request(conn, request, service);
                if self.slow.is_timing {
                    self.time_event(conn.id, service);
                }
                continue;
            }
            let mut context = self.tools.context();
            let Some(event) = conn.wire.receive(&mut context, input, &mut conn.output) else {
                conn.is_held_back = !conn.wire.wants_input(&self.tools.limits);
                return;
            };
            self.dispatch(conn, event, service);
            if self.slow.is_timing {
                self.time_event(conn.id, service);
            }
        }
        conn.is_held_back = true;
    }

    /// Goes on with the bytes that were held back.
    pub(crate) fn parse_held<S: Service>(&mut self, conn: &mut Conn, service: &mut S) {
        let held = std::mem::take(&mut conn.input);
        let mut input = held.as_slice();
        self.parse(conn, &mut input, service);
        conn.input = if input.len() == held.len() {
            held
        } else if input.is_empty() {
            Vec::new()
        } else {
            input.to_vec()
        };
        self.tell_end(conn, service);
    }

    /// Tells the protocol that the peer has closed its side, once it has been offered all that came before.
    pub(crate) fn tell_end<S: Service>(&mut self, conn: &mut Conn, service: &mut S) {
        if !conn.peer_closed || conn.knows_of_end || conn.could_go_on(&self.tools.limits) {
            return;
        }
        conn.knows_of_end = true;
        let mut context = self.tools.context();
        if let Some(event) = conn.wire.receive_eof(&mut context, &mut conn.output) {
            self.dispatch(conn, event, service);
        }
    }

    /// Whether so much waits to be written that it must leave before more requests are taken.
    #[inline]
    pub(crate) fn is_congested(&mut self, conn: &mut Conn) -> bool {
        let most = self.tools.limits.write_queue_bytes_max as usize;
        conn.output.len() >= most && !self.relieve(conn, most)
    }

    /// Tries to write, for most often the socket takes all of it; whether less than `most` is left.
    #[cold]
    pub(crate) fn relieve(&mut self, conn: &mut Conn, most: usize) -> bool {
        // An error shows again when the connection is settled.
        let _ = conn.flush(self.tools.clock.now, &mut self.scratch);
        conn.output.len() < most
    }

    /// The peer sends no more. What it has sent is still answered, as fast as it takes the responses;
    /// a handler that still runs when all of it is taken may stop.
    pub(crate) fn peer_closed<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        conn.peer_closed = true;
        self.lend_output(conn);
        self.tell_end(conn, service);
        self.flush(conn, service)
    }
}
