//! The connections of one application with one Redis, or one cluster: what Python makes calls with, and what it does for them.
//!
//! Which call goes where is in [`dispatch`](super::dispatch), which replies are kept in [`kept`](super::kept).

use std::hash::RandomState;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

use citius_base::client_metrics::ClientMetrics;
use citius_base::process::Process;
use citius_base::sync::lock;
use citius_observe::ClientCounter;
use citius_reactor::coarse_ms;
use citius_redis::{Cache, CacheLimits, Manner, manner_of, slot_of};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use super::call::{RedisCall, Script, Work, name_of};
use super::connection::RedisConnection;
use super::nodes;
use super::reply::{Blobs, Shape, Then};

/// The servers of a client.
pub(super) type Nodes = nodes::Nodes<RedisConnection, RedisCall>;

/// Connections that share calls among them.
#[pyclass(frozen, module = "citius._core", name = "RedisClient")]
pub(crate) struct RedisClient {
    /// The loop on which the client was opened; `None` where there is none.
    event_loop: Option<Py<PyAny>>,
    /// The thread on which it was.
    home: ThreadId,
    /// A child that is forked later has copies of the same sockets.
    process: Process,
    /// Told what happens: `(kind, value)`.
    listener: Py<PyAny>,
    is_text: bool,
    /// Calls that may wait for a connection, and that may wait for their replies on one.
    pub(crate) queue_max: usize,
    /// How long; `None`: without an end.
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) reply_bytes_max: usize,
    pub(crate) nodes: Mutex<Nodes>,
    pub(crate) cache: Option<Mutex<Cache<RandomState>>>,
    pub(crate) prefixes: Vec<Vec<u8>>,
    /// Fields of hashes may have times to live of their own, if the server knows such.
    pub(crate) has_field_ttls: bool,
    /// Functions that decode MessagePack and JSON, by type.
    msgpack: Py<PyDict>,
    json: Py<PyDict>,
    /// What counts, if anything does.
    metrics: Option<Py<ClientMetrics>>,
    /// Python will look for calls that have waited for too long.
    pub(crate) is_timed: AtomicBool,
}

impl RedisClient {
    /// The loop of the client, if this is its thread.
    #[inline]
    pub(crate) fn home_loop(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let event_loop = self.event_loop.as_ref()?;
        (std::thread::current().id() == self.home).then(|| event_loop.clone_ref(py))
    }

    /// Whether this is the process that has opened it.
    #[inline]
    pub(crate) fn is_of_process(&self) -> bool {
        self.process == Process::current()
    }

    pub(crate) fn metrics(&self) -> Option<&ClientMetrics> {
        self.metrics.as_ref().map(Py::get)
    }

    pub(crate) fn tell(&self, py: Python<'_>, kind: &str, value: impl for<'py> IntoPyObject<'py>) {
        let told = value
            .into_py_any(py)
            .and_then(|value| self.listener.call1(py, (kind, value)));
        if let Err(error) = told {
            error.write_unraisable(py, None);
        }
    }

