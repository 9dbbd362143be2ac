//! One connection: which calls are under way on it, and where its bytes go.
//!
//! What is read is taken out of its lock while it is worked on, because making Python objects may run any code. What is sent is
//! behind a lock of its own, so that any thread can add a call meanwhile.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use citius_reactor::coarse_ms;
use citius_redis::{Login, Server, Tracking, append_head};
use pyo3::IntoPyObjectExt;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::arguments::append_words;
use super::call::RedisCall;
use super::client::RedisClient;
use super::errors::{error_of, fault_error, server_error};
use super::incoming::{Context, Incoming, Received};
use super::outgoing::Outgoing;
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
    outgoing: Mutex<Outgoing<Py<RedisCall>>>,
    transport: Transport,
    /// Calls under way.
    load: AtomicUsize,
    /// Its number at the server.
    id: AtomicI64,
    /// Changes of keys are told here.
    is_tracking: bool,
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
}

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

    /// Is one caller's from here on.
    pub(crate) fn begin_lease(&self, is_asking: bool) {
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
        self.transport.is_unsent()
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
        keeps_command: bool,
    ) -> Result<(), Py<RedisCall>> {
        {
            let mut outgoing = lock(&self.outgoing);
            if !outgoing.is_open {
                return Err(call);
            }
            outgoing.push(call, encoded, replies, keeps_command);
        }
        self.load.fetch_add(1, Ordering::Relaxed);
        self.transport.note_unsent(py);
        Ok(())
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

    /// Bytes have come. `may_step`: coroutines may be stepped here and now.
    #[inline]
    fn received(slf: &Bound<'_, Self>, bytes: &[u8], may_step: bool) {
        let py = slf.py();
        slf.get().heard_ms.store(coarse_ms(), Ordering::Relaxed);
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
        let context = Context {
            py,
            client: this.client.get(),
            outgoing: &this.outgoing,
            is_tracking: this.is_tracking,
        };
        let received = incoming.receive(&context, bytes);
        this.put(incoming);
        Self::tell_received(slf, received, may_step);
    }

    fn put(&self, incoming: Box<Incoming>) {
        let before = lock(&self.incoming).replace(incoming);
        drop(before);
    }

    fn tell_received(slf: &Bound<'_, Self>, received: Received, may_step: bool) {
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
        let (requests, n_taken) = lock(&this.outgoing).close();
        let client = this.client.bind(py);
        if this.is_tracking {
            client.get().forget_kept();
        }
        RedisClient::remove_ended(client, slf.as_unbound());
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
        outgoing.note_taken();
        self.transport.seal(&outgoing.output, bytes);
        outgoing.output.clear();
    }

    fn put_back_output(&self, py: Python<'_>, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if !self.transport.put_back(bytes) {
            let output = &mut lock(&self.outgoing).output;
            output.splice(..0, bytes.iter().copied());
        }
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
        let mut first = Vec::new();
        let incoming = Incoming::new(&login, client.get().reply_bytes_max, &mut first);
        Ok(Self {
            client,
            node,
            listener,
            incoming: Mutex::new(Some(Box::new(incoming))),
            outgoing: Mutex::new(Outgoing::new(first)),
            transport: Transport::new(wake, secured.transpose()?),
            load: AtomicUsize::new(0),
            id: AtomicI64::new(0),
            is_tracking,
            is_closed: AtomicBool::new(false),
            heard_ms: AtomicU64::new(coarse_ms()),
            lease: AtomicU64::new(0),
            is_lent: AtomicBool::new(false),
            is_watching: AtomicBool::new(false),
            is_asking: AtomicBool::new(false),
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
        visit.call(&self.listener)?;
        self.transport.traverse(&visit)
    }
}
