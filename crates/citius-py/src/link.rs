//! What outlives a turn: the table of open exchanges, the way back into the reactor, the callbacks.
//!
//! An exchange is entered in a [`Role`]: an HTTP request of one of the gateways, a WebSocket, a procedure call. Events
//! for it reach its gateway by that type alone; an event for another role finds nothing. The one transition is
//! [`Exchange::change_role`].

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use bytes::Bytes;
use citius_http::origin::Client;
use citius_http::{Action, Fault, Head, Limits, Payload, PlainResponse};
use citius_reactor::{
    Broadcast, ConnectionId, Files, Mailbox, Peer, Reply, ResponseAction, StreamCommand, StreamId,
    coarse_ms,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smallvec::SmallVec;

use crate::data_types::DataTypes;
use crate::fork::Process;
use crate::report::{self, Subject};
use crate::support::guarded;

/// Shared by the reactor's gateway and everything that may answer late.
pub(crate) struct Link {
    /// The one that may serve.
    pub(crate) process: Process,
    pub(crate) mailbox: Arc<Mailbox>,
    /// Where files come from that answers send.
    pub(crate) files: Files,
    pub(crate) limits: Limits,
    exchanges: Mutex<Vec<ConnectionExchanges>>,
    /// Heads of requests that are gone, on their way back to the reactor's pool.
    #[expect(clippy::vec_box, reason = "the reactor's pool keeps boxes")]
    heads: Mutex<Vec<Box<Head>>>,
    /// There are heads to give back: most turns are spared the lock.
    has_heads: AtomicBool,
    pub(crate) callbacks: Callbacks,
    /// What of the values that handlers return is encoded.
    pub(crate) data_types: DataTypes,
    /// Failures of handlers in threads without the GIL, for the next turn to report.
    notes: Mutex<Vec<String>>,
    has_notes: AtomicBool,
    /// The place of the native route whose handler was called last; 0 if there is none.
    pub(crate) latest_route: AtomicU32,
    /// When the log was told of a slow handler, 0 if it was not yet.
    slow_told_ms: AtomicU64,
    /// The field in which the observer puts a request's id, in lower case; `None` where it gives none.
    pub(crate) request_id_field: Option<Box<[u8]>>,
    /// What coroutines are run by; `None` where there are none.
    pub(crate) event_loop: Option<Py<PyAny>>,
    /// Counts turns, from one.
    pub(crate) turn: AtomicU64,
    /// The turn in which a message was last sent to many.
    pub(crate) cast_in: AtomicU64,
    /// Bytes of WebSocket messages that wait for their applications, over all connections.
    pub(crate) ws_queued_bytes: AtomicU64,
    /// The reactor's thread, and there the loop's `call_soon` and the turn to call.
    home: Mutex<Option<Home>>,
}

/// The Python objects that are called besides handlers.
pub(crate) struct Callbacks {
    /// The application as it is shown to handlers.
    pub(crate) app: Py<PyAny>,
    /// Makes an answer of an exception; without it a 500 says all there is to say.
    pub(crate) on_error: Option<Py<PyAny>>,
    /// Hands work to the thread pool, if there is one.
    pub(crate) submit: Option<Py<PyAny>>,
    pub(crate) log: Option<Py<PyAny>>,
    /// What messages about a request say of an application that has no routes here.
    pub(crate) application: Option<Box<str>>,
}

impl Callbacks {
    /// Nothing is called; messages name the application `app`.
    pub(crate) fn of_application(py: Python<'_>, app: &Py<PyAny>) -> Self {
        Self {
            application: Some(report::describe_application(app.bind(py)).into()),
            ..Self::none(py)
        }
    }

    /// Nothing is called.
    pub(crate) fn none(py: Python<'_>) -> Self {
        Self {
            app: py.None(),
            on_error: None,
            submit: None,
            log: None,
            application: None,
        }
    }
}

struct Home {
    thread: ThreadId,
    wake: Option<(Py<PyAny>, Py<PyAny>)>,
}

/// The open exchanges of one place in the reactor's table.
#[derive(Default)]
struct ConnectionExchanges {
    generation: u32,
    open: SmallVec<[Exchange; 1]>,
}

/// What a gateway keeps of an open exchange.
pub(crate) trait Role: Any + Send {
    /// Its client has gone, or has broken the rules of its protocol. Returns whether the task is to be cancelled.
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool;

    /// It is worked on to its end although its connection has gone.
    fn outlives_connection(&self) -> bool {
        false
    }

    /// What finds out what the log says of it, which may run Python code.
    fn subject(&self, _py: Python<'_>, _link: &Link) -> Option<LateSubject> {
        None
    }
}

/// To be called when no lock is held.
pub(crate) type LateSubject = Box<dyn FnOnce(Python<'_>) -> Subject>;

/// A request that was not answered at once.
pub(crate) struct Exchange {
    stream: u32,
    /// The handler's task, if it has suspended.
    task: Option<Py<PyAny>>,
    role: Box<dyn Role>,
}

impl Exchange {
    pub(crate) fn role<R: Role>(&self) -> Option<&R> {
        (&*self.role as &dyn Any).downcast_ref()
    }

    pub(crate) fn role_mut<R: Role>(&mut self) -> Option<&mut R> {
        (&mut *self.role as &mut dyn Any).downcast_mut()
    }

    pub(crate) fn subject(&self, py: Python<'_>, link: &Link) -> Option<LateSubject> {
        self.role.subject(py, link)
    }

    /// Makes one role of another. Returns the one before, to be dropped outside of the lock; `Err` gives `role` back if
    /// the exchange is not in the role `From`.
    pub(crate) fn change_role<From: Role>(
        &mut self,
        role: Box<dyn Role>,
    ) -> Result<Box<dyn Role>, Box<dyn Role>> {
        if self.role::<From>().is_none() {
            return Err(role);
        }
        Ok(std::mem::replace(&mut self.role, role))
    }

    /// Ends what belongs to it, its client having gone; cancels its task if its role says so.
    pub(crate) fn disconnect(self, py: Python<'_>) {
        if self.role.on_disconnect(py) {
            cancel(py, self.task);
        }
    }

    /// The same when its connection has gone.
    pub(crate) fn lose_connection(self, py: Python<'_>) {
        if !self.role.outlives_connection() {
            self.disconnect(py);
        }
    }

    /// Cancels its task.
    pub(crate) fn cancel(self, py: Python<'_>) {
        cancel(py, self.task);
    }
}

/// Cancels a task that has not ended.
fn cancel(py: Python<'_>, task: Option<Py<PyAny>>) {
    if let Some(task) = task
        && let Err(error) = task.bind(py).call_method0(intern!(py, "cancel"))
    {
        error.write_unraisable(py, Some(task.bind(py)));
    }
}

/// Heads kept for the reactor's pool at most.
const HEADS_KEPT_MAX: usize = 64;

/// Lines for the log that wait for one turn at most.
const NOTES_MAX: usize = 64;

/// Between two lines of the log that name a slow handler.
const SLOW_TOLD_EVERY_MS: u64 = 60_000;

impl Link {
    pub(crate) fn new(
        mailbox: Arc<Mailbox>,
        files: Files,
        limits: Limits,
        callbacks: Callbacks,
        event_loop: Option<Py<PyAny>>,
        request_id_field: Option<Box<[u8]>>,
    ) -> Self {
        Self {
            process: Process::current(),
            mailbox,
            files,
            limits,
            exchanges: Mutex::default(),
            heads: Mutex::default(),
            has_heads: AtomicBool::new(false),
            callbacks,
            data_types: DataTypes::default(),
            notes: Mutex::default(),
            has_notes: AtomicBool::new(false),
            latest_route: AtomicU32::new(0),
            slow_told_ms: AtomicU64::new(0),
            request_id_field,
            event_loop,
            turn: AtomicU64::new(1),
            cast_in: AtomicU64::new(0),
            ws_queued_bytes: AtomicU64::new(0),
            home: Mutex::default(),
        }
    }

    /// Says where the reactor runs, if that is not known yet.
    pub(crate) fn settle_home(&self, wake: impl FnOnce() -> Option<(Py<PyAny>, Py<PyAny>)>) {
        if lock(&self.home).is_none() {
            let home = Home {
                thread: std::thread::current().id(),
                wake: wake(),
            };
            let replaced = lock(&self.home).replace(home);
            drop(replaced);
        }
    }

    /// Lets go of the loop and the reactor, which would keep each other alive.
    pub(crate) fn leave_home(&self) {
        let home = lock(&self.home).take();
        drop(home);
    }

    /// Posts a letter and sees to it that a turn comes.
    pub(crate) fn post(&self, py: Python<'_>, id: StreamId, letter: StreamCommand) {
        if self.mailbox.post(id, letter) {
            self.wake(py);
        }
    }

    /// Posts a message to many sockets and sees to it that a turn comes.
    pub(crate) fn post_broadcast(
        &self,
        py: Python<'_>,
        ids: impl Iterator<Item = StreamId>,
        cast: &Arc<Broadcast>,
    ) {
        self.cast_in
            .store(self.turn.load(Ordering::Relaxed), Ordering::Relaxed);
        if self.mailbox.post_broadcast(ids, cast) {
            self.wake(py);
        }
    }

    /// On the loop's own thread a scheduled callback wakes the reactor without a system call.
    fn wake(&self, py: Python<'_>) {
        let here = match &*lock(&self.home) {
            Some(Home {
                thread,
                wake: Some((call_soon, turn)),
            }) if *thread == std::thread::current().id() => {
                Some((call_soon.clone_ref(py), turn.clone_ref(py)))
            }
            _ => None,
        };
        if let Some((call_soon, turn)) = here
            && call_soon.bind(py).call1((turn,)).is_ok()
        {
            return;
        }
        self.mailbox.wake();
    }

    /// Looks at or changes an open exchange. `act` must not run Python code.
    pub(crate) fn with<R>(&self, id: StreamId, act: impl FnOnce(&mut Exchange) -> R) -> Option<R> {
        let mut table = lock(&self.exchanges);
        let place = table.get_mut(id.connection.index as usize)?;
        if place.generation != id.connection.generation {
            return None;
        }
        place
            .open
            .iter_mut()
            .find(|open| open.stream == id.stream)
            .map(act)
    }

    /// The same by its role; `None` if it is in another one.
    pub(crate) fn with_role<R: Role, T>(
        &self,
        id: StreamId,
        act: impl FnOnce(&mut R) -> T,
    ) -> Option<T> {
        self.with(id, |exchange| exchange.role_mut().map(act))
            .flatten()
    }

    /// Whether an exchange is open.
    pub(crate) fn is_open(&self, id: StreamId) -> bool {
        self.with(id, |_| ()).is_some()
    }

    /// Enters an exchange; one that is open keeps the role that it has. Only a turn enters exchanges.
    pub(crate) fn enter(&self, id: StreamId, role: impl Role) {
        drop(self.enter_unless_open(id, Some(Box::new(role)), None));
    }

    /// The coroutine that works on an exchange has suspended: from here on `task` is cancelled if the client goes.
    /// Enters the exchange, if it is not open and there is a role for it.
    pub(crate) fn suspend(&self, id: StreamId, role: Option<Box<dyn Role>>, task: Py<PyAny>) {
        drop(self.enter_unless_open(id, role, Some(task)));
    }

    /// The task that works on an open exchange, if it is open still.
    pub(crate) fn set_task(&self, id: StreamId, task: Option<Py<PyAny>>) {
        let replaced = self.with(id, |exchange| std::mem::replace(&mut exchange.task, task));
        drop(replaced);
    }

    /// Returns what was not used or is replaced, to be dropped outside of the lock.
    fn enter_unless_open(
        &self,
        id: StreamId,
        role: Option<Box<dyn Role>>,
        task: Option<Py<PyAny>>,
    ) -> Option<(Option<Box<dyn Role>>, Option<Py<PyAny>>)> {
        let mut table = lock(&self.exchanges);
        let index = id.connection.index as usize;
        if table.len() <= index {
            table.resize_with(index + 1, ConnectionExchanges::default);
        }
        let place = &mut table[index];
        // Those of an earlier generation have been taken by `take_all`.
        place.generation = id.connection.generation;
        let known = place.open.iter_mut().find(|open| open.stream == id.stream);
        match (known, role) {
            (Some(known), role) => {
                let replaced = task.and_then(|task| known.task.replace(task));
                Some((role, replaced))
            }
            (None, None) => Some((None, task)),
            (None, Some(role)) => {
                let stream = id.stream;
                place.open.push(Exchange { stream, task, role });
                None
            }
        }
    }

    /// The exchange of a connection that was entered last.
    pub(crate) fn last_open(&self, connection: ConnectionId) -> Option<StreamId> {
        let table = lock(&self.exchanges);
        let place = table.get(connection.index as usize)?;
        let last = place
            .open
            .last()
            .filter(|_| place.generation == connection.generation)?;
        Some(StreamId {
            connection,
            stream: last.stream,
        })
    }

    /// Ends an exchange. What is returned must be dropped outside of any lock.
    pub(crate) fn take(&self, id: StreamId) -> Option<Exchange> {
        let mut table = lock(&self.exchanges);
        let place = table.get_mut(id.connection.index as usize)?;
        if place.generation != id.connection.generation {
            return None;
        }
        let at = place
            .open
            .iter()
            .position(|open| open.stream == id.stream)?;
        Some(place.open.swap_remove(at))
    }

    /// Ends an exchange that is in the role `R`.
    pub(crate) fn take_role<R: Role>(&self, id: StreamId) -> Option<Box<R>> {
        self.with_role(id, |_: &mut R| ())?;
        let role: Box<dyn Any> = self.take(id)?.role;
        role.downcast().ok()
    }

    /// Ends all exchanges of a connection.
    pub(crate) fn take_all(&self, connection: ConnectionId) -> SmallVec<[Exchange; 1]> {
        let mut table = lock(&self.exchanges);
        match table.get_mut(connection.index as usize) {
            Some(place) if place.generation == connection.generation => {
                std::mem::take(&mut place.open)
            }
            _ => SmallVec::new(),
        }
    }

    /// Does what belongs to an exchange, outside of a turn. As in a turn, a panic costs the connection.
    pub(crate) fn guard(&self, py: Python<'_>, id: StreamId, act: impl FnOnce()) {
        if guarded(py, act).is_none() {
            self.cut(id);
        }
    }

    /// Ends an exchange in the middle: its connection is closed, or its stream is reset. It makes no Python
    /// object and needs no GIL: the panic before it may have come of memory that has run out.
    #[cold]
    pub(crate) fn cut(&self, id: StreamId) {
        let message = format!(
            "connection {}, request {}: a defect of the server's, or no memory; it was cut",
            id.connection.index, id.stream
        );
        self.note_failure(message);
        drop(self.take(id));
        if self
            .mailbox
            .post(id, StreamCommand::Act(ResponseAction::Abort))
        {
            self.mailbox.wake();
        }
    }

    /// Keeps a head for its memory.
    pub(crate) fn keep_head(&self, head: Box<Head>) {
        let mut heads = lock(&self.heads);
        if heads.len() < HEADS_KEPT_MAX {
            heads.push(head);
            self.has_heads.store(true, Ordering::Relaxed);
        }
    }

    /// The head that was kept last.
    #[cold]
    pub(crate) fn with_kept_head<R>(&self, act: impl FnOnce(Option<&Head>) -> R) -> R {
        act(lock(&self.heads).last().map(Box::as_ref))
    }

    /// Gives kept heads back to the reactor.
    #[inline]
    pub(crate) fn return_heads(&self, reply: &mut Reply<'_>) {
        if self.has_heads.load(Ordering::Relaxed) {
            self.has_heads.store(false, Ordering::Relaxed);
            for head in lock(&self.heads).drain(..) {
                reply.recycle(head);
            }
        }
    }

    /// Whether the log has not been told of a slow handler in the last minute; if so, it will be now.
    pub(crate) fn is_slow_worth_telling(&self) -> bool {
        let now_ms = coarse_ms().max(1);
        let told_ms = self.slow_told_ms.load(Ordering::Relaxed);
        let is_due = told_ms == 0 || now_ms - told_ms >= SLOW_TOLD_EVERY_MS;
        if is_due {
            self.slow_told_ms.store(now_ms, Ordering::Relaxed);
        }
        is_due
    }

    /// Has the next turn [report](crate::report::failure) a failure; for threads without the GIL. Beyond
    /// [`NOTES_MAX`] in one turn the rest is lost.
    pub(crate) fn note_failure(&self, message: String) {
        let mut notes = lock(&self.notes);
        if notes.len() < NOTES_MAX {
            notes.push(message);
            self.has_notes.store(true, Ordering::Release);
        }
    }

    /// Tells what has been noted.
    #[inline]
    pub(crate) fn tell_notes(&self, py: Python<'_>) {
        if self.has_notes.load(Ordering::Relaxed) && self.has_notes.swap(false, Ordering::Acquire) {
            let notes = std::mem::take(&mut *lock(&self.notes));
            for message in notes {
                crate::report::failure(py, &message);
            }
        }
    }

    /// Tells Python's logging something that is no handler's exception; standard error, if there is no
    /// memory for that.
    pub(crate) fn log(&self, py: Python<'_>, level: u8, message: &str) {
        let Some(log) = &self.callbacks.log else {
            return;
        };
        let told = guarded(py, || {
            if let Err(error) = log.bind(py).call1((level, message)) {
                error.write_unraisable(py, None);
            }
        });
        if told.is_none() {
            eprintln!("citius: {message}");
        }
    }
}

/// Python's logging levels.
pub(crate) const LEVEL_ERROR: u8 = 40;
pub(crate) const LEVEL_WARNING: u8 = 30;
pub(crate) const LEVEL_INFO: u8 = 20;
pub(crate) const LEVEL_DEBUG: u8 = 10;

/// Locks; what these locks guard is whole after every statement, so a poisoned one is used as it is.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a callback that was registered, if there is one. Take it out of its lock first.
pub(crate) fn call_back(py: Python<'_>, callback: Option<Py<PyAny>>) {
    if let Some(callback) = callback
        && let Err(error) = callback.bind(py).call0()
    {
        error.write_unraisable(py, Some(callback.bind(py)));
    }
}

pub(crate) fn client_address(head: &Head, peer: Peer) -> Option<(String, u16)> {
    let address = match head.origin.as_ref().and_then(|origin| origin.client) {
        None => peer.address(),
        Some(Client::Hidden) => None,
        Some(Client::Address(address)) => Some(address),
    };
    address.map(|address| (address.ip().to_string(), address.port()))
}

/// Where an answer goes: straight into the turn, or into the mailbox.
pub(crate) trait Sink {
    /// Within a turn, where exchanges may be entered.
    const IN_TURN: bool;

    fn send(&mut self, py: Python<'_>, action: Action<'_>) -> Result<(), Fault>;

    /// The same for a plain answer, if there is a shorter way; `false`: nothing is done.
    #[inline]
    fn respond(&mut self, _plain: PlainResponse<'_>) -> bool {
        false
    }
}

impl Sink for Reply<'_> {
    const IN_TURN: bool = true;

    #[inline]
    fn send(&mut self, _py: Python<'_>, action: Action<'_>) -> Result<(), Fault> {
        Reply::send(self, action)
    }

    #[inline]
    fn respond(&mut self, plain: PlainResponse<'_>) -> bool {
        Reply::respond(self, plain)
    }
}

/// The way to a stream from outside a turn.
pub(crate) struct Late<'a> {
    pub(crate) link: &'a Link,
    pub(crate) id: StreamId,
}