    /// The function that decodes values of a type.
    fn decoder(
        py: Python<'_>,
        known: &Py<PyDict>,
        maker: &str,
        as_: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Blobs> {
        let nothing = py.None();
        let kind = as_.unwrap_or(nothing.bind(py));
        if let Some(decode) = known.bind(py).get_item(kind)? {
            return Ok(Blobs::Decoded(decode.unbind()));
        }
        let decode = py
            .import("citius.redis.codecs")?
            .getattr(maker)?
            .call1((kind,))?;
        known.bind(py).set_item(kind, &decode)?;
        Ok(Blobs::Decoded(decode.unbind()))
    }
}

#[pymethods]
impl RedisClient {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "what one client is made of")]
    #[pyo3(signature = (listener, *, event_loop = None, is_text = false, queue_max, timeout_ms, reply_bytes_max,
                        cache = None, metrics = None))]
    fn new(
        py: Python<'_>,
        listener: Py<PyAny>,
        event_loop: Option<Py<PyAny>>,
        is_text: bool,
        queue_max: usize,
        timeout_ms: Option<u64>,
        reply_bytes_max: usize,
        cache: Option<CacheArguments>,
        metrics: Option<Py<ClientMetrics>>,
    ) -> Self {
        let has_field_ttls = cache.as_ref().is_some_and(|it| it.4);
        let cache = cache.map(
            |(entries_max, bytes_max, age_max_ms, prefixes, _)| CacheLimits {
                entries_max,
                bytes_max,
                age_max_ms,
                prefixes,
            },
        );
        let mut nodes = Nodes::default();
        nodes.list.push(nodes::Node::default());
        Self {
            event_loop,
            home: std::thread::current().id(),
            process: Process::current(),
            listener,
            is_text,
            queue_max,
            timeout_ms,
            reply_bytes_max,
            nodes: Mutex::new(nodes),
            has_field_ttls,
            prefixes: cache.iter().flat_map(|it| it.prefixes.clone()).collect(),
            cache: cache.map(|limits| Mutex::new(Cache::new(limits, RandomState::new()))),
            msgpack: PyDict::new(py).unbind(),
            json: PyDict::new(py).unbind(),
            metrics,
            is_timed: AtomicBool::new(false),
        }
    }

    /// A command: its words; what strings of its reply become, and what becomes of its value.
    #[pyo3(signature = (*words, as_ = None, then = None, blocks_ms = None, connection = None, node = None))]
    fn execute(
        slf: &Bound<'_, Self>,
        words: &Bound<'_, PyTuple>,
        as_: Option<&Bound<'_, PyAny>>,
        then: Option<&Bound<'_, PyAny>>,
        blocks_ms: Option<u64>,
        connection: Option<Py<RedisConnection>>,
        node: Option<usize>,
    ) -> PyResult<Py<RedisCall>> {
        let is_blocking = needs_own_connection(words, connection.as_ref().map(Py::get))?;
        let shape = Shape {
            blobs: Blobs::of(as_, slf.get().is_text)?,
            then: Then::of(then),
        };
        let work = Work::Command(words.clone().unbind());
        let mut call = RedisCall::new(slf.clone().unbind(), connection, work, shape);
        call.is_blocking = is_blocking;
        call.blocks_ms = blocks_ms;
        call.node = node;
        Py::new(slf.py(), call)
    }

    #[pyo3(signature = (key, as_ = None))]
    fn get(
        slf: &Bound<'_, Self>,
        key: Py<PyAny>,
        as_: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<RedisCall>> {
        Self::get_as(slf, key, Blobs::of(as_, slf.get().is_text)?)
    }

    #[pyo3(signature = (key, as_ = None))]
    fn get_msgpack(
        slf: &Bound<'_, Self>,
        key: Py<PyAny>,
        as_: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<RedisCall>> {
        let blobs = Self::decoder(slf.py(), &slf.get().msgpack, "msgpack_decoder", as_)?;
        Self::get_as(slf, key, blobs)
    }

    #[pyo3(signature = (key, as_ = None))]
    fn get_json(
        slf: &Bound<'_, Self>,
        key: Py<PyAny>,
        as_: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<RedisCall>> {
        let blobs = Self::decoder(slf.py(), &slf.get().json, "json_decoder", as_)?;
        Self::get_as(slf, key, blobs)
    }

    /// A script: by its hash, or in full when the server does not know it.
    #[pyo3(signature = (source, hash, arguments, *, is_read_only = false, as_ = None, connection = None))]
    fn script(
        slf: &Bound<'_, Self>,
        source: Py<PyString>,
        hash: Py<PyString>,
        arguments: Py<PyTuple>,
        is_read_only: bool,
        as_: Option<&Bound<'_, PyAny>>,
        connection: Option<Py<RedisConnection>>,
    ) -> PyResult<Py<RedisCall>> {
        let shape = Shape {
            blobs: Blobs::of(as_, slf.get().is_text)?,
            then: Then::Value,
        };
        let work = Work::Script(Script {
            source,
            hash,
            arguments,
            is_unknown: AtomicBool::new(false),
            is_read_only,
        });
        Py::new(
            slf.py(),
            RedisCall::new(slf.clone().unbind(), connection, work, shape),
        )
    }

    /// Commands that were held, between `MULTI` and `EXEC`; each gets its own result.
    #[pyo3(signature = (calls, connection = None))]
    fn transaction(
        slf: &Bound<'_, Self>,
        calls: Vec<Py<RedisCall>>,
        connection: Option<Py<RedisConnection>>,
    ) -> PyResult<Py<RedisCall>> {
        let shape = Shape {
            blobs: Blobs::Bytes,
            then: Then::Value,
        };
        let work = Work::Transaction(calls);
        Py::new(
            slf.py(),
            RedisCall::new(slf.clone().unbind(), connection, work, shape),
        )
    }

    /// A connection for the caller alone, until it is given back; of a cluster to the node that has this key.
    #[pyo3(signature = (key = None))]
    fn acquire(slf: &Bound<'_, Self>, key: Option<&Bound<'_, PyAny>>) -> PyResult<Py<RedisCall>> {
        let key = key.map(key_bytes).transpose()?;
        let shape = Shape {
            blobs: Blobs::Bytes,
            then: Then::Value,
        };
        let call = RedisCall::new(slf.clone().unbind(), None, Work::Acquire(key), shape);
        Py::new(slf.py(), call)
    }

    /// The call for another connection than `call` has led to, where `error` came from that node; `None`: it leads nowhere.
    fn acquire_instead(
        slf: &Bound<'_, Self>,
        call: &RedisCall,
        node: usize,
        error: &str,
    ) -> PyResult<Option<Py<RedisCall>>> {
        Self::acquire_after(slf, call, node, error.as_bytes())
    }

    /// The servers that have slots of a cluster.
    fn masters(&self) -> Vec<usize> {
        lock(&self.nodes).masters()
    }

    /// Whether a server has connections.
    fn is_connected(&self, node: usize) -> bool {
        lock(&self.nodes).is_connected(node)
    }

    /// Keeps no reply that is kept now: what changes may not be told.
    fn forget(&self) {
        self.forget_kept();
    }

    // --- what Python does for it ---

    /// Lets a connection take calls: any, or one at a time that the server may keep waiting.
    fn share(slf: &Bound<'_, Self>, connection: Py<RedisConnection>, is_blocking: bool) {
        let node = connection.get().node;
        {
            let mut nodes = lock(&slf.get().nodes);
            if let Some(lane) = nodes.lane((node, is_blocking))
                && !lane.connections.iter().any(|known| known.is(&connection))
            {
                lane.connections.push(connection);
            }
        }
        Self::pump(slf, node);
    }

    /// Takes back a connection that a caller had for itself; without `is_kept` it is to be closed.
    fn give_back(&self, py: Python<'_>, connection: Py<RedisConnection>, is_kept: bool) {
        self.take_back(py, connection, is_kept);
    }

    /// The number of the server that has a key.
    fn node_of(&self, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        let slot = slot_of(&key_bytes(key)?);
        Ok(lock(&self.nodes).route(|| Some(slot)).unwrap_or(0))
    }

    /// The number of a server that has connections.
    fn any_node(&self) -> usize {
        lock(&self.nodes).route(|| None).unwrap_or(0)
    }

    /// Takes a connection from those that take calls.
    fn unshare(slf: &Bound<'_, Self>, connection: &Bound<'_, RedisConnection>) {
        Self::remove(slf, connection.as_unbound());
    }

    /// The number of the server at an address, `host:port`.
    fn node(&self, address: &str) -> usize {
        lock(&self.nodes).find_or_add(address)
    }

    /// The address of a server.
    fn address(&self, node: usize) -> Option<String> {
        let nodes = lock(&self.nodes);
        nodes.list.get(node).map(|node| node.address.clone())
    }

    /// Has slots belong to servers: the first one, the last one, and the server's number.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 makes it of a list")]
    fn set_slots(&self, ranges: Vec<(u16, u16, usize)>) {
        lock(&self.nodes).set_slots(&ranges);
    }

    /// Sends calls that wait for a server to where their keys are now.
    #[pyo3(name = "route_again")]
    fn route_all_again(slf: &Bound<'_, Self>, node: usize) {
        let waiting = {
            let mut nodes = lock(&slf.get().nodes);
            let parked = std::mem::take(&mut nodes.parked);
            let mut waiting: Vec<_> = parked.into_iter().map(|one| one.call).collect();
            if let Some(node) = nodes.list.get_mut(node) {
                waiting.extend(std::mem::take(&mut node.shared.queue));
                waiting.extend(std::mem::take(&mut node.blocking.queue));
            }
            waiting
        };
        for call in waiting {
            Self::route_again(slf, call);
        }
    }

    /// Sends calls again that a node could not serve a moment ago.
    fn send_parked(slf: &Bound<'_, Self>) {
        let parked = std::mem::take(&mut lock(&slf.get().nodes).parked);
        for one in parked {
            Self::route_again(slf, one.call);
        }
    }

    /// Calls that wait for a connection, of one server, shared or blocking.
    fn waiting(&self, node: usize, is_blocking: bool) -> usize {
        let mut nodes = lock(&self.nodes);
        nodes
            .lane((node, is_blocking))
            .map_or(0, |lane| lane.queue.len())
    }

    /// Calls that wait for a connection.
    #[getter]
    fn queued(&self) -> usize {
        lock(&self.nodes).queued()
    }

    /// Fails what had waited for too long so many milliseconds ago with what `error` makes; whether anything waits still.
    #[pyo3(signature = (error, *, all = false, ago_ms = 0))]
    fn expire(slf: &Bound<'_, Self>, error: &Bound<'_, PyAny>, all: bool, ago_ms: u64) -> bool {
        let (py, this) = (slf.py(), slf.get());
        let due = this.take_due(
            py,
            if all {
                u64::MAX
            } else {
                coarse_ms().saturating_sub(ago_ms)
            },
        );
        this.is_timed.store(due.is_waiting, Ordering::Relaxed);
        let fail = |call: &Py<RedisCall>| {
            if let Some(metrics) = this.metrics() {
                metrics.count(ClientCounter::Refused);
            }
            let failed = error.call0().map_or_else(|error| error, PyErr::from_value);
            Self::finish(slf, call, Err(failed), false);
        };
        for parked in due.parked {
            if all {
                fail(&parked.call);
            } else {
                Self::give_up(slf, &parked.call, &parked.error);
            }
        }
        for call in due.calls {
            fail(&call);
        }
        for connection in due.silent {
            this.tell(py, "silent", connection);
        }
        due.is_waiting
    }

    /// Takes no more calls; those that wait are to be expired.
    fn stop(&self) {
        lock(&self.nodes).is_closed = true;
    }

    /// Replies that are kept, the bytes that they take, hits and misses.
    fn kept(&self) -> (usize, usize, u64, u64) {
        let Some(cache) = &self.cache else {
            return (0, 0, 0, 0);
        };
        let cache = lock(cache);
        let (entries, bytes) = cache.size();
        (entries, bytes, cache.hits, cache.misses)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        visit.call(&self.listener)?;
        visit.call(&self.msgpack)?;
        visit.call(&self.json)?;
        if let Ok(mut nodes) = self.nodes.try_lock() {
            for connection in &nodes.open {
                visit.call(connection)?;
            }
            for parked in &nodes.parked {
                visit.call(&parked.call)?;
            }
            for lane in nodes.lanes() {
                for connection in &lane.connections {
                    visit.call(connection)?;
                }
                for call in &lane.queue {
                    visit.call(call)?;
                }
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let nodes = std::mem::take(&mut *lock(&self.nodes));
        drop(nodes);
    }
}

/// Entries, bytes, age in milliseconds, prefixes of keys, and whether fields of hashes may have times to live of their own.
type CacheArguments = (usize, usize, u64, Vec<Vec<u8>>, bool);

impl RedisClient {
    /// A command of compiled code: its words as bytes. Strings of its reply are bytes.
    pub(crate) fn native_call(
        slf: &Bound<'_, Self>,
        words: &Bound<'_, PyTuple>,
    ) -> PyResult<Py<RedisCall>> {
        let bytes = slf.py().get_type::<PyBytes>();
        Self::execute(slf, words, Some(bytes.as_any()), None, None, None, None)
    }

    /// Takes back a connection that a caller had for itself; without `is_kept`, or with a reply that is late, it is to be closed.
    pub(crate) fn take_back(&self, py: Python<'_>, connection: Py<RedisConnection>, is_kept: bool) {
        let is_clean = connection.get().end_lease();
        let kind = if is_kept && is_clean {
            "given_back"
        } else {
            "left"
        };
        self.tell(py, kind, connection);
    }

    fn get_as(slf: &Bound<'_, Self>, key: Py<PyAny>, blobs: Blobs) -> PyResult<Py<RedisCall>> {
        let shape = Shape {
            blobs,
            then: Then::Value,
        };
        let call = RedisCall::new(slf.clone().unbind(), None, Work::Get(key), shape);
        Py::new(slf.py(), call)
    }
}

/// Whether a command needs a connection on which nothing else waits.
///
/// # Errors
/// It is none that a client sends for its caller on such a connection.
fn needs_own_connection(
    words: &Bound<'_, PyTuple>,
    connection: Option<&RedisConnection>,
) -> PyResult<bool> {
    let Ok(name) = words.get_borrowed_item(0) else {
        return Err(PyTypeError::new_err("expected a command and its arguments"));
    };
    let argument = || words.get_item(1).ok().and_then(|word| bytes_of(&word));
    let manner = if let Ok(name) = name.cast::<PyString>() {
        manner_of(name.to_str()?.as_bytes(), argument)
    } else if let Ok(name) = name.cast::<PyBytes>() {
        manner_of(name.as_bytes(), argument)
    } else {
        return Err(PyTypeError::new_err(format!(
            "expected the name of a command as str or bytes, got {}",
            name.get_type().name()?
        )));
    };
    let kind = match (manner, connection) {
        (Manner::Shared, _) => return Ok(false),
        (Manner::Blocking, _) => return Ok(true),
        (Manner::BlockingWith(word), _) => {
            let is_it = |other: Bound<'_, PyAny>| {
                bytes_of(&other).is_some_and(|bytes| bytes.eq_ignore_ascii_case(word))
            };
            return Ok(words.iter().skip(1).any(is_it));
        }
        (Manner::Refused(_), Some(own)) if !own.is_watching() => return Ok(false),
        (Manner::Refused(_), Some(_)) if matches!(name_of(words).as_str(), "WATCH" | "UNWATCH") => {
            return Ok(false);
        }
        (Manner::Refused(instead), Some(_)) => format!(
            "is not sent on a connection of redis.watch(…), which others have next: use redis.connection(), or {instead}"
        ),
        (Manner::Refused(instead), None) => {
            format!("is not sent on a connection that is shared: {instead}")
        }
        (Manner::Never(instead), _) => format!("is not sent by this client: {instead}"),
    };
    let mut name = name_of(words);
    if let (true, Some(argument)) = (name == "CLIENT" || name == "SCRIPT", argument()) {
        name = format!(
            "{name} {}",
            String::from_utf8_lossy(&argument).to_uppercase()
        );
    }
    Err(PyValueError::new_err(format!("{name} {kind}")))
}

/// The bytes of a word that is a string of some kind.
fn bytes_of(word: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if let Ok(text) = word.cast::<PyString>() {
        return Some(text.to_str().ok()?.as_bytes().to_vec());
    }
    if let Ok(bytes) = word.cast::<PyBytes>() {
        return Some(bytes.as_bytes().to_vec());
    }
    let made = word.py().get_type::<PyBytes>().call1((word,));
    let is_buffer = word.hasattr("__len__").unwrap_or(false);
    made.ok()
        .filter(|_| is_buffer)
        .and_then(|made| Some(made.cast::<PyBytes>().ok()?.as_bytes().to_vec()))
}

fn key_bytes(key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    Ok(key.cast::<PyBytes>()?.as_bytes().to_vec())
}
