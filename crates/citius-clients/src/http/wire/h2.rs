//! One connection's half of HTTP/2: exchanges side by side.

use std::collections::HashMap;

use citius_h1::client::Fault;
use citius_reactor::{Inbox, coarse_ms};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::exchange::{CONTINUE_MS, Exchange, Outcomes, PORTION_BYTES, overdue, trailers_of};
use crate::http::call::{Body, HttpCall};
use crate::http::errors::Failure;
use crate::http::head::{Head, Pairs};
use crate::http::origin::HttpOrigin;
use crate::http::request::{expects_continue, refused_h2};
use crate::http::upload::Part;

/// How long a server may take to answer a ping that doubts whether it is there.
pub(crate) const PING_MS: u64 = 2000;

/// How long a connection is kept at least on which the server takes no request at present.
pub(crate) const ADMITS_MS: u64 = 2000;

/// One connection's half of HTTP/2.
pub(crate) struct H2 {
    pub(crate) connection: citius_h2::client::Connection,
    pub(crate) limits: citius_h2::client::Limits,
    inbox: Inbox,
    pub(crate) output: Vec<u8>,
    pub(crate) exchanges: HashMap<u32, Exchange>,
    /// Places that are promised to calls.
    pub(crate) reserved: u32,
    /// Since when there is no exchange.
    idle_since_ms: u64,
    heard_ms: u64,
    /// Until when a ping is to be answered.
    ping_until_ms: Option<u64>,
    served: u32,
    /// As that of [`H1`].
    pub(crate) was_kept: bool,
}

impl H2 {
    pub(crate) fn new() -> Self {
        let limits = citius_h2::client::Limits::DEFAULT;
        let mut output = Vec::new();
        let now = coarse_ms();
        Self {
            connection: citius_h2::client::Connection::new(&limits, &mut output),
            limits,
            inbox: Inbox::default(),
            output,
            exchanges: HashMap::new(),
            reserved: 0,
            idle_since_ms: now,
            heard_ms: now,
            ping_until_ms: None,
            served: 0,
            was_kept: false,
        }
    }

    /// Until when it is kept without an exchange.
    fn idle_until_ms(&self, keepalive_ms: u64) -> u64 {
        let mut kept_ms = keepalive_ms;
        if self.connection.admits_none() {
            // Calls may wait for it: without it they would have the next one made, and the next.
            kept_ms = kept_ms.max(ADMITS_MS);
        }
        self.idle_since_ms.saturating_add(kept_ms)
    }

    /// Since when it has no request. Calls may wait for one that the server takes none on now.
    pub(crate) fn idle_since_ms(&self) -> Option<u64> {
        let is_idle = self.exchanges.is_empty() && self.reserved == 0;
        (is_idle && !self.connection.admits_none()).then_some(self.idle_since_ms)
    }

    pub(crate) fn reserve(&mut self) -> bool {
        let has_room = self.connection.room() > self.reserved;
        self.reserved += u32::from(has_room);
        has_room
    }

