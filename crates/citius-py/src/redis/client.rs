//! The connections of one application with one Redis, or one cluster of them: which call goes where, and what waits.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

use citius_reactor::coarse_ms;
use citius_redis::{CachedBy, Manner, Redirect, Tracking, key_of, slot_of, traits_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use super::cache::{Cache, CacheLimits};
use super::call::{RedisCall, Script, Work};
use super::connection::{RedisConnection, Submission};
use super::errors::{error_of, server_error};
use super::nodes::{Node, Nodes, Place, Waiting};
use super::reply::{Blobs, Builder, Shape, Then};
use crate::sync::lock;

/// Connections that share calls among them.
#[pyclass(frozen, module = "citius._core", name = "RedisClient")]
pub(crate) struct RedisClient {
    /// The loop on which the client was opened; `None` where there is none.
    event_loop: Option<Py<PyAny>>,
    /// The thread on which it was.
    home: ThreadId,
    /// Told what happens: `(kind, value)`.
    listener: Py<PyAny>,
    is_text: bool,
    /// Calls that may wait for a connection, and that may wait for their replies on one.
    queue_max: usize,
    /// How long; `None`: without an end.
    timeout_ms: Option<u64>,
    pub(crate) reply_bytes_max: usize,
    nodes: Mutex<Nodes>,
    cache: Option<Mutex<Cache>>,
    prefixes: Vec<Vec<u8>>,
    /// Functions that decode MessagePack and JSON, by type.
    msgpack: Py<PyDict>,
    json: Py<PyDict>,
    /// Python will look for calls that have waited for too long.
    is_timed: AtomicBool,
}

/// What the server has said to a command.
pub(crate) enum Outcome {
    Value(PyResult<Py<PyAny>>),
    Error(Box<[u8]>),
}

impl Outcome {
    pub(crate) fn is_value(&self) -> bool {
        matches!(self, Self::Value(Ok(_)))
    }

    pub(crate) fn into_result(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Value(value) => value,
            Self::Error(error) => Err(server_error(py, &error)),
        }
    }
}

/// What the codes of errors begin with that are no results.
const NO_SCRIPT: &[u8] = b"NOSCRIPT";

impl RedisClient {
    /// The loop of the client, if this is its thread.
    #[inline]
    pub(crate) fn home_loop(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let event_loop = self.event_loop.as_ref()?;
        (std::thread::current().id() == self.home).then(|| event_loop.clone_ref(py))
    }

    pub(crate) fn tracking(&self) -> Tracking {
        match (&self.cache, self.prefixes.as_slice()) {
            (None, _) => Tracking::Off,
            (Some(_), []) => Tracking::Read,
            (Some(_), prefixes) => Tracking::Prefixes(prefixes.to_vec()),
        }
    }

    // --- calls on their way ---

    /// Takes a call.
    ///
    /// # Errors
    /// Its arguments cannot be sent, too much waits, or the client is closed.
    pub(crate) fn submit(slf: &Bound<'_, Self>, call: Py<RedisCall>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let mut encoded = Encoded::new();
        let replies = call.get().encode(py, &mut encoded.0)?;
        if let Some(cache) = &this.cache
            && this.is_kept(py, cache, &encoded.0, &call)?
        {
            return Ok(());
        }
        this.arm(py);
        let until_ms = this.until();
        if let Some(connection) = &call.get().connection {
            let connection = connection.clone_ref(py);
            let submission = Submission {
                call,
                replies,
                until_ms,
            };
            let pushed = connection
                .get()
                .push(py, &encoded.0, submission, this.cache.is_some());
            return pushed.map_err(|_| error_of(py, "connection_lost", "it was closed"));
        }
        let node = lock(&this.nodes).route(|| slot_of_call(call.get(), &encoded.0));
        this.send(
            slf,
            node.unwrap_or(0),
            call,
            until_ms,
            Some((&encoded.0, replies)),
        )
    }

    /// Sends a call to a server, or queues it there.
    fn send(
        &self,
        slf: &Bound<'_, Self>,
        node: usize,
        call: Py<RedisCall>,
        until_ms: u64,
        encoded: Option<(&[u8], u32)>,
    ) -> PyResult<()> {
        let py = slf.py();
        let place = (node, call.get().needs_own());
        let mut call = call;
        if let Some(connection) = self.pick(py, place)? {
            match self.hand_over(slf, &connection, place, call, until_ms, encoded)? {
                None => return Ok(()),
                Some(back) => call = back,
            }
        }
        self.queue(py, place, call, until_ms)
    }

