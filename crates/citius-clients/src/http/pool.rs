//! The connections of one client: calls in, connections that do them, limits and time limits.
//!
//! One [`Lane`] per origin. A connection that is free goes to the call that has waited longest; without one it is kept. Limits are
//! for each lane and in all; where the limit in all is reached, an idle connection of another lane makes room, and a connection
//! that becomes free does so if another lane has waited for longer.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use citius_base::passing::request_of;
use citius_base::process::Process;
use citius_base::sync::lock;
use citius_h1::client::Limits;
use citius_reactor::coarse_ms;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::call::{CallPool, DeadlineArguments, Deadlines, HttpCall, body_of};
use super::connection::HttpConnection;
use super::errors::Failure;
use super::origin::{HttpOrigin, Key};
use super::request::Asked;
use super::upload::{HttpUpload, body_of_request};

/// Connections to any number of servers.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct HttpPool {
    number: u32,
    /// The loop on which it was opened; `None` where there is none.
    event_loop: Option<Py<PyAny>>,
    /// The thread on which its bytes are carried.
    home: ThreadId,
    process: Process,
    /// Told what is to be done: `(kind, value)`, on any thread.
    listener: Py<PyAny>,
    pub(crate) limits: Limits,
    rules: Rules,
    lanes: Mutex<Lanes>,
    /// When it is to be looked what takes too long.
    next_look_ms: AtomicU64,
}

impl HttpPool {
    /// The loop of the pool, if this is its thread.
    #[inline]
    fn home_loop(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let event_loop = self.event_loop.as_ref()?;
        (std::thread::current().id() == self.home).then(|| event_loop.clone_ref(py))
    }

    /// Whether calls of code on this loop may be started.
    pub(super) fn serves(&self, event_loop: &Py<PyAny>) -> bool {
        let is_its = self.event_loop.as_ref().is_some_and(|it| it.is(event_loop));
        is_its && self.is_of_process() && !self.is_stopped()
    }

    /// Whether it takes no more calls.
    pub(super) fn is_stopped(&self) -> bool {
        lock(&self.lanes).is_closed
    }

    /// Whether both are for code on the same loop.
    pub(super) fn has_loop_of(&self, other: &Self) -> bool {
        match (&self.event_loop, &other.event_loop) {
            (Some(one), Some(other)) => one.is(other),
            _ => false,
        }
    }

    #[inline]
    pub(crate) fn is_of_process(&self) -> bool {
        self.process == Process::current()
    }

    fn tell(&self, py: Python<'_>, kind: &str, value: impl for<'py> IntoPyObject<'py>) {
        let told = value
            .into_py_any(py)
            .and_then(|value| self.listener.call1(py, (kind, value)));
        if let Err(error) = told {
            error.write_unraisable(py, None);
        }
    }

    /// Has Python call [`look`](Self::look) at this time, or before.
    #[inline]
    pub(crate) fn note_due(&self, py: Python<'_>, due_ms: u64) {
        if due_ms < self.next_look_ms.load(Ordering::Relaxed) {
            self.next_look_ms.store(due_ms, Ordering::Relaxed);
            self.tell(py, "look", due_ms.saturating_sub(coarse_ms()));
        }
    }

    /// Takes a call.
    fn submit(slf: &Bound<'_, Self>, call: Py<HttpCall>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let mut call = call;
        loop {
            let (mut stale, now) = (Vec::new(), coarse_ms());
            let waiter = call.clone_ref(py);
            let (number, route) = {
                let mut lanes = lock(&this.lanes);
                let number = lanes.number_of(py, this.number, &call.get().origin);
                let route = lanes.route(py, number, call, now, &this.rules, &mut stale);
                (number, route)
            };
            Self::close_all(py, stale, "it was idle for too long");
            match route {
                Route::To(connection, routed) => {
                    match HttpConnection::assign(connection.bind(py), routed) {
                        Ok(()) => return Ok(()),
                        Err(back) => call = back,
                    }
                }
                Route::Waits => {
                    Self::connect(slf, number);
                    this.note_waiting(py, waiter.get(), now);
                    return Ok(());
                }
                Route::Full(refused) => {
                    let max = this.rules.queue_max;
                    let message = format!("{max} requests wait for a connection already");
                    return Err(Failure::new("PoolTimeout", message)
                        .after(0)
                        .error(py, &refused.get().origin.get().text));
                }
                Route::Closed(refused) => {
                    return Err(Failure::new("ClientClosed", "the client is closed")
                        .error(py, &refused.get().origin.get().text));
                }
            }
        }
    }

