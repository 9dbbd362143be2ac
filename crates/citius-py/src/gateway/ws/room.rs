//! `citius.Room`: WebSockets and WebTransport sessions that get the same messages.
//!
//! In: a message. Out: one frame for all WebSockets, a stream for each session; the frame is compressed once if a member can read that. Each member has its own write
//! queue; a member that does not keep up misses the message or is closed, as the room's policy says. A send never waits.
//! Tests: `tests/gateway/`, `tests/server/`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use citius_base::reactor_handle::ReactorHandle;
use citius_base::support;
use citius_base::sync::lock;
use citius_reactor::ws::{Code, Kind};
use citius_reactor::{Broadcast, Slow, StreamId};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{Borrowed, intern};

use crate::gateway::ws::WebSocket;
use crate::gateway::ws::completion::Handled as _;
use crate::gateway::ws::members::{Members, Membership};
use crate::gateway::ws::session::{json_of, parts_of};
use crate::gateway::wt::WebTransport;

/// A WebSocket or a WebTransport session, as Python gives it.
pub(crate) struct Member<'py> {
    given: Bound<'py, PyAny>,
    kind: MemberKind<'py>,
}

enum MemberKind<'py> {
    Socket(Bound<'py, WebSocket>),
    Session(Bound<'py, WebTransport>),
}

impl<'py> FromPyObject<'_, 'py> for Member<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let given = object.to_owned();
        let kind = if let Ok(socket) = given.cast::<WebSocket>() {
            MemberKind::Socket(socket.clone())
        } else if let Ok(core) = given.getattr(intern!(given.py(), "_core"))
            && let Ok(session) = core.cast::<WebTransport>()
        {
            MemberKind::Session(session.clone())
        } else {
            // A `SerialWebSocket` stands for the one that it has.
            if let Ok(inner) = given.getattr(intern!(given.py(), "_socket"))
                && inner.is_instance_of::<WebSocket>()
            {
                return Self::extract(inner.as_borrowed());
            }
            return Err(PyTypeError::new_err(format!(
                "expected a WebSocket or a WebTransportSession, got {}",
                given.get_type().name()?
            )));
        };
        Ok(Self { given, kind })
    }
}

impl Member<'_> {
    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId) {
        match &self.kind {
            MemberKind::Socket(socket) => socket.get().exchange(),
            MemberKind::Session(session) => session.get().exchange(),
        }
    }

    fn accept_implicitly(&self, py: Python<'_>) -> PyResult<()> {
        match &self.kind {
            MemberKind::Socket(socket) => socket.get().accept_implicitly(py),
            MemberKind::Session(session) => session.get().accept_implicitly(py),
        }
    }

    /// Has it leave a room at its end; `false`: that has come.
    fn enter_room(&self, room: Membership) -> bool {
        match &self.kind {
            MemberKind::Socket(socket) => socket.get().session.enter_room(room),
            MemberKind::Session(session) => session.get().enter_room(room),
        }
    }

    fn leave_room(&self, room: &Membership) {
        match &self.kind {
            MemberKind::Socket(socket) => socket.get().session.leave_room(room),
            MemberKind::Session(session) => session.get().leave_room(room),
        }
    }

    fn closed_error(&self, py: Python<'_>) -> PyErr {
        match &self.kind {
            MemberKind::Socket(socket) => {
                let end = socket.get().session.closed_with();
                support::connection_closed(py, end.as_ref())
            }
            MemberKind::Session(session) => session.get().closed_error(py),
        }
    }
}

/// Sockets that get the same messages.
#[pyclass(frozen, module = "citius._core", weakref)]
pub(crate) struct Room {
    members: Arc<Members>,
    slow: Slow,
    /// Hands a message to the rooms of this name elsewhere.
    relay: Mutex<Option<Relay>>,
}