    /// A connection for a call that goes to `place`; `None` if it has to wait for one.
    ///
    /// # Errors
    /// Too much is under way.
    fn pick(&self, py: Python<'_>, place: Place) -> PyResult<Option<Py<RedisConnection>>> {
        let mut nodes = lock(&self.nodes);
        let Some(lane) = nodes.lane(place) else {
            return Ok(None);
        };
        if !lane.queue.is_empty() {
            return Ok(None);
        }
        if place.1 {
            return Ok(lane.pick_idle(py));
        }
        let Some(connection) = lane.pick(py) else {
            return Ok(None);
        };
        drop(nodes);
        let load = connection.get().load();
        if load >= self.queue_max || (load > 0 && connection.get().is_full()) {
            return Err(error_of(py, "too_much_waits", load));
        }
        Ok(Some(connection))
    }

    /// Has a connection do a call; gives the call back if it does not.
    fn hand_over(
        &self,
        slf: &Bound<'_, Self>,
        connection: &Py<RedisConnection>,
        place: Place,
        call: Py<RedisCall>,
        until_ms: u64,
        encoded: Option<(&[u8], u32)>,
    ) -> PyResult<Option<Py<RedisCall>>> {
        let py = slf.py();
        if let Work::Acquire(_) = &call.get().work {
            let is_taken = lock(&self.nodes)
                .lane(place)
                .is_some_and(|lane| lane.remove(connection));
            if is_taken {
                let connection = connection.clone_ref(py).into_any();
                Self::finish(slf, &call, Ok(connection), false);
                return Ok(None);
            }
            return Ok(Some(call));
        }
        let until_ms = if place.1 {
            self.until_blocked(call.get())
        } else {
            until_ms
        };
        let mut made = Encoded::new();
        let (bytes, replies) = match encoded {
            Some(encoded) => encoded,
            None => {
                let replies = call.get().encode(py, &mut made.0)?;
                (made.0.as_slice(), replies)
            }
        };
        let submission = Submission {
            call,
            replies,
            until_ms,
        };
        let pushed = connection
            .get()
            .push(py, bytes, submission, self.cache.is_some());
        Ok(pushed.err())
    }

    fn queue(
        &self,
        py: Python<'_>,
        place: Place,
        call: Py<RedisCall>,
        until_ms: u64,
    ) -> PyResult<()> {
        {
            let mut nodes = lock(&self.nodes);
            if nodes.is_closed {
                return Err(error_of(py, "client_closed", py.None()));
            }
            let queued = nodes.queued();
            let Some(lane) = nodes.lane(place) else {
                return Err(error_of(py, "client_closed", py.None()));
            };
            if queued >= self.queue_max {
                return Err(error_of(py, "too_much_waits", queued));
            }
            lane.queue.push_back(Waiting { call, until_ms });
        }
        self.tell(py, "wanted", place);
        Ok(())
    }

    /// Takes back a call that its connection has not sent.
    pub(crate) fn queue_first(
        slf: &Bound<'_, Self>,
        node: usize,
        call: Py<RedisCall>,
        until_ms: u64,
    ) {
        let place = (node, call.get().needs_own());
        {
            let mut nodes = lock(&slf.get().nodes);
            if let Some(lane) = nodes.lane(place) {
                lane.queue.push_front(Waiting { call, until_ms });
            }
        }
        slf.get().tell(slf.py(), "wanted", place);
    }

    /// Hands calls that wait to connections that have room.
    pub(crate) fn pump(slf: &Bound<'_, Self>, node: usize) {
        for is_blocking in [false, true] {
            while Self::pump_one(slf, (node, is_blocking)) {}
        }
    }