impl Sink for Late<'_> {
    const IN_TURN: bool = false;

    fn send(&mut self, py: Python<'_>, action: Action<'_>) -> Result<(), Fault> {
        let media = |media: Option<&[u8]>| media.map(Bytes::copy_from_slice);
        let post = match action {
            Action::Respond(answer, body) => ResponseAction::Respond {
                status: answer.status,
                content_type: media(answer.content_type),
                fields: answer.fields.clone(),
                body: body.into_owned(),
            },
            Action::Start(answer) => ResponseAction::Start {
                status: answer.status,
                content_type: media(answer.content_type),
                fields: answer.fields.clone(),
            },
            Action::Data(body) => ResponseAction::Data(body.into_owned()),
            Action::End { trailers } => ResponseAction::End(trailers.clone()),
            Action::Abort => ResponseAction::Abort,
            // There is a letter for that.
            Action::Switch { .. } => return Err(Fault::ResponseOrder),
            Action::Inform(answer) => ResponseAction::Inform {
                status: answer.status,
                fields: answer.fields.clone(),
            },
        };
        self.link.post(py, self.id, StreamCommand::Act(post));
        Ok(())
    }
}

/// Body bytes of a Python object: copied when small, kept alive when large.
pub(crate) fn payload<'a>(bytes: &'a Bound<'_, PyBytes>) -> Payload<'a> {
    let view = bytes.as_bytes();
    if view.len() < citius_http::Output::SHARED_BYTES_MIN {
        Payload::Copied(view)
    } else {
        Payload::Shared(Bytes::from_owner(pyo3::pybacked::PyBackedBytes::from(
            bytes.clone(),
        )))
    }
}

/// A flag that is set once.
#[derive(Debug, Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
