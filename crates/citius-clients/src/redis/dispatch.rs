//! Calls on their way: to which server and connection a call goes, where it waits, and when it is sent again.
//!
//! A call that cannot be sent waits at its server, in the order in which calls came. When it has waited for too long, Python has
//! it failed ([`RedisClient::expire`](super::client::RedisClient)).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use citius_base::sync::lock;
use citius_observe::ClientCounter;
use citius_reactor::coarse_ms;
use citius_redis::{Redirect, Spread, Words, key_of, slot_of, slots_of, spread_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::call::{RedisCall, Work};
use super::client::RedisClient;
use super::connection::RedisConnection;
use super::errors::{error_of, server_error};
use super::incoming::Outcome;
use super::nodes::{Parked, Place};
use super::reply::{Shape, Then};
use super::spread::{Part, Whole};

/// A command as bytes, and how many replies it has.
type Sent<'a> = (&'a [u8], u32);

// --- to a connection ---

impl RedisClient {
    /// Takes a call.
    ///
    /// # Errors
    /// Its arguments cannot be sent, too much waits, or the client is closed.
    pub(crate) fn submit(slf: &Bound<'_, Self>, call: Py<RedisCall>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let mut encoded = Encoded::new();
        let replies = call.get().encode(py, &mut encoded.0)?;
        if this.is_kept(py, &encoded.0, &call)? {
            return Ok(());
        }
        if let Some(connection) = &call.get().connection
            && connection.get().lease() != call.get().lease
        {
            return Err(error_of(py, "block_ended", py.None()));
        }
        this.arm(py);
        call.get().begin_time(|| this.until());
        let (node, masters) = {
            let nodes = lock(&this.nodes);
            let node = nodes.route(|| slot_of_call(call.get(), &encoded.0));
            let is_cluster = nodes.is_cluster();
            if is_cluster && crosses_slots(call.get(), &encoded.0) {
                return Err(error_of(py, "crosses_slots", py.None()));
            }
            let is_wide = is_cluster && call.get().is_anywhere();
            (node, is_wide.then(|| nodes.masters()))
        };
        if let Some(masters) = masters
            && let Some(spread) = spread_of_call(call.get(), &encoded.0)?
            && !masters.is_empty()
        {
            return Self::send_to_all(slf, &masters, &call, spread, &encoded.0);
        }
        // Of a slot that has no server yet the first server knows when it has.
        let node = call.get().node.or(node).unwrap_or(0);
        Self::send(slf, node, call, Some((&encoded.0, replies)))
    }

    /// Sends a command to all masters of a cluster.
    #[cold]
    fn send_to_all(
        slf: &Bound<'_, Self>,
        masters: &[usize],
        call: &Py<RedisCall>,
        spread: Spread,
        encoded: &[u8],
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let Work::Command(words) = &call.get().work else {
            return Ok(());
        };
        let whole = Arc::new(Whole::new(call.clone_ref(py), spread, masters.len()));
        for (index, &node) in masters.iter().enumerate() {
            let shape = Shape {
                blobs: call.get().shape.blobs.clone_ref(py),
                then: Then::Value,
            };
            let words = Work::Command(words.clone_ref(py));
            let mut part = RedisCall::new(slf.clone().unbind(), None, words, shape);
            part.node = Some(node);
            part.part = Some(Part {
                whole: Arc::clone(&whole),
                index,
            });
            let part = Py::new(py, part)?;
            part.get().begin();
            part.get().begin_time(|| this.until());
            let kept = part.clone_ref(py);
            if let Err(error) = Self::send(slf, node, part, Some((encoded, 1))) {
                Self::finish(slf, &kept, Err(error), false);
            }
        }
        Ok(())
    }

    /// Sends a call to a server, or queues it there.
    fn send(
        slf: &Bound<'_, Self>,
        node: usize,
        call: Py<RedisCall>,
        encoded: Option<Sent<'_>>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let place = (node, call.get().needs_own());
        let mut call = call;
        if let Some(connection) = &call.get().connection {
            let connection = connection.clone_ref(py);
            return match Self::hand_over(slf, &connection, place, call, encoded)? {
                None => Ok(()),
                Some(_) => Err(error_of(py, "connection_lost", "it was closed")),
            };
        }
        if let Some(connection) = this.pick(py, place)? {
            match Self::hand_over(slf, &connection, place, call, encoded)? {
                None => return Ok(()),
                Some(back) => call = back,
            }
        }
        this.queue(py, place, call)
    }