    /// Hands over the call that has waited longest; `false` if there is none, or no connection for it.
    fn pump_one(slf: &Bound<'_, Self>, place: Place) -> bool {
        let (py, this) = (slf.py(), slf.get());
        let (connection, waiting) = {
            let mut nodes = lock(&this.nodes);
            let Some(lane) = nodes.lane(place) else {
                return false;
            };
            if lane.queue.is_empty() {
                return false;
            }
            let connection = if place.1 {
                lane.pick_idle(py)
            } else {
                lane.pick(py)
            };
            let Some(connection) = connection.filter(|it| it.get().load() < this.queue_max) else {
                return false;
            };
            let Some(waiting) = lane.queue.pop_front() else {
                return false;
            };
            (connection, waiting)
        };
        let Waiting { call, until_ms } = waiting;
        if call.get().is_over() {
            return true;
        }
        let kept = call.clone_ref(py);
        match this.hand_over(slf, &connection, place, call, until_ms, None) {
            Ok(None) => true,
            Ok(Some(call)) => {
                let mut nodes = lock(&this.nodes);
                if let Some(lane) = nodes.lane(place) {
                    lane.queue.push_front(Waiting { call, until_ms });
                }
                false
            }
            Err(error) => {
                Self::finish(slf, &kept, Err(error), false);
                true
            }
        }
    }

    // --- what becomes of them ---

    /// What the server has said is the result, or the call is sent again: to another server, or with its script in full.
    pub(crate) fn settle(
        slf: &Bound<'_, Self>,
        node: usize,
        call: Py<RedisCall>,
        outcome: Outcome,
        may_step: bool,
    ) {
        let py = slf.py();
        let error = match outcome {
            Outcome::Value(value) => return Self::finish(slf, &call, value, may_step),
            Outcome::Error(error) => error,
        };
        if !call.get().is_over() {
            if let Work::Script(script) = &call.get().work
                && error.starts_with(NO_SCRIPT)
                && !script.is_unknown.swap(true, Ordering::Relaxed)
            {
                return Self::send_again(slf, node, call);
            }
            if lock(&slf.get().nodes).is_cluster()
                && let Some(redirect) = Redirect::of(&error)
                && call.get().is_free()
                && call.get().may_follow()
            {
                return Self::follow(slf, node, call, redirect);
            }
        }
        if error.starts_with(b"READONLY") {
            slf.get().tell(py, "read_only", node);
        }
        let error = server_error(py, &error);
        Self::finish(slf, &call, Err(error), may_step);
    }

    /// Keeps a result for its call and wakes the code that waits for it.
    pub(crate) fn finish(
        slf: &Bound<'_, Self>,
        call: &Py<RedisCall>,
        result: PyResult<Py<PyAny>>,
        may_step: bool,
    ) {
        let (py, call) = (slf.py(), call.get());
        let result = result.and_then(|value| {
            if call.is_over() {
                return Ok(value);
            }
            call.shape.then.apply(py, value)
        });
        if let Some(sleeper) = call.finish(result) {
            sleeper.wake(py, may_step);
        }
    }

    fn send_again(slf: &Bound<'_, Self>, node: usize, call: Py<RedisCall>) {
        let until_ms = slf.get().until();
        let kept = call.clone_ref(slf.py());
        if let Err(error) = slf.get().send(slf, node, call, until_ms, None) {
            Self::finish(slf, &kept, Err(error), false);
        }
    }

    /// Follows what a node of a cluster says about where a key is.
    fn follow(slf: &Bound<'_, Self>, node: usize, call: Py<RedisCall>, redirect: Redirect<'_>) {
        let (py, this) = (slf.py(), slf.get());
        let (slot, address, is_moved) = match redirect {
            Redirect::Moved(slot, address) => (slot, address, true),
            // `ASKING` holds for one command only.
            Redirect::Ask(slot, address) if !matches!(call.get().work, Work::Transaction(_)) => {
                (slot, address, false)
            }
            Redirect::Ask(..) | Redirect::Again => return Self::park(slf, call),
        };
        let (target, is_new) = {
            let mut nodes = lock(&this.nodes);
            let address = full_address(&nodes, node, address);
            let (target, is_new) = nodes.find_or_add(&address);
            if is_moved {
                nodes.set_slot(slot, target);
            }
            (target, is_new)
        };
        if is_new {
            this.tell(py, "node", target);
        }
        if is_moved {
            this.tell(py, "moved", target);
            return Self::send_again(slf, target, call);
        }
        Self::ask(slf, target, call);
    }

