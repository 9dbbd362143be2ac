//! One connection: which calls are under way on it, and where its bytes go.
//!
//! What is read is taken out of its lock while it is worked on, because making Python objects may run any code. What is sent is
//! behind a lock of its own, so that any thread can add a call meanwhile.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use citius_redis::{Connection, Event, Fault, Item, Login, Server, Tracking, Value, append_head};
use pyo3::IntoPyObjectExt;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::arguments::append_words;
use super::call::{RedisCall, Work};
use super::client::RedisClient;
use super::dispatch::Outcome;
use super::errors::{error_of, fault_error};
use super::reply::{Blobs, Builder, simple_value};
use crate::host::Reactor;
use crate::pg::tls::{PgTls, Secured};
use crate::sync::lock;
use crate::transport::Transport;
use crate::upstream::UpstreamProtocol;

/// A connection to a server.
#[pyclass(frozen, module = "citius._core", name = "RedisConnection")]
pub(crate) struct RedisConnection {
    client: Py<RedisClient>,
    /// The number of its server.
    pub(crate) node: usize,
    /// Told what happens: `(kind, value)`.
    listener: Py<PyAny>,
    /// `None` while it is worked on.
    incoming: Mutex<Option<Box<Incoming>>>,
    outgoing: Mutex<Outgoing>,
    transport: Transport,
    /// Calls under way.
    load: AtomicUsize,
    /// Its number at the server.
    id: AtomicI64,
    /// Changes of keys are told here.
    is_tracking: bool,
    is_closed: AtomicBool,
}

/// What the thread that reads needs.
struct Incoming {
    protocol: Connection,
    /// The beginning of a value that has not come in full.
    input: Vec<u8>,
    /// The reply that has begun to come.
    reading: Option<Reading>,
    builder: Builder,
    pushed: Builder,
}

/// A reply of several values.
struct Reading {
    call: Py<RedisCall>,
    /// It is that of `EXEC`, whose elements are the results of other calls.
    block: Option<Block>,
    /// It is not the result.
    is_skipped: bool,
    /// Its bytes, if it may be kept.
    raw: Option<Vec<u8>>,
}

/// Where in the reply to `EXEC` the values so far have led.
#[derive(Default)]
struct Block {
    /// The array of all results has begun.
    is_begun: bool,
    /// The call whose result comes next.
    next: usize,
    /// How deep in that result.
    depth: u32,
}

/// What any thread may add to.
struct Outgoing {
    output: Vec<u8>,
    requests: VecDeque<Request>,
    /// Requests whose bytes the carrier has taken.
    n_taken: usize,
    /// Requests at the front whose calls have been failed because they waited for too long.
    n_expired: usize,
    /// Replies of requests that the protocol does not know of yet.
    n_expected: usize,
    /// Bytes of all requests.
    bytes: usize,
    is_open: bool,
    is_closed: bool,
}

/// A call whose reply is to come.
struct Request {
    call: Py<RedisCall>,
    /// Replies that come before the one that is the result.
    skips: u32,
    /// What the first of those that is an error says.
    error: Option<Box<[u8]>>,
    bytes: usize,
    /// The command, if replies are kept.
    encoded: Option<Box<[u8]>>,
}

/// What has come in one piece of input, for when the connection is in place again.
#[derive(Default)]
struct Received {
    /// Results of calls that were sent.
    ended: Vec<(Py<RedisCall>, Outcome)>,
    /// Results of commands in transactions.
    in_blocks: Vec<(Py<RedisCall>, Outcome)>,
    pushes: Vec<PyResult<Py<PyAny>>>,
    refusals: Vec<Box<[u8]>>,
    server: Option<Server>,
    fault: Option<Fault>,
}

/// Bytes of commands under way on one connection, beyond which no more are taken.
const OUTPUT_BYTES_MAX: usize = 64 * 1024 * 1024;

