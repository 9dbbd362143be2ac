//! The way from Python code back to the reactor, from any thread and at any time.
//!
//! In: commands for streams, open exchanges, messages for the log. Out: posts in the reactor's [`Mailbox`], and a wake-up of
//! its event loop. The table of exchanges changes here; only a turn adds to it. No lock is held while Python code can run.
//! Tests: `tests/server/`, `tests/unit/test_locks.py`.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use citius_http::{Head, Limits};
use citius_native::Outgoing;
use citius_observe::{MetricsSlot, Observer};
use citius_reactor::{
    Broadcast, ConnectionId, Files, Mailbox, Reply, ResponseAction, Spooler, StreamCommand,
    StreamId, coarse_ms,
};
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::data_types::DataTypes;
use crate::deferrals::Deferrals;
use crate::exchange::{Exchange, Role};
use crate::host_loop::HostLoop;
use crate::logging::{self, Names};
use crate::process::Process;
use crate::ration::Ration;
use crate::support::guarded;
use crate::sync::lock;
use crate::upstreams::Upstreams;

/// Shared by the reactor's gateway and everything that may respond late.
pub struct ReactorHandle {
    /// The one that may serve.
    pub(crate) process: Process,
    /// Where commands for streams go.
    pub mailbox: Arc<Mailbox>,
    /// Where the files of responses come from.
    pub files: Files,
    /// Where the files of forms go.
    pub spooler: Spooler,
    /// What the reactor keeps to.
    pub limits: Limits,
    exchanges: Mutex<Vec<ConnectionExchanges>>,
    /// Heads of requests that are gone, on their way back to the reactor's pool.
    #[expect(clippy::vec_box, reason = "the reactor's pool keeps boxes")]
    heads: Mutex<Vec<Box<Head>>>,
    /// There are heads to give back: most turns are spared the lock.
    has_heads: AtomicBool,
    /// The Python objects that are called besides handlers.
    pub callbacks: Callbacks,
    /// What of the values that handlers return is encoded.
    pub data_types: DataTypes,
    /// Failures of handlers in threads without the GIL, for the next turn to report.
    notes: Mutex<Vec<String>>,
    has_notes: AtomicBool,
    /// The place of the native route whose handler was called last; 0 if there is none.
    pub latest_route: AtomicU32,
    /// When a slow handler was last logged, 0 if none was.
    slow_logged_ms: AtomicU64,
    /// Lines that clients have caused.
    ration: Ration,
    /// What the observer does that concerns others.
    pub observed: Observed,
    /// What coroutines are run by.
    pub event_loop: Arc<HostLoop>,
    /// Counts turns, from one.
    pub turn: AtomicU64,
    /// The turn in which a message was last sent to many.
    pub cast_in: AtomicU64,
    /// Bytes of WebSocket messages that wait for their applications, over all connections.
    pub ws_queued_bytes: AtomicU64,
    /// What the handlers of a turn have deferred.
    pub deferred: Deferrals,
    /// Connections to other servers.
    pub upstreams: Upstreams,
    /// Connections that compiled code has opened.
    pub outgoing: Outgoing,
    /// The reactor's thread, and there the loop's `call_soon` and the turn to call.
    home: Mutex<Option<Home>>,
}

/// What the observer does that concerns others.
#[derive(Default)]
pub struct Observed {
    /// The field in which it puts a request's id, in lower case; `None` where it gives none.
    pub request_id_field: Option<Box<[u8]>>,
    /// The access log says how long other servers took.
    pub logs_upstream_time: bool,
    /// Where it counts; `None` without an observer.
    pub slot: Option<MetricsSlot>,
}

impl Observed {
    /// What concerns others of this observer.
    pub fn by(observer: Option<&Observer>) -> Self {
        observer.map_or_else(Self::default, |observer| Self {
            request_id_field: observer.request_id_field().map(Box::from),
            logs_upstream_time: observer.tells_upstream_time(),
            slot: Some(observer.slot()),
        })
    }
}

/// The Python objects that are called besides handlers.
pub struct Callbacks {
    /// The application as it is shown to handlers.
    pub app: Py<PyAny>,
    /// Makes a response of an exception; without it the response is a bare 500.
    pub on_error: Option<Py<PyAny>>,
    /// Hands work to the thread pool, if there is one.
    pub submit: Option<Py<PyAny>>,
    /// `(level, message)` for the log of the server.
    pub log: Option<Py<PyAny>>,
    /// What messages about a request say of an application that has no routes here.
    pub application: Option<Box<str>>,
}

impl Callbacks {
    /// Nothing is called; messages name the application `app`.
    pub fn of_application(py: Python<'_>, app: &Py<PyAny>) -> Self {
        Self {
            application: Some(logging::describe_application(app.bind(py)).into()),
            ..Self::none(py)
        }
    }