    fn note_waiting(&self, py: Python<'_>, call: &HttpCall, now: u64) {
        let limits = [call.deadlines.pool, call.deadlines.connect];
        let first = limits.into_iter().flatten().min();
        let due = first.map_or(u64::MAX, |ms| now.saturating_add(ms));
        self.note_due(py, due.min(call.total_due_ms()));
    }

    /// Has connections made for the calls of a lane that wait.
    fn connect(slf: &Bound<'_, Self>, number: u32) {
        let (py, this) = (slf.py(), slf.get());
        let mut stale = Vec::new();
        let (wanted, origin, timeout_ms) = {
            let mut lanes = lock(&this.lanes);
            let wanted = lanes.plan(number, &this.rules, &mut stale);
            let Some(lane) = lanes.table.get(&number) else {
                return;
            };
            let last = lane.waiting.back();
            let timeout_ms = last.and_then(|call| call.get().deadlines.connect);
            (wanted, lane.origin.clone_ref(py), timeout_ms)
        };
        Self::close_all(py, stale, "its place was needed");
        for _ in 0..wanted {
            this.tell(py, "connect", (number, origin.clone_ref(py), timeout_ms));
        }
    }

    fn close_all(py: Python<'_>, connections: Vec<Py<HttpConnection>>, why: &str) {
        for connection in connections {
            HttpConnection::end(connection.bind(py), &Failure::new("ReadError", why));
        }
    }

    /// Has connections made wherever calls wait: first where one has waited longest. If the lane that has closed a connection
    /// for another one came first, it would take the place itself, and close it again, until the other one's calls are late.
    pub(crate) fn pump(slf: &Bound<'_, Self>) {
        let starved = lock(&slf.get().lanes).starved();
        for number in starved {
            Self::connect(slf, number);
        }
    }

    /// A connection takes requests.
    pub(crate) fn opened(
        slf: &Bound<'_, Self>,
        number: u32,
        connection: &Bound<'_, HttpConnection>,
        spoken: Spoken,
    ) {
        let is_closed = {
            let mut lanes = lock(&slf.get().lanes);
            lanes.opened(number, connection.clone().unbind(), spoken);
            lanes.is_closed
        };
        if is_closed {
            return HttpConnection::end(connection, &Failure::new("ClientClosed", "closed"));
        }
        Self::freed(slf, connection);
        // Those that waited until it was known what is spoken.
        Self::connect(slf, number);
    }

    /// A connection that was being made is not to be had.
    pub(crate) fn not_opened(slf: &Bound<'_, Self>, number: u32, failure: &Failure) {
        let py = slf.py();
        let failed = lock(&slf.get().lanes).not_opened(number, failure.is_connect_timeout());
        if let Some(call) = failed {
            let after_ms = coarse_ms().saturating_sub(call.get().started_ms());
            call.get().fail(py, &failure.clone().after(after_ms));
        }
        Self::pump(slf);
    }

    /// A connection takes another request.
    pub(crate) fn freed(slf: &Bound<'_, Self>, connection: &Bound<'_, HttpConnection>) {
        let (py, this) = (slf.py(), slf.get());
        let number = connection.get().lane();
        if connection.get().is_shared() {
            return Self::freed_shared(slf, connection);
        }
        loop {
            let now = coarse_ms();
            let next = {
                let mut lanes = lock(&this.lanes);
                lanes.freed(number, connection.as_unbound(), py, now, &this.rules)
            };
            match next {
                Next::Kept => {
                    return this.note_due(py, now.saturating_add(this.rules.keepalive_ms));
                }
                Next::Close => {
                    let why = Failure::new("ReadError", "it is not needed any more");
                    return HttpConnection::end(connection, &why);
                }
                Next::Call(call) => {
                    if call.get().is_over() {
                        continue;
                    }
                    if let Err(call) = HttpConnection::assign(connection, call) {
                        Self::again(slf, &call);
                    }
                    return;
                }
            }
        }
    }