impl RedisConnection {
    #[inline]
    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Whether it has something that has not left: what is added leaves with it.
    pub(crate) fn is_unsent(&self) -> bool {
        self.transport.is_unsent()
    }

    /// Whether the commands under way take more bytes than they may.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.outgoing).bytes > OUTPUT_BYTES_MAX
    }

    /// Takes a call whose command is `encoded`; gives it back if the connection is not open.
    #[inline]
    pub(crate) fn push(
        &self,
        py: Python<'_>,
        encoded: &[u8],
        call: Py<RedisCall>,
        replies: u32,
        keeps_command: bool,
    ) -> Result<(), Py<RedisCall>> {
        {
            let mut outgoing = lock(&self.outgoing);
            if !outgoing.is_open || outgoing.is_closed {
                drop(outgoing);
                return Err(call);
            }
            outgoing.output.extend_from_slice(encoded);
            outgoing.bytes += encoded.len();
            outgoing.n_expected += replies as usize;
            outgoing.requests.push_back(Request {
                call,
                skips: replies.saturating_sub(1),
                error: None,
                bytes: encoded.len(),
                encoded: keeps_command.then(|| encoded.into()),
            });
        }
        self.load.fetch_add(1, Ordering::Relaxed);
        self.transport.note_unsent(py);
        Ok(())
    }

    /// Whether a call is under way here.
    pub(crate) fn has(&self, call: &Bound<'_, RedisCall>) -> bool {
        let outgoing = lock(&self.outgoing);
        outgoing.requests.iter().any(|it| it.call.is(call))
    }

    /// Takes the calls whose time is up; their replies are still to come.
    pub(crate) fn expire(&self, py: Python<'_>, now_ms: u64, due: &mut Vec<Py<RedisCall>>) {
        let mut outgoing = lock(&self.outgoing);
        let seen = outgoing.n_expired;
        let late = outgoing.requests.iter().skip(seen);
        let late = late.take_while(|it| it.call.get().until_ms() <= now_ms);
        due.extend(late.map(|it| it.call.clone_ref(py)));
        outgoing.n_expired = outgoing
            .requests
            .iter()
            .take_while(|it| it.call.get().until_ms() <= now_ms)
            .count();
    }

    /// Bytes have come. `may_step`: coroutines may be stepped here and now.
    #[inline]
    fn received(slf: &Bound<'_, Self>, bytes: &[u8], may_step: bool) {
        let py = slf.py();
        let Some(opened) = slf.get().transport.open(py, bytes) else {
            return Self::received_plain(slf, bytes, may_step);
        };
        if !opened.plaintext.is_empty() {
            Self::received_plain(slf, &opened.plaintext, may_step);
        }
        if let Some(failure) = opened.failure {
            Self::end(slf, &error_of(py, "tls_failed", failure));
        }
    }

    fn received_plain(slf: &Bound<'_, Self>, bytes: &[u8], may_step: bool) {
        let (py, this) = (slf.py(), slf.get());
        let Some(mut incoming) = lock(&this.incoming).take() else {
            // It is being worked on, and nothing may come between.
            return Self::ended(slf, "bytes came while others were read");
        };
        if this.is_closed.load(Ordering::Relaxed) {
            this.put(incoming);
            return;
        }
        let expected = std::mem::take(&mut lock(&this.outgoing).n_expected);
        incoming.protocol.expect(expected);
        let mut received = Received::default();
        if incoming.input.is_empty() {
            let rest = this.read(py, &mut incoming, bytes, &mut received);
            incoming
                .input
                .extend_from_slice(&bytes[bytes.len() - rest..]);
        } else {
            let mut all = std::mem::take(&mut incoming.input);
            all.extend_from_slice(bytes);
            let rest = this.read(py, &mut incoming, &all, &mut received);
            all.drain(..all.len() - rest);
            incoming.input = all;
        }
        this.put(incoming);
        Self::tell_received(slf, received, may_step);
    }

    fn put(&self, incoming: Box<Incoming>) {
        let before = lock(&self.incoming).replace(incoming);
        drop(before);
    }

    /// Takes all whole values; returns how many bytes are left.
    fn read(
        &self,
        py: Python<'_>,
        incoming: &mut Incoming,
        bytes: &[u8],
        received: &mut Received,
    ) -> usize {
        let mut input = bytes;
        loop {
            let before = input;
            match incoming.protocol.receive(&mut input) {
                Ok(Some(Event::Reply(item))) => {
                    let raw = &before[..before.len() - input.len()];
                    self.take_reply(py, incoming, item, raw, received);
                }
                Ok(Some(Event::Push(item))) => {
                    let made = incoming.pushed.add(py, item, &Blobs::Bytes);
                    received.pushes.extend(made);
                }
                Ok(Some(Event::Refused(error))) => received.refusals.push(error.into()),
                Ok(Some(Event::Open(server))) => received.server = Some(server),
                Ok(None) => return input.len(),
                Err(fault) => {
                    received.fault = Some(fault);
                    return 0;
                }
            }
        }
    }

    #[inline]
    fn take_reply(
        &self,
        py: Python<'_>,
        incoming: &mut Incoming,
        item: Item<'_>,
        raw: &[u8],
        received: &mut Received,
    ) {
        let Some(reading) = incoming.reading.take() else {
            return self.begin_reply(py, incoming, item, raw, received);
        };
        self.go_on(py, incoming, reading, item, raw, received);
    }

    /// The first value of a reply, which is all of it for most commands.
    #[inline]
    fn begin_reply(
        &self,
        py: Python<'_>,
        incoming: &mut Incoming,
        item: Item<'_>,
        raw: &[u8],
        received: &mut Received,
    ) {
        let reading = {
            let mut outgoing = lock(&self.outgoing);
            let Some(request) = outgoing.requests.front() else {
                return;
            };
            if item.is_last && request.skips == 0 {
                let request = outgoing.pop();
                drop(outgoing);
                if let Some(request) = request {
                    let outcome = outcome_of(py, &request, item);
                    self.complete(py, request, outcome, raw, received);
                }
                return;
            }
            Reading {
                call: request.call.clone_ref(py),
                block: (request.skips == 0
                    && matches!(request.call.get().work, Work::Transaction(_)))
                .then(Block::default),
                is_skipped: request.skips > 0,
                raw: request.encoded.is_some().then(Vec::new),
            }
        };
        self.go_on(py, incoming, reading, item, raw, received);
    }

    /// A value of a reply that has several, or that is not the result.
    fn go_on(
        &self,
        py: Python<'_>,
        incoming: &mut Incoming,
        mut reading: Reading,
        item: Item<'_>,
        raw: &[u8],
        received: &mut Received,
    ) {
        if let Some(kept) = &mut reading.raw {
            kept.extend_from_slice(raw);
        }
        if reading.is_skipped {
            if !item.is_last {
                incoming.reading = Some(reading);
                return;
            }
            return self.skip(item);
        }
        let call = reading.call.get();
        let outcome =
            if let (Some(block), Work::Transaction(calls)) = (&mut reading.block, &call.work) {
                block.take(py, &mut incoming.builder, item, calls, received);
                item.is_last.then(|| Outcome::Value(Ok(py.None())))
            } else if call.is_over() {
                item.is_last.then(|| {
                    incoming.builder = Builder::default();
                    Outcome::Value(Ok(py.None()))
                })
            } else {
                let made = incoming.builder.add(py, item, &call.shape.blobs);
                made.map(Outcome::Value)
            };
        if !item.is_last {
            incoming.reading = Some(reading);
            return;
        }
        let request = lock(&self.outgoing).pop();
        if let (Some(request), Some(outcome)) = (request, outcome) {
            let raw = reading.raw.unwrap_or_default();
            self.complete(py, request, outcome, &raw, received);
        }
    }

    /// A reply that comes before the result: of `ASKING`, of `MULTI`, of commands that are queued.
    fn skip(&self, item: Item<'_>) {
        let mut outgoing = lock(&self.outgoing);
        if let Some(request) = outgoing.requests.front_mut() {
            request.skips = request.skips.saturating_sub(1);
            if let Value::Error(error) = item.value
                && request.error.is_none()
            {
                request.error = Some(error.into());
            }
        }
    }

    /// The result of a call has come.
    #[inline]
    fn complete(
        &self,
        py: Python<'_>,
        request: Request,
        outcome: Outcome,
        raw: &[u8],
        received: &mut Received,
    ) {
        if let Some(encoded) = &request.encoded {
            let client = self.client.bind(py).get();
            // Only here are changes of what is kept told.
            client.note_reply(encoded, raw, self.is_tracking && outcome.is_value());
        }
        let outcome = match (request.error, outcome) {
            // `EXECABORT` says less than what caused it.
            (Some(error), Outcome::Error(_)) => Outcome::Error(error),
            (_, outcome) => outcome,
        };
        received.ended.push((request.call, outcome));
    }

    fn tell_received(slf: &Bound<'_, Self>, received: Received, may_step: bool) {
        let (py, this) = (slf.py(), slf.get());
        let client = this.client.bind(py);
        if let Some(server) = received.server {
            this.open(py, server);
        }
        for push in received.pushes {
            match push {
                Ok(push) => this.take_push(py, push),
                Err(error) => error.write_unraisable(py, None),
            }
        }
        for error in received.refusals {
            let error = super::errors::server_error(py, &error);
            this.tell(py, "refused", error.into_value(py));
        }
        for (call, outcome) in received.in_blocks {
            RedisClient::finish(client, &call, outcome.into_result(py), false);
        }
        if !received.ended.is_empty() {
            this.load.fetch_sub(received.ended.len(), Ordering::Relaxed);
            for (call, outcome) in received.ended {
                RedisClient::settle(client, this.node, call, outcome, may_step);
            }
            RedisClient::pump(client, this.node);
        }
        if let Some(fault) = received.fault {
            Self::end(slf, &fault_error(py, &fault));
        }
    }

    fn open(&self, py: Python<'_>, server: Server) {
        lock(&self.outgoing).is_open = true;
        self.id.store(server.id, Ordering::Relaxed);
        self.tell(py, "open", (server.version, server.mode, server.role));
    }

    /// What has come unasked: a change of keys, or something for the listener.
    fn take_push(&self, py: Python<'_>, push: Py<PyAny>) {
        if self.is_tracking {
            match self.client.get().take_invalidation(push.bind(py)) {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => error.write_unraisable(py, None),
            }
        }
        self.tell(py, "push", push);
    }

    /// The connection has ended.
    fn ended(slf: &Bound<'_, Self>, why: &str) {
        Self::end(slf, &error_of(slf.py(), "connection_lost", why));
    }

    /// Ends the connection: calls under way fail, and those that were not sent go back to the client.
    fn end(slf: &Bound<'_, Self>, error: &PyErr) {
        let (py, this) = (slf.py(), slf.get());
        if this.is_closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let (requests, n_taken) = {
            let mut outgoing = lock(&this.outgoing);
            outgoing.is_closed = true;
            outgoing.output.clear();
            let requests = std::mem::take(&mut outgoing.requests);
            (requests, std::mem::take(&mut outgoing.n_taken))
        };
        let client = this.client.bind(py);
        if this.is_tracking {
            client.get().forget_kept();
        }
        RedisClient::remove(client, slf.as_unbound());
        // First, so that no call comes back here.
        this.tell(py, "closed", error.value(py).clone().unbind());
        let mut unsent = Vec::new();
        for (at, request) in requests.into_iter().enumerate() {
            if at >= n_taken && request.call.get().is_free() {
                unsent.push(request.call);
                continue;
            }
            let cause = error.value(py).clone().unbind();
            let lost = if at < n_taken {
                error_of(py, "lost_during_command", cause)
            } else {
                error.clone_ref(py)
            };
            RedisClient::finish(client, &request.call, Err(lost), false);
        }
        this.load.store(0, Ordering::Relaxed);
        // Each goes to the front of the queue, so the last one goes first.
        for call in unsent.into_iter().rev() {
            RedisClient::queue_first(client, this.node, call);
        }
    }

    fn take_output_into(&self, bytes: &mut Vec<u8>) {
        self.transport.begin_taking();
        let mut outgoing = lock(&self.outgoing);
        outgoing.n_taken = outgoing.requests.len();
        self.transport.take_output(&mut outgoing.output, bytes);
    }

    fn put_back_output(&self, py: Python<'_>, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.transport
            .put_back(bytes, &mut lock(&self.outgoing).output);
        self.transport.note_unsent(py);
    }

    fn tell(&self, py: Python<'_>, kind: &str, value: impl for<'py> IntoPyObject<'py>) {
        let told = value
            .into_py_any(py)
            .and_then(|value| self.listener.call1(py, (kind, value)));
        if let Err(error) = told {
            error.write_unraisable(py, None);
        }
    }
}

