//! One connection to a server: the requests under way on it, and where its bytes go.
//!
//! Its half of the protocol is a [`Wire`], behind a lock; what comes of it is told when the lock is not held.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use citius_base::sync::lock;
use citius_base::upstream::{CLOSED, Carrier, Protocol, TlsArguments, Upstream};
use citius_http::Status;
use citius_reactor::{ResponseAction, StreamCommand, coarse_ms};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::call::{Body, CallConnection, HttpCall};
use super::errors::Failure;
use super::forward::interim_fields;
use super::origin::HttpOrigin;
use super::pool::{HttpPool, Spoken};
use super::reply::{HttpReply, Incoming, Response};
use super::upload::HttpUpload;
use super::wire::exchange::{CONTINUE_MS, DROPPING_MS, overdue};
use super::wire::{Exchange, H2, Outcomes, Wire};

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

    fn origin_text(&self) -> &Arc<str> {
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
        it.set_connection(Some(Box::new(slf.clone().unbind())));
        if let Body::Upload(upload) = &it.body {
            upload.get().set_connection(Arc::new(slf.clone().unbind()));
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
        let (py, this) = (slf.py(), slf.get());
        let call = response.call.clone_ref(py);
        let reply = HttpReply::new(py, response, (&this.remote, this.origin_text()), || {
            (
                Box::new(slf.clone().unbind()),
                Box::new(this.pool.clone_ref(py)),
            )
        });
        let reply = Py::new(py, reply);
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
    fn abandon(slf: &Bound<'_, Self>, call: &Bound<'_, HttpCall>) {
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
    fn leave(slf: &Bound<'_, Self>, incoming: &Arc<Incoming>) {
        let is_it = |it: &Exchange| {
            let own = it.incoming.as_ref();
            own.is_some_and(|own| Arc::ptr_eq(own, incoming))
        };
        let failure = Failure::new("ReadError", "the response was not read");
        Self::give_up(slf, is_it, &failure);
    }

    /// An upload cannot be completed.
    fn fail_upload(slf: &Bound<'_, Self>, upload: &HttpUpload, failure: &Failure) {
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

    /// A reader has taken content.
    fn note_read(&self, py: Python<'_>, incoming: &Arc<Incoming>, bytes: usize, reopens: bool) {
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
    fn note_reader(&self, py: Python<'_>, incoming: &Arc<Incoming>, now_ms: u64) {
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

impl CallConnection for Py<HttpConnection> {
    fn abandon(&self, call: &Bound<'_, HttpCall>) {
        HttpConnection::abandon(self.bind(call.py()), call);
    }

    fn leave(&self, py: Python<'_>, incoming: &Arc<Incoming>) {
        HttpConnection::leave(self.bind(py), incoming);
    }

    fn note_read(&self, py: Python<'_>, incoming: &Arc<Incoming>, bytes: usize, reopens: bool) {
        self.get().note_read(py, incoming, bytes, reopens);
    }

    fn note_reader(&self, py: Python<'_>, incoming: &Arc<Incoming>, now_ms: u64) {
        self.get().note_reader(py, incoming, now_ms);
    }

    fn note_upload(&self, py: Python<'_>) {
        self.get().upstream.note_unsent(py);
    }

    fn fail_upload(&self, py: Python<'_>, upload: &HttpUpload, failure: &Failure) {
        HttpConnection::fail_upload(self.bind(py), upload, failure);
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self)
    }
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
