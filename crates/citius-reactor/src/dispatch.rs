//! ④ dispatch: one call of the service for each event.
//!
//! In: an event of the protocol. Out: a call of the [`Service`] with a [`Reply`], by which ⑤ responses are encoded at once.
//! Frames of WebSockets go to `messages.rs`; health checks and refused requests get their response here. Tests: `tests/turn.rs`.

use citius_h1::Request;
use citius_http::{
    Action, Event, Fault, Fields, Head, Payload, ProcedureCall, ResponseHead, Status,
};
use citius_observe::Counter;

use crate::conn::{Conn, Transport};
use crate::id::StreamId;
use crate::reactor::Reactor;
use crate::service::{Reply, Service};
use crate::socket;
use crate::stream::Stream;
use crate::watch::Admission;
use crate::wire::Protocols;

/// Requests whose choice of a coding is remembered before those without an open stream are dropped.
const CODINGS_KEPT_MAX: usize = 16;

impl Reactor {
    /// ④ dispatch: one call of the service for one event.
    #[inline]
    pub(crate) fn dispatch<S: Service>(
        &mut self,
        conn: &mut Conn,
        event: Event<'_>,
        service: &mut S,
    ) {
        match event {
            Event::Request {
                stream,
                head,
                ended,
            } => {
                let request = Request {
                    stream,
                    head,
                    ended,
                };
                self.request(conn, request, service);
            }
            Event::Call { stream, call } => self.take_call(conn, stream, call, service),
            Event::Data { stream, bytes } if socket::is_socket(&conn.sockets, stream) => {
                self.receive_frames(conn, stream, bytes, service);
            }
            Event::Buffered { stream, bytes } if socket::is_socket(&conn.sockets, stream) => {
                self.receive_frames(conn, stream, &bytes, service);
            }
            Event::End { stream, .. } if socket::is_socket(&conn.sockets, stream) => {
                self.end_frames(conn, stream, service);
            }
            Event::Data { stream, bytes } => service.data(bytes, &mut self.reply(conn, stream)),
            Event::Buffered { stream, bytes } => {
                service.data(&bytes, &mut self.reply(conn, stream));
            }
            Event::End { stream, trailers } => service.end(trailers, &mut self.reply(conn, stream)),
            Event::BodyRefused { stream, fault } => {
                let connection = conn.id;
                service.body_refused(StreamId { connection, stream }, fault);
            }
            Event::Broken { stream, fault } => {
                conn.rooms.retain(|waiting| *waiting != stream);
                conn.codings.forget(stream);
                socket::forget(&mut conn.sockets, stream);
                self.watch.end_broken(conn, stream, fault);
                service.broken(
                    StreamId {
                        connection: conn.id,
                        stream,
                    },
                    fault,
                );
            }
        }
    }

    /// A request head is complete. Apart from the other events, for moving one of those about takes time.
    pub(crate) fn request<S: Service>(
        &mut self,
        conn: &mut Conn,
        request: Request,
        service: &mut S,
    ) {
        let Request {
            stream,
            mut head,
            ended,
        } = request;
        self.requests_total += 1;
        let stream = if head.asks_upgrade {
            self.upgrade(conn, stream, &mut head, ended)
        } else {
            stream
        };
        conn.has_asked = true;
        if self.draining {
            // Before it is answered, so that the response says `connection: close`.
            self.drain_wire(conn);
        }
        if !matches!(conn.transport, Transport::Plain(Stream::Socket(_))) {
            describe_peer(&conn.transport, &mut head);
        }
        if conn.is_trusted {
            self.proxies.apply(&mut head);
        }
        if self.watch.is_on {
            let admission = self.watch.begin(conn, stream, &mut head);
            if admission != Admission::Serve {
                return self.respond_ourselves(conn, stream, head, admission);
            }
        }
        if conn.redirect_port != 0 {
            match self.redirect(conn, stream, head) {
                Some(served) => head = served,
                None => return,
            }
        }
        if let Some(compressor) = &self.compressor {
            let (wire, codings) = (&conn.wire, &mut conn.codings);
            if codings.len() >= CODINGS_KEPT_MAX {
                codings.retain(|stream| wire.is_open(stream));
            }
            compressor.begin(codings, stream, &head);
        }
        self.slow.latest = Some(StreamId {
            connection: conn.id,
            stream,
        });
        // The only call: the service is compiled into this function.
        service.request(head, ended, &mut self.reply(conn, stream));
    }