impl Outgoing {
    /// Takes the request at the front, whose reply has come.
    #[inline]
    fn pop(&mut self) -> Option<Request> {
        let request = self.requests.pop_front()?;
        self.n_taken = self.n_taken.saturating_sub(1);
        self.n_expired = self.n_expired.saturating_sub(1);
        self.bytes -= request.bytes;
        Some(request)
    }
}

/// What a reply of one value comes to.
#[inline]
fn outcome_of(py: Python<'_>, request: &Request, item: Item<'_>) -> Outcome {
    let call = request.call.get();
    match item.value {
        Value::Error(error) => Outcome::Error(error.into()),
        Value::Null if matches!(call.work, Work::Transaction(_)) => {
            Outcome::Value(Err(error_of(py, "watch_failed", py.None())))
        }
        _ if call.is_over() => Outcome::Value(Ok(py.None())),
        value => Outcome::Value(simple_value(py, value, &call.shape.blobs)),
    }
}

impl Block {
    /// Takes a value of the reply to `EXEC`; a result that is complete is kept for its call.
    fn take(
        &mut self,
        py: Python<'_>,
        builder: &mut Builder,
        item: Item<'_>,
        calls: &[Py<RedisCall>],
        received: &mut Received,
    ) {
        if !std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        let Some(call) = calls.get(self.next) else {
            return;
        };
        self.depth += u32::from(item.value.is_container());
        let ends = item.ends.min(self.depth);
        self.depth -= ends;
        let is_last = self.depth == 0;
        self.next += usize::from(is_last);
        if let (Value::Error(error), true) = (item.value, is_last && ends == 0) {
            let outcome = Outcome::Error(error.into());
            received.in_blocks.push((call.clone_ref(py), outcome));
            return;
        }
        let item = Item {
            value: item.value,
            ends,
            is_last,
        };
        if let Some(made) = builder.add(py, item, &call.get().shape.blobs) {
            let outcome = Outcome::Value(made);
            received.in_blocks.push((call.clone_ref(py), outcome));
        }
    }
}

