//! Connections that begin with a header of the PROXY protocol, because their listener says so.
//!
//! In: a new connection. Out: the same one with the addresses that its trusted proxy states, which goes on with TLS or its
//! protocol, or a closed one. The header is peeked at and exactly its bytes are read, for TLS reads the rest by itself.
//! Tests: `tests/turn.rs`, `tests/server/test_proxy_protocol.py`.

use citius_forwarded::{Ends, PROXY_HEADER_BYTES_MAX, Progress, read_proxy_header};
use citius_http::Millis;
use citius_observe::Counter;

use crate::conn::{Conn, Phase, Verdict};
use crate::id::Peer;
use crate::reactor::Reactor;
use crate::service::{Notice, Service};
use crate::system::Errno;

/// Milliseconds between two notices: strangers that connect shall not fill the log; the counter has all.
const NOTICE_EVERY_MS: Millis = 10_000;

impl Reactor {
    /// A new connection of a listener that asks for the header: it waits for one if its peer may send it.
    pub(crate) fn await_proxy_header<S: Service>(
        &mut self,
        conn: &mut Conn,
        is_secured: bool,
        service: &mut S,
    ) -> Verdict {
        if !conn.is_trusted {
            return self.refuse_proxy(conn, "it is not one of --forwarded-allow-ips", service);
        }
        conn.phase = Phase::AwaitingProxyHeader {
            until: match self.tools.limits.head_read_ms {
                0 => Millis::MAX,
                ms => self.tools.clock.now.saturating_add(ms),
            },
            is_secured,
        };
        self.read_proxy_header(conn, is_secured, service)
    }

    /// Reads what there is of the header; goes on with the connection when it is complete.
    pub(crate) fn read_proxy_header<S: Service>(
        &mut self,
        conn: &mut Conn,
        is_secured: bool,
        service: &mut S,
    ) -> Verdict {
        let seen_max = PROXY_HEADER_BYTES_MAX.min(self.inbox.len());
        let n_seen = match conn.peek(&mut self.inbox[..seen_max]) {
            // Load balancers look so whether a port is open.
            Ok(0) => return Verdict::Close,
            Ok(n) => n,
            Err(Errno::AGAIN | Errno::INTR) => return Verdict::Keep,
            Err(_) => return Verdict::Close,
        };
        let n_before = conn.input.len();
        conn.input.extend_from_slice(&self.inbox[..n_seen]);
        let (length, ends) = match read_proxy_header(&conn.input) {
            Progress::Partial => (conn.input.len(), None),
            Progress::Complete { length, ends } => (length, Some(ends)),
            Progress::Invalid => {
                return self.refuse_proxy(conn, "it does not begin with a PROXY header", service);
            }
        };
        // All bytes before these were of the header, so it ends behind them.
        if conn.read(&mut self.inbox[..length - n_before], &mut self.scratch)
            != Ok(length - n_before)
        {
            return Verdict::Close;
        }
        let Some(ends) = ends else {
            conn.input.truncate(length);
            return Verdict::Keep;
        };
        conn.input = Vec::new();
        self.take_ends(conn, ends);
        if is_secured {
            return self.begin_handshake(conn, service);
        }
        conn.phase = Phase::Open;
        self.receive(conn, service)
    }

    /// From now on the connection is the client's. Header fields are the client's too, unless it is a trusted proxy itself.
    fn take_ends(&mut self, conn: &mut Conn, ends: Ends) {
        match ends {
            Ends::Connection => {}
            // What it sends is not the proxy's.
            Ends::Unnamed => conn.is_trusted = false,
            Ends::Local => {
                conn.peer = Peer::Local;
                conn.is_trusted = false;
            }
            Ends::Internet {
                source,
                destination,
            } => {
                conn.peer = Peer::internet(source);
                conn.stated_local = Some(Box::new(Peer::internet(destination)));
                conn.is_trusted = self.proxies.trusts(Some(source));
            }
        }
    }

    /// The time for a header is over.
    #[cold]
    pub(crate) fn proxy_header_overdue<S: Service>(
        &mut self,
        conn: &Conn,
        service: &mut S,
    ) -> Verdict {
        self.refuse_proxy(
            conn,
            "it sent no PROXY header within --head-read-ms",
            service,
        )
    }

    #[cold]
    fn refuse_proxy<S: Service>(&mut self, conn: &Conn, why: &str, service: &mut S) -> Verdict {
        self.watch.count(Counter::ProxyHeadersRefused, 1);
        let now = self.tools.clock.now;
        if now >= self.proxy_notice_at {
            self.proxy_notice_at = now + NOTICE_EVERY_MS;
            service.noted(Notice::ProxyRefused(conn.peer, why));
        }
        Verdict::Close
    }
}
