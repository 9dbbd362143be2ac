//! Connections that begin with a TLS handshake.
//!
//! A handshake is tens of times the work of a request, and a burst of them must not make open connections wait. A connection
//! with input for its handshake waits in a queue, and at its end each turn works on the queue for [`HANDSHAKES_US`]. After the
//! handshake the connection starts its protocol as if it had just been accepted. Tests: `tests/tls/`.

use citius_http::{Closing, Millis};
use citius_observe::Counter;
use citius_tls::CHALLENGE_PROTOCOL;

use crate::clock::exact_us;
use crate::conn::{Conn, Phase, Secured, Transport, Verdict};
use crate::reactor::Reactor;
use crate::refusal::OVERLOADED;
use crate::service::{Notice, Service, TlsNotice};
use crate::stream::{Memory, Stream};
use crate::system::Errno;

/// Microseconds of each turn that go to handshakes, and one step at least. Origin: some four steps with an elliptic
/// curve's key, one or two with RSA's; what an open connection waits for a burst.
pub(crate) const HANDSHAKES_US: u64 = 1000;

/// Milliseconds after which the files of TLS are looked at again when a client connects.
const LOOK_MS: Millis = 1000;

impl Reactor {
    /// A new connection's place in the table; its handshake begins when its first bytes come.
    pub(crate) fn accept_secured<S: Service>(
        &mut self,
        conn: Conn,
        refused: bool,
        service: &mut S,
    ) {
        let id = conn.id;
        self.look_at_files(service);
        if refused {
            self.table.put(Box::new(conn));
            return self.in_hand(id, service, |reactor, conn, _| {
                conn.output.tail().extend_from_slice(OVERLOADED);
                reactor.flush_and_close(conn)
            });
        }
        self.table.put(Box::new(conn));
        self.in_hand(id, service, |reactor, conn, _| {
            reactor.await_client_hello(conn)
        });
    }

    /// A connection that a PROXY header has begun goes on with its handshake.
    pub(crate) fn begin_handshake<S: Service>(
        &mut self,
        conn: &mut Conn,
        service: &mut S,
    ) -> Verdict {
        self.look_at_files(service);
        match self.await_client_hello(conn) {
            Verdict::Keep => self.await_handshake(conn),
            Verdict::Close => Verdict::Close,
        }
    }

    /// Puts TLS between the stream and the protocol.
    fn await_client_hello(&mut self, conn: &mut Conn) -> Verdict {
        let (now, protocols) = (self.tools.clock.now, conn.protocols);
        let session = self
            .tls
            .as_mut()
            .map(|server| match conn.wire.alpn_alone(protocols) {
                Some(name) => server.session_for(name),
                None => server.session(),
            });
        let Some(Ok(session)) = session else {
            return Verdict::Close;
        };
        conn.secure(session);
        conn.phase = Phase::Handshaking {
            until: match self.tools.limits.tls_handshake_ms {
                0 => Millis::MAX,
                ms => now.saturating_add(ms),
            },
        };
        Verdict::Keep
    }

    /// Loads the files of TLS again if they have changed.
    pub(crate) fn look_at_files<S: Service>(&mut self, service: &mut S) {
        let now = self.tools.clock.now;
        if now.saturating_sub(self.tls_looked_at) < LOOK_MS {
            return;
        }
        self.tls_looked_at = now;
        let Some(server) = &mut self.tls else {
            return;
        };
        match server.renew() {
            None => {}
            Some(Ok(())) => {
                if let Some(quic) = &mut self.quic
                    && let Err(trouble) = quic.renew(server)
                {
                    service.noted(Notice::Tls(TlsNotice::NotRenewed(&trouble)));
                }
                service.noted(Notice::Tls(TlsNotice::Renewed));
                for warning in server.warnings() {
                    service.noted(Notice::Tls(TlsNotice::Warning(warning)));
                }
            }
            Some(Err(trouble)) => service.noted(Notice::Tls(TlsNotice::NotRenewed(&trouble))),
        }
    }

    /// Something has come for a handshake, or can go: its turn will come.
    pub(crate) fn await_handshake(&mut self, conn: &mut Conn) -> Verdict {
        if !std::mem::replace(&mut conn.comes_again, true) {
            self.handshakes.push_back(conn.id);
        }
        Verdict::Keep
    }

    /// Goes on with handshakes for as long as a turn has for them.
    pub(crate) fn shake_hands<S: Service>(&mut self, service: &mut S) {
        if self.handshakes.is_empty() {
            return;
        }
        let begun_us = exact_us();
        while let Some(id) = self.handshakes.pop_front() {
            self.in_hand(id, service, |reactor, conn, service| {
                conn.comes_again = false;
                reactor.shake_hand(conn, service)
            });
            if exact_us() - begun_us > HANDSHAKES_US {
                break;
            }
        }
    }