    /// A connection that many share may have room for calls that wait.
    fn freed_shared(slf: &Bound<'_, Self>, connection: &Bound<'_, HttpConnection>) {
        let (py, this) = (slf.py(), slf.get());
        let number = connection.get().lane();
        loop {
            let next = lock(&this.lanes).next_shared(number, connection.get());
            let Some(call) = next else {
                if lock(&this.lanes).makes_room(number, connection.get(), &this.rules) {
                    let why = Failure::new("ReadError", "it is not needed any more");
                    return HttpConnection::end(connection, &why);
                }
                let keepalive_ms = this.rules.keepalive_ms;
                return this.note_due(py, coarse_ms().saturating_add(keepalive_ms));
            };
            if let Err(call) = HttpConnection::assign(connection, call) {
                return Self::again(slf, &call);
            }
        }
    }

    /// A connection has ended.
    pub(crate) fn closed(slf: &Bound<'_, Self>, number: u32, connection: &Py<HttpConnection>) {
        let _ = lock(&slf.get().lanes).closed(number, connection);
    }

    /// A call of which nothing has been done waits for a connection again, before the others.
    pub(crate) fn again(slf: &Bound<'_, Self>, call: &Py<HttpCall>) {
        let (py, this) = (slf.py(), slf.get());
        call.get().note_queued();
        let is_closed = {
            let mut lanes = lock(&this.lanes);
            let number = lanes.number_of(py, this.number, &call.get().origin);
            if !lanes.is_closed {
                lanes.put_first(number, call.clone_ref(py));
            }
            (lanes.is_closed, number)
        };
        let (is_closed, number) = is_closed;
        if is_closed {
            return call
                .get()
                .fail(py, &Failure::new("ClientClosed", "the client is closed"));
        }
        // Another connection may have room.
        let shared = {
            let mut lanes = lock(&this.lanes);
            let lane = lanes.table.get_mut(&number);
            let lane = lane.filter(|lane| !lane.waiting.is_empty());
            lane.and_then(|lane| Some((lane.shared(py)?, lane.waiting.pop_front()?)))
        };
        if let Some((connection, first)) = shared {
            if let Err(first) = HttpConnection::assign(connection.bind(py), first) {
                lock(&this.lanes).put_first(number, first);
                Self::connect(slf, number);
            }
            return;
        }
        let idle = {
            let mut lanes = lock(&this.lanes);
            let lane = lanes.table.get_mut(&number);
            lane.and_then(|lane| lane.idle.pop())
        };
        match idle {
            Some((connection, _)) => Self::freed(slf, connection.bind(py)),
            None => Self::connect(slf, number),
        }
        this.note_waiting(py, call.get(), coarse_ms());
    }

    /// No code waits for a call that waits for a connection.
    fn forget(slf: &Bound<'_, Self>, call: &Bound<'_, HttpCall>) {
        let py = slf.py();
        let mut lanes = lock(&slf.get().lanes);
        let number = lanes.number_of(py, slf.get().number, &call.get().origin);
        lanes.forget(number, call);
    }

    /// Takes the calls that have waited for a connection for too long.
    fn take_late(&self, now_ms: u64, next_ms: &mut u64) -> Vec<(Py<HttpCall>, Failure)> {
        let mut late = Vec::new();
        let mut lanes = lock(&self.lanes);
        for lane in lanes.table.values_mut() {
            let mut at = 0;
            while let Some(call) = lane.waiting.get(at) {
                let it = call.get();
                // For those at the front a connection is being made.
                let connect_due = lane.connect_due(at);
                let pool_due = || {
                    let pool = it.deadlines.pool.unwrap_or(u64::MAX);
                    it.queued_ms().saturating_add(pool)
                };
                let own_due = connect_due.unwrap_or_else(pool_due);
                let due = own_due.min(it.total_due_ms());
                if due > now_ms {
                    *next_ms = (*next_ms).min(due);
                    at += 1;
                    continue;
                }
                let (class, limit) = if own_due > now_ms {
                    ("TotalTimeout", it.deadlines.total)
                } else if connect_due.is_some() {
                    ("ConnectTimeout", it.deadlines.connect.or(Some(CONNECT_MS)))
                } else {
                    ("PoolTimeout", it.deadlines.pool)
                };
                let after_ms = now_ms.saturating_sub(it.started_ms());
                let mut failure = lane.late(class, limit.unwrap_or(0)).after(after_ms);
                if connect_due.is_none() {
                    failure = failure.in_queue();
                }
                late.extend(lane.waiting.remove(at).map(|call| (call, failure)));
                // The next call has its own time from now on, and perhaps an attempt of its own.
                if let Some(began_ms) = lane.attempts.get_mut(at) {
                    *began_ms = now_ms;
                }
            }
        }
        late
    }
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl CallPool for Py<HttpPool> {
    fn home_loop(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.get().home_loop(py)
    }

    fn is_of_process(&self) -> bool {
        self.get().is_of_process()
    }

    fn submit(&self, call: &Bound<'_, HttpCall>) -> PyResult<()> {
        HttpPool::submit(self.bind(call.py()), call.clone().unbind())
    }

    fn forget(&self, call: &Bound<'_, HttpCall>) {
        HttpPool::forget(self.bind(call.py()), call);
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self)
    }
}