    /// A connection for a call that goes to `place`; `None` if it has to wait for one.
    ///
    /// # Errors
    /// Too much is under way.
    #[inline]
    fn pick(&self, py: Python<'_>, place: Place) -> PyResult<Option<Py<RedisConnection>>> {
        let mut nodes = lock(&self.nodes);
        let lane = nodes.lane(place).filter(|lane| lane.queue.is_empty());
        let Some(lane) = lane else {
            return Ok(None);
        };
        if place.1 {
            return Ok(lane.pick_idle(py));
        }
        let Some(connection) = lane.pick(py) else {
            return Ok(None);
        };
        drop(nodes);
        let load = connection.get().load();
        if load >= self.queue_max || (load > 0 && connection.get().is_full()) {
            return Err(self.refused(py, load));
        }
        Ok(Some(connection))
    }

    /// Has a connection do a call; gives the call back if it does not.
    fn hand_over(
        slf: &Bound<'_, Self>,
        connection: &Py<RedisConnection>,
        place: Place,
        call: Py<RedisCall>,
        encoded: Option<Sent<'_>>,
    ) -> PyResult<Option<Py<RedisCall>>> {
        let (py, this) = (slf.py(), slf.get());
        if let Work::Acquire(_) = &call.get().work {
            let mut nodes = lock(&this.nodes);
            let is_taken = nodes
                .lane(place)
                .is_some_and(|lane| lane.remove(connection));
            drop(nodes);
            if !is_taken {
                return Ok(Some(call));
            }
            let slot = slot_of_call(call.get(), &[]);
            connection.get().begin_lease(call.get().is_asking(), slot);
            let connection = connection.clone_ref(py).into_any();
            Self::finish(slf, &call, Ok(connection), false);
            return Ok(None);
        }
        if call.get().is_blocking {
            call.get().set_until(this.until_blocked(call.get()));
        }
        let mut made = Encoded::new();
        let (bytes, replies) = if let Some(encoded) = encoded {
            encoded
        } else {
            let replies = call.get().encode(py, &mut made.0)?;
            (made.0.as_slice(), replies)
        };
        Ok(connection.get().push(py, bytes, call, replies).err())
    }

    fn queue(&self, py: Python<'_>, place: Place, call: Py<RedisCall>) -> PyResult<()> {
        {
            let mut nodes = lock(&self.nodes);
            let (is_closed, queued) = (nodes.is_closed, nodes.queued());
            let lane = nodes.lane(place).filter(|_| !is_closed);
            let Some(lane) = lane else {
                return Err(error_of(py, "client_closed", py.None()));
            };
            if queued >= self.queue_max {
                drop(nodes);
                return Err(self.refused(py, queued));
            }
            lane.queue.push_back(call);
        }
        self.tell(py, "wanted", place);
        Ok(())
    }

    /// The error of one call too many.
    #[cold]
    fn refused(&self, py: Python<'_>, waiting: usize) -> PyErr {
        if let Some(metrics) = self.metrics() {
            metrics.count(ClientCounter::Refused);
        }
        error_of(py, "too_much_waits", waiting)
    }

    /// Takes back a call that its connection has not sent.
    pub(crate) fn queue_first(slf: &Bound<'_, Self>, node: usize, call: Py<RedisCall>) {
        let place = (node, call.get().needs_own());
        if let Some(lane) = lock(&slf.get().nodes).lane(place) {
            lane.queue.push_front(call);
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
        let taken = lock(&this.nodes)
            .lane(place)
            .and_then(|lane| lane.next(py, place.1, this.queue_max));
        let Some((connection, call)) = taken else {
            return false;
        };
        if call.get().is_over() {
            return true;
        }
        let kept = call.clone_ref(py);
        match Self::hand_over(slf, &connection, place, call, None) {
            Ok(None) => true,
            Ok(Some(call)) => {
                if let Some(lane) = lock(&this.nodes).lane(place) {
                    lane.queue.push_front(call);
                }
                false
            }
            Err(error) => {
                Self::finish(slf, &kept, Err(error), false);
                true
            }
        }
    }

    /// Sends a call to where its key is now.
    pub(crate) fn route_again(slf: &Bound<'_, Self>, call: Py<RedisCall>) {
        let (py, this) = (slf.py(), slf.get());
        if call.get().is_over() {
            return;
        }
        let kept = call.clone_ref(py);
        call.get().set_asking(false);
        let mut encoded = Encoded::new();
        let sent = call.get().encode(py, &mut encoded.0).and_then(|replies| {
            let node = {
                let nodes = lock(&this.nodes);
                let node = nodes.route(|| slot_of_call(call.get(), &encoded.0));
                // One that is about a node goes to no other; the node of an own connection is only where its key was.
                let is_pinned = !matches!(call.get().work, Work::Acquire(_));
                match call.get().node.filter(|_| is_pinned) {
                    None => node,
                    Some(own) if nodes.masters().contains(&own) => Some(own),
                    Some(_) => {
                        let why = "its node has left the cluster";
                        return Err(error_of(py, "connection_lost", why));
                    }
                }
            };
            Self::send(slf, node.unwrap_or(0), call, Some((&encoded.0, replies)))
        });
        if let Err(error) = sent {
            Self::finish(slf, &kept, Err(error), false);
        }
    }
}

// --- what becomes of a call ---

impl RedisClient {
    /// What the server has said is the result, or the call is sent again: to another server, or with its script in full.
    #[inline]
    pub(crate) fn settle(
        slf: &Bound<'_, Self>,
        node: usize,
        call: Py<RedisCall>,
        outcome: Outcome,
        may_step: bool,
    ) {
        match outcome {
            Outcome::Value(value) => Self::finish(slf, &call, value, may_step),
            Outcome::Error(error) => Self::settle_error(slf, node, call, &error, may_step),
        }
    }

