//! One connection: which calls are under way on it, and where its bytes go.
//!
//! What is read is taken out of its [`Place`] while it is worked on, because making Python objects may run any code. What is sent is
//! behind a lock of its own, so that any thread can add a call meanwhile.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, AtomicUsize, Ordering};

use citius_base::sync::lock;
use citius_base::upstream::{Carrier, Place, Protocol, TlsArguments, Upstream};
use citius_reactor::coarse_ms;
use citius_redis::{Keep, Login, Outgoing, Server, Tracking, append_head};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::arguments::append_words;
use super::call::RedisCall;
use super::client::RedisClient;
use super::errors::{error_of, fault_error, server_error};
use super::incoming::{Context, Incoming, Received};
use super::nodes::Shares;

/// A connection to a server.
#[pyclass(frozen, module = "citius._core", name = "RedisConnection")]
pub(crate) struct RedisConnection {
    client: Py<RedisClient>,
    /// The number of its server.
    pub(crate) node: usize,
    incoming: Place<Incoming<RedisCall>, Self>,
    outgoing: Mutex<Outgoing<Py<RedisCall>>>,
    upstream: Upstream,
    /// Calls under way.
    load: AtomicUsize,
    /// Its number at the server.
    id: AtomicI64,
    /// Changes of keys are told here.
    is_tracking: bool,
    /// Fields of hashes may have times to live of their own.
    has_field_ttls: AtomicBool,
    is_closed: AtomicBool,
    /// When something has come last.
    heard_ms: AtomicU64,
    /// How many callers have had it for themselves: a call belongs to the block that made it.
    lease: AtomicU64,
    /// A caller has it for itself.
    is_lent: AtomicBool,
    /// It watches keys: nothing else of it may be changed.
    is_watching: AtomicBool,
    /// Its caller's keys are being moved to this node.
    is_asking: AtomicBool,
    /// The slot of its caller's first key; [`NO_SLOT`] without one.
    slot: AtomicU16,
}

const NO_SLOT: u16 = u16::MAX;

impl RedisConnection {
    #[inline]
    pub(crate) fn lease(&self) -> u64 {
        self.lease.load(Ordering::Relaxed)
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.is_asking.load(Ordering::Relaxed)
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.is_watching.load(Ordering::Relaxed)
    }

    /// Whether its caller's first key is in another slot.
    pub(crate) fn watches_others(&self, slot: u16) -> bool {
        self.slot.load(Ordering::Relaxed) != slot
    }

    /// Is one caller's from here on, whose first key is in this slot.
    pub(crate) fn begin_lease(&self, is_asking: bool, slot: Option<u16>) {
        self.slot.store(slot.unwrap_or(NO_SLOT), Ordering::Relaxed);
        self.is_lent.store(true, Ordering::Relaxed);
        self.is_asking.store(is_asking, Ordering::Relaxed);
    }

    /// Is that caller's no more: calls that it has not sent are refused. Whether others may have it.
    pub(crate) fn end_lease(&self) -> bool {
        self.lease.fetch_add(1, Ordering::Relaxed);
        for flag in [&self.is_lent, &self.is_asking, &self.is_watching] {
            flag.store(false, Ordering::Relaxed);
        }
        // A reply that has not come in time may come in the time of others, or never.
        !lock(&self.outgoing).has_expired()
    }

    #[inline]
    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Whether it has something that has not left: what is added leaves with it.
    pub(crate) fn is_unsent(&self) -> bool {
        self.upstream.is_unsent()
    }