#[pymethods]
impl HttpPool {
    #[new]
    #[pyo3(signature = (listener, *, event_loop = None, connections_max = 1000, connections_per_origin_max = 100,
                        queue_max = 10_000, keepalive_s = 60.0, body_bytes_max = 64 << 20, offers_h2 = false, speaks_h2 = false,
                        limits = None))]
    #[expect(clippy::too_many_arguments, reason = "what one pool is made of")]
    fn new(
        listener: Py<PyAny>,
        event_loop: Option<Py<PyAny>>,
        connections_max: usize,
        connections_per_origin_max: usize,
        queue_max: usize,
        keepalive_s: f64,
        body_bytes_max: u64,
        offers_h2: bool,
        speaks_h2: bool,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut of_responses = Limits {
            body_bytes_max,
            ..Limits::DEFAULT
        };
        for (name, value) in limits.into_iter().flatten() {
            let name: String = name.extract()?;
            of_responses
                .set(&name, value.extract()?)
                .ok_or_else(|| PyValueError::new_err(format!("{name}: no such limit")))?;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a negative time is none, and a long one is the longest"
        )]
        let keepalive_ms = (keepalive_s * 1000.0) as u64;
        Ok(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            event_loop,
            home: std::thread::current().id(),
            process: Process::current(),
            listener,
            limits: of_responses,
            rules: Rules {
                connections_max: connections_max.max(1),
                per_origin_max: connections_per_origin_max.max(1),
                queue_max,
                keepalive_ms,
                offers_h2,
                speaks_h2,
            },
            lanes: Mutex::default(),
            next_look_ms: AtomicU64::new(u64::MAX),
        })
    }

    /// A request; it is sent when it is awaited, waited for or started.
    #[pyo3(signature = (origin, method, target, fields, body = None, stream = false, deadlines = None))]
    #[expect(clippy::too_many_arguments, reason = "what one request is made of")]
    fn send(
        slf: &Bound<'_, Self>,
        origin: Py<HttpOrigin>,
        method: Py<PyString>,
        target: Py<PyString>,
        fields: Py<PyList>,
        body: Option<&Bound<'_, PyAny>>,
        stream: bool,
        deadlines: Option<DeadlineArguments>,
    ) -> PyResult<HttpCall> {
        Ok(HttpCall::new(
            Box::new(slf.clone().unbind()),
            origin,
            Asked::ByPython {
                method,
                target,
                fields,
            },
            body_of(body)?,
            stream,
            deadlines.map(Deadlines::of).unwrap_or_default(),
            None,
        ))
    }

    /// A request that passes on that of a client: its content goes from one to the other, informational responses back.
    #[pyo3(signature = (origin, method, target, fields, request, deadlines = None))]
    fn forward(
        slf: &Bound<'_, Self>,
        origin: Py<HttpOrigin>,
        method: Py<PyString>,
        target: Py<PyString>,
        fields: Py<PyList>,
        request: &Bound<'_, PyAny>,
        deadlines: Option<DeadlineArguments>,
    ) -> PyResult<HttpCall> {
        let (py, client) = (slf.py(), request_of(request)?);
        let inbound = client.inbound();
        let body = body_of_request(py, client, Box::new(slf.clone().unbind()), &inbound)?;
        Ok(HttpCall::new(
            Box::new(slf.clone().unbind()),
            origin,
            Asked::ByPython {
                method,
                target,
                fields,
            },
            body,
            true,
            deadlines.map(Deadlines::of).unwrap_or_default(),
            Some(inbound),
        ))
    }

    /// Content that is sent while it is made; of a length that is known, or in chunks.
    #[pyo3(signature = (length = None))]
    fn upload(slf: &Bound<'_, Self>, length: Option<u64>) -> HttpUpload {
        HttpUpload::new(Box::new(slf.clone().unbind()), length)
    }

    /// A connection that was being made is not to be had, for a reason that has a class.
    #[pyo3(name = "not_opened", signature = (lane, class, message, reason = None))]
    fn not_opened_now(
        slf: &Bound<'_, Self>,
        lane: u32,
        class: &str,
        message: String,
        reason: Option<&str>,
    ) {
        Self::not_opened(slf, lane, &Failure::named(class, message, reason));
    }

    /// Fails what takes too long; in how many milliseconds to look again.
    #[pyo3(signature = (ago_ms = 0))]
    fn look(slf: &Bound<'_, Self>, ago_ms: u64) -> Option<u64> {
        let (py, this) = (slf.py(), slf.get());
        let now = coarse_ms().saturating_sub(ago_ms);
        // What is noted from now on is looked for earlier if it is due earlier.
        this.next_look_ms.store(u64::MAX, Ordering::Relaxed);
        let mut next = u64::MAX;
        for (call, failure) in this.take_late(now, &mut next) {
            call.get().fail(py, &failure);
        }
        let (open, stale) = {
            let mut lanes = lock(&this.lanes);
            let (mut open, mut stale) = (Vec::new(), Vec::new());
            for lane in lanes.table.values_mut() {
                open.extend(lane.open.iter().map(|it| it.clone_ref(py)));
                let keepalive = this.rules.keepalive_ms;
                lane.idle.retain(|(it, since)| {
                    let due = since.saturating_add(keepalive);
                    if due > now {
                        next = next.min(due);
                        return true;
                    }
                    stale.push(it.clone_ref(py));
                    false
                });
            }
            (open, stale)
        };
        Self::close_all(py, stale, "it was idle for too long");
        for connection in open {
            HttpConnection::expire(connection.bind(py), this.rules.keepalive_ms, now, &mut next);
        }
        let next = next.min(this.next_look_ms.load(Ordering::Relaxed));
        this.next_look_ms.store(next, Ordering::Relaxed);
        (next < u64::MAX).then(|| next.saturating_sub(coarse_ms()))
    }

    /// Takes no more calls; those that wait fail, and all connections are closed.
    fn stop(slf: &Bound<'_, Self>) {
        let (py, this) = (slf.py(), slf.get());
        let (waiting, open) = {
            let mut lanes = lock(&this.lanes);
            lanes.is_closed = true;
            let (mut waiting, mut open) = (Vec::new(), Vec::new());
            for lane in lanes.table.values_mut() {
                waiting.extend(lane.waiting.drain(..));
                open.extend(lane.open.iter().map(|it| it.clone_ref(py)));
                lane.idle.clear();
            }
            (waiting, open)
        };
        let failure = Failure::new("ClientClosed", "the client is closed");
        for call in waiting {
            call.get().fail(py, &failure);
        }
        for connection in open {
            HttpConnection::end(connection.bind(py), &failure);
        }
    }

    /// Connections that are open, idle and being made, and calls that wait.
    fn counts(&self) -> (usize, usize, usize, usize) {
        lock(&self.lanes).counts()
    }

    #[getter(is_of_process)]
    fn is_of_process_now(&self) -> bool {
        self.is_of_process()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        visit.call(&self.listener)?;
        if let Ok(lanes) = self.lanes.try_lock() {
            for lane in lanes.table.values() {
                for connection in &lane.open {
                    visit.call(connection)?;
                }
                for (connection, _) in &lane.idle {
                    visit.call(connection)?;
                }
                for call in &lane.waiting {
                    visit.call(call)?;
                }
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let lanes = std::mem::take(&mut *lock(&self.lanes));
        drop(lanes);
    }
}

/// How long connecting takes at most where a request sets no limit, as Python has it.
const CONNECT_MS: u64 = 60_000;

/// By how much the clock may be behind the timers of Python.
const CLOCK_MS: u64 = 20;

/// How many connections there may be, and how long they are kept.
#[derive(Debug)]
struct Rules {
    connections_max: usize,
    per_origin_max: usize,
    /// Calls that may wait for a connection.
    queue_max: usize,
    /// How long a connection may be idle; `0`: none is kept.
    keepalive_ms: u64,
    /// HTTP/2 is offered over TLS.
    offers_h2: bool,
    /// It is spoken without asking.
    speaks_h2: bool,
}

/// What is spoken with an origin, once that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    Unknown,
    /// One request at a time.
    Single,
    /// Many at once.
    Shared,
}