    /// Nothing is called.
    pub fn none(py: Python<'_>) -> Self {
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

/// Role and task that the table of exchanges has not kept.
type Unused = (Option<Box<dyn Role>>, Option<Py<PyAny>>);

/// The open exchanges of one place in the reactor's table.
#[derive(Default)]
struct ConnectionExchanges {
    generation: u32,
    open: SmallVec<[Exchange; 1]>,
}

/// Heads kept for the reactor's pool at most.
const HEADS_KEPT_MAX: usize = 64;

/// Lines for the log that wait for one turn at most.
const NOTES_MAX: usize = 64;

/// Between two lines of the log that name a slow handler.
const SLOW_LOGGED_EVERY_MS: u64 = 60_000;

impl ReactorHandle {
    /// The handle of the reactor with this mailbox, of this process.
    pub fn new(
        mailbox: Arc<Mailbox>,
        files: Files,
        limits: Limits,
        callbacks: Callbacks,
        event_loop: Arc<HostLoop>,
        deferred: Deferrals,
        observed: Observed,
    ) -> Self {
        Self {
            process: Process::current(),
            spooler: Spooler::new(Arc::clone(&mailbox), limits.body_spooled_bytes_max),
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
            slow_logged_ms: AtomicU64::new(0),
            ration: Ration::default(),
            observed,
            event_loop,
            turn: AtomicU64::new(1),
            cast_in: AtomicU64::new(0),
            ws_queued_bytes: AtomicU64::new(0),
            deferred,
            upstreams: Upstreams::default(),
            outgoing: Outgoing::default(),
            home: Mutex::default(),
        }
    }

    /// What messages about requests have in common.
    pub fn names(&self) -> Names<'_> {
        Names {
            application: self.callbacks.application.as_deref(),
            request_id_field: self.observed.request_id_field.as_deref(),
        }
    }

    /// Says where the reactor runs, if that is not known yet.
    pub fn set_home(&self, wake: impl FnOnce() -> Option<(Py<PyAny>, Py<PyAny>)>) {
        if lock(&self.home).is_none() {
            let home = Home {
                thread: std::thread::current().id(),
                wake: wake(),
            };
            let replaced = lock(&self.home).replace(home);
            drop(replaced);
        }
    }

    /// Whether another thread than this one turns the reactor.
    pub fn is_at_home_elsewhere(&self) -> bool {
        let here = std::thread::current().id();
        lock(&self.home)
            .as_ref()
            .is_some_and(|home| home.thread != here)
    }

    /// Whether this thread turns the reactor, and will go on to: it has not ended, and its event loop is not closed.
    pub(crate) fn is_at_home_here(&self) -> bool {
        let here = std::thread::current().id();
        let is_loops = match lock(&self.home).as_ref() {
            Some(home) if home.thread == here => home.wake.is_some(),
            _ => return false,
        };
        !is_loops || Python::attach(|py| !self.has_loop_closed(py))
    }

    fn has_loop_closed(&self, py: Python<'_>) -> bool {
        let call_soon = lock(&self.home)
            .as_ref()
            .and_then(|home| Some(home.wake.as_ref()?.0.clone_ref(py)));
        let closed = call_soon.and_then(|call_soon| {
            let event_loop = call_soon.getattr(py, "__self__").ok()?;
            event_loop
                .call_method0(py, "is_closed")
                .ok()?
                .is_truthy(py)
                .ok()
        });
        closed.unwrap_or(false)
    }

    /// Lets go of the loop and the reactor, which would keep each other alive.
    pub fn clear_home(&self) {
        let home = lock(&self.home).take();
        drop(home);
    }

    /// Posts a command and sees to it that a turn comes.
    pub fn post(&self, py: Python<'_>, id: StreamId, letter: StreamCommand) {
        if self.mailbox.post(id, letter) {
            self.wake(py);
        }
    }

    /// Posts a message to many sockets and sees to it that a turn comes.
    pub fn post_broadcast(
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
    pub(crate) fn wake(&self, py: Python<'_>) {
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
    pub fn with<R>(&self, id: StreamId, act: impl FnOnce(&mut Exchange) -> R) -> Option<R> {
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

    /// Looks at or changes the role of an open exchange; `None` if it has another one.
    pub fn with_role<R: Role, T>(&self, id: StreamId, act: impl FnOnce(&mut R) -> T) -> Option<T> {
        self.with(id, |exchange| exchange.role_mut().map(act))
            .flatten()
    }

    /// Whether an exchange is open.
    pub fn is_open(&self, id: StreamId) -> bool {
        self.with(id, |_| ()).is_some()
    }

    /// Enters an exchange; one that is open keeps the role that it has. Only a turn enters exchanges.
    pub fn enter(&self, id: StreamId, role: impl Role) {
        drop(self.enter_unless_open(id, Some(Box::new(role)), None));
    }

    /// The coroutine that works on an exchange has suspended: from here on `task` is cancelled if the client goes.
    /// Enters the exchange, if it is not open and there is a role for it.
    pub(crate) fn suspend(&self, id: StreamId, role: Option<Box<dyn Role>>, task: Py<PyAny>) {
        drop(self.enter_unless_open(id, role, Some(task)));
    }

    /// The task that works on an open exchange, if it is open still.
    pub fn set_task(&self, id: StreamId, task: Option<Py<PyAny>>) {
        let replaced = self.with(id, |exchange| std::mem::replace(&mut exchange.task, task));
        drop(replaced);
    }

    /// Returns what was not used or is replaced, to be dropped outside of the lock.
    fn enter_unless_open(
        &self,
        id: StreamId,
        role: Option<Box<dyn Role>>,
        task: Option<Py<PyAny>>,
    ) -> Unused {
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
                (role, replaced)
            }
            (None, None) => (None, task),
            (None, Some(role)) => {
                let stream = id.stream;
                place.open.push(Exchange { stream, task, role });
                (None, None)
            }
        }
    }

    /// The exchange of a connection that was entered last.
    pub fn last_open(&self, connection: ConnectionId) -> Option<StreamId> {
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
    pub fn take(&self, id: StreamId) -> Option<Exchange> {
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
    pub fn take_role<R: Role>(&self, id: StreamId) -> Option<Box<R>> {
        self.with_role(id, |_: &mut R| ())?;
        let role: Box<dyn Any> = self.take(id)?.role;
        role.downcast().ok()
    }

    /// Ends all exchanges of a connection.
    pub fn take_all(&self, connection: ConnectionId) -> SmallVec<[Exchange; 1]> {
        let mut table = lock(&self.exchanges);
        match table.get_mut(connection.index as usize) {
            Some(place) if place.generation == connection.generation => {
                std::mem::take(&mut place.open)
            }
            _ => SmallVec::new(),
        }
    }

    /// Does what belongs to an exchange, outside of a turn. As in a turn, a panic costs the connection.
    pub fn guard(&self, py: Python<'_>, id: StreamId, act: impl FnOnce()) {
        if guarded(py, act).is_none() {
            self.cut(id);
        }
    }

    /// Ends an exchange in the middle: its connection is closed, or its stream is reset. It makes no Python
    /// object and needs no GIL: the panic before it may have come of memory that has run out.
    #[cold]
    pub fn cut(&self, id: StreamId) {
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
    pub fn keep_head(&self, head: Box<Head>) {
        let mut heads = lock(&self.heads);
        if heads.len() < HEADS_KEPT_MAX {
            heads.push(head);
            self.has_heads.store(true, Ordering::Relaxed);
        }
    }

    /// The head that was kept last.
    #[cold]
    pub fn with_kept_head<R>(&self, act: impl FnOnce(Option<&Head>) -> R) -> R {
        act(lock(&self.heads).last().map(Box::as_ref))
    }

    /// Gives kept heads back to the reactor.
    #[inline]
    pub fn return_heads(&self, reply: &mut Reply<'_>) {
        if self.has_heads.load(Ordering::Relaxed) {
            self.has_heads.store(false, Ordering::Relaxed);
            for head in lock(&self.heads).drain(..) {
                reply.recycle(head);
            }
        }
    }

    /// Whether no slow handler was logged in the last minute; if so, one is logged now.
    pub fn should_log_slow_handler(&self) -> bool {
        let now_ms = coarse_ms().max(1);
        let told_ms = self.slow_logged_ms.load(Ordering::Relaxed);
        let is_due = told_ms == 0 || now_ms - told_ms >= SLOW_LOGGED_EVERY_MS;
        if is_due {
            self.slow_logged_ms.store(now_ms, Ordering::Relaxed);
        }
        is_due
    }

    /// Has the next turn [report](logging::failure) a failure; for threads without the GIL. Beyond
    /// [`NOTES_MAX`] in one turn the rest is lost.
    pub fn note_failure(&self, message: String) {
        let mut notes = lock(&self.notes);
        if notes.len() < NOTES_MAX {
            notes.push(message);
            self.has_notes.store(true, Ordering::Release);
        }
    }

    /// Tells what has been noted.
    #[inline]
    pub fn report_noted_failures(&self, py: Python<'_>) {
        if self.has_notes.load(Ordering::Relaxed) && self.has_notes.swap(false, Ordering::Acquire) {
            let notes = std::mem::take(&mut *lock(&self.notes));
            for message in notes {
                logging::failure(py, &message);
            }
        }
    }

    /// Logs what a client has caused, unless many such lines of this `kind` were logged lately.
    #[cold]
    pub fn log_of_clients(
        &self,
        py: Python<'_>,
        kind: &'static str,
        level: u8,
        mut message: String,
    ) {
        let Some(left_out) = self.ration.take(kind, coarse_ms()) else {
            return;
        };
        if left_out > 0 {
            message = format!("{message} ({left_out} lines like this one were left out)");
        }
        self.log(py, level, &message);
    }

    /// Tells Python's logging something that is no handler's exception; standard error, if there is no
    /// memory for that.
    pub fn log(&self, py: Python<'_>, level: u8, message: &str) {
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

impl citius_native::local::Reactor for ReactorHandle {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }

    fn is_at_home_here(&self) -> bool {
        Self::is_at_home_here(self)
    }

    fn warn(&self, text: &str) {
        Python::attach(|py| self.log(py, logging::LEVEL_WARNING, text));
    }
}
