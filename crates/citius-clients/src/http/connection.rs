//! One connection to a server: the requests under way on it, and where its bytes go.
//!
//! [`H1`] is its half of the protocol, behind a lock; [`HttpConnection`] tells what comes of it when the lock is not held.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use citius_base::passing::Inbound;
use citius_base::progress::Sleeper;
use citius_base::sync::lock;
use citius_base::upstream::{CLOSED, Carrier, Protocol, TlsArguments, Upstream};
use citius_h1::client::{
    Asked, Connection, Content, Event, Fault, Limits, ResponseHead, encode_chunk, encode_last_chunk,
};
use citius_http::{Fields, Status};
use citius_reactor::{Inbox, ResponseAction, StreamCommand, coarse_ms};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::call::{Body, HttpCall};
use super::errors::Failure;
use super::forward::{interim_fields, onward_trailers};
use super::head::{Collected, Head, Pairs};
use super::origin::HttpOrigin;
use super::pool::{HttpPool, Spoken};
use super::reply::Incoming;
use super::reply::{HttpReply, Response};
use super::request::{RequestParts, encode_h1, expects_continue, refused_h2};
use super::upload::{HttpUpload, Part};

/// A connection to a server.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct HttpConnection {
    pool: Py<HttpPool>,
    origin: Py<HttpOrigin>,
    /// The number of its lane.
    lane: u32,
    /// The address of the server.
    remote: Arc<str>,
    upstream: Upstream,
    wire: Mutex<Wire>,
    /// It takes requests.
    is_open: AtomicBool,
    is_closed: AtomicBool,
}