    /// Sends a call to the node that is taking over its slot.
    fn ask(slf: &Bound<'_, Self>, node: usize, call: Py<RedisCall>) {
        let (py, this) = (slf.py(), slf.get());
        let mut encoded = Encoded::new();
        encoded.0.extend_from_slice(b"*1\r\n$6\r\nASKING\r\n");
        let replies = call.get().encode(py, &mut encoded.0);
        let place = (node, call.get().needs_own());
        let connection = this.pick(py, place);
        match (replies, connection) {
            (Ok(replies), Ok(Some(connection))) => {
                let until_ms = this.until();
                let encoded = (encoded.0.as_slice(), replies + 1);
                let kept = call.clone_ref(py);
                match this.hand_over(slf, &connection, place, call, until_ms, Some(encoded)) {
                    Ok(None) => {}
                    Ok(Some(call)) => Self::park(slf, call),
                    Err(error) => Self::finish(slf, &kept, Err(error), false),
                }
            }
            (Err(error), _) => Self::finish(slf, &call, Err(error), false),
            // It is asked again when there is a connection.
            _ => Self::park(slf, call),
        }
    }

    /// Sends a call again in a moment.
    fn park(slf: &Bound<'_, Self>, call: Py<RedisCall>) {
        let this = slf.get();
        let until_ms = this.until();
        lock(&this.nodes)
            .parked
            .push_back(Waiting { call, until_ms });
        this.tell(slf.py(), "parked", slf.py().None());
    }

    /// No code waits for a call any more.
    pub(crate) fn abandoned(slf: &Bound<'_, Self>, call: &Bound<'_, RedisCall>) {
        let (py, this) = (slf.py(), slf.get());
        let mut busy = None;
        let gone = {
            let mut nodes = lock(&this.nodes);
            let mut gone = None;
            for lane in nodes.lanes() {
                let at = lane.queue.iter().position(|it| it.call.is(call));
                gone = gone.or(at.and_then(|at| lane.queue.remove(at)));
            }
            if gone.is_none() && call.get().is_blocking {
                let mut lanes = nodes.lanes();
                busy = lanes.find_map(|lane| {
                    let found = lane.connections.iter().find(|it| it.get().has(call));
                    found.map(|it| it.clone_ref(py))
                });
            }
            gone
        };
        drop(gone);
        if let Some(connection) = busy {
            // What the server gives to a waiting command that no code waits for would be lost.
            this.tell(py, "abandoned", connection);
        }
    }

    /// A connection has ended.
    pub(crate) fn remove(slf: &Bound<'_, Self>, connection: &Py<RedisConnection>) {
        let mut nodes = lock(&slf.get().nodes);
        for lane in nodes.lanes() {
            lane.remove(connection);
        }
    }

    /// Takes back a connection that a caller had for itself.
    pub(crate) fn give_back_now(slf: &Bound<'_, Self>, connection: Py<RedisConnection>) {
        slf.get().tell(slf.py(), "given_back", connection);
    }

    // --- time ---

    /// When a call that comes now has waited for too long.
    fn until(&self) -> u64 {
        self.timeout_ms
            .map_or(u64::MAX, |timeout_ms| coarse_ms() + timeout_ms)
    }

    /// The same for a call that the server may keep waiting.
    fn until_blocked(&self, call: &RedisCall) -> u64 {
        let until = call.blocks_ms.map(|ms| self.until().saturating_add(ms));
        until.unwrap_or(u64::MAX)
    }

    /// Has Python look for calls that have waited for too long.
    #[inline]
    fn arm(&self, py: Python<'_>) {
        if self.timeout_ms.is_some() && !self.is_timed.load(Ordering::Relaxed) {
            self.is_timed.store(true, Ordering::Relaxed);
            self.tell(py, "timed", py.None());
        }
    }

    // --- replies that are kept ---

    /// Whether the reply to a call is kept; then it is its result.
    fn is_kept(
        &self,
        py: Python<'_>,
        cache: &Mutex<Cache>,
        encoded: &[u8],
        call: &Py<RedisCall>,
    ) -> PyResult<bool> {
        if !matches!(call.get().work, Work::Command(_) | Work::Get(_)) {
            lock(cache).forget_words(encoded);
            return Ok(false);
        }
        let name = citius_redis::Words::of(encoded).next().unwrap_or_default();
        if traits_of(name).cached_by == CachedBy::Nothing {
            lock(cache).forget_words(encoded);
            return Ok(false);
        }
        let Some(reply) = lock(cache).get(encoded, coarse_ms()) else {
            return Ok(false);
        };
        let value = call
            .get()
            .shape
            .then
            .apply(py, read_kept(py, &reply, &call.get().shape.blobs)?)?;
        // No code waits yet.
        call.get().finish(Ok(value));
        Ok(true)
    }