struct Lane {
    origin: Py<HttpOrigin>,
    /// Connections without a request, the one that was used last at the end.
    idle: Vec<(Py<HttpConnection>, u64)>,
    /// All that are open.
    open: Vec<Py<HttpConnection>>,
    /// Of each that is being made, when that began.
    attempts: VecDeque<u64>,
    waiting: VecDeque<Py<HttpCall>>,
    spoken: Spoken,
}

impl Lane {
    fn count(&self) -> usize {
        self.open.len() + self.attempts.len()
    }

    /// When the call that has waited longest, and for which no connection is being made, began to wait. One that would not be made
    /// is not waited for.
    fn waits_since(&self) -> Option<u64> {
        if self.admits_none() {
            return None;
        }
        let call = self.waiting.get(self.attempts.len())?;
        Some(call.get().queued_ms())
    }

    /// When the call at this place has waited for too long for the connection that is being made for it; `None`: none is. The
    /// attempt may have been begun for another call, which has left since or has another limit.
    fn connect_due(&self, at: usize) -> Option<u64> {
        let (began_ms, call) = (self.attempts.get(at)?, self.waiting.get(at)?.get());
        let limit = call.deadlines.connect.unwrap_or(CONNECT_MS);
        Some(call.queued_ms().max(*began_ms).saturating_add(limit))
    }

