//! WebTransport sessions: what HTTP/3 tells of them goes to the service, and what the service wants of them to HTTP/3.
//!
//! A session is the stream of an extended CONNECT that was granted; its streams and datagrams are HTTP/3's (`citius-h3`). Here
//! is nothing for connections without one. Tests: `tests/http3/test_webtransport.py`.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use citius_h3::SessionEvent;
use citius_http::{Action, Fault, Fields, Payload};
use citius_quic::Dir;

use crate::broadcast::{Broadcast, Slow};
use crate::conn::{Conn, Transport};
use crate::reactor::Reactor;
use crate::service::{Reply, Service};
use crate::session_command::SessionCommand;
use crate::watch;
use crate::wire::h3;

impl Reply<'_> {
    /// Does what is to be done for the session of this request; nothing once that is over.
    ///
    /// # Errors
    /// The response cannot be begun any more.
    pub fn command_session(&mut self, command: SessionCommand) -> Result<(), Fault> {
        if let SessionCommand::Accept(fields) = &command {
            return self.open_session(fields);
        }
        let Some(command) = self.note_call(command) else {
            return Ok(());
        };
        let (stream, conn) = (self.stream, &mut *self.conn);
        let mut context = self.tools.context();
        let cx = &mut h3(&mut context);
        let Some(wire) = conn.wire.as_h3() else {
            return Ok(());
        };
        if !wire.is_session(stream) {
            return Ok(());
        }
        match command {
            SessionCommand::Accept(_)
            | SessionCommand::BeginCall { .. }
            | SessionCommand::EndCall { .. } => {}
            SessionCommand::Open {
                number,
                is_bidirectional,
            } => wire.open_session_stream(stream, number, is_bidirectional, cx.limits),
            SessionCommand::Send { stream, bytes, fin } => {
                wire.send_session_bytes(stream, Payload::Shared(bytes), fin);
            }
            SessionCommand::AwaitRoom(stream) => wire.await_session_room(stream),
            SessionCommand::Want(stream, bytes) => wire.want_session_bytes(stream, bytes),
            SessionCommand::Reset(stream, code) => wire.reset_session_stream(stream, code),
            SessionCommand::Stop(stream, code) => wire.stop_session_stream(stream, code),
            SessionCommand::Datagram(bytes) => {
                wire.send_datagram(stream, &bytes);
            }
            SessionCommand::Ping => {
                if let Transport::Quic(carrier) = &mut conn.transport {
                    carrier.connection.ping();
                }
            }
            SessionCommand::Close(code, reason) => {
                wire.close_session(cx, stream, code, &reason);
                self.note_end_of_session();
            }
        }
        Ok(())
    }

    /// Makes the request a session.
    fn open_session(&mut self, fields: &Fields) -> Result<(), Fault> {
        if !self.conn.wire.is_open(self.stream) {
            return Ok(());
        }
        self.keep_as_is();
        self.send_on(Action::Switch {
            protocol: b"webtransport",
            fields,
        })?;
        let streams_max = self.tools.limits.webtransport_streams_max;
        if let Transport::Quic(carrier) = &mut self.conn.transport {
            // HTTP/3 itself needs few of these.
            let connection = &mut carrier.connection;
            connection.set_max_concurrent_streams(Dir::Uni, streams_max.into());
        }
        Ok(())
    }

    /// The largest datagram that a session of this connection can send now; 0 if its client takes none.
    pub fn datagram_bytes_max(&mut self) -> usize {
        match &mut self.conn.transport {
            Transport::Quic(carrier) => {
                let bytes_max = carrier.connection.datagrams().max_size();
                bytes_max.unwrap_or(0).saturating_sub(NUMBER_BYTES_MAX)
            }
            Transport::Plain(_) | Transport::Tls(_) => 0,
        }
    }

    /// The session has ended, as the end of a response does.
    fn note_end_of_session(&mut self) {
        let (conn, stream) = (&mut *self.conn, self.stream);
        self.watch.end_calls(conn, Some(stream));
        let at = conn.notes.iter().position(|note| note.stream == stream);
        let trailers = &Fields::EMPTY;
        if let Some(at) = at
            && let Some(ending) =
                watch::take_note_of(&mut conn.notes[at], &Action::End { trailers })
        {
            let note = conn.notes.remove(at);
            self.watch.leave(conn, note, ending);
        }
    }
}

/// Bytes of the number of a session in front of a datagram (RFC 9297 §2.1).
const NUMBER_BYTES_MAX: usize = 8;

impl Reactor {
    /// Tells the service what has become of a session.
    pub(crate) fn tell_session<S: Service>(
        &mut self,
        conn: &mut Conn,
        event: SessionEvent<'_>,
        service: &mut S,
    ) {
        let mut reply = self.reply(conn, event.session());
        if matches!(event, SessionEvent::Closed { .. }) {
            reply.note_end_of_session();
        }
        service.session(event, &mut reply);
    }

    /// Sends what many get to a session, on a stream of its own.
    pub(crate) fn send_to_session<S: Service>(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        broadcast: &Broadcast,
        service: &mut S,
    ) {
        // The others are for what the handler opens.
        let waiting_max = (self.tools.limits.webtransport_streams_max / 4) as usize;
        let keeps_up = |conn: &mut Conn| {
            let wire = conn.wire.as_h3();
            wire.is_none_or(|wire| wire.waiting_session_streams() < waiting_max)
        };
        let is_replay = broadcast.slow == Slow::Queue;
        if !is_replay && !keeps_up(conn) {
            // Those of a burst wait for QUIC to be offered them.
            self.write_quic(conn);
        }
        let keeps_up = keeps_up(conn);
        let limits = &self.tools.limits;
        let Some(wire) = conn.wire.as_h3().filter(|wire| wire.is_session(stream)) else {
            return;
        };
        if is_replay {
            wire.replay_session_message(stream, broadcast.payload.clone(), limits);
            return;
        }
        if keeps_up && wire.send_session_message(stream, broadcast.payload.clone(), limits) {
            return;
        }
        broadcast.missed.fetch_add(1, Ordering::Relaxed);
        if let Slow::Close(code) = broadcast.slow {
            let mut context = self.tools.context();
            let (code, reason) = (u32::from(code.number()), b"too slow");
            wire.close_session(&mut h3(&mut context), stream, code, reason);
            let closed = SessionEvent::Closed {
                session: stream,
                code,
                reason: Bytes::from_static(reason),
            };
            self.tell_session(conn, closed, service);
        }
    }
}