/// What hands messages on.
struct Relay {
    call: Py<PyAny>,
    /// Whether it also delivers to the members here, in the order that all rooms of this name have.
    is_ordered: bool,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments of Python methods, which are extracted"
)]
#[pymethods]
impl Room {
    #[new]
    #[pyo3(signature = (*, slow = "close", slow_code = 1013))]
    fn new(slow: &str, slow_code: u16) -> PyResult<Self> {
        let slow = match slow {
            "drop" => Slow::Drop,
            "close" => Slow::Close(Code::new(slow_code).ok_or_else(|| {
                PyValueError::new_err(format!("slow_code is a close code, got {slow_code}"))
            })?),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "slow is \"close\" or \"drop\", got {slow:?}"
                )));
            }
        };
        Ok(Self {
            members: Arc::default(),
            slow,
            relay: Mutex::default(),
        })
    }

    fn join(&self, py: Python<'_>, socket: Member<'_>) -> PyResult<bool> {
        socket.accept_implicitly(py)?;
        let (handle, id) = socket.exchange();
        let is_new = self.members.insert(handle, id);
        // RequestContext last: a socket that ends meanwhile in another thread leaves the rooms it knows of by then.
        if !socket.enter_room(self.members.membership()) {
            self.members.remove(handle, id);
            return Err(socket.closed_error(py));
        }
        Ok(is_new)
    }

    fn leave(&self, socket: Member<'_>) -> bool {
        socket.leave_room(&self.members.membership());
        let (handle, id) = socket.exchange();
        self.members.remove(handle, id)
    }

    #[pyo3(signature = (message, *, exclude = None))]
    fn send(
        &self,
        py: Python<'_>,
        message: &Bound<'_, PyAny>,
        exclude: Option<Member<'_>>,
    ) -> PyResult<usize> {
        let (kind, payload) = parts_of(message)?;
        let relay = lock(&self.relay)
            .as_ref()
            .map(|relay| (relay.call.clone_ref(py), relay.is_ordered));
        if let Some((relay, is_ordered)) = relay {
            let relay = relay.bind(py);
            if is_ordered {
                let excluded = exclude.as_ref().map(|member| &member.given);
                let arguments = (kind == Kind::Text, PyBytes::new(py, &payload), excluded);
                self.relayed(relay, relay.call1(arguments));
                let is_member = exclude.is_some_and(|socket| self.__contains__(socket));
                return Ok(self.__len__() - usize::from(is_member));
            }
            let arguments = (kind == Kind::Text, PyBytes::new(py, &payload));
            self.relayed(relay, relay.call1(arguments));
        }
        let exclude = exclude.map(|socket| socket.exchange().1);
        Ok(self.broadcast(py, self.broadcast_of(kind, payload), exclude))
    }

    #[pyo3(signature = (value, *, exclude = None))]
    fn send_json(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        exclude: Option<Member<'_>>,
    ) -> PyResult<usize> {
        self.send(py, json_of(value)?.as_any(), exclude)
    }

    fn __len__(&self) -> usize {
        let places = lock(&self.members.places);
        places.iter().map(|place| place.ids.len()).sum()
    }

    #[expect(clippy::unused_self, reason = "a method of Python's")]
    fn __bool__(&self) -> bool {
        true
    }

    fn __contains__(&self, socket: Member<'_>) -> bool {
        let (handle, id) = socket.exchange();
        let places = lock(&self.members.places);
        let mut its = places
            .iter()
            .filter(|place| Arc::ptr_eq(&place.handle, handle));
        its.any(|place| place.ids.contains(&id))
    }

    #[getter]
    fn missed(&self) -> u64 {
        self.members.missed.load(Ordering::Relaxed)
    }

    /// Sends what came from elsewhere to the members here.
    #[pyo3(signature = (is_text, payload, exclude = None))]
    fn _deliver(
        &self,
        py: Python<'_>,
        is_text: bool,
        payload: &Bound<'_, PyBytes>,
        exclude: Option<Member<'_>>,
    ) {
        let broadcast = self.relayed_broadcast(is_text, payload);
        self.broadcast(py, broadcast, exclude.map(|socket| socket.exchange().1));
    }

    /// Sends a message to one socket only, in the order of the room's messages. It is of a history, which bounds how many there are: by
    /// the limit of the write queue a slow client could never catch up.
    fn _deliver_to(
        &self,
        py: Python<'_>,
        socket: Member<'_>,
        is_text: bool,
        payload: &Bound<'_, PyBytes>,
    ) {
        let (handle, id) = socket.exchange();
        let mut broadcast = self.relayed_broadcast(is_text, payload);
        broadcast.queue_if_slow();
        let broadcast = Arc::new(broadcast);
        handle.post_broadcast(py, std::iter::once(id), &broadcast);
    }

    /// Bytes of messages from elsewhere that the reactors here have not taken yet.
    #[staticmethod]
    fn _undelivered_bytes() -> usize {
        UNDELIVERED_BYTES.load(Ordering::Relaxed)
    }

    /// What hands each message on: `relay(is_text, payload)` returns how many places do not get it. One that
    /// `is_ordered` gets the excluded socket too, and delivers to the members here.
    #[pyo3(signature = (relay, is_ordered = false))]
    fn _set_relay(&self, relay: Option<Py<PyAny>>, is_ordered: bool) {
        let relay = relay.map(|call| Relay { call, is_ordered });
        let replaced = std::mem::replace(&mut *lock(&self.relay), relay);
        drop(replaced);
    }
}