    pub(crate) fn begin(
        &mut self,
        py: Python<'_>,
        call: &Py<HttpCall>,
        origin: &HttpOrigin,
    ) -> PyResult<bool> {
        let it = call.get();
        if it.upgrades() {
            return Err(PyValueError::new_err(
                "a WebSocket is passed on over HTTP/1.1: give the client http2=False",
            ));
        }
        let (length, ends) = match &it.body {
            Body::Nothing => (Some(0), true),
            Body::Bytes(bytes) => {
                let size = bytes.as_bytes(py).len();
                (Some(size as u64), size == 0)
            }
            Body::Upload(upload) => (upload.get().length, false),
        };
        let method = it.asked.method(py)?;
        let request = citius_h2::client::Request {
            method: method.as_bytes(),
            scheme: if origin.key.is_tls { b"https" } else { b"http" },
            authority: origin.authority.as_bytes(),
            path: it.asked.target(py)?.as_bytes(),
            content_length: length,
            ends,
        };
        let (id, expects) = it.asked.with_fields(py, |fields| {
            let own = fields.iter().map(|(name, value)| (&**name, &**value));
            let begun = self.connection.begin(&request, own, &mut self.output);
            begun
                .map(|id| (id, !ends && expects_continue(fields)))
                .map_err(|misuse| refused_h2(method, &misuse))
        })??;
        let mut exchange = Exchange::new(call.clone_ref(py), coarse_ms());
        exchange.is_reused = self.served > 0;
        exchange.was_kept = self.was_kept;
        if expects {
            exchange.continue_until_ms = Some(coarse_ms() + CONTINUE_MS);
        }
        match &it.body {
            Body::Bytes(bytes) if !ends => exchange.held_body = Some(bytes.clone_ref(py)),
            Body::Upload(upload) => exchange.upload = Some(upload.clone_ref(py)),
            _ => {}
        }
        self.exchanges.insert(id, exchange);
        self.pump(py);
        Ok(expects)
    }

    /// Sends content as far as windows allow.
    fn pump(&mut self, py: Python<'_>) {
        let Self {
            connection,
            output,
            exchanges,
            ..
        } = self;
        for (&id, exchange) in exchanges {
            if exchange.continue_until_ms.is_some() {
                continue;
            }
            if let Some(body) = &exchange.held_body {
                let rest = body
                    .as_bytes(py)
                    .get(exchange.sent_bytes..)
                    .unwrap_or_default();
                let sent = connection.data(id, rest, true, output);
                exchange.note_sent(sent);
                if !connection.takes_content(id) {
                    exchange.held_body = None;
                }
            }
            if let Some(upload) = &exchange.upload {
                let room = connection.capacity(id);
                let mut sent = 0;
                let part = upload.get().take_most(room, |data| {
                    sent = connection.data(id, data, false, output);
                });
                if sent > 0 {
                    exchange.taken_ms = coarse_ms();
                }
                if let Part::Last(trailers) = part {
                    let trailers = trailers_of(py, exchange.call.get(), trailers);
                    if trailers.is_empty() {
                        connection.data(id, b"", true, output);
                    } else {
                        let fields = trailers.iter();
                        let fields =
                            fields.map(|(name, value)| (name.as_slice(), value.as_slice()));
                        connection.trailers(id, fields, output);
                    }
                    exchange.upload = None;
                }
            }
        }
    }

    pub(crate) fn take_output(&mut self, py: Python<'_>, take: impl FnOnce(&[u8])) {
        self.pump(py);
        self.connection.output_taken();
        let now = coarse_ms();
        for exchange in self.exchanges.values_mut().filter(|it| !it.is_sent) {
            exchange.is_sent = exchange.held_body.is_none() && exchange.upload.is_none();
            if !exchange.is_taken || exchange.is_sent {
                exchange.taken_ms = now;
            }
            exchange.is_taken = true;
        }
        take(&self.output);
        self.output.clear();
        self.output.shrink_to(PORTION_BYTES);
    }

    /// Takes bytes that have come.
    pub(crate) fn receive(
        &mut self,
        py: Python<'_>,
        bytes: &[u8],
        body_bytes_max: u64,
        out: &mut Outcomes,
    ) {
        self.heard_ms = coarse_ms();
        self.ping_until_ms = None;
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.receive(bytes, |all| {
            let mut input = all;
            while out.ends.is_none() {
                match self
                    .connection
                    .receive(&self.limits, &mut input, &mut self.output)
                {
                    Ok(Some(event)) => self.take_event(py, event, body_bytes_max, out),
                    Ok(None) => break,
                    Err(fault) => out.ends = Some(Failure::of_h2(fault)),
                }
            }
            input.len()
        });
        self.inbox = inbox;
        self.pump(py);
        // The place of a stream that has failed is free, as that of one that has ended.
        out.is_free |= !out.failed.is_empty();
        if self.exchanges.is_empty() {
            self.idle_since_ms = self.heard_ms;
            if self.connection.is_going() {
                out.ends = Some(Failure::new(
                    "ReadError",
                    "the server takes no more requests",
                ));
            }
        }
        out.has_output |= !self.output.is_empty();
    }