    /// A reply has come: it is kept, or what it may have changed is not kept any more.
    pub(crate) fn note_reply(&self, encoded: &[u8], reply: &[u8], is_value: bool) {
        let Some(cache) = &self.cache else { return };
        let mut cache = lock(cache);
        if cache.is_cacheable(encoded) {
            if is_value && !reply.is_empty() {
                cache.insert(encoded, reply, coarse_ms());
            }
        } else {
            cache.forget_words(encoded);
        }
    }

    /// Takes a message that keys have changed; `false` if it is another one.
    pub(crate) fn take_invalidation(&self, push: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (Some(cache), Ok(push)) = (&self.cache, push.cast::<PyList>()) else {
            return Ok(false);
        };
        let is_one = push.len() == 2
            && push
                .get_item(0)?
                .cast::<PyBytes>()
                .is_ok_and(|kind| kind.as_bytes() == b"invalidate");
        if !is_one {
            return Ok(false);
        }
        let keys = push.get_item(1)?;
        let mut cache = lock(cache);
        match keys.cast::<PyList>() {
            // All of them: the database has been emptied.
            Err(_) => cache.clear(),
            Ok(keys) => {
                for key in keys {
                    if let Ok(key) = key.cast::<PyBytes>() {
                        cache.forget(key.as_bytes());
                    }
                }
            }
        }
        Ok(true)
    }

    pub(crate) fn forget_kept(&self) {
        if let Some(cache) = &self.cache {
            lock(cache).clear();
        }
    }

