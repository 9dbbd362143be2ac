//! One request under way on a connection, whatever the connection speaks, and what comes of it.

use std::sync::Arc;

use citius_base::passing::Inbound;
use citius_base::progress::Sleeper;
use citius_reactor::coarse_ms;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::http::call::HttpCall;
use crate::http::errors::Failure;
use crate::http::forward::onward_trailers;
use crate::http::head::{Collected, Head, Pairs};
use crate::http::reply::{Incoming, Response};
use crate::http::upload::HttpUpload;

/// A request under way.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one exchange"
)]
pub(crate) struct Exchange {
    pub(crate) call: Py<HttpCall>,
    pub(crate) upload: Option<Py<HttpUpload>>,
    /// Content that is sent when the server says that it wants it.
    pub(crate) held_body: Option<Py<PyBytes>>,
    /// Until then, or until this time.
    pub(crate) continue_until_ms: Option<u64>,
    /// The connection has had another request before.
    pub(crate) is_reused: bool,
    /// The connection has had another request before, or waited for its first: the server may have closed it at the moment
    /// at which this one was sent, and would have closed it without.
    pub(crate) was_kept: bool,
    /// Its first byte has left.
    pub(crate) is_taken: bool,
    /// All of it has been taken by the carrier.
    pub(crate) is_sent: bool,
    pub(crate) begun_ms: u64,
    /// When the carrier has last taken something of it.
    pub(crate) taken_ms: u64,
    /// When something of the response has come last.
    pub(crate) heard_ms: u64,
    pub(crate) head: Option<Head>,
    pub(crate) informational: Vec<(u16, Pairs)>,
    pub(crate) body: Collected,
    /// The reader of a response whose head has been handed over.
    pub(crate) incoming: Option<Arc<Incoming>>,
    /// All that comes belongs to another protocol.
    pub(crate) is_tunnel: bool,
    /// All that goes into the tunnel was handed over.
    pub(crate) has_sent_all: bool,
    /// The server sends no more, and what goes into the tunnel still goes to it.
    pub(crate) has_heard_all: bool,
    /// Its call was given up: what comes is dropped, at most so many bytes.
    pub(crate) dropped_bytes_left: Option<u64>,
    /// Bytes of a body that were sent, and those of a response that have come, over HTTP/2.
    pub(crate) sent_bytes: usize,
    pub(crate) got_bytes: u64,
}

impl Exchange {
    pub(crate) fn new(call: Py<HttpCall>, now_ms: u64) -> Self {
        Self {
            call,
            upload: None,
            held_body: None,
            continue_until_ms: None,
            is_reused: false,
            was_kept: false,
            is_taken: false,
            is_sent: false,
            begun_ms: now_ms,
            taken_ms: now_ms,
            heard_ms: now_ms,
            head: None,
            informational: Vec::new(),
            body: Collected::Empty,
            incoming: None,
            is_tunnel: false,
            has_sent_all: false,
            has_heard_all: false,
            dropped_bytes_left: None,
            sent_bytes: 0,
            got_bytes: 0,
        }
    }

    /// Hands the head over; the content is read as it comes.
    pub(crate) fn stream(&mut self, py: Python<'_>, head: Head, out: &mut Outcomes) {
        let incoming = Arc::new(Incoming::default());
        self.incoming = Some(Arc::clone(&incoming));
        out.responses.push(Response {
            call: self.call.clone_ref(py),
            head,
            informational: std::mem::take(&mut self.informational),
            body: Collected::Empty,
            trailers: Pairs::new(),
            incoming: Some(incoming),
            begun_ms: self.begun_ms,
            is_reused: self.is_reused,
        });
    }

    /// The response is complete: hands it over, or ends the content that is read.
    pub(crate) fn complete(mut self, trailers: Pairs, out: &mut Outcomes) {
        if self.dropped_bytes_left.is_some() {
            out.dropped.push(self);
        } else if let Some(incoming) = &self.incoming {
            out.sleepers.extend(incoming.end(trailers));
            out.dropped.push(self);
        } else if let Some(head) = self.head.take() {
            out.responses.push(Response {
                call: self.call,
                head,
                informational: self.informational,
                body: self.body,
                trailers,
                incoming: None,
                begun_ms: self.begun_ms,
                is_reused: self.is_reused,
            });
        }
    }

    /// A response has come that another one follows.
    pub(crate) fn inform(&mut self, status: u16, fields: Pairs, out: &mut Outcomes) {
        match &self.call.get().inbound {
            Some(inbound) => out.informed.push((inbound.clone(), status, fields)),
            None => self.informational.push((status, fields)),
        }
    }

    /// Whether no response has come but interim ones.
    pub(crate) fn is_unheard(&self) -> bool {
        self.head.is_none() && self.incoming.is_none()
    }