    fn take_event(
        &mut self,
        py: Python<'_>,
        event: citius_h2::client::Event<'_>,
        body_bytes_max: u64,
        out: &mut Outcomes,
    ) {
        use citius_h2::client::Event;
        match event {
            Event::Interim(id, status, fields) => {
                if let Some(exchange) = self.exchanges.get_mut(&id) {
                    exchange.heard_ms = self.heard_ms;
                    if status == 100 {
                        exchange.continue_until_ms = None;
                    } else {
                        exchange.inform(status, fields, out);
                    }
                }
            }
            Event::Head(id, status, fields) => {
                self.take_head(py, id, Head::H2 { status, fields }, body_bytes_max, out);
                self.take_end(id, out);
            }
            Event::Data(id, data) => {
                self.take_data(py, id, data, body_bytes_max, out);
                self.take_end(id, out);
            }
            Event::End(id, trailers) => self.end(id, trailers, out),
            Event::Failed(id, fault) => {
                let failure = Failure::of_h2(fault);
                out.failed
                    .extend(self.remove(id).map(|it| (it, failure, false)));
            }
            Event::Reset(id, code, is_unprocessed) => {
                let text = format!("the server has reset the stream with code {code}");
                let failure = Failure::new("RemoteProtocolError", text).with_reason("StreamReset");
                let removed = self.remove(id);
                out.failed.extend(removed.map(|mut it| {
                    // One that was answered in part was processed, whatever the server says.
                    let is_unprocessed = is_unprocessed && it.is_unheard();
                    it.is_taken &= !is_unprocessed;
                    (it, failure, is_unprocessed)
                }));
            }
            Event::Leaving(last) => self.give_back(last, out),
            Event::Room => out.is_free = true,
            Event::Pong => {}
        }
    }

    /// The server takes no more requests, and has done nothing of those behind `last`.
    fn give_back(&mut self, last: u32, out: &mut Outcomes) {
        let late: Vec<u32> = self
            .exchanges
            .keys()
            .copied()
            .filter(|id| *id > last)
            .collect();
        for id in late {
            self.connection.reset(id, &mut self.output);
            let failure = Failure::end("the server takes no more requests");
            out.failed.extend(self.remove(id).map(|mut it| {
                let is_unprocessed = it.is_unheard();
                it.is_taken &= !is_unprocessed;
                (it, failure, is_unprocessed)
            }));
        }
    }

    fn remove(&mut self, id: u32) -> Option<Exchange> {
        self.was_kept = true;
        self.exchanges.remove(&id)
    }

    fn take_head(
        &mut self,
        py: Python<'_>,
        id: u32,
        head: Head,
        body_bytes_max: u64,
        out: &mut Outcomes,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        exchange.heard_ms = self.heard_ms;
        if exchange.call.get().is_streamed {
            exchange.stream(py, head, out);
            return;
        }
        // A length that is announced of content which is not sent is that of another response (RFC 9110 §8.6).
        let is_too_long = head.content_length().is_some_and(|it| it > body_bytes_max)
            && !head.is_not_modified()
            && !exchange.call.get().is_head(py);
        exchange.head = Some(head);
        if is_too_long {
            self.refuse_size(id, body_bytes_max, out);
        }
    }

    fn refuse_size(&mut self, id: u32, body_bytes_max: u64, out: &mut Outcomes) {
        self.connection.reset(id, &mut self.output);
        let failure = Failure::of_h1(Fault::BodyTooLong, body_bytes_max);
        out.failed
            .extend(self.remove(id).map(|it| (it, failure, false)));
    }