/// A connection as the reactor knows it.
struct Carried(Py<RedisConnection>);

impl UpstreamProtocol for Carried {
    fn on_bytes(&self, py: Python<'_>, bytes: &[u8], may_step: bool) {
        RedisConnection::received(self.0.bind(py), bytes, may_step);
    }

    fn on_end(&self, py: Python<'_>, why: &str) {
        RedisConnection::ended(self.0.bind(py), why);
    }

    fn take_output(&self, bytes: &mut Vec<u8>) {
        self.0.get().take_output_into(bytes);
    }

    fn put_back(&self, py: Python<'_>, bytes: &[u8]) {
        self.0.get().put_back_output(py, bytes);
    }
}

/// User, password, name and number of the database.
type LoginArguments = (Option<String>, Option<String>, String, u32);

#[pymethods]
impl RedisConnection {
    #[new]
    #[pyo3(signature = (client, node, login, listener, wake, *, tls = None, is_tracking = false, subscribes = false))]
    #[expect(clippy::too_many_arguments, reason = "what one connection is made of")]
    fn new(
        client: Py<RedisClient>,
        node: usize,
        login: LoginArguments,
        listener: Py<PyAny>,
        wake: Py<PyAny>,
        tls: Option<(Bound<'_, PgTls>, String)>,
        is_tracking: bool,
        subscribes: bool,
    ) -> PyResult<Self> {
        let (user, password, name, database) = login;
        let login = Login {
            user,
            password,
            name,
            database,
            tracking: if is_tracking {
                client.get().tracking()
            } else {
                Tracking::Off
            },
            subscribes,
            library: ("citius", env!("CARGO_PKG_VERSION")),
        };
        let secured = tls.map(|(tls, server_name)| Secured::new(&tls, &server_name));
        let mut output = Vec::new();
        let protocol = Connection::new(&login, client.get().reply_bytes_max, &mut output);
        let incoming = Incoming {
            protocol,
            input: Vec::new(),
            reading: None,
            builder: Builder::default(),
            pushed: Builder::default(),
        };
        let outgoing = Outgoing {
            output,
            requests: VecDeque::new(),
            n_taken: 0,
            n_expired: 0,
            n_expected: 0,
            bytes: 0,
            is_open: false,
            is_closed: false,
        };
        Ok(Self {
            client,
            node,
            listener,
            incoming: Mutex::new(Some(Box::new(incoming))),
            outgoing: Mutex::new(outgoing),
            transport: Transport::new(wake, secured.transpose()?),
            load: AtomicUsize::new(0),
            id: AtomicI64::new(0),
            is_tracking,
            is_closed: AtomicBool::new(false),
        })
    }

    /// Bytes have come, on the carrier's own thread and within no task's step.
    #[pyo3(name = "receive")]
    fn receive_now(slf: &Bound<'_, Self>, data: &[u8]) {
        Self::received(slf, data, true);
    }

    /// The connection has ended.
    #[pyo3(name = "end")]
    fn end_now(slf: &Bound<'_, Self>, why: &str) {
        Self::ended(slf, why);
    }

    /// What is to be sent.
    #[pyo3(name = "take_output")]
    fn take_output_now<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        self.take_output_into(&mut bytes);
        PyBytes::new(py, &bytes)
    }