    /// A call of a procedure is complete.
    pub(crate) fn take_call<S: Service>(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        call: ProcedureCall<'_>,
        service: &mut S,
    ) {
        self.requests_total += 1;
        conn.has_asked = true;
        self.slow.latest = Some(StreamId {
            connection: conn.id,
            stream,
        });
        if self.watch.is_on && self.begin_call(conn, stream, &call) != Admission::Serve {
            return self.reply(conn, stream).fail(Fault::Overloaded);
        }
        service.call(call, &mut self.reply(conn, stream));
    }

    /// Takes note of a call, by a head that says as much of it as a line of the log can.
    pub(crate) fn begin_call(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        call: &ProcedureCall<'_>,
    ) -> Admission {
        let mut head = self.tools.heads.take();
        head.be_call(&call.method);
        let admission = self.watch.begin(conn, stream, &mut head);
        self.tools.heads.give(head);
        admission
    }

    /// A request asks for another protocol; returns the stream on which it is to be answered.
    ///
    /// Only the first of a connection is heard: late responses to those before it would be taken for others of HTTP/2.
    #[cold]
    pub(crate) fn upgrade(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        head: &mut Head,
        ended: bool,
    ) -> u32 {
        let Protocols { http2, upgrade, .. } = conn.protocols;
        let is_late = conn.has_asked || !conn.wire.may_become_h2();
        // Over TLS it is ALPN that changes protocols (RFC 7540 §3.2).
        if !(http2 && upgrade && ended) || is_late || matches!(conn.transport, Transport::Tls(_)) {
            return stream;
        }
        let mut context = self.tools.context();
        let Some(stream) = conn.wire.upgrade(&mut context, head, &mut conn.output) else {
            return stream;
        };
        self.watch.count(Counter::Http2Connections, 1);
        stream
    }

    /// Responds to a request that is not passed to the service.
    #[cold]
    pub(crate) fn respond_ourselves(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        head: Box<Head>,
        admission: Admission,
    ) {
        let is_ready = self.watch.observer.as_ref().is_some_and(|o| o.is_ready());
        let (status, text) = match admission {
            Admission::Health(false) => (200, "live"),
            Admission::Health(true) if is_ready && !self.draining => (200, "ready"),
            Admission::Health(true) => (503, "not ready"),
            Admission::Serve | Admission::Shed => (503, Fault::Overloaded.text()),
        };
        let mut fields = Fields::default();
        let extra: (&[u8], &[u8]) = match admission {
            Admission::Health(_) => (b"cache-control", b"no-store"),
            Admission::Serve | Admission::Shed => (b"retry-after", b"1"),
        };
        fields.push(extra.0, extra.1).expect("a valid field");
        let status = Status::new(status).expect("one of the two above");
        let response = ResponseHead {
            fields: &fields,
            ..ResponseHead::text(status)
        };
        let mut reply = self.reply(conn, stream);
        // Refused only when the connection is being cut already.
        let _ = reply.send(Action::Respond(response, Payload::Copied(text.as_bytes())));
        reply.recycle(head);
    }

    #[inline]
    pub(crate) fn reply<'a>(&'a mut self, conn: &'a mut Conn, stream: u32) -> Reply<'a> {
        Reply {
            stream,
            conn,
            tools: &mut self.tools,
            watch: &mut self.watch,
            compressor: self.compressor.as_ref(),
            codecs: &mut self.codecs,
        }
    }
}

/// What is known of the peer of a connection that is not a socket in clear text.
fn describe_peer(transport: &Transport, head: &mut Head) {
    match transport {
        Transport::Tls(secured) => head.tls = secured.session.facts().cloned(),
        Transport::Plain(Stream::Memory(memory)) => {
            if memory.origin.is_some() {
                head.origin.clone_from(&memory.origin);
            }
        }
        Transport::Quic(carrier) => head.tls.clone_from(&carrier.facts),
        Transport::Plain(Stream::Socket(_)) => {}
    }
}