    fn settle_error(
        slf: &Bound<'_, Self>,
        node: usize,
        call: Py<RedisCall>,
        error: &[u8],
        may_step: bool,
    ) {
        let (py, this) = (slf.py(), slf.get());
        if !call.get().is_over() {
            if let Work::Script(script) = &call.get().work
                && error.starts_with(b"NOSCRIPT")
                && !script.is_unknown.swap(true, Ordering::Relaxed)
            {
                return Self::send_again(slf, node, call);
            }
            if lock(&this.nodes).is_cluster()
                && let Some(redirect) = Redirect::of(error)
            {
                let Some(connection) = &call.get().connection else {
                    return Self::follow(slf, node, call, redirect, error);
                };
                let is_away = this.note_redirect(py, node, redirect).is_some();
                if is_away && connection.get().is_watching() {
                    // A block that watches is done again if its keys have moved; one with keys elsewhere never ends.
                    let is_other = redirect
                        .slot()
                        .is_some_and(|slot| connection.get().watches_others(slot));
                    let why = if is_other {
                        "crosses_slots"
                    } else {
                        "watched_key_moved"
                    };
                    let error = error_of(py, why, py.None());
                    return Self::finish(slf, &call, Err(error), may_step);
                }
            }
        }
        if is_of_a_replica(error) {
            this.tell(py, "read_only", node);
        }
        Self::finish(slf, &call, Err(server_error(py, error)), may_step);
    }

    /// Keeps a result for its call and wakes the code that waits for it.
    #[inline]
    pub(crate) fn finish(
        slf: &Bound<'_, Self>,
        call: &Py<RedisCall>,
        result: PyResult<Py<PyAny>>,
        may_step: bool,
    ) {
        let (py, call) = (slf.py(), call.get());
        if let Some(part) = &call.part {
            call.end();
            if let Some(result) = part.take(py, result) {
                Self::finish(slf, &part.whole.call, result, may_step);
            }
            return;
        }
        if let Err(error) = &result {
            call.fail_held(py, error);
        }
        let result = result.and_then(|value| {
            if call.is_over() {
                return Ok(value);
            }
            call.shape.then.apply(py, value)
        });
        if let Some(sleeper) = call.finish(py, result) {
            sleeper.wake(py, may_step);
        }
    }

    pub(super) fn send_again(slf: &Bound<'_, Self>, node: usize, call: Py<RedisCall>) {
        let kept = call.clone_ref(slf.py());
        if let Err(error) = Self::send(slf, node, call, None) {
            Self::finish(slf, &kept, Err(error), false);
        }
    }

    /// No code waits for a call any more.
    pub(crate) fn abandoned(slf: &Bound<'_, Self>, call: &Bound<'_, RedisCall>) {
        let (py, this) = (slf.py(), slf.get());
        let gone = lock(&this.nodes).take_queued(call);
        if gone.is_some() || !call.get().is_blocking {
            return;
        }
        let busy = match &call.get().connection {
            Some(own) => own.get().has(call).then(|| own.clone_ref(py)),
            None => lock(&this.nodes).connection_of(py, call),
        };
        if let Some(connection) = busy {
            // What the server gives to a waiting command that no code waits for would be lost.
            this.tell(py, "abandoned", connection);
        }
    }

    /// Takes a connection from those that take calls.
    pub(crate) fn remove(slf: &Bound<'_, Self>, connection: &Py<RedisConnection>) {
        let mut nodes = lock(&slf.get().nodes);
        for lane in nodes.lanes() {
            lane.remove(connection);
        }
    }

    /// Takes a connection that has ended from those that take calls.
    pub(crate) fn remove_ended(slf: &Bound<'_, Self>, connection: &Py<RedisConnection>) {
        Self::remove(slf, connection);
        let mut nodes = lock(&slf.get().nodes);
        let at = nodes.open.iter().position(|it| it.is(connection));
        let gone = at.map(|at| nodes.open.swap_remove(at));
        drop(nodes);
        drop(gone);
    }

    // --- time ---