    /// Whether the commands under way take more bytes than they may.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.outgoing).is_full()
    }

    /// Takes a call whose command is `encoded`; gives it back if the connection is not open.
    #[inline]
    pub(crate) fn push(
        &self,
        py: Python<'_>,
        encoded: &[u8],
        call: Py<RedisCall>,
        replies: u32,
    ) -> Result<(), Py<RedisCall>> {
        let keep = self.what_is_kept(encoded);
        {
            let mut outgoing = lock(&self.outgoing);
            if !outgoing.is_open {
                return Err(call);
            }
            outgoing.push(call, encoded, replies, keep);
        }
        self.load.fetch_add(1, Ordering::Relaxed);
        self.upstream.note_unsent(py);
        Ok(())
    }

    #[inline]
    fn what_is_kept(&self, encoded: &[u8]) -> Keep {
        let client = self.client.get();
        if client.cache.is_none() {
            return Keep::Nothing;
        }
        if !self.is_tracking || !client.may_keep(encoded) {
            return Keep::Command;
        }
        Keep::Reply {
            has_field_ttls: self.has_field_ttls.load(Ordering::Relaxed),
            now_ms: coarse_ms(),
        }
    }

    /// Whether a call is under way here.
    pub(crate) fn has(&self, call: &Bound<'_, RedisCall>) -> bool {
        lock(&self.outgoing).calls().any(|other| other.is(call))
    }

    /// Takes the calls whose time is up; their replies are still to come.
    /// Whether there were any.
    pub(crate) fn expire(&self, py: Python<'_>, now_ms: u64, due: &mut Vec<Py<RedisCall>>) -> bool {
        let before = due.len();
        let mut outgoing = lock(&self.outgoing);
        let late = outgoing.expire(|call| call.get().until_ms() <= now_ms);
        due.extend(late.map(|call| call.clone_ref(py)));
        due.len() > before
    }

    fn read(
        slf: &Bound<'_, Self>,
        mut incoming: Box<Incoming<RedisCall>>,
        bytes: &[u8],
        may_step: bool,
    ) {
        let (py, this) = (slf.py(), slf.get());
        if this.is_closed.load(Ordering::Relaxed) {
            this.incoming.put(incoming);
            return this.incoming.do_late(slf);
        }
        let context = Context {
            py,
            kept: this.client.get(),
            outgoing: &this.outgoing,
        };
        let received = incoming.receive(&context, bytes);
        this.incoming.put(incoming);
        Self::tell_received(slf, received, may_step);
        this.incoming.do_late(slf);
    }

    fn tell_received(slf: &Bound<'_, Self>, received: Received<RedisCall>, may_step: bool) {
        let (py, this) = (slf.py(), slf.get());
        let client = this.client.bind(py);
        if let Some(server) = received.server {
            lock(&client.get().nodes).open.push(slf.clone().unbind());
            this.open(py, server);
        }
        for push in received.pushes {
            match push {
                Ok(push) => this.take_push(py, push),
                Err(error) => error.write_unraisable(py, None),
            }
        }
        for error in received.refusals {
            let error = server_error(py, &error);
            this.upstream.tell(py, "refused", error.into_value(py));
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
        let has_field_ttls = self.client.get().has_field_ttls && server.has_field_ttls();
        self.has_field_ttls.store(has_field_ttls, Ordering::Relaxed);
        self.upstream
            .tell(py, "open", (server.version, server.mode, server.role));
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
        self.upstream.tell(py, "push", push);
    }

    /// The connection has ended.
    fn lose(slf: &Bound<'_, Self>, why: &str) {
        Self::end(slf, &error_of(slf.py(), "connection_lost", why));
    }

    /// Ends the connection: calls under way fail, and those that were not sent go back to the client.
    fn end(slf: &Bound<'_, Self>, error: &PyErr) {
        let (py, this) = (slf.py(), slf.get());
        if this.is_closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let (requests, n_taken) = lock(&this.outgoing).close();
        let client = this.client.bind(py);
        if this.is_tracking {
            client.get().forget_kept();
        }
        RedisClient::remove_ended(client, slf.as_unbound());
        // First, so that no call comes back here.
        this.upstream
            .tell(py, "closed", error.value(py).clone().unbind());
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
}

impl Protocol for RedisConnection {
    fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    #[inline]
    fn received(slf: &Bound<'_, Self>, plaintext: &[u8], may_step: bool) {
        let this = slf.get();
        this.heard_ms.store(coarse_ms(), Ordering::Relaxed);
        let incoming = this.incoming.take(|| {
            let bytes = plaintext.to_vec();
            Box::new(move |slf, incoming| Self::read(slf, incoming, &bytes, false))
        });
        if let Some(incoming) = incoming {
            Self::read(slf, incoming, plaintext, may_step);
        }
    }

    fn ended(slf: &Bound<'_, Self>, why: &str) {
        Self::lose(slf, why);
    }

    fn tls_failed(slf: &Bound<'_, Self>, why: String) {
        Self::end(slf, &error_of(slf.py(), "tls_failed", why));
    }

    fn take_output(&self, _py: Python<'_>, take: impl FnOnce(&[u8])) {
        let mut outgoing = lock(&self.outgoing);
        outgoing.note_taken();
        take(&outgoing.output);
        outgoing.output.clear();
    }

    fn has_output(&self) -> bool {
        !lock(&self.outgoing).output.is_empty()
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
        tls: Option<TlsArguments<'_>>,
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
        let mut first = Vec::new();
        let incoming = Incoming::new(&login, client.get().reply_bytes_max, &mut first);
        Ok(Self {
            client,
            node,
            upstream: Upstream::new(listener, wake, tls)?,
            incoming: Place::new(incoming),
            outgoing: Mutex::new(Outgoing::new(first)),
            load: AtomicUsize::new(0),
            id: AtomicI64::new(0),
            is_tracking,
            has_field_ttls: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            heard_ms: AtomicU64::new(coarse_ms()),
            lease: AtomicU64::new(0),
            is_lent: AtomicBool::new(false),
            is_watching: AtomicBool::new(false),
            is_asking: AtomicBool::new(false),
            slot: AtomicU16::new(NO_SLOT),
        })
    }

    /// Bytes have come, on the carrier's own thread and within no task's step.
    #[pyo3(name = "receive")]
    fn receive_now(slf: &Bound<'_, Self>, data: &[u8]) {
        Upstream::receive(slf, data, true);
    }

    /// The connection has ended.
    #[pyo3(name = "end")]
    fn end_now(slf: &Bound<'_, Self>, why: &str) {
        Self::lose(slf, why);
    }

    /// What is to be sent.
    #[pyo3(name = "take_output")]
    fn take_output_now<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        Upstream::take_output(py, self, &mut bytes);
        PyBytes::new(py, &bytes)
    }

    /// Sends a command that has no reply, such as one that subscribes.
    #[pyo3(signature = (*words))]
    fn send(&self, words: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut encoded = Vec::new();
        append_head(&mut encoded, words.len());
        append_words(&mut encoded, words, 0, None)?;
        lock(&self.outgoing).output.extend_from_slice(&encoded);
        self.upstream.note_unsent(words.py());
        Ok(())
    }

    /// Has a reactor carry the bytes.
    fn attach(slf: &Bound<'_, Self>, reactor: &Bound<'_, Carrier>, fd: i32) -> PyResult<()> {
        Upstream::attach(slf, reactor, fd)
    }

    /// Has Python carry the bytes again: `wake` is called when there is something to send.
    fn detach(slf: &Bound<'_, Self>, reactor: &Bound<'_, Carrier>, wake: Py<PyAny>) {
        Upstream::detach(slf, reactor, wake);
    }

    /// Calls under way.
    #[getter(load)]
    fn load_now(&self) -> usize {
        self.load()
    }

    /// The number of its server.
    #[getter(node)]
    fn node_now(&self) -> usize {
        self.node
    }

    /// Since when nothing has come, in milliseconds.
    #[getter]
    fn silent_ms(&self) -> u64 {
        coarse_ms().saturating_sub(self.heard_ms.load(Ordering::Relaxed))
    }

    /// Whether a caller has it for itself.
    #[getter]
    fn is_lent(&self) -> bool {
        self.is_lent.load(Ordering::Relaxed)
    }

    /// Notes that its caller watches keys: commands that change anything else of it are refused.
    fn watch(&self) {
        self.is_watching.store(true, Ordering::Relaxed);
    }

    /// Its number at the server.
    #[getter]
    fn id(&self) -> i64 {
        self.id.load(Ordering::Relaxed)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        self.upstream.traverse(&visit)
    }
}

impl Shares<RedisCall> for RedisConnection {
    #[inline]
    fn load(&self) -> usize {
        Self::load(self)
    }

    #[inline]
    fn is_unsent(&self) -> bool {
        Self::is_unsent(self)
    }

    fn has(&self, call: &Bound<'_, RedisCall>) -> bool {
        Self::has(self, call)
    }
}