impl HttpConnection {
    /// Takes a place among the requests that it may have at once; `false`: there is none.
    pub(crate) fn reserve(&self) -> bool {
        match &mut *lock(&self.wire) {
            Wire::Single(_) => false,
            Wire::Shared(h2) => !self.is_closed.load(Ordering::Relaxed) && h2.reserve(),
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        matches!(*lock(&self.wire), Wire::Shared(_))
    }

    /// Whether the server takes no request on it now, and may take some later.
    pub(crate) fn admits_none(&self) -> bool {
        match &*lock(&self.wire) {
            Wire::Single(_) => false,
            Wire::Shared(h2) => h2.connection.admits_none(),
        }
    }

    /// Since when a connection that many share has no request, and could be closed.
    pub(crate) fn shared_idle_since_ms(&self) -> Option<u64> {
        match &*lock(&self.wire) {
            Wire::Single(_) => None,
            Wire::Shared(h2) => h2.idle_since_ms(),
        }
    }

    pub(crate) fn remote(&self) -> &Arc<str> {
        &self.remote
    }

    pub(crate) fn origin_text(&self) -> &Arc<str> {
        &self.origin.get().text
    }

    pub(crate) fn lane(&self) -> u32 {
        self.lane
    }

    /// Begins a request; gives the call back if the connection is not free.
    pub(crate) fn assign(slf: &Bound<'_, Self>, call: Py<HttpCall>) -> Result<(), Py<HttpCall>> {
        let (py, this) = (slf.py(), slf.get());
        let begun = {
            let mut wire = lock(&this.wire);
            let is_closed = this.is_closed.load(Ordering::Relaxed);
            match &mut *wire {
                Wire::Single(h1) if is_closed || !h1.is_idle() => return Err(call),
                Wire::Single(h1) => h1.begin(py, &call, this.origin.get()),
                Wire::Shared(h2) => {
                    h2.reserved = h2.reserved.saturating_sub(1);
                    if is_closed || h2.connection.room() == 0 {
                        return Err(call);
                    }
                    h2.begin(py, &call, this.origin.get())
                }
            }
        };
        let expects = match begun {
            Ok(expects) => expects,
            Err(error) => {
                HttpPool::freed(this.pool.bind(py), slf);
                let error = unsendable(py, error, this.origin_text());
                call.get().finish(py, Err(error), false);
                return Ok(());
            }
        };
        let it = call.get();
        it.set_connection(Some(slf.clone().unbind()));
        if let Body::Upload(upload) = &it.body {
            upload.get().set_connection(slf.clone().unbind());
        }
        this.upstream.note_unsent(py);
        let now = coarse_ms();
        let deadlines = it.deadlines;
        let waits = expects.then_some(CONTINUE_MS);
        let first = [deadlines.read, deadlines.write, waits]
            .into_iter()
            .flatten()
            .min();
        let due = first.map_or(u64::MAX, |ms| now.saturating_add(ms));
        this.pool.get().note_due(py, due.min(it.total_due_ms()));
        // It may have been given up meanwhile; a response that has come meanwhile may be read still.
        if it.is_given_up() {
            Self::abandon(slf, call.bind(py));
        }
        Ok(())
    }

    /// Tells what has come, without a lock held.
    fn deliver(slf: &Bound<'_, Self>, mut out: Outcomes, may_step: bool) {
        let (py, this) = (slf.py(), slf.get());
        if out.has_output {
            this.upstream.note_unsent(py);
        }
        for upload in out.uploads.drain(..) {
            upload.get().close(py);
        }
        for (inbound, status, pairs) in out.informed.drain(..) {
            if let Some(status) = Status::new(status) {
                let fields = interim_fields(&pairs);
                let action = ResponseAction::Inform { status, fields };
                inbound.post(py, StreamCommand::Act(action));
            }
        }
        // First, so that a request that follows from a response finds the connection free.
        if let Some(failure) = out.ends.take() {
            Self::end_by(slf, &failure, true);
        } else if out.is_free {
            HttpPool::freed(this.pool.bind(py), slf);
        }
        for sleeper in out.sleepers {
            sleeper.wake(py, may_step);
        }
        drop(out.dropped);
        for (exchange, failure, may_repeat) in out.failed {
            Self::end_exchange(slf, exchange, may_repeat, &failure);
        }
        for response in out.responses {
            Self::reply(slf, response, may_step);
        }
    }

    fn reply(slf: &Bound<'_, Self>, response: Response, may_step: bool) {
        let py = slf.py();
        let call = response.call.clone_ref(py);
        let reply = Py::new(py, HttpReply::new(slf, response));
        let result = reply.map(Py::into_any);
        if call.get().is_over()
            && let Ok(reply) = &result
            && let Ok(reply) = reply.bind(py).cast::<HttpReply>()
        {
            // Given up at the same moment.
            reply.get().leave(py);
            return;
        }
        call.get().finish(py, result, may_step);
    }

    /// Ends the connection, and what is under way on it.
    pub(crate) fn end(slf: &Bound<'_, Self>, failure: &Failure) {
        Self::end_by(slf, failure, false);
    }

    /// The same. If the peer has ended it, a request of which nothing has left, or that may be repeated, goes to another one.
    fn end_by(slf: &Bound<'_, Self>, failure: &Failure, by_peer: bool) {
        let (py, this) = (slf.py(), slf.get());
        if this.is_closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let exchanges: Vec<(Exchange, bool)> = match &mut *lock(&this.wire) {
            Wire::Single(h1) => {
                let is_untouched = h1.is_untouched();
                let exchange = h1.exchange.take();
                exchange.into_iter().map(|it| (it, is_untouched)).collect()
            }
            Wire::Shared(h2) => {
                let all = h2.exchanges.drain().map(|(_, it)| it);
                all.map(|it| {
                    let is_untouched = it.is_unheard();
                    (it, is_untouched)
                })
                .collect()
            }
        };
        let pool = this.pool.bind(py);
        this.upstream.tell(py, "closed", ());
        if !this.is_open.load(Ordering::Relaxed) {
            return HttpPool::not_opened(pool, this.lane, failure);
        }
        HttpPool::closed(pool, this.lane, slf.as_unbound());
        for (exchange, is_untouched) in exchanges {
            // A server that ends a connection which was made for a request has ended it because of the request.
            let may_repeat = by_peer && (!exchange.is_taken || is_untouched && exchange.was_kept);
            Self::end_exchange(slf, exchange, may_repeat, failure);
        }
        HttpPool::pump(pool);
    }

    fn end_exchange(
        slf: &Bound<'_, Self>,
        exchange: Exchange,
        may_repeat: bool,
        failure: &Failure,
    ) {
        let (py, this) = (slf.py(), slf.get());
        if exchange.dropped_bytes_left.is_some() {
            return;
        }
        let call = exchange.call.get();
        if let Some(incoming) = exchange.incoming {
            if let Some(upload) = &exchange.upload {
                upload.get().close(py);
            }
            if let Some(sleeper) = incoming.fail(failure.clone()) {
                sleeper.wake(py, false);
            }
            return;
        }
        let is_allowed = !exchange.is_taken || call.is_idempotent(py);
        if may_repeat
            && is_allowed
            && call.is_repeatable()
            && call.may_be_tried()
            && !call.is_over()
        {
            call.set_connection(None);
            return HttpPool::again(this.pool.bind(py), &exchange.call);
        }
        let after_ms = coarse_ms().saturating_sub(call.started_ms());
        call.fail(py, &failure.clone().after(after_ms));
    }

    /// No code waits for a call any more.
    pub(crate) fn abandon(slf: &Bound<'_, Self>, call: &Bound<'_, HttpCall>) {
        let (py, this) = (slf.py(), slf.get());
        let is_here = |it: &Exchange| it.call.is(call);
        let (unsent, goes_on) = {
            let mut wire = lock(&this.wire);
            match &mut *wire {
                Wire::Single(h1) => {
                    if !h1.exchange.as_ref().is_some_and(is_here) {
                        return;
                    }
                    let unsent = h1.take_back();
                    let goes_on = unsent.is_some() || h1.drop_response();
                    (unsent, goes_on)
                }
                Wire::Shared(h2) => {
                    let given_up = h2.give_up(is_here);
                    if given_up.is_none() {
                        return;
                    }
                    (given_up, true)
                }
            }
        };
        this.upstream.note_unsent(py);
        if unsent.is_some() {
            HttpPool::freed(this.pool.bind(py), slf);
        } else if goes_on {
            this.pool.get().note_due(py, coarse_ms() + DROPPING_MS);
        } else {
            Self::end(slf, &Failure::new("ReadError", "the request was given up"));
        }
    }

    /// No code reads a response any more.
    pub(crate) fn leave(slf: &Bound<'_, Self>, incoming: &Arc<Incoming>) {
        let is_it = |it: &Exchange| {
            let own = it.incoming.as_ref();
            own.is_some_and(|own| Arc::ptr_eq(own, incoming))
        };
        let failure = Failure::new("ReadError", "the response was not read");
        Self::give_up(slf, is_it, &failure);
    }

    /// An upload cannot be completed.
    pub(crate) fn fail_upload(slf: &Bound<'_, Self>, upload: &HttpUpload, failure: &Failure) {
        let is_it = |it: &Exchange| {
            let own = it.upload.as_ref();
            own.is_some_and(|own| std::ptr::eq(own.get(), upload))
        };
        Self::give_up(slf, is_it, failure);
    }

    /// Ends an exchange, and the connection if it is for one at a time.
    fn give_up(slf: &Bound<'_, Self>, is_it: impl Fn(&Exchange) -> bool, failure: &Failure) {
        let this = slf.get();
        let (ends, given_up) = {
            let mut wire = lock(&this.wire);
            match &mut *wire {
                Wire::Single(h1) => (h1.exchange.as_ref().is_some_and(is_it), None),
                Wire::Shared(h2) => (false, h2.give_up(is_it)),
            }
        };
        if ends {
            return Self::end(slf, failure);
        }
        if let Some(exchange) = given_up {
            this.upstream.note_unsent(slf.py());
            Self::end_exchange(slf, exchange, false, failure);
            HttpPool::freed(this.pool.bind(slf.py()), slf);
        }
    }

    /// An upload has something to send.
    pub(crate) fn note_upload(&self, py: Python<'_>) {
        self.upstream.note_unsent(py);
    }

    /// A reader has taken content.
    pub(crate) fn note_read(
        &self,
        py: Python<'_>,
        incoming: &Arc<Incoming>,
        bytes: usize,
        reopens: bool,
    ) {
        let has_news = match &mut *lock(&self.wire) {
            Wire::Single(_) => reopens,
            Wire::Shared(h2) => {
                let mut exchanges = h2.exchanges.iter();
                let found = exchanges.find(|(_, it)| {
                    let own = it.incoming.as_ref();
                    own.is_some_and(|own| Arc::ptr_eq(own, incoming))
                });
                if let Some((&id, _)) = found {
                    h2.connection
                        .consumed(id, bytes, &h2.limits, &mut h2.output);
                }
                !h2.output.is_empty()
            }
        };
        if has_news {
            self.upstream.note_unsent(py);
        }
    }

    /// A reader waits for content.
    pub(crate) fn note_reader(&self, py: Python<'_>, incoming: &Arc<Incoming>, now_ms: u64) {
        let read_ms = {
            let wire = lock(&self.wire);
            let is_its = |it: &&Exchange| {
                let own = it.incoming.as_ref();
                own.is_some_and(|own| Arc::ptr_eq(own, incoming))
            };
            let exchange = wire.exchanges().find(is_its);
            exchange.and_then(|it| it.call.get().deadlines.read)
        };
        if let Some(read_ms) = read_ms {
            let pool = self.pool.get();
            pool.note_due(py, now_ms.saturating_add(read_ms));
        }
    }

    /// Ends what takes too long; says when to look again.
    pub(crate) fn expire(slf: &Bound<'_, Self>, keepalive_ms: u64, now_ms: u64, next_ms: &mut u64) {
        let (py, this) = (slf.py(), slf.get());
        let mut out = Outcomes::default();
        let mut is_sent_now = false;
        let failure = match &mut *lock(&this.wire) {
            Wire::Single(h1) => {
                let until = h1.exchange.as_ref().and_then(|it| it.continue_until_ms);
                is_sent_now = until.is_some_and(|until| until <= now_ms) && h1.send_held(py);
                let has_output = h1.has_output();
                let exchange = h1.exchange.as_ref().filter(|_| !is_sent_now);
                exchange.and_then(|it| overdue(it, has_output, now_ms, next_ms))
            }
            Wire::Shared(h2) => {
                h2.expire(py, keepalive_ms, now_ms, next_ms, &mut out);
                out.ends.take()
            }
        };
        out.has_output |= is_sent_now;
        if let Some(failure) = failure {
            Self::end(slf, &failure);
        } else {
            out.is_free = !out.failed.is_empty();
            Self::deliver(slf, out, false);
        }
    }
}

/// The exception for a request that cannot be sent as it is. It is made here, where no lock is held.
#[cold]
fn unsendable(py: Python<'_>, error: PyErr, origin: &str) -> PyErr {
    if !error.is_instance_of::<PyValueError>(py) {
        return error;
    }
    Failure::new("LocalProtocolError", error.value(py).to_string()).error(py, origin)
}

/// How long a tunnel that one side has ended may be silent, if the route has no time limit for reading.
const ENDING_MS: u64 = 30_000;

/// How long the rest of a response may take whose call was given up.
const DROPPING_MS: u64 = 1000;

/// What of an exchange has taken too long; otherwise when it will have.
fn overdue(
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

impl Protocol for HttpConnection {
    fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    #[inline]
    fn received(slf: &Bound<'_, Self>, plaintext: &[u8], may_step: bool) {
        let (py, this) = (slf.py(), slf.get());
        if this.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let mut out = Outcomes::default();
        let limits = &this.pool.get().limits;
        match &mut *lock(&this.wire) {
            Wire::Single(h1) => h1.receive(py, plaintext, limits, &mut out),
            Wire::Shared(h2) => h2.receive(py, plaintext, limits.body_bytes_max, &mut out),
        }
        Self::deliver(slf, out, may_step);
    }

    fn handshaken(slf: &Bound<'_, Self>, protocol: Option<Vec<u8>>) {
        let is_shared = protocol.as_deref() == Some(b"h2");
        Self::open(
            slf,
            if is_shared {
                Spoken::Shared
            } else {
                Spoken::Single
            },
        );
    }

    fn finished(slf: &Bound<'_, Self>) -> bool {
        let (py, this) = (slf.py(), slf.get());
        if this.is_closed.load(Ordering::Relaxed) {
            return false;
        }
        let mut out = Outcomes::default();
        let ending_ms = match &mut *lock(&this.wire) {
            Wire::Single(h1) => h1.end_tunnel_output(&mut out),
            Wire::Shared(_) => None,
        };
        let Some(ending_ms) = ending_ms else {
            return false;
        };
        let pool = this.pool.get();
        pool.note_due(py, coarse_ms().saturating_add(ending_ms));
        Self::deliver(slf, out, false);
        true
    }

    fn ended(slf: &Bound<'_, Self>, why: &str) {
        let this = slf.get();
        if this.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let mut out = Outcomes::default();
        // Content that ends with the connection is complete unless the end is an error of the connection (RFC 9112 §8).
        let is_cut = why != CLOSED || this.upstream.is_cut();
        let ended = match &mut *lock(&this.wire) {
            Wire::Single(h1) => h1.receive_eof(is_cut, &mut out),
            Wire::Shared(_) => Ok(()),
        };
        let is_open = this.is_open.load(Ordering::Relaxed);
        let failure = match ended {
            _ if !is_open && this.origin.get().key.is_tls => {
                Failure::new("TlsError", format!("the TLS handshake was ended: {why}"))
            }
            Err(fault) if why == CLOSED => Failure::of_h1(fault, 0),
            Err(fault) => Failure::new("ReadError", why).with_reason(fault.name()),
            Ok(()) if why == CLOSED => Failure::end(why),
            Ok(()) => Failure::new("ReadError", why),
        };
        out.ends = Some(failure);
        out.is_free = false;
        Self::deliver(slf, out, false);
    }

    fn tls_failed(slf: &Bound<'_, Self>, why: String) {
        Self::end(slf, &Failure::new("TlsError", why));
    }

    fn take_output(&self, py: Python<'_>, take: impl FnOnce(&[u8])) {
        match &mut *lock(&self.wire) {
            Wire::Single(h1) => h1.take_output(py, take),
            Wire::Shared(h2) => h2.take_output(py, take),
        }
    }

    fn output_taken(&self, py: Python<'_>) {
        let (has_more, uploads) = {
            let wire = lock(&self.wire);
            if let Wire::Single(h1) = &*wire
                && let Some(exchange) = h1.exchange.as_ref().filter(|it| it.has_sent_all)
            {
                let due = coarse_ms().saturating_add(exchange.ending_ms());
                self.pool.get().note_due(py, due);
            }
            let taking = wire.exchanges().filter(|it| it.continue_until_ms.is_none());
            let uploads = taking.filter_map(|it| it.upload.as_ref());
            let uploads: Vec<_> = uploads.map(|it| it.clone_ref(py)).collect();
            (wire.has_output(), uploads)
        };
        if has_more {
            self.upstream.note_unsent(py);
        }
        for upload in uploads {
            upload.get().wake(py);
        }
    }

    fn has_output(&self) -> bool {
        lock(&self.wire).has_output()
    }

    fn has_sent_all(&self) -> bool {
        match &*lock(&self.wire) {
            Wire::Single(h1) => h1.has_sent_all(),
            Wire::Shared(_) => false,
        }
    }

    fn looks_first(&self) -> bool {
        match &*lock(&self.wire) {
            Wire::Single(h1) => h1.looks_first(),
            Wire::Shared(h2) => h2.exchanges.values().all(|it| !it.is_taken),
        }
    }

    fn wants_input(&self) -> bool {
        match &*lock(&self.wire) {
            Wire::Single(h1) => {
                let exchange = h1.exchange.as_ref();
                exchange.is_none_or(|it| !it.is_full() && !it.has_heard_all)
            }
            Wire::Shared(_) => true,
        }
    }
}

impl HttpConnection {
    fn open(slf: &Bound<'_, Self>, spoken: Spoken) {
        let (py, this) = (slf.py(), slf.get());
        if this.is_closed.load(Ordering::Relaxed) || this.is_open.swap(true, Ordering::Relaxed) {
            return;
        }
        if spoken == Spoken::Shared {
            let before =
                std::mem::replace(&mut *lock(&this.wire), Wire::Shared(Box::new(H2::new())));
            drop(before);
            this.upstream.note_unsent(py);
        }
        this.upstream.tell(py, "open", ());
        HttpPool::opened(this.pool.bind(py), this.lane, slf, spoken);
        // The call for which it was made may have had another connection meanwhile.
        lock(&this.wire).note_opened();
    }
}

#[pymethods]
impl HttpConnection {
    #[new]
    #[pyo3(signature = (pool, origin, lane, listener, wake, *, remote, tls = None))]
    fn new(
        pool: Py<HttpPool>,
        origin: Py<HttpOrigin>,
        lane: u32,
        listener: Py<PyAny>,
        wake: Py<PyAny>,
        remote: &str,
        tls: Option<TlsArguments<'_>>,
    ) -> PyResult<Self> {
        Ok(Self {
            pool,
            origin,
            lane,
            remote: remote.into(),
            upstream: Upstream::new(listener, wake, tls)?,
            wire: Mutex::default(),
            is_open: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Takes requests from now on; one that is secured does when its handshake is done.
    #[pyo3(name = "open", signature = (is_shared = false))]
    fn open_now(slf: &Bound<'_, Self>, is_shared: bool) {
        Self::open(
            slf,
            if is_shared {
                Spoken::Shared
            } else {
                Spoken::Single
            },
        );
    }

    /// Bytes have come, on the carrier's own thread and within no task's step.
    #[pyo3(name = "receive")]
    fn receive_now(slf: &Bound<'_, Self>, data: &[u8]) {
        Upstream::receive(slf, data, true);
    }

    /// The connection has ended.
    #[pyo3(name = "end")]
    fn end_now(slf: &Bound<'_, Self>, why: &str) {
        <Self as Protocol>::ended(slf, why);
    }

    /// Ends it for a reason that has a class.
    fn fail(slf: &Bound<'_, Self>, class: &str, message: String) {
        Self::end(slf, &Failure::named(class, message, None));
    }

    /// What is to be sent.
    #[pyo3(name = "take_output")]
    fn take_output_now<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        Upstream::take_output(py, self, &mut bytes);
        PyBytes::new(py, &bytes)
    }

    /// Whether what has come is to be read before something is sent.
    #[getter(looks_first)]
    fn looks_first_now(&self) -> bool {
        Protocol::looks_first(self)
    }

    /// Whether all was handed over, and nothing will follow: the sending side is to be ended.
    #[getter(has_sent_all)]
    fn has_sent_all_now(&self) -> bool {
        Protocol::has_sent_all(self)
    }

    /// The server sends no more; whether something may still go to it. Otherwise the connection has ended.
    #[pyo3(name = "finish")]
    fn finish_now(slf: &Bound<'_, Self>) -> bool {
        <Self as Protocol>::finished(slf)
    }

    /// Whether more bytes are wanted now.
    #[getter(wants_input)]
    fn wants_input_now(&self) -> bool {
        Protocol::wants_input(self)
    }

    /// Has a reactor carry the bytes.
    fn attach(slf: &Bound<'_, Self>, reactor: &Bound<'_, Carrier>, fd: i32) -> PyResult<()> {
        Upstream::attach(slf, reactor, fd)
    }

    /// Has Python carry the bytes again: `wake` is called when there is something to send.
    fn detach(slf: &Bound<'_, Self>, reactor: &Bound<'_, Carrier>, wake: Py<PyAny>) {
        Upstream::detach(slf, reactor, wake);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)?;
        if let Ok(wire) = self.wire.try_lock() {
            for exchange in wire.exchanges() {
                visit.call(&exchange.call)?;
                visit.call(&exchange.upload)?;
            }
        }
        self.upstream.traverse(&visit)
    }
}

/// A request under way.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one exchange"
)]
struct Exchange {
    call: Py<HttpCall>,
    upload: Option<Py<HttpUpload>>,
    /// Content that is sent when the server says that it wants it.
    held_body: Option<Py<PyBytes>>,
    /// Until then, or until this time.
    continue_until_ms: Option<u64>,
    /// The connection has had another request before.
    is_reused: bool,
    /// The connection has had another request before, or waited for its first: the server may have closed it at the moment
    /// at which this one was sent, and would have closed it without.
    was_kept: bool,
    /// Its first byte has left.
    is_taken: bool,
    /// All of it has been taken by the carrier.
    is_sent: bool,
    begun_ms: u64,
    /// When the carrier has last taken something of it.
    taken_ms: u64,
    /// When something of the response has come last.
    heard_ms: u64,
    head: Option<Head>,
    informational: Vec<(u16, Pairs)>,
    body: Collected,
    /// The reader of a response whose head has been handed over.
    incoming: Option<Arc<Incoming>>,
    /// All that comes belongs to another protocol.
    is_tunnel: bool,
    /// All that goes into the tunnel was handed over.
    has_sent_all: bool,
    /// The server sends no more, and what goes into the tunnel still goes to it.
    has_heard_all: bool,
    /// Its call was given up: what comes is dropped, at most so many bytes.
    dropped_bytes_left: Option<u64>,
    /// Bytes of a body that were sent, and those of a response that have come, over HTTP/2.
    sent_bytes: usize,
    got_bytes: u64,
}

impl Exchange {
    fn new(call: Py<HttpCall>, now_ms: u64) -> Self {
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
    fn stream(&mut self, py: Python<'_>, head: Head, out: &mut Outcomes) {
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
    fn complete(mut self, trailers: Pairs, out: &mut Outcomes) {
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
    fn inform(&mut self, status: u16, fields: Pairs, out: &mut Outcomes) {
        match &self.call.get().inbound {
            Some(inbound) => out.informed.push((inbound.clone(), status, fields)),
            None => self.informational.push((status, fields)),
        }
    }

    /// Whether no response has come but interim ones.
    fn is_unheard(&self) -> bool {
        self.head.is_none() && self.incoming.is_none()
    }

    /// So much more of its body has been sent.
    fn note_sent(&mut self, bytes: usize) {
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
    fn ending_ms(&self) -> u64 {
        self.call.get().deadlines.read.unwrap_or(ENDING_MS)
    }

    /// Whether content waits for its reader in such an amount that no more is wanted.
    fn is_full(&self) -> bool {
        self.incoming.as_ref().is_some_and(|it| it.is_full())
    }
}

/// What is to be told when no lock is held any more.
#[derive(Default)]
struct Outcomes {
    responses: Vec<Response>,
    /// Exchanges that are over, whose objects are dropped outside of locks.
    dropped: Vec<Exchange>,
    /// Those that have failed while the connection goes on, and whether they may be repeated.
    failed: Vec<(Exchange, Failure, bool)>,
    sleepers: Vec<Sleeper>,
    /// Informational responses for clients whose requests are passed on.
    informed: Vec<(Inbound, u16, Pairs)>,
    uploads: Vec<Py<HttpUpload>>,
    /// The connection takes another request.
    is_free: bool,
    /// It takes no other request, and is to be closed.
    ends: Option<Failure>,
    /// There is something to be sent.
    has_output: bool,
}

/// How long a server may take to say that it wants content that was announced with `Expect`. Without a word it is sent.
const CONTINUE_MS: u64 = 1000;

/// Content of a response whose call was given up is read up to this size, so that its connection can be used again.
const DROPPED_BYTES_MAX: u64 = 64 * 1024;

/// One connection's half of HTTP/1.1.
#[derive(Default)]
struct H1 {
    parser: Connection,
    asked: Asked,
    inbox: Inbox,
    exchange: Option<Exchange>,
    output: Vec<u8>,
    /// Bytes of it that the carrier has taken.
    n_taken: usize,
    /// Responses that were complete.
    served: u32,
    /// It has had a request, or was open without one.
    was_kept: bool,
}

/// Bytes that the carrier takes at once: it takes more when the socket has taken these.
const PORTION_BYTES: usize = 256 * 1024;

impl H1 {
    fn is_idle(&self) -> bool {
        self.exchange.is_none()
    }

    /// Begins an exchange; whether its content waits for the server's word.
    ///
    /// # Errors
    /// The request cannot be sent as it is.
    fn begin(
        &mut self,
        py: Python<'_>,
        call: &Py<HttpCall>,
        origin: &HttpOrigin,
    ) -> PyResult<bool> {
        let it = call.get();
        let content = match &it.body {
            Body::Nothing => Content::Length(0),
            Body::Bytes(bytes) => Content::Length(bytes.as_bytes(py).len() as u64),
            Body::Upload(_) if it.upgrades() => Content::Length(0),
            Body::Upload(upload) => upload
                .get()
                .length
                .map_or(Content::Chunked, Content::Length),
        };
        let parts = RequestParts {
            asked: &it.asked,
            content,
            upgrades: it.upgrades(),
        };
        let (asked, expects) = encode_h1(py, &parts, origin, &mut self.output)?;
        let now = coarse_ms();
        let mut exchange = Exchange::new(call.clone_ref(py), now);
        exchange.is_reused = self.served > 0;
        exchange.was_kept = self.was_kept;
        self.asked = asked;
        if expects {
            exchange.continue_until_ms = Some(now + CONTINUE_MS);
        }
        match &it.body {
            Body::Nothing => {}
            Body::Bytes(bytes) if expects => exchange.held_body = Some(bytes.clone_ref(py)),
            Body::Bytes(bytes) => self.output.extend_from_slice(bytes.as_bytes(py)),
            Body::Upload(upload) => exchange.upload = Some(upload.clone_ref(py)),
        }
        self.exchange = Some(exchange);
        Ok(expects)
    }

    /// Takes back a request of which nothing has left.
    fn take_back(&mut self) -> Option<Exchange> {
        let unsent = self.exchange.take_if(|it| !it.is_taken);
        if unsent.is_some() {
            self.output.clear();
            self.was_kept = true;
        }
        unsent
    }

    /// Hands over what is to be sent; from then on the response is expected.
    fn take_output(&mut self, py: Python<'_>, take: impl FnOnce(&[u8])) {
        let now = coarse_ms();
        if let Some(exchange) = &mut self.exchange {
            if !exchange.is_taken {
                exchange.is_taken = self.parser.begin(self.asked);
            }
            // What goes into a tunnel is not part of the request.
            let awaits_tunnel = exchange.call.get().upgrades() && !exchange.is_tunnel;
            if exchange.continue_until_ms.is_none() && !awaits_tunnel {
                pull_upload(py, exchange, &mut self.output);
            }
            let is_last = self.output.len() - self.n_taken <= PORTION_BYTES;
            let is_whole = exchange.upload.is_none() || awaits_tunnel;
            exchange.is_sent = is_last && exchange.continue_until_ms.is_none() && is_whole;
            exchange.taken_ms = now;
        }
        let end = self.output.len().min(self.n_taken + PORTION_BYTES);
        take(&self.output[self.n_taken..end]);
        self.n_taken = end;
        if end == self.output.len() {
            self.output.clear();
            self.output.shrink_to(PORTION_BYTES);
            self.n_taken = 0;
        }
    }

    fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether the first of a request is the next thing to be sent. The server may have closed the connection before, also one
    /// that was just made, if this thread was late.
    fn looks_first(&self) -> bool {
        let exchange = self.exchange.as_ref();
        exchange.is_some_and(|it| !it.is_taken)
    }

    /// The server wants the content, or has not said so in time.
    fn send_held(&mut self, py: Python<'_>) -> bool {
        let Some(exchange) = &mut self.exchange else {
            return false;
        };
        if exchange.continue_until_ms.take().is_none() {
            return false;
        }
        if let Some(body) = exchange.held_body.take() {
            self.output.extend_from_slice(body.as_bytes(py));
        }
        true
    }

    /// Takes bytes that have come.
    fn receive(&mut self, py: Python<'_>, bytes: &[u8], limits: &Limits, out: &mut Outcomes) {
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.receive(bytes, |all| {
            let mut input = all;
            self.read(py, &mut input, limits, out);
            input.len()
        });
        self.inbox = inbox;
    }

    fn read(&mut self, py: Python<'_>, input: &mut &[u8], limits: &Limits, out: &mut Outcomes) {
        while out.ends.is_none() {
            match self.exchange.as_mut() {
                Some(exchange) if exchange.is_tunnel => {
                    exchange.heard_ms = coarse_ms();
                    if let Some(incoming) = &exchange.incoming
                        && !input.is_empty()
                    {
                        out.sleepers.extend(incoming.push(std::mem::take(input)));
                    }
                    return;
                }
                // What is dropped has one time for all of it.
                Some(exchange) if exchange.dropped_bytes_left.is_some() => {}
                Some(exchange) if exchange.is_taken => exchange.heard_ms = coarse_ms(),
                // Bytes that belong to no request would be taken for the response to the next one.
                _ if input.is_empty() => return,
                _ => {
                    out.is_free = false;
                    out.ends = Some(Failure::of_h1(Fault::Unasked, 0));
                    return;
                }
            }
            let own;
            let limits = match &self.exchange {
                Some(exchange) if exchange.call.get().is_streamed => {
                    own = Limits {
                        body_bytes_max: u64::MAX,
                        ..limits.clone()
                    };
                    &own
                }
                _ => limits,
            };
            match self.parser.receive(limits, input) {
                Ok(Some(event)) => self.take_event(py, event, out),
                Ok(None) => return,
                Err(fault) => out.ends = Some(Failure::of_h1(fault, limits.body_bytes_max)),
            }
        }
    }

    fn take_event(&mut self, py: Python<'_>, event: Event<'_>, out: &mut Outcomes) {
        match event {
            Event::Interim(head) => self.take_interim(py, &head, out),
            Event::Head(head) => self.take_head(py, head, out),
            Event::Data(data) => self.take_data(py, data, out),
            Event::End(trailers) => self.end(&trailers, out),
            Event::Tunnel(head) => self.take_tunnel(py, head, out),
        }
    }

    fn take_interim(&mut self, py: Python<'_>, head: &ResponseHead, out: &mut Outcomes) {
        if head.status == 100 {
            out.has_output |= self.send_held(py);
            return;
        }
        if let Some(exchange) = &mut self.exchange {
            let fields = head.fields();
            let fields = fields.map(|(name, value)| (name.to_vec(), value.to_vec()));
            exchange.inform(head.status, fields.collect(), out);
        }
    }

    fn take_head(&mut self, py: Python<'_>, head: ResponseHead, out: &mut Outcomes) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        let head = Head::H1(head);
        if exchange.dropped_bytes_left.is_some() || !exchange.call.get().is_streamed {
            exchange.head = Some(head);
            return;
        }
        exchange.stream(py, head, out);
    }

    fn take_tunnel(&mut self, py: Python<'_>, head: ResponseHead, out: &mut Outcomes) {
        if let Some(exchange) = &mut self.exchange {
            exchange.is_tunnel = true;
            exchange.stream(py, Head::H1(head), out);
        }
    }

    fn take_data(&mut self, py: Python<'_>, data: &[u8], out: &mut Outcomes) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        if let Some(left) = &mut exchange.dropped_bytes_left {
            let size = data.len() as u64;
            if size > *left {
                out.ends = Some(Failure::new("ReadError", "the response is not read"));
            }
            *left = left.saturating_sub(size);
        } else if let Some(incoming) = &exchange.incoming {
            out.sleepers.extend(incoming.push(data));
        } else {
            let length = exchange.head.as_ref().and_then(Head::content_length);
            exchange.body.push(py, data, length);
        }
    }

    fn end(&mut self, trailers: &Fields, out: &mut Outcomes) {
        let Some(mut exchange) = self.exchange.take() else {
            return;
        };
        self.served = self.served.saturating_add(1);
        self.was_kept = true;
        let trailers = trailers
            .iter()
            .map(|(name, value)| (name.to_vec(), value.to_vec()));
        let trailers: Pairs = trailers.collect();
        // A server that has answered before it had the whole request may take the rest, or close.
        let is_sent = exchange.is_sent && self.output.is_empty();
        out.uploads.extend(exchange.upload.take());
        if self.parser.is_idle() && is_sent {
            out.is_free = true;
        } else {
            out.ends = Some(Failure::new(
                "ReadError",
                "the server has closed the connection",
            ));
        }
        exchange.complete(trailers, out);
    }

    /// The server sends no more: what was read until the end of the connection is complete.
    fn receive_eof(&mut self, is_cut: bool, out: &mut Outcomes) -> Result<(), Fault> {
        if self.exchange.as_ref().is_some_and(|it| !it.is_taken) {
            return Ok(());
        }
        if let Some(exchange) = self.exchange.as_ref().filter(|it| it.is_tunnel)
            && let Some(incoming) = &exchange.incoming
        {
            out.sleepers.extend(incoming.end(Pairs::new()));
            return Ok(());
        }
        if let Some(Event::End(trailers)) = self.parser.receive_eof()? {
            if is_cut {
                return Err(Fault::BodyTruncated);
            }
            self.end(&trailers, out);
        }
        Ok(())
    }

    /// The server sends no more in a tunnel, and may still be sent to: how long that may be silent. `None`: there is no tunnel.
    fn end_tunnel_output(&mut self, out: &mut Outcomes) -> Option<u64> {
        let exchange = self.exchange.as_mut().filter(|it| it.is_tunnel)?;
        let incoming = exchange.incoming.as_ref()?;
        if !std::mem::replace(&mut exchange.has_heard_all, true) {
            out.sleepers.extend(incoming.end_output());
        }
        Some(exchange.ending_ms())
    }

    /// Whether all that goes into a tunnel was handed over, and nothing will follow.
    fn has_sent_all(&self) -> bool {
        let exchange = self.exchange.as_ref();
        self.output.is_empty() && exchange.is_some_and(|it| it.has_sent_all)
    }

    /// Whether no byte of the response has come.
    fn is_untouched(&self) -> bool {
        self.parser.is_untouched()
    }

    /// Drops what comes for a call that was given up; `false`: the connection is to be closed.
    fn drop_response(&mut self) -> bool {
        let Some(exchange) = &mut self.exchange else {
            return true;
        };
        let length = exchange.head.as_ref().and_then(Head::content_length);
        let is_short = length.is_some_and(|length| length <= DROPPED_BYTES_MAX);
        if exchange.is_sent && exchange.incoming.is_none() && is_short {
            exchange.dropped_bytes_left = Some(DROPPED_BYTES_MAX);
            exchange.heard_ms = coarse_ms();
        }
        exchange.dropped_bytes_left.is_some()
    }
}

/// The fields that follow a request's content.
fn trailers_of(py: Python<'_>, call: &HttpCall, mut trailers: Pairs) -> Pairs {
    if !trailers.is_empty() && call.inbound.is_some() {
        let asked = &call.asked;
        let seen = asked.with_fields(py, |head| onward_trailers(&mut trailers, head));
        if seen.is_err() {
            trailers.clear();
        }
    }
    trailers
}

/// Moves what an upload has to the output.
fn pull_upload(py: Python<'_>, exchange: &mut Exchange, output: &mut Vec<u8>) {
    let Some(upload) = &exchange.upload else {
        return;
    };
    let it = upload.get();
    let is_chunked = it.length.is_none() && !exchange.is_tunnel;
    let part = it.take(|data| {
        if is_chunked {
            encode_chunk(data, output);
        } else {
            output.extend_from_slice(data);
        }
    });
    if let Part::Last(trailers) = part {
        if is_chunked {
            let trailers = trailers_of(py, exchange.call.get(), trailers);
            let fields = trailers.iter();
            let fields = fields.map(|(name, value)| (name.as_slice(), value.as_slice()));
            // They were checked when they were given.
            let _ = encode_last_chunk(fields, output);
        }
        exchange.has_sent_all = exchange.is_tunnel;
        exchange.upload = None;
    }
}

/// What a connection speaks.
#[expect(
    clippy::large_enum_variant,
    reason = "most connections speak HTTP/1.1, whose state is there without an allocation"
)]
enum Wire {
    Single(H1),
    Shared(Box<H2>),
}

impl Default for Wire {
    fn default() -> Self {
        Self::Single(H1::default())
    }
}

impl Wire {
    /// The exchanges that are under way.
    fn exchanges(&self) -> Box<dyn Iterator<Item = &Exchange> + '_> {
        match self {
            Self::Single(h1) => Box::new(h1.exchange.iter()),
            Self::Shared(h2) => Box::new(h2.exchanges.values()),
        }
    }