    /// One step of a handshake.
    fn shake_hand<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> Verdict {
        let came = match conn.read(&mut self.inbox, &mut self.scratch) {
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Ok(n) if n > 0 => n,
            Ok(_) => return self.fail_hand(conn, "the peer has left", service),
            Err(Errno::PROTONOSUPPORT) => {
                self.fail_hand(conn, "the peer speaks clear text", service);
                return self.respond_to_clear_text(conn);
            }
            Err(Errno::PROTO) => {
                let failure = conn.take_failure();
                self.fail_hand(conn, &failure, service);
                // Closing at once with something unread would be a reset, which may overtake the alert.
                return self.begin_close(conn, Closing::Linger);
            }
            Err(error) => return self.fail_hand(conn, &error.to_string(), service),
        };
        let Some(is_resumed) = conn.secured().and_then(Secured::is_resumed) else {
            return match conn.flush(self.tools.clock.now, &mut self.scratch) {
                Ok(_) => Verdict::Keep,
                Err(error) => self.fail_hand(conn, &error.to_string(), service),
            };
        };
        self.watch.count(Counter::TlsHandshakes, 1);
        self.watch.count(Counter::TlsResumed, u64::from(is_resumed));
        if conn.has_answered_challenge() {
            // The connection carries no request: the authority has seen the certificate (RFC 8737 §3).
            return self.flush_and_close(conn);
        }
        conn.begin_protocol(self.tools.clock.now);
        if came > 0 {
            self.take_in(conn, came, service);
        }
        if conn.has_heard_the_end() {
            return self.peer_closed(conn, service);
        }
        self.flush(conn, service)
    }

    /// Takes note of a handshake that comes to nothing.
    fn fail_hand<S: Service>(&mut self, conn: &Conn, why: &str, service: &mut S) -> Verdict {
        self.watch.count(Counter::TlsFailed, 1);
        service.noted(Notice::Tls(TlsNotice::HandshakeFailed(conn.peer, why)));
        Verdict::Close
    }

    /// The time for a handshake, or for the last ones of a server that stops, is over.
    #[cold]
    pub(crate) fn handshake_overdue<S: Service>(
        &mut self,
        conn: &mut Conn,
        is_too_slow: bool,
        service: &mut S,
    ) -> Verdict {
        if is_too_slow {
            self.watch.count(Counter::TlsTooSlow, 1);
            return self.fail_hand(conn, "it has taken too long", service);
        }
        Verdict::Close
    }

    /// Answers a request in clear text in kind.
    #[cold]
    fn respond_to_clear_text(&mut self, conn: &mut Conn) -> Verdict {
        conn.give_up_tls();
        let reply = conn.wire.clear_text_reply();
        conn.output.tail().extend_from_slice(reply);
        self.flush_and_close(conn)
    }

    /// Sends what is there and goes, slowly enough for it to be read.
    fn flush_and_close(&mut self, conn: &mut Conn) -> Verdict {
        if conn.flush(self.tools.clock.now, &mut self.scratch) == Ok(true) {
            self.begin_close(conn, Closing::Linger)
        } else {
            Verdict::Close
        }
    }
}

impl Conn {
    /// Puts TLS between the stream and the protocol.
    fn secure(&mut self, session: citius_tls::Session) {
        self.change_transport(|transport| match transport {
            Transport::Plain(stream) => Transport::Tls(Box::new(Secured {
                stream,
                session,
                failure: None,
            })),
            other @ (Transport::Tls(_) | Transport::Quic(_)) => other,
        });
    }

    /// Takes it away again, before anything was said.
    fn give_up_tls(&mut self) {
        self.change_transport(|transport| match transport {
            Transport::Tls(secured) => Transport::Plain(secured.stream),
            other @ (Transport::Plain(_) | Transport::Quic(_)) => other,
        });
    }

    fn change_transport(&mut self, change: impl FnOnce(Transport) -> Transport) {
        let nothing = Transport::Plain(Stream::Memory(Memory::default()));
        self.transport = change(std::mem::replace(&mut self.transport, nothing));
    }

    /// Whether the client has chosen HTTP/1.1 in its handshake (RFC 7301): what it sends is read as that.
    pub(crate) fn has_agreed_on_http1(&self) -> bool {
        self.secured()
            .is_some_and(|secured| secured.session.protocol() == Some(b"http/1.1"))
    }

    /// Whether the client was an authority that asked for the answer to a challenge.
    fn has_answered_challenge(&self) -> bool {
        self.secured()
            .is_some_and(|secured| secured.session.protocol() == Some(CHALLENGE_PROTOCOL))
    }

    fn secured(&self) -> Option<&Secured> {
        match &self.transport {
            Transport::Tls(secured) => Some(secured),
            Transport::Plain(_) | Transport::Quic(_) => None,
        }
    }

    fn take_failure(&mut self) -> String {
        match &mut self.transport {
            Transport::Tls(secured) => secured.failure.take().unwrap_or_default(),
            Transport::Plain(_) | Transport::Quic(_) => String::new(),
        }
    }

    /// The handshake is over: what it has agreed on begins.
    fn begin_protocol(&mut self, now: Millis) {
        let agreed = match &self.transport {
            Transport::Tls(secured) => secured.session.protocol(),
            Transport::Plain(_) | Transport::Quic(_) => None,
        };
        self.wire.agree(agreed, now, self.protocols);
        self.phase = Phase::Open;
    }
}

impl Secured {
    /// Whether the handshake, now that it is over, has taken up an earlier session; `None` before.
    fn is_resumed(&self) -> Option<bool> {
        self.session.facts().map(|facts| facts.is_resumed)
    }
}