    /// When a call that comes now has waited for too long.
    fn until(&self) -> u64 {
        self.timeout_ms
            .map_or(u64::MAX, |timeout_ms| coarse_ms() + timeout_ms)
    }

    /// When a call that comes now, and which the server may keep waiting, has waited for too long.
    fn until_blocked(&self, call: &RedisCall) -> u64 {
        let until = call.blocks_ms.map(|ms| self.until().saturating_add(ms));
        until.unwrap_or(u64::MAX)
    }

    /// Has Python look for calls that have waited for too long.
    #[inline]
    pub(super) fn arm(&self, py: Python<'_>) {
        if self.timeout_ms.is_some() && !self.is_timed.load(Ordering::Relaxed) {
            self.is_timed.store(true, Ordering::Relaxed);
            self.tell(py, "timed", py.None());
        }
    }

    /// Takes the calls that have waited for too long.
    pub(crate) fn take_due(&self, py: Python<'_>, now_ms: u64) -> Due {
        let mut due = Due::default();
        let mut nodes = lock(&self.nodes);
        take_due(&mut nodes.parked, now_ms, |one| &one.call, &mut due.parked);
        for lane in nodes.lanes() {
            take_due(&mut lane.queue, now_ms, |call| call, &mut due.calls);
        }
        let mut load = 0;
        for connection in &nodes.open {
            if connection.get().expire(py, now_ms, &mut due.calls) {
                due.silent.push(connection.clone_ref(py));
            }
            load += connection.get().load();
        }
        due.is_waiting = load > 0 || nodes.queued() > 0;
        due
    }
}

/// What has waited for too long.
#[derive(Default)]
pub(crate) struct Due {
    /// Calls that wait for a connection or a reply.
    pub(crate) calls: Vec<Py<RedisCall>>,
    /// Calls that no node has served.
    pub(crate) parked: Vec<Parked<RedisCall>>,
    /// The connections whose replies have not come.
    pub(crate) silent: Vec<Py<RedisConnection>>,
    /// Others wait still.
    pub(crate) is_waiting: bool,
}

/// Calls that were sent back, or that the server may keep waiting, are not in the order of their deadlines.
fn take_due<T>(
    queue: &mut VecDeque<T>,
    now_ms: u64,
    call: impl Fn(&T) -> &Py<RedisCall>,
    due: &mut Vec<T>,
) {
    let is_due = |one: &T| call(one).get().until_ms() <= now_ms;
    if !queue.iter().any(is_due) {
        return;
    }
    for one in std::mem::take(queue) {
        if is_due(&one) {
            due.push(one);
        } else {
            queue.push_back(one);
        }
    }
}

/// Whether an error says that a master has become a replica.
fn is_of_a_replica(error: &[u8]) -> bool {
    let has = |text: &[u8]| error.windows(text.len()).any(|part| part == text);
    error.starts_with(b"READONLY")
        || (error.starts_with(b"UNBLOCKED") && has(b"instance state changed"))
        || (error.starts_with(b"ERR") && has(b"-READONLY "))
}

/// How a call that has no key goes to all masters of a cluster.
///
/// # Errors
/// It is about one node, or its transaction would be on one node.
fn spread_of_call(call: &RedisCall, encoded: &[u8]) -> PyResult<Option<Spread>> {
    let refused = |why: &str| Err(PyValueError::new_err(why.to_owned()));
    let mut words = Words::of(encoded);
    let is_transaction = match &call.work {
        Work::Command(_) => false,
        Work::Transaction(_) => true,
        _ => return Ok(None),
    };
    loop {
        let name = words.next().unwrap_or_default();
        let spread = spread_of(name, words.next());
        match spread {
            Some(Spread::Refused(why)) => return refused(why),
            Some(_) if is_transaction => {
                return refused(&format!(
                    "{} is about all nodes of the cluster, and a transaction is on one of them: use it outside of the block",
                    String::from_utf8_lossy(name)
                ));
            }
            _ if !is_transaction => return Ok(spread),
            _ => {}
        }
        words.by_ref().for_each(drop);
        if !words.begin() {
            return Ok(None);
        }
    }
}

/// Whether the keys of a transaction are in several slots, which are on one node by chance at most.
fn crosses_slots(call: &RedisCall, encoded: &[u8]) -> bool {
    let is_transaction = matches!(call.work, Work::Transaction(_));
    let mut slots = is_transaction
        .then(|| slots_of(encoded))
        .into_iter()
        .flatten();
    let first = slots.next();
    slots.any(|slot| Some(slot) != first)
}

/// The slot of a call's first key.
fn slot_of_call(call: &RedisCall, encoded: &[u8]) -> Option<u16> {
    match &call.work {
        Work::Acquire(key) => key.as_deref().map(slot_of),
        _ => key_of(encoded).map(slot_of),
    }
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