    fn has_output(&self) -> bool {
        match self {
            Self::Single(h1) => h1.has_output(),
            Self::Shared(h2) => !h2.output.is_empty(),
        }
    }

    /// It takes requests, and has those that waited for it.
    fn note_opened(&mut self) {
        match self {
            Self::Single(h1) => h1.was_kept |= h1.is_idle(),
            Self::Shared(h2) => h2.was_kept |= h2.exchanges.is_empty(),
        }
    }
}

/// How long a server may take to answer a ping that doubts whether it is there.
const PING_MS: u64 = 2000;

/// How long a connection is kept at least on which the server takes no request at present.
const ADMITS_MS: u64 = 2000;

/// One connection's half of HTTP/2.
struct H2 {
    connection: citius_h2::client::Connection,
    limits: citius_h2::client::Limits,
    inbox: Inbox,
    output: Vec<u8>,
    exchanges: HashMap<u32, Exchange>,
    /// Places that are promised to calls.
    reserved: u32,
    /// Since when there is no exchange.
    idle_since_ms: u64,
    heard_ms: u64,
    /// Until when a ping is to be answered.
    ping_until_ms: Option<u64>,
    served: u32,
    /// As that of [`H1`].
    was_kept: bool,
}

impl H2 {
    fn new() -> Self {
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
    fn idle_since_ms(&self) -> Option<u64> {
        let is_idle = self.exchanges.is_empty() && self.reserved == 0;
        (is_idle && !self.connection.admits_none()).then_some(self.idle_since_ms)
    }

    fn reserve(&mut self) -> bool {
        let has_room = self.connection.room() > self.reserved;
        self.reserved += u32::from(has_room);
        has_room
    }

    fn begin(
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

    fn take_output(&mut self, py: Python<'_>, take: impl FnOnce(&[u8])) {
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
    fn receive(&mut self, py: Python<'_>, bytes: &[u8], body_bytes_max: u64, out: &mut Outcomes) {
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
    fn give_up(&mut self, is_it: impl Fn(&Exchange) -> bool) -> Option<Exchange> {
        let found = self.exchanges.iter().find(|(_, it)| is_it(it));
        let id = *found?.0;
        self.connection.reset(id, &mut self.output);
        if self.exchanges.len() == 1 {
            self.idle_since_ms = coarse_ms();
        }
        self.remove(id)
    }

    /// Takes the exchanges that take too long. The connection itself is ended by `out.ends`.
    fn expire(
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