    fn tell(&self, py: Python<'_>, kind: &str, value: impl for<'py> IntoPyObject<'py>) {
        use pyo3::IntoPyObjectExt;
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
    #[pyo3(signature = (listener, *, event_loop = None, is_text = false, queue_max, timeout_ms, reply_bytes_max,
                        cache = None))]
    fn new(
        py: Python<'_>,
        listener: Py<PyAny>,
        event_loop: Option<Py<PyAny>>,
        is_text: bool,
        queue_max: usize,
        timeout_ms: Option<u64>,
        reply_bytes_max: usize,
        cache: Option<CacheArguments>,
    ) -> Self {
        let cache = cache.map(
            |(entries_max, bytes_max, age_max_ms, prefixes)| CacheLimits {
                entries_max,
                bytes_max,
                age_max_ms,
                prefixes,
            },
        );
        let mut nodes = Nodes::default();
        nodes.list.push(Node::default());
        Self {
            event_loop,
            home: std::thread::current().id(),
            listener,
            is_text,
            queue_max,
            timeout_ms,
            reply_bytes_max,
            nodes: Mutex::new(nodes),
            prefixes: cache.iter().flat_map(|it| it.prefixes.clone()).collect(),
            cache: cache.map(|limits| Mutex::new(Cache::new(limits))),
            msgpack: PyDict::new(py).unbind(),
            json: PyDict::new(py).unbind(),
            is_timed: AtomicBool::new(false),
        }
    }

    /// A command: its words; what strings of its reply become, and what becomes of its value.
    #[pyo3(signature = (*words, as_ = None, then = None, blocks_ms = None, connection = None))]
    fn execute(
        slf: &Bound<'_, Self>,
        words: &Bound<'_, PyTuple>,
        as_: Option<&Bound<'_, PyAny>>,
        then: Option<&Bound<'_, PyAny>>,
        blocks_ms: Option<u64>,
        connection: Option<Py<RedisConnection>>,
    ) -> PyResult<Py<RedisCall>> {
        let is_blocking = needs_own_connection(words, connection.is_some())?;
        let shape = Shape {
            blobs: Blobs::of(as_, slf.get().is_text)?,
            then: Then::of(then),
        };
        let work = Work::Command(words.clone().unbind());
        let mut call = RedisCall::new(slf.clone().unbind(), connection, work, shape);
        call.is_blocking = is_blocking;
        call.blocks_ms = blocks_ms;
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

    /// Holds a command for a transaction.
    fn hold(&self, call: &Bound<'_, RedisCall>) {
        call.get().hold();
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
        let kind = if is_kept { "given_back" } else { "left" };
        self.tell(py, kind, connection);
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
    fn unshare(slf: &Bound<'_, Self>, connection: Py<RedisConnection>) {
        Self::remove(slf, &connection);
    }

    /// The number of the server at an address, `host:port`.
    fn node(&self, address: &str) -> usize {
        lock(&self.nodes).find_or_add(address).0
    }

    /// The address of a server.
    fn address(&self, node: usize) -> Option<String> {
        let nodes = lock(&self.nodes);
        nodes.list.get(node).map(|node| node.address.clone())
    }

    /// Has slots belong to servers: the first one, the last one, and the server's number.
    fn set_slots(&self, ranges: Vec<(u16, u16, usize)>) {
        lock(&self.nodes).set_slots(&ranges);
    }

    /// Sends calls that wait for a server to where their keys are now.
    fn route_again(slf: &Bound<'_, Self>, node: usize) {
        let waiting = {
            let mut nodes = lock(&slf.get().nodes);
            let mut waiting = std::mem::take(&mut nodes.parked);
            if let Some(node) = nodes.list.get_mut(node) {
                waiting.extend(std::mem::take(&mut node.shared.queue));
                waiting.extend(std::mem::take(&mut node.blocking.queue));
            }
            waiting
        };
        for Waiting { call, until_ms } in waiting {
            Self::route_one(slf, call, until_ms);
        }
    }

    /// Sends calls again that a node could not serve a moment ago.
    fn send_parked(slf: &Bound<'_, Self>) {
        let parked = std::mem::take(&mut lock(&slf.get().nodes).parked);
        for Waiting { call, until_ms } in parked {
            Self::route_one(slf, call, until_ms);
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

    /// Fails what has waited for too long with what `error` makes; whether anything waits still.
    #[pyo3(signature = (error, *, all = false))]
    fn expire(slf: &Bound<'_, Self>, error: &Bound<'_, PyAny>, all: bool) -> bool {
        let (py, this) = (slf.py(), slf.get());
        let now_ms = if all { u64::MAX } else { coarse_ms() };
        let (mut due, mut is_waiting) = (Vec::new(), false);
        {
            let mut nodes = lock(&this.nodes);
            take_due(&mut nodes.parked, now_ms, &mut due);
            for lane in nodes.lanes() {
                take_due(&mut lane.queue, now_ms, &mut due);
                for connection in &lane.connections {
                    connection.get().expire(py, now_ms, &mut due);
                    is_waiting |= connection.get().load() > 0;
                }
            }
            is_waiting |= nodes.queued() > 0;
        }
        this.is_timed.store(is_waiting, Ordering::Relaxed);
        for call in due {
            let failed = error.call0().map_or_else(|error| error, PyErr::from_value);
            Self::finish(slf, &call, Err(failed), false);
        }
        is_waiting
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
            for lane in nodes.lanes() {
                for connection in &lane.connections {
                    visit.call(connection)?;
                }
                for waiting in &lane.queue {
                    visit.call(&waiting.call)?;
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

/// Entries, bytes, age in milliseconds, and prefixes of keys.
type CacheArguments = (usize, usize, u64, Vec<Vec<u8>>);

impl RedisClient {
    fn get_as(slf: &Bound<'_, Self>, key: Py<PyAny>, blobs: Blobs) -> PyResult<Py<RedisCall>> {
        let shape = Shape {
            blobs,
            then: Then::Value,
        };
        let call = RedisCall::new(slf.clone().unbind(), None, Work::Get(key), shape);
        Py::new(slf.py(), call)
    }

    /// Sends a call to where its key is now; its time goes on.
    fn route_one(slf: &Bound<'_, Self>, call: Py<RedisCall>, until_ms: u64) {
        let (py, this) = (slf.py(), slf.get());
        if call.get().is_over() {
            return;
        }
        let kept = call.clone_ref(py);
        let mut encoded = Encoded::new();
        let sent = call.get().encode(py, &mut encoded.0).and_then(|replies| {
            let node = lock(&this.nodes).route(|| slot_of_call(call.get(), &encoded.0));
            this.send(
                slf,
                node.unwrap_or(0),
                call,
                until_ms,
                Some((&encoded.0, replies)),
            )
        });
        if let Err(error) = sent {
            Self::finish(slf, &kept, Err(error), false);
        }
    }
}

fn take_due(
    queue: &mut std::collections::VecDeque<Waiting>,
    now_ms: u64,
    due: &mut Vec<Py<RedisCall>>,
) {
    while queue
        .front()
        .is_some_and(|waiting| waiting.until_ms <= now_ms)
    {
        due.extend(queue.pop_front().map(|waiting| waiting.call));
    }
}

/// Whether a command needs a connection on which nothing else waits.
///
/// # Errors
/// It is none that a client sends for its caller.
fn needs_own_connection(words: &Bound<'_, PyTuple>, has_connection: bool) -> PyResult<bool> {
    let Ok(name) = words.get_borrowed_item(0) else {
        return Err(PyTypeError::new_err("expected a command and its arguments"));
    };
    let manner = if let Ok(name) = name.cast::<PyString>() {
        traits_of(name.to_str()?.as_bytes()).manner
    } else if let Ok(name) = name.cast::<PyBytes>() {
        traits_of(name.as_bytes()).manner
    } else {
        return Err(PyTypeError::new_err(format!(
            "expected the name of a command as str or bytes, got {}",
            name.get_type().name()?
        )));
    };
    match manner {
        _ if has_connection => Ok(false),
        Manner::Shared => Ok(false),
        Manner::Blocking => Ok(true),
        Manner::BlockingWith(word) => {
            let is_it = |other: &Bound<'_, PyAny>| {
                let text = other.cast::<PyString>().ok();
                let text = text.and_then(|text| text.to_str().ok());
                let bytes = other.cast::<PyBytes>().ok();
                let bytes = text.map(str::as_bytes).or(bytes.map(|it| it.as_bytes()));
                bytes.is_some_and(|bytes| bytes.eq_ignore_ascii_case(word))
            };
            Ok(words.iter().skip(1).any(|other| is_it(&other)))
        }
        Manner::Refused(instead) => Err(PyValueError::new_err(format!(
            "{} is not sent on a connection that is shared: {instead}",
            name.to_string()
        ))),
    }
}

fn key_bytes(key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    Ok(key.cast::<PyBytes>()?.as_bytes().to_vec())
}

/// The slot of a call's first key.
fn slot_of_call(call: &RedisCall, encoded: &[u8]) -> Option<u16> {
    match &call.work {
        Work::Acquire(key) => key.as_deref().map(slot_of),
        _ => key_of(encoded).map(slot_of),
    }
}

/// An address as a node gives it: one without a host is on the host of that node.
fn full_address(nodes: &Nodes, node: usize, address: &str) -> String {
    let own = nodes
        .list
        .get(node)
        .map_or("", |node| node.address.as_str());
    match (address.strip_prefix(':'), own.rsplit_once(':')) {
        (Some(port), Some((host, _))) => format!("{host}:{port}"),
        _ => address.to_owned(),
    }
}

/// The value of a reply that was kept.
fn read_kept(py: Python<'_>, reply: &[u8], blobs: &Blobs) -> PyResult<Py<PyAny>> {
    let (mut reader, mut builder) = (citius_redis::Reader::default(), Builder::default());
    let mut input = reply;
    while let Ok(Some(item)) = reader.next(&mut input) {
        if let Some(value) = builder.add(py, item, blobs) {
            return value;
        }
    }
    Err(PyValueError::new_err("a kept reply is not whole"))
}

/// A buffer for a command, which is used again.
struct Encoded(Vec<u8>);

thread_local! {
    static BUFFER: std::cell::Cell<Vec<u8>> = const { std::cell::Cell::new(Vec::new()) };
}

/// Bytes of such a buffer that are kept.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

impl Encoded {
    fn new() -> Self {
        Self(BUFFER.take())
    }
}

impl Drop for Encoded {
    fn drop(&mut self) {
        if self.0.capacity() <= BUFFER_BYTES_MAX {
            self.0.clear();
            BUFFER.set(std::mem::take(&mut self.0));
        }
    }
}
