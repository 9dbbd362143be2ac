//! What the observer is told of WebTransport: how many sessions and streams are open, and the calls of procedures on streams.
//!
//! A call has a note as a request has; it is kept with the connection of QUIC, because numbers of streams do not fit among
//! those of requests. Its status comes from the application, which alone knows the messages. Tests:
//! `tests/http3/test_session_metrics.py`.

use citius_observe::{Counter, Ending, Gauge};

use crate::carrier::{Counted, OpenCall};
use crate::clock::exact_us;
use crate::conn::{Conn, Transport};
use crate::service::Reply;
use crate::session_command::SessionCommand;
use crate::watch::Watch;
use crate::wire::Wire;

impl Reply<'_> {
    /// Takes note of a call's beginning or end; returns what is another command.
    pub(crate) fn note_call(&mut self, command: SessionCommand) -> Option<SessionCommand> {
        match command {
            SessionCommand::BeginCall {
                stream,
                name,
                class,
            } => {
                let mut head = self.tools.heads.take();
                head.be_call(&name);
                let (conn, watch) = (&mut *self.conn, &mut *self.watch);
                let session = self.stream;
                if let (Transport::Quic(carrier), Some(observer)) =
                    (&mut conn.transport, &mut watch.observer)
                    && conn
                        .wire
                        .as_h3()
                        .is_some_and(|wire| wire.is_session(session))
                {
                    let (peer, is_trusted) = (conn.peer.address(), conn.is_trusted);
                    let mut note = observer.begin(session, &mut head, peer, is_trusted, exact_us());
                    note.class = class;
                    carrier.calls.push((stream, note));
                    watch.note_open();
                }
                self.tools.heads.give(head);
                None
            }
            SessionCommand::EndCall {
                stream,
                status,
                bytes,
                is_cancelled,
            } => {
                let session = self.stream;
                if let Transport::Quic(carrier) = &mut self.conn.transport {
                    let is_it = |(of, note): &OpenCall| *of == stream && note.stream == session;
                    if let Some(at) = carrier.calls.iter().position(is_it) {
                        let (_, mut note) = carrier.calls.swap_remove(at);
                        let ending = if is_cancelled {
                            Ending::Cancelled
                        } else {
                            (note.status, note.bytes) = (status, bytes);
                            Ending::Complete
                        };
                        self.watch.end(note, ending);
                    }
                }
                None
            }
            other => Some(other),
        }
    }
}

impl Watch {
    /// Ends the calls of a session that is over, or those of all sessions: their clients get no responses.
    pub(crate) fn end_calls(&mut self, conn: &mut Conn, session: Option<u32>) {
        let lost = self.lost_of(conn);
        let Transport::Quic(carrier) = &mut conn.transport else {
            return;
        };
        let is_over =
            |(_, note): &mut OpenCall| session.is_none_or(|session| note.stream == session);
        for (_, note) in carrier.calls.extract_if(.., is_over) {
            self.end(note, lost);
        }
    }

    /// Counts the sessions and streams that a connection has now, and the datagrams that it has dropped.
    pub(crate) fn count_sessions(&mut self, conn: &mut Conn) {
        let Some(observer) = &self.observer else {
            return;
        };
        let Conn {
            transport: Transport::Quic(carrier),
            wire: Wire::H3(wire),
            ..
        } = &mut *conn
        else {
            return;
        };
        let (sessions, streams) = wire.n_sessions();
        let now = Counted {
            sessions: sessions as u64,
            streams: streams as u64,
        };
        let before = std::mem::replace(&mut carrier.counted, now);
        let dropped = wire.take_datagrams_dropped();
        if dropped > 0 {
            let slot = observer.slot();
            slot.add_from_any_thread(Counter::DatagramsDropped, dropped);
        }
        self.move_counts(before, now);
    }

    /// Counts nothing of a connection any more.
    pub(crate) fn forget_sessions(&mut self, conn: &mut Conn) {
        if let Transport::Quic(carrier) = &mut conn.transport {
            let before = std::mem::take(&mut carrier.counted);
            self.move_counts(before, Counted::default());
        }
    }

    fn move_counts(&self, before: Counted, now: Counted) {
        if before == now {
            return;
        }
        if let Some(observer) = &self.observer {
            let slot = observer.slot();
            let moved = |gauge, before: u64, now: u64| {
                let all = slot.gauge(gauge).saturating_sub(before);
                slot.set(gauge, all.saturating_add(now));
            };
            moved(Gauge::SessionsOpen, before.sessions, now.sessions);
            moved(Gauge::SessionStreamsOpen, before.streams, now.streams);
        }
    }
}