/// Bytes of all [`Relayed`] messages.
static UNDELIVERED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A message from elsewhere, counted until no reactor needs it any more.
struct Relayed(Vec<u8>);

impl Relayed {
    /// What a message costs besides its bytes, about.
    const OVERHEAD_BYTES: usize = 128;

    fn new(payload: &[u8]) -> Self {
        let counted = payload.len() + Self::OVERHEAD_BYTES;
        UNDELIVERED_BYTES.fetch_add(counted, Ordering::Relaxed);
        Self(payload.to_vec())
    }
}

impl AsRef<[u8]> for Relayed {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        let counted = self.0.len() + Self::OVERHEAD_BYTES;
        UNDELIVERED_BYTES.fetch_sub(counted, Ordering::Relaxed);
    }
}

impl Room {
    /// Counts what a relay has lost. Members here get their message whatever becomes of that.
    fn relayed(&self, relay: &Bound<'_, PyAny>, lost: PyResult<Bound<'_, PyAny>>) {
        match lost.and_then(|lost| lost.extract::<u64>()) {
            Ok(0) => {}
            Ok(lost) => {
                self.members.missed.fetch_add(lost, Ordering::Relaxed);
            }
            Err(error) => error.write_unraisable(relay.py(), Some(relay)),
        }
    }

    fn relayed_broadcast(&self, is_text: bool, payload: &Bound<'_, PyBytes>) -> Broadcast {
        let kind = if is_text { Kind::Text } else { Kind::Binary };
        let payload = bytes::Bytes::from_owner(Relayed::new(payload.as_bytes()));
        self.broadcast_of(kind, payload)
    }

    fn broadcast_of(&self, kind: Kind, payload: bytes::Bytes) -> Broadcast {
        Broadcast::new(kind, payload, self.slow, Arc::clone(&self.members.missed))
    }

    fn broadcast(&self, py: Python<'_>, broadcast: Broadcast, exclude: Option<StreamId>) -> usize {
        let broadcast = Arc::new(broadcast);
        let places: Vec<(Arc<ReactorHandle>, Vec<StreamId>)> = lock(&self.members.places)
            .iter()
            .map(|place| {
                let ids = place.ids.iter().copied().filter(|id| Some(*id) != exclude);
                (Arc::clone(&place.handle), ids.collect())
            })
            .collect();
        let mut receivers = 0;
        for (handle, ids) in places {
            receivers += ids.len();
            handle.post_broadcast(py, ids.into_iter(), &broadcast);
        }
        receivers
    }
}