    /// An attempt has failed: takes the call that fails with it.
    fn attempt_failed(&mut self, is_timeout: bool, now_ms: u64) -> Option<Py<HttpCall>> {
        if !is_timeout {
            self.attempts.pop_front();
            let is_for_one = self.waiting.len() > self.attempts.len();
            return is_for_one.then(|| self.waiting.pop_front()).flatten();
        }
        let until = now_ms.saturating_add(CLOCK_MS);
        let is_over = |at: &usize| self.connect_due(*at).is_some_and(|due| due <= until);
        let late = (0..self.attempts.len()).find(is_over);
        // The one that was begun last is that of a call which was late before.
        let newest = || (0..self.attempts.len()).max_by_key(|at| self.attempts.get(*at));
        let attempt = late.or_else(newest)?;
        self.attempts.remove(attempt);
        late.and_then(|at| self.waiting.remove(at))
    }

    /// Whether the server of an open connection takes no requests until it says otherwise.
    fn admits_none(&self) -> bool {
        self.spoken == Spoken::Shared && self.open.iter().any(|it| it.get().admits_none())
    }

    /// Why a call fails that has waited for too long.
    fn late(&self, class: &'static str, limit_ms: u64) -> Failure {
        let limit = Duration::from_millis(limit_ms).as_secs_f64();
        let message = if class == "ConnectTimeout" {
            format!("not connected within {limit} s")
        } else if self.admits_none() {
            format!(
                "the server has admitted no request within {limit} s (its SETTINGS_MAX_CONCURRENT_STREAMS is 0)"
            )
        } else {
            format!("no connection was free within {limit} s")
        };
        Failure::new(class, message)
    }

    /// Since when the connection has been idle that has been so longest, and its index among those that are open.
    fn idle_longest(&self) -> Option<(u64, usize)> {
        if let Some((connection, since_ms)) = self.idle.first() {
            let at = self.open.iter().position(|it| it.is(connection))?;
            return Some((*since_ms, at));
        }
        let open = self.open.iter().enumerate();
        let idle = open.filter_map(|(at, it)| Some((it.get().shared_idle_since_ms()?, at)));
        idle.min()
    }

    /// How many connections have no request.
    fn idle_count(&self) -> usize {
        let open = self.open.iter();
        let shared = open.filter(|it| it.get().shared_idle_since_ms().is_some());
        self.idle.len() + shared.count()
    }

    /// Takes a connection that many calls share, and has room for one.
    fn shared(&self, py: Python<'_>) -> Option<Py<HttpConnection>> {
        if self.spoken != Spoken::Shared {
            return None;
        }
        let with_room = self.open.iter().find(|it| it.get().reserve());
        with_room.map(|it| it.clone_ref(py))
    }
}

/// What is to be done for a call.
enum Route {
    /// It goes to this one.
    To(Py<HttpConnection>, Py<HttpCall>),
    Waits,
    Full(Py<HttpCall>),
    Closed(Py<HttpCall>),
}

/// What is to be done with a connection that is free.
enum Next {
    Call(Py<HttpCall>),
    Kept,
    Close,
}

#[derive(Default)]
struct Lanes {
    table: HashMap<u32, Lane>,
    numbers: HashMap<Key, u32>,
    next: u32,
    /// Connections that are open or being made.
    count: usize,
    is_closed: bool,
}