    fn take_data(
        &mut self,
        py: Python<'_>,
        id: u32,
        data: &[u8],
        body_bytes_max: u64,
        out: &mut Outcomes,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        exchange.heard_ms = self.heard_ms;
        if let Some(incoming) = &exchange.incoming {
            out.sleepers.extend(incoming.push(data));
            return;
        }
        exchange.got_bytes += data.len() as u64;
        let is_too_long = exchange.got_bytes > body_bytes_max;
        let length = exchange.head.as_ref().and_then(Head::content_length);
        exchange.body.push(py, data, length);
        if is_too_long {
            return self.refuse_size(id, body_bytes_max, out);
        }
        self.connection
            .consumed(id, data.len(), &self.limits, &mut self.output);
    }

    fn take_end(&mut self, id: u32, out: &mut Outcomes) {
        if self.connection.take_end(id) {
            self.end(id, Pairs::new(), out);
        }
    }

    fn end(&mut self, id: u32, trailers: Pairs, out: &mut Outcomes) {
        let Some(mut exchange) = self.remove(id) else {
            return;
        };
        self.served = self.served.saturating_add(1);
        // A server that has answered needs no more of the request.
        self.connection.reset(id, &mut self.output);
        out.uploads.extend(exchange.upload.take());
        out.is_free = true;
        exchange.complete(trailers, out);
    }

    /// Gives up the exchange that `is_it` finds.
    pub(crate) fn give_up(&mut self, is_it: impl Fn(&Exchange) -> bool) -> Option<Exchange> {
        let found = self.exchanges.iter().find(|(_, it)| is_it(it));
        let id = *found?.0;
        self.connection.reset(id, &mut self.output);
        if self.exchanges.len() == 1 {
            self.idle_since_ms = coarse_ms();
        }
        self.remove(id)
    }

    /// Takes the exchanges that take too long. The connection itself is ended by `out.ends`.
    pub(crate) fn expire(
        &mut self,
        py: Python<'_>,
        keepalive_ms: u64,
        now_ms: u64,
        next_ms: &mut u64,
        out: &mut Outcomes,
    ) {
        // One without a request, too: the next one would go to a server that is not there.
        if let Some(until) = self.ping_until_ms {
            if until <= now_ms {
                out.ends = Some(Failure::new(
                    "ReadError",
                    "the server does not answer any more",
                ));
                return;
            }
            *next_ms = (*next_ms).min(until);
        }
        if self.exchanges.is_empty() {
            let due = self.idle_until_ms(keepalive_ms);
            if due <= now_ms && self.reserved == 0 {
                out.ends = Some(Failure::new("ReadError", "it was idle for too long"));
            }
            *next_ms = (*next_ms).min(due.max(now_ms));
            return;
        }
        let mut late = Vec::new();
        for (&id, exchange) in &mut self.exchanges {
            if exchange
                .continue_until_ms
                .is_some_and(|until| until <= now_ms)
            {
                exchange.continue_until_ms = None;
            }
            let has_more = exchange.held_body.is_some();
            if let Some(failure) = overdue(exchange, has_more, now_ms, next_ms) {
                late.push((id, failure));
            }
        }
        for (id, failure) in late {
            self.connection.reset(id, &mut self.output);
            let since_ms = self.heard_ms;
            out.failed.extend(self.remove(id).map(|it| {
                if since_ms <= it.taken_ms && self.ping_until_ms.is_none() {
                    // Nothing has come on the whole connection: it may be dead.
                    citius_h2::client::ping(&mut self.output);
                    self.ping_until_ms = Some(now_ms + PING_MS);
                    *next_ms = (*next_ms).min(now_ms + PING_MS);
                }
                (it, failure, false)
            }));
        }
        self.pump(py);
        out.has_output |= !self.output.is_empty();
    }
}