    /// So much more of its body has been sent.
    pub(crate) fn note_sent(&mut self, bytes: usize) {
        if bytes > 0 {
            self.sent_bytes += bytes;
            self.taken_ms = coarse_ms();
        }
    }

    /// Whether one side of a tunnel has ended it.
    fn is_ending(&self) -> bool {
        self.has_sent_all || self.has_heard_all
    }

    /// How long a tunnel that one side has ended may be silent.
    pub(crate) fn ending_ms(&self) -> u64 {
        self.call.get().deadlines.read.unwrap_or(ENDING_MS)
    }

    /// Whether content waits for its reader in such an amount that no more is wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.incoming.as_ref().is_some_and(|it| it.is_full())
    }
}

/// What is to be told when no lock is held any more.
#[derive(Default)]
pub(crate) struct Outcomes {
    pub(crate) responses: Vec<Response>,
    /// Exchanges that are over, whose objects are dropped outside of locks.
    pub(crate) dropped: Vec<Exchange>,
    /// Those that have failed while the connection goes on, and whether they may be repeated.
    pub(crate) failed: Vec<(Exchange, Failure, bool)>,
    pub(crate) sleepers: Vec<Sleeper>,
    /// Informational responses for clients whose requests are passed on.
    pub(crate) informed: Vec<(Inbound, u16, Pairs)>,
    pub(crate) uploads: Vec<Py<HttpUpload>>,
    /// The connection takes another request.
    pub(crate) is_free: bool,
    /// It takes no other request, and is to be closed.
    pub(crate) ends: Option<Failure>,
    /// There is something to be sent.
    pub(crate) has_output: bool,
}

/// How long a tunnel that one side has ended may be silent, if the route has no time limit for reading.
pub(crate) const ENDING_MS: u64 = 30_000;

/// How long the rest of a response may take whose call was given up.
pub(crate) const DROPPING_MS: u64 = 1000;

/// How long a server may take to say that it wants content that was announced with `Expect`. Without a word it is sent.
pub(crate) const CONTINUE_MS: u64 = 1000;

/// Bytes that the carrier takes at once: it takes more when the socket has taken these.
pub(crate) const PORTION_BYTES: usize = 256 * 1024;

/// What of an exchange has taken too long; otherwise when it will have.
pub(crate) fn overdue(
    exchange: &Exchange,
    has_output: bool,
    now_ms: u64,
    next_ms: &mut u64,
) -> Option<Failure> {
    let call = exchange.call.get();
    let mut deadlines = call.deadlines;
    if exchange.is_tunnel {
        // Only those who talk in it know how long it may be silent, until one of them has ended it.
        deadlines.read = exchange.is_ending().then(|| exchange.ending_ms());
    }
    *next_ms = (*next_ms).min(exchange.continue_until_ms.unwrap_or(u64::MAX));
    let mut check = |class, what: &str, since_ms: u64, limit: Option<u64>| {
        let limit = limit?;
        let due = since_ms.saturating_add(limit);
        if due > now_ms {
            *next_ms = (*next_ms).min(due);
            return None;
        }
        let seconds = std::time::Duration::from_millis(limit).as_secs_f64();
        let after_ms = now_ms.saturating_sub(call.started_ms());
        Some(Failure::new(class, format!("{what} within {seconds} s")).after(after_ms))
    };
    if exchange.dropped_bytes_left.is_some() {
        let what = "the rest of the response has not come";
        return check("ReadTimeout", what, exchange.heard_ms, Some(DROPPING_MS));
    }
    let mut found = None;
    if exchange.incoming.is_none() {
        let started = call.started_ms();
        found = check("TotalTimeout", "no response", started, deadlines.total);
    }
    let has_more = has_output
        || exchange
            .upload
            .as_ref()
            .is_some_and(|it| it.get().is_waited_for());
    if found.is_none() && !exchange.is_sent && has_more {
        let what = "the server has not taken the request";
        found = check("WriteTimeout", what, exchange.taken_ms, deadlines.write);
    }
    let waits_since = match &exchange.incoming {
        None => exchange.is_sent.then_some(exchange.taken_ms),
        Some(incoming) => incoming.waits_since_ms(),
    };
    if found.is_none()
        && let Some(since) = waits_since
    {
        let mut since = since.max(exchange.heard_ms);
        if exchange.is_tunnel {
            since = since.max(exchange.taken_ms);
        }
        let what = "nothing has come from the server";
        found = check("ReadTimeout", what, since, deadlines.read);
    }
    found
}

/// The fields that follow a request's content.
pub(crate) fn trailers_of(py: Python<'_>, call: &HttpCall, mut trailers: Pairs) -> Pairs {
    if !trailers.is_empty() && call.inbound.is_some() {
        let asked = &call.asked;
        let seen = asked.with_fields(py, |head| onward_trailers(&mut trailers, head));
        if seen.is_err() {
            trailers.clear();
        }
    }
    trailers
}