impl Lanes {
    /// The number of an origin's lane.
    fn number_of(&mut self, py: Python<'_>, pool: u32, origin: &Py<HttpOrigin>) -> u32 {
        let it = origin.get();
        if let Some(number) = it.lane_in(pool)
            && self.table.contains_key(&number)
        {
            return number;
        }
        let number = if let Some(number) = self.numbers.get(&it.key) {
            *number
        } else {
            self.next = self.next.wrapping_add(1);
            self.numbers.insert(it.key.clone(), self.next);
            let lane = Lane {
                origin: origin.clone_ref(py),
                idle: Vec::new(),
                open: Vec::new(),
                attempts: VecDeque::new(),
                waiting: VecDeque::new(),
                spoken: Spoken::Unknown,
            };
            self.table.insert(self.next, lane);
            self.next
        };
        it.set_lane(pool, number);
        number
    }

    /// Finds a connection for a call, or has it wait. Connections that have been idle for too long go to `stale`.
    fn route(
        &mut self,
        py: Python<'_>,
        number: u32,
        call: Py<HttpCall>,
        now_ms: u64,
        rules: &Rules,
        stale: &mut Vec<Py<HttpConnection>>,
    ) -> Route {
        if self.is_closed {
            return Route::Closed(call);
        }
        let Some(lane) = self.table.get_mut(&number) else {
            return Route::Closed(call);
        };
        if lane.waiting.is_empty() {
            if let Some(connection) = lane.shared(py) {
                return Route::To(connection, call);
            }
            while let Some((connection, since_ms)) = lane.idle.pop() {
                if since_ms.saturating_add(rules.keepalive_ms) > now_ms {
                    return Route::To(connection, call);
                }
                stale.push(connection);
            }
        }
        if lane.waiting.len() >= rules.queue_max {
            return Route::Full(call);
        }
        lane.waiting.push_back(call);
        Route::Waits
    }

    /// How many connections are to be made for a lane now; they count as being made. Others' idle ones that make room go to
    /// `stale`.
    fn plan(&mut self, number: u32, rules: &Rules, stale: &mut Vec<Py<HttpConnection>>) -> usize {
        let mut wanted = 0;
        loop {
            let Some(lane) = self.table.get(&number) else {
                return wanted;
            };
            // Another connection would be one more that has to wait.
            if lane.admits_none() {
                return wanted;
            }
            let is_single_file = lane.spoken == Spoken::Shared
                || lane.spoken == Spoken::Unknown
                    && (rules.speaks_h2 || rules.offers_h2 && lane.origin.get().key.is_tls);
            let connecting_max = if is_single_file { 1 } else { usize::MAX };
            if lane.waiting.len() <= lane.attempts.len()
                || lane.attempts.len() >= connecting_max
                || lane.count() >= rules.per_origin_max
            {
                return wanted;
            }
            if self.count >= rules.connections_max && !self.make_room(number, stale) {
                return wanted;
            }
            let Some(lane) = self.table.get_mut(&number) else {
                return wanted;
            };
            lane.attempts.push_back(coarse_ms());
            self.count += 1;
            wanted += 1;
        }
    }

    /// Gives up the connection of another lane that has been idle longest.
    fn make_room(&mut self, number: u32, stale: &mut Vec<Py<HttpConnection>>) -> bool {
        let others = self.table.iter_mut().filter(|(other, _)| **other != number);
        let idle = others.filter_map(|(_, lane)| {
            let (since_ms, at) = lane.idle_longest()?;
            Some((since_ms, at, lane))
        });
        let Some((_, at, lane)) = idle.min_by_key(|(since_ms, ..)| *since_ms) else {
            return false;
        };
        let connection = lane.open.swap_remove(at);
        lane.idle.retain(|(it, _)| !it.is(&connection));
        self.count -= 1;
        stale.push(connection);
        true
    }

    /// Whether a connection that many share is to be closed, because it is idle and another lane waits for one.
    fn makes_room(&self, number: u32, connection: &HttpConnection, rules: &Rules) -> bool {
        self.oldest_starved(number, rules).is_some() && connection.shared_idle_since_ms().is_some()
    }

    /// A connection that was being made is open.
    fn opened(&mut self, number: u32, connection: Py<HttpConnection>, spoken: Spoken) {
        let Some(lane) = self.table.get_mut(&number) else {
            return;
        };
        lane.attempts.pop_front();
        lane.spoken = spoken;
        lane.open.push(connection);
    }