    /// Sends a command that has no reply, such as one that subscribes.
    #[pyo3(signature = (*words))]
    fn send(&self, words: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut encoded = Vec::new();
        append_head(&mut encoded, words.len());
        append_words(&mut encoded, words, 0, None)?;
        lock(&self.outgoing).output.extend_from_slice(&encoded);
        self.transport.note_unsent(words.py());
        Ok(())
    }

    /// Has a reactor carry the bytes.
    fn attach(slf: &Bound<'_, Self>, reactor: &Bound<'_, Reactor>, fd: i32) -> PyResult<()> {
        let carried = Arc::new(Carried(slf.clone().unbind()));
        slf.get().transport.attach(carried, reactor, fd)
    }

    /// Has Python carry the bytes again: `wake` is called when there is something to send.
    fn detach(slf: &Bound<'_, Self>, reactor: &Bound<'_, Reactor>, wake: Py<PyAny>) {
        slf.get().transport.detach(reactor, wake);
    }

    /// Calls under way.
    #[getter(load)]
    fn load_now(&self) -> usize {
        self.load()
    }

    /// Its number at the server.
    #[getter]
    fn id(&self) -> i64 {
        self.id.load(Ordering::Relaxed)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(&self.listener)?;
        self.transport.traverse(&visit)
    }
}