    /// A connection that was being made is not to be had: the call that fails for it, if one waits for it.
    fn not_opened(&mut self, number: u32, is_timeout: bool) -> Option<Py<HttpCall>> {
        let lane = self.table.get_mut(&number)?;
        self.count = self.count.saturating_sub(1);
        let failed = lane.attempt_failed(is_timeout, coarse_ms());
        self.drop_empty(number);
        failed
    }

    /// A connection takes another request.
    fn freed(
        &mut self,
        number: u32,
        connection: &Py<HttpConnection>,
        py: Python<'_>,
        now_ms: u64,
        rules: &Rules,
    ) -> Next {
        let starved = self.oldest_starved(number, rules);
        let Some(lane) = self.table.get_mut(&number) else {
            return Next::Close;
        };
        if !lane.open.iter().any(|it| it.is(connection)) {
            return Next::Close;
        }
        let own = lane.waiting.front().map(|call| call.get().queued_ms());
        if let Some(since_ms) = starved
            && own.is_none_or(|own| since_ms < own)
        {
            return Next::Close;
        }
        if let Some(call) = lane.waiting.pop_front() {
            return Next::Call(call);
        }
        if self.is_closed || rules.keepalive_ms == 0 {
            return Next::Close;
        }
        lane.idle.push((connection.clone_ref(py), now_ms));
        Next::Kept
    }

    /// Calls that a connection that many share has room for.
    fn next_shared(&mut self, number: u32, connection: &HttpConnection) -> Option<Py<HttpCall>> {
        let lane = self.table.get_mut(&number)?;
        if lane.waiting.is_empty() || !connection.reserve() {
            return None;
        }
        lane.waiting.pop_front()
    }

    /// Since when another lane has waited for a connection because there are as many as there may be.
    fn oldest_starved(&self, number: u32, rules: &Rules) -> Option<u64> {
        if self.count < rules.connections_max || self.table.len() == 1 {
            return None;
        }
        let others = self
            .table
            .iter()
            .filter(|(other, lane)| **other != number && lane.count() < rules.per_origin_max);
        others.filter_map(|(_, lane)| lane.waits_since()).min()
    }

    /// Lanes with calls for which no connection is being made, those that have waited longest first.
    fn starved(&self) -> Vec<u32> {
        let waiting = self.table.iter().filter_map(|(number, lane)| {
            let since = lane.waits_since()?;
            Some((since, *number))
        });
        let mut starved: Vec<_> = waiting.collect();
        starved.sort_unstable();
        starved.into_iter().map(|(_, number)| number).collect()
    }

    /// A connection has ended; whether it was known.
    fn closed(&mut self, number: u32, connection: &Py<HttpConnection>) -> bool {
        let Some(lane) = self.table.get_mut(&number) else {
            return false;
        };
        let before = lane.open.len();
        lane.open.retain(|it| !it.is(connection));
        lane.idle.retain(|(it, _)| !it.is(connection));
        let was_known = lane.open.len() < before;
        if was_known {
            self.count -= 1;
            self.drop_empty(number);
        }
        was_known
    }

    /// Takes a call that waits; whether it did.
    fn forget(&mut self, number: u32, call: &Bound<'_, HttpCall>) -> bool {
        let Some(lane) = self.table.get_mut(&number) else {
            return false;
        };
        let Some(at) = lane.waiting.iter().position(|it| it.is(call)) else {
            return false;
        };
        lane.waiting.remove(at);
        self.drop_empty(number);
        true
    }

    /// Puts a call back that a connection could not do.
    fn put_first(&mut self, number: u32, call: Py<HttpCall>) {
        if let Some(lane) = self.table.get_mut(&number) {
            lane.waiting.push_front(call);
        }
    }

    /// Origins that are not used take no memory.
    fn drop_empty(&mut self, number: u32) {
        let is_empty = self
            .table
            .get(&number)
            .is_some_and(|lane| lane.count() == 0 && lane.waiting.is_empty());
        if is_empty && let Some(lane) = self.table.remove(&number) {
            self.numbers.remove(&lane.origin.get().key);
        }
    }

    /// Connections that are open, idle and being made, and calls that wait.
    fn counts(&self) -> (usize, usize, usize, usize) {
        let lanes = self.table.values();
        lanes.fold((0, 0, 0, 0), |(open, idle, connecting, waiting), lane| {
            (
                open + lane.open.len(),
                idle + lane.idle_count(),
                connecting + lane.attempts.len(),
                waiting + lane.waiting.len(),
            )
        })
    }
}
